// From a dump's rows (assembly/prefix/dump.ts) to runs of blocks that follow one another. A rank may hold half a million blocks and the dump is one step, so
// all of it goes by 32-bit words in arrays that are made once: no object, no BigInt and no map entry a block. Only the last run of each tier grows, so the
// blocks of a tier's runs stand one behind the other.
import type { DumpedBlocks, IndexTier } from './prefix-types.js';

const TIERS: readonly IndexTier[] = ['device', 'host', 'disk'];
/** Words of a row. */
const ROW_WORDS = 8;
/** Places of a row's words. A row of names has `entry` and `name` only. */
const ROW = { entry: 0, parent: 1, name: 2, local: 4, tiers: 6, eligible: 7 } as const;
/** What is known of an entry: its name among those of the rank's own; that it was met, so that blocks behind it have their place. */
const NAMED = 1;
const MET = 2;
const FIRST_BLOCKS = 1024;

interface Run {
  readonly parent: bigint | null;
  readonly eligible: boolean;
  /** Its first block among the tier's. */
  readonly from: number;
  end: number;
  /** Entry of its last block. */
  last: number;
}

/** Blocks of one tier, and their runs. */
class TierRuns {
  readonly runs: Run[] = [];
  #hashes = new Uint32Array(FIRST_BLOCKS * 2);
  #locals = new Uint32Array(FIRST_BLOCKS * 2);
  #blocks = 0;

  push(low: number, high: number, localLow: number, localHigh: number): number {
    const at = this.#blocks * 2;
    if (at === this.#hashes.length) {
      this.#hashes = grown(this.#hashes);
      this.#locals = grown(this.#locals);
    }
    this.#hashes[at] = low;
    this.#hashes[at + 1] = high;
    this.#locals[at] = localLow;
    this.#locals[at + 1] = localHigh;
    return ++this.#blocks;
  }

  get blocks(): number {
    return this.#blocks;
  }

  /** All hashes and local hashes, as whole numbers. */
  longs(): readonly [hashes: BigUint64Array, locals: BigUint64Array] {
    return [new BigUint64Array(this.#hashes.buffer), new BigUint64Array(this.#locals.buffer)];
  }
}

function grown(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const more = new Uint32Array(words.length * 2);
  more.set(words);
  return more;
}

/** Makes runs of rows that come parents first. Blocks whose parent the rank does not hold are left out: nobody could place them. */
export class DumpRuns {
  readonly #rows: Uint32Array;
  readonly #mostBlocks: number;
  readonly #tiers = TIERS.map(() => new TierRuns());
  /** Each run's tier, in the order in which they began. */
  readonly #order: number[] = [];
  /** By entry. */
  readonly #names: Uint32Array;
  readonly #nameLongs: BigUint64Array;
  readonly #known: Uint8Array;

  /** Rows stand in `rows`; entries are 1 … `entryCap`; a run has at most `mostBlocks`. */
  constructor(rows: Uint32Array, entryCap: number, mostBlocks: number) {
    this.#rows = rows;
    this.#mostBlocks = mostBlocks;
    this.#names = new Uint32Array((entryCap + 1) * 2);
    this.#nameLongs = new BigUint64Array(this.#names.buffer);
    this.#known = new Uint8Array(entryCap + 1);
  }

  /** The first `count` rows are the rank's own names. All of those come first. */
  names(count: number): void {
    for (let at = 0; at < count * ROW_WORDS; at += ROW_WORDS) {
      const entry = this.#rows[at + ROW.entry]!;
      this.#name(entry, at);
      this.#known[entry] = NAMED;
    }
  }

  /** The first `count` rows are blocks. */
  blocks(count: number): void {
    const rows = this.#rows;
    const known = this.#known;
    for (let at = 0; at < count * ROW_WORDS; at += ROW_WORDS) {
      const parent = rows[at + ROW.parent]!;
      if (parent !== 0 && (known[parent]! & MET) === 0) continue;
      const entry = rows[at + ROW.entry]!;
      if (known[entry] === 0) this.#name(entry, at);
      known[entry]! |= MET;
      const tiers = rows[at + ROW.tiers]!;
      for (let tier = 0; tier < TIERS.length; tier++) if (((tiers >> tier) & 1) !== 0) this.#add(tier, at);
    }
  }

  /** Each with arrays of its own. */
  runs(): DumpedBlocks[] {
    const next = this.#tiers.map(() => 0);
    const longs = this.#tiers.map((tier) => tier.longs());
    return this.#order.map((tier) => {
      const { parent, eligible, from, end } = this.#tiers[tier]!.runs[next[tier]!++]!;
      const [hashes, locals] = longs[tier]!;
      return { tier: TIERS[tier]!, parent, hashes: hashes.slice(from, end), locals: locals.slice(from, end), eligible };
    });
  }

  #name(entry: number, at: number): void {
    this.#names[2 * entry] = this.#rows[at + ROW.name]!;
    this.#names[2 * entry + 1] = this.#rows[at + ROW.name + 1]!;
  }

  #add(tier: number, at: number): void {
    const rows = this.#rows;
    const of = this.#tiers[tier]!;
    const parent = rows[at + ROW.parent]!;
    const eligible = rows[at + ROW.eligible]! !== 0;
    let run = of.runs[of.runs.length - 1];
    if (run?.last !== parent || run.eligible !== eligible || run.end - run.from === this.#mostBlocks) {
      const from = of.blocks;
      run = { parent: parent === 0 ? null : this.#nameLongs[parent]!, eligible, from, end: from, last: 0 };
      of.runs.push(run);
      this.#order.push(tier);
    }
    const entry = rows[at + ROW.entry]!;
    const names = this.#names;
    run.end = of.push(names[2 * entry]!, names[2 * entry + 1]!, rows[at + ROW.local]!, rows[at + ROW.local + 1]!);
    run.last = entry;
  }
}
