// A request's bar: what it did from when to when, where it lies on screen, and which bar is under a pointer. Pure.
import type { RequestRow, RequestSpan } from '../../../sim/observed/types.js';
import { type Span, xOf } from './window.js';

export type PartKind = 'wait' | 'fetch' | 'compute' | 'decode';
export const PART_KINDS: readonly PartKind[] = ['wait', 'fetch', 'compute', 'decode'];

export interface Part extends Span {
  readonly kind: PartKind;
}

/** A request's parts in order. What has not ended so far ends at `now`; parts without length are left out. */
export function partsOf(row: RequestRow, now: number): Part[] {
  const times = [row.at, row.begunAt, row.fetchedAt, row.firstTokenAt, row.endedAt];
  const parts: Part[] = [];
  for (let i = 0; i < PART_KINDS.length; i++) {
    const from = times[i]!;
    if (Number.isNaN(from)) break;
    const to = Number.isNaN(times[i + 1]!) ? Math.max(from, now) : times[i + 1]!;
    if (to > from) parts.push({ kind: PART_KINDS[i]!, from, to });
    if (Number.isNaN(times[i + 1]!)) break;
  }
  return parts;
}

/** From arrival to the last that is known of it. */
export function extentOf(row: RequestRow, now: number): Span {
  return { from: row.at, to: Number.isNaN(row.endedAt) ? Math.max(row.at, now) : row.endedAt };
}

// ---- lanes ----

/** Pixels that all lanes together like to have, and that one has at least and at most. */
const LANES_HEIGHT = 300;
const LANE_LEAST = 4;
const LANE_MOST = 20;
/** Lanes that are drawn: a batch is rarely larger, and the page must end somewhere. */
export const MAX_LANES = 256;

export function laneHeight(lanes: number): number {
  return Math.max(LANE_LEAST, Math.min(LANE_MOST, Math.floor(LANES_HEIGHT / Math.max(1, lanes))));
}

/** More than the pixels of any screen. */
const FAR = 1e9;
/** Pixels to either side of a bar that still count as it. */
const SLACK = 3;

/** The bar at a place of the lanes: of those that reach it the shortest, else the nearest within a few pixels. Null for none. */
export function spanAt(
  spans: readonly RequestSpan[],
  place: { readonly x: number; readonly lane: number },
  view: Span,
  width: number,
  now: number,
): RequestSpan | null {
  let best: RequestSpan | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const span of spans) {
    if (span.lane !== place.lane) continue;
    const { from, to } = extentOf(span.row, now);
    const left = xOf(from, view, width);
    const begun = xOf(span.row.begunAt, view, width);
    const right = Math.max(left + 1, xOf(to, view, width));
    const off = Math.max(left - place.x, place.x - right, 0);
    if (off > SLACK) continue;
    // What runs wins over what waits, for waiting lines lie across other bars; and what contains the place over what is merely near.
    const badness = off > 0 ? 2 * FAR + off : place.x < begun ? FAR + right - left : right - left;
    if (badness < least) {
      least = badness;
      best = span;
    }
  }
  return best;
}

/** The next bar of the lane after `at`, or the last before it; null where there is none. */
export function neighbour(spans: readonly RequestSpan[], lane: number, at: number, back: boolean): RequestSpan | null {
  let best: RequestSpan | null = null;
  for (const span of spans) {
    const start = span.row.begunAt;
    if (span.lane !== lane || (back ? start >= at : start <= at)) continue;
    if (best === null || (back ? start > best.row.begunAt : start < best.row.begunAt)) best = span;
  }
  return best;
}

/** Spans that touch the view, in order of arrival, at most `most`. */
export function inView(spans: readonly RequestSpan[], view: Span, now: number, most: number): readonly RequestSpan[] {
  return spans
    .filter(({ row }) => {
      const { from, to } = extentOf(row, now);
      return from <= view.to && to >= view.from;
    })
    .sort((a, b) => a.row.at - b.row.at)
    .slice(0, most);
}
