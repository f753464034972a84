// The reference reader of worker messages: @msgpack/msgpack decodes a whole payload, and plain code reads the decoded values. It is what
// the product did before its numbers were read in WebAssembly; it shares no code with it, and is held against it by fuzz-worker-messages.
// Rules: spec/kv-events.md 1.4–1.8. What a decoded value does not show by itself is kept visible: floats, text that is no UTF-8, and map
// keys that repeat or are no text.
import { isAscii } from 'node:buffer';
import { Decoder, type DecoderOptions, ExtData } from '@msgpack/msgpack';

/** Longer payloads are not for this reader: the library makes room for what a header promises, and so for no more than this many values. */
export const MAX_REFERENCE_BYTES = 8192;
/** A raw value with more containers inside each other is not looked at, and proves nothing. */
const MAX_RAW_DEPTH = 32;

/** Stands for text that is no UTF-8. */
export const BAD_TEXT: unique symbol = Symbol('text that is no UTF-8');
/** Stands for a raw value that nests too deeply. */
export const TOO_COMPLEX: unique symbol = Symbol('too complex');

/** Where the rules differ from what JavaScript values show by themselves, and how often that decided something. */
export const quirks = {
  /** A float of integral value stood where an integer is due: it is none. */
  float: 0,
  /** Text that is no UTF-8 stood where text is due: it is none. A raw value that holds some proves nothing. */
  badText: 0,
  /** A field was said twice: the last one counts, but each must be right. */
  repeatedKey: 0,
  /** A raw value nested too deeply: it is there, and proves nothing. */
  tooComplex: 0,
};

// ---- decoding ----

class Float {
  constructor(readonly value: number) {}
}

/** The library's steps that are changed here. Its types hide them. */
interface LibrarySteps {
  readonly bytes: Uint8Array;
  readonly pos: number;
  decode(payload: Uint8Array): unknown;
  stateIsMapKey(): boolean;
  readF32(): unknown;
  readF64(): unknown;
  decodeUtf8String(length: number, header: number): unknown;
}
const LibraryDecoder = Decoder as unknown as new (options: DecoderOptions) => LibrarySteps;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

class ShowingDecoder extends LibraryDecoder {
  override readF32(): Float {
    return new Float(super.readF32() as number);
  }
  override readF64(): Float {
    return new Float(super.readF64() as number);
  }
  override decodeUtf8String(length: number, header: number): unknown {
    const at = this.pos + header;
    const text = super.decodeUtf8String(length, header);
    const bytes = this.bytes.subarray(at, at + length);
    // The library refuses this key, which is but one more that nobody knows.
    if (text === '__proto__' && this.stateIsMapKey()) return BAD_TEXT;
    return isAscii(bytes) ? text : decodeText(bytes);
  }
}

function decodeText(bytes: Uint8Array): string | typeof BAD_TEXT {
  try {
    return utf8.decode(bytes);
  } catch {
    return BAD_TEXT;
  }
}

/** Keys of the decoded maps, which themselves have their numbers as keys. So none gets lost. */
const keys: unknown[] = [];
const decoder = new ShowingDecoder({
  useBigInt64: true,
  keyDecoder: null,
  mapKeyConverter: (key) => `#${keys.push(key) - 1}`,
  maxArrayLength: MAX_REFERENCE_BYTES,
  extensionCodec: { tryToEncode: () => null, decode: (data, type) => new ExtData(type, data) },
});

type Entry = readonly [key: unknown, value: unknown];

function entriesOf(map: Readonly<Record<string, unknown>>): Entry[] {
  return Object.entries(map).map(([key, value]) => [keys[Number(key.slice(1))], value]);
}

function isMap(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !(value instanceof Uint8Array || value instanceof ExtData || value instanceof Float);
}

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;

// ---- batches ----

export interface ReferenceHash {
  readonly low64: bigint;
  /** The 32 bytes as hex, null for an integer. */
  readonly digest: string | null;
}

/** An event by the names on the wire. Fields that were not given are absent. */
export interface ReferenceEvent {
  readonly type: 'stored' | 'removed' | 'cleared' | 'ignored';
  readonly form: 'map' | 'positional';
  readonly hashes: readonly ReferenceHash[];
  readonly parent: ReferenceHash | null;
  readonly tokens: readonly number[];
  readonly tokenPairs: boolean;
  readonly fields: Fields;
}

type Fields = Readonly<Record<string, unknown>>;

/** An event that is not read. */
export interface ReferenceUnread {
  readonly type: 'unread';
  readonly lostRemoval: boolean;
}

export interface ReferenceBatch {
  readonly timestamp: number | null;
  readonly dpRank: number;
  readonly events: readonly (ReferenceEvent | ReferenceUnread)[];
}

/** The code of the error that the payload is as a whole; `float-rank` is a `batch-rank` that is a float of integral value. */
export type ReferenceFault = 'payload-malformed' | 'batch-shape' | 'batch-rank' | 'float-rank';

/** Thrown for a batch that is none. */
class NoBatch {
  constructor(readonly code: ReferenceFault) {}
}

/** Reads a payload. */
export function referenceBatch(payload: Uint8Array): ReferenceBatch | ReferenceFault {
  if (payload.length > MAX_REFERENCE_BYTES)
    throw new RangeError(`${payload.length} bytes are too many for this reader`);
  let value: unknown;
  keys.length = 0;
  try {
    value = decoder.decode(payload);
  } catch {
    return 'payload-malformed';
  }
  try {
    return readBatch(value);
  } catch (fault) {
    if (fault instanceof NoBatch) return fault.code;
    throw fault;
  }
}

const BATCH_SLOTS = ['ts', 'events', 'data_parallel_rank'];

function readBatch(value: unknown): ReferenceBatch {
  const isList = Array.isArray(value);
  if (isList ? value.length < 2 || value.length > 3 : !isMap(value)) throw new NoBatch('batch-shape');
  const entries: Entry[] = isList ? value.map((item, i) => [BATCH_SLOTS[i], item]) : entriesOf(value as Fields);
  let timestamp: number | null = null;
  let ranked = false;
  let dpRank = 0;
  let events: readonly unknown[] | null = null;
  for (const [key, item] of entries) {
    if (key === 'ts') timestamp = finite(numberOf(item));
    else if (key === 'data_parallel_rank') {
      if (ranked) throw new NoBatch('batch-shape');
      ranked = true;
      dpRank = rankOf(item);
    } else if (key !== 'events') continue;
    else if (!Array.isArray(item) || events !== null) throw new NoBatch('batch-shape');
    else events = item;
  }
  if (events === null) throw new NoBatch('batch-shape');
  return { timestamp, dpRank, events: events.map(readEvent) };
}

const finite = (value: number | null) => (value !== null && Number.isFinite(value) ? value : null);

function numberOf(value: unknown): number | null {
  if (value instanceof Float) return value.value;
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : null;
}

function rankOf(value: unknown): number {
  if (isAbsent(value)) return 0;
  const rank = asInteger(value);
  if (isIntegralFloat(value)) throw new NoBatch('float-rank');
  if (rank === null || rank < -(2n ** 31n) || rank >= 2n ** 32n) throw new NoBatch('batch-rank');
  return Number(BigInt.asUintN(32, rank));
}

// ---- events ----

/** Thrown for a value that its field may not hold. */
class Misfit {}
const MISFIT = new Misfit();

const unread = (lostRemoval: boolean): ReferenceUnread => ({ type: 'unread', lostRemoval });

function readEvent(value: unknown): ReferenceEvent | ReferenceUnread {
  const tags = tagsOf(value);
  const [tag] = tags;
  if (tags.some((other) => other !== tag)) return unread(true); // whichever it is, it may be a removal
  if (typeof tag !== 'string') return unread(true);
  try {
    const isList = Array.isArray(value);
    const form = isList ? 'positional' : 'map';
    switch (tag) {
      case 'BlockStored':
        return storedEvent(form, take(isList ? storedSlots(value) : entriesOf(value as Fields), STORED));
      case 'BlockRemoved':
        return removedEvent(form, take(isList ? removedSlots(value) : entriesOf(value as Fields), REMOVED));
      case 'AllBlocksCleared':
        return bare('cleared', form, take(isList ? [['ownership', value[1]]] : entriesOf(value as Fields), CLEARED));
      case 'Ignored':
        return bare('ignored', form, {});
      default:
        return unread(false);
    }
  } catch (fault) {
    if (!(fault instanceof Misfit)) throw fault;
    return unread(tag !== 'BlockStored');
  }
}

/** Everything that the event says of its type. */
function tagsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.slice(0, 1);
  return isMap(value) ? entriesOf(value).flatMap(([key, tag]) => (key === 'type' ? [tag] : [])) : [];
}

const bare = (type: ReferenceEvent['type'], form: ReferenceEvent['form'], fields: Fields): ReferenceEvent => ({
  type,
  form,
  hashes: [],
  parent: null,
  tokens: [],
  tokenPairs: false,
  fields,
});

function storedEvent(form: ReferenceEvent['form'], fields: Fields): ReferenceEvent {
  const { block_hashes, parent_block_hash, token_ids, block_size, ...rest } = fields;
  if (isAbsent(block_hashes) || isAbsent(token_ids) || isAbsent(block_size)) throw MISFIT;
  const hashes = block_hashes as ReferenceHash[];
  const parent = (parent_block_hash ?? null) as ReferenceHash | null;
  if (parent && hashes[0] && (parent.digest === null) !== (hashes[0].digest === null)) throw MISFIT;
  return {
    ...bare('stored', form, { block_size, ...rest }),
    hashes,
    parent,
    ...(token_ids as ReturnType<typeof tokens>),
  };
}

function removedEvent(form: ReferenceEvent['form'], fields: Fields): ReferenceEvent {
  const { block_hashes, ...rest } = fields;
  if (isAbsent(block_hashes)) throw MISFIT;
  return { ...bare('removed', form, rest), hashes: block_hashes as ReferenceHash[] };
}

/** The entries that `types` knows, each as what its type makes of it. */
function take(entries: readonly Entry[], types: Readonly<Record<string, (value: unknown) => unknown>>): Fields {
  const fields: Record<string, unknown> = {};
  for (const [key, value] of entries) {
    if (typeof key !== 'string' || !Object.hasOwn(types, key)) continue;
    if (Object.hasOwn(fields, key)) quirks.repeatedKey++;
    fields[key] = types[key]!(value);
  }
  return fields;
}

// ---- array form (1.7) ----

const STORED_SLOTS = [
  ...['type', 'block_hashes', 'parent_block_hash', 'token_ids', 'block_size'],
  ...['lora_id', 'medium', 'lora_name', 'extra_keys'],
];
const REMOVED_SLOTS = ['type', 'block_hashes', 'medium'];
const TAIL_SLOTS = ['group_idx', 'kv_cache_spec_kind', 'kv_cache_spec_sliding_window', 'locality', 'ownership'];
const TAIL_TYPES = ['u32', 'text', 'u32', 'text', 'text'];
const MIN_FIXED_TAIL = 4;
const LORA_ID_SLOT = 5;
const LORA_NAME_SLOT = 7;

function storedSlots(slots: readonly unknown[]): Entry[] {
  const id = asInteger(slots[LORA_ID_SLOT]);
  if (!isAbsent(slots[LORA_ID_SLOT]) && (id === null || id < 0n)) throw MISFIT; // typed in this form
  const entries = named(slots, STORED_SLOTS);
  const metadata = slots[LORA_NAME_SLOT];
  if (isMap(metadata)) entries[LORA_NAME_SLOT] = saltOf(metadata);
  return entries;
}

/** SGLang's map in the place of the LoRA name: an empty one leaves the salt to the extra keys; nil is no salt. */
function saltOf(metadata: Fields): Entry {
  const salts = entriesOf(metadata).filter(([key]) => key === 'cache_salt');
  if (salts.some(([, salt]) => !isAbsent(salt) && typeof salt !== 'string')) throw MISFIT;
  const last = salts.at(-1);
  return ['cache_salt', last === undefined ? null : (last[1] ?? '')];
}

const removedSlots = (slots: readonly unknown[]) => named(slots, REMOVED_SLOTS);

/** Gives the slots their names, and those behind them: by position when the tail is long enough and every type fits, else by type. */
function named(slots: readonly unknown[], names: readonly string[]): Entry[] {
  const tail = slots.slice(names.length, names.length + TAIL_SLOTS.length);
  const fits = (value: unknown, slot: number) => isAbsent(value) || kindOf(value) === TAIL_TYPES[slot];
  const isFixed = tail.length >= MIN_FIXED_TAIL && tail.every(fits);
  const entries: Entry[] = slots.slice(0, names.length).map((value, slot) => [names[slot], value]);
  return entries.concat(isFixed ? tail.map((value, slot) => [TAIL_SLOTS[slot], value]) : namedByType(tail));
}

function namedByType(tail: readonly unknown[]): Entry[] {
  const of = (kind: string) => tail.filter((value) => kindOf(value) === kind);
  const [group, window] = of('u32');
  const fields = { group_idx: group, kv_cache_spec_kind: of('text')[0], kv_cache_spec_sliding_window: window };
  return Object.entries({ ...fields, block_mm_infos: of('list').at(-1) });
}

function kindOf(value: unknown): 'u32' | 'text' | 'list' | 'other' {
  if (typeof value === 'string') return 'text';
  if (Array.isArray(value)) return 'list';
  return asU32(value) === null ? 'other' : 'u32';
}

// ---- values (1.8) ----

const isIntegralFloat = (value: unknown) => value instanceof Float && Number.isInteger(value.value);

function asInteger(value: unknown): bigint | null {
  if (isIntegralFloat(value)) quirks.float++;
  return typeof value === 'number' || typeof value === 'bigint' ? BigInt(value) : null;
}

function asU32(value: unknown): number | null {
  const integer = asInteger(value);
  return integer !== null && integer >= 0n && integer < 2n ** 32n ? Number(integer) : null;
}

function u32(value: unknown): number | null {
  if (isAbsent(value)) return null;
  return asU32(value) ?? misfit();
}

function text(value: unknown): string | null {
  if (value === BAD_TEXT) quirks.badText++;
  if (isAbsent(value)) return null;
  return typeof value === 'string' ? value : misfit();
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : misfit();
}

function hash(value: unknown): ReferenceHash {
  if (value instanceof Uint8Array) {
    if (value.length !== 32) throw MISFIT;
    const digest = Buffer.from(value).toString('hex');
    return { low64: BigInt(`0x${digest.slice(48)}`), digest };
  }
  const integer = asInteger(value);
  if (integer === null) throw MISFIT;
  return { low64: BigInt.asUintN(64, integer), digest: null };
}

function hashes(value: unknown): readonly ReferenceHash[] {
  const all = list(value).map(hash);
  if (all.some(({ digest }) => (digest === null) !== (all[0]!.digest === null))) throw MISFIT;
  return all;
}

/** Token ids, or pairs of them flattened to all first members and the last second one. */
function tokens(value: unknown): { tokens: readonly number[]; tokenPairs: boolean } {
  const items = list(value);
  const token = (item: unknown): number => asU32(item) ?? misfit();
  if (!Array.isArray(items[0])) return { tokens: items.map(token), tokenPairs: false };
  const pairs = items.map((item) => {
    const pair = list(item).map(token);
    return pair.length === 2 ? pair : misfit();
  });
  return { tokens: [...pairs.map(([first]) => first!), pairs.at(-1)![1]!], tokenPairs: true };
}

/** A value whose type matters, as the product shows it: floats as numbers, maps by the keys that somebody reads. */
function raw(value: unknown): unknown {
  if (depthOf(value) > MAX_RAW_DEPTH) {
    quirks.tooComplex++;
    return TOO_COMPLEX;
  }
  if (holdsBadText(value)) {
    quirks.badText++;
    return BAD_TEXT;
  }
  return plain(value);
}

const RAW_KEYS = ['mm_objects', 'mm_hash', 'offsets'];

function plain(value: unknown): unknown {
  if (value instanceof Float) return value.value;
  if (Array.isArray(value)) return value.map(plain);
  if (!isMap(value)) return value;
  const known = entriesOf(value).filter(([key]) => RAW_KEYS.includes(key as string));
  return Object.fromEntries(known.map(([key, item]) => [key, plain(item)]));
}

function holdsBadText(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsBadText);
  return value === BAD_TEXT || (isMap(value) && Object.values(value).some(holdsBadText));
}

/** Containers inside each other. */
function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const items = Array.isArray(value) ? value : isMap(value) ? entriesOf(value).flat() : null;
  return items === null ? 0 : 1 + items.reduce<number>((depth, item) => Math.max(depth, depthOf(item)), 0);
}

/** What eligibility asks of a LoRA's number: nil, an unsigned integer, or something else. */
function loraId(value: unknown): bigint | 'other' | null {
  if (isAbsent(value)) return null;
  const id = asInteger(value);
  return id !== null && id >= 0n ? id : 'other';
}

function misfit(): never {
  throw MISFIT;
}

const PLACE = {
  medium: text,
  group_idx: u32,
  kv_cache_spec_kind: text,
  kv_cache_spec_sliding_window: u32,
  locality: text,
  ownership: text,
};
const REMOVED = { block_hashes: hashes, ...PLACE };
const CLEARED = { ownership: text };
const STORED = {
  block_hashes: hashes,
  parent_block_hash: (value: unknown) => (isAbsent(value) ? null : hash(value)),
  token_ids: tokens,
  block_size: u32,
  lora_id: loraId,
  lora_name: text,
  cache_salt: text,
  extra_keys: raw,
  is_eagle: raw,
  shared_cache_eligible: raw,
  block_mm_infos: raw,
  ...PLACE,
};
