// What the GPU prefix index takes and gives, as everything above src/core sees it. Ranks are the compact numbers that the router gives
// to (workerId, dpRank); 64-bit hashes are pairs of 32-bit words, the low one first, so that no hot path makes a BigInt.

/** Where a worker holds a block. */
export type IndexTier = 'device' | 'host' | 'disk';

/** How an index is made. */
export interface PrefixIndexOptions {
  /** Memory for everything, reserved at start, in bytes: 1 MiB … 512 MiB. Default 64 MiB. */
  readonly bytes?: number;
  /** Most worker ranks: 1 … 1,024, rounded up to a multiple of 64. Default 64. */
  readonly ranks?: number;
  /** Keep for each block whether all that announced it were eligible; for `dump`. Default false: nothing is dumped as eligible. */
  readonly provenance?: boolean;
  /** Seed of hash tables and block names; fix it only for repeatable counters. Default random. */
  readonly tableSeed?: bigint;
}

/** Blocks of one stored event, in chain order; 1 … 65,536 of them. */
export interface IndexedBlocks {
  /** External hashes as pairs of words; the first stands at index `2 × at`. */
  readonly lows: Uint32Array;
  /** Local hashes, likewise. */
  readonly locals: Uint32Array;
  /** Index of the first block's hashes. */
  readonly at: number;
  readonly count: number;
  /** False for blocks at a prompt's start. */
  readonly hasParent: boolean;
  /** Words of the parent's external hash; 0 without one. */
  readonly parentLow: number;
  readonly parentHigh: number;
  /** Provenance: the blocks' hashes cover text, LoRA name and namespace only. */
  readonly eligible: boolean;
}

/** What became of a stored event. */
export type StoreOutcome =
  | 'stored'
  | 'unknown-parent' // the rank does not hold the parent: nothing was stored
  | 'no-room'; //       some bound was met before the last block: the first blocks may have been stored

/**
 * How far each rank holds a prompt, in blocks from its start: rank r has the first `device[r]` blocks on its device, goes on to `host[r]`
 * with its host memory and to `disk[r]` with its disk or external tier; device[r] ≤ host[r] ≤ disk[r]. Views that hold until the next call.
 */
export interface PrefixDepths {
  readonly device: Uint32Array;
  readonly host: Uint32Array;
  readonly disk: Uint32Array;
  /** The deepest `disk[r]`. */
  readonly deepest: number;
}

/** Blocks of a rank in one tier that follow one another. */
export interface DumpedBlocks {
  readonly tier: IndexTier;
  /** External hash, as this rank names it, of the block before the first one; null at a prompt's start. */
  readonly parent: bigint | null;
  readonly hashes: BigUint64Array;
  readonly locals: BigUint64Array;
  /** All announced as eligible. Always false without `provenance`. */
  readonly eligible: boolean;
}

/** Use of every part, and what has happened since the index was made. */
export interface PrefixIndexStats {
  /** Blocks known, among them such as nobody holds, kept for the blocks behind them. */
  readonly entries: number;
  readonly entryCap: number;
  /** (block, rank) pairs that need a record of their own, since the rank names the block differently from the first that announced it. */
  readonly aliases: number;
  readonly aliasCap: number;
  /** Different sets of ranks. */
  readonly sets: number;
  readonly setCap: number;
  readonly ranks: number;
  /** Linear memory, reserved at start. */
  readonly memoryBytes: number;
  /** Blocks that went since there were too many. */
  readonly evicted: number;
  /** Of these, since there were too many names … */
  readonly evictedByAliases: number;
  /** … or too many sets. */
  readonly evictedBySets: number;
  readonly unknownParents: number;
  /** Blocks not stored because the sets, or the aliases, were full. */
  readonly refusedBySets: number;
  readonly refusedByAliases: number;
  /** A rank gave an external hash to another block than before: the first one was taken from it. */
  readonly renamed: number;
  /** Removals of blocks that the rank was not known to hold. */
  readonly unknownRemovals: number;
  readonly lookups: number;
}

/** Which ranks hold which blocks. */
export interface PrefixIndexLike {
  /** Most ranks; those of a call must be below. */
  readonly ranks: number;
  stored(rank: number, tier: IndexTier, blocks: IndexedBlocks): StoreOutcome;
  /** Blocks left a tier of the rank: `count` external hashes from index `at` on. Returns how many it was known to hold there. */
  removed(rank: number, tier: IndexTier, lows: Uint32Array, at: number, count: number): number;
  /** Everything of the rank goes: at once for whoever asks, while the blocks that nobody holds any more are given back little by little. */
  clear(rank: number): void;
  /** Gives back all of those now, for an idle moment. */
  tidy(): void;
  /** Depths of a prompt, given as the local hashes of its full blocks; what it walked becomes the hottest. At most 262,144 blocks. */
  lookup(locals: BigUint64Array): PrefixDepths;
  /** The same, and nothing becomes hotter. */
  peek(locals: BigUint64Array): PrefixDepths;
  /** Everything that the rank holds and that hangs together from a prompt's start. Storing the parts in their order rebuilds it. */
  dump(rank: number): DumpedBlocks[];
  stats(): PrefixIndexStats;
}

/** Blocks given as whole arrays. */
export function indexedBlocks(
  parent: bigint | null,
  hashes: BigUint64Array,
  locals: BigUint64Array,
  eligible = false,
): IndexedBlocks {
  const words = ({ buffer, byteOffset, length }: BigUint64Array) => new Uint32Array(buffer, byteOffset, length * 2);
  return {
    lows: words(hashes),
    locals: words(locals),
    at: 0,
    count: hashes.length,
    hasParent: parent !== null,
    parentLow: Number((parent ?? 0n) & 0xffffffffn),
    parentHigh: Number((parent ?? 0n) >> 32n),
    eligible,
  };
}
