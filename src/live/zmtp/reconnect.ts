// How long to wait before the next attempt: from the base up to the cap, twice as long each time, and somewhere in the upper half of
// that, so that a hundred routers don't come back to a restarted worker in one instant. Pure: the draw is handed in.
//
// It starts over after a connection that lasted, not after a handshake: a peer that shakes hands and then always breaks the protocol, or is
// always thrown out by a proxy, would otherwise be met every 100 ms for ever.

/** A connection of this length was a good one. It is the longest wait, so that a peer that flaps is met every few seconds at most. */
export const GOOD_CONNECTION_MS = 5_000;
const GROWTH = 2;
/** The part of a wait that is not drawn. */
const FIXED_PART = 0.5;

/** The waits of one client. */
export class Backoff {
  readonly #baseMs: number;
  readonly #maxMs: number;
  #nextMs: number;

  constructor(baseMs: number, maxMs: number) {
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
    this.#nextMs = baseMs;
  }

  /** The wait after a connection that lasted `lastedMs` from its handshake, 0 after a failed attempt. `draw` is in [0, 1). */
  next(lastedMs: number, draw: number): number {
    if (lastedMs >= GOOD_CONNECTION_MS) this.#nextMs = this.#baseMs;
    const whole = this.#nextMs;
    this.#nextMs = Math.min(whole * GROWTH, this.#maxMs);
    return Math.round(whole * (FIXED_PART + (1 - FIXED_PART) * draw));
  }
}
