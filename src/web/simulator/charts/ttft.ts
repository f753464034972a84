// How long requests waited for their first token, or for their last: one line a simulation.
import type { Quantiles } from '../../../sim/observed/types.js';
import { shareText, timeText } from '../../../sim/report-format.js';
import { choice, Frame } from './frame.js';
import type { Labelled } from './labelled.js';
import { dot, line, type Pen, rule, words } from './pen.js';
import { Plot } from './plot.js';
import { lineEntry } from './swatches.js';
import { lineStyle } from './theme.js';
import { percentTicks, roundTop, timeLogTicks } from './ticks.js';
import {
  bucketShares,
  cumulative,
  distributionTable,
  logEdges,
  PERCENTILES,
  percentileText,
  quantileAt,
  timeRange,
  withinReading,
} from './ttft-data.js';

/** CSS pixels of the plotting area. */
const HEIGHT = 210;
/** Where the arrow keys stop. */
const STOPS = 60;

const HOW =
  'Of every request that got its first (or last) token: the time from its arrival at the router to that token. The line says which part of requests took at most so long; it is drawn through equally spaced quantiles, straight between two of them. A histogram’s buckets are equally wide on the logarithmic axis, 12 to a tenfold. Times of 0 stand at the left edge.';

type Measure = 'ttft' | 'latency';
const NAMES: Readonly<Record<Measure, string>> = { ttft: 'time to first token', latency: 'latency' };

interface Line {
  readonly label: string;
  readonly quantiles: Quantiles;
}

export class TtftChart {
  readonly #frame: Frame;
  readonly #plot: Plot;
  #list: readonly Labelled[] = [];
  #lines: Line[] = [];
  #measure: Measure = 'ttft';
  #histogram = false;
  #range: readonly [number, number] = [1, 1000];
  #edges: number[] = [];
  #shares: number[][] = [];
  #top = 1;
  #at: number | null = null;

  constructor(host: HTMLElement) {
    this.#plot = new Plot({
      label: () =>
        `Distribution of ${NAMES[this.#measure]}. ${this.#lines
          .map(({ label, quantiles }) => `${label}: ${percentileText(quantiles)}`)
          .join('; ')}. Arrow keys read times.`,
      height: () => HEIGHT,
      x: {
        name: () => `${NAMES[this.#measure]}, logarithmic`,
        log: true,
        range: () => this.#range,
        ticks: timeLogTicks,
      },
      y: {
        name: () => (this.#histogram ? 'requests in the bucket' : 'requests within the time'),
        range: () => [0, this.#top],
        ticks: percentTicks,
      },
      draw: (pen) => this.#paint(pen),
      read: (x) => {
        this.#at = x;
        this.#frame.read(this.#reading());
      },
      stops: () => {
        const [low, high] = this.#range;
        return Array.from({ length: STOPS + 1 }, (_, i) => low * (high / low) ** (i / STOPS));
      },
    });
    this.#frame = new Frame(host, {
      title: 'How long requests waited',
      howMade: HOW,
      draw: (width) => this.#draw(width),
      table: () => distributionTable(this.#lines),
      pictures: (pixels) => [this.#plot.picture(pixels)],
    });
    const measures = [
      ['ttft', 'First token'],
      ['latency', 'Latency'],
    ] as const;
    const forms = [
      ['cumulative', 'Cumulative'],
      ['histogram', 'Histogram'],
    ] as const;
    this.#frame.tools.append(
      choice('What is measured', measures, this.#measure, (measure) => {
        this.#measure = measure;
        this.#frame.redraw();
      }),
      choice('How it is drawn', forms, 'cumulative', (form) => {
        this.#histogram = form === 'histogram';
        this.#frame.redraw();
      }),
    );
    this.#frame.plots.append(this.#plot.element);
  }

  show(list: readonly Labelled[]): void {
    this.#list = list;
    const some = list.some(({ picture }) => picture.ttft.length > 0 || picture.latency.length > 0);
    this.#frame.empty(some ? null : 'No request has got a token yet.');
    if (some) this.#frame.redraw();
  }

  destroy(): void {
    this.#plot.destroy();
    this.#frame.destroy();
  }

  #draw(width: number): void {
    this.#lines = this.#list.map(({ label, picture }) => ({ label, quantiles: picture[this.#measure] }));
    this.#range = timeRange(this.#lines.map(({ quantiles }) => quantiles));
    if (this.#histogram) {
      this.#edges = logEdges(this.#range);
      this.#range = [this.#edges[0]!, this.#edges.at(-1)!];
      this.#shares = this.#lines.map(({ quantiles }) => bucketShares(quantiles, this.#edges));
      this.#top = roundTop(Math.max(0, ...this.#shares.flat()));
    } else this.#top = 1;
    this.#frame.legend(
      this.#lines.map(({ label, quantiles }, i) => lineEntry(`${label}: ${percentileText(quantiles)}`, i)),
    );
    this.#frame.summary(
      this.#histogram
        ? 'Dots on the axis mark p50, p90 and p99: the time within which so many requests were answered.'
        : 'Dots mark p50, p90 and p99: the time within which so many requests were answered.',
    );
    this.#frame.caption(
      this.#histogram
        ? 'Buckets are equally wide on the logarithmic axis.'
        : 'Further left is faster; a line above another was faster for that part of the requests.',
    );
    this.#plot.draw(width);
    this.#frame.read(this.#reading());
  }

  #paint(pen: Pen): void {
    if (this.#histogram) this.#paintHistogram(pen);
    else this.#paintCumulative(pen);
  }

  #paintCumulative(pen: Pen): void {
    const { theme } = pen;
    for (const part of PERCENTILES) rule(pen, { y: part }, { colour: theme.soft, dash: [1, 3], width: 1 });
    this.#lines.forEach(({ quantiles }, i) => {
      const { xs, ys } = cumulative(quantiles, this.#range);
      line(pen, xs, ys, lineStyle(theme, i));
    });
    this.#lines.forEach(({ quantiles }, i) => {
      if (quantiles.length === 0) return;
      for (const part of PERCENTILES) {
        const time = Math.max(this.#range[0], quantileAt(quantiles, part));
        dot(pen, pen.x(time), pen.y(part), lineStyle(theme, i).colour);
      }
    });
    for (const part of PERCENTILES)
      words(pen, `p${Math.round(part * 100)}`, pen.box.left + 4 * pen.ratio, pen.y(part) + 8 * pen.ratio, {
        colour: theme.soft,
      });
  }

  #paintHistogram(pen: Pen): void {
    this.#shares.forEach((shares, i) => {
      if (shares.length > 0) line(pen, this.#edges, [...shares, shares.at(-1)!], lineStyle(pen.theme, i), true);
    });
    this.#lines.forEach(({ quantiles }, i) => {
      if (quantiles.length === 0) return;
      const { colour } = lineStyle(pen.theme, i);
      for (const part of PERCENTILES)
        dot(pen, pen.x(Math.max(this.#range[0], quantileAt(quantiles, part))), pen.y(0), colour);
    });
  }

  /** What is under the cursor; null: nothing. */
  #reading(): string | null {
    const at = this.#at;
    if (at === null) return null;
    if (!this.#histogram) return withinReading(at, this.#lines);
    const bucket = this.#edges.findIndex((edge, i) => at >= edge && at < (this.#edges[i + 1] ?? edge));
    if (bucket < 0) return null;
    const parts = this.#lines.map(({ label }, i) => `${label} ${shareText(this.#shares[i]![bucket] ?? 0)}`);
    return `${timeText(this.#edges[bucket]!)} to ${timeText(this.#edges[bucket + 1]!)}: ${parts.join(', ')}`;
  }
}
