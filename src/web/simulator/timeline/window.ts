// The part of a run that is in view, and what zooming, panning and the strip above do to it. Pure; times are milliseconds of the simulation.

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The shortest time that can fill the view: below it nothing that the simulator does differs. */
export const SHORTEST = 1;
/** What one key or button press does: zoom by this factor, pan by this part of the view. */
export const ZOOM_STEP = 1.5;
export const PAN_STEP = 0.2;
/** Pixels of the wheel that double or halve the view. */
const WHEEL_DOUBLE = 240;
/** Pixels of a line and a page, where the wheel speaks in those. */
const WHEEL_UNITS = [1, 16, 400] as const;

/** The whole run. */
export const whole = (end: number): Span => ({ from: 0, to: Math.max(SHORTEST, end) });

/** The nearest span that lies in the run, its length kept where it can be. */
export function clamped({ from, to }: Span, end: number): Span {
  const all = whole(end);
  const length = Math.min(all.to, Math.max(SHORTEST, to - from));
  const start = Math.min(all.to - length, Math.max(0, from));
  return { from: start, to: start + length };
}

/** `factor` times as much in view (below 1: zooms in), with `at` staying where it is on screen. */
export function zoomed(view: Span, at: number, factor: number, end: number): Span {
  const length = view.to - view.from;
  const next = Math.min(whole(end).to, Math.max(SHORTEST, length * factor));
  const part = (at - view.from) / length;
  const from = at - part * next;
  return clamped({ from, to: from + next }, end);
}

export function panned(view: Span, by: number, end: number): Span {
  return clamped({ from: view.from + by, to: view.to + by }, end);
}

/** Two fingers: the times that they took hold of stay under them. `a`, `b` are places across the view, 0 … 1. */
export function pinched(held: readonly [number, number], a: number, b: number, end: number): Span | null {
  const length = (held[1] - held[0]) / (b - a);
  if (!(length > 0) || !Number.isFinite(length)) return null;
  const from = held[0] - a * length;
  return clamped({ from, to: from + length }, end);
}

export function wheelFactor(delta: number, unit: number): number {
  return 2 ** ((delta * (WHEEL_UNITS[unit] ?? 1)) / WHEEL_DOUBLE);
}

/** Moves just as far as needed to have `at` in view, with a little around it. */
export function revealing(view: Span, at: number, end: number): Span {
  const edge = (view.to - view.from) * 0.1;
  if (at < view.from + edge) return panned(view, at - edge - view.from, end);
  if (at > view.to - edge) return panned(view, at + edge - view.to, end);
  return view;
}

export const isWhole = ({ from, to }: Span, end: number): boolean => from <= 0 && to >= whole(end).to;

export const xOf = (time: number, { from, to }: Span, width: number): number => ((time - from) / (to - from)) * width;
export const timeAt = (x: number, { from, to }: Span, width: number): number => from + (x / width) * (to - from);

// ---- the strip with the whole run ----

export type Grip = 'from' | 'to' | 'middle' | 'outside';

/** What a pointer at `x` of the strip takes hold of. Edges win, the nearer one; a thin window can still be moved from its middle third. */
export function gripAt(x: number, view: Span, end: number, width: number, reach: number): Grip {
  const all = whole(end);
  const left = xOf(view.from, all, width);
  const right = xOf(view.to, all, width);
  const near = Math.min(reach, Math.max(2, (right - left) / 3));
  const toLeft = x < left ? (left - x) / reach : (x - left) / near;
  const toRight = x > right ? (x - right) / reach : (right - x) / near;
  if (Math.min(toLeft, toRight) <= 1) return toLeft < toRight ? 'from' : 'to';
  return x > left && x < right ? 'middle' : 'outside';
}

/** The window after a grip was dragged to time `at`; `offset` is how far from the window's start it took hold of the middle. */
export function gripped(grip: Grip, view: Span, at: number, offset: number, end: number): Span {
  if (grip === 'from') return clamped({ from: Math.max(0, Math.min(at, view.to - SHORTEST)), to: view.to }, end);
  if (grip === 'to') return clamped({ from: view.from, to: Math.min(end, Math.max(at, view.from + SHORTEST)) }, end);
  return panned(view, at - offset - view.from, end);
}

// ---- what to ask for ----

/** Most columns that are asked for: of the widest screens twice. */
export const MAX_COLUMNS = 4096;
/** How much coarser or finer than the screen the columns at hand may be. */
const FINE_ENOUGH = 1.3;

export interface Question extends Span {
  readonly columns: number;
}

/** Twice as wide as the view, so that panning finds no hole at once. A column is a pixel, while there are enough. */
export function questionFor(view: Span, end: number, width: number): Question {
  const half = (view.to - view.from) / 2;
  const from = Math.max(0, view.from - half);
  const to = Math.min(whole(end).to, view.to + half);
  const columns = Math.ceil(((to - from) / (view.to - view.from)) * width);
  return { from, to, columns: Math.max(1, Math.min(MAX_COLUMNS, columns)) };
}

/** Whether what is at hand serves the view: it covers it with a margin on both sides, at about the screen's resolution. */
export function serves(had: Question | null, view: Span, end: number, width: number): boolean {
  if (had === null) return false;
  const margin = (view.to - view.from) / 8;
  const covers = had.from <= Math.max(0, view.from - margin) && had.to >= Math.min(whole(end).to, view.to + margin);
  if (!covers) return false;
  const best = questionFor(view, end, width);
  const ratio = (had.to - had.from) / had.columns / ((best.to - best.from) / best.columns);
  return ratio < FINE_ENOUGH && ratio > 1 / FINE_ENOUGH;
}
