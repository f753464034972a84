// Routers of one model tell each other their load over the plane: this one's open leases go out, the others' reports come in. Best effort: nothing waits
// for it, and what is lost the next report brings.
import { WireError } from '../../../errors.js';
import type { Router } from '../../../router/router.js';
import { decodeLoadReport, encodeLoadReport } from '../../../wire/envelope/index.js';
import type { Clock } from '../../clock.js';
import type { LimitedLog } from '../../limited-log.js';
import type { PlaneSubscriber } from '../transport.js';
import { LOAD_TIMES, LoadPace, type LoadTimes } from './load-pace.js';

export interface LoadSharingParts {
  readonly router: Router;
  readonly subscriber: Pick<PlaneSubscriber, 'publishLoad'>;
  readonly clock: Clock;
  readonly log: LimitedLog;
}

/** How sharing stands. */
export interface LoadSharingStatus {
  /** Under which name this router reports. */
  readonly router: string;
  /** Reports sent. */
  readonly sent: number;
  /** Reports of others that could not be read. */
  readonly unreadable: number;
}

/** Shares load until it is closed. */
export class LoadSharing {
  readonly #name: string;
  readonly #parts: LoadSharingParts;
  readonly #times: LoadTimes;
  readonly #pace: LoadPace;
  #unreadable = 0;
  #stop: () => void = () => {};

  /** @param name this router's own, which no other one has, nor this one before it was started */
  constructor(name: string, parts: LoadSharingParts, times: LoadTimes = LOAD_TIMES) {
    this.#name = name;
    this.#parts = parts;
    this.#times = times;
    this.#pace = new LoadPace(name, times);
    parts.router.reportsAs(name);
  }

  open(): void {
    this.#report();
  }

  /** Says good-bye, so that its load is returned at once. */
  close(): void {
    this.#stop();
    this.#parts.subscriber.publishLoad(encodeLoadReport(this.#pace.goodBye()));
  }

  /** Takes another router's report, or its own come back. */
  take(payload: Uint8Array): void {
    const { router, clock, log } = this.#parts;
    try {
      const fate = router.takeLoadReport(decodeLoadReport(payload), clock.now());
      if (fate === 'malformed' || fate.startsWith('too-many')) {
        log.say(`plane load ${fate}`, 'warn', `plane: a router's load report is not taken (${fate})`);
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#unreadable++;
      log.say('plane load unreadable', 'warn', `plane: a load report can't be read: ${error.message}`);
    }
  }

  status(): LoadSharingStatus {
    return { router: this.#name, sent: this.#pace.reports, unreadable: this.#unreadable };
  }

  #report(): void {
    const { router, subscriber, clock } = this.#parts;
    const report = this.#pace.due(router.loadReport(), clock.now());
    if (report !== null) subscriber.publishLoad(encodeLoadReport(report));
    this.#stop = clock.after(this.#times.every, () => this.#report());
  }
}
