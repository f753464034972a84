// Events of a plane in a router (router/plane-events.ts): what teaches the shared cache, what the index takes, and what is only counted. Held against the
// direct path where there is one.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { blockHashes } from '../src/index.js';
import type { RouterEvent, StoredData } from '../src/wire/envelope/types.js';
import type { Prompt } from './support/messages.js';
import { type EventWords, planeEvent, removedData, storedData } from './support/plane-events.js';
import { dumpedSet } from './support/prefix-dumps.js';
import { hashOf, RouterPool } from './support/router-pool.js';

const OPTIONS = { index: { bytes: 4 << 20, provenance: true, tableSeed: 5n } };

function storedOf(prompt: Prompt, words: Partial<StoredData> & { first?: number; loraName?: string } = {}): StoredData {
  const { first = 0, loraName, ...rest } = words;
  const hashes = BigUint64Array.from({ length: prompt.blocks - first }, (_, i) => hashOf(prompt, first + i));
  const tokens = prompt.tokens.subarray(0, prompt.blocks * prompt.blockSize);
  const locals = blockHashes(tokens, prompt.blockSize, loraName === undefined ? {} : { loraName }).slice(first);
  const parent = first === 0 ? null : hashOf(prompt, first - 1);
  return { kind: 'stored', parent, startPosition: null, hashes, locals, mm: null, ...rest };
}

/** A pool and a second one, of one worker, with a prompt in the store. */
async function pools() {
  const [direct, plane] = [await RouterPool.shared(1, OPTIONS), await RouterPool.shared(1, OPTIONS)];
  for (const pool of [direct, plane]) pool.add(1);
  const prompt = direct.prompt(1, 8);
  for (const pool of [direct, plane]) pool.store(prompt);
  const take = (data: RouterEvent['data'], words: EventWords = {}) =>
    plane.router.takeEvent(planeEvent(1, data, { workerId: 0n, ...words }));
  /** Blocks that the store is believed to restore, once the GPU has lost them. */
  const shared = (pool: RouterPool, request: object = {}) => {
    const { blocks } = pool.route(prompt, { allowed: [1], ...request });
    return blocks.shared;
  };
  return { direct, plane, prompt, take, shared };
}

test('an eligible store of the device teaches first, and then the index takes it: as on the direct path', async () => {
  const { direct, plane, prompt, take, shared } = await pools();
  const told = direct.announce(0, prompt);
  const result = take(storedOf(prompt), { eligible: true });
  assert.equal(result, { fate: 'applied', learned: told.learned, stored: told.stored, removed: 0, whole: true });
  assert.is(result.learned, 8);
  assert.equal(dumpedSet(plane.router.dump(0)), dumpedSet(direct.router.dump(0)));
  assert.is(shared(plane), 8);
  assert.is(shared(direct), 8);
});

test('what the index refuses has taught all the same', async () => {
  const { direct, plane, prompt, take } = await pools();
  const told = direct.announce(0, prompt, { first: 4 });
  const result = take(storedOf(prompt, { first: 4 }), { eligible: true });
  assert.is(result.learned, told.learned);
  assert.equal([result.learned, result.stored, result.whole], [4, 0, false]);
  assert.equal(plane.router.stats().gpuEvents.notIndexed, direct.router.stats().gpuEvents.notIndexed);
});

test('who teaches nothing', async () => {
  const rows: [string, Partial<StoredData>, EventWords, string | null][] = [
    ['ineligible', {}, {}, null],
    ['host memory', {}, { eligible: true, tier: 'host_pinned' }, null],
    ['disk', {}, { eligible: true, tier: 'disk' }, null],
    ['external', {}, { eligible: true, tier: 'external' }, null],
    ['multimodal', { mm: [null, { mm_objects: [] }] }, { eligible: true }, 'multimodal'],
    ['a start that is none', { startPosition: 16 }, { eligible: true }, 'start-position'],
  ];
  for (const [what, data, words, reason] of rows) {
    const { plane, prompt, take, shared } = await pools();
    const { learned, stored } = take(storedOf(prompt, data), words);
    assert.equal([learned, stored], [0, 8], what);
    assert.is(shared(plane), 0, what);
    assert.equal(plane.router.stats().planeEvents.notTaught, reason === null ? {} : { [reason]: 1 }, what);
  }
});

test('multimodal information that is none, and places that fit, teach', async () => {
  const { prompt, take } = await pools();
  assert.is(take(storedOf(prompt, { mm: [null, null] }), { eligible: true }).learned, 8);
  assert.is(take(storedOf(prompt, { startPosition: 0 }), { eligible: true }).learned, 8);
  assert.is(take(storedOf(prompt, { first: 4, startPosition: 4 }), { eligible: true }).learned, 4);
  assert.is(take(storedOf(prompt, { first: 4, startPosition: 0 }), { eligible: true }).learned, 0);
});

test('a LoRA is in the local hashes, so its blocks teach its prompts and no others', async () => {
  const { plane, prompt, take } = await pools();
  for (const id of [0, 1]) plane.add(id, { adapters: ['sql'] });
  assert.is(take(storedOf(prompt, { loraName: 'sql' }), { eligible: true }).learned, 8);
  const shared = (request: object) => plane.route(prompt, { allowed: [1], ...request }).blocks.shared;
  assert.is(shared({ loraName: 'sql' }), 8);
  assert.is(shared({}), 0);
});

test('a source that is not admitted teaches nothing', async () => {
  const { plane, prompt } = await pools();
  plane.router.addWorker({ id: 5 });
  const result = plane.router.takeEvent(planeEvent(1, storedOf(prompt), { workerId: 5n, eligible: true }));
  assert.equal([result.learned, result.stored], [0, 8]);
});

test('removals by tier, and clears', async () => {
  const { plane, prompt, take } = await pools();
  take(storedOf(prompt));
  take(storedOf(prompt), { tier: 'host_pinned' });
  const hashes = storedOf(prompt).hashes.slice(6);
  assert.is(take({ kind: 'removed', hashes }).removed, 2);
  assert.is(take({ kind: 'removed', hashes }).removed, 0);
  assert.is(dumpedSet(plane.router.dump(0)).size, 14);
  assert.is(take({ kind: 'removed', hashes }, { tier: 'host_pinned' }).removed, 2);
  take({ kind: 'cleared' });
  assert.equal(plane.router.dump(0), []);
  assert.is(plane.router.stats().gpuEvents.rebuilt, 0);
});

test('events that are no worker’s of this router, or no worker’s at all', async () => {
  const { plane, prompt, take } = await pools();
  take(storedOf(prompt));
  const fates: [RouterEvent['data'], EventWords, string][] = [
    [storedData(null, [1]), { workerId: 9n }, 'unknown-worker'],
    [storedData(null, [1]), { dpRank: 3 }, 'unknown-rank'],
    [storedOf(prompt), { domain: 'cache_owner', tier: 'external' }, 'cache-owner'],
    [removedData([1]), { domain: 'cache_owner', tier: 'external' }, 'cache-owner'],
    [{ kind: 'cleared' }, { domain: 'cache_owner' }, 'cache-owner'],
    [storedOf(prompt), { domain: 'worker' }, 'applied'],
  ];
  for (const [data, words, fate] of fates) assert.is(take(data, words).fate, fate);
  assert.is(dumpedSet(plane.router.dump(0)).size, 8, "the owner's clear is not the worker's");
  assert.equal(plane.router.stats().planeEvents.events, {
    applied: 2,
    'unknown-worker': 1,
    'unknown-rank': 1,
    'cache-owner': 3,
  });
  plane.router.dispose();
  assert.is(take({ kind: 'cleared' }).fate, 'disposed');
});

// ---- contradictions ----

const SALT = { cache_salt: 's' };

test('a contradiction costs the credit that it costs on the direct path, in whatever form it comes', async () => {
  const forms: [string, (prompt: Prompt) => [RouterEvent['data'], EventWords]][] = [
    ['a store', (prompt) => [storedOf(prompt, { first: 4 }), {}]],
    ['a store of the host', (prompt) => [storedOf(prompt, { first: 4 }), { tier: 'host_pinned' }]],
    ['one that says eligible', (prompt) => [storedOf(prompt, { first: 4 }), { eligible: true }]],
    [
      "an owner's removal",
      (prompt) => [
        { kind: 'removed', hashes: storedOf(prompt, { first: 4 }).hashes },
        { domain: 'cache_owner', tier: 'external' },
      ],
    ],
  ];
  for (const [form, said] of forms) {
    const { direct, plane, prompt, take, shared } = await pools();
    direct.announce(0, prompt);
    take(storedOf(prompt), { eligible: true });
    assert.equal([shared(direct), shared(plane)], [8, 8]);
    direct.announce(0, prompt, { first: 4, medium: 'CPU', fields: SALT });
    direct.announce(0, prompt, { first: 4 });
    const [data, words] = said(prompt);
    const { learned } = take(data, { ...words, contradicts: true });
    assert.is(learned, 0, form);
    assert.equal([shared(direct), shared(plane)], [4, 4], form);
    assert.is(plane.router.stats().planeEvents.contradicted, 4, form);
    // Nothing gives it back.
    direct.announce(0, prompt, { first: 4 });
    take(storedOf(prompt, { first: 4 }), { eligible: true });
    assert.equal([shared(direct), shared(plane)], [4, 4], form);
  }
});

test("an owner's contradiction leaves the worker's blocks alone", async () => {
  const { plane, prompt, take } = await pools();
  take(storedOf(prompt), { eligible: true });
  const before = dumpedSet(plane.router.dump(0));
  const words = { domain: 'cache_owner', tier: 'external', contradicts: true } as const;
  const { fate } = take({ kind: 'removed', hashes: storedOf(prompt).hashes }, words);
  assert.is(fate, 'cache-owner');
  assert.equal(dumpedSet(plane.router.dump(0)), before);
});

test('who may not teach takes no credit away either', async () => {
  const { plane, prompt, take, shared } = await pools();
  take(storedOf(prompt), { eligible: true });
  plane.router.addWorker({ id: 5 });
  take(storedOf(prompt), { workerId: 5n, contradicts: true });
  take(storedOf(prompt), { workerId: 9n, contradicts: true });
  assert.is(shared(plane), 8);
  assert.is(plane.router.stats().planeEvents.contradicted, 0);
});

test('with GPU events off nothing is looked at', async () => {
  const pool = await RouterPool.open({ ...OPTIONS, settings: { useKvEvents: false } });
  pool.router.addWorker({ id: 0 });
  assert.is(pool.router.takeEvent(planeEvent(1, storedData(null, [1]), { workerId: 0n })).fate, 'gpu-events-off');
});

test('an event of more blocks than the index takes at once', async () => {
  const { plane, take } = await pools();
  const count = 70_000;
  const hashes = BigUint64Array.from({ length: count }, (_, i) => BigInt(i + 1));
  const data: StoredData = {
    kind: 'stored',
    parent: null,
    startPosition: null,
    hashes,
    locals: hashes.slice(),
    mm: null,
  };
  const { stored, whole } = take(data);
  assert.ok(whole || plane.router.stats().index.evicted > 0 || stored === 65_536);
  const { removed } = take({ kind: 'removed', hashes });
  assert.ok(removed <= count);
});

test('blocks that repeat, or are their own parents, do no harm', async () => {
  const { plane, take } = await pools();
  take(storedData(null, [1, 2, 1, 2]), { eligible: true });
  take(storedData(5, [5, 5]), { eligible: true });
  take(storedData(2, [3, 1]));
  take(removedData([1, 1, 2]));
  assert.ok(Array.isArray(plane.router.dump(0)));
});

test.run();
