// Derived edges against the brute force, on random geometries, prompts and stores that change between lookups, so that the completeness of what was
// derived before must be kept up to date. A lookup says exactly what vLLM's worker would report: every hash block, any groups. Where the tables
// are too small it never says more. MOONROUTE_SEED=n repeats a run.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadCore } from './support/cores.js';
import { DerivedPool } from './support/derived-pool.js';
import { randomGeometry, World, type WorldPrompt } from './support/derived-world.js';
import { prefixOf } from './support/messages.js';
import { Random } from './support/random.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
console.log(`derived-random: seed ${seed}`);

/** Edges and digests that the tiny builds hold, and objects that the wide one of them does. */
const TINY = 64;
const TINY_OBJECTS = 256;

/** Something else happens in the world. */
function happen(world: World): void {
  const { random, core } = world;
  const what = random.int(20);
  if (what < 8) world.store();
  else if (what < 12) world.remove();
  else if (what < 15) world.learn();
  else if (what < 17) world.reconcile();
  else if (what < 18) core.compact(random.pick([1, 8, 1024]));
  else if (what < 19) digestOfSome(world);
  else if (random.chance(0.2)) world.clear();
}

/** What an event would be held against: the digest that the model has, or none. */
function digestOfSome(world: World): void {
  const { random, core } = world;
  const prompt = random.pick(world.prompts);
  if (prompt.digests.length === 0) return;
  const first = random.chance(0.5) ? 0 : random.int(prompt.digests.length);
  const end = random.between(first + 1, prompt.digests.length);
  const size = world.geometry.hashBlock;
  const parent = first === 0 ? null : Buffer.from(prompt.digests[first - 1]!, 'hex');
  const low = parent && { low: parent.readUInt32BE(28), high: parent.readUInt32BE(24) };
  const said = core.digestBehind(low, prompt.tokens.subarray(first * size, end * size), prompt);
  if (said === null) assert.is.not(first, 0, 'the digest of a root is always known');
  else assert.is(Buffer.from(said).toString('hex'), prompt.digests[end - 1]);
}

/** Asks once, in one of the ways; the credit, after checking that other ways agree. */
function credit(world: World, prompt: WorldPrompt, tokenCount: number, where: () => string): number {
  const { random } = world;
  const size = world.geometry.hashBlock;
  const before = random.chance(0.15) ? world.explained(prompt, tokenCount) : null;
  const credited = world.derived(prompt, tokenCount);
  const explained = before ?? (random.chance(0.15) ? world.explained(prompt, tokenCount) : null);
  if (explained !== null) {
    if (explained.hit * size !== credited)
      assert.unreachable(`explain says ${explained.hit * size}, lookup ${credited}; ${where()}`);
    if (world.known) assert.equal(world.wrongNotes(prompt, explained), [], where());
  }
  return credited;
}

test('a gap in the finer of two full-attention groups: a block of the coarser one that ends behind it counts, if asked for before', async () => {
  // Each group is asked as far as the one before reached: the fine one first leaves the coarse one no whole block.
  for (const [order, tokens] of [
    ['coarse first', 10],
    ['fine first', 0],
  ] as const) {
    const groups = [{ blockSize: 64 }, { blockSize: 1 }];
    if (order === 'fine first') groups.reverse();
    const shape = { hashBlockSize: 1, blockSize: groups[0]!.blockSize, lcm: 64, partial: true };
    const pool = await DerivedPool.open(
      { trustSeed: true },
      { ...shape, groups: [...groups, { kind: 'mamba', blockSize: 64 }] },
    );
    const prompt = pool.prompt(1, 128 / groups[0]!.blockSize);
    const keyOf = (group: number, end: number) => `${prefixOf(group, 0)}@${prompt.digests[end - 1]}`;
    const coarse = groups.findIndex(({ blockSize }) => blockSize === 64);
    const fine = Array.from({ length: 20 }, (_, i) => keyOf(1 - coarse, i + 1));
    pool.store(prompt, [keyOf(coarse, 64), ...fine, keyOf(2, 10)]);
    for (let again = 0; again < 2; again++) assert.is(pool.cache.lookup(prompt.query()).tokens, tokens, order);
    // No block behind that is derived for nothing.
    assert.ok(pool.cache.stats().core!.derivedEdges < 128, order);
  }
});

test('more salts and adapters than are remembered, in turns: each is found, and only under its own', async () => {
  const pool = await DerivedPool.open({ trustSeed: true });
  const prompts = Array.from({ length: 300 }, (_, i) => [
    pool.prompt(1, 2, { rawSalt: `${i}` }),
    pool.prompt(1, 2, { loraName: `${i}`, namespace: 'n' }),
  ]).flat();
  for (const prompt of prompts.filter((_, i) => i % 3 > 0)) pool.store(prompt);
  for (let again = 0; again < 2; again++)
    for (const [i, prompt] of prompts.entries()) assert.is(pool.hits(prompt), i % 3 > 0 ? 2 : 0, String(i));
});

for (const [build, least, shape] of [
  ['default', 8_000, { prompts: 8, blocks: 60 }],
  ['default', 400, { prompts: 4, blocks: 700 }],
  ['wide', 2_000, { prompts: 8, blocks: 60 }],
] as const) {
  test(`${build}, prompts of up to ${shape.blocks} hash blocks: exactly what the worker would report`, async () => {
    const random = new Random(seed);
    const core = await loadCore(build);
    const counts = { cases: 0, hits: 0, partial: 0, groupless: 0, inside: 0, learned: 0, worlds: 0 };
    while (counts.cases < least) {
      const world = new World(core, randomGeometry(random), random, shape);
      const { geometry, contract } = world;
      counts.worlds++;
      for (let step = 0; step < 40; step++) {
        const { prompt, tokenCount } = world.asked();
        const where = () =>
          `seed ${seed}, world ${counts.worlds}, step ${step}, ${tokenCount} tokens of prompt ${world.prompts.indexOf(prompt)}: ${JSON.stringify(geometry)}`;
        const credited = credit(world, prompt, tokenCount, where);
        const expected = world.expected(prompt, tokenCount);
        if (credited !== expected) assert.unreachable(`core ${credited}, brute force ${expected}; ${where()}`);
        counts.cases++;
        if (credited > 0) counts.hits++;
        if (geometry.partial) counts.partial++;
        if (contract.mainEventGroup === null) counts.groupless++;
        if (credited % geometry.blockSize !== 0) counts.inside++;
        const learned = random.chance(0.3) ? world.learnedHit(prompt, tokenCount) : null;
        if (learned !== null) {
          assert.is(learned.credited, learned.expected, `learned; ${where()}`);
          if (learned.credited > 0) counts.learned++;
        }
        for (let more = random.int(3); more > 0; more--) happen(world);
      }
    }
    console.log(`  ${build}: ${JSON.stringify(counts)}`);
    if (least > 1_000) assert.ok(counts.hits > counts.cases / 20 && counts.partial > 0);
  });
}

test('a core that misses a part of what enters the store: never more than the whole of it would restore', async () => {
  const random = new Random(seed);
  const core = await loadCore('default');
  const counts = { cases: 0, hits: 0, less: 0, asksAgain: 0 };
  while (counts.cases < 6_000) {
    const world = new World(core, randomGeometry(random), random, { prompts: 6, blocks: 40, missed: 0.1 });
    const { partial, hashBlock } = world.geometry;
    for (let step = 0; step < 40; step++) {
      const { prompt, tokenCount } = world.asked();
      const where = () => `seed ${seed}, step ${step}, ${tokenCount} tokens: ${JSON.stringify(world.geometry)}`;
      const credited = credit(world, prompt, tokenCount, where);
      const expected = world.expected(prompt, tokenCount);
      if (credited > expected) assert.unreachable(`core ${credited}, at most ${expected}; ${where()}`);
      counts.cases++;
      if (credited > 0) counts.hits++;
      if (credited < expected) counts.less++;
      if (partial && tokenCount % hashBlock === 0 && world.expected(prompt, tokenCount + 1) >= tokenCount)
        counts.asksAgain++;
      const learned = random.chance(0.3) ? world.learnedHit(prompt, tokenCount) : null;
      if (learned !== null && learned.credited > learned.expected)
        assert.unreachable(`learned ${learned.credited}, at most ${learned.expected}; ${where()}`);
      for (let more = random.int(3); more > 0; more--) happen(world);
    }
  }
  console.log(`  misses a part: ${JSON.stringify(counts)}`);
  assert.ok(counts.hits > 200 && counts.less > 200 && counts.asksAgain > 20);
});

for (const build of ['tiny', 'tiny-wide'] as const) {
  for (const [name, room] of [
    ['a store that fits', { storeDigests: TINY, storeObjects: TINY_OBJECTS }],
    ['a store that does not fit', {}],
  ] as const) {
    test(`${build} (${TINY} edges), more prompts than fit, ${name}: never more, and exact where it may be`, async () => {
      const random = new Random(seed);
      const core = await loadCore(build);
      const counts = { cases: 0, hits: 0, exact: 0, evicted: 0, long: 0, worlds: 0 };
      while (counts.cases < 2_000) {
        const before = core.stats().edgeEvictions;
        const world = new World(core, randomGeometry(random), random, { prompts: 8, blocks: 110, ...room });
        counts.worlds++;
        for (let step = 0; step < 40; step++) {
          const { prompt, tokenCount } = world.asked();
          const where = () => `seed ${seed}, world ${counts.worlds}, step ${step}: ${JSON.stringify(world.geometry)}`;
          const credited = credit(world, prompt, tokenCount, where);
          const expected = world.expected(prompt, tokenCount);
          if (credited > expected) assert.unreachable(`core ${credited}, at most ${expected}; ${where()}`);
          const fits = tokenCount / world.geometry.hashBlock < TINY;
          if ('storeDigests' in room && fits) {
            if (credited !== expected) assert.unreachable(`core ${credited}, brute force ${expected}; ${where()}`);
            counts.exact++;
          }
          const learned = random.chance(0.2) ? world.learnedHit(prompt, tokenCount) : null;
          if (learned !== null && learned.credited > learned.expected)
            assert.unreachable(`learned ${learned.credited}, at most ${learned.expected}; ${where()}`);
          counts.cases++;
          if (credited > 0) counts.hits++;
          if (!fits) counts.long++;
          for (let more = random.int(3); more > 0; more--) happen(world);
        }
        counts.evicted += Number(core.stats().edgeEvictions - before);
      }
      console.log(`  ${build}, ${name}: ${JSON.stringify(counts)}`);
      assert.ok(counts.evicted > 1_000 && counts.hits > 100 && counts.long > 100);
    });
  }
}

test.run();
