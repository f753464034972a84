// Frames of the Mooncake master: what is split, what is refused, and whether the caller can still record the sequence. The
// real messages come from test/fixtures/mooncake-captures and mooncake-event-samples.json.
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WireError } from '../src/errors.js';
import { writeSequence } from '../src/wire/frames.js';
import { MAX_STORE_EVENTS, MAX_STORE_MESSAGE_BYTES, StoreFrameError, splitStoreFrames } from '../src/wire/mooncake.js';

const FIXTURES = 'test/fixtures';
const fromHex = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));

function refusal(frames: readonly Uint8Array[]): [code: string, sequence: bigint | null] {
  try {
    splitStoreFrames(frames);
  } catch (error) {
    assert.instance(error, StoreFrameError);
    assert.instance(error, WireError);
    return [(error as StoreFrameError).code, (error as StoreFrameError).sequence];
  }
  return ['no error', null];
}

test('limits are those of the reference', () => {
  assert.equal([MAX_STORE_MESSAGE_BYTES, MAX_STORE_EVENTS], [1_048_576, 4096]);
});

test('real messages are split, the payload untouched', () => {
  let messages = 0;
  for (const folder of [`${FIXTURES}/mooncake-captures`, `${FIXTURES}/mooncake-captures/scenarios`]) {
    for (const name of readdirSync(folder).filter((name) => name.endsWith('.jsonl'))) {
      for (const line of readFileSync(`${folder}/${name}`, 'utf8').split('\n').filter(Boolean)) {
        const { seq, topic, payload } = JSON.parse(line) as { seq: string; topic: string; payload: string };
        const frames = [fromHex(topic), writeSequence(BigInt(seq)), fromHex(payload)];
        const split = splitStoreFrames(frames);
        assert.is(split.sequence, BigInt(seq));
        assert.is(split.payload, frames[2]);
        messages++;
      }
    }
  }
  assert.ok(messages > 1600, `${messages} messages`);
  const { samples } = JSON.parse(readFileSync(`${FIXTURES}/mooncake-event-samples.json`, 'utf8')) as {
    samples: { frames: { topic_hex: string; seq_hex: string; payload_hex: string; seq: string } }[];
  };
  for (const { frames } of samples) {
    const split = splitStoreFrames([fromHex(frames.topic_hex), fromHex(frames.seq_hex), fromHex(frames.payload_hex)]);
    assert.is(split.sequence, BigInt(frames.seq));
  }
});

test('any other number of frames is refused without a sequence', () => {
  for (const count of [0, 1, 2, 4]) assert.equal(refusal(Array(count).fill(writeSequence(7n))), ['frame-count', null]);
});

test('a sequence of any other width is refused without a sequence, however large the message', () => {
  for (const width of [0, 7, 9]) {
    assert.equal(refusal([new Uint8Array(0), new Uint8Array(width), new Uint8Array(3)]), ['sequence-width', null]);
  }
  const large = new Uint8Array(MAX_STORE_MESSAGE_BYTES);
  assert.equal(refusal([new Uint8Array(0), new Uint8Array(7), large]), ['sequence-width', null]);
});

test('topic, sequence and payload together may have 1 MiB; beyond it the sequence is kept', () => {
  const frames = (topic: number, payload: number) => [
    new Uint8Array(topic),
    writeSequence(2n ** 63n),
    new Uint8Array(payload),
  ];
  assert.is(splitStoreFrames(frames(0, MAX_STORE_MESSAGE_BYTES - 8)).sequence, 2n ** 63n);
  assert.equal(refusal(frames(0, MAX_STORE_MESSAGE_BYTES - 7)), ['message-too-large', 2n ** 63n]);
  assert.is(splitStoreFrames(frames(5, MAX_STORE_MESSAGE_BYTES - 13)).sequence, 2n ** 63n);
  assert.equal(refusal(frames(6, MAX_STORE_MESSAGE_BYTES - 13)), ['message-too-large', 2n ** 63n]);
});

test('arbitrary frames are split or refused', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 10 }), { maxLength: 5 }), (frames) => {
      const [code] = refusal(frames);
      const expected = frames.length !== 3 ? 'frame-count' : frames[1]!.length !== 8 ? 'sequence-width' : 'no error';
      assert.is(code, expected);
    }),
  );
});

test.run();
