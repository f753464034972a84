// `explain` gives the hits that `lookup` gives, for every oracle case at many prompt lengths, and touches nothing: no counter moves, and
// what is coldest stays coldest.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { storeMessages } from '../src/oracle/case-bytes.js';
import { prepareCase, queryOf } from '../src/oracle/run.js';
import { ownCases, upstreamCases } from './support/captures.js';
import { CorePool, Pool, removed, stored } from './support/messages.js';

/** Prompt lengths of a case: its own, and some around block and hash boundaries. */
function lengthsOf(request: number, known: number, block: number, hash: number): number[] {
  const lengths = [request, request - 1, known, 1, block, block + 1, hash + 1, 2 * block + 1];
  for (let n = 3 * block; n <= known; n += 3 * block) lengths.push(n, n + 1);
  return [...new Set(lengths)].filter((length) => length >= 1 && length <= known);
}

test('the hits of explain are those of lookup, over all oracle cases at many lengths; every prompt has a reason', async () => {
  const cache = await SharedCache.create();
  let explained = 0;
  let hits = 0;
  for (const oracleCase of [...ownCases(), ...(upstreamCases() ?? [])]) {
    if (prepareCase(cache, oracleCase) !== null) continue;
    for (const frames of storeMessages(oracleCase, { generation: 'C' })) cache.applyStoreMessage(frames);
    const { tokens, requestTokenCount, mainEventBlockSize, hashBlockSize, name } = oracleCase;
    for (const tokenCount of lengthsOf(requestTokenCount, tokens.length, mainEventBlockSize!, hashBlockSize)) {
      const query = { ...queryOf(oracleCase), tokens, tokenCount };
      const explanation = cache.explain(query);
      assert.equal(explanation.hits, cache.lookup(query), `${name} at ${tokenCount}`);
      assert.equal(cache.explain(query), explanation); // a lookup in between changes nothing of it
      assert.ok(explanation.reasons.length > 0, `${name} at ${tokenCount}`);
      explained++;
      if (explanation.hits.blocks > 0) hits++;
    }
  }
  assert.ok(explained > 5000 && hits > 2000, `${explained} prompts explained, ${hits} with hits`);
});

test('explain moves no counter and no cell of the core', async () => {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 5);
  pool.send([removed(prompt.keys(pool.contract)[3])]);
  const before = pool.cache.stats();
  const census = pool.cache.census();
  for (const tokenCount of [1, 17, 64, 81]) pool.explain(prompt, tokenCount);
  pool.explain(pool.prompt(2, 3));
  assert.equal(pool.cache.stats(), before);
  assert.equal(pool.cache.census(), census);
  pool.hits(prompt);
  assert.is.not(pool.cache.stats().core!.lookups, before.core!.lookups);
});

/** A tiny core at its cap of edges: 64 one-block prompts, learned and stored in order, so that the first is the coldest. */
async function fullCore() {
  const pool = await CorePool.load('tiny');
  const prompts = Array.from({ length: 64 }, (_, name) => pool.prompt(name));
  for (const prompt of prompts) {
    pool.teach(prompt);
    pool.store(prompt);
  }
  assert.is(pool.core.stats().edges, 64);
  /** Which prompts' edges are gone. */
  const gone = () => prompts.flatMap((prompt, name) => (pool.explain(prompt).walked === 0 ? [name] : []));
  return { pool, prompts, gone };
}

test('explain does not warm what it walks: at the cap the same edge leaves as without it', async () => {
  const { pool, prompts, gone } = await fullCore();
  for (let i = 0; i < 3; i++) assert.is(pool.explain(prompts[0]!).hit, 1);
  pool.teach(pool.prompt(100));
  assert.equal(gone(), [0]);
});

test('a lookup does: at the cap the next colder edge leaves', async () => {
  const { pool, prompts, gone } = await fullCore();
  assert.is(pool.hits(prompts[0]!), 1);
  pool.teach(pool.prompt(100));
  assert.equal(gone(), [1]);
});

test('explain between a lookup and the compaction behind it does not disturb either', async () => {
  const pool = await Pool.open();
  const prompt = pool.prompt(1, 40);
  // Learned block by block, last first, so that the chain lies scattered in memory.
  for (let block = 39; block >= 0; block--) pool.teach(prompt, { first: block, end: block + 1 });
  pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  assert.is(pool.hits(prompt), 40);
  assert.is(pool.explain(prompt).hits.blocks, 40);
  pool.send([stored('foreign')]); // compaction happens here
  assert.ok(pool.cache.stats().core!.movedSlots > 0);
  assert.is(pool.explain(prompt).hits.blocks, 40);
  assert.is(pool.hits(prompt), 40);
});

test.run();
