// Stored events that are recognised by their bytes (src/wire/known-shapes.ts, assembly/shapes.ts) against the same bytes read field by
// field: nobody may be able to tell from the result which of the two happened. The reference is a reader that keeps no shape, and for
// single events a reader that has seen nothing. How many events were recognised is counted by the shape object that they share, so that no test
// passes because nothing was recognised. The seed is printed; MOONROUTE_SEED=n repeats a run.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Decoder, Encoder, ExtData } from '@msgpack/msgpack';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Numbers } from '../src/core/numbers.js';
import { type MoonrouteError, WireError } from '../src/errors.js';
import { readCapture } from '../src/oracle/capture.js';
import { Cursor } from '../src/wire/cursor.js';
import { BatchReader, type WorkerBatch } from '../src/wire/read-batch.js';
import {
  decodeWorkerBatch,
  MAX_BATCH_EVENTS,
  MAX_EVENT_TOKENS,
  type RemovedEvent,
  type StoredEvent,
  type WorkerEvent,
} from '../src/wire/vllm.js';
import { Random } from './support/random.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
console.log(`wire-shapes: seed ${seed}`);

// ---- bytes ----

type Bytes = Uint8Array;

const encoder = new Encoder({ useBigInt64: true });
const decoder = new Decoder({ useBigInt64: true });

/** A value that is on the wire as exactly these bytes. */
class Raw {
  constructor(readonly bytes: Bytes) {}
}

/** Never a Buffer, whose `slice` would be a view. */
const bytes = (...parts: (number | Bytes)[]): Bytes => joined(parts);
const joined = (parts: readonly (number | Bytes)[]): Bytes =>
  Uint8Array.from(Buffer.concat(parts.map((part) => (typeof part === 'number' ? Uint8Array.of(part) : part))));
const encoded = (value: unknown): Bytes => (value instanceof Raw ? value.bytes : encoder.encode(value));

/** An unsigned number in so many bytes, the high one first. */
function big(value: number, width: 1 | 2 | 4): Bytes {
  const written = Buffer.alloc(width);
  written.writeUIntBE(value, 0, width);
  return written;
}

/** The shortest header of an array (`small` 0x90) or a map (0x80). */
function header(small: 0x80 | 0x90, count: number): Bytes {
  if (count < 16) return Uint8Array.of(small | count);
  const tag = small === 0x90 ? 0xdc : 0xde;
  return count < 0x1_0000 ? bytes(tag, big(count, 2)) : bytes(tag + 1, big(count, 4));
}

const arrayOf = (values: readonly unknown[]): Bytes => bytes(header(0x90, values.length), ...values.map(encoded));
const mapOf = (fields: Fields): Bytes =>
  bytes(header(0x80, fields.length), ...fields.flatMap(([key, value]) => [encoded(key), encoded(value)]));
/** A batch of events that are bytes already. */
const batchOf = (...events: readonly Bytes[]): Bytes => batch(events);
const batch = (events: readonly Bytes[]): Bytes => joined([0x92, 0, header(0x90, events.length), ...events]);

// ---- numbers in every form that they have on the wire ----

function randomBytes(random: Random, length: number): Bytes {
  return Uint8Array.from({ length }, () => random.int(256));
}

/** A token id, in any width that holds it, signed ones too. */
function token(random: Random): Bytes {
  const tag = random.pick([0, 0xcc, 0xcd, 0xcd, 0xcd, 0xce, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3]);
  if (tag === 0) return Uint8Array.of(random.int(128));
  const body = randomBytes(random, 1 << ((tag - 0xcc) & 3));
  if (tag >= 0xd0) body[0]! &= 0x7f;
  if (body.length === 8) body.fill(0, 0, 4);
  return bytes(tag, body);
}

/** A 64-bit hash, in any width and of either sign. */
function integerHash(random: Random): Bytes {
  const tag = random.pick([0, 0xe0, 0xcc, 0xcd, 0xce, 0xcf, 0xcf, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd3]);
  if (tag === 0 || tag === 0xe0) return Uint8Array.of(tag | random.int(32));
  return bytes(tag, randomBytes(random, 1 << ((tag - 0xcc) & 3)));
}

/** A digest of 32 bytes, its length in any width. */
function digest(random: Random): Bytes {
  const head = random.pick([
    [0xc4, 32],
    [0xc4, 32],
    [0xc5, 0, 32],
    [0xc6, 0, 0, 0, 32],
  ] as const);
  return bytes(...head, randomBytes(random, 32));
}

/** A list, its header mostly the shortest. */
function list(random: Random, items: readonly Bytes[]): Raw {
  const head = random.chance(0.8) ? header(0x90, items.length) : bytes(0xdd, big(items.length, 4));
  return new Raw(bytes(head, ...items));
}

const HASHES = { integers: integerHash, digests: digest } as const;

/** What differs between the events of a shape. */
interface Lists {
  readonly hashes: Raw;
  readonly parent: Raw;
  readonly tokens: Raw;
  readonly pairs: Raw;
  readonly nils: Raw;
}

/** Lists of random lengths; the parent is nil at times, and of the blocks' form otherwise. */
function lists(random: Random, form: keyof typeof HASHES = random.pick(['integers', 'digests'])): Lists {
  const hash = HASHES[form];
  const count = random.pick([0, 1, 1, 2, 3, 5, 20]);
  const several = <T>(make: () => T, most: number) => Array.from({ length: random.int(most + 1) }, make);
  return {
    hashes: list(
      random,
      Array.from({ length: count }, () => hash(random)),
    ),
    parent: new Raw(random.chance(0.3) ? Uint8Array.of(0xc0) : hash(random)),
    tokens: list(
      random,
      several(() => token(random), random.pick([0, 4, 40, 200])),
    ),
    pairs: list(
      random,
      several(() => bytes(0x92, token(random), token(random)), 8),
    ),
    nils: list(
      random,
      several(() => Uint8Array.of(0xc0), random.pick([1, 16, 70])),
    ),
  };
}

/** Any value at all. */
function anything(random: Random, depth = 2): unknown {
  switch (random.int(depth === 0 ? 8 : 10)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
      return random.int(1000) - 500;
    case 3:
      return random.int(1000) / 7;
    case 4:
      return random.hex(random.pick([0, 4, 40, 400]));
    case 5:
      return randomBytes(random, random.int(40));
    case 6:
      return new ExtData(random.int(100), randomBytes(random, random.int(20)));
    case 7:
      return random.bigint64();
    case 8:
      return Array.from({ length: random.int(4) }, () => anything(random, depth - 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.int(4) }, () => [random.hex(3), anything(random, depth - 1)]),
      );
  }
}

// ---- events ----

type Fields = readonly (readonly [key: unknown, value: unknown])[];
type Changes = Readonly<Record<string, unknown>>;
/** Makes events of one shape with other numbers each time. */
type Family = (random: Random) => Bytes;

/** The fields of vLLM's map, in its order; some changed, left out (undefined) or added behind. */
function vllm(numbers: Lists, changes: Changes = {}): Fields {
  const fields: Changes = {
    type: 'BlockStored',
    block_hashes: numbers.hashes,
    parent_block_hash: numbers.parent,
    token_ids: numbers.tokens,
    block_size: 16,
    lora_id: null,
    medium: 'GPU',
    lora_name: null,
    extra_keys: numbers.nils,
    group_idx: 0,
    kv_cache_spec_kind: 'full_attention',
    ...changes,
  };
  return Object.entries(fields).filter(([, value]) => value !== undefined);
}

/** The array form: tag and four lists, then what else the event says. */
const slots = (numbers: Lists, ...rest: unknown[]): Bytes =>
  arrayOf(['BlockStored', numbers.hashes, numbers.parent, numbers.tokens, 16, ...rest]);

const INFOS = [null, { mm_objects: [{ mm_hash: 5, offsets: [[0, 1]] }] }];

/** Changes to vLLM's map that make a shape of its own. A function is asked for another value each time. */
const MAPS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'as vLLM writes it': {},
  'without a parent': { parent_block_hash: undefined },
  'a parent that is always nil': { parent_block_hash: null },
  'token pairs': { token_ids: ({ pairs }: Lists) => pairs },
  'no tokens': { token_ids: [] },
  'no hashes': { block_hashes: [] },
  'nothing at all': { block_hashes: [], token_ids: [], extra_keys: [], parent_block_hash: null },
  'LoRA extra keys': { lora_id: 1, lora_name: 'adapter-a', extra_keys: [['adapter-a'], ['adapter-a']] },
  'extra keys of every type': { extra_keys: [['a', 1, 1.5, true, null, new Uint8Array(32), ['image', 3]], null] },
  'no extra keys': { extra_keys: undefined },
  'nil for extra keys': { extra_keys: null },
  'a tagged salt': { extra_keys: [['dynamo-cache-salt:tenant-a'], null] },
  'a named salt': { cache_salt: 'tenant-a' },
  images: { block_mm_infos: INFOS },
  'images that are none': { block_mm_infos: [null, null] },
  flags: { is_eagle: false, shared_cache_eligible: true },
  'flags of odd types': { is_eagle: 'no', shared_cache_eligible: 1, lora_id: 1.5 },
  'a window, a locality and an owner': { kv_cache_spec_sliding_window: 128, locality: 'REMOTE', ownership: 'kvcr' },
  'the smallest': {
    ...{ parent_block_hash: undefined, lora_id: undefined, medium: undefined, lora_name: undefined },
    ...{ extra_keys: undefined, group_idx: undefined, kv_cache_spec_kind: undefined },
  },
  'a session': { session_id: (_: Lists, random: Random) => `session-${random.hex(random.pick([1, 8, 200]))}` },
  'three unknown names': Object.fromEntries(
    ['session_id', 'later', 'source_kind'].map((name) => [name, (_: Lists, r: Random) => anything(r)]),
  ),
  'an unknown name of 300 bytes': { ['x'.repeat(300)]: (_: Lists, random: Random) => anything(random) },
  'more than 15 names': Object.fromEntries(
    ['locality', 'ownership', 'cache_salt', 'is_eagle', 'shared_cache_eligible'].map((name) => [name, null]),
  ),
};

function changed(changes: Readonly<Record<string, unknown>>, numbers: Lists, random: Random): Changes {
  return Object.fromEntries(
    Object.entries(changes).map(([name, value]) => [
      name,
      typeof value === 'function' ? value(numbers, random) : value,
    ]),
  );
}

/** What may stand behind an array event's first five slots (spec 1.7). A function is asked for another value each time. */
const TAILS: Readonly<Record<string, readonly unknown[]>> = {
  '5 slots': [],
  '6 slots': [null],
  '6 slots with an adapter': [7],
  '7 slots': [null, 'GPU'],
  '8 slots': [null, 'GPU', 'adapter-a'],
  "SGLang's salt": [null, 'GPU', { cache_salt: 'tenant-a' }],
  "SGLang's empty metadata": [null, 'GPU', {}],
  '9 slots': [1, 'CPU', 'adapter-a', [['adapter-a']]],
  '9 slots with nil keys': [null, 'GPU', null, nilsOf],
  group: [null, 'GPU', null, nilsOf, 2],
  'group and kind': [null, 'GPU', null, nilsOf, 2, 'mamba'],
  'kind alone': [null, 'GPU', null, null, 'mamba'],
  'group, kind and window': [null, 'GPU', null, nilsOf, 2, 'sliding_window', 128],
  'nil, kind and window': [null, 'GPU', null, null, null, 'sliding_window', 128],
  'images, group, kind and window': [null, 'GPU', null, [['x']], INFOS, 2, 'sliding_window', 128],
  'no images, group, kind, window and a suffix': [
    null,
    'GPU',
    null,
    null,
    null,
    2,
    'sliding_window',
    128,
    'later',
    anyOf,
  ],
  'a fixed tail of 4': [null, 'GPU', null, nilsOf, 2, 'sliding_window', 128, 'LOCAL'],
  'a fixed tail of 5': [null, 'GPU', null, nilsOf, 2, 'full_attention', null, 'REMOTE', 'kvcr'],
  'a fixed tail of nil': [null, 'GPU', null, nilsOf, null, null, null, 'LOCAL', null],
  'a fixed tail and a suffix': [null, 'GPU', null, nilsOf, 2, 'full_attention', null, null, null, anyOf, anyOf, anyOf],
};

function nilsOf({ nils }: Lists): unknown {
  return nils;
}
function anyOf(_: Lists, random: Random): unknown {
  return anything(random);
}

/** The same pairs in another order, always the same for one `order`. */
function reordered(fields: Fields, order: number): Fields {
  return new Random(order).shuffle([...fields]);
}

const FAMILIES: Readonly<Record<string, Family>> = {
  ...Object.fromEntries(
    Object.entries(MAPS).flatMap(([name, changes]): [string, Family][] => {
      const make = (random: Random) => {
        const numbers = lists(random);
        return vllm(numbers, changed(changes, numbers, random));
      };
      return [
        [`map: ${name}`, (random) => mapOf(make(random))],
        [`map: ${name}, the tag last`, (random) => mapOf([...make(random)].reverse())],
        [`map: ${name}, shuffled`, (random) => mapOf(reordered(make(random), name.length))],
      ];
    }),
  ),
  ...Object.fromEntries(
    Object.entries(TAILS).map(([name, rest]): [string, Family] => [
      `array: ${name}`,
      (random) => {
        const numbers = lists(random);
        return slots(numbers, ...rest.map((value) => (typeof value === 'function' ? value(numbers, random) : value)));
      },
    ]),
  ),
  'map: keys that are no text': (random) =>
    mapOf([[1, 2], [null, 'x'], [[1], anything(random)], ...vllm(lists(random))]),
  'map: numbers in pairs or single': (random) => {
    const numbers = lists(random);
    return mapOf(vllm(numbers, { token_ids: random.pick([numbers.pairs, numbers.tokens]) }));
  },
  'array: headers longer than need be': (random) => {
    const numbers = lists(random);
    const slot = [encoded('BlockStored'), numbers.hashes.bytes, numbers.parent.bytes, numbers.tokens.bytes];
    return bytes(0xdd, big(5, 4), ...slot, 0xcf, new Uint8Array(7), 16);
  },
};
const FAMILY_NAMES = Object.keys(FAMILIES);

const plain: Family = (random) => mapOf(vllm(lists(random)));

// ---- readers ----

/** A memory for numbers in which no shape is kept. */
class Forgetful extends Numbers {
  override keepShape(): boolean {
    return false;
  }
}

/** What an event says. What it holds no longer than its message is copied. */
function said(event: WorkerEvent): unknown {
  if (event.type === 'removed') return removedSaid(event);
  return event.type === 'stored' ? storedSaid(event) : event;
}

function storedSaid(event: StoredEvent): unknown {
  const { form, blockCount, hashForm, wholeDigests, tokenCount, tokenPairs, hasParent, extraKeyCount } = event;
  const { blockSize, medium, loraName, groupIdx, specKind, slidingWindow, locality, ownership, cacheSalt } = event;
  const { loraId, extraKeys, isEagle, sharedCacheEligible, blockMmInfos } = event;
  return {
    ...{ form, blockCount, hashForm, wholeDigests, tokenCount, tokenPairs, hasParent, extraKeyCount },
    ...{ blockSize, medium, loraName, groupIdx, specKind, slidingWindow, locality, ownership, cacheSalt },
    ...{ loraId, extraKeys, isEagle, sharedCacheEligible, blockMmInfos },
    hashes: event.blockHashes,
    tokens: event.tokenIds,
    parent: event.parentBlockHash,
    parentWords: hasParent ? [event.parentLow, event.parentHigh] : null,
  };
}

function removedSaid({ form, medium, groupIdx, specKind, locality, ownership, blockHashes }: RemovedEvent): unknown {
  return { removed: true, form, medium, groupIdx, specKind, locality, ownership, blockHashes };
}

/** What a payload gives: each event in its place, as read or as rejected, or an error's code. */
interface Outcome {
  readonly items: readonly unknown[];
  /** Where the numbers of the good events stand: nothing is used up that a reader without shapes does not use. */
  readonly places: readonly (readonly [hashesAt: number, tokensAt: number])[];
  readonly error: string | null;
}

function outcomeOf(read: () => WorkerBatch): Outcome {
  try {
    const { events, rejected } = read();
    const items = events.map(said);
    for (const { index, ...fault } of rejected) items.splice(index, 0, fault);
    const places = events.flatMap((event) =>
      event.type === 'stored' ? [[event.hashesAt, event.tokensAt] as const] : [],
    );
    return { items, places, error: null };
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return { items: [], places: [], error: error.code };
  }
}

const ownNumbers = new Numbers();
const forgetful = new Forgetful();
const otherNumbers = new Numbers();
const reference = new BatchReader(forgetful);

/** The payload, with every event read field by field. */
const fieldByField = (payload: Bytes): Outcome => outcomeOf(() => reference.read(payload));
/** An event by itself, read by a reader that has seen nothing before. */
const alone = (event: Bytes): Outcome => outcomeOf(() => new BatchReader(otherNumbers).read(batchOf(event)));

/** The reader under test, which counts what it recognises. One at a time: they share their memory. */
class Subject {
  readonly reader = new BatchReader(ownNumbers);
  readonly #shapes = new Set<unknown>();
  stored = 0;
  recognised = 0;

  read(payload: Bytes): Outcome {
    return outcomeOf(() => {
      const batch = this.reader.read(payload);
      for (const event of batch.events) if (event.type === 'stored') this.#count(event);
      return batch;
    });
  }

  #count({ shape }: StoredEvent): void {
    this.stored++;
    if (this.#shapes.has(shape)) this.recognised++;
    this.#shapes.add(shape);
  }
}

/** Reads events in one batch and holds each against both references; returns how many were recognised. */
function check(subject: Subject, events: readonly Bytes[], where: string): number {
  const before = subject.recognised;
  const got = subject.read(batchOf(...events));
  assert.is(got.error, null, where);
  assert.equal(got, fieldByField(batchOf(...events)), where);
  for (const [i, event] of events.entries()) assert.equal(got.items[i], alone(event).items[0], `${where}: event ${i}`);
  return subject.recognised - before;
}

const several = (family: Family, count: number, random: Random): Bytes[] =>
  Array.from({ length: count }, () => family(random));

// ---- the shapes of real publishers ----

const captured = suite('captures');

const FOLDER = 'test/fixtures/worker-captures';

/** The bytes of each event of a payload; none when it is no batch. */
function eventsIn(payload: Bytes): Bytes[] {
  const cursor = new Cursor(otherNumbers);
  cursor.open(payload);
  if (cursor.array() >= 2) {
    cursor.skip();
    return slice(cursor, payload);
  }
  for (let pairs = cursor.map(); pairs > 0; pairs--) {
    if (cursor.text() === 'events') return slice(cursor, payload);
    cursor.skip();
  }
  return [];
}

function slice(cursor: Cursor, payload: Bytes): Bytes[] {
  return Array.from({ length: Math.max(0, cursor.array()) }, () => {
    const start = cursor.at;
    cursor.skip();
    return payload.slice(start, cursor.at);
  });
}

/** The event with other numbers of the same form; the bytes of everything else as they are decoded and encoded. */
function renumbered(event: Bytes, random: Random): Bytes {
  const value = decoder.decode(event) as unknown[] | Record<string, unknown>;
  const other = (old: unknown): unknown => {
    if (Array.isArray(old)) return old.map(other);
    if (old instanceof Uint8Array) return randomBytes(random, old.length);
    return old === null ? null : random.int(0x1_0000_0000);
  };
  if (!Array.isArray(value)) {
    const numbers = ['block_hashes', 'parent_block_hash', 'token_ids'].filter((name) => name in value);
    return encoder.encode({ ...value, ...Object.fromEntries(numbers.map((name) => [name, other(value[name])])) });
  }
  return encoder.encode(value.map((slot, i) => (i >= 1 && i <= 3 ? other(slot) : slot)));
}

const isStored = (event: Bytes): boolean => {
  const { items } = alone(event);
  return items.length === 1 && typeof items[0] === 'object' && 'tokens' in items[0]!;
};

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.jsonl'))) {
  captured(`${file}: each stored event, and the same with other numbers, is recognised and read as it is`, () => {
    const random = new Random(seed);
    const messages = readCapture(readFileSync(join(FOLDER, file), 'utf8'), file);
    const events = messages.flatMap((frames) => eventsIn(frames[2]!)).filter(isStored);
    assert.ok(events.length > 0);
    for (const [i, event] of events.entries()) {
      const others = [renumbered(event, random), renumbered(event, random), renumbered(event, random)];
      const recognised = check(new Subject(), [event, event, ...others], `event ${i}`);
      assert.ok(recognised >= 3, `event ${i}: ${recognised} of 5 recognised`);
    }
  });

  captured(`${file}: all its messages by one reader, twice`, () => {
    const subject = new Subject();
    const messages = readCapture(readFileSync(join(FOLDER, file), 'utf8'), file);
    for (const frames of [...messages, ...messages]) {
      assert.equal(subject.read(frames[2]!), fieldByField(frames[2]!));
    }
  });
}

captured.run();

// ---- the shapes that the rules allow ----

const families = suite('families');

for (const name of FAMILY_NAMES) {
  families(`${name}: all but the first are recognised`, () => {
    const random = new Random(seed);
    const events = several(FAMILIES[name]!, 12, random);
    assert.is(check(new Subject(), events, `seed ${seed}`), events.length - 1);
  });
}

families('a shape is known in later messages, in batches of either form', () => {
  const random = new Random(seed);
  const subject = new Subject();
  check(subject, several(plain, 1, random), 'first');
  assert.is(check(subject, several(plain, 5, random), 'second'), 5);
  const map = mapOf([
    ['data_parallel_rank', 3],
    ['events', new Raw(bytes(0x92, ...several(plain, 2, random)))],
  ]);
  assert.equal(subject.read(map), fieldByField(map));
  assert.is(subject.recognised, 7);
});

families('numbers of recognised events are those on the wire', () => {
  const random = new Random(seed);
  const numbers = Array.from({ length: 60 }, (_, length) => {
    const most = length % 2 === 0 ? 0xcf : 0xd3; // lists that begin with so many 64-bit hashes are read another way
    const wide = Array.from({ length: length >> 1 }, () => bytes(most, randomBytes(random, 8)));
    return {
      hashes: [...wide, ...Array.from({ length: random.int(4) }, () => integerHash(random))],
      tokens: Array.from({ length }, () => token(random)),
    };
  });
  const events = numbers.map(({ hashes, tokens }) => {
    const [block_hashes, token_ids] = [hashes, tokens].map(
      (items) => new Raw(joined([0xdc, big(items.length, 2), ...items])),
    );
    return mapOf(vllm(lists(random, 'integers'), { block_hashes, token_ids }));
  });
  const { events: read } = new BatchReader(ownNumbers).read(batch(events));
  assert.is(new Set(read.map((event) => (event as StoredEvent).shape)).size, 1);
  const value = (item: Bytes) => BigInt.asUintN(64, BigInt(decoder.decode(item) as number | bigint));
  for (const [i, { hashes, tokens }] of numbers.entries()) {
    const event = read[i] as StoredEvent;
    assert.equal([...event.blockHashes.low64], hashes.map(value), `hashes of ${i}, seed ${seed}`);
    assert.equal(Array.from(event.tokenIds, BigInt), tokens.map(value), `tokens of ${i}, seed ${seed}`);
  }
});

families('other kinds of events between them cost nothing', () => {
  const random = new Random(seed);
  const others = [['AllBlocksCleared'], { type: 'BlockRemoved', block_hashes: [1, 2] }, ['Ignored', 1], 7, null];
  const events = others.flatMap((other) => [...several(plain, 2, random), encoder.encode(other)]);
  assert.is(check(new Subject(), events, 'mixed'), 2 * others.length - 1);
});

families('events that own their numbers keep them', () => {
  const random = new Random(seed);
  const payload = batchOf(...several(plain, 6, random), ...several(FAMILIES['array: group and kind']!, 6, random));
  const { events } = decodeWorkerBatch(payload);
  decodeWorkerBatch(batchOf(...several(plain, 12, random)));
  assert.equal(events.map(said), fieldByField(payload).items);
});

families.run();

// ---- almost the same ----

const misses = suite('near misses');

/** Events that differ from vLLM's map in a few literal bytes, and what they say then. */
const NEAR: readonly (readonly [what: string, changes: Changes, says: Changes])[] = [
  ['medium', { medium: 'CPU' }, { medium: 'CPU' }],
  ['group', { group_idx: 1 }, { groupIdx: 1 }],
  ['no group', { group_idx: null }, { groupIdx: null }],
  ['kind', { kv_cache_spec_kind: 'full_attentioN' }, { specKind: 'full_attentioN' }],
  ['block size', { block_size: 17 }, { blockSize: 17 }],
  ['adapter number', { lora_id: 1 }, { loraId: 1 }],
  ['adapter name', { lora_name: 'a' }, { loraName: 'a' }],
  ['extra keys: text', { extra_keys: [['a']] }, { extraKeys: [['a']], extraKeyCount: 1 }],
  ['extra keys: nil, then text', { extra_keys: [null, ['a']] }, { extraKeys: [null, ['a']] }],
  ['extra keys: nil for the list', { extra_keys: null }, { extraKeys: undefined, extraKeyCount: -1 }],
  ['one more name', { locality: 'LOCAL' }, { locality: 'LOCAL' }],
  ['one more unknown name', { later: 1 }, {}],
  ['one name less', { kv_cache_spec_kind: undefined }, { specKind: null }],
  ['a parent less', { parent_block_hash: undefined }, { parent: null, hasParent: false }],
  ['a name of the same length', { medium: undefined, mediuM: 'CPU' }, { medium: null }],
];

for (const [what, changes, says] of NEAR) {
  misses(`map: ${what}`, () => {
    const random = new Random(seed);
    const near: Family = (r) => mapOf(vllm(lists(r), changes));
    const events = [plain, near, plain, near, near, plain].map((family) => family(random));
    assert.is(check(new Subject(), events, what), 4);
    for (const place of [1, 3, 4]) {
      const item = alone(events[place]!).items[0] as Changes;
      for (const [field, value] of Object.entries(says)) assert.equal(item[field], value, field);
    }
  });
}

misses('map: two neighbouring pairs changed places', () => {
  const random = new Random(seed);
  const count = vllm(lists(random)).length;
  for (let place = 0; place + 1 < count; place++) {
    const swapped = (r: Random) => {
      const fields = [...vllm(lists(r))];
      [fields[place], fields[place + 1]] = [fields[place + 1]!, fields[place]!];
      return mapOf(fields);
    };
    assert.is(
      check(
        new Subject(),
        [plain, swapped, plain, swapped].map((family) => family(random)),
        `${place}`,
      ),
      2,
    );
  }
});

misses('extra keys of which one is not nil, at any place', () => {
  const random = new Random(seed);
  const events = [plain(random)];
  for (const length of [1, 2, 15, 16, 17, 32, 33, 40]) {
    for (let place = 0; place < length; place++) {
      const extra_keys = Array.from({ length }, (_, i) => (i === place ? false : null));
      events.push(mapOf(vllm(lists(random), { extra_keys })), plain(random));
    }
  }
  const subject = new Subject();
  assert.equal(subject.read(batch(events)), fieldByField(batch(events)));
  assert.is(subject.recognised, (events.length - 1) / 2);
});

const NEAR_TAILS: readonly (readonly [what: string, tail: readonly unknown[]])[] = [
  ['group', [1, 'sliding_window', 128, 'LOCAL']],
  ['kind', [2, 'sliding_windoW', 128, 'LOCAL']],
  ['window', [2, 'sliding_window', 127, 'LOCAL']],
  ['locality', [2, 'sliding_window', 128, 'REMOTE']],
  ['a window of no number: the tail is read by type', [2, 'sliding_window', true, 'LOCAL']],
  ['one slot less: likewise', [2, 'sliding_window', 128]],
  ['one slot more', [2, 'sliding_window', 128, 'LOCAL', null]],
];

for (const [what, tail] of NEAR_TAILS) {
  misses(`array: ${what}`, () => {
    const random = new Random(seed);
    const base: Family = (r) => slots(lists(r), null, 'GPU', null, null, 2, 'sliding_window', 128, 'LOCAL');
    const near: Family = (r) => slots(lists(r), null, 'GPU', null, null, ...tail);
    assert.is(
      check(
        new Subject(),
        [base, near, base, near].map((family) => family(random)),
        what,
      ),
      2,
    );
  });
}

for (const name of ['map: as vLLM writes it', 'array: a fixed tail of 4']) {
  misses(`${name}: any byte changed, between two that are recognised`, () => {
    const random = new Random(seed);
    const [first, second, third, fourth] = several(FAMILIES[name]!, 4, random) as [Bytes, Bytes, Bytes, Bytes];
    const subject = new Subject();
    for (let at = 0; at < third.length; at++) {
      for (const mask of [0x01, 0xa0]) {
        const near = third.slice();
        near[at]! ^= mask;
        const payload = batchOf(first, second, near, fourth);
        assert.equal(subject.read(payload), fieldByField(payload), `byte ${at} ^ ${mask}, seed ${seed}`);
      }
    }
    assert.ok(subject.recognised > subject.stored / 2, `${subject.recognised} of ${subject.stored}`);
  });
}

misses.run();

// ---- bad ones ----

const faults = suite('faults');

const ok: Changes = { block_hashes: [1, 2], token_ids: [1, 2, 3], parent_block_hash: 5 };
const DIGEST = new Uint8Array(32).fill(7);
const long = (count: number): Raw => new Raw(bytes(0xdd, big(count, 4), new Uint8Array(count).fill(1)));

/** What is wrong with an event that looks like the ones around it, and the code that it is rejected with. */
const FAULTS: readonly (readonly [what: string, changes: Changes, code: string])[] = [
  ['a token that is a float', { token_ids: [1, 1.5, 3] }, 'field-type'],
  ['a token that is a whole float', { token_ids: [1, new Raw(bytes(0xca, 0x40, 0x40, 0, 0)), 3] }, 'field-type'],
  ['a negative token', { token_ids: [1, -1] }, 'field-type'],
  ['a token of 33 bits', { token_ids: [0x1_0000_0000n] }, 'field-type'],
  ['a token that is nil', { token_ids: [1, null] }, 'field-type'],
  ['a token that is text', { token_ids: ['1'] }, 'field-type'],
  ['a pair behind tokens', { token_ids: [1, [2, 3]] }, 'field-type'],
  ['a token behind pairs', { token_ids: [[1, 2], 3] }, 'field-type'],
  ['three in a pair', { token_ids: [[1, 2, 3]] }, 'field-type'],
  ['tokens that are no list', { token_ids: 'abc' }, 'field-type'],
  ['nil for tokens', { token_ids: null }, 'field-missing'],
  ['nil for hashes', { block_hashes: null }, 'field-missing'],
  ['hashes that are no list', { block_hashes: 7 }, 'field-type'],
  ['a hash that is a float', { block_hashes: [1.5] }, 'hash-type'],
  ['a hash that is nil', { block_hashes: [1, null] }, 'hash-type'],
  ['a digest behind an integer', { block_hashes: [1, DIGEST] }, 'hash-mixed'],
  ['an integer behind a digest', { block_hashes: [DIGEST, 1], parent_block_hash: DIGEST }, 'hash-mixed'],
  ['a digest of 31 bytes', { block_hashes: [DIGEST, DIGEST.subarray(1)] }, 'hash-width'],
  ['a parent of the other form: digest', { parent_block_hash: DIGEST }, 'hash-mixed'],
  ['a parent of the other form: integer', { block_hashes: [DIGEST], parent_block_hash: 5 }, 'hash-mixed'],
  ['a parent of 20 bytes', { parent_block_hash: new Uint8Array(20) }, 'hash-width'],
  ['a parent that is text', { parent_block_hash: 'x' }, 'hash-type'],
  ['a parent that is a float', { parent_block_hash: 0.5 }, 'hash-type'],
  ['a block size that is text', { block_size: '16' }, 'field-type'],
  ['a medium that is binary', { medium: new Uint8Array(3) }, 'field-type'],
  ['one token too many', { token_ids: long(MAX_EVENT_TOKENS + 1) }, 'too-many-tokens'],
  ['one hash too many', { block_hashes: long(ownNumbers.hashCap + 1) }, 'too-many-hashes'],
];

for (const [what, changes, code] of FAULTS) {
  faults(`${what}: this event is lost and no other`, () => {
    const random = new Random(seed);
    const events = [...several(plain, 2, random), mapOf(vllm(lists(random), { ...ok, ...changes }))];
    events.push(...several(plain, 3, random));
    const subject = new Subject();
    assert.is(check(subject, events, what), 4);
    assert.is((alone(events[2]!).items[0] as Changes)['code'], code);
    assert.is(check(subject, [events[2]!, ...several(plain, 2, random)], 'in the next message'), 2);
  });
}

faults('of an empty list the form is open, so any parent goes', () => {
  const random = new Random(seed);
  const events = [5, DIGEST, null, DIGEST, 5].map((parent_block_hash) =>
    mapOf(vllm(lists(random), { block_hashes: [], parent_block_hash })),
  );
  assert.is(check(new Subject(), events, 'empty'), 4);
});

faults('as many tokens as an event may have, single and in pairs', () => {
  const pairs = (count: number) => new Raw(bytes(0xdd, big(count, 4), Buffer.alloc(3 * count, bytes(0x92, 1, 2))));
  const of = (token_ids: unknown) => mapOf(vllm(lists(new Random(seed)), { token_ids }));
  const read = (...tokens: unknown[]) => {
    const { events, rejected } = new BatchReader(ownNumbers).read(batch(tokens.map(of)));
    assert.is(new Set(events.map((event) => (event as StoredEvent).shape)).size, 1);
    const counts = events.map((event) => [(event as StoredEvent).tokenCount, (event as StoredEvent).tokenPairs]);
    return { counts, rejected: rejected.map(({ index, code }) => `${index}: ${code}`) };
  };
  assert.equal(read([1], long(MAX_EVENT_TOKENS), pairs(MAX_EVENT_TOKENS - 1), [2, 3]), {
    counts: [
      [1, false],
      [MAX_EVENT_TOKENS, false],
      [MAX_EVENT_TOKENS, true],
      [2, false],
    ],
    rejected: [],
  });
  assert.equal(read([1], pairs(MAX_EVENT_TOKENS), [2, 3]), {
    counts: [
      [1, false],
      [2, false],
    ],
    rejected: ['1: too-many-tokens'],
  });
});

faults('what failed attempts read is given back: two shapes by turns fill the tokens to their cap', () => {
  const each = 131_072;
  const random = new Random(seed);
  const of = (kv_cache_spec_kind: string) => mapOf(vllm(lists(random), { token_ids: long(each), kv_cache_spec_kind }));
  const events = Array.from({ length: ownNumbers.tokenCap / each }, (_, i) => of(i % 2 === 0 ? 'mamba' : 'mambo'));
  events.push(mapOf(vllm(lists(random), { token_ids: [1] })));
  const subject = new Subject();
  const { events: read, rejected } = subject.reader.read(batchOf(...events));
  assert.equal(
    rejected.map(({ index, code }) => [index, code]),
    [[events.length - 1, 'too-many-tokens']],
  );
  assert.equal(
    read.map((event) => (event as StoredEvent).tokensAt),
    Array.from({ length: events.length - 1 }, (_, i) => i * each),
  );
  assert.is(new Set(read.map((event) => (event as StoredEvent).shape)).size, 2);
});

faults('a payload that ends inside a recognised event, or has a rest, is an error, and the next is read', () => {
  const random = new Random(seed);
  const events = [...several(plain, 3, random), FAMILIES['array: a fixed tail and a suffix']!(random)];
  const subject = new Subject();
  check(subject, events, 'whole');
  const payload = batchOf(...events);
  for (let length = 0; length < payload.length; length++) {
    assert.is(subject.read(payload.subarray(0, length)).error, 'payload-malformed', `first ${length} bytes`);
  }
  assert.is(subject.read(bytes(payload, 0)).error, 'payload-malformed');
  assert.is(check(subject, events, 'whole again'), 4);
});

faults('a list that promises more than there is', () => {
  const random = new Random(seed);
  const subject = new Subject();
  check(subject, several(plain, 2, random), 'whole');
  for (const field of ['block_hashes', 'token_ids', 'extra_keys']) {
    for (const head of [[0xdd, 0xff, 0xff, 0xff, 0xff], [0xdc, 0xff, 0xff], [0x9f]]) {
      const payload = batchOf(plain(random), mapOf(vllm(lists(random), { ...ok, [field]: new Raw(bytes(...head)) })));
      assert.equal(subject.read(payload), fieldByField(payload), `${field} ${head}`);
    }
  }
});

faults.run();

// ---- what is remembered ----

const memory = suite('memory');

/** Shapes that differ by their medium. */
const numbered =
  (shape: number): Family =>
  (random) =>
    mapOf(vllm(lists(random), { medium: `medium ${shape}` }));

/** Whether an event of that shape is recognised. */
const knows = (subject: Subject, shape: number, random: Random): boolean =>
  check(subject, [numbered(shape)(random)], `shape ${shape}`) === 1;

/** Of shapes seen one after the other, whether a reader knows the one of that age; the latest has age 0. */
function knowsAged(age: number, random: Random): boolean {
  const subject = new Subject();
  for (let shape = SEEN - 1; shape >= 0; shape--) subject.read(batchOf(numbered(shape)(random)));
  return knows(subject, age, random);
}
const SEEN = 20;

memory('of the shapes seen last at least 4 are known, and not more than there are places', () => {
  const random = new Random(seed);
  const known = Array.from({ length: SEEN }, (_, age) => knowsAged(age, random));
  const count = known.indexOf(false);
  console.log(`  ${count} shapes are known at a time, of ${ownNumbers.shapeCap} places`);
  assert.ok(count >= 4 && count <= ownNumbers.shapeCap, `${count}`);
  assert.equal(
    known,
    known.map((_, age) => age < count),
    'the latest',
  );
});

memory('the one not seen for longest makes room', () => {
  const random = new Random(seed);
  let count = 0;
  while (knowsAged(count, random)) count++;
  const subject = new Subject();
  for (let shape = 0; shape < count; shape++) assert.not(knows(subject, shape, random));
  assert.ok(knows(subject, 0, random), 'the oldest, which now is the latest');
  assert.not(knows(subject, count, random), 'a new one');
  assert.ok(knows(subject, 0, random));
  assert.not(knows(subject, 1, random), 'it made room');
});

memory('more shapes than places, by turns and at random', () => {
  const random = new Random(seed);
  const subject = new Subject();
  for (const shapes of [5, 17, 40]) {
    const turns = Array.from({ length: 3 * shapes }, (_, i) => numbered(i % shapes)(random));
    check(subject, turns, `${shapes} by turns`);
    const stretches = Array.from({ length: 60 }, () =>
      several(numbered(random.int(shapes)), random.between(1, 4), random),
    );
    check(subject, stretches.flat(), `${shapes} at random`);
  }
  assert.ok(subject.recognised > 50, `${subject.recognised}`);
});

memory('literals up to about 900 bytes are kept, those over 1,024 are not, and all are read', () => {
  const random = new Random(seed);
  const known: boolean[] = [];
  for (let length = 600; length <= 1_100; length += 4) {
    const events = several((r) => mapOf(vllm(lists(r), { lora_name: 'a'.repeat(length) })), 3, random);
    const recognised = check(new Subject(), events, `a name of ${length}`);
    assert.ok(recognised === 0 || recognised === 2);
    known.push(recognised === 2);
  }
  const kept = known.indexOf(false);
  assert.ok(known.every((knew, i) => knew === i < kept));
  assert.ok(known[0] && !known.at(-1));
});

memory('up to 7 values may vary in a map; with more of them it is not kept, and read all the same', () => {
  const random = new Random(seed);
  const recognised = Array.from({ length: 14 }, (_, unknown) => {
    const family: Family = (r) =>
      mapOf([
        ...vllm(lists(r), { extra_keys: null }),
        ...Array.from({ length: unknown }, (_, i) => [`x${i}`, anything(r)] as const),
      ]);
    return check(new Subject(), several(family, 3, random), `${unknown} unknown names`);
  });
  assert.equal(
    recognised,
    recognised.map((_, unknown) => (unknown + 3 <= 7 ? 2 : 0)),
  );
});

memory('an unknown value may be longer than anything that is kept', () => {
  const random = new Random(seed);
  const family: Family = (r) =>
    mapOf(
      vllm(lists(r), {
        session_id: r.hex(20_000),
        later: new Raw(bytes(0xdd, big(20_000, 4), new Uint8Array(20_000))),
      }),
    );
  assert.is(check(new Subject(), several(family, 4, random), 'long'), 3);
});

memory('events that never look alike stop being remembered; what looks alike again is, after a while', () => {
  const random = new Random(seed);
  const subject = new Subject();
  const never = Array.from({ length: 300 }, (_, i) => numbered(1_000 + i)(random));
  assert.is(check(subject, never, 'never alike'), 0);
  assert.not(check(subject, several(plain, 3, random), 'three alike') === 2, 'the first was remembered at once');
  assert.ok(check(subject, several(plain, 200, random), 'many alike') >= 100);
  assert.is(check(subject, [...several(numbered(1), 2, random), plain(random)], 'and now at once'), 2);
});

/** Pairs of a map that names something more than once: the last one counts. */
const TWICE: Readonly<Record<string, (numbers: Lists, more: Lists) => Fields>> = {
  block_hashes: (_, more) => [['block_hashes', more.hashes]],
  'block_hashes, three times': (numbers, more) => [
    ['block_hashes', more.hashes],
    ['block_hashes', numbers.hashes],
  ],
  token_ids: (_, more) => [['token_ids', more.tokens]],
  'token_ids as pairs': (_, more) => [['token_ids', more.pairs]],
  parent_block_hash: (_, more) => [['parent_block_hash', more.parent]],
  'parent_block_hash, then nil': () => [['parent_block_hash', null]],
  'nil extra keys': (_, more) => [['extra_keys', more.nils]],
  'nil extra keys, then text': () => [['extra_keys', [['a']]]],
  'nil extra keys, then nil': () => [['extra_keys', null]],
  'extra keys, then nil ones': (_, more) => [
    ['extra_keys', [['a']]],
    ['extra_keys', more.nils],
  ],
  type: () => [['type', 'BlockStored']],
  block_size: () => [['block_size', 32]],
  medium: () => [['medium', 'CPU']],
  'an unknown name': (numbers) => [
    ['later', numbers.tokens],
    ['later', numbers.nils],
  ],
};

for (const [what, more] of Object.entries(TWICE)) {
  memory(`twice in a map: ${what}`, () => {
    const random = new Random(seed);
    const family: Family = (r) => {
      const numbers = lists(r, 'integers');
      return mapOf([...vllm(numbers), ...more(numbers, lists(r, 'integers'))]);
    };
    check(new Subject(), several(family, 6, random), what);
    const both = [family, plain, family, plain, plain].map((make) => make(random));
    assert.ok(check(new Subject(), both, `${what}, between others`) >= 2);
  });
}

memory('a value too large to be looked at in one message is looked at in the next', () => {
  const adapter = { lora_name: 'a', extra_keys: [['a']] };
  const random = new Random(seed);
  const subject = new Subject();
  const huge = mapOf(vllm(lists(random), { block_mm_infos: 'x'.repeat(4 << 20) }));
  const first = batchOf(huge, mapOf(vllm(lists(random), adapter)));
  assert.equal(subject.read(first), fieldByField(first));
  check(subject, [mapOf(vllm(lists(random), adapter))], 'the next message');
});

memory.run();

// ---- caps ----

const caps = suite('caps');

/** An array event of one block and one token, which say its number. */
const tiny = (number: number): Bytes =>
  bytes(TINY, 0x91, 0xce, big(number, 4), 0xc0, 0x91, 0xce, big(number + 7, 4), 1);
const TINY = bytes(0x95, encoder.encode('BlockStored'));

caps('as many events as a batch may have, all but the first recognised; gone with the next message', () => {
  const subject = new Subject();
  const payload = batch(Array.from({ length: MAX_BATCH_EVENTS }, (_, i) => tiny(i)));
  const { events, rejected } = subject.reader.read(payload);
  assert.equal([events.length, rejected.length], [MAX_BATCH_EVENTS, 0]);
  const [first] = events as StoredEvent[];
  for (const [i, event] of (events as StoredEvent[]).entries()) {
    assert.is(event.shape, first!.shape);
    if (event.blockHashes.low64[0] !== BigInt(i) || event.tokenIds[0] !== i + 7) assert.unreachable(`event ${i}`);
    if (event.hashesAt !== i || event.tokensAt !== i || event.blockCount !== 1) assert.unreachable(`place of ${i}`);
  }
  assert.is(subject.read(batchOf(...Array.from({ length: 3 }, (_, i) => tiny(i)))).items.length, 3);
  for (const event of [events[0], events[1], events.at(-1)] as StoredEvent[]) {
    for (const use of [() => event.tokenIds, () => event.blockHashes, () => event.place(otherNumbers)]) {
      assert.throws(use, (error: MoonrouteError) => error.code === 'stale-event');
    }
  }
});

caps('one event more is an error', () => {
  const subject = new Subject();
  check(subject, [tiny(1), tiny(2)], 'two');
  const payload = batch(new Array<Bytes>(MAX_BATCH_EVENTS + 1).fill(tiny(3)));
  assert.is(subject.read(payload).error, 'too-many-events');
  assert.is(check(subject, [tiny(4)], 'afterwards'), 1);
});

caps('a payload of as many bytes as are read, recognised to its last one', () => {
  const random = new Random(seed);
  const of = (padding: number) =>
    mapOf(vllm(lists(new Random(seed)), { later: new Raw(bytes(0xc6, big(padding, 4), new Uint8Array(padding))) }));
  const around = [of(0), of(0)];
  const padding = ownNumbers.payloadBytes - batchOf(...around, of(0)).length;
  const payload = batchOf(around[0]!, of(padding), around[1]!);
  assert.is(payload.length, ownNumbers.payloadBytes);
  const subject = new Subject();
  assert.equal(subject.read(payload), fieldByField(payload));
  assert.is(subject.recognised, 2);
  assert.is(subject.read(bytes(payload, 0)).error, 'payload-too-large');
  assert.is(check(subject, [of(random.int(9))], 'afterwards'), 1);
});

caps('hashes of many events up to the cap of a message', () => {
  const subject = new Subject();
  const event = mapOf(vllm(lists(new Random(seed)), { block_hashes: long(32_768), parent_block_hash: null }));
  const events = new Array<Bytes>(ownNumbers.hashCap / 32_768).fill(event);
  const payload = batchOf(...events, tiny(1), mapOf(vllm(lists(new Random(seed)), { block_hashes: [] })));
  assert.equal(subject.read(payload), fieldByField(payload));
  assert.is(subject.recognised, events.length); // all but the first, and the last of the batch
});

caps.run();

// ---- everything at once ----

const mixed = suite('mixed');

const MESSAGES = 80;

/** An event that is none of the stored ones, or none at all. */
function otherEvent(random: Random): Bytes {
  const { hashes } = lists(random);
  return random.pick([
    () =>
      mapOf([
        ['type', 'BlockRemoved'],
        ['block_hashes', hashes],
        ['medium', 'GPU'],
      ]),
    () => arrayOf(['BlockRemoved', hashes, 'GPU', 2]),
    () => encoder.encode(['AllBlocksCleared']),
    () => encoder.encode({ type: 'Ignored', x: 1 }),
    () => encoder.encode(anything(random)),
    () => mapOf(vllm(lists(random), random.pick(FAULTS.slice(0, -2))[1])),
  ])();
}

/** A byte of the event changed: mostly no event any more, and at times one that looks nearly the same. */
function spoiled(event: Bytes, random: Random): Bytes {
  const near = event.slice();
  near[random.int(near.length)]! ^= 1 << random.int(8);
  return near;
}

/** Events of few shapes, in stretches, with others between them. */
function randomEvents(random: Random): Bytes[] {
  const few = Array.from({ length: random.between(1, 6) }, () => FAMILIES[random.pick(FAMILY_NAMES)]!);
  return Array.from({ length: random.between(1, 8) }, () => {
    const stretch = several(random.pick(few), random.between(1, 6), random);
    if (random.chance(0.2)) stretch.push(otherEvent(random));
    return stretch;
  }).flat();
}

mixed('random messages, one reader for all: never a difference', () => {
  const random = new Random(seed);
  const subject = new Subject();
  let errors = 0;
  for (let message = 0; message < MESSAGES; message++) {
    const where = `seed ${seed}, message ${message}`;
    const events = randomEvents(random);
    check(subject, events, where);
    if (random.chance(0.3)) events[random.int(events.length)] = spoiled(random.pick(events), random);
    const whole = batchOf(...events);
    const payload = random.chance(0.1) ? whole.subarray(0, random.int(whole.length)) : whole;
    const got = subject.read(payload);
    assert.equal(got, fieldByField(payload), where);
    if (got.error !== null) errors++;
  }
  console.log(`  ${subject.stored} stored events, ${subject.recognised} of them recognised, ${errors} errors`);
  assert.ok(subject.recognised > subject.stored / 3 && errors > 0);
});

mixed.run();
