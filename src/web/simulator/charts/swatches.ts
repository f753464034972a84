// Swatches of legends.
import type { Entry } from './frame.js';
import { lineStyle } from './theme.js';
import { type Tier, tierFill } from './tier-paint.js';

/** A piece of the line that is drawn for the simulation at that place. */
export const lineEntry = (text: string, place: number): Entry => ({
  text,
  key: `line ${place}`,
  paint: (ctx, theme, width, height, ratio) => strokeAcross(ctx, { ...lineStyle(theme, place) }, width, height, ratio),
});

/** A dashed line in the colour of text. */
export const dashedEntry = (text: string): Entry => ({
  text,
  key: 'dashed',
  paint: (ctx, theme, width, height, ratio) =>
    strokeAcross(ctx, { colour: theme.ink, dash: REACHABLE_DASH }, width, height, ratio),
});

export const REACHABLE_DASH: readonly number[] = [5, 3];

export const tierEntry = (text: string, tier: Tier): Entry => ({
  text,
  key: tier,
  paint: (ctx, theme, width, height, ratio) => {
    ctx.fillStyle = tierFill(ctx, theme, tier, ratio);
    ctx.fillRect(0, 0, width, height);
    ctx.strokeStyle = theme.soft;
    ctx.lineWidth = ratio;
    ctx.strokeRect(ratio / 2, ratio / 2, width - ratio, height - ratio);
  },
});

export const dotEntry = (text: string): Entry => ({
  text,
  key: 'dot',
  paint: (ctx, theme, width, height, ratio) => {
    ctx.beginPath();
    ctx.arc(width / 2, height / 2, 4 * ratio, 0, 2 * Math.PI);
    ctx.fillStyle = theme.ink;
    ctx.fill();
  },
});

function strokeAcross(
  ctx: CanvasRenderingContext2D,
  { colour, dash }: { readonly colour: string; readonly dash: readonly number[] },
  width: number,
  height: number,
  ratio: number,
): void {
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2.5 * ratio;
  ctx.setLineDash(dash.map((part) => part * ratio));
  ctx.beginPath();
  ctx.moveTo(0, height / 2);
  ctx.lineTo(width, height / 2);
  ctx.stroke();
  ctx.setLineDash([]);
}
