// Where axes get their ticks and what the ticks say. Pure.
import { bytesText, countText, shortNumber, timeText } from '../../../sim/report-format.js';
import { roundStep } from '../../../sim/report-scale.js';

export interface Tick {
  readonly at: number;
  readonly text: string;
}

/** Rounding errors of a division are below this part of a step. */
const HAIR = 1e-9;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const UNITS = [
  [HOUR, 'h'],
  [MINUTE, 'min'],
  [SECOND, 's'],
  [1, 'ms'],
] as const;
const SEXAGESIMAL = [1, 2, 5, 10, 15, 30] as const;
/** Steps of time that read as round. */
const TIME_STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...SEXAGESIMAL.map((each) => each * SECOND),
  ...SEXAGESIMAL.map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12, 24, 48, 96].map((each) => each * HOUR),
];

/** Times in milliseconds, all ticks in one unit. */
export function timeTicks(from: number, to: number, most: number): Tick[] {
  const least = (to - from) / Math.max(1, most);
  const step = TIME_STEPS.find((each) => each >= least) ?? roundStep(least / HOUR) * HOUR;
  const [size, name] = UNITS.find(([unit]) => step >= unit) ?? UNITS[3];
  return multiples(from, to, step).map((at) => ({ at, text: at === 0 ? '0' : `${shortNumber(at / size)} ${name}` }));
}

/** Round values of a straight axis. */
export function straightTicks(from: number, to: number, most: number, text: (value: number) => string): Tick[] {
  const span = to - from;
  if (!(span > 0)) return [];
  return multiples(from, to, roundStep(span / Math.max(1, most))).map((at) => ({ at, text: text(at) }));
}

export const percentTicks = (from: number, to: number, most: number): Tick[] =>
  straightTicks(from, to, most, (share) => `${shortNumber(share * 100)} %`);

function multiples(from: number, to: number, step: number): number[] {
  const found: number[] = [];
  for (let i = Math.ceil(from / step - HAIR); i * step <= to + step * HAIR; i++)
    found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** 1, 2, 5 of each decade where they fit, else decades, else every few decades. Both ends are above 0. */
export function logTicks(from: number, to: number, most: number, text: (value: number) => string): Tick[] {
  const low = Math.floor(Math.log10(from));
  const high = Math.ceil(Math.log10(to));
  const inside = (steps: readonly number[], decades: number): number[] => {
    const found: number[] = [];
    for (let power = Math.ceil(low / decades) * decades; power <= high; power += decades)
      for (const step of steps) found.push(Number(`${step}e${power}`));
    return found.filter((at) => at >= from * (1 - HAIR) && at <= to * (1 + HAIR));
  };
  for (const [steps, decades] of [
    [[1, 2, 5], 1],
    [[1, 3], 1],
    [[1], 1],
    [[1], 2],
    [[1], 3],
  ] as const) {
    const found = inside(steps, decades);
    if (found.length <= most && found.length > 0) return found.map((at) => ({ at, text: text(at) }));
  }
  return inside([1], 3).map((at) => ({ at, text: text(at) }));
}

export const bytesLogTicks = (from: number, to: number, most: number): Tick[] => logTicks(from, to, most, bytesText);
export const timeLogTicks = (from: number, to: number, most: number): Tick[] => logTicks(from, to, most, timeText);

/** A little more than `value`, round: where an axis that begins at 0 ends. */
export function roundTop(value: number): number {
  if (!(value > 0)) return 1;
  const step = roundStep(value / 5);
  return Number((Math.ceil(value / step - HAIR) * step).toPrecision(12));
}

/** Whole numbers only. */
export const countTicks = (from: number, to: number, most: number): Tick[] =>
  straightTicks(from, to, Math.min(most, Math.max(1, to - from)), countText).filter(({ at }) => Number.isInteger(at));
