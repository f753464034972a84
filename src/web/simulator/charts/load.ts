// How busy each worker was over time, as a heat map of one row a worker, and below it how many requests waited.
import { Frame } from './frame.js';
import { cellsImage, rampOf } from './heat-paint.js';
import type { Labelled } from './labelled.js';
import {
  type Heat,
  heatOf,
  labelledRows,
  loadReading,
  loadSummary,
  loadTable,
  rowName,
  type WaitLine,
  waitLine,
} from './load-data.js';
import { line, type Pen } from './pen.js';
import { Plot } from './plot.js';
import { lineEntry } from './swatches.js';
import { lineStyle } from './theme.js';
import { countTicks, roundTop } from './ticks.js';
import { timeWindow } from './time-window.js';
import { followWindow, TIME_NAME, timeAxisTicks } from './zoom-tools.js';

/** CSS pixels. */
const ROW = { least: 2, most: 20 } as const;
const MAP = { least: 60, most: 256 } as const;
const LEAST_COLUMN = 3;
const LABEL = 16;
const WAITING_HEIGHT = 80;
const Y_SIZE = 62;

const HOW =
  'Each cell is a worker in a span of time: the part of the span in which it computed. Where there are more workers than rows can be seen, neighbours share one, and it shows their mean. Running, waiting and resident blocks are as they were at the span’s end.';

interface Row {
  readonly plot: Plot;
  heat: Heat | null;
}

export class LoadChart {
  readonly #frame: Frame;
  readonly #rows: Row[];
  readonly #waiting: Plot;
  readonly #stop: () => void;
  #list: readonly Labelled[] = [];
  #waits: WaitLine[] = [];
  #summaries: string[] = [];
  #top = 1;
  #at: number | null = null;
  /** Which map and row are pointed at. */
  #on: { readonly map: number; readonly row: number } | null = null;

  constructor(host: HTMLElement) {
    this.#rows = [0, 1].map((place) => this.#row(place));
    this.#waiting = new Plot({
      label: () => `Requests that wait at all workers together. Arrow keys read spans.`,
      height: () => WAITING_HEIGHT,
      x: { name: () => TIME_NAME, range: () => this.#range(), ticks: timeAxisTicks, grid: false },
      y: {
        name: () => 'requests that wait, all workers',
        range: () => [0, this.#top],
        ticks: countTicks,
        size: Y_SIZE,
      },
      window: timeWindow,
      draw: (pen) => {
        this.#waits.forEach(({ at, waiting }, i) => {
          line(pen, [0, ...at], [0, ...waiting], lineStyle(pen.theme, i));
        });
      },
      read: (x) => {
        this.#at = x;
        this.#frame.read(this.#reading());
      },
      stops: () => this.#stops(0),
    });
    this.#frame = new Frame(host, {
      title: 'Load of workers',
      howMade: HOW,
      draw: (width) => this.#draw(width),
      table: () => loadTable(this.#list),
      pictures: (pixels) => [...this.#shown(), { plot: this.#waiting }].map(({ plot }) => plot.picture(pixels)),
    });
    this.#frame.plots.append(...this.#rows.map(({ plot }) => plot.element), this.#waiting.element);
    this.#stop = followWindow(this.#frame, timeWindow);
  }

  show(a: Labelled | null, b: Labelled | null = null): void {
    this.#list = [a, b].filter((each) => each !== null);
    const some = this.#list.some(({ picture }) => picture.series.buckets > 0);
    this.#frame.empty(some ? null : 'Nothing has been simulated yet.');
    if (some) this.#frame.redraw();
  }

  destroy(): void {
    this.#stop();
    for (const { plot } of this.#rows) plot.destroy();
    this.#waiting.destroy();
    this.#frame.destroy();
  }

  #row(place: number): Row {
    const plot = new Plot({
      label: () => {
        const one = this.#list[place];
        return one === undefined
          ? ''
          : `${one.label}. ${this.#summaries[place] ?? ''}. Arrow keys read spans and workers.`;
      },
      height: () => mapHeight(this.#list[place]?.picture.series.workers.length ?? 0),
      x: { name: () => TIME_NAME, range: () => this.#range(), ticks: timeAxisTicks, grid: false },
      y: {
        name: () => `${this.#list[place]?.label ?? ''}: busy share by worker`,
        downward: true,
        range: () => [0, this.#rows[place]!.heat?.rows || 1],
        ticks: () => this.#rowTicks(place),
        grid: false,
        size: Y_SIZE,
      },
      quiet: () => true,
      window: timeWindow,
      draw: (pen) => this.#paint(pen, place),
      read: (x, y) => {
        this.#at = x;
        const heat = this.#rows[place]!.heat;
        if (y !== null && heat !== null)
          this.#on = { map: place, row: Math.max(0, Math.min(heat.rows - 1, Math.floor(y))) };
        else if (x === null && this.#on?.map === place) this.#on = null;
        this.#frame.read(this.#reading());
      },
      stops: () => this.#stops(place),
      rows: (by) => {
        const rows = this.#rows[place]!.heat?.rows ?? 1;
        const now = this.#on?.map === place ? this.#on.row : by > 0 ? -1 : rows;
        this.#on = { map: place, row: Math.max(0, Math.min(rows - 1, now + by)) };
        this.#frame.read(this.#reading());
      },
    });
    return { plot, heat: null };
  }

  #shown(): Row[] {
    return this.#rows.slice(0, this.#list.length);
  }

  #range(): [number, number] {
    const { from, to } = timeWindow.shown(Math.max(0, ...this.#list.map(({ picture }) => picture.now)));
    return [from, to];
  }

  #rowTicks(place: number): { at: number; text: string }[] {
    const heat = this.#rows[place]!.heat;
    if (heat === null) return [];
    const most = mapHeight(heat.workers) / LABEL;
    return labelledRows(heat.rows, most).map((row) => ({
      at: row + 0.5,
      text: rowName(heat, row).replace(/^workers? /, ''),
    }));
  }

  #stops(place: number): number[] {
    const columns = this.#rows[place]!.heat?.columns;
    return columns === undefined
      ? []
      : Array.from(
          { length: columns.count },
          (_, i) => (i * columns.step + Math.min(columns.end, (i + 1) * columns.step)) / 2,
        );
  }

  #draw(width: number): void {
    const [from, to] = this.#range();
    this.#rows.forEach((row, i) => {
      const one = this.#list[i];
      row.plot.element.hidden = one === undefined;
      row.heat = null;
      if (one === undefined) return;
      const workers = one.picture.series.workers.length;
      const inner = Math.max(1, width - Y_SIZE - 30);
      row.heat = heatOf(one.picture, from, to, inner / LEAST_COLUMN, Math.floor(mapHeight(workers) / ROW.least));
    });
    this.#summaries = this.#list.map(({ picture }) => loadSummary(picture));
    this.#waits = this.#list.map(({ picture }) => waitLine(picture, from, to, width / LEAST_COLUMN));
    this.#top = roundTop(Math.max(1, ...this.#waits.flatMap(({ waiting }) => waiting)));
    this.#frame.legend([
      {
        text: 'busy 0 % to 100 %',
        key: 'ramp',
        paint: (ctx, theme, w, h, ratio) => {
          const ramp = rampOf(theme);
          const shades = Float32Array.from({ length: w }, (_, i) => i / (w - 1));
          const image = cellsImage(shades, w, 1, ramp);
          if (image !== null) ctx.drawImage(image, 0, 0, w, h);
          ctx.strokeStyle = theme.soft;
          ctx.lineWidth = ratio;
          ctx.strokeRect(ratio / 2, ratio / 2, w - ratio, h - ratio);
        },
      },
      ...this.#list.map(({ label }, i) => lineEntry(`${label}: waiting`, i)),
    ]);
    const merged = Math.max(1, ...this.#shown().map(({ heat }) => heat?.merged ?? 1));
    this.#frame.caption(
      merged > 1
        ? `Each row is the mean of ${merged} workers: there are more than can be seen one by one.`
        : 'One row a worker.',
    );
    this.#frame.summary(
      this.#list.map(({ label }, i) => `${this.#list.length > 1 ? `${label}: ` : ''}${this.#summaries[i]}`).join('\n'),
    );
    for (const { plot } of this.#shown()) plot.draw(width);
    this.#waiting.draw(width);
    this.#frame.read(this.#reading());
  }

  #paint(pen: Pen, place: number): void {
    const heat = this.#rows[place]!.heat;
    if (heat === null) return;
    const image = cellsImage(heat.busy, heat.width, heat.rows, rampOf(pen.theme));
    if (image === null) return;
    const { ctx } = pen;
    const { step, end } = heat.columns;
    // The last column is as wide as the time that has passed of it.
    const whole = Math.max(0, Math.min(heat.width, Math.floor(end / step) - heat.first));
    ctx.imageSmoothingEnabled = false;
    const [top, bottom] = [pen.y(0), pen.y(heat.rows)];
    const part = (from: number, to: number, until: number) => {
      if (to <= from) return;
      const [left, right] = [pen.x((heat.first + from) * step), pen.x(until)];
      ctx.drawImage(image, from, 0, to - from, heat.rows, left, top, right - left, bottom - top);
    };
    part(0, whole, (heat.first + whole) * step);
    part(whole, heat.width, Math.max((heat.first + whole) * step, end));
  }

  /** What is under the cursor; null: nothing. */
  #reading(): string | null {
    const at = this.#at;
    if (at === null) return null;
    const texts = this.#shown().flatMap(({ heat }, i) => {
      const column = heat === null ? -1 : Math.floor(at / heat.columns.step);
      if (heat === null || column < heat.first || column >= heat.first + heat.width) return [];
      const { label, picture } = this.#list[i]!;
      const row = this.#on?.map === i && this.#on.row < heat.rows ? this.#on.row : null;
      return [`${this.#list.length > 1 ? `${label}: ` : ''}${loadReading(picture, heat, column, row)}`];
    });
    return texts.length === 0 ? null : texts.join('\n');
  }
}

const mapHeight = (workers: number): number => Math.max(MAP.least, Math.min(MAP.most, workers * ROW.most));
