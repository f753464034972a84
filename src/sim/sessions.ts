// Sessions of a trace: who waits for whom. A request with a delay is sent so long after the session's previous one has ended, and never
// before its own time; without a delay it keeps its own time, and is the previous one of the next all the same.
import type { SimRequest } from './sim-request.js';

/** Sessions that are remembered; of more, the one that was heard of longest ago is forgotten, and goes on at its own times. */
export const MAX_SESSIONS = 1_000_000;

export class Sessions {
  /** By session: its last request. In the order in which they were heard of. */
  readonly #last = new Map<string, SimRequest>();
  readonly #most: number;

  constructor(most: number = MAX_SESSIONS) {
    this.#most = most;
  }

  /**
   * A request of the trace is due by its own time, `at`.
   * @returns when it is sent; null where it waits for another one, which `endedBy` gives back
   */
  next(request: SimRequest): number | null {
    const { sessionId, at, delay } = request;
    if (sessionId === null) return at;
    const previous = this.#last.get(sessionId);
    if (previous !== undefined) this.#last.delete(sessionId);
    else if (this.#last.size >= this.#most) this.#last.delete(this.#last.keys().next().value!);
    this.#last.set(sessionId, request);
    if (previous === undefined || delay === null) return at;
    if (previous.ended) return Math.max(at, previous.endedAt + delay);
    previous.follower = request;
    return null;
  }

  /** The request that waited for this one, which has ended, with the time when it is sent; null without one. */
  endedBy(request: SimRequest): SimRequest | null {
    const { follower } = request;
    if (follower === null) return null;
    request.follower = null;
    // It waited from its own time on, so that is past.
    follower.at = request.endedAt + follower.delay!;
    return follower;
  }
}
