// Ticks, scales and the common window of the simulator page's charts.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { scaleOf } from '../src/web/simulator/charts/scale.js';
import {
  bytesLogTicks,
  countTicks,
  percentTicks,
  roundTop,
  type Tick,
  timeLogTicks,
  timeTicks,
} from '../src/web/simulator/charts/ticks.js';
import { TimeWindow } from '../src/web/simulator/charts/time-window.js';

const texts = (ticks: readonly Tick[]) => ticks.map(({ text }) => text);
const MINUTE = 60_000;

for (const [from, to, most, expected] of [
  [0, 900, 4, ['0', '500 ms']],
  [0, 90_000, 4, ['0', '30 s', '60 s', '90 s']],
  [0, 40 * MINUTE, 5, ['0', '10 min', '20 min', '30 min', '40 min']],
  [8.5 * MINUTE, 12 * MINUTE, 4, ['9 min', '10 min', '11 min', '12 min']],
  [0, 5 * 60 * MINUTE, 3, ['0', '2 h', '4 h']],
  [0, 40_000 * 60 * MINUTE, 4, ['0', '10000 h', '20000 h', '30000 h', '40000 h']],
] as const)
  test(`time from ${from} to ${to} ms in at most ${most} steps: ${expected.join(', ')}`, () => {
    assert.equal(texts(timeTicks(from, to, most)), [...expected]);
  });

for (const [from, to, most, expected] of [
  [9e9, 1.2e12, 8, ['10 GB', '20 GB', '50 GB', '100 GB', '200 GB', '500 GB', '1 TB']],
  [9e9, 1.2e12, 6, ['10 GB', '30 GB', '100 GB', '300 GB', '1 TB']],
  [9e9, 1.2e12, 3, ['10 GB', '100 GB', '1 TB']],
  [9e7, 1.2e15, 4, ['100 MB', '10 GB', '1 TB', '100 TB']],
  [9e6, 1.2e15, 3, ['1 GB', '1 TB', '1 PB']],
] as const)
  test(`bytes from ${from} to ${to}, at most ${most} ticks: ${expected.join(', ')}`, () => {
    const found = texts(bytesLogTicks(from, to, most));
    assert.equal(found, [...expected]);
  });

test('logarithmic times have their units', () => {
  assert.equal(texts(timeLogTicks(8, 130_000, 5)), ['10 ms', '100 ms', '1 s', '10 s', '100 s']);
});

test('shares are percentages, counts are whole', () => {
  assert.equal(texts(percentTicks(0, 1, 5)), ['0 %', '20 %', '40 %', '60 %', '80 %', '100 %']);
  assert.equal(texts(countTicks(0, 2, 8)), ['0', '1', '2']);
  assert.equal(texts(countTicks(0, 5000, 3)), ['0', '2,000', '4,000']);
});

test('an axis from 0 ends at a round value that is no less than what it must show', () => {
  for (const [value, top] of [
    [0, 1],
    [7, 8],
    [23.4, 25],
    [100, 100],
    [4.1e10, 5e10],
  ] as const)
    assert.is(roundTop(value), top);
});

for (const log of [false, true])
  test(`a ${log ? 'logarithmic' : 'straight'} scale gives back what it was given`, () => {
    const { part, value } = scaleOf([2, 2000], log);
    assert.is(part(2), 0);
    assert.ok(Math.abs(part(2000) - 1) < 1e-12);
    for (const at of [2, 3.5, 40, 1999]) assert.ok(Math.abs(value(part(at)) - at) < 1e-9 * at);
  });

test('a logarithmic scale puts the middle of its decades in the middle, and 0 at its beginning', () => {
  const { part } = scaleOf([1, 10_000], true);
  assert.ok(Math.abs(part(100) - 0.5) < 1e-12);
  assert.is(part(0), 0);
});

test('a scale without extent has all at its beginning', () => {
  assert.is(scaleOf([5, 5]).part(5), 0);
  assert.is(scaleOf([5, 5]).value(0.7), 5);
});

test('all who listen hear of a new window once, and see what of it they have', () => {
  const window = new TimeWindow();
  let heard = 0;
  const stop = window.listen(() => heard++);
  assert.equal(window.shown(500), { from: 0, to: 500 });
  window.set({ from: 100, to: 300 });
  window.set({ from: 100, to: 300 });
  assert.is(heard, 1);
  assert.equal(window.shown(500), { from: 100, to: 300 });
  assert.equal(window.shown(200), { from: 100, to: 200 });
  assert.equal(window.shown(50), { from: 0, to: 50 }, 'a shorter run is shown whole');
  window.set({ from: 200, to: 200.5 });
  assert.is(heard, 1, 'less than can be seen is no window');
  stop();
  window.set(null);
  assert.is(heard, 1);
  assert.equal(window.shown(500), { from: 0, to: 500 });
});

test('a cursor is told to all, with who has it', () => {
  const window = new TimeWindow();
  const heard: unknown[] = [];
  window.follow((time, from) => heard.push([time, from]));
  window.point(7, 'a');
  window.point(null, 'a');
  assert.equal(heard, [
    [7, 'a'],
    [null, 'a'],
  ]);
});

test.run();
