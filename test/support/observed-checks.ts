// What must hold between what was observed of a simulation and its report, and what the caches themselves say at its end.
import * as assert from 'uvu/assert';
import { GpuCache } from '../../src/sim/gpu-cache.js';
import type { SimConfigInput } from '../../src/sim/index.js';
import { ObservedRun } from '../../src/sim/observed/observed-run.js';
import { simulate } from '../../src/sim/simulate.js';
import { Store } from '../../src/sim/store.js';
import type { TraceRequest } from '../../src/sim/traces/types.js';
import type { SimReport } from '../../src/sim/types.js';

/** A simulation with all that watched it. */
export interface Watched {
  readonly report: SimReport;
  readonly observed: ObservedRun;
  /** In the order of the workers. */
  readonly caches: readonly GpuCache[];
  readonly store: Store;
}

/** Observes a simulation, and keeps its caches and its store. */
export async function watched(config: SimConfigInput, requests: Iterable<TraceRequest>): Promise<Watched> {
  const caches = new Set<GpuCache>();
  let store: Store | null = null;
  const { match } = GpuCache.prototype;
  const { reach } = Store.prototype;
  // Every arrival asks the store first, and then the workers in their order.
  GpuCache.prototype.match = function (this: GpuCache, ...args) {
    caches.add(this);
    return match.apply(this, args);
  };
  Store.prototype.reach = function (this: Store, ...args) {
    store = this;
    return reach.apply(this, args);
  };
  try {
    const observed = new ObservedRun();
    const report = await simulate(config, requests, { observer: observed });
    return { report, observed, caches: [...caches], store: store! };
  } finally {
    GpuCache.prototype.match = match;
    Store.prototype.reach = reach;
  }
}

export const sumOf = (line: Iterable<number>): number => {
  let sum = 0;
  for (const value of line) sum += value;
  return sum;
};

/** Sums of parts may differ in their last bits from parts of sums. */
export function assertNear(found: number, wanted: number, what: string): void {
  assert.ok(Math.abs(found - wanted) <= 1e-9 * Math.max(1, Math.abs(wanted)), `${what}: ${found}, not ${wanted}`);
}

/** @param restarts whether workers started anew, and what was fetched by them was dropped */
export function assertAddsUp({ report, observed, caches, store }: Watched, restarts: boolean): void {
  const { series, ttft, latency, requests, now } = observed.picture(true);
  const { workers } = series;
  assert.is(requests, report.requests);
  for (const tier of ['gpu', 'dram', 'ssd', 'computed'] as const)
    assert.is(sumOf(series[tier]), report.blocks[tier], tier);
  assert.is(sumOf(series.arrived), report.requests);
  assert.is(sumOf(series.arrivedBlocks), report.blocks.full);
  assert.is(sumOf(series.reachable), report.reachableBlocks);
  if (restarts) assert.ok(sumOf(series.fetchedBytes) >= report.store.fetchedBytes * (1 - 1e-9));
  else assertNear(sumOf(series.fetchedBytes), report.store.fetchedBytes, 'fetched bytes');
  assertNear(sumOf(series.putBytes), report.store.putBytes, 'put bytes');
  workers.forEach(({ busy, running, waiting }, worker) => {
    assertNear(sumOf(busy), report.perWorker[worker]!.busy, `busy of ${worker}`);
    assert.ok(busy.every((time) => time <= series.step + 1e-6));
    assert.equal([running.at(-1), waiting.at(-1)], [0, 0]);
  });
  if (report.completed > 0) {
    assert.equal([ttft.length > 0, latency.length > 0], [true, true]);
    assertNear(now, Math.max(now, report.duration), 'end');
    for (const line of [ttft, latency]) assert.ok(line.every((time, i) => i === 0 || time >= line[i - 1]!));
  }
  if (caches.length === 0) return;

  // What is where at the end.
  const { dram, ssd } = store.usedBytes;
  assert.equal([series.storeDram.at(-1), series.storeSsd.at(-1)], [dram, ssd]);
  caches.forEach((cache, worker) => {
    assert.is(workers[worker]!.resident.at(-1), cache.resident, `resident of ${worker}`);
    const { total, families, familiesLeftOut } = observed.timeline({
      ...{ place: worker, from: 0, to: now, columns: 7 },
      families: 256,
    });
    assert.is(total.held.at(-1), cache.resident, `held by ${worker}`);
    assert.is(sumOf(total.evicted), sumOf(workers[worker]!.evicted));
    if (familiesLeftOut > 0) return;
    for (const line of ['held', 'stored', 'fetched', 'evicted'] as const)
      assert.equal(
        Array.from({ length: 7 }, (_, i) => sumOf(families.map((row) => row[line][i]!))),
        [...total[line]],
        line,
      );
  });
}

/** Blocks of the main group in the store. */
export function mainBlocksOf(store: Store, mainGroup: number): number {
  let blocks = 0;
  store.forEach((group, _node, _from, count) => {
    if (group === mainGroup) blocks += count;
  });
  return blocks;
}
