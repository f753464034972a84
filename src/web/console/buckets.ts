// Seconds grouped into the bars of the chart. Pure. A bar is a whole number of seconds that starts at a multiple of its width, so that bars move on
// but never change under the reader's eyes once their time is over.
import { COLUMNS, type Column, type SecondsView } from '../../server/console-series.js';

/** Sums of one bar. */
export interface Bucket {
  /** Unix second of its beginning. */
  readonly from: number;
  readonly seconds: number;
  readonly sums: Readonly<Record<Column, number>>;
}

/** Bars of `width` seconds, oldest first; the newest may be under way. */
export function buckets(view: SecondsView, width: number): Bucket[] {
  const end = view.from + view.requests.length;
  const first = Math.ceil(view.from / width) * width;
  const found: Bucket[] = [];
  for (let from = first; from < end; from += width) found.push(sumsOf(view, from, Math.min(from + width, end)));
  return found;
}

/** Sums of the last `seconds`; of all where it is left out. */
export function lastSeconds(view: SecondsView, seconds = view.requests.length): Bucket {
  const end = view.from + view.requests.length;
  return sumsOf(view, end - seconds, end);
}

function sumsOf(view: SecondsView, from: number, to: number): Bucket {
  const sums = Object.fromEntries(
    COLUMNS.map((key) => [key, view[key].slice(from - view.from, to - view.from).reduce((sum, one) => sum + one, 0)]),
  ) as Record<Column, number>;
  return { from, seconds: to - from, sums };
}
