// `streamLost`: residency goes, the sequence is forgotten, edges stay, the cause is kept for people (design.md 5 and 6).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { Pool, stored, storeMessage } from './support/messages.js';

test('a lost stream takes all residency and leaves every edge', async () => {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 3);
  pool.cache.streamLost('disconnect');
  const { edges, digests, members } = pool.cache.stats().core!;
  assert.equal([pool.hits(prompt), edges, digests, members], [0, 3, 0, 0]);
  pool.cache.applyStoreMessage(
    storeMessage(
      1,
      prompt.keys(pool.contract).map((key) => stored(key)),
    ),
  );
  assert.is(pool.hits(prompt), 3);
});

test('the first message after it has no predecessor: whatever its number, it is neither duplicate nor gap', async () => {
  const pool = await Pool.open();
  pool.filled(1, 1);
  for (const sequence of [pool.sequence, pool.sequence + 1n, 0n, 77n, 2n ** 64n - 1n]) {
    pool.cache.streamLost('reconnect');
    assert.is(pool.cache.applyStoreMessage(storeMessage(sequence, [])).fate, 'applied', String(sequence));
  }
  assert.is(pool.clears('gap'), 0);
});

test('the cause is counted, and explains the empty residency', async () => {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 1);
  pool.cache.streamLost('handshake');
  pool.cache.streamLost('unverified');
  assert.equal([pool.clears('handshake'), pool.clears('unverified')], [1, 1]);
  const why = pool.explain(prompt).reasons[0]!;
  assert.is(why.code, 'residency-empty');
  assert.match(why.text, 'unverified');
});

test('it voids an open reconcile, whose reason is the cause', async () => {
  const pool = await Pool.open();
  const token = pool.cache.beginReconcile();
  pool.cache.streamLost('disconnect');
  assert.is(token.voided, 'disconnect');
  const keys = pool.prompt(1, 1).keys(pool.contract);
  assert.equal(pool.cache.reconcile(token, keys, { s0: 0, firstSequence: null }), {
    accepted: false,
    reason: 'disconnect',
  });
  assert.is(pool.objects, 0);
});

test('it is harmless without a contract', async () => {
  const cache = await SharedCache.create();
  cache.streamLost('disconnect');
  assert.equal(cache.stats().clears, { disconnect: 1 });
});

test('causes are bounded: beyond 64 they count as other', async () => {
  const cache = await SharedCache.create();
  for (let i = 0; i < 200; i++) cache.streamLost(`cause ${i}`);
  const { clears } = cache.stats();
  assert.is(Object.keys(clears).length, 65);
  assert.is(clears['other'], 200 - 64);
  cache.streamLost('cause 3');
  assert.is(cache.stats().clears['cause 3'], 2);
});

test.run();
