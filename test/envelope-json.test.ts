// The envelope's JSON: digits kept where doubles lose them, the same rules as in MessagePack, and RFC 8259's grammar row by row.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WireError } from '../src/errors.js';
import {
  decodeEventsJson,
  decodePlacementEvent,
  encodeEventsJson,
  jsonOf,
  MAX_JSON_CHARS,
  msgpackOf,
  routerEventOf,
} from '../src/wire/envelope/index.js';
import { eventOf, MAX_64, storeOf } from './support/envelopes.js';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const fromHex = (text: string) => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'));

function failure(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    assert.instance(error, WireError);
    return (error as WireError).code;
  }
  return 'none';
}

const BLOCK = '{"block_hash":18446744073709551615,"tokens_hash":9007199254740993,"mm_extra_info":null}';
const wire = (envelope = '', inner = '', stored = '') =>
  `[{"worker_id":7,"event":{"event_id":1,"data":{"stored":{"parent_hash":null,"blocks":[${BLOCK}]${stored}}}${inner}}${envelope}}]`;

// ---- 64 bits ----

const HASHES = [0n, 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, MAX_64 - 1n, MAX_64];
test('64-bit numbers keep their digits in both directions', () => {
  const event = eventOf(storeOf(HASHES, { parent: MAX_64 }), { workerId: MAX_64, eventId: 2n ** 53n + 1n });
  const json = encodeEventsJson([event]);
  for (const hash of HASHES) assert.ok(json.includes(`"block_hash":${hash},`), `${hash}`);
  assert.ok(json.includes(`"worker_id":${MAX_64},`));
  assert.ok(json.includes('"event_id":9007199254740993,'));
  assert.ok(json.includes(`"parent_hash":${MAX_64},`));
  assert.equal(decodeEventsJson(json).events, [event]);
  const removed = eventOf({ kind: 'removed', hashes: BigUint64Array.from(HASHES) });
  assert.ok(encodeEventsJson([removed]).includes(`{"removed":{"block_hashes":[${HASHES.join(',')}]}}`));
  assert.equal(decodeEventsJson(encodeEventsJson([removed])).events, [removed]);
});

test('a text by another writer, with spaces and another order', () => {
  const json = ` [ {\t"event" : {"dp_rank":1,\n"data":{"stored":{"blocks":[{"mm_extra_info":null,"tokens_hash":9007199254740993 ,
    "block_hash" : 18446744073709551615}]}}, "event_id":2}, "sce":true,"worker_id":18446744073709551615 }\r\n] `;
  const data = storeOf([MAX_64], { locals: BigUint64Array.of(9_007_199_254_740_993n) });
  const expected = eventOf(data, { workerId: MAX_64, dpRank: 1, eventId: 2n, eligible: true });
  assert.equal(decodeEventsJson(json).events, [expected]);
});

const HASH_TEXTS: [digits: string, value: bigint | null][] = [
  ['18446744073709551616', null],
  ['99999999999999999999', null],
  ['100000000000000000000000', null],
  ['-1', null],
  ['-0', null],
  ['1.0', null],
  ['1e3', null],
  ['"1"', null],
  ['null', null],
  ['true', null],
  ['0', 0n],
  ['18446744073709551615', MAX_64],
];
for (const [digits, value] of HASH_TEXTS) {
  test(`a hash as ${digits}: ${value ?? 'refused'}`, () => {
    const json = wire().replace('18446744073709551615', digits);
    const { events, rejected } = decodeEventsJson(json);
    if (value === null) assert.is(rejected[0]?.code, 'field-type');
    else {
      const { data } = events[0]!;
      assert.ok(data.kind === 'stored' && data.hashes[0] === value);
    }
  });
}

// ---- the same rules as in MessagePack ----

const RULES: [name: string, json: string, expected: string][] = [
  ['nothing said', wire(), 'no'],
  ['on the envelope', wire(',"sce":true'), 'yes'],
  ['inside', wire('', '', ',"shared_cache_eligible":true'), 'yes'],
  ['false', wire(',"sce":false'), 'no'],
  ['both, different', wire(',"sce":true', '', ',"shared_cache_eligible":false'), 'no, conflict'],
  ['null', wire(',"sce":null'), 'no, doubted'],
  ['a text', wire(',"sce":"true"'), 'no, doubted'],
  ['said twice, the last counts', wire(',"sce":true,"sce":false'), 'no'],
  ['unknown fields', wire(',"x":{"y":[1,{}]},"sce":true', ',"z":1.5e-3', ',"":""'), 'yes'],
  ['null domain', wire(',"residency_domain":null'), 'residency-domain'],
  ['unknown tier', wire(',"storage_tier":"GPU"'), 'unknown-tier'],
  ['positional', '[[7,"device",[1,"cleared",0]]]', 'positional'],
  ['a clear', wire().replace(/\{"stored".*\]\}\}/, '"cleared"'), 'no'],
];
for (const [name, json, expected] of RULES) {
  test(`as in MessagePack: ${name}`, () => {
    const { events, rejected, counts } = decodeEventsJson(json);
    const more = counts.conflicts > 0 ? ', conflict' : counts.doubted > 0 ? ', doubted' : '';
    assert.is(rejected[0]?.code ?? `${events[0]!.eligible ? 'yes' : 'no'}${more}`, expected);
  });
}

test('a contradiction, both ways', () => {
  const [event] = decodeEventsJson(wire(',"con":true,"sce":true')).events;
  assert.equal([event!.contradicts, event!.eligible], [true, false]);
  assert.ok(encodeEventsJson([event!]).endsWith(',"con":true}]'));
  assert.not.ok(encodeEventsJson([{ ...event!, contradicts: false }]).includes('con'));
});

test('eligibility is not written where it is false', () => {
  assert.not.ok(encodeEventsJson([eventOf(storeOf([1n]))]).includes('sce'));
  assert.ok(encodeEventsJson([eventOf(storeOf([1n]), { eligible: true })]).endsWith(',"sce":true}]'));
});

test('a placement event in JSON; a shared owner is no worker', () => {
  const json = (owner: string) =>
    `{"placement":{"owner":${owner},"tier":"device"},"event":{"event_id":3,"data":"cleared"}}`;
  const worker = decodePlacementEvent(
    msgpackOf(json('{"LocalWorker":{"worker_id":18446744073709551615,"dp_rank":2}}')),
  );
  assert.is(routerEventOf(worker)!.workerId, MAX_64);
  assert.is(routerEventOf(decodePlacementEvent(msgpackOf(json('"Shared"')))), null);
});

// ---- grammar ----

const VALUES: [json: string, msgpack: string][] = [
  ['null', 'c0'],
  ['true', 'c3'],
  ['false', 'c2'],
  ['0', '00'],
  ['-1', 'ff'],
  ['-33', 'd0df'],
  ['-129', 'd1ff7f'],
  ['-32769', 'd2ffff7fff'],
  ['-2147483649', 'd3ffffffff7fffffff'],
  ['-9223372036854775808', 'd38000000000000000'],
  ['-9223372036854775809', 'cbc3e0000000000000'],
  ['127', '7f'],
  ['128', 'cc80'],
  ['65536', 'ce00010000'],
  ['4294967296', 'cf0000000100000000'],
  ['-0', 'cb8000000000000000'],
  ['1.5', 'cb3ff8000000000000'],
  ['1e2', 'cb4059000000000000'],
  ['1E+2', 'cb4059000000000000'],
  ['25e-1', 'cb4004000000000000'],
  ['1e999', 'cb7ff0000000000000'],
  ['""', 'a0'],
  ['"a"', 'a161'],
  ['"\\u0041\\n\\"\\\\\\/\\b\\f\\r\\t"', 'a9410a225c2f080c0d09'],
  ['"é"', 'a2c3a9'],
  ['"\\u00e9"', 'a2c3a9'],
  ['"\\u00E9"', 'a2c3a9'],
  ['"😀"', 'a4f09f9880'],
  ['"\\ud83d\\ude00"', 'a4f09f9880'],
  ['"\u2028"', 'a3e280a8'],
  ['[]', 'dd00000000'],
  ['[1, 2]', 'dd000000020102'],
  ['{}', 'df00000000'],
  ['{"a":{"b":null}}', 'df00000001a161df00000001a162c0'],
  [' \t\r\n1 ', '01'],
];
for (const [json, msgpack] of VALUES) {
  test(`JSON ${json}`, () => {
    assert.is(hex(msgpackOf(json)), msgpack);
    assert.is(hex(msgpackOf(new TextEncoder().encode(json))), msgpack);
  });
}

const MALFORMED = [
  '',
  ' ',
  'nul',
  'True',
  '01',
  '+1',
  '-',
  '.5',
  '1.',
  '1e',
  '0x1',
  'NaN',
  'Infinity',
  '[',
  '[1',
  '[1,',
  '[1,]',
  '[,1]',
  '[1 2]',
  '[1}',
  '{',
  '{"a"',
  '{"a":',
  '{"a":1',
  '{"a":1,}',
  '{a:1}',
  '{1:1}',
  "{'a':1}",
  '{"a" 1}',
  '"',
  '"a',
  '"\\',
  '"\\x"',
  '"\\u12"',
  '"\\u12g4"',
  '"\\u+123"',
  '"a\nb"',
  '"\u0000"',
  '1 2',
  '[] []',
  '1,',
  '\u00a01',
  '\ufeff1',
  '/**/1',
  '1n',
];
for (const json of MALFORMED) {
  test(`no JSON: ${JSON.stringify(json)}`, () => {
    assert.is(
      failure(() => msgpackOf(json)),
      'json-malformed',
    );
    assert.is(
      failure(() => msgpackOf(new TextEncoder().encode(json))),
      'json-malformed',
    );
  });
}

test('half a character is no text', () => {
  for (const json of ['"\\ud83d"', '"\\ude00"', '"\\ude00\\ud83d"', '"\\ud83dx\\ude00"', '"\ud83d"', '{"\\ud800":1}']) {
    assert.is(
      failure(() => msgpackOf(json)),
      'json-text',
      json,
    );
  }
  assert.is(
    failure(() => msgpackOf(fromHex('22 ff 22'))),
    'json-text',
  );
  assert.is(
    failure(() => msgpackOf(fromHex('22 eda0bd 22'))),
    'json-text',
  ); // a surrogate in UTF-8
});

test('JSON is bounded in size and depth', () => {
  assert.is(
    failure(() => msgpackOf(' '.repeat(MAX_JSON_CHARS + 1))),
    'json-too-large',
  );
  assert.is(
    failure(() => msgpackOf(new Uint8Array(MAX_JSON_CHARS + 1))),
    'json-too-large',
  );
  assert.is(
    failure(() => msgpackOf('['.repeat(32) + ']'.repeat(32))),
    'none',
  );
  assert.is(
    failure(() => msgpackOf('['.repeat(33) + ']'.repeat(33))),
    'payload-too-complex',
  );
  assert.is(
    failure(() => msgpackOf('['.repeat(1_000_000))),
    'payload-too-complex',
  );
  assert.is(
    failure(() => msgpackOf(`[${'[],'.repeat(3_000_000)}[]]`)),
    'payload-too-large',
  );
  assert.is(
    failure(() => msgpackOf('9'.repeat(1_000_000))),
    'none',
  ); // a double, at no great cost
});

// ---- written ----

const WRITTEN: [msgpack: string, json: string][] = [
  ['cb3ff8000000000000', '1.5'],
  ['ca3fc00000', '1.5'],
  ['cb4014000000000000', '5.0'],
  ['cb8000000000000000', '-0.0'],
  ['cb43e0000000000000', '9223372036854776000.0'], // the same double
  ['cb4480f0cf064dd592', '1e+22'],
  ['cb7ff8000000000000', 'null'],
  ['cb7ff0000000000000', 'null'],
  ['d38000000000000000', '-9223372036854775808'],
  ['c403010203', '[1,2,3]'],
  ['a4f09f9880', '"😀"'],
  ['a30a2208', '"\\n\\"\\b"'],
  ['82a161c0a16290', '{"a":null,"b":[]}'],
];
for (const [msgpack, json] of WRITTEN) test(`as JSON: ${msgpack}`, () => assert.is(jsonOf(fromHex(msgpack)), json));

test('what has no place in JSON is refused', () => {
  assert.is(
    failure(() => jsonOf(fromHex('d4 00 00'))),
    'not-supported',
  );
  assert.is(
    failure(() => jsonOf(fromHex('81 01 01'))),
    'not-supported',
  );
  assert.is(
    failure(() => jsonOf(fromHex('91'))),
    'payload-malformed',
  );
  assert.is(
    failure(() => jsonOf(new Uint8Array([...new Uint8Array(33).fill(0x91), 1]))),
    'payload-too-complex',
  );
});

test.run();
