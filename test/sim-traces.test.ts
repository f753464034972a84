// The formats of traces as their publishers write them, one request a row; then the two published FAST'25 traces as a whole.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import { readTrace, type TraceOptions } from '../src/sim/traces/read.js';
import type { TraceFormat, TraceRequest } from '../src/sim/traces/types.js';
import { bytesOf, countsOf, publishedTrace, readAll, readLines } from './support/traces.js';

type Wanted = Partial<Omit<TraceRequest, 'hashIds'>> & { readonly hashIds?: readonly number[] | null };

interface Row {
  readonly name: string;
  readonly lines: readonly string[];
  readonly options?: TraceOptions;
  readonly format: TraceFormat;
  readonly wanted: readonly Wanted[];
}

const rows: readonly Row[] = [
  {
    name: "FAST'25",
    lines: [
      '{"timestamp": 0, "input_length": 1024, "output_length": 52, "hash_ids": [0, 1]}',
      '{"timestamp": 105.5, "input_length": 1100, "output_length": 0, "hash_ids": [0, 1, 2]}',
    ],
    format: 'fast25',
    wanted: [
      { index: 0, at: 0, inputTokens: 1024, outputTokens: 52, hashIds: [0, 1], idTokens: 512, fullIds: 2, line: 1 },
      { index: 1, at: 105.5, inputTokens: 1100, outputTokens: 0, hashIds: [0, 1, 2], fullIds: 2, sessionId: null },
    ],
  },
  {
    name: "FAST'25 with sessions and delays",
    lines: [
      '{"timestamp": 10, "input_length": 600, "output_length": 5, "hash_ids": [7, 8], "session_id": "s"}',
      '{"delay": 250, "input_length": 700, "output_length": 5, "hash_ids": [7, 9], "session_id": "s"}',
      '{"timestamp": 900, "delay": 40, "input_length": 700, "output_length": 5, "hash_ids": [7, 9], "session_id": "s"}',
      '{"timestamp": 950, "delay": 40, "input_length": 700, "output_length": 5, "hash_ids": [7, 9], "session_id": 3}',
    ],
    format: 'fast25',
    wanted: [
      { at: 10, sessionId: 's', delay: null, hashIds: [0, 1] },
      { at: 260, sessionId: 's', delay: 250, hashIds: [0, 2] },
      { at: 900, sessionId: 's', delay: 40 },
      { at: 950, sessionId: '3', delay: 40 },
    ],
  },
  {
    name: "FAST'25 under the names of later tools",
    lines: ['{"created_time": 7, "input_tokens": 5, "output_tokens": 6, "session_id": "a", "delay_ms": 3}'],
    format: 'fast25',
    wanted: [{ at: 7, inputTokens: 5, outputTokens: 6, hashIds: null, fullIds: 0, sessionId: 'a', delay: 3 }],
  },
  {
    name: 'Qwen-Bailian: seconds, 16 tokens an id, chats chained to sessions',
    lines: [
      '{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 33, "output_length": 132, "type": "text", "turn": 1, "hash_ids": [1089, 1090, 6326]}',
      '{"chat_id": 160, "parent_chat_id": 159, "timestamp": 62.5, "input_length": 48, "output_length": 80, "type": "text", "turn": 2, "hash_ids": [1089, 1090, 9]}',
      '{"chat_id": 161, "parent_chat_id": 160, "timestamp": 63, "input_length": 16, "output_length": 8, "type": "file", "turn": 3, "hash_ids": [1089]}',
      '{"chat_id": 170, "parent_chat_id": 12, "timestamp": 64, "input_length": 16, "output_length": 8, "type": "file", "turn": 3, "hash_ids": [1089]}',
    ],
    format: 'qwen-bailian',
    wanted: [
      { at: 61_114, hashIds: [0, 1, 2], idTokens: 16, fullIds: 2, sessionId: '159', delay: null, outputTokens: 132 },
      { at: 62_500, hashIds: [0, 1, 3], fullIds: 3, sessionId: '159' },
      { at: 63_000, hashIds: [0], sessionId: '159' },
      { at: 64_000, hashIds: [0], sessionId: '170' },
    ],
  },
  {
    name: 'CSV with a header',
    lines: ['time,in,out', '0,100,10', '5.5, 200 ,20'],
    format: 'csv',
    wanted: [
      { at: 0, inputTokens: 100, outputTokens: 10, hashIds: null, fullIds: 0, line: 2 },
      { at: 5.5, inputTokens: 200, outputTokens: 20, line: 3 },
    ],
  },
  {
    name: 'CSV without a header',
    lines: ['0;100;10', '1e3;200;20'],
    format: 'csv',
    wanted: [
      { at: 0, inputTokens: 100, line: 1 },
      { at: 1000, inputTokens: 200 },
    ],
  },
  {
    name: 'CSV in the form of the Azure LLM traces, dates for times',
    lines: [
      'TIMESTAMP,ContextTokens,GeneratedTokens',
      '2023-11-16 18:17:03.9799600,4808,10',
      '2023-11-16 19:17:04+01:00,3180,8',
    ],
    format: 'csv',
    wanted: [
      { at: Date.UTC(2023, 10, 16, 18, 17, 3) + 979.96, inputTokens: 4808, outputTokens: 10 },
      { at: Date.UTC(2023, 10, 16, 18, 17, 4), inputTokens: 3180, outputTokens: 8 },
    ],
  },
  {
    name: 'CSV with columns of choice, in seconds, quoted',
    lines: ['"who, when","Prompt Size","gen"', '"1.5",10,"2"', '"2""",1,1'],
    options: { columns: { time: 'who, when', input: 'prompt_size', output: 'gen' }, timeUnit: 's' },
    format: 'csv',
    wanted: [{ at: 1500, inputTokens: 10, outputTokens: 2 }],
  },
  {
    name: 'a forced format and a block size of choice',
    lines: ['{"chat_id": 1, "timestamp": 2, "input_length": 130, "output_length": 1, "hash_ids": ["a", "b", "a"]}'],
    options: { format: 'fast25', idTokens: 64 },
    format: 'fast25',
    wanted: [{ at: 2, idTokens: 64, fullIds: 2, hashIds: [0, 1, 0] }],
  },
];

for (const { name, lines, options, format, wanted } of rows) {
  test(name, async () => {
    const { requests, report } = await readLines(lines, options);
    assert.is(report.format, format);
    assert.is(requests.length, wanted.length);
    for (const [i, want] of wanted.entries()) {
      const { hashIds, ...rest } = requests[i]!;
      const got: Record<string, unknown> = { ...rest, hashIds: hashIds === null ? null : [...hashIds] };
      for (const [field, value] of Object.entries(want)) assert.equal(got[field], value, `${field} of request ${i}`);
    }
  });
}

const refused: readonly (readonly [string, string, readonly string[], TraceOptions?])[] = [
  ['a JSON object of no known format', 'trace-format', ['{"captured": 1}']],
  ['a JSON list', 'trace-format', ['[{"timestamp": 0}]']],
  ['text', 'trace-format', ['hello', '1,2,3']],
  ['nothing but broken JSON', 'trace-format', ['{"timestamp": 0, "input_len', '{']],
  ['a CSV without known columns', 'trace-format', ['a,b,c', '1,2,3']],
  ['a CSV without the chosen column', 'trace-columns', ['time,in,out'], { columns: { input: 'prompt' } }],
];
for (const [name, code, lines, options] of refused) {
  test(`${name} is refused: ${code}`, async () => {
    try {
      await readLines(lines, options);
    } catch (error) {
      assert.instance(error, MoonrouteError);
      assert.is((error as MoonrouteError).code, code);
      assert.match((error as MoonrouteError).message, lines[0]!.slice(0, 5));
      return;
    }
    assert.unreachable();
  });
}

test('what can be read is named where a format is not known', async () => {
  const error = await readLines(['{"x":1}']).then(() => null, String);
  for (const known of ['fast25', 'qwen-bailian', 'csv', 'gzip', 'moonroute record']) assert.match(error!, known);
});

test("options that can't be are refused at once", () => {
  const wrong = [
    { format: 'xml' as TraceFormat },
    { idTokens: 0 },
    { idTokens: 1.5 },
    { timeUnit: 'h' as 's' },
    { reorderRows: -1 },
    { maxLineBytes: 0 },
  ];
  for (const options of wrong)
    assert.throws(
      () => readTrace([], options),
      (error: unknown) => error instanceof ConfigError && error.code === 'trace-option',
      JSON.stringify(options),
    );
});

test('an empty file is a trace of no requests', async () => {
  const { requests, report } = await readAll([bytesOf('')]);
  assert.equal([requests.length, report.rows, report.format], [0, 0, null]);
});

/** Name, rows, block references, distinct ids, rows at the time of the row before. */
const published = [
  ['conversation', 12_031, 288_500, 182_790, 10_851],
  ['synthetic', 3_993, 121_877, 43_924, 11],
] as const;
for (const [name, count, references, distinct, equal] of published) {
  test(`the published ${name} trace is read whole, its ids as they are`, async () => {
    const source = publishedTrace(`mooncake-${name}.jsonl`);
    if (source === null) return;
    const { requests, report } = await readAll(source);
    let ids = 0;
    let tails = 0;
    for (const { hashIds, fullIds, inputTokens } of requests) {
      ids += hashIds!.length;
      assert.is(fullIds, Math.floor(inputTokens / 512));
      tails += hashIds!.length - fullIds;
    }
    assert.equal([requests.length, ids, report.distinctIds], [count, references, distinct]);
    assert.equal(countsOf(report), { 'partial-tail': tails, 'equal-timestamps': equal });
  });
}

test.run();
