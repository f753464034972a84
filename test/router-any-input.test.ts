// Whatever a caller hands to a router: it is taken, or refused by a typed error with a code. Nothing raw comes out, and nothing of a refusal
// is left behind.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import { proveTextOnly } from '../src/events/request.js';
import type { RouteRequest } from '../src/router/prompt.js';
import { Router } from '../src/router/router.js';
import type { RouterOptions } from '../src/router/router-options.js';
import type { WorkerInfo } from '../src/router/worker-info.js';
import { contractOf } from './support/messages.js';
import { RouterPool } from './support/router-pool.js';

/** Fixed, so that a failure names its own way back; another one by MOONROUTE_SEED. */
const seed = Number(process.env['MOONROUTE_SEED'] ?? 4);

const anything = fc.oneof(
  fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true, withTypedArray: true }),
  fc.constantFrom<unknown>(Symbol('odd'), () => 1, new Proxy([], {}), Number.NaN, -0, 2 ** 32),
);
/** Mostly a field is what it should be, so that the others are looked at too. */
const field = (good: unknown) => fc.oneof({ weight: 20, arbitrary: fc.constant(good) }, anything);
const record = (fields: Readonly<Record<string, unknown>>) =>
  fc.record(Object.fromEntries(Object.entries(fields).map(([name, good]) => [name, field(good)])), {
    requiredKeys: [],
  });

function isTyped(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    assert.instance(error, MoonrouteError, String((error as Error).stack));
  }
}

test('any request gives a decision or a typed error, and every decision’s load goes with its lease', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 4);
  pool.offload(0, prompt);
  const { router } = pool;
  const body = {};
  proveTextOnly(body);
  const requests = record({
    tokens: prompt.tokens,
    localHashes: undefined,
    tokenCount: undefined,
    textOnly: true,
    body,
    loraName: null,
    cacheSalt: null,
    sharedCacheMultiplier: 0.5,
    allowed: [0, 1],
    expectedOutputTokens: 10,
    now: 1,
    explain: true,
  });
  fc.assert(
    fc.property(fc.oneof({ weight: 9, arbitrary: requests }, anything), (request) =>
      isTyped(() => router.route(request as RouteRequest).lease.complete(1, request as null)),
    ),
    { numRuns: 2000, seed },
  );
  for (const { ranks } of router.workers())
    assert.equal(ranks[0]!.load, { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 });
  assert.ok(router.stats().decisions.decisions > 100);
});

test('any worker is added or refused by a typed error, and the router routes on', async () => {
  const { router } = await RouterPool.shared(1);
  const workers = record({
    id: 'a',
    dpRanks: { start: 0, size: 1 },
    contract: contractOf(),
    descriptor: undefined,
    adapters: ['x'],
    draining: false,
  });
  fc.assert(
    fc.property(fc.oneof({ weight: 9, arbitrary: workers }, anything), (worker) => {
      isTyped(() => router.addWorker(worker as WorkerInfo));
      router.route({ tokens: [1] }).lease.cancel(0);
      if (router.workers().length > 20) for (const { id } of router.workers()) if (id !== 0) router.removeWorker(id);
    }),
    { numRuns: 2000, seed },
  );
});

test('any options give a router or a ConfigError', async () => {
  const number = (good: number) => field(good);
  const part = (fields: Readonly<Record<string, unknown>>) =>
    fc.oneof({ weight: 20, arbitrary: record(fields) }, anything);
  const options = fc.record(
    {
      settings: part({ seed: 1, sharedCacheType: 'mooncake-store', temperature: 0 }),
      policy: field('kv'),
      role: field('aggregated'),
      blockSize: number(16),
      strictContracts: field(false),
      imageTokenId: field(null),
      revisions: field(null),
      cache: part({ limits: { edges: 1000 }, isPending: () => false, tableSeed: 1n }),
      events: part({ publishers: 10, hashes: 100 }),
      leases: part({ maxOpen: 10 }),
      ttft: part({ halfLife: 32 }),
      feedback: part({ strikes: 3, withholdFor: 10, withholdAtMost: 20, maxMarks: 10 }),
      health: part({ failures: 3, restFor: 10, restAtMost: 20 }),
      // Last, and small wherever it is right: each router takes its memory.
      index: fc.oneof(
        { weight: 9, arbitrary: fc.constant({ bytes: 1 << 20 }) },
        fc.record({ bytes: fc.constant(1 << 20), ranks: number(64), provenance: field(true), tableSeed: field(1n) }),
      ),
    },
    { requiredKeys: ['index'] },
  );
  const ends = { made: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(options, async (given) => {
      const error = await Router.create(given as unknown as RouterOptions).then(
        (router) => router.dispose(),
        (error: unknown) => error,
      );
      ends[error === undefined ? 'made' : 'refused']++;
      if (error !== undefined) assert.instance(error, ConfigError, String((error as Error).stack));
    }),
    { numRuns: 300, seed },
  );
  assert.ok(ends.made > 10 && ends.refused > 10, JSON.stringify(ends));
});

test.run();
