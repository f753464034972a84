// How long a client waits before the next attempt: growing and scattered, and anew after a connection that lasted. Not after a handshake: a peer
// that shakes hands and then always breaks the protocol, or is always thrown out by a proxy, would otherwise be met every 100 ms for ever.
import { Backoff } from '../backoff.js';

/** A connection of this length was a good one. It is the longest wait, so that a peer that flaps is met every few seconds at most. */
export const GOOD_CONNECTION_MS = 5_000;

/** The waits of one client. */
export class ReconnectWaits {
  readonly #backoff: Backoff;

  /** Milliseconds; `random` draws from [0, 1). */
  constructor(base: number, most: number, random: () => number) {
    this.#backoff = new Backoff(base, most, random);
  }

  /** The wait after a connection that lasted `lastedMs` from its handshake, 0 after a failed attempt. */
  next(lastedMs: number): number {
    if (lastedMs >= GOOD_CONNECTION_MS) this.#backoff.succeeded();
    return Math.round(this.#backoff.next());
  }
}
