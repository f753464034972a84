// The bytes of an engine's messages, as `[topic, sequence, payload]`: vLLM's KV events as tagged maps with 64-bit hashes
// (spec/vllm-store.md 8, spec/kv-events.md 1.5). Key orders and number widths are those of captured streams.
import { Encoder } from '@msgpack/msgpack';
import { writeSequence } from '../wire/frames.js';

/** Most events and tokens in a batch here. Readers take 65,536 events, and as many tokens as 16 MiB hold. */
export const WORKER_BATCH_EVENTS = 4096;
export const WORKER_BATCH_TOKENS = 1 << 20;

/** The engine's clock when it begins: seconds with a fraction (a float on the wire). */
const EPOCH_SECONDS = 1_789_095_808.5;
const DP_RANK = 0;

const encoder = new Encoder({ useBigInt64: true });
const NO_TOPIC = new Uint8Array(0);

/** Blocks that entered a GPU: a run of a chain. */
export function blockStored(parent: bigint | null, hashes: readonly bigint[], tokens: Uint32Array, group: number) {
  return {
    type: 'BlockStored',
    block_hashes: hashes,
    parent_block_hash: parent,
    token_ids: Array.from(tokens),
    block_size: tokens.length / hashes.length,
    lora_id: null,
    medium: 'GPU',
    lora_name: null,
    extra_keys: hashes.map(() => null),
    group_idx: group,
    kv_cache_spec_kind: 'full_attention',
  };
}

/** A block that left a GPU: engines make an event of each. */
export function blockRemoved(hash: bigint, group: number) {
  return { type: 'BlockRemoved', block_hashes: [hash], medium: 'GPU', group_idx: group };
}

/** A message. */
export function workerMessage(sequence: number, events: readonly object[]): Uint8Array[] {
  const payload = encoder.encode([EPOCH_SECONDS + sequence, events, DP_RANK]);
  return [NO_TOPIC, writeSequence(BigInt(sequence)), payload];
}
