// Numbers by number: open addressing in flat arrays, with linear probing and backward-shift deletion, so that a table that things come to
// and leave all the time never degrades. Keys are whole numbers from 0, values too.

const NONE = -1;
const FIRST_SLOTS = 64;

export class IdTable {
  #keys = new Int32Array(FIRST_SLOTS).fill(NONE);
  #values = new Int32Array(FIRST_SLOTS);
  #mask = FIRST_SLOTS - 1;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The value; −1 without one. */
  get(key: number): number {
    for (let slot = this.#home(key); ; slot = (slot + 1) & this.#mask) {
      const found = this.#keys[slot]!;
      if (found === key) return this.#values[slot]!;
      if (found === NONE) return NONE;
    }
  }

  set(key: number, value: number): void {
    let slot = this.#home(key);
    while (this.#keys[slot] !== key && this.#keys[slot] !== NONE) slot = (slot + 1) & this.#mask;
    this.#values[slot] = value;
    if (this.#keys[slot] === key) return;
    this.#keys[slot] = key;
    if (++this.#size * 2 > this.#keys.length) this.#grow();
  }

  delete(key: number): void {
    let hole = this.#home(key);
    while (this.#keys[hole] !== key) {
      if (this.#keys[hole] === NONE) return;
      hole = (hole + 1) & this.#mask;
    }
    this.#size--;
    for (let slot = (hole + 1) & this.#mask; this.#keys[slot] !== NONE; slot = (slot + 1) & this.#mask) {
      // Who is farther from home than the hole is may move into it.
      const distance = (slot - this.#home(this.#keys[slot]!)) & this.#mask;
      if (distance < ((slot - hole) & this.#mask)) continue;
      this.#keys[hole] = this.#keys[slot]!;
      this.#values[hole] = this.#values[slot]!;
      hole = slot;
    }
    this.#keys[hole] = NONE;
  }

  clear(): void {
    this.#keys.fill(NONE);
    this.#size = 0;
  }

  #home(key: number): number {
    const mixed = Math.imul(key, 0x9e3779b1);
    return (mixed ^ (mixed >>> 15)) & this.#mask;
  }

  #grow(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = new Int32Array(keys.length * 2).fill(NONE);
    this.#values = new Int32Array(keys.length * 2);
    this.#mask = this.#keys.length - 1;
    for (let i = 0; i < keys.length; i++) {
      if (keys[i] === NONE) continue;
      let slot = this.#home(keys[i]!);
      while (this.#keys[slot] !== NONE) slot = (slot + 1) & this.#mask;
      this.#keys[slot] = keys[i]!;
      this.#values[slot] = values[i]!;
    }
  }
}
