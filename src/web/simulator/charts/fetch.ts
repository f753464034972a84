// What came from the store, in bytes a second, against the limits that the settings name.
import { bytesText, rateText } from '../../../sim/report-format.js';
import {
  type Limits,
  nearLimits,
  type Peak,
  peakOf,
  type RateLine,
  rateAt,
  rateLine,
  rateReading,
  rateTable,
  spanText,
} from './fetch-data.js';
import { Frame } from './frame.js';
import type { Labelled } from './labelled.js';
import { dot, line, type Pen, rule, words } from './pen.js';
import { Plot } from './plot.js';
import { lineEntry } from './swatches.js';
import { lineStyle } from './theme.js';
import { roundTop, straightTicks } from './ticks.js';
import { timeWindow } from './time-window.js';
import { followWindow, TIME_NAME, timeAxisTicks } from './zoom-tools.js';

/** CSS pixels of the plotting area. */
const HEIGHT = 200;
const LEAST_COLUMN = 4;
/** Room above the highest point for its name. */
const HEADROOM = 1.12;
const LIMIT_DASH = [8, 4, 2, 4];

const HOW =
  'Bytes that workers fetched from the store’s memory and SSD, counted when they arrived, divided by the time of the span in which they did. A span’s mean can stay below a limit that was reached within it. Limits are the settings’; the link’s holds for each worker by itself.';

export class FetchChart {
  readonly #frame: Frame;
  readonly #plot: Plot;
  readonly #stop: () => void;
  #list: readonly Labelled[] = [];
  #lines: RateLine[] = [];
  #limits: Limits = { total: 0, link: 0, ssd: 0 };
  #near: ReturnType<typeof nearLimits> = { drawn: [], said: '' };
  #peaks: (Peak | null)[] = [];
  #top = 1;
  #at: number | null = null;

  constructor(host: HTMLElement) {
    this.#plot = new Plot({
      label: () => `Fetch bandwidth. ${this.#peakText()} ${this.#near.said} Arrow keys read spans.`,
      height: () => HEIGHT,
      x: { name: () => TIME_NAME, range: () => this.#range(), ticks: timeAxisTicks, grid: false },
      y: {
        name: () => 'fetched, bytes a second',
        range: () => [0, this.#top],
        ticks: (from, to, most) => straightTicks(from, to, most, (rate) => (rate === 0 ? '0' : rateText(rate))),
        size: 66,
      },
      window: timeWindow,
      draw: (pen) => this.#paint(pen),
      read: (x) => {
        this.#at = x;
        this.#frame.read(this.#reading());
      },
      stops: () => longest(this.#lines).map((at, i, all) => (at + (all[i + 1] ?? at)) / 2),
    });
    this.#frame = new Frame(host, {
      title: 'Fetch bandwidth',
      howMade: HOW,
      draw: (width) => this.#draw(width),
      table: () => rateTable(this.#list),
      pictures: (pixels) => [this.#plot.picture(pixels)],
    });
    this.#frame.plots.append(this.#plot.element);
    this.#stop = followWindow(this.#frame, timeWindow);
  }

  show(list: readonly Labelled[], limits: Limits): void {
    this.#list = list;
    this.#limits = limits;
    const some = list.some(({ picture }) => picture.series.buckets > 0);
    this.#frame.empty(some ? null : 'Nothing has been simulated yet.');
    if (some) this.#frame.redraw();
  }

  destroy(): void {
    this.#stop();
    this.#plot.destroy();
    this.#frame.destroy();
  }

  #range(): [number, number] {
    const { from, to } = timeWindow.shown(Math.max(0, ...this.#list.map(({ picture }) => picture.now)));
    return [from, to];
  }

  #draw(width: number): void {
    const [from, to] = this.#range();
    this.#lines = this.#list.map(({ picture }) => rateLine(picture, from, to, width / LEAST_COLUMN));
    this.#peaks = this.#lines.map((each) => peakOf(each, from, to));
    const peak = Math.max(0, ...this.#peaks.map((each) => each?.rate ?? 0));
    this.#near = nearLimits(this.#limits, peak);
    this.#top = roundTop(Math.max(peak, ...this.#near.drawn.map(({ rate }) => rate)) * HEADROOM);
    this.#frame.legend(
      this.#list.map(({ label, picture }, i) =>
        lineEntry(`${label}: ${bytesText(picture.series.fetchedBytes.reduce((sum, bytes) => sum + bytes, 0))}`, i),
      ),
    );
    this.#frame.summary(this.#peakText());
    this.#frame.caption(this.#near.said);
    this.#plot.draw(width);
    this.#frame.read(this.#reading());
  }

  #peakText(): string {
    return this.#lines
      .map((each, i) => {
        const peak = this.#peaks[i] ?? null;
        const { label } = this.#list[i]!;
        return peak === null
          ? `${label}: nothing was fetched`
          : `${label}: peak ${rateText(peak.rate)} in ${spanText(each, peak.place)}`;
      })
      .join('; ');
  }

  #paint(pen: Pen): void {
    const { theme } = pen;
    this.#lines.forEach((each, i) => {
      line(pen, [...each.from, each.end], [...each.rates, each.rates.at(-1) ?? 0], lineStyle(theme, i), true);
    });
    // Names of limits stand at the end where no peak is named.
    const [from, to] = this.#range();
    const right = this.#peaks.every((peak) => peak === null || peak.at < (from + to) / 2);
    for (const { name, rate } of this.#near.drawn) {
      rule(pen, { y: rate }, { colour: theme.soft, dash: LIMIT_DASH, width: 1.5 });
      const x = pen.box.left + (right ? pen.box.width : 0);
      words(pen, `${name}: ${rateText(rate)}`, x, pen.y(rate) - 9 * pen.ratio, {
        align: right ? 'right' : 'left',
        colour: theme.soft,
      });
    }
    this.#peaks.forEach((peak, i) => {
      if (peak === null) return;
      const [x, y] = [pen.x(peak.at), pen.y(peak.rate)];
      dot(pen, x, y, lineStyle(theme, i).colour);
      if (this.#peaks.length === 1)
        words(pen, `peak ${rateText(peak.rate)}`, x + 8 * pen.ratio, y - 9 * pen.ratio, { bold: true });
    });
  }

  /** What is under the cursor; null: nothing. */
  #reading(): string | null {
    const at = this.#at;
    if (at === null) return null;
    const found = this.#lines.map((each) => rateAt(each, at));
    const first = found.findIndex((place) => place !== null);
    if (first < 0) return null;
    const rates = found.flatMap((place, i) =>
      place === null ? [] : [rateReading(this.#list[i]!.label, this.#lines[i]!, place)],
    );
    return `${spanText(this.#lines[first]!, found[first]!)}: ${rates.join(', ')}`;
  }
}

const longest = (lines: readonly RateLine[]): readonly number[] =>
  lines.reduce<readonly number[]>((most, { from }) => (from.length > most.length ? from : most), []);
