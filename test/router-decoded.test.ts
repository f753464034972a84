// Evidence without bytes: a router that is handed decoded blocks and objects decides, step by step, as one that reads the real publishers'
// messages about the same facts. What a simulation measures through the one way holds for the other.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { blockHashes } from '../src/core/local-hash.js';
import { type IndexedBlocks, type IndexTier, indexedBlocks } from '../src/core/prefix-types.js';
import { MoonrouteError } from '../src/errors.js';
import type { Decision } from '../src/router/decision.js';
import { Router } from '../src/router/router.js';
import { type ContractShape, contractOf, Prompt, removed, stored, storeMessage } from './support/messages.js';
import { Random } from './support/random.js';
import { hashOf, RouterPool } from './support/router-pool.js';

const WORKERS = 3;
const PROMPTS = 6;
const BLOCKS = 24;
const TIERS = { GPU: 'device', CPU: 'host', DISK: 'disk' } as const;

const shapes: readonly { readonly name: string; readonly shape: ContractShape }[] = [
  { name: 'full attention, two ranks', shape: { groups: [{ ranks: 2 }] } },
  {
    name: 'full attention and a sliding window',
    shape: { groups: [{ ranks: 2 }, { kind: 'sliding_window', window: 33, ranks: 2 }] },
  },
  { name: 'full attention and Mamba, six ranks', shape: { groups: [{ ranks: 6 }, { kind: 'mamba', ranks: 6 }] } },
];

/** The numbers of a prompt's blocks, as a simulation would have them. */
class Numbers {
  readonly locals: BigUint64Array;
  readonly hashes: BigUint64Array;
  readonly digests: Uint32Array;

  constructor(prompt: Prompt) {
    this.locals = blockHashes(prompt.tokens, prompt.blockSize);
    this.hashes = BigUint64Array.from({ length: prompt.blocks }, (_, block) => hashOf(prompt, block));
    this.digests = prompt.digestWords;
  }

  blocks(first: number, end: number): IndexedBlocks {
    const parent = first === 0 ? null : this.hashes[first - 1]!;
    return indexedBlocks(parent, this.hashes.slice(first, end), this.locals.slice(first, end), true);
  }
}

const told = ({ worker, cost, blocks, achieved, bestReachable, sharedReason }: Decision) => ({
  worker,
  cost,
  blocks,
  achieved,
  bestReachable,
  reason: sharedReason?.code,
});

for (const { name, shape } of shapes) {
  test(`${name}: the same decisions as from bytes`, async () => {
    const options = { settings: { sharedCacheType: 'mooncake-store' }, index: { bytes: 2 << 20 } } as const;
    const pool = await RouterPool.shared(WORKERS, options, shape);
    const router = await Router.create(options);
    const contract = contractOf(shape);
    for (let id = 0; id < WORKERS; id++) router.addWorker({ id, contract });
    const prompts = Array.from({ length: PROMPTS }, (_, i) => new Prompt(i + 1, BLOCKS, contract));
    const numbers = prompts.map((prompt) => new Numbers(prompt));
    const random = new Random(7);
    let sequence = 0;
    let credited = 0;
    for (let step = 0; step < 1_500; step++) {
      const at = random.int(PROMPTS);
      const [prompt, own] = [prompts[at]!, numbers[at]!];
      const id = random.int(WORKERS);
      const first = random.chance(0.5) ? 0 : random.int(BLOCKS);
      const end = random.between(first + 1, BLOCKS);
      const medium = random.pick(['GPU', 'GPU', 'CPU', 'DISK'] as const);
      const tier: IndexTier = TIERS[medium];
      const lows = new Uint32Array(own.hashes.buffer);
      const what = random.int(10);
      if (what < 3) {
        const fromBytes = pool.announce(id, prompt, { first, end, medium });
        const { learned, outcome } = router.takeStored(id, 0, tier, own.blocks(first, end));
        assert.is(learned, fromBytes.learned, `step ${step}`);
        assert.is(outcome === 'stored', fromBytes.rejected === 0, `step ${step}`);
      } else if (what < 5) {
        const fromBytes = pool.evict(id, prompt, { first, end, medium });
        assert.is(router.takeRemoved(id, 0, tier, lows, first, end - first), fromBytes.removed, `step ${step}`);
      } else if (what < 8) {
        const group = random.pick(contract.groups);
        const kind = what < 7 ? 'stored' : 'removed';
        const event = kind === 'stored' ? stored : removed;
        const keys = group.keyPrefixes.flatMap((prefix) =>
          Array.from({ length: end - first }, (_, i) => `${prefix}@${prompt.digest(first + i)}`),
        );
        // Generation C names the medium of a removal.
        pool.router.onStoreMessage(
          storeMessage(
            ++sequence,
            keys.map((key) => event(key, { generation: 'C' })),
          ),
        );
        router.takeObjects({
          ...{ kind, medium: 'cpu', group: group.groupId },
          ...{ digests: own.digests, at: first, count: end - first },
        });
      } else {
        const now = step;
        const request = { textOnly: true, now } as const;
        const bytes = pool.router.route({ tokens: prompt.tokens, ...request });
        const decoded = router.route({ localHashes: own.locals, tokenCount: prompt.tokens.length, ...request });
        assert.equal(told(decoded), told(bytes), `step ${step}`);
        if (decoded.blocks.shared > 0) credited++;
        for (const { lease } of [bytes, decoded]) lease.complete(now);
      }
      if (step % 500 === 499) for (const each of [pool.router, router]) each.storeStreamLost('gap');
      if (step % 500 === 499) sequence = 0;
    }
    assert.ok(credited > 20, `${credited} decisions with shared credit`);
  });
}

test('decoded evidence keeps the rules: a rank that is not admitted teaches nothing, ineligible blocks teach nothing, strangers are refused', async () => {
  const options = { settings: { sharedCacheType: 'mooncake-store' }, index: { bytes: 2 << 20 } } as const;
  const router = await Router.create(options);
  const contract = contractOf({});
  const prompt = new Prompt(1, 4, contract);
  const own = new Numbers(prompt);
  router.addWorker({ id: 'a', contract });
  router.addWorker({ id: 'b' });
  assert.equal(router.takeStored('b', 0, 'device', own.blocks(0, 4)), { learned: 0, outcome: 'stored' });
  const ineligible = { ...own.blocks(0, 4), eligible: false };
  assert.equal(router.takeStored('a', 0, 'device', ineligible), { learned: 0, outcome: 'stored' });
  assert.equal(router.takeStored('a', 0, 'host', own.blocks(0, 4)), { learned: 0, outcome: 'stored' });
  assert.equal(router.takeStored('a', 0, 'device', own.blocks(0, 4)), { learned: 4, outcome: 'stored' });
  assert.equal(router.takeStored('a', 0, 'device', { ...own.blocks(2, 4), parentLow: 5 }).outcome, 'unknown-parent');
  for (const [id, dpRank] of [
    ['c', 0],
    ['a', 1],
  ] as const) {
    try {
      router.takeStored(id, dpRank, 'device', own.blocks(0, 4));
      assert.unreachable();
    } catch (error) {
      assert.ok(error instanceof MoonrouteError && error.code === 'unknown-rank');
    }
  }
  router.takeObjects({ kind: 'stored', medium: 'cpu', group: 9, digests: own.digests, at: 0, count: 4 });
  assert.is(router.stats().cache?.core?.digests, 0, 'a group that the contract does not have');
});

test('a decoded removal clears what was found without its medium, as the master’s do', async () => {
  const options = { settings: { sharedCacheType: 'mooncake-store' }, index: { bytes: 2 << 20 } } as const;
  const router = await Router.create(options);
  const contract = contractOf({});
  const prompt = new Prompt(1, 4, contract);
  const own = new Numbers(prompt);
  router.addWorker({ id: 'a', contract });
  router.takeStored('a', 0, 'device', own.blocks(0, 4));
  router.takeRemoved('a', 0, 'device', new Uint32Array(own.hashes.buffer), 0, 4);
  const shared = () => {
    const { blocks, lease } = router.route({ tokens: prompt.tokens, textOnly: true });
    lease.cancel(0);
    return blocks.shared;
  };
  const objects = { group: 0, digests: own.digests };
  router.takeObjects({ ...objects, kind: 'stored', medium: 'unknown', at: 0, count: 4 });
  assert.is(shared(), 4);
  router.takeObjects({ ...objects, kind: 'removed', medium: 'cpu', at: 2, count: 2 });
  assert.is(shared(), 2);
  router.takeObjects({ ...objects, kind: 'stored', medium: 'disk', at: 0, count: 2 });
  router.takeObjects({ ...objects, kind: 'removed', medium: 'cpu', at: 0, count: 2 });
  assert.is(shared(), 2, 'what is on disk stays');
});

test('with GPU events off decoded ones have no effect either', async () => {
  const router = await Router.create({ settings: { useKvEvents: false }, index: { bytes: 2 << 20 } });
  const prompt = new Prompt(1, 4, contractOf({}));
  const own = new Numbers(prompt);
  router.addWorker({ id: 'a' });
  assert.equal(router.takeStored('a', 0, 'device', own.blocks(0, 4)), { learned: 0, outcome: 'gpu-events-off' });
  assert.is(router.takeRemoved('a', 0, 'device', new Uint32Array(own.hashes.buffer), 0, 4), 0);
});

test.run();
