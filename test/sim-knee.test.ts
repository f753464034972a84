// The knee of a capacity curve: farthest above the chord, capacity in doublings; none where nothing bends enough.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { checkSimConfig } from '../src/sim/config.js';
import { CapacityCurve } from '../src/sim/curve.js';
import { kneeOf, kneePlace } from '../src/sim/knee.js';
import { curveReport } from '../src/sim/report-curve.js';

/** Points at 1, 2, 4, 8 … */
const doublings = (...shares: number[]) => shares.map((y, i) => ({ x: 2 ** i, y }));

test('where the rise ends', () => {
  const rows: readonly (readonly [points: readonly { x: number; y: number }[], place: number | null])[] = [
    [doublings(0, 0.3, 0.6, 0.62, 0.63, 0.64), 2],
    [doublings(0, 0, 0, 0.5, 1, 1, 1, 1), 4],
    [doublings(0.1, 0.5, 0.5, 0.5), 1],
    // Straight in doublings, bent upwards, flat, falling, or too few.
    [doublings(0, 0.2, 0.4, 0.6, 0.8), null],
    [doublings(0, 0.01, 0.05, 0.2, 0.8), null],
    [doublings(0.5, 0.5, 0.5), null],
    [doublings(0.5, 0.4, 0.3), null],
    [doublings(0, 1), null],
    [[], null],
    // Hardly bent: less than a tenth of the rise.
    [doublings(0, 0.28, 0.5, 0.76, 1), null],
    // A capacity of nothing has no doublings.
    [[{ x: 0, y: 0 }, ...doublings(0, 0.3, 0.6, 0.62, 0.63, 0.64)], 3],
  ];
  for (const [points, place] of rows) assert.is(kneePlace(points), place, JSON.stringify(points));
});

test('the scales of both axes do not matter', () => {
  const points = doublings(0, 0.3, 0.6, 0.62, 0.63, 0.64);
  for (const [byX, byY] of [
    [1e9, 1],
    [0.001, 100],
    [327_680, 1e-6],
  ] as const)
    assert.is(kneePlace(points.map(({ x, y }) => ({ x: x * byX, y: y * byY }))), 2);
});

test('of a trace: a loop over a set has its knee where the set fits', () => {
  const curve = new CapacityCurve();
  // 1,000 ids again and again, and now and then one of many others.
  for (let i = 0; i < 60; i++) {
    for (let id = 0; id < 1000; id += 10) curve.add(Array.from({ length: 10 }, (_, k) => id + k));
    curve.add([1000 + i * 7, 20_000 + i]);
  }
  const report = curveReport(curve, { trace: 't', idTokens: 16, partial: false }, checkSimConfig());
  const knee = kneeOf(report);
  assert.is(knee, null, 'all hits come at one corner: there is nothing to choose from');
  for (let round = 0; round < 3; round++) for (let id = 0; id < 40_000; id += 16) curve.add([id]);
  const bent = kneeOf(curveReport(curve, { trace: 't', idTokens: 16, partial: false }, checkSimConfig()))!;
  assert.ok(bent.capacity >= 1000 && bent.capacity <= 3500, `${bent.capacity}`);
});

test.run();
