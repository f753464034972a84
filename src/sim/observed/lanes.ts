// Lines of bars: what runs at one time on a worker stands on lines of its own, the lowest free one each.

export class Lanes {
  readonly #taken: boolean[] = [];
  /** None below it is free. */
  #lowest = 0;

  /** Lines that were ever used. */
  get count(): number {
    return this.#taken.length;
  }

  take(): number {
    let lane = this.#lowest;
    while (this.#taken[lane] === true) lane++;
    this.#taken[lane] = true;
    this.#lowest = lane + 1;
    return lane;
  }

  free(lane: number): void {
    this.#taken[lane] = false;
    this.#lowest = Math.min(this.#lowest, lane);
  }
}
