// A binary heap of things that have a time: the least time comes first, and of equal times what was put in first, so that what the
// simulator makes of it never depends on the heap's shape.

interface Entry<T> {
  readonly at: number;
  readonly order: number;
  readonly item: T;
}

export class DueQueue<T> {
  readonly #heap: Entry<T>[] = [];
  #order = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** The least time; Infinity while empty. */
  get nextAt(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  put(at: number, item: T): void {
    const entry: Entry<T> = { at, order: this.#order++, item };
    const heap = this.#heap;
    let place = heap.length;
    heap.push(entry);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!before(entry, heap[parent]!)) break;
      heap[place] = heap[parent]!;
      place = parent;
    }
    heap[place] = entry;
  }

  take(): T | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const moved = heap.pop();
    if (first === undefined || moved === undefined || heap.length === 0) return first?.item;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, moved)) break;
      heap[place] = heap[child]!;
      place = child;
    }
    heap[place] = moved;
    return first.item;
  }
}

const before = (a: Entry<unknown>, b: Entry<unknown>): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
