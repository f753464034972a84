// Events that wait for the transport, and how they are grouped into its messages: in order, as many as fit. While one message is under way the next
// one fills, so a slow transport gets fewer, fuller messages. Bounded: beyond the bound the oldest go, whose ids readers then miss and ask for.
import type { RouterEvent } from '../../../wire/envelope/types.js';
import { blocksOf, bytesAtMost } from './draft.js';
import { BATCH_CAPS, type BatchCaps } from './split.js';

/** Most blocks and events that wait: some seconds of the fastest engines, about 16 MiB. */
export const MOST_WAITING_BLOCKS = 1 << 20;
export const MOST_WAITING_EVENTS = 65_536;

/** A queue of one rank's numbered events. */
export class BatchQueue {
  readonly #caps: () => BatchCaps;
  #events: RouterEvent[] = [];
  #head = 0;
  #blocks = 0;
  #dropped = 0;

  constructor(caps: () => BatchCaps = () => BATCH_CAPS) {
    this.#caps = caps;
  }

  get events(): number {
    return this.#events.length - this.#head;
  }
  get blocks(): number {
    return this.#blocks;
  }
  /** Events that never went out since too many waited. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Each event must fit into a message by itself (split.ts). */
  push(event: RouterEvent): void {
    this.#events.push(event);
    this.#blocks += blocksOf(event.data);
    while (this.events > MOST_WAITING_EVENTS || (this.#blocks > MOST_WAITING_BLOCKS && this.events > 1)) {
      this.#take();
      this.#dropped++;
    }
  }

  /** The next message's events, empty when none wait. */
  take(): RouterEvent[] {
    const batch: RouterEvent[] = [];
    const caps = this.#caps();
    let blocks = 0;
    let bytes = 0;
    while (this.events > 0 && batch.length < caps.events) {
      const event = this.#events[this.#head]!;
      blocks += blocksOf(event.data);
      bytes += bytesAtMost(event);
      if (batch.length > 0 && (blocks > caps.blocks || bytes > caps.bytes)) break;
      batch.push(this.#take());
    }
    return batch;
  }

  clear(): void {
    this.#events = [];
    this.#head = 0;
    this.#blocks = 0;
  }

  #take(): RouterEvent {
    const event = this.#events[this.#head++]!;
    this.#blocks -= blocksOf(event.data);
    if (this.#head * 2 >= this.#events.length) {
      this.#events.splice(0, this.#head);
      this.#head = 0;
    }
    return event;
  }
}
