// The real publisher's queue and its numbers (spec/mooncake-events.md 2): at most 64 events a message and no timer; a full queue drops its
// oldest event and bumps the sequence, so that the gap is as wide as the loss, while event ids are given afterwards and show no jump. It encodes;
// whoever owns the socket sends.
import { writeSequence } from '../../wire/frames.js';
import { encodeBatch, type Prepared, prepare } from './event-fields.js';
import type { Announcement, EventFlags, Generation } from './types.js';

/** Most events in one message. */
export const MAX_BATCH_EVENTS = 64;
/** Events that wait before the oldest is dropped (`kv_events_queue_capacity`). */
export const DEFAULT_QUEUE_CAPACITY = 65_536;

/** Taken off the front at once, rather than one by one, when this many have been read. */
const COMPACT_AT = 1024;
const NO_TOPIC = new Uint8Array(0);

/** The publisher's own counts; they say what it has handed to its socket, not what anyone received. */
export interface PublisherCounts {
  publishedBatches: number;
  publishedEvents: number;
  droppedEvents: number;
  /** Keys without a number (A, B), whether their events were sent or not. */
  skippedUnparsedKeys: number;
  invalidEventHashes: number;
  /** Events without a key (C); none of them was sent. */
  skippedKeylessEvents: number;
}

/** One message, with what its fate changes. */
export interface QueuedMessage {
  readonly frames: readonly Uint8Array[];
  readonly sequence: number;
  readonly events: number;
}

export class EventQueue {
  readonly #generation: Generation;
  readonly #flags: EventFlags;
  readonly #capacity: number;
  #waiting: Announcement[] = [];
  #front = 0;
  #nextSequence = 1;
  #nextEventId = 1;
  readonly counts: PublisherCounts = {
    publishedBatches: 0,
    publishedEvents: 0,
    droppedEvents: 0,
    skippedUnparsedKeys: 0,
    invalidEventHashes: 0,
    skippedKeylessEvents: 0,
  };

  constructor(generation: Generation, flags: EventFlags, capacity: number) {
    this.#generation = generation;
    this.#flags = flags;
    this.#capacity = capacity;
  }

  get waiting(): number {
    return this.#waiting.length - this.#front;
  }
  /** Of the message sent last, or of the last drop; 0 at the beginning. */
  get lastSequence(): number {
    return this.#nextSequence - 1;
  }
  get lastEventId(): number {
    return this.#nextEventId - 1;
  }

  push(event: Announcement): void {
    if (this.waiting >= this.#capacity) {
      this.#shift(1);
      this.counts.droppedEvents++;
      this.#nextSequence++;
    }
    this.#waiting.push(event);
  }

  /** The next message, numbered; null when nothing is left to send. */
  next(now: number): QueuedMessage | null {
    while (this.waiting > 0) {
      const batch = this.#shift(MAX_BATCH_EVENTS).map((event) => prepare(this.#generation, event, this.#flags));
      for (const event of batch) this.#count(event);
      const sent = batch.filter((event) => event.sent);
      if (sent.length === 0) continue; // no sequence is spent on it
      const payload = encodeBatch(this.#generation, sent, this.#nextEventId, now, this.#flags);
      this.#nextEventId += sent.length;
      const sequence = this.#nextSequence++;
      return { frames: [NO_TOPIC, writeSequence(BigInt(sequence)), payload], sequence, events: sent.length };
    }
    return null;
  }

  /** The socket took it. */
  sent({ events }: QueuedMessage): void {
    this.counts.publishedBatches++;
    this.counts.publishedEvents += events;
  }

  /** The socket refused it: its numbers are spent. */
  failed({ events }: QueuedMessage): void {
    this.counts.droppedEvents += events;
  }

  #count({ skippedKey, invalidHash }: Prepared): void {
    if (skippedKey && this.#generation === 'C') this.counts.skippedKeylessEvents++;
    else if (skippedKey) this.counts.skippedUnparsedKeys++;
    if (invalidHash) this.counts.invalidEventHashes++;
  }

  #shift(most: number): Announcement[] {
    const taken = this.#waiting.slice(this.#front, this.#front + most);
    this.#front += taken.length;
    if (this.#front === this.#waiting.length || this.#front >= Math.max(COMPACT_AT, this.#waiting.length / 2)) {
      this.#waiting = this.#waiting.slice(this.#front);
      this.#front = 0;
    }
    return taken;
  }
}
