// A rank's way to the transport: order, fuller messages while one is under way, a bounded number of attempts, and the end.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BatchQueue } from '../src/live/plane/publish/batch.js';
import { Outbox, PUBLISH_ATTEMPTS } from '../src/live/plane/publish/outbox.js';
import { EventBatchReader, encodeEvents } from '../src/wire/envelope/index.js';
import type { RouterEvent } from '../src/wire/envelope/types.js';
import { HandClock } from './support/hand-clock.js';
import { removed, WORKER } from './support/plane-drafts.js';

interface Attempt {
  readonly ids: number[];
  /** Says how it ended. */
  settle(taken: boolean): void;
}

function scene(encode: (events: readonly RouterEvent[]) => Uint8Array = encodeEvents) {
  const clock = new HandClock();
  const queue = new BatchQueue();
  const attempts: Attempt[] = [];
  const lost: number[] = [];
  const reader = new EventBatchReader();
  const outbox = new Outbox({
    rank: { workerId: WORKER, dpRank: 0 },
    queue,
    plane: {
      publish: (_, payload) => {
        const ids = reader.read(payload).events.map(({ eventId }) => Number(eventId));
        return new Promise((settle) => attempts.push({ ids, settle }));
      },
    },
    encode,
    clock,
    random: () => 0,
    onLost: (events) => lost.push(...events.map(({ eventId }) => Number(eventId))),
  });
  let last = 0n;
  const push = (count = 1): void => {
    for (let i = 0; i < count; i++) queue.push({ ...removed([1]), eventId: ++last });
    outbox.wake();
  };
  /** Promises that are due run. */
  const turn = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  return { clock, queue, attempts, lost, outbox, push, turn };
}

test('what is pushed in one turn goes together; while it is under way the next message fills', async () => {
  const { attempts, push, turn, outbox } = scene();
  push();
  push();
  await turn();
  assert.equal(
    attempts.map(({ ids }) => ids),
    [[1, 2]],
  );
  push();
  push(2);
  await turn();
  assert.is(attempts.length, 1);
  attempts[0]!.settle(true);
  await turn();
  assert.equal(attempts[1]!.ids, [3, 4, 5]);
  attempts[1]!.settle(true);
  await turn();
  assert.is(outbox.stats().messages, 2);
  assert.ok(outbox.stats().bytes > 100);
});

test('a refused message is tried again, before any later one', async () => {
  const { attempts, clock, lost, push, turn, outbox } = scene();
  push();
  await turn();
  attempts[0]!.settle(false);
  push();
  await turn();
  assert.is(attempts.length, 1, 'not at once');
  clock.advance(1000);
  await turn();
  assert.equal(attempts[1]!.ids, [1]);
  attempts[1]!.settle(true);
  await turn();
  assert.equal(attempts[2]!.ids, [2]);
  assert.is(outbox.stats().lagMs, 1000);
  attempts[2]!.settle(true);
  await turn();
  assert.equal(outbox.stats().refusals, 1);
  assert.equal(lost, []);
});

test(`after ${PUBLISH_ATTEMPTS} refusals its events are given up, and the next ones go`, async () => {
  const { attempts, clock, lost, push, turn, outbox } = scene();
  push(2);
  for (let attempt = 0; attempt < PUBLISH_ATTEMPTS; attempt++) {
    await turn();
    assert.is(attempts.length, attempt + 1);
    attempts[attempt]!.settle(false);
    await turn();
    clock.advance(3000);
  }
  assert.equal(lost, [1, 2]);
  push();
  await turn();
  assert.equal(attempts.at(-1)!.ids, [3]);
  attempts.at(-1)!.settle(true);
  await turn();
  const { messages, lostMessages, lostEvents, refusals } = outbox.stats();
  assert.equal([messages, lostMessages, lostEvents, refusals], [1, 1, 2, PUBLISH_ATTEMPTS]);
});

test('a transport or a codec that throws has refused', async () => {
  const { clock, lost, push, turn } = scene(() => {
    throw new Error('no');
  });
  push();
  for (let attempt = 0; attempt < PUBLISH_ATTEMPTS; attempt++) {
    await turn();
    clock.advance(3000);
  }
  await turn();
  assert.equal(lost, [1]);
});

test('closing waits for what is queued, and does not wait to try again', async () => {
  const { attempts, lost, push, turn, outbox } = scene();
  push();
  await turn();
  attempts[0]!.settle(false);
  await turn();
  push();
  let closed = false;
  const closing = outbox.close().then(() => {
    closed = true;
  });
  await turn();
  assert.equal(attempts[1]!.ids, [1]);
  attempts[1]!.settle(false);
  await turn();
  assert.equal(lost, [1]);
  assert.equal(attempts[2]!.ids, [2]);
  assert.not(closed);
  attempts[2]!.settle(true);
  await closing;
});

test.run();
