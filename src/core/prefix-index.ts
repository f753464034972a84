// The GPU prefix index (assembly/prefixes.ts): which worker ranks hold which blocks, and how far each holds a prompt. An instance and a
// memory of its own, of the size that its owner chooses. Hashes go in as words, depths come out as arrays by rank.
import { ConfigError, MoonrouteError } from '../errors.js';
import { globalOf } from './builds.js';
import { DumpRuns } from './dump-runs.js';
import { compiledModule, compileModules, instantiate } from './modules.js';
import type {
  DumpedBlocks,
  IndexedBlocks,
  IndexTier,
  PrefixDepths,
  PrefixIndexLike,
  PrefixIndexOptions,
  PrefixIndexStats,
  StoreOutcome,
} from './prefix-types.js';

interface Exports extends Record<string, unknown> {
  configure(words: number, seedLow: number, seedHigh: number, provenance: number): void;
  entryCap(): number;
  aliasCap(): number;
  aliasCount(): number;
  setCap(): number;
  stored(
    rank: number,
    tier: number,
    blocks: number,
    hasParent: number,
    low: number,
    high: number,
    eligible: number,
  ): number;
  removed(rank: number, tier: number, blocks: number): number;
  clear(rank: number): void;
  tidy(): void;
  begin(): void;
  walk(blocks: number, heats: number): number;
  finish(heats: number): number;
  dumpEntries(rank: number, from: number): number;
  dumpNames(rank: number, from: number): number;
  dumpedRows(): number;
}

const MIB = 1 << 20;
const PAGE_BYTES = 65_536;
/** Pages that the module's import allows (asconfig.json). */
const MOST_PAGES = 8_192;
const DEFAULT_BYTES = 64 * MIB;
const DEFAULT_RANKS = 64;
const MOST_RANKS = 1024;
const MOST_EVENT_BLOCKS = 65_536;
const MOST_PROMPT_BLOCKS = 262_144;
const RANKS_A_WORD = 64;
const TIER: Readonly<Record<IndexTier, number>> = { device: 0, host: 1, disk: 2 };
const OUTCOMES: readonly StoreOutcome[] = ['stored', 'unknown-parent', 'no-room'];
/** What stands before the blocks of a call (assembly/prefix/learn.ts). */
const BEHIND = { nothing: 0, parent: 1, lastPart: 2 } as const;

/** Positions of assembly/prefix/layout.ts. */
const CELLS = {
  entries: 0,
  sets: 2,
  evicted: 3,
  unknownParents: 4,
  refusedBySets: 5,
  refusedByAliases: 6,
  renamed: 7,
  unknownRemovals: 8,
  evictedByAliases: 9,
  evictedBySets: 10,
} as const;

/** Make one with `PrefixIndex.create`. */
export class PrefixIndex implements PrefixIndexLike {
  readonly ranks: number;
  readonly #exports: Exports;
  readonly #locals: Uint32Array;
  readonly #names: Uint32Array;
  readonly #rows: Uint32Array;
  readonly #rowLongs: BigUint64Array;
  readonly #cells: Uint32Array;
  readonly #partBlocks: number;
  readonly #depths: { device: Uint32Array; host: Uint32Array; disk: Uint32Array; deepest: number };
  readonly #memoryBytes: number;
  #lookups = 0;

  private constructor(bytes: number, ranks: number, options: PrefixIndexOptions) {
    const pages = Math.floor(bytes / PAGE_BYTES);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    this.#exports = instantiate<Exports>(compiledModule('prefixes'), { env: { memory } });
    const words = Math.ceil(ranks / RANKS_A_WORD);
    this.ranks = words * RANKS_A_WORD;
    this.#memoryBytes = pages * PAGE_BYTES;
    const seed = options.tableSeed ?? crypto.getRandomValues(new BigUint64Array(1))[0]!;
    const [low, high] = new Uint32Array(BigUint64Array.of(seed).buffer);
    this.#exports.configure(words, low!, high!, options.provenance === true ? 1 : 0);
    const at = (name: string) => globalOf(this.#exports, name);
    const { buffer } = memory;
    this.#partBlocks = at('PART_BLOCKS');
    this.#locals = new Uint32Array(buffer, at('LOCALS'), this.#partBlocks * 2);
    this.#names = new Uint32Array(buffer, at('NAMES'), this.#partBlocks * 2);
    this.#rows = this.#locals;
    this.#rowLongs = new BigUint64Array(buffer, at('LOCALS'), this.#partBlocks);
    this.#cells = new Uint32Array(buffer, at('CELLS'), Math.max(...Object.values(CELLS)) + 1);
    const ends = (tier: number) => new Uint32Array(buffer, at('ENDS') + tier * at('RANK_CAP') * 4, this.ranks);
    this.#depths = { device: ends(0), host: ends(1), disk: ends(2), deepest: 0 };
  }

  /** The same as `createSync`, compiled beside the program. */
  static async create(options: PrefixIndexOptions = {}): Promise<PrefixIndex> {
    await compileModules(['prefixes']);
    return PrefixIndex.createSync(options);
  }

  /**
   * Reserves the memory.
   * @throws ConfigError `index-bytes`, `index-ranks`; MoonrouteError `wasm-memory` and others of core/modules.ts.
   */
  static createSync(options: PrefixIndexOptions = {}): PrefixIndex {
    const { bytes = DEFAULT_BYTES, ranks = DEFAULT_RANKS } = options;
    if (!Number.isInteger(bytes) || bytes < MIB || bytes > MOST_PAGES * PAGE_BYTES) {
      throw new ConfigError(
        'index-bytes',
        `the GPU index's bytes is ${bytes}; give a whole number from ${MIB} (1 MiB) to ${MOST_PAGES * PAGE_BYTES} (512 MiB); a block takes 40.`,
      );
    }
    if (!Number.isInteger(ranks) || ranks < 1 || ranks > MOST_RANKS) {
      throw new ConfigError(
        'index-ranks',
        `the GPU index's ranks is ${ranks}; give a whole number from 1 to ${MOST_RANKS} (default ${DEFAULT_RANKS}).`,
      );
    }
    return new PrefixIndex(bytes, ranks, options);
  }

  /**
   * Blocks entered a tier of a rank.
   * @throws MoonrouteError `index-rank`; `index-blocks` for more than 65,536 blocks.
   */
  stored(rank: number, tier: IndexTier, blocks: IndexedBlocks): StoreOutcome {
    this.#check(rank, blocks.count);
    const { lows, locals, at, count, hasParent, parentLow, parentHigh } = blocks;
    const eligible = blocks.eligible ? 1 : 0;
    const place = TIER[tier];
    let behind: number = hasParent ? BEHIND.parent : BEHIND.nothing;
    let outcome: StoreOutcome = 'stored';
    for (let from = at, left = count; left > 0 && outcome === 'stored'; ) {
      const part = Math.min(left, this.#partBlocks);
      copyPairs(locals, from, part, this.#locals);
      copyPairs(lows, from, part, this.#names);
      outcome = OUTCOMES[this.#exports.stored(rank, place, part, behind, parentLow, parentHigh, eligible)]!;
      behind = BEHIND.lastPart;
      from += part;
      left -= part;
    }
    return outcome;
  }

  /** Blocks left a tier of a rank. Throws `index-rank`. */
  removed(rank: number, tier: IndexTier, lows: Uint32Array, at: number, count: number): number {
    this.#check(rank, 0);
    let known = 0;
    for (let from = at, left = count; left > 0; ) {
      const part = Math.min(left, this.#partBlocks);
      copyPairs(lows, from, part, this.#names);
      known += this.#exports.removed(rank, TIER[tier], part);
      from += part;
      left -= part;
    }
    return known;
  }

  clear(rank: number): void {
    this.#check(rank, 0);
    this.#exports.clear(rank);
  }

  tidy(): void {
    this.#exports.tidy();
  }

  /** @throws MoonrouteError `index-blocks` for more than 262,144 blocks. */
  lookup(locals: BigUint64Array): PrefixDepths {
    this.#lookups++;
    return this.#walk(locals, 1);
  }

  peek(locals: BigUint64Array): PrefixDepths {
    return this.#walk(locals, 0);
  }

  #walk(locals: BigUint64Array, heats: 0 | 1): PrefixDepths {
    if (locals.length > MOST_PROMPT_BLOCKS) throw tooMany(locals.length, MOST_PROMPT_BLOCKS);
    const exports = this.#exports;
    exports.begin();
    for (let from = 0; from < locals.length; from += this.#partBlocks) {
      const part = Math.min(locals.length - from, this.#partBlocks);
      this.#rowLongs.set(part === locals.length ? locals : locals.subarray(from, from + part));
      if (exports.walk(part, heats) === 0) break;
    }
    this.#depths.deepest = exports.finish(heats);
    return this.#depths;
  }

  dump(rank: number): DumpedBlocks[] {
    this.#check(rank, 0);
    const exports = this.#exports;
    const runs = new DumpRuns(this.#rows, exports.entryCap(), MOST_EVENT_BLOCKS);
    let from = 0;
    do {
      from = exports.dumpNames(rank, from);
      runs.names(exports.dumpedRows());
    } while (from !== 0);
    do {
      from = exports.dumpEntries(rank, from);
      runs.blocks(exports.dumpedRows());
    } while (from !== 0);
    return runs.runs();
  }

  stats(): PrefixIndexStats {
    const counts = {} as Record<keyof typeof CELLS, number>;
    for (const [name, place] of Object.entries(CELLS)) counts[name as keyof typeof CELLS] = this.#cells[place]!;
    return {
      ...counts,
      entryCap: this.#exports.entryCap(),
      aliases: this.#exports.aliasCount(),
      aliasCap: this.#exports.aliasCap(),
      setCap: this.#exports.setCap(),
      ranks: this.ranks,
      memoryBytes: this.#memoryBytes,
      lookups: this.#lookups,
    };
  }

  #check(rank: number, blocks: number): void {
    if (!Number.isInteger(rank) || rank < 0 || rank >= this.ranks) {
      throw new MoonrouteError(
        'index-rank',
        `rank is ${rank}; the GPU index was made for ranks 0 … ${this.ranks - 1}.`,
      );
    }
    if (blocks > MOST_EVENT_BLOCKS) throw tooMany(blocks, MOST_EVENT_BLOCKS);
  }
}

function tooMany(blocks: number, most: number): MoonrouteError {
  return new MoonrouteError('index-blocks', `${blocks} blocks; the GPU index takes ${most} at once.`);
}

/** Below so many words a loop is cheaper than a view. */
const FEW_WORDS = 32;

/** Copies `count` pairs of words from index `from` on to the start of `to`. */
function copyPairs(source: Uint32Array, from: number, count: number, to: Uint32Array): void {
  const first = from * 2;
  const words = count * 2;
  if (words > FEW_WORDS) to.set(source.subarray(first, first + words));
  else for (let i = 0; i < words; i++) to[i] = source[first + i]!;
}
