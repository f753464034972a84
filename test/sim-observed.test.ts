// Watching a simulation: it changes nothing, what is noted adds up to the report, and at the end it says what the caches themselves say.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { SimConfigInput } from '../src/sim/index.js';
import { ObservedRun } from '../src/sim/observed/observed-run.js';
import { SeededRandom } from '../src/sim/random.js';
import { simulate } from '../src/sim/simulate.js';
import type { TraceRequest } from '../src/sim/traces/types.js';
import { builtInWorkload } from '../src/sim/workload.js';
import { assertAddsUp, mainBlocksOf, sumOf, watched } from './support/observed-checks.js';
import { ids, requestsOf } from './support/sim-requests.js';

const GROUPS: NonNullable<SimConfigInput['groups']> = [
  { kind: 'full_attention', window: null, bytesPerBlock: 1_310_720 },
  { kind: 'sliding_window', window: 1024, bytesPerBlock: 6_815_744 },
];

/** What a simulation can be put through. */
const CONFIGS: Readonly<Record<string, SimConfigInput>> = {
  plain: { workers: { count: 3 } },
  'no store': { workers: { count: 2 }, store: { dramBytes: 0 }, policy: 'round-robin' },
  'tight everywhere': {
    workers: { count: 3, gpuBlocks: 6000 },
    store: { dramBytes: 20e9, ssdBytes: 30e9, linkBytesPerSecond: 2e9 },
    policy: 'random',
  },
  restarts: {
    workers: { count: 3, gpuBlocks: 20_000, prefillTokensPerSecond: 6000 },
    store: { dramBytes: 80e9, linkBytesPerSecond: 1e9 },
    restarts: [
      { at: 100_000, worker: 1 },
      { at: 200_000, worker: null },
      { at: 250_000, worker: 0 },
      { at: 330_000, worker: 0 },
      { at: 360_000, worker: 0 },
      { at: 250_001, worker: 2 },
    ],
  },
  'loss and jitter': { workers: { count: 4 }, events: { loss: 0.05, jitter: 200 }, policy: 'random', seed: 9 },
  groups: { workers: { count: 2 }, groups: GROUPS, store: { dramBytes: 200e9, ssdBytes: 50e9 } },
  refusals: { workers: { count: 2, gpuBlocks: 900 }, policy: 'least-loaded', store: { dramBytes: 40e9 } },
};

for (const [name, config] of Object.entries(CONFIGS)) {
  test(`${name}: the report is the same, byte for byte, and what was observed adds up to it`, async () => {
    const requests = () => builtInWorkload({ requests: 180 });
    const plain = JSON.stringify(await simulate(config, requests()));
    const seen = await watched(config, requests());
    assert.is(JSON.stringify(seen.report), plain);
    assertAddsUp(seen, name === 'restarts');
    const mainGroup = 0;
    const { total } = seen.observed.timeline({ place: 'store', from: 0, to: 1e9, columns: 3, families: 5 });
    assert.is(total.held.at(-1), mainBlocksOf(seen.store, mainGroup));
    if (seen.observed.config.groups.length === 1) assert.is(sumOf(total.evicted), seen.report.store.evictedBlocks);
  });
}

test('the configurations above do what they are there for', async () => {
  const tight = await watched(CONFIGS['tight everywhere']!, builtInWorkload({ requests: 180 }));
  const { blocks, store } = tight.report;
  assert.ok(blocks.dram > 0 && blocks.ssd > 0 && store.evictedBlocks > 0, JSON.stringify(tight.report));
  const refusing = await watched(CONFIGS['refusals']!, builtInWorkload({ requests: 180 }));
  assert.ok(refusing.report.refused > 5);
  const restarted = await watched(CONFIGS['restarts']!, builtInWorkload({ requests: 180 }));
  const twice = Array.from({ length: 180 }, (_, i) => restarted.observed.decisionsOf(i)).filter((count) => count > 1);
  assert.ok(twice.length > 0);
});

test('any configuration: the same report, and sums that agree', async () => {
  const random = new SeededRandom(77);
  const one = <T>(...list: T[]): T => list[random.int(list.length)]!;
  for (let round = 0; round < 6; round++) {
    const count = random.between(1, 5);
    const restarts = random.chance(0.4)
      ? [{ at: random.between(1000, 400_000), worker: one<number | null>(null, random.int(count)) }]
      : [];
    const config: SimConfigInput = {
      policy: one('kv', 'ttft', 'round-robin', 'random', 'least-loaded'),
      workers: { count, gpuBlocks: random.between(4000, 40_000), batch: one(2, 8, 64) },
      store: { dramBytes: one(0, 20e9, 500e9), ssdBytes: one(0, 30e9), linkBytesPerSecond: one(1e9, 25e9) },
      ...(random.chance(0.3) ? { groups: GROUPS } : {}),
      events: { loss: one(0, 0.02), jitter: one(0, 50) },
      speedup: one(0.5, 1, 20),
      seed: round,
      restarts,
    };
    const workload = { requests: 100, seed: round };
    const seen = await watched(config, builtInWorkload(workload));
    assert.is(JSON.stringify(seen.report), JSON.stringify(await simulate(config, builtInWorkload(workload))));
    assertAddsUp(seen, restarts.length > 0);
  }
});

test('rows: a request as it went', async () => {
  const config: SimConfigInput = {
    workers: { count: 1, prefillTokensPerSecond: 1000, decodeStep: 10, decodeStepPerRequest: 0 },
    store: { dramBytes: 1e12, latency: 50, linkBytesPerSecond: 5_242_880 * 100 },
    restarts: [{ at: 5000, worker: 0 }],
  };
  // 40 tokens with two whole blocks, again after the worker lost them, and once more.
  const requests = requestsOf(16, [
    { at: 1000, ids: ids(0, 3), input: 40, output: 3 },
    { at: 6000, ids: ids(0, 3), input: 40, output: 1 },
    { at: 6500, ids: ids(0, 3), input: 40, output: 1 },
  ]);
  const observed = new ObservedRun();
  await simulate(config, requests, { observer: observed });
  const times = [0, 1, 2].map((i) => {
    const { at, begunAt, fetchedAt, firstTokenAt, endedAt, gpu, dram, full } = observed.row(i)!;
    return [at, begunAt, fetchedAt, firstTokenAt, endedAt, gpu, dram, full];
  });
  assert.equal(times, [
    [0, 0, 0, 40, 60, 0, 0, 2],
    [5000, 5000, 5070, 5078, 5078, 0, 2, 2],
    [5500, 5500, 5500, 5508, 5508, 2, 0, 2],
  ]);
  const { runnerUp, cost, worker } = observed.row(0)!;
  assert.equal([worker, Number.isNaN(runnerUp), Number.isFinite(cost)], [0, true, true]);
  assert.is(observed.row(3), null);
});

test('orders: each puts first what it is called after', async () => {
  const observed = new ObservedRun();
  await simulate(CONFIGS['tight everywhere']!, builtInWorkload({ requests: 180 }), { observer: observed });
  const keys = {
    arrival: ({ at }) => at,
    slowest: ({ at, firstTokenAt }) => at - firstTokenAt,
    'most-computed': ({ full, gpu, dram, ssd }) => gpu + dram + ssd - full,
    'most-fetched': ({ dram, ssd }) => -dram - ssd,
    'credit-error': ({ creditError }) => -Math.abs(creditError),
    'closest-call': ({ cost, runnerUpCost }) => runnerUpCost - cost,
  } satisfies Record<string, (row: NonNullable<ReturnType<ObservedRun['row']>>) => number>;
  for (const [order, key] of Object.entries(keys)) {
    const { rows, total } = observed.requests(order as keyof typeof keys, 0, 1000);
    assert.equal([rows.length, total], [180, 180]);
    assert.is(new Set(rows.map(({ request }) => request)).size, 180);
    const found = rows.map(key).filter((value) => !Number.isNaN(value));
    assert.ok(
      found.every((value, i) => i === 0 || value >= found[i - 1]!),
      order,
    );
    assert.equal(observed.requests(order as keyof typeof keys, 170, 50).rows, rows.slice(170));
  }
});

test('a picture before the end: what has come so far, and nothing that was given changes later', async () => {
  const observed = new ObservedRun();
  const pictures: [json: string, picture: ReturnType<ObservedRun['picture']>][] = [];
  const half = function* (): Generator<TraceRequest> {
    for (const request of builtInWorkload({ requests: 200 })) {
      yield request;
      if (request.index % 40 !== 39) continue;
      const picture = observed.picture(false);
      pictures.push([JSON.stringify(picture.series.workers), picture]);
      observed.timeline({ place: 0, from: 0, to: picture.now, columns: 50, families: 9 });
      observed.requests('slowest', 0, 20);
    }
  };
  const report = await simulate({ workers: { count: 2 } }, half(), { observer: observed });
  assert.is(
    JSON.stringify(report),
    JSON.stringify(await simulate({ workers: { count: 2 } }, builtInWorkload({ requests: 200 }))),
  );
  assert.equal(
    pictures.map(([, { requests }]) => requests > 0),
    [true, true, true, true, true],
  );
  for (const [json, picture] of pictures) assert.is(JSON.stringify(picture.series.workers), json);
  assert.ok(pictures.every(([, { now }], i) => i === 0 || now > pictures[i - 1]![1].now));
});

test.run();
