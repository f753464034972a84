// What a chart draws with: the canvas, where values lie on it, and a few strokes that all charts share. Places are canvas pixels, widths CSS pixels.
import type { LineStyle, Theme } from './theme.js';

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export interface Pen {
  readonly ctx: CanvasRenderingContext2D;
  readonly theme: Theme;
  /** The plotting area; what is drawn outside is cut off. */
  readonly box: Box;
  /** Canvas pixels of a CSS pixel. */
  readonly ratio: number;
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
}

/** Text size of everything on a canvas, in CSS pixels. */
export const TEXT = 12;

export interface Stroke extends LineStyle {
  readonly width?: number;
}

/** One line through points; a value that is no number begins a new piece. Steps keep each value up to the next point. */
export function line(pen: Pen, xs: ArrayLike<number>, ys: ArrayLike<number>, stroke: Stroke, steps = false): void {
  const { ctx, x, y } = pen;
  ctx.save();
  setStroke(pen, stroke);
  ctx.beginPath();
  let before: number | null = null;
  for (let i = 0; i < xs.length; i++) {
    const value = ys[i]!;
    if (Number.isNaN(value)) {
      if (steps && before !== null) ctx.lineTo(x(xs[i]!), before);
      before = null;
      continue;
    }
    const [px, py] = [x(xs[i]!), y(value)];
    if (before === null) ctx.moveTo(px, py);
    else {
      if (steps) ctx.lineTo(px, before);
      ctx.lineTo(px, py);
    }
    before = py;
  }
  ctx.stroke();
  ctx.restore();
}

/** A straight line over the whole plotting area, along or across. */
export function rule(pen: Pen, at: { readonly x: number } | { readonly y: number }, stroke: Stroke): void {
  const { ctx, box } = pen;
  ctx.save();
  setStroke(pen, stroke);
  ctx.beginPath();
  if ('x' in at) {
    ctx.moveTo(pen.x(at.x), box.top);
    ctx.lineTo(pen.x(at.x), box.top + box.height);
  } else {
    ctx.moveTo(box.left, pen.y(at.y));
    ctx.lineTo(box.left + box.width, pen.y(at.y));
  }
  ctx.stroke();
  ctx.restore();
}

export function dot(pen: Pen, x: number, y: number, colour: string, radius = 4): void {
  const { ctx, ratio } = pen;
  ctx.save();
  ctx.beginPath();
  ctx.arc(x, y, radius * ratio, 0, 2 * Math.PI);
  ctx.fillStyle = colour;
  ctx.strokeStyle = pen.theme.panel;
  ctx.lineWidth = 1.5 * ratio;
  ctx.fill();
  ctx.stroke();
  ctx.restore();
}

/** Text on a rim of the panel's colour, kept inside the plotting area. `x` is its left, centre or right. Gives the box it took. */
export function words(
  pen: Pen,
  text: string,
  x: number,
  y: number,
  { colour = pen.theme.ink, align = 'left' as 'left' | 'center' | 'right', bold = false } = {},
): Box {
  const { ctx, box, ratio } = pen;
  ctx.save();
  ctx.font = `${bold ? '600 ' : ''}${TEXT * ratio}px ${pen.theme.family}`;
  const width = ctx.measureText(text).width;
  const rim = 3 * ratio;
  const begin = x - (align === 'left' ? 0 : align === 'center' ? width / 2 : width);
  const left = Math.max(box.left + rim, Math.min(box.left + box.width - width - rim, begin));
  const half = (TEXT * ratio) / 2;
  const middle = Math.max(box.top + half + rim, Math.min(box.top + box.height - half - rim, y));
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.lineJoin = 'round';
  ctx.lineWidth = 4 * ratio;
  ctx.strokeStyle = pen.theme.panel;
  ctx.strokeText(text, left, middle);
  ctx.fillStyle = colour;
  ctx.fillText(text, left, middle);
  ctx.restore();
  return { left, top: middle - half, width, height: 2 * half };
}

function setStroke({ ctx, ratio }: Pen, { colour, dash, width = 2 }: Stroke): void {
  ctx.strokeStyle = colour;
  ctx.lineWidth = width * ratio;
  ctx.lineJoin = 'round';
  ctx.setLineDash(dash.map((part) => part * ratio));
}
