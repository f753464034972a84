// What a vLLM publisher remembers of its stream: the next sequence, and the last batches for those who ask for them again. No sockets
// (spec/kv-events.md 1.2 and 1.3).
import { writeSequence } from '../../wire/frames.js';

/** A batch as it went out. */
export interface LoggedBatch {
  readonly topic: Uint8Array;
  readonly sequence: bigint;
  readonly payload: Uint8Array;
}

/** vLLM's own: 10,000 batches. */
export const DEFAULT_BUFFER_STEPS = 10_000;
/** Most bytes of buffered payloads. vLLM has no such bound; a rank's prompts of an hour stay below it. */
export const MAX_BUFFERED_BYTES = 128 * 1024 * 1024;

export class EventLog {
  readonly #topic: Uint8Array;
  #bufferSteps: number;
  #next = 0n;
  #batches: LoggedBatch[] = [];
  /** Batches before it have left the buffer. */
  #first = 0;
  #bytes = 0;

  /** @param bufferSteps batches that are kept; 0 keeps none */
  constructor(topic: string, bufferSteps: number) {
    this.#topic = new TextEncoder().encode(topic);
    this.#bufferSteps = bufferSteps;
  }

  /** The number of the next batch. */
  get next(): bigint {
    return this.#next;
  }

  /** Batches in the buffer. */
  get buffered(): number {
    return this.#batches.length - this.#first;
  }

  /** Numbers a batch and returns its frames. One whose sending failed has had a number, and is not kept. */
  take(payload: Uint8Array, kept = true): Uint8Array[] {
    const sequence = this.#next++;
    if (kept) {
      this.#batches.push({ topic: this.#topic, sequence, payload });
      this.#bytes += payload.length;
      this.#trim();
    }
    return [this.#topic, writeSequence(sequence), payload];
  }

  /** The batches from `start` on that are still there, oldest first. */
  from(start: bigint): LoggedBatch[] {
    return this.#batches.slice(this.#first).filter(({ sequence }) => sequence >= start);
  }

  /** Keeps fewer, or more, from now on. */
  resize(bufferSteps: number): void {
    this.#bufferSteps = bufferSteps;
    this.#trim();
  }

  #trim(): void {
    while (this.buffered > this.#bufferSteps || this.#bytes > MAX_BUFFERED_BYTES)
      this.#bytes -= this.#batches[this.#first++]!.payload.length;
    // Moved up only when half is empty, so that each batch is moved once on average.
    if (this.#first > this.#batches.length / 2) {
      this.#batches = this.#batches.slice(this.#first);
      this.#first = 0;
    }
  }
}
