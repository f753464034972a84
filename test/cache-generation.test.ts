// The generation fence: work that was begun under one contract and arrives under another changes nothing at all (design.md 3 and 5).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { cleared, contractOf, framesOf, Pool, SOURCE, stored, storeMessage } from './support/messages.js';

test('the generation counts contract changes, and nothing else', async () => {
  const cache = await SharedCache.create();
  const seen = [cache.generation];
  for (const contract of [contractOf(), contractOf(), contractOf({ model: 'other' }), null, null, contractOf()]) {
    cache.updateContract(contract, [SOURCE]);
    seen.push(cache.generation);
  }
  assert.equal(seen, [0, 1, 1, 2, 3, 3, 4]);
  cache.applyStoreMessage([]);
  cache.streamLost('disconnect');
  assert.is(cache.generation, 4);
});

test('a message of another generation changes nothing: no clear, no sequence, no object', async () => {
  const pool = await Pool.open({ model: 'before' });
  const old = pool.cache.generation;
  const contract = contractOf();
  pool.cache.updateContract(contract, [SOURCE]);
  const prompt = pool.prompt(1, 3);
  const keys = prompt.keys(contract);
  pool.teach(prompt);
  pool.send(keys.slice(0, 2).map((key) => stored(key)));
  const state = () => {
    const { core, clears } = pool.cache.stats();
    return { core, clears, census: pool.cache.census() };
  };
  const before = state();
  const next = pool.sequence + 1n;
  const stale = [
    storeMessage(next, [stored(keys[2])]),
    storeMessage(next, [cleared()]),
    storeMessage(next, [stored(null)]), //    malformed
    framesOf(next, Uint8Array.of(0xc1)), //   unreadable
    storeMessage(next + 10n, []), //          a gap
    storeMessage(pool.sequence, []), //       a duplicate
    framesOf(next, new Uint8Array(2 ** 20)), // too large
    [], //                                    no message
  ];
  for (const frames of stale) {
    for (const generation of [old, old - 1, pool.cache.generation + 1]) {
      const result = pool.cache.applyStoreMessage(frames, { generation });
      assert.equal([result.fate, result.sequence, result.objects], ['stale-generation', null, 0]);
    }
  }
  assert.equal(state(), before);
  assert.is(pool.cache.stats().messages['stale-generation'], stale.length * 3);
  assert.is(pool.hits(prompt), 2);
  assert.is(pool.send([stored(keys[2])]).fate, 'applied'); // the sequence did not move either
  assert.is(pool.hits(prompt), 3);
});

test('a message of the generation in force applies, stamped or not', async () => {
  const pool = await Pool.open();
  const { generation } = pool.cache;
  assert.is(pool.cache.applyStoreMessage(storeMessage(1, []), { generation }).fate, 'applied');
  assert.is(pool.cache.applyStoreMessage(storeMessage(2, [])).fate, 'applied');
});

test('a message of an older generation does not enter a reconcile opened since', async () => {
  const pool = await Pool.open({ model: 'before' });
  const old = pool.cache.generation;
  pool.cache.updateContract(contractOf(), [SOURCE]);
  const token = pool.cache.beginReconcile();
  pool.cache.applyStoreMessage(storeMessage(50, [cleared()]), { generation: old });
  assert.equal([token.firstSequence, token.events, token.voided], [null, 0, null]);
  assert.ok(pool.cache.reconcile(token, [], { s0: 0, firstSequence: null }).accepted);
});

test('a reconcile carries its generation: one begun under another contract is refused', async () => {
  const pool = await Pool.open();
  const token = pool.cache.beginReconcile();
  pool.cache.updateContract(null);
  pool.cache.updateContract(pool.contract, [SOURCE]);
  const keys = pool.prompt(1, 1).keys(pool.contract);
  assert.equal(pool.cache.reconcile(token, keys, { s0: 0, firstSequence: null }), {
    accepted: false,
    reason: 'contract-change',
  });
  assert.is(pool.objects, 0);
});

test.run();
