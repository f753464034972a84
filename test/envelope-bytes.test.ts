// The envelope's MessagePack, byte by byte (spec/kv-events.md 4.1): what is written and left out, what is read in its stead, what is refused.
import { decode, encode as pack } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WireError } from '../src/errors.js';
import { EventBatchReader, encodeEvents } from '../src/wire/envelope/index.js';
import { eventOf, MAX_64, storeOf } from './support/envelopes.js';

const reader = new EventBatchReader();
const HASH = 0x0123_4567_89ab_cdefn;
const encode = (value: unknown) => pack(value, { useBigInt64: true });
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const fromHex = (text: string) => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'));

const BLOCK = { block_hash: HASH, tokens_hash: 5n, mm_extra_info: null };
const STORED = { parent_hash: null, start_position: null, blocks: [BLOCK] };

/** An event as others write it, its parts replaced. */
function wire(envelope: object = {}, inner: object = {}, stored: object = {}): Record<string, unknown> {
  const event = { event_id: 1, data: { stored: { ...STORED, ...stored } }, dp_rank: 0, ...inner };
  return { worker_id: 7, storage_tier: 'device', event, ...envelope };
}

function readOne(event: unknown) {
  const batch = reader.read(encode([event]));
  assert.equal(batch.rejected, []);
  return { event: batch.events[0]!, counts: batch.counts };
}

function rejects(event: unknown): string {
  // A good event on either side: one bad event loses itself only.
  const good = wire({}, { event_id: 9 });
  const { events, rejected } = reader.read(encode([good, event, good]));
  assert.is(events.length, 2);
  assert.is(rejected.length, 1);
  assert.is(rejected[0]!.index, 1);
  return rejected[0]!.code;
}

function failure(payload: Uint8Array): string {
  try {
    reader.read(payload);
  } catch (error) {
    assert.instance(error, WireError);
    return (error as WireError).code;
  }
  return 'none';
}

// ---- written ----

test('an eligible store, byte by byte', () => {
  const event = eventOf(storeOf([HASH], { parent: 300n }), { eligible: true, eventId: 70_000n, dpRank: 2 });
  const expected = [
    '91 84', // a list of one; a map of four
    `a9 ${hex(Buffer.from('worker_id'))} 07`,
    `ac ${hex(Buffer.from('storage_tier'))} a6 ${hex(Buffer.from('device'))}`,
    `a5 ${hex(Buffer.from('event'))} 83`,
    `a8 ${hex(Buffer.from('event_id'))} ce00011170`,
    `a4 ${hex(Buffer.from('data'))} 81 a6 ${hex(Buffer.from('stored'))} 83`,
    `ab ${hex(Buffer.from('parent_hash'))} cd012c`,
    `ae ${hex(Buffer.from('start_position'))} c0`,
    `a6 ${hex(Buffer.from('blocks'))} 91 83`,
    `aa ${hex(Buffer.from('block_hash'))} cf0123456789abcdef`,
    `ab ${hex(Buffer.from('tokens_hash'))} cf0123456789abcdf0`,
    `ad ${hex(Buffer.from('mm_extra_info'))} c0`,
    `a7 ${hex(Buffer.from('dp_rank'))} 02`,
    'a3 736365 c3',
  ];
  assert.is(hex(encodeEvents([event])), expected.join('').replaceAll(' ', ''));
});

test('removed and cleared, byte by byte', () => {
  const removed = encodeEvents([eventOf({ kind: 'removed', hashes: BigUint64Array.of(0n, 255n, MAX_64) })]);
  const list = `${hex(Buffer.from('block_hashes'))}9300ccffcfffffffffffffffff`;
  assert.ok(hex(removed).includes(`a7${hex(Buffer.from('removed'))}81ac${list}`));
  const cleared = encodeEvents([eventOf({ kind: 'cleared' })]);
  assert.ok(hex(cleared).includes(`a4${hex(Buffer.from('data'))}a7${hex(Buffer.from('cleared'))}`));
});

test('eligibility costs five bytes where it is true and none where it is false', () => {
  for (const count of [0, 1, 20, 64]) {
    const data = storeOf(Array.from({ length: count }, (_, i) => HASH + BigInt(i)));
    const without = encodeEvents([eventOf(data)]);
    const withIt = encodeEvents([eventOf(data, { eligible: true })]);
    assert.is(withIt.length - without.length, 5);
    assert.is(hex(withIt.subarray(-5)), 'a3736365c3');
    assert.not.ok(hex(without).includes(hex(Buffer.from('sce'))));
  }
});

test('a contradiction costs five bytes where there is one and none where there is none', () => {
  const removed = { kind: 'removed', hashes: BigUint64Array.of(1n) } as const;
  for (const data of [storeOf([HASH]), removed]) {
    const without = encodeEvents([eventOf(data)]);
    const withIt = encodeEvents([eventOf(data, { contradicts: true })]);
    assert.is(withIt.length - without.length, 5);
    assert.is(hex(withIt.subarray(-5)), 'a3636f6ec3');
    assert.not.ok(hex(without).includes(hex(Buffer.from('con'))));
  }
  const cleared = { kind: 'cleared' } as const;
  assert.equal(encodeEvents([eventOf(cleared, { contradicts: true })]), encodeEvents([eventOf(cleared)]));
});

test('what contradicts is never written as eligible', () => {
  const [both, alone] = [true, false].map((eligible) =>
    encodeEvents([eventOf(storeOf([HASH]), { eligible, contradicts: true })]),
  );
  assert.equal(both, alone);
});

const CONTRADICTIONS: [name: string, envelope: object, kv: object, contradicts: boolean, doubted: number][] = [
  ['missing', {}, {}, false, 0],
  ['true', { con: true }, {}, true, 0],
  ['false', { con: false }, {}, false, 0],
  ['nil', { con: null }, {}, true, 1],
  ['a number', { con: 1 }, {}, true, 1],
  ['beside eligibility, which is none then', { con: true, sce: true }, {}, true, 1],
  ['false beside eligibility', { con: false, sce: true }, {}, false, 0],
  ['of a removal', { con: true }, { data: { removed: { block_hashes: [1] } } }, true, 0],
  ['of a clear', { con: true }, { data: 'cleared' }, false, 0],
  ['another spelling', { CON: true }, {}, false, 0],
];
for (const [name, envelope, kv, contradicts, doubted] of CONTRADICTIONS) {
  test(`contradiction: ${name}`, () => {
    const { event, counts } = readOne(wire(envelope, kv));
    assert.is(event.contradicts, contradicts);
    assert.is(event.eligible, 'sce' in envelope && !contradicts);
    assert.is(counts.doubted, doubted);
  });
}

test('nothing but a store is ever written as eligible', () => {
  const removed = { kind: 'removed', hashes: BigUint64Array.of(1n) } as const;
  for (const data of [removed, { kind: 'cleared' } as const]) {
    assert.equal(encodeEvents([eventOf(data, { eligible: true })]), encodeEvents([eventOf(data)]));
  }
});

test('what is not set is left out; tier, rank, parent and position are always there', () => {
  const [event] = decode(encodeEvents([eventOf(storeOf([1n]))])) as [Record<string, never>];
  assert.equal(Object.keys(event), ['worker_id', 'storage_tier', 'event']);
  assert.equal(Object.keys(event['event']!), ['event_id', 'data', 'dp_rank']);
  assert.equal(Object.keys(event['event']!['data']!['stored']!), ['parent_hash', 'start_position', 'blocks']);
  const full = eventOf(storeOf([1n]), { domain: 'worker', sessionId: 's', stateSource: 4, eligible: true });
  const [all] = decode(encodeEvents([full])) as [Record<string, never>];
  const names = ['worker_id', 'storage_tier', 'residency_domain', 'event', 'state_source', 'session_id'];
  assert.equal(Object.keys(all), [...names, 'sce']);
  const [other] = decode(encodeEvents([{ ...full, contradicts: true }])) as [Record<string, never>];
  assert.equal(Object.keys(other), [...names, 'con']);
});

test('numbers that the wire has no place for are refused by the writer', () => {
  const bad = [
    eventOf(storeOf([1n]), { workerId: -1n }),
    eventOf(storeOf([1n]), { eventId: MAX_64 + 1n }),
    eventOf(storeOf([1n]), { dpRank: 0.5 }),
    eventOf(storeOf([1n]), { dpRank: 2 ** 32 }),
    eventOf(storeOf([1n], { parent: -1n })),
    eventOf(storeOf([1n], { startPosition: -1 })),
    eventOf(storeOf([1n], { locals: new BigUint64Array(2) })),
    eventOf(storeOf([1n], { mm: [] })),
    eventOf(storeOf([1n]), { stateSource: () => 0 }),
  ];
  for (const event of bad) {
    assert.throws(
      () => encodeEvents([event]),
      (error: unknown) => error instanceof WireError && error.code === 'unwritable',
    );
  }
  const large = eventOf({ kind: 'removed', hashes: new BigUint64Array(1_000_000).fill(MAX_64) });
  assert.throws(
    () => encodeEvents([large]),
    (error: unknown) => error instanceof WireError && error.code === 'payload-too-large',
  );
  assert.is(reader.read(encodeEvents([eventOf(storeOf([1n]))])).events.length, 1); // and goes on
});

// ---- eligibility ----

const MISSING = {};
const FLAGS: [name: string, envelope: object, inside: object, eligible: boolean, conflicts: number, doubted: number][] =
  [
    ['missing', MISSING, MISSING, false, 0, 0],
    ['on the envelope', { sce: true }, MISSING, true, 0, 0],
    ['false on the envelope', { sce: false }, MISSING, false, 0, 0],
    ['older, inside', MISSING, { shared_cache_eligible: true }, true, 0, 0],
    ['older, false inside', MISSING, { shared_cache_eligible: false }, false, 0, 0],
    ['both true', { sce: true }, { shared_cache_eligible: true }, true, 0, 0],
    ['both false', { sce: false }, { shared_cache_eligible: false }, false, 0, 0],
    ['envelope true, inside false', { sce: true }, { shared_cache_eligible: false }, false, 1, 0],
    ['envelope false, inside true', { sce: false }, { shared_cache_eligible: true }, false, 1, 0],
    ['nil on the envelope', { sce: null }, MISSING, false, 0, 1],
    ['a number on the envelope', { sce: 1 }, MISSING, false, 0, 1],
    ['a number inside, true on the envelope', { sce: true }, { shared_cache_eligible: 1 }, false, 0, 1],
    ['other spellings', { shared_cache_eligible: true, SCE: true }, { sce: true }, false, 0, 0],
  ];
for (const [name, envelope, inside, eligible, conflicts, doubted] of FLAGS) {
  test(`eligibility: ${name}`, () => {
    const { event, counts } = readOne(wire(envelope, {}, inside));
    assert.is(event.eligible, eligible);
    assert.is(counts.eligible, Number(eligible));
    assert.is(counts.conflicts, conflicts);
    assert.is(counts.doubted, doubted);
  });
}

test('eligibility of a removal, a clear, and of blocks with images is none', () => {
  for (const data of [{ removed: { block_hashes: [1] } }, 'cleared', { cleared: null }]) {
    assert.is(readOne(wire({ sce: true }, { data })).event.eligible, false);
  }
  const { event, counts } = readOne(
    wire({ sce: true }, {}, { blocks: [BLOCK, { ...BLOCK, mm_extra_info: { mm_objects: [] } }] }),
  );
  assert.is(event.eligible, false);
  assert.is(counts.doubted, 1);
  assert.equal(event.data.kind === 'stored' && event.data.mm, [null, { mm_objects: [] }]);
});

test('the flag does not leak into the next event', () => {
  const { events } = reader.read(
    encode([wire({ sce: true }), wire(), wire({}, {}, { shared_cache_eligible: true }), wire({ con: true }), wire()]),
  );
  assert.equal(
    events.map((event) => event.eligible),
    [true, false, true, false, false],
  );
  assert.equal(
    events.map((event) => event.contradicts),
    [false, false, false, true, false],
  );
});

// ---- defaults ----

test('an old event, with nothing that may be missing', () => {
  const old = {
    worker_id: 3,
    event: { event_id: 4, data: { stored: { blocks: [{ block_hash: 1, tokens_hash: 2 }] } } },
  };
  const { event } = readOne(old);
  const data = storeOf([1n], { locals: BigUint64Array.of(2n) });
  assert.equal(event, eventOf(data, { workerId: 3n, eventId: 4n }));
});

test('a session may be null, and one longer than is read is left out', () => {
  assert.is(readOne(wire({ session_id: null })).event.sessionId, null);
  assert.is(readOne(wire({ session_id: 'x'.repeat(1024) })).event.sessionId, 'x'.repeat(1024));
  assert.is(readOne(wire({ session_id: 'x'.repeat(1025) })).event.sessionId, null);
  assert.is(rejects(wire({ session_id: 5 })), 'field-type');
  assert.is(rejects(wire({ session_id: new Uint8Array(3) })), 'field-type');
});

test('unknown fields are passed over wherever they stand', () => {
  const odd = { x: [1, { y: [new Uint8Array(300), 'é'.repeat(70_000), -1.5, new Date(0)] }], '': null };
  const block = { ...odd, ...BLOCK, z: odd };
  const event = wire(odd, odd, { ...odd, blocks: [BLOCK, block, BLOCK] });
  const { event: read } = readOne(event);
  assert.equal(read, eventOf(storeOf([HASH, HASH, HASH], { locals: BigUint64Array.of(5n, 5n, 5n) })));
  // Names that are no text are unknown ones.
  const numbered = fromHex('01 02'); // a pair
  const bytes = encode([wire()]);
  bytes[1] = bytes[1]! + 1; // one pair more
  assert.is(reader.read(Buffer.concat([bytes, numbered])).events.length, 1);
});

test('of a repeated name the last counts', () => {
  const name = encode('worker_id');
  const bytes = encode([wire()]);
  bytes[1] = bytes[1]! + 1;
  assert.is(reader.read(Buffer.concat([bytes, name, encode(8)])).events[0]!.workerId, 8n);
});

// ---- integers ----

const WIDTHS: [bytes: string, value: bigint | null][] = [
  ['00', 0n],
  ['7f', 127n],
  ['cc 00', 0n],
  ['cc ff', 255n],
  ['cd ffff', 65_535n],
  ['ce ffffffff', 0xffff_ffffn],
  ['cf 0000000000000001', 1n],
  ['cf 0020000000000001', 2n ** 53n + 1n],
  ['cf ffffffffffffffff', MAX_64],
  ['d0 7f', 127n],
  ['d1 7fff', 32_767n],
  ['d2 7fffffff', 0x7fff_ffffn],
  ['d3 7fffffffffffffff', 2n ** 63n - 1n],
  ['ff', null],
  ['e0', null],
  ['d0 80', null],
  ['d1 ffff', null],
  ['d2 80000000', null],
  ['d3 ffffffffffffffff', null],
  ['cb 3ff0000000000000', null],
  ['ca 3f800000', null],
  ['c3', null],
  ['c0', null],
  ['a1 31', null],
  ['c4 01 31', null],
  ['90', null],
  ['80', null],
  ['d4 00 00', null],
];
for (const [bytes, value] of WIDTHS) {
  test(`a 64-bit field as ${bytes}: ${value ?? 'refused'}`, () => {
    const marker = 0x1122_3344_5566_7788n; // encoded as cf 1122334455667788
    const fields = {
      worker: wire({ worker_id: marker }),
      event: wire({}, { event_id: marker }),
      parent: wire({}, {}, { parent_hash: marker }),
      hash: wire({}, {}, { blocks: [{ ...BLOCK, block_hash: marker }] }),
      local: wire({}, {}, { blocks: [{ ...BLOCK, tokens_hash: marker }] }),
      removed: wire({}, { data: { removed: { block_hashes: [3, marker, 4] } } }),
    };
    for (const [field, event] of Object.entries(fields)) {
      const payload = fromHex(hex(encode([event])).replace('cf1122334455667788', bytes.replaceAll(' ', '')));
      const { events, rejected } = reader.read(payload);
      if (value === null && !(field === 'parent' && bytes === 'c0')) {
        assert.is(rejected[0]?.code, 'field-type', field);
        continue;
      }
      const { data, ...rest } = events[0]!;
      const seen =
        field === 'worker'
          ? rest.workerId
          : field === 'event'
            ? rest.eventId
            : data.kind === 'removed'
              ? data.hashes[1]
              : data.kind === 'stored' &&
                (field === 'parent' ? data.parent : field === 'hash' ? data.hashes[0] : data.locals[0]);
      assert.is(seen, value, field);
    }
  });
}

test('32-bit fields take no more than that', () => {
  assert.is(readOne(wire({}, { dp_rank: 0xffff_ffff })).event.dpRank, 0xffff_ffff);
  assert.is(readOne(wire({}, { dp_rank: 5n })).event.dpRank, 5); // in nine bytes
  assert.is(rejects(wire({}, { dp_rank: 2n ** 32n })), 'field-type');
  assert.is(rejects(wire({}, { dp_rank: -1 })), 'field-type');
  assert.is(rejects(wire({}, {}, { start_position: 2n ** 32n })), 'field-type');
});

// ---- refused ----

const { worker_id: _worker, ...NO_WORKER } = wire();
const { event: _event, ...NO_EVENT } = wire();
const REFUSED: [name: string, event: unknown, code: string][] = [
  ['a positional event', [7, 'device', [1, 'cleared', 0]], 'positional'],
  ['a positional inner event', wire({ event: [1, 'cleared', 0] }), 'positional'],
  ['positional stored data', wire({}, { data: { stored: [null, null, []] } }), 'positional'],
  ['positional removed data', wire({}, { data: { removed: [[1]] } }), 'positional'],
  ['a positional block', wire({}, {}, { blocks: [BLOCK, Array.from({ length: 30 }, () => 1)] }), 'positional'],
  ['no map', 5, 'field-type'],
  ['nil', null, 'field-type'],
  ['no worker', NO_WORKER, 'missing-field'],
  ['no inner event', NO_EVENT, 'missing-field'],
  ['no id', wire({ event: { data: 'cleared' } }), 'missing-field'],
  ['no data', wire({ event: { event_id: 1 } }), 'missing-field'],
  ['no blocks', wire({}, { data: { stored: {} } }), 'missing-field'],
  ['no hashes', wire({}, { data: { removed: {} } }), 'missing-field'],
  ['no block hash', wire({}, {}, { blocks: [{ tokens_hash: 1, xxxxxxxxxxxx: 1 }] }), 'missing-field'],
  ['no tokens hash', wire({}, {}, { blocks: [{ block_hash: 1, xxxxxxxxxxxx: 1 }] }), 'missing-field'],
  ['more blocks than can be there', wire({}, {}, { blocks: [1, 2, 3] }), 'field-type'],
  ['blocks that are no list', wire({}, {}, { blocks: 5 }), 'field-type'],
  ['hashes that are binary', wire({}, { data: { removed: { block_hashes: [new Uint8Array(32)] } } }), 'field-type'],
  ['a null rank', wire({}, { dp_rank: null }), 'field-type'],
  ['data of an unknown variant', wire({}, { data: { moved: {} } }), 'unknown-data'],
  ['data of an unknown name', wire({}, { data: 'stored' }), 'unknown-data'],
  ['data of two variants', wire({}, { data: { removed: { block_hashes: [] }, cleared: null } }), 'unknown-data'],
  ['data that is null', wire({}, { data: null }), 'unknown-data'],
  ['cleared with something in it', wire({}, { data: { cleared: {} } }), 'unknown-data'],
  ['an unknown tier', wire({ storage_tier: 'GPU' }), 'unknown-tier'],
  ['a tier that is null', wire({ storage_tier: null }), 'unknown-tier'],
  ['a null domain', wire({ residency_domain: null }), 'residency-domain'],
  ['an unknown domain', wire({ residency_domain: 'Worker' }), 'residency-domain'],
  ['a cache owner on a device', wire({ residency_domain: 'cache_owner' }), 'residency-domain'],
  ['an extension that is passed on', wire({ state_source: new Date(0) }), 'passed-on-value'],
  ['a deep value that is passed on', wire({ state_source: nested(13) }), 'passed-on-value'],
];
function nested(depth: number): unknown {
  return depth === 0 ? 1 : [nested(depth - 1)];
}
for (const [name, event, code] of REFUSED) {
  test(`refused, and no other event with it: ${name}`, () => {
    assert.is(rejects(event), code);
  });
}

test('refused: a map that is passed on, with numbers for names', () => {
  const bytes = Buffer.concat([encode([wire()]), encode('state_source'), fromHex('81 01 02')]);
  bytes[1] = bytes[1]! + 1;
  assert.is(reader.read(bytes).rejected[0]?.code, 'passed-on-value');
});

test('the domains, and what a cache owner may say', () => {
  assert.is(readOne(wire({ residency_domain: 'worker' })).event.domain, 'worker');
  const { event, counts } = readOne(wire({ residency_domain: 'cache_owner', storage_tier: 'external' }));
  assert.is(event.domain, 'cache_owner');
  assert.is(counts.cacheOwner, 1);
  assert.is(readOne(wire({ residency_domain: 'cache_owner' }, { data: 'cleared' })).event.domain, 'cache_owner');
});

test('a refused event is told by its place, and by its number where that was read', () => {
  const { rejected } = reader.read(encode([wire(), wire({}, { event_id: 12, data: 'no' }), 3]));
  assert.equal(
    rejected.map(({ index, eventId }) => [index, eventId]),
    [
      [1, 12n],
      [2, null],
    ],
  );
});

const LARGE = 9 * 1024 * 1024;
const many = (count: number) =>
  Buffer.concat([fromHex(`dd${count.toString(16).padStart(8, '0')}`), new Uint8Array(count)]);
const removals = Buffer.from(encode([wire({}, { data: { removed: { block_hashes: 0 } } })]));
const FAILURES: [name: string, payload: Uint8Array, code: string][] = [
  ['nothing', new Uint8Array(0), 'payload-malformed'],
  ['a map', encode({}), 'batch-shape'],
  ['one event without its list', encode(wire()), 'batch-shape'],
  ['a text', encode('x'), 'batch-shape'],
  ['a text that ends too early', fromHex('a5 61'), 'payload-malformed'],
  ['the reserved byte', fromHex('91 c1'), 'payload-malformed'],
  ['something behind it', Buffer.concat([encode([wire()]), fromHex('00')]), 'payload-malformed'],
  ['a list that promises 4 Gi events', fromHex('dd ffffffff'), 'payload-malformed'],
  ['too many events', many(65_537), 'too-many-events'],
  ['too many bytes', new Uint8Array(LARGE + 1), 'payload-too-large'],
  ['too deep', Buffer.concat([fromHex('91'), new Uint8Array(40).fill(0x91), fromHex('00')]), 'payload-too-complex'],
];
for (const [name, payload, code] of FAILURES) test(`no batch: ${name}`, () => assert.is(failure(payload), code));

test('no more hashes than a million or so, however small they are written', () => {
  const head = removals.subarray(0, removals.indexOf('block_hashes') + 12);
  const rest = removals.subarray(head.length + 1);
  const list = (count: number) => Buffer.concat([head, many(count), rest]);
  assert.is(reader.read(list(1_048_576)).counts.blocks, 1_048_576);
  assert.is(failure(list(1_048_577)), 'too-many-blocks');
});

test('what was read does not depend on the payload', () => {
  const payload = encodeEvents([
    eventOf(storeOf([HASH], { mm: [{ a: new Uint8Array([1, 2]) }] }), { sessionId: 'one' }),
  ]);
  const { events } = reader.read(payload);
  payload.fill(0);
  const { data, sessionId } = events[0]!;
  assert.is(sessionId, 'one');
  assert.ok(data.kind === 'stored' && data.hashes[0] === HASH);
  assert.equal(data.kind === 'stored' && data.mm, [{ a: new Uint8Array([1, 2]) }]);
});

test.run();
