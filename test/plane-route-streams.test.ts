// An event plane into a router (live/plane/route): batches, recoveries, notices, workers that come and go, and load between routers.
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AskSlots } from '../src/live/plane/route/ask-slots.js';
import { type PlaneOptions, PlaneStreams } from '../src/live/plane/route/plane-streams.js';
import { WAITING_BYTES } from '../src/live/plane/route/rank-stream.js';
import { STALE_AFTER } from '../src/live/plane/route/splice-terms.js';
import { Router } from '../src/router/router.js';
import { encodeEvents } from '../src/wire/envelope/index.js';
import { FakePlane, FakePublisher } from './support/fake-plane.js';
import { HandClock } from './support/hand-clock.js';
import { planeEvent, removedData, storedData } from './support/plane-events.js';

/** A router on a plane, with a clock that stands still. */
async function rigOf(plane: FakePlane, options: Partial<PlaneOptions> = {}) {
  const clock = new HandClock();
  const router = await Router.create({ index: { bytes: 4 << 20, provenance: true } });
  const lines: string[] = [];
  const subscriber = plane.subscriber();
  const streams = PlaneStreams.open(router, {
    ...{ subscriber, clock, workers: [{ id: 'w', planeId: 1n }], random: () => 0 },
    log: (level, text) => lines.push(`${level} ${text}`),
    ...options,
  });
  await settle();
  const held = (id: string | number = 'w', dpRank = 0) =>
    router.dump(id, dpRank).flatMap(({ hashes }) => [...hashes].map(Number));
  const rank = () => streams.status().ranks[0]!;
  return { clock, router, lines, subscriber, streams, held, rank };
}

/** What is under way has ended. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await setImmediate();
}

test('a configured rank is asked for at once; then events follow', async () => {
  const plane = new FakePlane();
  const publisher = await FakePublisher.start(plane, 1n);
  publisher.emit(storedData(null, [1, 2]));
  const { held, rank, streams } = await rigOf(plane);
  assert.equal(held(), [1, 2]);
  assert.ok(rank().warm);
  publisher.emit(storedData(2, [3]));
  publisher.emit(removedData([3]));
  publisher.emit(storedData(2, [4]), { eligible: true });
  await settle();
  assert.equal(held(), [1, 2, 4]);
  assert.is(rank().lastEventId, 4n);
  assert.is(rank().lag, 0);
  await streams.close();
});

test('what is lost is recovered', async () => {
  const plane = new FakePlane();
  const publisher = await FakePublisher.start(plane, 1n);
  const { held, rank, streams } = await rigOf(plane);
  publisher.emit(storedData(null, [1]));
  publisher.emit(storedData(1, [2]), { lost: true });
  publisher.emit(storedData(2, [3]));
  await settle();
  assert.equal(held(), [1, 2, 3]);
  assert.equal(rank().recoveries, { start: 1, gap: 1 });
  assert.equal(rank().outcomes, { dump: 1, range: 1 });
  await streams.close();
});

test('a lost tail is found when the transport says that it may have lost something', async () => {
  for (const notices of [
    [{ kind: 'gap', detail: 'x' } as const],
    [{ kind: 'lost', to: 'a', detail: 'x' } as const],
    [{ kind: 'lost', to: 'a', detail: 'x' } as const, { kind: 'connected', to: 'a' } as const],
  ]) {
    const plane = new FakePlane();
    const publisher = await FakePublisher.start(plane, 1n);
    const { held, streams } = await rigOf(plane);
    publisher.emit(storedData(null, [1]));
    publisher.emit(storedData(1, [2]), { lost: true });
    await settle();
    assert.equal(held(), [1]);
    for (const notice of notices) plane.notice(notice);
    await settle();
    assert.equal(held(), [1, 2]);
    await streams.close();
  }
});

test('a connection that stays down: what is known goes when a direct stream’s would, and comes back with it', async () => {
  const plane = new FakePlane();
  const publisher = await FakePublisher.start(plane, 1n);
  const { clock, held, streams, rank, lines } = await rigOf(plane);
  publisher.emit(storedData(null, [1]));
  await settle();
  publisher.answers = false;
  plane.notice({ kind: 'lost', to: 'a', detail: 'gone' });
  assert.is(streams.status().trouble, 'a: gone');
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1000) {
      clock.advance(1000);
      await settle();
    }
  };
  await pass(STALE_AFTER - 2000);
  assert.equal(held(), [1]);
  await pass(4000);
  assert.equal(held(), []);
  assert.is(rank().rebuilds['stale'], 1);
  assert.ok(lines.some((line) => /starts from empty \(stale\)/.test(line)));
  publisher.answers = true;
  plane.notice({ kind: 'connected', to: 'a' });
  await settle();
  assert.equal(held(), [1]);
  assert.is(streams.status().trouble, null);
  await streams.close();
});

test('a rank that nobody answers for stays cold, is said so, and is asked again later', async () => {
  const plane = new FakePlane();
  const { clock, rank, streams } = await rigOf(plane);
  for (let i = 0; i < 80; i++) {
    clock.advance(1000);
    await settle();
  }
  assert.is(rank().outcomes['given-up'], 1);
  assert.not.ok(rank().everWarm);
  const publisher = await FakePublisher.start(plane, 1n);
  publisher.emit(storedData(null, [1]), { lost: true });
  for (let i = 0; i < 80 && !rank().warm; i++) {
    clock.advance(1000);
    await settle();
  }
  assert.ok(rank().warm);
  await streams.close();
});

test('a publisher that begins anew', async () => {
  const plane = new FakePlane();
  const old = await FakePublisher.start(plane, 1n);
  const { held, streams, rank } = await rigOf(plane);
  for (let i = 1; i < 9; i++) old.emit(storedData(i === 1 ? null : i - 1, [i]));
  await settle();
  const anew = await FakePublisher.start(plane, 1n);
  anew.emit(storedData(null, [50]), { lost: true });
  anew.emit(storedData(null, [60]));
  await settle();
  assert.equal(held().sort(), [50, 60]);
  anew.emit(storedData(60, [61]));
  await settle();
  assert.equal(held().sort(), [50, 60, 61]);
  assert.is(rank().recoveries['doubt'], 1);
  await streams.close();
});

test('a log that is replayed from its beginning does not count twice', async () => {
  const plane = new FakePlane();
  plane.log = [];
  const publisher = await FakePublisher.start(plane, 1n);
  for (let i = 1; i < 30; i++) publisher.emit(storedData(i === 1 ? null : i - 1, [i]));
  plane.log.splice(0, 10);
  const { held, streams, rank } = await rigOf(plane);
  await settle();
  assert.is(held().length, 29);
  assert.is(rank().counts.doubts, 0);
  assert.is(rank().recoveries['doubt'], undefined);
  await streams.close();
});

test('what can not be read is counted and recovered', async () => {
  const plane = new FakePlane();
  const publisher = await FakePublisher.start(plane, 1n);
  const { held, streams, rank, lines } = await rigOf(plane);
  publisher.emit(storedData(null, [1]), { lost: true });
  plane.send(publisher.rank, Uint8Array.of(0xc1));
  await settle();
  assert.equal(held(), [1]);
  plane.send(publisher.rank, encodeEvents([planeEvent(2, storedData(1, [2]), { workerId: 7n })]));
  await settle();
  assert.equal(held(), [1]);
  assert.is(rank().unreadable['other-rank'], 1);
  assert.is(Object.keys(rank().unreadable).length, 2);
  assert.ok(lines.some((line) => line.includes("can't be read")));
  await streams.close();
});

test('batches of ranks that the router does not have are counted; a worker that is added later is warm at once', async () => {
  const plane = new FakePlane();
  const publisher = await FakePublisher.start(plane, 2n, 3);
  const { held, streams } = await rigOf(plane);
  publisher.emit(storedData(null, [1]));
  assert.is(streams.status().foreign, 1);
  streams.addWorker({ id: 2, dpRanks: { start: 3, size: 1 } });
  await settle();
  assert.equal(held(2, 3), [1]);
  assert.ok(streams.has(2));
  assert.ok(streams.removeWorker(2));
  assert.not.ok(streams.has(2));
  publisher.emit(storedData(1, [2]));
  await settle();
  assert.is(streams.status().foreign, 2);
  await streams.close();
});

test('a worker that is replaced is asked anew', async () => {
  const plane = new FakePlane();
  const publisher = await FakePublisher.start(plane, 1n);
  publisher.emit(storedData(null, [1]));
  const { held, streams } = await rigOf(plane);
  streams.addWorker({ id: 'w', planeId: '1' });
  assert.equal(held(), []);
  await settle();
  assert.equal(held(), [1]);
  assert.is(publisher.asked, 2);
  await streams.close();
});

test('a flood waits at its source', async () => {
  const plane = new FakePlane();
  const publisher = await FakePublisher.start(plane, 1n);
  let handlers: Parameters<typeof subscriber.open>[0] | null = null;
  const subscriber = plane.subscriber();
  const open = subscriber.open.bind(subscriber);
  subscriber.open = (given) => {
    handlers = given;
    return open(given);
  };
  const { streams, rank } = await rigOf(plane, { subscriber });
  const payload = new Uint8Array(1 << 20);
  let waiting: unknown;
  for (let bytes = 0; bytes <= WAITING_BYTES; bytes += payload.length) {
    waiting = handlers!.onMessage({ rank: publisher.rank, payload, place: null });
  }
  assert.instance(waiting, Promise);
  await waiting;
  await settle();
  assert.is(rank().queued, 0);
  await streams.close();
});

test('a plane that can not be opened is tried again', async () => {
  const plane = new FakePlane();
  const subscriber = plane.subscriber();
  subscriber.failsToOpen = 2;
  const { clock, streams } = await rigOf(plane, { subscriber });
  for (let i = 0; i < 5; i++) {
    clock.advance(1000);
    await settle();
  }
  assert.ok(subscriber.isOpen);
  assert.is(streams.status().notices['trouble'], 2);
  await streams.close();
});

test('closing drops what nobody watches any more, and changes nothing afterwards', async () => {
  const plane = new FakePlane();
  const publisher = await FakePublisher.start(plane, 1n);
  publisher.emit(storedData(null, [1]));
  const { held, streams, router, subscriber } = await rigOf(plane);
  await streams.close();
  assert.equal(held(), []);
  assert.not.ok(subscriber.isOpen);
  assert.is(router.workers().length, 1);
  assert.throws(
    () => streams.addWorker({ id: 3 }),
    (error: { code: string }) => error.code === 'plane-closed',
  );
  await streams.close();
});

test('refusals leave no worker behind', async () => {
  const router = await Router.create({ index: { bytes: 4 << 20 } });
  const subscriber = new FakePlane().subscriber();
  const refused: [Partial<PlaneOptions>, RegExp][] = [
    [{ workers: [{ id: 4 }, { id: 'text' }] }, /worker text has no number on the plane/],
    [{ workers: [{ id: 4 }, { id: 'x', planeId: 4 }] }, /planeId 4 is that of worker 4/],
    [{ load: { name: '' } }, /load\.name/],
    [{ load: { name: 'a', every: 0 } }, /load\.every is 0/],
    [{ load: { name: 'a', goodFor: 500 } }, /goodFor 500/],
  ];
  for (const [options, words] of refused) {
    assert.throws(() => PlaneStreams.open(router, { subscriber, ...options }), words);
    assert.equal(router.workers(), []);
  }
});

test('so many questions at a time; ranks that never answered leave room for those that live', async () => {
  const slots = new AskSlots(4);
  const order: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (name: string, isCold: boolean) =>
    slots.run(() => {
      order.push(name);
      return new Promise((resolve) => ends.set(name, resolve));
    }, isCold);
  for (const name of ['c1', 'c2', 'c3']) ask(name, true);
  const leave = ask('c4', true);
  for (const name of ['w1', 'w2', 'w3']) ask(name, false);
  assert.equal(order, ['c1', 'c2', 'w1', 'w2']);
  assert.equal([slots.running, slots.waiting], [4, 3]);
  ends.get('c1')!();
  await settle();
  assert.is(order.at(-1), 'c3');
  leave();
  ends.get('w1')!();
  ends.get('c2')!();
  await settle();
  assert.is(order.at(-1), 'w3');
  assert.equal([slots.running, slots.waiting], [3, 0]);
});

test('routers tell each other their load, and good-bye', async () => {
  const plane = new FakePlane();
  const [a, b] = [
    await rigOf(plane, { load: { name: 'a' } }),
    await rigOf(plane, { load: { name: 'b', every: 50, atLeast: 1000, goodFor: 3000 } }),
  ];
  const foreign = () => b.router.workers()[0]!.ranks[0]!.foreignLoad.activeRequests;
  const decision = a.router.route({ tokens: new Uint32Array(100), now: 0 });
  a.clock.advance(50);
  assert.is(foreign(), 1);
  assert.is(b.router.stats().foreignLoad.routers, 1, 'its own reports are not taken for another’s');
  decision.lease.complete(60);
  a.clock.advance(50);
  assert.is(foreign(), 0);
  a.router.route({ tokens: new Uint32Array(100), now: 100 });
  a.clock.advance(50);
  assert.is(foreign(), 1);
  await a.streams.close();
  assert.is(foreign(), 0, 'good-bye');
  assert.is(b.router.stats().foreignLoad.routers, 0);
  await b.streams.close();
});

test('a router that dies returns its load after its last report’s time', async () => {
  const plane = new FakePlane();
  const [a, b] = [await rigOf(plane, { load: { name: 'a' } }), await rigOf(plane, { load: { name: 'b' } })];
  a.router.route({ tokens: new Uint32Array(100), now: 0 });
  a.clock.advance(50);
  // It says nothing any more.
  b.clock.advance(2999);
  const active = () => {
    b.router.route({ tokens: new Uint32Array(10), now: b.clock.now() }).lease.complete(b.clock.now());
    return b.router.workers()[0]!.ranks[0]!.foreignLoad.activeRequests;
  };
  assert.is(active(), 1);
  b.clock.advance(1);
  assert.is(active(), 0);
  assert.is(b.router.stats().foreignLoad.expired, 1);
  await a.streams.close();
  await b.streams.close();
});

test.run();
