// Known answers: one LRU cache over the hash_ids of the published FAST'25 traces, every id one full block. The shares of all block
// references that hit are the same by direct simulation and by the one-pass curve.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CapacityCurve } from '../src/sim/curve.js';
import { simulateLru } from './support/simulate-lru.js';
import { publishedTrace, readAll } from './support/traces.js';

const CAPACITIES = [1_000, 3_000, 10_000, 30_000, 50_000, 100_000, Number.POSITIVE_INFINITY] as const;
const published = [
  { name: 'conversation', references: 288_500, percent: [4.45, 6.53, 21.16, 32.57, 35.46, 36.37, 36.64] },
  { name: 'synthetic', references: 121_877, percent: [8.41, 19.06, 42.39, 62.42, 63.96, 63.96, 63.96] },
] as const;

for (const { name, references, percent } of published) {
  test(`shares of the ${name} trace`, async () => {
    const source = publishedTrace(`mooncake-${name}.jsonl`);
    if (source === null) return;
    const requests = (await readAll(source)).requests.map(({ hashIds }) => hashIds!);
    const curve = new CapacityCurve();
    for (const ids of requests) curve.add(ids);
    assert.is(curve.references, references);
    CAPACITIES.forEach((capacity, i) => {
      const hits = curve.hitsAt(capacity);
      assert.is(((100 * hits) / references).toFixed(2), percent[i]!.toFixed(2), `at ${capacity}`);
      assert.is(simulateLru(requests, capacity), hits, `simulated at ${capacity}`);
    });
  });
}

test.run();
