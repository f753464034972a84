// Where the rows of the timeline lie, from top to bottom: ruler, a worker's lanes, what the place held, its families. Pure; CSS pixels.
import type { TimelineView } from '../../../sim/observed/types.js';
import { laneHeight, MAX_LANES } from './parts.js';
import { STRIP, type StripRows, stripRows } from './strip.js';

export const RULER = 24;
const GAP = 8;
/** Families that are asked for, wide and narrow. */
export const FAMILIES = 10;
export const FAMILIES_NARROW = 6;
/** Width below which labels are short. */
export const NARROW = 560;
const GUTTER = 128;
const GUTTER_NARROW = 70;

export const gutterOf = (width: number): number => (width < NARROW ? GUTTER_NARROW : GUTTER);

export interface Layout {
  readonly lanes: { readonly top: number; readonly count: number; readonly height: number };
  readonly strip: { readonly top: number; readonly rows: StripRows };
  readonly height: number;
}

/** @param lanes most that the place ever showed, so that rows below stay where they are while one zooms; 0 for the store */
export function layoutOf(lanes: number, families: number): Layout {
  const count = Math.min(MAX_LANES, lanes);
  const height = laneHeight(count);
  const top = RULER + GAP;
  const stripTop = count > 0 ? top + count * height + 2 * GAP : top;
  const rows = stripRows({ ...STRIP, families });
  return { lanes: { top, count, height }, strip: { top: stripTop, rows }, height: stripTop + rows.height };
}

export type Row =
  | { readonly kind: 'lane'; readonly lane: number }
  | { readonly kind: 'total' }
  | { readonly kind: 'family'; readonly index: number };

/** The row at `y`; null on the ruler and between rows. */
export function rowAt({ lanes, strip }: Layout, y: number): Row | null {
  const lane = Math.floor((y - lanes.top) / lanes.height);
  if (lane >= 0 && lane < lanes.count) return { kind: 'lane', lane };
  const inStrip = y - strip.top;
  const { rows } = strip;
  if (inStrip >= rows.area.top && inStrip < rows.flow.bottom) return { kind: 'total' };
  const index = rows.families.findIndex(({ top, bottom }) => inStrip >= top && inStrip < bottom);
  return index < 0 ? null : { kind: 'family', index };
}

/** Top and bottom of a row. */
export function boundsOf({ lanes, strip }: Layout, row: Row): { readonly top: number; readonly bottom: number } {
  if (row.kind === 'lane') {
    const top = lanes.top + row.lane * lanes.height;
    return { top, bottom: top + lanes.height };
  }
  const { rows } = strip;
  const { top, bottom } = row.kind === 'total' ? { top: 0, bottom: rows.flow.bottom } : rows.families[row.index]!;
  return { top: strip.top + top, bottom: strip.top + bottom };
}

/** All rows that a keyboard can visit, from top to bottom. */
export function rowsOf({ lanes, strip }: Layout): Row[] {
  return [
    ...Array.from({ length: lanes.count }, (_, lane): Row => ({ kind: 'lane', lane })),
    { kind: 'total' },
    ...strip.rows.families.map((_, index): Row => ({ kind: 'family', index })),
  ];
}

export function sameRow(a: Row | null, b: Row | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The column of the view that holds a time; null outside. */
export function columnAt({ from, to, columns }: TimelineView, time: number): number | null {
  const column = Math.floor(((time - from) / (to - from)) * columns);
  if (time === to) return columns - 1;
  return column >= 0 && column < columns ? column : null;
}
