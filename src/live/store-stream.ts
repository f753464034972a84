// The master's event stream on a real socket, with its HTTP beside it: follows the master that serves, applies what comes, and carries out what
// the keeper decides (store-keeper.ts). Every loss clears at once; a reconcile fills again.
import { MoonrouteError } from '../errors.js';
import type { RouterStoreResult } from '../router/router.js';
import type { Drained } from './drain.js';
import { Drift, type Reading } from './drift.js';
import { Inbox } from './inbox.js';
import { MASTER_HTTP_LIMITS, type MasterHttp, type MasterHttpLimits } from './master-http.js';
import { type MasterEndpoint, Masters } from './masters.js';
import { runReconcile } from './reconcile-run.js';
import { StoreKeeper, type StoreKeeperOptions } from './store-keeper.js';
import { type ReconcileReport, type StoreStreamStatus, storeWarnings } from './store-status.js';
import type { LiveParts } from './worker-stream.js';
import { parseEndpoint } from './zmtp/endpoint.js';
import { type SocketEvent, ZmtpSubscriber } from './zmtp/socket.js';

/** How the store's stream is kept. */
export interface StoreStreamOptions {
  readonly keeper?: Pick<StoreKeeperOptions, 'maxEvidenceAge' | 'reconcileEvery' | 'pollEvery'>;
  readonly http?: Partial<MasterHttpLimits>;
}

const TICK = 100;
/** Time between looks at masters while none that serves is followed. */
const PROBE_EVERY = 1000;

/** The store's stream. */
export class StoreStream implements Drained {
  readonly #endpoints: readonly MasterEndpoint[];
  readonly #parts: LiveParts;
  readonly #masters: Masters;
  readonly #keeper: StoreKeeper;
  readonly #drift = new Drift();
  readonly #inbox: Inbox;
  readonly #voided = new Map<string, number>();
  readonly #drifts = new Map<string, number>();
  readonly #losses = new Map<string, number>();
  #subscriber: ZmtpSubscriber | null = null;
  #connected = false;
  #cancelTick: () => void = () => {};
  #exchanges = new AbortController();
  #closed = false;
  #generation: number;
  #lastSequence: bigint | null = null;
  /** Stored minus removed events of all messages, foreign ones too. */
  #net = 0;
  /** Requests under way. */
  readonly #tasks = new Set<Promise<void>>();
  #reconciling = false;
  #probeAt = 0;
  #reconciled = 0;
  /** Why the last reconciles, so many of them, did not count. */
  #failing: { readonly times: number; readonly why: string } | null = null;
  #expired = 0;
  #lastReconcile: (Omit<ReconcileReport, 'age'> & { readonly begun: number }) | null = null;

  constructor(endpoints: readonly MasterEndpoint[], parts: LiveParts, options: StoreStreamOptions = {}) {
    this.#endpoints = endpoints;
    this.#parts = parts;
    const { clock, random, router } = parts;
    for (const { events } of endpoints) parseEndpoint(events);
    const limits = { ...MASTER_HTTP_LIMITS, ...options.http };
    this.#masters = new Masters(endpoints, limits, parts, (index) => this.#follow(index));
    const { canReconcile } = this.#masters;
    this.#keeper = new StoreKeeper({ ...options.keeper, canReconcile, random }, clock.now());
    this.#inbox = new Inbox({ pause: () => this.#subscriber?.pause(), resume: () => this.#subscriber?.resume() });
    this.#generation = router.generation;
    this.#keeper.contract(clock.now(), router.contract !== null);
  }

  open(): void {
    this.#parts.drain.add(this);
    if (this.#masters.followed !== null) this.#follow(this.#masters.followed);
    this.#tick();
  }

  /** Nobody watches the store any more, so nothing of it is known. Resolves when no request of its is under way. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelTick();
    this.#exchanges.abort();
    this.#parts.drain.remove(this);
    this.#subscriber?.close();
    this.#parts.router.storeStreamLost('closed');
    await Promise.all(this.#tasks);
  }

  step(): boolean {
    const item = this.#inbox.take();
    if (item === undefined) return false;
    if (item.kind === 'message') {
      this.#took(this.#parts.router.onStoreMessage(item.frames, { generation: item.generation }));
    }
    return true;
  }

  /** What became of a message. */
  #took({ fate, sequence, said, detail }: RouterStoreResult): void {
    if (sequence !== null) this.#lastSequence = sequence;
    this.#net += said.stored - said.removed;
    if (fate === 'gap-applied' || fate === 'malformed' || fate === 'unreadable' || fate === 'pending') {
      this.#keeper.cleared(this.#parts.clock.now(), fate);
      this.#parts.log.say(
        `store ${fate}`,
        'warn',
        `store: ${fate} at sequence ${sequence}${detail === null ? '' : `: ${detail}`}`,
      );
    }
  }

  async #caughtUp(): Promise<void> {
    const { pushed } = this.#inbox;
    while (this.#inbox.done < pushed && !this.#closed) await this.#parts.clock.breathe();
  }

  // ---- connection ----

  #follow(index: number): void {
    const { router, random, clock, curve } = this.#parts;
    this.#drop('master-changed');
    this.#subscriber?.close();
    this.#connected = false;
    this.#exchanges.abort();
    this.#exchanges = new AbortController();
    const handlers = {
      onMessage: (frames: Uint8Array[]) => {
        this.#inbox.push({ kind: 'message', frames, generation: router.generation });
        this.#parts.drain.wake();
      },
      onEvent: (event: SocketEvent) => this.#onEvent(event),
    };
    this.#subscriber = new ZmtpSubscriber(this.#endpoints[index]!.events, '', handlers, { random, curve });
    this.#keeper.lost(clock.now());
    this.#subscriber.open();
  }

  #onEvent(event: SocketEvent): void {
    const { clock, log } = this.#parts;
    const { events } = this.#endpoints[this.#masters.followed!]!;
    if (event.kind === 'connected') {
      log.say('store connected', 'info', `store: connected to ${events}`);
      this.#connected = true;
      this.#keeper.connected(clock.now());
    } else if (event.kind === 'lost') {
      tally(this.#losses, event.cause);
      this.#probeAt = 0;
      if (this.#connected) {
        this.#connected = false;
        this.#drop(`stream-${event.cause}`);
        this.#keeper.lost(clock.now());
      }
      log.say('store lost', 'warn', `store: ${events}: ${event.detail}`);
    }
  }

  /** Nothing that was said so far counts any more. */
  #drop(cause: string): void {
    this.#inbox.clear();
    this.#drift.reset();
    this.#lastSequence = null;
    this.#parts.router.storeStreamLost(cause);
  }

  // ---- what the keeper decides ----

  #tick(): void {
    if (this.#closed) return;
    const { clock, router } = this.#parts;
    const now = clock.now();
    if (router.generation !== this.#generation) {
      this.#generation = router.generation;
      this.#lastSequence = null;
      this.#drift.reset();
      this.#keeper.contract(now, router.contract !== null);
    }
    this.#cancelTick = clock.after(TICK, () => this.#tick());
    const task = this.#keeper.next(now);
    const failed = () => this.#keeper.failed(clock.now(), 0, 'fault');
    if (task?.kind === 'expire') this.#expire();
    else if (task?.kind === 'reconcile') this.#run(this.#reconcile(task.cause), failed);
    else if (task?.kind === 'poll') this.#run(this.#poll(), failed);
    if (this.#masters.several && now >= this.#probeAt && !this.#servesStill()) this.#run(this.#probe(), () => {});
  }

  /** A task that throws has met a fault of ours: it is said, and things go on. */
  #run(work: Promise<void>, onFault: () => void): void {
    const task = work
      .catch((error: unknown) => {
        this.#parts.log.say('store fault', 'error', `store: ${(error as Error).stack ?? error}`);
        this.#reconciling = false;
        onFault();
      })
      .finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }

  #servesStill(): boolean {
    return this.#connected && this.#masters.current?.state === 'serving';
  }

  #expire(): void {
    this.#expired++;
    this.#lastSequence = null;
    this.#parts.router.storeStreamLost('unverified');
    const age = this.#keeper.maxEvidenceAge / 1000;
    this.#parts.log.say(
      'store expired',
      'warn',
      `store: nothing confirmed the evidence for ${age} s, so it is dropped`,
    );
  }

  async #reconcile(cause: string): Promise<void> {
    const { router, clock, log } = this.#parts;
    const { followed, http } = this.#masters;
    const begun = clock.now();
    if (http === null) return this.#keeper.failed(begun, 0, 'no-http');
    const { signal } = this.#exchanges;
    const around = this.#around();
    const keys = await this.#keyCount(http, signal);
    const heardAt = this.#around();
    // Another stream may have the router's reconcile by now.
    if (signal.aborted) return this.#keeper.failed(clock.now(), 0, 'master-changed');
    this.#reconciling = true;
    const { outcome, spent } = await runReconcile({
      router,
      http,
      clock,
      signal,
      caughtUp: () => this.#caughtUp(),
    });
    this.#reconciling = false;
    const now = clock.now();
    if (signal.aborted) return this.#keeper.failed(now, spent, 'master-changed');
    if (!outcome.accepted) {
      tally(this.#voided, outcome.reason);
      this.#failing = { times: (this.#failing?.times ?? 0) + 1, why: outcome.detail ?? outcome.reason };
      this.#masters.refused(followed!, outcome.reason, outcome.detail);
      log.say(
        `store reconcile ${outcome.reason}`,
        'warn',
        `store: reconcile (${cause}) does not count: ${outcome.detail ?? outcome.reason}`,
      );
      this.#keeper.failed(now, spent, outcome.reason);
      return;
    }
    const { result, status, stepTime } = outcome;
    this.#keeper.told(status.generation);
    this.#keeper.reconciled(now, begun, spent);
    this.#masters.said(followed!, 'serving', null);
    this.#reconciled++;
    this.#failing = null;
    const { placed, leftOut, foreign, malformed } = result;
    this.#lastReconcile = { cause, begun, took: now - begun, step: stepTime, placed, leftOut, foreign, malformed };
    // With nothing received, the cache goes on behind the counters that were read.
    if (!outcome.received) this.#lastSequence = status.sequence;
    this.#drift.baseline(reading(status.sequence, keys, around, heardAt));
    log.say(
      'store reconciled',
      'info',
      `store: ${placed} objects by a reconcile (${cause}) in ${Math.round(now - begun)} ms`,
    );
  }

  async #poll(): Promise<void> {
    const { clock, log, router } = this.#parts;
    const { followed, http } = this.#masters;
    if (http === null) return this.#keeper.polled(clock.now());
    const { signal } = this.#exchanges;
    const around = this.#around();
    const keys = await this.#keyCount(http, signal);
    const status = await this.#masters.ask(followed!, signal);
    if (this.#closed || signal.aborted) return this.#keeper.polled(clock.now());
    const now = clock.now();
    if (status?.state !== 'serving') {
      this.#keeper.polled(now);
      // It says itself that it sends nothing; where it says nothing, evidence ages.
      if (status !== null) {
        this.#drop(status.state);
        this.#keeper.cleared(now, status.state);
      }
      return;
    }
    this.#keeper.told(status.generation);
    const cause = this.#drift.observe(now, reading(status.sequence, keys, around, this.#around()));
    this.#keeper.polled(now, this.#drift.suspects);
    if (cause === null) return;
    tally(this.#drifts, cause);
    log.say(`store drift ${cause}`, 'warn', `store: counters and stream differ (${cause})`);
    if (cause === 'key-count') this.#keeper.wanted(cause);
    else {
      this.#lastSequence = null;
      this.#drift.reset();
      router.storeStreamLost(cause);
      this.#keeper.cleared(now, cause);
    }
  }

  /** How the stream stands now: the last sequence, and stored minus removed. */
  #around(): Around {
    return { sequence: this.#lastSequence, net: this.#net };
  }

  async #keyCount(http: MasterHttp, signal: AbortSignal): Promise<number | null> {
    try {
      return await http.keyCount(signal);
    } catch (error) {
      if (error instanceof MoonrouteError) return null; // the metrics page may be elsewhere; the status decides
      throw error;
    }
  }

  /** Asks all masters who serves. */
  async #probe(): Promise<void> {
    await this.#masters.probe(this.#exchanges.signal);
    this.#probeAt = this.#parts.clock.now() + PROBE_EVERY;
  }

  // ---- status ----

  status(): StoreStreamStatus {
    const now = this.#parts.clock.now();
    const keeper = this.#keeper;
    const last = this.#lastReconcile;
    const { current } = this.#masters;
    return {
      masters: this.#masters.view(),
      followed: this.#masters.followed,
      connected: this.#connected,
      lastSequence: this.#lastSequence,
      generation: keeper.generation,
      evidenceAge: keeper.evidenceAge(now),
      maxEvidenceAge: keeper.maxEvidenceAge,
      wanted: keeper.cause,
      heldBack: keeper.budgetWait(now),
      reconciling: this.#reconciling,
      lastReconcile: last === null ? null : reportOf(last, now),
      reconciled: this.#reconciled,
      voided: Object.fromEntries(this.#voided),
      drifts: Object.fromEntries(this.#drifts),
      losses: Object.fromEntries(this.#losses),
      expired: this.#expired,
      queued: this.#inbox.size,
      pauses: this.#inbox.pauses,
      warnings: storeWarnings({
        state: current?.state ?? null,
        hasHttp: this.#masters.http !== null,
        fault: current?.fault ?? null,
        failing: this.#failing,
        maxEvidenceAge: keeper.maxEvidenceAge,
        heldBack: keeper.budgetWait(now),
      }),
    };
  }
}

interface Around {
  readonly sequence: bigint | null;
  readonly net: number;
}

function reading(sequence: bigint, keys: number | null, before: Around, after: Around): Reading {
  return { sequence, keys, heard: [before.sequence, after.sequence], net: [before.net, after.net] };
}

function reportOf(
  { begun, ...last }: Omit<ReconcileReport, 'age'> & { readonly begun: number },
  now: number,
): ReconcileReport {
  return { ...last, age: now - begun };
}

function tally(counts: Map<string, number>, code: string): void {
  counts.set(code, (counts.get(code) ?? 0) + 1);
}
