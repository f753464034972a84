// Colours of the page for canvases: custom properties, read anew when the theme changes, and the patterns made of them.
import type { PartKind } from './parts.js';
import type { Rgb, StripColours } from './strip.js';

export interface Palette {
  readonly page: string;
  readonly panel: string;
  readonly ink: string;
  readonly soft: string;
  readonly rule: string;
  readonly accent: string;
  readonly strip: StripColours;
  readonly fills: Readonly<Record<PartKind, string | CanvasPattern>>;
  readonly unknown: string | CanvasPattern;
}

export function paletteOf(element: Element, context: CanvasRenderingContext2D, scale: number): Palette {
  const style = getComputedStyle(element);
  const named = (name: string) => {
    // A canvas gives every opaque colour back as #rrggbb.
    context.fillStyle = '#888888';
    context.fillStyle = style.getPropertyValue(name).trim();
    return context.fillStyle;
  };
  const [page, panel, ink, soft] = [named('--page'), named('--panel'), named('--ink'), named('--soft')];
  const [rule, accent, gpu, dram, bad] = [
    named('--rule'),
    named('--accent'),
    named('--gpu'),
    named('--dram'),
    named('--bad'),
  ];
  const hatched = (back: string, line: string, space: number) => hatch(context, { back, line, space, scale });
  return {
    ...{ page, panel, ink, soft, rule, accent },
    strip: { held: rgb(gpu), stored: rgb(accent), fetched: rgb(dram), evicted: rgb(bad), rule: rgb(rule) },
    fills: { wait: soft, fetch: hatched(dram, panel, 6), compute: accent, decode: `${gpu}8c` },
    unknown: hatched(panel, rule, 8),
  };
}

function rgb(colour: string): Rgb {
  const value = Number.parseInt(colour.slice(1, 7), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** Slanted lines on a ground. */
function hatch(
  context: CanvasRenderingContext2D,
  { back, line, space, scale }: { back: string; line: string; space: number; scale: number },
): CanvasPattern | string {
  const side = Math.round(space * scale);
  const tile = new OffscreenCanvas(side, side);
  const brush = tile.getContext('2d');
  if (brush === null) return back;
  brush.fillStyle = back;
  brush.fillRect(0, 0, side, side);
  brush.strokeStyle = line;
  brush.lineWidth = side / 4;
  brush.beginPath();
  for (const shift of [-side, 0, side]) {
    brush.moveTo(shift - 1, side + 1);
    brush.lineTo(shift + side + 1, -1);
  }
  brush.stroke();
  const pattern = context.createPattern(tile, 'repeat');
  pattern?.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern ?? back;
}
