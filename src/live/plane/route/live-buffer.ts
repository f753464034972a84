// Live events that wait while their rank is recovered: in the order of their ids, each once, and bounded. When there are too many the oldest go, for
// a recovery brings those first.
import type { RouterEvent } from '../../../wire/envelope/types.js';

interface Waiting {
  readonly event: RouterEvent;
  /** The how many-th that was added. */
  readonly stamp: number;
}

/** A bounded queue by id. */
export class LiveBuffer {
  readonly #mostEvents: number;
  readonly #mostBlocks: number;
  readonly #margin: number;
  #waiting: Waiting[] = [];
  #head = 0;
  #blocks = 0;
  #added = 0;

  /** @param margin events over the bound before it is cut back to it */
  constructor(mostEvents: number, mostBlocks: number, margin: number) {
    this.#mostEvents = mostEvents;
    this.#mostBlocks = mostBlocks;
    this.#margin = margin;
  }

  get size(): number {
    return this.#waiting.length - this.#head;
  }
  /** The one with the lowest id; null when there is none. */
  get first(): RouterEvent | null {
    return this.#waiting[this.#head]?.event ?? null;
  }
  /** Events that were ever added: to tell those that wait now from later ones. */
  get stamp(): number {
    return this.#added;
  }

  /** Adds an event, unless one of its id waits already; how many others had to go. */
  add(event: RouterEvent): number {
    const waiting = this.#waiting;
    let at = waiting.length;
    while (at > this.#head && waiting[at - 1]!.event.eventId > event.eventId) at--;
    if (at > this.#head && waiting[at - 1]!.event.eventId === event.eventId) return 0;
    waiting.splice(at, 0, { event, stamp: ++this.#added });
    this.#blocks += blocksOf(event);
    if (this.size <= this.#mostEvents + this.#margin && this.#blocks <= this.#mostBlocks) return 0;
    let dropped = 0;
    while (this.size > this.#mostEvents || (this.#blocks > this.#mostBlocks && this.size > 1)) {
      this.shift();
      dropped++;
    }
    return dropped;
  }

  /** Takes the first one out. */
  shift(): RouterEvent | null {
    const first = this.#waiting[this.#head];
    if (first === undefined) return null;
    this.#blocks -= blocksOf(first.event);
    this.#head++;
    if (this.#head * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    return first.event;
  }

  /** Those up to an id go. */
  dropUpTo(id: bigint): void {
    for (let first = this.first; first !== null && first.eventId <= id; first = this.first) this.shift();
  }

  /** Those that were there at a stamp go; how many. */
  dropOlder(stamp: number): number {
    const before = this.size;
    this.#waiting = this.#waiting.slice(this.#head).filter((one) => one.stamp > stamp);
    this.#head = 0;
    this.#blocks = this.#waiting.reduce((sum, { event }) => sum + blocksOf(event), 0);
    return before - this.size;
  }

  /** Takes all out, in order. */
  takeAll(): RouterEvent[] {
    const all = this.#waiting.slice(this.#head).map(({ event }) => event);
    this.clear();
    return all;
  }

  clear(): void {
    this.#waiting = [];
    this.#head = 0;
    this.#blocks = 0;
  }
}

function blocksOf({ data }: RouterEvent): number {
  return data.kind === 'cleared' ? 0 : data.hashes.length;
}
