// When the store's evidence is to be confirmed, doubted and dropped (design.md 6). A pure state machine: the shell tells it what happened
// and when, asks at every tick what is to be done, and does it.
import { Backoff } from './backoff.js';
import { DRIFT_LASTS } from './drift.js';
import { DutyBudget } from './duty-budget.js';
import type { WireGeneration } from './master-http.js';

/** What it decides by. Milliseconds. */
export interface StoreKeeperOptions {
  /**
   * How old evidence may grow without a reconcile before it is dropped. Default 60,000 for a master of wire generation A, whose removals may
   * come without a message, 600,000 for others; a master that has not said which it is counts as A.
   */
  readonly maxEvidenceAge?: number;
  /** Time between reconciles that nothing calls for. Default a third of `maxEvidenceAge`. */
  readonly reconcileEvery?: number;
  /** Time between looks at the master's counters. Default 5,000. */
  readonly pollEvery?: number;
  /** Whether there is HTTP to reconcile by. */
  readonly canReconcile: boolean;
  readonly random: () => number;
}

/** What is to be done now. */
export type StoreTask = { readonly kind: 'expire' | 'poll' } | { readonly kind: 'reconcile'; readonly cause: string };

const AGE_OF_SILENT_REMOVERS = 60_000;
const AGE_OF_OTHERS = 600_000;
/** Reconciles begin well before evidence is too old, so that one that fails can be had again. */
const RECONCILES_PER_AGE = 3;
const POLL_EVERY = 5000;
/** Of all time, what reconciles may take, and how much of it may be saved up. */
const DUTY_SHARE = 0.02;
const DUTY_SAVED = 1000;
const RETRY_FIRST = 250;
const RETRY_MOST = 15_000;
/** Timers scatter by a tenth, so that many routers do not ask one master in step. */
const SCATTER = 0.1;

/** Decides for one master's stream. */
export class StoreKeeper {
  readonly #options: StoreKeeperOptions;
  readonly #budget: DutyBudget;
  readonly #retries: Backoff;
  #generation: WireGeneration | null = null;
  #connected = false;
  #hasContract = false;
  /** Why a reconcile is called for, null when nothing calls for one. */
  #cause: string | null = 'start';
  #busy = false;
  #notBefore = 0;
  #timerAt = Number.POSITIVE_INFINITY;
  #pollAt = 0;
  /** Since when nothing has confirmed what is known. */
  #unconfirmedSince: number;

  constructor(options: StoreKeeperOptions, now: number) {
    this.#options = options;
    this.#budget = new DutyBudget(DUTY_SHARE, DUTY_SAVED, now);
    this.#retries = new Backoff(RETRY_FIRST, RETRY_MOST, options.random);
    this.#unconfirmedSince = now;
  }

  /** How old evidence may grow. */
  get maxEvidenceAge(): number {
    return this.#options.maxEvidenceAge ?? ((this.#generation ?? 'A') === 'A' ? AGE_OF_SILENT_REMOVERS : AGE_OF_OTHERS);
  }
  /** The generation that the master's status showed; null before. */
  get generation(): WireGeneration | null {
    return this.#generation;
  }
  /** Why the next reconcile is called for; null when nothing but the timer does. */
  get cause(): string | null {
    return this.#cause;
  }
  /** Milliseconds since what is known of the store was confirmed, or began from empty. */
  evidenceAge(now: number): number {
    return now - this.#unconfirmedSince;
  }
  /** Milliseconds that the share of time allowed for reconciles holds the next one back. */
  budgetWait(now: number): number {
    return this.#budget.wait(now);
  }

  /** The subscription stands. */
  connected(now: number): void {
    this.#connected = true;
    this.cleared(now, 'connected');
  }

  /** It does not; nothing is known any more, nor who comes back. */
  lost(now: number): void {
    this.#connected = false;
    this.#generation = null;
    this.cleared(now, 'lost');
  }

  /** Whether a contract is in force; what is known of the store belongs to it. */
  contract(now: number, inForce: boolean): void {
    this.#hasContract = inForce;
    this.cleared(now, 'contract-change');
  }

  /** What was known has been cleared: it begins from empty, and a reconcile would fill it. */
  cleared(now: number, cause: string): void {
    this.#unconfirmedSince = now;
    this.wanted(cause);
  }

  /** Something calls for a reconcile. */
  wanted(cause: string): void {
    this.#cause ??= cause;
  }

  /** The master's status told its generation. */
  told(generation: WireGeneration): void {
    this.#generation = generation;
  }

  /** The most urgent thing to do now, null when there is none. What it names counts as begun. */
  next(now: number): StoreTask | null {
    if (!this.#hasContract) return null;
    if (this.evidenceAge(now) >= this.maxEvidenceAge) {
      this.cleared(now, 'unverified');
      return { kind: 'expire' };
    }
    if (!this.#options.canReconcile || this.#busy) return null;
    const cause = this.#cause ?? (now >= this.#timerAt ? 'timer' : null);
    if (cause !== null && this.#connected && now >= this.#notBefore && this.#budget.wait(now) === 0) {
      this.#busy = true;
      this.#cause = null;
      return { kind: 'reconcile', cause };
    }
    if (now < this.#pollAt) return null;
    this.#busy = true;
    return { kind: 'poll' };
  }

  /** A look at the counters has ended, well or not; `suspicious` asks for another one as soon as it can tell. */
  polled(now: number, suspicious = false): void {
    this.#busy = false;
    const every = this.#options.pollEvery ?? POLL_EVERY;
    this.#pollAt = now + (suspicious ? Math.min(every, DRIFT_LASTS) : this.#scattered(every));
  }

  /** A reconcile that began at `begun` was accepted: what is known now was so at that time. `spent`: how long somebody was at work for it. */
  reconciled(now: number, begun: number, spent: number): void {
    this.#ended(now, spent);
    this.#retries.succeeded();
    this.#unconfirmedSince = begun;
    this.#timerAt = now + this.#scattered(this.#options.reconcileEvery ?? this.maxEvidenceAge / RECONCILES_PER_AGE);
  }

  /** It did not count. */
  failed(now: number, spent: number, cause: string): void {
    this.#ended(now, spent);
    this.#notBefore = now + this.#retries.next();
    this.wanted(cause);
  }

  #ended(now: number, spent: number): void {
    this.#busy = false;
    this.#budget.spend(now, spent);
  }

  #scattered(time: number): number {
    return time * (1 - SCATTER * this.#options.random());
  }
}
