// One line of time for recordings that are read together: each counts from its own beginning, which its header says.

export class RecordingClock {
  #first: number | null = null;
  #offset = 0;

  /** A header: what follows counts from `started`, in milliseconds since 1970. */
  header(started: number): void {
    this.#first ??= started;
    this.#offset = started - this.#first;
  }

  /** Milliseconds since the first recording began. What stands before any header counts from there too. */
  at(t: number): number {
    return this.#offset + t;
  }
}
