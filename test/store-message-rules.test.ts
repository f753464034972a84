// What each store message does to residency: the rows of spec/kv-events.md 5.6, numbered the same. Where design.md 5 decides otherwise,
// it wins, and the test's name says so. Then the order in which an event is checked, types that disagree, and removals of the wire
// generations (assembly/README.md "Store messages").
import { readFileSync } from 'node:fs';
import { Encoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { StoreMessageResult } from '../src/cache/types.js';
import { MAX_STORE_EVENTS, MAX_STORE_MESSAGE_BYTES } from '../src/wire/mooncake.js';
import {
  CorePool,
  cleared,
  contractOf,
  framesOf,
  Pool,
  type Prompt,
  prefixOf,
  removed,
  SOURCE,
  type StoreEvent,
  stored,
  storeMessage,
  storePayload,
  twinOf,
  without,
} from './support/messages.js';

/** One full-attention group of two ranks: a block is complete when both parts are stored. */
const TWO_RANKS = { groups: [{ ranks: 2 }] };
const BLOCKS = 3;
const OBJECTS = BLOCKS * 2;
const DIGEST = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const binary = (text: string) => new TextEncoder().encode(text);

/** A pool whose worker announced a prompt of three blocks that the store holds whole. */
async function filledPool(): Promise<{ pool: Pool; prompt: Prompt }> {
  const pool = await Pool.open(TWO_RANKS);
  const prompt = pool.filled(1, BLOCKS);
  assert.equal([pool.hits(prompt), pool.objects], [BLOCKS, OBJECTS]);
  return { pool, prompt };
}

/** Residency is gone, edges are not: what is stored again is credited again, by a message that follows without a gap. */
function assertClearedOnly(pool: Pool, prompt: Prompt, label: string): void {
  assert.equal([pool.hits(prompt), pool.objects], [0, 0], label);
  const refill = pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  assert.equal([refill.fate, refill.objects], ['applied', OBJECTS], label);
  assert.is(pool.hits(prompt), BLOCKS, label);
}

/** The event is malformed for that reason: residency clears, and neither what stands before nor behind it in the batch is kept. */
function assertMalformed(pool: Pool, prompt: Prompt, event: unknown, why: string, label: string): void {
  const other = stored(pool.prompt(2, 1).keys(pool.contract)[0]);
  const result = pool.send([other, event, other]);
  assert.equal([result.fate, result.objects, result.detail], ['malformed', 0, `event 1: ${why}`], label);
  assertClearedOnly(pool, prompt, label);
}

/** The event is skipped and counted; what stands behind it applies. */
function assertSkipped(pool: Pool, prompt: Prompt, event: StoreEvent, skipped: StoreMessageResult['skipped']): void {
  const label = JSON.stringify(event['object_key'] ?? event['tenant_id']);
  const before = pool.objects;
  const other = pool.prompt(2, 1).keys(pool.contract)[0];
  const result = pool.send([event, stored(other), removed(other)]);
  assert.equal([result.fate, result.objects, result.skipped], ['applied', 2, skipped], label);
  assert.equal([pool.hits(prompt), pool.objects], [BLOCKS, before], label);
}

// ---- row 1 ----

/** Payloads that can't be read. */
const unreadablePayloads: Readonly<Record<string, Uint8Array>> = {
  nothing: new Uint8Array(0),
  'a byte that MessagePack never uses': Uint8Array.of(0xc1),
  'no array': new Encoder().encode({ events: [] }),
  'an array of one element': new Encoder().encode([1]),
  'no array of events': new Encoder().encode([1, 2, 0]),
  'an array cut short': storePayload([stored('x'), stored('y')]).slice(0, -9),
  'a byte behind it': Uint8Array.of(...storePayload([]), 0xc0),
  'more than 4,096 events': storePayload(Array<null>(MAX_STORE_EVENTS + 1).fill(null)),
  'a text longer than the payload': Uint8Array.of(0x93, 0x01, 0x91, 0xdb, 0x7f, 0xff, 0xff, 0xff, 0x61),
};

for (const [what, payload] of Object.entries(unreadablePayloads)) {
  test(`row 1: a payload that can't be read (${what}) clears residency and keeps edges`, async () => {
    const { pool, prompt } = await filledPool();
    const result = pool.sendPayload(payload);
    assert.equal([result.fate, result.sequence, result.objects], ['unreadable', pool.sequence, 0]);
    assert.is(pool.clears('unreadable:payload'), 1);
    assertClearedOnly(pool, prompt, what);
  });
}

test('row 1: exactly 4,096 events and exactly 1 MiB of frames are read', async () => {
  const { pool, prompt } = await filledPool();
  const short = { event_type: 'stored', object_key: 'foreign', medium: 'cpu' };
  const many = pool.send(Array<StoreEvent>(MAX_STORE_EVENTS).fill(short));
  assert.equal([many.fate, many.skipped.foreignKey], ['applied', MAX_STORE_EVENTS]);
  const room =
    MAX_STORE_MESSAGE_BYTES - 8 - storePayload([{ ...stored('foreign'), more: new Uint8Array(70_000) }]).length;
  const event = { ...stored('foreign'), more: new Uint8Array(70_000 + room) };
  assert.is(storePayload([event]).length, MAX_STORE_MESSAGE_BYTES - 8);
  assert.is(pool.send([event]).fate, 'applied');
  assert.is(pool.hits(prompt), BLOCKS);
});

test('row 1, design wins: a message above 1 MiB records its readable sequence, so one fault costs one clear', async () => {
  const { pool, prompt } = await filledPool();
  const result = pool.sendPayload(new Uint8Array(MAX_STORE_MESSAGE_BYTES - 7));
  assert.equal([result.fate, result.sequence], ['unreadable', pool.sequence]);
  assert.is(pool.clears('unreadable:message-too-large'), 1);
  assertClearedOnly(pool, prompt, 'too large');
  assert.is(pool.clears('gap'), 0);
});

test('row 1: wrong frames have no sequence; it stays, and the message behind them is a gap', async () => {
  const { pool, prompt } = await filledPool();
  const empty = new Uint8Array(0);
  const wrong: Uint8Array[][] = [
    [],
    [empty],
    [empty, empty],
    [empty, new Uint8Array(7), storePayload([])],
    [empty, new Uint8Array(9), storePayload([])],
    [...storeMessage(2, []), empty],
  ];
  for (const frames of wrong) {
    const label = `${frames.length} frames`;
    const result = pool.cache.applyStoreMessage(frames);
    assert.equal([result.fate, result.sequence], ['unreadable', null], label);
    assertClearedOnly(pool, prompt, label); // the very next number: nothing was lost in between as far as is known
  }
  pool.cache.applyStoreMessage([]);
  pool.sequence++; // the number that the unreadable message had
  assert.is(pool.send([]).fate, 'gap-applied');
});

// ---- rows 2 to 6 ----

test('row 2: a message stamped with an older generation is ignored, its sequence too', async () => {
  const { pool, prompt } = await filledPool();
  const old = pool.cache.generation;
  pool.cache.updateContract(contractOf(), [SOURCE]);
  pool.cache.updateContract(pool.contract, [SOURCE]);
  pool.teach(prompt);
  pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  for (const frames of [storeMessage(99, [cleared()]), framesOf(99, new Uint8Array(0)), []]) {
    const result = pool.cache.applyStoreMessage(frames, { generation: old });
    assert.equal([result.fate, result.sequence], ['stale-generation', null]);
  }
  assert.is(pool.hits(prompt), BLOCKS);
  assert.is(pool.send([]).fate, 'applied');
});

test('row 3, design wins: a pending contract clears once and drops the batch, but records the sequence', async () => {
  let pending = false;
  const pool = await Pool.open(TWO_RANKS, { isPending: () => pending });
  const prompt = pool.filled(1, BLOCKS);
  pending = true;
  const keys = prompt.keys(pool.contract);
  assert.equal([pool.send([stored(keys[0])]).fate, pool.send([]).fate], ['pending', 'pending']);
  pending = false;
  assert.equal([pool.objects, pool.clears('pending')], [0, 1]);
  assert.is(pool.send([stored(keys[0])]).fate, 'applied'); // the reference would see a gap and clear again
  assert.equal([pool.objects, pool.clears('gap')], [1, 0]);
});

test('row 4: the sequence of the last message again is a duplicate, whatever it carries', async () => {
  const { pool, prompt } = await filledPool();
  for (const frames of [storeMessage(pool.sequence, [cleared()]), framesOf(pool.sequence, Uint8Array.of(0xc1))]) {
    const result = pool.cache.applyStoreMessage(frames);
    assert.equal([result.fate, result.sequence, result.objects], ['duplicate', pool.sequence, 0]);
  }
  assert.is(pool.hits(prompt), BLOCKS);
});

test('row 5: any other sequence, ahead or back, clears and is recorded, and its batch applies', async () => {
  const { pool, prompt } = await filledPool();
  const keys = prompt.keys(pool.contract);
  const refill = keys.map((key) => stored(key));
  let gaps = 0;
  for (const sequence of [12n, 13n, 1_000_000n, 9n, 1n, 0n, 2n ** 64n - 1n]) {
    pool.cache.streamLost('reconnect');
    pool.cache.applyStoreMessage(storeMessage(10, refill));
    assert.is(pool.hits(prompt), BLOCKS);
    const result = pool.cache.applyStoreMessage(storeMessage(sequence, [stored(keys[0]), stored(keys[1])]));
    const label = `${sequence} behind 10`;
    assert.equal([result.fate, result.sequence, result.objects], ['gap-applied', sequence, 2], label);
    assert.equal([pool.objects, pool.hits(prompt), pool.clears('gap')], [2, 1, ++gaps], label);
    assert.is(pool.cache.applyStoreMessage(storeMessage(sequence + 1n, [])).fate, 'applied', label);
  }
});

test('row 6: without a contract only the sequence advances', async () => {
  const { pool } = await filledPool();
  pool.cache.updateContract(null);
  const bad = framesOf(8, Uint8Array.of(0xc1));
  assert.is(pool.cache.applyStoreMessage(storeMessage(7, [stored('x@y')])).fate, 'no-contract');
  assert.is(pool.cache.applyStoreMessage(storeMessage(7, [])).fate, 'duplicate');
  assert.is(pool.cache.applyStoreMessage(bad).fate, 'no-contract');
  assert.is(pool.cache.applyStoreMessage(bad).fate, 'duplicate');
  assert.equal(pool.cache.census(), []);
});

// ---- rows 7 to 14: one event ----

test('row 7: events of a tenant other than "" and "default" are skipped', async () => {
  const { pool, prompt } = await filledPool();
  const key = prompt.keys(pool.contract)[0];
  for (const tenant of ['tenant-a', 'Default', 'default ', 'defaul', '0', 'DEFAULT'])
    for (const event of [stored(key, { tenant }), removed(key, { tenant }), cleared({ tenant })])
      assertSkipped(pool, prompt, event, { foreignTenant: 1, foreignKey: 0 });
});

test('row 7: "", "default", nil and no tenant at all are ours', async () => {
  const { pool, prompt } = await filledPool();
  const key = prompt.keys(pool.contract)[0];
  for (const tenant of ['', 'default', null, undefined]) {
    const change = (event: StoreEvent) => (tenant === undefined ? without(event, 'tenant_id') : event);
    const result = pool.send([change(removed(key, { tenant }))]);
    assert.equal([result.fate, result.objects, result.skipped.foreignTenant], ['applied', 1, 0]);
    assert.is(pool.hits(prompt), 0);
    pool.send([change(stored(key, { tenant }))]);
    assert.is(pool.hits(prompt), BLOCKS);
  }
});

test('row 7: a tenant that is no text is malformed', async () => {
  const { pool, prompt } = await filledPool();
  const key = prompt.keys(pool.contract)[0];
  for (const tenant of [0, 1.5, true, binary('default'), ['default'], { default: 1 }])
    assertMalformed(pool, prompt, stored(key, { tenant }), 'bad-tenant', String(tenant));
});

test('row 8: cleared and AllBlocksCleared clear residency, and the batch goes on', async () => {
  const { pool, prompt } = await filledPool();
  const said = cleared();
  const forms: StoreEvent[] = [
    said,
    without(said, 'type'),
    without(said, 'event_type'),
    { ...said, event_type: null },
    { ...said, type: null },
    { ...said, event_type: 'AllBlocksCleared', type: 'cleared' },
    { ...said, object_key: null, medium: 'nowhere' },
  ];
  const keys = prompt.keys(pool.contract);
  for (const form of forms) {
    const result = pool.send([
      stored(pool.prompt(2, 1).keys(pool.contract)[0]),
      form,
      stored(keys[0]),
      stored(keys[1]),
    ]);
    assert.equal([result.fate, result.objects], ['applied', 4]);
    assert.equal([pool.objects, pool.hits(prompt)], [2, 1]);
    pool.send(keys.map((key) => stored(key)));
    assert.is(pool.hits(prompt), BLOCKS);
  }
});

test('row 9: an event without an object key is malformed, as captured from a master that hides keys', async () => {
  const { pool, prompt } = await filledPool();
  for (const event of [stored(null), without(stored('x'), 'object_key'), stored(7), stored(binary('x')), stored(['x'])])
    assertMalformed(pool, prompt, event, 'no-key', String(event['object_key']));
  const { samples } = JSON.parse(readFileSync('test/fixtures/mooncake-event-samples.json', 'utf8')) as {
    samples: { name: string; frames: { payload_hex: string } }[];
  };
  for (const name of ['stored_minimal_flags', 'removed_minimal_flags']) {
    const payload = Buffer.from(samples.find((sample) => sample.name === name)!.frames.payload_hex, 'hex');
    const result = pool.sendPayload(payload);
    assert.equal([result.fate, result.detail], ['malformed', 'event 0: no-key'], name);
    assertClearedOnly(pool, prompt, name);
  }
});

test('row 10: a key that is a bare required prefix is malformed', async () => {
  const { pool, prompt } = await filledPool();
  for (const rank of [0, 1]) assertMalformed(pool, prompt, stored(prefixOf(0, rank)), 'bare-prefix', `rank ${rank}`);
});

test('row 11: a key without @, or whose part before the last @ is not required, is skipped', async () => {
  const { pool, prompt } = await filledPool();
  const prefix = prefixOf(0, 0);
  const keys = [
    '',
    '@',
    '12345',
    'no-at-sign',
    `@${DIGEST}`,
    `other@${DIGEST}`,
    `${prefixOf(0, 2)}@${DIGEST}`, // a third rank
    `${prefixOf(1, 0)}@${DIGEST}`, // another group
    `pool@${prefix}@${DIGEST}`,
    `${prefix}@${DIGEST}@`,
    `${prefix}@${DIGEST}@0`,
    `${prefix.slice(0, -1)}@${DIGEST}`,
    `${prefix.slice(1)}@${DIGEST}`,
    `${prefix}x`,
    prefix.slice(0, -1),
    `${prefix}@x@not-a-digest`,
    'é'.repeat(200),
  ];
  for (const key of keys)
    for (const event of [stored(key), removed(key)])
      assertSkipped(pool, prompt, event, { foreignTenant: 0, foreignKey: 1 });
});

test('row 12: a digest that is not 64 lowercase hex digits is malformed', async () => {
  const { pool, prompt } = await filledPool();
  const digests = [
    '',
    'x',
    DIGEST.slice(1),
    `${DIGEST}0`,
    DIGEST.toUpperCase(),
    `${DIGEST.slice(0, -1)}g`,
    `g${DIGEST.slice(1)}`,
    `${DIGEST.slice(0, 31)}/${DIGEST.slice(32)}`,
    `${DIGEST.slice(0, 31)}:${DIGEST.slice(32)}`,
    `${DIGEST.slice(0, 31)}\`${DIGEST.slice(32)}`,
    `0x${DIGEST.slice(2)}`,
    ` ${DIGEST.slice(1)}`,
    `${DIGEST.slice(2)}é`,
    DIGEST + DIGEST,
  ];
  for (const digest of digests)
    for (const rank of [0, 1])
      assertMalformed(pool, prompt, stored(`${prefixOf(0, rank)}@${digest}`), 'bad-digest', digest);
});

test('row 13: a medium other than cpu and disk is malformed', async () => {
  const { pool, prompt } = await filledPool();
  const key = prompt.keys(pool.contract)[0];
  for (const medium of [null, '', 'CPU', 'Disk', 'gpu', 'unknown', 'cpu ', 'disks', 1, true, binary('cpu'), ['cpu']])
    assertMalformed(pool, prompt, stored(key, { medium }), 'bad-medium', String(medium));
  assertMalformed(pool, prompt, without(removed(key), 'medium'), 'bad-medium', 'missing');
});

test('row 14: an event whose type is unknown is malformed', async () => {
  const { pool, prompt } = await filledPool();
  const event = stored(prompt.keys(pool.contract)[0]);
  for (const type of ['Stored', 'store', 'evicted', '', 3, binary('stored')]) {
    assertMalformed(pool, prompt, { ...event, event_type: type, type: null }, 'bad-type', String(type));
    assertMalformed(pool, prompt, { ...event, event_type: null, type }, 'bad-type', String(type));
  }
  assertMalformed(pool, prompt, without(without(event, 'type'), 'event_type'), 'bad-type', 'unsaid');
});

test('an event that is no map is malformed', async () => {
  const { pool, prompt } = await filledPool();
  for (const event of [null, 1, 'stored', ['stored', 'key'], binary('x')])
    assertMalformed(pool, prompt, event, 'not-a-map', String(event));
});

// ---- rows 15 to 20: the tables ----

test('row 15: a second digest under a low64 drops the first with all its objects, and the batch goes on', async () => {
  const { pool, prompt } = await filledPool();
  const other = pool.prompt(2, 1).keys(pool.contract);
  const twin = `${prefixOf(0, 0)}@${twinOf(prompt.digest(1))}`;
  const result = pool.send([stored(twin), ...other.map((key) => stored(key))]);
  assert.equal([result.fate, pool.objects], ['applied', OBJECTS - 2 + 2]);
  assert.is(pool.hits(prompt), 1); // block 0 alone
  const { ambiguous, ambiguities } = pool.cache.stats().core!;
  assert.equal([ambiguous, ambiguities], [1, 1]);
});

test('row 15: a removal that names a second digest is as telling as a store', async () => {
  const { pool, prompt } = await filledPool();
  pool.send([removed(`${prefixOf(0, 1)}@${twinOf(prompt.digest(0))}`)]);
  assert.equal([pool.hits(prompt), pool.objects, pool.cache.stats().core!.ambiguous], [0, OBJECTS - 2, 1]);
});

test('row 15: the first digest is remembered by its edge even after its objects have left', async () => {
  const { pool, prompt } = await filledPool();
  const keys = prompt.keys(pool.contract);
  pool.send(keys.slice(0, 2).map((key) => removed(key)));
  assert.is(pool.objects, OBJECTS - 2);
  for (const rank of [0, 1]) pool.send([stored(`${prefixOf(0, rank)}@${twinOf(prompt.digest(0))}`)]);
  assert.equal([pool.hits(prompt), pool.objects], [0, OBJECTS - 2]);
  assert.is(pool.explain(prompt).reasons[0]!.code, 'digest-ambiguous');
});

test('row 15: a worker’s 32-byte event that names another digest makes the low64 ambiguous', async () => {
  const { pool, prompt } = await filledPool();
  const hash = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));
  pool.teach(prompt, { end: 1, hashes: 'binary', fields: { block_hashes: [hash(twinOf(prompt.digest(0)))] } });
  assert.equal([pool.hits(prompt), pool.objects], [0, OBJECTS - 2]);
});

test('row 16: nothing of an ambiguous low64 is kept, until the contract changes', async () => {
  const { pool, prompt } = await filledPool();
  const keys = prompt.keys(pool.contract);
  pool.send([stored(`${prefixOf(0, 0)}@${twinOf(prompt.digest(0))}`)]);
  pool.send(keys.map((key) => stored(key)));
  pool.send([cleared()]);
  pool.send(keys.map((key) => stored(key)));
  assert.equal([pool.hits(prompt), pool.objects], [0, OBJECTS - 2]);
  assert.is(pool.cache.stats().core!.skippedAmbiguous, 4);
  pool.cache.updateContract(null);
  pool.cache.updateContract(pool.contract, [SOURCE]);
  pool.teach(prompt);
  pool.send(keys.map((key) => stored(key)));
  assert.equal([pool.hits(prompt), pool.objects], [BLOCKS, OBJECTS]);
});

test('ambiguous overflow, design wins: when the set is full, edges and residency go together and the set starts anew', async () => {
  const pool = await CorePool.load('tiny');
  const cap = pool.core.stats().caps.ambiguous;
  assert.is(cap, 8);
  const prompts = Array.from({ length: cap + 2 }, (_, name) => pool.prompt(name));
  for (const prompt of prompts) {
    pool.teach(prompt);
    pool.store(prompt);
  }
  const twin = (prompt: Prompt) => stored(`${prefixOf(0, 0)}@${twinOf(prompt.digest(0))}`);
  for (const prompt of prompts.slice(0, cap)) pool.send([twin(prompt)]);
  let { edges, digests, ambiguous } = pool.core.stats();
  assert.equal([edges, digests, ambiguous], [cap + 2, 2, cap]);
  assert.equal([pool.hits(prompts[0]!), pool.hits(prompts[cap]!), pool.hits(prompts[cap + 1]!)], [0, 1, 1]);
  pool.send([twin(prompts[cap]!)]);
  const after = pool.core.stats();
  ({ edges, digests, ambiguous } = after);
  assert.equal([edges, digests, ambiguous, after.ambiguityDrops], [0, 0, 1, 1]);
  // The one that overflowed stays ambiguous; a pair that was ambiguous before has to be learned and stored from nothing.
  for (const prompt of [prompts[0]!, prompts[cap]!]) {
    pool.store(prompt);
    pool.teach(prompt);
  }
  assert.equal([pool.hits(prompts[0]!), pool.hits(prompts[cap]!)], [1, 0]);
});

test('row 17, design wins: at the digest cap the oldest digest without an edge leaves whole, nothing else does', async () => {
  const pool = await CorePool.load('tiny', TWO_RANKS);
  const prompts = Array.from({ length: 66 }, (_, name) => pool.prompt(name));
  for (const prompt of prompts.slice(0, 64)) pool.store(prompt);
  assert.equal([pool.core.stats().digests, pool.core.census()[0]!.objects], [64, 128]);
  pool.send([stored(prompts[0]!.keys(pool.contract)[0])]); // known already, but its event is now the newest
  pool.store(prompts[64]!);
  pool.store(prompts[65]!);
  const { digests, digestEvictions, clears } = pool.core.stats();
  assert.equal([digests, digestEvictions, pool.core.census()[0]!.complete], [64, 2, 64]);
  assert.is(clears, 1); // that of the contract
  const resident = prompts.map((prompt) => {
    pool.teach(prompt);
    return pool.hits(prompt);
  });
  assert.equal(
    resident,
    prompts.map((_, name) => (name === 1 || name === 2 ? 0 : 1)),
  );
});

test('row 17, design wins: when every digest has an edge, that of the coldest edge leaves, and its edge stays', async () => {
  const pool = await CorePool.load('tiny', TWO_RANKS);
  const prompts = Array.from({ length: 64 }, (_, name) => pool.prompt(name));
  for (const prompt of prompts) {
    pool.teach(prompt);
    pool.store(prompt);
  }
  assert.is(pool.hits(prompts[0]!), 1); // the first one is the hottest now
  pool.send([stored(pool.prompt(99).keys(pool.contract)[0])]);
  assert.equal([pool.core.stats().digests, pool.core.stats().edges, pool.core.census()[0]!.objects], [64, 64, 127]);
  assert.equal(
    prompts.map((prompt) => pool.explain(prompt).hit),
    prompts.map((_, name) => (name === 1 ? 0 : 1)),
  );
  assert.is(pool.explain(prompts[1]!).walked, 1);
});

test('row 17, design wins: a digest without an edge leaves before any that has one, though it is the newest', async () => {
  const pool = await CorePool.load('tiny', TWO_RANKS);
  const prompts = Array.from({ length: 63 }, (_, name) => pool.prompt(name));
  for (const prompt of prompts) {
    pool.teach(prompt);
    pool.store(prompt);
  }
  for (const name of [100, 101, 102]) pool.store(pool.prompt(name));
  assert.equal([pool.core.stats().digests, pool.core.stats().digestEvictions], [64, 2]);
  for (const prompt of prompts) assert.is(pool.explain(prompt).hit, 1);
  pool.teach(pool.prompt(102));
  assert.is(pool.hits(pool.prompt(102)), 1);
});

test('row 18, design wins: in narrow builds memberships have no cap of their own', async () => {
  const pool = await CorePool.load('tiny', { groups: [{ ranks: 64 }] });
  for (let name = 0; name < 64; name++)
    for (const medium of ['cpu', 'disk'])
      pool.send(
        pool
          .prompt(name)
          .keys(pool.contract)
          .map((key) => stored(key, { medium })),
      );
  const { members, digests, digestEvictions, caps } = pool.core.stats();
  assert.equal([members, digests, digestEvictions, caps.members], [64 * 64 * 2, 64, 0, null]);
});

test('row 18, design wins: at the membership cap of wide builds the oldest digest without an edge makes room, whole', async () => {
  const pool = await CorePool.load('tiny-wide', { groups: [{ ranks: 8 }] });
  assert.is(pool.core.stats().caps.members, 256);
  const prompts = Array.from({ length: 33 }, (_, name) => pool.prompt(name));
  for (const prompt of prompts.slice(0, 32)) pool.store(prompt);
  assert.equal([pool.core.stats().members, pool.core.stats().digests], [256, 32]);
  pool.send([stored(prompts[32]!.keys(pool.contract)[0])]);
  assert.equal([pool.core.stats().members, pool.core.stats().digests], [249, 32]);
  pool.store(prompts[32]!);
  const { members, refusedObjects, clears } = pool.core.stats();
  assert.equal([members, refusedObjects, clears], [256, 0, 1]);
  for (const prompt of prompts) pool.teach(prompt);
  assert.equal(
    prompts.map((prompt) => pool.hits(prompt)),
    prompts.map((_, name) => (name === 0 ? 0 : 1)),
  );
});

test('row 18, design wins: when every digest has an edge, the coldest edge leaves together with its digest', async () => {
  const pool = await CorePool.load('tiny-wide', { groups: [{ ranks: 8 }] });
  const prompts = Array.from({ length: 32 }, (_, name) => pool.prompt(name));
  for (const prompt of prompts) {
    pool.teach(prompt);
    pool.store(prompt);
  }
  assert.is(pool.hits(prompts[0]!), 1);
  pool.store(pool.prompt(99));
  const { members, edges, digests } = pool.core.stats();
  assert.equal([members, edges, digests], [256, 31, 32]);
  assert.equal(
    prompts.map((prompt) => pool.explain(prompt).hit),
    prompts.map((_, name) => (name === 1 ? 0 : 1)),
  );
  assert.is(pool.explain(prompts[1]!).walked, 0);
});

test('row 18, design wins: an object that is resident already needs no room at the membership cap', async () => {
  const pool = await CorePool.load('tiny-wide', { groups: [{ ranks: 8 }] });
  for (let name = 0; name < 32; name++) pool.store(pool.prompt(name));
  for (let name = 0; name < 32; name++)
    pool.send(
      pool
        .prompt(name)
        .keys(pool.contract)
        .map((key) => stored(key, { medium: 'disk' })),
    );
  const { members, digests, digestEvictions } = pool.core.stats();
  assert.equal([members, digests, digestEvictions], [256, 32, 0]);
  const { cpu, disk } = pool.core.census()[0]!;
  assert.equal([cpu, disk], [256, 256]);
});

test('row 19: storing an object again changes nothing', async () => {
  const { pool, prompt } = await filledPool();
  const before = pool.cache.census();
  const members = pool.cache.stats().core!.members;
  assert.is(pool.send(prompt.keys(pool.contract).map((key) => stored(key))).fate, 'applied');
  assert.equal(pool.cache.census(), before);
  assert.is(pool.cache.stats().core!.members, members);
});

test('row 20: removing an unknown object changes nothing and makes no identity', async () => {
  const { pool, prompt } = await filledPool();
  const digests = pool.cache.stats().core!.digests;
  const unknown = pool.prompt(2, 2).keys(pool.contract);
  assert.is(pool.send([...unknown, ...unknown].map((key) => removed(key))).fate, 'applied');
  pool.send([removed(prompt.keys(pool.contract)[0], { generation: 'C', medium: 'disk' })]); // resident, but not there
  assert.equal([pool.hits(prompt), pool.objects, pool.cache.stats().core!.digests], [BLOCKS, OBJECTS, digests]);
});

// ---- rows 21 and 22 ----

test('row 21, design wins: a lost stream clears residency and forgets the sequence', async () => {
  const { pool, prompt } = await filledPool();
  pool.cache.streamLost('disconnect');
  assert.equal([pool.hits(prompt), pool.objects, pool.clears('disconnect')], [0, 0, 1]);
  // A restarted master may begin with the number that was last: no duplicate. Nor is any other number a gap.
  const keys = prompt.keys(pool.contract);
  const again = pool.cache.applyStoreMessage(
    storeMessage(
      pool.sequence,
      keys.map((key) => stored(key)),
    ),
  );
  assert.equal([again.fate, again.objects], ['applied', OBJECTS]);
  assert.equal([pool.hits(prompt), pool.clears('gap')], [BLOCKS, 0]);
});

test('row 22: stopped, a cache credits nothing and takes no message', async () => {
  const { pool, prompt } = await filledPool();
  pool.cache.stop();
  const result = pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  assert.equal([result.fate, result.sequence], ['stopped', null]);
  assert.is(pool.hits(prompt), 0);
  assert.is(pool.explain(prompt).reasons[0]!.code, 'stopped');
});

// ---- the order of checks ----

test('checks go tenant → cleared → key → bare prefix → split and prefix → digest → medium → type', async () => {
  const { pool, prompt } = await filledPool();
  const prefix = prefixOf(0, 0);
  /** Wrong in everything that is checked later than what a step gives. */
  const spoilt = { ...stored(null), medium: 'nowhere', event_type: 'evicted', type: 'BlockEvicted' };
  const steps: [step: string, event: StoreEvent, becomes: string][] = [
    ['another tenant', { ...spoilt, tenant_id: 'tenant-a' }, 'foreignTenant'],
    ['another tenant clears', { ...spoilt, tenant_id: 'tenant-a', event_type: 'cleared', type: null }, 'foreignTenant'],
    ['another tenant, types disagree', { ...spoilt, tenant_id: 'tenant-a', event_type: 'cleared' }, 'foreignTenant'],
    ['a tenant that is no text clears', { ...cleared(), tenant_id: 7 }, 'bad-tenant'],
    ['cleared, without key and medium', { ...spoilt, event_type: 'cleared', type: null }, 'cleared'],
    ['half cleared, without a key', { ...spoilt, event_type: 'cleared' }, 'bad-type'],
    ['no key', spoilt, 'no-key'],
    ['a bare prefix', { ...spoilt, object_key: prefix }, 'bare-prefix'],
    ['another prefix', { ...spoilt, object_key: `other@${DIGEST.slice(1)}` }, 'foreignKey'],
    ['a bad digest', { ...spoilt, object_key: `${prefix}@${DIGEST.slice(1)}` }, 'bad-digest'],
    ['a bad medium', { ...spoilt, object_key: `${prefix}@${DIGEST}` }, 'bad-medium'],
    ['a bad type', { ...spoilt, object_key: `${prefix}@${DIGEST}`, medium: 'disk' }, 'bad-type'],
  ];
  for (const [step, event, becomes] of steps) {
    if (becomes === 'foreignTenant' || becomes === 'foreignKey') {
      assertSkipped(pool, prompt, event, { foreignTenant: 0, foreignKey: 0, [becomes]: 1 });
    } else if (becomes === 'cleared') {
      assert.equal([pool.send([event]).fate, pool.objects], ['applied', 0], step);
      assertClearedOnly(pool, prompt, step);
    } else assertMalformed(pool, prompt, event, becomes, step);
  }
});

test('the first malformed event is the one that is named, and skips before it don’t count as objects', async () => {
  const { pool } = await filledPool();
  const result = pool.send([stored('foreign'), stored('x', { tenant: 'other' }), stored(null), null]);
  assert.equal([result.fate, result.detail, result.objects], ['malformed', 'event 2: no-key', 0]);
  assert.is(pool.clears('malformed:no-key'), 1);
  assert.is(pool.clears('malformed:not-a-map'), 0);
});

// ---- event_type and type ----

/** What either of the two names may hold, and what it says. */
const spellings: readonly (readonly [said: 'unsaid' | 'unknown' | 'stored' | 'removed' | 'cleared', value: unknown])[] =
  [
    ['unsaid', undefined],
    ['unsaid', null],
    ['stored', 'stored'],
    ['stored', 'BlockStored'],
    ['removed', 'removed'],
    ['removed', 'BlockRemoved'],
    ['cleared', 'cleared'],
    ['cleared', 'AllBlocksCleared'],
    ['unknown', 'evicted'],
    ['unknown', 5],
  ];

test('event_type and type, all 100 pairs: one may be silent; if both speak they must agree', async () => {
  const { pool, prompt } = await filledPool();
  const key = pool.prompt(2, 1).keys(pool.contract)[0];
  let pairs = 0;
  for (const [eventSays, event_type] of spellings) {
    for (const [typeSays, type] of spellings) {
      let event = stored(key);
      event = event_type === undefined ? without(event, 'event_type') : { ...event, event_type };
      event = type === undefined ? without(event, 'type') : { ...event, type };
      const label = `${String(event_type)} / ${String(type)}`;
      const agreed =
        eventSays === 'unsaid' ? typeSays : typeSays === 'unsaid' || typeSays === eventSays ? eventSays : null;
      pairs++;
      if (agreed === null || agreed === 'unsaid' || agreed === 'unknown') {
        assertMalformed(pool, prompt, event, 'bad-type', label);
        continue;
      }
      pool.send([stored(key)]);
      const result = pool.send(agreed === 'stored' ? [removed(key), event] : [event]);
      assert.is(result.fate, 'applied', label);
      if (agreed === 'cleared') assertClearedOnly(pool, prompt, label);
      else assert.is(pool.objects, OBJECTS + (agreed === 'stored' ? 1 : 0), label);
      pool.send([removed(key)]);
    }
  }
  assert.is(pairs, 100);
});

// ---- wire generations ----

/** A pool with one object in all three media: found by a reconcile, then stored in both others. */
async function inAllMedia(): Promise<{ pool: Pool; key: string; media: () => number[] }> {
  const pool = await Pool.open();
  const key = pool.prompt(1, 1).keys(pool.contract)[0]!;
  const token = pool.cache.beginReconcile();
  assert.ok(pool.cache.reconcile(token, [key], { s0: 0, firstSequence: null }).accepted);
  pool.send([stored(key, { medium: 'cpu' }), stored(key, { medium: 'disk' })]);
  const media = () => {
    const { cpu, disk, unknown } = pool.cache.census()[0]!;
    return [cpu, disk, unknown];
  };
  assert.equal(media(), [1, 1, 1]);
  return { pool, key, media };
}

test('generation A: a removal with dp_rank nil, missing or no integer clears the object in every medium', async () => {
  const float = new Encoder({ forceIntegerToFloat: true });
  for (const dp_rank of [null, undefined, 0.5, '0', true, binary('0'), [0], { rank: 0 }, 'float zero']) {
    for (const medium of ['cpu', 'disk']) {
      const { pool, key, media } = await inAllMedia();
      const event = { ...removed(key, { medium }), dp_rank };
      if (dp_rank === 'float zero')
        pool.sendPayload(float.encode([0, [{ ...without(event, 'timestamp'), dp_rank: 0 }]]));
      else pool.send([dp_rank === undefined ? without(event, 'dp_rank') : event]);
      assert.equal([...media(), pool.cache.stats().core!.digests], [0, 0, 0, 0], String(dp_rank));
    }
  }
});

test('generation C: a removal with an integer dp_rank clears its own medium and unknown', async () => {
  for (const dp_rank of [0, 1, 127, 128, 255, 70_000, 2 ** 31, -1, -129, 2n ** 63n, -(2n ** 40n)]) {
    for (const medium of ['cpu', 'disk']) {
      const { pool, key, media } = await inAllMedia();
      pool.send([{ ...removed(key, { medium }), dp_rank }]);
      assert.equal(media(), medium === 'cpu' ? [0, 1, 0] : [1, 0, 0], String(dp_rank));
      pool.send([{ ...removed(key, { medium: medium === 'cpu' ? 'disk' : 'cpu' }), dp_rank }]);
      assert.equal(media(), [0, 0, 0]);
    }
  }
});

test('generation C: an object that left one medium is complete by the other until that goes too', async () => {
  const { pool, prompt } = await filledPool();
  const [key] = prompt.keys(pool.contract);
  pool.send([stored(key, { generation: 'C', medium: 'disk' })]);
  pool.send([removed(key, { generation: 'C', medium: 'cpu' })]);
  assert.is(pool.hits(prompt), BLOCKS);
  pool.send([removed(key, { generation: 'C', medium: 'disk' })]);
  assert.is(pool.hits(prompt), 0);
});

test('generation A: storing in a second medium and removing once leaves nothing of the object', async () => {
  const { pool, prompt } = await filledPool();
  const [key] = prompt.keys(pool.contract);
  pool.send([stored(key, { medium: 'disk' })]);
  pool.send([removed(key, { medium: 'cpu' })]);
  assert.equal([pool.hits(prompt), pool.objects], [0, OBJECTS - 1]);
});

test('the 14 sample messages of running masters are all readable', async () => {
  const { samples } = JSON.parse(readFileSync('test/fixtures/mooncake-event-samples.json', 'utf8')) as {
    samples: { name: string; frames: { topic_hex: string; seq_hex: string; payload_hex: string } }[];
  };
  const pool = await Pool.open({ model: 'meta-llama/Llama-3.1-8B', groups: [{ ranks: 2 }] });
  const fates: Record<string, number> = {};
  for (const { frames } of samples) {
    pool.cache.streamLost('next sample');
    const bytes = [frames.topic_hex, frames.seq_hex, frames.payload_hex].map((hex) => Buffer.from(hex, 'hex'));
    const { fate } = pool.cache.applyStoreMessage(bytes);
    fates[fate] = (fates[fate] ?? 0) + 1;
  }
  assert.equal(fates, { applied: 12, malformed: 2 }); // the two without object keys: row 9
});

test.run();
