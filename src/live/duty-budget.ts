// How much of the time reconciles may take: a share in the long run, and a little at once, so that the first one and a few repeats need
// not wait.

/** A share of time, saved up to a most. Times in milliseconds of one clock. */
export class DutyBudget {
  readonly #share: number;
  readonly #most: number;
  #saved: number;
  #at: number;

  constructor(share: number, most: number, now: number) {
    this.#share = share;
    this.#most = most;
    this.#saved = most;
    this.#at = now;
  }

  /** Milliseconds until something may be begun; 0 = now. What is begun may overdraw the budget: the next one waits for longer. */
  wait(now: number): number {
    this.#accrue(now);
    return this.#saved > 0 ? 0 : Math.ceil((1 - this.#saved) / this.#share);
  }

  spend(now: number, time: number): void {
    this.#accrue(now);
    this.#saved -= time;
  }

  #accrue(now: number): void {
    this.#saved = Math.min(this.#most, this.#saved + Math.max(0, now - this.#at) * this.#share);
    this.#at = now;
  }
}
