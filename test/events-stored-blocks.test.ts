// What a stored event teaches, and every reason for which it teaches nothing (design.md 5, spec/kv-events.md 1.8 and 1.10).
import { Encoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { judgeStored } from '../src/events/eligibility.js';
import { type LearnableBlocks, toLearnable } from '../src/events/stored-blocks.js';
import { tierOf } from '../src/events/tiers.js';
import { decodeWorkerBatch, type StoredEvent } from '../src/wire/vllm.js';

const encoder = new Encoder({ useBigInt64: true });
const DENSE = {
  type: 'BlockStored',
  block_hashes: [11, -1],
  parent_block_hash: -2,
  token_ids: [1, 2, 3, 4, 5, 6, 7, 8],
  block_size: 4,
  medium: 'GPU',
  extra_keys: [null, null],
  group_idx: 1,
  kv_cache_spec_kind: 'full_attention',
};

function learn(
  fields: object,
  { blockSize = 4, mainEventGroup }: { blockSize?: number; mainEventGroup?: number } = {},
) {
  const { events, rejected } = decodeWorkerBatch(encoder.encode([0, [{ ...DENSE, ...fields }], 0]));
  assert.equal(rejected, []);
  const event = events[0] as StoredEvent;
  return toLearnable(event, { blockSize, mainEventGroup, verdict: judgeStored(event) });
}

function refusal(...args: Parameters<typeof learn>): string {
  const blocks = learn(...args);
  return 'refused' in blocks ? blocks.refused : 'learned';
}

test('a dense event gives its parent, hashes and tokens', () => {
  const blocks = learn({}) as LearnableBlocks;
  assert.is(blocks.parent, 2n ** 64n - 2n);
  assert.equal([...blocks.lows], [11n, 2n ** 64n - 1n]);
  assert.equal([...blocks.tokens], [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal([blocks.digests, blocks.loraName, blocks.namespace, blocks.salted], [null, null, null, false]);
  assert.is((learn({ parent_block_hash: null }) as LearnableBlocks).parent, null);
});

test('digests, LoRA and namespace are handed on', () => {
  const digest = (seed: number) => Uint8Array.from({ length: 32 }, (_, i) => seed + i);
  const blocks = learn({
    block_hashes: [digest(1), digest(2)],
    parent_block_hash: digest(3),
    lora_id: 1,
    lora_name: 'adapter-a',
    extra_keys: [['adapter-a', 'dynamo-cache-salt:tenant-a'], ['adapter-a']],
  }) as LearnableBlocks;
  assert.equal(blocks.digests, Uint8Array.from([...digest(1), ...digest(2)]));
  assert.is(blocks.parent, 0x1b1c1d1e1f202122n);
  assert.equal([blocks.loraName, blocks.namespace, blocks.salted], ['adapter-a', 'tenant-a', true]);
  assert.is((learn({ lora_name: '' }) as LearnableBlocks).loraName, null);
});

test('device tier only: absent, empty, GPU or DEVICE', () => {
  for (const medium of [undefined, null, '', 'GPU', 'DEVICE']) assert.is(refusal({ medium }), 'learned');
  for (const medium of ['CPU', 'STORAGE', 'SHARED', 'cpu', 'gpu', 'HBM'])
    assert.is(refusal({ medium }), 'not-device-tier');
});

test('the table of tiers', () => {
  const rows = {
    device: [null, '', 'GPU', 'DEVICE'],
    host_pinned: ['CPU', 'CPU_PINNED', 'CPU_TIER1'],
    disk: ['CPU_TIER2', 'DISK', 'NVME', 'STORAGE'],
    external: ['EXTERNAL', 'NETWORK', 'REMOTE', 'SHARED'],
  };
  for (const [tier, media] of Object.entries(rows)) for (const medium of media) assert.is(tierOf(medium), tier);
  for (const medium of ['cpu', 'gpu', 'Gpu', 'GPU ', 'constructor']) assert.is(tierOf(medium), null);
});

test('local blocks that nobody else owns', () => {
  for (const locality of [undefined, null, 'LOCAL']) assert.is(refusal({ locality }), 'learned');
  for (const locality of ['REMOTE', 'local', '']) assert.is(refusal({ locality }), 'not-local');
  for (const ownership of ['kvcr', 'x', '']) assert.is(refusal({ ownership }), 'owned');
});

test('main-attention kinds teach, or events without a kind', () => {
  const kinds = [undefined, null, 'full_attention', 'mla_attention', 'sink_full_attention'];
  for (const kind of kinds) assert.is(refusal({ kv_cache_spec_kind: kind }), 'learned');
  for (const kind of ['sliding_window', 'sliding_window_mla', 'mamba', 'chunked_local_attention', 'unknown', '']) {
    assert.is(refusal({ kv_cache_spec_kind: kind }), 'not-main-attention');
  }
});

test('the main event group teaches, or events without a group', () => {
  assert.is(refusal({}, { mainEventGroup: 1 }), 'learned');
  assert.is(refusal({ group_idx: null }, { mainEventGroup: 1 }), 'learned');
  assert.is(refusal({}, { mainEventGroup: 0 }), 'not-main-group');
  assert.is(refusal({ group_idx: 0 }, { mainEventGroup: 1 }), 'not-main-group');
  assert.is(refusal({ group_idx: 5 }), 'learned');
});

test("the block size must be the contract's, and the tokens exactly those of the blocks", () => {
  assert.is(refusal({}, { blockSize: 8 }), 'other-block-size');
  assert.is(refusal({ block_size: 2 }, { blockSize: 4 }), 'other-block-size');
  assert.is(refusal({ block_size: 0, token_ids: [], block_hashes: [] }), 'other-block-size');
  for (const count of [0, 7, 9, 12]) assert.is(refusal({ token_ids: Array(count).fill(1) }), 'sparse');
  assert.is(refusal({ block_hashes: [11] }), 'sparse');
  assert.is(refusal({ block_hashes: [], token_ids: [], extra_keys: [] }), 'no-blocks');
  assert.is(refusal({ block_hashes: [] }), 'no-blocks');
});

test('one extra-keys entry for each block, or none at all', () => {
  for (const extra_keys of [undefined, null, [null, null], [[], null]]) assert.is(refusal({ extra_keys }), 'learned');
  for (const extra_keys of [[], [null], [null, null, null]]) assert.is(refusal({ extra_keys }), 'extra-keys-count');
});

test('an ineligible event gives the reason of its judgement', () => {
  assert.is(refusal({ is_eagle: true }), 'speculative');
  assert.is(refusal({ extra_keys: [['raw-salt'], null] }), 'extra-key-unknown');
  const pairs = [
    [1, 2],
    [2, 3],
    [3, 4],
    [4, 5],
    [5, 6],
    [6, 7],
    [7, 8],
  ];
  assert.is(refusal({ token_ids: pairs }), 'token-pairs'); // flattened they would be dense
});

test.run();
