// Clearing residency raises a 32-bit generation number; at its wrap the old marks are scrubbed, so that nothing of the first generations comes
// back to life. Forced here, since it would take years.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CorePool } from './support/messages.js';
import { setClearGeneration } from './support/poke.js';

for (const build of ['tiny', 'tiny-wide'] as const) {
  test(`${build}: residency of generation 1 … 4 does not return after the wrap`, async () => {
    const pool = await CorePool.load(build, { groups: [{ ranks: 2 }, { kind: 'mamba', ranks: 2 }] });
    const prompt = pool.prompt(1, 8);
    pool.teach(prompt);
    const first = pool.core.stats().generation;
    assert.ok(first >= 1 && first <= 4, `generation ${first}`);
    for (let generation = first; generation <= 4; generation++) {
      pool.store(prompt);
      assert.is(pool.hits(prompt), 8);
      if (generation < 4) pool.core.clearResidency();
    }
    setClearGeneration(pool.core, 0xffff_ffff);
    assert.is(pool.hits(prompt), 0);
    for (const generation of [1, 2, 3, 4, 5]) {
      pool.core.clearResidency();
      assert.is(pool.core.stats().generation, generation);
      assert.is(pool.hits(prompt), 0, `generation ${generation} after the wrap`);
      // One object of a new digest may not revive what lies around it in the tables.
      pool.store(pool.prompt(2, 1));
      assert.is(pool.hits(prompt), 0);
      assert.is(pool.core.stats().digests, 1);
    }
    pool.core.clearResidency();
    pool.store(prompt);
    assert.is(pool.hits(prompt), 8);
  });
}

test.run();
