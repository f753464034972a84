// Whole simulations, with the real router: nothing is lost or made up, the same seed gives the same report, and what is known must come out.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  builtInWorkload,
  type GroupModel,
  readTrace,
  type SimConfigInput,
  type SimReport,
  simulate,
  type TraceRequest,
} from '../src/sim/index.js';
import { ids, requestsOf } from './support/sim-requests.js';
import { simulateLru } from './support/simulate-lru.js';
import { publishedTrace, readAll } from './support/traces.js';

const BLOCK = 16;
const FULL: GroupModel = { kind: 'full_attention', window: null, bytesPerBlock: 1_000_000 };
const WINDOW: GroupModel = { kind: 'sliding_window', window: 1024, bytesPerBlock: 500_000 };
const STATE: GroupModel = { kind: 'mamba', window: null, bytesPerBlock: 2_000_000 };

const workload = (requests = 400): TraceRequest[] => [...builtInWorkload({ requests, rate: 20 })];
/** Small enough that everything is short of room. */
const tight: SimConfigInput = {
  workers: { count: 3, gpuBlocks: 12_000 },
  store: { dramBytes: 20e9, ssdBytes: 10e9 },
  groups: [FULL],
};

function checkSums(report: SimReport, requests: readonly TraceRequest[]): void {
  const { blocks, tokens, perWorker, credit } = report;
  const sum = (of: (request: TraceRequest) => number) => requests.reduce((total, request) => total + of(request), 0);
  assert.is(report.requests, requests.length);
  assert.is(report.completed + report.refused, requests.length);
  assert.is(report.refused, 0);
  assert.is(blocks.full, blocks.gpu + blocks.dram + blocks.ssd + blocks.computed);
  assert.is(
    blocks.full,
    sum(({ inputTokens }) => Math.floor(inputTokens / BLOCK)),
  );
  assert.is(
    tokens.prompt,
    sum(({ inputTokens }) => inputTokens),
  );
  assert.is(tokens.prompt, tokens.cached + tokens.computed);
  assert.is(tokens.cached, (blocks.gpu + blocks.dram + blocks.ssd) * BLOCK);
  assert.is(
    tokens.generated,
    sum(({ outputTokens }) => outputTokens),
  );
  assert.is(
    perWorker.reduce((total, worker) => total + worker.requests, 0),
    requests.length,
  );
  assert.is(
    perWorker.reduce((total, worker) => total + worker.hitBlocks, 0),
    blocks.gpu,
  );
  assert.is(credit.credited + Object.values(credit.zero).reduce((total, count) => total + count, 0), requests.length);
  assert.ok(report.ttft.p50! > 0 && report.ttft.p99! <= report.latency.p99!);
}

const pools: readonly (readonly [name: string, config: SimConfigInput])[] = [
  ['kv', {}],
  ['ttft', { policy: 'ttft' }],
  ['round-robin', { policy: 'round-robin' }],
  ['random', { policy: 'random' }],
  ['least-loaded', { policy: 'least-loaded' }],
  ['no store', { store: { dramBytes: 0 } }],
  ['a store of SSD alone', { store: { dramBytes: 0, ssdBytes: 20e9 } }],
  ['a window and a state', { groups: [FULL, WINDOW, STATE], ranks: 3 }],
  ['late and lost messages', { events: { delay: 50, jitter: 200, loss: 0.1, reconcileAfter: 500 } }],
];

for (const [name, config] of pools) {
  test(`conservation: ${name}`, async () => {
    const requests = workload();
    checkSums(await simulate({ ...tight, ...config }, requests), requests);
  });
}

test('what is everywhere in memory comes from everywhere', async () => {
  const { blocks, store } = await simulate(tight, workload());
  assert.ok(blocks.gpu > 0 && blocks.dram > 0 && blocks.ssd > 0, JSON.stringify(blocks));
  assert.is(store.dramPeakBytes, 20e9);
  assert.is(store.ssdPeakBytes, 10e9);
  assert.ok(store.evictedBlocks > 0);
});

test('no request is lost, and none served twice, whatever starts anew', async () => {
  const requests = workload();
  const restarts = [
    { at: 5_000, worker: 1 },
    { at: 5_000, worker: null },
    { at: 8_000, worker: 0 },
    { at: 8_001, worker: 0 },
    { at: 12_000, worker: null },
    { at: 1e9, worker: 2 },
  ];
  const { completed, blocks, tokens } = await simulate({ ...tight, restarts, events: { jitter: 50 } }, requests);
  assert.is(completed, requests.length);
  assert.is(blocks.full, blocks.gpu + blocks.dram + blocks.ssd + blocks.computed);
  assert.is(
    tokens.prompt,
    requests.reduce((total, { inputTokens }) => total + inputTokens, 0),
  );
});

test('the same seed gives the same report; another one differs where something is drawn', async () => {
  const requests = workload();
  const drawn = { ...tight, events: { jitter: 100, loss: 0.05 } };
  const first = await simulate(drawn, requests);
  assert.is(JSON.stringify(await simulate(drawn, requests)), JSON.stringify(first));
  assert.is.not(JSON.stringify(await simulate({ ...drawn, seed: 2 }, requests)), JSON.stringify(first));
});

test('requests may come as they are read', async () => {
  const requests = workload(100);
  async function* stream(): AsyncGenerator<TraceRequest> {
    yield* requests;
  }
  assert.equal(await simulate(tight, stream()), await simulate(tight, requests));
});

test('without requests there is nothing to report', async () => {
  const { requests, ttft, duration, imbalance, blocks } = await simulate({}, []);
  assert.equal([requests, ttft.p50, duration, imbalance], [0, null, 0, 1]);
  assert.equal(blocks, { full: 0, gpu: 0, dram: 0, ssd: 0, computed: 0 });
});

test('requests without ids share nothing', async () => {
  const rows = Array.from({ length: 20 }, (_, i) => ({ ids: null, input: 1000, at: i * 1000 }));
  const { blocks, ceilingBlocks } = await simulate({ workers: { count: 1 } }, requestsOf(512, rows));
  assert.equal(blocks, { full: 20 * 62, gpu: 0, dram: 0, ssd: 0, computed: 20 * 62 });
  assert.is(ceilingBlocks, 0);
});

test('rows that come too late come as they come', async () => {
  const { completed, duration } = await simulate(
    { workers: { count: 1, prefillTokensPerSecond: 1000 } },
    requestsOf(64, [
      { ids: [0], at: 1000 },
      { ids: [1], at: 500 },
    ]),
  );
  assert.equal([completed, duration], [2, 128]);
});

test('evidence in time is right; credit that comes back after a gap is what a reconcile found', async () => {
  const requests = workload();
  const credited = async (events: SimConfigInput['events']) => {
    const pool = { workers: { count: 3, gpuBlocks: 9_000 }, store: { dramBytes: 1e12 }, groups: [FULL], events };
    const { credit, router } = await simulate(pool, requests);
    return { ...credit, clears: router.clears, lost: router.lostMessages };
  };
  const sound = await credited({ delay: 0 });
  assert.is(sound.clears, 0);
  // Nothing ever leaves this store; while a request waits in line, something may still come.
  assert.is(sound.stale, 0);
  assert.ok(sound.right > 0.9 * sound.credited, `${sound.right} of ${sound.credited}`);
  const mended = await credited({ delay: 0, loss: 0.1, reconcileAfter: 100 });
  const unmended = await credited({ delay: 0, loss: 0.1, reconcileAfter: 1e9 });
  assert.ok(mended.clears > 10 && mended.lost > 10);
  assert.ok(mended.credited > 2 * unmended.credited, `${mended.credited} against ${unmended.credited}`);
});

for (const [name, groups] of [
  ['full attention', [FULL]],
  ['a window', [FULL, WINDOW]],
  ['a state', [FULL, STATE]],
  ['all three, in another order', [STATE, FULL, WINDOW]],
] as const) {
  for (const store of [{ dramBytes: 1e12 }, { dramBytes: 8e9, ssdBytes: 8e9 }]) {
    test(`without delay and waiting lines, the router credits what can be restored: ${name}, ${store.dramBytes} bytes`, async () => {
      const requests = [...builtInWorkload({ requests: 600, rate: 20, idTokens: 64 })]
        .filter(({ inputTokens }) => inputTokens < 16_000)
        .map((request) => ({ ...request, at: request.index * 30_000, delay: null, outputTokens: 10 }));
      const workers = { count: 3, gpuBlocks: 1_100 };
      const { credit, blocks } = await simulate({ workers, store, groups, events: { delay: 0 } }, requests);
      assert.equal([credit.stale, credit.short], [0, 0]);
      assert.ok(credit.credited > 5 && blocks.dram > 0, JSON.stringify(credit));
      assert.is(credit.right, credit.credited);
    });
  }
}

test('the known answers: one worker whose GPU is the only cache', async () => {
  const source = publishedTrace('mooncake-conversation.jsonl');
  if (source === null) return;
  const { requests } = await readAll(source);
  // Every id a whole block, and one more token, so that the last block can be hit: it needs a block of its own.
  const whole = requests
    .filter(({ fullIds }) => fullIds > 0)
    .map((request) => {
      const { hashIds, fullIds, idTokens } = request;
      return {
        ...request,
        hashIds: hashIds!.subarray(0, fullIds),
        inputTokens: fullIds * idTokens + 1,
        outputTokens: 1,
      };
    });
  for (const capacity of [1_000, 10_000]) {
    const { blocks } = await simulate(
      { blockSize: 512, workers: { count: 1, gpuBlocks: capacity + 1, batch: 1 }, store: { dramBytes: 0 } },
      whole,
    );
    assert.is(
      blocks.gpu,
      simulateLru(
        whole.map(({ hashIds }) => hashIds),
        capacity,
      ),
      `at ${capacity}`,
    );
  }
});

test('the known answers: the trace as it is, apart from its partial tails', async () => {
  const source = publishedTrace('mooncake-conversation.jsonl');
  if (source === null) return;
  const { blocks } = await simulate(
    { blockSize: 512, workers: { count: 1, gpuBlocks: 10_000, batch: 1 }, store: { dramBytes: 0 } },
    readTrace(publishedTrace('mooncake-conversation.jsonl')!),
  );
  const { requests } = await readAll(source);
  const plain = simulateLru(
    requests.map(({ hashIds, fullIds }) => hashIds!.subarray(0, fullIds)),
    10_000,
  );
  // Tails and output take some room while their request runs.
  assert.ok(Math.abs(blocks.gpu / plain - 1) < 0.005, `${blocks.gpu} against ${plain}`);
});

test('progress is told, and a signal ends it', async () => {
  const told: number[] = [];
  await simulate(tight, workload(250), { progress: ({ requests }) => told.push(requests) });
  assert.equal(told, [100, 200]);
  const controller = new AbortController();
  let given = 0;
  let returned = false;
  function* endless(): Generator<TraceRequest> {
    try {
      for (;;) {
        if (++given === 50) controller.abort(new Error('enough'));
        yield requestsOf(64, [{ ids: [0], at: given * 1000 }])[0]!;
      }
    } finally {
      returned = true;
    }
  }
  try {
    await simulate(tight, endless(), { signal: controller.signal });
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).message, 'enough');
  }
  assert.ok(returned && given <= 51);
});

test('what progress promises is awaited', async () => {
  let waited = 0;
  await simulate(tight, workload(250), {
    progress: async () => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      waited++;
    },
  });
  assert.is(waited, 2);
});

test('a request that can not be meant is refused by name', async () => {
  const [sound] = requestsOf(64, [{ ids: [0] }]);
  for (const wrong of [{ inputTokens: 0 }, { outputTokens: -1 }, { inputTokens: 1.5 }, { at: Number.NaN }]) {
    try {
      await simulate(tight, [sound!, { ...sound!, ...wrong }]);
      assert.unreachable();
    } catch (error) {
      assert.is((error as { code?: string }).code, 'sim-request', JSON.stringify(wrong));
    }
  }
});

test('a trace whose ids are no whole blocks is refused by name', async () => {
  try {
    await simulate({ blockSize: 32 }, requestsOf(16, [{ ids: ids(0, 4) }]));
    assert.unreachable();
  } catch (error) {
    assert.is((error as { code?: string }).code, 'sim-id-tokens');
  }
});

test.run();
