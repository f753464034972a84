// How sure a median is: the percentile bootstrap (Efron 1979). The values are drawn anew with replacement, many times, and the medians of these draws
// say where the median may lie. The generator is seeded, so the same values always give the same interval.
import { Stream } from './random.js';
import { medianOfSorted } from './sample.js';

const SEED = 0x626f_6f74_7374_7261n;
/** Enough that the ends of a 95 % interval move by less than the interval's own noise. */
export const RESAMPLES = 1_000;
export const CONFIDENCE = 0.95;

/** A median and the interval that holds it with a confidence of 95 %. */
export interface Interval {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** The interval of the values' median; of a single value, that value. */
export function medianInterval(values: readonly number[], resamples = RESAMPLES): Interval {
  const count = values.length;
  if (count === 0) throw new RangeError('no values have no median');
  const stream = new Stream(SEED);
  const draw = new Float64Array(count);
  const medians = new Float64Array(resamples);
  for (let i = 0; i < resamples; i++) {
    for (let j = 0; j < count; j++) draw[j] = values[stream.below(count)]!;
    medians[i] = medianOfSorted(draw.sort());
  }
  medians.sort();
  const tail = (1 - CONFIDENCE) / 2;
  const at = (part: number) => medians[Math.min(resamples - 1, Math.floor(part * resamples))]!;
  return { median: medianOfSorted(Float64Array.from(values).sort()), low: at(tail), high: at(1 - tail) };
}
