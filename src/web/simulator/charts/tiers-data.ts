// Shares of prompt blocks by where they were found, column by column. Pure.
import type { SimPicture } from '../../../sim/observed/types.js';
import { countText, NOTHING, shareText, timeText } from '../../../sim/report-format.js';
import { columnsOf, sumOf } from './columns.js';
import { MOST_ROWS, type Table } from './table.js';
import { TIER_NAMES, TIERS } from './tier-paint.js';

export interface TierColumn {
  /** Milliseconds. */
  readonly from: number;
  readonly to: number;
  /** Prompt blocks of what was begun in it. */
  readonly blocks: number;
  /** In the order of TIERS; they add up to 1, or are all NaN where nothing was begun. */
  readonly shares: readonly number[];
  /** Of the requests that arrived in it; NaN where none did. */
  readonly reachable: number;
}

/** At most `most` columns for what is between two times. */
export function tierColumns(picture: SimPicture, from: number, to: number, most: number): TierColumn[] {
  const columns = columnsOf(picture, from, to, most);
  const { series } = picture;
  return Array.from({ length: columns.count }, (_, i) => {
    const of = (values: Float64Array) => sumOf(values, i, columns.merged, series.buckets);
    const parts = TIERS.map((tier) => of(series[tier]));
    const blocks = parts.reduce((sum, part) => sum + part, 0);
    const arrived = of(series.arrivedBlocks);
    return {
      from: i * columns.step,
      to: Math.max(i * columns.step, Math.min((i + 1) * columns.step, columns.end)),
      blocks,
      shares: parts.map((part) => (blocks > 0 ? part / blocks : Number.NaN)),
      reachable: arrived > 0 ? of(series.reachable) / arrived : Number.NaN,
    };
  });
}

/** The whole run as one column. */
export function wholeRun(picture: SimPicture): TierColumn {
  const one = tierColumns(picture, 0, picture.series.buckets * picture.series.step, 1)[0];
  return one ?? { from: 0, to: 0, blocks: 0, shares: TIERS.map(() => Number.NaN), reachable: Number.NaN };
}

/** The column that holds a time. */
export const tierColumnAt = (columns: readonly TierColumn[], time: number): TierColumn | null =>
  columns.find(({ from, to }) => time >= from && time < to) ?? null;

const part = (share: number): string => (Number.isNaN(share) ? NOTHING : shareText(share));

/** "5 min to 5.5 min, of 1,240 prompt blocks: GPU 31.20 %, …; reachable 55.00 %". */
export function tierReading({ from, to, blocks, shares, reachable }: TierColumn): string {
  const when = `${timeText(from)} to ${timeText(to)}`;
  const best = Number.isNaN(reachable) ? '' : `; reachable ${part(reachable)}`;
  if (blocks === 0) return `${when}: nothing was begun${best}`;
  const parts = TIERS.map((tier, i) => `${TIER_NAMES[tier]} ${part(shares[i]!)}`).join(', ');
  return `${when}, of ${countText(blocks)} prompt blocks: ${parts}${best}`;
}

/** "56.82 % of 213,400 prompt blocks were reused; the best choice could have reached 64.24 %" */
export function tierSummary({ blocks, shares, reachable }: TierColumn): string {
  if (blocks === 0) return 'nothing has begun yet';
  const reused = shareText(1 - shares.at(-1)!);
  const best = Number.isNaN(reachable) ? '' : `; the best choice of worker could have reached ${shareText(reachable)}`;
  return `${reused} of ${countText(blocks)} prompt blocks were reused${best}`;
}

/** What the legend says of one tier, or of what was reachable. */
export function tierLegend(wholes: readonly TierColumn[], place: number | 'reachable'): string {
  const name = place === 'reachable' ? 'reachable' : TIER_NAMES[TIERS[place]!];
  const values = wholes.map(({ shares, reachable }) => part(place === 'reachable' ? reachable : shares[place]!));
  return `${name} ${values.join(' | ')}`;
}

export function tierTable(list: readonly { readonly label: string; readonly picture: SimPicture }[]): Table {
  const named = list.length > 1;
  const rows = list.flatMap(({ label, picture }) =>
    tierColumns(picture, 0, picture.series.buckets * picture.series.step, Math.floor(MOST_ROWS / list.length)).map(
      ({ from, blocks, shares, reachable }) => [
        timeText(from),
        ...(named ? [label] : []),
        countText(blocks),
        ...shares.map(part),
        part(reachable),
      ],
    ),
  );
  const tiers = TIERS.map((tier) => TIER_NAMES[tier]);
  return { head: ['from', ...(named ? ['run'] : []), 'blocks', ...tiers, 'reachable'], rows };
}
