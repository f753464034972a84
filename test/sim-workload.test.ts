// The built-in workload: the same for the same seed, of the asked size, rate and mix, with prefixes that are shared truthfully. Then the
// random numbers that it is made of.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { CapacityCurve } from '../src/sim/curve.js';
import { SeededRandom, weightTable, zipfTable } from '../src/sim/random.js';
import type { TraceRequest } from '../src/sim/traces/types.js';
import { builtInWorkload, type WorkloadOptions } from '../src/sim/workload.js';

const all = (options?: WorkloadOptions): TraceRequest[] => [...builtInWorkload(options)];
const defaults = all();
const DEFAULT_DIGEST = 'c3916b23';
/** Of seed 1; pinned so that a change of the generator, which changes every seeded result, is seen. */
const FIRST_BITS = [2_442_144_158, 3_238_099_751, 3_819_917_871];

/** A digest of all that the requests say, by 32-bit integers alone. */
function digestOf(requests: Iterable<TraceRequest>): string {
  let digest = 0;
  const mix = (value: number): void => {
    digest = Math.imul(digest ^ (value >>> 0), 0x0100_0193) ^ (digest >>> 15);
  };
  for (const { at, inputTokens, outputTokens, hashIds, sessionId, delay } of requests) {
    for (const value of [at, inputTokens, outputTokens, delay ?? -1, ...hashIds!]) mix(value);
    for (const mark of sessionId!) mix(mark.charCodeAt(0));
  }
  return (digest >>> 0).toString(16);
}

test('the same seed gives the same requests, in every engine; another seed gives others', () => {
  assert.is(digestOf(defaults), DEFAULT_DIGEST);
  assert.is(digestOf(all({ seed: 1 })), DEFAULT_DIGEST);
  assert.is.not(digestOf(all({ seed: 2 })), DEFAULT_DIGEST);
});

test('by default 5,000 requests in about ten minutes, in order of arrival', () => {
  assert.is(defaults.length, 5000);
  defaults.forEach((request, i) => {
    assert.is(request.index, i);
    if (i > 0) assert.ok(request.at >= defaults[i - 1]!.at);
  });
  const minutes = defaults.at(-1)!.at / 60_000;
  assert.ok(minutes > 9 && minutes < 11, `${minutes} minutes`);
});

test('requests, rate, mix and block size are as asked', () => {
  const requests = all({ requests: 2000, rate: 50, mix: { chat: 1, agent: 3 }, idTokens: 64 });
  assert.is(requests.length, 2000);
  const seconds = requests.at(-1)!.at / 1000;
  assert.ok(seconds > 36 && seconds < 44, `${seconds} s`);
  const agents = requests.filter(({ sessionId }) => sessionId!.startsWith('agent')).length;
  assert.ok(agents > 1400 && agents < 1600, `${agents} of agents`);
  assert.ok(requests.every(({ idTokens }) => idTokens === 64));
  assert.ok(all({ requests: 300, mix: { chat: 1 } }).every(({ sessionId }) => sessionId!.startsWith('chat')));
  assert.equal(all({ requests: 0 }), []);
});

test('requests are made as they are read', () => {
  const endless = builtInWorkload({ requests: Number.MAX_SAFE_INTEGER, rate: 10 });
  for (let i = 0; i < 100; i++) assert.is(endless.next().value!.index, i);
  endless.return();
});

test('ids are compact in order of appearance, a block each, and name one prefix only', () => {
  for (const requests of [defaults, all({ requests: 1000, idTokens: 512, seed: 9 })]) {
    const parentOf = new Map<number, number>();
    for (const { hashIds, inputTokens, idTokens, fullIds } of requests) {
      assert.is(hashIds!.length, Math.ceil(inputTokens / idTokens));
      assert.is(fullIds, Math.floor(inputTokens / idTokens));
      let parent = -1;
      for (const id of hashIds!) {
        if (!parentOf.has(id)) {
          assert.is(id, parentOf.size);
          parentOf.set(id, parent);
        }
        assert.is(parentOf.get(id), parent);
        parent = id;
      }
    }
  }
});

test('a session keeps all full blocks of its history; tails are never shared', () => {
  const last = new Map<string, TraceRequest>();
  const tails = new Set<number>();
  for (const request of defaults) {
    const { sessionId, hashIds, fullIds, inputTokens, delay, at } = request;
    const before = last.get(sessionId!);
    assert.is(delay === null, before === undefined);
    if (before !== undefined) {
      assert.ok(inputTokens > before.inputTokens + before.outputTokens);
      assert.equal(hashIds!.slice(0, before.fullIds), before.hashIds!.slice(0, before.fullIds));
      assert.ok(delay! >= 0 && before.at + delay! < at);
    }
    last.set(sessionId!, request);
    for (const id of hashIds!.subarray(fullIds)) {
      assert.not(tails.has(id));
      tails.add(id);
    }
  }
  for (const { hashIds, fullIds } of defaults)
    for (const id of hashIds!.subarray(0, fullIds)) assert.not(tails.has(id));
});

test('sessions share system prompts, the popular ones far more than others; agents loop longer than chats', () => {
  const openings = new Map<number, number>();
  const turns = { chat: [] as number[], agent: [] as number[] };
  const count = new Map<string, number>();
  for (const { sessionId, hashIds, delay } of defaults) {
    if (delay === null) openings.set(hashIds![0]!, (openings.get(hashIds![0]!) ?? 0) + 1);
    count.set(sessionId!, (count.get(sessionId!) ?? 0) + 1);
  }
  for (const [session, requests] of count) turns[session.startsWith('chat') ? 'chat' : 'agent'].push(requests);
  const popularity = [...openings.values()].sort((a, b) => b - a);
  assert.ok(popularity.length <= 50, `${popularity.length} system prompts`);
  assert.ok(popularity[0]! > 5 * popularity[Math.floor(popularity.length / 2)]!, popularity.join(' '));
  const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b) / values.length;
  assert.ok(mean(turns.agent) > 2 * mean(turns.chat));
});

test('there is something to cache, and something that a small cache loses', () => {
  const curve = new CapacityCurve();
  for (const { hashIds, fullIds } of defaults) curve.add(hashIds!.subarray(0, fullIds));
  const share = (capacity: number): number => curve.hitsAt(capacity) / curve.references;
  assert.ok(share(Number.POSITIVE_INFINITY) > 0.6 && share(Number.POSITIVE_INFINITY) < 0.97);
  assert.ok(share(30_000) < 0.6 * share(Number.POSITIVE_INFINITY));
});

test("options that can't be are refused by name", () => {
  const wrong: readonly (readonly [string, WorkloadOptions])[] = [
    ['workload-requests', { requests: -1 }],
    ['workload-rate', { rate: 0 }],
    ['workload-rate', { rate: Number.NaN }],
    ['workload-seed', { seed: 1.5 }],
    ['workload-id-tokens', { idTokens: 0 }],
    ['workload-mix', { mix: { chat: 0 } }],
    ['workload-mix', { mix: { chat: -1, agent: 2 } }],
    ['workload-mix', { mix: { batch: 1 } as object }],
  ];
  for (const [code, options] of wrong)
    assert.throws(
      () => all(options),
      (error: unknown) => error instanceof ConfigError && error.code === code,
      code,
    );
});

test('random: the generator keeps its bits, an exponential its mean and tail', () => {
  const random = new SeededRandom(1);
  assert.equal([random.uint32(), random.uint32(), random.uint32()], FIRST_BITS);
  const values = Array.from({ length: 50_000 }, () => random.exponential());
  const mean = values.reduce((a, b) => a + b) / values.length;
  assert.ok(Math.abs(mean - 1) < 0.02, `mean ${mean}`);
  for (const [above, wanted] of [
    [0.5, 0.60653],
    [1, 0.36788],
    [2, 0.13534],
    [4, 0.01832],
  ] as const) {
    const share = values.filter((value) => value > above).length / values.length;
    assert.ok(Math.abs(share - wanted) < 0.01, `${share} above ${above}, not ${wanted}`);
  }
});

test('random: tables draw by weight, quantiles stay between their ends', () => {
  const random = new SeededRandom(3);
  const counts = [0, 0, 0, 0];
  const table = weightTable([1, 0, 2, 5]);
  for (let i = 0; i < 8000; i++) counts[random.weighted(table)]!++;
  assert.is(counts[1], 0);
  for (const [i, wanted] of [
    [0, 1000],
    [2, 2000],
    [3, 5000],
  ] as const)
    assert.ok(Math.abs(counts[i]! - wanted) < 200, counts.join(' '));
  const ranks = [0, 0, 0];
  const zipf = zipfTable(100);
  for (let i = 0; i < 20_000; i++) {
    const rank = random.weighted(zipf);
    if (rank < 3) ranks[rank]!++;
  }
  assert.ok(Math.abs(ranks[0]! / ranks[1]! - 2) < 0.3 && Math.abs(ranks[0]! / ranks[2]! - 3) < 0.5, ranks.join(' '));
  const drawn = Array.from({ length: 4000 }, () => random.quantile([10, 20, 1000]));
  assert.is(Math.min(...drawn), 10);
  assert.ok(Math.max(...drawn) <= 1000);
  const low = drawn.filter((value) => value <= 20).length;
  assert.ok(low > 1850 && low < 2150, `${low} in the lower half`);
});

test.run();
