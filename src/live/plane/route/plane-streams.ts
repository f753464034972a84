// An event plane into a router: the events of all its workers' ranks, each kept whole (rank-splice.ts), and the load that other routers have put onto
// them. Beside LiveStreams, for pools where publishers sit at the workers and routers come and go.
//
// What a router knows of a rank outlives a connection of the transport: ids tell afterwards what was missed. It is asked for at once when the connection is
// lost and when it stands again, and a rank that can't be made whole within the time that a direct stream may be down (STALE_AFTER) is emptied.
import { ConfigError, MoonrouteError } from '../../../errors.js';
import type { Router } from '../../../router/router.js';
import { planeIdFrom, type WorkerId, type WorkerInfo, workerKey } from '../../../router/worker-info.js';
import { Backoff } from '../../backoff.js';
import { type Clock, systemClock } from '../../clock.js';
import { Drain } from '../../drain.js';
import { LimitedLog, type LogSink } from '../../limited-log.js';
import type { PlaneMessage, PlaneNotice, PlaneSubscriber } from '../transport.js';
import { AskSlots } from './ask-slots.js';
import { LOAD_TIMES, type LoadTimes } from './load-pace.js';
import { LoadSharing, type LoadSharingStatus } from './load-sharing.js';
import { type PlaneRankStatus, RankStream, type RankStreamParts } from './rank-stream.js';

/** A worker whose events come over a plane. */
export interface PlaneWorker extends WorkerInfo {
  /** Its number there; where its id is a text of digits, that may be left out. */
  readonly planeId?: bigint | number | string;
}

/** What is opened, and how. */
export interface PlaneOptions {
  /** The transport (`openPlaneSubscriber`); it is opened here, and closed with the streams. */
  readonly subscriber: PlaneSubscriber;
  readonly workers?: readonly PlaneWorker[];
  /**
   * Whether load is shared with other routers: this one's name among them, new at every start, and when it reports. Default null: it is not.
   */
  readonly load?: ({ readonly name: string } & Partial<LoadTimes>) | null;
  /** Where lines go, at most one a second per cause. Default nowhere. */
  readonly log?: LogSink;
  readonly clock?: Clock;
  /** Scatters delays. Default `Math.random`. */
  readonly random?: () => number;
}

/** How all stands. */
export interface PlaneStatus {
  readonly ranks: readonly PlaneRankStatus[];
  /** What the transport told of itself, by kind. */
  readonly notices: Readonly<Record<string, number>>;
  /** What it said last that was no good news, and still holds; null when all connections stand. */
  readonly trouble: string | null;
  /** Batches of ranks that this router does not have. */
  readonly foreign: number;
  /** Questions under way, and those that wait for their turn. */
  readonly asking: { readonly running: number; readonly waiting: number };
  /** Null where load is not shared. */
  readonly load: LoadSharingStatus | null;
}

/** How often ranks are looked after, in milliseconds. */
const TICK = 1000;
const OPEN_FIRST = 1000;
const OPEN_MOST = 30_000;

/** The open plane of one router. */
export class PlaneStreams {
  readonly #router: Router;
  readonly #subscriber: PlaneSubscriber;
  readonly #parts: RankStreamParts;
  readonly #ranks = new Map<string, RankStream>();
  /** By worker key: its id, and the keys of its ranks. */
  readonly #workers = new Map<string, { readonly id: WorkerId; readonly ranks: readonly string[] }>();
  readonly #notices = new Map<string, number>();
  /** Connections that are down, with why. */
  readonly #down = new Map<string, string>();
  readonly #load: LoadSharing | null;
  readonly #opening: Backoff;
  #foreign = 0;
  #stops: (() => void)[] = [];
  #retry: () => void = () => {};
  #closed = false;

  private constructor(router: Router, options: PlaneOptions) {
    const { subscriber, load = null, log = () => {}, clock = systemClock, random = Math.random } = options;
    const limited = new LimitedLog(log, clock);
    const drain = new Drain(clock, (error) =>
      limited.say('plane fault', 'error', `${(error as Error).stack ?? error}`),
    );
    this.#router = router;
    this.#subscriber = subscriber;
    this.#parts = { router, subscriber, slots: new AskSlots(), clock, drain, log: limited, random };
    this.#opening = new Backoff(OPEN_FIRST, OPEN_MOST, random);
    const times = { ...LOAD_TIMES, ...load };
    this.#load = load === null ? null : new LoadSharing(checkedName(load.name), this.#parts, checkedTimes(times));
  }

  /**
   * Opens the plane; its connections come by themselves, now and after every loss.
   * @throws ConfigError `plane-name`, `plane-times`, `plane-workers`, and what `Router.addWorker` throws; no worker stays added then
   */
  static open(router: Router, options: PlaneOptions): PlaneStreams {
    const plane = new PlaneStreams(router, options);
    const workers = options.workers ?? [];
    const before = new Set(router.workers().map(({ id }) => workerKey(id)));
    try {
      for (const worker of workers) plane.#add(worker);
    } catch (error) {
      for (const [key, { id }] of [...plane.#workers]) if (!before.has(key)) plane.removeWorker(id);
      throw error;
    }
    plane.#open();
    for (const rank of plane.#ranks.values()) rank.open();
    plane.#load?.open();
    plane.#tick();
    return plane;
  }

  /** Adds a worker to the router and asks for what it holds. One of the same name is replaced, and asked anew. Throws likewise, and `plane-closed`. */
  addWorker(worker: PlaneWorker): void {
    if (this.#closed) throw new MoonrouteError('plane-closed', 'the plane was closed. Open a new one.');
    for (const key of this.#add(worker)) this.#ranks.get(key)!.open();
  }

  /** Ends a worker's streams and removes it from the router. False when there is none of that name. */
  removeWorker(id: WorkerId): boolean {
    this.#drop(workerKey(id));
    return this.#router.removeWorker(id);
  }

  /** Whether the worker's events come over this plane. */
  has(id: WorkerId): boolean {
    return this.#workers.has(workerKey(id));
  }

  status(): PlaneStatus {
    const { slots } = this.#parts;
    return {
      ranks: [...this.#ranks.values()].map((rank) => rank.status()),
      notices: Object.fromEntries(this.#notices),
      trouble: this.#down.values().next().value ?? null,
      foreign: this.#foreign,
      asking: { running: slots.running, waiting: slots.waiting },
      load: this.#load?.status() ?? null,
    };
  }

  /**
   * Ends all; says good-bye to the other routers. The router and its workers stay; what it knows of these workers' GPUs is dropped, for nobody watches
   * them any more.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#retry();
    for (const stop of this.#stops) stop();
    this.#load?.close();
    for (const [key, { id }] of [...this.#workers]) {
      this.#drop(key);
      this.#router.workerStreamLost(id);
    }
    await Promise.all([this.#subscriber.close(), this.#parts.drain.close()]);
  }

  // ---- workers ----

  /** Puts a worker's ranks in place of those of before; the keys of these. */
  #add(worker: PlaneWorker): readonly string[] {
    const planeId = planeIdFrom(worker.planeId ?? worker.id);
    if (planeId === null) {
      throw new ConfigError(
        'plane-workers',
        `worker ${worker.id} has no number on the plane; give planeId, the worker id under which its publisher sends (0 to 2^64 − 1).`,
      );
    }
    this.#router.addWorker({ ...worker, planeId });
    const key = workerKey(worker.id);
    this.#drop(key);
    // What may be known of such a worker came over streams that are gone.
    this.#router.workerStreamLost(worker.id);
    const { start, size } = worker.dpRanks ?? { start: 0, size: 1 };
    const ranks = Array.from({ length: size }, (_, i) => ({ workerId: planeId, dpRank: start + i }));
    for (const rank of ranks) this.#ranks.set(rankKey(rank), new RankStream(worker.id, rank, this.#parts));
    const keys = ranks.map(rankKey);
    this.#workers.set(key, { id: worker.id, ranks: keys });
    return keys;
  }

  #drop(key: string): void {
    for (const rank of this.#workers.get(key)?.ranks ?? []) {
      this.#ranks.get(rank)?.close();
      this.#ranks.delete(rank);
    }
    this.#workers.delete(key);
  }

  // ---- the transport ----

  #open(): void {
    const handlers = {
      onMessage: (message: PlaneMessage) => this.#take(message),
      onNotice: (notice: PlaneNotice) => this.#notice(notice),
      onLoad: (payload: Uint8Array) => {
        if (!this.#closed) this.#load?.take(payload);
      },
    };
    this.#subscriber.open(handlers).catch((error: Error) => {
      if (this.#closed) return;
      this.#notice({ kind: 'trouble', detail: `it can't be opened: ${error.message}` });
      this.#retry = this.#parts.clock.after(this.#opening.next(), () => this.#open());
    });
  }

  #take({ rank, payload, place }: PlaneMessage): void | Promise<void> {
    const stream = this.#ranks.get(rankKey(rank));
    if (stream !== undefined) return stream.take(payload, place !== null);
    this.#foreign++;
  }

  #notice(notice: PlaneNotice): void {
    if (this.#closed) return;
    const { log } = this.#parts;
    const { kind } = notice;
    this.#notices.set(kind, (this.#notices.get(kind) ?? 0) + 1);
    if (notice.kind === 'connected') {
      const isBack = this.#down.delete(notice.to);
      log.say('plane connected', 'info', `plane: connected to ${notice.to}`);
      if (isBack) for (const rank of this.#ranks.values()) rank.connected();
      return;
    }
    log.say(
      `plane ${kind}`,
      'warn',
      `plane: ${kind}: ${notice.kind === 'lost' ? `${notice.to}: ` : ''}${notice.detail}`,
    );
    if (notice.kind === 'lost') {
      const isNew = !this.#down.has(notice.to);
      this.#down.set(notice.to, `${notice.to}: ${notice.detail}`);
      if (!isNew) return; // a failed attempt to reconnect
    }
    if (kind !== 'trouble') for (const rank of this.#ranks.values()) rank.check();
  }

  #tick(): void {
    for (const rank of this.#ranks.values()) rank.tick();
    this.#stops = [this.#parts.clock.after(TICK, () => this.#tick())];
  }
}

function rankKey({ workerId, dpRank }: { readonly workerId: bigint; readonly dpRank: number }): string {
  return `${workerId}/${dpRank}`;
}

const MOST_NAME = 256;

function checkedName(name: unknown): string {
  if (typeof name === 'string' && name !== '' && name.length <= MOST_NAME) return name;
  throw new ConfigError('plane-name', `load.name is ${String(name)}; give a text that no other router has.`);
}

/** Node's timers fire at once where they are longer. */
const MOST_MS = 2 ** 31 - 1;

function checkedTimes({ every, atLeast, goodFor }: LoadTimes): LoadTimes {
  const whole = [every, atLeast, goodFor].every((time) => Number.isFinite(time) && time >= 1 && time <= MOST_MS);
  if (whole && every <= atLeast && atLeast < goodFor) return { every, atLeast, goodFor };
  throw new ConfigError(
    'plane-times',
    `load.every is ${every}, atLeast ${atLeast}, goodFor ${goodFor}; give milliseconds, in rising order, goodFor above atLeast.`,
  );
}
