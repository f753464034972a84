// SHA-256 (FIPS 180-4) in plain code, piece by piece: pages from disk have no crypto.subtle in every browser, and where there is one it wants the whole
// file in memory.

const WORDS = 64;
const BLOCK_BYTES = 64;

const K = new Uint32Array(WORDS);
const FIRST = new Uint32Array(8);
// Fractional parts of the cube and square roots of the first primes.
for (let candidate = 2, count = 0; count < WORDS; candidate++) {
  if (!isPrime(candidate)) continue;
  if (count < FIRST.length) FIRST[count] = fraction(candidate ** (1 / 2));
  K[count++] = fraction(candidate ** (1 / 3));
}

function isPrime(number: number): boolean {
  for (let by = 2; by * by <= number; by++) if (number % by === 0) return false;
  return true;
}

function fraction(number: number): number {
  return Math.floor((number % 1) * 2 ** 32);
}

export class Sha256 {
  readonly #state = FIRST.slice();
  readonly #schedule = new Uint32Array(WORDS);
  readonly #rest = new Uint8Array(BLOCK_BYTES);
  #restBytes = 0;
  #bytes = 0;

  add(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    let from = 0;
    if (this.#restBytes > 0) {
      from = Math.min(bytes.length, BLOCK_BYTES - this.#restBytes);
      this.#rest.set(bytes.subarray(0, from), this.#restBytes);
      this.#restBytes += from;
      if (this.#restBytes < BLOCK_BYTES) return;
      this.#mix(this.#rest, 0);
      this.#restBytes = 0;
    }
    for (; from + BLOCK_BYTES <= bytes.length; from += BLOCK_BYTES) this.#mix(bytes, from);
    this.#rest.set(bytes.subarray(from));
    this.#restBytes = bytes.length - from;
  }

  /** The digest in hex; nothing can be added after it. */
  end(): string {
    const bits = this.#bytes * 8;
    const padding = new Uint8Array(((this.#restBytes < 56 ? 64 : 128) - this.#restBytes) | 0);
    padding[0] = 0x80;
    const length = new DataView(padding.buffer);
    length.setUint32(padding.length - 8, Math.floor(bits / 2 ** 32));
    length.setUint32(padding.length - 4, bits >>> 0);
    this.add(padding);
    return [...this.#state].map((word) => word.toString(16).padStart(8, '0')).join('');
  }

  #mix(bytes: Uint8Array, from: number): void {
    const w = this.#schedule;
    for (let i = 0; i < 16; i++) {
      const at = from + 4 * i;
      w[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    }
    for (let i = 16; i < WORDS; i++) {
      const a = w[i - 15]!;
      const b = w[i - 2]!;
      const low = turned(a, 7) ^ turned(a, 18) ^ (a >>> 3);
      const high = turned(b, 17) ^ turned(b, 19) ^ (b >>> 10);
      w[i] = (w[i - 16]! + low + w[i - 7]! + high) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.#state as unknown as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    for (let i = 0; i < WORDS; i++) {
      const high = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const one = (h + high + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
      const low = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
      const two = (low + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) this.#state[i] = this.#state[i]! + word;
  }
}

const turned = (word: number, by: number): number => (word >>> by) | (word << (32 - by));
