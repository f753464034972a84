// The store's masters as they answer over HTTP, and the one that is followed.
import { MoonrouteError } from '../errors.js';
import type { Clock } from './clock.js';
import type { LimitedLog } from './limited-log.js';
import { MasterChoice, type MasterState } from './master-choice.js';
import { MasterHttp, type MasterHttpLimits, type MasterStatus } from './master-http.js';

/** One master. */
export interface MasterEndpoint {
  /** `tcp://HOST:PORT` of its PUB socket. */
  readonly events: string;
  /** `http://HOST:PORT` of its admin port; null when it can't be reached. */
  readonly http: string | null;
}

/** How a master stands. */
export interface MasterView extends MasterEndpoint {
  readonly state: MasterState;
  /** Why its HTTP could not be used when it was last asked. */
  readonly fault: string | null;
}

interface Master extends MasterEndpoint {
  readonly client: MasterHttp | null;
  fault: string | null;
}

/** Asks masters, and follows the one that serves. */
export class Masters {
  readonly #masters: readonly Master[];
  readonly #choice: MasterChoice;
  readonly #log: LimitedLog;
  readonly #onFollow: (index: number) => void;
  #probing = false;

  /** `onFollow` hears that another one is followed from now on. */
  constructor(
    endpoints: readonly MasterEndpoint[],
    limits: MasterHttpLimits,
    { clock, log }: { readonly clock: Clock; readonly log: LimitedLog },
    onFollow: (index: number) => void,
  ) {
    this.#masters = endpoints.map(({ events, http }) => ({
      events,
      http,
      client: http === null ? null : new MasterHttp(http, clock, limits),
      fault: null,
    }));
    this.#choice = new MasterChoice(endpoints.length);
    this.#log = log;
    this.#onFollow = onFollow;
  }

  get several(): boolean {
    return this.#masters.length > 1;
  }
  get canReconcile(): boolean {
    return this.#masters.some(({ client }) => client !== null);
  }
  /** Index of the followed one; null while none is known to serve. */
  get followed(): number | null {
    return this.#choice.followed;
  }
  /** The followed one's HTTP; null where there is none. */
  get http(): MasterHttp | null {
    const { followed } = this.#choice;
    return followed === null ? null : this.#masters[followed]!.client;
  }
  /** The followed one as it stands; null while there is none. */
  get current(): MasterView | null {
    const { followed } = this.#choice;
    return followed === null ? null : this.view()[followed]!;
  }

  view(): MasterView[] {
    return this.#masters.map(({ events, http, fault }, i) => ({ events, http, state: this.#choice.states[i]!, fault }));
  }

  /** Asks one that has HTTP for its status; null where no answer counts. */
  async ask(index: number, signal: AbortSignal): Promise<MasterStatus | null> {
    let status: MasterStatus | null = null;
    let fault: string | null = null;
    try {
      status = await this.#masters[index]!.client!.status(signal);
    } catch (error) {
      if (!(error instanceof MoonrouteError)) throw error;
      fault = error.message;
      if (!signal.aborted) this.#log.say(`store http ${index}`, 'warn', `store: ${fault}`);
    }
    if (!signal.aborted) this.said(index, status?.state ?? 'unreachable', fault);
    return status;
  }

  /** Asks all of them, one round at a time. */
  async probe(signal: AbortSignal): Promise<void> {
    if (this.#probing) return;
    this.#probing = true;
    try {
      await Promise.all(this.#masters.map((_, index) => this.ask(index, signal)));
    } finally {
      this.#probing = false;
    }
  }

  /** What a master showed of itself. */
  said(index: number, state: MasterState, fault: string | null): void {
    this.#masters[index]!.fault = fault;
    if (!this.#choice.said(index, state)) return;
    const followed = this.#choice.followed!;
    this.#log.say('store follows', 'info', `store: ${this.#masters[followed]!.events} serves and is followed`);
    this.#onFollow(followed);
  }

  /** What a reconcile that did not count showed. */
  refused(index: number, reason: string, detail: string | null): void {
    if (reason === 'standby' || reason === 'http-standby') this.said(index, 'standby', null);
    else if (reason === 'events-off') this.said(index, 'events-off', null);
    else if (reason.startsWith('http-')) this.said(index, 'unreachable', detail);
  }
}
