// How fast a recording is played: as fast as it can be read, or so many times as fast as it was.
import { ConfigError } from '../errors.js';

/** Below, a wait is not worth its timer. */
const LEAST_WAIT_MS = 1;
const MAX_SPEED = 1_000_000;

/** `max`, `original` or like `2x` as a factor; Infinity for the first. @throws ConfigError `speed` */
export function speedOf(text: string): number {
  if (text === 'max') return Number.POSITIVE_INFINITY;
  const factor = text === 'original' ? 1 : /^(?:\d+\.?\d*|\.\d+)x$/.test(text) ? Number(text.slice(0, -1)) : Number.NaN;
  if (factor > 0 && factor <= MAX_SPEED) return factor;
  throw new ConfigError('speed', `--speed ${text} is not known; say max, original, or a factor like 2x or 0.5x`);
}

/** Holds what is played back until its time. */
export class Pace {
  readonly #speed: number;
  readonly #now: () => number;
  readonly #sleep: (ms: number) => Promise<unknown>;
  /** When the first one was played, and its time in the recording. */
  #began: { readonly now: number; readonly at: number } | null = null;

  constructor(
    speed: number,
    now: () => number = () => performance.now(),
    sleep: (ms: number) => Promise<unknown> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  ) {
    this.#speed = speed;
    this.#now = now;
    this.#sleep = sleep;
  }

  /** Resolves when what was seen at `at` is due; what has no time is due at once. Null: it is due now, and nothing need be waited for. */
  until(at: number | null): Promise<unknown> | null {
    if (at === null || this.#speed === Number.POSITIVE_INFINITY) return null;
    this.#began ??= { now: this.#now(), at };
    const wait = this.#began.now + (at - this.#began.at) / this.#speed - this.#now();
    return wait < LEAST_WAIT_MS ? null : this.#sleep(wait);
  }
}
