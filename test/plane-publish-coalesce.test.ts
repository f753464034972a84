// Coalescing: which neighbours are merged, what a merged event says, and when it goes out.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Coalescer, FLUSH_BLOCKS, MOST_BATCHING_MS, whyApart } from '../src/live/plane/publish/coalesce.js';
import type { Draft } from '../src/live/plane/publish/draft.js';
import { cleared, localOf, removed, run, said, stored } from './support/plane-drafts.js';

/** All of one native batch. */
function coalesced(events: readonly Draft[]): Draft[] {
  const coalescer = new Coalescer();
  const out: Draft[] = [];
  for (const event of events) coalescer.add(event, 0, out);
  coalescer.endOfBatch(out);
  return out;
}

const APART: readonly { what: string; pending: Draft; next: Draft; why: ReturnType<typeof whyApart> }[] = [
  { what: 'stores that chain', pending: stored(null, [1, 2]), next: stored(2, [3]), why: null },
  { what: 'removals', pending: removed([1]), next: removed([9]), why: null },
  { what: 'another worker', pending: stored(null, [1]), next: stored(1, [2], { workerId: 8n }), why: 'placement' },
  { what: 'another rank', pending: stored(null, [1]), next: stored(1, [2], { dpRank: 1 }), why: 'placement' },
  { what: 'another tier', pending: stored(null, [1]), next: stored(1, [2], { tier: 'host_pinned' }), why: 'placement' },
  { what: 'another tier of removals', pending: removed([1]), next: removed([2], { tier: 'disk' }), why: 'placement' },
  {
    what: 'another domain',
    pending: removed([1], { tier: 'disk' }),
    next: removed([2], { tier: 'disk', domain: 'cache_owner' }),
    why: 'placement',
  },
  { what: 'no domain and the worker’s', pending: removed([1]), next: removed([2], { domain: 'worker' }), why: null },
  { what: 'another source', pending: removed([1]), next: removed([2], { stateSource: 'x' }), why: 'placement' },
  { what: 'another session', pending: stored(null, [1]), next: stored(1, [2], { sessionId: 's' }), why: 'session' },
  {
    what: 'the same session',
    pending: removed([1], { sessionId: 's' }),
    next: removed([2], { sessionId: 's' }),
    why: null,
  },
  {
    what: 'ineligible behind eligible',
    pending: stored(null, [1], { eligible: true }),
    next: stored(1, [2]),
    why: 'eligibility',
  },
  {
    what: 'eligible behind ineligible',
    pending: stored(null, [1]),
    next: stored(1, [2], { eligible: true }),
    why: 'eligibility',
  },
  {
    what: 'a contradiction behind plain blocks',
    pending: stored(null, [1]),
    next: stored(1, [2], { contradicts: true }),
    why: 'contradiction',
  },
  {
    what: 'plain blocks behind a contradiction',
    pending: stored(null, [1], { contradicts: true }),
    next: stored(1, [2]),
    why: 'contradiction',
  },
  {
    what: 'contradictions',
    pending: stored(null, [1], { contradicts: true }),
    next: stored(1, [2], { contradicts: true }),
    why: null,
  },
  { what: 'a removal behind a store', pending: stored(null, [1]), next: removed([1]), why: 'kind' },
  { what: 'a store behind a removal', pending: removed([1]), next: stored(null, [1]), why: 'kind' },
  { what: 'a clear', pending: removed([1]), next: cleared(), why: 'kind' },
  { what: 'a store from the root', pending: stored(null, [1]), next: stored(null, [2]), why: 'chain' },
  { what: 'a store behind an earlier block', pending: stored(null, [1, 2]), next: stored(1, [3]), why: 'chain' },
  { what: 'positions that follow', pending: stored(null, [1, 2], {}, 4), next: stored(2, [3], {}, 6), why: null },
  { what: 'positions that do not', pending: stored(null, [1, 2], {}, 4), next: stored(2, [3], {}, 7), why: 'position' },
];

for (const { what, pending, next, why } of APART)
  test(`${what}: ${why === null ? 'merged' : `kept apart (${why})`}`, () => {
    assert.is(whyApart(pending, next), why);
    assert.is(coalesced([pending, next]).length, why === null ? 1 : 2);
  });

for (const [first, second] of [
  [true, true],
  [true, false],
  [false, true],
  [false, false],
] as const)
  test(`an ${first ? '' : 'in'}eligible store and an ${second ? '' : 'in'}eligible one behind it keep links, order and provenance`, () => {
    const events = coalesced([
      stored(null, [1, 2], { eligible: first }),
      stored(2, [3], { eligible: second }),
      stored(3, [4], { eligible: second }),
    ]);
    const mark = (eligible: boolean) => (eligible ? ' e' : '');
    const expected = first === second ? [`+>1,2,3,4${mark(first)}`] : [`+>1,2${mark(first)}`, `+2>3,4${mark(second)}`];
    assert.equal(events.map(said), expected);
    for (const { data } of events) {
      assert.is(data.kind, 'stored');
      if (data.kind === 'stored') assert.equal(data.locals, data.hashes.map(localOf));
    }
  });

test('a merged store begins where its first did, keeps its place, and its blocks’ multimodal information', () => {
  const with_mm = stored(2, [3, 4]);
  const seen = { mm_objects: [{ mm_hash: 5 }] };
  const events = coalesced([
    stored(9, [1, 2], {}, 10),
    { ...with_mm, data: { ...with_mm.data, mm: [null, seen] } as Draft['data'] },
    stored(4, [5]),
  ]);
  assert.is(events.length, 1);
  const { data } = events[0]!;
  if (data.kind !== 'stored') throw new Error('no store');
  assert.is(data.parent, 9n);
  assert.is(data.startPosition, 10);
  assert.equal([...data.hashes], [1n, 2n, 3n, 4n, 5n]);
  assert.equal(data.mm, [null, null, null, seen, null]);
});

test('a place that only a later part knows is the first one’s too', () => {
  const startOf = (events: Draft[]) => events.map(({ data }) => (data.kind === 'stored' ? data.startPosition : null));
  assert.equal(startOf(coalesced([stored(9, [1, 2]), stored(2, [3], {}, 12)])), [10]);
  // A part without one does not hide that those around it disagree.
  assert.equal(startOf(coalesced([stored(9, [1], {}, 4), stored(1, [2]), stored(2, [3], {}, 9)])), [4, 9]);
});

test(`the pending event goes out once it has ${FLUSH_BLOCKS} blocks, looked at after a whole event was added`, () => {
  const coalescer = new Coalescer(MOST_BATCHING_MS);
  const out: Draft[] = [];
  coalescer.add(stored(null, run(1, FLUSH_BLOCKS - 1)), 0, out);
  assert.is(out.length, 0);
  coalescer.add(stored(FLUSH_BLOCKS - 1, run(FLUSH_BLOCKS, 100)), 0, out);
  assert.equal(
    out.map(({ data }) => (data.kind === 'cleared' ? 0 : data.hashes.length)),
    [FLUSH_BLOCKS + 99],
  );
  coalescer.add(removed(run(1, FLUSH_BLOCKS)), 0, out);
  assert.is(out.length, 2, 'a long event does not wait');
  assert.is(coalescer.dueAt, null);
});

test('a clear passes alone: what is pending goes before it, and nothing is merged over it', () => {
  assert.equal(coalesced([removed([1]), cleared(), cleared(), removed([2]), removed([3])]).map(said), [
    '-1',
    'clear',
    'clear',
    '-2,3',
  ]);
});

test('without a timeout everything goes out with its native batch; with one it waits for neighbours until its time', () => {
  const out: Draft[] = [];
  const waits = new Coalescer(100);
  waits.add(stored(null, [1]), 1000, out);
  waits.endOfBatch(out);
  assert.is(waits.dueAt, 1100);
  waits.add(stored(1, [2]), 1050, out);
  waits.endOfBatch(out);
  waits.tick(1099, out);
  assert.is(out.length, 0);
  waits.tick(1100, out);
  assert.equal(out.map(said), ['+>1,2']);
  assert.is(waits.dueAt, null);
  assert.is(waits.merged, 1);
  // The wait is the first one's: an incompatible event begins another.
  waits.add(removed([1]), 2000, out);
  waits.add(stored(null, [5]), 2050, out);
  assert.is(waits.dueAt, 2150);
});

test('a timeout above 15 s, or none at all, is refused by name', () => {
  for (const good of [0, 0.5, 15_000]) new Coalescer(good);
  for (const bad of [-1, 15_001, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(
      () => new Coalescer(bad),
      (error: { code: string; message: string }) => error.code === 'batching-timeout' && /15000/.test(error.message),
    );
});

test.run();
