// The estimator of the `ttft` policy (design.md 7): every term by hand, what may teach its rates and what may not, wild values, drift,
// own against fleet against prior, and a store that was slow and must be found again. Numbers of observations are promises: the header
// of src/router/ttft-rates.ts gives them as "tens" and "some half-lives".
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import type { LeaseObservation } from '../src/router/lease-types.js';
import { MAX_LOAD_RANKS } from '../src/router/load.js';
import {
  PROBE_AFTER,
  type TtftCandidate,
  TtftEstimator,
  type TtftOptions,
  type TtftTerms,
} from '../src/router/ttft.js';
import { TTFT_LIMITS, type TtftSettings, validateTtftOptions } from '../src/router/ttft-options.js';
import { BAND, ENOUGH, SILENCE } from '../src/router/ttft-rates.js';
import { Random } from './support/random.js';

const KV = 100_000;
const LATENCY = 5;
const HALF_LIFE = 32;
/** 8 tokens a millisecond computed; 40 restored, each of 100,000 bytes. */
const OPTIONS: TtftOptions = { prefillTokensPerSecond: 8000, fetchBytesPerSecond: 4e9, kvBytesPerToken: KV };
const PREFILL = 0.125;
const FETCH = 0.025;

const CANDIDATE: TtftCandidate = {
  rank: 0,
  activePrefillTokens: 0,
  promptTokens: 10_000,
  localTokens: 0,
  sharedTokens: 0,
};

/** A completed request that the rank computed whole at the prior rate. */
const COLD: LeaseObservation = {
  outcome: 'completed',
  rank: 0,
  promptTokens: 8000,
  localTokens: 0,
  sharedTokens: 0,
  prefix: null,
  endedAt: 2000,
  queueTime: 0,
  prefillTime: 1000,
  timeToFirstToken: 1000,
  totalTime: 2000,
  generatedTokens: 10,
  cachedTokens: 0,
};

/** 8,000 of 9,000 tokens restored: 5 + 200 + 125 ms at the prior rates. */
const RESTORED: LeaseObservation = {
  ...COLD,
  promptTokens: 9000,
  sharedTokens: 8000,
  cachedTokens: 8000,
  prefillTime: LATENCY + 8000 * FETCH + 1000 * PREFILL,
};

const make = (options: TtftOptions = {}, ranks = 4): TtftEstimator =>
  new TtftEstimator(ranks, { ...OPTIONS, ...options });

/** Shows the estimator the same thing so many times. */
function teach(estimator: TtftEstimator, times: number, seen: Partial<LeaseObservation>, base = COLD): void {
  for (let i = 0; i < times; i++) estimator.leaseEnded({ ...base, ...seen });
}

/** A restore of `tokens` tokens at `pace` ms each, and of nothing else. */
const restoreAt = (pace: number, tokens = 8000): LeaseObservation => ({
  ...RESTORED,
  promptTokens: tokens,
  cachedTokens: tokens,
  sharedTokens: tokens,
  prefillTime: LATENCY + tokens * pace,
});

const prefillOf = (estimator: TtftEstimator, rank = 0): number => estimator.rates(rank).prefillTokensPerSecond;
const fetchOf = (estimator: TtftEstimator, rank = 0): number => estimator.rates(rank).fetchBytesPerSecond;

function near(seen: number, expected: number, part = 1e-9): void {
  const off = Math.abs(seen - expected);
  assert.ok(off <= part * Math.max(1e-9, Math.abs(expected)), `${seen} is not ${expected} to within ${part}`);
}

function assertTerms(seen: TtftTerms, expected: Partial<TtftTerms>): void {
  for (const [name, value] of Object.entries(expected)) {
    const found = seen[name as keyof TtftTerms];
    if (typeof value === 'number') near(Number(found), value);
    else assert.is(found, value, name);
  }
}

// Terms

interface Row {
  readonly name: string;
  readonly options?: TtftOptions;
  readonly candidate: Partial<TtftCandidate>;
  readonly expected: Partial<TtftTerms>;
}

const rows: readonly Row[] = [
  {
    name: 'cold and idle: the whole prompt is computed',
    candidate: {},
    expected: { queue: 0, fetch: 0, prefill: 1250, time: 1250, sharedTokens: 0, storeSlower: false },
  },
  {
    name: 'what is ahead is computed first',
    candidate: { activePrefillTokens: 4000 },
    expected: { queue: 500, fetch: 0, prefill: 1250, time: 1750 },
  },
  {
    name: 'local tokens are not computed',
    candidate: { localTokens: 6000 },
    expected: { queue: 0, fetch: 0, prefill: 500, time: 500 },
  },
  {
    name: 'shared tokens are fetched: 5 + 8,000 · 0.025, and the other 2,000 computed',
    candidate: { sharedTokens: 8000 },
    expected: { fetch: 205, prefill: 250, time: 455, sharedTokens: 8000, storeSlower: false },
  },
  {
    name: 'local, shared and the rest, behind a queue',
    candidate: { activePrefillTokens: 800, localTokens: 2000, sharedTokens: 4000 },
    expected: { queue: 100, fetch: 105, prefill: 500, time: 705, sharedTokens: 4000 },
  },
  {
    name: 'a prompt that is shared whole leaves nothing to compute',
    candidate: { sharedTokens: 10_000 },
    expected: { fetch: 255, prefill: 0, time: 255, sharedTokens: 10_000 },
  },
  {
    name: 'shared tokens past the prompt are not credited',
    candidate: { localTokens: 6000, sharedTokens: 9000 },
    expected: { fetch: 105, prefill: 0, time: 105, sharedTokens: 4000 },
  },
  {
    name: 'more local tokens than prompt: nothing to fetch or compute',
    candidate: { localTokens: 10_016, sharedTokens: 100 },
    expected: { fetch: 0, prefill: 0, time: 0, sharedTokens: 0, storeSlower: false },
  },
  {
    name: 'a prompt without tokens takes no time',
    candidate: { promptTokens: 0 },
    expected: { queue: 0, fetch: 0, prefill: 0, time: 0 },
  },
  {
    name: 'a fetch that takes exactly as long as computing, 5 + 50 · 0.025 = 50 · 0.125, is not credited',
    candidate: { sharedTokens: 50 },
    expected: { fetch: 0, prefill: 1250, time: 1250, sharedTokens: 0, storeSlower: true },
  },
  {
    name: 'one token more, and it is: 5 + 51 · 0.025',
    candidate: { sharedTokens: 51 },
    expected: { fetch: 6.275, prefill: 9949 * 0.125, sharedTokens: 51, storeSlower: false },
  },
  {
    name: 'without latency any number is credited where bandwidth beats computing',
    options: { fetchLatency: 0 },
    candidate: { sharedTokens: 1 },
    expected: { fetch: 0.025, sharedTokens: 1, storeSlower: false },
  },
  {
    name: 'a slow store is not credited, however many tokens it holds',
    options: { fetchBytesPerSecond: 4e8 },
    candidate: { activePrefillTokens: 800, sharedTokens: 8000 },
    expected: { queue: 100, fetch: 0, prefill: 1250, time: 1350, sharedTokens: 0, storeSlower: true },
  },
  {
    name: 'twice the bytes a token, twice the time a token',
    options: { kvBytesPerToken: 2 * KV },
    candidate: { sharedTokens: 8000 },
    expected: { fetch: 405, sharedTokens: 8000 },
  },
  {
    name: 'twice the prefill rate halves queue and prefill, and moves the point where the store is slower',
    options: { prefillTokensPerSecond: 16_000 },
    candidate: { activePrefillTokens: 800, sharedTokens: 100 }, // 5 + 2.5 against 6.25
    expected: { queue: 50, fetch: 0, prefill: 625, sharedTokens: 0, storeSlower: true },
  },
];

for (const { name, options, candidate, expected } of rows) {
  test(`terms: ${name}`, () => {
    assertTerms(make(options).estimate({ ...CANDIDATE, ...candidate }), expected);
  });
}

test('the defaults: 8,000 tokens/s, 4 GB/s, 131,072 bytes a token, 5 ms', () => {
  const estimator = new TtftEstimator(1);
  assertTerms(estimator.estimate({ ...CANDIDATE, sharedTokens: 8000 }), {
    fetch: 5 + (8000 * 131_072) / 4e6,
    prefill: 250,
    sharedTokens: 8000,
  });
  const rates = {
    prefillTokensPerSecond: 8000,
    fetchBytesPerSecond: 4e9,
    prefillObservations: 0,
    fetchObservations: 0,
  };
  assert.equal(estimator.rates(0), rates);
});

test('an estimate is of one shape, adds up, and changes no belief', () => {
  const random = new Random(11);
  const estimator = make();
  const before = estimator.rates(0);
  for (let i = 0; i < 2000; i++) {
    const promptTokens = random.int(20_000);
    const seen = estimator.estimate({
      rank: random.int(4),
      activePrefillTokens: random.int(50_000),
      promptTokens,
      localTokens: random.int(20_000),
      sharedTokens: random.int(20_000),
    });
    assert.equal(Object.keys(seen), ['queue', 'fetch', 'prefill', 'time', 'sharedTokens', 'storeSlower']);
    assert.is(seen.time, seen.queue + seen.fetch + seen.prefill);
    assert.ok(seen.time >= 0 && seen.sharedTokens >= 0 && seen.sharedTokens <= promptTokens);
    if (seen.storeSlower) assert.is(seen.sharedTokens + seen.fetch, 0);
    if (seen.sharedTokens > 0) assert.ok(seen.fetch < seen.sharedTokens * PREFILL);
  }
  assert.equal(estimator.rates(0), before);
});

test('more of a prompt in the store never makes an estimate longer', () => {
  const estimator = make();
  let last = Number.POSITIVE_INFINITY;
  for (let sharedTokens = 0; sharedTokens <= 10_000; sharedTokens += 10) {
    const { time } = estimator.estimate({ ...CANDIDATE, sharedTokens });
    assert.ok(time <= last + 1e-9, `${sharedTokens}`);
    last = time;
  }
});

// What teaches

/** `prefill` and `fetch`: the rate that one such observation shows, null where it must teach nothing. */
interface Lesson {
  readonly name: string;
  readonly seen: Partial<LeaseObservation>;
  readonly prefill?: number;
  readonly fetch?: number;
}

const lessons: readonly Lesson[] = [
  { name: 'a cold prompt: 8,000 tokens in 500 ms', seen: { prefillTime: 500 }, prefill: 16_000 },
  {
    name: 'the engine found what the router thought: 2,000 of 8,000 left',
    seen: { localTokens: 6000, cachedTokens: 6000, prefillTime: 500 },
    prefill: 4000,
  },
  {
    name: 'the engine found less than the router thought: what it computed counts',
    seen: { localTokens: 6000, cachedTokens: 0, prefillTime: 500 },
    prefill: 16_000,
  },
  {
    name: 'a time so short that it could hold no fetch, where there was none: 64 tokens in 4 ms',
    seen: { promptTokens: 64, prefillTime: 4 },
    prefill: 16_000,
  },
  {
    name: 'the same, where the engine found less than the router thought',
    seen: { promptTokens: 96, localTokens: 64, cachedTokens: 32, prefillTime: 4 },
    prefill: 16_000,
  },
  {
    name: 'the engine said nothing of its cache: the local tokens are believed',
    seen: { localTokens: 6000, cachedTokens: null, prefillTime: 500 },
    prefill: 4000,
  },
  {
    name: 'a surplus whose fetch would be a quarter of the time: 5 + 4,800 · 0.025 = 125 of 500 ms',
    seen: { cachedTokens: 4800, prefillTime: 500 },
    prefill: 6400,
  },
  {
    name: 'a larger surplus may hide a fetch',
    seen: { cachedTokens: 4801, prefillTime: 500 },
  },
  { name: 'nothing was computed', seen: { localTokens: 8000, cachedTokens: 8000, prefillTime: 500 } },
  { name: 'no prefill time', seen: { prefillTime: null } },
  { name: 'a prefill time of 0', seen: { prefillTime: 0 } },
  { name: 'a prefill time that is no number', seen: { prefillTime: Number.NaN } },
  { name: 'a failed request', seen: { outcome: 'failed' } },
  { name: 'a cancelled request', seen: { outcome: 'cancelled' } },
  { name: 'a rank past the table', seen: { rank: 4 } },
  {
    name: 'a restore: 5 + 100 + 125 ms, so 8,000 tokens in 100 ms',
    seen: { ...RESTORED, prefillTime: 230 },
    fetch: 8e9,
  },
  {
    name: 'a restore past local tokens: 6,000 tokens in 300 ms',
    seen: { ...RESTORED, localTokens: 2000, sharedTokens: 6000, prefillTime: 430 },
    fetch: 2e9,
  },
  {
    name: 'a restore of less than was credited: 4,000 tokens in 200 ms, 5,000 computed',
    seen: { ...RESTORED, cachedTokens: 4000, prefillTime: 5 + 200 + 625 },
    fetch: 2e9,
  },
  {
    name: 'no time left for the fetch: the fast edge of the band',
    seen: { ...RESTORED, prefillTime: 100 },
    fetch: BAND * 4e9,
  },
  { name: 'credited, and not restored', seen: { ...RESTORED, cachedTokens: 0 } },
  {
    name: 'credited, and no more found than the rank had itself',
    seen: { ...RESTORED, localTokens: 2000, cachedTokens: 2000 },
  },
  { name: 'credited, and nothing said of the cache', seen: { ...RESTORED, cachedTokens: null } },
  { name: 'a restore without a prefill time', seen: { ...RESTORED, prefillTime: null } },
  { name: 'a failed restore', seen: { ...RESTORED, outcome: 'failed' } },
];

for (const { name, seen, prefill, fetch } of lessons) {
  const what = prefill !== undefined ? 'teaches prefill' : fetch !== undefined ? 'teaches fetch' : 'teaches nothing';
  test(`${what}: ${name}`, () => {
    // With a half-life of 1 a single observation is enough to be believed, and each counts as it is.
    const estimator = make({ halfLife: 1 });
    teach(estimator, 1, seen);
    near(prefillOf(estimator), prefill ?? 8000);
    near(fetchOf(estimator), fetch ?? 4e9);
    const { prefillLearned, fetchLearned, unusable } = estimator.stats();
    const expected = [prefill === undefined ? 0 : 1, fetch === undefined ? 0 : 1];
    assert.equal([prefillLearned, fetchLearned], expected);
    assert.is(unusable, what === 'teaches nothing' ? 1 : 0);
  });
}

test('a rate is tokens over time, not the mean of rates', () => {
  const estimator = make({ halfLife: 1_000_000 });
  // 9,000 tokens in 1,000 ms and 200 in 100 ms: 9,200 in 1,100, where the mean of the rates is 5,500.
  for (let i = 0; i < 8; i++) {
    teach(estimator, 1, { promptTokens: 9000, prefillTime: 1000 });
    teach(estimator, 1, { promptTokens: 200, prefillTime: 100 });
  }
  near(prefillOf(estimator), 9200 / 1.1, 1e-4);
});

// Wild values

for (const [name, prefillTime, rate] of [
  ['BAND times slower', 1000 * BAND, 8000 / BAND],
  ['a thousand times slower', 1e6, 8000 / BAND],
  ['an endless time', Number.POSITIVE_INFINITY, 8000 / BAND],
  ['BAND times faster', 1000 / BAND, 8000 * BAND],
  ['a thousand times faster', 1, 8000 * BAND],
] as const) {
  test(`clamp: ${name} counts as a factor of BAND`, () => {
    const estimator = make({ halfLife: 1 });
    teach(estimator, 1, { prefillTime });
    near(prefillOf(estimator), rate);
    assert.is(estimator.stats().clamped, prefillTime === 8000 || prefillTime === 125 ? 0 : 1);
  });
}

for (const [name, prefillTime, rate] of [
  ['a fetch a thousand times slower', 205_000, 4e9 / BAND],
  ['a fetch a thousand times faster', 130.2, 4e9 * BAND],
] as const) {
  test(`clamp: ${name} counts as a factor of BAND`, () => {
    const estimator = make({ halfLife: 1 });
    teach(estimator, 1, { prefillTime }, RESTORED);
    near(fetchOf(estimator), rate);
    assert.is(estimator.stats().clamped, 1);
  });
}

test('one wild value among many moves a rate by a fifth at most', () => {
  for (const prefillTime of [1e9, 1e-3]) {
    const estimator = make();
    teach(estimator, 200, {});
    teach(estimator, 1, { prefillTime });
    near(prefillOf(estimator), 8000, 0.2);
  }
});

test('rates stay within the absolute limits', () => {
  const { prefillTokensPerSecond: prefill, fetchBytesPerSecond: fetch } = TTFT_LIMITS;
  const fast = make();
  teach(fast, 2000, { prefillTime: 1e-9 });
  near(prefillOf(fast), prefill.most);
  teach(fast, 2000, { prefillTime: 1e-9 }, RESTORED);
  near(fetchOf(fast), fetch.most);
  const slow = make();
  teach(slow, 2000, { promptTokens: 1, prefillTime: 1e12 });
  near(prefillOf(slow), prefill.least);
  const blocked = make();
  teach(blocked, 2000, { prefillTime: 1e12 }, RESTORED);
  near(fetchOf(blocked), fetch.least);
});

test('a short request that took long hardly moves a rate that long ones showed', () => {
  const estimator = make();
  teach(estimator, 100, {});
  teach(estimator, 10, { promptTokens: 16, prefillTime: 60 });
  near(prefillOf(estimator), 8000, 0.01);
});

// Convergence and drift

/** Observations until the belief stays within `part` of the truth, for 200 more. */
function needed(
  estimator: TtftEstimator,
  show: () => LeaseObservation,
  rate: () => number,
  truth: number,
  part: number,
) {
  let last = 0;
  for (let i = 1; i <= last + 200 && i < 5000; i++) {
    estimator.leaseEnded(show());
    if (Math.abs(rate() / truth - 1) > part) last = i;
  }
  return last + 1;
}

/** A request that computes all but its restored tokens, at true paces in ms a token, its time off by up to `noise`. */
function truthful(random: Random, prefillPace: number, fetchPace: number | null, noise: number): LeaseObservation {
  const computed = random.between(200, 8000);
  const restored = fetchPace === null ? 0 : random.between(2000, 16_000);
  const fetch = restored > 0 ? LATENCY + restored * (fetchPace ?? 0) : 0;
  const factor = 1 + (noise * (random.int(2001) - 1000)) / 1000;
  return {
    ...COLD,
    promptTokens: computed + restored,
    sharedTokens: restored,
    cachedTokens: restored,
    prefillTime: (computed * prefillPace + fetch) * factor,
  };
}

for (const factor of [1, 3, 1 / 3, 20, 1 / 20]) {
  test(`learns a prefill rate ${factor.toFixed(2)} times the prior to within 15 % through noise of ±40 %`, () => {
    const random = new Random(5);
    const estimator = make();
    const show = () => truthful(random, PREFILL / factor, null, 0.4);
    const count = needed(estimator, show, () => prefillOf(estimator), 8000 * factor, 0.15);
    assert.ok(count <= 64, `${count} observations`);
  });
}

for (const factor of [1, 3, 1 / 3, 1 / 20]) {
  test(`learns a fetch rate ${factor.toFixed(2)} times the prior to within 30 % through noise of ±10 %`, () => {
    const random = new Random(6);
    const estimator = make();
    const show = () => truthful(random, PREFILL, FETCH / factor, 0.1);
    const count = needed(estimator, show, () => fetchOf(estimator), 4e9 * factor, 0.3);
    assert.ok(count <= 64, `${count} observations`);
  });
}

for (const [name, factor, most] of [
  ['falls', 1 / 20, 2 * HALF_LIFE],
  ['rises', 20, 6 * HALF_LIFE],
] as const) {
  test(`a prefill rate that ${name} 20 times is found, to within half, in ${most} observations`, () => {
    const estimator = make();
    teach(estimator, 500, {});
    const seen = { ...COLD, prefillTime: 1000 / factor };
    const count = needed(
      estimator,
      () => seen,
      () => prefillOf(estimator),
      8000 * factor,
      0.5,
    );
    assert.ok(count <= most, `${count} observations`);
  });

  test(`a fetch rate that ${name} 20 times is found, to within half, in ${most} observations`, () => {
    const estimator = make();
    teach(estimator, 500, {}, restoreAt(FETCH));
    const seen = restoreAt(FETCH / factor);
    const count = needed(
      estimator,
      () => seen,
      () => fetchOf(estimator),
      4e9 * factor,
      0.5,
    );
    assert.ok(count <= most, `${count} observations`);
  });
}

test('a prior that is wrong by a factor of 1,000 either way is forgotten', () => {
  for (const prefillTokensPerSecond of [8, 8_000_000]) {
    const estimator = make({ prefillTokensPerSecond });
    teach(estimator, 400, {});
    near(prefillOf(estimator), 8000, 0.05);
  }
});

test('with a half-life of 1 a change is found within 12 observations', () => {
  const estimator = make({ halfLife: 1 });
  teach(estimator, 100, {});
  teach(estimator, 12, { prefillTime: 20_000 });
  near(prefillOf(estimator), 400, 0.05);
  teach(estimator, 12, {});
  near(prefillOf(estimator), 8000, 0.1);
});

// Own, fleet, prior

test('what one rank shows, others believe where they have nothing of their own', () => {
  const estimator = make();
  teach(estimator, 100, { prefillTime: 500 });
  near(prefillOf(estimator, 0), 16_000, 1e-3);
  near(prefillOf(estimator, 3), prefillOf(estimator, 0), 1e-3);
  assert.is(estimator.rates(3).prefillObservations, 0);
});

test('one observation of eight counts an eighth of the fleet’s belief', () => {
  const estimator = make({ halfLife: 1_000_000 });
  teach(estimator, 1, { prefillTime: 500 });
  // Of a token's 0.125 ms by the prior and 0.0625 by the fleet.
  const fleet = (7 / 8) * 0.125 + (1 / 8) * 0.0625;
  near(prefillOf(estimator, 1), 1000 / fleet);
  near(prefillOf(estimator, 0), 1000 / ((7 / 8) * fleet + (1 / 8) * 0.0625));
});

test('a rank with enough of its own needs neither fleet nor prior', () => {
  const estimator = make({ halfLife: 1000 });
  teach(estimator, ENOUGH + 1, { rank: 2, prefillTime: 4000 });
  teach(estimator, 100, { prefillTime: 500 });
  near(prefillOf(estimator, 2), 2000, 1e-6);
  near(prefillOf(estimator, 0), 16_000, 1e-6);
  const { prefillTokensPerSecond } = estimator.rates(1);
  assert.ok(prefillTokensPerSecond > 8000 && prefillTokensPerSecond < 16_000, 'the fleet is a mix of both');
});

test('ranks of different speed are told apart while both teach, and estimates follow', () => {
  const estimator = make();
  for (let i = 0; i < 300; i++) {
    teach(estimator, 1, { rank: 0, prefillTime: 500 });
    teach(estimator, 1, { rank: 1, prefillTime: 2000 });
  }
  near(prefillOf(estimator, 0), 16_000, 1e-3);
  near(prefillOf(estimator, 1), 4000, 1e-3);
  near(estimator.estimate({ ...CANDIDATE, rank: 0 }).time, 625, 1e-3);
  near(estimator.estimate({ ...CANDIDATE, rank: 1 }).time, 2500, 1e-3);
});

test('a rank that was slow and is not chosen any more is believed to be like the fleet again', () => {
  const estimator = make();
  for (let i = 0; i < 100; i++) for (const rank of [0, 1, 2]) teach(estimator, 1, { rank });
  teach(estimator, 60, { prefillTime: 10_000 });
  const slow = prefillOf(estimator, 0);
  assert.ok(slow < 1500, `${slow}`);
  const silence = SILENCE * HALF_LIFE * 3;
  for (let i = 0; i < silence / 2; i++) teach(estimator, 1, { rank: 1 + (i % 2) });
  near(prefillOf(estimator, 0), slow, 1e-6);
  for (let i = 0; i < silence / 2; i++) teach(estimator, 1, { rank: 1 + (i % 2) });
  near(prefillOf(estimator, 0), 8000, 0.02);
  assert.is(estimator.rates(0).prefillObservations, 0);
  teach(estimator, 1, {});
  assert.is(estimator.rates(0).prefillObservations, 1, 'a new lesson does not bring the old ones back');
});

test('a rank that was forgotten does not slow the fading of a silent one', () => {
  const estimator = make();
  for (let i = 0; i < 50; i++) for (const rank of [0, 1, 2, 3]) teach(estimator, 1, { rank });
  for (const rank of [2, 3]) estimator.forget(rank);
  teach(estimator, SILENCE * HALF_LIFE * 2, { rank: 1 });
  assert.is(estimator.rates(0).prefillObservations, 0);
});

test('a lone rank does not fade, however long it teaches only one rate', () => {
  const estimator = make();
  teach(estimator, 50, {}, restoreAt(0.05));
  teach(estimator, 5000, {});
  near(fetchOf(estimator), 2e9, 0.01);
});

test('observations are counted with their age: never above 1.44 half-lives and one', () => {
  const estimator = make();
  teach(estimator, 3, {});
  const { prefillObservations } = estimator.rates(0);
  assert.ok(prefillObservations > 2.9 && prefillObservations < 3);
  teach(estimator, 1000, {});
  assert.ok(estimator.rates(0).prefillObservations <= Math.LOG2E * HALF_LIFE + 1);
  assert.is(estimator.stats().prefillLearned, 1003);
});

test('forget: the rank is like the fleet, which keeps what it learned', () => {
  const estimator = make();
  teach(estimator, 300, { rank: 1 });
  teach(estimator, 20, { rank: 0, prefillTime: 5000 });
  teach(estimator, 20, { rank: 0 }, restoreAt(0.05));
  const others = estimator.rates(1);
  estimator.forget(0);
  assert.equal(estimator.rates(0), { ...others, ...estimator.rates(3) });
  assert.is(estimator.rates(0).prefillObservations, 0);
  assert.is(estimator.rates(0).fetchObservations, 0);
  near(prefillOf(estimator, 1), 8000, 1e-6);
  teach(estimator, 60, { rank: 0, prefillTime: 500 });
  near(prefillOf(estimator, 0), 16_000, 0.01);
});

test('forget of a rank that never taught, or of all, does no harm', () => {
  const estimator = make();
  for (const rank of [0, 1, 2, 3, 3]) estimator.forget(rank);
  near(prefillOf(estimator), 8000);
  teach(estimator, 5, {});
  for (const rank of [0, 0, 1]) estimator.forget(rank);
  assert.ok(Number.isFinite(estimator.estimate(CANDIDATE).time));
});

// The slow store

const SHARED: TtftCandidate = { ...CANDIDATE, sharedTokens: 8000 };
/** 0.5 ms a token, four times as long as computing it. */
const SLOW = restoreAt(20 * FETCH);

test('a store that turns slow is credited no more, after at most 24 restores', () => {
  const estimator = make();
  teach(estimator, 500, {}, restoreAt(FETCH));
  let count = 0;
  for (; !estimator.estimate(SHARED).storeSlower && count < 1000; count++) estimator.leaseEnded(SLOW);
  assert.ok(count > 1 && count <= 24, `${count}`);
  assertTerms(estimator.estimate(SHARED), { fetch: 0, prefill: 1250, sharedTokens: 0, storeSlower: true });
});

test('a slow store that restores uncredited does not make prefill look slow', () => {
  const estimator = make();
  teach(estimator, 60, {});
  teach(estimator, 200, {}, SLOW);
  // 8,000 restored in 4,005 ms and 1,000 computed in 125, which the router did not credit.
  teach(estimator, 500, { ...RESTORED, sharedTokens: 0, prefillTime: 4130 });
  near(prefillOf(estimator), 8000, 1e-6);
  assert.is(estimator.estimate({ ...SHARED, sharedTokens: 20 }).storeSlower, true);
});

test('probe: after so many completions without word of the store it is credited, priced as computing', () => {
  const estimator = make();
  teach(estimator, 200, {}, SLOW);
  for (let i = 0; i < PROBE_AFTER; i++) {
    assert.is(estimator.estimate(SHARED).storeSlower, true, `after ${i}`);
    teach(estimator, 1, {});
  }
  const probe = estimator.estimate(SHARED);
  assertTerms(probe, { fetch: 1000, prefill: 250, time: 1250, sharedTokens: 8000, storeSlower: false });
  near(probe.time, estimator.estimate(CANDIDATE).time);
  assert.is(estimator.stats().probes, 1);
});

test('probe: an answer that agrees ends it, and the count starts again', () => {
  const estimator = make();
  teach(estimator, 200, {}, SLOW);
  for (let round = 1; round <= 3; round++) {
    teach(estimator, PROBE_AFTER, {});
    assert.is(estimator.estimate(SHARED).sharedTokens, 8000);
    teach(estimator, 1, {}, SLOW);
    assert.is(estimator.estimate(SHARED).storeSlower, true);
    assert.is(estimator.stats().probes, round);
  }
});

for (const [name, seen] of [
  ['nothing was restored', { cachedTokens: 0 }],
  ['the engine said nothing', { cachedTokens: null }],
  ['its time is unknown', { prefillTime: null }],
] as const) {
  test(`probe: an answer in which ${name} ends it too`, () => {
    const estimator = make();
    teach(estimator, 200, {}, SLOW);
    teach(estimator, PROBE_AFTER, {});
    teach(estimator, 1, seen, SLOW);
    assert.is(estimator.estimate(SHARED).storeSlower, true);
  });
}

test('probe: a request that fails is no answer', () => {
  const estimator = make();
  teach(estimator, 200, {}, SLOW);
  teach(estimator, PROBE_AFTER, {});
  teach(estimator, 1, { outcome: 'failed' }, SLOW);
  assert.is(estimator.estimate(SHARED).sharedTokens, 8000);
});

test('probe: each rank asks for itself, and one that was forgotten starts anew', () => {
  const estimator = make();
  teach(estimator, 200, {}, SLOW);
  teach(estimator, PROBE_AFTER, { rank: 1 });
  assert.is(estimator.estimate({ ...SHARED, rank: 0 }).storeSlower, true);
  assert.is(estimator.estimate({ ...SHARED, rank: 1 }).storeSlower, false);
  estimator.forget(1);
  assert.is(estimator.estimate({ ...SHARED, rank: 1 }).storeSlower, true);
});

test('probe: none where the latency alone is too much', () => {
  const estimator = make();
  teach(estimator, PROBE_AFTER, {});
  // 40 tokens are computed in 5 ms, the latency; 41 in more, though 5 + 41 · 0.025 is more still.
  assert.is(estimator.estimate({ ...SHARED, sharedTokens: 40 }).storeSlower, true);
  assert.is(estimator.estimate({ ...SHARED, sharedTokens: 41 }).storeSlower, false);
  assert.is(estimator.stats().probes, 1);
});

/**
 * Runs `requests` requests on one rank, a quarter of them cold and the others with 8,000 of 9,000 tokens in the store, which the engine
 * restores at the true pace whether credited or not. What the estimate credits is what the lease says.
 * @returns of requests with shared tokens, those that were credited at a fetch time of their own, and probes
 */
function serve(estimator: TtftEstimator, requests: number, fetchPace: number): { credited: number; probes: number } {
  const before = estimator.stats().probes;
  let credited = 0;
  for (let i = 0; i < requests; i++) {
    if (i % 4 === 0) {
      teach(estimator, 1, {});
      continue;
    }
    const { sharedTokens } = estimator.estimate({ ...SHARED, promptTokens: 9000 });
    if (sharedTokens > 0) credited++;
    teach(estimator, 1, { sharedTokens, prefillTime: LATENCY + 8000 * fetchPace + 1000 * PREFILL }, RESTORED);
  }
  const probes = estimator.stats().probes - before;
  return { credited: credited - probes, probes };
}

test('served: a slow store costs a probe in 16, and prefill is learned through it all', () => {
  const estimator = make();
  serve(estimator, 400, 20 * FETCH);
  const { credited, probes } = serve(estimator, 4000, 20 * FETCH);
  assert.is(credited, 0);
  assert.ok(probes > 0 && probes <= 4000 / PROBE_AFTER, `${probes} probes`);
  near(prefillOf(estimator), 8000, 1e-6);
  near(fetchOf(estimator), 2e8, 0.05);
});

test('served: a store that is fast again is credited after at most 200 requests, and its rate is found after 400', () => {
  const estimator = make();
  serve(estimator, 1000, 20 * FETCH);
  assert.is(estimator.estimate(SHARED).storeSlower, true);
  serve(estimator, 200, FETCH);
  const probes = estimator.stats().probes;
  assert.ok(estimator.estimate(SHARED).fetch < 1000);
  assert.is(estimator.stats().probes, probes, 'not as a probe');
  serve(estimator, 200, FETCH);
  near(fetchOf(estimator), 4e9, 0.25);
});

test('served: it turns slow and fast again and again, and is followed each time', () => {
  const estimator = make();
  for (let turn = 0; turn < 5; turn++) {
    serve(estimator, 300, 20 * FETCH);
    assert.is(serve(estimator, 200, 20 * FETCH).credited, 0);
    serve(estimator, 300, FETCH);
    assert.equal(serve(estimator, 200, FETCH), { credited: 150, probes: 0 });
  }
});

test('any observations at all: rates stay finite and within limits, estimates finite, nothing thrown', () => {
  const random = new Random(17);
  const estimator = make({}, 3);
  const odd = [0, 1, 15, 16, 8000, 0xffff_ffff];
  const times = [null, 0, 1e-9, 1, 1000, 1e12, Number.POSITIVE_INFINITY, Number.NaN];
  const { prefillTokensPerSecond: prefill, fetchBytesPerSecond: fetch } = TTFT_LIMITS;
  for (let i = 0; i < 20_000; i++) {
    estimator.leaseEnded({
      ...COLD,
      outcome: random.pick(['completed', 'completed', 'failed', 'cancelled'] as const),
      rank: random.int(4),
      promptTokens: random.pick(odd),
      localTokens: random.pick(odd),
      sharedTokens: random.pick(odd),
      cachedTokens: random.pick([null, ...odd]),
      prefillTime: random.pick(times),
    });
    if (random.chance(0.001)) estimator.forget(random.int(3));
    const rank = random.int(3);
    const rates = estimator.rates(rank);
    const inside = (rate: number, { least, most }: { least: number; most: number }) =>
      rate >= least * (1 - 1e-9) && rate <= most * (1 + 1e-9);
    assert.ok(inside(rates.prefillTokensPerSecond, prefill) && inside(rates.fetchBytesPerSecond, fetch));
    assert.ok(Number.isFinite(estimator.estimate({ ...SHARED, rank }).time));
  }
  const { prefillLearned, fetchLearned, unusable } = estimator.stats();
  assert.is(prefillLearned + fetchLearned + unusable, 20_000);
  assert.ok(prefillLearned > 100 && fetchLearned > 100);
});

// Options

function refused(action: () => unknown): ConfigError {
  try {
    action();
  } catch (error) {
    assert.instance(error, ConfigError);
    return error as ConfigError;
  }
  throw new Error('expected a ConfigError');
}

const CODES: { readonly [Name in keyof TtftSettings]: string } = {
  prefillTokensPerSecond: 'prefill-tokens-per-second',
  fetchBytesPerSecond: 'fetch-bytes-per-second',
  kvBytesPerToken: 'kv-bytes-per-token',
  fetchLatency: 'fetch-latency',
  halfLife: 'half-life',
};

for (const [name, code] of Object.entries(CODES)) {
  test(`options: ${name} is accepted at its limits, and refused past them as ${code}`, () => {
    const { least, most, usual } = TTFT_LIMITS[name as keyof TtftSettings];
    for (const value of [least, usual, most]) {
      assert.is(validateTtftOptions({ [name]: value })[name as keyof TtftSettings], value);
    }
    const bad = [least - 0.5, most * 1.01, Number.NaN, Number.POSITIVE_INFINITY, -1, '8', null, true];
    for (const value of bad) {
      const error = refused(() => new TtftEstimator(1, { [name]: value } as TtftOptions));
      assert.is(error.code, code);
      assert.ok(error.message.startsWith(`${name} is `) && error.message.includes(`default ${usual}`), error.message);
    }
  });
}

test('options: those left out or undefined take their defaults, frozen', () => {
  const undefinedOnes = Object.fromEntries(Object.keys(CODES).map((name) => [name, undefined]));
  for (const given of [undefined, {}, undefinedOnes]) {
    const settings = validateTtftOptions(given);
    assert.ok(Object.isFrozen(settings));
    assert.equal(settings, {
      prefillTokensPerSecond: 8000,
      fetchBytesPerSecond: 4e9,
      kvBytesPerToken: 131_072,
      fetchLatency: 5,
      halfLife: 32,
    });
  }
});

test('options: an unknown one is refused by name', () => {
  const error = refused(() => validateTtftOptions({ fetchLatencyMs: 5 } as TtftOptions));
  assert.is(error.code, 'unknown-setting');
  assert.match(error.message, 'fetchLatencyMs');
});

test('ranks: 1 to 65,536 whole ones', () => {
  assert.is(prefillOf(new TtftEstimator(MAX_LOAD_RANKS), MAX_LOAD_RANKS - 1), 8000);
  for (const ranks of [0, -1, 1.5, Number.NaN, MAX_LOAD_RANKS + 1]) {
    assert.is(refused(() => new TtftEstimator(ranks)).code, 'ttft-ranks');
  }
});

test.run();
