// The capacity curve between its points, and what keys do to the line on it.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { CurvePart, CurveReport } from '../src/sim/report-types.js';
import {
  bytesRange,
  capacityReading,
  capacityTable,
  curveLine,
  doublingGain,
  keyMove,
  kneeText,
  roundBytes,
  shareAt,
  simulatedReading,
  spread,
} from '../src/web/simulator/charts/capacity-data.js';

const GB = 1e9;
const part = (gb: number, share: number): CurvePart => ({ capacity: gb, bytes: gb * GB, hits: share * 1000, share });
const report: CurveReport = {
  trace: 'a trace',
  idTokens: 16,
  bytesPerId: GB,
  references: 1000,
  distinct: 400,
  points: [part(0, 0), part(100, 0.4), part(200, 0.5), part(400, 0.6)],
  corners: [part(50, 0.2), part(100, 0.4), part(300, 0.58), part(400, 0.6)],
  partial: false,
};
const line = curveLine(report);

test('a line knows its round sizes and its corners, in order, each once', () => {
  assert.equal(
    line.bytes.map((bytes) => bytes / GB),
    [50, 100, 200, 300, 400],
  );
  assert.equal(line.shares, [0.2, 0.4, 0.5, 0.58, 0.6]);
});

for (const [gb, share] of [
  [0, 0],
  [25, 0.1],
  [50, 0.2],
  [75, 0.3],
  [250, 0.54],
  [400, 0.6],
  [9000, 0.6],
] as const)
  test(`at ${gb} GB ${share} hit`, () => {
    assert.ok(Math.abs(shareAt(line, gb * GB) - share) < 1e-12);
  });

test('a share never falls with size', () => {
  let before = 0;
  for (let gb = 0; gb < 500; gb += 0.7) {
    const share = shareAt(line, gb * GB);
    assert.ok(share >= before);
    before = share;
  }
});

test('a doubling brings what twice the size has more', () => {
  assert.ok(Math.abs(doublingGain(line, 100 * GB) - 0.1) < 1e-12);
  assert.is(doublingGain(line, 400 * GB), 0);
});

test('what is said of a size', () => {
  assert.is(
    capacityReading(line, 100 * GB),
    'at 100 GB: 40.00 % of block references hit, 60.00 % missed, 10.00 % more per doubling',
  );
  assert.is(
    capacityReading(line, 500 * GB),
    'at 500 GB: 60.00 % of block references hit, 40.00 % missed, doubling brings nothing',
  );
  assert.is(kneeText(line, 200 * GB), 'knee at 200 GB: past it, doubling brings 10 %');
});

test('what was simulated near a size is said with it', () => {
  const simulated = [
    { label: 'kv', bytes: 100 * GB, share: 0.3 },
    { label: 'random', bytes: 200 * GB, share: 0.2 },
  ];
  assert.is(simulatedReading(simulated, 101 * GB, 1.02), '; simulated there: kv 30.00 %');
  assert.is(simulatedReading(simulated, 150 * GB, 1.02), '');
});

test('texts beside points never cover each other', () => {
  assert.equal(spread([10, 12, 50, 55], 14), [10, 24, 50, 64]);
  assert.equal(spread([], 14), []);
});

test('without a curve nothing hits', () => {
  const empty = curveLine({ ...report, points: [], corners: [] });
  assert.is(shareAt(empty, GB), 0);
  assert.equal(bytesRange([empty], [GB]), [GB, 1000 * GB]);
});

test('the axis holds the curve and every mark', () => {
  const [low, high] = bytesRange([line], [3 * GB, 2000 * GB, 0, Number.POSITIVE_INFINITY]);
  assert.ok(low < 3 * GB && low > GB);
  assert.ok(high > 2000 * GB && high < 5000 * GB);
});

for (const [key, to] of [
  ['ArrowRight', 105],
  ['ArrowUp', 105],
  ['ArrowLeft', 100 / 1.05],
  ['ArrowDown', 100 / 1.05],
  ['PageUp', 200],
  ['PageDown', 50],
  ['Home', 20],
  ['End', 900],
  ['Enter', null],
  ['a', null],
] as const)
  test(`${key} moves 100 GB to ${to === null ? 'nowhere' : `${to} GB`}`, () => {
    const found = keyMove(key, 100 * GB, [20 * GB, 900 * GB]);
    if (to === null) assert.is(found, null);
    else assert.ok(Math.abs(found! / GB - to) < 1e-9);
  });

test('keys stay on the axis', () => {
  assert.is(keyMove('PageUp', 100 * GB, [20 * GB, 150 * GB]), 150 * GB);
  assert.is(keyMove('PageDown', 30 * GB, [20 * GB, 150 * GB]), 20 * GB);
});

test('a step by key is never lost by rounding', () => {
  for (let bytes = GB; bytes < 1000 * GB; bytes = roundBytes(keyMove('ArrowRight', bytes, [GB, 1e15])!))
    assert.ok(roundBytes(keyMove('ArrowRight', bytes, [GB, 1e15])!) > bytes);
});

test('the table has the other run beside it', () => {
  const { head, rows } = capacityTable(line, report, line, [{ label: 'kv', bytes: 200 * GB, share: 0.3 }]);
  assert.equal(head, ['store size', 'hit', 'missed', 'more per doubling', 'other run: hit']);
  assert.equal(rows.at(-1), ['200 GB, simulated: kv', '30.00 %', '70.00 %', '', '']);
  assert.equal(rows[1], ['100 GB', '40.00 %', '60.00 %', '10.00 %', '40.00 %']);
});

test.run();
