// What a simulation is told: defaults, and refusals by name.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { checkSimConfig, type SimConfigInput, simulate } from '../src/sim/index.js';

test('defaults are those of the types', () => {
  assert.equal(checkSimConfig(), {
    policy: 'kv',
    settings: {},
    blockSize: 16,
    workers: {
      count: 8,
      gpuBlocks: 65_536,
      prefillTokensPerSecond: 20_000,
      chunkTokens: 2048,
      decodeStep: 20,
      decodeStepPerRequest: 0.2,
      batch: 64,
    },
    store: {
      dramBytes: 2e12,
      ssdBytes: 0,
      linkBytesPerSecond: 25e9,
      totalBytesPerSecond: 100e9,
      ssdBytesPerSecond: 20e9,
      latency: 2,
    },
    groups: [{ kind: 'full_attention', window: null, bytesPerBlock: 5_242_880 }],
    ranks: 2,
    events: { delay: 5, jitter: 0, loss: 0, reconcileAfter: 1000 },
    restarts: [],
    speedup: 1,
    seed: 1,
    indexBytes: 64 * 1024 * 1024,
    coreEdges: 262_144,
    wire: false,
  });
});

test('a section may be given in part, and blocks of another size cost in proportion', () => {
  const { workers, groups } = checkSimConfig({ workers: { count: 2 }, blockSize: 64 });
  assert.equal([workers.count, workers.batch, groups[0]!.bytesPerBlock], [2, 64, 4 * 5_242_880]);
});

const full = { kind: 'full_attention', window: null, bytesPerBlock: 1 } as const;
const refused: readonly (readonly [code: string, config: SimConfigInput])[] = [
  ['unknown-option', { worker: 3 } as SimConfigInput],
  ['unknown-option', { workers: { number: 3 } } as SimConfigInput],
  ['sim-block-size', { blockSize: 0 }],
  ['sim-block-size', { blockSize: 1.5 }],
  ['sim-workers-count', { workers: { count: 0 } }],
  ['sim-workers-count', { workers: { count: 1025 } }],
  ['sim-workers-gpu-blocks', { workers: { gpuBlocks: -1 } }],
  ['sim-workers-prefill-tokens-per-second', { workers: { prefillTokensPerSecond: 0 } }],
  ['sim-workers-chunk-tokens', { workers: { chunkTokens: 0 } }],
  ['sim-workers-decode-step', { workers: { decodeStep: Number.NaN } }],
  ['sim-workers-batch', { workers: { batch: 0 } }],
  ['sim-store-dram-bytes', { store: { dramBytes: -1 } }],
  ['sim-store-link-bytes-per-second', { store: { linkBytesPerSecond: Number.POSITIVE_INFINITY } }],
  ['sim-store-latency', { store: { latency: -1 } }],
  ['sim-events-loss', { events: { loss: 1.1 } }],
  ['sim-events-jitter', { events: { jitter: -1 } }],
  ['sim-groups', { groups: [] }],
  ['sim-groups', { groups: [{ kind: 'mamba', window: null, bytesPerBlock: 1 }] }],
  ['sim-groups', { groups: [full, { kind: 'sliding_window', window: 1, bytesPerBlock: 1 }] }],
  ['sim-groups', { groups: [full, { kind: 'mamba', window: 4, bytesPerBlock: 1 }] }],
  ['sim-groups', { groups: [{ ...full, bytesPerBlock: 0 }] }],
  ['sim-groups', { groups: Array.from({ length: 9 }, () => full), coreEdges: 1_000_000 }],
  ['sim-groups', { ranks: 1024, groups: [full, full] }],
  ['limits-edges', { coreEdges: 0 }],
  ['sim-ranks', { ranks: 0 }],
  ['sim-restarts', { restarts: [{ at: 0, worker: 8 }] }],
  ['sim-restarts', { restarts: [{ at: Number.NaN, worker: null }] }],
  ['sim-speedup', { speedup: 0 }],
  ['sim-seed', { seed: -1 }],
  ['sim-index-bytes', { indexBytes: 1000 }],
  ['sim-wire', { wire: 1 as unknown as boolean }],
  ['sim-wire', { wire: true, blockSize: 16_384 }],
];

for (const [code, config] of refused) {
  test(`refused: ${code}, ${JSON.stringify(config)}`, () => {
    try {
      checkSimConfig(config);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      assert.is(error.code, code);
      return;
    }
    assert.unreachable();
  });
}

test("the router's own settings are refused by the router", async () => {
  for (const [code, config] of [
    ['unknown-policy', { policy: 'fastest' as 'kv' }],
    ['temperature', { settings: { temperature: -1 } }],
    ['mooncake-store-kv-events', { settings: { useKvEvents: false } }],
  ] as const) {
    try {
      await simulate(config, []);
      assert.unreachable();
    } catch (error) {
      assert.is((error as ConfigError).code, code);
    }
  }
});

test('without a store, a router without GPU events is fine', async () => {
  const { requests } = await simulate({ settings: { useKvEvents: false }, store: { dramBytes: 0 } }, []);
  assert.is(requests, 0);
});

test.run();
