// The worker stream's wire: frames, batch, both event encodings, every form of a hash, and what a bad event costs. Every case is
// real MessagePack; the hostile ones are arbitrary bytes.
import { Encoder, ExtData } from '@msgpack/msgpack';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { sharedNumbers } from '../src/core/numbers.js';
import { type MoonrouteError, WireError } from '../src/errors.js';
import { whyIneligible } from '../src/events/eligibility.js';
import { writeSequence } from '../src/wire/frames.js';
import { UNKNOWN_KEY } from '../src/wire/msgpack.js';
import { BatchReader } from '../src/wire/read-batch.js';
import {
  decodeWorkerBatch,
  decodeWorkerMessage,
  MAX_BATCH_EVENTS,
  MAX_EVENT_TOKENS,
  type RemovedEvent,
  type StoredEvent,
} from '../src/wire/vllm.js';

const MAX_WORKER_PAYLOAD_BYTES = sharedNumbers().payloadBytes;
const encoder = new Encoder({ useBigInt64: true });
const payloadOf = (...events: unknown[]) => encoder.encode([1789095808.88, events, 0]);
const bytes = (...parts: (number | Uint8Array)[]) =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === 'number' ? [part] : [...part])));

const TOKENS = Array.from({ length: 16 }, (_, i) => i + 1);
const STORED_MAP = {
  type: 'BlockStored',
  block_hashes: [15760518052499183552n],
  parent_block_hash: null,
  token_ids: TOKENS,
  block_size: 16,
  lora_id: null,
  medium: 'GPU',
  lora_name: null,
  extra_keys: [null],
  group_idx: 0,
  kv_cache_spec_kind: 'full_attention',
};

function stored(event: unknown): StoredEvent {
  const { events, rejected } = decodeWorkerBatch(payloadOf(event));
  assert.equal(rejected, []);
  assert.is(events[0]?.type, 'stored');
  return events[0] as StoredEvent;
}

function removed(event: unknown): RemovedEvent {
  const { events, rejected } = decodeWorkerBatch(payloadOf(event));
  assert.equal(rejected, []);
  assert.is(events[0]?.type, 'removed');
  return events[0] as RemovedEvent;
}

/** What a stored event says, its numbers copied out. */
function said(event: StoredEvent) {
  const { type, form, tokenPairs, blockSize, medium, loraName, groupIdx, specKind, slidingWindow } = event;
  const { locality, ownership, cacheSalt, loraId, extraKeys, isEagle, sharedCacheEligible, blockMmInfos } = event;
  return {
    ...{ type, form, tokenPairs, blockSize, medium, loraName, groupIdx, specKind, slidingWindow, locality, ownership },
    ...{ cacheSalt, loraId, extraKeys, isEagle, sharedCacheEligible, blockMmInfos },
    hashes: event.blockHashes,
    tokens: event.tokenIds,
    parent: event.parentBlockHash,
  };
}

/** What a removed event says, likewise. */
function goneOf(event: RemovedEvent) {
  const { type, form, medium, groupIdx, specKind, slidingWindow, locality, ownership, blockHashes } = event;
  return { type, form, medium, groupIdx, specKind, slidingWindow, locality, ownership, blockHashes };
}

/** Code and lostRemoval of the one bad event. */
function rejection(event: unknown): { code: string; lostRemoval: boolean } {
  const { events, rejected } = decodeWorkerBatch(payloadOf(event));
  assert.is(events.length, 0);
  assert.is(rejected.length, 1);
  assert.is(typeof rejected[0]!.text, 'string');
  return { code: rejected[0]!.code, lostRemoval: rejected[0]!.lostRemoval };
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.instance(error, WireError);
    return (error as WireError).code;
  }
  return 'no error';
}

test('the captured map event of spec 1.4 is read field by field', () => {
  const event = stored(STORED_MAP);
  assert.equal([...event.blockHashes.low64], [15760518052499183552n]);
  assert.is(event.blockHashes.digests, null);
  assert.equal([...event.tokenIds], TOKENS);
  const { hashes: _, tokens: __, ...rest } = said(event);
  assert.equal(rest, {
    type: 'stored',
    form: 'map',
    parent: null,
    tokenPairs: false,
    blockSize: 16,
    medium: 'GPU',
    groupIdx: 0,
    specKind: 'full_attention',
    slidingWindow: null,
    locality: null,
    ownership: null,
    loraName: null,
    cacheSalt: null,
    loraId: undefined,
    extraKeys: [null],
    isEagle: undefined,
    sharedCacheEligible: undefined,
    blockMmInfos: undefined,
  });
});

test('map and positional form of one event differ in nothing but their form', () => {
  const map = stored({
    ...STORED_MAP,
    parent_block_hash: 7,
    lora_id: 1,
    lora_name: 'adapter-a',
    extra_keys: [['adapter-a']],
  });
  const array = [
    'BlockStored',
    [15760518052499183552n],
    7,
    TOKENS,
    16,
    1,
    'GPU',
    'adapter-a',
    [['adapter-a']],
    0,
    'full_attention',
  ];
  assert.equal({ ...said(stored(array)), form: 'map' }, said(map));
  assert.equal(
    { ...goneOf(removed(['BlockRemoved', [1, 2], 'CPU', 3])), form: 'map' },
    goneOf(removed({ type: 'BlockRemoved', block_hashes: [1, 2], medium: 'CPU', group_idx: 3 })),
  );
});

test('keys may come in any order, and unknown ones are skipped', () => {
  const backwards = Object.fromEntries(Object.entries(STORED_MAP).reverse());
  assert.is(Object.keys(backwards).at(-1), 'type');
  const event = stored({ session_id: 'x', ...backwards, future: { deep: [1, { constructor: 2 }] }, [UNKNOWN_KEY]: 1 });
  assert.equal(said(event), said(stored(STORED_MAP)));
});

test('keys that are no text, and __proto__, are skipped like unknown ones', () => {
  const text = (value: string) => encoder.encode(value);
  const odd = [
    bytes(1),
    bytes(0xcf, new Uint8Array(8)),
    bytes(0xc0),
    bytes(0x91, text('type')),
    encoder.encode(new Uint8Array(4)),
  ];
  const entries = [
    ...[text('type'), text('AllBlocksCleared')],
    ...odd.flatMap((key) => [key, text('BlockRemoved')]),
    ...[text('__proto__'), bytes(0x81, text('ownership'), text('kvcr'))],
  ];
  const event = bytes(0x80 + entries.length / 2, ...entries);
  const batch = decodeWorkerBatch(bytes(0x92, 0, 0x91, event));
  assert.equal(batch.events, [{ type: 'cleared', form: 'map', ownership: null }]);
  assert.is(({} as { ownership?: unknown }).ownership, undefined);
});

test('a missing required field is named; every other field may be missing', () => {
  for (const field of ['block_hashes', 'token_ids', 'block_size'] as const) {
    for (const value of [undefined, null]) {
      const { [field]: _, ...rest } = STORED_MAP;
      assert.equal(rejection(value === null ? { ...rest, [field]: null } : rest), {
        code: 'field-missing',
        lostRemoval: false,
      });
    }
  }
  const bare = stored({ type: 'BlockStored', block_hashes: [1], token_ids: [1], block_size: 1 });
  assert.equal([bare.medium, bare.loraName, bare.groupIdx, bare.parentBlockHash], [null, null, null, null]);
  assert.equal(stored(['BlockStored', [1], null, [1], 1]).extraKeys, undefined);
  for (const length of [1, 2, 3, 4]) {
    assert.is(rejection(['BlockStored', [1], null, [1], 1].slice(0, length)).code, 'field-missing');
  }
});

test('the array layouts of 1.7 are all read', () => {
  const nine = ['BlockStored', [1], null, [1], 1, null, 'GPU', null, null];
  const infos = [{ mm_objects: [{ mm_hash: 5, offsets: [[0, 1]] }] }];
  const rows: [
    tail: unknown[],
    groupIdx: number | null,
    kind: string | null,
    window: number | null,
    locality: string | null,
  ][] = [
    [[], null, null, null, null],
    [[2], 2, null, null, null],
    [[2, 'mamba'], 2, 'mamba', null, null],
    [['mamba'], null, 'mamba', null, null],
    [[2, 'sliding_window', 128], 2, 'sliding_window', 128, null],
    [[null, 'sliding_window', 128], 128, 'sliding_window', null, null], // too short to go by position
    [[infos, 2, 'sliding_window', 128], 2, 'sliding_window', 128, null],
    [[null, 2, 'sliding_window', 128, 'later'], 2, 'sliding_window', 128, null],
    [[2, 'sliding_window', 128, 'LOCAL'], 2, 'sliding_window', 128, 'LOCAL'],
    [[2, 'full_attention', null, 'REMOTE', 'kvcr', { later: 1 }], 2, 'full_attention', null, 'REMOTE'],
    [[null, null, null, 'LOCAL'], null, null, null, 'LOCAL'],
  ];
  for (const [tail, ...expected] of rows) {
    const event = stored([...nine, ...tail]);
    assert.equal([event.groupIdx, event.specKind, event.slidingWindow, event.locality], expected, JSON.stringify(tail));
    assert.equal(event.blockMmInfos, tail.includes(infos) ? infos : undefined);
    const { groupIdx, specKind, slidingWindow, locality } = removed(['BlockRemoved', [1], 'GPU', ...tail]);
    assert.equal([groupIdx, specKind, slidingWindow, locality], expected);
  }
  assert.is(stored([...nine, 2, 'full_attention', null, 'REMOTE', 'kvcr']).ownership, 'kvcr');
  for (const length of [5, 6, 7, 8]) assert.is(stored(nine.slice(0, length)).blockSize, 1);
});

test("SGLang's metadata in slot 7 names the salt: text, nil for none, or nothing", () => {
  const event = (metadata: unknown) => stored(['BlockStored', [1], null, [1], 1, null, 'GPU', metadata]);
  assert.equal(
    [event({ cache_salt: 'tenant-a' }).cacheSalt, event({ cache_salt: 'tenant-a' }).loraName],
    ['tenant-a', null],
  );
  assert.is(event({ cache_salt: null }).cacheSalt, '');
  assert.is(event({}).cacheSalt, null);
});

test('hashes: every integer form, bit for bit', () => {
  const rows: [wire: Uint8Array, hash: bigint][] = [
    [bytes(0xff), 18446744073709551615n], //                              −1 as small negative
    [bytes(0xd0, 0xff), 18446744073709551615n], //                        −1 as int 8
    [bytes(0xd1, 0xff, 0xff), 18446744073709551615n], //                  −1 as int 16
    [bytes(0xd2, 0xff, 0xff, 0xff, 0xff), 18446744073709551615n], //      −1 as int 32
    [bytes(0xd3, ...Array(8).fill(0xff)), 18446744073709551615n], //      −1 as int 64
    [bytes(0xcf, ...Array(8).fill(0xff)), 18446744073709551615n], //      2^64 − 1 as uint 64
    [bytes(0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0), 9223372036854775808n], //    −2^63
    [bytes(0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0), 9223372036854775808n], //    2^63
    [bytes(0xcf, 0, 0x20, 0, 0, 0, 0, 0, 1), 9007199254740993n], //       2^53 + 1
    [bytes(0xce, 0xff, 0xff, 0xff, 0xff), 4294967295n],
    [bytes(0xd3, 0, 0, 0, 0, 0, 0, 0, 5), 5n], //                         5, wider than it need be
    [bytes(0xcc, 200), 200n],
    [bytes(5), 5n],
    [bytes(0), 0n],
  ];
  for (const [wire, hash] of rows) {
    // ["BlockRemoved", [hash]]
    const event = bytes(0x92, encoder.encode('BlockRemoved'), 0x91, wire);
    const batch = decodeWorkerBatch(bytes(0x92, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0x91, event));
    assert.equal([...(batch.events[0] as RemovedEvent).blockHashes.low64], [hash], `bytes ${wire}`);
  }
});

test('hashes: signed and unsigned stand side by side, and the parent follows the same rules', () => {
  const event = stored({ ...STORED_MAP, block_hashes: [-1, 3, -(2n ** 63n), 2n ** 64n - 2n], parent_block_hash: -2 });
  assert.equal([...event.blockHashes.low64], [2n ** 64n - 1n, 3n, 2n ** 63n, 2n ** 64n - 2n]);
  assert.equal(event.parentBlockHash, { low64: 2n ** 64n - 2n, digest: null });
});

test('hashes: 32 bytes keep the digest, and their last 8 are the low half', () => {
  const digest = (seed: number) => Uint8Array.from({ length: 32 }, (_, i) => seed + i);
  const payload = payloadOf({ ...STORED_MAP, block_hashes: [digest(1), digest(2)], parent_block_hash: digest(9) });
  const event = decodeWorkerBatch(payload).events[0] as StoredEvent;
  assert.equal([...event.blockHashes.low64], [0x191a1b1c1d1e1f20n, 0x1a1b1c1d1e1f2021n]);
  assert.equal(event.blockHashes.digests, bytes(digest(1), digest(2)));
  assert.equal(event.parentBlockHash, { low64: 0x2122232425262728n, digest: digest(9) });
  payload.fill(0); // the receiver's buffer may be used again
  assert.equal(event.blockHashes.digests, bytes(digest(1), digest(2)));
  assert.equal(event.parentBlockHash!.digest, digest(9));
});

test('hashes: mixed forms, other widths and other types are bad events', () => {
  const digest = new Uint8Array(32);
  const rows: [Partial<Record<keyof typeof STORED_MAP, unknown>>, string][] = [
    [{ block_hashes: [1, digest] }, 'hash-mixed'],
    [{ block_hashes: [digest, 1] }, 'hash-mixed'],
    [{ block_hashes: [digest], parent_block_hash: 1 }, 'hash-mixed'],
    [{ block_hashes: [1], parent_block_hash: digest }, 'hash-mixed'],
    [{ block_hashes: [new Uint8Array(31)] }, 'hash-width'],
    [{ block_hashes: [new Uint8Array(33)] }, 'hash-width'],
    [{ block_hashes: [new Uint8Array(8)] }, 'hash-width'],
    [{ block_hashes: [new Uint8Array(0)] }, 'hash-width'],
    [{ parent_block_hash: new Uint8Array(20) }, 'hash-width'],
    [{ block_hashes: ['7'] }, 'hash-type'],
    [{ block_hashes: [1.5] }, 'hash-type'],
    [{ block_hashes: [1e18] }, 'hash-type'],
    [{ block_hashes: [null] }, 'hash-type'],
    [{ block_hashes: [[1]] }, 'hash-type'],
    [{ parent_block_hash: '7' }, 'hash-type'],
    [{ block_hashes: 7 }, 'field-type'],
    [{ block_hashes: digest }, 'field-type'],
  ];
  for (const [change, code] of rows) {
    assert.equal(
      rejection({ ...STORED_MAP, ...change }),
      { code, lostRemoval: false },
      JSON.stringify(Object.keys(change)),
    );
  }
  assert.is(stored({ ...STORED_MAP, block_hashes: [], parent_block_hash: digest }).blockHashes.low64.length, 0);
});

test('text and binary stay apart', () => {
  const text = (value: string) => new TextEncoder().encode(value);
  const event = stored({
    ...STORED_MAP,
    extra_keys: [['adapter-a', text('adapter-a'), ['id', 3], 1, 1.5, true, null]],
  });
  assert.equal(event.extraKeys, [['adapter-a', text('adapter-a'), ['id', 3], 1, 1.5, true, null]]);
  for (const field of ['medium', 'lora_name', 'kv_cache_spec_kind', 'locality', 'ownership', 'cache_salt']) {
    assert.is(rejection({ ...STORED_MAP, [field]: text('GPU') }).code, 'field-type', field);
  }
  assert.equal(rejection({ ...STORED_MAP, type: text('BlockStored') }), { code: 'tag-missing', lostRemoval: true });
});

test('fields that decide eligibility never cost a map event, whatever their type', () => {
  for (const value of ['7', 1.5, true, -1, [1], {}, new Uint8Array(2), new ExtData(5, new Uint8Array(1))]) {
    for (const field of ['lora_id', 'is_eagle', 'shared_cache_eligible', 'extra_keys', 'block_mm_infos']) {
      stored({ ...STORED_MAP, [field]: value });
    }
  }
  assert.is(rejection(['BlockStored', [1], null, [1], 1, '7']).code, 'field-type'); // typed in the array form
  assert.is(rejection(['BlockStored', [1], null, [1], 1, -1]).code, 'field-type');
  assert.is(stored(['BlockStored', [1], null, [1], 1, 2n ** 64n - 1n]).loraId, 2n ** 64n - 1n);
});

test('tokens: unsigned 32-bit integers, or pairs of them flattened', () => {
  assert.equal([...stored({ ...STORED_MAP, token_ids: [0, 4294967295, 7n] }).tokenIds], [0, 4294967295, 7]);
  const pairs = stored({
    ...STORED_MAP,
    token_ids: [
      [1, 2],
      [2, 3],
      [3, 4],
    ],
  });
  assert.equal([[...pairs.tokenIds], pairs.tokenPairs], [[1, 2, 3, 4], true]);
  const none = stored({ ...STORED_MAP, token_ids: [] });
  assert.equal([none.tokenIds.length, none.tokenPairs], [0, false]);
  for (const tokens of [
    [-1],
    [4294967296n],
    [1.5],
    ['1'],
    [null],
    [1, [2, 3]],
    [[1, 2], 3],
    [[1, 2, 3]],
    [[1]],
    [[]],
    'x',
    { 0: 1 },
  ]) {
    assert.is(
      rejection({ ...STORED_MAP, token_ids: tokens }).code,
      'field-type',
      JSON.stringify(tokens, (_, v) => `${v}`),
    );
  }
});

test('a bad event loses itself only, and says whether a removal may be lost', () => {
  const { events, rejected } = decodeWorkerBatch(
    payloadOf(
      STORED_MAP,
      { type: 'BlockRemoved' }, // 1
      ['BlockRemoved', [1]],
      { type: 'BlockRemoved', block_hashes: ['x'] }, // 3
      ['AllBlocksCleared', 7], // 4
      ['AllBlocksCleared'],
      { type: 'BlockStored' }, // 6
      { type: 'BlockMoved' }, // 7
      { type: 7 }, // 8
      {}, // 9
      [], // 10
      null, // 11
      'BlockRemoved', // 12
      new ExtData(1, new Uint8Array(1)), // 13
      ['Ignored', 1, 2],
      { type: 'Ignored' },
    ),
  );
  assert.equal(
    events.map((event) => event.type),
    ['stored', 'removed', 'cleared', 'ignored', 'ignored'],
  );
  assert.equal(
    rejected.map(({ index, code, lostRemoval }) => [index, code, lostRemoval]),
    [
      [1, 'field-missing', true],
      [3, 'hash-type', true],
      [4, 'field-type', true],
      [6, 'field-missing', false],
      [7, 'tag-unknown', false],
      [8, 'tag-missing', true],
      [9, 'tag-missing', true],
      [10, 'tag-missing', true],
      [11, 'not-an-event', true],
      [12, 'not-an-event', true],
      [13, 'not-an-event', true],
    ],
  );
});

test('the rank is the third element: nil or missing is 0, a negative one is reinterpreted', () => {
  const rows: [unknown[], number][] = [
    [[0, []], 0],
    [[0, [], null], 0],
    [[0, [], 3], 3],
    [[0, [], 3n], 3],
    [[0, [], -1], 4294967295],
    [[0, [], -(2 ** 31)], 2147483648],
    [[0, [], 4294967295], 4294967295],
  ];
  for (const [batch, rank] of rows) assert.is(decodeWorkerBatch(encoder.encode(batch)).dpRank, rank);
  for (const rank of ['0', 1.5, [], 4294967296n, -(2n ** 31n) - 1n]) {
    assert.is(
      codeOf(() => decodeWorkerBatch(encoder.encode([0, [], rank]))),
      'batch-rank',
    );
  }
});

test('the batch is an array of two or three with a list of events', () => {
  for (const batch of [null, 7, {}, [], [0], [0, {}], [0, null, 0], [0, [], 0, 0], 'x']) {
    assert.is(
      codeOf(() => decodeWorkerBatch(encoder.encode(batch))),
      'batch-shape',
    );
  }
  assert.is(decodeWorkerBatch(encoder.encode([1.5, []])).timestamp, 1.5);
  assert.is(decodeWorkerBatch(encoder.encode([1789095808n, []])).timestamp, 1789095808);
  assert.is(decodeWorkerBatch(encoder.encode([null, []])).timestamp, null);
});

test('frames: topic, sequence, payload, and nothing else', () => {
  const payload = payloadOf(STORED_MAP);
  const frames = (sequence: Uint8Array) => [new TextEncoder().encode('kv-events'), sequence, payload];
  const message = decodeWorkerMessage(frames(writeSequence(2n ** 64n - 2n)));
  assert.equal([message.topic, message.sequence, message.batch.events.length], ['kv-events', 2n ** 64n - 2n, 1]);
  // A frame may be a window of a larger buffer.
  const window = bytes(9, 9, 9, 0, 0, 0, 0, 0, 0, 1, 2, 9).subarray(3, 11);
  assert.is(decodeWorkerMessage(frames(window)).sequence, 258n);
  for (const width of [0, 4, 7, 9]) {
    assert.is(
      codeOf(() => decodeWorkerMessage(frames(new Uint8Array(width)))),
      'sequence-width',
    );
  }
  for (const count of [0, 1, 2, 4]) {
    assert.is(
      codeOf(() => decodeWorkerMessage(Array(count).fill(writeSequence(0n)))),
      'frame-count',
    );
  }
  assert.is(
    codeOf(() => decodeWorkerMessage([new Uint8Array(1025), writeSequence(0n), payload])),
    'topic-too-long',
  );
  assert.is(
    codeOf(() => decodeWorkerMessage([bytes(), writeSequence(0n), bytes(0xc1)])),
    'payload-malformed',
  );
});

test('limits: bytes of a payload, events of a batch, tokens of an event', () => {
  const padded = (length: number) => {
    const payload = new Uint8Array(length);
    payload.set([0x92, 0, 0x91, 0x92, 0xa7, ...new TextEncoder().encode('Ignored'), 0xc6]);
    new DataView(payload.buffer).setUint32(13, length - 17);
    return payload;
  };
  assert.is(decodeWorkerBatch(padded(MAX_WORKER_PAYLOAD_BYTES)).events.length, 1);
  assert.is(
    codeOf(() => decodeWorkerBatch(padded(MAX_WORKER_PAYLOAD_BYTES + 1))),
    'payload-too-large',
  );
  const events = (count: number) => encoder.encode([0, Array(count).fill(['Ignored'])]);
  assert.is(decodeWorkerBatch(events(MAX_BATCH_EVENTS)).events.length, MAX_BATCH_EVENTS);
  assert.is(
    codeOf(() => decodeWorkerBatch(events(MAX_BATCH_EVENTS + 1))),
    'too-many-events',
  );
  const tokens = (count: number) => ({ ...STORED_MAP, token_ids: Array(count).fill(1) });
  assert.is(stored(tokens(MAX_EVENT_TOKENS)).tokenIds.length, MAX_EVENT_TOKENS);
  assert.is(rejection(tokens(MAX_EVENT_TOKENS + 1)).code, 'too-many-tokens');
  assert.is(rejection({ ...STORED_MAP, token_ids: Array(MAX_EVENT_TOKENS).fill([1, 2]) }).code, 'too-many-tokens');
});

test('a payload that ends early, has a rest or the reserved byte is malformed', () => {
  const whole = payloadOf(STORED_MAP, ['BlockRemoved', [new Uint8Array(32)]]);
  for (let length = 0; length < whole.length; length++) {
    assert.is(
      codeOf(() => decodeWorkerBatch(whole.subarray(0, length))),
      'payload-malformed',
      `first ${length} bytes`,
    );
  }
  assert.is(
    codeOf(() => decodeWorkerBatch(bytes(whole, 0))),
    'payload-malformed',
  );
  assert.is(
    codeOf(() => decodeWorkerBatch(bytes(0x92, 0, 0x91, 0xc1))),
    'payload-malformed',
  );
});

test('lengths that promise more than there is, and endless nesting, allocate nothing', () => {
  const nested = (...header: number[]) => {
    const payload = Uint8Array.from({ length: 2 + 100_000 * header.length }, (_, i) => header[i % header.length]!);
    payload.copyWithin(2, 0, payload.length - 2);
    payload.set([0x92, 0]);
    return payload;
  };
  const before = process.memoryUsage().arrayBuffers;
  assert.is(
    codeOf(() => decodeWorkerBatch(nested(0xdd, 0, 0x10, 0, 0))),
    'payload-malformed',
  );
  for (const header of [[0xdd, 0, 0, 0, 9], [0x91], [0x81]]) {
    assert.is(
      codeOf(() => decodeWorkerBatch(nested(...header))),
      'payload-malformed',
    );
  }
  assert.is(
    codeOf(() => decodeWorkerBatch(bytes(0xdd, 0xff, 0xff, 0xff, 0xff, 0, 0))),
    'payload-malformed',
  );
  assert.ok(process.memoryUsage().arrayBuffers - before < 64 * 1024 * 1024);
  const many = new Uint8Array(MAX_WORKER_PAYLOAD_BYTES).fill(0x90); // 16 Mi empty lists
  many.set([0x92, 0, 0x91, 0xdd, 0, 0xff, 0xff, 0xf8]);
  assert.equal(
    decodeWorkerBatch(many).rejected.map(({ code }) => code),
    ['tag-missing'],
  );
});

test('values too complex to be looked at cost the event its eligibility, not its batch', () => {
  const deep = (depth: number) => {
    let value: unknown = null;
    for (let i = 0; i < depth; i++) value = [value, 1];
    return value;
  };
  for (const field of ['lora_id', 'is_eagle', 'shared_cache_eligible', 'extra_keys', 'block_mm_infos']) {
    assert.is(whyIneligible(stored({ ...STORED_MAP, [field]: deep(20) }), null) === null, false, field);
    const nested = bytes(...Array(100_000).fill(0x91), 0xc0);
    const { extra_keys: _, ...rest } = STORED_MAP;
    const fields = Object.entries(rest).flatMap((entry) => entry.map((part) => encoder.encode(part)));
    const event = bytes(0x80 + fields.length / 2 + 1, ...fields, encoder.encode(field), nested);
    const { events, rejected } = decodeWorkerBatch(bytes(0x92, 0, 0x92, event, encoder.encode(STORED_MAP)));
    assert.equal([events.length, rejected.length], [2, 0], field);
    assert.ok(whyIneligible(events[0] as StoredEvent, null) !== null, field);
    assert.is(whyIneligible(events[1] as StoredEvent, null), null, field);
  }
  // More than 4 MiB of such values in a message: the rest are not looked at either.
  const big = { ...STORED_MAP, extra_keys: [Array(1_000_000).fill('abcd')] };
  const reasons = decodeWorkerBatch(payloadOf(big, { ...STORED_MAP, lora_name: 'a', extra_keys: [['a']] }));
  assert.equal(
    reasons.events.map((event) => whyIneligible(event as StoredEvent, null) !== null),
    [true, true],
  );
});

test('a batch may be a map, its keys in any order, unknown ones skipped', () => {
  const events = [STORED_MAP, ['AllBlocksCleared']];
  for (const batch of [
    { ts: 1.5, events, data_parallel_rank: 3 },
    { data_parallel_rank: 3, later: [1, { events: 2 }], events, ts: 1.5 },
  ]) {
    const read = decodeWorkerBatch(encoder.encode(batch));
    assert.equal([read.timestamp, read.dpRank, read.events.length], [1.5, 3, 2]);
    assert.equal(said(read.events[0] as StoredEvent), said(stored(STORED_MAP)));
  }
  const bare = decodeWorkerBatch(encoder.encode({ events }));
  assert.equal([bare.timestamp, bare.dpRank, bare.events.length], [null, 0, 2]);
  for (const batch of [{}, { ts: 1 }, { events: 1 }, { events: null }]) {
    assert.is(
      codeOf(() => decodeWorkerBatch(encoder.encode(batch))),
      'batch-shape',
    );
  }
  const twice = bytes(0x82, encoder.encode('events'), 0x90, encoder.encode('events'), 0x90);
  assert.is(
    codeOf(() => decodeWorkerBatch(twice)),
    'batch-shape',
  );
  assert.is(
    codeOf(() => decodeWorkerBatch(encoder.encode({ events, data_parallel_rank: 'x' }))),
    'batch-rank',
  );
});

test('an event that names two types is read as neither', () => {
  const text = (value: string) => encoder.encode(value);
  const two = (first: string, second: string) =>
    bytes(0x83, text('type'), text(first), text('block_hashes'), 0x91, 1, text('type'), text(second));
  const batch = decodeWorkerBatch(
    bytes(0x92, 0, 0x92, two('BlockRemoved', 'BlockRemoved'), two('BlockRemoved', 'Ignored')),
  );
  assert.is(batch.events.length, 1);
  assert.equal(
    batch.rejected.map(({ index, code, lostRemoval }) => [index, code, lostRemoval]),
    [[1, 'tag-conflict', true]],
  );
});

test('text that is no UTF-8 is no text', () => {
  const text = (value: string) => encoder.encode(value);
  const bad = bytes(0xa2, 0xc3, 0x28);
  const event = (field: string) =>
    bytes(0x83, text('type'), text('BlockRemoved'), text('block_hashes'), 0x91, 1, text(field), bad);
  const batch = decodeWorkerBatch(bytes(0x92, 0, 0x92, event('medium'), event('unknown')));
  assert.equal([batch.events.length, batch.rejected[0]!.code], [1, 'field-type']);
});

test('events of a reader are good until it reads again; decoded ones stay', () => {
  const reader = new BatchReader();
  const live = reader.read(payloadOf(STORED_MAP)).events[0] as StoredEvent;
  assert.equal([...live.tokenIds], TOKENS);
  const kept = decodeWorkerBatch(payloadOf(STORED_MAP)).events[0] as StoredEvent;
  reader.read(payloadOf());
  decodeWorkerBatch(payloadOf());
  for (const use of [() => live.tokenIds, () => live.blockHashes, () => live.place(sharedNumbers())]) {
    assert.throws(use, (error: MoonrouteError) => error.code === 'stale-event');
  }
  assert.equal([[...kept.tokenIds], [...kept.blockHashes.low64]], [TOKENS, [15760518052499183552n]]);
});

test('hashes and tokens of a message have a limit together, and what is beyond loses itself', () => {
  const { hashCap, tokenCap } = sharedNumbers();
  const hashes = { type: 'BlockRemoved', block_hashes: Array(hashCap / 2).fill(1) };
  const first = decodeWorkerBatch(payloadOf(hashes, hashes, { ...hashes, block_hashes: [1] }));
  assert.equal([first.events.length, first.rejected[0]!.code], [2, 'too-many-hashes']);
  const tokens = { ...STORED_MAP, token_ids: Array(MAX_EVENT_TOKENS).fill(1) };
  const second = decodeWorkerBatch(payloadOf(...Array(tokenCap / MAX_EVENT_TOKENS).fill(tokens), STORED_MAP));
  assert.equal([second.events.length, second.rejected[0]!.code], [tokenCap / MAX_EVENT_TOKENS, 'too-many-tokens']);
});

test('every kind of value that MessagePack has is walked as it is decoded', () => {
  const width = (head: number, length: number, size: number) => {
    const value = new Uint8Array(1 + length + size);
    value[0] = head;
    for (let i = 0; i < length; i++) value[1 + i] = (size >>> (8 * (length - 1 - i))) & 0xff;
    return value;
  };
  const values = [
    ...[0xc0, 0xc2, 0xc3, 0x00, 0x7f, 0xe0, 0xff, 0x80, 0x90, 0xa0].map((head) => bytes(head)),
    ...[0xc4, 0xd9].map((head) => width(head, 1, 200)),
    ...[0xc5, 0xda].map((head) => width(head, 2, 300)),
    ...[0xc6, 0xdb].map((head) => width(head, 4, 70_000)),
    ...[
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
    ].map(([head, size]) => bytes(head!, new Uint8Array(size!))),
    ...[
      [0xd4, 1],
      [0xd5, 2],
      [0xd6, 4],
      [0xd7, 8],
      [0xd8, 16],
    ].map(([head, size]) => bytes(head!, 1, new Uint8Array(size!))),
    bytes(0xc7, 3, 0xff, 1, 2, 3), // a timestamp of a wrong size: the default codec fails on it
    bytes(0xc8, 0, 3, 5, 1, 2, 3),
    bytes(0xc9, 0, 0, 0, 3, 5, 1, 2, 3),
    bytes(0xdc, 0, 2, 1, 2),
    bytes(0xdd, 0, 0, 0, 2, 1, 2),
    bytes(0xde, 0, 1, 1, 2),
    bytes(0xdf, 0, 0, 0, 1, 1, 2),
  ];
  for (const value of values) {
    const payload = bytes(0x92, 0, 0x92, 0x92, encoder.encode('Ignored'), value, 0x91, encoder.encode('Ignored'));
    assert.is(decodeWorkerBatch(payload).events.length, 2, `first byte ${value[0]!.toString(16)}`);
  }
});

test('arbitrary bytes give a batch or a WireError', () => {
  const harmless = (payload: Uint8Array) => {
    try {
      const { events, rejected } = decodeWorkerBatch(payload);
      assert.type(events.length + rejected.length, 'number');
    } catch (error) {
      assert.instance(error, WireError);
    }
  };
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), harmless), { numRuns: 3000 });
  // Bytes of a real batch, some of them changed: these get past the first checks.
  const real = payloadOf(
    STORED_MAP,
    ['BlockStored', [1, -1], 7, [[1, 2]], 1, 1, 'GPU', 'a', [['a']], 0, 'mamba', 8, 'LOCAL'],
    {
      type: 'BlockRemoved',
      block_hashes: [new Uint8Array(32)],
    },
  );
  const changes = fc.array(fc.tuple(fc.nat(real.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(changes, (list) => {
      const payload = real.slice();
      for (const [at, value] of list) payload[at] = value;
      harmless(payload);
    }),
    { numRuns: 5000 },
  );
  // Any value at all in place of the batch, of an event, and of each field.
  const anything = fc.anything({ withBigInt: false, maxDepth: 3 }).map((value) => {
    try {
      return encoder.encode(value);
    } catch {
      return bytes(0xc0);
    }
  });
  const field = fc.constantFrom(...Object.keys(STORED_MAP), 'cache_salt', 'is_eagle', 'block_mm_infos', 'ownership');
  fc.assert(
    fc.property(anything, field, (value, name) => {
      harmless(value);
      harmless(bytes(0x92, 0, 0x91, value));
      const { [name as 'type']: _, ...rest } = STORED_MAP;
      const fields = Object.entries(rest).flatMap((entry) => entry.map((part) => encoder.encode(part)));
      harmless(bytes(0x92, 0, 0x91, 0x80 + fields.length / 2 + 1, ...fields, encoder.encode(name), value));
    }),
    { numRuns: 3000 },
  );
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 12 }), { maxLength: 5 }), (frames) => {
      try {
        decodeWorkerMessage(frames);
      } catch (error) {
        assert.instance(error, WireError);
      }
    }),
  );
});

test.run();
