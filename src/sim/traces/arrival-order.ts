// Puts rows that are a little late in their place: a bounded number of requests is held back, and the earliest goes first. What comes
// later than that goes as soon as it can. Equal times keep the order of the file.
import { DueQueue } from './due-queue.js';
import type { UnplacedRequest } from './requests.js';
import type { TraceTally } from './tally.js';
import type { TraceRequest } from './types.js';

/** Ids in requests held back, 16 MB: rows of very long prompts make the window shorter. */
const MAX_HELD_IDS = 0x40_0000;

export class ArrivalOrder {
  readonly #window: number;
  readonly #tally: TraceTally;
  readonly #waiting = new DueQueue<UnplacedRequest>();
  #heldIds = 0;
  /** The latest time that came in, and the last that went out. */
  #latest = Number.NEGATIVE_INFINITY;
  #previous = Number.NEGATIVE_INFINITY;

  /** @param window requests held back */
  constructor(window: number, tally: TraceTally) {
    this.#window = window;
    this.#tally = tally;
  }

  /** Whether one must be taken before the next is put. */
  get full(): boolean {
    return this.#waiting.size > this.#window || (this.#waiting.size > 1 && this.#heldIds > MAX_HELD_IDS);
  }

  get size(): number {
    return this.#waiting.size;
  }

  put(request: UnplacedRequest): void {
    if (request.at < this.#latest) this.#tally.note('unsorted-row', request.line);
    else this.#latest = request.at;
    this.#heldIds += request.hashIds?.length ?? 0;
    this.#waiting.put(request.at, request);
  }

  /** The earliest; there must be one. */
  take(): TraceRequest {
    const request = this.#waiting.take()!;
    const { at, line, hashIds } = request;
    this.#heldIds -= hashIds?.length ?? 0;
    if (at === this.#previous) this.#tally.note('equal-timestamps', line);
    if (at < this.#previous) this.#tally.note('out-of-order', line);
    this.#previous = at;
    return { index: this.#tally.requests++, ...request };
  }
}
