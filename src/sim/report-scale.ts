// Axes: where a value lies between two ends, straight or logarithmic, and which round values get a tick.

export interface Scale {
  /** Place of a value in pixels, rounded to a tenth. */
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

/** Bits of a logarithm's fraction: enough for a tenth of a pixel. */
const FRACTION_BITS = 16;
/** A positive axis whose ends are further apart than this is logarithmic. */
const LOG_FROM_RATIO = 25;
const STEPS = [1, 2, 5, 10] as const;

/** A straight scale from `low` to `high`, drawn from pixel `from` to `to`. */
export function straightScale(low: number, high: number, from: number, to: number, most = 6): Scale {
  const span = high > low ? high - low : 1;
  const step = roundStep(span / most);
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= low + span * (1 + 1e-9); i++)
    ticks.push(Number((i * step).toPrecision(12)));
  return { at: (value) => tenth(from + ((value - low) / span) * (to - from)), ticks };
}

/** A logarithmic scale; both ends are above 0. */
export function logScale(low: number, high: number, from: number, to: number, most = 7): Scale {
  const bottom = log2(low);
  const span = high > low ? log2(high) - bottom : 1;
  const ticks = roundTicks(low, high, [1, 2, 5]);
  return {
    at: (value) => tenth(from + ((log2(value) - bottom) / span) * (to - from)),
    ticks: ticks.length <= most ? ticks : thinned(roundTicks(low, high, [1]), most),
  };
}

/** A straight scale from 0 to the round value at or above `high`. */
export function scaleFrom0(high: number, from: number, to: number, most = 6): Scale {
  const top = high > 0 ? high : 1;
  const step = roundStep(top / most);
  return straightScale(0, step * Math.ceil(top / step - 1e-9), from, to, most);
}

/** A logarithmic scale where the values are all above 0 and far apart, else a straight one that begins at 0. */
export function scaleFor(values: readonly number[], from: number, to: number): Scale {
  let [low, high] = [Number.POSITIVE_INFINITY, 0];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > 0 && high / low > LOG_FROM_RATIO ? logScale(low, high, from, to) : scaleFrom0(high, from, to);
}

/** The least of 1, 2, 5 × 10ⁿ that is `value` or more. */
export function roundStep(value: number): number {
  let decade = 1;
  while (decade > value) decade /= 10;
  while (decade * 10 < value) decade *= 10;
  return (STEPS.find((step) => step * decade >= value * (1 - 1e-9)) ?? 10) * decade;
}

function roundTicks(low: number, high: number, steps: readonly number[]): number[] {
  let decade = 1;
  while (decade > low) decade /= 10;
  while (decade * 10 <= low) decade *= 10;
  const ticks: number[] = [];
  for (; decade <= high; decade *= 10)
    for (const step of steps) {
      const tick = Number((step * decade).toPrecision(12));
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  return ticks;
}

function thinned(ticks: readonly number[], most: number): number[] {
  const every = Math.ceil(ticks.length / most);
  return ticks.filter((_, i) => i % every === 0);
}

/** Base-2 logarithm by halving and squaring: the same bits in every engine, which Math.log2 does not promise. */
function log2(value: number): number {
  let whole = 0;
  let rest = value;
  for (; rest >= 2; rest /= 2) whole++;
  for (; rest < 1; rest *= 2) whole--;
  let fraction = 0;
  for (let bit = 0.5, i = 0; i < FRACTION_BITS; i++, bit /= 2) {
    rest *= rest;
    if (rest < 2) continue;
    rest /= 2;
    fraction += bit;
  }
  return whole + fraction;
}

const tenth = (pixels: number): number => Math.round(pixels * 10) / 10;
