// Usage read from passing bytes: however they are cut, in every form that engines have, within bounds; and which headers go on and come back.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { requestHeaders, responseHeaders } from '../src/server/http/headers.js';
import { type Usage, usageReader } from '../src/server/http/usage.js';

const NOTHING: Usage = { promptTokens: null, cachedTokens: null, generatedTokens: null };
const STREAM = 'text/event-stream; charset=utf-8';
const JSON_TYPE = 'application/json';

function read(type: string, text: string, size = Number.POSITIVE_INFINITY): { usage: Usage; generated: number } {
  const reader = usageReader(type, null);
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += Math.min(size, bytes.length)) {
    // A copy, for a reader must not count on bytes that have passed.
    const chunk = bytes.slice(at, at + size);
    reader.take(chunk);
  }
  return { usage: reader.usage(), generated: reader.generated };
}

const chunk = (fields: object) =>
  `data: ${JSON.stringify({ id: 'x', choices: [{ delta: { content: 'a' } }], ...fields })}\n\n`;
const usage = (prompt_tokens: number, completion_tokens: number, cached_tokens?: number) => ({
  usage: {
    ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
    prompt_tokens_details: cached_tokens === undefined ? null : { cached_tokens },
  },
});
const TEXT_OF_USAGE = { choices: [{ delta: { content: '"usage": {"prompt_tokens": 9}' } }] };

const streams: [string, string, Usage, number][] = [
  ['no usage', `${chunk({})}${chunk({})}data: [DONE]\n\n`, NOTHING, 2],
  [
    'usage in a last chunk',
    `${chunk({})}${chunk({})}${chunk({ choices: [], ...usage(7, 2, 4) })}data: [DONE]\n\n`,
    { promptTokens: 7, cachedTokens: 4, generatedTokens: 2 },
    2,
  ],
  [
    'null usage in the others',
    `${chunk({ usage: null })}${chunk({ usage: null })}${chunk({ choices: [], ...usage(7, 2) })}data: [DONE]\n\n`,
    { promptTokens: 7, cachedTokens: null, generatedTokens: 2 },
    2,
  ],
  [
    'usage with every token',
    `${chunk(usage(7, 1))}${chunk(usage(7, 2, 3))}data: [DONE]\n\n`,
    { promptTokens: 7, cachedTokens: 3, generatedTokens: 2 },
    2,
  ],
  ['usage in the text alone', `${chunk(TEXT_OF_USAGE)}data: [DONE]\n\n`, NOTHING, 1],
  [
    'comments, other fields, no space, CRLF',
    `: hello\r\nevent: x\r\ndata:${JSON.stringify({ choices: [], ...usage(5, 1, 0) })}\r\n\r\ndata: [DONE]\r\n\r\n`,
    { promptTokens: 5, cachedTokens: 0, generatedTokens: 1 },
    0,
  ],
  ['numbers that can not be meant', chunk({ choices: [], ...usage(-1, 2) }), NOTHING, 0],
  ['a broken line', 'data: {"usage":{"prompt_tokens":3}\n\n', NOTHING, 1],
  [
    'a line too long to be looked at, and then usage',
    `${chunk({ choices: [{ text: 'é'.repeat(100_000) }] })}${chunk({ choices: [], ...usage(7, 1, 4) })}`,
    { promptTokens: 7, cachedTokens: 4, generatedTokens: 1 },
    1,
  ],
];

test('streams, cut anywhere', () => {
  for (const [name, text, expected, generated] of streams) {
    for (const size of text.length > 10_000 ? [1000, 70_000] : [1, 2, 3, 7, 64, Number.POSITIVE_INFINITY]) {
      assert.equal(read(STREAM, text, size), { usage: expected, generated }, `${name} by ${size}`);
    }
  }
});

test('whole answers: usage anywhere in the last 64 KiB', () => {
  const answer = (before: object, after: object = {}, fields: object = usage(7, 2, 4)) =>
    JSON.stringify({ ...before, ...fields, ...after });
  const seen = { promptTokens: 7, cachedTokens: 4, generatedTokens: 2 };
  const long = 'x'.repeat(300_000);
  for (const [name, text, expected] of [
    ['short', answer({ id: 'a' }), seen],
    ['long text before it', answer({ choices: [{ text: long }] }), seen],
    ['something behind it', answer({}, { prompt_logprobs: null, kv_transfer_params: { usage: null } }), seen],
    ['too much behind it', answer({}, { more: long }), NOTHING],
    ['usage in a text', answer({}, { text: '"usage": {"prompt_tokens": 1}' }), seen],
    [
      'spaces',
      '{ "usage" :\n { "prompt_tokens" : 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens":4}}}',
      seen,
    ],
    ['none', '{}', NOTHING],
    ['empty', '{"usage":{}}', NOTHING],
    ['cut short', '{"usage":{"prompt_tokens":7', NOTHING],
    ['null', '{"usage":null}', NOTHING],
  ] as const) {
    for (const size of text.length > 10_000 ? [1000, 65_536] : [1, 5, 1e9]) {
      assert.equal(read(JSON_TYPE, text, size).usage, expected, `${name} by ${size}`);
    }
  }
});

test('texts full of what looks like usage are searched in no time', () => {
  for (const text of ['"usage":{', '"usage":{"a":1},', '"usage":{{', '"usage":']) {
    const reader = usageReader(JSON_TYPE, null);
    reader.take(new TextEncoder().encode(text.repeat((1 << 20) / text.length)));
    const started = performance.now();
    assert.equal(reader.usage(), NOTHING);
    assert.ok(performance.now() - started < 100, text);
  }
});

test('what is compressed, or neither JSON nor a stream, is not read', () => {
  for (const [type, encoding] of [
    [JSON_TYPE, 'gzip'],
    ['text/plain', null],
    [null, null],
  ] as const) {
    const reader = usageReader(type, encoding);
    reader.take(new TextEncoder().encode(JSON.stringify(usage(1, 1))));
    assert.equal(reader.usage(), NOTHING);
  }
  const plain = usageReader('Application/JSON ; charset=utf-8', 'Identity');
  plain.take(new TextEncoder().encode(JSON.stringify(usage(1, 1))));
  assert.is(plain.usage().promptTokens, 1);
});

test('a stream that never ends a line costs no more than its bound', () => {
  const reader = usageReader(STREAM, null);
  const bytes = new Uint8Array(1 << 20).fill(0x61);
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 256; i++) reader.take(bytes.slice());
  assert.ok(process.memoryUsage().arrayBuffers - before < 300 << 20);
  reader.take(new TextEncoder().encode(`\n${chunk({ choices: [], ...usage(7, 1) })}`));
  assert.is(reader.usage().promptTokens, 7);
});

test('headers of requests: row by row', () => {
  for (const [name, given, went] of [
    ['order, case and repetitions', ['A', '1', 'a', '2', 'B', ''], ['A', '1', 'a', '2', 'B', '']],
    ['keys', ['Authorization', 'x', 'Proxy-Authorization', 'y'], []],
    ['the connection', ['Connection', 'keep-alive', 'Keep-Alive', 't', 'TE', 'x', 'Trailer', 'x', 'Upgrade', 'x'], []],
    ['what each connection names', ['connection', 'close', 'Connection', 'x-a', 'x-a', '1', 'x-c', '3'], ['x-c', '3']],
    ['what connection names', ['connection', 'close, X-A ,x-b', 'x-a', '1', 'X-B', '2', 'x-c', '3'], ['x-c', '3']],
    ['lengths', ['Content-Length', '99', 'Transfer-Encoding', 'chunked', 'Expect', '100-continue'], []],
    ['ranks', ['X-Data-Parallel-Rank', '3'], []],
    ['names of its own', ['x-request-id', 'q', 'Cookie', 'c'], ['x-request-id', 'q', 'Cookie', 'c']],
  ] as const) {
    assert.equal(requestHeaders(given, 'h:1', 5, null), ['host', 'h:1', ...went, 'content-length', '5'], name);
  }
  assert.equal(requestHeaders([], 'h', 0, 2).slice(-2), ['X-data-parallel-rank', '2']);
  const back = responseHeaders(['X', '1', 'X-Moonroute-Worker', 'forged', 'connection', 'close'], {
    'x-moonroute-worker': 'w',
  });
  assert.equal(back, ['X', '1', 'x-moonroute-worker', 'w']);
});

test.run();
