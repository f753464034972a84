// How long to wait before trying again: twice as long each time, up to a most, and scattered, so that those who failed together do not
// come back together.

/** A growing, scattered delay. */
export class Backoff {
  readonly #first: number;
  readonly #most: number;
  readonly #random: () => number;
  #failures = 0;

  /** Milliseconds; `random` gives numbers from 0 up to, not including, 1. */
  constructor(first: number, most: number, random: () => number = Math.random) {
    this.#first = first;
    this.#most = most;
    this.#random = random;
  }

  /** Attempts that failed since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** One more has failed: the delay before the next, between half of it and the whole. */
  next(): number {
    const whole = Math.min(this.#most, this.#first * 2 ** Math.min(this.#failures, 32));
    this.#failures++;
    return whole * (0.5 + 0.5 * this.#random());
  }

  succeeded(): void {
    this.#failures = 0;
  }
}
