// Distributions of times from their quantiles: cumulative, and as shares of buckets that are equally wide on a logarithmic axis. Pure.
import type { Quantiles } from '../../../sim/observed/types.js';
import { NOTHING, shareText, timeText } from '../../../sim/report-format.js';
import { MOST_ROWS, type Table, thinned } from './table.js';

export const PERCENTILES = [0.5, 0.9, 0.99] as const;
/** Buckets of a histogram to a tenfold. */
export const PER_DECADE = 12;

/** The time below which `part` of all lie; NaN where nothing was measured. */
export function quantileAt(quantiles: Quantiles, part: number): number {
  const n = quantiles.length - 1;
  if (n < 0) return Number.NaN;
  const place = Math.min(n, Math.max(0, part * n));
  const low = Math.floor(place);
  const [a, b] = [quantiles[low]!, quantiles[Math.min(n, low + 1)]!];
  return a + (b - a) * (place - low);
}

/** Part of all that took at most `time`; between two quantiles on a straight line. */
export function partWithin(quantiles: Quantiles, time: number): number {
  const n = quantiles.length - 1;
  if (n < 0) return Number.NaN;
  if (time < quantiles[0]!) return 0;
  if (n === 0 || time >= quantiles[n]!) return 1;
  // The last quantile that is not above it: of equal ones the last, since all of those took no more.
  let [low, high] = [0, n];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (quantiles[middle]! <= time) low = middle;
    else high = middle - 1;
  }
  const [a, b] = [quantiles[low]!, quantiles[low + 1]!];
  return (low + (time - a) / (b - a)) / n;
}

/** Milliseconds at which a logarithmic axis begins at the least: nothing that is simulated is decided below. */
const FLOOR = 0.01;
/** How much of the slowest an axis shows above them. */
const MARGIN = 1.15;

/** Ends of a logarithmic axis for all of them. What is 0 is drawn at its lower end. */
export function timeRange(list: readonly Quantiles[]): readonly [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, 0];
  for (const quantiles of list) {
    for (const time of quantiles) if (time > 0) low = Math.min(low, time);
    high = Math.max(high, quantiles.at(-1) ?? 0);
  }
  if (!(high > 0)) return [1, 1000];
  low = Math.max(FLOOR, low / MARGIN);
  return [Math.min(low, high / 10), high * MARGIN];
}

export interface Points {
  readonly xs: readonly number[];
  readonly ys: readonly number[];
}

/** Corners of the cumulative line; what lies below the axis stands at its beginning. */
export function cumulative(quantiles: Quantiles, [low, high]: readonly [number, number]): Points {
  const n = quantiles.length - 1;
  if (n < 0) return { xs: [], ys: [] };
  const first = quantiles.findIndex((time) => time > low);
  const inside = first < 0 ? [] : Array.from({ length: n + 1 - first }, (_, i) => first + i);
  return {
    xs: [low, ...inside.map((i) => quantiles[i]!), high],
    ys: [partWithin(quantiles, low), ...inside.map((i) => (n === 0 ? 1 : i / n)), 1],
  };
}

/** Edges of buckets that cover the axis. */
export function logEdges([low, high]: readonly [number, number]): number[] {
  const first = Math.floor(Math.log10(low) * PER_DECADE);
  const last = Math.ceil(Math.log10(high) * PER_DECADE);
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** ((first + i) / PER_DECADE));
}

/** Part of all in each bucket; what lies below the first edge counts in the first. */
export function bucketShares(quantiles: Quantiles, edges: readonly number[]): number[] {
  if (quantiles.length === 0) return [];
  return edges
    .slice(1)
    .map((edge, i) => partWithin(quantiles, edge) - (i === 0 ? 0 : partWithin(quantiles, edges[i]!)));
}

export const percentileText = (quantiles: Quantiles): string =>
  quantiles.length === 0
    ? NOTHING
    : PERCENTILES.map((part) => `p${Math.round(part * 100)} ${timeText(quantileAt(quantiles, part))}`).join(', ');

/** "within 1.2 s: kv 63.10 %, …" */
export const withinReading = (time: number, list: readonly { label: string; quantiles: Quantiles }[]): string =>
  `within ${timeText(time)}: ${list
    .map(
      ({ label, quantiles }) => `${label} ${quantiles.length === 0 ? NOTHING : shareText(partWithin(quantiles, time))}`,
    )
    .join(', ')}`;

export function distributionTable(list: readonly { label: string; quantiles: Quantiles }[]): Table {
  const parts = [
    ...thinned(
      Array.from({ length: 20 }, (_, i) => i / 20),
      MOST_ROWS - 5,
    ),
    0.98,
    0.99,
    0.995,
    0.999,
    1,
  ];
  return {
    head: ['part of requests', ...list.map(({ label }) => label)],
    rows: parts.map((part) => [
      shareText(part),
      ...list.map(({ quantiles }) => (quantiles.length === 0 ? NOTHING : timeText(quantileAt(quantiles, part)))),
    ]),
  };
}
