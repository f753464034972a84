// Charts as inline SVG, without script. Colours are classes that the page's style sheet fills for light and dark; each mark has a title,
// which browsers show on hover and screen readers read.
import { escapeHtml } from './report-escape.js';
import { type Scale, scaleFor, scaleFrom0, straightScale } from './report-scale.js';

const WIDTH = 720;
const LABEL_WIDTH = 170;
const VALUE_WIDTH = 70;
const ROW_HEIGHT = 30;
const BAR_HEIGHT = 18;
const AXIS_HEIGHT = 44;
const LABEL_CHARACTERS = 26;
const PLOT_HEIGHT = 260;
const PLOT_LEFT = 76;
const PLOT_TOP = 10;
const PLOT_RIGHT = WIDTH - 16;
/** Classes c0 … of the style sheet. */
const COLOURS = 6;

/** An axis: its title with the unit, and how its values are written. */
export interface Axis {
  readonly title: string;
  readonly text: (value: number) => string;
}

export interface StackedBar {
  readonly label: string;
  /** Shares of the whole, one for each part, 0 … 1. */
  readonly shares: readonly number[];
  /** A share to mark with a line across the bar; null for none. */
  readonly mark: number | null;
  /** Written at the end of the bar. */
  readonly value: string;
}

/** A row of marks on a common axis, joined by a line. */
export interface RangeRow {
  readonly label: string;
  /** One for each name; null where nothing was measured. */
  readonly values: readonly (number | null)[];
}

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** Horizontal bars of parts that make a whole. */
export function stackedBars(
  title: string,
  parts: readonly string[],
  markName: string,
  bars: readonly StackedBar[],
  axis: Axis,
): string {
  const bottom = bars.length * ROW_HEIGHT;
  const x = straightScale(0, 1, LABEL_WIDTH, WIDTH - VALUE_WIDTH, 5);
  const marks = bars.map(({ label, shares, mark, value }, row) => {
    const top = row * ROW_HEIGHT + (ROW_HEIGHT - BAR_HEIGHT) / 2;
    let start = 0;
    const rects = shares.map((share, part) => {
      const [from, to] = [x.at(start), x.at(start + share)];
      start += share;
      if (to <= from) return '';
      const says = `${label}: ${parts[part]} ${axis.text(share)}`;
      return `<rect class="t${part}" x="${from}" y="${top}" width="${px(to - from)}" height="${BAR_HEIGHT}">${titled(says)}</rect>`;
    });
    const line =
      mark === null
        ? ''
        : `<path class="mark" d="M${x.at(mark)} ${top - 4}v${BAR_HEIGHT + 8}">${titled(`${label}: ${markName} ${axis.text(mark)}`)}</path>`;
    const end = `<text class="value" x="${WIDTH - VALUE_WIDTH + 8}" y="${top + 14}">${escapeHtml(value)}</text>`;
    return rowLabel(label, top) + rects.join('') + line + end;
  });
  const legend = [
    ...parts.map((part, i) => [`t${i}`, part] as const),
    ...(bars.some(({ mark }) => mark !== null) ? [['mark', markName] as const] : []),
  ];
  return figure(title, bottom + AXIS_HEIGHT, bottomAxis(x, axis, bottom) + marks.join(''), legend);
}

/** A row for each thing, a dot for each of its values. */
export function ranges(title: string, names: readonly string[], rows: readonly RangeRow[], axis: Axis): string {
  const values = rows.flatMap((row) => row.values.filter((value) => value !== null));
  const bottom = rows.length * ROW_HEIGHT;
  const x = scaleFor(values, LABEL_WIDTH + 8, WIDTH - VALUE_WIDTH);
  const marks = rows.map(({ label, values: own }, row) => {
    const middle = row * ROW_HEIGHT + ROW_HEIGHT / 2;
    const places = own.flatMap((value) => (value === null ? [] : [x.at(value)]));
    const joined =
      places.length < 2 ? '' : `<path class="range" d="M${Math.min(...places)} ${middle}H${Math.max(...places)}"/>`;
    const dots = own.map((value, i) =>
      value === null
        ? ''
        : `<circle class="c${i % COLOURS}" cx="${x.at(value)}" cy="${middle}" r="5">${titled(`${label}: ${names[i]} ${axis.text(value)}`)}</circle>`,
    );
    return rowLabel(label, middle - 9) + joined + dots.join('');
  });
  const legend = names.map((name, i) => [`c${i % COLOURS}`, name] as const);
  return figure(title, bottom + AXIS_HEIGHT, bottomAxis(x, axis, bottom) + marks.join(''), legend);
}

/** Lines over a common axis. `stepped`: a value holds until the next one. `yMost`: upper end, where it is known. */
export function lineChart(
  title: string,
  lines: readonly Line[],
  xAxis: Axis,
  yAxis: Axis,
  { stepped = false, yMost = 0 }: { stepped?: boolean; yMost?: number } = {},
): string {
  const points = lines.flatMap((line) => line.points);
  const bottom = PLOT_TOP + PLOT_HEIGHT;
  const x = scaleFor(
    points.map(([value]) => value),
    PLOT_LEFT,
    PLOT_RIGHT,
  );
  const highest = points.reduce((most, [, value]) => Math.max(most, value), yMost);
  const y = scaleFrom0(highest, bottom, PLOT_TOP, 5);
  const grid = y.ticks.map(
    (tick) =>
      `<path class="grid" d="M${PLOT_LEFT} ${y.at(tick)}H${PLOT_RIGHT}"/><text class="tick end" x="${PLOT_LEFT - 8}" y="${y.at(tick) + 4}">${escapeHtml(yAxis.text(tick))}</text>`,
  );
  const side = `<text class="axis" transform="translate(14 ${PLOT_TOP + PLOT_HEIGHT / 2}) rotate(-90)">${escapeHtml(yAxis.title)}</text>`;
  const drawn = lines.map(({ name, points: own }, i) => {
    const colour = `c${i % COLOURS}`;
    const path = own.map(([px, py], p) => {
      if (p === 0) return `M${x.at(px)} ${y.at(py)}`;
      return stepped ? `H${x.at(px)}V${y.at(py)}` : `L${x.at(px)} ${y.at(py)}`;
    });
    const tail = stepped && own.length > 0 ? `H${PLOT_RIGHT}` : '';
    const dots = own.map(([px, py]) => {
      const says = `${name}: ${yAxis.text(py)} at ${xAxis.text(px)}`;
      return `<circle class="${stepped ? 'spot' : colour}" cx="${x.at(px)}" cy="${y.at(py)}" r="${stepped ? 6 : 3.5}">${titled(says)}</circle>`;
    });
    return `<path class="line ${colour}" d="${path.join('')}${tail}"/>${dots.join('')}`;
  });
  const legend = lines.length < 2 ? [] : lines.map(({ name }, i) => [`c${i % COLOURS}`, name] as const);
  return figure(
    title,
    bottom + AXIS_HEIGHT,
    grid.join('') + side + bottomAxis(x, xAxis, bottom) + drawn.join(''),
    legend,
  );
}

function bottomAxis(x: Scale, { title, text }: Axis, y: number): string {
  const ticks = x.ticks.map(
    (tick) =>
      `<path class="grid" d="M${x.at(tick)} 0V${y + 4}"/><text class="tick" x="${x.at(tick)}" y="${y + 18}">${escapeHtml(text(tick))}</text>`,
  );
  const middle = px((x.at(x.ticks[0] ?? 0) + x.at(x.ticks.at(-1) ?? 0)) / 2);
  return `${ticks.join('')}<text class="axis" x="${middle}" y="${y + 37}">${escapeHtml(title)}</text>`;
}

function rowLabel(label: string, top: number): string {
  const short = label.length > LABEL_CHARACTERS ? `${label.slice(0, LABEL_CHARACTERS - 1)}…` : label;
  return `<text class="label" x="${LABEL_WIDTH - 10}" y="${top + 14}">${escapeHtml(short)}${titled(label)}</text>`;
}

function figure(
  title: string,
  height: number,
  content: string,
  legend: readonly (readonly [colour: string, name: string])[],
): string {
  const keys = legend.map(([colour, name]) => `<span class="key"><i class="${colour}"></i>${escapeHtml(name)}</span>`);
  return [
    `<figure><figcaption>${escapeHtml(title)}</figcaption>`,
    keys.length > 0 ? `<div class="legend">${keys.join(' ')}</div>` : '',
    `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeHtml(title)}">${content}</svg></figure>`,
  ].join('');
}

const titled = (text: string): string => `<title>${escapeHtml(text)}</title>`;

const px = (pixels: number): number => Math.round(pixels * 10) / 10;
