// The strip with the whole run: what the place held, and the window that is in view.
import type { TimelineView } from '../../../sim/observed/types.js';
import { FONT, text } from './draw.js';
import type { Palette } from './palette.js';
import { mostOf } from './strip.js';
import { type Span, whole, xOf } from './window.js';

export const OVERVIEW = 48;
const HANDLE = 6;

export interface OverviewScene {
  readonly width: number;
  readonly gutter: number;
  readonly palette: Palette;
  readonly overview: TimelineView | null;
  readonly window: Span;
  readonly end: number;
}

export function drawOverview(context: CanvasRenderingContext2D, scene: OverviewScene): void {
  const { width, gutter, palette, overview, window, end } = scene;
  const inner = width - gutter;
  const all = whole(end);
  context.clearRect(0, 0, width, OVERVIEW);
  context.font = FONT;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  text(context, gutter < 100 ? 'All' : 'Whole run', 4, OVERVIEW / 2, palette.ink);
  context.save();
  context.beginPath();
  context.rect(gutter, 0, inner, OVERVIEW);
  context.clip();
  context.translate(gutter, 0);
  context.fillStyle = palette.panel;
  context.fillRect(0, 0, inner, OVERVIEW);
  if (overview !== null) drawHeld(context, scene, overview);
  const left = xOf(window.from, all, inner);
  const right = Math.max(left + 2, xOf(window.to, all, inner));
  context.fillStyle = `${palette.page}b8`;
  context.fillRect(0, 0, left, OVERVIEW);
  context.fillRect(right, 0, inner - right, OVERVIEW);
  context.strokeStyle = palette.accent;
  context.lineWidth = 2;
  context.strokeRect(left + 1, 1, Math.max(1, right - left - 2), OVERVIEW - 2);
  context.fillStyle = palette.accent;
  // In a thin window the handles lie outside.
  const inset = right - left > 3 * HANDLE ? 0 : HANDLE;
  for (const x of [left - inset, right - HANDLE + inset]) context.fillRect(x, OVERVIEW / 2 - 10, HANDLE, 20);
  context.restore();
  context.strokeStyle = palette.rule;
  context.lineWidth = 1;
  context.strokeRect(gutter + 0.5, 0.5, inner - 1, OVERVIEW - 1);
}

function drawHeld(
  context: CanvasRenderingContext2D,
  scene: OverviewScene,
  { total, columns, capacity, from, to }: TimelineView,
): void {
  const { width, gutter, palette, end } = scene;
  const inner = width - gutter;
  const all = whole(end);
  const top = Math.max(1, capacity, mostOf([total]).held);
  context.beginPath();
  context.moveTo(xOf(from, all, inner), OVERVIEW);
  for (let i = 0; i < columns; i++) {
    const y = OVERVIEW - ((total.held[i] ?? 0) / top) * (OVERVIEW - 6);
    context.lineTo(xOf(from + ((to - from) * i) / columns, all, inner), y);
    context.lineTo(xOf(from + ((to - from) * (i + 1)) / columns, all, inner), y);
  }
  context.lineTo(xOf(to, all, inner), OVERVIEW);
  const [r, g, b] = palette.strip.held;
  context.fillStyle = `rgb(${r} ${g} ${b} / 0.55)`;
  context.fill();
}
