// What is remembered of sessions and chats, by name: the most recently written ones up to a cap, so that a trace of any length fits.

export class Recent<V> {
  readonly #max: number;
  readonly #values = new Map<string, V>(); // in the order of the last write

  constructor(max: number) {
    this.#max = max;
  }

  get(name: string): V | undefined {
    return this.#values.get(name);
  }

  set(name: string, value: V): void {
    this.#values.delete(name);
    this.#values.set(name, value);
    if (this.#values.size <= this.#max) return;
    for (const oldest of this.#values.keys()) {
      this.#values.delete(oldest);
      return;
    }
  }
}
