// `stop`: the end of all hints (spec/kv-events.md 5.6 row 22). Nothing that is called afterwards throws or brings a hint back.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { contractOf, Pool, SOURCE, stored, storeMessage } from './support/messages.js';

test('a stopped cache has forgotten residency and answers every call with stopped', async () => {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 2);
  const token = pool.cache.beginReconcile();
  pool.cache.stop();
  assert.equal([pool.objects, pool.clears('stopped')], [0, 1]);
  assert.equal(pool.cache.lookup(prompt.query()), { blocks: 0, tokens: 0 });
  assert.equal(
    pool.explain(prompt).reasons.map(({ code }) => code),
    ['stopped'],
  );
  assert.equal(pool.teach(prompt), { blocks: 0, refused: 'stopped' });
  assert.equal(pool.cache.reconcile(token, prompt.keys(pool.contract), { s0: 1, firstSequence: null }), {
    accepted: false,
    reason: 'stopped',
  });
  for (const frames of [
    storeMessage(
      2,
      prompt.keys(pool.contract).map((key) => stored(key)),
    ),
    [],
  ]) {
    const result = pool.cache.applyStoreMessage(frames);
    assert.equal([result.fate, result.sequence, result.objects], ['stopped', null, 0]);
  }
});

test('neither a contract nor a new stream nor a reconcile brings a stopped cache back', async () => {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 2);
  pool.cache.stop();
  pool.cache.updateContract(contractOf({ model: 'other' }), [SOURCE]);
  pool.cache.updateContract(pool.contract, [SOURCE]);
  pool.cache.streamLost('reconnect');
  const token = pool.cache.beginReconcile();
  assert.not(pool.cache.reconcile(token, prompt.keys(pool.contract), { s0: 0, firstSequence: null }).accepted);
  pool.teach(prompt);
  pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  assert.equal([pool.hits(prompt), pool.objects], [0, 0]);
  assert.is(pool.explain(prompt).reasons[0]!.code, 'stopped');
});

test('stopping again, or before there is a contract, is harmless', async () => {
  const pool = await Pool.open();
  pool.cache.updateContract(null);
  pool.cache.stop();
  pool.cache.stop();
  assert.is(pool.explain(pool.prompt(1, 1)).reasons[0]!.code, 'stopped');
});

test.run();
