// The knee of a capacity curve: where more capacity stops paying. Capacity is taken in doublings (its logarithm), for that is how it is bought; both
// axes are scaled to the curve's own range, and the knee is the point that lies farthest above the chord from the curve's first point to its last.
//
// A curve has none worth naming where fewer than three capacities are known, where it does not rise, or where no point lies above the chord by
// `LEAST_RISE` of the whole: then it is as good as straight, or it bends upwards, and each doubling pays about the same, or more.

import type { CurvePart, CurveReport } from './report-types.js';

/** Part of the whole rise. */
export const LEAST_RISE = 0.1;
/** Corners of a curve below this part of its last capacity say nothing about a store that anyone would buy. */
const LEAST_PART = 1 / 2000;
/** Binary digits of a logarithm's fraction: far finer than any chart. */
const LOG_DIGITS = 30;

/** The knee of a capacity curve: one of its corners; null without one. */
export function kneeOf({ corners }: CurveReport): CurvePart | null {
  const least = (corners.at(-1)?.bytes ?? 0) * LEAST_PART;
  const parts = corners.filter(({ bytes }) => bytes >= least);
  const place = kneePlace(parts.map(({ bytes, share }) => ({ x: bytes, y: share })));
  return place === null ? null : parts[place]!;
}

/**
 * The place of the knee among points of rising capacity; null without one.
 * @param points x: capacity, above 0 (others are passed over); y: how much hits there
 */
export function kneePlace(points: readonly { readonly x: number; readonly y: number }[]): number | null {
  const places = points.flatMap(({ x, y }, place) =>
    x > 0 && Number.isFinite(x) && Number.isFinite(y) ? [place] : [],
  );
  if (places.length < 3) return null;
  const [first, last] = [points[places[0]!]!, points[places.at(-1)!]!];
  const begin = log2(first.x);
  const width = log2(last.x) - begin;
  const rise = last.y - first.y;
  if (!(width > 0 && rise > 0)) return null;
  let knee: number | null = null;
  let farthest = LEAST_RISE;
  for (const place of places) {
    const { x, y } = points[place]!;
    const above = (y - first.y) / rise - (log2(x) - begin) / width;
    if (above <= farthest) continue;
    farthest = above;
    knee = place;
  }
  return knee;
}

/** Logarithm to base 2 by repeated squaring: the same bits in every engine, which Math.log2 does not promise. */
function log2(value: number): number {
  let whole = 0;
  let left = value;
  for (; left >= 2; left /= 2) whole++;
  for (; left < 1; left *= 2) whole--;
  let fraction = 0;
  for (let digit = 0.5, i = 0; i < LOG_DIGITS; i++, digit /= 2) {
    left *= left;
    if (left < 2) continue;
    left /= 2;
    fraction += digit;
  }
  return whole + fraction;
}
