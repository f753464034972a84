// Where blocks came from, as areas that patterns tell apart as well as colours: plain, slanted lines, dots, and blank for what was computed.
import type { Theme } from './theme.js';

export const TIERS = ['gpu', 'dram', 'ssd', 'computed'] as const;
export type Tier = (typeof TIERS)[number];

export const TIER_NAMES: Readonly<Record<Tier, string>> = {
  gpu: 'GPU',
  dram: 'store memory',
  ssd: 'store SSD',
  computed: 'computed',
};

/** CSS pixels after which a pattern repeats. */
const TILE = 8;

/** What an area of that tier is filled with. */
export function tierFill(
  ctx: CanvasRenderingContext2D,
  theme: Theme,
  tier: Tier,
  ratio: number,
): CanvasPattern | string {
  const colour = { gpu: theme.gpu, dram: theme.dram, ssd: theme.ssd, computed: theme.none }[tier];
  if (tier === 'gpu' || tier === 'computed') return colour;
  return ctx.createPattern(tileOf(tier, colour, theme.panel, ratio), 'repeat') ?? colour;
}

function tileOf(tier: 'dram' | 'ssd', colour: string, panel: string, ratio: number): HTMLCanvasElement {
  const size = Math.max(4, Math.round(TILE * ratio));
  const tile = document.createElement('canvas');
  tile.width = size;
  tile.height = size;
  const pen = tile.getContext('2d')!;
  pen.fillStyle = colour;
  pen.fillRect(0, 0, size, size);
  pen.globalAlpha = 0.55;
  pen.fillStyle = panel;
  pen.strokeStyle = panel;
  if (tier === 'dram') {
    pen.lineWidth = size / 6;
    pen.beginPath();
    // Three lines, so that corners join with those of the next tile.
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift - 1, size + 1);
      pen.lineTo(shift + size + 1, -1);
    }
    pen.stroke();
  } else {
    for (const [x, y] of [
      [0.25, 0.25],
      [0.75, 0.75],
    ] as const) {
      pen.beginPath();
      pen.arc(x * size, y * size, size / 7, 0, 2 * Math.PI);
      pen.fill();
    }
  }
  return tile;
}
