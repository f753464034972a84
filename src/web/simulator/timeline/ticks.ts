// The ruler's ticks and how a time of the simulation is written: h:mm:ss, with as many digits of a second as tell neighbours apart. Pure.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LONG_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
];
/** Digits of a second that are written at most: tenths of a microsecond are below what the simulator's clock means. */
const MOST_DIGITS = 6;

/** The least round step that is `least` milliseconds or more. */
export function roundStep(least: number): number {
  const long = LONG_STEPS.find((step) => step >= least);
  if (least > SECOND / 2) return long ?? roundDecimal(least / DAY) * DAY;
  return roundDecimal(least);
}

function roundDecimal(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const digit = [1, 2, 5, 10].find((n) => n * power >= least * (1 - 1e-9)) ?? 10;
  return digit * power;
}

/** Digits behind a second's point that tell times a step apart from each other. */
export function digitsFor(step: number): number {
  return Math.min(MOST_DIGITS, Math.max(0, Math.ceil(-Math.log10(step / SECOND) - 1e-9)));
}

/** 754,321 → 12:34.321 with three digits; 3,754,000 → 1:02:34 with none. */
export function clockText(time: number, digits = 3): string {
  // Rounded first, so that 59.9996 s is 1:00.
  const unit = 10 ** digits;
  const units = Math.round((Math.max(0, time) / SECOND) * unit);
  const seconds = Math.floor(units / unit);
  const rest = digits > 0 ? `.${String(units % unit).padStart(digits, '0')}` : '';
  const two = (value: number) => String(value).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  const tail = `${two(seconds % 60)}${rest}`;
  return minutes < 60 ? `${minutes}:${tail}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${tail}`;
}

export interface Ticks {
  readonly step: number;
  readonly digits: number;
  readonly times: readonly number[];
}

/** Ticks from `from` to `to`, at least `apart` pixels from each other. */
export function ticksFor(from: number, to: number, width: number, apart: number): Ticks {
  const step = roundStep(Math.max(1e-3, ((to - from) * apart) / Math.max(1, width)));
  const first = Math.ceil(from / step - 1e-9);
  const times: number[] = [];
  for (let i = first; i * step <= to + step * 1e-9; i++) times.push(i * step);
  return { step, digits: digitsFor(step), times };
}
