// De-duplication by reference counts: what passes, what it costs, and that what can't be tracked errs towards forgetting.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { RefCounts } from '../src/live/plane/publish/dedup.js';
import type { Draft } from '../src/live/plane/publish/draft.js';
import { cleared, removed, run, said, stored } from './support/plane-drafts.js';
import { Random } from './support/random.js';

const OWNED = { domain: 'cache_owner', tier: 'host_pinned' } as const;

function passed(counts: RefCounts, drafts: readonly Draft[]): (string | null)[] {
  return drafts.map((draft) => {
    const out = counts.pass(draft);
    return out === null ? null : said(out);
  });
}

const TABLE: readonly { rule: string; events: readonly Draft[]; pass: readonly (string | null)[]; left: number }[] = [
  { rule: 'a store passes again', events: [stored(null, [1]), stored(null, [1])], pass: ['+>1', '+>1'], left: 1 },
  {
    rule: 'a removal passes with the last reference',
    events: [stored(null, [1]), removed([1])],
    pass: ['+>1', '-1'],
    left: 0,
  },
  {
    rule: 'a removal does not pass while there are others',
    events: [stored(null, [1]), stored(null, [1]), removed([1]), removed([1])],
    pass: ['+>1', '+>1', null, '-1'],
    left: 0,
  },
  { rule: 'a removal of what is not tracked passes', events: [removed([1, 2])], pass: ['-1,2'], left: 0 },
  {
    rule: 'of a removal only what has gone passes, in its order',
    events: [stored(null, [1, 2, 3]), stored(1, [2]), removed([3, 2, 1])],
    pass: ['+>1,2,3', '+1>2', '-3,1'],
    left: 1,
  },
  {
    rule: 'a hash twice in one removal is two references less',
    events: [stored(null, [1]), stored(null, [1]), removed([1, 1])],
    pass: ['+>1', '+>1', '-1'],
    left: 0,
  },
  {
    rule: 'tiers are counted apart',
    events: [stored(null, [1]), stored(null, [1], { tier: 'disk' }), removed([1], { tier: 'disk' }), removed([1])],
    pass: ['+>1', '+>1', '-1', '-1'],
    left: 0,
  },
  {
    rule: 'domains are counted apart; what names none is a worker’s own',
    events: [
      stored(null, [1], { tier: 'host_pinned' }),
      stored(null, [1], OWNED),
      removed([1], { tier: 'host_pinned', domain: 'worker' }),
      removed([1], OWNED),
    ],
    pass: ['+>1', '+>1', '-1', '-1'],
    left: 0,
  },
  {
    rule: 'a clear passes and resets all',
    events: [stored(null, [1, 2]), stored(null, [3], OWNED), stored(null, [1]), cleared(), removed([1])],
    pass: ['+>1,2', '+>3', '+>1', 'clear', '-1'],
    left: 0,
  },
  {
    rule: 'a clear of a domain resets that domain alone',
    events: [
      stored(null, [1, 2]),
      stored(null, [1]),
      stored(null, [1, 2], OWNED),
      cleared({ domain: 'cache_owner' }),
      removed([1]),
    ],
    pass: ['+>1,2', '+>1', '+>1,2', 'clear', null],
    left: 2,
  },
  { rule: 'events without blocks say nothing', events: [stored(null, []), removed([])], pass: [null, null], left: 0 },
];

for (const { rule, events, pass, left } of TABLE)
  test(rule, () => {
    const counts = new RefCounts(64);
    assert.equal(passed(counts, events), pass);
    assert.is(counts.stats().tracked, left);
  });

test('beyond the cap a block is not tracked, so that its removals pass: none is kept that has gone', () => {
  const counts = new RefCounts(4);
  assert.equal(passed(counts, [stored(null, run(1, 6)), stored(null, [5])]), ['+>1,2,3,4,5,6', '+>5']);
  assert.is(counts.stats().tracked, 4);
  assert.is(counts.stats().untracked, 3);
  assert.equal(passed(counts, [removed([5]), removed([5]), removed([1, 6])]), ['-5', '-5', '-1,6']);
  // There is room again, and what comes now is tracked.
  assert.equal(passed(counts, [stored(null, [7]), stored(null, [7]), removed([7])]), ['+>7', '+>7', null]);
});

test('the memory does not grow, and a cap out of range is refused by name', () => {
  const counts = new RefCounts(1000);
  const { memoryBytes } = counts.stats();
  assert.is(memoryBytes, 2048 * 12);
  for (let at = 0; at < 100; at++) counts.pass(stored(null, run(at * 100, 100)));
  assert.is(counts.stats().memoryBytes, memoryBytes);
  for (const cap of [0, -1, 1.5, Number.NaN, 2 ** 25])
    assert.throws(
      () => new RefCounts(cap),
      (error: { code: string }) => error.code === 'publish-tracked',
    );
});

test('any traffic: as counts in a Map, and no entry is left after removes or clears', () => {
  const seed = 11;
  const random = new Random(seed);
  const counts = new RefCounts(256);
  const model = new Map<string, number>();
  const scopes = [{}, { tier: 'host_pinned' }, { tier: 'disk' }, OWNED] as const;
  for (let step = 0; step < 20_000; step++) {
    const scope = random.pick(scopes);
    const hashes = [...new Set(Array.from({ length: 1 + random.int(4) }, () => random.int(60)))];
    const key = (hash: number) => JSON.stringify([scope, hash]);
    const what = random.int(1000);
    if (what === 0) {
      counts.pass(cleared());
      model.clear();
    } else if (what === 1) {
      counts.pass(cleared({ domain: 'cache_owner' }));
      for (const name of model.keys()) if (name.includes('cache_owner')) model.delete(name);
    } else if (what < 480) {
      counts.pass(stored(null, hashes, scope));
      for (const hash of hashes) model.set(key(hash), (model.get(key(hash)) ?? 0) + 1);
    } else {
      const gone = hashes.filter((hash) => {
        const count = (model.get(key(hash)) ?? 1) - 1;
        if (count > 0) model.set(key(hash), count);
        else model.delete(key(hash));
        return count === 0;
      });
      const out = counts.pass(removed(hashes, scope));
      assert.is(out === null ? '-' : said(out), `-${gone.join(',')}`, `seed ${seed}, step ${step}`);
    }
    assert.is(counts.stats().tracked, model.size, `seed ${seed}, step ${step}`);
  }
  for (const [name, count] of model) {
    const [scope, hash] = JSON.parse(name);
    for (let i = 0; i < count; i++) counts.pass(removed([hash], scope));
  }
  assert.is(counts.stats().tracked, 0);
});

test.run();
