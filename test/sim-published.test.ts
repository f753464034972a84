// Known answers: one simulated worker whose GPU is the only cache, on the published FAST'25 traces. Their ids are whole blocks of 512 tokens,
// and requests come one after another, so the GPU is a plain LRU over ids. Two things make it differ from that, both meant: a partial
// tail is no block, and a request's last token is always computed, so that a prompt of whole blocks alone does not hit its last one.
//
// How other effects are kept out: `outputTokens` of 1 needs no block for output; rows are spread so far apart that none meets another. What
// is left is the room of the tail while its request runs: the GPU has one block more than the LRU for it.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CapacityCurve, type SimConfigInput, simulate, type TraceRequest } from '../src/sim/index.js';
import { simulateLru } from './support/simulate-lru.js';
import { publishedTrace, readAll } from './support/traces.js';

const ID_TOKENS = 512;
/** More than either trace has different ids. */
const UNLIMITED = 200_000;
const CAPACITIES = [1_000, 3_000, 10_000, 30_000, 50_000, 100_000, UNLIMITED] as const;
/** Milliseconds between requests, longer than any takes. */
const APART = 1e6;
const published = [
  { name: 'conversation', references: 288_500, percent: [4.45, 6.53, 21.16, 32.57, 35.46, 36.37, 36.64] },
  { name: 'synthetic', references: 121_877, percent: [8.41, 19.06, 42.39, 62.42, 63.96, 63.96, 63.96] },
] as const;

/** Alone, with `room` blocks, each request finishing before the next. */
const alone = (room: number): SimConfigInput => ({
  policy: 'round-robin',
  blockSize: ID_TOKENS,
  workers: { count: 1, gpuBlocks: room },
  store: { dramBytes: 0 },
});

const apart = (requests: readonly TraceRequest[], change: (request: TraceRequest) => Partial<TraceRequest>) =>
  requests.map((request, i) => ({ ...request, at: i * APART, outputTokens: 1, delay: null, ...change(request) }));

for (const { name, references, percent } of published) {
  const source = publishedTrace(`mooncake-${name}.jsonl`);
  const requests = source === null ? [] : (await readAll(source)).requests;
  const publishedTest = source === null ? test.skip : test;

  publishedTest(`${name}: with every id a whole block, the shares are the published ones`, async () => {
    // A token more lets the last whole block be hit; it needs a block of its own.
    const whole = apart(requests, ({ hashIds }) => ({
      inputTokens: hashIds!.length * ID_TOKENS + 1,
      fullIds: hashIds!.length,
    }));
    for (const [i, capacity] of CAPACITIES.entries()) {
      const { blocks, completed } = await simulate(alone(capacity + 1), whole);
      assert.is(completed, requests.length);
      assert.is(blocks.full, references);
      assert.is(((100 * blocks.gpu) / references).toFixed(2), percent[i]!.toFixed(2), `at ${capacity}`);
    }
  });

  publishedTest(`${name}: apart from the partial tails, hits are those of the LRU over whole ids`, async () => {
    const ids = requests.map(({ hashIds, fullIds }) => hashIds!.subarray(0, fullIds));
    const curve = new CapacityCurve();
    for (const path of ids) curve.add(path);
    const whole = apart(requests, ({ fullIds }) => ({ inputTokens: fullIds * ID_TOKENS + 1 }));
    for (const capacity of CAPACITIES) {
      const { blocks } = await simulate(alone(capacity + 1), whole);
      assert.is(blocks.full, curve.references);
      assert.is(blocks.gpu, curve.hitsAt(capacity), `at ${capacity}`);
      assert.is(blocks.gpu, simulateLru(ids, capacity), `at ${capacity}`);
    }
  });

  publishedTest(`${name}: without limit, the share is the published one but for tails and last tokens`, async () => {
    const seen = new Set<number>();
    let hits = 0;
    let refused = 0;
    for (const { hashIds, inputTokens } of requests) {
      let prefix = 0;
      while (prefix < hashIds!.length && seen.has(hashIds![prefix]!)) prefix++;
      hits += prefix;
      refused += Math.max(0, prefix - Math.floor((inputTokens - 1) / ID_TOKENS));
      for (const id of hashIds!) seen.add(id);
    }
    const { blocks } = await simulate(
      alone(UNLIMITED),
      apart(requests, () => ({})),
    );
    assert.is(((100 * hits) / references).toFixed(2), percent.at(-1)!.toFixed(2));
    assert.is(blocks.gpu, hits - refused);
  });

  publishedTest(`${name}: as it is written, what differs is bounded and explained`, async () => {
    const ids = requests.map(({ hashIds, fullIds }) => hashIds!.subarray(0, fullIds));
    // Prompts of whole blocks alone: their last block may have been a hit, which the last token forbids.
    const exact = requests.filter(({ inputTokens, fullIds }) => inputTokens === fullIds * ID_TOKENS).length;
    const asWritten = apart(requests, () => ({}));
    for (const capacity of [1_000, 10_000, UNLIMITED]) {
      const plain = simulateLru(ids, capacity);
      const { blocks } = await simulate(alone(capacity + 1), asWritten);
      // Where a prompt has no tail the extra block stays for others, which is one block more of cache.
      const larger = simulateLru(ids, capacity + 1);
      assert.ok(blocks.gpu >= plain - exact && blocks.gpu <= larger, `${blocks.gpu}: ${plain} − ${exact} … ${larger}`);
    }
  });
}

test.run();
