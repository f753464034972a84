// Turns an oracle case into the bytes that real publishers would send: KV events as vLLM's engine emits them for the main
// attention group, and batches of the Mooncake master that store the case's objects. Judging a case through these bytes
// tests the whole path, wire included. Layouts: spec/kv-events.md 1.4, 1.5 and 1.12, spec/mooncake-events.md 1–3; key
// orders and number widths are those of the captured streams.
import { Encoder } from '@msgpack/msgpack';
import { digestFromHex, low64OfHex } from '../wire/engine-hashes.js';
import { writeSequence } from '../wire/frames.js';
import type { OracleCase } from './case-file.js';

/** How the worker of a case publishes. */
export interface WorkerEncoding {
  /** Events as tagged maps (vLLM of June 2026 on) or tagged arrays. */
  readonly form: 'map' | 'positional';
  /** Block hashes as unsigned or signed 64-bit integers, or as 32-byte digests. */
  readonly hashes: 'u64' | 'i64' | 'binary';
}

/** How the master of a case publishes. */
export interface StoreEncoding {
  /** Wire generation; the newer one says `dp_rank` in each event. */
  readonly generation: 'A' | 'C';
  /** Where the objects lie; `cpu` unless said. */
  readonly medium?: 'cpu' | 'disk';
  /** Most events a message; the master sends up to 64. */
  readonly batch?: number;
  /** Name of the master. */
  readonly backendId?: string;
}

const encoder = new Encoder({ useBigInt64: true });
const STORE_BATCH_EVENTS = 64;
const STORE_BACKEND = 'moonroute-oracle';
/** A chain of more blocks than this is announced in two events. */
const SPLIT_ABOVE_BLOCKS = 3;
// Clocks of the made-up publishers: seconds with a fraction (a float on the wire), and milliseconds.
const WORKER_EPOCH_SECONDS = 1_789_095_808.5;
const STORE_EPOCH_MS = 1_796_015_123_383n;

/**
 * The worker's messages, `[topic, sequence, payload]` each, sequences from 0: `BlockStored` for every full block of the main
 * event group that lies within the case's known tokens and digests, which may be more than the request has. A chain of more
 * than three blocks takes two messages. Empty when the case has no full-attention group.
 */
export function workerMessages(oracleCase: OracleCase, { form, hashes }: WorkerEncoding): Uint8Array[][] {
  const { mainEventBlockSize: blockSize, hashBlockSize, digests, tokens, loraName, cacheSalt } = oracleCase;
  if (blockSize === null) return [];
  const digestsPerBlock = blockSize / hashBlockSize;
  const blocks = Math.min(Math.floor(tokens.length / blockSize), Math.floor(digests.length / digestsPerBlock));
  const hashOf = (block: number): unknown => {
    const digest = digests[(block + 1) * digestsPerBlock - 1]!;
    if (hashes === 'binary') return digestFromHex(digest);
    const low64 = low64OfHex(digest);
    return integer(hashes === 'i64' ? BigInt.asIntN(64, low64) : low64);
  };
  const keysOf = (block: number): string[] | null => {
    const keys = [...(loraName ? [loraName] : []), ...(cacheSalt && block === 0 ? [cacheSalt] : [])];
    return keys.length > 0 ? keys : null;
  };
  const eventOf = (first: number, end: number): unknown => {
    const covered = Array.from({ length: end - first }, (_, i) => first + i);
    const event = {
      type: 'BlockStored',
      block_hashes: covered.map(hashOf),
      parent_block_hash: first > 0 ? hashOf(first - 1) : null,
      token_ids: Array.from(tokens.subarray(first * blockSize, end * blockSize)),
      block_size: blockSize,
      lora_id: loraName ? 1 : null,
      medium: 'GPU',
      lora_name: loraName,
      extra_keys: covered.map(keysOf),
      group_idx: oracleCase.groups.findIndex((group) => group.kind === 'full_attention'),
      kv_cache_spec_kind: 'full_attention',
    };
    return form === 'map' ? event : Object.values(event); // the map's keys stand in the order of the array's slots
  };
  const split = blocks > SPLIT_ABOVE_BLOCKS ? Math.floor(blocks / 2) : blocks;
  const spans = [
    [0, split],
    [split, blocks],
  ] as const;
  return spans
    .filter(([first, end]) => end > first)
    .map(([first, end], i) => message(i, [WORKER_EPOCH_SECONDS + i, [eventOf(first, end)], 0]));
}

/**
 * The master's messages, `[empty topic, sequence, payload]` each, sequences and event ids from 1, that store every object of
 * the case in its order.
 * @throws {RangeError} when `batch` is no positive integer.
 */
export function storeMessages(oracleCase: OracleCase, encoding: StoreEncoding): Uint8Array[][] {
  const { batch = STORE_BATCH_EVENTS } = encoding;
  if (!Number.isInteger(batch) || batch < 1) throw new RangeError(`batch is ${batch}, expected a positive integer`);
  const messages: Uint8Array[][] = [];
  const { objects } = oracleCase;
  for (let first = 0; first < objects.length; first += batch) {
    const timestamp = STORE_EPOCH_MS + BigInt(messages.length);
    const events = objects
      .slice(first, first + batch)
      .map(({ key }, i) => storedObject(first + i + 1, timestamp, key, encoding));
    messages.push(message(messages.length + 1, [timestamp, events, 0]));
  }
  return messages;
}

/** A `stored` event map with all its keys, in the order in which the generation writes them. */
function storedObject(eventId: number, timestamp: bigint, key: string, encoding: StoreEncoding) {
  const { generation, medium = 'cpu', backendId = STORE_BACKEND } = encoding;
  const place = generation === 'A' ? { group_id: null, medium, dp_rank: null } : { medium, dp_rank: 0, group_id: null };
  return {
    event_id: eventId,
    timestamp,
    event_type: 'stored',
    type: 'BlockStored',
    model_name: null,
    block_size: null,
    additional_salt: null,
    lora_name: null,
    tenant_id: 'default',
    backend_id: backendId,
    ...place,
    object_key: key,
    seq_hashes: [],
    block_hashes: [],
    base_block_idx: generation === 'A' ? 0 : null,
    parent_hash: null,
    token_ids: null,
    parent_block_hash: null,
  };
}

/** As publishers write integers: the encoder gives every bigint 9 bytes, so short ones become numbers. */
function integer(value: bigint): bigint | number {
  return value >= -0x8000_0000n && value <= 0xffff_ffffn ? Number(value) : value;
}

function message(sequence: number, batch: unknown): Uint8Array[] {
  return [new Uint8Array(0), writeSequence(BigInt(sequence)), encoder.encode(batch)];
}
