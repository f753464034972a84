// What a store message says, by "Store messages" of assembly/README.md, read through @msgpack/msgpack. The core reads the
// same bytes by itself; both have to agree on every payload, well-formed or not.
//
// The package forgets three things that the rules ask for, so it is given a helping hand:
// - text that isn't UTF-8 is decoded leniently (`73 74 6f 72 65 c1` in front of a4 reads "stored"), so the payload is
//   decoded twice, once to tell text from binary and once for the bytes themselves;
// - a float without a fraction becomes the same number as an integer, so floats are blotted out beforehand;
// - an array is allocated as long as its header says, so headers that promise more than there is are refused beforehand.
import { Decoder, type DecoderOptions } from '@msgpack/msgpack';
import type { CoreModel } from './model.js';

const MAX_PAYLOAD_BYTES = 1_048_576;
const MAX_EVENTS = 4_096;

const MEDIA = new Map([
  ['cpu', 1],
  ['disk', 2],
]);
const UNKNOWN_MEDIUM = 4;
const EVERY_MEDIUM = 7;

const KINDS = new Map([
  ['stored', 'stored'],
  ['BlockStored', 'stored'],
  ['removed', 'removed'],
  ['BlockRemoved', 'removed'],
  ['cleared', 'cleared'],
  ['AllBlocksCleared', 'cleared'],
] as const);

/** One mutation; `prefix` is an index into the list of required prefixes. */
export type StoreOperation =
  | { op: 'stored' | 'removed'; prefix: number; high: string; low64: bigint; media: number }
  | { op: 'cleared' };

export type JudgedBatch =
  | { unreadable: true }
  | {
      unreadable?: undefined;
      /** In order; up to the malformed event, if there is one. */
      ops: StoreOperation[];
      malformed: null | { index: number; reason: string };
      skipped: { foreignTenant: number; foreignKey: number };
    };

/** A value of an event: `text` holds the bytes of a text, one character each; undefined for anything else. */
interface Field {
  readonly nil: boolean;
  readonly integer: boolean;
  readonly text: string | undefined;
}

const MISSING: Field = { nil: true, integer: false, text: undefined };

/** Bytes as a string with one character a byte, so that equal strings are equal bytes. */
function characters(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

const decoderOptions = {
  useBigInt64: true,
  // Without the check of the built-in timestamp: an extension of any type and length is as good as another.
  extensionCodec: { tryToEncode: () => null, decode: () => ({ extension: true }) },
  maxStrLength: MAX_PAYLOAD_BYTES,
  maxBinLength: MAX_PAYLOAD_BYTES,
  maxArrayLength: MAX_PAYLOAD_BYTES,
  maxMapLength: MAX_PAYLOAD_BYTES,
  maxExtLength: MAX_PAYLOAD_BYTES,
  // Text keys keep their bytes and get a mark in front, so none of them is `__proto__`; other keys get another mark.
  keyDecoder: {
    canBeCached: () => true,
    decode: (bytes: Uint8Array, offset: number, length: number) =>
      `t${characters(bytes.subarray(offset, offset + length))}`,
  },
  mapKeyConverter: (key: unknown) => (typeof key === 'string' ? key : '\u0000k'),
} satisfies DecoderOptions;

const asText = new Decoder(decoderOptions);
const asBytes = new Decoder({ ...decoderOptions, rawStrings: true });

/**
 * @param payload the third frame of a store message
 * @param prefixes the required prefixes of the contract
 */
export function judgeBatch(payload: Uint8Array, prefixes: readonly string[]): JudgedBatch {
  const unreadable: JudgedBatch = { unreadable: true };
  if (payload.length > MAX_PAYLOAD_BYTES) return unreadable;
  const withoutFloats = blotOutFloats(payload);
  if (withoutFloats === null) return unreadable;
  let texts: unknown;
  let bytes: unknown;
  try {
    texts = asText.decode(withoutFloats);
    bytes = asBytes.decode(withoutFloats);
  } catch {
    return unreadable;
  }
  if (!Array.isArray(texts) || !Array.isArray(bytes) || texts.length < 2) return unreadable;
  const events: unknown = texts[1];
  if (!Array.isArray(events) || events.length > MAX_EVENTS) return unreadable;

  const required = prefixes.map((prefix) => characters(new TextEncoder().encode(prefix)));
  const ops: StoreOperation[] = [];
  const skipped = { foreignTenant: 0, foreignKey: 0 };
  for (const [index, event] of events.entries()) {
    const judged = judgeEvent(fieldsOf(event, bytes[1][index]), required);
    if (judged === 'foreignTenant' || judged === 'foreignKey') skipped[judged]++;
    else if (typeof judged === 'string') return { ops, malformed: { index, reason: judged }, skipped };
    else ops.push(judged);
  }
  return { ops, malformed: null, skipped };
}

/** Does to the model what the rules say about a judged payload. */
export function applyJudged(model: CoreModel, judged: JudgedBatch): void {
  if (judged.unreadable) {
    model.clearResidency();
    return;
  }
  for (const operation of judged.ops) {
    if (operation.op === 'cleared') model.clearResidency();
    else model[operation.op](operation, operation.prefix, operation.media);
  }
  if (judged.malformed !== null) model.clearResidency();
}

type FieldsOf = (name: string) => Field;

/** The event's fields by name, or null when it isn't a map. */
function fieldsOf(event: unknown, sameAsBytes: unknown): FieldsOf | null {
  if (!isMap(event) || !isMap(sameAsBytes)) return null;
  return (name) => {
    const key = `t${name}`;
    if (!Object.hasOwn(event, key)) return MISSING;
    const value = event[key];
    return {
      nil: value === null,
      integer: typeof value === 'number' || typeof value === 'bigint',
      text: typeof value === 'string' ? characters(sameAsBytes[key] as Uint8Array) : undefined,
    };
  };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array) &&
    !('extension' in value)
  );
}

/** An operation, or `foreignTenant`, `foreignKey`, or the reason why the event is malformed. */
function judgeEvent(field: FieldsOf | null, required: readonly string[]): StoreOperation | string {
  // 1
  if (field === null) return 'the event is no map';
  const tenant = field('tenant_id');
  if (!tenant.nil && tenant.text === undefined) return 'tenant_id is no text';
  if (!tenant.nil && tenant.text !== '' && tenant.text !== 'default') return 'foreignTenant';
  // 2
  const kinds = [field('event_type'), field('type')]
    .filter((kind) => !kind.nil)
    .map((kind) => KINDS.get(kind.text as 'stored') ?? 'unknown');
  if (kinds.includes('cleared'))
    return kinds.every((kind) => kind === 'cleared') ? { op: 'cleared' } : 'cleared on one side only';
  // 3
  const key = field('object_key').text;
  if (key === undefined) return 'object_key is missing or no text';
  if (required.includes(key)) return 'object_key is a bare prefix';
  const at = key.lastIndexOf('@');
  const prefix = at < 0 ? -1 : required.indexOf(key.slice(0, at));
  if (prefix < 0) return 'foreignKey';
  // 4
  const digest = key.slice(at + 1);
  if (!/^[0-9a-f]{64}$/.test(digest)) return 'the digest is not 64 lowercase hexadecimal digits';
  // 5
  const medium = MEDIA.get(field('medium').text ?? '');
  if (medium === undefined) return 'medium is neither cpu nor disk';
  // 6
  if (kinds.length === 0) return 'the kind is not said';
  if (kinds.includes('unknown')) return 'the kind is unknown';
  const op = (['stored', 'removed'] as const).find((one) => kinds.every((kind) => kind === one));
  if (op === undefined) return 'event_type and type disagree';
  // 7
  const high = digest.slice(0, 48);
  const low64 = BigInt(`0x${digest.slice(48)}`);
  if (op === 'stored') return { op, prefix, high, low64, media: medium };
  return { op, prefix, high, low64, media: field('dp_rank').integer ? medium | UNKNOWN_MEDIUM : EVERY_MEDIUM };
}

/** Bytes behind the first byte of a value, for those of fixed size. */
const FIXED_SIZES = new Map([
  [0xca, 4],
  [0xcb, 8],
  [0xcc, 1],
  [0xcd, 2],
  [0xce, 4],
  [0xcf, 8],
  [0xd0, 1],
  [0xd1, 2],
  [0xd2, 4],
  [0xd3, 8],
  [0xd4, 2],
  [0xd5, 3],
  [0xd6, 5],
  [0xd7, 9],
  [0xd8, 17],
]);

/** Bytes of the length behind the first byte, and how many of what it counts: bytes behind it, or further values. */
const COUNTED = new Map<number, { width: 1 | 2 | 4; extra: number; values: 0 | 1 | 2 }>([
  [0xc4, { width: 1, extra: 0, values: 0 }],
  [0xc5, { width: 2, extra: 0, values: 0 }],
  [0xc6, { width: 4, extra: 0, values: 0 }],
  [0xc7, { width: 1, extra: 1, values: 0 }],
  [0xc8, { width: 2, extra: 1, values: 0 }],
  [0xc9, { width: 4, extra: 1, values: 0 }],
  [0xd9, { width: 1, extra: 0, values: 0 }],
  [0xda, { width: 2, extra: 0, values: 0 }],
  [0xdb, { width: 4, extra: 0, values: 0 }],
  [0xdc, { width: 2, extra: 0, values: 1 }],
  [0xdd, { width: 4, extra: 0, values: 1 }],
  [0xde, { width: 2, extra: 0, values: 2 }],
  [0xdf, { width: 4, extra: 0, values: 2 }],
]);

/**
 * A copy in which every float is a binary value of the same length (neither means anything to any rule), or null when
 * the payload ends before all that its headers promise.
 */
function blotOutFloats(payload: Uint8Array): Uint8Array | null {
  const copy = new Uint8Array(payload); // not slice(): a Buffer's shares its memory
  const view = new DataView(copy.buffer);
  let at = 0;
  let promised = 1;
  while (promised > 0) {
    if (promised > copy.length - at) return null; // every value takes a byte or more
    const first = copy[at++]!;
    promised--;
    const counted = COUNTED.get(first);
    if (counted !== undefined) {
      if (at + counted.width > copy.length) return null;
      const read = { 1: view.getUint8, 2: view.getUint16, 4: view.getUint32 }[counted.width];
      const length: number = read.call(view, at, false);
      at += counted.width;
      if (counted.values === 0) at += length + counted.extra;
      else promised += length * counted.values;
    } else if (first === 0xca || first === 0xcb) {
      const size = FIXED_SIZES.get(first)!;
      if (at + size > copy.length) return null;
      copy[at - 1] = 0xc4;
      copy[at] = size - 1;
      at += size;
    } else if (first >= 0xa0 && first < 0xc0) at += first - 0xa0;
    else if (first >= 0x90 && first < 0xa0) promised += first - 0x90;
    else if (first >= 0x80 && first < 0x90) promised += 2 * (first - 0x80);
    else at += FIXED_SIZES.get(first) ?? 0;
    if (at > copy.length) return null;
  }
  return copy;
}
