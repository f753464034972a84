// While contract changes are unread (`isPending`), a cache gives no hints and learns nothing; store messages keep the count of the
// stream and are dropped, at the price of one clear (design.md 5, spec/kv-events.md 5.4).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { StoreMessageResult } from '../src/cache/types.js';
import { cleared, Pool, type Prompt, stored } from './support/messages.js';

/** A filled pool and the switch that makes its contract pending. */
async function filledPool(): Promise<{ pool: Pool; prompt: Prompt; pending: (on: boolean) => void }> {
  let pending = false;
  const pool = await Pool.open({}, { isPending: () => pending });
  const prompt = pool.filled(1, 3);
  assert.is(pool.hits(prompt), 3);
  return {
    pool,
    prompt,
    pending: (on) => {
      pending = on;
    },
  };
}

const fatesOf = (results: StoreMessageResult[]) => results.map(({ fate }) => fate);

test('pending: no hits, and the reason says so', async () => {
  const { pool, prompt, pending } = await filledPool();
  pending(true);
  assert.is(pool.hits(prompt), 0);
  const { hits, reasons } = pool.explain(prompt);
  assert.equal([hits.blocks, reasons.map(({ code }) => code)], [0, ['pending']]);
});

test('pending: learning is skipped, and is not made up for', async () => {
  const { pool, pending } = await filledPool();
  const other = pool.prompt(2, 2);
  pending(true);
  assert.equal(pool.teach(other), { blocks: 0, refused: 'pending' });
  pending(false);
  pool.send(other.keys(pool.contract).map((key) => stored(key)));
  assert.is(pool.hits(other), 0);
  assert.is(pool.explain(other).reasons[0]!.code, 'not-learned');
  assert.is(pool.cache.stats().refusals['pending'], 1);
});

test('pending: a message records its sequence and is dropped, so that the next one is no gap', async () => {
  const { pool, prompt, pending } = await filledPool();
  const refill = prompt.keys(pool.contract).map((key) => stored(key));
  pending(true);
  const dropped = pool.send(refill);
  assert.equal([dropped.fate, dropped.sequence, dropped.objects], ['pending', pool.sequence, 0]);
  pending(false);
  assert.equal([pool.hits(prompt), pool.objects], [0, 0]); // neither what was there nor what was sent
  assert.is(pool.send(refill).fate, 'applied');
  assert.is(pool.hits(prompt), 3);
  assert.is(pool.clears('gap'), 0);
});

test('pending: however many messages come, residency is cleared once', async () => {
  const { pool, pending } = await filledPool();
  const { clears } = pool.cache.stats().core!;
  pending(true);
  const bad = Uint8Array.of(0xc1);
  const results = [pool.send([]), pool.send([cleared()]), pool.send([null]), pool.sendPayload(bad), pool.send([])];
  assert.equal(fatesOf(results), Array(5).fill('pending')); // nothing is read, so nothing can be malformed
  assert.equal([pool.clears('pending'), pool.cache.stats().core!.clears - clears], [1, 1]);
});

test('pending: a gap is not seen as one, and a repeated number stays a duplicate', async () => {
  const { pool, pending } = await filledPool();
  pending(true);
  pool.sequence += 10n;
  assert.is(pool.send([]).fate, 'pending');
  pool.sequence--;
  assert.is(pool.send([]).fate, 'duplicate');
  pending(false);
  assert.is(pool.send([]).fate, 'applied');
  assert.is(pool.clears('gap'), 0);
});

test('pending: the next time clears again, whether events or a reconcile filled residency in between', async () => {
  const { pool, prompt, pending } = await filledPool();
  const keys = prompt.keys(pool.contract);
  const clearByPending = () => {
    pending(true);
    pool.send([]);
    pending(false);
    assert.equal([pool.hits(prompt), pool.objects], [0, 0]);
  };
  clearByPending();
  pool.send(keys.map((key) => stored(key)));
  assert.is(pool.hits(prompt), 3);
  clearByPending();
  const token = pool.cache.beginReconcile();
  assert.ok(pool.cache.reconcile(token, keys, { s0: pool.sequence, firstSequence: null }).accepted);
  assert.is(pool.hits(prompt), 3);
  clearByPending();
  assert.is(pool.clears('pending'), 3);
});

test('pending: a message that comes meanwhile voids an open reconcile', async () => {
  const { pool, prompt, pending } = await filledPool();
  const token = pool.cache.beginReconcile();
  pending(true);
  pool.send([]);
  pending(false);
  const result = pool.cache.reconcile(token, prompt.keys(pool.contract), { s0: 9, firstSequence: null });
  assert.equal(result, { accepted: false, reason: 'pending' });
  assert.is(pool.objects, 0);
});

test('pending: so does one that comes after the clear, to a reconcile begun while pending', async () => {
  const { pool, prompt, pending } = await filledPool();
  pending(true);
  pool.send([]);
  const token = pool.cache.beginReconcile();
  assert.is(token.voided, null);
  pool.send([]); // dropped, though the list may be older than it
  pending(false);
  const result = pool.cache.reconcile(token, prompt.keys(pool.contract), { s0: 9, firstSequence: null });
  assert.equal([result, pool.clears('pending')], [{ accepted: false, reason: 'pending' }, 1]);
});

test('pending: a reconcile is refused while it lasts, and its token is spent', async () => {
  const { pool, prompt, pending } = await filledPool();
  const token = pool.cache.beginReconcile();
  const watermark = { s0: pool.sequence, firstSequence: null };
  pending(true);
  assert.equal(pool.cache.reconcile(token, prompt.keys(pool.contract), watermark), {
    accepted: false,
    reason: 'pending',
  });
  pending(false);
  assert.not(pool.cache.reconcile(token, prompt.keys(pool.contract), watermark).accepted);
});

test('pending: decoded objects are dropped likewise: what they would have removed is not credited afterwards', async () => {
  const { pool, prompt, pending } = await filledPool();
  pending(true);
  pool.sendDecoded('removed', prompt, 1);
  pool.sendDecoded('stored', prompt);
  pending(false);
  assert.equal([pool.hits(prompt), pool.objects, pool.clears('pending')], [0, 0, 1]);
  pool.sendDecoded('stored', prompt);
  assert.is(pool.hits(prompt), 3);
  pending(true);
  pool.sendDecoded('removed', prompt, 2);
  pool.send([]);
  pending(false);
  assert.equal([pool.hits(prompt), pool.clears('pending')], [0, 2], 'the next time clears again, and once');
});

test('pending: decoded objects that come meanwhile void an open reconcile', async () => {
  const { pool, prompt, pending } = await filledPool();
  const token = pool.cache.beginReconcile();
  pending(true);
  pool.sendDecoded('removed', prompt);
  pending(false);
  const result = pool.cache.reconcile(token, prompt.keys(pool.contract), { s0: 1, firstSequence: null });
  assert.equal(result, { accepted: false, reason: 'pending' });
  assert.is(pool.objects, 0);
});

test('pending: where it can’t be told, changes are unread; each time is counted', async () => {
  const fault = { on: false };
  const isPending = () => {
    if (fault.on) throw new Error('gone');
    return false;
  };
  const pool = await Pool.open({}, { isPending });
  const prompt = pool.filled(1, 3);
  fault.on = true;
  assert.is(pool.hits(prompt), 0);
  const [why] = pool.explain(prompt).reasons;
  assert.is(why!.code, 'pending');
  assert.match(why!.text, /isPending threw/);
  assert.equal(pool.teach(pool.prompt(2, 1)).refused, 'pending');
  assert.is(pool.send([]).fate, 'pending');
  assert.is(pool.cache.stats().pendingFaults, 4);
  fault.on = false;
  assert.equal([pool.hits(prompt), pool.explain(prompt).reasons[0]!.code], [0, 'residency-empty']);
});

test('pending is asked at every call', async () => {
  let asked = 0;
  const pool = await Pool.open({}, { isPending: () => ++asked < 0 });
  const prompt = pool.prompt(1, 1);
  const calls = [
    () => pool.teach(prompt),
    () => pool.send([]),
    () => pool.sendDecoded('stored', prompt),
    () => pool.hits(prompt),
    () => pool.explain(prompt),
    () => pool.cache.reconcile(pool.cache.beginReconcile(), [], { s0: 1, firstSequence: null }),
  ];
  for (const call of calls) {
    const before = asked;
    call();
    assert.ok(asked > before, String(call));
  }
});

test.run();
