// The GPU prefix index as plainly as it can be written (src/core/prefix-types.ts): a tree of blocks in Maps, each with one Set of ranks a
// tier and the names that every rank gives it. Unbounded unless given a cap of blocks, and then evicting in exact order of heat. It is
// what the index in the core is held against, and serves wherever a test needs an index and not the core.
import type {
  DumpedBlocks,
  IndexedBlocks,
  IndexTier,
  PrefixDepths,
  PrefixIndexLike,
  PrefixIndexOptions,
  PrefixIndexStats,
  StoreOutcome,
} from '../../src/core/prefix-types.js';
import { MoonrouteError } from '../../src/errors.js';

export const TIERS: readonly IndexTier[] = ['device', 'host', 'disk'];
const DEFAULT_RANKS = 64;
/** Blocks of one stored event, and so of one run of a dump. */
const MAX_EVENT_BLOCKS = 65_536;

export interface ReferenceOptions extends Pick<PrefixIndexOptions, 'ranks' | 'provenance'> {
  /** Most blocks. Default unbounded. */
  readonly entryCap?: number;
}

/** One content: a local hash behind the chain of its parents. */
interface Block {
  readonly local: bigint;
  /** Null for a prompt's first block. */
  readonly parent: Block | null;
  readonly children: Map<bigint, Block>;
  readonly held: Readonly<Record<IndexTier, Set<number>>>;
  /** What each rank that holds the block in some tier calls it: the first external hash that it announced since. */
  readonly names: Map<number, bigint>;
  /** The external hash of its first store. */
  readonly firstName: bigint;
  eligible: boolean;
  /** Larger is hotter. */
  heat: number;
}

/** The 64-bit hash at index `at` of an array of pairs of words. */
export function hashAt(words: Uint32Array, at: number): bigint {
  return (BigInt(words[2 * at + 1]!) << 32n) | BigInt(words[2 * at]!);
}

export class ReferencePrefixIndex implements PrefixIndexLike {
  readonly ranks: number;
  readonly #entryCap: number;
  readonly #provenance: boolean;
  /** First blocks of prompts, by local hash. */
  readonly #roots = new Map<bigint, Block>();
  /** By rank: external hash → the block that the rank holds under it. */
  readonly #named = new Map<number, Map<bigint, Block>>();
  readonly #blocks = new Set<Block>();
  #clock = 0;
  readonly #counts = {
    evicted: 0,
    evictedByAliases: 0,
    evictedBySets: 0,
    unknownParents: 0,
    renamed: 0,
    unknownRemovals: 0,
    lookups: 0,
  };

  constructor({
    ranks = DEFAULT_RANKS,
    provenance = false,
    entryCap = Number.POSITIVE_INFINITY,
  }: ReferenceOptions = {}) {
    this.ranks = Math.ceil(ranks / 64) * 64;
    this.#provenance = provenance;
    this.#entryCap = entryCap;
  }

  stored(rank: number, tier: IndexTier, blocks: IndexedBlocks): StoreOutcome {
    this.#check(rank);
    let tip: Block | null = null;
    if (blocks.hasParent) {
      tip = this.#resolve(rank, (BigInt(blocks.parentHigh) << 32n) | BigInt(blocks.parentLow)) ?? null;
      if (tip === null) {
        this.#counts.unknownParents++;
        return 'unknown-parent';
      }
    }
    for (let i = blocks.at; i < blocks.at + blocks.count; i++) {
      const name = hashAt(blocks.lows, i);
      const offloaded = tier === 'device' ? undefined : this.#resolve(rank, name);
      const block: Block | null = offloaded ?? this.#blockAt(tip, hashAt(blocks.locals, i), name);
      if (block === null) {
        this.#heat(tip);
        return 'no-room';
      }
      this.#hold(rank, tier, block, name, blocks.eligible);
      tip = block;
    }
    this.#heat(tip);
    return 'stored';
  }

  removed(rank: number, tier: IndexTier, lows: Uint32Array, at: number, count: number): number {
    this.#check(rank);
    let held = 0;
    for (let i = at; i < at + count; i++) {
      const block = this.#resolve(rank, hashAt(lows, i));
      if (block?.held[tier].delete(rank)) {
        held++;
        if (!TIERS.some((other) => block.held[other].has(rank))) this.#lose(rank, block);
      } else this.#counts.unknownRemovals++;
    }
    return held;
  }

  clear(rank: number): void {
    this.#check(rank);
    for (const block of new Set(this.#named.get(rank)?.values())) this.#lose(rank, block);
  }

  tidy(): void {
    // Nothing is ever left over.
  }

  lookup(locals: BigUint64Array): PrefixDepths {
    this.#counts.lookups++;
    const depths = this.peek(locals);
    const walked = this.#path(locals)[depths.deepest - 1];
    this.#heat(walked ?? null);
    return depths;
  }

  peek(locals: BigUint64Array): PrefixDepths {
    const path = this.#path(locals);
    const depths = { device: this.#zeros(), host: this.#zeros(), disk: this.#zeros(), deepest: 0 };
    for (const rank of path[0]?.names.keys() ?? []) {
      let depth = 0;
      for (const tier of TIERS) {
        while (path[depth]?.held[tier].has(rank)) depth++;
        depths[tier][rank] = depth;
      }
      depths.deepest = Math.max(depths.deepest, depth);
    }
    return depths;
  }

  dump(rank: number): DumpedBlocks[] {
    this.#check(rank);
    const runs: DumpedRun[] = [];
    const placed = new Set<Block>();
    const done = { device: new Set<Block>(), host: new Set<Block>(), disk: new Set<Block>() };
    // A block on the device may have its parent on the host only, so that one round over the tiers need not do.
    for (let before = -1; before < runs.length; ) {
      before = runs.length;
      for (const tier of TIERS) {
        let run: DumpedRun | null = null;
        const left = [...this.#roots.values()];
        for (let block = left.pop(); block !== undefined; block = left.pop()) {
          const { parent, eligible } = block;
          if (!block.names.has(rank) || !(parent === null || placed.has(parent))) continue; // nor anything behind it
          left.push(...block.children.values());
          if (!block.held[tier].has(rank) || done[tier].has(block)) continue;
          const last = run?.blocks.at(-1);
          if (
            run === null ||
            last !== parent ||
            last?.eligible !== eligible ||
            run.blocks.length === MAX_EVENT_BLOCKS
          ) {
            run = { tier, blocks: [] };
            runs.push(run);
          }
          run.blocks.push(block);
          done[tier].add(block);
          placed.add(block);
        }
      }
    }
    const nameOf = (block: Block) => block.names.get(rank)!;
    return runs.map(({ tier, blocks }) => ({
      tier,
      parent: blocks[0]!.parent === null ? null : nameOf(blocks[0]!.parent),
      hashes: BigUint64Array.from(blocks, nameOf),
      locals: BigUint64Array.from(blocks, ({ local }) => local),
      eligible: blocks[0]!.eligible,
    }));
  }

  stats(): PrefixIndexStats {
    let aliases = 0;
    const sets = new Set<string>();
    for (const { held, names, firstName } of this.#blocks) {
      for (const name of names.values()) if (name !== firstName) aliases++;
      for (const tier of TIERS) if (held[tier].size > 0) sets.add([...held[tier]].sort((a, b) => a - b).join());
    }
    return {
      entries: this.#blocks.size,
      entryCap: this.#entryCap,
      aliases,
      aliasCap: Number.POSITIVE_INFINITY,
      sets: sets.size,
      setCap: Number.POSITIVE_INFINITY,
      ranks: this.ranks,
      memoryBytes: 0,
      refusedBySets: 0,
      refusedByAliases: 0,
      ...this.#counts,
    };
  }

  /** Where the rank's name leads: the local hashes from the prompt's start, each behind a slash. Null if nowhere. */
  pathOf(rank: number, external: bigint): string | null {
    let path = '';
    for (let at = this.#resolve(rank, external) ?? null; at !== null; at = at.parent) path = `/${at.local}${path}`;
    return path === '' ? null : path;
  }

  #check(rank: number): void {
    if (!Number.isInteger(rank) || rank < 0 || rank >= this.ranks)
      throw new MoonrouteError('index-rank', `rank ${rank} is outside 0 … ${this.ranks - 1}`);
  }

  #zeros(): Uint32Array {
    return new Uint32Array(this.ranks);
  }

  #resolve(rank: number, external: bigint): Block | undefined {
    return this.#named.get(rank)?.get(external);
  }

  /** The known blocks of a prompt, up to its first unknown one. */
  #path(locals: BigUint64Array): Block[] {
    const path: Block[] = [];
    let level = this.#roots;
    for (const local of locals) {
      const block = level.get(local);
      if (block === undefined) break;
      path.push(block);
      level = block.children;
    }
    return path;
  }

  /** The block behind `parent`, known or made; null when there is no room for it. */
  #blockAt(parent: Block | null, local: bigint, firstName: bigint): Block | null {
    const level = parent?.children ?? this.#roots;
    const known = level.get(local);
    if (known !== undefined) return known;
    if (this.#blocks.size >= this.#entryCap && !this.#evict(parent)) return null;
    const held = { device: new Set<number>(), host: new Set<number>(), disk: new Set<number>() };
    const names = new Map<number, bigint>();
    const block = { local, parent, children: new Map(), held, names, firstName, eligible: false, heat: this.#clock };
    level.set(local, block);
    this.#blocks.add(block);
    return block;
  }

  #hold(rank: number, tier: IndexTier, block: Block, external: bigint, eligible: boolean): void {
    block.eligible = this.#provenance && eligible && (block.names.size === 0 || block.eligible);
    block.held[tier].add(rank);
    const before = this.#resolve(rank, external);
    if (before !== undefined && before !== block) {
      this.#counts.renamed++;
      this.#lose(rank, before);
    }
    if (block.names.has(rank)) return;
    block.names.set(rank, external);
    const named = this.#named.get(rank) ?? new Map<bigint, Block>();
    this.#named.set(rank, named.set(external, block));
  }

  /** The rank no longer holds the block in any tier. */
  #lose(rank: number, block: Block): void {
    for (const tier of TIERS) block.held[tier].delete(rank);
    this.#named.get(rank)!.delete(block.names.get(rank)!);
    block.names.delete(rank);
    this.#prune(block);
  }

  /** Forgets the block if nobody holds it and nothing is known behind it; then its parent likewise. */
  #prune(block: Block): void {
    for (let at: Block | null = block; at !== null && at.names.size === 0 && at.children.size === 0; at = at.parent) {
      (at.parent?.children ?? this.#roots).delete(at.local);
      this.#blocks.delete(at);
    }
  }

  /** The coldest block with nothing behind it goes, `spared` excepted. False when there is none. */
  #evict(spared: Block | null): boolean {
    let coldest: Block | null = null;
    for (const block of this.#blocks) {
      if (block.children.size > 0 || block === spared) continue;
      if (coldest === null || block.heat < coldest.heat) coldest = block;
    }
    if (coldest === null) return false;
    this.#counts.evicted++;
    for (const rank of [...coldest.names.keys()]) this.#lose(rank, coldest);
    return true;
  }

  /** The block and its parents become the hottest, parents hotter than children. */
  #heat(block: Block | null): void {
    for (let at = block; at !== null; at = at.parent) at.heat = ++this.#clock;
  }
}

/** A run of a dump while it grows. */
interface DumpedRun {
  readonly tier: IndexTier;
  readonly blocks: Block[];
}
