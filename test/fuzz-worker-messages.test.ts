// Hostile worker messages: at least 300,000, mutated from real captures and from batches of every layout, read one after the other by one
// reader. Each gives a batch or a WireError, and the very batch or error that the reference gives (support/reference-events.ts); memory
// stays bounded, and a good message is read right after every bad one. MOONROUTE_SEED=n repeats a run, MOONROUTE_FUZZ=n lengthens it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Encoder, ExtData } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { Numbers } from '../src/core/numbers.js';
import { WireError } from '../src/errors.js';
import { routerBlocks } from '../src/events/router-blocks.js';
import { WorkerEvents, type WorkerMessage } from '../src/events/worker-events.js';
import { readCapture } from '../src/oracle/capture.js';
import { OPAQUE } from '../src/wire/cursor.js';
import { BatchReader, type RejectedEvent, type WorkerBatch } from '../src/wire/read-batch.js';
import type { StoredEvent, WorkerEvent } from '../src/wire/vllm.js';
import { contractOf, framesOf, SOURCE } from './support/messages.js';
import { Random } from './support/random.js';
import {
  BAD_TEXT,
  MAX_REFERENCE_BYTES,
  quirks,
  type ReferenceBatch,
  type ReferenceEvent,
  type ReferenceFault,
  type ReferenceHash,
  type ReferenceUnread,
  referenceBatch,
  TOO_COMPLEX,
} from './support/reference-events.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
const MESSAGES = Number(process.env['MOONROUTE_FUZZ'] ?? 300_000);
console.log(`fuzz-worker-messages: seed ${seed}, ${MESSAGES} messages`);

const encoder = new Encoder({ useBigInt64: true });

// ---- what is compared ----

/** Fields by our name and by the wire's. */
const PLAIN_FIELDS = [
  ['medium', 'medium'],
  ['groupIdx', 'group_idx'],
  ['specKind', 'kv_cache_spec_kind'],
  ['slidingWindow', 'kv_cache_spec_sliding_window'],
  ['locality', 'locality'],
  ['ownership', 'ownership'],
] as const;
const STORED_FIELDS = [...PLAIN_FIELDS, ['loraName', 'lora_name'], ['cacheSalt', 'cache_salt']] as const;
const RAW_FIELDS = [
  ['extraKeys', 'extra_keys'],
  ['isEagle', 'is_eagle'],
  ['sharedCacheEligible', 'shared_cache_eligible'],
  ['blockMmInfos', 'block_mm_infos'],
] as const;

/** What tells a batch, or an error's code, from the reference's; null when nothing does. */
function difference(ours: WorkerBatch | string, reference: ReferenceBatch | ReferenceFault): string | null {
  if (reference === 'float-rank') return ours === 'batch-rank' ? null : 'not batch-rank';
  // Of a payload that is malformed and has the wrong shape besides, either may be said.
  if (reference === 'payload-malformed') return typeof ours === 'string' ? null : 'read, not payload-malformed';
  if (typeof reference === 'string') return ours === reference ? null : `not ${reference}`;
  if (typeof ours === 'string') return `${ours}, not read`;
  if (!Object.is(ours.timestamp, reference.timestamp)) return `timestamp ${ours.timestamp}, not ${reference.timestamp}`;
  if (ours.dpRank !== reference.dpRank) return `rank ${ours.dpRank}, not ${reference.dpRank}`;
  return differentEvents(ours, reference);
}

function differentEvents({ events, rejected }: WorkerBatch, reference: ReferenceBatch): string | null {
  if (events.length + rejected.length !== reference.events.length) return 'number of events';
  let bad = 0;
  for (const [index, wanted] of reference.events.entries()) {
    const isBad = rejected[bad]?.index === index;
    const ours = isBad ? rejected[bad++]! : events[index - bad]!;
    const different = differentEvent(ours, wanted);
    if (different !== null) return `event ${index}: ${different}`;
  }
  return null;
}

function differentEvent(ours: WorkerEvent | RejectedEvent, wanted: ReferenceEvent | ReferenceUnread): string | null {
  const read = 'type' in ours;
  if (wanted.type !== 'unread') return read ? differentField(ours, wanted) : `${ours.code} (${ours.text}), not read`;
  if (!read && ours.lostRemoval === wanted.lostRemoval) return null;
  return read ? 'read, not rejected' : `lostRemoval ${ours.lostRemoval}`;
}

function differentField(ours: WorkerEvent, reference: ReferenceEvent): string | null {
  const { fields } = reference;
  if (ours.type !== reference.type || ours.form !== reference.form) return 'type or form';
  if (ours.type === 'ignored') return null;
  if (ours.type === 'cleared') return ours.ownership === (fields['ownership'] ?? null) ? null : 'ownership';
  if (!sameHashes(ours.blockHashes, reference.hashes)) return 'block_hashes';
  const plain = ours.type === 'stored' ? STORED_FIELDS : PLAIN_FIELDS;
  for (const [name, wire] of plain) {
    if (!sameRaw((ours as unknown as Record<string, unknown>)[name], fields[wire])) return wire;
  }
  return ours.type === 'stored' ? differentStored(ours, reference) : null;
}

function differentStored(ours: StoredEvent, { parent, tokens, tokenPairs, fields }: ReferenceEvent): string | null {
  const { parentBlockHash, tokenIds } = ours;
  if ((parentBlockHash?.low64 ?? null) !== (parent?.low64 ?? null)) return 'parent';
  if (hex(parentBlockHash?.digest) !== (parent?.digest ?? null)) return 'parent digest';
  if (ours.tokenPairs !== tokenPairs || tokenIds.length !== tokens.length) return 'number of tokens';
  if (tokens.some((token, i) => token !== tokenIds[i])) return 'token_ids';
  if (ours.blockSize !== fields['block_size']) return 'block_size';
  if (seenLoraId(ours.loraId) !== (fields['lora_id'] ?? null)) return 'lora_id';
  for (const [name, wire] of RAW_FIELDS) if (!sameRaw(ours[name], fields[wire])) return wire;
  return null;
}

const hex = (bytes: Uint8Array | null | undefined) => (bytes ? Buffer.from(bytes).toString('hex') : null);

function sameHashes({ low64, digests }: StoredEvent['blockHashes'], reference: readonly ReferenceHash[]): boolean {
  if (low64.length !== reference.length || low64.some((low, i) => low !== reference[i]!.low64)) return false;
  const whole = reference.map(({ digest }) => digest ?? '').join('');
  return (hex(digests) ?? '') === whole;
}

/** What eligibility asks of it: nil, an unsigned integer, or something else. */
function seenLoraId(value: unknown): bigint | 'other' | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'bigint') return value >= 0n ? value : 'other';
  return Number.isInteger(value) && (value as number) >= 0 ? BigInt(value as number) : 'other';
}

/** Nil and absent are the same; so are numbers of either width. */
function sameRaw(ours: unknown, reference: unknown): boolean {
  if (ours === undefined || ours === null) return reference === undefined || reference === null;
  if (reference === BAD_TEXT) return ours === OPAQUE;
  if (ours === OPAQUE) return reference === TOO_COMPLEX || isOpaque(reference);
  if (typeof ours === 'bigint') return ours === (typeof reference === 'number' ? BigInt(reference) : reference);
  if (typeof reference === 'bigint') return typeof ours === 'number' && BigInt(ours) === reference;
  if (typeof ours !== 'object') return Object.is(ours, reference);
  if (typeof reference !== 'object' || reference === null) return false;
  if (ours instanceof Uint8Array) return reference instanceof Uint8Array && hex(ours) === hex(reference);
  if (ours instanceof ExtData || reference instanceof ExtData)
    return ours instanceof ExtData && reference instanceof ExtData;
  if (Array.isArray(ours) || Array.isArray(reference)) return sameLists(ours, reference);
  // Of a map only these keys are looked at.
  return ['mm_objects', 'mm_hash', 'offsets'].every((key) =>
    sameRaw((ours as Record<string, unknown>)[key], (reference as Record<string, unknown>)[key]),
  );
}

function sameLists(ours: unknown, reference: unknown): boolean {
  if (!Array.isArray(ours) || !Array.isArray(reference) || ours.length !== reference.length) return false;
  return ours.every((item, i) => sameRaw(item, reference[i]));
}

const MARK = '\uFEFF'; // a byte order mark

/** Whether a text in it starts with a byte order mark, or there is a map, which may hold what is no text: then it can't be looked at. */
function isOpaque(value: unknown): boolean {
  if (typeof value === 'string') return value.startsWith(MARK);
  if (Array.isArray(value)) return value.some(isOpaque);
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array) && !(value instanceof ExtData);
}

const [TYPE, STORED, REMOVED, IGNORED] = ['type', 'BlockStored', 'BlockRemoved', 'Ignored'].map((text) =>
  hex(encoder.encode(text)),
);

// ---- messages ----

const e = (value: unknown): Uint8Array => encoder.encode(value);
const joined = (parts: readonly (number | Uint8Array)[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Uint8Array.of(part) : part)));

/** A list of encoded items, its header as short as it can be or longer. */
function listOf(random: Random, items: readonly Uint8Array[]): Uint8Array {
  return joined([...header(random, 0x90, 0xdc, items.length), ...items]);
}

type Pair = readonly [key: Uint8Array, value: Uint8Array];

function mapOf(random: Random, pairs: readonly Pair[]): Uint8Array {
  return joined([...header(random, 0x80, 0xde, pairs.length), ...pairs.flat()]);
}

function header(random: Random, short: number, long: number, count: number): number[] {
  const width = count > 15 || random.chance(0.05) ? random.pick([2, 4]) : 0;
  if (width === 0) return [short + count];
  return [long + (width === 2 ? 0 : 1), ...(width === 2 ? [] : [0, 0]), count >> 8, count & 0xff];
}

const nested = (depth: number, leaf: number) => joined([...new Array<number>(depth).fill(0x91), leaf]);
const HEX_64 = '0123456789abcdef'.repeat(4);
const SALT = 'dynamo-cache-salt:tenant-a';

/** Encoded values that a field may not hold, or holds for once. */
const ODD: readonly Uint8Array[] = [
  ...[null, true, false, -1, 0, 1, 1.5, 2 ** 32, -(2 ** 31), 2n ** 64n - 1n, -(2n ** 63n), 2n ** 32n].map(e),
  ...['', 'GPU', 'BlockRemoved', SALT, 'é', 'x'.repeat(300), `${MARK}${'x'.repeat(250)}`, HEX_64].map(e),
  ...[
    [],
    {},
    [null],
    [null, null],
    [[]],
    [1, [2, 3]],
    [[1, 2]],
    { cache_salt: 'x' },
    new ExtData(7, new Uint8Array(3)),
  ].map(e),
  ...[0, 8, 31, 32, 33].map((size) => e(new Uint8Array(size).fill(7))),
  ...[31, 32, 33, 40].flatMap((depth) => [nested(depth, 0xc0), nested(depth - 1, 0x80)]),
  ...[
    [0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0], //   1.0 in 64 bits
    [0xca, 0x40, 0, 0, 0], //                  2.0 in 32 bits
    [0xcb, 0x80, 0, 0, 0, 0, 0, 0, 0], //      −0.0
    [0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], //   NaN
    [0xca, 0xc0, 0, 0, 0], //                  −2.0
    [0xcf, 0, 0, 0, 0, 0, 0, 0, 5], //         5, wider than it need be
    [0xd3, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
    [0xd2, 0x80, 0, 0, 0],
    [0xdb, 0, 0, 0, 3, 0x47, 0x50, 0x55], //   GPU, with the longest header
    [0xc4, 3, 0x47, 0x50, 0x55], //            GPU as binary
    [0xa2, 0xc3, 0x28], //                     no UTF-8
    [0xa4, 0xc1, 0x87, 0x50, 0x55], //         GPU in an overlong spelling, which is no UTF-8 either
    [0xa6, 0xef, 0xbb, 0xbf, 0x47, 0x50, 0x55], // GPU behind a byte order mark
    [0x81, 0x91, 1, 2], //                     a map whose key is a list
    [0x82, 0xa1, 0x61, 1, 0xa1, 0x61, 2], //   a map that says a key twice
    [0xdd, 0, 0, 0, 1, 0xc0], //               [nil], with the longest header
  ].map((bytes) => Uint8Array.from(bytes)),
];

const SPEC_KINDS = ['full_attention', 'mla_attention', 'sliding_window', 'mamba', 'unknown'];

/** A field's name, and what makes its value for each event anew. */
type Field = readonly [key: Uint8Array, value: () => Uint8Array];
/** Makes events of one shape: they differ in their numbers only. */
type Template = () => Uint8Array;

/** Makes batches of every layout of 1.4–1.7, with an odd value here and there. */
class Maker {
  constructor(readonly random: Random) {}

  batch(): Uint8Array {
    const batch = this.#batch();
    return batch.length <= MAX_REFERENCE_BYTES ? batch : this.batch();
  }

  #batch(): Uint8Array {
    const { random } = this;
    const events: Uint8Array[] = [];
    for (let templates = random.pick([0, 1, 1, 1, 2, 3]); templates > 0; templates--) {
      const template = this.#event();
      for (let times = random.pick([1, 1, 1, 1, 1, 6]); times > 0; times--) events.push(template());
    }
    const time = this.#odd(e(random.pick([1789095808.88, 1789095808, 17_890_958_088_880n])));
    const rank = this.#odd(e(random.pick([null, 0, 1, 7, -1, 0xffff_ffff])));
    const list = listOf(random, events);
    if (random.chance(0.7)) return listOf(random, [time, list, rank].slice(0, random.pick([2, 3, 3])));
    return this.#map([this.#field('ts', time), this.#field('events', list), this.#field('data_parallel_rank', rank)])();
  }

  #odd(usual: Uint8Array): Uint8Array {
    return this.random.chance(0.02) ? this.random.pick(ODD) : usual;
  }

  #field(key: string, value: Uint8Array): Field {
    return [e(key), () => value];
  }

  #event(): Template {
    const { random } = this;
    const map = random.chance(0.5);
    const kind = random.int(20);
    if (kind < 13) return map ? this.#storedMap() : this.#storedList();
    if (kind < 16) return map ? this.#removedMap() : this.#removedList();
    if (kind === 19) return () => random.pick(ODD);
    const tag = random.pick(['AllBlocksCleared', 'Ignored', 'BlockMoved']);
    const ownership = this.#odd(e(random.pick([null, 'kvcr'])));
    const more = random.chance(0.5) ? [] : [this.#field('ownership', ownership)];
    if (map) return this.#map([this.#tag(tag), ...more]);
    return () => listOf(random, [e(tag), ownership, random.pick(ODD)].slice(0, random.between(1, 3)));
  }

  #tag(tag: string): Field {
    return this.#field('type', this.#odd(e(tag)));
  }

  /** Fields in their order or another, some of them twice, unknown ones among them. */
  #map(fields: readonly Field[]): Template {
    const { random } = this;
    const all = [...fields];
    const odd = () => random.pick(ODD);
    const unknown = random.pick(['session_id', '?', '__proto__', 'type_']);
    if (random.chance(0.15)) all.push([e(unknown), odd]);
    if (random.chance(0.05)) all.push([odd(), odd]);
    if (random.chance(0.05)) all.push([random.pick(all)[0], random.chance(0.5) ? odd : random.pick(all)[1]]);
    if (random.chance(0.2)) random.shuffle(all);
    return () => {
      const pairs = all.map(([key, value]) => [key, value()] as const);
      return mapOf(random, pairs);
    };
  }

  #hash(binary: boolean): Uint8Array {
    const { random } = this;
    if (random.chance(0.01)) return random.pick(ODD);
    if (binary) return e(Uint8Array.from({ length: 32 }, () => random.int(256)));
    const integer = random.bigint64();
    return e(random.pick([integer, BigInt.asIntN(64, integer), integer >> 40n, -(integer >> 60n)]));
  }

  #token(): Uint8Array {
    const { random } = this;
    if (random.chance(0.002)) return random.pick(ODD);
    return e(random.pick([random.int(128), random.int(256), random.int(65_536), random.uint32()]));
  }

  /** Hashes, parent and tokens, encoded, and how many blocks they are. */
  #numbers(size: number): { hashes: Uint8Array; parent: Uint8Array; tokens: Uint8Array; blocks: number } {
    const { random } = this;
    const blocks = random.pick([0, 1, 1, 2, 3, 17]);
    const binary = random.chance(0.4);
    const pairs = random.chance(0.15);
    const hashes = Array.from({ length: blocks }, () => this.#hash(binary));
    const tokens = Array.from({ length: random.chance(0.9) ? blocks * size : random.int(20) }, () =>
      pairs ? listOf(random, [this.#token(), this.#token()]) : this.#token(),
    );
    return {
      hashes: this.#odd(listOf(random, hashes)),
      parent: this.#odd(random.chance(0.5) ? e(null) : this.#hash(random.chance(0.97) === binary)),
      tokens: this.#odd(listOf(random, tokens)),
      blocks,
    };
  }

  #extraKey(): unknown {
    const bin = new TextEncoder().encode(SALT);
    const texts = ['adapter-a', 'adapter-a', SALT, SALT, HEX_64, 'é', `${MARK}a`, `${MARK}${HEX_64.repeat(4)}`];
    return this.random.pick([...texts, bin, ['id', 3], ['id', -3n], 7, 1.5, true, null]);
  }

  /** Extra keys that are the same for each event, or nil for each of its blocks. */
  #extraKeys(): (blocks: number) => Uint8Array {
    const { random } = this;
    if (random.chance(0.4)) return (blocks) => this.#odd(e(new Array(blocks).fill(null)));
    const block = () => (random.chance(0.4) ? null : Array.from({ length: random.int(3) }, () => this.#extraKey()));
    const keys = this.#odd(e(random.chance(0.1) ? null : Array.from({ length: random.int(4) }, block)));
    return () => keys;
  }

  #mmInfos(): Uint8Array {
    const { random } = this;
    const info = { mm_objects: [{ mm_hash: random.bigint64(), offsets: [[0, 1]], more: 1 }, {}], other: null };
    return this.#odd(e(random.pick([null, [], [null, null], [info], [null, info]])));
  }

  #text(...texts: (string | null)[]): Uint8Array {
    return this.#odd(e(this.random.pick(texts)));
  }

  #place(): Field[] {
    const { random } = this;
    return [
      this.#field('medium', this.#text('GPU', 'GPU', 'CPU', 'cpu', '', null)),
      this.#field('group_idx', this.#odd(e(random.pick([null, 0, 1, 300])))),
      this.#field('kv_cache_spec_kind', this.#text(null, ...SPEC_KINDS)),
      this.#field('kv_cache_spec_sliding_window', this.#odd(e(random.pick([null, 128, 4096])))),
      this.#field('locality', this.#text(null, 'LOCAL', 'REMOTE')),
      this.#field('ownership', this.#text(null, null, null, 'kvcr')),
    ];
  }

  #some(fields: readonly Field[], probability: number): Field[] {
    return fields.filter(() => this.random.chance(probability));
  }

  #storedMap(): Template {
    const { random } = this;
    const size = random.pick([1, 2, 4, 4]);
    let numbers = this.#numbers(size);
    const extraKeys = this.#extraKeys();
    const required: Field[] = [
      [e('block_hashes'), () => numbers.hashes],
      [e('parent_block_hash'), () => numbers.parent],
      [e('token_ids'), () => numbers.tokens],
      this.#field('block_size', this.#odd(e(size))),
    ];
    const optional: Field[] = [
      this.#field('lora_id', this.#odd(e(random.pick([null, null, 0, 7, 2n ** 40n])))),
      this.#field('lora_name', this.#text(null, null, 'adapter-a', '')),
      [e('extra_keys'), () => extraKeys(numbers.blocks)],
      this.#field('cache_salt', this.#text(null, 'tenant-a', '')),
      this.#field('is_eagle', this.#odd(e(random.pick([null, false, true])))),
      this.#field('shared_cache_eligible', this.#odd(e(random.pick([null, false, true])))),
      this.#field('block_mm_infos', this.#mmInfos()),
      ...this.#place(),
    ];
    const map = this.#map([this.#tag('BlockStored'), ...this.#some(required, 0.99), ...this.#some(optional, 0.6)]);
    return () => {
      numbers = this.#numbers(size);
      return map();
    };
  }

  #removedMap(): Template {
    const hashes: Field = [e('block_hashes'), () => this.#numbers(1).hashes];
    return this.#map([this.#tag('BlockRemoved'), hashes, ...this.#some(this.#place(), 0.6)]);
  }

  #storedList(): Template {
    const { random } = this;
    const size = random.pick([1, 2, 4, 4]);
    const blockSize = this.#odd(e(size));
    const metadata = [{ cache_salt: 'tenant-a' }, { cache_salt: null }, {}, { other: 1 }];
    const loraName = random.chance(0.15) ? this.#odd(e(random.pick(metadata))) : this.#text(null, 'adapter-a', '');
    const middle = [this.#odd(e(random.pick([null, 0, 7, 2n ** 40n]))), this.#text('GPU', 'CPU', null), loraName];
    const extraKeys = this.#extraKeys();
    const tail = this.#tail();
    const length = random.chance(0.3) ? random.between(1, 9) : undefined;
    return () => {
      const { hashes, parent, tokens, blocks } = this.#numbers(size);
      const slots = [e('BlockStored'), hashes, parent, tokens, blockSize, ...middle, extraKeys(blocks), ...tail];
      return listOf(random, slots.slice(0, length));
    };
  }

  #removedList(): Template {
    const { random } = this;
    const medium = this.#text('GPU', 'CPU', null);
    const tail = this.#tail();
    const length = random.chance(0.3) ? random.between(1, 3) : undefined;
    return () => listOf(random, [e('BlockRemoved'), this.#numbers(1).hashes, medium, ...tail].slice(0, length));
  }

  #tail(): Uint8Array[] {
    const { random } = this;
    const [, ...place] = this.#place().map(([, value]) => value());
    if (random.chance(0.6)) return place.slice(0, random.int(6));
    const others = [...place.slice(0, 3), this.#mmInfos(), random.pick(ODD), e(null)];
    return random.shuffle(others).slice(0, random.int(7));
  }
}

function capturedPayloads(): Uint8Array[] {
  const folder = 'test/fixtures/worker-captures';
  const files = readdirSync(folder).filter((file) => file.endsWith('.jsonl'));
  return files
    .flatMap((file) => readCapture(readFileSync(join(folder, file), 'utf8'), file))
    .map((frames) => frames[2]!);
}

const INTERESTING = [
  0, 1, 2, 0x7f, 0x80, 0x81, 0x90, 0x91, 0xa0, 0xa3, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc6, 0xc7, 0xc9, 0xca, 0xcb,
  0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xd8, 0xd9, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff,
];
/** Headers that promise much. */
const INFLATED = [
  [0x9f],
  [0x8f],
  [0xbf],
  [0xdc, 0xff, 0xff],
  [0xdd, 0xff, 0xff, 0xff, 0xff],
  [0xdd, 0, 0x10, 0, 0],
  [0xdd, 0, 0, 0, 30],
  [0xde, 0, 0xff],
  [0xdf, 0x7f, 0xff, 0xff, 0xff],
  [0xdf, 0xff, 0xff, 0xff, 0xff],
  [0xc6, 0xff, 0xff, 0xff, 0xff],
  [0xdb, 0x80, 0, 0, 0],
  [0xd9, 0xff],
  [0xc9, 0xff, 0xff, 0xff, 0xff],
];

function mutate(random: Random, payload: Uint8Array, other: Uint8Array): Uint8Array {
  let bytes = new Uint8Array(payload);
  for (let times = random.pick([1, 1, 1, 2, 5]); times > 0; times--) bytes = mutateOnce(random, bytes, other);
  return bytes.subarray(0, MAX_REFERENCE_BYTES);
}

function mutateOnce(random: Random, bytes: Bytes, other: Uint8Array): Bytes {
  const at = random.int(bytes.length);
  switch (random.int(10)) {
    case 0:
      bytes[at] = random.int(256);
      return bytes;
    case 1:
      bytes[at]! ^= 1 << random.int(8);
      return bytes;
    case 2:
      bytes[at] = random.pick(INTERESTING);
      return bytes;
    case 3:
      return spliced(bytes, at, 0, [random.pick(INTERESTING)]);
    case 4:
      return spliced(bytes, at, random.between(1, 8), []);
    case 5:
      return spliced(bytes, at, 1, random.pick(ODD)); // often a whole value for another
    case 6:
      return spliced(
        bytes,
        at,
        4,
        Array.from({ length: 4 }, () => random.pick([0, 0xff, random.int(256)])),
      );
    case 7:
      return spliced(bytes, at, bytes.length, random.chance(0.5) ? [] : other.subarray(random.int(other.length)));
    case 8:
      return inflated(random, bytes, at);
    default:
      return withOtherText(random, bytes);
  }
}

type Bytes = Uint8Array<ArrayBuffer>;

function spliced(bytes: Bytes, at: number, removed: number, inserted: ArrayLike<number>): Bytes {
  const rest = bytes.subarray(at + removed);
  const whole = new Uint8Array(at + inserted.length + rest.length);
  whole.set(bytes.subarray(0, at));
  whole.set(inserted, at);
  whole.set(rest, at + inserted.length);
  return whole;
}

/** Makes the first header of a container or text from `at` on promise more. */
function inflated(random: Random, bytes: Bytes, at: number): Bytes {
  const found = bytes.findIndex((byte, i) => i >= at && byte >= 0x80 && byte < 0xc0);
  if (found < 0) return bytes;
  if (random.chance(0.5)) return spliced(bytes, found, 1, random.pick(INFLATED));
  bytes[found]!++;
  return bytes;
}

/** Field names and texts by their length: one in the place of another leaves the structure sound. */
const TEXTS = [
  ...['type', 'medium', 'lora_id', 'locality', 'is_eagle', 'token_ids', 'group_idx', 'lora_name', 'ownership'],
  ...['block_size', 'extra_keys', 'cache_salt', 'BlockStored', 'BlockRemoved', 'block_hashes', 'block_hashed'],
  ...['block_mm_infos', 'AllBlocksCleared', 'GPU', 'CPU', 'LOCAL', 'OTHER', 'full_attention', 'sink_attention'],
];

function withOtherText(random: Random, bytes: Bytes): Bytes {
  const from = random.pick(TEXTS);
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(from);
  if (at >= 0) bytes.set(Buffer.from(random.pick(TEXTS.filter(({ length }) => length === from.length))), at);
  return bytes;
}

// ---- tests ----

test('the reference sees floats, text that is no UTF-8, and every key of a map', () => {
  const event = (...pairs: [string, number[]][]) =>
    joined([0x92, 0, 0x91, 0x80 + pairs.length, ...pairs.flatMap(([key, value]) => [e(key), Uint8Array.from(value)])]);
  const removed: [string, number[]][] = [
    ['type', [...e('BlockRemoved')]],
    ['block_hashes', [0x91, 5]],
  ];
  const read = (...more: [string, number[]][]) => {
    const only = (referenceBatch(event(...removed, ...more)) as ReferenceBatch).events[0]!;
    return only.type === 'unread' ? null : only.fields;
  };
  assert.equal(read(['group_idx', [2]]), { group_idx: 2 });
  assert.is(read(['group_idx', [0xca, 0x40, 0, 0, 0]]), null); // 2.0
  assert.is(read(['medium', [0xa2, 0xc3, 0x28]]), null);
  assert.equal(read(['__proto__', [1]]), {});
  assert.equal(read(['medium', [0xa1, 0x61]], ['medium', [0xa1, 0x62]]), { medium: 'b' });
  assert.is(read(['medium', [1]], ['medium', [0xa1, 0x62]]), null);
  assert.is(read(['type', [...e('Ignored')]]), null);
});

/** One reader, all of whose batches are compared. */
class Judge {
  readonly numbers: Numbers;
  readonly reader: BatchReader;
  readonly fates: Record<string, number> = {};
  readonly seen = { stored: 0, removed: 0, cleared: 0, ignored: 0, rejected: 0 };

  /** With a reader of its own, or that of `other`. */
  constructor(other: Judge | null = null) {
    this.numbers = other?.numbers ?? new Numbers();
    this.reader = other?.reader ?? new BatchReader(this.numbers);
  }

  /** What became of the payload: `read`, or the code of the error that it is. */
  judge(payload: Uint8Array, where: string): string {
    const reference = referenceBatch(payload);
    const ours = outcomeOf(() => this.reader.read(payload), payload, where);
    const different = difference(ours, reference);
    if (different !== null) throw new Error(`${where}: ${different}; payload ${hex(payload)}`);
    const fate = typeof ours === 'string' ? ours : 'read';
    this.fates[fate] = (this.fates[fate] ?? 0) + 1;
    if (typeof ours !== 'string') {
      for (const { type } of ours.events) this.seen[type]++;
      this.seen.rejected += ours.rejected.length;
    }
    return fate;
  }
}

/** Payloads that were once read wrong, and what must become of them. */
const ONCE_WRONG: readonly (readonly [
  what: string,
  payload: string,
  right: (ours: WorkerBatch | string) => boolean,
])[] = [
  ['a float for a rank', '930090cb3ff0000000000000', (ours) => ours === 'batch-rank'],
  [
    'two types in one event: either may be a removal',
    `92009282${TYPE}${IGNORED}${TYPE}${REMOVED}83${TYPE}${STORED}ac626c6f636b5f686173686573c0${TYPE}${REMOVED}`,
    (ours) => typeof ours !== 'string' && ours.rejected.filter(({ lostRemoval }) => lostRemoval).length === 2,
  ],
  [
    "an extra key in an overlong spelling is not the adapter's name",
    `92009199${STORED}9101c0910101c0c0a1619191a2c1a1`,
    (ours) => keysOf(ours) === OPAQUE,
  ],
  [
    'nor is its long name behind a byte order mark',
    `92009199${STORED}9101c0910101c0c0d9c9${'61'.repeat(201)}9191d9ccefbbbf${'61'.repeat(201)}`,
    (ours) => keysOf(ours) === OPAQUE,
  ],
];

const keysOf = (ours: WorkerBatch | string): unknown => {
  const event = typeof ours === 'string' ? undefined : ours.events[0];
  return event?.type === 'stored' ? event.extraKeys : undefined;
};

for (const [what, payload, right] of ONCE_WRONG) {
  test(`once read wrong: ${what}`, () => {
    const bytes = Buffer.from(payload, 'hex');
    assert.ok(right(outcomeOf(() => new BatchReader().read(bytes), bytes, what)));
  });
}

/** What `read` gives, or the code of its WireError; anything else that it throws is a failure. */
function outcomeOf<T>(read: () => T, payload: Uint8Array, where: string): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof WireError) return error.code;
    throw new Error(`${where}: ${error}; payload ${hex(payload)}`, { cause: error });
  }
}

test('captured batches and batches of every layout, unchanged, are read as the reference reads them', () => {
  const random = new Random(seed);
  const judge = new Judge();
  const maker = new Maker(random);
  const captured = capturedPayloads();
  assert.ok(captured.length > 80, `${captured.length} captured messages`);
  for (const [i, payload] of captured.entries()) judge.judge(payload, `captured message ${i}`);
  for (let i = 0; i < MESSAGES / 30; i++) judge.judge(maker.batch(), `seed ${seed}, made batch ${i}`);
  console.log(`  unchanged: ${JSON.stringify({ ...judge.fates, ...judge.seen })}`);
});

/** Messages one after the other: for a while mutations of one batch, as a publisher repeats itself, then of another. */
class Stream {
  readonly #random: Random;
  readonly #maker: Maker;
  readonly #pool: Uint8Array[];
  #base: Uint8Array;
  #left = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#maker = new Maker(random);
    const captured = capturedPayloads();
    this.#pool = [...captured, ...Array.from(captured, () => this.#maker.batch())];
    this.#base = captured[0]!;
  }

  next(): Uint8Array {
    const random = this.#random;
    if (random.chance(0.05)) return this.#noise();
    if (this.#left-- <= 0) this.#change();
    return random.chance(0.1) ? this.#base : mutate(random, this.#base, random.pick(this.#pool));
  }

  #change(): void {
    const random = this.#random;
    this.#left = random.pick([1, 2, 8, 32]);
    this.#base = random.chance(0.5) ? random.pick(this.#pool) : this.#maker.batch();
  }

  #noise(): Uint8Array {
    const random = this.#random;
    const byte = () => (random.chance(0.5) ? random.pick(INTERESTING) : random.int(256));
    return Uint8Array.from({ length: random.int(64) }, (_, i) => (i === 0 && random.chance(0.5) ? 0x92 : byte()));
  }
}

/** The way from frames to what indexes take, where nothing may be thrown but a WireError either. */
class Route {
  readonly #workers = new WorkerEvents();
  readonly #random: Random;
  readonly #cache: SharedCache;
  blocks = 0;

  constructor(random: Random, cache: SharedCache) {
    this.#random = random;
    this.#cache = cache;
    cache.updateContract(contractOf({ blockSize: 4 }), [SOURCE]);
  }

  /** Takes a payload that ended in `fate` when it was read by itself. */
  take(payload: Uint8Array, fate: string, where: string): void {
    const random = this.#random;
    const frames = framesOf(random.bigint64(), payload);
    const broken = random.chance(0.05);
    if (broken)
      random.pick([
        () => frames.pop(),
        () => frames.push(payload),
        () => frames.reverse(),
        () => frames.fill(new Uint8Array(1025)),
      ])();
    const message = outcomeOf(() => this.#workers.read(SOURCE.workerId, frames), payload, where);
    if (typeof message === 'string') {
      assert.ok(broken || message === fate, `${where}: through frames ${message}, alone ${fate}`);
      return;
    }
    const lost = message.rejected.some(({ lostRemoval }) => lostRemoval);
    assert.ok(fate === 'read' && message.lostRemoval === lost, where);
    assert.is(
      outcomeOf(() => this.#index(message), payload, where),
      undefined,
      where,
    );
  }

  #index(message: WorkerMessage): void {
    this.blocks += this.#cache.observeMessage(message);
    for (const event of message.events) {
      if (event.kind !== 'stored') continue;
      const blockSize = Math.max(1, event.event.blockSize);
      routerBlocks(event, { blockSize, imageTokenId: this.#random.pick([null, 7]) });
    }
  }
}

const MIB = 1024 * 1024;

test(`${MESSAGES} mutated and random messages: the reference’s batch or error, and a good one after every bad one`, async () => {
  const random = new Random(seed + 1);
  const judge = new Judge();
  const healthy = new Judge(judge); // counts the good ones apart
  const stream = new Stream(random);
  const route = new Route(random, await SharedCache.create());
  const good = goodPayload();
  const linear = judge.numbers.bytes.buffer.byteLength;
  const { arrayBuffers } = process.memoryUsage();
  const { maxRSS } = process.resourceUsage();
  Object.assign(quirks, { float: 0, badText: 0, repeatedKey: 0, tooComplex: 0 });
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0; // most messages end in an error, whose stack nobody reads
  try {
    for (let i = 0; i < MESSAGES; i++) {
      const where = `seed ${seed}, message ${i}`;
      const payload = stream.next();
      const fate = judge.judge(payload, where);
      if (fate !== 'read') healthy.judge(good, `${where}, the good one behind it`);
      if (i % 8 === 0) route.take(payload, fate, where);
      if (i % 4096 === 0) {
        const held = process.memoryUsage().arrayBuffers - arrayBuffers;
        assert.ok(held < 64 * MIB, `${where}: ${held} bytes of buffers`);
      }
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  assert.is(judge.numbers.bytes.buffer.byteLength, linear, 'the reader’s memory grew');
  const peak = process.resourceUsage().maxRSS - maxRSS;
  console.log(
    `  ${JSON.stringify({ ...judge.fates, ...judge.seen, ...quirks })}, ${route.blocks} blocks learned, ${peak >> 10} MiB`,
  );
  assert.equal(Object.keys(healthy.fates), ['read']);
  assert.ok(peak < 256 * 1024, `the process grew by ${peak} KiB`);
  assert.ok(judge.fates['read']! > MESSAGES / 4 && judge.fates['payload-malformed']! > MESSAGES / 10);
  assert.ok(judge.seen.stored > MESSAGES / 10 && judge.seen.rejected > MESSAGES / 20);
  for (const [quirk, times] of Object.entries(quirks)) assert.ok(times > 0, `${quirk} never decided`);
});

/** Two stored events of either form and either kind of hash. */
function goodPayload(): Uint8Array {
  const digest = (fill: number) => new Uint8Array(32).fill(fill);
  const map = { type: 'BlockStored', block_hashes: [1n << 63n, -2], token_ids: [1, 200, 70_000, 5], block_size: 2 };
  const list = ['BlockStored', [digest(1)], digest(2), [3, 4], 2, 7, 'GPU', 'adapter-a', [['adapter-a']], 0];
  return e([1.5, [map, list], 3]);
}

test.run();
