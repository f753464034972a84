// The requests that touch a view of one worker, as bars.
import type { RequestRows } from './request-rows.js';
import type { RequestSpan } from './types.js';

/** Bars of one view: more can't be told apart. */
export const MAX_SPANS = 2000;

/** In place of a line. */
const WAITS = -1;

export interface SpanView {
  readonly spans: readonly RequestSpan[];
  readonly spansLeftOut: number;
}

/** @param now what has not ended lasts until then */
export function spansOf(rows: RequestRows, worker: number, from: number, to: number, now: number): SpanView {
  const found: number[] = [];
  const endOf = (i: number): number => (Number.isNaN(rows.endedAt[i]!) ? Math.max(now, rows.at[i]!) : rows.endedAt[i]!);
  for (let i = 0; i < rows.count; i++) {
    if (rows.worker[i] === worker && rows.at[i]! <= to && endOf(i) >= from) found.push(i);
  }
  const lengthOf = (i: number): number => endOf(i) - rows.at[i]!;
  const chosen =
    found.length <= MAX_SPANS ? found : found.sort((a, b) => lengthOf(b) - lengthOf(a) || a - b).slice(0, MAX_SPANS);
  const laneOf = (i: number): number => (rows.begunAt[i]! <= to ? rows.lane[i]! : WAITS);
  const spans = chosen
    .sort((a, b) => laneOf(a) - laneOf(b) || rows.at[a]! - rows.at[b]! || a - b)
    .map((i) => ({ row: rows.row(i), lane: laneOf(i) }));
  return { spans, spansLeftOut: found.length - chosen.length };
}
