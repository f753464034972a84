// The capacity curve between its known points, and what one says of a size. Pure.
import { bytesText, shareText, shortNumber } from '../../../sim/report-format.js';
import type { CurveReport } from '../../../sim/report-types.js';
import { type Table, thinned } from './table.js';

export interface CurveLine {
  /** Sizes in bytes, ascending, and the share of references that hit at each. */
  readonly bytes: readonly number[];
  readonly shares: readonly number[];
}

/** All that a report knows exactly, as one line: its round sizes and its corners. */
export function curveLine({ points, corners }: CurveReport): CurveLine {
  const at = new Map<number, number>();
  for (const { bytes, share } of [...corners, ...points])
    if (bytes > 0) at.set(bytes, Math.max(share, at.get(bytes) ?? 0));
  const sorted = [...at].sort(([a], [b]) => a - b);
  return { bytes: sorted.map(([bytes]) => bytes), shares: sorted.map(([, share]) => share) };
}

/** Share of references that hit at a size: on a straight line between known sizes, and as at the last one past it. */
export function shareAt({ bytes, shares }: CurveLine, size: number): number {
  if (bytes.length === 0 || !(size > 0)) return 0;
  const next = bytes.findIndex((each) => each >= size);
  if (next < 0) return shares.at(-1)!;
  const [low, high] = [next === 0 ? 0 : bytes[next - 1]!, bytes[next]!];
  const [from, to] = [next === 0 ? 0 : shares[next - 1]!, shares[next]!];
  return from + ((to - from) * (size - low)) / (high - low);
}

/** What twice the size would bring, as a share of all references. */
export const doublingGain = (line: CurveLine, size: number): number => shareAt(line, 2 * size) - shareAt(line, size);

/** "at 500 GB: 61.20 % of block references hit, 38.80 % missed, 3.10 % more per doubling" */
export function capacityReading(line: CurveLine, size: number): string {
  const share = shareAt(line, size);
  const gain = doublingGain(line, size);
  const more = gain > 0.00005 ? `${shareText(gain)} more per doubling` : 'doubling brings nothing';
  return `at ${bytesText(size)}: ${shareText(share)} of block references hit, ${shareText(1 - share)} missed, ${more}`;
}

/** "knee at 210 GB: past it, doubling brings 2 %" */
export const kneeText = (line: CurveLine, bytes: number): string =>
  `knee at ${bytesText(bytes)}: past it, doubling brings ${shortNumber(100 * Math.max(0, doublingGain(line, bytes)))} %`;

/** The axis shows so many times less than the size that holds everything. */
const DEPTH = 2000;
/** … and so much more. */
const MARGIN = 1.6;

/** Ends of the axis: what the curves and every mark need. */
export function bytesRange(lines: readonly CurveLine[], marks: readonly number[]): readonly [number, number] {
  const highest = Math.max(0, ...lines.map(({ bytes }) => bytes.at(-1) ?? 0));
  if (!(highest > 0)) return [1e9, 1e12];
  const seen = marks.filter((mark) => Number.isFinite(mark) && mark > 0);
  const least = Math.max(highest / DEPTH, Math.min(...lines.map(({ bytes }) => bytes[0] ?? highest)));
  return [Math.min(least, ...seen) / 1.1, Math.max(highest, ...seen) * MARGIN];
}

/** Arrow keys move by so much. */
const STEP = 1.05;

/** Where a key moves the line; null: it does nothing. */
export function keyMove(key: string, at: number, [low, high]: readonly [number, number]): number | null {
  const to = {
    ArrowRight: at * STEP,
    ArrowUp: at * STEP,
    ArrowLeft: at / STEP,
    ArrowDown: at / STEP,
    PageUp: at * 2,
    PageDown: at / 2,
    Home: low,
    End: high,
  }[key];
  return to === undefined ? null : Math.max(low, Math.min(high, to));
}

/** Three digits: what a person would type. Kept inside the axis by the caller's ends. */
export const roundBytes = (bytes: number): number => Number(bytes.toPrecision(3));

/** A size that was simulated, and the share that hit there. */
export interface Simulated {
  readonly label: string;
  readonly bytes: number;
  readonly share: number;
}

/** "; simulated there: kv 52.00 %, random 40.10 %", of what is within a factor of a size. */
export function simulatedReading(simulated: readonly Simulated[], size: number, factor: number): string {
  const near = simulated.filter(({ bytes }) => bytes <= size * factor && bytes >= size / factor);
  return near.length === 0
    ? ''
    : `; simulated there: ${near.map(({ label, share }) => `${label} ${shareText(share)}`).join(', ')}`;
}

/**
 * Where texts beside points go so that none covers another: each at its point, or as little below it as there is room for.
 * @param ys of the points, ascending; `gap` is what a text needs
 */
export function spread(ys: readonly number[], gap: number): number[] {
  let last = Number.NEGATIVE_INFINITY;
  return ys.map((y) => {
    last = Math.max(y, last + gap);
    return last;
  });
}

export function capacityTable(
  line: CurveLine,
  report: CurveReport,
  other: CurveLine | null,
  simulated: readonly Simulated[],
): Table {
  const sizes = thinned(report.points.map(({ bytes }) => bytes));
  return {
    head: ['store size', 'hit', 'missed', 'more per doubling', ...(other === null ? [] : ['other run: hit'])],
    rows: [
      ...sizes.map((bytes) => [
        bytesText(bytes),
        shareText(shareAt(line, bytes)),
        shareText(1 - shareAt(line, bytes)),
        shareText(doublingGain(line, bytes)),
        ...(other === null ? [] : [shareText(shareAt(other, bytes))]),
      ]),
      ...simulated.map(({ label, bytes, share }) => [
        `${bytesText(bytes)}, simulated: ${label}`,
        shareText(share),
        shareText(1 - share),
        '',
        ...(other === null ? [] : ['']),
      ]),
    ],
  };
}
