// The master's key list from its bytes: every line judged as one key, however the network cuts it, in bounded memory and in slices
// (design.md 6, spec/mooncake-events.md 6 and 8).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type KeyList, LINE_BYTES, LISTED_DIGESTS } from '../src/cache/key-list.js';
import { KeyPrefixes } from '../src/cache/key-prefixes.js';
import { type DigestRecords, MASK, PAGE, RECORD_WORDS } from '../src/core/digest-records.js';
import { chunked, keyListFor, roomFor } from './support/key-lists.js';
import { CorePool, contractOf, Pool, prefixOf, SOURCE } from './support/messages.js';
import { Random } from './support/random.js';
import { RouterPool } from './support/router-pool.js';

const QUIET = { s0: 0, firstSequence: null };
const PREFIX = prefixOf(0, 0);
const DIGEST = '0123456789abcdef'.repeat(4);
const KEY = `${PREFIX}@${DIGEST}`;
const bytesOf = (text: string) => new TextEncoder().encode(text);

/** A list for a contract of one prefix, and room for 64 digests. */
async function smallList(): Promise<KeyList> {
  return keyListFor(await CorePool.load('tiny'));
}

/** Objects, foreign and malformed keys. */
function counts(list: KeyList): [objects: number, foreign: number, malformed: number] {
  const { objects } = list.prepare();
  return [objects, list.foreign, list.malformed];
}

// ---- one key ----

const judged: readonly [key: string, verdict: 'object' | 'foreign' | 'malformed'][] = [
  [KEY, 'object'],
  ['', 'foreign'],
  ['@', 'foreign'],
  ['12345', 'foreign'],
  [DIGEST, 'foreign'],
  [`@${DIGEST}`, 'foreign'],
  [`other@${DIGEST}`, 'foreign'],
  [`${prefixOf(1, 0)}@${DIGEST}`, 'foreign'],
  [`${PREFIX} @${DIGEST}`, 'foreign'],
  [`${PREFIX.slice(1)}@${DIGEST}`, 'foreign'],
  [`pool@${KEY}`, 'foreign'],
  [`${KEY}@0`, 'foreign'], // the layer behind a digest: what stands before the last @ is no prefix
  [`${KEY}@${DIGEST}`, 'foreign'],
  [PREFIX, 'foreign'], // the bare prefix: what stands before its last @ is no prefix
  [`${PREFIX}@`, 'malformed'],
  [`${PREFIX}@${DIGEST.slice(1)}`, 'malformed'],
  [`${PREFIX}@${DIGEST}0`, 'malformed'],
  [`${PREFIX}@${DIGEST.toUpperCase()}`, 'malformed'],
  [`${PREFIX}@g${DIGEST.slice(1)}`, 'malformed'],
  [`${PREFIX}@${DIGEST.slice(1)}G`, 'malformed'],
  [`${PREFIX}@${DIGEST.slice(1)}é`, 'malformed'],
  [`${PREFIX}@${' '.repeat(64)}`, 'malformed'],
  [`${PREFIX}@${'0'.repeat(63)}/`, 'malformed'],
  [`${PREFIX}@${'0'.repeat(63)}:`, 'malformed'],
  [`${PREFIX}@${'`'.repeat(64)}`, 'malformed'],
  [`${PREFIX}@${'0'.repeat(63)}\0`, 'malformed'],
];
for (const [key, verdict] of judged) {
  test(`key ${JSON.stringify(key)}: ${verdict}, as text and as a line`, async () => {
    const expected = ['object', 'foreign', 'malformed'].map((name) => (name === verdict ? 1 : 0));
    const text = await smallList();
    text.addKey(key);
    assert.equal(counts(text), expected);
    for (const ending of ['\n', '\r\n']) {
      const line = await smallList();
      line.add(bytesOf(key + ending));
      assert.equal(counts(line), expected);
    }
  });
}

test('every single wrong character of a digest is found', async () => {
  for (let at = 0; at < 64; at++) {
    const list = await smallList();
    for (let code = 0; code < 128; code++)
      list.addKey(`${PREFIX}@${DIGEST.slice(0, at)}${String.fromCharCode(code)}${DIGEST.slice(at + 1)}`);
    // Of all the others an @ makes another prefix, the rest are malformed.
    assert.equal(counts(list), [16, 1, 111]);
  }
});

test('a digest arrives as the words that the core compares', async () => {
  const list = await smallList();
  list.addKey(KEY);
  const { words } = list.prepare();
  const view = new DataView(words.buffer, words.byteOffset);
  for (let at = 0; at < 24; at++) assert.is(view.getUint8(at), Number.parseInt(DIGEST.slice(at * 2, at * 2 + 2), 16));
  assert.is(view.getBigUint64(24, true), BigInt(`0x${DIGEST.slice(48)}`));
  assert.equal([...words.subarray(MASK, RECORD_WORDS)], [1, 0, 0]);
});

// ---- lines ----

test('lines may be cut anywhere, and the last one needs no end', async () => {
  const text = `${KEY}\r\nforeign\n\n${PREFIX}@bad\n${PREFIX}@${'f'.repeat(64)}`;
  for (const [ending, foreign] of [
    ['', 2],
    ['\n', 2],
    ['\r\n', 2],
    ['\n\n', 3],
  ] as const) {
    const bytes = bytesOf(text + ending);
    for (let first = 0; first <= bytes.length; first++) {
      const list = await smallList();
      list.add(bytes.slice(0, first));
      list.add(new Uint8Array(0));
      list.add(bytes.slice(first));
      assert.equal(counts(list), [2, foreign, 1], `cut at ${first}`);
    }
    const bytewise = await smallList();
    for (const byte of bytes) bytewise.add(Uint8Array.of(byte));
    assert.equal(counts(bytewise), [2, foreign, 1]);
  }
});

test('an empty list says that nothing is stored', async () => {
  const list = await smallList();
  list.add(new Uint8Array(0));
  assert.equal(counts(list), [0, 0, 0]);
  assert.is(list.prepare().digests, 0);
});

test('a chunk may be a part of a larger buffer, and is not kept', async () => {
  const list = await smallList();
  const buffer = bytesOf(`noise ${KEY}\n${KEY.slice(0, 30)}`);
  list.add(buffer.subarray(6));
  buffer.fill(0);
  list.add(bytesOf(KEY.slice(30)));
  assert.equal(counts(list), [1, 0, 0]);
});

test('a line of more than 16 KiB is foreign, once, and costs no memory; what follows counts', async () => {
  assert.is(LINE_BYTES, 16_384);
  const malformed = `${PREFIX}@`.padEnd(LINE_BYTES, '0');
  for (const size of [1, 1000, LINE_BYTES, LINE_BYTES + 1, 1 << 20]) {
    const random = new Random(size);
    const list = await smallList();
    const bytes = bytesOf(`${malformed}\n${malformed}0\n${KEY}\n${'x'.repeat(100_000)}\n${KEY}\n${'@'.repeat(50_000)}`);
    for (const chunk of chunked(bytes, random, size)) list.add(chunk);
    assert.equal(counts(list), [1, 3, 1]);
    const text = await smallList();
    for (const key of [malformed, `${malformed}0`, KEY]) text.addKey(key);
    assert.equal(counts(text), [1, 1, 1]);
  }
});

test('nothing counts any more after the end', async () => {
  const list = await smallList();
  list.add(bytesOf(`${KEY}\n`));
  assert.not(list.prepareSome());
  list.end();
  list.end();
  list.add(bytesOf('foreign\n'));
  list.addKey('foreign');
  assert.equal(counts(list), [1, 0, 0]);
});

// ---- grouping ----

/** What the records say: digest (words in hex) and prefix ids, in their order. */
function objectsIn({ words, count }: DigestRecords): string[] {
  const objects: string[] = [];
  for (let at = 0; at < count * RECORD_WORDS; at += RECORD_WORDS) {
    const digest = [...words.subarray(at, at + MASK)].map((word) => word.toString(16)).join(':');
    for (let bit = 0; bit < 64; bit++)
      if ((words[at + MASK + (bit >> 5)]! >>> (bit & 31)) & 1)
        objects.push(`${digest} ${words[at + PAGE]! * 64 + bit}`);
  }
  return objects;
}

/** Texts of digests that sorting may find hard. */
const hardDigests: Readonly<Record<string, (i: number) => string>> = {
  'of one front': (i) => `${'a'.repeat(56)}${((i * 2_654_435_761) >>> 0).toString(16).padStart(8, '0')}`,
  'of one back': (i) => `${i.toString(16).padStart(8, '0')}${'a'.repeat(56)}`,
  'of one back and one front': (i) => `${'0'.repeat(24)}${i.toString(16).padStart(8, '0')}${'0'.repeat(32)}`,
  rising: (i) => i.toString(16).padStart(64, '0'),
  falling: (i) => (99_999 - i).toString(16).padStart(64, '0'),
  'all the same': () => DIGEST,
};
for (const [what, digestOf] of Object.entries(hardDigests)) {
  test(`digests ${what}: each object once, a digest's together, in slices`, async () => {
    const pool = { contract: contractOf({ groups: [{ ranks: 2 }] }), core: roomFor(262_144) };
    const list = keyListFor(pool);
    const digests = Array.from({ length: 20_000 }, (_, i) => digestOf(i));
    const keys = new Random(1).shuffle(
      digests.flatMap((digest, i) => [0, i % 3].map((rank) => `${prefixOf(0, rank)}@${digest}`)),
    );
    for (const chunk of chunked(bytesOf(`${keys.join('\n')}\n`), new Random(2), 65_536)) list.add(chunk);
    list.end();
    let slices = 0;
    while (!list.prepareSome(1000)) slices++;
    const expected = new Set(keys.filter((key) => !key.startsWith(prefixOf(0, 2))));
    const records = list.prepare();
    assert.is(records.objects, expected.size);
    assert.is(records.digests, new Set(digests).size);
    const objects = objectsIn(records);
    assert.is(new Set(objects).size, objects.length);
    assert.is(objects.length, expected.size);
    const seen = objects.map((object) => object.split(' ')[0]!);
    assert.is(seen.filter((digest, i) => digest !== seen[i - 1]).length, records.digests);
    assert.is(list.foreign, keys.length - keys.filter((key) => !key.startsWith(prefixOf(0, 2))).length);
    if (records.count > 10_000) assert.ok(slices > 10, `${slices} slices`);
    else assert.ok(slices < 10, `${slices} slices`);
  });
}

test('a slice ends after its budget, whatever is left', () => {
  const list = keyListFor({ contract: contractOf(), core: roomFor(262_144) });
  const random = new Random(3);
  for (let i = 0; i < 50_000; i++) list.addKey(`${PREFIX}@${random.hex(32)}`);
  list.end();
  let slices = 1;
  while (!list.prepareSome(100)) slices++;
  // Three merges of all at least, and a count.
  assert.ok(slices >= (4 * 50_000) / 100, `${slices} slices of 100 records`);
  assert.is(list.prepare().digests, 50_000);
});

test('above 4 digests for each one that the core has room for, the list is void and gives its memory back', async () => {
  assert.is(LISTED_DIGESTS, 4);
  const random = new Random(4);
  const fill = (keys: number) => {
    const list = keyListFor({ contract: contractOf({ groups: [{ ranks: 2 }] }), core: roomFor(4096) });
    for (let i = 0; i < keys; i++) list.addKey(`${PREFIX}@${random.hex(32)}`);
    list.end();
    return list;
  };
  const full = fill(4096 * 4);
  assert.is(full.voided, null);
  assert.is(full.prepare().digests, 4096 * 4);
  const overfull = fill(4096 * 5); // looked at now and then: a list may be a block of objects longer
  assert.is(overfull.voided, 'too-many-keys');
  assert.ok(overfull.prepareSome());
  assert.is(overfull.prepare().count, 0);
});

test('keys of one digest do not count towards that bound, however many prefixes and however often', async () => {
  const ranks = 60;
  const list = keyListFor({ contract: contractOf({ groups: [{ ranks }] }), core: roomFor(1024) });
  const random = new Random(5);
  const digests = Array.from({ length: 1024 }, () => random.hex(32));
  const keys = random.shuffle(
    digests.flatMap((digest) => Array.from({ length: ranks }, (_, rank) => `${prefixOf(0, rank)}@${digest}`)),
  );
  for (const key of [...keys, ...keys]) list.addKey(key);
  assert.is(list.voided, null);
  const { count, digests: distinct, objects } = list.prepare();
  assert.equal([count, distinct, objects], [1024, 1024, 1024 * ranks]);
});

// ---- prefixes ----

test('prefixes: each is found by its bytes and nothing else is', () => {
  const random = new Random(6);
  const drawn = Array.from({ length: 1018 }, () => random.hex(1 + random.int(40)).slice(random.int(2)));
  const texts = [...new Set([...drawn, '模型@tp_rank:0', 'a', 'ab', 'abc', 'abcd', 'abcde'])];
  const prefixes = new KeyPrefixes(texts);
  const find = (text: string) => {
    const bytes = bytesOf(`##${text}##`);
    return prefixes.find(new DataView(bytes.buffer), 2, bytes.length - 4);
  };
  for (const [id, text] of texts.entries()) assert.is(find(text), id);
  const known = new Set(texts);
  for (let i = 0; i < 10_000; i++) {
    const near = random.pick(texts);
    const other = random.pick([near.slice(1), near.slice(0, -1), `${near}0`, `0${near}`, random.hex(8), '']);
    assert.is(find(other) >= 0, known.has(other));
  }
  assert.is(new KeyPrefixes([]).find(new DataView(new ArrayBuffer(8)), 0, 8), -1);
});

// ---- contracts ----

test('a list counts under the contract that it was begun for only', async () => {
  const pool = await Pool.open();
  const list = pool.cache.beginKeyList();
  pool.cache.updateContract(null);
  pool.cache.updateContract(pool.contract, [SOURCE]); // the same again, but what was learned has gone
  const token = pool.cache.beginReconcile();
  list.addKey(KEY);
  assert.equal(pool.cache.reconcile(token, list, QUIET), { accepted: false, reason: 'contract-change' });
  assert.is(pool.objects, 0);
  const next = pool.cache.beginKeyList();
  next.add(bytesOf(KEY));
  const result = pool.cache.reconcile(pool.cache.beginReconcile(), next, QUIET);
  assert.equal(result, { accepted: true, placed: 1, leftOut: 0, foreign: 0, malformed: 0 });
});

test('a list of one cache does not count in another', async () => {
  const [one, other] = [await Pool.open(), await Pool.open()];
  const list = one.cache.beginKeyList();
  list.addKey(KEY);
  assert.equal(other.cache.reconcile(other.cache.beginReconcile(), list, QUIET), {
    accepted: false,
    reason: 'contract-change',
  });
});

test('other sources under the same contract do not touch a list', async () => {
  const pool = await Pool.open();
  const list = pool.cache.beginKeyList();
  pool.cache.updateContract(contractOf(), []);
  list.addKey(KEY);
  assert.ok(pool.cache.reconcile(pool.cache.beginReconcile(), list, QUIET).accepted);
});

test('a list begun without a contract is void', async () => {
  const pool = await Pool.open();
  pool.cache.updateContract(null);
  const list = pool.cache.beginKeyList();
  list.add(bytesOf(`${KEY}\n`));
  assert.is(list.voided, 'no-contract');
  pool.cache.updateContract(pool.contract, [SOURCE]);
  assert.equal(pool.cache.reconcile(pool.cache.beginReconcile(), list, QUIET), {
    accepted: false,
    reason: 'no-contract',
  });
});

test('a list that its owner voids, say for a body cut short, is refused for that reason; what was resident stays', async () => {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 2);
  const list = pool.cache.beginKeyList();
  list.add(bytesOf(`${KEY}\n`));
  list.voidFor('truncated');
  list.voidFor('later');
  const token = pool.cache.beginReconcile();
  assert.equal(pool.cache.reconcile(token, list, { s0: 1, firstSequence: null }), {
    accepted: false,
    reason: 'truncated',
  });
  assert.is(pool.hits(prompt), 2);
});

test('making a list ready changes nothing that is resident, and gives no credit', async () => {
  const pool = await Pool.open();
  const [held, other] = [pool.filled(1, 40), pool.prompt(2, 40)];
  pool.teach(other);
  const before = [pool.cache.census(), pool.cache.stats().core];
  const list = pool.cache.beginKeyList();
  list.add(bytesOf(other.keys(pool.contract).join('\n')));
  list.end();
  while (!list.prepareSome(64));
  assert.equal([pool.cache.census(), pool.cache.stats().core], before);
  assert.equal([pool.hits(held), pool.hits(other)], [40, 0]);
  const token = pool.cache.beginReconcile();
  assert.ok(pool.cache.reconcile(token, list, { s0: 1, firstSequence: null }).accepted);
  assert.equal([pool.hits(held), pool.hits(other)], [0, 40]);
});

test('a router hands out lists; without a shared cache they are void', async () => {
  const shared = await RouterPool.shared(1);
  const prompt = shared.prompt(1, 10);
  shared.announce(0, prompt);
  shared.evict(0, prompt);
  const list = shared.router.beginKeyList();
  list.add(bytesOf(prompt.keys(shared.contract).join('\n')));
  assert.ok(shared.router.reconcile(shared.router.beginReconcile(), list, QUIET).accepted);
  assert.is(shared.route(prompt).blocks.shared, 10);

  const { router } = await RouterPool.open();
  const none = router.beginKeyList();
  none.add(bytesOf(KEY));
  none.end();
  assert.is(none.voided, 'no-cache');
  assert.ok(none.prepareSome());
  assert.equal(router.reconcile(router.beginReconcile(), none, QUIET), { accepted: false, reason: 'no-cache' });
});

test.run();
