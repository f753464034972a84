// Memory that request bodies may take together: each has a bound of its own, but ten thousand connections with ten megabytes each would be too much
// for any machine. Who comes when the budget is spent is told to come again.

/** Bytes of all bodies together, unless one alone may have more. */
const TOTAL_BYTES = 512 * 1024 * 1024;

export class BodyBudget {
  #left: number;

  /** @param bodyBytes most of one body */
  constructor(bodyBytes: number) {
    this.#left = Math.max(TOTAL_BYTES, 2 * bodyBytes);
  }

  /** Bytes that could be taken now. */
  get left(): number {
    return this.#left;
  }

  /** Takes some; false when there is not as much. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  /** Gives back what was taken. */
  give(bytes: number): void {
    this.#left += bytes;
  }
}

/** What one request has taken of the budget. */
export class BodyShare {
  readonly #budget: BodyBudget;
  #taken = 0;

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  take(bytes: number): boolean {
    const taken = this.#budget.take(bytes);
    if (taken) this.#taken += bytes;
    return taken;
  }

  /** The body is gone. May come twice. */
  end(): void {
    this.#budget.give(this.#taken);
    this.#taken = 0;
  }
}
