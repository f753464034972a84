// A simulated Mooncake master that speaks the real wire: the event stream of one of three generations over ZeroMQ, the admin port's HTTP, and on demand
// everything that makes the real one hard to follow: mutations that it does not announce, restarts, a restart whose counters look
// contiguous, overflow, failover, HTTP that fails (spec/mooncake-events.md). Node only; it needs the zeromq package. Nothing here stores anything.
//
// This file is the process: it lives, dies and is reborn on the same ports. What a life knows is a store (store-model.ts) and a publisher.
import { MoonrouteError } from '../errors.js';
import { type AdminReply, adminReply, type LeaderView } from './master/admin-replies.js';
import { AdminServer } from './master/admin-server.js';
import { DEFAULT_SEND_HIGH_WATER_MARK, EventPublisher } from './master/event-publisher.js';
import { DEFAULT_QUEUE_CAPACITY, EventQueue, MAX_BATCH_EVENTS, type PublisherCounts } from './master/event-queue.js';
import { freePort } from './master/free-port.js';
import type { HttpFault } from './master/http-faults.js';
import { checkOptions, flagsOf, type SimulatedMasterOptions } from './master/options.js';
import { FILLER_BYTES, StoreClient } from './master/store-client.js';
import { StoreModel } from './master/store-model.js';
import type { ReplicaView, StoreSnapshot } from './master/store-options.js';
import type { StoredObject } from './master/stored-object.js';
import type { EventFlags, Generation } from './master/types.js';
import { portOf, tcpEndpoint } from './sockets.js';

export type { HttpFault } from './master/http-faults.js';
export type { SimulatedMasterOptions } from './master/options.js';
export type { PutOptions, PutResult, RemoveResult, ReplicaView } from './master/store-options.js';
export type { Generation, ReplicaMedium } from './master/types.js';

/** How long `subscribed` waits unless told otherwise, in milliseconds. */
const SUBSCRIPTION_WAIT_MS = 5_000;
const LOOPBACK = '127.0.0.1';

/** What a new life takes over. */
export interface BootOptions {
  /** `snapshot`: what `takeSnapshot` kept, or else everything as it was at the end. Nothing of it is announced. */
  readonly keep?: 'nothing' | 'snapshot';
  /** Of a snapshot: keys that do not come back, or all whose lease has expired (a known bug of the real master). No `removed` is sent. */
  readonly silentlyDrop?: readonly string[] | 'unleased';
  /** Runs when the new life serves but before its event socket is bound: what it publishes reaches nobody. */
  readonly beforeBind?: (master: SimulatedMaster) => void | Promise<void>;
}

/** From becoming leader to losing that, or to death. */
interface Life {
  readonly store: StoreModel;
  /** Null when events are off. */
  readonly publisher: EventPublisher | null;
}

/** A simulated Mooncake master with its event stream, its admin HTTP and a model of its store. Make one with `SimulatedMaster.start`. */
export class SimulatedMaster extends StoreClient {
  readonly generation: Generation;
  readonly #options: SimulatedMasterOptions;
  readonly #flags: EventFlags;
  readonly #host: string;
  #eventsPort: number;
  readonly #sendHighWaterMark: number;
  readonly #now: () => number;
  readonly #http: AdminServer;
  #life: Life | null = null;
  #role: 'leader' | 'standby';
  #leader: LeaderView | null;
  #snapshot: StoreSnapshot | null = null;
  /** The store at the end of the last life. */
  #left: StoreSnapshot | null = null;
  #lives = 0;
  #fillers = 0;

  private constructor(options: SimulatedMasterOptions, eventsPort: number) {
    super();
    this.#options = options;
    this.generation = options.generation;
    this.#flags = flagsOf(options);
    this.#host = options.host ?? LOOPBACK;
    this.#eventsPort = eventsPort;
    this.#sendHighWaterMark = options.sendHighWaterMark ?? DEFAULT_SEND_HIGH_WATER_MARK;
    this.#now = options.now ?? Date.now;
    this.#role = options.role ?? 'leader';
    this.#leader = options.role === 'leader' ? { address: this.#address, viewVersion: 1 } : null;
    this.#http = new AdminServer(this.#host, options.httpPort ?? 0, (method, target) => this.#answer(method, target));
  }

  /** @throws ConfigError `zeromq-missing`, `bind-failed`, `master-option` */
  static async start(options: SimulatedMasterOptions): Promise<SimulatedMaster> {
    checkOptions(options);
    const { host = LOOPBACK, eventsPort = 0, role, events } = options;
    // Whoever binds at once gets its port by binding.
    const later = eventsPort === 0 && (role === 'standby' || events === false);
    const master = new SimulatedMaster(options, later ? await freePort(host) : eventsPort);
    try {
      await master.boot();
    } catch (error) {
      await master.kill();
      throw error;
    }
    return master;
  }

  // ---- what it is ----

  /** Where subscribers connect; it stays the same through restarts. */
  get eventsEndpoint(): string {
    return tcpEndpoint(this.#host, this.#eventsPort);
  }
  get httpUrl(): string {
    return this.#http.url;
  }
  get role(): 'leader' | 'standby' {
    return this.#role;
  }
  /** Whether it does what clients ask: it is alive and the leader. */
  get serving(): boolean {
    return this.#life !== null;
  }
  /** Lives begun, the first is 1. */
  get lives(): number {
    return this.#lives;
  }
  /** What its status says; null while it does not serve, or has no events. */
  get counts(): Readonly<PublisherCounts> | null {
    return this.#life?.publisher?.queue.counts ?? null;
  }
  /** Of the message sent last. */
  get lastSequence(): number {
    return this.#life?.publisher?.queue.lastSequence ?? 0;
  }
  get lastEventId(): number {
    return this.#life?.publisher?.queue.lastEventId ?? 0;
  }
  /** HTTP requests since the start, by path. */
  requests(path: string): number {
    return this.#http.requests(path);
  }
  /** How often anyone asked `/query_key`, which renews leases and so starves eviction. */
  get queryKeyUses(): number {
    return this.requests('/query_key');
  }

  /** The keys that can be read now and begin so. Nothing while it does not serve. */
  truth(keyPrefix = '', tenant?: string): Set<string> {
    const keys = this.#life?.store.readableKeys(tenant) ?? [];
    return new Set(keyPrefix === '' ? keys : keys.filter((key) => key.startsWith(keyPrefix)));
  }
  /** Whether a key can be read now; grants no lease. False while it does not serve. */
  has(key: string, tenant?: string): boolean {
    return this.#life?.store.has(key, tenant) ?? false;
  }
  /** A key's replicas; grants no lease. */
  replicas(key: string, tenant?: string): ReplicaView | null {
    return this.#life?.store.replicas(key, tenant) ?? null;
  }

  // ---- trouble with the stream ----

  /** Puts so many foreign objects in one go, so that a queue with less room than that overflows. Their keys. */
  burst(count: number): string[] {
    return this.act((store) =>
      Array.from({ length: count }, () => {
        const key = `filler-${++this.#fillers}`;
        store.putEnd(key, 'cpu', FILLER_BYTES);
        return key;
      }),
    );
  }

  /** The socket refuses the next messages: numbers are spent, events count as dropped. */
  failNextSends(messages: number): void {
    this.#living().publisher?.failNext(messages);
  }

  /** The next messages are lost beyond a high water mark: nobody sees them, and they count as published. */
  loseNextMessages(messages: number): void {
    this.#living().publisher?.loseNext(messages);
  }

  /** Resolves when all events so far have been handed to the socket. */
  async flushed(): Promise<void> {
    await this.#life?.publisher?.flushed();
  }

  /** Resolves when so many subscriptions have arrived in this life. @throws MoonrouteError `no-subscription`, `master-unavailable` */
  async subscribed(count = 1, timeoutMs = SUBSCRIPTION_WAIT_MS): Promise<void> {
    await this.#living().publisher?.subscribed(count, timeoutMs);
  }

  // ---- trouble with HTTP ----

  /** Sets or takes back (null) how replies fail, for one path or for all that have no fault of their own. */
  setHttpFault(fault: HttpFault | null, path?: string): void {
    this.#http.setFault(fault, path);
  }

  /** Nothing listens any more: connecting is refused, connections are broken off. The event stream goes on. */
  async httpDown(): Promise<void> {
    await this.#http.stop();
  }

  async httpUp(): Promise<void> {
    if (!this.#http.running) await this.#http.start();
  }

  // ---- lives ----

  /** Keeps the store as it is now, for a restart that keeps a snapshot. */
  takeSnapshot(): void {
    this.#snapshot = this.#living().store.snapshot();
  }

  /** As kill -9 does: both ports are closed, and what was not sent is lost. */
  async kill(): Promise<void> {
    await Promise.all([this.#end(), this.#http.stop()]);
  }

  /** Begins a new life after `kill`: as what it was, leader or standby. Sequence and event ids begin at 1. Nothing while it lives. */
  async boot(options: BootOptions = {}): Promise<void> {
    if (this.serving) return;
    const { keep = 'nothing', silentlyDrop = [] } = options;
    await this.httpUp();
    if (this.#role === 'leader')
      await this.#begin(keep === 'nothing' ? null : (this.#snapshot ?? this.#left), silentlyDrop, options.beforeBind);
  }

  async restart(options?: BootOptions): Promise<void> {
    await this.kill();
    await this.boot(options);
  }

  /**
   * A restart that its numbers hide (spec/mooncake-events.md 2, "Blind spot"): before any subscriber can be back, the new life has put foreign objects
   * until its sequence, and its event id, are where the last life's were. Returns their keys.
   * @throws MoonrouteError `not-contiguous` when the last life's numbers can't be met: events were dropped, or fillers evict each other
   */
  async restartContiguously(options: Omit<BootOptions, 'beforeBind'> = {}): Promise<string[]> {
    this.#living();
    await this.flushed();
    const { lastSequence: messages, lastEventId: events } = this;
    if (events < messages || events > messages * MAX_BATCH_EVENTS) {
      const text = `no life of ${messages} messages and ${events} events looks like one without drops; restart before events are dropped`;
      throw new MoonrouteError('not-contiguous', text);
    }
    await this.kill();
    const keys: string[] = [];
    const beforeBind = async () => {
      for (let message = 0; message < messages; message++) {
        // As many events as leave one for each message to come.
        const left = events - keys.length - (messages - message - 1);
        keys.push(...this.burst(Math.min(left, MAX_BATCH_EVENTS)));
        await this.flushed(); // one message
      }
      if (this.lastSequence !== messages || this.lastEventId !== events) {
        const text = `${messages} messages of ${events} events were wanted, got ${this.lastSequence} of ${this.lastEventId}; give the master more capacity`;
        throw new MoonrouteError('not-contiguous', text);
      }
    };
    await this.boot({ ...options, beforeBind });
    return keys;
  }

  /** The leader loses its lead, or has died, and the standby gets it, with what the leader had. Nothing of it is announced. */
  static async failover(
    from: SimulatedMaster,
    to: SimulatedMaster,
    { keep = 'snapshot', silentlyDrop = [] }: Omit<BootOptions, 'beforeBind'> = {},
  ): Promise<void> {
    await Promise.all([from.#end(), to.#end()]);
    from.#role = 'standby';
    to.#role = 'leader';
    const viewVersion = 1 + Math.max(from.#leader?.viewVersion ?? 0, to.#leader?.viewVersion ?? 0);
    from.#leader = { address: to.#address, viewVersion };
    to.#leader = from.#leader;
    if (to.#http.running) await to.#begin(keep === 'nothing' ? null : from.#left, silentlyDrop);
  }

  /** Tells a standby who leads, as the election does. */
  observeLeader(leader: SimulatedMaster): void {
    this.#leader = leader.#leader;
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    await this.kill();
  }

  // ---- parts ----

  /** The RPC address that `/leader` shows; nothing listens there. */
  get #address(): string {
    return `${this.#host}:50051`;
  }

  async #begin(
    from: StoreSnapshot | null,
    silentlyDrop: readonly string[] | 'unleased',
    beforeBind?: BootOptions['beforeBind'],
  ): Promise<void> {
    const { generation, queueCapacity = DEFAULT_QUEUE_CAPACITY, events = true } = this.#options;
    const publisher = events
      ? new EventPublisher(new EventQueue(generation, this.#flags, queueCapacity), this.#now)
      : null;
    const store = new StoreModel(this.#options, (event) => publisher?.publish(event));
    if (from !== null) store.restore(from, droppedBy(silentlyDrop, this.#now()));
    this.#life = { store, publisher };
    this.#lives++;
    try {
      await beforeBind?.(this);
      if (publisher === null) return;
      await publisher.flushed();
      this.#eventsPort = portOf(await publisher.bind(this.#host, this.#eventsPort, this.#sendHighWaterMark));
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  async #end(): Promise<void> {
    const life = this.#life;
    if (life === null) return;
    this.#life = null;
    this.#left = life.store.snapshot();
    await life.publisher?.close();
  }

  #living(): Life {
    if (this.#life === null) {
      const state = this.#http.running ? 'a standby' : 'not running';
      throw new MoonrouteError(
        'master-unavailable',
        `the simulated master at ${this.httpUrl} is ${state}; it serves nobody`,
      );
    }
    return this.#life;
  }

  protected override act<T>(work: (store: StoreModel) => T): T {
    const { store } = this.#living();
    store.tick(this.#now());
    return work(store);
  }

  #answer(method: string, target: string): AdminReply {
    const store = this.#life?.store ?? null;
    store?.tick(this.#now());
    const view = { generation: this.generation, store, counts: this.counts, leader: this.#leader };
    return adminReply(view, method, target);
  }
}

function droppedBy(silentlyDrop: readonly string[] | 'unleased', now: number): (object: StoredObject) => boolean {
  if (silentlyDrop === 'unleased') return ({ leaseUntil }) => leaseUntil <= now;
  const keys = new Set(silentlyDrop);
  return ({ key }) => keys.has(key);
}
