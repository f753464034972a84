// The table that answers: a row for each simulation, the figures that decide in columns, each with its difference from a row that is chosen. The bar of a row
// shows where its prompt blocks came from, with marks at what could be reached and at the ceiling.
import { type Figure, figureOf, figureText, hitShare } from '../../sim/report-figures.js';
import { shareText } from '../../sim/report-format.js';
import type { SimReport } from '../../sim/types.js';
import { h } from '../console/dom.js';
import { madeOf, noteOf } from './figure-notes.js';
import { explain, howButton } from './how.js';
import { deltaOf } from './table-deltas.js';

const COLUMNS: readonly (readonly [key: string, head: string])[] = [
  ['gpu_share', 'GPU'],
  ['dram_share', 'memory'],
  ['ssd_share', 'SSD'],
  ['ttft_p50_ms', 'TTFT p50'],
  ['ttft_p90_ms', 'p90'],
  ['ttft_p99_ms', 'p99'],
  ['fetch_mean_bytes_per_second', 'fetch'],
  ['fetch_peak_bytes_per_second', 'its peak'],
  ['imbalance', 'imbalance'],
  ['credit_stale', 'stale'],
];

export interface TableRow {
  readonly label: string;
  readonly note: string | null;
  readonly report: SimReport;
  /** What it is compared with; null for the row that others are compared with. */
  readonly base: SimReport | null;
}

export const TIERS = [
  ['gpu', 'GPU'],
  ['dram', 'store memory'],
  ['ssd', 'store SSD'],
  ['none', 'computed'],
] as const;

/** Rows of simulations, in a box of its own that may scroll. */
export function policyTable(caption: string, rows: readonly TableRow[]): HTMLElement {
  const columns = COLUMNS.filter(([key]) => key !== 'ssd_share' || rows.some(({ report }) => report.blocks.ssd > 0));
  const head = h(
    'tr',
    {},
    h('th', { scope: 'col' }, 'policy'),
    headOf('hit_share', 'hit blocks'),
    ...columns.map(([key, text]) => headOf(key, text)),
  );
  return h(
    'div',
    { class: 'box', tabindex: '0', role: 'region', 'aria-label': caption },
    h(
      'table',
      { class: 'answers' },
      h('caption', { class: 'unseen' }, caption),
      h('thead', {}, head),
      h('tbody', {}, ...rows.map((row) => line(row, columns))),
    ),
  );
}

function headOf(key: string, text: string): HTMLElement {
  return h('th', { scope: 'col' }, text, ' ', howButton(text, noteOf(figureOf(key))));
}

function line({ label, note, report, base }: TableRow, columns: readonly (readonly [string, string])[]): HTMLElement {
  return h(
    'tr',
    { class: base === null ? 'base' : null },
    h('th', { scope: 'row' }, label, note === null ? null : h('small', {}, note)),
    h('td', { class: 'hits' }, h('div', {}, bar(report), cellOf(figureOf('hit_share'), report, base))),
    ...columns.map(([key]) => h('td', {}, cellOf(figureOf(key), report, base))),
  );
}

function cellOf(figure: Figure, report: SimReport, base: SimReport | null): HTMLElement {
  const delta = base === null ? null : deltaOf(figure, report, base);
  const cell = explain(h('span', { class: 'value' }, figureText(figure, report)), madeOf(figure, report));
  if (delta !== null) {
    const judged = delta.verdict === 'better' || delta.verdict === 'worse';
    cell.append(
      h(
        'small',
        { class: `delta ${delta.verdict}` },
        delta.text,
        judged ? h('span', { class: 'unseen' }, ` ${delta.verdict}`) : null,
      ),
    );
  }
  return cell;
}

/** Where blocks came from, as one bar; what it shows is said by the cells beside it as well. */
export function bar(report: SimReport): HTMLElement {
  const { blocks, reachableBlocks, ceilingBlocks } = report;
  const share = (part: number) => (blocks.full > 0 ? Math.min(1, part / blocks.full) : 0);
  const element = h('span', { class: 'tiers-bar' });
  for (const [tier, part] of [
    ['gpu', blocks.gpu],
    ['dram', blocks.dram],
    ['ssd', blocks.ssd],
  ] as const) {
    const piece = h('span', { class: `tier ${tier}` });
    piece.style.width = `${100 * share(part)}%`;
    element.append(piece);
  }
  for (const [mark, part] of [
    ['reachable', reachableBlocks],
    ['ceiling', ceilingBlocks],
  ] as const) {
    const line = h('span', { class: `mark ${mark}` });
    line.style.left = `${100 * share(part)}%`;
    element.append(line);
  }
  const hit = hitShare(report);
  return explain(
    element,
    `Of ${blocks.full.toLocaleString('en')} full prompt blocks: ${TIERS.map(([tier, name]) => `${name} ${shareText(share(tier === 'none' ? blocks.computed : blocks[tier]))}`).join(', ')}. Hit ${hit === null ? '–' : shareText(hit)}; reachable by any routing ${shareText(share(reachableBlocks))}; one cache without limit ${shareText(share(ceilingBlocks))}.`,
  );
}

/** What the colours and marks of bars mean. */
export function legend(): HTMLElement {
  const key = (look: string, text: string) =>
    h('li', {}, h('i', { class: `swatch ${look}`, 'aria-hidden': 'true' }), text);
  return h(
    'ul',
    { class: 'legend', 'aria-label': 'Bars' },
    ...TIERS.map(([tier, name]) => key(tier, name)),
    key('line reachable', 'reachable by any routing'),
    key('line ceiling', 'ceiling: one cache without limit'),
  );
}
