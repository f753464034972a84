// Hit share against store size, its knee, and a line that one drags to ask what another size would bring.
import { kneeOf } from '../../../sim/knee.js';
import { CURVE_NOTE } from '../../../sim/report-curve.js';
import { bytesText, countText, shareText } from '../../../sim/report-format.js';
import type { CurveReport } from '../../../sim/report-types.js';
import {
  bytesRange,
  type CurveLine,
  capacityReading,
  capacityTable,
  curveLine,
  keyMove,
  kneeText,
  roundBytes,
  type Simulated,
  shareAt,
  simulatedReading,
  spread,
} from './capacity-data.js';
import { Frame } from './frame.js';
import { dot, line, type Pen, rule, words } from './pen.js';
import { Plot } from './plot.js';
import { Slider } from './slider.js';
import { dotEntry, lineEntry } from './swatches.js';
import { lineStyle } from './theme.js';
import { bytesLogTicks, percentTicks } from './ticks.js';

/** CSS pixels of the plotting area. */
const HEIGHT = 230;
const STORE_DASH = [3, 3];
/** CSS pixels between names below each other, and from the cursor to a dot that it is at. */
const NAME_GAP = 14;
const NEAR = 8;
/** Names beside the dots of one size. */
const MOST_NAMES = 6;

export interface CapacityOptions {
  /** Bytes of the configured store. */
  readonly storeBytes: number;
  readonly other?: CurveReport | null;
  /** Sizes that were simulated, and the share that hit there. */
  readonly simulated?: readonly Simulated[];
}

export interface CapacityEvents {
  /** Where the line was moved to; `final` when it was let go. */
  readonly onCapacity: (bytes: number, final: boolean) => void;
}

export class CapacityChart {
  readonly #frame: Frame;
  readonly #plot: Plot;
  readonly #slider: Slider;
  readonly #events: CapacityEvents;
  #report: CurveReport | null = null;
  #options: CapacityOptions = { storeBytes: 0 };
  #line: CurveLine = { bytes: [], shares: [] };
  #other: CurveLine | null = null;
  #knee: number | null = null;
  /** Whether the curve is that of a run before. */
  #former = false;
  #range: readonly [number, number] = [1e9, 1e12];
  #bytes = 0;

  constructor(host: HTMLElement, events: CapacityEvents) {
    this.#events = events;
    this.#plot = new Plot({
      label: () => `Capacity curve. ${this.#kneeSentence()}`,
      height: () => HEIGHT,
      x: { name: () => 'store size, logarithmic', log: true, range: () => this.#range, ticks: bytesLogTicks },
      y: { name: () => 'block references that hit', range: () => [0, 1], ticks: percentTicks },
      draw: (pen) => this.#paint(pen),
      read: (x) => this.#frame.read(x === null || this.#slider.busy ? null : this.#reading(x)),
    });
    this.#slider = new Slider(this.#plot.over, {
      label: 'Store size',
      valueAt: (left) => this.#plot.valueAt(left),
      key: (key) => keyMove(key, this.#bytes, this.#range),
      moved: (bytes, final) => this.#move(bytes, final),
    });
    this.#frame = new Frame(host, {
      title: 'Hits against store size',
      howMade: CURVE_NOTE,
      draw: (width) => this.#draw(width),
      table: () =>
        this.#report === null
          ? { head: [], rows: [] }
          : capacityTable(this.#line, this.#report, this.#other, this.#options.simulated ?? []),
      pictures: (pixels) => [this.#plot.picture(pixels)],
    });
    // The line takes the keys; the plot around it has none.
    this.#plot.element.removeAttribute('tabindex');
    this.#plot.element.setAttribute('role', 'group');
    this.#frame.plots.append(this.#plot.element);
    this.show(null, { storeBytes: 0 });
  }

  show(curve: CurveReport | null, options: CapacityOptions): void {
    if (options.storeBytes !== this.#options.storeBytes && !this.#slider.busy) this.#bytes = options.storeBytes;
    this.#options = options;
    // Until a run has its curve, that of the run before stays: the line keeps the focus that it may have.
    this.#former = curve === null;
    if (curve !== null && curve !== this.#report) {
      this.#report = curve;
      this.#line = curveLine(curve);
      this.#knee = kneeOf(curve)?.bytes ?? null;
    }
    this.#other = options.other ? curveLine(options.other) : null;
    this.#frame.empty(this.#line.bytes.length > 0 ? null : 'The curve comes when a trace has been read to its end.');
    if (this.#line.bytes.length === 0) return;
    const marks = [options.storeBytes, ...(options.simulated ?? []).map(({ bytes }) => bytes)];
    this.#range = bytesRange(this.#other === null ? [this.#line] : [this.#line, this.#other], marks);
    const [low, high] = this.#range;
    if (!(this.#bytes > 0)) this.#bytes = this.#knee ?? high;
    this.#bytes = Math.max(low, Math.min(high, this.#bytes));
    this.#frame.redraw();
  }

  destroy(): void {
    this.#plot.destroy();
    this.#frame.destroy();
  }

  #move(bytes: number, final: boolean): void {
    const [low, high] = this.#range;
    this.#bytes = Math.max(low, Math.min(high, roundBytes(bytes)));
    this.#place();
    this.#frame.redraw();
    this.#events.onCapacity(this.#bytes, final);
  }

  #place(): void {
    const text = capacityReading(this.#line, this.#bytes);
    const [least, most] = this.#range;
    this.#slider.place({ value: this.#bytes, least, most, text, left: this.#plot.leftOf(this.#bytes) });
    this.#frame.summary(`${text[0]!.toUpperCase()}${text.slice(1)}.`);
    if (this.#slider.busy) this.#frame.read(null);
  }

  #kneeSentence(): string {
    if (this.#knee === null) return 'The curve has no knee.';
    const text = kneeText(this.#line, this.#knee);
    return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
  }

  #draw(width: number): void {
    const report = this.#report;
    if (report === null) return;
    const simulated = this.#options.simulated ?? [];
    this.#frame.legend([
      lineEntry(`${report.trace}: at most ${shareText(this.#line.shares.at(-1) ?? 0)}`, 0),
      ...(this.#other === null
        ? []
        : [lineEntry(`other run: at most ${shareText(this.#other.shares.at(-1) ?? 0)}`, 1)]),
      ...(simulated.length === 0 ? [] : [dotEntry('simulated')]),
    ]);
    const { references, distinct, idTokens, bytesPerId, partial } = report;
    const former = this.#former
      ? 'Still the curve of the run before: the new one comes when its trace has been read. '
      : '';
    const cut = partial ? '; the trace was cut short' : '';
    this.#frame.caption(
      `${former}${this.#kneeSentence()} ${countText(references)} references to ${countText(distinct)} blocks of ${idTokens} tokens, ${bytesText(bytesPerId)} each${cut}.`,
      'Drag the line, or move it by arrow keys.',
    );
    this.#plot.draw(width);
    this.#place();
  }

  #paint(pen: Pen): void {
    const { theme, ratio, box } = pen;
    const { storeBytes, simulated = [] } = this.#options;
    rule(pen, { x: this.#bytes }, { colour: theme.accent, dash: [], width: 2 });
    if (storeBytes > 0) rule(pen, { x: storeBytes }, { colour: theme.soft, dash: STORE_DASH, width: 1.5 });
    const draw = ({ bytes, shares }: CurveLine, place: number) =>
      line(pen, [...bytes, this.#range[1]], [...shares, shares.at(-1) ?? 0], lineStyle(theme, place));
    if (this.#other !== null) draw(this.#other, 1);
    draw(this.#line, 0);
    this.#paintSimulated(pen, simulated);
    if (storeBytes > 0)
      words(
        pen,
        `configured ${bytesText(storeBytes)}`,
        pen.x(storeBytes) + 5 * ratio,
        box.top + box.height - 10 * ratio,
        {
          colour: theme.soft,
        },
      );
    if (this.#knee !== null) {
      const [x, y] = [pen.x(this.#knee), pen.y(shareAt(this.#line, this.#knee))];
      dot(pen, x, y, lineStyle(theme, 0).colour, 5);
      words(pen, `knee ${bytesText(this.#knee)}`, x - 8 * ratio, y - 12 * ratio, { align: 'right', bold: true });
    }
    const share = shareAt(this.#line, this.#bytes);
    const x = pen.x(this.#bytes);
    dot(pen, x, pen.y(share), theme.accent);
    // Beside the grip, on the side that has room.
    const right = x < box.left + box.width / 2;
    words(pen, `${bytesText(this.#bytes)}: ${shareText(share)}`, x + (right ? 12 : -12) * ratio, box.top + 12 * ratio, {
      align: right ? 'left' : 'right',
      bold: true,
    });
  }

  /** Dots, and beside those of one size their names; more names than fit are left to the cursor. */
  #paintSimulated(pen: Pen, simulated: readonly Simulated[]): void {
    const { theme, ratio } = pen;
    for (const size of new Set(simulated.map(({ bytes }) => bytes))) {
      const there = simulated.filter(({ bytes }) => bytes === size).sort((a, b) => b.share - a.share);
      const ys = there.map(({ share }) => pen.y(share));
      const named = spread(ys, NAME_GAP * ratio);
      const x = pen.x(size);
      // Left of a rising curve there is room above it, and right of it below.
      const mean = there.reduce((sum, { share }) => sum + share, 0) / there.length;
      const left = mean >= shareAt(this.#line, size);
      there.forEach(({ label }, i) => {
        dot(pen, x, ys[i]!, theme.ink, 3.5);
        if (there.length > MOST_NAMES) return;
        const align = left ? 'right' : 'left';
        words(pen, label, x + (left ? -8 : 8) * ratio, named[i]!, { colour: theme.soft, align });
      });
    }
  }

  #reading(bytes: number): string {
    const [low, high] = this.#range;
    const factor = (high / low) ** (NEAR / Math.max(1, this.#plot.over.clientWidth));
    return capacityReading(this.#line, bytes) + simulatedReading(this.#options.simulated ?? [], bytes, factor);
  }
}
