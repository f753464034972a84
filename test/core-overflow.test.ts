// Both overflows, of conflicts and of the ambiguous set: edges and residency are dropped together, so that no wrong pairing survives; then
// everything can be learned again (design.md 5). And the caps: what leaves at each.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CorePool, prefixOf, stored, twinOf } from './support/messages.js';

const key = (digest: string) => `${prefixOf(0, 0)}@${digest}`;

test('conflicts: up to 1/16 of the cap stay; one more drops edges and residency together, and learning starts over', async () => {
  const pool = await CorePool.load('tiny');
  const good = pool.prompt(1, 2);
  pool.teach(good);
  pool.store(good);
  const contradict = (name: number) => {
    const prompt = pool.prompt(name);
    pool.teach(prompt);
    // The same tokens, another engine hash.
    pool.core.hashTokens(prompt.tokens, prompt.blockSize, { low: 1337, high: 0 });
    pool.core.learn({ parent: null, lows: BigUint64Array.of(BigInt(name)), digests: null, salted: false });
  };
  for (let name = 2; name <= 5; name++) contradict(name);
  assert.is(pool.core.stats().conflicted, 4);
  assert.is(pool.hits(good), 2);
  contradict(6);
  const { edges, conflicted, digests, conflictDrops } = pool.core.stats();
  assert.equal(
    { edges, conflicted, digests, conflictDrops },
    { edges: 0, conflicted: 0, digests: 0, conflictDrops: 1 },
  );
  pool.teach(good);
  assert.is(pool.hits(good), 0, 'edges alone credit nothing');
  pool.store(good);
  assert.is(pool.hits(good), 2);
});

test('a conflicted edge leads nowhere, is never evicted, and is not learned again', async () => {
  const pool = await CorePool.load('tiny');
  const prompt = pool.prompt(1, 2);
  pool.teach(prompt);
  pool.store(prompt);
  pool.core.hashTokens(prompt.tokens, prompt.blockSize, { low: 1337, high: 0 });
  pool.core.learn({ parent: null, lows: BigUint64Array.of(7n), digests: null, salted: false });
  assert.is(pool.explain(prompt).stopped, 'conflict');
  for (let name = 2; name < 140; name++) pool.teach(pool.prompt(name));
  assert.is(pool.core.stats().conflicted, 1);
  assert.is(pool.teach(prompt), 0);
  assert.is(pool.hits(prompt), 0);
});

test('ambiguous set: when full, edges, residency and the set are dropped together; the newcomer is kept', async () => {
  const pool = await CorePool.load('tiny');
  const prompts = Array.from({ length: 10 }, (_, i) => pool.prompt(i + 1));
  for (const prompt of prompts) {
    pool.teach(prompt);
    pool.store(prompt);
  }
  for (const prompt of prompts.slice(0, 8)) pool.send([stored(key(twinOf(prompt.digest(0))))]);
  assert.is(pool.core.stats().ambiguous, 8);
  assert.is(pool.hits(prompts[8]!), 1);
  pool.send([stored(key(twinOf(prompts[8]!.digest(0))))]);
  const { edges, digests, ambiguous, ambiguityDrops } = pool.core.stats();
  assert.equal(
    { edges, digests, ambiguous, ambiguityDrops },
    { edges: 0, digests: 0, ambiguous: 1, ambiguityDrops: 1 },
  );
  for (const prompt of [prompts[8]!, prompts[9]!]) {
    pool.teach(prompt);
    pool.store(prompt);
  }
  assert.is(pool.hits(prompts[8]!), 0, 'the ninth is the one that is known to be ambiguous now');
  assert.is(pool.hits(prompts[9]!), 1);
});

test('edge cap: the coldest leaves first, leaves before their parents within what was touched together', async () => {
  const pool = await CorePool.load('tiny');
  const long = pool.prompt(1, 4);
  pool.teach(long);
  for (let name = 2; name <= 61; name++) pool.teach(pool.prompt(name));
  assert.is(pool.core.stats().edges, 64);
  pool.teach(pool.prompt(100));
  assert.is(pool.explain(long).walked, 3, 'its leaf was the coldest');
  pool.hits(long); // a lookup touches what it walked
  for (let name = 101; name <= 161; name++) pool.teach(pool.prompt(name));
  assert.is(pool.explain(long).walked, 3);
  pool.teach(pool.prompt(162));
  assert.is(pool.explain(long).walked, 2);
});

test('an event longer than the cap teaches its beginning and evicts nothing of its own', async () => {
  const pool = await CorePool.load('tiny');
  const long = pool.prompt(1, 80);
  assert.is(pool.teach(long), 64);
  assert.is(pool.core.stats().fullEvents, 1);
  assert.is(pool.explain(long).walked, 64);
});

test('digest cap: those without an edge go first, oldest event first, each with all its objects', async () => {
  const pool = await CorePool.load('tiny', { groups: [{ ranks: 2 }] });
  const learned = pool.prompt(1);
  pool.teach(learned);
  pool.store(learned);
  for (let name = 2; name <= 64; name++) pool.store(pool.prompt(name));
  assert.equal([pool.core.stats().digests, pool.core.stats().members], [64, 128]);
  pool.store(pool.prompt(2)); // an event of it: now the newest
  pool.store(pool.prompt(65));
  pool.teach(pool.prompt(3));
  assert.is(pool.hits(pool.prompt(3)), 0, 'the oldest without an edge has left');
  pool.teach(pool.prompt(2));
  assert.is(pool.hits(pool.prompt(2)), 1);
  assert.is(pool.hits(learned), 1);
  assert.equal([pool.core.stats().digests, pool.core.stats().members], [64, 128]);
});

test('wide builds: a digest of more objects than the membership cap is refused beyond it, and never complete', async () => {
  const pool = await CorePool.load('tiny-wide', { groups: [{ ranks: 300 }] });
  const prompt = pool.prompt(1);
  pool.teach(prompt);
  pool.store(prompt);
  const { members, refusedObjects } = pool.core.stats();
  assert.equal({ members, refusedObjects }, { members: 256, refusedObjects: 44 });
  assert.is(pool.hits(prompt), 0);
  assert.is(pool.explain(prompt).blocked[0]!.missing.length, 44);
});

test('wide builds at the membership cap: at most 256 cold edges leave for one object, then it is refused; the next finds room', async () => {
  const pool = await CorePool.load('wide', { groups: [{ ranks: 1024 }] });
  const cold = Array.from({ length: 300 }, (_, i) => pool.prompt(i + 1));
  for (const prompt of cold) pool.teach(prompt);
  const hot = Array.from({ length: 512 }, (_, i) => pool.prompt(1000 + i));
  for (const prompt of hot) {
    pool.teach(prompt);
    pool.store(prompt);
  }
  assert.is(pool.core.stats().members, 524_288);
  const late = stored(key(pool.prompt(5000).digest(0)));
  pool.send([late]);
  let { edgeEvictions, refusedObjects, members, digests } = pool.core.stats();
  assert.equal([edgeEvictions, refusedObjects, members, digests], [256, 1, 524_288, 512]);
  pool.send([late]);
  // The other 44 cold edges, then the coldest edge that has a digest, with its 1,024 objects.
  ({ edgeEvictions, refusedObjects, members, digests } = pool.core.stats());
  assert.equal([edgeEvictions, refusedObjects, members, digests], [301, 1, 524_288 - 1024 + 1, 512]);
  assert.is(pool.hits(hot[0]!), 0);
  assert.is(pool.hits(hot[1]!), 1);
});

test.run();
