// How many recoveries run at a time, over all ranks of a router: a pool that comes back together must not have its dumps together. Those that ask
// first go first; but ranks that have never answered hold no more than half of the places, for each of them may wait long for somebody who is not
// there, and ranks that live must not wait behind those.

/** Questions under way at a time. */
export const ASKED_AT_ONCE = 16;

interface Waiting {
  readonly question: () => Promise<void>;
  /** Of a rank that has never answered. */
  readonly isCold: boolean;
}

/** A queue of questions, of which so many run. */
export class AskSlots {
  readonly #most: number;
  #running = 0;
  #cold = 0;
  readonly #waiting = new Set<Waiting>();

  constructor(most = ASKED_AT_ONCE) {
    this.#most = most;
  }

  get running(): number {
    return this.#running;
  }
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs a question when there is room; it must not reject. What is returned takes it out of the queue, where it still waits. */
  run(question: () => Promise<void>, isCold: boolean): () => void {
    const waiting = { question, isCold };
    this.#waiting.add(waiting);
    this.#next();
    return () => this.#waiting.delete(waiting);
  }

  #next(): void {
    for (const waiting of this.#waiting) {
      if (this.#running >= this.#most) return;
      const { question, isCold } = waiting;
      if (isCold && this.#cold >= this.#most / 2) continue;
      this.#waiting.delete(waiting);
      this.#running++;
      if (isCold) this.#cold++;
      void question().finally(() => {
        this.#running--;
        if (isCold) this.#cold--;
        this.#next();
      });
    }
  }
}
