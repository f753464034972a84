// 64-bit hashes as two 32-bit integers, because a Map finds a small integer two to three times faster than a bigint and
// reading one from a typed array allocates nothing.

/** Low and high half of hash i at 2i and 2i + 1 (little-endian machines, as WebAssembly's memory is). */
export function halvesOf(hashes: BigUint64Array): Int32Array {
  return new Int32Array(hashes.buffer, hashes.byteOffset, hashes.length * 2);
}

/** The two halves of a bigint. */
export function split(hash: bigint): { low: number; high: number } {
  return { low: Number(hash & 0xffff_ffffn) | 0, high: Number(hash >> 32n) | 0 };
}

export interface Keyed<T> {
  readonly low: number;
  readonly high: number;
  /** Another item with the same low half. */
  clash: T | undefined;
}

/** Items by their 64-bit hash: a Map keyed by the low half, and a chain for those that share it. */
export class HalvesIndex<T extends Keyed<T>> {
  size = 0;
  readonly #heads = new Map<number, T>();

  get(low: number, high: number): T | undefined {
    let item = this.#heads.get(low);
    while (item !== undefined && item.high !== high) item = item.clash;
    return item;
  }

  add(item: T): void {
    item.clash = this.#heads.get(item.low);
    this.#heads.set(item.low, item);
    this.size++;
  }

  delete(item: T): void {
    this.size--;
    let before = this.#heads.get(item.low)!;
    if (before === item) {
      if (item.clash === undefined) this.#heads.delete(item.low);
      else this.#heads.set(item.low, item.clash);
      return;
    }
    while (before.clash !== item) before = before.clash!;
    before.clash = item.clash;
  }

  forEach(visit: (item: T) => void): void {
    for (const head of this.#heads.values())
      for (let item: T | undefined = head; item !== undefined; item = item.clash) visit(item);
  }

  clear(): void {
    this.#heads.clear();
    this.size = 0;
  }
}

/** Whether a hash stands twice in the list, or equals the parent. */
export function repeats(children: BigUint64Array, parent: bigint | null): boolean {
  const halves = halvesOf(children);
  const lows = new Set<number>();
  for (let i = 0; i < halves.length; i += 2) lows.add(halves[i]!);
  if (parent !== null) lows.add(split(parent).low);
  if (lows.size === children.length + (parent === null ? 0 : 1)) return false;
  return new Set([...children, parent]).size !== children.length + 1; // low halves clash: compare all of them
}
