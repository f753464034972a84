// Where prompt blocks came from over time: stacked areas that add up to 100 %, and a dashed line at what the best choice could have hit.
import { Frame } from './frame.js';
import type { Labelled } from './labelled.js';
import { line, type Pen } from './pen.js';
import { Plot } from './plot.js';
import { dashedEntry, REACHABLE_DASH, tierEntry } from './swatches.js';
import { percentTicks } from './ticks.js';
import { TIERS, tierFill } from './tier-paint.js';
import {
  type TierColumn,
  tierColumnAt,
  tierColumns,
  tierLegend,
  tierReading,
  tierSummary,
  tierTable,
  wholeRun,
} from './tiers-data.js';
import { timeWindow } from './time-window.js';
import { followWindow, TIME_NAME, timeAxisTicks, ZOOM_HINT } from './zoom-tools.js';

/** CSS pixels of a plotting area. */
const HEIGHT = 180;
const HEIGHT_OF_TWO = 120;
/** CSS pixels below which a column would not be seen as one. */
const LEAST_COLUMN = 8;

const HOW =
  'Each column is a span of time. Of the full prompt blocks of all requests that a worker began in it, the share that it found on its own GPU, restored from the store’s memory or SSD, or had to compute. Spans in which nothing was begun stay blank. Reachable is what the best choice of worker could have hit, for the requests that arrived in the span.';

interface Row {
  readonly plot: Plot;
  columns: TierColumn[];
}

export class TiersChart {
  readonly #frame: Frame;
  readonly #rows: Row[];
  readonly #stop: () => void;
  readonly #compare: boolean;
  #list: readonly Labelled[] = [];
  #at: number | null = null;

  constructor(host: HTMLElement, { compare = true }: { readonly compare?: boolean } = {}) {
    this.#compare = compare;
    this.#rows = [0, 1].map((place) => this.#row(place));
    this.#frame = new Frame(host, {
      title: 'Where prompt blocks came from',
      howMade: HOW,
      draw: (width) => this.#draw(width),
      table: () => tierTable(this.#list),
      pictures: (pixels) => this.#shown().map(({ plot }) => plot.picture(pixels)),
    });
    for (const { plot } of this.#rows) this.#frame.plots.append(plot.element);
    this.#stop = followWindow(this.#frame, timeWindow);
  }

  show(a: Labelled | null, b: Labelled | null = null): void {
    this.#list = [a, this.#compare ? b : null].filter((each) => each !== null);
    const some = this.#list.some(({ picture }) => picture.series.buckets > 0);
    this.#frame.empty(some ? null : 'Nothing has been simulated yet.');
    if (some) this.#frame.redraw();
  }

  destroy(): void {
    this.#stop();
    for (const { plot } of this.#rows) plot.destroy();
    this.#frame.destroy();
  }

  #row(place: number): Row {
    const plot = new Plot({
      label: () => {
        const one = this.#list[place];
        return one === undefined ? '' : `${one.label}: ${tierSummary(wholeRun(one.picture))}. Arrow keys read spans.`;
      },
      height: () => (this.#list.length > 1 ? HEIGHT_OF_TWO : HEIGHT),
      x: { name: () => TIME_NAME, range: () => this.#range(), ticks: timeAxisTicks, grid: false },
      quiet: () => place < this.#list.length - 1,
      y: {
        name: () => `${this.#list[place]?.label ?? ''}: share of prompt blocks`,
        range: () => [0, 1],
        ticks: percentTicks,
      },
      window: timeWindow,
      draw: (pen) => drawTiers(pen, this.#rows[place]!.columns),
      read: (x) => {
        this.#at = x;
        this.#frame.read(this.#reading());
      },
      stops: () => this.#rows[place]!.columns.map(({ from, to }) => (from + to) / 2),
    });
    return { plot, columns: [] };
  }

  #shown(): Row[] {
    return this.#rows.slice(0, this.#list.length);
  }

  #range(): [number, number] {
    const { from, to } = timeWindow.shown(Math.max(0, ...this.#list.map(({ picture }) => picture.now)));
    return [from, to];
  }

  #draw(width: number): void {
    const [from, to] = this.#range();
    const wholes = this.#list.map(({ picture }) => wholeRun(picture));
    this.#rows.forEach((row, i) => {
      const one = this.#list[i];
      row.plot.element.hidden = one === undefined;
      if (one === undefined) return;
      row.columns = tierColumns(one.picture, from, to, width / LEAST_COLUMN);
    });
    this.#frame.legend([
      ...TIERS.map((tier, i) => tierEntry(tierLegend(wholes, i), tier)),
      dashedEntry(tierLegend(wholes, 'reachable')),
    ]);
    const order =
      this.#list.length > 1 ? `Shares of the whole run: ${this.#list.map(({ label }) => label).join(' | ')}. ` : '';
    this.#frame.caption(`${order}Blank: nothing was begun.`, ZOOM_HINT);
    this.#frame.summary(wholes.map((whole, i) => `${this.#named(i)}${tierSummary(whole)}.`).join('\n'));
    for (const { plot } of this.#shown()) plot.draw(width);
    this.#frame.read(this.#reading());
  }

  /** Which of two runs it is. */
  #named(place: number): string {
    return this.#list.length > 1 ? `${this.#list[place]!.label}: ` : '';
  }

  /** What is under the cursor; null: nothing. */
  #reading(): string | null {
    const at = this.#at;
    if (at === null) return null;
    const found = this.#shown().map(({ columns }) => tierColumnAt(columns, at));
    if (found.every((column) => column === null)) return null;
    return found
      .map((column, i) => `${this.#named(i)}${column === null ? 'not reached' : tierReading(column)}`)
      .join('\n');
  }
}

function drawTiers(pen: Pen, columns: readonly TierColumn[]): void {
  const { ctx, theme, x, y, ratio } = pen;
  const fills = TIERS.map((tier) => tierFill(ctx, theme, tier, ratio));
  for (const { from, to, blocks, shares } of columns) {
    if (blocks === 0) continue;
    const [left, right] = [Math.round(x(from)), Math.round(x(to))];
    let below = 0;
    shares.forEach((share, i) => {
      const [top, bottom] = [Math.round(y(below + share)), Math.round(y(below))];
      ctx.fillStyle = fills[i]!;
      ctx.fillRect(left, top, Math.max(1, right - left), bottom - top);
      // A fine edge, so that neighbours of like colour part.
      ctx.fillStyle = theme.panel;
      if (i < shares.length - 1 && share > 0) ctx.fillRect(left, top, Math.max(1, right - left), Math.max(1, ratio));
      below += share;
    });
  }
  const last = columns.at(-1);
  if (last === undefined) return;
  const xs = [...columns.map(({ from }) => from), last.to];
  const ys = [...columns.map(({ reachable }) => reachable), last.reachable];
  line(pen, xs, ys, { colour: theme.panel, dash: [], width: 4 }, true);
  line(pen, xs, ys, { colour: theme.ink, dash: REACHABLE_DASH, width: 2 }, true);
}
