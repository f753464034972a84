// Blocks about which a worker has contradicted itself, for as long as its publisher runs. Routers that have heard of it give no credit for them, whatever
// comes later; who hears of the rank by a dump must be told as well, and nobody may be taught them anew. Engines whose hashes cover what they have to
// never add any, so it is small: at the cap the oldest are forgotten, and counted, and a router that has not heard of those may go on crediting them.

/** Four times as many as a router's core of the default size bears before it drops all that it has learned; some 4 MiB. */
export const MOST_CONTRADICTED = 65_536;

/** A set of external hashes. */
export class Contradicted {
  readonly #cap: number;
  readonly #hashes = new Set<bigint>();
  #forgotten = 0;

  constructor(cap = MOST_CONTRADICTED) {
    this.#cap = cap;
  }

  get size(): number {
    return this.#hashes.size;
  }
  /** Hashes that went since it was full. */
  get forgotten(): number {
    return this.#forgotten;
  }

  add(hashes: Iterable<bigint>): void {
    for (const hash of hashes) {
      this.#hashes.add(hash);
      if (this.#hashes.size <= this.#cap) continue;
      this.#hashes.delete(this.#hashes.values().next().value!);
      this.#forgotten++;
    }
  }

  /** Whether one of them is here. */
  hasAny(hashes: BigUint64Array): boolean {
    return this.#hashes.size > 0 && hashes.some((hash) => this.#hashes.has(hash));
  }

  /** All of them, copied. */
  all(): BigUint64Array {
    return BigUint64Array.from(this.#hashes);
  }
}
