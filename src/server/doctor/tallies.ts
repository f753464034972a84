// Counts by name, bounded: what strangers name can't fill the memory.
const MOST_NAMES = 256;
/** Where names beyond the bound are counted. */
const OTHERS = 'others';

export class Tallies {
  readonly #counts = new Map<string, number>();

  add(name: string, n = 1): void {
    const key = this.#counts.has(name) || this.#counts.size < MOST_NAMES ? name : OTHERS;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + n);
  }

  get names(): string[] {
    return [...this.#counts.keys()];
  }

  toJSON(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}
