// What stands around every chart: title, how it is made, buttons, legend, plots, what is read under the cursor, caption, and the same as a table.
//
// `show` may come ten times a second: texts change only where they differ, so that nothing flickers, moves, or loses focus.
import { h } from '../../console/dom.js';
import { howButton } from '../how.js';
import { drawSoon, dropDraw } from './frame-queue.js';
import type { Table } from './table.js';
import { onThemeChange, type Theme, themeOf } from './theme.js';

/** One entry of a legend. Swatches are painted, by the same functions as the chart. */
export interface Entry {
  readonly text: string;
  /** Names its swatch: those of one key look alike. */
  readonly key: string;
  /** Paints `width` × `height` canvas pixels, `ratio` of them a CSS pixel. */
  readonly paint: (ctx: CanvasRenderingContext2D, theme: Theme, width: number, height: number, ratio: number) => void;
}

export const SWATCH = { width: 26, height: 14 } as const;

export interface FrameSpec {
  readonly title: string;
  /** How the numbers were made, in a sentence or two. */
  readonly howMade: string;
  /** Called at most once a frame. */
  readonly draw: (width: number) => void;
  readonly table: () => Table;
  /** What a picture of it is made of, `pixels` for each CSS pixel. */
  readonly pictures: (pixels: number) => HTMLCanvasElement[];
}

/** Frames by the element that a chart was given. */
const frames = new WeakMap<HTMLElement, Frame>();
export const frameOf = (host: HTMLElement): Frame | undefined => frames.get(host);

export class Frame {
  readonly spec: FrameSpec;
  readonly figure: HTMLElement;
  readonly plots = h('div', { class: 'chart-plots' });
  readonly tools = h('div', { class: 'chart-tools' });
  readonly #legend = h('ul', { class: 'chart-legend' });
  readonly #reading = h('p', { class: 'chart-reading' });
  readonly #caption = h('figcaption', {});
  readonly #empty = h('p', { class: 'chart-empty' });
  readonly #rows = h('div', { class: 'chart-rows', tabindex: '0', role: 'region' });
  readonly #table = h('details', { class: 'chart-table' }, h('summary', {}, 'Show as table'), this.#rows);
  readonly #resized: ResizeObserver;
  readonly #stop: () => void;
  readonly #draw = () => this.#drawNow();
  readonly #host: HTMLElement;
  #entries: readonly Entry[] = [];
  /** Of what the swatches were painted last. */
  #painted: { readonly theme: Theme; readonly ratio: number; readonly keys: string } | null = null;
  #legendText = '';
  #said = '';
  #summary = '';
  #read: string | null = null;

  constructor(host: HTMLElement, spec: FrameSpec) {
    this.spec = spec;
    this.#host = host;
    this.#rows.setAttribute('aria-label', `${spec.title} as a table`);
    const head = h('div', { class: 'chart-head' }, h('h3', {}, spec.title), howButton(`“${spec.title}”`, spec.howMade));
    head.append(this.tools);
    const parts = [head, this.#legend, this.#empty, this.plots, this.#reading, this.#caption, this.#table];
    this.figure = h('figure', { class: 'chart' }, ...parts);
    host.replaceChildren(this.figure);
    frames.set(host, this);
    this.#table.addEventListener('toggle', () => this.redraw());
    // Read out what the keys point at, but not ten times a second what a run that goes on changes.
    const aloud = ({ target }: Event) => {
      // A slider says by itself where it is.
      if ((target as Element).role !== 'slider') this.#reading.setAttribute('aria-live', 'polite');
    };
    this.plots.addEventListener('keydown', aloud, { capture: true });
    this.plots.addEventListener('focusout', () => this.#reading.removeAttribute('aria-live'));
    this.#resized = new ResizeObserver(() => this.redraw());
    this.#resized.observe(this.plots);
    this.#stop = onThemeChange(this.#draw);
    this.empty('Nothing has been simulated yet.');
  }

  /** Draws at the next frame. */
  redraw(): void {
    drawSoon(this.#draw);
  }

  #drawNow(): void {
    if (this.plots.hidden) return;
    this.spec.draw(this.plots.clientWidth);
    this.#paintLegend();
    if (this.#table.open) fillTable(this.#rows, this.spec.table());
  }

  /** Says why there is nothing to see; null: there is. */
  empty(text: string | null): void {
    this.#empty.hidden = text === null;
    setText(this.#empty, text ?? '');
    for (const part of [this.plots, this.#reading, this.#legend, this.#table]) part.hidden = text !== null;
    if (text !== null) this.caption('');
  }

  /** `hint` says what one can do: it is no part of a picture. */
  caption(text: string, hint = ''): void {
    this.#said = text;
    setText(this.#caption, `${text} ${hint}`.trim());
  }

  /** What stands in the place of the reading while nothing is pointed at. */
  summary(text: string): void {
    this.#summary = text;
    if (this.#read === null) setText(this.#reading, text);
  }

  /** What is under the cursor. */
  read(text: string | null): void {
    this.#read = text;
    setText(this.#reading, text ?? this.#summary);
  }

  legend(entries: readonly Entry[]): void {
    this.#entries = entries;
    const text = entries.map((entry) => entry.text).join('\n');
    if (text === this.#legendText) return;
    this.#legendText = text;
    const items = [...this.#legend.children];
    entries.forEach((entry, i) => {
      const item = items[i] ?? this.#legend.appendChild(h('li', {}, h('canvas', { 'aria-hidden': 'true' }), h('span')));
      setText(item.lastElementChild!, entry.text);
    });
    for (const item of items.slice(entries.length)) item.remove();
  }

  #paintLegend(): void {
    const theme = themeOf(this.figure);
    const ratio = devicePixelRatio || 1;
    const keys = this.#entries.map(({ key }) => key).join();
    const painted = this.#painted;
    if (painted?.theme === theme && painted.ratio === ratio && painted.keys === keys) return;
    this.#painted = { theme, ratio, keys };
    [...this.#legend.children].forEach((item, i) => {
      const canvas = item.firstElementChild as HTMLCanvasElement;
      canvas.width = Math.round(SWATCH.width * ratio);
      canvas.height = Math.round(SWATCH.height * ratio);
      const ctx = canvas.getContext('2d');
      if (ctx !== null) this.#entries[i]?.paint(ctx, theme, canvas.width, canvas.height, ratio);
    });
  }

  /** The parts of a picture. */
  parts(): { title: string; entries: readonly Entry[]; summary: string; caption: string; empty: string } {
    return {
      title: this.spec.title,
      entries: this.#entries,
      summary: this.#summary,
      caption: this.#said,
      empty: this.#empty.hidden ? '' : (this.#empty.textContent ?? ''),
    };
  }

  destroy(): void {
    this.#resized.disconnect();
    this.#stop();
    dropDraw(this.#draw);
    frames.delete(this.#host);
    this.figure.remove();
  }
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** A row of buttons of which one is pressed. */
export function choice<T extends string>(
  label: string,
  options: readonly (readonly [T, string])[],
  chosen: T,
  change: (value: T) => void,
): HTMLElement {
  const buttons = options.map(([value, text]) => {
    const button = h('button', { type: 'button', 'aria-pressed': String(value === chosen) }, text);
    button.addEventListener('click', () => {
      for (const each of buttons) each.setAttribute('aria-pressed', String(each === button));
      change(value);
    });
    return button;
  });
  return h('div', { class: 'chart-choice', role: 'group', 'aria-label': label }, ...buttons);
}

function fillTable(element: HTMLElement, { head, rows }: Table): void {
  const cells = (tag: 'th' | 'td', texts: readonly string[]) =>
    texts.map((text, i) => (tag === 'td' && i === 0 ? h('th', { scope: 'row' }, text) : h(tag, {}, text)));
  const top = h('tr', {}, ...head.map((text) => h('th', { scope: 'col' }, text)));
  const body = rows.map((row) => h('tr', {}, ...cells('td', row)));
  const table = h('table', {}, h('thead', {}, top), h('tbody', {}, ...body));
  const old = element.firstElementChild;
  if (old === null) element.append(table);
  else if (old.innerHTML !== table.innerHTML) old.replaceWith(table);
}
