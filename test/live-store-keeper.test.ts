// When the store's evidence is confirmed, doubted and dropped: at start, after every loss, on a timer, within its share of time, and at the
// latest when it is too old (design.md 6).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { DutyBudget } from '../src/live/duty-budget.js';
import { StoreKeeper, type StoreKeeperOptions } from '../src/live/store-keeper.js';

const MINUTE = 60_000;

function keeper(options: Partial<StoreKeeperOptions> = {}): StoreKeeper {
  const made = new StoreKeeper({ canReconcile: true, random: () => 0, ...options }, 0);
  made.contract(0, true);
  return made;
}

/** A keeper with a reconcile accepted at time 100, whose first look at the counters is over. */
function settled(options: Partial<StoreKeeperOptions> = {}): StoreKeeper {
  const made = keeper(options);
  made.connected(0);
  assert.equal(made.next(0), { kind: 'reconcile', cause: 'start' });
  made.reconciled(100, 0, 100);
  assert.equal(made.next(100), { kind: 'poll' });
  made.polled(100);
  return made;
}

test('nothing is done without a contract', () => {
  const idle = new StoreKeeper({ canReconcile: true, random: () => 0 }, 0);
  idle.connected(0);
  assert.is(idle.next(10 * MINUTE), null);
  idle.contract(10 * MINUTE, true);
  assert.equal(idle.next(10 * MINUTE), { kind: 'reconcile', cause: 'start' });
});

test('the first reconcile waits for the connection, and for nothing else', () => {
  const made = keeper();
  assert.equal(made.next(0), { kind: 'poll' });
  made.polled(0);
  assert.is(made.next(1), null);
  made.connected(2);
  assert.equal(made.next(2), { kind: 'reconcile', cause: 'start' });
  assert.is(made.next(3), null, 'one at a time');
});

for (const cause of ['gap-applied', 'malformed', 'unreadable', 'pending', 'lost-tail']) {
  test(`evidence cleared for ${cause} calls for a reconcile at once`, () => {
    const made = settled();
    made.cleared(200, cause);
    assert.equal(made.next(200), { kind: 'reconcile', cause });
    assert.is(made.evidenceAge(200), 0);
  });
}

test('a lost connection calls for one when it is there again', () => {
  const made = settled();
  made.lost(200);
  assert.is(made.next(300), null);
  made.connected(400);
  assert.equal(made.next(400), { kind: 'reconcile', cause: 'lost' });
});

test('a change of contract calls for one; none in force, for nothing', () => {
  const made = settled();
  made.contract(200, false);
  assert.is(made.next(200), null);
  made.contract(300, true);
  assert.equal(made.next(300), { kind: 'reconcile', cause: 'contract-change' });
});

test('a timer calls for one well before evidence is too old', () => {
  const made = settled();
  made.told('A');
  assert.is(made.next(4000), null);
  for (let now = 5100; now < 20_000; now += 5100) {
    assert.equal(made.next(now), { kind: 'poll' });
    made.polled(now);
  }
  assert.equal(made.next(20_101), { kind: 'reconcile', cause: 'timer' });
  made.reconciled(20_200, 20_101, 99);
  assert.is(made.evidenceAge(20_200), 99, 'it is as old as the list');
});

for (const [generation, age] of [
  [null, MINUTE],
  ['A', MINUTE],
  ['B', 10 * MINUTE],
  ['C', 10 * MINUTE],
] as const) {
  test(`evidence of generation ${generation} is dropped when nothing confirms it for ${age / 1000} s, and again and again`, () => {
    const made = keeper({ canReconcile: false });
    made.connected(0);
    if (generation !== null) made.told(generation);
    assert.is(made.maxEvidenceAge, age);
    assert.is(made.next(age - 1), null);
    assert.equal(made.next(age), { kind: 'expire' });
    assert.is(made.next(age), null);
    assert.equal(made.next(2 * age), { kind: 'expire' });
  });
}

test('HTTP down: failures wait longer and longer, and evidence ends at its age', () => {
  const made = settled();
  made.told('A');
  made.cleared(1000, 'gap-applied');
  let now = 1000;
  const waits: number[] = [];
  let expired: number | null = null;
  for (let failed = now; now < 70_000; now += 10) {
    const task = made.next(now);
    if (task?.kind === 'expire') expired ??= now;
    else if (task?.kind === 'poll') made.polled(now);
    else if (task?.kind === 'reconcile') {
      waits.push(now - failed);
      failed = now;
      made.failed(now, 0, 'http-unreachable');
    }
  }
  assert.is(expired, 61_000);
  assert.ok(waits.length >= 6 && waits.length < 16, `${waits.length} attempts`);
  assert.equal(waits.slice(0, 4), [0, 130, 250, 500]);
});

test('a reconcile that fails is called for again, though what had called for it was something else', () => {
  const made = settled();
  made.cleared(200, 'gap-applied');
  made.next(200);
  made.failed(300, 100, 'slow-joiner');
  assert.is(made.cause, 'slow-joiner');
  assert.equal(made.next(450), { kind: 'reconcile', cause: 'slow-joiner' });
});

test('a reconcile that was voided by what came meanwhile keeps that cause', () => {
  const made = settled();
  made.cleared(200, 'gap-applied');
  made.next(200);
  made.cleared(250, 'malformed');
  made.failed(300, 100, 'gap');
  assert.is(made.cause, 'malformed');
});

test('reconciles take at most 2 % of the time, however often they are called for', () => {
  const made = settled();
  let spent = 0;
  const END = 60 * MINUTE;
  for (let now = 200; now < END; now += 50) {
    made.cleared(now, 'gap-applied');
    const task = made.next(now);
    if (task?.kind === 'poll') made.polled(now);
    if (task?.kind !== 'reconcile') continue;
    spent += 400;
    now += 400;
    made.reconciled(now, now - 400, 400);
  }
  assert.ok(spent <= 0.02 * END + 1400, `${spent} ms of ${END}`);
  assert.ok(spent > 0.019 * END);
});

test('budget: a long one is paid for afterwards', () => {
  const budget = new DutyBudget(0.02, 1000, 0);
  assert.is(budget.wait(0), 0);
  budget.spend(3000, 3000);
  assert.is(budget.wait(3000), 100_050);
  assert.is(budget.wait(3000 + 100_050), 0);
});

test.run();
