// Router: the workers of one model, what their caches and the shared store hold, and where a request should go (design.md 7). It has no
// socket, timer or clock: whoever owns those hands in messages and times, be it a gateway or a simulator.
import { KeyList } from '../cache/key-list.js';
import { ReconcileToken, type ReconcileWatermark } from '../cache/reconcile.js';
import type {
  CacheStats,
  DecodedObjects,
  ReconcileResult,
  StoreMessageFate,
  StoreMessageResult,
} from '../cache/types.js';
import type { Contract } from '../contract/descriptor.js';
import { compileModules } from '../core/modules.js';
import type { DumpedBlocks, IndexedBlocks, IndexTier, PrefixIndexStats } from '../core/prefix-types.js';
import { MoonrouteError } from '../errors.js';
import type { WorkerStats } from '../events/worker-events.js';
import type { LoadReport, RankLoadShare, RouterEvent } from '../wire/envelope/types.js';
import { Decider } from './decider.js';
import type { Decision } from './decision.js';
import type { DecisionStats } from './decision-tally.js';
import type { FeedbackStats } from './feedback.js';
import type { ForeignLoadStats, LoadReportFate } from './foreign-load.js';
import type { DecodedResult, GpuEventStats, WorkerMessageResult } from './gpu-events.js';
import type { HealthStats } from './health.js';
import type { LeaseStats } from './lease-types.js';
import { makeParts, modulesOf, type RouterParts } from './parts.js';
import type { PlaneEventResult, PlaneEventStats } from './plane-events.js';
import type { RouteRequest } from './prompt.js';
import { planRouter, type RouterOptions } from './router-options.js';
import type { TtftStats } from './ttft.js';
import { checkDraining, checkWorker, type WorkerId, type WorkerInfo } from './worker-info.js';
import { type WorkerView, workerViews } from './worker-views.js';
import type { RankSlot } from './workers.js';

/** What became of a store message; `no-cache` where the router keeps no shared cache, with the reason in `detail`. */
export type RouterStoreResult = Omit<StoreMessageResult, 'fate'> & { readonly fate: StoreMessageFate | 'no-cache' };

/** Everything that a router counts. */
export interface RouterStats {
  readonly decisions: DecisionStats;
  readonly gpuEvents: GpuEventStats;
  readonly events: WorkerStats;
  readonly index: PrefixIndexStats;
  /** Null where there is no shared cache. */
  readonly cache: CacheStats | null;
  readonly leases: LeaseStats;
  /** Events of a plane. */
  readonly planeEvents: PlaneEventStats;
  /** What other routers have put onto this one's workers. */
  readonly foreignLoad: ForeignLoadStats;
  readonly ttft: TtftStats;
  readonly feedback: FeedbackStats;
  readonly health: HealthStats;
  readonly contracts: {
    readonly ranks: number;
    readonly admitted: number;
    /** Why no contract is in force; null when one is. */
    readonly reason: string | null;
  };
}

/** Routes the requests of one model. Make one with `Router.create`, or `createSync` where nothing can be awaited. */
export class Router {
  readonly #parts: RouterParts;
  readonly #decider: Decider;
  #names: ReadonlySet<string> = new Set();
  #disposed = false;

  private constructor(parts: RouterParts) {
    this.#parts = parts;
    this.#decider = new Decider(parts);
  }

  /** The same as `createSync`, with what has to be compiled done beside the program. Throws likewise, into the promise. */
  static async create(options: RouterOptions = {}): Promise<Router> {
    const plan = planRouter(options);
    await compileModules(modulesOf(plan));
    return new Router(makeParts(plan));
  }

  /**
   * Makes a router at once, for gateways that can't await where they make it: compiling takes some milliseconds once a process. Its memory is reserved here, but for that of the shared cache's core, whose build depends on the contract: that is reserved
   * when the first worker with one is added.
   * @throws ConfigError that names the option which is wrong (`planRouter`, and the parts' own); MoonrouteError `wasm-memory`, `wasm-refused`,
   * `wasm-main-thread` (core/modules.ts) where the engine says no
   */
  static createSync(options: RouterOptions = {}): Router {
    return new Router(makeParts(planRouter(options)));
  }

  // ---- workers ----

  /**
   * Adds a worker. One of the same name is replaced: its contract, adapters and draining are those given now, while the ranks that it still has
   * keep their index, load, rates and health.
   * @throws ConfigError of `checkWorker`; MoonrouteError `router-full`, `router-disposed`, `route-reentered`. Nothing has changed then.
   */
  addWorker(info: WorkerInfo): void {
    this.#refuseDisposed();
    this.#decider.refuseReentry('addWorker');
    const { workers, plan } = this.#parts;
    this.#apply(workers.set(checkWorker(info, plan)));
  }

  /**
   * Whether a worker gets new requests; what it serves goes on. False when there is none of that name.
   * @throws ConfigError `worker-draining`; MoonrouteError `route-reentered`
   */
  setDraining(id: WorkerId, draining: boolean): boolean {
    this.#decider.refuseReentry('setDraining');
    const { workers } = this.#parts;
    const known = workers.infoOf(id);
    if (known !== undefined) workers.set({ ...known, draining: checkDraining(known.id, draining) });
    return known !== undefined;
  }

  /**
   * Forgets a worker: its ranks' blocks, load, rates, health and streams. False when there is none of that name.
   * @throws MoonrouteError `route-reentered`
   */
  removeWorker(id: WorkerId): boolean {
    this.#decider.refuseReentry('removeWorker');
    const { workers, events } = this.#parts;
    const known = workers.infoOf(id);
    if (known === undefined) return false;
    this.#apply(workers.remove(id));
    events.forget(known.id);
    return true;
  }

  /** All workers with their ranks, as they stand. */
  workers(): WorkerView[] {
    return workerViews(this.#parts);
  }

  // ---- what workers and the store say ----

  /**
   * Takes in a message of a worker's event stream, as its three frames. Never throws for what the wire brought. With `dpRank` only what is of that
   * rank is taken: for streams of one rank each.
   */
  onWorkerMessage(
    id: WorkerId,
    frames: readonly Uint8Array[],
    { dpRank }: { dpRank?: number } = {},
  ): WorkerMessageResult {
    const { gpuEvents } = this.#parts;
    return this.#disposed ? gpuEvents.without('disposed') : gpuEvents.take(id, frames, dpRank);
  }

  // What an event plane brings (moonroute/live, `PlaneStreams`): workers are named by their `planeId`.

  /**
   * Takes in one event of a worker's rank, in the order of its ids; whoever calls sees to gaps. Eligible blocks of the device teach the shared cache
   * first, and then the index takes them. Never throws for what the wire brought.
   */
  takeEvent(event: RouterEvent): PlaneEventResult {
    const { planeEvents } = this.#parts;
    return this.#disposed ? planeEvents.without('disposed') : planeEvents.take(event);
  }

  /**
   * Takes in what another router says of its open leases: policies see it beside this router's own load until the report is replaced, until it is
   * older than it is good for, or until its router says good-bye. `now`: milliseconds of the clock by which requests are routed. Never throws for
   * what the report says.
   */
  takeLoadReport(report: LoadReport, now: number): LoadReportFate {
    if (this.#disposed) return 'disposed';
    const { foreignLoad, workers } = this.#parts;
    return foreignLoad.take(report, now, this.#names, (planeId, dpRank) => {
      const worker = workers.planeWorker(planeId);
      return worker === undefined ? undefined : workers.rankOf(worker.id, dpRank)?.rank;
    });
  }

  /** The names under which this router reports its load, so that it does not take its own for another's. */
  reportsAs(...names: string[]): void {
    this.#names = new Set(names);
  }

  /** This router's own open leases by rank, for the others: ranks that have any, of workers with a `planeId`. */
  loadReport(): RankLoadShare[] {
    const { workers, load } = this.#parts;
    const shares: RankLoadShare[] = [];
    for (const { rank, source, worker } of workers.slots) {
      const { activeRequests, prefillTokens, decodeBlocks } = load.of(rank);
      if (worker.planeId === null || activeRequests === 0) continue;
      const { dpRank } = source;
      shares.push({ workerId: worker.planeId, dpRank, activeRequests, prefillTokens, decodeBlocks });
    }
    return shares;
  }

  // What a simulation has in place of messages: the same evidence, decoded and hashed already. Unknown workers are refused by name.

  /**
   * Blocks of a rank entered a tier. On the device they teach first, if they are eligible and without a namespace, and then the index takes them.
   * @throws MoonrouteError `unknown-rank`, `router-disposed`, and those of the index
   */
  takeStored(id: WorkerId, dpRank: number, tier: IndexTier, blocks: IndexedBlocks): DecodedResult {
    return this.#parts.gpuEvents.takeStored(this.#slotOf(id, dpRank), tier, blocks);
  }

  /** Blocks of a rank left a tier: `count` external hashes, as pairs of words from index `2 × at` on. Throws likewise. */
  takeRemoved(id: WorkerId, dpRank: number, tier: IndexTier, lows: Uint32Array, at: number, count: number): number {
    return this.#parts.gpuEvents.takeRemoved(this.#slotOf(id, dpRank), tier, lows, at, count);
  }

  /** Objects of all ranks of a group entered the store, or left it; nothing without a shared cache and a contract in force. */
  takeObjects(objects: DecodedObjects): void {
    this.#parts.cache?.applyObjects(objects);
  }

  /** A worker, or one rank of it, restarted: its index parts start from empty, its streams as new ones. False when there is none of that name. */
  workerStreamLost(id: WorkerId, dpRank?: number): boolean {
    const { workers, events, cache } = this.#parts;
    const known = workers.infoOf(id);
    if (known !== undefined) events.forget(known.id, dpRank);
    for (const { source } of workers.ranksOf(id)) {
      if (dpRank === undefined || source.dpRank === dpRank) cache?.sourceLost(source);
    }
    return this.rebuildWorker(id, dpRank);
  }

  /** Empties the index parts of a worker, or of one rank, which may hold blocks that are gone. False when there is none of that name. */
  rebuildWorker(id: WorkerId, dpRank?: number): boolean {
    const { workers, gpuEvents } = this.#parts;
    const slots = workers.ranksOf(id).filter(({ source }) => dpRank === undefined || source.dpRank === dpRank);
    for (const slot of slots) gpuEvents.rebuild(slot);
    return slots.length > 0;
  }

  /** All that a worker's rank holds, parents before children; empty when there is none of that name. */
  dump(id: WorkerId, dpRank = 0): DumpedBlocks[] {
    const slot = this.#parts.workers.rankOf(id, dpRank);
    return slot === undefined ? [] : this.#parts.index.dump(slot.rank);
  }

  /** Applies a message of the master's event stream; `generation` is the one in force when it was received (default: now). */
  onStoreMessage(frames: readonly Uint8Array[], options: { generation?: number } = {}): RouterStoreResult {
    const { cache } = this.#parts;
    if (cache !== null) return cache.applyStoreMessage(frames, options);
    const nothing = { objects: 0, skipped: { foreignTenant: 0, foreignKey: 0 }, said: { stored: 0, removed: 0 } };
    return { fate: 'no-cache', sequence: null, ...nothing, detail: this.#whyNoCache() };
  }

  /** The master's stream was interrupted, or its evidence has grown too old. */
  storeStreamLost(cause: string): void {
    this.#parts.cache?.streamLost(cause);
  }

  /** Opens a reconcile; one that can't count without a shared cache. */
  beginReconcile(): ReconcileToken {
    const { cache } = this.#parts;
    if (cache !== null) return cache.beginReconcile();
    const token = new ReconcileToken();
    token.voidFor('no-cache');
    return token;
  }

  /** An empty key list for the contract in force; one that can't count without a shared cache. */
  beginKeyList(): KeyList {
    const { cache } = this.#parts;
    if (cache !== null) return cache.beginKeyList();
    const list = new KeyList(null);
    list.voidFor('no-cache');
    return list;
  }

  /** Replaces what is known of the store by the master's keys. */
  reconcile(token: ReconcileToken, keys: Iterable<string> | KeyList, watermark: ReconcileWatermark): ReconcileResult {
    return this.#parts.cache?.reconcile(token, keys, watermark) ?? { accepted: false, reason: 'no-cache' };
  }

  /** Counts changes of the contract in force. */
  get generation(): number {
    return this.#parts.cache?.generation ?? 0;
  }

  /** The contract under which the shared cache credits; null without either. */
  get contract(): Contract | null {
    return this.#parts.cache?.contract ?? null;
  }

  // ---- requests ----

  /**
   * Decides where a request goes and opens its lease. Ranks that rest after failures are left out unless all rest; draining ones always.
   * @throws MoonrouteError `no-workers`, `route-request`, `router-disposed`; ConfigError `shared-cache-multiplier`
   */
  route(request: RouteRequest): Decision {
    this.#refuseDisposed();
    return this.#decider.decide(request);
  }

  stats(): RouterStats {
    const {
      workers,
      gpuEvents,
      planeEvents,
      events,
      index,
      cache,
      leases,
      foreignLoad,
      ttft,
      feedback,
      health,
      latest,
    } = this.#parts;
    const { now } = latest;
    return {
      decisions: this.#decider.stats(),
      gpuEvents: gpuEvents.stats(),
      events: events.stats(),
      index: index.stats(),
      cache: cache?.stats() ?? null,
      leases: leases.stats(),
      planeEvents: planeEvents.stats(),
      foreignLoad: foreignLoad.stats(now),
      ttft: ttft.stats(),
      feedback: feedback.stats(now),
      health: health.stats(now),
      contracts: {
        ranks: workers.slots.length,
        admitted: workers.slots.filter(({ admission }) => admission.code === 'admitted').length,
        reason: workers.inForce.admission.reason,
      },
    };
  }

  /**
   * Ends the router: all shared hints and load are forgotten, and open leases change nothing any more. `route`, `addWorker` and decoded events
   * are refused from now on (`router-disposed`); messages have no effect and say so. `removeWorker`, `setDraining`, `dump`, `workers` and
   * `stats` still answer, for whoever takes a pool down piece by piece, and serve nothing else.
   * @throws MoonrouteError `route-reentered`
   */
  dispose(): void {
    this.#decider.refuseReentry('dispose');
    this.#disposed = true;
    this.#parts.leases.dispose();
    this.#parts.foreignLoad.forgetAll();
    this.#parts.cache?.stop();
  }

  /** Carries a change of workers through: what was kept of ranks that are gone, and the contract in force. */
  #apply(removed: readonly RankSlot[]): void {
    for (const slot of removed) this.#forget(slot);
    const { workers, cache, feedback } = this.#parts;
    const before = workers.inForce.admission.fingerprint;
    const { contract, admission } = workers.decide();
    if (!admission.changed) return;
    cache?.updateContract(contract, admission.sources);
    if (admission.fingerprint !== before) feedback.forget();
  }

  #forget({ rank }: RankSlot): void {
    const { index, load, foreignLoad, ttft, health, policy } = this.#parts;
    index.clear(rank);
    load.forget(rank);
    foreignLoad.forget(rank);
    ttft.forget(rank);
    health.forget(rank);
    policy.forget?.(rank);
  }

  #slotOf(id: WorkerId, dpRank: number): RankSlot {
    this.#refuseDisposed();
    const slot = this.#parts.workers.rankOf(id, dpRank);
    if (slot !== undefined) return slot;
    throw new MoonrouteError(
      'unknown-rank',
      `worker ${id} has no rank ${dpRank} in this router. Add it with addWorker.`,
    );
  }

  #refuseDisposed(): void {
    if (!this.#disposed) return;
    throw new MoonrouteError('router-disposed', 'the router was disposed. Make a new one with Router.create.');
  }

  #whyNoCache(): string | null {
    const { reading } = this.#parts.plan;
    return reading.reads ? null : reading.text;
  }
}
