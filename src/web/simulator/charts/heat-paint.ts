// Shares as colours: from near the panel's colour to the accent's, so that darker (on a dark page: lighter) is always more.
import type { Theme } from './theme.js';

/** Colours of a ramp. */
const SHADES = 256;

/** Red, green, blue and alpha of each shade, as image data has them. */
export type Ramp = Uint8ClampedArray;

let last: { readonly theme: Theme; readonly ramp: Ramp } | null = null;

export function rampOf(theme: Theme): Ramp {
  if (last?.theme !== theme) last = { theme, ramp: makeRamp(theme) };
  return last.ramp;
}

/** The page's colours may be written in any way CSS knows: the canvas itself makes the ramp. */
function makeRamp({ panel, accent }: Theme): Ramp {
  const canvas = document.createElement('canvas');
  canvas.width = SHADES;
  canvas.height = 1;
  const ctx = canvas.getContext('2d', { willReadFrequently: true })!;
  ctx.fillStyle = panel;
  ctx.fillRect(0, 0, SHADES, 1);
  const gradient = ctx.createLinearGradient(0, 0, SHADES, 0);
  gradient.addColorStop(0, panel);
  gradient.addColorStop(1, accent);
  ctx.fillStyle = gradient;
  ctx.fillRect(0, 0, SHADES, 1);
  // What idles is tinted: it is something else than what no run has reached.
  ctx.globalAlpha = 0.1;
  ctx.fillStyle = accent;
  ctx.fillRect(0, 0, SHADES, 1);
  return ctx.getImageData(0, 0, SHADES, 1).data;
}

/** A picture with one pixel a cell; cells that are no number stay clear. */
export function cellsImage(busy: Float32Array, width: number, rows: number, ramp: Ramp): HTMLCanvasElement | null {
  if (width === 0 || rows === 0) return null;
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = rows;
  const image = new ImageData(width, rows);
  busy.forEach((share, i) => {
    if (Number.isNaN(share)) return;
    const shade = 4 * Math.round(share * (SHADES - 1));
    for (let part = 0; part < 4; part++) image.data[4 * i + part] = ramp[shade + part]!;
  });
  canvas.getContext('2d')!.putImageData(image, 0, 0);
  return canvas;
}
