// Reconcile: residency from the master's list of keys. It counts only together with an unbroken stream around the list; whatever breaks
// the stream voids it, and what came meanwhile is applied again on top (design.md 6).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { RECONCILE_EVENTS, type ReconcileToken } from '../src/cache/reconcile.js';
import { listed } from './support/key-lists.js';
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
  stored,
  storePayload,
  twinOf,
} from './support/messages.js';
import { Random } from './support/random.js';

const NOTHING_RECEIVED = { s0: 0, firstSequence: null };

/** A pool whose worker has announced a prompt of four blocks; nothing is known of the store. */
async function learnedPool(
  options: { pending?: () => boolean } = {},
): Promise<{ pool: Pool; prompt: Prompt; keys: string[] }> {
  const pool = await Pool.open({}, { isPending: options.pending ?? (() => false) });
  const prompt = pool.prompt(1, 4);
  pool.teach(prompt);
  return { pool, prompt, keys: prompt.keys(pool.contract) };
}

/** Objects by medium. */
function media(pool: Pool): { cpu: number; disk: number; unknown: number } {
  const { cpu, disk, unknown } = pool.cache.census()[0]!;
  return { cpu, disk, unknown };
}

// ---- accepted ----

test('accepted: the keys become resident in medium unknown, and are credited on the first request', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const result = pool.cache.reconcile(pool.cache.beginReconcile(), keys, NOTHING_RECEIVED);
  assert.equal(result, { accepted: true, placed: 4, leftOut: 0, foreign: 0, malformed: 0 });
  assert.equal(media(pool), { cpu: 0, disk: 0, unknown: 4 });
  assert.is(pool.hits(prompt), 4);
});

test('accepted: what the list does not name is gone, what it names has forgotten its medium', async () => {
  const { pool, prompt, keys } = await learnedPool();
  pool.send([stored(keys[0]), stored(keys[0], { medium: 'disk' }), stored(keys[1]), stored(keys[3])]);
  const token = pool.cache.beginReconcile();
  assert.ok(pool.cache.reconcile(token, [keys[0]!, keys[2]!], { s0: 1, firstSequence: null }).accepted);
  assert.equal(media(pool), { cpu: 0, disk: 0, unknown: 2 });
  assert.is(pool.hits(prompt), 1);
});

test('accepted: an empty list says that nothing is stored', async () => {
  const { pool, prompt } = await learnedPool();
  pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  assert.ok(pool.cache.reconcile(pool.cache.beginReconcile(), [], { s0: 1, firstSequence: null }).accepted);
  assert.equal([pool.objects, pool.hits(prompt)], [0, 0]);
});

test('accepted: keys of others and keys that are malformed are counted and left out', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const digest = prompt.digest(0);
  const list = [
    ...keys,
    '',
    '12345',
    'no-at-sign',
    `other@${digest}`,
    `${prefixOf(1, 0)}@${digest}`,
    `pool@${keys[0]}`,
    `${keys[0]}@0`,
    prefixOf(0, 0), // the bare prefix: what stands before its last @ is no prefix
    `${prefixOf(0, 0)}@`,
    `${prefixOf(0, 0)}@${digest.slice(1)}`,
    `${prefixOf(0, 0)}@${digest.toUpperCase()}`,
    `${prefixOf(0, 0)}@${digest}0`,
    `${prefixOf(0, 0)}@g${digest.slice(1)}`,
  ];
  const result = pool.cache.reconcile(pool.cache.beginReconcile(), list, NOTHING_RECEIVED);
  assert.equal(result, { accepted: true, placed: 4, leftOut: 0, foreign: 8, malformed: 5 });
  assert.equal([pool.objects, pool.hits(prompt)], [4, 4]);
});

test('accepted: the list may be any iterable, in any order', async () => {
  const { pool, prompt, keys } = await learnedPool();
  function* backwards() {
    for (const key of [...keys].reverse()) yield key;
  }
  assert.ok(pool.cache.reconcile(pool.cache.beginReconcile(), backwards(), NOTHING_RECEIVED).accepted);
  assert.is(pool.hits(prompt), 4);
});

test('accepted: later events go on from it; removals of either generation take what it found', async () => {
  const { pool, prompt, keys } = await learnedPool();
  pool.cache.reconcile(pool.cache.beginReconcile(), keys, NOTHING_RECEIVED);
  pool.send([removed(keys[3], { medium: 'disk' }), stored(keys[0])]);
  assert.equal([pool.hits(prompt), media(pool)], [3, { cpu: 1, disk: 0, unknown: 3 }]);
  pool.send([
    removed(keys[2], { generation: 'C', medium: 'disk' }),
    removed(keys[0], { generation: 'C', medium: 'disk' }),
  ]);
  // What was found somewhere may have been on disk; what was announced on cpu is still there.
  assert.equal([pool.hits(prompt), media(pool)], [2, { cpu: 1, disk: 0, unknown: 1 }]);
});

test('accepted: the same contract with other sources does not touch an open one', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  pool.cache.updateContract(contractOf(), []);
  assert.ok(pool.cache.reconcile(token, keys, NOTHING_RECEIVED).accepted);
  assert.is(pool.hits(prompt), 4);
});

test('accepted: duplicates and learning meanwhile do not touch an open one', async () => {
  const { pool, prompt, keys } = await learnedPool();
  pool.send([]);
  const token = pool.cache.beginReconcile();
  pool.sequence--;
  assert.is(pool.send([cleared()]).fate, 'duplicate');
  pool.teach(pool.prompt(2, 2));
  pool.hits(prompt);
  assert.ok(pool.cache.reconcile(token, keys, { s0: 1, firstSequence: null }).accepted);
  assert.is(pool.hits(prompt), 4);
});

// ---- the stream on top ----

test('on top: what was received meanwhile wins over the list, in its order', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const other = pool.prompt(2, 1).keys(pool.contract)[0];
  const token = pool.cache.beginReconcile();
  pool.send([removed(keys[3]), stored(other, { medium: 'disk' })]); //    listed, but removed; not listed, but stored
  pool.send([removed(keys[2]), stored('foreign')]);
  pool.send([stored(keys[2]), removed(other)]);
  const result = pool.cache.reconcile(token, keys, { s0: 0, firstSequence: 1n });
  assert.equal(result, { accepted: true, placed: 4, leftOut: 0, foreign: 0, malformed: 0 });
  assert.equal([pool.hits(prompt), media(pool)], [3, { cpu: 1, disk: 0, unknown: 2 }]);
});

test('on top: the stream goes on from the last message received, wherever the list stood', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  for (let i = 0; i < 3; i++) pool.send([]);
  assert.ok(pool.cache.reconcile(token, keys, { s0: 1, firstSequence: 1n }).accepted);
  assert.is(pool.send([]).fate, 'applied');
  pool.sequence--;
  assert.is(pool.send([]).fate, 'duplicate');
  assert.equal([pool.hits(prompt), pool.clears('gap')], [4, 0]);
});

test('on top: a `cleared` received meanwhile clears the list', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  pool.send([stored(keys[0]), cleared(), stored(keys[1])]);
  assert.ok(pool.cache.reconcile(token, keys, { s0: 0, firstSequence: 1n }).accepted);
  assert.equal([pool.objects, pool.hits(prompt)], [1, 0]);
});

test('on top: messages are kept as they were, though the caller reuses their memory', async () => {
  const { pool, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  const frames = framesOf(1, new Uint8Array(4096));
  const payload = frames[2]!;
  const bytes = storePayload([stored(keys[0])]);
  payload.set(bytes);
  assert.is(pool.cache.applyStoreMessage([frames[0]!, frames[1]!, payload.subarray(0, bytes.length)]).fate, 'applied');
  payload.fill(0xc1);
  assert.ok(pool.cache.reconcile(token, [], { s0: 0, firstSequence: 1n }).accepted);
  assert.equal(media(pool), { cpu: 1, disk: 0, unknown: 0 });
});

// ---- the watermark ----

for (const [first, accepted] of [
  [8n, true], //  the list holds what came with it
  [9n, true], //  right behind the list
  [10n, false], // one message fell between list and stream
  [100n, false],
] as const) {
  test(`watermark: first buffered sequence ${first}, s0 8: ${accepted ? 'accepted' : 'refused as a slow joiner'}`, async () => {
    for (const s0 of [8, 8n]) {
      const { pool, prompt, keys } = await learnedPool();
      const token = pool.cache.beginReconcile();
      pool.sequence = first - 1n;
      pool.send([stored(keys[3])]);
      const result = pool.cache.reconcile(token, keys.slice(0, 3), { s0, firstSequence: first });
      assert.is(result.accepted, accepted);
      if (!result.accepted) assert.is(result.reason, 'slow-joiner');
      // A list that was read after message 8 says itself what became of it; what message 9 stores is on top.
      const resident = first === 9n ? 4 : 3;
      assert.equal([pool.hits(prompt), pool.objects], accepted ? [resident, resident] : [0, 1]);
    }
  });
}

test('watermark: the caller and the cache must have received the same first message', async () => {
  const { pool, keys } = await learnedPool();
  const disagreements = [
    { send: 0, firstSequence: 1n },
    { send: 1, firstSequence: null },
    { send: 1, firstSequence: 2n },
    { send: 2, firstSequence: 2n },
  ];
  for (const { send, firstSequence } of disagreements) {
    pool.cache.streamLost('reconnect');
    pool.sequence = 0n;
    const token = pool.cache.beginReconcile();
    for (let i = 0; i < send; i++) pool.send([]);
    assert.equal(pool.cache.reconcile(token, keys, { s0: 100, firstSequence }), {
      accepted: false,
      reason: 'first-sequence-disagrees',
    });
    assert.is(pool.objects, 0);
  }
});

/** A cache that joined a quiet stream, received nothing, and took over a list read at s0 = 8: then the first message comes. */
async function afterQuietReconcile(sequence: bigint) {
  const { pool, prompt, keys } = await learnedPool();
  pool.cache.streamLost('reconnect');
  const token = pool.cache.beginReconcile();
  assert.ok(pool.cache.reconcile(token, keys, { s0: 8, firstSequence: null }).accepted);
  assert.is(pool.hits(prompt), 4);
  const { fate } = pool.cache.applyStoreMessage(framesOf(sequence, storePayload([stored('foreign')])));
  return { fate, hits: pool.hits(prompt) };
}

test('watermark: after a quiet reconcile, a first message right behind s0 follows, and that of s0 itself is in the list', async () => {
  assert.equal(await afterQuietReconcile(9n), { fate: 'applied', hits: 4 });
  assert.equal(await afterQuietReconcile(8n), { fate: 'duplicate', hits: 4 });
});

test('watermark: a quiet reconcile also heals a lost tail: the message behind s0 follows, whatever was seen last', async () => {
  const { pool, prompt, keys } = await learnedPool();
  pool.sequence = 4n;
  pool.send([]);
  const token = pool.cache.beginReconcile();
  assert.ok(pool.cache.reconcile(token, keys, { s0: 8, firstSequence: null }).accepted);
  pool.sequence = 8n;
  assert.is(pool.send([]).fate, 'applied');
  assert.is(pool.hits(prompt), 4);
  pool.sequence = 5n; // and one of the tail, if it comes after all, is out of order
  assert.is(pool.send([]).fate, 'gap-applied');
  assert.is(pool.hits(prompt), 0);
});

test('keys that the list names twice count once', async () => {
  const { pool, keys } = await learnedPool();
  const result = pool.cache.reconcile(pool.cache.beginReconcile(), [...keys, ...keys], { s0: 0, firstSequence: null });
  assert.equal(result, { accepted: true, placed: keys.length, leftOut: 0, foreign: 0, malformed: 0 });
});

test('watermark: after a quiet reconcile, a first message beyond s0 + 1 shows that some were missed', async () => {
  assert.equal(await afterQuietReconcile(10n), { fate: 'gap-applied', hits: 0 });
  assert.equal(await afterQuietReconcile(12n), { fate: 'gap-applied', hits: 0 });
});

// ---- voided ----

type Breaking = (pool: Pool, switches: { pending: (on: boolean) => void }) => void;

/** Everything that breaks the stretch of stream around a list, and the reason that the refusal gives. */
const voiding: Readonly<Record<string, readonly [reason: string, breaking: Breaking]>> = {
  'a gap': [
    'gap',
    (pool) => {
      pool.sequence++;
      pool.send([]);
    },
  ],
  'a restart': [
    'gap',
    (pool) => {
      pool.sequence = -1n;
      pool.send([]);
    },
  ],
  'a malformed event': ['malformed:no-key', (pool) => pool.send([stored(null)])],
  'an unreadable payload': ['unreadable:payload', (pool) => pool.sendPayload(Uint8Array.of(0xc1))],
  'a message that is too large': ['unreadable:message-too-large', (pool) => pool.sendPayload(new Uint8Array(2 ** 20))],
  'wrong frames': ['unreadable:frame-count', (pool) => pool.cache.applyStoreMessage([])],
  'a bad sequence frame': [
    'unreadable:sequence-width',
    (pool) => pool.cache.applyStoreMessage([new Uint8Array(0), new Uint8Array(7), new Uint8Array(0)]),
  ],
  'a lost stream': ['disconnect', (pool) => pool.cache.streamLost('disconnect')],
  'another contract': [
    'contract-change',
    (pool) => {
      pool.cache.updateContract(contractOf({ model: 'other' }), [SOURCE]);
      pool.cache.updateContract(pool.contract, [SOURCE]);
    },
  ],
  'a message while pending': [
    'pending',
    (pool, { pending }) => {
      pending(true);
      pool.send([]);
      pending(false);
    },
  ],
  'decoded objects': ['decoded-evidence', (pool) => pool.sendDecoded('stored', pool.prompt(1, 2))],
  'a second one': ['superseded', (pool) => pool.cache.beginReconcile()],
};

for (const [what, [reason, breaking]] of Object.entries(voiding)) {
  test(`voided by ${what}: refused as ${reason}, and residency is what the stream left`, async () => {
    let pending = false;
    const { pool, keys } = await learnedPool({ pending: () => pending });
    pool.send([]);
    const token = pool.cache.beginReconcile();
    breaking(pool, {
      pending: (on) => {
        pending = on;
      },
    });
    assert.is(token.voided, reason);
    assert.equal([token.events, [...token.keptBehind(-1n)]], [0, []]);
    const { objects } = pool;
    const result = pool.cache.reconcile(token, keys, { s0: 100, firstSequence: token.firstSequence });
    assert.equal(result, { accepted: false, reason });
    assert.is(pool.objects, objects);
    // Begun again, it counts.
    const next = pool.cache.beginReconcile();
    assert.ok(pool.cache.reconcile(next, keys, { s0: 100, firstSequence: null }).accepted);
    assert.is(pool.objects, 4);
  });
}

test('voided by decoded objects: what they removed is not credited from an older list', async () => {
  const { pool, prompt, keys } = await learnedPool();
  pool.sendDecoded('stored', prompt);
  const token = pool.cache.beginReconcile();
  pool.sendDecoded('removed', prompt, 1);
  assert.not(pool.cache.reconcile(token, keys, NOTHING_RECEIVED).accepted);
  assert.is(pool.hits(prompt), 1);
});

test('voided: the earlier of two is superseded, the later one counts', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const earlier = pool.cache.beginReconcile();
  const later = pool.cache.beginReconcile();
  assert.equal(pool.cache.reconcile(earlier, [], NOTHING_RECEIVED), { accepted: false, reason: 'superseded' });
  assert.ok(pool.cache.reconcile(later, keys, NOTHING_RECEIVED).accepted);
  assert.is(pool.hits(prompt), 4);
});

test('voided: a token is good for one call', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  assert.ok(pool.cache.reconcile(token, keys, NOTHING_RECEIVED).accepted);
  assert.equal(pool.cache.reconcile(token, [], NOTHING_RECEIVED), { accepted: false, reason: 'superseded' });
  assert.is(pool.hits(prompt), 4);
});

test('voided: one begun without a contract never counts', async () => {
  const { pool, keys } = await learnedPool();
  pool.cache.updateContract(null);
  const token = pool.cache.beginReconcile();
  assert.is(token.voided, 'no-contract');
  pool.cache.updateContract(pool.contract, [SOURCE]);
  assert.equal(pool.cache.reconcile(token, keys, NOTHING_RECEIVED), { accepted: false, reason: 'no-contract' });
  assert.is(pool.objects, 0);
});

/** Sends `count` object events, in messages as long as they may be. They have no more fields than needed: 4,096 whole ones exceed 1 MiB. */
function sendEvents(pool: Pool, count: number): void {
  const event = { event_type: 'stored', object_key: `${prefixOf(0, 0)}@${'e'.repeat(64)}`, medium: 'cpu' };
  for (let left = count; left > 0; left -= 4096)
    assert.is(pool.send(Array.from({ length: Math.min(left, 4096) }, () => event)).fate, 'applied');
}

test('voided by a buffer overflow: 32,768 object events are kept, one more is too many', async () => {
  assert.is(RECONCILE_EVENTS, 32_768);
  const { pool, prompt, keys } = await learnedPool();
  const fill = (count: number): ReconcileToken => {
    pool.cache.streamLost('reconnect');
    pool.sequence = 0n;
    const token = pool.cache.beginReconcile();
    sendEvents(pool, count);
    return token;
  };
  const full = fill(RECONCILE_EVENTS);
  assert.equal([full.voided, full.events], [null, RECONCILE_EVENTS]);
  assert.ok(pool.cache.reconcile(full, keys, { s0: 0, firstSequence: 1n }).accepted);
  assert.equal([pool.hits(prompt), media(pool)], [4, { cpu: 1, disk: 0, unknown: 4 }]);
  const overfull = fill(RECONCILE_EVENTS + 1);
  assert.equal([overfull.voided, overfull.events], ['buffer-overflow', 0]);
  assert.equal(pool.cache.reconcile(overfull, keys, { s0: 0, firstSequence: 1n }), {
    accepted: false,
    reason: 'buffer-overflow',
  });
});

test('the buffer keeps nothing of what the stream says about others: any number of their messages may come', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  for (let i = 0; i < 5000; i++) pool.send([stored('foreign'), stored(keys[0], { tenant: 'another' })]);
  assert.equal([token.voided, token.events, token.firstSequence], [null, 0, 1n]);
  assert.ok(pool.cache.reconcile(token, keys, { s0: 0, firstSequence: 1n }).accepted);
  assert.is(pool.hits(prompt), 4);
});

test('on top: messages of every size, across the pieces of the buffer, in their order', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  // Block 1 goes and comes again and again; block 3 goes at last.
  const toggles = Array.from({ length: 999 }, (_, i) => (i % 2 === 0 ? removed(keys[1]) : stored(keys[1])));
  for (let i = 0; i < 9; i++) pool.send(toggles);
  pool.send([stored(keys[1]), removed(keys[3])]);
  assert.is(token.events, 9 * 999 + 2);
  assert.equal(
    [...token.keptBehind(-1n)].map((piece) => piece.length / 40),
    [4096, 4096, 801],
  );
  assert.ok(pool.cache.reconcile(token, keys, { s0: 0, firstSequence: 1n }).accepted);
  assert.equal([pool.hits(prompt), media(pool)], [3, { cpu: 1, disk: 0, unknown: 2 }]);
});

// ---- messages that are older than the list ----

test('what messages up to s0 store does not come back over a list that was read after them', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  pool.send([stored(keys[0]), stored(keys[1])]);
  pool.send([stored(keys[2])]);
  // All three were stored by sequence 2, and gone without a word before the list was read; one came again behind it.
  pool.send([stored(keys[3])]);
  assert.ok(pool.cache.reconcile(token, [keys[0]!], { s0: 2, firstSequence: 1n }).accepted);
  assert.equal([pool.hits(prompt), media(pool)], [1, { cpu: 1, disk: 0, unknown: 1 }]);
});

test('what they remove and do not store again is taken out: counters may run ahead of the sequence', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  pool.send([removed(keys[1]), removed(keys[3]), stored(keys[3])]);
  assert.ok(pool.cache.reconcile(token, keys, { s0: 5, firstSequence: 1n }).accepted);
  assert.equal([pool.hits(prompt), media(pool)], [1, { cpu: 0, disk: 0, unknown: 3 }]);
});

test('where they clear everything, or are very many, the reconcile does not count', async () => {
  const { pool, keys } = await learnedPool();
  const token = pool.cache.beginReconcile();
  pool.send([stored(keys[0]), cleared()]);
  assert.equal(pool.cache.reconcile(token, keys, { s0: 1, firstSequence: 1n }), { accepted: false, reason: 'backlog' });
  const second = pool.cache.beginReconcile();
  sendEvents(pool, 4097);
  const s0 = pool.sequence;
  assert.equal(pool.cache.reconcile(second, keys, { s0, firstSequence: 2n }), { accepted: false, reason: 'backlog' });
  // Behind s0 both are applied as they come.
  const third = pool.cache.beginReconcile();
  sendEvents(pool, 4097);
  assert.ok(pool.cache.reconcile(third, keys, { s0, firstSequence: s0 + 1n }).accepted);
});

// ---- the caps ----

test('above the digest cap: digests with edges come first, and no digest is kept in part', async () => {
  const pool = await CorePool.load('tiny', { groups: [{ ranks: 2 }] });
  const prompts = Array.from({ length: 100 }, (_, name) => pool.prompt(name));
  const learned = prompts.filter((_, name) => name % 3 === 0); // 34
  for (const prompt of learned) pool.teach(prompt);
  const placed = pool.core.replaceResidency(
    listed(
      pool,
      prompts.flatMap((prompt) => prompt.keys(pool.contract)),
    ),
  );
  assert.is(placed, 128);
  assert.equal(pool.core.census(), [{ group: 0, complete: 64, objects: 128, cpu: 0, disk: 0, unknown: 128 }]);
  assert.is(pool.core.stats().digestEvictions, 0);
  for (const prompt of learned) assert.is(pool.explain(prompt).hit, 1);
});

test('above the digest cap: of digests with edges too there are only as many as fit, all of them whole', async () => {
  const pool = await CorePool.load('tiny', { groups: [{ ranks: 3 }, { kind: 'mamba', ranks: 5 }] });
  const prompt = pool.prompt(1, 64);
  pool.teach(prompt);
  const others = Array.from({ length: 50 }, (_, name) => pool.prompt(100 + name)).flatMap((one) =>
    one.keys(pool.contract),
  );
  const placed = pool.core.replaceResidency(listed(pool, [...others, ...prompt.keys(pool.contract)]));
  assert.is(placed, 64 * 8);
  assert.is(pool.hits(prompt), 64);
});

test('above the membership cap of wide builds: the digest that does not fit whole is left out, smaller ones still fit', async () => {
  const pool = await CorePool.load('tiny-wide', { groups: [{ ranks: 5 }] });
  const prompts = Array.from({ length: 60 }, (_, name) => pool.prompt(name));
  // In any order: the master's list is not grouped by digest.
  const keys = new Random(5).shuffle(prompts.flatMap((prompt) => prompt.keys(pool.contract)));
  assert.is(pool.core.replaceResidency(listed(pool, keys)), 255); // 51 digests of 5 objects; room for one object is left
  assert.equal(pool.core.census(), [{ group: 0, complete: 51, objects: 255, cpu: 0, disk: 0, unknown: 255 }]);
  // A digest of which the store itself holds one part only is whole with that.
  const single = `${prefixOf(0, 0)}@${'f'.repeat(64)}`;
  assert.is(pool.core.replaceResidency(listed(pool, [...keys, single])), 256);
  assert.equal([pool.core.stats().members, pool.core.stats().refusedObjects], [256, 0]);
});

test('above the caps: what was resident before is replaced, not added to', async () => {
  const pool = await CorePool.load('tiny');
  for (let name = 0; name < 64; name++) pool.store(pool.prompt(name));
  const keys = Array.from({ length: 10 }, (_, name) => pool.prompt(200 + name)).flatMap((prompt) =>
    prompt.keys(pool.contract),
  );
  assert.is(pool.core.replaceResidency(listed(pool, keys)), 10);
  assert.equal([pool.core.stats().digests, pool.core.stats().members], [10, 10]);
});

test('two digests under one low64 in the list: neither is credited', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const twin = `${prefixOf(0, 0)}@${twinOf(prompt.digest(1))}`;
  assert.ok(pool.cache.reconcile(pool.cache.beginReconcile(), [twin, ...keys], NOTHING_RECEIVED).accepted);
  assert.equal([pool.hits(prompt), pool.objects], [1, 3]);
  assert.is(pool.explain(prompt).reasons[0]!.code, 'digest-ambiguous');
});

test('the count of placed objects leaves out what was dropped as ambiguous', async () => {
  const { pool, prompt, keys } = await learnedPool();
  const twin = `${prefixOf(0, 0)}@${twinOf(prompt.digest(1))}`;
  const result = pool.cache.reconcile(pool.cache.beginReconcile(), [twin, ...keys], NOTHING_RECEIVED);
  assert.ok(result.accepted);
  assert.is(result.accepted && result.placed, pool.objects);
});

test.run();
