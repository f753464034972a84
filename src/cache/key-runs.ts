// Objects grouped by digest while they come, in any order and as often as they like: full blocks are sorted into runs, runs of like size are
// merged, and one digest's objects become bits of one record. Merge sort, so that no choice of digests costs more than n log n; every step can
// stop after a number of records, so that no slice is long; and since a record is a digest, memory follows the digests and not the keys.
import { type DigestRecords, MASK, PAGE, PAGE_PREFIXES, RECORD_WORDS, sameDigest } from '../core/digest-records.js';
import { readDigest } from './key-digest.js';

/** Objects sorted at once, which takes 0.5 ms. */
const BLOCK_OBJECTS = 4096;
/** Records merged for each object that comes: two a level of the tree, which has eight at a million records and twelve at sixteen million. */
const MERGES_AN_OBJECT = 24;
/** Runs are merged before the end only if the longer one is at most so much longer: then a record moves once a level. */
const LIKE_SIZE = 2;

/** The word that is compared first. */
const FIRST = MASK - 1;

/** Records in ascending order, each (digest, page) once. */
interface Run {
  readonly words: Uint32Array;
  readonly count: number;
}

const NOTHING: Run = { words: new Uint32Array(0), count: 0 };

/** Two runs becoming one. */
interface Merge {
  readonly a: Run;
  readonly b: Run;
  readonly words: Uint32Array;
  /** The next record of each, and how many there are in `words`. */
  i: number;
  j: number;
  count: number;
}

/** Collects objects; `finish` and then `work` until it says true make `result`. */
export class KeyRuns {
  readonly #block = new Uint32Array(BLOCK_OBJECTS * RECORD_WORDS);
  #filled = 0;
  #owed = 0; // objects for which nothing has been merged yet
  #runs: Run[] = [];
  #merge: Merge | null = null;
  #finished = false;
  #counted = 0;
  #digests = 0;
  #objects = 0;

  /** Records held; an object of a digest that stands in several runs counts in each. */
  get records(): number {
    const { a, b } = this.#merge ?? { a: NOTHING, b: NOTHING };
    return this.#runs.reduce((sum, { count }) => sum + count, a.count + b.count + this.#filled);
  }

  /** Takes the object with the digest at `from` in `bytes`; false where that is none. There must be room: see `full`. */
  add(bytes: Uint8Array, from: number, prefix: number): boolean {
    const at = this.#filled * RECORD_WORDS;
    const block = this.#block;
    if (!readDigest(bytes, from, block, at)) return false;
    const bit = prefix % PAGE_PREFIXES;
    block[at + MASK] = bit < 32 ? 1 << bit : 0;
    block[at + MASK + 1] = bit < 32 ? 0 : 1 << (bit - 32);
    block[at + PAGE] = Math.floor(prefix / PAGE_PREFIXES);
    this.#filled++;
    this.#owed++;
    return true;
  }

  /** Whether `settle` is due: until then there is no room for another object. */
  get full(): boolean {
    return this.#filled === BLOCK_OBJECTS;
  }

  /** Sorts what has come since the last time. */
  settle(): void {
    if (this.#filled > 0) this.#runs.push(sortedBlock(this.#block, this.#filled));
    this.#filled = 0;
  }

  /** Merges so much that the runs stay few. */
  keepPace(): void {
    this.#mergeSome(this.#owed * MERGES_AN_OBJECT);
    this.#owed = 0;
  }

  /** No more objects come. */
  finish(): void {
    this.settle();
    this.#finished = true;
  }

  /** After `finish`: goes on for about `budget` records; true when all is done. */
  work(budget: number): boolean {
    const left = this.#mergeSome(budget);
    return left > 0 && this.#countSome(left);
  }

  /** What has been collected, once `work` has said true. */
  get result(): DigestRecords {
    const { words, count } = this.#runs[0] ?? NOTHING;
    return { words, count, digests: this.#digests, objects: this.#objects };
  }

  drop(): void {
    this.#filled = 0;
    this.#runs = [];
    this.#merge = null;
  }

  /** Merges until there is nothing to merge now, or `budget` is spent; returns what is left of it. */
  #mergeSome(budget: number): number {
    let left = budget;
    while (left > 0) {
      this.#merge ??= this.#nextMerge();
      if (this.#merge === null) return left;
      left -= mergePart(this.#merge, left);
      const { a, b, i, j, words, count } = this.#merge;
      if (i < a.count || j < b.count) return 0;
      this.#runs.push({ words, count });
      this.#merge = null;
    }
    return 0;
  }

  /** The two shortest runs, if they are to be merged now. */
  #nextMerge(): Merge | null {
    if (this.#runs.length < 2) return null;
    this.#runs.sort((x, y) => y.count - x.count);
    const a = this.#runs.at(-1)!;
    const b = this.#runs.at(-2)!;
    if (!this.#finished && b.count > a.count * LIKE_SIZE) return null;
    this.#runs.length -= 2;
    return { a, b, words: new Uint32Array((a.count + b.count) * RECORD_WORDS), i: 0, j: 0, count: 0 };
  }

  #countSome(budget: number): boolean {
    const { words, count } = this.#runs[0] ?? NOTHING;
    const end = Math.min(count, this.#counted + budget);
    for (let i = this.#counted; i < end; i++) {
      if (i === 0 || !sameDigest(words, i - 1, i)) this.#digests++;
      const at = i * RECORD_WORDS + MASK;
      this.#objects += bitsIn(words[at]!) + bitsIn(words[at + 1]!);
    }
    this.#counted = end;
    return end === count;
  }
}

/** A copy of the block's records in order, those of one digest and page made one. */
function sortedBlock(block: Uint32Array, filled: number): Run {
  const order = sortedOrder(block, filled);
  const words = new Uint32Array(filled * RECORD_WORDS);
  let count = 0;
  for (let i = 0; i < filled; i++) {
    const from = order[i]! * RECORD_WORDS;
    if (count > 0 && compare(words, (count - 1) * RECORD_WORDS, block, from) === 0) join(words, count - 1, block, from);
    else copy(words, count++, block, from);
  }
  return { words: count === filled ? words : words.slice(0, count * RECORD_WORDS), count };
}

const keys = new Float64Array(BLOCK_OBJECTS);
const positions = new Uint16Array(BLOCK_OBJECTS);
const scratch = new Uint16Array(BLOCK_OBJECTS);

/** Positions of the records in ascending order, good until the next call: by the first word, in the engine's own sort; where that is the same, by all. */
function sortedOrder(block: Uint32Array, filled: number): Uint16Array {
  for (let i = 0; i < filled; i++) keys[i] = block[i * RECORD_WORDS + FIRST]! * BLOCK_OBJECTS + i;
  const sorted = keys.subarray(0, filled).sort();
  for (let i = 0; i < filled; i++) positions[i] = sorted[i]! % BLOCK_OBJECTS;
  for (let start = 0; start < filled; ) {
    const first = block[positions[start]! * RECORD_WORDS + FIRST]!;
    let end = start + 1;
    while (end < filled && block[positions[end]! * RECORD_WORDS + FIRST] === first) end++;
    sortPositions(block, start, end);
    start = end;
  }
  return positions;
}

/** Sorts positions `start` … `end`: a merge sort from the bottom up, so that no choice of digests makes it slow. */
function sortPositions(block: Uint32Array, start: number, end: number): void {
  for (let width = 1; width < end - start; width *= 2) {
    for (let left = start; left < end; left += width * 2) {
      const middle = Math.min(left + width, end);
      const right = Math.min(middle + width, end);
      let a = left;
      let b = middle;
      for (let at = left; at < right; at++) {
        const isFirst =
          b === right ||
          (a < middle && compare(block, positions[a]! * RECORD_WORDS, block, positions[b]! * RECORD_WORDS) <= 0);
        scratch[at] = isFirst ? positions[a++]! : positions[b++]!;
      }
    }
    positions.set(scratch.subarray(start, end), start);
  }
}

/** Goes on with a merge for at most `budget` records; returns how many it took. */
function mergePart(merge: Merge, budget: number): number {
  const { a, b, words } = merge;
  let { i, j, count } = merge;
  let taken = 0;
  while (taken < budget && (i < a.count || j < b.count)) {
    const order =
      i === a.count ? 1 : j === b.count ? -1 : compare(a.words, i * RECORD_WORDS, b.words, j * RECORD_WORDS);
    copy(words, count, order <= 0 ? a.words : b.words, (order <= 0 ? i : j) * RECORD_WORDS);
    if (order === 0) join(words, count, b.words, j * RECORD_WORDS);
    if (order <= 0) i++;
    if (order >= 0) j++;
    count++;
    taken++;
  }
  merge.i = i;
  merge.j = j;
  merge.count = count;
  return taken;
}

/** By digest, the low 64 bits first, then by page: 0 where both are the same. */
function compare(x: Uint32Array, a: number, y: Uint32Array, b: number): number {
  for (let word = FIRST; word >= 0; word--) {
    const difference = x[a + word]! - y[b + word]!;
    if (difference !== 0) return difference;
  }
  return x[a + PAGE]! - y[b + PAGE]!;
}
function copy(to: Uint32Array, record: number, from: Uint32Array, at: number): void {
  const start = record * RECORD_WORDS;
  for (let word = 0; word < RECORD_WORDS; word++) to[start + word] = from[at + word]!;
}
function join(to: Uint32Array, record: number, from: Uint32Array, at: number): void {
  const start = record * RECORD_WORDS;
  to[start + MASK]! |= from[at + MASK]!;
  to[start + MASK + 1]! |= from[at + MASK + 1]!;
}

function bitsIn(word: number): number {
  let bits = word - ((word >>> 1) & 0x5555_5555);
  bits = (bits & 0x3333_3333) + ((bits >>> 2) & 0x3333_3333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}
