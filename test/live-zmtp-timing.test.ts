// The two decisions on time of a connection, with times handed in: how long to wait before the next attempt, and when silence is loss.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Heartbeat, VERDICT_MS } from '../src/live/zmtp/heartbeat.js';
import { GOOD_CONNECTION_MS, ReconnectWaits } from '../src/live/zmtp/reconnect.js';

test('waits double up to the cap, and stay there', () => {
  const waits = new ReconnectWaits(100, 5_000, () => 0.999999);
  assert.equal(
    Array.from({ length: 8 }, () => waits.next(0)),
    [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000],
  );
});

test('a wait lies in its upper half, where the draw says', () => {
  const draws = [0, 0.5, 0];
  const waits = new ReconnectWaits(100, 5_000, () => draws.shift()!);
  assert.equal([waits.next(0), waits.next(0), waits.next(0)], [50, 150, 200]);
});

test('it starts over after a connection that lasted, not after one that only shook hands', () => {
  const waits = new ReconnectWaits(100, 5_000, () => 0.999999);
  const found = [0, 10, GOOD_CONNECTION_MS - 1, GOOD_CONNECTION_MS, 0].map((lasted) => waits.next(lasted));
  assert.equal(found, [100, 200, 400, 100, 200]);
});

test('silence: a ping each interval, then the verdict, given twice', () => {
  const heartbeat = new Heartbeat(2_000, 6_000, 1_000);
  assert.equal(heartbeat.step(1_000), { act: 'wait', inMs: 2_000 });
  assert.equal(heartbeat.step(3_000), { act: 'ping', inMs: 2_000 });
  assert.equal(heartbeat.step(5_000), { act: 'ping', inMs: 2_000 });
  assert.equal(heartbeat.step(7_000), { act: 'wait', inMs: VERDICT_MS });
  assert.equal(heartbeat.step(7_050), { act: 'lost', inMs: 0 });
});

test('whatever is heard puts off ping and loss', () => {
  const heartbeat = new Heartbeat(2_000, 6_000, 0);
  heartbeat.heard(1_500);
  assert.equal(heartbeat.step(2_000), { act: 'wait', inMs: 1_500 });
  assert.equal(heartbeat.step(3_500), { act: 'ping', inMs: 2_000 });
  heartbeat.heard(3_600);
  assert.equal(heartbeat.step(5_500), { act: 'wait', inMs: 100 });
  assert.equal(heartbeat.step(5_600), { act: 'ping', inMs: 2_000 });
  assert.equal(heartbeat.step(6_000), { act: 'wait', inMs: 1_600 }, 'one ping an interval');
});

test('the next look is not later than the loss', () => {
  const heartbeat = new Heartbeat(2_000, 5_000, 0);
  assert.equal(heartbeat.step(2_000), { act: 'ping', inMs: 2_000 });
  assert.equal(heartbeat.step(4_000), { act: 'ping', inMs: 1_000 });
  assert.equal(heartbeat.step(5_000), { act: 'wait', inMs: VERDICT_MS });
});

test('a timer that fires late is no loss when something lay in the kernel', () => {
  const heartbeat = new Heartbeat(2_000, 6_000, 0);
  assert.equal(heartbeat.step(60_000), { act: 'wait', inMs: VERDICT_MS });
  heartbeat.heard(60_010);
  assert.equal(heartbeat.step(60_050), { act: 'wait', inMs: 1_960 });
  assert.is(heartbeat.step(70_000).act, 'wait', 'and the next silence is judged twice again');
  assert.is(heartbeat.step(70_050).act, 'lost');
});

test('while held, silence is no loss, and pings go on; the count starts anew after it', () => {
  const heartbeat = new Heartbeat(2_000, 6_000, 0);
  heartbeat.hold();
  for (let now = 2_000; now <= 40_000; now += 2_000) assert.equal(heartbeat.step(now), { act: 'ping', inMs: 2_000 });
  heartbeat.release(41_000);
  assert.equal(heartbeat.step(42_000), { act: 'wait', inMs: 1_000 });
  assert.equal(heartbeat.step(47_000), { act: 'wait', inMs: VERDICT_MS });
});

test.run();
