// How one simulated engine spends its time, with cases worked out by hand: a token of prompt takes a millisecond, a chunk is 64 tokens, a
// decode step 10 ms and 1 more for each further request; an id is 64 tokens, which is 4 blocks.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type SimConfigInput, type SimReport, simulate } from '../src/sim/index.js';
import { ids, requestsOf, type ShortRequest } from './support/sim-requests.js';

const ENGINE = {
  count: 1,
  gpuBlocks: 1000,
  prefillTokensPerSecond: 1000,
  chunkTokens: 64,
  decodeStep: 10,
  decodeStepPerRequest: 1,
  batch: 4,
};
const NO_STORE = { dramBytes: 0 };

function run(rows: readonly ShortRequest[], config: SimConfigInput = {}): Promise<SimReport> {
  const workers = { ...ENGINE, ...config.workers };
  return simulate({ store: NO_STORE, ...config, workers }, requestsOf(64, rows));
}

test('a prompt is computed chunk by chunk, then a token a step', async () => {
  const { ttft, latency, duration, tokens, perWorker } = await run([{ ids: [0, 1], output: 3 }]);
  assert.is(ttft.p50, 64 + 64);
  assert.is(latency.p50, 128 + 2 * 10);
  assert.is(duration, 148);
  assert.equal(tokens, { prompt: 128, cached: 0, computed: 128, generated: 3 });
  assert.equal(perWorker, [{ requests: 1, busy: 148, hitBlocks: 0 }]);
});

test('prompts are computed from the front of the line', async () => {
  const { ttft } = await run([{ ids: [0] }, { ids: [1] }]);
  assert.is(ttft.p50, 64);
  assert.is(ttft.p99, 128);
});

test('a chunk takes the end of one prompt and the beginning of the next', async () => {
  // 32 + 64 tokens: the second one is admitted with the plan at 32, for it came after the first plan was made.
  const together = await run([{ ids: [9] }, { ids: [0], input: 32, at: 1 }, { ids: [1], at: 2 }]);
  // At 64: 32 of the second and 32 of the third in one step; at 128 the third's other 32.
  assert.equal([together.ttft.p50, together.ttft.p99], [127, 158]);
});

test('a newcomer cuts a run of decode steps at the end of the step that runs', async () => {
  const { ttft, latency } = await run([
    { ids: [0], output: 100 },
    { ids: [1], at: 69 },
  ]);
  // The step of 64 … 74 runs out; then 64 tokens of prompt beside one decoding: 74 ms.
  assert.equal([ttft.p50, ttft.p99], [64, 74 + 74 - 69]);
  // 1 + 1 + 1 tokens by then; 97 further steps.
  assert.is(latency.p99, 64 + 10 + 74 + 97 * 10);
});

test('also later, in the middle of a step', async () => {
  const { ttft } = await run([
    { ids: [0], output: 100 },
    { ids: [1], at: 99 },
  ]);
  // Steps of 64 … 74 … 84 … 94 … 104.
  assert.equal([ttft.p50, ttft.p99], [64, 104 - 99 + 74]);
});

test('requests that decode together make a step longer', async () => {
  const { latency } = await run([
    { ids: [0], output: 11 },
    { ids: [1], at: 1, output: 11 },
  ]);
  // 0 … 64 the first prompt; 64 … 138 the second beside a decode step; then both: 11 ms a step, 9 of them, and one more alone.
  assert.equal([latency.p50, latency.p99], [64 + 74 + 9 * 11, 64 + 74 + 9 * 11 + 10 - 1]);
});

test('no more than the batch run at once', async () => {
  const one = await run([{ ids: [0], output: 11 }, { ids: [1] }], { workers: { batch: 1 } });
  assert.equal([one.ttft.p50, one.ttft.p99], [64, 64 + 100 + 64]);
});

test('a request waits for room, its output included', async () => {
  // 4 blocks of prompt and 36 tokens that are kept: 7 blocks; two of them do not fit 13.
  const rows = [
    { ids: [0], output: 37 },
    { ids: [1], output: 37 },
  ];
  const tight = await run(rows, { workers: { gpuBlocks: 13 } });
  assert.is(tight.ttft.p99, 64 + 36 * 10 + 64);
  const wide = await run(rows, { workers: { gpuBlocks: 14 } });
  assert.is(wide.ttft.p99, 64 + 74);
});

test('a request larger than the GPU is refused and counted, and nothing is stuck', async () => {
  const { requests, refused, completed, blocks, ceilingBlocks } = await run(
    [{ ids: ids(0, 4) }, { ids: ids(0, 2) }, { ids: [0], output: 100 }],
    { workers: { gpuBlocks: 9 } },
  );
  assert.equal([requests, refused, completed], [3, 2, 1]);
  assert.is(blocks.full, 8);
  assert.is(ceilingBlocks, 0);
});

test('a prompt that the GPU holds is computed from its last block on', async () => {
  const { ttft, blocks, tokens } = await run([{ ids: [0, 1] }, { ids: [0, 1], at: 1000 }]);
  // The last block before the last token is the seventh of eight.
  assert.is(ttft.p50, 16);
  assert.equal(blocks, { full: 16, gpu: 7, dram: 0, ssd: 0, computed: 9 });
  assert.equal(tokens, { prompt: 256, cached: 112, computed: 144, generated: 2 });
});

test('what the GPU lost is restored from the store: latency, then bytes at the bandwidth of the link', async () => {
  const store = { dramBytes: 1e6, linkBytesPerSecond: 1e6, totalBytesPerSecond: 1e9, latency: 2 };
  const groups = [{ kind: 'full_attention', window: null, bytesPerBlock: 1000 }] as const;
  const rows = [
    { ids: [0, 1, 90], input: 129 },
    { ids: [2, 3, 91], input: 129, at: 1000 },
    { ids: [0, 1, 92], input: 129, at: 2000 },
  ];
  const { ttft, blocks, store: said, credit } = await run(rows, { workers: { gpuBlocks: 9 }, store, groups });
  // 2 + 8 × 1 ms, then one token.
  assert.is(ttft.p50, 129);
  assert.is(ttft.mean, (129 + 129 + 11) / 3);
  assert.equal(blocks, { full: 24, gpu: 0, dram: 8, ssd: 0, computed: 16 });
  assert.equal([said.fetchedBytes, said.putBytes, said.peakFetch], [8000, 16_000, 8000]);
  assert.equal([credit.credited, credit.right, credit.short, credit.stale], [1, 1, 0, 0]);
});

test('while one request waits for the store another one is computed', async () => {
  const store = { dramBytes: 1e6, linkBytesPerSecond: 1e5, totalBytesPerSecond: 1e9, latency: 0 };
  const groups = [{ kind: 'full_attention', window: null, bytesPerBlock: 1000 }] as const;
  const rows = [
    { ids: [0, 90], input: 65 },
    { ids: ids(10, 14), at: 1000 },
    { ids: [0, 91], input: 65, at: 2000 },
    { ids: [20], at: 2000 },
  ];
  const { ttft } = await run(rows, { workers: { gpuBlocks: 16 }, store, groups });
  // The third fetches 4 blocks in 40 ms, and finds the fourth's prompt in the way until 64.
  assert.equal([ttft.mean, ttft.p50], [(65 + 256 + 65 + 64) / 4, 65]);
});

test('what has come from the store cuts a run of decode steps as well', async () => {
  const store = { dramBytes: 1e6, linkBytesPerSecond: 1e6, totalBytesPerSecond: 1e9, latency: 0 };
  const groups = [{ kind: 'full_attention', window: null, bytesPerBlock: 1000 }] as const;
  const rows = [
    { ids: [0, 90], input: 65 },
    { ids: ids(10, 18), at: 1000 },
    { ids: [20], output: 200, at: 2000 },
    { ids: [0, 91], input: 65, at: 2100 },
  ];
  const { ttft, blocks } = await run(rows, { workers: { gpuBlocks: 32 }, store, groups });
  assert.is(blocks.dram, 4);
  // The step of 2,094 … 2,104 admits the last one, its blocks are there at 2,108, and 2,114 begins a step with its last token.
  assert.is(ttft.mean, (65 + 512 + 64 + (2114 + 11 - 2100)) / 4);
});

test('the router hears of tokens as they are made, as a gateway would tell it', async () => {
  const rows = [
    { ids: [0], output: 400 },
    { ids: [1, 2], output: 400, at: 2000 },
    { ids: [1, 2], at: 2200 },
  ];
  const { blocks } = await run(rows, { policy: 'least-loaded', workers: { count: 2 } });
  // The first one's worker holds 4 blocks of prompt and 13 of output by then, the second one's 8 and 1: it gets the third, and hits.
  assert.is(blocks.gpu, 7);
});

test('a session goes on so long after its previous request ended, and never before its own time', async () => {
  const rows = [
    { ids: [0], output: 11, session: 's' },
    { ids: [0, 1], at: 5, session: 's', delay: 100 },
    { ids: [0, 2], at: 900, session: 's', delay: 100 },
    { ids: [7], at: 1000, session: 'other', delay: 50 },
  ];
  const { duration, completed, ttft } = await run(rows);
  // 164 ends the first; 264 + 64 the second; 900 and 1,000 are their own times.
  assert.is(completed, 4);
  assert.is(duration, 1064);
  assert.equal([ttft.p50, ttft.p99, ttft.mean], [64, 64, 64]);
});

test('at twice the speed everything comes in half the time, pauses and restarts too', async () => {
  const rows = [
    { ids: [0], session: 's' },
    { ids: [1], at: 1000, session: 's', delay: 2000 },
  ];
  const { duration } = await run(rows, { speedup: 2 });
  assert.is(duration, 64 + 1000 + 64);
  const restarts = [{ at: 100, worker: 0 }];
  // It starts anew at 50, and with it the request.
  assert.is((await run([{ ids: [0] }], { speedup: 2, restarts })).duration, 50 + 64);
});

test('a worker that starts anew is empty, and serves again what it had', async () => {
  const rows = [
    { ids: [0, 1] },
    { ids: [0, 1], at: 1000, output: 11 },
    { ids: [5], at: 1001, output: 1 },
    { ids: [0, 1], at: 5000 },
  ];
  const { completed, blocks, duration, router } = await run(rows, { restarts: [{ at: 1050, worker: 0 }] });
  assert.is(completed, 4);
  // The second is computed whole again after 1,050, with the third; only the last one hits.
  assert.equal(blocks, { full: 28, gpu: 7, dram: 0, ssd: 0, computed: 21 });
  assert.is(duration, 5016);
  assert.is(router.lostMessages, 0);
});

test('what a worker was fetching when it started anew is of no use to it', async () => {
  // A second of latency, then 8 blocks in 80 ms.
  const store = { dramBytes: 1e6, linkBytesPerSecond: 1e5, totalBytesPerSecond: 1e9, latency: 1000 };
  const groups = [{ kind: 'full_attention', window: null, bytesPerBlock: 1000 }] as const;
  const rows = [
    { ids: [0, 1, 90], input: 129 },
    { ids: [2, 3, 91], input: 129, at: 1000 },
    { ids: [0, 1, 92], input: 129, at: 2000 },
  ];
  for (const at of [2500, 3040]) {
    const {
      completed,
      blocks,
      duration,
      store: said,
    } = await run(rows, {
      ...{ workers: { gpuBlocks: 9 }, store, groups },
      restarts: [{ at, worker: 0 }],
    });
    assert.equal([completed, blocks.dram, said.fetchedBytes], [3, 8, 8000], `at ${at}`);
    assert.is(duration, at + 1000 + 80 + 1, `at ${at}`);
  }
});

test('credit for what left before the router heard of it is stale', async () => {
  const store = { dramBytes: 1e6, linkBytesPerSecond: 1e9, totalBytesPerSecond: 1e9, latency: 0 };
  const groups = [{ kind: 'full_attention', window: null, bytesPerBlock: 1000 }] as const;
  const rows = [
    { ids: [0, 1, 90], input: 129 },
    { ids: [2, 3, 91], input: 129, at: 1000 },
    { ids: [0, 1, 92], input: 129, at: 2001 },
  ];
  const { credit, blocks } = await run(rows, {
    ...{ workers: { gpuBlocks: 9 }, store, groups },
    restarts: [{ at: 2000, worker: null }],
    events: { delay: 5 },
  });
  assert.equal([credit.credited, credit.right, credit.stale, credit.staleBlocks, blocks.dram], [1, 0, 1, 8, 0]);
});

test('a store that starts anew is empty, and is credited again when it has something', async () => {
  const store = { dramBytes: 1e6, linkBytesPerSecond: 1e9, totalBytesPerSecond: 1e9, latency: 0 };
  const groups = [{ kind: 'full_attention', window: null, bytesPerBlock: 1000 }] as const;
  const prompt = (from: number, at: number) => ({ ids: [...ids(from, from + 2), 900 + at], input: 129, at });
  const rows = [prompt(0, 0), prompt(2, 1000), prompt(0, 3000), prompt(2, 5000), prompt(0, 6000)];
  const { blocks, credit, router } = await run(rows, {
    ...{ workers: { gpuBlocks: 9 }, store, groups },
    restarts: [{ at: 2000, worker: null }],
  });
  // After the restart the third and fourth are computed; the fifth is restored again.
  assert.equal(blocks, { full: 40, gpu: 0, dram: 8, ssd: 0, computed: 32 });
  assert.equal([credit.credited, credit.right, credit.stale], [1, 1, 0]);
  assert.is(router.clears, 1);
});

test.run();
