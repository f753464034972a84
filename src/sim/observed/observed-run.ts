// Watches one simulation and keeps what pages show of it: how it went over time, each request, and what was where. All of it is bounded: series by
// their buckets, rows, records and families by their greatest numbers. Asking it for something changes nothing.
import type { Decision } from '../../router/decision.js';
import { type SimRequest, WAITING } from '../sim-request.js';
import { DRAM } from '../store.js';
import type { SimConfig } from '../types.js';
import { Families, NO_FAMILY } from './families.js';
import { Lanes } from './lanes.js';
import type { SimObserver, SimScene } from './observer.js';
import { RequestOrders } from './orders.js';
import { SortedTimes } from './quantiles.js';
import { MAX_ROWS, RequestRows } from './request-rows.js';
import { CAME, CLEARED, EVICTED, READ, RESTORED, ResidencyLog, STORE } from './residency-log.js';
import { residencyView } from './residency-view.js';
import { SeriesRecorder } from './series.js';
import { spansOf } from './spans.js';
import type { RequestOrder, RequestRow, SimPicture, SimPlace, TimelineView } from './types.js';

/** Most rows that one question is answered with. */
export const MAX_ROWS_AT_ONCE = 10_000;
/** Most columns, and families, of a timeline. */
export const MAX_COLUMNS = 4096;
export const MAX_FAMILY_ROWS = 256;

/** What a timeline shows, and how finely. */
export interface TimelineQuestion {
  readonly place: SimPlace;
  /** Milliseconds. */
  readonly from: number;
  readonly to: number;
  readonly columns: number;
  readonly families: number;
}

export class ObservedRun implements SimObserver {
  #scene!: SimScene;
  #config!: SimConfig;
  #series!: SeriesRecorder;
  #lanes: readonly Lanes[] = [];
  #mainGroup = 0;
  #origin = Number.NaN;
  #now = 0;
  #reads = 0;
  #requests = 0;
  /** Changes with the rows. */
  #version = 0;
  readonly #rows = new RequestRows();
  readonly #orders = new RequestOrders(this.#rows);
  readonly #families = new Families();
  readonly #log = new ResidencyLog();
  readonly #ttft = new SortedTimes();
  readonly #latency = new SortedTimes();

  // ---- what is asked ----

  get config(): SimConfig {
    return this.#config;
  }

  /** Bytes that it takes. */
  get bytes(): number {
    const parts = [this.#rows, this.#families, this.#log, this.#ttft, this.#latency, this.#series];
    return parts.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Requests of the trace that it has read. */
  get reads(): number {
    return this.#reads;
  }

  picture(finished: boolean): SimPicture {
    return {
      policy: this.#config.policy,
      now: this.#now,
      finished,
      series: this.#series.series(),
      ttft: this.#ttft.quantiles(),
      latency: this.#latency.quantiles(),
      requests: this.#requests,
    };
  }

  /** Some requests of an order, from its place `from` on, and how many there are. */
  requests(order: RequestOrder, from: number, count: number): { readonly rows: RequestRow[]; readonly total: number } {
    const places = this.#orders.of(order, this.#version);
    const end = from + Math.min(count, MAX_ROWS_AT_ONCE);
    return { rows: [...places.subarray(from, end)].map((place) => this.#rows.row(place)), total: places.length };
  }

  /** One request; null for one without a row. */
  row(request: number): RequestRow | null {
    return request >= 0 && request < this.#rows.count ? this.#rows.row(request) : null;
  }

  /** How often the router decided about a request. */
  decisionsOf(request: number): number {
    return this.#rows.sent[request] ?? 0;
  }

  timeline({ place, from, to, columns, families }: TimelineQuestion): TimelineView {
    const { workers, store, groups } = this.#config;
    const end = Math.max(to, from + Number.MIN_VALUE);
    const question = {
      place: place === 'store' ? STORE : place,
      ...{ from, to: end },
      columns: Math.min(MAX_COLUMNS, Math.max(1, Math.floor(columns))),
      families: Math.min(MAX_FAMILY_ROWS, families),
    };
    const ofStore = { spans: [], spansLeftOut: 0, lanes: 0 };
    const storeBlocks = Math.floor((store.dramBytes + store.ssdBytes) / groups[this.#mainGroup]!.bytesPerBlock);
    return {
      ...{ place, from, to: end, columns: question.columns },
      ...(place === 'store'
        ? ofStore
        : { ...spansOf(this.#rows, place, from, end, this.#now), lanes: this.#lanes[place]?.count ?? 0 }),
      ...residencyView(this.#log, this.#families, question),
      capacity: place === 'store' ? storeBlocks : workers.gpuBlocks,
      recordedTo: Math.min(this.#now, this.#log.recordedTo),
    };
  }

  // ---- what happens ----

  begin(scene: SimScene): void {
    this.#scene = scene;
    this.#config = scene.config;
    const { workers, groups } = scene.config;
    this.#series = new SeriesRecorder(workers.count);
    this.#lanes = Array.from({ length: workers.count }, () => new Lanes());
    this.#mainGroup = groups.findIndex(({ kind }) => kind === 'full_attention');
  }

  read(request: SimRequest, firstNode: number, endNode: number): void {
    this.#reads++;
    if (Number.isNaN(this.#origin)) this.#origin = this.#scene.clock.time;
    const family = this.#families.read(request.place, request.path[0], firstNode, endNode);
    if (this.#families.full) this.#log.end(this.#turn());
    if (request.place >= MAX_ROWS) return;
    this.#rows.add(request.inputTokens, request.outputTokens, request.fullBlocks, family);
    this.#version++;
  }

  arrived(request: SimRequest, reachable: number): void {
    const now = this.#comes(request);
    this.#series.add('reachable', now, reachable);
    this.#series.add('arrivedBlocks', now, request.fullBlocks);
  }

  refused(request: SimRequest): void {
    this.#comes(request);
  }

  routed(request: SimRequest, worker: number, { cost, runnerUp, blocks }: Decision): void {
    this.#turn();
    this.#series.changeOf(worker, 'waiting', 1);
    const place = this.#placeOf(request);
    if (place < 0) return;
    const rows = this.#rows;
    rows.worker[place] = worker;
    rows.cost[place] = cost;
    rows.credited[place] = blocks.shared;
    if (rows.sent[place]! < 0xff) rows.sent[place]!++;
    if (runnerUp === null) return;
    rows.runnerUp[place] = runnerUp.worker.id as number;
    rows.runnerUpCost[place] = runnerUp.cost;
  }

  began(request: SimRequest, worker: number, localEnd: number, storeEnd: number): void {
    const now = this.#turn();
    this.#series.changeOf(worker, 'waiting', -1);
    this.#series.changeOf(worker, 'running', 1);
    this.#countBlocks(request, now, 1);
    const restored = request.dramBlocks + request.ssdBlocks;
    const place = this.#placeOf(request);
    if (restored > 0) {
      const family = place < 0 ? this.#families.of(request.path[0]!) : this.#rows.family[place]!;
      this.#log.add(now, STORE, READ, family, restored);
    }
    if (place < 0) return;
    const rows = this.#rows;
    rows.begunAt[place] = now;
    if (restored === 0) rows.fetchedAt[place] = now;
    rows.lane[place] = this.#lanes[worker]!.take();
    rows.gpu[place] = request.gpuBlocks;
    rows.dram[place] = request.dramBlocks;
    rows.ssd[place] = request.ssdBlocks;
    rows.creditError[place] = creditError(request, localEnd, storeEnd);
  }

  fetched(request: SimRequest, _worker: number): void {
    const now = this.#turn();
    const place = this.#placeOf(request);
    if (place >= 0) this.#rows.fetchedAt[place] = now;
  }

  firstToken(request: SimRequest, _worker: number): void {
    const now = this.#turn();
    const place = this.#placeOf(request);
    if (place >= 0) this.#rows.firstTokenAt[place] = now;
  }

  ended(request: SimRequest, worker: number): void {
    const now = this.#turn();
    this.#series.changeOf(worker, 'running', -1);
    this.#ttft.add(request.firstTokenAt - request.at);
    this.#latency.add(request.endedAt - request.at);
    const place = this.#placeOf(request);
    if (place < 0) return;
    this.#rows.endedAt[place] = now;
    this.#lanes[worker]!.free(this.#rows.lane[place]!);
  }

  lost(request: SimRequest, worker: number): void {
    this.#turn();
    const place = this.#placeOf(request);
    const begun = request.state !== WAITING;
    this.#series.changeOf(worker, begun ? 'running' : 'waiting', -1);
    if (place < 0) return;
    if (begun) {
      this.#countBlocks(request, this.#rows.begunAt[place]!, -1);
      this.#lanes[worker]!.free(this.#rows.lane[place]!);
    }
    this.#rows.reset(place);
  }

  computed(worker: number, from: number): void {
    const now = this.#turn();
    this.#series.spreadOf(worker, 'busy', this.#timeOf(from), now, 1);
  }

  moved(from: number, to: number, bytesPerMs: number): void {
    this.#turn();
    this.#series.spread('fetchedBytes', this.#timeOf(from), this.#timeOf(to), bytesPerMs);
  }

  workerEntered(worker: number, restored: boolean, node: number, _from: number, count: number): void {
    const now = this.#turn();
    this.#series.changeOf(worker, 'resident', count);
    this.#log.add(now, worker, restored ? RESTORED : CAME, this.#families.of(node), count);
  }

  workerEvicted(worker: number, node: number, _from: number, count: number): void {
    const now = this.#turn();
    this.#series.changeOf(worker, 'resident', -count);
    this.#series.addOf(worker, 'evicted', now, count);
    this.#log.add(now, worker, EVICTED, this.#families.of(node), count);
  }

  workerCleared(worker: number): void {
    const now = this.#turn();
    this.#series.clearOf(worker, 'resident');
    this.#log.add(now, worker, CLEARED, NO_FAMILY, 0);
  }

  storePut(group: number, node: number, _from: number, count: number): void {
    const now = this.#turn();
    const bytes = this.#bytesOf(group, count);
    this.#series.add('putBytes', now, bytes);
    this.#series.change('storeDram', bytes);
    if (group === this.#mainGroup) this.#log.add(now, STORE, CAME, this.#families.of(node), count);
  }

  storeSpilled(group: number, _node: number, _from: number, count: number): void {
    this.#turn();
    const bytes = this.#bytesOf(group, count);
    this.#series.change('storeDram', -bytes);
    this.#series.change('storeSsd', bytes);
  }

  storeEvicted(tier: number, group: number, node: number, _from: number, count: number): void {
    const now = this.#turn();
    const bytes = this.#bytesOf(group, count);
    this.#series.add('evictedBytes', now, bytes);
    this.#series.change(tier === DRAM ? 'storeDram' : 'storeSsd', -bytes);
    if (group === this.#mainGroup) this.#log.add(now, STORE, EVICTED, this.#families.of(node), count);
  }

  storeCleared(): void {
    const now = this.#turn();
    this.#series.clear('storeDram');
    this.#series.clear('storeSsd');
    this.#log.add(now, STORE, CLEARED, NO_FAMILY, 0);
  }

  #bytesOf(group: number, count: number): number {
    return count * this.#config.groups[group]!.bytesPerBlock;
  }

  #comes(request: SimRequest): number {
    const now = this.#turn();
    this.#requests++;
    this.#series.add('arrived', now, 1);
    const place = this.#placeOf(request);
    if (place >= 0) this.#rows.at[place] = now;
    return now;
  }

  /** Blocks of a request where its worker began it, by where they were found. */
  #countBlocks({ fullBlocks, gpuBlocks, dramBlocks, ssdBlocks, hitBlocks }: SimRequest, at: number, by: number): void {
    this.#series.add('gpu', at, gpuBlocks * by);
    this.#series.add('dram', at, dramBlocks * by);
    this.#series.add('ssd', at, ssdBlocks * by);
    this.#series.add('computed', at, (fullBlocks - hitBlocks) * by);
  }

  /** The request's row, which changes; −1 without one. */
  #placeOf({ place }: SimRequest): number {
    this.#version++;
    return place < this.#rows.count ? place : -1;
  }

  /** Time has come to now. */
  #turn(): number {
    const now = this.#timeOf(this.#scene.clock.time);
    this.#now = now;
    this.#series.turnTo(now);
    return now;
  }

  /** Milliseconds since the first arrival; what is before it (a restart of nothing) is at it. */
  #timeOf(time: number): number {
    return time > this.#origin ? time - this.#origin : 0;
  }
}

/** Shared blocks that the router counted on against those that could be restored, as the report counts them: short is positive, stale negative. */
function creditError({ creditedEnd, believedLocal }: SimRequest, localEnd: number, storeEnd: number): number {
  const from = creditedEnd > 0 ? creditedEnd : Math.max(believedLocal, localEnd);
  if (storeEnd > from) return storeEnd - from;
  return creditedEnd > storeEnd ? storeEnd - creditedEnd : 0;
}
