// What may teach a cache: eligible, dense events of admitted sources, in whatever order they come. Anything else teaches nothing and is
// counted (design.md 5, spec/kv-events.md 3.1, 5.5 and 5.9).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Learned } from '../src/cache/types.js';
import { type Announcement, Pool, type Prompt, stored } from './support/messages.js';

/** A pool that holds every object of a prompt which nobody has announced. */
async function unlearnedPool(blocks = 2): Promise<{ pool: Pool; prompt: Prompt }> {
  const pool = await Pool.open();
  const prompt = pool.prompt(1, blocks);
  pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  assert.is(pool.hits(prompt), 0);
  return { pool, prompt };
}

test('an eligible event of an admitted source teaches', async () => {
  const { pool, prompt } = await unlearnedPool();
  assert.equal(pool.teach(prompt), { blocks: 2, refused: null });
  assert.is(pool.hits(prompt), 2);
  assert.equal(pool.cache.stats().refusals, {});
});

test('a source is worker and rank: others teach nothing', async () => {
  const { pool, prompt } = await unlearnedPool();
  for (const source of [
    { workerId: 'other', dpRank: 0 },
    { workerId: 'worker', dpRank: 1 },
    { workerId: 'worker/0', dpRank: 0 },
    { workerId: 0, dpRank: 0 },
  ])
    assert.equal(pool.teach(prompt, {}, source), { blocks: 0, refused: 'source-not-admitted' });
  assert.is(pool.hits(prompt), 0);
  assert.is(pool.cache.stats().core!.edges, 0);
  assert.equal(pool.cache.stats().refusals, { 'source-not-admitted': 4 });
});

test('worker ids are the same as number and bigint, and never as text', async () => {
  const { pool, prompt } = await unlearnedPool();
  pool.cache.updateContract(pool.contract, [{ workerId: 7, dpRank: 0 }]);
  assert.is(pool.teach(prompt, {}, { workerId: '7', dpRank: 0 }).refused, 'source-not-admitted');
  assert.is(pool.teach(prompt, {}, { workerId: 7n, dpRank: 0 }).refused, null);
  const large = 2n ** 63n + 1n;
  pool.cache.updateContract(pool.contract, [{ workerId: large, dpRank: 0 }]);
  assert.is(pool.teach(prompt, {}, { workerId: large - 1n, dpRank: 0 }).refused, 'source-not-admitted');
  assert.is(pool.teach(prompt, {}, { workerId: large, dpRank: 0 }).refused, null);
});

/** Events that teach nothing, by what they say otherwise than a plain one. */
const refusals: Readonly<Record<NonNullable<Learned['refused']>, readonly Announcement[] | null>> = {
  'flagged-ineligible': [{ fields: { shared_cache_eligible: false } }, { fields: { shared_cache_eligible: 'yes' } }],
  speculative: [{ fields: { is_eagle: true } }, { fields: { is_eagle: 1 } }],
  'token-pairs': [{ fields: { token_ids: Array.from({ length: 32 }, (_, i) => [i, i + 1]) } }],
  'lora-id-type': [{ fields: { lora_id: '7' } }],
  'lora-name-missing': [{ fields: { lora_id: 7 } }, { fields: { lora_id: 7, lora_name: '' } }],
  multimodal: [{ fields: { block_mm_infos: [null, { mm_hash: 1 }] } }],
  'extra-keys-shape': [{ fields: { extra_keys: 7 } }, { fields: { extra_keys: ['x', null] } }],
  'extra-key-not-text': [
    { fields: { extra_keys: [[1], null] } },
    { fields: { extra_keys: [[Uint8Array.of(1)], null] } },
  ],
  'extra-key-repeated': [{ fields: { lora_name: 'a', extra_keys: [['a', 'a'], ['a']] } }],
  'namespace-mismatch': [{ fields: { cache_salt: 'other', extra_keys: [['dynamo-cache-salt:tenant-a'], null] } }],
  'namespace-misplaced': [{ fields: { extra_keys: [null, ['dynamo-cache-salt:tenant-a']] } }],
  'extra-key-unknown': [{ fields: { extra_keys: [['tenant-a'], null] } }],
  'not-device-tier': [{ fields: { medium: 'CPU' } }, { fields: { medium: 'DISK' } }, { fields: { medium: 'SHARED' } }],
  'not-main-group': [{ fields: { group_idx: 1, kv_cache_spec_kind: 'full_attention' } }],
  'other-block-size': [{ fields: { block_size: 8 } }, { fields: { block_size: 32 } }],
  'no-blocks': [{ fields: { block_hashes: [], token_ids: [] } }],
  sparse: [{ fields: { token_ids: Array.from({ length: 31 }, (_, i) => i) } }, { end: 1, fields: { token_ids: [1] } }],
  'extra-keys-count': [{ fields: { extra_keys: [null] } }, { fields: { extra_keys: [null, null, null] } }],
  'bad-scope': [{ fields: { lora_name: 'x'.repeat(5_000) } }, { fields: { cache_salt: 'x'.repeat(5_000) } }],
  // Not for what a plain object can say, or not for what the event says alone; see the tests of these.
  'field-repeated': null,
  'ambiguous-namespace': null,
  stopped: null,
  pending: null,
  'no-contract': null,
  'source-not-admitted': null,
  'derived-only': null, // derived-trust.test.ts
};

test('every refusal: the event teaches nothing, is counted under its reason, and a plain one still teaches', async () => {
  const { pool, prompt } = await unlearnedPool();
  const counted: Record<string, number> = {};
  for (const [refused, announcements] of Object.entries(refusals)) {
    for (const announcement of announcements ?? []) {
      const label = `${refused} ${JSON.stringify(announcement)}`;
      assert.equal(pool.teach(prompt, announcement), { blocks: 0, refused }, label);
      assert.is(pool.cache.stats().core!.edges, 0, label);
      counted[refused] = (counted[refused] ?? 0) + 1;
    }
  }
  assert.equal(pool.cache.stats().refusals, counted);
  assert.is(pool.hits(prompt), 0);
  pool.teach(prompt);
  assert.is(pool.hits(prompt), 2);
});

test('blocks under a parent that is not learned yet count once the root is', async () => {
  const { pool, prompt } = await unlearnedPool();
  assert.is(pool.teach(prompt, { first: 1 }).blocks, 1);
  assert.is(pool.hits(prompt), 0);
  assert.is(pool.teach(prompt, { end: 1 }).blocks, 1);
  assert.is(pool.hits(prompt), 2);
});

test('events that contradict each other about a block end the credit there, for good', async () => {
  const { pool, prompt } = await unlearnedPool(3);
  pool.teach(prompt);
  assert.is(pool.hits(prompt), 3);
  const other = pool.prompt(2, 3);
  const foreignHash = Buffer.from(other.digest(1), 'hex').readBigUInt64BE(24);
  pool.teach(prompt, { first: 1, end: 2, fields: { block_hashes: [foreignHash] } });
  assert.is(pool.hits(prompt), 1);
  assert.is(pool.teach(prompt).blocks, 1); // what stands behind a contradiction teaches nothing
  assert.is(pool.teach(prompt, { hashes: 'binary' }).blocks, 1);
  pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  assert.is(pool.hits(prompt), 1);
  assert.is(pool.explain(prompt).reasons[0]!.code, 'conflict');
});

test('32-byte hashes teach as 64-bit ones do, signed or not', async () => {
  for (const announcement of [{}, { hashes: 'binary' }] as const) {
    const { pool, prompt } = await unlearnedPool();
    assert.is(pool.teach(prompt, announcement).blocks, 2);
    assert.is(pool.hits(prompt), 2);
  }
  const { pool, prompt } = await unlearnedPool();
  const signed = [0, 1].map((block) => Buffer.from(prompt.digest(block), 'hex').readBigInt64BE(24));
  assert.is(pool.teach(prompt, { fields: { block_hashes: signed } }).blocks, 2);
  assert.is(pool.hits(prompt), 2);
});

test('a LoRA’s blocks are found under its name alone', async () => {
  const { pool, prompt } = await unlearnedPool();
  const fields = { lora_id: 1, lora_name: 'adapter-a', extra_keys: [['adapter-a'], ['adapter-a']] };
  assert.is(pool.teach(prompt, { fields }).blocks, 2);
  const hitsUnder = (loraName: string | null) => pool.cache.lookup({ ...prompt.query(), loraName }).blocks;
  assert.equal(['adapter-a', 'adapter-b', '', null].map(hitsUnder), [2, 0, 0, 0]);
});

test('a namespace’s blocks are found under that namespace alone', async () => {
  for (const fields of [
    { extra_keys: [['dynamo-cache-salt:tenant-a'], null] },
    { cache_salt: 'tenant-a', extra_keys: [['dynamo-cache-salt:tenant-a'], null] },
    { cache_salt: 'tenant-a' },
  ]) {
    const { pool, prompt } = await unlearnedPool();
    assert.is(pool.teach(prompt, { fields }).blocks, 2);
    const hitsUnder = (cacheSalt: string | null) => pool.cache.lookup({ ...prompt.query(), cacheSalt }).blocks;
    assert.equal(['tenant-a', 'tenant-b', '', null].map(hitsUnder), [2, 0, 0, 0]);
  }
});

test('learning touches no residency, and residency no edges', async () => {
  const { pool, prompt } = await unlearnedPool();
  const before = pool.cache.census();
  pool.teach(prompt);
  assert.equal(pool.cache.census(), before);
  pool.cache.streamLost('disconnect');
  assert.is(pool.cache.stats().core!.edges, 2);
});

test.run();
