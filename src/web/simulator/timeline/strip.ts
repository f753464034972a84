// What a place held and what moved, as pixels: one column of pixels a column of the view, so that the browser only has to stretch the picture while
// somebody pans or zooms. Pure: it fills an array of RGBA.
//
// Top to bottom: the whole place as a filled line against its capacity, with its movements below; then each family as a heat strip, likewise with
// its movements. A movement is a bar: up for blocks that came (solid: stored; striped: fetched or read), down for blocks that left.
import type { ResidencyRow, TimelineView } from '../../../sim/observed/types.js';

export type Rgb = readonly [number, number, number];

export interface StripColours {
  readonly held: Rgb;
  readonly stored: Rgb;
  readonly fetched: Rgb;
  readonly evicted: Rgb;
  readonly rule: Rgb;
}

/** Pixels from the strip's top. A flow has its baseline in the middle. */
export interface StripLayout {
  readonly area: number;
  readonly flow: number;
  readonly heat: number;
  readonly familyFlow: number;
  readonly gap: number;
  readonly families: number;
}

export const STRIP: Omit<StripLayout, 'families'> = { area: 72, flow: 33, heat: 12, familyFlow: 13, gap: 5 };

export interface StripRows {
  readonly height: number;
  readonly area: { readonly top: number; readonly bottom: number };
  readonly flow: { readonly top: number; readonly bottom: number };
  readonly families: readonly { readonly top: number; readonly flow: number; readonly bottom: number }[];
}

export function stripRows({ area, flow, heat, familyFlow, gap, families }: StripLayout): StripRows {
  const bottom = area + 2 + flow;
  const each = heat + 1 + familyFlow + gap;
  const rows = Array.from({ length: families }, (_, i) => {
    const top = bottom + 2 * gap + i * each;
    return { top, flow: top + heat + 1, bottom: top + heat + 1 + familyFlow };
  });
  return {
    height: (rows.at(-1)?.bottom ?? bottom) + gap,
    area: { top: 0, bottom: area },
    flow: { top: area + 2, bottom },
    families: rows,
  };
}

/** Pixels of the least movement. */
const LEAST_FLOW = 2;
/** Steps of a heat strip above nothing. */
export const HEAT_STEPS = 6;

/** 0 for nothing, else 1 … HEAT_STEPS by the square root, so that small families are seen beside large ones. */
export function heatStep(held: number, most: number): number {
  if (!(held > 0) || !(most > 0)) return 0;
  return Math.min(HEAT_STEPS, Math.max(1, Math.ceil(Math.sqrt(held / most) * HEAT_STEPS)));
}

/** How strongly a step is painted, 0 … 1. */
export const stepAlpha = (step: number): number => (step === 0 ? 0 : 0.14 + (0.86 * step) / HEAT_STEPS);

/** The most that any column of the rows held, and that came to or left them. At least 1. */
export function mostOf(rows: readonly ResidencyRow[]): { held: number; moved: number } {
  let held = 1;
  let moved = 1;
  for (const row of rows) {
    for (let i = 0; i < row.held.length; i++) {
      held = Math.max(held, row.held[i]!);
      moved = Math.max(moved, row.stored[i]! + row.fetched[i]!, row.evicted[i]!);
    }
  }
  return { held, moved };
}

/** Colours as the words that pixels are made of. */
type Inks = Readonly<Record<'line' | 'area' | 'edge' | 'rule' | 'stored' | 'fetched' | 'stripe' | 'evicted', number>>;

function wordOf([r, g, b]: Rgb, alpha: number): number {
  // Bytes, in whichever order the machine keeps those of a word.
  return new Uint32Array(Uint8Array.of(r, g, b, Math.round(alpha * 255)).buffer)[0]!;
}

/** Paints a view; the array is `columns × rows.height` pixels. */
export function paintStrip(
  view: TimelineView,
  rows: StripRows,
  colours: StripColours,
  pixels: Uint8ClampedArray,
): void {
  const { columns, total, capacity } = view;
  const { held, stored, fetched, evicted, rule } = colours;
  const families = view.families.slice(0, rows.families.length);
  const most = mostOf(families);
  const all = mostOf([total]);
  const top = Math.max(capacity, all.held);
  const inks: Inks = {
    ...{ line: wordOf(held, 1), area: wordOf(held, 0.42), edge: wordOf(rule, 0.7), rule: wordOf(rule, 1) },
    ...{ stored: wordOf(stored, 1), fetched: wordOf(fetched, 1), stripe: wordOf(fetched, 0.45) },
    evicted: wordOf(evicted, 1),
  };
  const heat = Array.from({ length: HEAT_STEPS + 1 }, (_, step) => wordOf(held, stepAlpha(step)));
  const words = new Uint32Array(pixels.buffer, pixels.byteOffset, pixels.length / 4).fill(0);
  const { area } = rows;
  for (let x = 0; x < columns; x++) {
    const height = Math.round(((total.held[x] ?? 0) / top) * (area.bottom - area.top));
    const line = area.bottom - height;
    for (let y = line; y < area.bottom; y++) words[y * columns + x] = y < line + 2 ? inks.line : inks.area;
  }
  paintFlow(words, columns, rows.flow, total, all.moved, inks);
  families.forEach((family, i) => {
    const { top, flow, bottom } = rows.families[i]!;
    for (let x = 0; x < columns; x++) {
      const step = heatStep(family.held[x] ?? 0, most.held);
      for (let y = top; y < flow - 1; y++) {
        if (step > 0) words[y * columns + x] = heat[step]!;
        else if (y === top || y === flow - 2) words[y * columns + x] = inks.edge;
      }
    }
    paintFlow(words, columns, { top: flow, bottom }, family, most.moved, inks);
  });
}

function paintFlow(
  words: Uint32Array,
  columns: number,
  { top, bottom }: { readonly top: number; readonly bottom: number },
  row: ResidencyRow,
  most: number,
  inks: Inks,
): void {
  const middle = Math.floor((top + bottom) / 2);
  const reach = middle - top;
  // A movement has a few pixels at least, or it would not be seen. Square roots again: one block beside thousands.
  const length = (value: number) =>
    value > 0 ? Math.min(reach, Math.max(LEAST_FLOW, Math.round(Math.sqrt(value / most) * reach))) : 0;
  const came = row.stored.map((value, x) => value + row.fetched[x]!);
  for (let x = 0; x < columns; x++) {
    words[middle * columns + x] = inks.rule;
    const at = near(came, x);
    const up = length(came[at] ?? 0);
    const solid = up > 0 ? Math.round((up * row.stored[at]!) / came[at]!) : 0;
    for (let i = 1; i <= up; i++) {
      words[(middle - i) * columns + x] = i <= solid ? inks.stored : i % 3 === 0 ? inks.stripe : inks.fetched;
    }
    const down = length(row.evicted[near(row.evicted, x)] ?? 0);
    for (let i = 1; i <= down; i++) words[(middle + i) * columns + x] = inks.evicted;
  }
}

/** A movement is also drawn in the columns beside its own, where nothing else moved. */
function near(moved: Float64Array, x: number): number {
  if (moved[x]! > 0) return x;
  if (x > 0 && moved[x - 1]! > 0) return x - 1;
  return moved[x + 1]! > 0 ? x + 1 : x;
}
