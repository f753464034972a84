// What is odd in a trace is counted with its first line, and no row is lost without being counted (`readLines` checks that each time).
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { TraceOptions } from '../src/sim/traces/read.js';
import { countsOf, readLines } from './support/traces.js';

const GOOD = '{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[0]}';
const fast = (fields: object): string =>
  JSON.stringify({ timestamp: 1, input_length: 512, output_length: 1, hash_ids: [0], ...fields });
const chat = (fields: object): string =>
  JSON.stringify({
    chat_id: 1,
    parent_chat_id: -1,
    timestamp: 1,
    input_length: 16,
    output_length: 1,
    hash_ids: [0],
    ...fields,
  });

interface Row {
  readonly name: string;
  readonly lines: readonly string[];
  readonly options?: TraceOptions;
  /** Requests that come out. */
  readonly requests: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly firstLine?: number;
}

const rows: readonly Row[] = [
  { name: 'nothing odd', lines: [GOOD, fast({})], requests: 2, counts: {} },
  { name: 'blank rows', lines: ['', GOOD, '  ', ''], requests: 1, counts: { 'blank-row': 2 }, firstLine: 1 },
  {
    name: 'rows that are no JSON',
    lines: [GOOD, '{"timest', 'x', '[]', '7', 'null'],
    requests: 1,
    counts: { 'malformed-row': 5 },
    firstLine: 2,
  },
  {
    name: 'a first row that is cut',
    lines: ['{"timest', GOOD],
    requests: 1,
    counts: { 'malformed-row': 1 },
    firstLine: 1,
  },
  {
    name: 'no time',
    lines: [GOOD, '{"input_length":5,"output_length":1}'],
    requests: 1,
    counts: { 'missing-field': 1 },
    firstLine: 2,
  },
  {
    name: 'no prompt length',
    lines: [GOOD, '{"timestamp":5,"output_length":1}'],
    requests: 1,
    counts: { 'missing-field': 1 },
    firstLine: 2,
  },
  {
    name: 'values of the wrong kind',
    lines: [
      GOOD,
      ...[
        { timestamp: 'x' },
        { input_length: 0 },
        { input_length: 1.5 },
        { input_length: 2 ** 31 },
        { output_length: -1 },
        { delay: -5 },
        { delay: [] },
      ].map(fast),
    ],
    requests: 1,
    counts: { 'bad-value': 7 },
    firstLine: 2,
  },
  {
    name: 'no output length',
    lines: [GOOD, fast({ output_length: undefined })],
    requests: 2,
    counts: { 'no-output-length': 1 },
    firstLine: 2,
  },
  { name: 'no ids', lines: [GOOD, fast({ hash_ids: null })], requests: 2, counts: { 'no-hash-ids': 1 }, firstLine: 2 },
  {
    name: 'ids that are none',
    lines: [
      GOOD,
      ...[{ hash_ids: 'x' }, { hash_ids: [1.5] }, { hash_ids: [null] }, { hash_ids: [[1]] }].map((f, i) =>
        fast({ timestamp: i + 1, ...f }),
      ),
    ],
    requests: 5,
    counts: { 'bad-hash-ids': 4 },
    firstLine: 2,
  },
  {
    name: 'more or fewer ids than blocks',
    lines: [GOOD, fast({ hash_ids: [0, 1] }), fast({ timestamp: 2, input_length: 2000 })],
    requests: 3,
    counts: { 'block-count': 2 },
    firstLine: 2,
  },
  {
    name: 'partial tails',
    lines: [GOOD, fast({ input_length: 513, hash_ids: [0, 1] })],
    requests: 2,
    counts: { 'partial-tail': 1 },
    firstLine: 2,
  },
  {
    name: 'ids under two parents',
    lines: [
      GOOD,
      fast({ input_length: 1536, hash_ids: [0, 1, 2] }),
      fast({ timestamp: 2, input_length: 1536, hash_ids: [1, 0, 2] }),
    ],
    requests: 3,
    counts: { 'two-parents': 3 },
    firstLine: 3,
  },
  {
    name: 'an id twice in a row',
    lines: [fast({ input_length: 1024, hash_ids: [5, 5] })],
    requests: 1,
    counts: { 'two-parents': 1 },
  },
  {
    name: 'a delay without a session',
    lines: [GOOD, fast({ delay: 5 })],
    requests: 2,
    counts: { 'delay-without-session': 1 },
    firstLine: 2,
  },
  {
    name: 'neither time nor a known session',
    lines: [GOOD, fast({ timestamp: undefined, delay: 5, session_id: 's' })],
    requests: 1,
    counts: { 'missing-field': 1 },
    firstLine: 2,
  },
  {
    name: 'a row placed by its delay',
    lines: [fast({ session_id: 's' }), fast({ timestamp: undefined, delay: 5, session_id: 's' })],
    requests: 2,
    counts: { 'placed-by-delay': 1 },
    firstLine: 2,
  },
  {
    name: 'equal timestamps',
    lines: [GOOD, GOOD, GOOD, fast({})],
    requests: 4,
    counts: { 'equal-timestamps': 2 },
    firstLine: 2,
  },
  {
    name: 'unsorted rows within the window',
    lines: [5, 3, 9, 1].map((timestamp) => fast({ timestamp })),
    requests: 4,
    counts: { 'unsorted-row': 2 },
    firstLine: 2,
  },
  {
    name: 'unsorted rows beyond it',
    lines: [5, 6, 7, 8, 1, 9].map((timestamp) => fast({ timestamp })),
    options: { reorderRows: 2 },
    requests: 6,
    counts: { 'unsorted-row': 1, 'out-of-order': 1 },
    firstLine: 5,
  },
  {
    name: 'an unknown parent chat',
    lines: [chat({ parent_chat_id: 9 })],
    requests: 1,
    counts: { 'unknown-parent-chat': 1 },
  },
  {
    name: 'Qwen-Bailian rows without time or of wrong values',
    lines: [chat({}), chat({ timestamp: null }), chat({ input_length: -1 }), '{'],
    requests: 1,
    counts: { 'missing-field': 1, 'bad-value': 1, 'malformed-row': 1 },
    firstLine: 2,
  },
  {
    name: 'CSV rows that are short, wrong or open',
    lines: ['time,in,out', '0,5,1', '1,5', '2', '3,x,1', '4,5,1,more', '"5,5,1'],
    requests: 3,
    counts: { 'no-output-length': 1, 'missing-field': 1, 'bad-value': 1, 'malformed-row': 1 },
    firstLine: 3,
  },
];

for (const { name, lines, options, requests, counts, firstLine } of rows) {
  test(`counted: ${name}`, async () => {
    const read = await readLines(lines, options);
    assert.is(read.requests.length, requests);
    assert.equal(countsOf(read.report), counts);
    if (firstLine !== undefined) assert.is(read.report.warnings[0]!.firstLine, firstLine);
  });
}

test('a tail is never a full id, and no more ids are full than there are', async () => {
  const { requests } = await readLines([
    fast({ input_length: 1535, hash_ids: [0, 1, 2] }),
    fast({ input_length: 1536, hash_ids: [0, 1] }),
    fast({ input_length: 512, hash_ids: [0, 1, 2] }),
    fast({ input_length: 511 }),
  ]);
  assert.equal(
    requests.map(({ fullIds }) => fullIds),
    [2, 2, 1, 0],
  );
});

test('rows within the window come in order of time, equal ones as in the file, with the index of that order', async () => {
  const { requests } = await readLines([5, 3, 9, 3, 1].map((timestamp) => fast({ timestamp })));
  assert.equal(
    requests.map(({ at, line, index }) => [at, line, index]),
    [
      [1, 5, 0],
      [3, 2, 1],
      [3, 4, 2],
      [5, 1, 3],
      [9, 3, 4],
    ],
  );
});

test('rows the window cannot put right come as soon as they can', async () => {
  const { requests } = await readLines(
    [5, 6, 7, 8, 1, 9].map((timestamp) => fast({ timestamp })),
    { reorderRows: 1 },
  );
  assert.equal(
    requests.map(({ at }) => at),
    [5, 6, 7, 1, 8, 9],
  );
});

test('the first few faulty rows are quoted, cut, and fit for a terminal', async () => {
  const long = `\u001b[31m${'x'.repeat(200)}`;
  const { report } = await readLines([GOOD, long, 'b', 'c', 'd']);
  const [warning] = report.warnings;
  assert.is(warning!.skipped, true);
  assert.equal(warning!.quotes, [`?[31m${'x'.repeat(75)}`, 'b', 'c']);
});

test('whatever the rows are, each becomes a request or a counted skip, in order of time', async () => {
  const value = fc.oneof(fc.integer(), fc.double(), fc.string(), fc.constant(null), fc.boolean());
  const row = fc.oneof(
    fc.string().map((text) => text.replace(/[\r\n]/g, ' ')),
    fc
      .record(
        {
          timestamp: value,
          input_length: value,
          output_length: value,
          hash_ids: fc.oneof(value, fc.array(value)),
          session_id: value,
          delay: value,
        },
        { requiredKeys: [] },
      )
      .map((fields) => JSON.stringify(fields)),
    fc
      .record({ timestamp: fc.nat(50), input_length: fc.integer({ min: 1, max: 3000 }), hash_ids: fc.array(fc.nat(9)) })
      .map((fields) => JSON.stringify(fields)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(row, { maxLength: 30 }), async (lines) => {
      const { requests, report } = await readLines([GOOD, ...lines, GOOD]);
      assert.is(report.rows, lines.length + 2);
      requests.forEach(({ index, at }, i) => {
        assert.is(index, i);
        if (i > 0) assert.ok(at >= requests[i - 1]!.at);
      });
    }),
    { numRuns: 300 },
  );
});

test.run();
