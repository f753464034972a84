// The last events that went out, for readers who missed some: whole as they were, eligibility included. Bounded by count and by bytes.
import type { RouterEvent } from '../../../wire/envelope/types.js';
import { bytesAtMost } from './draft.js';

/** How much is kept. */
export interface RingLimits {
  readonly events: number;
  /** By the upper bound of draft.ts, which is about four times what they take here. */
  readonly bytes: number;
}

/** Some minutes of a busy rank. */
export const RING_LIMITS: RingLimits = { events: 16_384, bytes: 64 << 20 };

/** Events of one rank whose ids follow one another. */
export class EventRing {
  readonly #limits: RingLimits;
  #events: RouterEvent[] = [];
  #head = 0;
  #bytes = 0;

  constructor(limits: RingLimits = RING_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#events.length - this.#head;
  }
  get bytes(): number {
    return this.#bytes;
  }
  /** The oldest id kept; null when there is none. */
  get firstId(): bigint | null {
    return this.size === 0 ? null : this.#events[this.#head]!.eventId;
  }

  push(event: RouterEvent): void {
    this.#events.push(event);
    this.#bytes += bytesAtMost(event);
    while (this.size > this.#limits.events || (this.#bytes > this.#limits.bytes && this.size > 0)) {
      this.#bytes -= bytesAtMost(this.#events[this.#head++]!);
    }
    if (this.#head * 2 >= this.#events.length) {
      this.#events.splice(0, this.#head);
      this.#head = 0;
    }
  }

  /** Events `start` … `end`, as many of the first as take at most `bytes`, and at least one. They must be kept. */
  range(start: bigint, end: bigint, bytes: number): RouterEvent[] {
    const from = this.#head + Number(start - this.firstId!);
    const to = this.#head + Number(end - this.firstId!);
    const events: RouterEvent[] = [];
    for (let at = from, taken = 0; at <= to; at++) {
      taken += bytesAtMost(this.#events[at]!);
      if (events.length > 0 && taken > bytes) break;
      events.push(this.#events[at]!);
    }
    return events;
  }
}
