// What is in view as tables: the way to read a timeline without seeing it. At most so many rows, made only while the tables are open.
import type { TimelineView } from '../../../sim/observed/types.js';
import { countText, NOTHING, timeText } from '../../../sim/report-format.js';
import { h } from '../../console/dom.js';
import { columnAt } from './layout.js';
import { inView } from './parts.js';
import { clockText } from './ticks.js';
import type { Span } from './window.js';

/** Requests that the table lists. */
export const MAX_TABLE_ROWS = 200;

export interface TableParts {
  readonly view: TimelineView;
  readonly window: Span;
  readonly end: number;
  onRequest(request: number): void;
}

export function tablesOf(parts: TableParts): HTMLElement[] {
  const { view } = parts;
  return view.place === 'store' ? [familyTable(parts)] : [requestTable(parts), familyTable(parts)];
}

function requestTable({ view, window, end, onRequest }: TableParts): HTMLElement {
  const rows = inView(view.spans, window, end, MAX_TABLE_ROWS + 1);
  const more = rows.length > MAX_TABLE_ROWS;
  const time = (value: number) => (Number.isNaN(value) ? NOTHING : timeText(value));
  const body = rows.slice(0, MAX_TABLE_ROWS).map(({ row }) => {
    const open = h('button', { type: 'button', class: 'link' }, countText(row.request));
    open.addEventListener('click', () => onRequest(row.request));
    const times = [row.begunAt - row.at, row.fetchedAt - row.begunAt, row.firstTokenAt - row.fetchedAt];
    const blocks = [row.gpu, row.dram + row.ssd, row.full - row.gpu - row.dram - row.ssd];
    return [
      open,
      clockText(row.at),
      ...times.map(time),
      time(row.endedAt - row.firstTokenAt),
      ...blocks.map((value) => countText(value)),
    ];
  });
  const heads = [
    'Request',
    'Arrived',
    'Waited',
    'Fetched',
    'Computed',
    'Decoded',
    'GPU blocks',
    'Store blocks',
    'Computed blocks',
  ];
  return table(more ? `The first ${MAX_TABLE_ROWS} requests in view` : `${rows.length} requests in view`, heads, body);
}

function familyTable({ view, window }: TableParts): HTMLElement {
  const first = columnAt(view, Math.max(view.from, window.from)) ?? 0;
  const last = columnAt(view, Math.min(view.to, window.to)) ?? view.columns - 1;
  const sum = (values: Float64Array) => values.subarray(first, last + 1).reduce((all, one) => all + one, 0);
  const body = [view.total, ...view.families].map((row, i) => [
    i === 0 ? 'All' : `Family ${countText(row.family)}`,
    countText(row.requests),
    countText(row.held[first] ?? 0),
    countText(row.held[last] ?? 0),
    ...[row.stored, row.fetched, row.evicted].map((values) => countText(sum(values))),
  ]);
  const [came, read] = view.place === 'store' ? ['Put', 'Read'] : ['Stored', 'Fetched'];
  return table(
    'Blocks of prompts that begin alike',
    ['Family', 'Requests', 'Held first', 'Held last', came!, read!, 'Evicted'],
    body,
  );
}

function table(caption: string, heads: readonly string[], rows: readonly (readonly (Node | string)[])[]): HTMLElement {
  return h(
    'table',
    {},
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, ...heads.map((words) => h('th', { scope: 'col' }, words)))),
    h(
      'tbody',
      {},
      ...rows.map((row) =>
        h('tr', {}, ...row.map((cell, i) => (i === 0 ? h('th', { scope: 'row' }, cell) : h('td', {}, cell)))),
      ),
    ),
  );
}
