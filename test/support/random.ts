// Random numbers that a test can repeat: xoshiro128** (Blackman and Vigna, public domain), its state filled by a
// mixing counter from one 32-bit seed. A test prints the seed it used, so that a failure names its own way back.

/** A repeatable source of numbers; the same seed gives the same sequence on every machine. */
export class Random {
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

  /** An integer in 0 … limit − 1. */
  int(limit: number): number {
    return Math.floor((this.uint32() / 0x1_0000_0000) * limit);
  }

  /** An integer in low … high, both included. */
  between(low: number, high: number): number {
    return low + this.int(high - low + 1);
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.uint32() / 0x1_0000_0000 < probability;
  }

  /** One of the items; the list must not be empty. */
  pick<T>(items: readonly T[]): T {
    return items[this.int(items.length)]!;
  }

  /** An unsigned 64-bit number. */
  bigint64(): bigint {
    return (BigInt(this.uint32()) << 32n) | BigInt(this.uint32());
  }

  /** `bytes` random bytes as lowercase hexadecimal text. */
  hex(bytes: number): string {
    let text = '';
    for (let i = 0; i < bytes; i++) text += this.int(256).toString(16).padStart(2, '0');
    return text;
  }

  /** Shuffles the list in place and returns it. */
  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const other = this.int(i + 1);
      [items[i], items[other]] = [items[other]!, items[i]!];
    }
    return items;
  }
}
