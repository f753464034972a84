// Shares the thread between streams and decisions: streams have short turns, one after the other, and after a slice everything else has one.
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
    do await this.#clock.breathe();
    while (this.#slice());
    this.#running = null;
  }

  /** Works for a slice; whether there is more to do. */
  #slice(): boolean {
    const end = this.#clock.now() + SLICE_MS;
    for (let idle = 0; idle < this.#members.size; ) {
      const [member] = this.#members as ReadonlySet<Drained>;
      // It goes to the end of the row, so that the next slice begins with those behind it.
      this.#members.delete(member!);
      this.#members.add(member!);
      let steps = 0;
      while (steps < TURN_STEPS && this.#step(member!)) {
        steps++;
        if (this.#clock.now() >= end) return true;
      }
      idle = steps === 0 ? idle + 1 : 0;
    }
    return false;
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
