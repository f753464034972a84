// The KV events of a vLLM worker, as this project sees them whatever encoding they came in. Fields that decide whether an
// event may teach shared-cache edges keep the value that was on the wire, since there its very type matters. Fields and
// their meaning: spec/kv-events.md 1.5, 1.8 and 3.1.
import type { EngineHash, EngineHashes } from './engine-hashes.js';

/** Blocks that entered a cache. */
export interface StoredEvent {
  readonly type: 'stored';
  readonly form: 'map' | 'positional';
  readonly blockHashes: EngineHashes;
  /** Hash of the block before the first one, null at a prompt's start. */
  readonly parentBlockHash: EngineHash | null;
  /** Token ids. Of pairs (Eagle) all first members, then the last second one. */
  readonly tokenIds: Uint32Array;
  /** The wire carried pairs of tokens instead of tokens. */
  readonly tokenPairs: boolean;
  /** Tokens a block. */
  readonly blockSize: number;
  readonly medium: string | null;
  readonly loraName: string | null;
  readonly groupIdx: number | null;
  readonly specKind: string | null;
  /** Tokens. */
  readonly slidingWindow: number | null;
  readonly locality: string | null;
  readonly ownership: string | null;
  /** The salt that the producer names; the empty text says that there is none. Null says nothing. */
  readonly cacheSalt: string | null;
  // As decoded, undefined where absent. Binary among them is a view of the payload.
  readonly loraId: unknown;
  readonly extraKeys: unknown;
  readonly isEagle: unknown;
  readonly sharedCacheEligible: unknown;
  readonly blockMmInfos: unknown;
}

/** Blocks that left a cache. */
export interface RemovedEvent {
  readonly type: 'removed';
  readonly form: 'map' | 'positional';
  readonly blockHashes: EngineHashes;
  readonly medium: string | null;
  readonly groupIdx: number | null;
  readonly specKind: string | null;
  readonly slidingWindow: number | null;
  readonly locality: string | null;
  readonly ownership: string | null;
}

/** Everything of the worker's rank left its cache. */
export interface ClearedEvent {
  readonly type: 'cleared';
  readonly form: 'map' | 'positional';
  readonly ownership: string | null;
}

/** An event that its producer marked as meaningless for routers. */
export interface IgnoredEvent {
  readonly type: 'ignored';
  readonly form: 'map' | 'positional';
}

/** Any of them; told apart by `type`. */
export type WorkerEvent = StoredEvent | RemovedEvent | ClearedEvent | IgnoredEvent;

/** Why an event was not read. */
export type EventFault =
  | 'not-an-event'
  | 'tag-missing'
  | 'tag-unknown'
  | 'field-missing'
  | 'field-type'
  | 'too-many-tokens'
  | 'hash-type'
  | 'hash-width'
  | 'hash-mixed';

/** An event that was not read. */
export interface UnreadEvent {
  readonly code: EventFault;
  /** What was wrong, with the value seen. */
  readonly text: string;
  /** The event was, or may have been, a removal or a clear: whoever mirrors this worker now keeps blocks that it has lost. */
  readonly lostRemoval: boolean;
}
