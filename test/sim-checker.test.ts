// The engine's report against a slow and plain second one (support/sim-checker.ts), given the same decisions: counts exactly, times and what
// is made of times to a millionth.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  checkSimConfig,
  type GroupModel,
  type SimConfigInput,
  type SimReport,
  simulate,
  type TraceRequest,
} from '../src/sim/index.js';
import { Random } from './support/random.js';
import { deriveReport, withDecisions } from './support/sim-checker.js';
import { requestsOf, type ShortRequest } from './support/sim-requests.js';

/** Eight blocks, with the query token; one more would be a ninth. */
const WINDOW: GroupModel = { kind: 'sliding_window', window: 129, bytesPerBlock: 300_000 };
const FULL: GroupModel = { kind: 'full_attention', window: null, bytesPerBlock: 1_000_000 };
const STATE: GroupModel = { kind: 'mamba', window: null, bytesPerBlock: 2_500_000 };
const TIMES_AGREE = 1e-6;
const SEEDS = [1, 2];
const RANDOM_POOLS = 40;

interface Traffic {
  readonly requests?: number;
  /** Mean milliseconds between requests. */
  readonly gap?: number;
  readonly idTokens?: number;
  readonly output?: number;
  readonly sessions?: boolean;
}

/** Prompts that share beginnings of many depths, with partial tails, at odd times. */
function traffic(seed: number, { requests = 160, gap = 60, idTokens = 64, output = 40, sessions = false }: Traffic) {
  const random = new Random(seed);
  const prompts: number[][] = [];
  let nextId = 0;
  let clock = 0;
  const rows: ShortRequest[] = [];
  for (let i = 0; i < requests; i++) {
    clock += random.int(2_000 * gap) / 1_000 + 0.000_123;
    const before = prompts.length > 0 && random.chance(0.75) ? random.pick(prompts) : [];
    // A prompt goes on from a whole one, as in a chat, or leaves it somewhere.
    const ids = before.slice(0, random.chance(0.5) ? before.length : random.between(0, before.length));
    for (let more = random.int(12); more > 0 && ids.length < 30; more--) ids.push(nextId++);
    if (ids.length === 0) ids.push(nextId++);
    prompts.push(ids);
    // Some prompts end in the middle of their last id, some have more than their ids name, and some have none.
    const input = random.chance(0.5)
      ? ids.length * idTokens - random.int(idTokens)
      : ids.length * idTokens + random.int(20);
    rows.push({
      at: clock,
      ids: random.chance(0.05) ? null : ids,
      input,
      output: random.int(output + 1),
      ...(sessions ? { session: `s${random.int(12)}` } : {}),
      ...(sessions && random.chance(0.8) ? { delay: random.int(900) + 0.37 } : {}),
    });
  }
  return requestsOf(idTokens, rows);
}

/** Odd enough that nothing happens at once by chance. */
const workers = {
  count: 3,
  gpuBlocks: 700,
  prefillTokensPerSecond: 7_919,
  chunkTokens: 301,
  decodeStep: 11.37,
  batch: 5,
};
const plenty = { dramBytes: 1e12, latency: 1.713 };
const short = { dramBytes: 250e6, ssdBytes: 150e6, latency: 1.713 };
const slow = { linkBytesPerSecond: 0.19e9, totalBytesPerSecond: 0.31e9, ssdBytesPerSecond: 0.083e9 };
const forgetful = { ...workers, gpuBlocks: 330 };
const roomy = { dramBytes: 700e6, ssdBytes: 500e6, latency: 1.713 };

const pools: readonly (readonly [name: string, config: SimConfigInput, traffic: Traffic])[] = [
  ['room for everything', { workers: { ...workers, gpuBlocks: 50_000 }, store: plenty }, {}],
  ['a store that evicts', { workers, store: { ...short, ssdBytes: 0 } }, {}],
  ['a store that spills to SSD', { workers, store: short }, {}],
  ['a store of SSD alone', { workers, store: { ...short, dramBytes: 0 } }, {}],
  ['no store', { workers, store: { dramBytes: 0 } }, {}],
  ['full and sliding', { workers: forgetful, store: roomy, groups: [FULL, WINDOW], ranks: 1 }, { idTokens: 16 }],
  ['full and sliding, ids of many blocks', { workers: forgetful, store: roomy, groups: [FULL, WINDOW] }, {}],
  ['full and mamba', { workers: forgetful, store: roomy, groups: [FULL, STATE] }, {}],
  ['full and mamba, round-robin', { policy: 'round-robin', workers, store: roomy, groups: [FULL, STATE] }, {}],
  ['mamba, full and sliding', { workers: forgetful, store: roomy, groups: [STATE, FULL, WINDOW] }, {}],
  ['two of full attention', { workers, store: short, groups: [FULL, { ...FULL, bytesPerBlock: 700_000 }] }, {}],
  ['a tiny GPU', { workers: { ...workers, gpuBlocks: 70 }, store: plenty }, {}],
  ['a tiny GPU, short steps', { workers: { ...workers, gpuBlocks: 110, chunkTokens: 53 }, store: short }, { gap: 25 }],
  ['one request at a time', { workers: { ...workers, batch: 1 }, store: plenty }, {}],
  ['slow links', { policy: 'random', workers: forgetful, store: { ...plenty, ...slow } }, { gap: 40 }],
  ['slow links and SSD', { policy: 'round-robin', workers: forgetful, store: { ...roomy, ...slow } }, { gap: 40 }],
  [
    'slow links, all groups',
    { policy: 'ttft', workers: forgetful, store: { ...roomy, ...slow }, groups: [FULL, WINDOW, STATE] },
    { gap: 40 },
  ],
  ['twice the load', { policy: 'least-loaded', workers, store: plenty, speedup: 2.017 }, {}],
  ['sessions', { workers, store: short }, { sessions: true }],
  ['sessions at half the load', { workers, store: short, speedup: 0.513 }, { sessions: true }],
  ['long outputs', { workers, store: plenty }, { output: 900, gap: 150 }],
  ['late and lost messages', { workers, store: short, events: { delay: 40, jitter: 90, loss: 0.1 } }, {}],
  ['steps that take no time', { workers: { ...workers, decodeStep: 0, decodeStepPerRequest: 0 }, store: short }, {}],
  [
    'restarts',
    {
      policy: 'random',
      workers,
      store: { ...roomy, ...slow },
      restarts: [
        { at: 1_234.567, worker: 0 },
        { at: 1_300.123, worker: 1 },
        { at: 2_345.678, worker: null },
        { at: 3_456.789, worker: 2 },
        { at: 3_457.001, worker: 2 },
      ],
    },
    { gap: 25, sessions: true },
  ],
];

/** Every number of a report by its path; counts stand as they are. */
function differences(found: unknown, wanted: unknown, path = ''): string[] {
  if (typeof found === 'object' && found !== null && typeof wanted === 'object' && wanted !== null) {
    const names = new Set([...Object.keys(found), ...Object.keys(wanted)]);
    return [...names].flatMap((name) =>
      differences(
        (found as Record<string, unknown>)[name],
        (wanted as Record<string, unknown>)[name],
        path === '' ? name : `${path}.${name}`,
      ),
    );
  }
  if (found === wanted) return [];
  const times = /^(ttft|latency)\.|^duration$|^imbalance$|\.busy$|^store\.peakFetch$/.test(path);
  const close = Math.abs(Number(found) - Number(wanted)) <= TIMES_AGREE * Math.max(1, Math.abs(Number(wanted)));
  return times && typeof found === typeof wanted && close ? [] : [`${path}: ${found}, derived ${wanted}`];
}

/** Simulates, derives the report again, and returns it. */
async function check(config: SimConfigInput, requests: readonly TraceRequest[], what = ''): Promise<SimReport> {
  const { result, decisions } = await withDecisions(() => simulate(config, requests));
  const { router, policy, ...found } = result;
  assert.equal(differences(found, deriveReport(checkSimConfig(config), requests, decisions)), [], what);
  return result;
}

for (const [name, config, shape] of pools) {
  for (const seed of SEEDS) {
    test(`the report is derived again: ${name}, seed ${seed}`, async () => {
      await check({ groups: [FULL], ...config }, traffic(seed, shape));
    });
  }
}

/** Any pool at all, whose times are odd. */
function randomPool(seed: number): { config: SimConfigInput; traffic: Traffic } {
  const random = new Random(seed);
  const groups: GroupModel[] = [{ ...FULL, bytesPerBlock: random.between(1, 2_000_000) }];
  for (let more = random.int(3); more > 0; more--) {
    const bytesPerBlock = random.between(100_000, 3_000_000);
    groups.push(random.chance(0.5) ? { ...STATE, bytesPerBlock } : { ...WINDOW, window: random.between(2, 400) });
  }
  const blockSize = random.pick([8, 16, 32, 64]);
  const count = random.between(1, 4);
  const gap = random.between(10, 150);
  const config: SimConfigInput = {
    policy: random.pick(['kv', 'ttft', 'random', 'round-robin', 'least-loaded']),
    blockSize,
    groups: random.shuffle(groups),
    ranks: random.between(1, 3),
    seed,
    speedup: random.pick([1, 1, 1.313, 0.57]),
    workers: {
      count,
      gpuBlocks: random.pick([60, 150, 400, 900]),
      prefillTokensPerSecond: random.between(2_000, 30_000) + 0.17,
      chunkTokens: random.between(1, 1_200),
      decodeStep: random.int(30) + 0.371,
      decodeStepPerRequest: random.int(5) / 7,
      batch: random.between(1, 12),
    },
    store: {
      dramBytes: random.chance(0.1) ? 0 : random.int(1e9),
      ssdBytes: random.chance(0.5) ? 0 : random.int(1e9),
      linkBytesPerSecond: random.between(2e7, 1e9),
      totalBytesPerSecond: random.between(2e7, 2e9),
      ssdBytesPerSecond: random.between(2e7, 5e8),
      latency: random.int(20) + 0.713,
    },
    events: { delay: random.int(100), jitter: random.pick([0, 50]), loss: random.pick([0, 0.1]) },
    restarts: Array.from({ length: random.chance(0.4) ? random.int(6) : 0 }, () => ({
      at: random.int(120_000 * gap) / 1_000 + 0.000_77,
      worker: random.chance(0.4) ? null : random.int(count),
    })),
  };
  const idTokens = blockSize * random.pick([1, 1, 2, 4, 7]);
  return {
    config,
    traffic: { requests: 130, gap, idTokens, output: random.pick([1, 30, 300]), sessions: random.chance(0.4) },
  };
}

test('the report of any pool is derived again, and together they have seen everything', async () => {
  const seen = { gpu: 0, dram: 0, ssd: 0, refused: 0, right: 0, short: 0, stale: 0, evicted: 0 };
  for (let seed = 1; seed <= RANDOM_POOLS; seed++) {
    const pool = randomPool(seed);
    const { blocks, credit, refused, store } = await check(pool.config, traffic(seed, pool.traffic), `seed ${seed}`);
    seen.gpu += blocks.gpu;
    seen.dram += blocks.dram;
    seen.ssd += blocks.ssd;
    seen.refused += refused;
    seen.right += credit.right;
    seen.short += credit.short;
    seen.stale += credit.stale;
    seen.evicted += store.evictedBlocks;
  }
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 10, `${what}: ${count}`);
});

test('who is blocked starts as soon as there is room: also when a running request has brought the prompt', async () => {
  // The first needs 30 of 32 blocks; the second waits while its 21 are all missing, and needs one when the first has computed their prompt.
  const config = {
    workers: { count: 1, gpuBlocks: 32, prefillTokensPerSecond: 1_000, chunkTokens: 100, decodeStep: 10 },
    store: { dramBytes: 0 },
  };
  const prompt = Array.from({ length: 20 }, (_, i) => i);
  const requests = requestsOf(16, [
    { ids: prompt, output: 160 },
    { ids: prompt, input: 321, at: 10.3 },
  ]);
  const { ttft, blocks } = await check(config, requests);
  assert.is(blocks.gpu, 20);
  assert.ok(Math.abs(ttft.p99! - (321 - 10.3 + 10)) < TIMES_AGREE, `${ttft.p99}`);
});

test.run();
