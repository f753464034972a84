// Two digests under one low64: neither is ever credited, also when the first one has long left the store (design.md 5).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CorePool, prefixOf, removed, stored, twinOf } from './support/messages.js';

const key = (digest: string) => `${prefixOf(0, 0)}@${digest}`;

test('a second digest makes the low64 ambiguous: its objects go, later ones are skipped, the edge completes nothing', async () => {
  const pool = await CorePool.load('tiny');
  const prompt = pool.prompt(1, 2);
  pool.teach(prompt);
  pool.store(prompt);
  assert.is(pool.hits(prompt), 2);
  pool.send([stored(key(twinOf(prompt.digest(1))))]);
  assert.is(pool.hits(prompt), 1);
  pool.send([stored(key(prompt.digest(1)))]);
  assert.is(pool.hits(prompt), 1);
  assert.is(pool.core.stats().skippedAmbiguous, 1);
  assert.is(pool.explain(prompt).blocked[0]!.ambiguous, true);
});

test('also after the first digest has left: the edge remembers whom it met', async () => {
  const pool = await CorePool.load('tiny');
  const prompt = pool.prompt(1);
  pool.teach(prompt);
  pool.store(prompt);
  pool.send([removed(key(prompt.digest(0)))]);
  assert.is(pool.core.stats().digests, 0);
  pool.send([stored(key(twinOf(prompt.digest(0))))]);
  assert.is(pool.hits(prompt), 0);
  assert.is(pool.core.stats().ambiguous, 1);
});

test('also after residency was cleared', async () => {
  const pool = await CorePool.load('tiny');
  const prompt = pool.prompt(1);
  pool.teach(prompt);
  pool.store(prompt);
  pool.core.clearResidency();
  pool.send([stored(key(twinOf(prompt.digest(0))))]);
  assert.is(pool.core.stats().ambiguous, 1);
  pool.core.clearResidency();
  pool.store(prompt);
  assert.is(pool.hits(prompt), 0, 'the set outlives a clear');
});

test('an event with whole digests knows its child at once: another digest under that low64 is never paired with it', async () => {
  const pool = await CorePool.load('tiny');
  const prompt = pool.prompt(1);
  pool.teach(prompt, { hashes: 'binary' });
  pool.send([stored(key(twinOf(prompt.digest(0))))]);
  assert.is(pool.hits(prompt), 0);
  assert.is(pool.core.stats().ambiguous, 1);
});

test('the digest first, then an event with another whole digest', async () => {
  const pool = await CorePool.load('tiny');
  const prompt = pool.prompt(1);
  pool.send([stored(key(twinOf(prompt.digest(0))))]);
  pool.teach(prompt, { hashes: 'binary' });
  assert.is(pool.core.stats().ambiguous, 1);
  pool.store(prompt);
  assert.is(pool.hits(prompt), 0);
});

test('an evicted digest does not free its low64 for another while the edge stands', async () => {
  const pool = await CorePool.load('tiny');
  const prompt = pool.prompt(1);
  pool.teach(prompt);
  pool.store(prompt);
  // 64 digests with edges fill the cap; the prompt's is the coldest of them and leaves for the 65th.
  for (let name = 2; name <= 64; name++) {
    const other = pool.prompt(name);
    pool.teach(other);
    pool.store(other);
  }
  pool.store(pool.prompt(65));
  assert.is(pool.core.stats().digestEvictions, 1);
  pool.send([stored(key(twinOf(prompt.digest(0))))]);
  assert.is(pool.core.stats().ambiguous, 1);
  assert.is(pool.hits(prompt), 0);
});

test('low64 zero can be ambiguous like any other', async () => {
  const pool = await CorePool.load('tiny');
  const zero = (head: string) => `${head.repeat(48)}${'0'.repeat(16)}`;
  pool.send([stored(key(zero('1'))), stored(key(zero('2')))]);
  assert.is(pool.core.stats().ambiguous, 1);
  pool.send([stored(key(zero('1')))]);
  assert.is(pool.core.stats().digests, 0);
});

test.run();
