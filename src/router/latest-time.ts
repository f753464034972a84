// The time that a router goes by where a request names none: what it was told last, by a request or at the end of a lease. The last and not
// the greatest, so that one wild time rules no longer than until the next one. Knows neither router nor lease.

/** The last time told, in milliseconds; 0 at first. */
export class LatestTime {
  #now = 0;

  get now(): number {
    return this.#now;
  }

  /** What is no finite number says nothing. */
  tell(now: number): void {
    if (Number.isFinite(now)) this.#now = now;
  }
}
