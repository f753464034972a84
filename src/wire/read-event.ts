// Reads one decoded KV event of a vLLM worker in both of its encodings, tagged map (vLLM of June 2026 on) and tagged array
// (before). The array's slots are given the map's names first, so that each rule about a field stands here once. Rules:
// spec/kv-events.md 1.5–1.8.
import { type EngineHash, type EngineHashes, readHashes } from './engine-hashes.js';
import { asUint32, describe, isAbsent, isMap, isUnsigned64 } from './values.js';
import type { EventFault, RemovedEvent, StoredEvent, UnreadEvent, WorkerEvent } from './worker-event.js';

/** Most tokens that one event may carry. */
export const MAX_EVENT_TOKENS = 1_048_576;

/** Names under which the events' fields stand in a map. */
export const EVENT_KEYS = [
  'type',
  'block_hashes',
  'parent_block_hash',
  'token_ids',
  'block_size',
  'lora_id',
  'medium',
  'lora_name',
  'extra_keys',
  'group_idx',
  'kv_cache_spec_kind',
  'kv_cache_spec_sliding_window',
  'locality',
  'ownership',
  'cache_salt',
  'is_eagle',
  'shared_cache_eligible',
  'block_mm_infos',
] as const;

type Field = (typeof EVENT_KEYS)[number];
type Fields = Partial<Record<Field, unknown>>;

// Slots of the array form (1.7). Behind those of a stored or removed event comes a tail in one of two layouts.
const STORED_SLOTS: readonly Field[] = EVENT_KEYS.slice(0, 9);
const REMOVED_SLOTS: readonly Field[] = ['type', 'block_hashes', 'medium'];
const CLEARED_SLOTS: readonly Field[] = ['type', 'ownership'];
const TAIL_SLOTS: readonly Field[] = EVENT_KEYS.slice(9, 14);
const TAIL_TYPES = ['u32', 'text', 'u32', 'text', 'text'] as const;
const MIN_FIXED_TAIL = 4;

/** Thrown and caught in this file. No Error, because 65,536 of them a batch must stay cheap. */
class Fault {
  constructor(
    readonly code: EventFault,
    readonly text: string,
  ) {}
}

/** Reads one decoded event; a bad one gives its reason instead of throwing. */
export function readWorkerEvent(value: unknown): WorkerEvent | UnreadEvent {
  let tag: unknown;
  try {
    const form = Array.isArray(value) ? 'positional' : 'map';
    if (!Array.isArray(value) && !isMap(value)) throw new Fault('not-an-event', `an event is ${describe(value)}`);
    tag = Array.isArray(value) ? value[0] : value.type;
    if (typeof tag !== 'string') throw new Fault('tag-missing', `the event's type is ${describe(tag)}, not text`);
    const fields = (slots: readonly Field[], hasTail: boolean): Fields =>
      Array.isArray(value) ? nameSlots(value, slots, hasTail) : (value as Fields);
    switch (tag) {
      case 'BlockStored':
        return readStored(fields(STORED_SLOTS, true), form);
      case 'BlockRemoved':
        return readRemoved(fields(REMOVED_SLOTS, true), form);
      case 'AllBlocksCleared':
        return { type: 'cleared', form, ownership: text(fields(CLEARED_SLOTS, false), 'ownership') };
      case 'Ignored':
        return { type: 'ignored', form };
      default:
        throw new Fault('tag-unknown', `the event's type is ${describe(tag)}`);
    }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    const lostRemoval = typeof tag !== 'string' || tag === 'BlockRemoved' || tag === 'AllBlocksCleared';
    return { code: fault.code, text: fault.text, lostRemoval };
  }
}

function readStored(fields: Fields, form: 'map' | 'positional'): StoredEvent {
  const blockHashes = hashList(list(fields, 'block_hashes'), 'block_hashes');
  const parentBlockHash = readParent(fields, blockHashes);
  // The array form types this slot; in a map a surprising value only costs the event its eligibility.
  if (form === 'positional' && !isAbsent(fields.lora_id) && !isUnsigned64(fields.lora_id)) {
    throw wrong(fields, 'lora_id');
  }
  return {
    type: 'stored',
    form,
    blockHashes,
    parentBlockHash,
    ...readTokens(list(fields, 'token_ids')),
    blockSize: u32(fields, 'block_size') ?? missing('block_size'),
    ...readPlace(fields),
    loraName: text(fields, 'lora_name'),
    cacheSalt: text(fields, 'cache_salt'),
    loraId: fields.lora_id,
    extraKeys: fields.extra_keys,
    isEagle: fields.is_eagle,
    sharedCacheEligible: fields.shared_cache_eligible,
    blockMmInfos: fields.block_mm_infos,
  };
}

function readRemoved(fields: Fields, form: 'map' | 'positional'): RemovedEvent {
  const blockHashes = hashList(list(fields, 'block_hashes'), 'block_hashes');
  return { type: 'removed', form, blockHashes, ...readPlace(fields) };
}

/** The fields that say where the blocks are, which stored and removed events share. */
function readPlace(fields: Fields) {
  return {
    medium: text(fields, 'medium'),
    groupIdx: u32(fields, 'group_idx'),
    specKind: text(fields, 'kv_cache_spec_kind'),
    slidingWindow: u32(fields, 'kv_cache_spec_sliding_window'),
    locality: text(fields, 'locality'),
    ownership: text(fields, 'ownership'),
  };
}

/** Gives an array's slots their names. */
function nameSlots(event: readonly unknown[], slots: readonly Field[], hasTail: boolean): Fields {
  const fields: Fields = {};
  slots.forEach((field, slot) => {
    fields[field] = event[slot];
  });
  if (hasTail) nameTail(event.slice(slots.length, slots.length + TAIL_SLOTS.length), fields);
  if (isMap(fields.lora_name)) {
    // SGLang's array form: slot 7 is a map that may hold the salt. An empty map leaves it to the extra keys; nil is no salt.
    if ('cache_salt' in fields.lora_name) fields.cache_salt = fields.lora_name.cache_salt ?? '';
    fields.lora_name = undefined;
  }
  return fields;
}

/** Names a tail: by position when it is long enough and every type fits, by type otherwise (older producers). */
function nameTail(tail: readonly unknown[], fields: Fields): void {
  const fits = (value: unknown, slot: number) => isAbsent(value) || kindOf(value) === TAIL_TYPES[slot];
  if (tail.length >= MIN_FIXED_TAIL && tail.every(fits)) {
    TAIL_SLOTS.forEach((field, slot) => {
      fields[field] = tail[slot];
    });
    return;
  }
  for (const value of tail) {
    const kind = kindOf(value);
    if (kind === 'list') fields.block_mm_infos = value;
    else if (kind === 'text') fields.kv_cache_spec_kind ??= value;
    else if (kind === 'u32' && fields.group_idx === undefined) fields.group_idx = value;
    else if (kind === 'u32') fields.kv_cache_spec_sliding_window ??= value;
  }
}

function kindOf(value: unknown): 'u32' | 'text' | 'list' | 'other' {
  if (typeof value === 'string') return 'text';
  if (Array.isArray(value)) return 'list';
  return asUint32(value) === null ? 'other' : 'u32';
}

function hashList(values: readonly unknown[], field: Field): EngineHashes {
  const hashes = readHashes(values);
  if ('fault' in hashes) throw new Fault(hashes.fault, `${field}: ${hashes.text}`);
  return hashes;
}

/** The parent's hash, which must have the form of the blocks' hashes. */
function readParent(fields: Fields, blocks: EngineHashes): EngineHash | null {
  if (isAbsent(fields.parent_block_hash)) return null;
  const { low64, digests } = hashList([fields.parent_block_hash], 'parent_block_hash');
  if (blocks.low64.length > 0 && (digests === null) !== (blocks.digests === null)) {
    throw new Fault('hash-mixed', 'of parent_block_hash and block_hashes one is binary, the other integer');
  }
  return { low64: low64[0]!, digest: digests };
}

/** Tokens, or pairs of tokens flattened to all first members and the last second one (1.8). */
function readTokens(values: readonly unknown[]): { tokenIds: Uint32Array; tokenPairs: boolean } {
  const tokenPairs = Array.isArray(values[0]);
  const count = tokenPairs ? values.length + 1 : values.length;
  if (count > MAX_EVENT_TOKENS) {
    throw new Fault('too-many-tokens', `token_ids holds ${count} tokens, at most ${MAX_EVENT_TOKENS} are read`);
  }
  const tokenIds = new Uint32Array(count);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!tokenPairs) {
      tokenIds[i] = token(value, i);
    } else if (Array.isArray(value) && value.length === 2) {
      tokenIds[i] = token(value[0], i);
      tokenIds[i + 1] = token(value[1], i);
    } else {
      throw new Fault('field-type', `token_ids[${i}] is ${describe(value)}, expected a pair like those before it`);
    }
  }
  return { tokenIds, tokenPairs };
}

function token(value: unknown, index: number): number {
  const id = asUint32(value);
  if (id === null) {
    throw new Fault('field-type', `token_ids[${index}] is ${describe(value)}, expected an unsigned 32-bit integer`);
  }
  return id;
}

function list(fields: Fields, field: Field): readonly unknown[] {
  const value = fields[field];
  if (isAbsent(value)) return missing(field);
  if (!Array.isArray(value)) throw wrong(fields, field);
  return value;
}

function text(fields: Fields, field: Field): string | null {
  const value = fields[field];
  if (isAbsent(value)) return null;
  if (typeof value !== 'string') throw wrong(fields, field);
  return value;
}

function u32(fields: Fields, field: Field): number | null {
  const value = fields[field];
  if (isAbsent(value)) return null;
  return asUint32(value) ?? raise(wrong(fields, field));
}

function missing(field: Field): never {
  throw new Fault('field-missing', `${field} is missing`);
}

function wrong(fields: Fields, field: Field): Fault {
  return new Fault('field-type', `${field} is ${describe(fields[field])}`);
}

function raise(fault: Fault): never {
  throw fault;
}
