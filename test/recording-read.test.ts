// Lines of recordings and captures as they are read: the three dialects, and what is refused, by name.
import { Buffer } from 'node:buffer';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MoonrouteError } from '../src/errors.js';
import { looksRecorded } from '../src/live/recording.js';
import { bytesOfBase64, bytesOfHex } from '../src/live/recording-bytes.js';
import { RecordingClock } from '../src/live/recording-clock.js';
import { publisherOf } from '../src/live/recording-publisher.js';
import { readRecordedLine } from '../src/live/recording-read.js';
import { Random } from './support/random.js';

test('base64 and hex are those of Node, at every length', () => {
  const random = new Random(7);
  for (let length = 0; length < 200; length++) {
    const bytes = Uint8Array.from({ length }, () => random.int(256));
    assert.equal(bytesOfBase64(Buffer.from(bytes).toString('base64')), bytes);
    assert.equal(bytesOfHex(Buffer.from(bytes).toString('hex')), bytes);
  }
});

test('what is no base64 and no hex is none', () => {
  for (const text of [
    'A',
    'AA',
    'AAA',
    'A===',
    '=AAA',
    'AA=A',
    'AA!=',
    'AA-_',
    'AAA\u00e9',
    'AA A',
    '====',
    'AAA\u0100',
  ])
    assert.is(bytesOfBase64(text), null, text);
  for (const text of ['0', 'AB', 'zz', '0\u0130', ' 0']) assert.is(bytesOfHex(text), null, text);
});

const read = (value: unknown) => readRecordedLine(JSON.stringify(value), 'f:1');
const bytes = (...values: number[]) => Uint8Array.from(values);

const good: readonly (readonly [string, unknown, unknown])[] = [
  [
    'a message of ours',
    { t: 1.5, from: 'w', kind: 'worker', frames: ['', 'AAEC'] },
    { type: 'message', t: 1.5, from: 'w', kind: 'worker', frames: [bytes(), bytes(0, 1, 2)] },
  ],
  [
    'a message seen by ZeroMQ',
    { t: 7, kind: 'zmq', frames: ['', '00ff'] },
    { type: 'message', t: 7, from: null, kind: null, frames: [bytes(), bytes(0, 255)] },
  ],
  [
    'a captured message',
    { seq: '258', topic: '61', payload: '90' },
    {
      type: 'message',
      t: null,
      from: null,
      kind: null,
      frames: [bytes(0x61), bytes(0, 0, 0, 0, 0, 0, 1, 2), bytes(0x90)],
    },
  ],
  [
    'a loss',
    { t: 1, from: 's', kind: 'monitor', event: 'lost', cause: 'heartbeat' },
    { type: 'monitor', t: 1, from: 's', event: 'lost', breaks: true },
  ],
  [
    'a gap, which sequences tell anyway',
    { t: 1, from: 's', kind: 'monitor', event: 'gap', after: '1', at: '3' },
    { type: 'monitor', t: 1, from: 's', event: 'gap', breaks: false },
  ],
  [
    'a loss seen by ZeroMQ',
    { t: 1, kind: 'monitor', event: 'disconnect' },
    { type: 'monitor', t: 1, from: null, event: 'disconnect', breaks: true },
  ],
  ['a status', { t: 1, kind: 'status', body: '{}' }, { type: 'status', t: 1, from: null, body: '{}' }],
  [
    'a key list',
    { t: 1, kind: 'keys', n: 2, keys: ['a', 'b'] },
    { type: 'keys', t: 1, from: null, n: 2, at: 0, keys: ['a', 'b'] },
  ],
  [
    'the same list',
    { t: 1, kind: 'keys', n: 2, same: true },
    { type: 'keys', t: 1, from: null, n: 2, at: 0, keys: null },
  ],
  [
    'a hole',
    { t: 1, from: 'w', kind: 'note', event: 'dropped', messages: 3 },
    { type: 'note', t: 1, from: 'w', event: 'dropped', breaks: true },
  ],
  [
    'an error of the HTTP',
    { t: 1, kind: 'http-error', error: 'refused' },
    { type: 'note', t: 1, from: null, event: 'http-error', breaks: false },
  ],
  ['a kind of a later version', { t: 1, kind: 'lorem' }, null],
];
for (const [name, line, wanted] of good) test(`${name} is read`, () => assert.equal(read(line), wanted));

const bad: readonly (readonly [string, string, RegExp])[] = [
  ['{', 'capture-line', /not JSON/],
  ['[1]', 'recording-line', /JSON object/],
  ['null', 'recording-line', /JSON object, got null/],
  ['{"moonroute_recording":2,"started":"2026-11-30T00:00:00Z","sources":[]}', 'recording-version', /version 2/],
  ['{"moonroute_recording":1,"started":"soon","sources":[]}', 'recording-line', /ISO time/],
  ['{"moonroute_recording":1,"started":"2026-11-30T00:00:00Z","sources":[{"name":"a"}]}', 'recording-line', /source/],
  ['{"t":-1,"kind":"status","body":""}', 'recording-line', /"t"/],
  ['{"t":1,"from":3,"kind":"status","body":""}', 'recording-line', /"from"/],
  ['{"t":1,"kind":"worker","frames":["A"]}', 'recording-line', /frame 0 must be a text in base64, got "A"/],
  ['{"t":1,"kind":"zmq","frames":["AA=="]}', 'recording-line', /frame 0 .*hex/],
  ['{"t":1,"kind":"store"}', 'recording-line', /"frames"/],
  ['{"t":1,"kind":"keys","n":1,"keys":["a","b"]}', 'recording-line', /at most 1/],
  ['{"t":1,"kind":"keys","n":-1,"keys":[]}', 'recording-line', /counts/],
  ['{"t":1,"kind":"monitor"}', 'recording-line', /"event"/],
  ['{"seq":1,"topic":"","payload":""}', 'capture-line', /"seq"/],
  ['{"seq":"1","topic":"","payload":"zz"}', 'capture-line', /hex/],
];
for (const [line, code, text] of bad) {
  test(`${line.slice(0, 60)} is refused: ${code}`, () => {
    try {
      readRecordedLine(line, 'file:9');
    } catch (error) {
      assert.instance(error, MoonrouteError);
      assert.is((error as MoonrouteError).code, code);
      assert.match((error as MoonrouteError).message, /^file:9: /);
      assert.match((error as MoonrouteError).message, text);
      return;
    }
    assert.unreachable();
  });
}

test('an error quotes little of what it refuses', () => {
  try {
    read({ t: 1, kind: 'worker', frames: ['!'.repeat(10_000)] });
    assert.unreachable();
  } catch (error) {
    assert.ok((error as Error).message.length < 200);
  }
});

test('rows of traces do not look recorded', () => {
  assert.is(looksRecorded({ timestamp: 0, input_length: 5, output_length: 6, hash_ids: [] }), false);
  assert.is(looksRecorded({ chat_id: 1, type: 'text', timestamp: 0 }), false);
  assert.is(looksRecorded({ seq: '1', topic: '', payload: '' }), false);
  assert.is(looksRecorded({ moonroute_recording: 1 }), true);
  assert.is(looksRecorded({ t: 1, kind: 'monitor', event: 'x' }), true);
});

test('the first event tells who published a message', () => {
  const hex = (text: string) => [bytes(), bytes(), bytesOfHex(text)!];
  assert.is(publisherOf(hex('92cb000000000000000091' + '81aa6576656e745f74797065a673746f726564')), 'store');
  assert.is(publisherOf(hex('92cb000000000000000091' + '81a474797065a673746f726564')), 'worker');
  assert.is(publisherOf(hex('92cb000000000000000090')), null);
  assert.is(publisherOf(hex('c1')), null);
  assert.is(publisherOf([]), null);
});

test('recordings that are joined go by one clock', () => {
  const clock = new RecordingClock();
  assert.is(clock.at(5), 5);
  clock.header(1000);
  assert.is(clock.at(5), 5);
  clock.header(3000);
  assert.is(clock.at(5), 2005);
});

test.run();
