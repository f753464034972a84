// One rank's way out: the next message is made when the transport has taken the one before, so that order holds and a slow transport gets fuller messages.
// A refused message is tried again a few times and then given up; its events are in the local indexer, where readers who miss the ids ask for them.
import type { RouterEvent } from '../../../wire/envelope/types.js';
import { Backoff } from '../../backoff.js';
import type { Clock } from '../../clock.js';
import type { PlanePublisher, PlaneRank } from '../transport.js';
import type { BatchQueue } from './batch.js';

/** Times that one message is handed over; with the waits between them about two seconds, in which a server may be restarted. */
export const PUBLISH_ATTEMPTS = 4;
const RETRY_FIRST_MS = 200;
const RETRY_MOST_MS = 2000;

/** Counts since it was made. */
export interface OutboxStats {
  readonly messages: number;
  readonly bytes: number;
  /** Times that the transport refused a message. */
  readonly refusals: number;
  /** Messages given up, and their events. */
  readonly lostMessages: number;
  readonly lostEvents: number;
  /** Milliseconds that the last message took from its handing over to its end. */
  readonly lagMs: number;
}

export interface OutboxParts {
  readonly rank: PlaneRank;
  readonly queue: BatchQueue;
  readonly plane: Pick<PlanePublisher, 'publish'>;
  readonly encode: (events: readonly RouterEvent[]) => Uint8Array;
  readonly clock: Clock;
  readonly random: () => number;
  /** Hears of a message that was given up. */
  readonly onLost: (events: readonly RouterEvent[]) => void;
}

/** Sends what its queue holds. */
export class Outbox {
  readonly #parts: OutboxParts;
  readonly #backoff: Backoff;
  #running: Promise<void> | null = null;
  /** Ends the wait before the next attempt. */
  #hurry: () => void = () => {};
  #closed = false;
  #messages = 0;
  #bytes = 0;
  #refusals = 0;
  #lostMessages = 0;
  #lostEvents = 0;
  #lagMs = 0;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(RETRY_FIRST_MS, RETRY_MOST_MS, parts.random);
  }

  /** There is something in the queue. */
  wake(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the queue is empty and nothing is under way. What is refused from now on is given up at once. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#hurry();
    this.wake();
    await this.#running;
  }

  stats(): OutboxStats {
    return {
      messages: this.#messages,
      bytes: this.#bytes,
      refusals: this.#refusals,
      lostMessages: this.#lostMessages,
      lostEvents: this.#lostEvents,
      lagMs: this.#lagMs,
    };
  }

  async #run(): Promise<void> {
    // What is handed over in one turn goes together.
    await Promise.resolve();
    for (let events = this.#parts.queue.take(); events.length > 0; events = this.#parts.queue.take()) {
      await this.#send(events);
    }
    this.#running = null;
  }

  async #send(events: readonly RouterEvent[]): Promise<void> {
    const { clock } = this.#parts;
    const began = clock.now();
    for (let attempt = 1; !(await this.#taken(events)); attempt++) {
      this.#refusals++;
      if (attempt >= PUBLISH_ATTEMPTS || this.#closed) {
        this.#lostMessages++;
        this.#lostEvents += events.length;
        this.#parts.onLost(events);
        break;
      }
      await this.#wait(this.#backoff.next());
    }
    this.#backoff.succeeded();
    this.#lagMs = clock.now() - began;
  }

  /** Whether the transport took the events. One that throws has refused them, and so has a codec. */
  async #taken(events: readonly RouterEvent[]): Promise<boolean> {
    const { encode, plane, rank } = this.#parts;
    try {
      const payload = encode(events);
      if (!(await plane.publish(rank, payload))) return false;
      this.#messages++;
      this.#bytes += payload.length;
      return true;
    } catch {
      return false;
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.after(ms, resolve);
      this.#hurry = () => {
        cancel();
        resolve();
      };
    });
  }
}
