// Puts a timeline on its canvases. Everything is placed by its time, so the last view that came can be drawn in any window while a better one is on its
// way. Knows nothing of where data and gestures come from.
import type { RequestSpan, TimelineView } from '../../../sim/observed/types.js';
import { countText } from '../../../sim/report-format.js';
import { boundsOf, type Layout, type Row, RULER } from './layout.js';
import type { Palette } from './palette.js';
import { extentOf, PART_KINDS, type PartKind, partsOf } from './parts.js';
import { mostOf } from './strip.js';
import { clockText, ticksFor } from './ticks.js';
import { type Span, xOf } from './window.js';

export const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
/** Pixels between ticks at least: what a label with milliseconds needs. */
const TICKS_APART = 84;
/** Part of a lane's height that a part of a bar takes: shapes tell them apart without colour. */
const HEIGHTS: Readonly<Record<PartKind, number>> = { wait: 0.16, fetch: 1, compute: 1, decode: 0.5 };
/** Lanes lower than this leave no room for a number in a bar. */
const LANE_WITH_TEXT = 15;

export interface Scene {
  readonly width: number;
  readonly height: number;
  readonly gutter: number;
  readonly layout: Layout;
  readonly palette: Palette;
  readonly view: TimelineView | null;
  /** The view's strip as pixels, a column a column. */
  readonly strip: CanvasImageSource | null;
  readonly window: Span;
  readonly end: number;
  /** Under pointer or keyboard. */
  readonly marked: RequestSpan | null;
  readonly cursor: { readonly row: Row; readonly time: number } | null;
  readonly pointer: number | null;
}

export function drawTimeline(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, gutter, palette, view, window } = scene;
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = 'middle';
  drawRuler(context, scene);
  if (view === null) {
    text(context, 'Waiting for the first view …', gutter + 8, RULER + 24, palette.soft);
    return;
  }
  context.save();
  context.beginPath();
  context.rect(gutter, 0, width - gutter, height);
  context.clip();
  context.translate(gutter, 0);
  drawUnknown(context, scene, view);
  drawStrip(context, scene, view);
  drawSpans(context, scene, view);
  if (scene.pointer !== null) line(context, xOf(scene.pointer, window, width - gutter), palette.soft, RULER, height);
  context.restore();
  drawLabels(context, scene, view);
  if (scene.cursor !== null) drawCursor(context, scene, scene.cursor);
}

function drawRuler(context: CanvasRenderingContext2D, { width, height, gutter, palette, window }: Scene): void {
  const inner = width - gutter;
  const { times, digits } = ticksFor(window.from, window.to, inner, TICKS_APART);
  context.textAlign = 'left';
  for (const time of times) {
    const x = Math.round(gutter + xOf(time, window, inner));
    context.fillStyle = palette.rule;
    context.fillRect(x, 0, 1, height);
    if (x < width - 24) text(context, clockText(time, digits), x + 4, RULER / 2, palette.soft);
  }
  context.fillStyle = palette.rule;
  context.fillRect(gutter, RULER - 1, inner, 1);
}

/** Where nothing was recorded. */
function drawUnknown(context: CanvasRenderingContext2D, scene: Scene, { recordedTo }: TimelineView): void {
  const { width, height, gutter, palette, window, layout, end } = scene;
  if (recordedTo >= end || recordedTo >= window.to) return;
  const x = Math.max(0, xOf(recordedTo, window, width - gutter));
  context.fillStyle = palette.unknown;
  context.fillRect(x, layout.strip.top, width - gutter - x, height - layout.strip.top);
}

function drawStrip(context: CanvasRenderingContext2D, scene: Scene, view: TimelineView): void {
  const { width, gutter, palette, window, layout, strip } = scene;
  const inner = width - gutter;
  const { top, rows } = layout.strip;
  if (strip !== null) {
    const left = xOf(view.from, window, inner);
    context.imageSmoothingEnabled = false;
    context.drawImage(strip, left, top, xOf(view.to, window, inner) - left, rows.height);
  }
  const most = Math.max(view.capacity, mostOf([view.total]).held);
  if (view.capacity > 0) {
    const y = Math.round(top + rows.area.bottom - (view.capacity / most) * rows.area.bottom) + 0.5;
    context.strokeStyle = palette.ink;
    context.lineWidth = 1;
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(inner, y);
    context.stroke();
    context.setLineDash([]);
  }
  context.fillStyle = palette.rule;
  context.fillRect(0, top + rows.area.bottom, inner, 1);
}

// ---- bars ----

interface Rect {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

function drawSpans(context: CanvasRenderingContext2D, scene: Scene, view: TimelineView): void {
  const { layout, palette, window, end, width, gutter } = scene;
  const { top, height, count } = layout.lanes;
  if (count === 0) return;
  const inner = width - gutter;
  const pad = height > 6 ? 1 : height > 4 ? 0.5 : 0;
  // By kind, so that the canvas changes its colour four times and not for each of thousands.
  const rects: Record<PartKind, Rect[]> = { wait: [], fetch: [], compute: [], decode: [] };
  for (const { row, lane } of view.spans) {
    if (!(lane >= 0 && lane < count)) continue;
    for (const { kind, from, to } of partsOf(row, end)) {
      const left = Math.max(-2, xOf(from, window, inner));
      const right = Math.min(inner + 2, xOf(to, window, inner));
      if (right < -1 || left > inner + 1) continue;
      const full = height - 2 * pad;
      const h = Math.max(1, full * HEIGHTS[kind]);
      const y = top + lane * height + pad + (full - h) / 2;
      rects[kind].push({ x: left, y, w: Math.max(0.75, right - left), h });
    }
  }
  for (const kind of PART_KINDS) {
    context.fillStyle = palette.fills[kind];
    for (const { x, y, w, h } of rects[kind]) context.fillRect(x, y, w, h);
  }
  if (height >= LANE_WITH_TEXT) drawNumbers(context, scene, view);
  if (scene.marked !== null) outline(context, scene, scene.marked);
}

function drawNumbers(context: CanvasRenderingContext2D, scene: Scene, view: TimelineView): void {
  const { layout, palette, window, end, width, gutter } = scene;
  const inner = width - gutter;
  context.textAlign = 'left';
  for (const { row, lane } of view.spans) {
    const computes = partsOf(row, end).find(({ kind }) => kind === 'compute');
    if (computes === undefined) continue;
    const left = Math.max(0, xOf(computes.from, window, inner));
    const right = Math.min(inner, xOf(computes.to, window, inner));
    const words = countText(row.request);
    if (right - left < words.length * 7.5 + 8) continue;
    text(context, words, left + 4, layout.lanes.top + (lane + 0.5) * layout.lanes.height, palette.panel);
  }
}

function outline(context: CanvasRenderingContext2D, scene: Scene, { row, lane }: RequestSpan): void {
  const { layout, palette, window, end, width, gutter } = scene;
  const inner = width - gutter;
  const { from, to } = extentOf(row, end);
  const left = Math.max(-4, xOf(from, window, inner));
  const right = Math.min(inner + 4, xOf(to, window, inner));
  const { top, height } = layout.lanes;
  context.strokeStyle = palette.ink;
  context.lineWidth = 2;
  context.strokeRect(left - 1, top + lane * height - 0.5, Math.max(2, right - left) + 2, height + 1);
}

// ---- labels and cursor ----

function drawLabels(context: CanvasRenderingContext2D, scene: Scene, view: TimelineView): void {
  const { gutter, layout, palette } = scene;
  const { lanes, strip } = layout;
  const isShort = gutter < 100;
  context.textAlign = 'left';
  const label = (words: string, y: number, colour = palette.ink) =>
    text(context, fitted(context, words, gutter - 8), 4, y, colour);
  if (lanes.count > 0) {
    label('Requests', lanes.top + 8);
    if (lanes.count * lanes.height > 34)
      label(isShort ? `${lanes.count}` : `${countText(lanes.count)} at once`, lanes.top + 24, palette.soft);
  }
  const { area, flow, families } = strip.rows;
  label(
    view.place === 'store' ? (isShort ? 'Store' : 'Store holds') : isShort ? 'GPU' : 'GPU cache holds',
    strip.top + 8,
  );
  label(isShort ? compact(view.capacity) : `of ${countText(view.capacity)} blocks`, strip.top + 24, palette.soft);
  label(isShort ? '↑ in' : '↑ came', strip.top + flow.top + 8, palette.soft);
  label(isShort ? '↓ out' : '↓ left', strip.top + flow.bottom - 8, palette.soft);
  families.forEach(({ top, bottom }, i) => {
    const family = view.families[i];
    if (family === undefined) return;
    const y = strip.top + (top + bottom) / 2;
    label(
      isShort ? `F ${compact(family.family)}` : `Family ${countText(family.family)} · ${compact(family.requests)} req`,
      y,
    );
  });
  if (area.bottom > 0 && view.families.length === 0) label('no families', strip.top + flow.bottom + 16, palette.soft);
}

function compact(value: number): string {
  if (value < 10_000) return countText(value);
  return value < 1e6 ? `${Math.round(value / 1e3)}k` : `${(value / 1e6).toFixed(1)}M`;
}

function fitted(context: CanvasRenderingContext2D, words: string, width: number): string {
  let shown = words;
  while (shown.length > 1 && context.measureText(shown).width > width) shown = `${shown.slice(0, -2)}…`;
  return shown;
}

function drawCursor(
  context: CanvasRenderingContext2D,
  scene: Scene,
  { row, time }: NonNullable<Scene['cursor']>,
): void {
  const { width, gutter, layout, palette, window, height } = scene;
  const { top, bottom } = boundsOf(layout, row);
  const x = gutter + xOf(time, window, width - gutter);
  context.fillStyle = palette.accent;
  context.fillRect(x - 0.5, RULER, 1, height - RULER);
  context.strokeStyle = palette.accent;
  context.lineWidth = 2;
  context.strokeRect(gutter + 1, top - 1, width - gutter - 2, bottom - top + 2);
  context.beginPath();
  context.moveTo(x - 5, RULER - 7);
  context.lineTo(x + 5, RULER - 7);
  context.lineTo(x, RULER);
  context.fill();
}

function line(context: CanvasRenderingContext2D, x: number, colour: string, top: number, bottom: number): void {
  context.fillStyle = colour;
  context.fillRect(Math.round(x), top, 1, bottom - top);
}

export function text(context: CanvasRenderingContext2D, words: string, x: number, y: number, colour: string): void {
  context.fillStyle = colour;
  context.fillText(words, x, y);
}
