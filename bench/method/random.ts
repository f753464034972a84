// Repeatable random numbers, in 32-bit arithmetic alone: the same in every JavaScript engine, and quick enough that workloads of a million hashes
// are made in milliseconds. The generator is sfc32 (Chris Doty-Humphrey's PractRand); its state comes from a 64-bit seed.

const ROUNDS_UNTIL_MIXED = 12;

/** A stream of 32-bit numbers. */
export class Stream {
  #a: number;
  #b: number;
  #c = 0x9e37_79b9 | 0;
  #counter = 1;

  constructor(seed: bigint) {
    this.#a = Number(BigInt.asIntN(32, seed));
    this.#b = Number(BigInt.asIntN(32, seed >> 32n));
    for (let i = 0; i < ROUNDS_UNTIL_MIXED; i++) this.next();
  }

  /** Any signed 32-bit number. */
  next(): number {
    const drawn = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + drawn) | 0;
    return drawn;
  }

  /** A whole number from 0 to `limit` − 1. */
  below(limit: number): number {
    return Math.floor(((this.next() >>> 0) / 0x1_0000_0000) * limit);
  }
}

/** So many 64-bit numbers. */
export function randomLongs(count: number, seed: bigint): BigUint64Array {
  const longs = new BigUint64Array(count);
  const words = new Int32Array(longs.buffer);
  const stream = new Stream(seed);
  for (let i = 0; i < words.length; i++) words[i] = stream.next();
  return longs;
}

/** 0 … count − 1 in an order of no meaning. */
export function shuffled(count: number, seed: bigint): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  const stream = new Stream(seed);
  for (let i = count - 1; i > 0; i--) {
    const other = stream.below(i + 1);
    [order[i], order[other]] = [order[other]!, order[i]!];
  }
  return order;
}
