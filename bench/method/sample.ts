// Values in ascending order and what is read off them.

/** A sample of one number or more. */
export class Sample {
  readonly #sorted: Float64Array;

  constructor(values: Iterable<number>) {
    this.#sorted = Float64Array.from(values).sort();
    if (this.#sorted.length === 0) throw new RangeError('a sample of no values has no median');
  }

  get count(): number {
    return this.#sorted.length;
  }

  /** The value below which the given part (0 … 1) lies. */
  at(part: number): number {
    return this.#sorted[Math.min(this.#sorted.length - 1, Math.floor(part * this.#sorted.length))]!;
  }

  get median(): number {
    return medianOfSorted(this.#sorted);
  }
}

/** The middle value, or the mean of the two in the middle. */
export function medianOfSorted(sorted: Float64Array): number {
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
