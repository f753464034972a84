// What every rival of the WebAssembly core takes and does. Rivals keep the rules of assembly/README.md as far as a
// benchmark needs them: groups of one span, no partial hits, hashes as the JavaScript decoder hands them out.

export interface RivalGroup {
  readonly kind: 'full_attention' | 'sliding_window' | 'mamba';
  /** Sliding window in tokens, null for other kinds. */
  readonly window: number | null;
}

export interface RivalOptions {
  /** Default 262,144. */
  readonly edgeCap?: number;
  /** Default: the edge cap. */
  readonly digestCap?: number;
  /** Distinct (digest, prefix) pairs; default 524,288. */
  readonly membershipCap?: number;
  /** Default 262,144. */
  readonly ambiguousCap?: number;
  /** Tokens per edge and per object of every group. */
  readonly blockSize: number;
  readonly groups: readonly RivalGroup[];
  /** Required prefixes of object keys, each with the index of its group. */
  readonly prefixes: readonly { readonly text: string; readonly group: number }[];
}

export interface RivalEvent {
  /** null = root. */
  readonly parent: bigint | null;
  readonly salted: boolean;
  /** Local hashes of the event's blocks. */
  readonly locals: BigUint64Array;
  /** External hashes of the same blocks. */
  readonly children: BigUint64Array;
}

export interface Rival {
  learn(event: RivalEvent): void;
  /** Applies the payload of one store message. */
  applyBatch(payload: Uint8Array): void;
  clearResidency(): void;
  /** @returns tokens that may be credited */
  lookup(localHashes: BigUint64Array, tokenCount: number): number;
  /** Table fills, for checks. */
  counts(): { edges: number; digests: number; memberships: number };
}

/** What a store message does to a rival; the digest as it stands in the key, 64 lowercase hexadecimal digits. */
export interface StoreTarget {
  stored(digest: string, prefix: number, medium: number): void;
  removed(digest: string, prefix: number, media: number): void;
  clearResidency(): void;
}

export const DEFAULT_CAP = 262_144;
export const DEFAULT_MEMBERSHIP_CAP = 524_288;
/** Room for one object may cost this many departures. */
export const DEPARTURES_AN_EVENT = 256;

/** Blocks that a sliding window needs before an endpoint. */
export function windowBlocks(group: RivalGroup, blockSize: number): number {
  return Math.ceil((group.window! - 1) / blockSize);
}
