// What a stored event teaches, and every reason for which it teaches nothing (design.md 5, spec/kv-events.md 1.8 and 1.10).
import { Encoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { EventNormaliser } from '../src/events/normaliser.js';
import { whyNotLearned } from '../src/events/stored-blocks.js';
import { tierOf } from '../src/events/tiers.js';
import { decodeWorkerBatch } from '../src/wire/vllm.js';

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

function refusal(
  fields: object,
  { blockSize = 4, mainEventGroup = 1 }: { blockSize?: number; mainEventGroup?: number | null } = {},
): string {
  const { events, rejected } = decodeWorkerBatch(encoder.encode([0, [{ ...DENSE, ...fields }], 0]));
  assert.equal(rejected, []);
  const normaliser = new EventNormaliser();
  const event = normaliser.normalise(normaliser.publisher(), events[0]!);
  if (event.kind !== 'stored') return `dropped: ${event.kind === 'dropped' ? event.reason : event.kind}`;
  return whyNotLearned(event, { mainEventBlockSize: blockSize, mainEventGroup }) ?? 'learned';
}

test('device tier only: absent, empty, GPU or DEVICE', () => {
  for (const medium of [undefined, null, '', 'GPU', 'DEVICE']) assert.is(refusal({ medium }), 'learned');
  for (const medium of ['CPU', 'STORAGE', 'SHARED']) assert.is(refusal({ medium }), 'not-device-tier');
  for (const medium of ['cpu', 'gpu', 'HBM']) assert.is(refusal({ medium }), 'dropped: unknown_medium');
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

test('the main event group teaches, or events without a group', () => {
  assert.is(refusal({}, { mainEventGroup: 1 }), 'learned');
  assert.is(refusal({ group_idx: null }, { mainEventGroup: 1 }), 'learned');
  assert.is(refusal({}, { mainEventGroup: 0 }), 'not-main-group');
  assert.is(refusal({ group_idx: 0 }, { mainEventGroup: 1 }), 'not-main-group');
  assert.is(refusal({ group_idx: 5 }), 'not-main-group');
});

test('under a contract without a main group no event is of it, and none teaches', () => {
  for (const group_idx of [0, 1, null]) assert.is(refusal({ group_idx }, { mainEventGroup: null }), 'not-main-group');
  assert.is(refusal({ medium: 'CPU' }, { mainEventGroup: null }), 'not-device-tier');
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
