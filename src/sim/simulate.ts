// The simulator's engine: discrete events over a pool of simulated workers, a simulated store, and the real router, which hears of both only
// what its feed brings and drives nothing by itself. The same configuration and requests give the same report, bit by bit, in every
// JavaScript engine: there is no clock, and no random number but the seeded ones.
import { MoonrouteError } from '../errors.js';
import type { RouteRequest } from '../router/prompt.js';
import { Router } from '../router/router.js';
import { BlockTree } from './blocks.js';
import { Ceiling } from './ceiling.js';
import { checkSimConfig, type SimConfigInput } from './config.js';
import { EventHeap } from './event-heap.js';
import { ANEW, ARRIVED, FETCH, MESSAGE, READ, RECONCILE, RESTART, SESSION, STEP } from './event-kinds.js';
import { RouterFeed } from './feed.js';
import { type Fetch, Fetches } from './fetches.js';
import type { SimObserver } from './observed/observer.js';
import { StoreWatch } from './observed/store-watch.js';
import { poolContract } from './pool-contract.js';
import { routerSettings } from './router-settings.js';
import { Sessions } from './sessions.js';
import { ENDED, SimRequest } from './sim-request.js';
import { type FetchPlan, Store } from './store.js';
import { SimTally } from './tally.js';
import type { TraceRequest } from './traces/types.js';
import type { SimConfig, SimProgress, SimReport } from './types.js';
import { SimWorker } from './worker.js';

/** What a simulation tells of itself on its way, and what may end it. */
export interface SimOptions {
  /** Told every few requests. What it promises is awaited: the place to let timers and a page have their turn. */
  progress?(progress: SimProgress): unknown;
  /** Ends the simulation early: it throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Asked every few events, also when all requests are read: where one is due it is awaited. */
  readonly breath?: SimBreath | undefined;
  /** Told what happens. It changes nothing, and must throw nothing. */
  readonly observer?: SimObserver | undefined;
  /** What the router is asked besides, of the request of that number: `explain` changes nothing of what it decides. */
  readonly question?: ((request: number) => RouteQuestion) | undefined;
  /** Asked after each event: ends the simulation where it stands. */
  readonly enough?: (() => boolean) | undefined;
}

/** What a decision can be asked besides. */
export type RouteQuestion = Pick<RouteRequest, 'explain' | 'allowed'>;

/** When timers, and a page, get their turn. */
export interface SimBreath {
  readonly due: () => boolean;
  readonly take: () => unknown;
}

/** Requests between two reports of progress. */
const PROGRESS_EVERY = 100;
/** Events between two questions whether a breath is due; less one. */
const BREATH_MASK = 255;
/** Of the router's hash tables: fixed, so that what they drop at their caps is repeatable. */
const TABLE_SEED = 0x6d6f_6f6e_726f_7574n;
/** Keys of the store are below it (store.ts). */
const MAX_STORE_KEYS = 0x8000_0000;
/** Of a prompt, or of an output: what leases count up to. */
const MAX_TOKENS = 0xffff_ffff;
const NO_PATH = new Int32Array(0);
/** Bounds of the ttft policy's setting (router/ttft-options.ts). */
const MAX_KV_BYTES = 2 ** 30;

/**
 * Simulates a pool of workers that serves the requests.
 * @param requests in order of arrival; of one time, in order
 * @throws ConfigError of `checkSimConfig` and of the router's options; MoonrouteError `sim-request` for one with numbers that can't be meant, `sim-id-tokens`,
 *   `sim-blocks`; what the requests and `progress` throw
 */
export async function simulate(
  config: SimConfigInput,
  requests: AsyncIterable<TraceRequest> | Iterable<TraceRequest>,
  options: SimOptions = {},
): Promise<SimReport> {
  const checked = checkSimConfig(config);
  const router = await makeRouter(checked);
  try {
    const simulation = new Simulation(checked, router, options);
    await simulation.run(requests, options);
    return simulation.report();
  } finally {
    router.dispose();
  }
}

async function makeRouter(config: SimConfig): Promise<Router> {
  const { policy, blockSize, workers, groups, indexBytes, coreEdges } = config;
  const perBlock = groups.reduce(
    (sum, { kind, bytesPerBlock }) => sum + (kind === 'full_attention' ? bytesPerBlock : 0),
    0,
  );
  const router = await Router.create({
    policy,
    settings: routerSettings(config),
    blockSize,
    index: { bytes: indexBytes, ranks: workers.count, tableSeed: TABLE_SEED },
    cache: { limits: { edges: coreEdges }, tableSeed: TABLE_SEED },
    ttft: { kvBytesPerToken: Math.min(MAX_KV_BYTES, Math.max(1, Math.round(perBlock / blockSize))) },
  });
  const contract = poolContract(config);
  for (let id = 0; id < workers.count; id++) router.addWorker({ id, contract });
  return router;
}

class Simulation {
  readonly #config: SimConfig;
  readonly #router: Router;
  readonly #heap = new EventHeap();
  readonly #tree: BlockTree;
  readonly #feed: RouterFeed;
  readonly #store: Store;
  readonly #workers: SimWorker[];
  readonly #fetches: Fetches<SimRequest>;
  /** Fetches whose latency runs, by number. */
  readonly #latent = new Map<number, Fetch<SimRequest>>();
  #nextFetch = 0;
  readonly #sessions = new Sessions();
  /** Requests of sessions with a time to be sent at. */
  readonly #parked = new Map<number, SimRequest>();
  #nextParked = 0;
  readonly #ceiling = new Ceiling();
  readonly #tally: SimTally;
  readonly #observer: SimObserver | undefined;
  readonly #question: SimOptions['question'];
  /** Local hashes of the request being routed. */
  #locals = new BigUint64Array(1024);
  #open = 0;
  #read = 0;

  constructor(config: SimConfig, router: Router, { observer, question }: SimOptions) {
    const { workers, groups, blockSize, restarts, speedup } = config;
    const heap = this.#heap;
    const tree = new BlockTree(blockSize, Math.floor(MAX_STORE_KEYS / groups.length));
    const feed = new RouterFeed({ config, router, tree, heap });
    const watcher = observer === undefined ? feed : new StoreWatch(feed, observer);
    const store = new Store(config.store, groups, blockSize, () => tree.blocksPerNode, watcher);
    this.#config = config;
    this.#router = router;
    this.#tree = tree;
    this.#feed = feed;
    this.#store = store;
    this.#tally = new SimTally(workers.count);
    this.#observer = observer;
    this.#question = question;
    this.#fetches = new Fetches(config.store, workers.count, observer);
    const parts = {
      ...{ config, tree, store, feed, heap, observer },
      looked: (request: SimRequest, localEnd: number, storeEnd: number) =>
        this.#tally.looked(request, localEnd, storeEnd),
      fetch: (worker: number, request: SimRequest, bytes: FetchPlan['bytes'], now: number) =>
        this.#fetch(worker, request, bytes, now),
      ended: (worker: number, request: SimRequest) => this.#ended(worker, request),
    };
    this.#workers = Array.from({ length: workers.count }, (_, number) => new SimWorker(number, parts));
    restarts.forEach(({ at }, place) => {
      heap.put(at / speedup, RESTART, place);
    });
    observer?.begin({ config, clock: heap });
  }

  async run(requests: AsyncIterable<TraceRequest> | Iterable<TraceRequest>, options: SimOptions): Promise<void> {
    const heap = this.#heap;
    const { breath, signal, enough } = options;
    const source = iteratorOf(requests);
    try {
      let next = await source.next();
      if (next.done !== true) heap.put(dueAt(next.value, this.#config), READ);
      let events = 0;
      while (heap.take()) {
        if ((++events & BREATH_MASK) === 0 && breath?.due() === true) {
          await breath.take();
          signal?.throwIfAborted();
        }
        if (heap.kind !== READ) {
          this.#happen();
          if (enough?.() === true) return;
          continue;
        }
        const now = heap.time;
        const request = next.value as TraceRequest;
        this.#took(request, now);
        await this.#tell(request, options);
        if (enough?.() === true) return;
        next = await source.next();
        // A row that is late in an unsorted trace comes as it comes.
        if (next.done !== true) heap.put(Math.max(now, dueAt(next.value, this.#config)), READ);
      }
    } finally {
      await source.return?.();
    }
    if (this.#open > 0) {
      throw new MoonrouteError('sim-stuck', `${this.#open} requests never ended: this is a fault of the simulator.`);
    }
  }

  report(): SimReport {
    return this.#tally.report({
      config: this.#config,
      busy: this.#workers.map(({ busy }) => busy),
      store: this.#store,
      fetches: this.#fetches,
      feed: this.#feed,
      router: this.#router.stats(),
    });
  }

  #happen(): void {
    const { kind, a, b, c, time } = this.#heap;
    switch (kind) {
      case SESSION:
        this.#arrive(take(this.#parked, a)!, time);
        break;
      case STEP:
        this.#workers[a]!.stepped(b, time);
        break;
      case FETCH:
        this.#moves(a, time);
        break;
      case ARRIVED:
        this.#arrived(a, time);
        break;
      case MESSAGE:
        this.#feed.arrive(a, b, c, time);
        break;
      case ANEW:
        this.#feed.notice(a, b, time);
        break;
      case RECONCILE:
        this.#feed.reconcile(this.#store);
        break;
      case RESTART:
        this.#restart(this.#config.restarts[a]!.worker, time);
        break;
    }
  }

  async #tell({ at }: TraceRequest, { progress, signal }: SimOptions): Promise<void> {
    if (++this.#read % PROGRESS_EVERY === 0) await progress?.({ requests: this.#read, at });
    signal?.throwIfAborted();
  }

  /** A request of the trace is due by its own time. */
  #took(request: TraceRequest, now: number): void {
    const { blockSize, speedup } = this.#config;
    const { delay } = request;
    const firstNode = this.#tree.nodes;
    const made = new SimRequest(request, {
      place: this.#read,
      at: now,
      delay: delay === null ? null : delay / speedup,
      path: this.#tree.pathOf(request),
      blockSize,
    });
    this.#open++;
    this.#observer?.read(made, firstNode, this.#tree.nodes);
    const at = this.#sessions.next(made);
    if (at === null) return;
    if (at > now) this.#park(made, at);
    else this.#arrive(made, now);
  }

  #park(request: SimRequest, at: number): void {
    request.at = at;
    this.#parked.set(this.#nextParked, request);
    this.#heap.put(at, SESSION, this.#nextParked++);
  }

  /** A request reaches the router. */
  #arrive(request: SimRequest, now: number): void {
    const { path, fullBlocks, usableBlocks } = request;
    const { blockSize, workers } = this.#config;
    request.at = now;
    this.#tally.arrived(now);
    if (request.blocksNeeded(blockSize) > workers.gpuBlocks) {
      request.state = ENDED;
      request.endedAt = now;
      this.#tally.refused++;
      this.#observer?.refused(request);
      this.#close(request);
      return;
    }
    this.#tally.ceilingBlocks += this.#ceiling.hitsOf(path, fullBlocks, usableBlocks, this.#tree.blocksPerNode);
    const reachable = this.#reachable(path, usableBlocks);
    this.#tally.reachableBlocks += reachable;
    this.#observer?.arrived(request, reachable);
    this.#route(request, now);
  }

  /** Blocks that the best worker, or the store, has now. Nobody has more than there are. */
  #reachable(path: Int32Array, limit: number): number {
    let best = this.#store.reach(path, limit);
    for (let worker = 0; best < limit && worker < this.#workers.length; worker++)
      best = Math.max(best, this.#workers[worker]!.cache.match(path, limit));
    return best;
  }

  #route(request: SimRequest, now: number): void {
    const { inputTokens, path, usableBlocks } = request;
    for (const worker of this.#workers) worker.report(now);
    if (usableBlocks > this.#locals.length) this.#locals = new BigUint64Array(usableBlocks * 2);
    this.#feed.writeLocals(path, usableBlocks, new Uint32Array(this.#locals.buffer));
    const decision = this.#router.route({
      ...this.#question?.(request.place),
      localHashes: this.#locals.subarray(0, usableBlocks),
      tokenCount: inputTokens,
      textOnly: true,
      now,
    });
    const { worker, blocks, lease, sharedReason } = decision;
    const local = blocks.device + blocks.host + blocks.disk;
    request.lease = lease;
    request.believedLocal = local;
    request.creditedEnd = blocks.shared > 0 ? local + blocks.shared : 0;
    if (sharedReason !== null) this.#tally.notCredited(sharedReason.code);
    this.#observer?.routed(request, worker.id as number, decision);
    this.#workers[worker.id as number]!.enqueue(request, now);
  }

  #fetch(worker: number, owner: SimRequest, { dram, ssd }: FetchPlan['bytes'], now: number): void {
    this.#latent.set(this.#nextFetch, { owner, worker, dramBytes: dram, ssdBytes: ssd });
    this.#heap.put(now + this.#config.store.latency, FETCH, this.#nextFetch++);
  }

  #moves(number: number, now: number): void {
    const fetch = take(this.#latent, number);
    if (fetch === undefined) return;
    this.#fetches.begin(fetch, now);
    this.#awaitFetches();
  }

  #arrived(epoch: number, now: number): void {
    if (epoch !== this.#fetches.epoch) return;
    const arrived = this.#fetches.arrived(now);
    this.#awaitFetches();
    for (const { worker, owner } of arrived) this.#workers[worker]!.fetched(owner, now);
  }

  #awaitFetches(): void {
    const { next, epoch } = this.#fetches;
    if (next < Number.POSITIVE_INFINITY) this.#heap.put(next, ARRIVED, epoch);
  }

  #ended(worker: number, request: SimRequest): void {
    this.#tally.ended(worker, request, this.#config.blockSize);
    this.#observer?.ended(request, worker);
    this.#close(request);
  }

  /** A request is done with: what it held is free, and its session goes on. */
  #close(request: SimRequest): void {
    this.#open--;
    request.path = NO_PATH;
    request.lease = null;
    const follower = this.#sessions.endedBy(request);
    if (follower !== null) this.#park(follower, follower.at);
  }

  /** A worker or the store starts anew. What the worker had is sent again, by the router, as a gateway would. */
  #restart(worker: number | null, now: number): void {
    this.#feed.restart(worker, now);
    if (worker === null) {
      this.#store.clear();
      this.#observer?.storeCleared();
      return;
    }
    this.#fetches.drop(worker, now);
    for (const [number, fetch] of this.#latent) if (fetch.worker === worker) this.#latent.delete(number);
    this.#awaitFetches();
    const lost = this.#workers[worker]!.restart(now);
    this.#observer?.workerCleared(worker);
    for (const request of lost) {
      this.#observer?.lost(request, worker);
      request.lease!.fail(now);
      request.reset();
    }
    for (const request of lost) this.#route(request, now);
  }
}

/** When a request is due by its own time. What a trace reader gives is sound; others may give anything. */
function dueAt({ index, at, inputTokens, outputTokens, delay }: TraceRequest, { speedup }: SimConfig): number {
  const tokens = isCount(inputTokens, 1) && isCount(outputTokens, 0);
  if (tokens && Number.isFinite(at) && (delay === null || Number.isFinite(delay))) return at / speedup;
  throw new MoonrouteError(
    'sim-request',
    `request ${index} has ${inputTokens} prompt tokens, ${outputTokens} output tokens, time ${at} and delay ${delay}. Give whole numbers of tokens, at least one of them in the prompt, and milliseconds.`,
  );
}

function isCount(value: number, least: number): boolean {
  return Number.isInteger(value) && value >= least && value <= MAX_TOKENS;
}

/** Takes what stands under a number. */
function take<Value>(map: Map<number, Value>, number: number): Value | undefined {
  const value = map.get(number);
  map.delete(number);
  return value;
}

function iteratorOf(
  requests: AsyncIterable<TraceRequest> | Iterable<TraceRequest>,
): AsyncIterator<TraceRequest> | Iterator<TraceRequest> {
  return Symbol.asyncIterator in requests ? requests[Symbol.asyncIterator]() : requests[Symbol.iterator]();
}
