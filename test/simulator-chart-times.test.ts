// Distributions of times from their quantiles: cumulative and as histogram.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  bucketShares,
  cumulative,
  distributionTable,
  logEdges,
  PER_DECADE,
  partWithin,
  percentileText,
  quantileAt,
  timeRange,
  withinReading,
} from '../src/web/simulator/charts/ttft-data.js';

const none = new Float64Array(0);
const even = Float64Array.from({ length: 101 }, (_, i) => 100 + 9 * i);
const tied = Float64Array.of(0, 0, 50, 50, 50, 200);

test('quantiles are read on a straight line between two', () => {
  assert.is(quantileAt(even, 0.5), 550);
  assert.is(quantileAt(even, 0.995), 995.5);
  assert.is(quantileAt(even, 1), 1000);
  assert.ok(Number.isNaN(quantileAt(none, 0.5)));
});

for (const [time, part] of [
  [0, 0],
  [99, 0],
  [100, 0],
  [550, 0.5],
  [995.5, 0.995],
  [1000, 1],
  [5000, 1],
] as const)
  test(`${part} of an even spread take at most ${time} ms`, () => {
    assert.ok(Math.abs(partWithin(even, time) - part) < 1e-12);
  });

test('of equal times all count at once', () => {
  assert.is(partWithin(tied, 0), 0.2);
  assert.is(partWithin(tied, 50), 0.8);
  assert.ok(partWithin(tied, 49.999) < 0.41);
  assert.is(partWithin(tied, 200), 1);
});

test('a single value is a step', () => {
  const one = Float64Array.of(7);
  assert.is(partWithin(one, 6), 0);
  assert.is(partWithin(one, 7), 1);
  assert.is(quantileAt(one, 0.9), 7);
});

test('the axis begins above 0 and holds the slowest', () => {
  const [low, high] = timeRange([tied, none, even]);
  assert.ok(low > 0 && low < 50);
  assert.ok(high > 1000);
  assert.equal(timeRange([none]), [1, 1000]);
  assert.equal(timeRange([Float64Array.of(0, 0)]), [1, 1000]);
});

test('the cumulative line rises from the axis’s beginning to 1 at its end', () => {
  for (const quantiles of [even, tied]) {
    const range = timeRange([quantiles]);
    const { xs, ys } = cumulative(quantiles, range);
    assert.is(xs[0], range[0]);
    assert.is(xs.at(-1), range[1]);
    assert.is(ys.at(-1), 1);
    for (let i = 1; i < xs.length; i++) assert.ok(xs[i]! >= xs[i - 1]! && ys[i]! >= ys[i - 1]!);
  }
  assert.equal(cumulative(none, [1, 10]), { xs: [], ys: [] });
});

test('buckets are equally wide on a logarithmic axis', () => {
  const edges = logEdges([3, 4000]);
  assert.ok(edges[0]! <= 3 && edges.at(-1)! >= 4000);
  for (let i = 1; i < edges.length; i++) assert.ok(Math.abs(edges[i]! / edges[i - 1]! - 10 ** (1 / PER_DECADE)) < 1e-9);
});

test('a histogram’s buckets hold everything once, times of 0 in the first', () => {
  for (const quantiles of [even, tied]) {
    const shares = bucketShares(quantiles, logEdges(timeRange([quantiles])));
    assert.ok(shares.every((share) => share >= 0));
    assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 1) < 1e-9);
  }
  assert.ok(bucketShares(tied, logEdges(timeRange([tied])))[0]! >= 0.2);
  assert.equal(bucketShares(none, [1, 2, 3]), []);
});

test('what is said of times', () => {
  assert.is(percentileText(even), 'p50 550 ms, p90 910 ms, p99 991 ms');
  assert.is(percentileText(none), '–');
  const list = [
    { label: 'kv', quantiles: even },
    { label: 'random', quantiles: none },
  ];
  assert.is(withinReading(550, list), 'within 550 ms: kv 50.00 %, random –');
  const { head, rows } = distributionTable(list);
  assert.equal(head, ['part of requests', 'kv', 'random']);
  assert.ok(rows.length <= 50);
  assert.equal(rows.at(-1), ['100.00 %', '1 s', '–']);
});

test.run();
