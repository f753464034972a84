// What a simulation counts, and the report that it comes to. Blocks and tokens of a request are counted at its end, once, whatever became
// of it on the way; credit each time that a worker looks.
import type { RouterStats } from '../router/router.js';
import type { RouterFeed } from './feed.js';
import type { Fetches } from './fetches.js';
import { Samples } from './samples.js';
import type { SimRequest } from './sim-request.js';
import type { Store } from './store.js';
import type { SimConfig, SimReport } from './types.js';

interface WorkerCount {
  requests: number;
  hitBlocks: number;
}

/** What else a report is made from. */
export interface ReportParts {
  readonly config: SimConfig;
  readonly busy: readonly number[];
  readonly store: Store;
  readonly fetches: Pick<Fetches<unknown>, 'fetchedBytes' | 'peakBytes'>;
  readonly feed: RouterFeed;
  readonly router: RouterStats;
}

/** Clears of residency that are not for what was lost. */
const WANTED_CLEARS: readonly string[] = ['contract-change', 'reconcile'];

export class SimTally {
  requests = 0;
  refused = 0;
  completed = 0;
  reachableBlocks = 0;
  ceilingBlocks = 0;
  readonly #tokens = { prompt: 0, cached: 0, computed: 0, generated: 0 };
  readonly #blocks = { full: 0, gpu: 0, dram: 0, ssd: 0, computed: 0 };
  readonly #credit = { credited: 0, right: 0, short: 0, stale: 0, shortBlocks: 0, staleBlocks: 0 };
  readonly #zero = new Map<string, number>();
  readonly #ttft = new Samples();
  readonly #latency = new Samples();
  readonly #workers: WorkerCount[];
  #firstAt: number | null = null;
  #lastEnd = 0;

  constructor(workers: number) {
    this.#workers = Array.from({ length: workers }, () => ({ requests: 0, hitBlocks: 0 }));
  }

  /** A request reaches the router for the first time. */
  arrived(now: number): void {
    this.requests++;
    this.#firstAt ??= now;
  }

  /** A decision gave no shared credit. */
  notCredited(reason: string): void {
    this.#zero.set(reason, (this.#zero.get(reason) ?? 0) + 1);
  }

  /**
   * A worker looked: what the router credited against what could be restored. Without credit, only what goes beyond what the worker has, and
   * was believed to have, is short.
   */
  looked({ creditedEnd, believedLocal }: SimRequest, localEnd: number, storeEnd: number): void {
    const credit = this.#credit;
    const from = creditedEnd > 0 ? creditedEnd : Math.max(believedLocal, localEnd);
    if (creditedEnd > 0) credit.credited++;
    if (storeEnd > from) {
      credit.short++;
      credit.shortBlocks += storeEnd - from;
    } else if (creditedEnd > storeEnd) {
      credit.stale++;
      credit.staleBlocks += creditedEnd - storeEnd;
    } else if (creditedEnd > 0) credit.right++;
  }

  ended(worker: number, request: SimRequest, blockSize: number): void {
    const { inputTokens, fullBlocks, gpuBlocks, dramBlocks, ssdBlocks, hitBlocks, endedAt } = request;
    this.completed++;
    this.#lastEnd = Math.max(this.#lastEnd, endedAt);
    this.#tokens.prompt += inputTokens;
    this.#tokens.cached += hitBlocks * blockSize;
    this.#tokens.computed += inputTokens - hitBlocks * blockSize;
    this.#tokens.generated += request.generated;
    this.#blocks.full += fullBlocks;
    this.#blocks.gpu += gpuBlocks;
    this.#blocks.dram += dramBlocks;
    this.#blocks.ssd += ssdBlocks;
    this.#blocks.computed += fullBlocks - hitBlocks;
    this.#ttft.add(request.firstTokenAt - request.at);
    this.#latency.add(endedAt - request.at);
    this.#workers[worker]!.requests++;
    this.#workers[worker]!.hitBlocks += gpuBlocks;
  }

  report({ config, busy, store, fetches, feed, router }: ReportParts): SimReport {
    const { cache, index } = router;
    const mean = busy.reduce((sum, time) => sum + time, 0) / busy.length;
    const clears = Object.entries(cache?.clears ?? {}).filter(([cause]) => !WANTED_CLEARS.includes(cause));
    return {
      policy: config.policy,
      requests: this.requests,
      completed: this.completed,
      refused: this.refused,
      tokens: { ...this.#tokens },
      blocks: { ...this.#blocks },
      reachableBlocks: this.reachableBlocks,
      ceilingBlocks: this.ceilingBlocks,
      ttft: this.#ttft.percentiles(),
      latency: this.#latency.percentiles(),
      duration: this.completed === 0 ? 0 : this.#lastEnd - this.#firstAt!,
      imbalance: mean > 0 ? Math.max(...busy) / mean : 1,
      perWorker: this.#workers.map((count, worker) => ({
        requests: count.requests,
        busy: busy[worker]!,
        hitBlocks: count.hitBlocks,
      })),
      store: {
        fetchedBytes: fetches.fetchedBytes,
        peakFetch: fetches.peakBytes,
        putBytes: store.putBytes,
        dramPeakBytes: store.dramPeak,
        ssdPeakBytes: store.ssdPeak,
        evictedBlocks: store.evictedBlocks,
      },
      credit: { ...this.#credit, zero: Object.fromEntries(this.#zero) },
      router: {
        indexEvictions: index.evicted,
        edgeEvictions: cache?.core?.edgeEvictions ?? 0,
        digestEvictions: cache?.core?.digestEvictions ?? 0,
        clears: clears.reduce((sum, [, count]) => sum + count, 0),
        messages: feed.messages,
        lostMessages: feed.lostMessages,
      },
    };
  }
}
