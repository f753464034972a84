// Bytes a second from the store over time, and which configured limits are near enough to be drawn. Pure.
import type { SimPicture } from '../../../sim/observed/types.js';
import { bytesText, rateText, timeText } from '../../../sim/report-format.js';
import { columnsOf, passed, sumOf } from './columns.js';
import { MOST_ROWS, type Table } from './table.js';

export interface Limits {
  /** Bytes a second of the whole store, of one worker's link, and of one SSD; not above 0, or not finite: none. */
  readonly total: number;
  readonly link: number;
  readonly ssd: number;
}

export interface RateLine {
  /** Milliseconds at which columns begin, and where the last one ends. */
  readonly from: readonly number[];
  readonly end: number;
  /** Bytes a second in each. */
  readonly rates: readonly number[];
  readonly bytes: readonly number[];
}

const SECOND = 1000;

export function rateLine(picture: SimPicture, from: number, to: number, most: number): RateLine {
  const columns = columnsOf(picture, from, to, most);
  const { count, step } = columns;
  // What has just begun says nothing yet about its rate.
  const begun = count > 1 && passed(columns, count - 1) < step / 2 ? count - 1 : count;
  const places = Array.from({ length: begun }, (_, i) => i);
  const bytes = places.map((i) => sumOf(picture.series.fetchedBytes, i, columns.merged, picture.series.buckets));
  return {
    from: places.map((i) => i * step),
    end: Math.min(columns.end, begun * step),
    bytes,
    rates: places.map((i) => {
      const time = passed(columns, i);
      return time > 0 ? (bytes[i]! / time) * SECOND : 0;
    }),
  };
}

export interface Peak {
  /** Milliseconds: the middle of the column. */
  readonly at: number;
  readonly rate: number;
  readonly place: number;
}

/** Where a line is highest between two times; null where nothing came. */
export function peakOf(line: RateLine, from: number, to: number): Peak | null {
  let found: Peak | null = null;
  line.rates.forEach((rate, place) => {
    const begin = line.from[place]!;
    const end = line.from[place + 1] ?? line.end;
    if (end > from && begin < to && rate > (found?.rate ?? 0)) found = { at: (begin + end) / 2, rate, place };
  });
  return found;
}

export interface Limit {
  readonly name: string;
  readonly rate: number;
}

/** Limits from this many times the peak on are said, not drawn: they would press the line to the ground. */
const FAR = 2.5;

/** Which limits a picture with that peak shows, and a sentence about the others. */
export function nearLimits(
  { total, link, ssd }: Limits,
  peak: number,
): { readonly drawn: Limit[]; readonly said: string } {
  const all = [
    { name: 'whole store', rate: total },
    { name: 'link of one worker', rate: link },
    { name: 'SSD', rate: ssd },
  ].filter(({ rate }) => Number.isFinite(rate) && rate > 0);
  const drawn = all.filter(({ rate }) => rate <= peak * FAR);
  const far = all.filter((limit) => !drawn.includes(limit));
  if (all.length === 0) return { drawn, said: 'No limits are configured.' };
  const names = far.map(({ name, rate }) => `${name} ${rateText(rate)}`).join(', ');
  return { drawn, said: far.length === 0 ? '' : `Limits above the picture: ${names}.` };
}

/** Which column of a line holds a time. */
export function rateAt({ from, end }: RateLine, time: number): number | null {
  if (time < 0 || time >= end) return null;
  let found: number | null = null;
  for (let i = 0; i < from.length && from[i]! <= time; i++) found = i;
  return found;
}

export function rateReading(label: string, line: RateLine, place: number): string {
  return `${label} ${rateText(line.rates[place]!)} (${bytesText(line.bytes[place]!)})`;
}

export const spanText = (line: RateLine, place: number): string =>
  `${timeText(line.from[place]!)} to ${timeText(line.from[place + 1] ?? line.end)}`;

export function rateTable(list: readonly { readonly label: string; readonly picture: SimPicture }[]): Table {
  const end = Math.max(0, ...list.map(({ picture }) => picture.series.buckets * picture.series.step));
  const lines = list.map(({ picture }) => rateLine(picture, 0, end, MOST_ROWS));
  const times = [...new Set(lines.flatMap(({ from }) => from))].sort((a, b) => a - b).slice(0, MOST_ROWS);
  return {
    head: ['from', ...list.map(({ label }) => label)],
    rows: times.map((time) => [
      timeText(time),
      ...lines.map((line) => {
        const place = rateAt(line, time);
        return place === null ? '' : rateText(line.rates[place]!);
      }),
    ]),
  };
}
