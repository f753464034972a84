// What an event plane's transport does, the same over ZMQ and over NATS JetStream, on real sockets: one table of behaviours, run on both.
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openPlanePublisher, openPlaneSubscriber } from '../src/live/plane/transport/index.js';
import type {
  PlaneMessage,
  PlaneNotice,
  PlanePublisher,
  PlaneRank,
  PlaneSubscriber,
} from '../src/live/plane/transport.js';
import { hasNats, NatsServer } from './support/nats.js';

const MODEL = 'org/a model.v1';
const PATIENCE = 10_000;
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + PATIENCE; !holds(); await pause(2)) {
    if (Date.now() > end) throw new Error(`waited ${PATIENCE} ms for ${what}`);
  }
}

const rank = (workerId: number, dpRank = 0): PlaneRank => ({ workerId: BigInt(workerId), dpRank });
const numbered = (number: number, length = 8): Uint8Array => {
  const payload = new Uint8Array(length);
  new DataView(payload.buffer).setUint32(0, number);
  return payload;
};
const numberOf = ({ payload }: PlaneMessage): number =>
  new DataView(payload.buffer, payload.byteOffset, payload.length).getUint32(0);
const upTo = (count: number): number[] => [...Array(count).keys()];

/** One subscriber, and all that it was told. */
interface Listener {
  readonly subscriber: PlaneSubscriber & { readonly loadUrl: string | null };
  readonly messages: PlaneMessage[];
  readonly notices: PlaneNotice[];
  readonly loads: Uint8Array[];
  /** Numbers of a rank's batches, in the order in which they came. */
  numbers(of: PlaneRank): number[];
  told(kind: PlaneNotice['kind']): number;
}

/** A transport under test. */
interface Plane {
  readonly name: string;
  /** Late subscribers get what was published before. */
  readonly keepsLog: boolean;
  publisher(ranks: readonly PlaneRank[]): Promise<PlanePublisher>;
  /** One on the address of another that is closed. */
  again(publisher: PlanePublisher, ranks: readonly PlaneRank[]): Promise<PlanePublisher>;
  urls(publishers: readonly PlanePublisher[]): string | readonly string[];
  close(): Promise<void>;
}

async function freePorts(): Promise<number> {
  for (;;) {
    const [first, second] = [createServer(), createServer()];
    await new Promise<void>((done) => first.listen(0, '127.0.0.1', done));
    const { port } = first.address() as AddressInfo;
    const free = await new Promise<boolean>((done) => {
      second.on('error', () => done(false));
      second.listen(port + 1, '127.0.0.1', () => done(true));
    });
    await Promise.all([first, second].map((server) => new Promise((done) => server.close(done))));
    if (free) return port;
  }
}

async function overZmq(): Promise<Plane> {
  const open = (url: string, ranks: readonly PlaneRank[]) => openPlanePublisher(url, { model: MODEL, ranks });
  return {
    name: 'ZMQ',
    keepsLog: false,
    publisher: async (ranks) => open(`tcp://127.0.0.1:${await freePorts()}`, ranks),
    again: (publisher, ranks) => open(publisher.url, ranks),
    urls: (publishers) => publishers.map(({ url }) => url),
    close: async () => {},
  };
}

async function overNats(): Promise<Plane> {
  const server = await NatsServer.start();
  const open = async (ranks: readonly PlaneRank[]) => {
    let connected = false;
    const onNotice = ({ kind }: PlaneNotice) => {
      connected ||= kind === 'connected';
    };
    const publisher = await openPlanePublisher(server.url, { model: MODEL, ranks, onNotice });
    await until('the publisher to connect', () => connected);
    return publisher;
  };
  return {
    name: 'NATS',
    keepsLog: true,
    publisher: open,
    again: (_, ranks) => open(ranks),
    urls: () => server.url,
    close: () => server.close(),
  };
}

/** Runs a test with what it opened closed behind it. */
async function withPlane(
  open: () => Promise<Plane>,
  run: (plane: Plane, tools: Tools) => Promise<void>,
): Promise<void> {
  const plane = await open();
  const closers: (() => Promise<void>)[] = [];
  const tools: Tools = {
    publisher: async (...ranks) => {
      const publisher = await plane.publisher(ranks);
      closers.push(() => publisher.close());
      return publisher;
    },
    again: async (publisher, ...ranks) => {
      const next = await plane.again(publisher, ranks);
      closers.push(() => next.close());
      return next;
    },
    listen: async (publishers, onMessage) => {
      const subscriber = await openPlaneSubscriber(plane.urls(publishers), { model: MODEL });
      closers.push(() => subscriber.close());
      const messages: PlaneMessage[] = [];
      const notices: PlaneNotice[] = [];
      const loads: Uint8Array[] = [];
      await subscriber.open({
        onMessage: (message) => {
          messages.push(message);
          return onMessage?.(message);
        },
        onNotice: (notice) => notices.push(notice),
        onLoad: (payload) => loads.push(payload),
      });
      const listener: Listener = {
        subscriber,
        messages,
        notices,
        loads,
        numbers: (of) =>
          messages.filter((m) => m.rank.workerId === of.workerId && m.rank.dpRank === of.dpRank).map(numberOf),
        told: (kind) => notices.filter((notice) => notice.kind === kind).length,
      };
      await until('the connections', () => listener.told('connected') >= (plane.keepsLog ? 1 : publishers.length));
      return listener;
    },
  };
  try {
    await run(plane, tools);
  } finally {
    for (const close of closers.reverse()) await close();
    await plane.close();
  }
}

interface Tools {
  publisher(...ranks: PlaneRank[]): Promise<PlanePublisher>;
  again(publisher: PlanePublisher, ...ranks: PlaneRank[]): Promise<PlanePublisher>;
  listen(
    publishers: readonly PlanePublisher[],
    onMessage?: (message: PlaneMessage) => void | Promise<void>,
  ): Promise<Listener>;
}

const planes = [{ name: 'ZMQ', open: overZmq }];
if (hasNats) planes.push({ name: 'NATS', open: overNats });
else test.skip('NATS');

for (const { name, open } of planes) {
  const behaves = (what: string, run: (plane: Plane, tools: Tools) => Promise<void>) =>
    test(`${name}: ${what}`, () => withPlane(open, run));

  behaves('batches of each rank come in order, to every subscriber', async (_, { publisher, listen }) => {
    const [one, two] = [await publisher(rank(1), rank(1, 1)), await publisher(rank(2))];
    const listeners = [await listen([one, two]), await listen([one, two]), await listen([one, two])];
    const taken: Promise<boolean>[] = [];
    for (const number of upTo(500)) {
      taken.push(one.publish(rank(1), numbered(number)), one.publish(rank(1, 1), numbered(number)));
      taken.push(two.publish(rank(2), numbered(number, 5000)));
    }
    assert.ok((await Promise.all(taken)).every(Boolean));
    for (const listener of listeners) {
      await until('all batches', () => listener.messages.length >= 1500);
      for (const of of [rank(1), rank(1, 1), rank(2)]) assert.equal(listener.numbers(of), upTo(500));
      assert.is(listener.told('gap'), 0);
      assert.is(listener.told('trouble'), 0);
    }
  });

  behaves(
    'a rank of the largest numbers, and a payload of the largest size, come as they are',
    async (_, { publisher, listen }) => {
      const largest = { workerId: (1n << 64n) - 1n, dpRank: 0xffff_ffff };
      const one = await publisher(largest);
      const listener = await listen([one]);
      const payload = Uint8Array.from({ length: one.maxPayload }, (__, at) => at * 7);
      assert.ok(await one.publish(largest, payload));
      await until('the batch', () => listener.messages.length === 1);
      assert.equal(listener.messages[0]!.rank, largest);
      assert.is(Buffer.compare(listener.messages[0]!.payload, payload), 0);
    },
  );

  behaves('a payload above the limit is refused, and what follows is not held up', async (_, { publisher, listen }) => {
    const one = await publisher(rank(1));
    const listener = await listen([one]);
    assert.is(await one.publish(rank(1), new Uint8Array(one.maxPayload + 1)), false);
    assert.ok(await one.publish(rank(1), numbered(1)));
    await until('the batch', () => listener.messages.length === 1);
  });

  behaves('a question is answered by the publisher that has the rank', async (_, { publisher, listen }) => {
    const [one, two] = [await publisher(rank(1)), await publisher(rank(2), rank(3))];
    await one.serve((question) => Uint8Array.of(1, ...question));
    await two.serve(async (question) => {
      await pause(5);
      return Uint8Array.of(2, ...question);
    });
    const { subscriber } = await listen([one, two]);
    const ask = async (of: PlaneRank) => [...(await subscriber.ask(of, Uint8Array.of(9), PATIENCE))];
    // Nothing was published yet: over ZMQ nobody knows whose the rank is.
    assert.equal(await Promise.all([ask(rank(1)), ask(rank(2)), ask(rank(3))]), [
      [1, 9],
      [2, 9],
      [2, 9],
    ]);
    await one.publish(rank(1), numbered(0));
    assert.equal(
      await Promise.all(upTo(10).map(() => ask(rank(1)))),
      upTo(10).map(() => [1, 9]),
    );
  });

  behaves('an answer may be as long as a payload, and no longer', async (_, { publisher, listen }) => {
    const one = await publisher(rank(1));
    let length = 0;
    await one.serve(() => new Uint8Array(length));
    const { subscriber } = await listen([one]);
    length = one.maxPayload;
    assert.is((await subscriber.ask(rank(1), Uint8Array.of(1), PATIENCE)).length, length);
    length++;
    await unanswered(subscriber.ask(rank(1), Uint8Array.of(1), PATIENCE), /above the \d+ that the transport takes/);
  });

  behaves(
    'a question is unanswered where nobody has the rank, answering fails or takes too long',
    async (_, { publisher, listen }) => {
      const one = await publisher(rank(1), rank(2));
      await one.serve((question) => {
        if (question[0] === 1) throw new Error('index is broken');
        return new Promise(() => {});
      });
      const { subscriber } = await listen([one]);
      await unanswered(subscriber.ask(rank(7), Uint8Array.of(1), PATIENCE), /no responders|no publisher has this rank/);
      await unanswered(subscriber.ask(rank(1), Uint8Array.of(1), PATIENCE), /index is broken/);
      await unanswered(subscriber.ask(rank(2), Uint8Array.of(2), 50), /50 ms|timeout/);
    },
  );

  behaves(
    'a late subscriber gets the log where there is one, else what comes from then on',
    async (plane, { publisher, listen }) => {
      const one = await publisher(rank(1));
      for (const number of upTo(300)) assert.ok(await one.publish(rank(1), numbered(number)));
      const late = await listen([one]);
      await one.publish(rank(1), numbered(300));
      const expected = plane.keepsLog ? upTo(301) : [300];
      await until('the batches', () => late.messages.length >= expected.length);
      assert.equal(late.numbers(rank(1)), expected);
      const places = late.messages.map(({ place }) => place);
      assert.equal(places, plane.keepsLog ? upTo(301).map((at) => BigInt(at + 1)) : [null]);
    },
  );

  behaves('a publisher that begins anew on its address is heard again', async (plane, { publisher, again, listen }) => {
    const one = await publisher(rank(1));
    await one.serve(() => Uint8Array.of(1));
    const listener = await listen([one]);
    await one.publish(rank(1), numbered(0));
    await until('the first life', () => listener.messages.length === 1);
    await one.close();
    assert.is(await one.publish(rank(1), numbered(1)), false);
    const two = await again(one, rank(1));
    await two.serve(() => Uint8Array.of(2));
    assert.equal([...(await listener.subscriber.ask(rank(1), Uint8Array.of(0), PATIENCE))], [2]);
    await until('the second life', () => {
      void two.publish(rank(1), numbered(2));
      return listener.messages.length > 1;
    });
    assert.equal(listener.numbers(rank(1)).slice(0, 2), [0, 2]);
    // Over ZMQ what it published before the subscriber was back is missed, and is told of.
    if (plane.keepsLog) assert.is(listener.told('gap'), 0);
  });

  behaves(
    'a handler that takes its time gets every batch, one at a time, in order',
    async (_, { publisher, listen }) => {
      const one = await publisher(rank(1));
      let running = 0;
      let most = 0;
      const listener = await listen([one], async () => {
        most = Math.max(most, ++running);
        await pause(1);
        running--;
      });
      await Promise.all(upTo(400).map((number) => one.publish(rank(1), numbered(number))));
      await until('all batches', () => listener.messages.length === 400);
      assert.equal(listener.numbers(rank(1)), upTo(400));
      assert.is(most, 1);
    },
  );

  behaves('a handler that stands still holds up its sources, and nothing grows', async (_, { publisher, listen }) => {
    const one = await publisher(rank(1));
    let free = () => {};
    const gate = new Promise<void>((done) => {
      free = done;
    });
    const listener = await listen([one], () => gate);
    const big = 64 << 10;
    const before = process.memoryUsage().arrayBuffers;
    const count = 4000; // 256 MB
    for (let number = 0; number < count; number += 20) {
      await Promise.all(upTo(20).map((at) => one.publish(rank(1), numbered(number + at, big))));
    }
    await pause(100);
    assert.is(listener.messages.length, 1);
    const grown = process.memoryUsage().arrayBuffers - before;
    assert.ok(grown < 160 << 20, `${grown >> 20} MiB more`);
    free();
    // What comes then is in order; over ZMQ the socket may have dropped some, and says so.
    await until('a batch behind it', () => {
      void one.publish(rank(1), numbered(count));
      return listener.numbers(rank(1)).includes(count);
    });
    const numbers = listener.numbers(rank(1)).filter((number) => number < count);
    assert.equal(
      numbers,
      [...numbers].sort((a, b) => a - b),
    );
    if (numbers.length < count) assert.ok(listener.told('gap') > 0);
  });

  behaves('a handler that throws costs its batch alone, and is told of', async (_, { publisher, listen }) => {
    const one = await publisher(rank(1));
    const listener = await listen([one], (message) => {
      if (numberOf(message) === 1) throw new Error('bad batch');
    });
    for (const number of upTo(3)) await one.publish(rank(1), numbered(number));
    await until('all batches', () => listener.messages.length === 3);
    assert.equal(
      listener.notices.filter(({ kind }) => kind === 'trouble'),
      [{ kind: 'trouble', detail: "a batch's handler failed: bad batch" }],
    );
  });

  behaves('after close nothing is taken, asked or told any more', async (_, { publisher, listen }) => {
    const one = await publisher(rank(1));
    await one.serve(() => new Promise(() => {}));
    const listener = await listen([one]);
    const asked = listener.subscriber.ask(rank(1), Uint8Array.of(1), PATIENCE);
    await pause(20);
    await listener.subscriber.close();
    await rejects(asked, 'plane-closed');
    await rejects(listener.subscriber.ask(rank(1), Uint8Array.of(1), PATIENCE), 'plane-closed');
    const notices = listener.notices.length;
    await one.publish(rank(1), numbered(1));
    listener.subscriber.publishLoad(Uint8Array.of(1));
    await one.close();
    await one.close();
    await listener.subscriber.close();
    assert.is(listener.messages.length, 0);
    assert.is(listener.notices.length, notices);
  });
}

async function rejects(promise: Promise<unknown>, code: string): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    assert.is((error as { code?: string }).code, code, String(error));
    return error as Error;
  }
  throw new Error(`no ${code}`);
}

async function unanswered(promise: Promise<unknown>, why: RegExp): Promise<void> {
  assert.match((await rejects(promise, 'plane-unanswered')).message, why);
}

test.run();
