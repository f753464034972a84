// Balance against affinity, in a simulated pool of 8 workers. With 80 % of requests on one prefix load must stay even while most of what an
// affinity-only policy hits is hit, and neither an overloaded nor a failing worker may switch affinity off for the others. There every
// worker soon keeps the prefix; so both once more with 40 prefixes, of which a worker can keep 8, where policies without affinity must fail.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { RouterOptions } from '../src/router/router-options.js';
import { maxOverMean, type Outcome, type Scenario, simulate } from './support/pool-simulation.js';

const MOST_LOAD_OVER_MEAN = 1.5;
const LEAST_OF_AFFINITY = 0.7;
const MOST_TO_FAILING = 0.02;

/** 8 workers at about 60 % of what they can prefill where most of the prefixes are found. */
const onePrefix: Scenario = {
  workers: 8,
  requests: 1500,
  interval: 38,
  popularity: [0.8],
  blocks: 250,
  prefixBlocks: 200,
  prefixesKept: 1,
  prefillTokensPerSecond: 8000,
  decodeTime: 2000,
};
const manyPrefixes: Scenario = { ...onePrefix, popularity: Array<number>(40).fill(1 / 40), prefixesKept: 8 };

/** From request 300 on worker 0 ends nothing, and worker 1 refuses everything. */
const TROUBLE = { troubleFrom: 300, stuck: 0, failing: 1 } as const;

/** At weight 1 a request's 250 blocks of decode load outweigh the 200 blocks that it would find. */
const KV_FOR_MANY: RouterOptions = { settings: { prefillLoadScale: 16 } };

/** Most overlap wins, whatever the load; of equals the first, or any. */
const affinityOnly = (ofEquals: 'first' | 'any'): RouterOptions => ({
  policy: {
    name: 'affinity-only',
    inputs: ['gpu-cache'],
    cost: ({ blocks, rank }) => (ofEquals === 'first' ? rank / 1000 : 0) - blocks.device,
  },
});

const shown = (name: string, { hitRate, load, given }: Outcome) =>
  `${name}: hit rate ${hitRate.toFixed(3)}, max/mean load ${maxOverMean(load).toFixed(2)}, requests ${given.join(' ')}`;

const affinity = await simulate(onePrefix, affinityOnly('first'));
console.log(shown('one prefix, affinity-only', affinity));

test('one prefix: affinity alone hits all that can be hit, and loads one worker with everything', () => {
  assert.ok(maxOverMean(affinity.load) > 2 * MOST_LOAD_OVER_MEAN, shown('affinity-only', affinity));
  assert.ok(affinity.hitRate > 0.6, shown('affinity-only', affinity));
});

for (const policy of ['kv', 'ttft'] as const) {
  for (const seed of [1, 2, 3]) {
    test(`one prefix, ${policy}, seed ${seed}: max/mean load ≤ 1.5, hit rate ≥ 70 % of affinity-only`, async () => {
      const outcome = await simulate(onePrefix, { policy }, seed);
      console.log(shown(policy, outcome));
      assert.ok(maxOverMean(outcome.load) <= MOST_LOAD_OVER_MEAN, shown(policy, outcome));
      assert.ok(outcome.hitRate >= LEAST_OF_AFFINITY * affinity.hitRate, shown(policy, outcome));
    });
  }

  test(`one prefix, ${policy}: one worker stuck and one failing, and the others keep affinity`, async () => {
    const outcome = await simulate({ ...onePrefix, ...TROUBLE }, { policy });
    console.log(shown(`${policy} in trouble`, outcome));
    const [toStuck, toFailing, ...others] = outcome.given as [number, number, ...number[]];
    const all = outcome.given.reduce((sum, one) => sum + one, 0);
    assert.ok(outcome.hitRate >= LEAST_OF_AFFINITY * affinity.hitRate, shown(policy, outcome));
    assert.ok(toFailing - 3 <= MOST_TO_FAILING * all, `${toFailing} of ${all} to the failing one`);
    assert.ok(toStuck <= all / onePrefix.workers / 2, `${toStuck} of ${all} to the stuck one`);
    assert.ok(maxOverMean(others) <= MOST_LOAD_OVER_MEAN, `requests of the others: ${others.join(' ')}`);
  });
}

test('many prefixes, one worker stuck and one failing: the others keep affinity as a healthy pool of as many does', async () => {
  // The six that are left have the time and the room that eight have in `manyPrefixes`: with less, they alone could not keep affinity either.
  const lighter: Scenario = { ...manyPrefixes, interval: 51, prefixesKept: 11 };
  const { troubleFrom } = TROUBLE;
  const healthy = { ...lighter, workers: lighter.workers - 2, troubleFrom };
  const bar = LEAST_OF_AFFINITY * (await simulate(healthy, affinityOnly('any'))).hitRate;
  const run = async (name: string, options: RouterOptions) => {
    const outcome = await simulate({ ...lighter, ...TROUBLE }, options);
    console.log(shown(`many prefixes in trouble, ${name} (bar ${bar.toFixed(3)})`, outcome));
    return outcome;
  };
  for (const policy of ['random', 'least-loaded'] as const) {
    const { hitRate } = await run(policy, { policy });
    assert.ok(hitRate < bar / 2, `${policy} has no affinity, and hits ${hitRate}`);
  }
  for (const [name, options] of Object.entries({ ttft: { policy: 'ttft' }, kv: KV_FOR_MANY } as const)) {
    const outcome = await run(name, options);
    const [toStuck, toFailing, ...others] = outcome.given as [number, number, ...number[]];
    const all = outcome.given.reduce((sum, one) => sum + one, 0);
    assert.ok(outcome.hitRate >= bar, shown(name, outcome));
    assert.ok(toFailing - 3 <= MOST_TO_FAILING * all, `${toFailing} of ${all} to the failing one`);
    assert.ok(toStuck <= all / lighter.workers / 2, `${toStuck} of ${all} to the stuck one`);
    assert.ok(maxOverMean(others) <= MOST_LOAD_OVER_MEAN, `requests of the others: ${others.join(' ')}`);
  }
});

test('many prefixes: ttft, and kv where prefill weighs enough, keep them together and load even; chance does not', async () => {
  const { hitRate } = await simulate(manyPrefixes, affinityOnly('any'));
  const run = async (name: string, options: RouterOptions) => {
    const outcome = await simulate(manyPrefixes, options);
    console.log(shown(`many prefixes, ${name} (affinity-only hits ${hitRate.toFixed(3)})`, outcome));
    return outcome;
  };
  const random = await run('random', { policy: 'random' });
  assert.ok(random.hitRate < LEAST_OF_AFFINITY * hitRate);
  const kept = [await run('ttft', { policy: 'ttft' }), await run('kv', KV_FOR_MANY)];
  for (const outcome of kept) {
    assert.ok(maxOverMean(outcome.load) <= MOST_LOAD_OVER_MEAN);
    assert.ok(outcome.hitRate >= LEAST_OF_AFFINITY * hitRate);
  }
});

test.run();
