// Times of all requests, and what they come to: exact percentiles by nearest rank, from a sort of numbers.
import type { Percentiles } from './types.js';

const FIRST_ROOM = 1024;
const NOTHING: Percentiles = { p50: null, p90: null, p99: null, mean: null };

export class Samples {
  #values = new Float64Array(FIRST_ROOM);
  #count = 0;
  #sum = 0;

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const grown = new Float64Array(this.#count * 2);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#count++] = value;
    this.#sum += value;
  }

  percentiles(): Percentiles {
    const count = this.#count;
    if (count === 0) return NOTHING;
    const sorted = this.#values.slice(0, count).sort();
    const at = (percent: number): number => sorted[Math.ceil((count * percent) / 100) - 1]!;
    return { p50: at(50), p90: at(90), p99: at(99), mean: this.#sum / count };
  }
}
