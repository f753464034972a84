// The replay protocol: every layout that vLLM has sent, what is refused and how, and what a cursor finds missing. The layouts are
// written out as bytes, after spec/kv-events.md 1.3 and vllm-store.md 9, apart from the code that writes them.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WireError } from '../src/errors.js';
import {
  END_SEQUENCE,
  MAX_RANGES_KEPT,
  MAX_REPLAY_REPLIES,
  ReplayCursor,
  type ReplayReply,
  readReplayReply,
  readReplayRequest,
  replayEnd,
  replayReply,
  replayRequest,
} from '../src/wire/replay.js';

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));
const hex = (frames: readonly Uint8Array[]) => frames.map((frame) => Buffer.from(frame).toString('hex'));
const EMPTY = '';
const IDENTITY = '0011223344';
const TOPIC = '6b762d6576656e7473';
const SEQUENCE = '0000000000000107';
const PAYLOAD = '93cb00c0';
const END = 'ffffffffffffffff';

/** Code and text of the WireError that `run` throws. */
function refusal(run: () => unknown): { code: string; text: string } {
  try {
    run();
  } catch (error) {
    assert.instance(error, WireError);
    return { code: (error as WireError).code, text: (error as WireError).message };
  }
  return { code: 'no error', text: '' };
}

const read = (...frames: string[]) => readReplayReply(frames.map(bytes));
const batch = (sequence: bigint): ReplayReply => ({ kind: 'batch', topic: null, sequence, payload: bytes(PAYLOAD) });
const end: ReplayReply = { kind: 'end' };

test('a request is an empty frame and 8 bytes, big endian', () => {
  assert.equal(hex(replayRequest(0n)), [EMPTY, '0000000000000000']);
  assert.equal(hex(replayRequest(0x107n)), [EMPTY, SEQUENCE]);
  assert.equal(hex(replayRequest(END_SEQUENCE - 1n)), [EMPTY, 'fffffffffffffffe']);
});

test('a request for what is no sequence is refused, not wrapped', () => {
  for (const start of [-1n, END_SEQUENCE, 2n ** 64n]) {
    const { code, text } = refusal(() => replayRequest(start));
    assert.is(code, 'sequence-range');
    assert.match(text, String(start));
  }
});

test('the ROUTER reads a start of any width, unsigned', () => {
  for (const [start, expected] of [
    [SEQUENCE, 0x107n],
    ['00', 0n],
    ['ff', 255n],
    ['0107', 0x107n],
    ['ffffffffffffff', 2n ** 56n - 1n],
    ['8000000000000000', 2n ** 63n],
    [END, END_SEQUENCE],
    [`00${END}`, END_SEQUENCE],
    [`${'00'.repeat(100)}07`, 7n],
  ] as const) {
    const request = readReplayRequest([IDENTITY, EMPTY, start].map(bytes));
    assert.equal(hex([request.identity]), [IDENTITY]);
    assert.is(request.start, expected);
  }
});

test('a request that is not identity, empty, start is refused', () => {
  for (const [code, frames, seen] of [
    ['frame-count', [], 'got 0'],
    ['frame-count', [IDENTITY, SEQUENCE], 'got 2'],
    ['frame-count', [IDENTITY, EMPTY, EMPTY, SEQUENCE], 'got 4'],
    ['delimiter-not-empty', [IDENTITY, '00', SEQUENCE], '1 bytes'],
    ['start-width', [IDENTITY, EMPTY, EMPTY], '0 bytes'],
    ['start-width', [IDENTITY, EMPTY, `01${SEQUENCE}`], '9 bytes'],
    ['start-width', [IDENTITY, EMPTY, `0001${SEQUENCE}`], '10 bytes'],
  ] as const) {
    const refused = refusal(() => readReplayRequest(frames.map(bytes)));
    assert.is(refused.code, code);
    assert.match(refused.text, seen);
    assert.match(refused.text, code === 'frame-count' ? 'has 3 frames' : 'expected');
  }
});

test('a worker sends the frames of its layout', () => {
  const sent = { topic: bytes(TOPIC), sequence: 0x107n, payload: bytes(PAYLOAD) };
  const identity = bytes(IDENTITY);
  assert.equal(hex(replayReply(identity, sent, 'with-topic')), [IDENTITY, EMPTY, TOPIC, SEQUENCE, PAYLOAD]);
  assert.equal(hex(replayReply(identity, sent, 'without-topic')), [IDENTITY, EMPTY, SEQUENCE, PAYLOAD]);
  assert.equal(hex(replayEnd(identity, 'with-topic')), [IDENTITY, EMPTY, EMPTY, END, EMPTY]);
  assert.equal(hex(replayEnd(identity, 'without-topic')), [IDENTITY, EMPTY, END, EMPTY]);
});

test('a worker can not send a batch that looks like an end marker', () => {
  const send = (sequence: bigint, payload: string) => () =>
    replayReply(bytes(IDENTITY), { topic: bytes(TOPIC), sequence, payload: bytes(payload) }, 'with-topic');
  assert.is(refusal(send(END_SEQUENCE, PAYLOAD)).code, 'sequence-range');
  assert.is(refusal(send(-1n, PAYLOAD)).code, 'sequence-range');
  assert.is(refusal(send(7n, EMPTY)).code, 'payload-empty');
});

test('batches are read in every layout, with the delimiter and without', () => {
  for (const [topic, frames] of [
    [TOPIC, [EMPTY, TOPIC, SEQUENCE, PAYLOAD]],
    [EMPTY, [EMPTY, EMPTY, SEQUENCE, PAYLOAD]],
    [TOPIC, [TOPIC, SEQUENCE, PAYLOAD]],
    [null, [EMPTY, SEQUENCE, PAYLOAD]], // an empty topic without the delimiter is the same bytes
    [null, [SEQUENCE, PAYLOAD]],
  ] as const) {
    const reply = read(...frames);
    assert.is(reply.kind, 'batch', frames.join());
    if (reply.kind !== 'batch') return;
    assert.equal(reply.topic && hex([reply.topic])[0], topic, frames.join());
    assert.is(reply.sequence, 0x107n);
    assert.equal(hex([reply.payload]), [PAYLOAD]);
  }
});

test('end markers are read in every layout, with the delimiter and without', () => {
  for (const frames of [
    [EMPTY, EMPTY, END, EMPTY],
    [EMPTY, TOPIC, END, EMPTY],
    [TOPIC, END, EMPTY],
    [EMPTY, END, EMPTY],
    [END, EMPTY],
    [EMPTY, EMPTY],
  ]) {
    assert.equal(read(...frames), { kind: 'end' }, frames.join());
  }
});

test('a topic of 8 bytes is not taken for the sequence, nor is a payload', () => {
  const reply = read(END, SEQUENCE, END);
  assert.equal(reply, { kind: 'batch', topic: bytes(END), sequence: 0x107n, payload: bytes(END) });
});

test('what is no reply is refused, with what was seen and expected', () => {
  for (const [code, frames, seen] of [
    ['frame-count', [], 'got 0'],
    ['frame-count', [EMPTY], 'got 1'],
    ['frame-count', [IDENTITY, EMPTY, TOPIC, SEQUENCE, PAYLOAD], 'got 5'],
    ['delimiter-not-empty', [IDENTITY, TOPIC, SEQUENCE, PAYLOAD], '5 bytes'],
    ['sequence-width', [EMPTY, PAYLOAD], '0 bytes'],
    ['sequence-width', [EMPTY, EMPTY, EMPTY], '0 bytes'],
    ['sequence-width', [TOPIC, SEQUENCE.slice(2), PAYLOAD], '7 bytes'],
    ['sequence-width', [EMPTY, TOPIC, `00${SEQUENCE}`, PAYLOAD], '9 bytes'],
    ['end-with-payload', [EMPTY, END, PAYLOAD], '4 bytes'],
    ['end-with-payload', [EMPTY, TOPIC, END, PAYLOAD], '4 bytes'],
    ['payload-empty', [EMPTY, SEQUENCE, EMPTY], 'batch 263'],
    ['payload-empty', [EMPTY, EMPTY, SEQUENCE, EMPTY], 'batch 263'],
  ] as const) {
    const refused = refusal(() => read(...frames));
    assert.is(refused.code, code, frames.join());
    assert.match(refused.text, seen);
  }
});

const someFrames = fc.array(
  fc.oneof(fc.constantFrom(EMPTY, SEQUENCE, END, TOPIC).map(bytes), fc.uint8Array({ maxLength: 12 })),
  { maxLength: 6 },
);
const someBatch = fc.record({
  topic: fc.uint8Array({ maxLength: 12 }),
  sequence: fc.bigInt({ min: 0n, max: END_SEQUENCE - 1n }),
  payload: fc.uint8Array({ minLength: 1, maxLength: 12 }),
});
const someLayout = fc.constantFrom('with-topic' as const, 'without-topic' as const);

test('arbitrary frames are read or refused with a WireError', () => {
  fc.assert(
    fc.property(someFrames, (frames) => {
      refusal(() => readReplayReply(frames));
      refusal(() => readReplayRequest(frames));
    }),
    { numRuns: 2000 },
  );
});

test('what a worker sends is what the client reads', () => {
  fc.assert(
    fc.property(someBatch, someLayout, (sent, layout) => {
      const [identity, ...frames] = replayReply(bytes(IDENTITY), sent, layout);
      assert.equal(hex([identity!]), [IDENTITY]);
      const { topic, sequence, payload } = sent;
      assert.equal(readReplayReply(frames), {
        kind: 'batch',
        topic: layout === 'with-topic' ? topic : null,
        sequence,
        payload,
      });
      assert.equal(readReplayReply(replayEnd(bytes(IDENTITY), layout).slice(1)), end);
    }),
  );
});

test('what a client asks is what the ROUTER reads', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: END_SEQUENCE - 1n }), fc.uint8Array(), (start, identity) => {
      assert.equal(readReplayRequest([identity, ...replayRequest(start)]), { identity, start });
    }),
  );
});

test('a replay that begins where it was asked for is applied whole', () => {
  const cursor = new ReplayCursor(5n, 8n);
  assert.is(cursor.next, 5n);
  for (const sequence of [5n, 6n, 7n, 8n, 9n]) {
    assert.equal(cursor.take(batch(sequence)), { kind: 'apply', missing: null });
    assert.is(cursor.next, sequence + 1n);
    assert.is(cursor.ended, false);
  }
  assert.equal(cursor.take(end), { kind: 'end', missing: null });
  assert.equal([cursor.ended, cursor.unrecoverable, cursor.applied, cursor.duplicates], [true, false, 5, 0]);
  assert.equal(cursor.missing, []);
});

test('batches up to the last applied one are ignored and counted', () => {
  const cursor = new ReplayCursor(5n);
  assert.equal(cursor.take(batch(4n)), { kind: 'duplicate' });
  cursor.take(batch(5n));
  assert.equal(cursor.take(batch(5n)), { kind: 'duplicate' });
  cursor.take(batch(6n));
  assert.equal(cursor.take(batch(0n)), { kind: 'duplicate' });
  assert.equal([cursor.next, cursor.applied, cursor.duplicates, cursor.unrecoverable], [7n, 2, 3, false]);
});

test('a first batch later than asked: the buffer has lost what lies before', () => {
  const cursor = new ReplayCursor(5n);
  const missing = { from: 5n, to: 100n, cause: 'evicted' as const };
  assert.equal(cursor.take(batch(100n)), { kind: 'apply', missing });
  assert.equal(cursor.take(batch(101n)), { kind: 'apply', missing: null });
  assert.equal(cursor.take(end), { kind: 'end', missing: null });
  assert.equal([cursor.unrecoverable, cursor.missingRanges, cursor.next], [true, 1, 102n]);
  assert.equal(cursor.missing, [missing]);
});

test('a duplicate before the first batch does not make an eviction a hole', () => {
  const cursor = new ReplayCursor(5n);
  cursor.take(batch(4n));
  assert.equal(cursor.take(batch(7n)), { kind: 'apply', missing: { from: 5n, to: 7n, cause: 'evicted' } });
});

test('holes between batches are reported each', () => {
  const cursor = new ReplayCursor(0n);
  cursor.take(batch(0n));
  assert.equal(cursor.take(batch(2n)), { kind: 'apply', missing: { from: 1n, to: 2n, cause: 'hole' } });
  assert.equal(cursor.take(batch(10n)), { kind: 'apply', missing: { from: 3n, to: 10n, cause: 'hole' } });
  assert.equal([cursor.unrecoverable, cursor.missingRanges, cursor.missing.length], [true, 2, 2]);
});

test('of many holes the first are kept and all are counted', () => {
  const cursor = new ReplayCursor(0n);
  for (let i = 0n; i < 100n; i++) cursor.take(batch(2n * i));
  assert.equal([cursor.missingRanges, cursor.missing.length], [99, MAX_RANGES_KEPT]);
  assert.equal(cursor.missing[0], { from: 1n, to: 2n, cause: 'hole' });
});

test('an end short of the batch that showed the gap leaves a tail missing, as of a worker that restarted', () => {
  const cursor = new ReplayCursor(500n, 503n);
  assert.equal(cursor.take(end), { kind: 'end', missing: { from: 500n, to: 503n, cause: 'tail' } });
  assert.is(cursor.unrecoverable, true);
  const short = new ReplayCursor(500n, 503n);
  short.take(batch(500n));
  assert.equal(short.take(end), { kind: 'end', missing: { from: 501n, to: 503n, cause: 'tail' } });
});

test('an end right before the batch that showed the gap is whole, and without one there is no tail', () => {
  const cursor = new ReplayCursor(500n, 501n);
  cursor.take(batch(500n));
  assert.equal(cursor.take(end), { kind: 'end', missing: null });
  assert.equal(new ReplayCursor(500n).take(end), { kind: 'end', missing: null });
});

test('nothing is taken behind the end', () => {
  for (const late of [batch(6n), end]) {
    const cursor = new ReplayCursor(5n);
    cursor.take(end);
    assert.is(refusal(() => cursor.take(late)).code, 'reply-after-end');
    assert.is(cursor.applied, 0);
  }
});

test('a replay without an end is refused after a million replies, duplicates included; an end still counts', () => {
  const cursor = new ReplayCursor(0n);
  for (let i = 0; i < MAX_REPLAY_REPLIES; i++) cursor.take(batch(0n));
  assert.equal([cursor.applied, cursor.duplicates], [1, MAX_REPLAY_REPLIES - 1]);
  assert.is(refusal(() => cursor.take(batch(1n))).code, 'replay-too-long');
  assert.equal(cursor.take(end), { kind: 'end', missing: null });
});

test('the last sequence of all can be asked for and applied', () => {
  const cursor = new ReplayCursor(END_SEQUENCE - 1n);
  cursor.take(batch(END_SEQUENCE - 1n));
  assert.is(cursor.next, END_SEQUENCE);
});

test('a cursor of what is no sequence is refused', () => {
  for (const wrong of [-1n, END_SEQUENCE]) {
    assert.is(refusal(() => new ReplayCursor(wrong)).code, 'sequence-range');
    assert.is(refusal(() => new ReplayCursor(0n, wrong)).code, 'sequence-range');
  }
});

test('a cursor agrees with a set of sequences', () => {
  const sequences = fc.array(fc.bigInt({ min: 0n, max: 40n }), { maxLength: 30 });
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 40n }), sequences, (asked, replies) => {
      const cursor = new ReplayCursor(asked);
      const applied: bigint[] = [];
      const missing: bigint[] = [];
      for (const sequence of replies) {
        const step = cursor.take(batch(sequence));
        if (step.kind === 'duplicate') continue;
        for (let lost = step.missing?.from ?? 0n; lost < (step.missing?.to ?? 0n); lost++) missing.push(lost);
        applied.push(sequence);
      }
      // Applied in order, none twice; with the missing ones they are all from asked to the last.
      assert.equal(
        applied,
        replies.filter((s, i) => s >= asked && replies.slice(0, i).every((before) => before < s)),
      );
      const all = [...applied, ...missing].sort((a, b) => Number(a - b));
      assert.equal(
        all,
        Array.from({ length: all.length }, (_, i) => asked + BigInt(i)),
      );
      assert.is(cursor.next, asked + BigInt(all.length));
      assert.equal([cursor.applied + cursor.duplicates, cursor.unrecoverable], [replies.length, missing.length > 0]);
    }),
  );
});

test.run();
