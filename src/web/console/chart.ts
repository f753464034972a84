// Hit rate over time as stacked bars, one tier on the other, with a mark at the best that any worker could have reached: a gap below the mark is what
// routing lost, and blank above it is work that nobody had in cache. Bars may be read with the pointer, or by arrow keys once the chart has focus.
import type { SecondsView } from '../../server/console-series.js';
import { type Bucket, buckets } from './buckets.js';
import { h, s } from './dom.js';
import { clockTime, plural, share } from './format.js';

/** Tiers from the bottom, with their names. */
export const TIERS = [
  ['device', 'GPU'],
  ['host', 'host'],
  ['disk', 'disk'],
  ['shared', 'store'],
] as const;

const HEIGHT = 180;
const MARGIN = { left: 44, right: 4, top: 6, bottom: 20 };
/** Least pixels of a bar, its gap included; from it follows how many seconds a bar stands for. */
const LEAST_BAR = 7;
const WIDTHS = [5, 10, 20, 30, 60];
const MINUTE = 60;
/** Pixels below which fewer minutes are named. */
const NARROW = 420;

interface Bar {
  readonly tiers: readonly SVGRectElement[];
  readonly best: SVGLineElement;
}

export class HitChart {
  readonly #svg = s('svg', { class: 'chart', role: 'img', tabindex: 0, height: HEIGHT });
  readonly #bars = s('g');
  readonly #axes = s('g', { class: 'axes' });
  readonly #cursor = s('line', { class: 'cursor', hidden: '', y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
  readonly #readout = h('p', { class: 'readout', 'aria-live': 'polite' });
  readonly #caption = h('figcaption');
  readonly #pool: Bar[] = [];
  #shown: readonly Bucket[] = [];
  #view: SecondsView | null = null;
  /** The bar that is read, by its beginning. */
  #at: number | null = null;

  constructor(figure: HTMLElement) {
    this.#svg.append(this.#axes, this.#bars, this.#cursor);
    figure.append(legend(), this.#svg, this.#caption, this.#readout);
    new ResizeObserver(() => this.#draw()).observe(figure);
    this.#svg.addEventListener('pointermove', (event) => this.#pointAt(event.offsetX));
    this.#svg.addEventListener('pointerleave', () => this.#read(null));
    this.#svg.addEventListener('blur', () => this.#read(null));
    this.#svg.addEventListener('keydown', (event) => this.#key(event));
  }

  show(view: SecondsView): void {
    this.#view = view;
    this.#draw();
  }

  #draw(): void {
    const width = this.#svg.parentElement?.clientWidth ?? 0;
    if (this.#view === null || width === 0) return;
    const inner = width - MARGIN.left - MARGIN.right;
    const seconds = this.#view.requests.length;
    const bar = WIDTHS.find((each) => (inner * each) / seconds >= LEAST_BAR) ?? MINUTE;
    this.#shown = buckets(this.#view, bar);
    const step = inner / Math.ceil(seconds / bar);
    this.#svg.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    this.#svg.setAttribute('width', String(width));
    this.#svg.setAttribute('aria-label', summary(this.#view));
    this.#drawAxes(width, inner);
    while (this.#pool.length < this.#shown.length) this.#pool.push(this.#newBar());
    const right = width - MARGIN.right;
    this.#pool.forEach((elements, i) => {
      const bucket = this.#shown[i];
      // The newest bar stands at the right edge, whatever part of it has passed.
      placeBar(elements, bucket, right - (this.#shown.length - i) * step, step);
    });
    this.#caption.textContent = sentence(this.#view);
    this.#read(this.#at);
  }

  #newBar(): Bar {
    const tiers = TIERS.map(([tier]) => s('rect', { class: `tier ${tier}` }));
    const best = s('line', { class: 'best' });
    this.#bars.append(...tiers, best);
    return { tiers, best };
  }

  #drawAxes(width: number, inner: number): void {
    const lines = [0, 0.5, 1].flatMap((part) => {
      const y = yOf(part);
      const line = s('line', { x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y });
      return [line, label(MARGIN.left - 6, y + 4, 'end', `${100 * part}%`)];
    });
    const minutes = (inner < NARROW ? [10, 5, 0] : [10, 8, 6, 4, 2, 0]).map((ago) => {
      const x = width - MARGIN.right - (inner * ago) / 10;
      const anchor = ago === 0 ? 'end' : ago === 10 ? 'start' : 'middle';
      return label(x, HEIGHT - 4, anchor, ago === 0 ? 'now' : `−${ago} min`);
    });
    this.#axes.replaceChildren(...lines, ...minutes);
  }

  // ---- reading single bars ----

  #pointAt(x: number): void {
    const index = this.#pool.findIndex(({ tiers: [rect] }, i) => {
      const left = Number(rect!.getAttribute('x'));
      return i < this.#shown.length && x >= left && x < left + Number(rect!.getAttribute('width')) + 1;
    });
    this.#read(this.#shown[index]?.from ?? null);
  }

  #key(event: KeyboardEvent): void {
    const last = this.#shown.length - 1;
    const found = this.#shown.findIndex(({ from }) => from === this.#at);
    const now = found < 0 ? last + 1 : found;
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last, Escape: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.#read(event.key === 'Escape' ? null : this.#shown[Math.min(last, Math.max(0, next))]!.from);
  }

  #read(at: number | null): void {
    const index = this.#shown.findIndex(({ from }) => from === at);
    const bucket = this.#shown[index];
    this.#at = bucket?.from ?? null;
    this.#cursor.toggleAttribute('hidden', bucket === undefined);
    const text = bucket === undefined ? '' : bucketWords(bucket);
    if (this.#readout.textContent !== text) this.#readout.textContent = text;
    if (bucket === undefined) return;
    const rect = this.#pool[index]!.tiers[0]!;
    const x = Number(rect.getAttribute('x')) + Number(rect.getAttribute('width')) / 2;
    this.#cursor.setAttribute('x1', String(x));
    this.#cursor.setAttribute('x2', String(x));
  }
}

function placeBar({ tiers, best }: Bar, bucket: Bucket | undefined, left: number, step: number): void {
  const blocks = bucket?.sums.blocks ?? 0;
  let part = 0;
  TIERS.forEach(([tier], i) => {
    const own = blocks > 0 ? bucket!.sums[tier] / blocks : 0;
    place(tiers[i]!, {
      x: left,
      width: Math.max(1, step - 1),
      y: yOf(part + own),
      height: yOf(part) - yOf(part + own),
    });
    part += own;
  });
  const y = yOf(blocks > 0 ? bucket!.sums.reachable / blocks : 0);
  place(best, { x1: left, x2: left + Math.max(1, step - 1), y1: y, y2: y });
  best.toggleAttribute('hidden', blocks === 0);
}

function place(element: SVGElement, attributes: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value.toFixed(2));
}

function yOf(part: number): number {
  return HEIGHT - MARGIN.bottom - Math.min(1, part) * (HEIGHT - MARGIN.top - MARGIN.bottom);
}

function label(x: number, y: number, anchor: string, text: string): SVGTextElement {
  const element = s('text', { x, y, 'text-anchor': anchor });
  element.textContent = text;
  return element;
}

function legend(): HTMLElement {
  const items = TIERS.map(([tier, name]) => h('li', {}, h('span', { class: `key ${tier}` }), name));
  return h('ul', { class: 'legend' }, ...items, h('li', {}, h('span', { class: 'key best' }), 'best reachable'));
}

function bucketWords({ from, seconds, sums }: Bucket): string {
  const when = `${clockTime(from * 1000)}, ${plural(seconds, 'second')}`;
  if (sums.blocks === 0) return `${when}: no request`;
  const tiers = TIERS.map(([tier, name]) => `${name} ${share(sums[tier], sums.blocks)}`).join(', ');
  const best = share(sums.reachable, sums.blocks);
  return `${when}: ${plural(sums.requests, 'request')}; ${tiers}; best reachable ${best}`;
}

function totals(view: SecondsView): { blocks: number; hit: number; achieved: number; reachable: number } {
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
  const hit = sum(TIERS.map(([tier]) => sum(view[tier])));
  return { blocks: sum(view.blocks), hit, achieved: sum(view.achieved), reachable: sum(view.reachable) };
}

function summary(view: SecondsView): string {
  const { blocks, hit } = totals(view);
  const tiers = TIERS.map(
    ([tier, name]) =>
      `${name} ${share(
        view[tier].reduce((a, b) => a + b, 0),
        blocks,
      )}`,
  );
  return `Hit rate of the last ten minutes: ${share(hit, blocks)} (${tiers.join(', ')}). Arrow keys read single bars.`;
}

/** Is the workload cold, or did routing lose? */
function sentence(view: SecondsView): string {
  const { blocks, achieved, reachable } = totals(view);
  if (blocks === 0) return 'No request has ended in the last ten minutes.';
  const cold = share(blocks - reachable, blocks);
  const lost = share(reachable - achieved, blocks);
  return `Of all prompt blocks ${share(achieved, blocks)} were there to reuse where they went, ${cold} were nowhere (a cold workload), and ${lost} elsewhere only (lost to routing).`;
}
