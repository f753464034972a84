// Buckets of time as the columns that are drawn: so many neighbours make one that a column stays wide enough to see. Pure.
//
// Columns begin at multiples of their width from the first arrival on, whatever part of it is in view: they don't change while one zooms or pans.
import type { SimPicture } from '../../../sim/observed/types.js';

export interface Columns {
  /** Buckets that make one column. */
  readonly merged: number;
  /** Columns that the simulation has reached. */
  readonly count: number;
  /** Milliseconds of a column. */
  readonly step: number;
  /** Where the last one ends so far. */
  readonly end: number;
}

/** At most `most` columns for what is between two times. */
export function columnsOf({ series, now }: SimPicture, from: number, to: number, most: number): Columns {
  const { step, buckets } = series;
  let merged = 1;
  while ((to - from) / (step * merged) > Math.max(1, most)) merged *= 2;
  const count = Math.ceil(buckets / merged);
  return { merged, count, step: step * merged, end: Math.min(Math.max(now, 0), buckets * step) };
}

/** Sum of one column. */
export function sumOf(values: Float64Array, column: number, merged: number, buckets: number): number {
  let sum = 0;
  for (let i = column * merged; i < Math.min(buckets, (column + 1) * merged); i++) sum += values[i] ?? 0;
  return sum;
}

/** What a level was at the end of a column. */
export function lastOf(values: Float64Array, column: number, merged: number, buckets: number): number {
  return values[Math.min(buckets, (column + 1) * merged) - 1] ?? 0;
}

/** Milliseconds of a column that have passed. */
export function passed(columns: Columns, column: number): number {
  return Math.max(0, Math.min(columns.step, columns.end - column * columns.step));
}

/** Which column a time is in; null outside. */
export function columnAt(columns: Columns, time: number): number | null {
  const column = Math.floor(time / columns.step);
  return column >= 0 && column < columns.count ? column : null;
}
