// The small parts of the live streams: inbox, turns, log, delays, and the choice among masters.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Backoff } from '../src/live/backoff.js';
import { Drain } from '../src/live/drain.js';
import { INBOX_BYTES, INBOX_ITEMS, Inbox, type StreamItem } from '../src/live/inbox.js';
import { LimitedLog } from '../src/live/limited-log.js';
import { MasterChoice } from '../src/live/master-choice.js';
import { HandClock } from './support/hand-clock.js';

// ---- inbox ----

function inbox(): { box: Inbox; valve: string[] } {
  const valve: string[] = [];
  return { box: new Inbox({ pause: () => valve.push('pause'), resume: () => valve.push('resume') }), valve };
}
const item = (bytes: number): StreamItem => ({ kind: 'message', frames: [new Uint8Array(bytes)], generation: 0 });

test('inbox: items come out in the order in which they came, and peeking leaves them', () => {
  const { box } = inbox();
  const items = Array.from({ length: 1000 }, (_, i) => item(i));
  for (const one of items) box.push(one);
  box.push({ kind: 'connected' });
  assert.is(box.peek(), items[0]);
  assert.is(box.bytes, (999 * 1000) / 2);
  assert.equal(
    Array.from({ length: 1000 }, () => box.take()),
    items,
  );
  assert.equal([box.take()?.kind, box.take(), box.size, box.bytes], ['connected', undefined, 0, 0]);
});

test('inbox: full by count it pauses the socket once, and resumes it when half empty', () => {
  const { box, valve } = inbox();
  for (let i = 0; i < INBOX_ITEMS - 1; i++) box.push(item(1));
  assert.equal(valve, []);
  box.push(item(1));
  box.push(item(1)); // what the socket had read already
  assert.equal(valve, ['pause']);
  while (box.size > INBOX_ITEMS / 2 + 1) box.take();
  assert.equal(valve, ['pause']);
  box.take();
  assert.equal(valve, ['pause', 'resume']);
  assert.is(box.pauses, 1);
});

test('inbox: full by bytes likewise, and clearing it resumes', () => {
  const { box, valve } = inbox();
  for (let i = 0; i < 4; i++) box.push(item(INBOX_BYTES / 4));
  assert.equal(valve, ['pause']);
  box.clear();
  assert.equal([valve, box.size, box.bytes], [['pause', 'resume'], 0, 0]);
});

test('inbox: a long one that is never empty keeps no taken items', () => {
  const { box } = inbox();
  let pushed = 0;
  let taken = 0;
  for (; pushed < 5000; pushed++) box.push(item(pushed % 7));
  for (; taken < 20_000; taken++) {
    const next = box.take() as Extract<StreamItem, { kind: 'message' }>;
    assert.is(next.frames[0]!.length, taken % 7);
    box.push(item(pushed++ % 7));
  }
  assert.is(box.size, 5000);
});

// ---- turns ----

test('drain: members take turns, nothing is done before the first breath, and a throwing step stops nobody', async () => {
  const clock = new HandClock();
  const faults: unknown[] = [];
  const drain = new Drain(clock, (error) => faults.push(error));
  const done: string[] = [];
  const member = (name: string, steps: number) => ({
    step: () => {
      if (steps-- <= 0) return false;
      done.push(name);
      if (name === 'bad') throw new Error('bad');
      return true;
    },
  });
  drain.add(member('a', 40));
  drain.add(member('bad', 2));
  drain.add(member('b', 20));
  drain.wake();
  drain.wake();
  assert.equal(done, []);
  for (let i = 0; i < 10; i++) await Promise.resolve();
  assert.is(done.length, 62);
  assert.equal(done.slice(0, 17).concat(done.slice(18, 20)), [...Array(16).fill('a'), 'bad', 'b', 'b']);
  assert.is(faults.length, 2);
  void drain.close();
  drain.add(member('late', 1));
  drain.wake();
  for (let i = 0; i < 10; i++) await Promise.resolve();
  assert.not(done.includes('late'));
});

test('drain: after a slice of some milliseconds everything else has a turn', async () => {
  const clock = new HandClock();
  let breaths = 0;
  clock.breathe = () => {
    breaths++;
    return Promise.resolve();
  };
  const drain = new Drain(clock, () => {});
  let left = 100;
  drain.add({
    step: () => {
      clock.advance(1);
      return left-- > 0;
    },
  });
  drain.wake();
  for (let i = 0; i < 200; i++) await Promise.resolve();
  assert.ok(left < 0);
  assert.ok(breaths >= 25 && breaths <= 30, `${breaths} breaths for 100 ms of work`);
});

test('drain: nobody is left out because others use up every slice', async () => {
  const clock = new HandClock();
  const drain = new Drain(clock, () => {});
  const steps = Array.from({ length: 32 }, () => 0);
  for (const member of steps.keys()) {
    drain.add({
      step: () => {
        clock.advance(1);
        steps[member]!++;
        return true;
      },
    });
  }
  drain.wake();
  for (let i = 0; i < 100; i++) await Promise.resolve();
  await drain.close();
  assert.ok(
    steps.every((count) => count > 0),
    steps.join(),
  );
});

// ---- log ----

test('log: a sink that throws loses its line and nothing else', () => {
  const log = new LimitedLog(() => {
    throw new Error('disk full');
  }, new HandClock());
  log.say('a', 'warn', 'x');
});

test('log: one line a second per cause, and the next one counts those left out', () => {
  const clock = new HandClock();
  const lines: string[] = [];
  const log = new LimitedLog((level, text) => lines.push(`${level} ${text}`), clock);
  for (let i = 0; i < 10; i++) {
    log.say('a', 'warn', `a${i}`);
    log.say('b', 'info', `b${i}`);
    clock.advance(200);
  }
  assert.equal(lines, [
    'warn a0',
    'info b0',
    'warn a5 (and 4 like it since the last line)',
    'info b5 (and 4 like it since the last line)',
  ]);
});

test('log: a flood of causes keeps no more than so many', () => {
  const clock = new HandClock();
  let lines = 0;
  const log = new LimitedLog(() => lines++, clock);
  for (let i = 0; i < 10_000; i++) log.say(`cause ${i}`, 'warn', 'x');
  log.say('cause 9999', 'warn', 'x');
  log.say('cause 0', 'warn', 'x');
  assert.is(lines, 10_001);
});

// ---- delays ----

test('backoff: doubles up to its most, scattered over the upper half, and begins anew after a success', () => {
  const least = new Backoff(100, 1000, () => 0);
  assert.equal(
    [1, 2, 3, 4, 5, 6].map(() => least.next()),
    [50, 100, 200, 400, 500, 500],
  );
  const most = new Backoff(100, 1000, () => 1);
  assert.equal(
    [1, 2, 3, 4, 5].map(() => most.next()),
    [100, 200, 400, 800, 1000],
  );
  for (let i = 0; i < 2000; i++) most.next();
  assert.is(most.next(), 1000);
  most.succeeded();
  assert.is(most.next(), 100);
});

// ---- masters ----

test('masters: a single one is followed whatever it says', () => {
  const choice = new MasterChoice(1);
  assert.is(choice.followed, 0);
  for (const state of ['standby', 'serving', 'unreachable', 'events-off'] as const) assert.not(choice.said(0, state));
  assert.is(choice.followed, 0);
});

test('masters: of several the one that serves, and another only when it does not serve any more', () => {
  const choice = new MasterChoice(3);
  assert.is(choice.followed, null);
  assert.not(choice.said(0, 'standby'));
  assert.ok(choice.said(1, 'serving'));
  assert.not(choice.said(2, 'serving'), 'two that serve: the followed one stays');
  assert.not(choice.said(2, 'standby'));
  assert.not(choice.said(1, 'unreachable'), 'nobody else serves');
  assert.is(choice.followed, 1);
  assert.ok(choice.said(0, 'serving'));
  assert.is(choice.followed, 0);
  assert.not(choice.said(1, 'serving'));
  assert.ok(choice.said(0, 'standby'));
  assert.is(choice.followed, 1);
});

test.run();
