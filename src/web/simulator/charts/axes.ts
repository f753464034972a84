// Draws the two axes of a plot: lines, ticks, their texts, and what each measures.
import { type Box, type Pen, TEXT } from './pen.js';
import type { Tick } from './ticks.js';

export interface AxisSpec {
  /** What it measures, with its unit. */
  readonly name: () => string;
  readonly log?: boolean;
  /** The first value at the top. */
  readonly downward?: boolean;
  readonly range: () => readonly [number, number];
  /** At most `most` of them. */
  readonly ticks: (from: number, to: number, most: number) => Tick[];
  /** Whether ticks are drawn through the whole plot. */
  readonly grid?: boolean;
  /** CSS pixels for the texts of an upright axis. */
  readonly size?: number;
}

/** CSS pixels around the plotting area. Names stand level: above the upright axis, and below the other at its end. */
const TOP = 24;
const RIGHT = 14;
const BOTTOM = 40;
const BOTTOM_QUIET = 8;
const LEFT = 48;
const GAP = 6;
const TICK = 4;
/** CSS pixels that a text needs along each axis. */
const X_ROOM = 64;
const Y_ROOM = 32;

/** Where the plotting area lies. */
export function plotBox(width: number, height: number, y: AxisSpec): Box {
  const left = y.size ?? LEFT;
  return { left, top: TOP, width: Math.max(1, width - left - RIGHT), height };
}

/** CSS pixels of a plot with all that stands around it. A quiet one has no texts below: another one does, further down. */
export const outerHeight = (height: number, quiet: boolean): number => TOP + height + (quiet ? BOTTOM_QUIET : BOTTOM);

export function drawAxes(pen: Pen, x: AxisSpec, y: AxisSpec, quiet: boolean): void {
  const { ctx, box, theme, ratio } = pen;
  const [right, bottom] = [box.left + box.width, box.top + box.height];
  const stroke = ratio * Math.max(1, Math.round(ratio) / ratio);
  const level = (at: number, from: number, length: number) => ctx.fillRect(from, Math.round(at), length, stroke);
  const upright = (at: number, from: number, length: number) => ctx.fillRect(Math.round(at), from, stroke, length);
  ctx.font = `${TEXT * ratio}px ${theme.family}`;
  const write = (text: string, at: number, middle: number, align: 'left' | 'center' | 'right') => {
    const width = ctx.measureText(text).width;
    const begin = at - (align === 'left' ? 0 : align === 'center' ? width / 2 : width);
    ctx.fillStyle = theme.soft;
    ctx.fillText(text, Math.max(0, Math.min(right + RIGHT * ratio - width, begin)), middle);
  };
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  for (const { at, text } of y.ticks(...y.range(), Math.max(2, box.height / ratio / Y_ROOM))) {
    const place = pen.y(at);
    ctx.fillStyle = theme.rule;
    level(place, box.left - TICK * ratio, TICK * ratio + (y.grid === false ? 0 : box.width));
    write(text, box.left - GAP * ratio, place, 'right');
  }
  for (const { at, text } of x.ticks(...x.range(), Math.max(2, Math.floor(box.width / ratio / X_ROOM)))) {
    const place = pen.x(at);
    ctx.fillStyle = theme.rule;
    if (x.grid !== false) upright(place, box.top, box.height);
    upright(place, bottom, TICK * ratio);
    if (!quiet) write(text, place, bottom + 13 * ratio, 'center');
  }
  ctx.fillStyle = theme.rule;
  level(bottom, box.left, box.width);
  upright(box.left, box.top, box.height);
  write(y.name(), 0, 9 * ratio, 'left');
  if (!quiet) write(x.name(), right, bottom + 30 * ratio, 'right');
}
