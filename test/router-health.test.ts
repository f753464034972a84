// Which ranks are out after failures (issue 4: a failing worker must not attract traffic): failures in a row, rests, trials, clocks that
// jump, and a long random run held against a plain model.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { type HealthOptions, RankHealth } from '../src/router/health.js';
import { MAX_LOAD_RANKS } from '../src/router/load.js';
import { Random } from './support/random.js';

const SECOND = 1000;

/** Ranks of which rank 1 is out since time 0. */
function withOneOut(options?: HealthOptions): RankHealth {
  const health = new RankHealth(4, options);
  for (let i = 0; i < (options?.failures ?? 3); i++) health.failed(1, 0);
  return health;
}

const outOf = (health: RankHealth, now: number) => [0, 1, 2, 3].filter((rank) => health.isOut(rank, now));

test('every rank is in at first', () => {
  const health = new RankHealth(4);
  assert.equal(outOf(health, 0), []);
  assert.equal(health.stats(0), { out: 0, onTrial: 0, failures: 0, rests: 0 });
});

test('the third failure in a row puts a rank out for five seconds, and no other', () => {
  const health = new RankHealth(4);
  health.failed(1, 0);
  health.failed(1, 10);
  assert.equal(outOf(health, 10), []);
  health.failed(1, 20);
  assert.equal(outOf(health, 20), [1]);
  assert.equal(outOf(health, 5019), [1]);
  assert.equal(outOf(health, 5020), []);
});

for (const failures of [1, 2, 255]) {
  test(`with \`failures: ${failures}\` it takes ${failures}`, () => {
    const health = new RankHealth(1, { failures });
    for (let i = 1; i < failures; i++) health.failed(0, i);
    assert.is(health.isOut(0, failures), false);
    health.failed(0, failures);
    assert.is(health.isOut(0, failures), true);
  });
}

test('failures of several ranks do not add up', () => {
  const health = new RankHealth(4);
  for (const rank of [0, 1, 2, 3, 0, 1, 2, 3]) health.failed(rank, 0);
  assert.equal(outOf(health, 0), []);
});

test('a success between failures begins the count anew', () => {
  const health = new RankHealth(4);
  for (let i = 0; i < 10; i++) {
    health.failed(1, i);
    health.failed(1, i);
    health.succeeded(1);
  }
  assert.equal(outOf(health, 10), []);
  assert.equal(health.stats(10), { out: 0, onTrial: 0, failures: 20, rests: 0 });
});

test('a failure on trial puts it out at once, each time for twice as long, up to a minute', () => {
  const health = withOneOut();
  let start = 0;
  for (const seconds of [5, 10, 20, 40, 60, 60]) {
    const end = start + seconds * SECOND;
    assert.is(health.isOut(1, end - 1), true, `up to ${seconds} s`);
    assert.is(health.isOut(1, end), false, `after ${seconds} s`);
    start = end + 7;
    assert.is(health.isOut(1, start), false, 'on trial until it fails');
    health.failed(1, start);
  }
  assert.is(health.stats(start).rests, 7);
});

test('the rests are those of the options', () => {
  const health = withOneOut({ failures: 2, restFor: 10, restAtMost: 25 });
  let now = 0;
  for (const rest of [10, 20, 25, 25]) {
    assert.is(health.isOut(1, now + rest - 1), true);
    now += rest;
    assert.is(health.isOut(1, now), false);
    health.failed(1, now);
  }
});

test('failures while it is out, of requests sent before, change neither its rest nor the next', () => {
  const health = withOneOut();
  for (let i = 0; i < 100; i++) health.failed(1, 4 * SECOND);
  assert.is(health.isOut(1, 5 * SECOND), false);
  health.failed(1, 5 * SECOND);
  assert.is(health.isOut(1, 15 * SECOND - 1), true);
  assert.is(health.isOut(1, 15 * SECOND), false);
  assert.equal(health.stats(15 * SECOND), { out: 0, onTrial: 1, failures: 104, rests: 2 });
});

for (const [name, now] of [
  ['on trial', 6 * SECOND],
  ['while it is out', SECOND],
] as const) {
  test(`a success ${name} forgets all`, () => {
    const health = withOneOut();
    health.succeeded(1);
    assert.equal(outOf(health, now), []);
    health.failed(1, now);
    health.failed(1, now);
    assert.equal(outOf(health, now), []);
    health.failed(1, now);
    assert.is(health.isOut(1, now + 5 * SECOND - 1), true);
    assert.is(health.isOut(1, now + 5 * SECOND), false, 'the first rest again');
  });
}

test('a rank that takes the index of another begins anew', () => {
  const health = withOneOut();
  health.failed(2, 0);
  health.failed(2, 0);
  health.forget(1);
  health.forget(2);
  health.failed(2, 0);
  assert.equal(outOf(health, 0), []);
  assert.equal(health.stats(0), { out: 0, onTrial: 0, failures: 6, rests: 1 });
});

test('ranks that are out, and those on trial, are counted as of now', () => {
  const health = withOneOut();
  for (const rank of [2, 3]) for (let i = 0; i < 3; i++) health.failed(rank, 3 * SECOND);
  const counts = (now: number) => {
    const { out, onTrial } = health.stats(now);
    return [out, onTrial];
  };
  assert.equal(counts(3 * SECOND), [3, 0]);
  assert.equal(counts(5 * SECOND), [2, 1]);
  assert.equal(counts(8 * SECOND), [0, 3]);
  health.succeeded(2);
  assert.equal(counts(8 * SECOND), [0, 2]);
});

// Clocks

const clocks: readonly { name: string; now: number; isOut: boolean }[] = [
  { name: 'a little back', now: 95_001, isOut: true },
  { name: 'back by a rest', now: 95_000, isOut: false },
  { name: 'back by far', now: 0, isOut: false },
  { name: 'below nothing', now: -1e15, isOut: false },
  { name: 'ahead by far', now: 1e15, isOut: false },
  { name: 'to no number', now: Number.NaN, isOut: false },
  { name: 'to no end', now: Number.POSITIVE_INFINITY, isOut: false },
  { name: 'to before all', now: Number.NEGATIVE_INFINITY, isOut: false },
];
for (const { name, now, isOut } of clocks) {
  test(`where the clock jumps ${name}, a rank is ${isOut ? 'out' : 'in'}`, () => {
    const health = new RankHealth(1);
    for (let i = 0; i < 3; i++) health.failed(0, 100_000);
    assert.is(health.isOut(0, now), isOut);
    assert.is(health.stats(now).out, Number(isOut));
  });
}

for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
  test(`failures at ${bad} count, but keep no rank out`, () => {
    const health = new RankHealth(1);
    for (let i = 0; i < 5; i++) health.failed(0, bad);
    for (const now of [bad, 0, 1e15]) assert.is(health.isOut(0, now), false);
    health.failed(0, 1000);
    assert.is(health.isOut(0, 1000), true);
    assert.is(health.isOut(0, 1000 + 60 * SECOND), false);
  });
}

test('after a clock that jumped back, a failure puts it out by the new one', () => {
  const health = new RankHealth(1);
  for (let i = 0; i < 3; i++) health.failed(0, 1e12);
  assert.is(health.isOut(0, 50), false);
  health.failed(0, 50);
  assert.is(health.isOut(0, 50), true);
  assert.is(health.isOut(0, 50 + 10 * SECOND), false);
});

// Bounds and options

test('the most ranks there may be keep apart', () => {
  const health = new RankHealth(MAX_LOAD_RANKS);
  for (let i = 0; i < 3; i++) health.failed(MAX_LOAD_RANKS - 1, 0);
  assert.is(health.stats(0).out, 1);
  assert.is(health.isOut(MAX_LOAD_RANKS - 1, 0), true);
});

test('100,000 failures in a row are no more than enough', () => {
  const health = new RankHealth(1, { failures: 255 });
  for (let i = 1; i <= 100_000; i++) health.failed(0, i * 1e6);
  const now = 100_000 * 1e6;
  assert.is(health.isOut(0, now + 59_999), true);
  assert.is(health.isOut(0, now + 60_000), false);
  assert.is(health.stats(now).rests, 100_000 - 254);
});

const wrong: readonly { ranks?: number; options?: HealthOptions; code: string; seen: string }[] = [
  ...[0, -1, 1.5, Number.NaN, MAX_LOAD_RANKS + 1].map((ranks) => ({
    ranks,
    code: 'health-ranks',
    seen: `ranks is ${ranks}`,
  })),
  ...[0, 2.5, 256, Number.NaN].map((failures) => ({
    options: { failures },
    code: 'health-failures',
    seen: `failures is ${failures}`,
  })),
  ...[0, -5, Number.NaN, Number.POSITIVE_INFINITY].map((restFor) => ({
    options: { restFor },
    code: 'health-rest-for',
    seen: `restFor is ${restFor}`,
  })),
  ...[4999, Number.NaN, Number.POSITIVE_INFINITY].map((restAtMost) => ({
    options: { restAtMost },
    code: 'health-rest-at-most',
    seen: `restAtMost is ${restAtMost}`,
  })),
];
for (const { ranks = 4, options = {}, code, seen } of wrong) {
  test(`${code}: ${seen} is refused by name`, () => {
    assert.throws(
      () => new RankHealth(ranks, options),
      (error: unknown) => error instanceof ConfigError && error.code === code && error.message.includes(seen),
    );
  });
}

test('the longest rest follows a first one that is longer than its default', () => {
  const health = withOneOut({ restFor: 100 * SECOND });
  health.failed(1, 100 * SECOND);
  assert.is(health.isOut(1, 200 * SECOND - 1), true);
  assert.is(health.isOut(1, 200 * SECOND), false);
});

for (const seed of [1, 2]) {
  test(`ranks are out as in a plain model, through 20,000 random reports (seed ${seed})`, () => {
    const random = new Random(seed);
    const health = new RankHealth(4);
    const model = Array.from({ length: 4 }, () => ({ row: 0, rests: 0, end: 0 }));
    let now = 0;
    let seenOut = 0;
    for (let step = 0; step < 20_000; step++) {
      now += random.chance(0.02) ? random.int(60 * SECOND) : random.int(2 * SECOND);
      const rank = random.int(4);
      const one = model[rank]!;
      if (random.chance(0.01)) {
        health.forget(rank);
        model[rank] = { row: 0, rests: 0, end: 0 };
      } else if (random.chance(rank / 4)) {
        health.failed(rank, now);
        if (now >= one.end && ++one.row >= 3) {
          one.end = now + Math.min(5 * SECOND * 2 ** one.rests, 60 * SECOND);
          one.rests++;
        }
      } else {
        health.succeeded(rank);
        model[rank] = { row: 0, rests: 0, end: 0 };
      }
      const expected = [0, 1, 2, 3].filter((other) => now < model[other]!.end);
      assert.equal(outOf(health, now), expected, `step ${step}`);
      seenOut += expected.length;
    }
    assert.ok(seenOut > 1000, `only ${seenOut}`);
  });
}

test.run();
