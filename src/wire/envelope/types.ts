// Events as routers exchange them over a plane (spec: the field's router envelope): what a worker's publisher says of its blocks, already normalised,
// numbered and hashed, so that whoever reads it needs no tokens. 64-bit numbers are bigints, hashes stand in arrays of 64-bit words.
import type { Tier } from '../../events/tiers.js';

/** Whose blocks the event tells of: a worker's own, or those of an owner of a cache that outlives it. */
export type ResidencyDomain = 'worker' | 'cache_owner';

/** Blocks entered a tier, in chain order. */
export interface StoredData {
  readonly kind: 'stored';
  /** External hash of the block before the first one; null at a prompt's start. */
  readonly parent: bigint | null;
  /** Place of the first block in its prompt, where the publisher knows it; kept and passed on. */
  readonly startPosition: number | null;
  /** External hashes, and local hashes of the same blocks. */
  readonly hashes: BigUint64Array;
  readonly locals: BigUint64Array;
  /** Multimodal information by block, as plain values, passed on; null where no block has any. */
  readonly mm: readonly unknown[] | null;
}

/** Blocks left a tier. */
export interface RemovedData {
  readonly kind: 'removed';
  readonly hashes: BigUint64Array;
}

/** Everything of the rank is gone; with a residency domain, of that domain only. */
export interface ClearedData {
  readonly kind: 'cleared';
}

/** What an event tells. */
export type EventData = StoredData | RemovedData | ClearedData;

/** One event of one worker's rank. */
export interface RouterEvent {
  /** 0 … 2^64 − 1. */
  readonly workerId: bigint;
  readonly dpRank: number;
  readonly tier: Tier;
  /** Null where the event does not say; then a worker's own. */
  readonly domain: ResidencyDomain | null;
  /** From 1 on, one more for each event of the rank. */
  readonly eventId: bigint;
  readonly data: EventData;
  /** Stored blocks' hashes cover text, LoRA name and cache namespace only, so that they may teach a shared cache. False for all else. `sce` on the wire. */
  readonly eligible: boolean;
  /**
   * The publisher's worker contradicts itself about what the blocks' hashes cover: whatever was learned about them earns no credit any more. Such an
   * event is never eligible; false for clears. `con` on the wire, a field of our own: readers who don't know it pass over it.
   */
  readonly contradicts: boolean;
  /** Passed on; null where the event has none. */
  readonly sessionId: string | null;
  readonly stateSource: unknown;
}

/** Who holds what a placement event tells of. */
export type PlacementOwner =
  | { readonly kind: 'worker'; readonly workerId: bigint; readonly dpRank: number }
  | { readonly kind: 'shared' };

/** An event with its place, before it is some worker's. A shared owner's never becomes a RouterEvent. It says nothing of contradictions. */
export interface PlacementEvent {
  readonly owner: PlacementOwner;
  readonly tier: Tier;
  readonly domain: ResidencyDomain;
  readonly event: Pick<RouterEvent, 'eventId' | 'dpRank' | 'data'>;
  readonly eligible: boolean;
  readonly sessionId: string | null;
}

// ---- recovery (spec 4.3) ----

/** What a router asks a worker's local indexer. */
export interface RecoveryQuestion {
  readonly workerId: bigint;
  readonly dpRank: number;
  /** First event that is missed; null for all. */
  readonly startEventId: bigint | null;
  /** Last one; null for all there are. */
  readonly endEventId: bigint | null;
  /** The asker understands `tree-dump-failed`. */
  readonly supportsTreeDumpFailed: boolean;
  /** For long dumps: the page wanted, as the answer before named it; null for the first. */
  readonly page: string | null;
}

/** What the local indexer answers, by kind. */
export type RecoveryAnswer =
  /** Every event of the range, in order. */
  | { readonly kind: 'events'; readonly events: readonly RouterEvent[]; readonly lastEventId: bigint }
  /**
   * All that the rank holds, as stored events with synthetic ids from 0; it stands for all events up to `lastEventId`. Long ones come in pages:
   * `next` names the following one, null on the last; all pages of one dump have one `lastEventId`.
   */
  | {
      readonly kind: 'tree-dump';
      readonly events: readonly RouterEvent[];
      readonly lastEventId: bigint;
      readonly resetScope: string | null;
      readonly next: string | null;
    }
  | { readonly kind: 'tree-dump-failed'; readonly detail: string }
  /** The range begins past the newest event. */
  | {
      readonly kind: 'too-new';
      readonly requestedStart: bigint;
      readonly requestedEnd: bigint | null;
      readonly newestAvailable: bigint;
    }
  | { readonly kind: 'invalid-range'; readonly startId: bigint; readonly endId: bigint }
  | { readonly kind: 'error'; readonly detail: string };

// ---- load (between routers) ----

/** One rank's load by the open leases of one router. */
export interface RankLoadShare {
  readonly workerId: bigint;
  readonly dpRank: number;
  readonly activeRequests: number;
  readonly prefillTokens: number;
  readonly decodeBlocks: number;
}

/** All open leases of one router, whole: each report replaces the one before, so a lost one costs nothing but time. */
export interface LoadReport {
  /** The router's own name, new at every start. */
  readonly router: string;
  /** One more for each report. */
  readonly sequence: bigint;
  /** Milliseconds after which, without another report, the router is taken for dead and its load returned. 0: it says good-bye. */
  readonly goodFor: number;
  /** Ranks that have any. */
  readonly ranks: readonly RankLoadShare[];
}
