// Live streams: a router fed from real sockets, and kept right when they lie (design.md 6). It opens one stream a worker rank and one for the
// store; whoever owns it adds and removes workers here instead of at the router.
import { ConfigError, MoonrouteError } from '../errors.js';
import type { Router } from '../router/router.js';
import { type WorkerId, type WorkerInfo, workerKey } from '../router/worker-info.js';
import { type Clock, systemClock } from './clock.js';
import { Drain } from './drain.js';
import { LimitedLog, type LogSink } from './limited-log.js';
import type { MasterEndpoint } from './masters.js';
import type { StoreStreamStatus } from './store-status.js';
import { StoreStream, type StoreStreamOptions } from './store-stream.js';
import {
  type LiveParts,
  WORKER_STREAM_LIMITS,
  WorkerStream,
  type WorkerStreamLimits,
  type WorkerStreamStatus,
} from './worker-stream.js';
import { CurveKeys, type CurveOptions } from './zmtp/socket.js';

/** A worker with its sockets. */
export interface LiveWorker extends WorkerInfo {
  /**
   * Where its ranks publish: `tcp://HOST:PORT` of rank 0, from which rank r's port follows as vLLM adds it (port + r), or one endpoint for
   * each of its ranks.
   */
  readonly events: string | readonly string[];
  /** Where they answer replays, likewise. Without it every loss costs the rank its index part. */
  readonly replay?: string | readonly string[] | null;
  /** What its topics begin with. Default everything. */
  readonly topic?: string;
}

/** The store: its masters, of which one serves. */
export interface LiveStore extends StoreStreamOptions {
  readonly masters: readonly MasterEndpoint[];
}

/** What is opened, and how. */
export interface LiveOptions {
  readonly workers?: readonly LiveWorker[];
  readonly store?: LiveStore | null;
  readonly limits?: Partial<WorkerStreamLimits>;
  /** Where lines go, at most one a second per cause. Default nowhere. */
  readonly log?: LogSink;
  readonly clock?: Clock;
  /** Scatters delays. Default `Math.random`. */
  readonly random?: () => number;
  /** Keys for CURVE, which all event and replay sockets then must speak. Default null: in the clear. */
  readonly curve?: CurveOptions | CurveKeys | null;
}

/** How all streams stand. */
export interface LiveStatus {
  readonly workers: readonly WorkerStreamStatus[];
  readonly store: StoreStreamStatus | null;
}

const MOST_MASTERS = 16;
const MOST_PORT = 65_535;

/** The open streams of one router. */
export class LiveStreams {
  readonly #router: Router;
  readonly #parts: LiveParts;
  readonly #limits: WorkerStreamLimits;
  readonly #streams = new Map<string, readonly WorkerStream[]>();
  readonly #ids = new Map<string, WorkerId>();
  readonly #store: StoreStream | null;
  #closed = false;

  private constructor(router: Router, options: LiveOptions) {
    const { clock = systemClock, log = () => {}, random = Math.random, limits, store = null, curve } = options;
    checkOptions(options);
    const limited = new LimitedLog(log, clock);
    const drain = new Drain(clock, (error) => limited.say('fault', 'error', `${(error as Error).stack ?? error}`));
    this.#router = router;
    const keys = curve == null ? null : CurveKeys.of(curve);
    this.#parts = { router, clock, drain, log: limited, random, curve: keys };
    this.#limits = { ...WORKER_STREAM_LIMITS, ...limits };
    this.#store = store === null ? null : new StoreStream(checkedMasters(store.masters), this.#parts, store);
  }

  /**
   * Opens all streams; they connect on their own, now and after every loss. Nothing is opened, and no worker added, unless all can be.
   * @throws ConfigError for endpoints that are none (`endpoint`, `live-endpoints`, `live-masters`, `live-workers`, `live-times`), keys (`curve-keys`), and what
   * `Router.addWorker` throws
   */
  static open(router: Router, options: LiveOptions = {}): LiveStreams {
    const live = new LiveStreams(router, options);
    const workers = (options.workers ?? []).map((worker) => ({ worker, streams: live.#streamsOf(worker) }));
    const names = new Set(workers.map(({ worker }) => workerKey(worker.id)));
    if (names.size < workers.length)
      throw new ConfigError('live-workers', 'two workers have one id; give each its own.');
    const before = new Set(router.workers().map(({ id }) => workerKey(id)));
    try {
      for (const { worker, streams } of workers) live.#add(worker, streams);
    } catch (error) {
      for (const [key, id] of [...live.#ids]) if (!before.has(key)) live.removeWorker(id);
      throw error;
    }
    for (const { streams } of workers) for (const stream of streams) stream.open();
    live.#store?.open();
    return live;
  }

  /** Adds a worker to the router and opens its streams. One of the same name is replaced, with new streams. Throws likewise, and `live-closed`. */
  addWorker(worker: LiveWorker): void {
    if (this.#closed) throw new MoonrouteError('live-closed', 'the live streams were closed. Open new ones.');
    const streams = this.#streamsOf(worker);
    this.#add(worker, streams);
    for (const stream of streams) stream.open();
  }

  #streamsOf(worker: LiveWorker): readonly WorkerStream[] {
    const { start, size } = worker.dpRanks ?? { start: 0, size: 1 };
    const events = endpointsOf(worker.id, 'events', worker.events, start, size);
    const replay = worker.replay == null ? null : endpointsOf(worker.id, 'replay', worker.replay, start, size);
    return events.map(
      (endpoint, i) =>
        new WorkerStream(
          {
            id: worker.id,
            dpRank: start + i,
            events: endpoint,
            replay: replay?.[i] ?? null,
            topic: worker.topic ?? '',
          },
          this.#router,
          this.#parts,
          this.#limits,
        ),
    );
  }

  #add(worker: LiveWorker, streams: readonly WorkerStream[]): void {
    this.#router.addWorker(worker);
    const key = workerKey(worker.id);
    this.#closeStreams(key);
    // What may be known of such a worker came over connections that are gone: new streams begin from empty.
    this.#router.workerStreamLost(worker.id);
    this.#streams.set(key, streams);
    this.#ids.set(key, worker.id);
  }

  /** Closes a worker's streams and removes it from the router. False when there is none of that name. */
  removeWorker(id: WorkerId): boolean {
    this.#closeStreams(workerKey(id));
    return this.#router.removeWorker(id);
  }

  status(): LiveStatus {
    return {
      workers: [...this.#streams.values()].flat().map((stream) => stream.status()),
      store: this.#store?.status() ?? null,
    };
  }

  /**
   * Closes all streams; resolves when no socket, timer or request of theirs is left. The router and its workers stay; what it knows of their GPUs and
   * of the store is dropped, for nobody watches them any more.
   */
  async close(): Promise<void> {
    this.#closed = true;
    for (const id of this.#ids.values()) this.#router.workerStreamLost(id);
    for (const key of [...this.#streams.keys()]) this.#closeStreams(key);
    await Promise.all([this.#store?.close(), this.#parts.drain.close()]);
  }

  #closeStreams(key: string): void {
    for (const stream of this.#streams.get(key) ?? []) stream.close();
    this.#streams.delete(key);
    this.#ids.delete(key);
  }
}

/** The endpoints of all ranks, in their order. */
export function endpointsOf(
  id: WorkerId,
  what: string,
  given: string | readonly string[],
  start: number,
  size: number,
): readonly string[] {
  if (typeof given !== 'string') {
    if (given.length === size) return given;
    throw new ConfigError(
      'live-endpoints',
      `worker ${id}: ${given.length} ${what} endpoints for ${size} ranks; give one each.`,
    );
  }
  if (start === 0 && size === 1) return [given];
  const [, base, port] = /^(tcp:\/\/.+:)(\d{1,5})$/.exec(given) ?? [];
  if (base === undefined || Number(port) + start + size - 1 > MOST_PORT) {
    throw new ConfigError(
      'live-endpoints',
      `worker ${id}: from ${what} '${given}' no ports for ranks ${start} to ${start + size - 1} follow; give tcp://HOST:PORT, or one endpoint each.`,
    );
  }
  return Array.from({ length: size }, (_, i) => `${base}${Number(port) + start + i}`);
}

/** Times that are given, in milliseconds: Node's timers fire at once where they are longer than this. */
const MOST_MS = 2 ** 31 - 1;

function checkTimes(what: string, times: Readonly<Record<string, unknown>>): void {
  for (const [name, time] of Object.entries(times)) {
    if (time === undefined || (typeof time === 'number' && time > 0 && time <= MOST_MS)) continue;
    throw new ConfigError(
      'live-times',
      `${what}.${name} is ${time}; give milliseconds, more than 0 and at most ${MOST_MS}.`,
    );
  }
}

function checkOptions({ limits, store }: LiveOptions): void {
  const { replayAttempts = WORKER_STREAM_LIMITS.replayAttempts, ...times } = limits ?? {};
  checkTimes('limits', times);
  if (!Number.isInteger(replayAttempts) || replayAttempts < 1) {
    throw new ConfigError('live-times', `limits.replayAttempts is ${replayAttempts}; give a whole number from 1.`);
  }
  const { maxEvidenceAge, reconcileEvery } = store?.keeper ?? {};
  checkTimes('store.keeper', store?.keeper ?? {});
  if (maxEvidenceAge !== undefined && reconcileEvery !== undefined && reconcileEvery >= maxEvidenceAge) {
    throw new ConfigError(
      'live-times',
      `store.keeper.reconcileEvery is ${reconcileEvery}, maxEvidenceAge ${maxEvidenceAge}; reconcile more often than evidence grows too old.`,
    );
  }
  const { listBytes = 1, ...httpTimes } = store?.http ?? {};
  checkTimes('store.http', httpTimes);
  if (!(listBytes > 0))
    throw new ConfigError('live-times', `store.http.listBytes is ${listBytes}; give bytes, more than 0.`);
}

function checkedMasters(masters: readonly MasterEndpoint[]): readonly MasterEndpoint[] {
  if (masters.length < 1 || masters.length > MOST_MASTERS) {
    throw new ConfigError('live-masters', `the store has ${masters.length} masters; give 1 to ${MOST_MASTERS}.`);
  }
  for (const { http } of masters) {
    if (http === null) {
      if (masters.length === 1) continue;
      throw new ConfigError(
        'live-masters',
        'which of several masters serves is asked over HTTP; give http for each of them.',
      );
    }
    if (!/^https?:\/\/[^/]+/.test(http) || !URL.canParse(http)) {
      throw new ConfigError('live-masters', `the master's http is '${http}'; give http://HOST:PORT of its admin port.`);
    }
  }
  return masters;
}
