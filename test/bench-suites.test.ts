// Every suite of the benchmark at every size, without its clock: it can be made, it counts something, and its contenders give the same answers.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { suites } from '../bench/suites/index.js';

test('names are unique; what a short run times is among the sizes, which ascend', () => {
  assert.is(new Set(suites.map(({ name }) => name)).size, suites.length);
  for (const { name, sizes, quickSizes } of suites) {
    assert.ok(
      quickSizes.every((size) => sizes.includes(size)),
      name,
    );
    assert.equal(
      sizes,
      [...sizes].sort((a, b) => a - b),
    );
  }
});

for (const suite of suites)
  test(`${suite.name}: contenders agree at ${suite.sizes.join(', ')} ${suite.sizeOf}`, async () => {
    if (suite.kind === 'bytes') {
      for (const size of suite.sizes) {
        const { a, counters } = await suite.weigh({ heapBytes: () => null }, size);
        assert.ok(a > 0 && Object.keys(counters()).length > 0);
      }
      return;
    }
    const contestOf = await suite.make();
    for (const size of suite.sizes) {
      const contest = await contestOf(size);
      const counters = contest.counters();
      assert.ok(Object.values(counters).every((value) => Number.isSafeInteger(value) && value >= 0));
      assert.ok(Object.keys(counters).length > 0);
      contest.check?.();
      contest.begin?.();
      for (const side of [contest.a, contest.b]) {
        side?.prepare?.();
        side?.run();
      }
    }
  });

test.run();
