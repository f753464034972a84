// The benchmark's arithmetic: medians, bootstrap intervals, growth exponents, warm-up, the clock.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { medianInterval } from '../bench/method/bootstrap.js';
import { growthOf } from '../bench/method/growth.js';
import { isStable, takeTurns } from '../bench/method/pairing.js';
import { randomLongs, Stream, shuffled } from '../bench/method/random.js';
import { Sample } from '../bench/method/sample.js';

const about = (value: number, wanted: number, within: number) =>
  assert.ok(Math.abs(value - wanted) <= within, `${value} is not within ${within} of ${wanted}`);

for (const [values, median] of [
  [[3], 3],
  [[1, 9], 5],
  [[9, 1, 4], 4],
  [[4, 1, 3, 2], 2.5],
] as const)
  test(`the median of ${values.join(', ')} is ${median}`, () => {
    assert.is(new Sample(values).median, median);
    assert.is(medianInterval(values).median, median);
  });

test('parts of a sample are its order statistics', () => {
  const sample = new Sample(Array.from({ length: 100 }, (_, i) => 99 - i));
  assert.equal([sample.at(0), sample.at(0.1), sample.at(0.9), sample.at(1)], [0, 10, 90, 99]);
});

test('nothing has no median', () => {
  assert.throws(() => new Sample([]), RangeError);
  assert.throws(() => medianInterval([]), RangeError);
});

test('the interval of equal values is that value, of any values the same each time', () => {
  assert.equal(medianInterval([7, 7, 7, 7]), { median: 7, low: 7, high: 7 });
  const values = Array.from({ length: 31 }, (_, i) => (i * 17) % 31);
  assert.equal(medianInterval(values), medianInterval(values));
});

test('the interval holds the true median 95 times of 100, or nearly', () => {
  const stream = new Stream(1n);
  let held = 0;
  for (let trial = 0; trial < 400; trial++) {
    const values = Array.from({ length: 25 }, () => stream.below(1_000_000) / 1_000_000);
    const { low, high } = medianInterval(values, 400);
    if (low <= 0.5 && 0.5 <= high) held++;
  }
  assert.ok(held >= 360 && held <= 396, `${held} of 400`);
});

test('an outlier moves neither median nor interval', () => {
  const values = Array.from({ length: 31 }, (_, i) => 10 + i / 100);
  const with1000 = medianInterval([...values.slice(1), 1_000]);
  assert.ok(with1000.high < 11);
});

for (const exponent of [0, 0.5, 1, 2])
  test(`size ^ ${exponent} grows with exponent ${exponent}`, () => {
    const growth = growthOf([512, 1_024, 4_096, 16_384].map((size) => ({ size, cost: 3 * size ** exponent })))!;
    about(growth.exponent, exponent, 1e-9);
    about(growth.fit, 1, 1e-9);
  });

for (const [why, points] of [
  ['one size', [{ size: 1, cost: 1 }]],
  ['the same size twice', [1, 2].map((cost) => ({ size: 8, cost }))],
  ['no size', []],
  ['a cost of nothing', [1, 2, 3].map((size) => ({ size, cost: size - 1 }))],
] as const)
  test(`no growth is read from ${why}`, () => assert.is(growthOf(points), null));

for (const [times, stable] of [
  [[1, 1, 1, 1, 1], false],
  [[9, 5, 3, 1, 1, 1], false],
  [[9, 5, 3, 1, 1, 1, 1, 1.1, 1], true],
  [[1, 1, 1, 1.2, 1.2, 1.2], false],
] as const)
  test(`turns of ${times.join(', ')} are ${stable ? '' : 'not '}stable`, () => assert.is(isStable(times), stable));

const busy = (ms: number) => () => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};
/** The first two of seed 1. */
const RANDOM_OF_ONE = '14036904467747062544,9914070394424794491';
const SHORT = { turnMs: 0.5, budgetMs: 60, leastRounds: 5, mostRounds: 40, mostWarmUpMs: 20 };

test('a rival that takes thrice as long has a ratio of 3, and 1.5 when a slow-down of 2 is planted', () => {
  const a = { items: 10, run: busy(0.2) };
  const b = { items: 10, run: busy(0.6) };
  about(medianInterval(takeTurns(a, b, SHORT).ratios!).median, 3, 0.5);
  about(medianInterval(takeTurns(a, b, { ...SHORT, slowDown: 2 }).ratios!).median, 1.5, 0.3);
});

test('preparing is not timed', () => {
  const side = { items: 1, prepare: busy(1), run: busy(0.2) };
  const { a, b, ratios } = takeTurns(side, null, SHORT);
  about(new Sample(a).median / 1e6, 0.2, 0.15);
  assert.equal([b, ratios], [null, null]);
});

test('random numbers are the same for a seed, everywhere', () => {
  assert.equal([...randomLongs(3, 42n)], [...randomLongs(3, 42n)]);
  assert.equal([...randomLongs(2, 1n)].join(), RANDOM_OF_ONE);
  assert.equal(
    [...shuffled(1_000, 7n)].sort((a, b) => a - b),
    [...new Array(1_000).keys()],
  );
});

test.run();
