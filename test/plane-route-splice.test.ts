// One rank's events of a plane, kept whole: every way in which ids, answers and waiting events can meet (spec/kv-events.md 4.3).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { RankSplice } from '../src/live/plane/route/rank-splice.js';
import {
  APPEND_BUDGET,
  BUFFER_EVENTS,
  COLD_RETRY,
  DOUBT_EVERY,
  DUMP_EVERY,
  FIRST_BACKOFF,
  LOG_GRACE,
  MOST_MISSING,
  PRUNE_MARGIN,
  RETRIES,
  STALE_AFTER,
} from '../src/live/plane/route/splice-terms.js';
import type { RecoveryAnswer, RouterEvent } from '../src/wire/envelope/types.js';
import { planeEvent, removedData, storedData } from './support/plane-events.js';

/** Event `id` of a publisher's life; lives say different things under one id. */
const event = (id: number, life = 0): RouterEvent => planeEvent(id, storedData(null, [id + life * 100_000]));
const run = (first: number, last: number, life = 0) =>
  Array.from({ length: last - first + 1 }, (_, i) => event(first + i, life));
const range = (first: number, last: number, life = 0): RecoveryAnswer => ({
  kind: 'events',
  events: run(first, last, life),
  lastEventId: BigInt(last),
});
const dump = (hashes: readonly number[], lastEventId: number, next: string | null = null): RecoveryAnswer => ({
  kind: 'tree-dump',
  events: hashes.map((hash, i) => planeEvent(i, storedData(null, [hash]))),
  lastEventId: BigInt(lastEventId),
  resetScope: null,
  next,
});
const tooNew = (newest: number): RecoveryAnswer => ({
  kind: 'too-new',
  requestedStart: 1n,
  requestedEnd: null,
  newestAvailable: BigInt(newest),
});

/** A splice, and what it did: `r:` a reset, `?` a question as first–last, `x` a question given up, numbers the hashes applied. */
class Rig {
  log: string[] = [];
  now = 0;
  readonly splice = new RankSplice(
    {
      apply: ({ data }) => this.log.push(data.kind === 'stored' ? String(data.hashes[0]) : data.kind),
      reset: (cause) => this.log.push(`r:${cause}`),
      ask: ({ startEventId, endEventId, page }, delay) => {
        this.delay = delay;
        this.log.push(page === null ? `?${startEventId ?? ''}-${endEventId ?? ''}` : `?${page}`);
      },
      cancel: () => this.log.push('x'),
    },
    () => 1,
  );
  delay = 0;

  live(...events: RouterEvent[]): this {
    for (const one of events) this.splice.event(one, this.now);
    return this;
  }
  answer(answer: RecoveryAnswer): this {
    this.splice.answered(answer, this.now);
    while (this.splice.step(this.now));
    return this;
  }
  /** What was done since it was asked last. */
  did(): string {
    const did = this.log.join(' ');
    this.log = [];
    return did;
  }
}

/** A rank that is known up to event `last`. */
function known(last: number): Rig {
  const rig = new Rig().live(...run(1, last));
  rig.did();
  return rig;
}

test('a publisher’s first event is its first: no recovery', () => {
  const rig = new Rig().live(...run(1, 3));
  assert.is(rig.did(), '1 2 3');
  assert.ok(rig.splice.warm);
  assert.is(rig.splice.lastId, 3n);
});

test('duplicates change nothing', () => {
  const rig = known(5).live(event(5), event(3), event(1));
  assert.is(rig.did(), 'r:new-life 1', 'but for the very first, which may be another life’s');
  const twice = new Rig().live(event(1), event(1));
  assert.is(twice.did(), '1');
  assert.is(known(5).live(event(5), event(4)).splice.counts.duplicates, 2);
});

test('a gap: the missing range is asked for from the last event on, and live events wait', () => {
  const rig = known(5).live(event(8), event(9));
  assert.is(rig.did(), '?5-7');
  assert.is(rig.splice.buffered, 2);
  assert.ok(rig.splice.warm, 'what is known stays meanwhile');
  assert.is(rig.splice.lag, 4);
  assert.is(rig.answer(range(5, 7)).did(), '6 7 8 9');
  assert.is(rig.splice.recovering, false);
  assert.equal(rig.splice.outcomes, { range: 1 });
  assert.is(rig.live(event(10)).did(), '10');
});

test('an answer that reaches into what waits: each event is applied once', () => {
  assert.is(known(5).live(event(8), event(9)).answer(range(5, 8)).did(), '?5-7 6 7 8 9');
});

test('the missing ones came late by themselves: the question is given up', () => {
  const rig = known(5).live(event(8), event(7), event(6));
  assert.is(rig.did(), '?5-7 6 7 8 x');
  assert.is(rig.splice.recovering, false);
});

test('an answer that is cut short: the rest is asked for', () => {
  const rig = known(5).live(event(20));
  assert.is(rig.did(), '?5-19');
  assert.is(rig.answer(range(5, 9)).did(), '6 7 8 9 ?9-19');
  assert.is(rig.answer(range(9, 19)).did(), '10 11 12 13 14 15 16 17 18 19 20');
});

test('a long gap is asked for in parts of the append budget, a longer one as a dump', () => {
  const rig = known(1).live(event(2000));
  assert.is(rig.did(), `?1-${1 + APPEND_BUDGET}`);
  rig.answer(range(1, 1 + APPEND_BUDGET));
  assert.is(rig.log.at(-1), `?${1 + APPEND_BUDGET}-${1 + 2 * APPEND_BUDGET}`);
  assert.is(
    known(1)
      .live(event(MOST_MISSING + 3))
      .did(),
    '?-',
  );
});

test('a dump in place of a range: the rank starts from empty with its first page', () => {
  const rig = known(5).live(event(8), event(9));
  rig.did();
  assert.is(rig.answer(dump([70, 71], 8)).did(), 'r:dump 70 71 9');
  assert.is(rig.splice.lastId, 9n);
  assert.equal(rig.splice.resets, { dump: 1 });
});

test('a dump in pages; live events wait until the last', () => {
  const rig = known(5).live(event(8));
  rig.did();
  assert.is(rig.answer(dump([70], 8, 'p2')).did(), 'r:dump 70 ?p2');
  assert.not.ok(rig.splice.warm);
  assert.is(rig.live(event(9)).did(), '');
  assert.is(rig.answer(dump([71], 8, 'p3')).did(), '71 ?p3');
  assert.is(rig.answer(dump([72], 8)).did(), '72 9');
  assert.ok(rig.splice.warm);
});

test('a page of another dump, or one that is gone: the first page again', () => {
  for (const wrong of [dump([71], 9), { kind: 'tree-dump-failed', detail: '' } as const, dump([71], 8, 'p2')]) {
    const rig = known(5)
      .live(event(8))
      .answer(dump([70], 8, 'p2'));
    rig.did();
    assert.is(rig.answer(wrong).did(), '?-');
    assert.is(rig.delay, FIRST_BACKOFF);
    assert.is(rig.answer(dump([80], 8)).did(), 'r:dump 80');
  }
});

test('a page that does not come is asked for again', () => {
  const rig = known(5)
    .live(event(8))
    .answer(dump([70], 8, 'p2'));
  rig.did();
  rig.splice.failed('unanswered', 0);
  assert.is(rig.did(), '?p2');
});

test('too new: the publisher began anew', () => {
  const rig = known(5).live(event(8));
  rig.did();
  assert.is(rig.answer(tooNew(3)).did(), 'r:new-life ?-');
  assert.is(rig.splice.counts.lives, 1);
  assert.is(rig.answer(dump([70], 8)).did(), 'r:dump 70');
});

test('another event under the id that is known: the publisher began anew, though its ids follow', () => {
  const rig = known(5).live(event(8, 1));
  rig.did();
  assert.is(rig.answer(range(5, 7, 1)).did(), 'r:new-life ?-');
  assert.is(rig.answer(dump([70], 8)).did(), 'r:dump 70');
});

test('answers that are none to the question', () => {
  const rows: [string, RecoveryAnswer, string, string][] = [
    ['an invalid range', { kind: 'invalid-range', startId: 5n, endId: 7n }, 'invalid-range', '?-'],
    ['an error', { kind: 'error', detail: 'x' }, 'error', '?5-7'],
    ['a failed dump', { kind: 'tree-dump-failed', detail: 'x' }, 'dump-failed', '?5-7'],
    ['too new, and it is not', tooNew(9), 'malformed', '?-'],
    ['a range that begins later', range(6, 7), 'malformed', '?-'],
    ['an empty range', { kind: 'events', events: [], lastEventId: 7n }, 'malformed', '?-'],
    ['a range with a hole', { kind: 'events', events: [event(5), event(7)], lastEventId: 7n }, 'malformed', '?-'],
  ];
  for (const [what, answer, outcome, asked] of rows) {
    const rig = known(5).live(event(8));
    rig.did();
    assert.is(rig.answer(answer).did(), asked, what);
    assert.equal(rig.splice.outcomes, { [outcome]: 1 }, what);
    assert.is(rig.delay, FIRST_BACKOFF, what);
  }
});

test('a range that brings nothing new is answered by a dump', () => {
  assert.is(known(5).live(event(8)).answer(range(5, 5)).did(), '?5-7 ?-');
});

test('retries: eight, with a doubling delay; then the rank is emptied and what waits is gone on with', () => {
  const rig = known(5).live(event(8), event(9));
  rig.did();
  const delays: number[] = [];
  for (let i = 0; i < RETRIES; i++) {
    rig.splice.failed('unanswered', rig.now);
    delays.push(rig.delay);
  }
  assert.equal(delays, [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600]);
  rig.did();
  rig.splice.failed('unanswered', rig.now);
  assert.is(rig.did(), 'r:unanswered 8 9');
  assert.equal(rig.splice.outcomes, { unanswered: 9, 'given-up': 1 });
  assert.not.ok(rig.splice.warm);
  assert.is(rig.live(event(10)).did(), '10', 'it goes on');
  rig.now = COLD_RETRY;
  rig.splice.tick(rig.now);
  assert.is(rig.did(), '?-', 'and is asked again after a while');
  assert.is(rig.answer(dump([70], 10)).did(), 'r:dump 70');
  assert.ok(rig.splice.warm);
});

test('a recovery that lasts as long as a direct stream may be down empties the rank', () => {
  const rig = known(5).live(event(8));
  rig.did();
  rig.splice.tick(STALE_AFTER - 1);
  assert.is(rig.did(), '');
  rig.splice.tick(STALE_AFTER);
  assert.is(rig.did(), 'r:stale ?-');
  rig.splice.tick(2 * STALE_AFTER);
  assert.is(rig.did(), '', 'once');
});

test('the buffer is bounded, the oldest go, and are asked for', () => {
  const rig = known(1);
  rig.live(...run(3, BUFFER_EVENTS + PRUNE_MARGIN + 3));
  assert.is(rig.splice.counts.dropped, PRUNE_MARGIN + 1);
  assert.is(rig.splice.buffered, BUFFER_EVENTS);
  rig.did();
  rig.answer(range(1, 2));
  assert.is(rig.did(), `2 ?2-${PRUNE_MARGIN + 3}`);
  rig.answer(range(2, PRUNE_MARGIN + 3));
  assert.is(rig.splice.lastId, BigInt(BUFFER_EVENTS + PRUNE_MARGIN + 3));
  assert.is(rig.splice.counts.applied, BUFFER_EVENTS + PRUNE_MARGIN + 3);
});

test('id 1 after higher ones: a new life, from empty', () => {
  const rig = known(5).live(event(1, 1), event(2, 1));
  assert.is(rig.did(), 'r:new-life 100001 100002');
  assert.is(rig.splice.counts.lives, 1);
  const waiting = known(5).live(event(9), event(1, 1));
  assert.is(waiting.did(), '?5-8 x r:new-life 100001', 'what waited was of the life before');
});

test('a new life whose beginning was missed: an old id that nothing explains', () => {
  const rig = known(50).live(event(7, 1));
  assert.is(rig.did(), '?-');
  assert.is(rig.live(event(8, 1)).did(), '');
  assert.is(rig.answer(dump([70], 7)).did(), 'r:dump 70 100008');
  assert.is(rig.splice.counts.doubts, 2);
});

test('doubts cost a recovery only now and then', () => {
  const rig = known(50)
    .live(event(7))
    .answer(dump([70], 50));
  rig.now = 3000; // past the grace after an answer
  rig.did();
  rig.live(event(8));
  assert.is(rig.did(), '');
  rig.splice.tick(DOUBT_EVERY - 1);
  assert.is(rig.did(), '');
  rig.splice.tick(DOUBT_EVERY);
  assert.is(rig.did(), '?-');
});

test('a late start: the rank is asked for at its first event, or at once', () => {
  const rig = new Rig().live(event(40));
  assert.is(rig.did(), '?-');
  assert.is(rig.answer(dump([70, 71], 41)).did(), 'r:dump 70 71');
  assert.is(rig.live(event(41)).did(), '', 'the dump stands for it');
  assert.is(rig.splice.counts.overlapped, 1);
  assert.is(rig.live(event(42)).did(), '42');
  const early = new Rig();
  early.splice.begin(0);
  assert.is(early.did(), '?-');
  assert.is(early.answer(dump([], 0)).did(), 'r:dump');
  assert.is(early.live(event(1)).did(), '1');
  assert.is(early.splice.counts.lives, 0);
});

test('a late start may be answered with all events', () => {
  const rig = new Rig().live(event(3));
  rig.did();
  assert.is(rig.answer(range(1, 3)).did(), 'r:dump 1 2 3');
  assert.ok(rig.splice.warm);
  assert.is(new Rig().live(event(3)).answer(range(2, 3)).did(), '?- ?-', 'but not without its beginning');
});

test('an indexer that lags behind its own events is not asked for a dump at each of them', () => {
  const rig = new Rig().live(event(5)).answer(dump([70], 3));
  assert.is(rig.delay, 0);
  rig.now = 100;
  rig.did();
  assert.is(rig.live(event(6)).did(), '?-');
  assert.is(rig.delay, DUMP_EVERY - 100);
});

test('a dump of what is no worker’s is none that was asked for', () => {
  const owner: RecoveryAnswer = { ...dump([70], 8), resetScope: 'domain:cache_owner' } as RecoveryAnswer;
  assert.is(known(5).live(event(8)).answer(owner).did(), '?5-7 ?-');
  const worker: RecoveryAnswer = { ...dump([70], 8), resetScope: 'domain:worker' } as RecoveryAnswer;
  assert.is(known(5).live(event(8)).answer(worker).did(), '?5-7 r:dump 70');
});

test('a log that is replayed overlaps a dump for as long as it takes', () => {
  const rig = new Rig();
  rig.splice.event(event(40), 0, true);
  rig.answer(dump([70], 60));
  rig.did();
  for (let id = 41; id <= 61; id++) rig.splice.event(event(id), 60_000, true);
  assert.is(rig.did(), '61');
  assert.is(rig.splice.counts.doubts, 0);
  rig.splice.event(event(62), LOG_GRACE, true);
  assert.is(rig.splice.counts.doubts, 0);
});

test('a publisher that restarts right after a dump, its first event missed', () => {
  const rig = new Rig().live(event(40)).answer(dump([70], 40));
  rig.now = 10_000;
  rig.did();
  assert.is(rig.live(event(2, 1)).did(), '?-');
});

test('what waited for a dump and is newer than it, and does not follow, is of another life', () => {
  const rig = new Rig().live(event(400), event(401));
  rig.did();
  assert.is(rig.answer(dump([70], 3)).did(), 'r:dump 70 ?-', '401 came after the question, and may be newer');
  assert.is(rig.answer(dump([70], 3)).did(), 'r:dump 70');
  assert.is(rig.splice.recovering, false);
  assert.is(rig.live(event(4)).did(), '4');
});

test('a check finds what no later event shows, and costs nothing where nothing is missed', () => {
  const rig = known(5);
  rig.splice.check(0);
  assert.is(rig.did(), `?5-${5 + APPEND_BUDGET}`);
  assert.is(rig.live(event(6)).did(), '6', 'live events go on meanwhile');
  assert.is(rig.answer(range(5, 7)).did(), `7 ?7-${7 + APPEND_BUDGET}`);
  assert.is(rig.answer(range(7, 7)).did(), '');
  assert.is(rig.splice.recovering, false);
  assert.equal(rig.splice.resets, {});
});

test('a check while a recovery runs is made behind it', () => {
  const rig = known(5).live(event(8));
  rig.splice.check(0);
  rig.did();
  assert.is(rig.answer(range(5, 7)).did(), '6 7 8');
  rig.splice.tick(1000);
  assert.is(rig.did(), `?8-${8 + APPEND_BUDGET}`);
  assert.is(rig.answer(range(8, 9)).did(), `9 ?9-${9 + APPEND_BUDGET}`);
});

test('a removal and a clear are events like others', () => {
  const rig = known(2).live(planeEvent(3, removedData([1])), planeEvent(4, { kind: 'cleared' }));
  assert.is(rig.did(), 'removed cleared');
});

test('ids past 2^53', () => {
  const big = 2n ** 60n;
  const one = (id: bigint) => planeEvent(id, storedData(null, [1]));
  const rig = new Rig().live(one(big));
  rig.answer({ kind: 'tree-dump', events: [], lastEventId: big, resetScope: null, next: null });
  rig.did();
  assert.is(rig.live(one(big + 1n), one(big + 3n)).did(), `1 ?${big + 1n}-${big + 2n}`);
});

test.run();
