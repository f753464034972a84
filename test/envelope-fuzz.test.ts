// Hostile payloads: random bytes, real batches cut at every byte, flipped at every bit, and spliced. Each reader gives a value or a WireError, soon, of no
// more weight than the bytes allow; what is read can be written, and reads the same again. MOONROUTE_SEED=n repeats a run, MOONROUTE_FUZZ=n lengthens it.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WireError } from '../src/errors.js';
import {
  decodeEventsJson,
  decodeLoadReport,
  decodePlacementEvent,
  decodeRecoveryAnswer,
  decodeRecoveryQuestion,
  EventBatchReader,
  encodeEvents,
  encodeEventsJson,
  encodeLoadReport,
  encodePlacementEvent,
  encodeRecoveryAnswer,
  encodeRecoveryQuestion,
  jsonOf,
  MAX_PAYLOAD_BYTES,
  msgpackOf,
  type RouterEvent,
} from '../src/wire/envelope/index.js';
import { eventOf, routerEvent, storeOf } from './support/envelopes.js';
import { Random } from './support/random.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
const MESSAGES = Number(process.env['MOONROUTE_FUZZ'] ?? 4000);
console.log(`envelope-fuzz: seed ${seed}, ${MESSAGES} messages`);
const random = new Random(seed);

/** Longest that one payload of 9 MiB may take, on a machine that does other things. */
const PATIENCE_MS = 10_000;

const batches = new EventBatchReader();
const READERS: readonly ((payload: Uint8Array) => unknown)[] = [
  (payload) => batches.read(payload),
  decodePlacementEvent,
  decodeRecoveryQuestion,
  decodeRecoveryAnswer,
  decodeLoadReport,
  jsonOf,
];

const EVENTS: readonly RouterEvent[] = [
  eventOf(storeOf([2n ** 63n, 2n ** 40n, 5n], { parent: 9n, startPosition: 4 }), { eligible: true, sessionId: 'sé' }),
  eventOf(storeOf([2n ** 63n], { mm: [{ mm_objects: [{ mm_hash: 2n ** 60n, offsets: [[0, 16]] }] }] }), {
    tier: 'disk',
  }),
  eventOf({ kind: 'removed', hashes: BigUint64Array.of(1n, 300n, 2n ** 64n - 1n) }, { domain: 'worker', eventId: 3n }),
  eventOf({ kind: 'cleared' }, { domain: 'cache_owner', stateSource: [1.5, -3, 'x', null], eventId: 4n }),
];
const share = { workerId: 7n, dpRank: 0, activeRequests: 1, prefillTokens: 2.5, decodeBlocks: 3 };
const placed = { tier: 'disk', domain: 'worker', eligible: true, sessionId: 'x' } as const;
const REAL: readonly Uint8Array[] = [
  encodeEvents(EVENTS),
  encodePlacementEvent({
    ...placed,
    owner: { kind: 'worker', workerId: 7n, dpRank: 1 },
    event: { eventId: 1n, dpRank: 1, data: storeOf([2n ** 63n]) },
  }),
  encodeRecoveryQuestion({
    workerId: 1n,
    dpRank: 0,
    startEventId: 4n,
    endEventId: null,
    supportsTreeDumpFailed: true,
    page: 'p',
  }),
  encodeRecoveryAnswer({ kind: 'tree-dump', events: EVENTS, lastEventId: 9n, resetScope: 'domain:worker', next: 'p' }),
  encodeRecoveryAnswer({ kind: 'too-new', requestedStart: 9n, requestedEnd: null, newestAvailable: 1n }),
  encodeLoadReport({ router: 'r', sequence: 1n, goodFor: 3000, ranks: [share, share] }),
];

/** Bytes of what was made of a payload, roughly. */
function weight(value: unknown): number {
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value === 'string') return 2 * value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let sum = 16;
  if (Array.isArray(value)) for (const each of value) sum += weight(each);
  else for (const name in value) sum += weight((value as Record<string, unknown>)[name]);
  return sum;
}

/** Every reader on one payload. */
function hold(payload: Uint8Array): void {
  for (const read of READERS) {
    try {
      const value = read(payload);
      if (payload.length < 4096) assert.ok(weight(value) <= 4096 + 64 * payload.length, 'light');
      if (read === READERS[0]) again((value as { events: readonly RouterEvent[] }).events);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
    }
  }
}

/** What is read reads the same after it was written. */
function again(events: readonly RouterEvent[]): void {
  const payload = encodeEvents(events);
  const { events: back, rejected } = batches.read(payload);
  assert.is(rejected.length, 0);
  assert.is(Buffer.compare(encodeEvents(back), payload), 0);
}

test('real payloads are read', () => {
  assert.equal(batches.read(REAL[0]!).events, EVENTS);
  assert.is(decodeRecoveryAnswer(REAL[3]!).rejected.length, 0);
});

test('cut at every byte: refused', () => {
  for (const payload of REAL) {
    for (let end = 0; end < payload.length; end++) {
      const cut = payload.slice(0, end);
      for (const read of READERS) {
        assert.throws(
          () => read(cut),
          (error: unknown) => error instanceof WireError && error.code === 'payload-malformed',
          `${end} bytes`,
        );
      }
    }
  }
});

test('flipped at every bit, and with every first byte in every place', () => {
  for (const payload of REAL) {
    for (let at = 0; at < payload.length; at++) {
      const bytes = payload.slice();
      for (let bit = 0; bit < 8; bit++) {
        bytes[at] = payload[at]! ^ (1 << bit);
        hold(bytes);
      }
      for (const head of [0xc1, 0xc7, 0xdc, 0xdf]) {
        bytes[at] = head;
        hold(bytes);
      }
    }
  }
});

function mutated(): Uint8Array {
  const bytes = random.pick(REAL).slice();
  for (let changes = random.int(6) + 1; changes > 0; changes--) {
    const at = random.int(bytes.length);
    if (random.int(3) > 0) bytes[at] = random.int(256);
    else {
      const other = random.pick(REAL);
      const from = random.int(other.length);
      const length = Math.min(random.int(40), other.length - from, bytes.length - at);
      bytes.set(other.subarray(from, from + length), at);
    }
  }
  return bytes;
}

test('spliced and changed in several places', () => {
  for (let i = 0; i < MESSAGES; i++) hold(mutated());
});

test('random bytes', () => {
  for (let i = 0; i < MESSAGES; i++) {
    // Mostly containers, so that something is read.
    const heads = [0x81, 0x82, 0x91, 0x92, 0xa5, 0xcf, 0xdc, 0xde];
    hold(Uint8Array.from({ length: random.int(60) }, () => (random.int(3) > 0 ? random.pick(heads) : random.int(256))));
  }
});

test('JSON changed anywhere', () => {
  const json = encodeEventsJson(EVENTS);
  const parts = [
    '"',
    '\\',
    '\\u',
    '[',
    ']',
    '{',
    '}',
    ',',
    ':',
    '-',
    '.',
    'e',
    '0',
    '9'.repeat(30),
    'null',
    '\ud800',
    '\u0000',
    ' ',
  ];
  for (let i = 0; i < MESSAGES; i++) {
    const at = random.int(json.length);
    const text = json.slice(0, at) + random.pick(parts) + json.slice(at + random.int(4));
    try {
      again(decodeEventsJson(text).events);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
    }
  }
  for (let end = 0; end < json.length; end++) assert.throws(() => msgpackOf(json.slice(0, end)), WireErrorOnly);
});

function WireErrorOnly(error: unknown): boolean {
  return error instanceof WireError;
}

test('any events, cut anywhere', () => {
  fc.assert(
    fc.property(
      fc.array(routerEvent, { minLength: 1, maxLength: 3 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (events, part) => {
        const payload = encodeEvents(events);
        const end = Math.floor(part * (payload.length - 1));
        assert.throws(() => batches.read(payload.subarray(0, end)), WireErrorOnly);
      },
    ),
    { seed, numRuns: 300 },
  );
});

/** A payload of the most bytes: `begin`, then `filling` again and again inside of one list, then `end`. */
function full(begin: Uint8Array, filling: Uint8Array, end: Uint8Array): Uint8Array {
  const count = Math.floor((MAX_PAYLOAD_BYTES - begin.length - end.length - 5) / filling.length);
  const bytes = new Uint8Array(begin.length + 5 + count * filling.length + end.length);
  bytes.set(begin);
  bytes[begin.length] = 0xdd;
  new DataView(bytes.buffer).setUint32(begin.length + 1, count);
  const start = begin.length + 5;
  bytes.set(filling, start);
  const size = count * filling.length;
  for (let done = filling.length; done < size; done *= 2) {
    bytes.copyWithin(start + done, start, start + Math.min(done, size - done));
  }
  bytes.set(end, bytes.length - end.length);
  return bytes;
}

const NONE = new Uint8Array(0);
function around(mark: string, event: RouterEvent, length: number): [begin: Uint8Array, end: Uint8Array] {
  const bytes = Buffer.from(encodeEvents([event]));
  const at = bytes.indexOf(mark) + mark.length;
  return [bytes.subarray(0, at), bytes.subarray(at + length)];
}
const [beforeBlocks, afterBlocks] = around('blocks', eventOf(storeOf([])), 1);
const [beforeHashes, afterHashes] = around(
  'block_hashes',
  eventOf({ kind: 'removed', hashes: new BigUint64Array(0) }),
  1,
);
const [beforeSource, afterSource] = around('state_source', eventOf({ kind: 'cleared' }, { stateSource: 1 }), 1);
const block = Uint8Array.from([0x82, 0xaa, ...Buffer.from('block_hash'), 1, 0xab, ...Buffer.from('tokens_hash'), 2]);
const HEAVY: [name: string, payload: Uint8Array][] = [
  ['zeros for events', full(NONE, Uint8Array.of(0), NONE)],
  ['the smallest blocks', full(beforeBlocks, block, afterBlocks)],
  ['zeros for blocks', full(beforeBlocks, Uint8Array.of(0), afterBlocks)],
  ['zeros for hashes', full(beforeHashes, Uint8Array.of(0), afterHashes)],
  ['zeros passed on', full(beforeSource, Uint8Array.of(0), afterSource)],
  ['maps passed on', full(beforeSource, Uint8Array.of(0x80), afterSource)],
  ['maps in lists', full(NONE, Uint8Array.of(0x91, 0x81, 0xa0, 0x80), NONE)],
  [
    'events with nothing in them',
    full(NONE, new Uint8Array(200).fill(0xc0).fill(0xdc, 0, 1).fill(0, 1, 2).fill(197, 2, 3), NONE),
  ],
];
for (const [name, payload] of HEAVY) {
  test(`as many as fit: ${name}`, () => {
    const start = performance.now();
    for (const read of READERS) {
      if (read === jsonOf) continue; // for one's own payloads
      try {
        assert.ok(weight(read(payload)) <= 64 * 1024 * 1024, 'light');
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
      }
    }
    assert.ok(performance.now() - start < PATIENCE_MS, 'soon');
  });
}

test.run();
