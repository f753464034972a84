// When to ask a silent peer whether it is there, and when to give it up. Pure: times are handed in.
//
// A timer that fires late, since this process was busy or the machine slept, says nothing about the peer: what it sent may lie unread in
// the kernel. So the verdict is given twice, with a moment between, in which the event loop reads what is there.

/** The moment between suspicion and verdict: some turns of the event loop. */
export const VERDICT_MS = 50;

/** What to do now, and when to ask again. */
export interface HeartbeatStep {
  readonly act: 'wait' | 'ping' | 'lost';
  readonly inMs: number;
}

/** Watches one connection whose peer knows PING. */
export class Heartbeat {
  readonly #pingMs: number;
  readonly #lossMs: number;
  #heard: number;
  #pinged: number;
  #suspect = false;
  #held = false;

  /** `pingMs` of silence, and a ping; `lossMs`, and the peer is lost. */
  constructor(pingMs: number, lossMs: number, now: number) {
    this.#pingMs = pingMs;
    this.#lossMs = lossMs;
    this.#heard = now;
    this.#pinged = now;
  }

  /** Something came, of whatever kind. */
  heard(now: number): void {
    this.#heard = now;
    this.#suspect = false;
  }

  /** Nothing is read from now on, so silence proves nothing. Pings go on: to the peer they prove that we are there. */
  hold(): void {
    this.#held = true;
  }

  /** Reading goes on. */
  release(now: number): void {
    this.#held = false;
    this.heard(now);
  }

  step(now: number): HeartbeatStep {
    const silentMs = now - this.#heard;
    if (!this.#held && silentMs >= this.#lossMs) {
      if (this.#suspect) return { act: 'lost', inMs: 0 };
      this.#suspect = true;
      return { act: 'wait', inMs: VERDICT_MS };
    }
    const pingInMs = Math.max(this.#heard, this.#pinged) + this.#pingMs - now;
    const due = pingInMs <= 0;
    if (due) this.#pinged = now;
    const nextPingMs = due ? this.#pingMs : pingInMs;
    return {
      act: due ? 'ping' : 'wait',
      inMs: this.#held ? nextPingMs : Math.min(nextPingMs, this.#lossMs - silentMs),
    };
  }
}
