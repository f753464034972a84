// What goes into the shared cache and what comes out, as its callers see it (design.md 8).
import type { Hashing } from '../contract/descriptor.js';
import type { CoreStats } from '../core/stats.js';
import type { LearnRefusal } from '../events/stored-blocks.js';
import type { Reason } from './reasons.js';

/** How much a cache remembers. */
export interface CacheLimits {
  /** Learned edges, and as many digests: 1 … 4,194,304; above 262,144 the large build serves. Default 262,144. */
  readonly edges?: number;
}

/** How a cache is made. */
export interface SharedCacheOptions {
  readonly limits?: CacheLimits;
  /**
   * Where the engine hashes of a prompt come from: learned from workers' events (default), derived from its tokens by the contract's hash rule, or
   * both: derived where they may be, else learned. Contracts must have been validated for the same.
   */
  readonly hashing?: Hashing;
  /**
   * Credit derived hashes before workers' events have agreed with them. Needed where a contract has no main event group, whose events could; set it only
   * if you know that every engine hashes as its contract says: a wrong seed credits what they can't restore. Default false.
   */
  readonly trustSeed?: boolean;
  /**
   * Credit under a contract that was derived from a model's public configuration (`deriveDescriptor`), and that no running engine has vouched for. What is
   * wrong with it then credits what engines can't restore. Default false: such a contract gives nothing, reason `contract-unverified`.
   */
  readonly allowUnverifiedContract?: boolean;
  /**
   * True while contract changes are unread: no hints, no learning. Asked at every call; must be cheap. Where it throws they count as unread, and
   * it is counted.
   */
  readonly isPending?: () => boolean;
  /** Seed of the core's hash tables; fix it only for repeatable counters. Default random. */
  readonly tableSeed?: bigint;
}

/** A prompt. Either its local hashes or its tokens must be given. */
export interface CacheQuery {
  /** Local hashes of the prompt's full blocks, in order. */
  readonly localHashes?: BigUint64Array;
  readonly tokens?: Uint32Array;
  /** Tokens of the whole prompt. */
  readonly tokenCount: number;
  /** Tokens a local hash covers. */
  readonly blockSize: number;
  /** Provenance proven: text, LoRA name and namespace are all that the engine will hash. */
  readonly eligible: boolean;
  /** Used only with `tokens`. */
  readonly loraName?: string | null;
  /** The cache namespace (the user's salt without `dynamo-cache-salt:`). Used only with `tokens`. */
  readonly cacheSalt?: string | null;
  /** The engine's own `cache_salt`, instead of a namespace. Only derived hashes know it. */
  readonly rawSalt?: string | null;
  /**
   * Who will be credited: any admitted rank (default), or only those that `isProven`; the caller sees to that. It decides whether derived hashes may be used
   * while some ranks have yet to prove how they hash.
   */
  readonly credits?: 'any-rank' | 'proven-ranks';
}

/**
 * What vLLM would restore: the first `tokens` tokens, of which `blocks` main event blocks are whole. Derived hashes also see restart points inside a
 * block.
 */
export interface CacheHits {
  readonly blocks: number;
  readonly tokens: number;
}

/** A lookup's answer with its reasons, the decisive ones first. */
export interface Explanation {
  readonly hits: CacheHits;
  readonly reasons: readonly Reason[];
}

/** What an event taught. */
export interface Learned {
  /** Blocks learned or confirmed. */
  readonly blocks: number;
  /** Why it taught nothing, null when it was learned (though perhaps not whole: see the core's counters). */
  readonly refused:
    | LearnRefusal
    | 'stopped'
    | 'pending'
    | 'no-contract'
    | 'source-not-admitted'
    | 'derived-only' // hashes are derived, so that events prove something and teach nothing
    | null;
}

/** Objects of every rank of a group, known without their messages' bytes: what a simulation has. */
export interface DecodedObjects {
  readonly kind: 'stored' | 'removed';
  /** Where they entered, or what they left. */
  readonly medium: 'cpu' | 'disk' | 'unknown';
  /** Store group of the contract. */
  readonly group: number;
  /** Eight words a digest: its first 24 bytes, then its low 64 bits, the low word first. */
  readonly digests: Uint32Array;
  /** The first digest, and how many. */
  readonly at: number;
  readonly count: number;
}

/** What became of a store message. */
export type StoreMessageFate =
  | 'applied'
  | 'duplicate'
  | 'gap-applied' //      messages were missed: residency was cleared, then this batch applied
  | 'malformed' //        a relevant event could not be used: residency was cleared
  | 'unreadable' //       likewise, the whole message
  | 'pending' //          dropped; its sequence is recorded
  | 'no-contract' //      likewise
  | 'stale-generation' // stamped before a contract change: ignored
  | 'stopped';

/** How the message ended, and what was seen. */
export interface StoreMessageResult {
  readonly fate: StoreMessageFate;
  /** Null where it could not be read or was not looked at. */
  readonly sequence: bigint | null;
  /** Object events applied. */
  readonly objects: number;
  readonly skipped: { readonly foreignTenant: number; readonly foreignKey: number };
  /** Stored and removed events of an applied message, those of foreign objects among them: what the master's own count of keys moves by. */
  readonly said: { readonly stored: number; readonly removed: number };
  /** Which event, and what was wrong, for `malformed` and `unreadable`. */
  readonly detail: string | null;
}

/** What became of a reconcile: objects placed and left out for want of room, and keys that were not ours; or why it did not count. */
export type ReconcileResult =
  | {
      readonly accepted: true;
      readonly placed: number;
      readonly leftOut: number;
      readonly foreign: number;
      readonly malformed: number;
    }
  | { readonly accepted: false; readonly reason: string };

/** Use of every table, and counts of what happened, since the cache was made. */
export interface CacheStats {
  readonly generation: number;
  readonly core: CoreStats | null;
  readonly build: string | null;
  /** Fates of store messages, refusals of stored events and causes of clears, by code. */
  readonly messages: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  readonly clears: Readonly<Record<string, number>>;
  /** Times that `isPending` threw. */
  readonly pendingFaults: number;
  /** Null where hashes are not derived, or no contract is in force. */
  readonly derivation: DerivationStats | null;
}

/** How far derived hashes are trusted. */
export interface DerivationStats {
  /** Admitted ranks whose events have agreed with derived digests at least once. */
  readonly provenRanks: number;
  /** Events that were held against them. */
  readonly agreed: number;
  /** What disagreed, and thereby ended derivation until the contract changes; null while nothing has. */
  readonly refuted: string | null;
}
