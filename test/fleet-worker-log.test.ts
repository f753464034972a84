// What a simulated publisher remembers of its stream: numbers from 0, the last batches, bounds by count and by bytes.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { EventLog, MAX_BUFFERED_BYTES } from '../src/fleet/worker/event-log.js';
import { readSequence } from '../src/wire/frames.js';

const payload = (byte: number) => Uint8Array.of(byte);
const sequences = (log: EventLog, start = 0n) => log.from(start).map(({ sequence }) => Number(sequence));

test('frames are topic, sequence from 0, payload', () => {
  const log = new EventLog('kv-events', 10);
  const [topic, sequence, content] = log.take(payload(7));
  assert.is(new TextDecoder().decode(topic), 'kv-events');
  assert.is(readSequence(sequence!), 0n);
  assert.equal(content, payload(7));
  assert.is(log.next, 1n);
});

test('the last batches are kept, whatever was asked for before them', () => {
  const log = new EventLog('', 3);
  for (let i = 0; i < 100; i++) {
    log.take(payload(i));
    assert.is(log.buffered, Math.min(3, i + 1));
  }
  assert.equal(sequences(log), [97, 98, 99]);
  assert.equal(sequences(log, 98n), [98, 99]);
  assert.equal(sequences(log, 100n), []);
  assert.equal(log.from(99n)[0]!.payload, payload(99));
});

test('a batch whose sending failed has used up its number and is not kept', () => {
  const log = new EventLog('', 10);
  log.take(payload(0));
  log.take(payload(1), false);
  log.take(payload(2));
  assert.equal(sequences(log), [0, 2]);
});

test('a buffer made smaller keeps the newest; one of nothing keeps nothing', () => {
  const log = new EventLog('', 10);
  for (let i = 0; i < 8; i++) log.take(payload(i));
  log.resize(2);
  assert.equal(sequences(log), [6, 7]);
  log.resize(0);
  log.take(payload(8));
  assert.equal([log.buffered, log.next], [0, 9n]);
});

test('payloads together are bounded', () => {
  const log = new EventLog('', 1000);
  const large = new Uint8Array(MAX_BUFFERED_BYTES / 4);
  for (let i = 0; i < 7; i++) log.take(large);
  assert.equal(sequences(log), [3, 4, 5, 6]);
});

test.run();
