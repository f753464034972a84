// The list of requests: any number of them, of which only the rows on screen exist. A grid to screen readers; one tab stop, arrows move, Enter opens.
import type { RequestOrder, RequestRow } from '../../../sim/observed/types.js';
import { countText } from '../../../sim/report-format.js';
import { h } from '../../console/dom.js';
import { oncePerFrame } from '../dom-events.js';
import { Asker } from '../timeline/asker.js';
import { COLUMNS, ORDERS, PRICE_UNITS, sharesOf } from './cells.js';
import {
  contentHeight,
  type ListSize,
  nextSearch,
  PAGE,
  Pages,
  rowAfter,
  type Search,
  scrollTo,
  shownRows,
} from './rows.js';

export interface RequestListOptions {
  ask(order: RequestOrder, from: number, count: number): Promise<{ rows: readonly RequestRow[]; total: number }>;
  onRequest(request: number): void;
}

/** Pixels of a row, in one line and, on narrow screens, in two. */
const ROW = 34;
const ROW_NARROW = 62;
/** Width below which rows have two lines. */
const NARROW = 800;
/** Milliseconds after which a page that could not be had is asked for again, if it is still needed. */
const AGAIN = 2_000;

let lists = 0;

export class RequestList {
  readonly #options: RequestListOptions;
  readonly #order: HTMLSelectElement;
  readonly #jump: HTMLInputElement;
  readonly #status = h('p', { class: 'status', role: 'status' });
  readonly #grid: HTMLElement;
  readonly #head: HTMLElement;
  readonly #content = h('div', { class: 'content', role: 'rowgroup' });
  readonly #pages = new Pages<RequestRow>();
  readonly #made = new Map<number, HTMLElement>();
  readonly #redraw = oncePerFrame(() => this.#draw());
  readonly #asker: Asker<{ order: RequestOrder; page: number }, { rows: readonly RequestRow[]; total: number }>;
  readonly #resize: ResizeObserver;
  #total = 0;
  #row = 0;
  #focusNext = false;
  #jumping: Search | null = null;
  /** A row that was to be opened before it had come. */
  #opening: number | null = null;
  #again: ReturnType<typeof setTimeout> | null = null;

  constructor(host: HTMLElement, options: RequestListOptions) {
    this.#options = options;
    const id = `requests-${++lists}`;
    this.#order = h('select', { id: `${id}-order` }, ...ORDERS.map(([value, words]) => h('option', { value }, words)));
    this.#jump = h('input', { id: `${id}-jump`, type: 'text', inputmode: 'numeric', autocomplete: 'off', size: '9' });
    const form = h(
      'form',
      { class: 'jump' },
      h('label', { for: this.#jump.id }, 'Go to request'),
      this.#jump,
      h('button', { type: 'submit' }, 'Go'),
    );
    const heads = COLUMNS.map(({ key, head, unit, hint }, i) =>
      h(
        'div',
        { role: 'columnheader', class: `cell ${key}`, 'aria-colindex': String(i + 1), title: hint },
        head,
        h('small', {}, unit),
      ),
    );
    this.#head = h('div', { role: 'row', class: 'row heads', 'aria-rowindex': '1' }, ...heads);
    this.#grid = h(
      'div',
      {
        class: 'grid',
        role: 'grid',
        'aria-label': 'Requests',
        'aria-colcount': String(COLUMNS.length),
        tabindex: '-1',
      },
      h('div', { role: 'rowgroup', class: 'sticky' }, this.#head),
      this.#content,
    );
    host.classList.add('requests');
    host.append(
      h('div', { class: 'bar' }, h('label', { for: this.#order.id }, 'Order'), this.#order, form, this.#status),
      h(
        'ul',
        { class: 'keys' },
        ...['gpu', 'store', 'computed'].map((tier) =>
          h(
            'li',
            {},
            h('span', { class: `key ${tier}` }),
            tier === 'gpu' ? 'from GPU' : tier === 'store' ? 'from the store' : 'computed',
          ),
        ),
      ),
      this.#grid,
    );
    this.#asker = new Asker({
      ask: ({ order, page }) => options.ask(order, page * PAGE, PAGE),
      answered: ({ rows, total }, { page }) => this.#take(page, rows, total),
      failed: (error) => this.#failed(error),
      idle: this.#redraw,
    });
    this.#order.addEventListener('change', () => {
      this.#jumping = null;
      this.#reload(0);
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#jumpTo();
    });
    this.#grid.addEventListener('scroll', this.#redraw, { passive: true });
    this.#grid.addEventListener('keydown', (event) => this.#key(event));
    this.#content.addEventListener('click', (event) => this.#click(event));
    this.#resize = new ResizeObserver(this.#redraw);
    this.#resize.observe(host);
    this.show(0);
  }

  /**
   * (Re)loads: the run has so many requests now. Stays where it was, as far as there are rows.
   * @param policy whose prices are told
   */
  show(total: number, policy = ''): void {
    this.#total = total;
    const gap = this.#head.querySelector('.gap small')!;
    gap.textContent = PRICE_UNITS[policy] ?? COLUMNS.at(-1)!.unit;
    this.#reload(Math.min(this.#row, Math.max(0, total - 1)));
  }

  destroy(): void {
    this.#resize.disconnect();
    this.#asker.drop();
    if (this.#again !== null) clearTimeout(this.#again);
  }

  #reload(row: number): void {
    this.#asker.drop();
    this.#opening = null;
    this.#pages.clear();
    for (const element of this.#made.values()) element.remove();
    this.#made.clear();
    if (row === 0) this.#grid.scrollTop = 0;
    this.#row = row;
    this.#redraw();
  }

  #size(): ListSize {
    const rowHeight = this.#grid.clientWidth < NARROW ? ROW_NARROW : ROW;
    const viewport = Math.max(rowHeight, this.#grid.clientHeight - this.#head.offsetHeight);
    return { total: this.#total, rowHeight, viewport };
  }

  // ---- pages ----

  #take(page: number, rows: readonly RequestRow[], total: number): void {
    this.#pages.set(page, rows);
    this.#total = total;
    this.#status.textContent = total === 0 ? 'No request yet.' : `${countText(total)} requests`;
    this.#search();
    if (this.#opening === this.#row) this.#open(this.#row);
    for (const [index, element] of this.#made) {
      if (Math.floor(index / PAGE) !== page) continue;
      this.#made.delete(index);
      if (element.contains(document.activeElement)) this.#focusNext = true;
      element.remove();
    }
    this.#redraw();
  }

  /** Goes on looking for the request that was asked for, as far as rows are at hand. */
  #search(): void {
    let found = this.#pages.at(this.#row);
    while (this.#jumping !== null && found !== undefined && found.request !== this.#jumping.wanted) {
      const next = nextSearch(this.#jumping, this.#row, found.request);
      this.#jumping = next.low > next.high ? null : next;
      if (this.#jumping === null) this.#status.textContent = `Request ${countText(next.wanted)} is not in this run.`;
      else this.#moveTo(next.index, true);
      found = this.#pages.at(this.#row);
    }
    if (found !== undefined) this.#jumping = null;
  }

  #failed(error: unknown): void {
    this.#status.textContent = `Not loaded: ${error instanceof Error ? error.message : String(error)}`;
    this.#again ??= setTimeout(() => {
      this.#again = null;
      this.#redraw();
    }, AGAIN);
  }

  // ---- rows ----

  #draw(): void {
    const size = this.#size();
    const narrow = size.rowHeight === ROW_NARROW;
    if (this.#grid.classList.toggle('narrow', narrow) !== (this.#content.dataset['narrow'] === 'true')) {
      this.#content.dataset['narrow'] = String(narrow);
    }
    this.#grid.setAttribute('aria-rowcount', String(this.#total + 1));
    this.#content.style.height = `${contentHeight(size)}px`;
    const { first, count, offset } = shownRows(size, this.#grid.scrollTop);
    for (const [index, element] of this.#made) {
      const isShown = index >= first && index < first + count;
      // The focused row stays, out of sight, or the focus would be lost with it.
      if (isShown || element === document.activeElement) continue;
      element.remove();
      this.#made.delete(index);
    }
    for (let index = first; index < first + count; index++)
      this.#place(index, offset + (index - first) * size.rowHeight);
    if (!this.#made.has(this.#row)) this.#place(this.#row, -2 * size.rowHeight);
    this.#rove();
    const missing = this.#total === 0 ? 0 : (this.#pages.missing(first, count) ?? this.#pages.missing(this.#row, 1));
    const mayAsk = this.#again === null && !this.#asker.busy;
    if (missing !== null && mayAsk && this.#total > 0) {
      this.#asker.want({ order: this.#order.value as RequestOrder, page: missing });
    }
    if (this.#total === 0) this.#status.textContent = 'No request yet.';
  }

  #place(index: number, top: number): void {
    if (index < 0 || index >= this.#total) return;
    let element = this.#made.get(index);
    if (element === undefined) {
      element = rowOf(index, this.#pages.at(index));
      this.#made.set(index, element);
      const after = [...this.#made.keys()].filter((other) => other > index).sort((a, b) => a - b)[0];
      // In the order of reading, whichever was made first.
      this.#content.insertBefore(element, after === undefined ? null : this.#made.get(after)!);
    }
    element.style.transform = `translateY(${top}px)`;
  }

  /** One row can be tabbed to. */
  #rove(): void {
    for (const [index, element] of this.#made) element.tabIndex = index === this.#row ? 0 : -1;
    if (!this.#focusNext) return;
    const element = this.#made.get(this.#row);
    if (element === undefined) return;
    this.#focusNext = false;
    element.focus({ preventScroll: true });
  }

  #moveTo(row: number, focus: boolean): void {
    this.#row = row;
    const to = scrollTo(this.#size(), row, this.#grid.scrollTop);
    if (to !== null) this.#grid.scrollTop = to;
    this.#focusNext ||= focus;
    this.#redraw();
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || this.#total === 0) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.#open(this.#row);
      return;
    }
    const next = rowAfter(event.key, this.#row, this.#size());
    if (next === null) return;
    event.preventDefault();
    this.#moveTo(next, true);
  }

  #click(event: MouseEvent): void {
    const element = (event.target as Element).closest<HTMLElement>('.row');
    if (element === null) return;
    this.#row = Number(element.dataset['index']);
    this.#rove();
    this.#open(this.#row);
  }

  #open(index: number): void {
    const row = this.#pages.at(index);
    this.#opening = row === undefined ? index : null;
    if (row !== undefined) this.#options.onRequest(row.request);
  }

  #jumpTo(): void {
    const request = Number(this.#jump.value.replace(/[\s,#]/g, ''));
    const isNumber = this.#jump.value.trim() !== '' && Number.isInteger(request) && request >= 0;
    this.#jump.toggleAttribute('aria-invalid', !isNumber);
    if (!isNumber) {
      this.#status.textContent = 'Give a request’s number, such as 4211.';
      return;
    }
    if (this.#total === 0) return;
    // By arrival a request's place follows from its number.
    this.#order.value = 'arrival';
    this.#reload(0);
    this.#jumping = { wanted: request, low: 0, high: this.#total - 1 };
    this.#moveTo(Math.min(request, this.#total - 1), true);
  }
}

function rowOf(index: number, row: RequestRow | undefined): HTMLElement {
  const cells = COLUMNS.map(({ key, text }, i) =>
    h(
      'div',
      { role: 'gridcell', class: `cell ${key}`, 'aria-colindex': String(i + 1) },
      key === 'blocks' && row !== undefined ? barOf(row) : null,
      h('span', {}, row === undefined ? '…' : text(row)),
    ),
  );
  return h(
    'div',
    { role: 'row', class: 'row', tabindex: '-1', 'aria-rowindex': String(index + 2), 'data-index': String(index) },
    ...cells,
  );
}

function barOf(row: RequestRow): HTMLElement {
  const parts = sharesOf(row).map((share, i) => {
    const part = h('span', { class: ['gpu', 'store', 'computed'][i]! });
    part.style.width = `${share}%`;
    return part;
  });
  return h('span', { class: 'tiers', 'aria-hidden': 'true' }, ...parts);
}
