// One seed, the same decisions: also where the tables of the index are full, and what goes depends on where entries lie. A table seed of its
// own comes before the router's, and without any seed tables take random ones.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type IndexedBlocks, indexedBlocks } from '../src/core/prefix-types.js';
import { Router } from '../src/router/router.js';
import type { RouterOptions } from '../src/router/router-options.js';
import { tableSeedOf } from '../src/router/table-seeds.js';
import { Random } from './support/random.js';

const RANKS = 64;
const CHAINS = 300;
const BLOCKS = 10;

/** What a router decides after more has been stored than its index has room for, and what has gone from it. */
async function decisions(options: RouterOptions): Promise<string[]> {
  const router = await Router.create({ ...options, index: { bytes: 1 << 20, ranks: RANKS, ...options.index } });
  for (let id = 0; id < RANKS; id++) router.addWorker({ id });
  const random = new Random(5);
  const chains = Array.from({ length: CHAINS }, () => BigUint64Array.from({ length: BLOCKS }, () => random.bigint64()));
  const named = (chain: number, rank: number): IndexedBlocks => {
    const names = BigUint64Array.from({ length: BLOCKS }, (_, i) => BigInt(1 + (rank * CHAINS + chain) * BLOCKS + i));
    return indexedBlocks(null, names, chains[chain]!);
  };
  const seen: string[] = [];
  for (let step = 0; step < 6000; step++) {
    const [chain, rank] = [random.int(CHAINS), random.int(RANKS)];
    router.takeStored(rank, 0, 'device', named(chain, rank));
    if (step % 4 !== 0) continue;
    const asked = { localHashes: chains[random.int(CHAINS)]!, tokenCount: BLOCKS * 16 + 1 };
    const { worker, blocks, lease } = router.route(asked);
    lease.cancel(0);
    seen.push(`${worker.id}: ${blocks.device}`);
  }
  const { aliases, aliasCap, evictedByAliases, refusedByAliases } = router.stats().index;
  assert.ok(evictedByAliases + refusedByAliases > 100, `${aliases} of ${aliasCap} aliases: the table was never full`);
  return seen;
}

test('the same seed, the same decisions, where the index is full too', async () => {
  const settings = { seed: 42 };
  assert.equal(await decisions({ settings }), await decisions({ settings }));
});

test('a table seed of the index’s own counts before the seed', async () => {
  const settings = { seed: 42 };
  const own = (tableSeed: bigint) => decisions({ settings, index: { tableSeed } });
  const [one, other] = [await own(1n), await own(2n)];
  assert.not.equal(one, other, 'where entries lie makes a difference');
  assert.equal(await own(tableSeedOf(42, 'index')), await decisions({ settings }));
});

test('every seed gives every table a seed of 64 bits of its own', () => {
  const seeds = new Set<bigint>();
  for (const seed of [0, 1, 2, 42, 0xffff_ffff]) {
    for (const table of ['index', 'cache'] as const) {
      const own = tableSeedOf(seed, table);
      assert.ok(own > 2n ** 32n && own < 2n ** 64n, `${own}`);
      seeds.add(own);
    }
  }
  assert.is(seeds.size, 10);
});

test.run();
