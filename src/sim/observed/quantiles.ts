// Quantiles of times that keep coming. What came since the last question is sorted and merged into what was sorted before, so that asking ten times a
// second costs little.
import { grown } from './columns.js';
import type { Quantiles } from './types.js';

/** Equal steps from the least to the greatest. */
export const QUANTILE_STEPS = 512;
const FIRST_ROOM = 1024;

export class SortedTimes {
  #sorted = new Float64Array(FIRST_ROOM);
  #spare = new Float64Array(FIRST_ROOM);
  #sortedCount = 0;
  #fresh = new Float64Array(FIRST_ROOM);
  #freshCount = 0;

  get count(): number {
    return this.#sortedCount + this.#freshCount;
  }

  get bytes(): number {
    return (this.#sorted.length + this.#spare.length + this.#fresh.length) * 8;
  }

  add(time: number): void {
    if (this.#freshCount === this.#fresh.length) this.#fresh = grown(this.#fresh, this.#freshCount * 2);
    this.#fresh[this.#freshCount++] = time;
  }

  /** By nearest rank; of fewer times than there are steps, the times themselves. */
  quantiles(): Quantiles {
    this.#merge();
    const { count } = this;
    if (count === 0) return new Float64Array(0);
    const steps = Math.max(1, Math.min(QUANTILE_STEPS, count - 1));
    return Float64Array.from(
      { length: steps + 1 },
      (_, i) => this.#sorted[Math.min(count - 1, Math.round((i * (count - 1)) / steps))]!,
    );
  }

  #merge(): void {
    if (this.#freshCount === 0) return;
    const fresh = this.#fresh.subarray(0, this.#freshCount).sort();
    const { count } = this;
    if (count > this.#spare.length) this.#spare = new Float64Array(Math.max(count, this.#spare.length * 2));
    const [from, to] = [this.#sorted, this.#spare];
    let [at, old] = [0, 0];
    for (let i = 0; i < fresh.length; i++) {
      while (old < this.#sortedCount && from[old]! <= fresh[i]!) to[at++] = from[old++]!;
      to[at++] = fresh[i]!;
    }
    while (old < this.#sortedCount) to[at++] = from[old++]!;
    this.#sorted = to;
    this.#spare = from;
    this.#sortedCount = count;
    this.#freshCount = 0;
  }
}
