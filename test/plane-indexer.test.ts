// A worker's local indexer: each answer of the recovery protocol, eligibility in ranges and dumps, and dumps whose pages are of one moment.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { PrefixIndexLike } from '../src/core/prefix-types.js';
import { indexedBlocks } from '../src/core/prefix-types.js';
import type { Draft } from '../src/live/plane/publish/draft.js';
import { MOST_SNAPSHOTS, SNAPSHOT_KEPT_MS } from '../src/live/plane/publish/dump-snapshots.js';
import { LocalIndexer, type LocalIndexerOptions } from '../src/live/plane/publish/local-indexer.js';
import { EventBatchReader, encodeEvents, encodeRecoveryAnswer } from '../src/wire/envelope/index.js';
import type { RecoveryAnswer, RecoveryQuestion, RouterEvent } from '../src/wire/envelope/types.js';
import { cleared, removed, run, said, stored, WORKER } from './support/plane-drafts.js';
import { dumpedSet } from './support/prefix-dumps.js';
import { ReferencePrefixIndex } from './support/reference-prefix-index.js';

function indexer(
  options: Partial<LocalIndexerOptions> = {},
): LocalIndexer & { index: PrefixIndexLike; say(...drafts: Draft[]): void } {
  const index = new ReferencePrefixIndex({ ranks: 64, provenance: true });
  const made = new LocalIndexer({ workerId: WORKER, dpRank: 0, index, ...options });
  const say = (...drafts: Draft[]): void => {
    for (const draft of drafts) made.apply({ ...draft, eventId: made.lastEventId + 1n });
  };
  return Object.assign(made, { index, say });
}

function ask(question: Partial<RecoveryQuestion> = {}): RecoveryQuestion {
  const all = { startEventId: null, endEventId: null, supportsTreeDumpFailed: true, page: null };
  return { workerId: WORKER, dpRank: 0, ...all, ...question };
}

function events(answer: RecoveryAnswer): readonly RouterEvent[] {
  if (answer.kind === 'events' || answer.kind === 'tree-dump') return answer.events;
  throw new Error(
    `${answer.kind}: ${JSON.stringify(answer, (_, value) => (typeof value === 'bigint' ? `${value}` : value))}`,
  );
}

const E = { eligible: true } as const;
const TOLD = [stored(null, [1, 2], E), stored(2, [3]), removed([3]), stored(2, [4], { tier: 'external' })];

// ---- each answer ----

const ANSWERS: readonly {
  rule: string;
  question: Partial<RecoveryQuestion>;
  kind: RecoveryAnswer['kind'];
  says?: readonly string[];
}[] = [
  { rule: 'a range', question: { startEventId: 2n, endEventId: 3n }, kind: 'events', says: ['+2>3', '-3'] },
  { rule: 'a range to the newest', question: { startEventId: 3n }, kind: 'events', says: ['-3', '+2>4'] },
  {
    rule: 'a range past the newest is cut',
    question: { startEventId: 4n, endEventId: 99n },
    kind: 'events',
    says: ['+2>4'],
  },
  { rule: 'all', question: {}, kind: 'tree-dump', says: ['+>1,2 e', '+2>4'] },
  {
    rule: 'from an event that is not kept',
    question: { startEventId: 0n },
    kind: 'tree-dump',
    says: ['+>1,2 e', '+2>4'],
  },
  { rule: 'past the newest', question: { startEventId: 5n }, kind: 'too-new' },
  { rule: 'an end before its start', question: { startEventId: 3n, endEventId: 2n }, kind: 'invalid-range' },
  { rule: 'of another worker', question: { workerId: 8n }, kind: 'error' },
  { rule: 'of another rank', question: { dpRank: 1 }, kind: 'error' },
  { rule: 'a page that is not kept', question: { page: '1.0.0.0' }, kind: 'tree-dump-failed' },
  { rule: 'a page that never was', question: { page: '../..' }, kind: 'tree-dump-failed' },
  {
    rule: 'the same, of one who knows no failed dumps',
    question: { page: '1.0.0.0', supportsTreeDumpFailed: false },
    kind: 'error',
  },
];

for (const { rule, question, kind, says } of ANSWERS)
  test(`${rule}: ${kind}`, () => {
    const told = indexer();
    told.say(...TOLD);
    const answer = told.answer(ask(question), 0);
    assert.is(answer.kind, kind);
    if (says !== undefined) assert.equal(events(answer).map(said), says);
  });

test('answers say what was asked and what there is', () => {
  const told = indexer();
  told.say(...TOLD);
  assert.equal(told.answer(ask({ startEventId: 9n, endEventId: 12n }), 0), {
    kind: 'too-new',
    requestedStart: 9n,
    requestedEnd: 12n,
    newestAvailable: 4n,
  });
  assert.equal(told.answer(ask({ startEventId: 3n, endEventId: 2n }), 0), {
    kind: 'invalid-range',
    startId: 3n,
    endId: 2n,
  });
  const range = told.answer(ask({ startEventId: 1n, endEventId: 2n }), 0);
  assert.is(range.kind === 'events' && range.lastEventId, 2n);
  const dump = told.answer(ask(), 0);
  if (dump.kind !== 'tree-dump') throw new Error(dump.kind);
  assert.is(dump.lastEventId, 4n);
  assert.is(dump.resetScope, null);
  assert.is(dump.next, null);
  assert.equal(told.stats().answers, { 'too-new': 1, 'invalid-range': 1, events: 1, 'tree-dump': 1 });
});

test('before the first event everything is too new, and a dump is empty', () => {
  const silent = indexer();
  assert.is(silent.answer(ask({ startEventId: 1n }), 0).kind, 'too-new');
  const dump = silent.answer(ask(), 0);
  assert.is(dump.kind === 'tree-dump' && dump.lastEventId, 0n);
  assert.is(events(dump).length, 0);
});

test('an index that can’t be read fails the dump, not the publisher', () => {
  const index = new ReferencePrefixIndex({ ranks: 64, provenance: true });
  index.dump = () => {
    throw new Error('no memory');
  };
  const told = indexer({ index });
  told.say(stored(null, [1]));
  const answer = told.answer(ask(), 0);
  assert.ok(answer.kind === 'tree-dump-failed' && /no memory/.test(answer.detail));
  assert.is(told.answer(ask({ supportsTreeDumpFailed: false }), 0).kind, 'error');
});

// ---- ranges ----

test('eligibility, sessions, domains and tiers come back from the buffer as they went out', () => {
  const told = indexer();
  const owned = stored(null, [9], { tier: 'disk', domain: 'cache_owner', sessionId: 's' });
  told.say(stored(null, [1], E), stored(1, [2]), stored(2, [3], E), owned, cleared({ domain: 'cache_owner' }));
  const back = events(told.answer(ask({ startEventId: 1n }), 0));
  assert.equal(
    back.map(({ eligible }) => eligible),
    [true, false, true, false, false],
  );
  assert.equal(
    back.map(({ eventId }) => eventId),
    [1n, 2n, 3n, 4n, 5n],
  );
  assert.is(back[3]!.domain, 'cache_owner');
  assert.is(back[3]!.sessionId, 's');
  const { events: read } = new EventBatchReader().read(encodeEvents(back));
  assert.equal(read.map(said), back.map(said));
});

test('the buffer is bounded by events; what fell out of it is answered with a dump', () => {
  const told = indexer({ ring: { events: 10, bytes: 1 << 20 } });
  for (let block = 1; block <= 25; block++) told.say(stored(block === 1 ? null : block - 1, [block], E));
  assert.is(told.stats().buffered, 10);
  assert.is(told.answer(ask({ startEventId: 16n }), 0).kind, 'events');
  const dump = told.answer(ask({ startEventId: 15n }), 0);
  assert.is(dump.kind, 'tree-dump');
  assert.equal(events(dump).map(said), [`+>${run(1, 25).join(',')} e`]);
});

test('the buffer is bounded by bytes', () => {
  const told = indexer({ ring: { events: 1000, bytes: 10_000 } });
  for (let block = 1; block <= 100; block++) told.say(removed(run(1, 50)));
  const { buffered, bufferedBytes } = told.stats();
  assert.ok(buffered > 5 && buffered < 30 && bufferedBytes <= 10_000);
});

test('a long range comes in parts: each goes on behind the last event of the one before', () => {
  const told = indexer({ answerBytes: () => 2000 });
  for (let block = 1; block <= 50; block++) told.say(stored(block === 1 ? null : block - 1, [block]));
  const back: RouterEvent[] = [];
  let answers = 0;
  for (let from = 2n; from <= 50n; answers++) {
    const answer = told.answer(ask({ startEventId: from }), 0);
    if (answer.kind !== 'events') throw new Error(answer.kind);
    assert.ok(encodeEvents(answer.events).length <= 2000);
    assert.is(answer.lastEventId, answer.events.at(-1)!.eventId);
    back.push(...answer.events);
    from = answer.lastEventId + 1n;
  }
  assert.ok(answers > 5);
  assert.equal(
    back.map(({ eventId }) => Number(eventId)),
    run(2, 49),
  );
});

// ---- dumps ----

test('a dump is split at every change of eligibility, its ids run from 0, its parents chain', () => {
  const told = indexer();
  told.say(stored(null, [1, 2, 3], E), stored(3, [4, 5]), stored(5, [6], E), stored(null, [7]));
  const dumped = events(told.answer(ask(), 0));
  assert.equal([...dumped.map(said)].sort(), ['+3>4,5', '+5>6 e', '+>1,2,3 e', '+>7']);
  assert.equal(
    dumped.map(({ eventId }) => Number(eventId)),
    run(0, dumped.length),
  );
  for (const { data, workerId, dpRank, domain } of dumped) {
    assert.ok(data.kind === 'stored' && data.startPosition === null && data.mm === null);
    assert.ok(workerId === WORKER && dpRank === 0 && domain === null);
  }
});

test('blocks are dumped as eligible only where all that announced them were; once gone they begin anew', () => {
  const told = indexer();
  told.say(stored(null, [1, 2], E), stored(null, [1]));
  assert.equal(events(told.answer(ask(), 0)).map(said), ['+>1', '+1>2 e']);
  told.say(removed([2, 1]), stored(null, [1, 2], E));
  assert.equal(events(told.answer(ask(), 0)).map(said), ['+>1,2 e']);
});

test('without provenance nothing is dumped as eligible', () => {
  const told = indexer({ index: new ReferencePrefixIndex({ ranks: 64 }) });
  told.say(stored(null, [1, 2], E));
  assert.equal(events(told.answer(ask(), 0)).map(said), ['+>1,2']);
});

test('a cache owner’s blocks are not the worker’s: passed on, never indexed, and its clear leaves them', () => {
  const told = indexer();
  const owned = { tier: 'disk', domain: 'cache_owner' } as const;
  told.say(stored(null, [1]), stored(null, [2], owned), removed([1], owned), cleared(owned));
  assert.equal(events(told.answer(ask(), 0)).map(said), ['+>1']);
  assert.is(told.stats().otherDomain, 3);
  told.say(cleared({ domain: 'worker' }));
  assert.is(events(told.answer(ask(), 0)).length, 0);
});

/** All pages of one dump, with what happens between them. */
function pages(told: LocalIndexer, now: () => number, between: (page: number) => void = () => {}): RouterEvent[] {
  const all: RouterEvent[] = [];
  let last: bigint | null = null;
  let page: string | null = null;
  for (let count = 1; ; count++) {
    const answer = told.answer(ask({ page }), now());
    if (answer.kind !== 'tree-dump') throw new Error(answer.kind);
    last ??= answer.lastEventId;
    assert.is(answer.lastEventId, last, 'all pages are of one moment');
    all.push(...answer.events);
    page = answer.next;
    if (page === null) return all;
    between(count);
  }
}

/** Chains of blocks that all follow on block 1, in several tiers, every other one eligible. */
function sayTree(told: ReturnType<typeof indexer>, chains: number, length: number): void {
  told.say(stored(null, [1], E));
  for (let chain = 1; chain <= chains; chain++) {
    const tier = (['device', 'host_pinned', 'disk'] as const)[chain % 3]!;
    told.say(stored(1, run(chain * 10_000, length), { eligible: chain % 2 === 0, tier }));
  }
}

function loaded(dumped: readonly RouterEvent[]): ReferencePrefixIndex {
  const index = new ReferencePrefixIndex({ ranks: 64, provenance: true });
  const tiers = { device: 'device', host_pinned: 'host', disk: 'disk', external: 'disk' } as const;
  for (const { data, tier, eligible } of dumped) {
    if (data.kind !== 'stored') throw new Error('no store');
    const outcome = index.stored(0, tiers[tier], indexedBlocks(data.parent, data.hashes, data.locals, eligible));
    assert.is(outcome, 'stored', 'each event finds its parent');
  }
  return index;
}

test('a long dump comes in pages that fit, with ids from 0 through all of them, and rebuilds the rank', () => {
  const told = indexer({ answerBytes: () => 8192 });
  sayTree(told, 30, 70);
  told.say(stored(10_069, run(500_000, 3000)));
  let count = 1;
  const dumped = pages(
    told,
    () => 0,
    () => count++,
  );
  assert.ok(count > 10);
  assert.equal(
    dumped.map(({ eventId }) => Number(eventId)),
    run(0, dumped.length),
  );
  assert.equal(dumpedSet(loaded(dumped).dump(0)), dumpedSet(told.index.dump(0)));
});

test('answers are as long as the transport carries, whatever that is by then', () => {
  let bytes = 100_000;
  const told = indexer({ answerBytes: () => bytes });
  told.say(stored(null, run(1, 5000), E));
  sayTree(told, 10, 5);
  for (bytes of [100_000, 20_000, 900]) {
    for (let page: string | null = null, count = 0; ; count++) {
      const answer = told.answer(ask({ page }), 0);
      if (answer.kind !== 'tree-dump') throw new Error(answer.kind);
      assert.ok(encodeRecoveryAnswer(answer).length <= bytes + 200, `${bytes}`);
      page = answer.next;
      if (page === null) {
        assert.ok(count >= Math.floor((5000 * 40) / bytes));
        break;
      }
    }
  }
});

test('pages are of one moment while events go on; what came meanwhile has ids above', () => {
  const told = indexer({ answerBytes: () => 8192 });
  sayTree(told, 30, 70);
  const before = dumpedSet(told.index.dump(0));
  const last = told.lastEventId;
  const dumped = pages(
    told,
    () => 0,
    (page) => {
      if (page === 2) told.say(cleared());
      told.say(stored(null, [900_000 + page]), removed([1]));
    },
  );
  assert.equal(dumpedSet(loaded(dumped).dump(0)), before);
  const missed = events(told.answer(ask({ startEventId: last + 1n }), 0));
  assert.is(missed[0]!.eventId, last + 1n);
});

test('who asks before the next event shares a dump; at most a few are kept, the one asked for last longest', () => {
  const told = indexer({ answerBytes: () => 8192 });
  sayTree(told, 30, 70);
  const first = told.answer(ask(), 0);
  assert.equal(told.answer(ask(), 1), first, 'the very same dump');
  assert.is(told.stats().snapshots, 1);
  for (let at = 0; at < MOST_SNAPSHOTS + 3; at++) {
    told.say(stored(null, [700_000 + at]));
    told.answer(ask(), 2 + at);
  }
  assert.is(told.stats().snapshots, MOST_SNAPSHOTS);
  const gone = told.answer(ask({ page: (first as { next: string }).next }), 10);
  assert.is(gone.kind, 'tree-dump-failed');
});

test('a dump that nobody goes on with is forgotten; asking keeps it', () => {
  const told = indexer({ answerBytes: () => 8192 });
  sayTree(told, 30, 70);
  let now = 0;
  pages(
    told,
    () => now,
    () => {
      now += SNAPSHOT_KEPT_MS - 1;
    },
  );
  assert.is(told.stats().snapshots, 1);
  told.tidy(now + SNAPSHOT_KEPT_MS);
  assert.is(told.stats().snapshots, 0);
});

test('a page’s name that was made up is refused', () => {
  const told = indexer({ answerBytes: () => 8192 });
  sayTree(told, 30, 70);
  told.answer(ask(), 0);
  for (const page of ['1.999.0.0', '1.0.99999.0', '2.0.0.0', '1.0.0', '1.0.0.0.0', '-1.0.0.0', '', '1.0.0.x'])
    assert.is(told.answer(ask({ page }), 0).kind, 'tree-dump-failed', page);
});

// ---- contradictions ----

test('a range brings contradictions as they were; a dump begins with them, and teaches none of it', () => {
  const told = indexer();
  told.say(stored(null, [1, 2, 3], E), stored(null, [8, 9], E), stored(1, [2], { contradicts: true }), removed([2, 3]));
  assert.equal(events(told.answer(ask({ startEventId: 3n }), 0)).map(said), ['+1>2 c', '-2,3']);
  // Readers ignore the owner's removal but for what it says of credit.
  const [first, ...rest] = events(told.answer(ask(), 0));
  assert.equal([said(first!), first!.domain, first!.tier], ['-2 c', 'cache_owner', 'external']);
  assert.equal(rest.map(said).sort(), ['+>1 e', '+>8,9 e']);
  // Whoever says so once more that they are plain text is not believed in dumps either.
  told.say(stored(1, [2], E), cleared(), stored(null, [1, 2], E), stored(null, [8], E));
  const [again, ...others] = events(told.answer(ask(), 0)).map(said);
  assert.equal([again, ...others.sort()], ['-2 c', '+>1,2', '+>8 e']);
  assert.is(told.stats().otherDomain, 0, 'it is no event of the rank');
});

test('contradictions of a dump come in pages as blocks do, with ids that rise', () => {
  const told = indexer({ answerBytes: () => 4096 });
  told.say(stored(null, run(1, 500), { contradicts: true }), cleared(), stored(null, run(1001, 100), E));
  const seen: RouterEvent[] = [];
  let answer = told.answer(ask(), 0);
  for (let pages = 1; ; pages++) {
    seen.push(...events(answer));
    if (answer.kind !== 'tree-dump') throw new Error(answer.kind);
    if (answer.next === null) {
      assert.ok(pages > 2, `${pages} pages`);
      break;
    }
    answer = told.answer(ask({ page: answer.next }), 0);
  }
  for (const [i, { eventId }] of seen.entries()) assert.is(eventId, BigInt(i));
  const hashesOf = (contradicts: boolean) =>
    seen.flatMap((event) =>
      event.contradicts === contradicts && event.data.kind !== 'cleared' ? [...event.data.hashes] : [],
    );
  assert.equal(hashesOf(true), run(1, 500).map(BigInt));
  assert.equal(hashesOf(false), run(1001, 100).map(BigInt));
});

test.run();
