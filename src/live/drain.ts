// Shares the thread between streams and decisions: each stream gets short turns, and after a slice everything else has one.
import type { Clock } from './clock.js';

/** Longest stretch of work on streams before requests and timers get a turn. */
const SLICE_MS = 4;
/** Steps of one stream before the next stream has its turn. */
const TURN_STEPS = 16;

/** Something with work to do. */
export interface Drained {
  /** Does one small piece; false when there is none that can be done now. */
  step(): boolean;
}

/** Runs the steps of all its members, slice by slice. */
export class Drain {
  readonly #clock: Clock;
  readonly #members = new Set<Drained>();
  readonly #onFault: (error: unknown) => void;
  #running: Promise<void> | null = null;
  #closed = false;

  /** `onFault` hears of what a step throws, which is a fault of ours; the member goes on with its next step. */
  constructor(clock: Clock, onFault: (error: unknown) => void) {
    this.#clock = clock;
    this.#onFault = onFault;
  }

  add(member: Drained): void {
    this.#members.add(member);
  }
  remove(member: Drained): void {
    this.#members.delete(member);
  }

  /** There is something to do: makes sure that it is done soon. */
  wake(): void {
    if (this.#closed) return;
    this.#running ??= this.#run();
  }

  /** Resolves when nothing runs any more. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#members.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#clock.breathe();
      if (this.#slice()) continue;
      this.#running = null;
      return;
    }
  }

  /** Works for a slice; whether there is more to do. */
  #slice(): boolean {
    const end = this.#clock.now() + SLICE_MS;
    for (;;) {
      let worked = false;
      for (const member of this.#members) {
        for (let steps = TURN_STEPS; steps > 0 && this.#step(member); steps--) {
          worked = true;
          if (this.#clock.now() >= end) return true;
        }
      }
      if (!worked) return false;
    }
  }

  #step(member: Drained): boolean {
    try {
      return member.step();
    } catch (error) {
      this.#onFault(error);
      return true;
    }
  }
}
