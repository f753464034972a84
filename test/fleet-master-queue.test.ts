// The simulated publisher's queue and numbers, after spec/mooncake-events.md 2 and the gap that was captured there.
import { Decoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { EventQueue, MAX_BATCH_EVENTS, type QueuedMessage } from '../src/fleet/master/event-queue.js';
import type { Announcement, EventFlags, Generation } from '../src/fleet/master/types.js';
import { readSequence } from '../src/wire/frames.js';

const FLAGS: EventFlags = {
  backendId: 'pool',
  emitLegacyCompat: true,
  emitObjectKey: true,
  modelName: '',
  blockSize: 0,
  dpRank: 0,
  additionalSalt: '',
  loraName: '',
};
const decoder = new Decoder({ useBigInt64: true });

function queueOf(generation: Generation, capacity = 1_000, flags: Partial<EventFlags> = {}): EventQueue {
  return new EventQueue(generation, { ...FLAGS, ...flags }, capacity);
}

function stored(key: string): Announcement {
  return { kind: 'stored', tenant: 'default', key, group: null, medium: 'cpu' };
}

const CLEARED: Announcement = { kind: 'cleared', tenant: 'default', key: '', group: null, medium: null };

function fill(queue: EventQueue, count: number, from = 0): void {
  for (let i = 0; i < count; i++) queue.push(stored(`k${from + i}`));
}

/** Sends everything; sequence and event ids of each message, as a reader decodes them. */
function drain(queue: EventQueue): [sequence: number, ids: number[]][] {
  const messages: [number, number[]][] = [];
  for (let message = queue.next(1_000); message !== null; message = queue.next(1_000)) {
    queue.sent(message);
    messages.push([
      Number(readSequence(message.frames[1]!)),
      eventsOf(message).map((event) => Number(event['event_id'])),
    ]);
  }
  return messages;
}

function eventsOf({ frames }: QueuedMessage): Record<string, unknown>[] {
  return (decoder.decode(frames[2]!) as [unknown, Record<string, unknown>[]])[1];
}

test('sequence and event ids begin at 1; a message has 3 frames, the first of them empty', () => {
  const queue = queueOf('A');
  fill(queue, 1);
  const message = queue.next(1_000)!;
  assert.is(message.frames.length, 3);
  assert.is(message.frames[0]!.length, 0);
  assert.is(readSequence(message.frames[1]!), 1n);
  assert.is(eventsOf(message)[0]!['event_id'], 1);
  assert.is(queue.next(1_000), null);
});

test('at most 64 events a message, and one sequence for each message', () => {
  const queue = queueOf('A');
  fill(queue, 2 * MAX_BATCH_EVENTS + 1);
  const ids = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);
  assert.equal(drain(queue), [
    [1, ids(1, 64)],
    [2, ids(65, 64)],
    [3, [129]],
  ]);
});

test('a full queue drops its oldest events: a gap as wide as the loss, and event ids without one', () => {
  const queue = queueOf('A', 4);
  fill(queue, 10);
  assert.equal(drain(queue), [[7, [1, 2, 3, 4]]]);
  assert.is(queue.counts.droppedEvents, 6);
  fill(queue, 1, 10);
  assert.equal(drain(queue), [[8, [5]]]);
  // The invariant of a publisher whose sends succeed.
  assert.is(queue.lastSequence, queue.counts.publishedBatches + queue.counts.droppedEvents);
});

test('what is dropped is the oldest', () => {
  const queue = queueOf('A', 2);
  fill(queue, 3);
  assert.equal(
    eventsOf(queue.next(1_000)!).map((event) => event['object_key']),
    ['k1', 'k2'],
  );
});

test('a failed send spends its numbers and counts its events as dropped', () => {
  const queue = queueOf('A');
  fill(queue, 3);
  queue.failed(queue.next(1_000)!);
  fill(queue, 1, 3);
  assert.equal(drain(queue), [[2, [4]]]);
  assert.equal([queue.counts.publishedBatches, queue.counts.publishedEvents, queue.counts.droppedEvents], [1, 1, 3]);
});

test('A without object keys skips keys that are no number; a batch of nothing else spends no sequence', () => {
  const queue = queueOf('A', 1_000, { emitObjectKey: false });
  queue.push(stored('no number'));
  assert.equal(drain(queue), []);
  queue.push(stored('no number'));
  queue.push(stored('42'));
  assert.equal(drain(queue), [[1, [1]]]);
  assert.is(queue.counts.skippedUnparsedKeys, 2);
});

test('A with object keys counts what it could not parse, though it was sent', () => {
  const queue = queueOf('A');
  queue.push(stored('no number'));
  queue.push(stored('42'));
  assert.equal(drain(queue), [[1, [1, 2]]]);
  assert.is(queue.counts.skippedUnparsedKeys, 1);
});

test('C without object keys sends cleared alone', () => {
  const queue = queueOf('C', 1_000, { emitObjectKey: false });
  queue.push(stored('a'));
  queue.push(CLEARED);
  queue.push(stored('b'));
  const message = queue.next(1_000)!;
  assert.equal(
    eventsOf(message).map((event) => event['event_type']),
    ['cleared'],
  );
  assert.is(queue.counts.skippedKeylessEvents, 2);
});

test('the batch and each of its events have the time of encoding', () => {
  const queue = queueOf('C', 1_000, { dpRank: 3 });
  fill(queue, 2);
  const [now, events, dpRank] = decoder.decode(queue.next(1_796_015_123_383)!.frames[2]!) as [
    bigint,
    Record<string, unknown>[],
    number,
  ];
  assert.is(now, 1_796_015_123_383n);
  assert.equal(
    events.map((event) => event['timestamp']),
    [now, now],
  );
  assert.is(dpRank, 3);
});

test('a queue that is written and read in turns keeps its order', () => {
  const queue = queueOf('A', 20_000);
  let read = 0;
  const readOne = () => {
    const message = queue.next(1_000);
    if (message !== null) for (const event of eventsOf(message)) assert.is(event['object_key'], `k${read++}`);
    return message !== null;
  };
  for (let written = 0; written < 20_000; written += 100) {
    fill(queue, 100, written);
    if (written >= 5_000) readOne();
  }
  while (readOne());
  assert.is(read, 20_000);
});

test.run();
