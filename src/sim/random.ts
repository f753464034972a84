// The simulator's random numbers: xoshiro128** (Blackman and Vigna, public domain) on 32-bit integers, so that one seed gives the same
// bits in every engine. No Math.exp, log or pow, whose last bits differ between engines: exponential gaps come from comparisons alone
// (von Neumann's method), and other distributions from tables that are built by correctly rounded division.

const TWO_32 = 0x1_0000_0000;
/** What the greatest weight of a table becomes; smaller ones are rounded down to whole shares of it. */
const WEIGHT_SCALE = 0x10_0000;

/** Ascending running totals of whole weights; made by `weightTable` or `zipfTable`. */
export type WeightTable = Float64Array;

/** A repeatable source of numbers; the same seed gives the same sequence on every machine. */
export class SeededRandom {
  readonly seed: number;
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** @param seed any integer; its low 32 bits count */
  constructor(seed: number) {
    this.seed = seed >>> 0;
    let counter = this.seed;
    const fill = (): number => {
      // The finaliser of MurmurHash3 over a Weyl sequence: neighbouring seeds give unrelated states.
      counter = (counter + 0x9e3779b9) >>> 0;
      let mixed = counter;
      mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
      return (mixed ^ (mixed >>> 16)) >>> 0;
    };
    this.#a = fill();
    this.#b = fill();
    this.#c = fill();
    this.#d = fill() | 1; // never all zero
  }

  /** The next 32 bits, as an unsigned number. */
  uint32(): number {
    const product = Math.imul(this.#b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** An integer in 0 … limit − 1; `limit` ≤ 2³². */
  int(limit: number): number {
    return Math.floor((this.uint32() / TWO_32) * limit);
  }

  /** An integer in low … high, both included. */
  between(low: number, high: number): number {
    return low + this.int(high - low + 1);
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.uint32() / TWO_32 < probability;
  }

  /**
   * An exponentially distributed number with mean 1, in steps of 2⁻³². A falling run of uniform numbers has odd length with probability
   * e^−first, so the first of such a run is the fraction; each run of even length adds 1 (von Neumann, 1951).
   */
  exponential(): number {
    for (let whole = 0; ; whole++) {
      const first = this.uint32();
      let odd = true;
      for (let last = first, next = this.uint32(); next < last; next = this.uint32()) {
        last = next;
        odd = !odd;
      }
      if (odd) return whole + first / TWO_32;
    }
  }

  /** An index of the table, as likely as its weight. */
  weighted(table: WeightTable): number {
    const drawn = this.int(table[table.length - 1]!);
    let low = 0;
    for (let high = table.length - 1; low < high; ) {
      const middle = (low + high) >>> 1;
      if (table[middle]! > drawn) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** A whole number from a distribution given by its equally spaced quantiles (smallest … greatest), straight lines between them. */
  quantile(quantiles: readonly number[]): number {
    const step = this.int(quantiles.length - 1);
    return this.between(quantiles[step]!, quantiles[step + 1]!);
  }
}

/** Weights of any scale, ≥ 0 and one of them above 0, as a table to draw from. */
export function weightTable(weights: readonly number[]): WeightTable {
  const greatest = Math.max(...weights);
  const table = new Float64Array(weights.length);
  let total = 0;
  weights.forEach((weight, i) => {
    total += Math.floor((weight / greatest) * WEIGHT_SCALE);
    table[i] = total;
  });
  return table;
}

/** Zipf's popularity for `count` items: item i is drawn in proportion to 1 / (i + 1). */
export const zipfTable = (count: number): WeightTable =>
  weightTable(Array.from({ length: count }, (_, rank) => 1 / (rank + 1)));
