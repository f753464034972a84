// When things happen to a fleet by themselves: the same for one seed, near the mean that was asked for, never twice at once.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { CHURN_TEXTS, type ChurnIntervals, ChurnSchedule } from '../src/fleet/fleet-churn.js';

/** What happens within so many milliseconds, looked at as late as `lateMs`. */
function happenings(intervals: ChurnIntervals, seed: number, untilMs: number, lateMs = 0): string[] {
  const schedule = new ChurnSchedule(intervals, seed, 0);
  const seen: string[] = [];
  for (let { next } = schedule; next !== null && next <= untilMs; next = schedule.next)
    for (const kind of schedule.take(next + lateMs)) seen.push(`${next} ${kind}`);
  return seen;
}

test('one seed, one course', () => {
  const intervals = { 'gpu-evict': 1000, 'worker-restart': 3000 };
  assert.equal(happenings(intervals, 1, 60_000), happenings(intervals, 1, 60_000));
  assert.not.equal(happenings(intervals, 1, 60_000), happenings(intervals, 2, 60_000));
});

test('each kind about as often as was asked for', () => {
  const seen = happenings({ 'gpu-evict': 1000, 'store-evict': 10_000 }, 3, 1_000_000);
  const count = (kind: string) => seen.filter((text) => text.endsWith(kind)).length;
  assert.ok(Math.abs(count('gpu-evict') - 1000) < 50);
  assert.ok(Math.abs(count('store-evict') - 100) < 15);
});

test('looked at late, a kind happens once, and the next is due later', () => {
  const schedule = new ChurnSchedule({ 'gpu-evict': 100 }, 1, 0);
  assert.equal(schedule.take(0), []);
  assert.equal(schedule.take(10_000), ['gpu-evict']);
  assert.equal(schedule.take(10_000), []);
  assert.ok(schedule.next! >= 10_050 && schedule.next! <= 10_150);
});

test('nothing asked for, nothing due', () => assert.is(new ChurnSchedule({}, 1, 0).next, null));

test('what never happens, or too often, is refused', () => {
  for (const intervals of [{ fire: 1000 }, { 'gpu-evict': 9 }, { 'gpu-evict': Number.NaN }])
    assert.throws(
      () => new ChurnSchedule(intervals as ChurnIntervals, 1, 0),
      (error: unknown) => error instanceof ConfigError && error.code === 'churn',
    );
  assert.ok(Object.values(CHURN_TEXTS).every((text) => text.length > 10));
});

test.run();
