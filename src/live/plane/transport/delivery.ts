// Messages on their way to a subscriber's handlers: one at a time, in order. A handler that returns a promise is waited for; then what comes is
// kept, up to a bound, beyond which the sources are paused. A handler that throws costs its message and is told of.
import type { PlaneMessage, PlaneNotice, PlaneSubscriber } from '../transport.js';

export type PlaneHandlers = Parameters<PlaneSubscriber['open']>[0];

/** Hands one message over; what its handler threw becomes a notice. */
export async function deliver(handlers: PlaneHandlers, message: PlaneMessage): Promise<void> {
  try {
    // Awaited only where there is something to wait for: a promise a message would cost more than most messages.
    const wait = handlers.onMessage(message);
    if (wait !== undefined) await wait;
  } catch (error) {
    handlers.onNotice({ kind: 'trouble', detail: `a batch's handler failed: ${(error as Error).message}` });
  }
}

/** Hands a report over, likewise. */
export function deliverLoad(handlers: PlaneHandlers, payload: Uint8Array): void {
  try {
    handlers.onLoad(payload);
  } catch (error) {
    handlers.onNotice({ kind: 'trouble', detail: `a load report's handler failed: ${(error as Error).message}` });
  }
}

/** What pauses the sockets that fill a queue. */
export interface Valve {
  pause(): void;
  resume(): void;
}

/** Most that waits for a slow handler before its sources are paused. A socket read brings more in one go, of which the rest is taken too. */
export const MAX_QUEUED_BATCHES = 4096;
export const MAX_QUEUED_BYTES = 32 << 20;

type Item = { readonly message: PlaneMessage } | { readonly notice: PlaneNotice };

/** Messages and notices of sockets, in the order in which they came. */
export class DeliveryQueue {
  readonly #handlers: PlaneHandlers;
  readonly #valve: Valve;
  #items: Item[] = [];
  #bytes = 0;
  #waiting = 0;
  #draining = false;
  #paused = false;
  #closed = false;

  constructor(handlers: PlaneHandlers, valve: Valve) {
    this.#handlers = handlers;
    this.#valve = valve;
  }

  push(item: Item): void {
    if (this.#closed) return;
    this.#items.push(item);
    this.#waiting++;
    this.#bytes += bytesOf(item);
    if (!this.#draining) void this.#drain();
    if (this.#paused || (this.#waiting <= MAX_QUEUED_BATCHES && this.#bytes <= MAX_QUEUED_BYTES)) return;
    this.#paused = true;
    this.#valve.pause();
  }

  /** Forgets what waits. */
  close(): void {
    this.#closed = true;
    this.#items = [];
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    while (this.#items.length > 0) {
      const turn = this.#items;
      this.#items = [];
      for (const item of turn) {
        if (this.#closed) break;
        if ('notice' in item) this.#handlers.onNotice(item.notice);
        else await deliver(this.#handlers, item.message);
        this.#waiting--;
        this.#bytes -= bytesOf(item);
        this.#reopen();
      }
    }
    this.#draining = false;
  }

  #reopen(): void {
    if (!this.#paused || this.#waiting > MAX_QUEUED_BATCHES / 2 || this.#bytes > MAX_QUEUED_BYTES / 2) return;
    this.#paused = false;
    this.#valve.resume();
  }
}

function bytesOf(item: Item): number {
  return 'message' in item ? item.message.payload.length : 0;
}
