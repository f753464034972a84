// The events and batches of each wire generation, byte for byte as the real publisher packs them: which fields, in which order, in which widths
// (spec/mooncake-events.md 0 and 3; samples in data/mooncake-event-samples.json). The packer takes the smallest integer form that fits.
import { Encoder } from '@msgpack/msgpack';
import { type ConnectorKey, connectorKey } from './connector-key.js';
import { looseKeyHash, strictKeyHash } from './key-hash.js';
import type { Announcement, EventFlags, Generation } from './types.js';

/** Encodes nothing but what this file gives it: 64-bit integers come as bigint, smaller ones as numbers. */
const encoder = new Encoder({ useBigInt64: true });

const LEGACY_TYPES = { stored: 'BlockStored', removed: 'BlockRemoved', cleared: 'AllBlocksCleared' } as const;

/** What an event says of its object besides the key. */
interface Identity {
  readonly seqHash: bigint | null;
  readonly connector: ConnectorKey | null;
}

/** An event that will be sent, or why not. The counts go into the publisher's status. */
export interface Prepared {
  readonly event: Announcement;
  readonly identity: Identity;
  /** False: the publisher skips it, and no event id is spent on it. */
  readonly sent: boolean;
  /** The key gives no number (A, B), or the event has no key (C). */
  readonly skippedKey: boolean;
  /** The key names a hash that is none (B). */
  readonly invalidHash: boolean;
}

const NO_IDENTITY: Identity = { seqHash: null, connector: null };

/** What a generation makes of an announcement before it numbers it. */
export function prepare(generation: Generation, event: Announcement, flags: EventFlags): Prepared {
  const plain = { event, identity: NO_IDENTITY, sent: true, skippedKey: false, invalidHash: false };
  if (event.kind === 'cleared') return plain;
  if (generation === 'C') return { ...plain, sent: flags.emitObjectKey, skippedKey: !flags.emitObjectKey };
  const connector = generation === 'B' ? connectorKey(event.key) : null;
  const seqHash =
    connector !== null ? connector.seqHash : generation === 'A' ? looseKeyHash(event.key) : strictKeyHash(event.key);
  const sent = seqHash !== null || flags.emitObjectKey;
  return {
    event,
    identity: { seqHash, connector },
    sent,
    skippedKey: seqHash === null && (!sent || connector === null),
    invalidHash: connector !== null && seqHash === null,
  };
}

/** A batch's payload. */
export function encodeBatch(
  generation: Generation,
  events: readonly Prepared[],
  firstId: number,
  now: number,
  flags: EventFlags,
): Uint8Array {
  const timestamp = BigInt(Math.trunc(now));
  const maps = events.map((event, i) => fieldsOf(generation, event, firstId + i, timestamp, flags));
  return encoder.encode([timestamp, maps, generation === 'A' ? 0 : flags.dpRank]);
}

type Field = string | number | bigint | null | readonly (number | bigint)[];

function fieldsOf(
  generation: Generation,
  { event, identity }: Prepared,
  id: number,
  timestamp: bigint,
  flags: EventFlags,
): Record<string, Field> {
  const { kind, tenant, group, medium, key } = event;
  const { emitLegacyCompat: legacy, emitObjectKey } = flags;
  const fields: Record<string, Field> = { event_id: unsigned(id), timestamp, event_type: kind };
  if (legacy) fields['type'] = LEGACY_TYPES[kind];
  Object.assign(fields, modelFields(generation, identity, flags));
  fields['tenant_id'] = tenant;
  fields['backend_id'] = flags.backendId;
  if (generation === 'A') fields['group_id'] = orNil(group);
  fields['medium'] = medium;
  fields['dp_rank'] = generation === 'A' ? null : flags.dpRank;
  if (kind === 'cleared') return fields;

  if (generation !== 'A') fields['group_id'] = identity.connector?.group ?? orNil(group);
  if (emitObjectKey) fields['object_key'] = key;
  if (identity.connector !== null) Object.assign(fields, connectorFields(identity.connector));
  fields['seq_hashes'] = identity.seqHash === null ? [] : [packed(identity.seqHash)];
  if (legacy) fields['block_hashes'] = blockHashes(generation, identity.seqHash);
  fields['base_block_idx'] = generation === 'A' && kind === 'stored' ? 0 : null;
  if (kind === 'removed') return fields;
  fields['parent_hash'] = null;
  fields['token_ids'] = null;
  if (legacy) fields['parent_block_hash'] = null;
  return fields;
}

function modelFields(generation: Generation, { connector }: Identity, flags: EventFlags): Record<string, Field> {
  if (generation === 'A') return { model_name: null, block_size: null, additional_salt: null, lora_name: null };
  return {
    model_name: orNil(connector?.model ?? flags.modelName),
    block_size: flags.blockSize === 0 ? null : flags.blockSize,
    additional_salt: orNil(flags.additionalSalt),
    lora_name: orNil(flags.loraName),
  };
}

function connectorFields({ hash, seqHash, cachePrefix, ranks }: ConnectorKey): Record<string, Field> {
  return {
    ...(seqHash === null ? {} : { connector_block_hash: hash }),
    ...(cachePrefix === '' ? {} : { cache_prefix: cachePrefix }),
    ...Object.fromEntries(ranks),
  };
}

/** Generation A writes the same bits as a signed number; B as they are. */
function blockHashes(generation: Generation, hash: bigint | null): (number | bigint)[] {
  if (hash === null) return [];
  return [packed(generation === 'A' ? BigInt.asIntN(64, hash) : hash)];
}

function orNil(text: string | null): string | null {
  return text === '' ? null : text;
}

/** In the form that takes fewest bytes: the encoder writes bigints as 64 bits. */
function packed(value: bigint): number | bigint {
  return value >= -0x8000_0000n && value <= 0xffff_ffffn ? Number(value) : value;
}

function unsigned(value: number): number | bigint {
  return value <= 0xffff_ffff ? value : BigInt(value);
}
