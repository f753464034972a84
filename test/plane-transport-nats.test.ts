// A plane over a real nats-server that is killed, restarted, too small, closed to strangers or set up by others.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  openPlanePublisher,
  openPlaneSubscriber,
  type PlaneTls,
  type StreamLimits,
} from '../src/live/plane/transport/index.js';
import type { PlaneMessage, PlaneNotice, PlanePublisher, PlaneSubscriber } from '../src/live/plane/transport.js';
import { hasNats, makeCertificate, NatsServer, type NatsServerOptions, tlsConfig } from './support/nats.js';
import { TcpGate } from './support/tcp-gate.js';

const MODEL = 'm';
const STREAM = 'MOONROUTE_m';
const RANK = { workerId: 1n, dpRank: 0 };
const PATIENCE = 15_000;
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE; !(await holds()); await pause(5)) {
    if (Date.now() > end) throw new Error(`waited ${PATIENCE} ms for ${what}`);
  }
}

const numbered = (number: number, length = 8): Uint8Array => {
  const payload = new Uint8Array(length);
  new DataView(payload.buffer).setUint32(0, number);
  return payload;
};
const numberOf = ({ payload }: PlaneMessage): number =>
  new DataView(payload.buffer, payload.byteOffset, payload.length).getUint32(0);
const from = (first: number, end: number): number[] => Array.from({ length: end - first }, (_, at) => first + at);

interface Settings {
  readonly url?: string;
  readonly stream?: Partial<StreamLimits>;
  readonly tls?: PlaneTls;
}
interface Side {
  readonly notices: PlaneNotice[];
  told(kind: PlaneNotice['kind']): string[];
}
interface Publishing extends Side {
  readonly publisher: PlanePublisher;
}
interface Listening extends Side {
  readonly subscriber: PlaneSubscriber;
  readonly numbers: number[];
}

class Scene {
  readonly server: NatsServer;
  readonly #closers: (() => Promise<unknown>)[] = [];

  constructor(server: NatsServer) {
    this.server = server;
  }

  async publisher({ url = this.server.url, ...more }: Settings = {}): Promise<Publishing> {
    const side = newSide();
    const onNotice = (notice: PlaneNotice) => side.notices.push(notice);
    const publisher = await openPlanePublisher(url, { model: MODEL, ranks: [RANK], onNotice, ...more });
    this.onClose(() => publisher.close());
    return { ...side, publisher };
  }

  async listen({ url = this.server.url, ...more }: Settings = {}, first = 0): Promise<Listening> {
    const side = newSide();
    const numbers: number[] = [];
    const subscriber = await openPlaneSubscriber(url, { model: MODEL, ...more });
    this.onClose(() => subscriber.close());
    await subscriber.open({
      onMessage: (message) => void (message.place! >= first && numbers.push(numberOf(message))),
      onNotice: (notice) => side.notices.push(notice),
      onLoad: () => {},
    });
    return { ...side, subscriber, numbers };
  }

  /** What the server says of the stream. */
  async stream(run = async (manager: Awaited<ReturnType<typeof jetstreamManager>>) => manager.streams.info(STREAM)) {
    const connection = await connect({ servers: this.server.url });
    try {
      return await run(await jetstreamManager(connection));
    } finally {
      await connection.close();
    }
  }

  onClose(close: () => Promise<unknown>): void {
    this.#closers.unshift(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers) await close();
    await this.server.close();
  }
}

function newSide(): Side {
  const notices: PlaneNotice[] = [];
  return {
    notices,
    told: (kind) =>
      notices
        .filter((notice) => notice.kind === kind)
        .map((notice) => ('detail' in notice ? notice.detail : notice.to)),
  };
}

function scene(what: string, run: (scene: Scene) => Promise<void>, options: NatsServerOptions = {}): void {
  test(what, async () => {
    const scene = new Scene(await NatsServer.start(options));
    try {
      await run(scene);
    } finally {
      await scene.close();
    }
  });
}

if (!hasNats) test.skip('all of it');
else {
  scene(
    'a server that is killed under load and comes back costs nothing: each batch is stored once and read once, in order',
    async (s) => {
      const [{ publisher, told }, early] = [await s.publisher(), await s.listen()];
      const taken: Promise<boolean>[] = [];
      const publish = setInterval(() => {
        for (let more = 0; more < 5; more++) taken.push(publisher.publish(RANK, numbered(taken.length, 500)));
      }, 1);
      for (let kills = 1; kills <= 2; kills++) {
        const before = taken.length;
        await until('some batches', () => taken.length > before + 300);
        await s.server.kill();
        await pause(50);
        await s.server.restart();
        await until(
          'the connections',
          () => told('connected').length > kills && early.told('connected').length > kills,
        );
      }
      clearInterval(publish);
      assert.ok((await Promise.all(taken)).every(Boolean));
      const late = await s.listen();
      for (const { numbers } of [early, late]) {
        await until('all batches', () => numbers.length >= taken.length);
        assert.equal(numbers, from(0, taken.length));
      }
      assert.equal([early.told('gap'), early.told('lost').length >= 2], [[], true]);
    },
  );

  scene(
    'a stream in memory is gone with its server: it is made anew, read from its beginning, and the gap is told',
    async (s) => {
      const settings: Settings = { stream: { storage: 'memory' } };
      const [{ publisher }, early] = [await s.publisher(settings), await s.listen(settings)];
      for (const number of from(0, 20)) await publisher.publish(RANK, numbered(number));
      await until('the first batches', () => early.numbers.length === 20);
      await s.server.restart();
      for (const number of from(20, 40)) assert.ok(await publisher.publish(RANK, numbered(number)));
      await until('the others', () => early.numbers.length === 40);
      assert.equal(early.numbers, from(0, 40));
      assert.is(early.told('gap').length, 1);
      assert.match(early.told('gap')[0]!, /made anew/);
      const late = await s.listen(settings);
      await until('what there is', () => late.numbers.length === 20);
      assert.equal(late.numbers, from(20, 40));
    },
  );

  scene('a stream that is deleted is made anew likewise', async (s) => {
    const [{ publisher }, listener] = [await s.publisher(), await s.listen()];
    assert.ok(await publisher.publish(RANK, numbered(0)));
    await until('the first batch', () => listener.numbers.length === 1);
    await s.stream(async (manager) => {
      await manager.streams.delete(STREAM);
      return null as never;
    });
    for (const number of from(1, 11)) assert.ok(await publisher.publish(RANK, numbered(number)));
    await until('the others', () => listener.numbers.length === 11);
    assert.equal(listener.numbers, from(0, 11));
    assert.is(listener.told('gap').length, 1);
  });

  scene('retention pushes out the oldest: who is late begins there, who was away is told of the gap', async (s) => {
    const settings: Settings = { stream: { maxMessages: 50 } };
    const { publisher } = await s.publisher(settings);
    const gate = await TcpGate.open(s.server.url.replace('nats:', 'tcp:'));
    s.onClose(() => gate.close());
    const away = await s.listen({ ...settings, url: gate.endpoint.replace('tcp:', 'nats:') });
    for (const number of from(0, 10)) await publisher.publish(RANK, numbered(number));
    await until('the first batches', () => away.numbers.length === 10);
    gate.shut();
    for (const number of from(10, 200)) await publisher.publish(RANK, numbered(number));
    const late = await s.listen(settings);
    await until('what there is', () => late.numbers.length === 50);
    assert.equal(late.numbers, from(150, 200));
    assert.equal(late.told('gap'), []);
    assert.equal(away.told('gap'), []);
    gate.reopen();
    await until('what there is', () => away.numbers.length === 60);
    assert.equal(away.numbers, [...from(0, 10), ...from(150, 200)]);
    assert.is(away.told('gap').length, 1);
    assert.match(away.told('gap')[0]!, /begins at 151, and was read up to 10/);
  });

  scene('a reader that is overtaken by the retention while it reads is told of the gap', async (s) => {
    const settings: Settings = { stream: { maxMessages: 100 } };
    const { publisher } = await s.publisher(settings);
    const side = newSide();
    const numbers: number[] = [];
    const subscriber = await openPlaneSubscriber(s.server.url, { model: MODEL, ...settings });
    s.onClose(() => subscriber.close());
    let free = () => {};
    const gate = new Promise<void>((done) => {
      free = done;
    });
    await subscriber.open({
      onMessage: (message) => {
        numbers.push(numberOf(message));
        return gate;
      },
      onNotice: (notice) => side.notices.push(notice),
      onLoad: () => {},
    });
    await publisher.publish(RANK, numbered(0));
    await until('the first batch', () => numbers.length === 1);
    for (let number = 1; number < 3001; number += 100) {
      await Promise.all(from(number, number + 100).map((each) => publisher.publish(RANK, numbered(each))));
    }
    free();
    await until('the last batch', () => numbers.at(-1) === 3000);
    assert.is(side.told('gap').length, 1);
    assert.match(side.told('gap')[0]!, /are gone before they were read/);
    // What one request had brought, then what there still is.
    assert.equal(numbers, [...from(0, numbers.length - 100), ...from(2901, 3001)]);
    assert.ok(numbers.length <= 1024 + 100, `${numbers.length}`);
  });

  scene('the stream is made with the limits, and one that is there is used as it is, and said so', async (s) => {
    const limits = { maxAge: 60_000, maxBytes: 1 << 20, maxMessages: 1000 };
    const { publisher } = await s.publisher({ stream: limits });
    assert.ok(await publisher.publish(RANK, numbered(0)));
    const { config } = await s.stream();
    assert.equal(
      [config.max_age, config.max_bytes, config.max_msgs, config.storage, config.discard, config.num_replicas],
      [60_000_000_000, 1 << 20, 1000, 'file', 'old', 1],
    );
    assert.equal(config.subjects, ['moonroute.m.events.>']);
    const other = await s.publisher({ stream: { ...limits, maxMessages: 5 } });
    const listener = await s.listen({ stream: { ...limits, storage: 'memory' } });
    assert.ok(await other.publisher.publish(RANK, numbered(1)));
    await until('both batches', () => listener.numbers.length === 2);
    assert.match(other.told('trouble').join(), /used as it is: max_msgs 1000, not 5$/);
    assert.match(listener.told('trouble').join(), /used as it is: storage file, not memory$/);
    assert.is((await s.stream()).config.max_msgs, 1000);
  });

  scene('a retry under the same id is stored once', async (s) => {
    const gate = await TcpGate.open(s.server.url.replace('nats:', 'tcp:'));
    s.onClose(() => gate.close());
    const { publisher } = await s.publisher({ url: gate.endpoint.replace('tcp:', 'nats:') });
    const listener = await s.listen();
    const taken: Promise<boolean>[] = [];
    for (let cuts = 0; cuts < 8; cuts++) {
      for (let more = 0; more < 200; more++) taken.push(publisher.publish(RANK, numbered(taken.length, 2000)));
      // Some are stored, and their confirmations are cut off.
      const before = listener.numbers.length;
      await until('some', () => listener.numbers.length > before);
      gate.cut();
    }
    assert.ok((await Promise.all(taken)).every(Boolean));
    await until('all batches', () => listener.numbers.length >= 1600);
    await pause(50);
    assert.equal(listener.numbers, from(0, 1600));
    assert.is((await s.stream()).state.messages, 1600);
  });

  scene('a connection that goes silent is given up', async (s) => {
    const gate = await TcpGate.open(s.server.url.replace('nats:', 'tcp:'));
    s.onClose(() => gate.close());
    const [{ publisher }, listener] = [
      await s.publisher(),
      await s.listen({ url: gate.endpoint.replace('tcp:', 'nats:') }),
    ];
    await publisher.publish(RANK, numbered(0));
    await until('the first batch', () => listener.numbers.length === 1);
    gate.freeze();
    await publisher.publish(RANK, numbered(1));
    await until('the loss', () => listener.told('lost').length + listener.told('trouble').length > 0);
    gate.thaw();
    await until('the second batch', () => listener.numbers.length === 2);
  });

  scene(
    "batches keep to the server's own largest message",
    async (s) => {
      const { publisher } = await s.publisher();
      const listener = await s.listen();
      await publisher.publish(RANK, numbered(0));
      assert.is(publisher.maxPayload, 65_536 - 1024);
      assert.ok(await publisher.publish(RANK, numbered(1, publisher.maxPayload)));
      assert.is(await publisher.publish(RANK, numbered(2, publisher.maxPayload + 1)), false);
      await until('both', () => listener.numbers.length === 2);
    },
    { config: 'max_payload: 65536' },
  );

  scene(
    'where the server takes larger messages than a plane has, the plane keeps to its own; large ones come through',
    async (s) => {
      const { publisher } = await s.publisher();
      const listener = await s.listen();
      await publisher.publish(RANK, numbered(0));
      assert.is(publisher.maxPayload, 8 << 20);
      for (const number of [1, 2, 3, 4, 5]) assert.ok(await publisher.publish(RANK, numbered(number, 8 << 20)));
      await until('all', () => listener.numbers.length === 6);
      assert.equal(listener.told('trouble'), []);
    },
    { config: 'max_payload: 33554432\nmax_pending: 67108864' },
  );

  for (const [how, config, credentials] of [
    ['a user and a password', 'authorization { user: ann, password: "p@ss/w" }', 'ann:p%40ss%2Fw'],
    ['a token', 'authorization { token: "t0k?en" }', 't0k%3Fen'],
  ] as const) {
    scene(
      `${how} in the URL let in; without, it is told and tried again`,
      async (s) => {
        const url = s.server.url.replace('//', `//${credentials}@`);
        const [{ publisher }, listener, stranger] = [
          await s.publisher({ url }),
          await s.listen({ url }),
          await s.listen(),
        ];
        assert.not.match(publisher.url, /@/);
        assert.ok(await publisher.publish(RANK, numbered(0)));
        await until('the batch', () => listener.numbers.length === 1);
        await until('two attempts', () => stranger.told('trouble').length >= 2);
        assert.match(stranger.told('trouble')[0]!, /authorization violation/i);
        assert.equal([...stranger.numbers, ...stranger.told('connected')], []);
      },
      { config },
    );
  }

  test('over TLS, with a certificate that is known, and not with one that is not', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'moonroute-tls-'));
    const files = makeCertificate(directory);
    const s = new Scene(await NatsServer.start({ config: tlsConfig(files) }));
    try {
      const url = `tls://localhost:${s.server.port}`;
      const tls = { caFile: files.certificate };
      const [{ publisher }, listener] = [await s.publisher({ url, tls }), await s.listen({ url, tls })];
      const stranger = await s.listen({ url });
      assert.ok(await publisher.publish(RANK, numbered(0)));
      await until('the batch', () => listener.numbers.length === 1);
      await until('a refusal', () => stranger.told('trouble').length > 0);
      assert.match(stranger.told('trouble')[0]!, /certificate/i);
    } finally {
      await s.close();
      await rm(directory, { recursive: true });
    }
  });

  scene(
    'a server without JetStream is told of, and asked again',
    async (s) => {
      const [{ publisher, told }, listener] = [await s.publisher(), await s.listen()];
      const taken = publisher.publish(RANK, numbered(0));
      await until('both sides to say so', () => told('trouble').length > 1 && listener.told('trouble').length > 1);
      assert.match(told('trouble')[0]!, /jetstream/i);
      assert.equal(told('connected'), []);
      await publisher.close();
      assert.is(await taken, false);
    },
    { jetstream: false },
  );

  test('a batch that was taken before the server said how little it takes is lost, and holds up no other', async () => {
    const s = new Scene(await NatsServer.start({ config: 'max_payload: 65536' }));
    try {
      await s.server.kill();
      const { publisher } = await s.publisher();
      const taken = [8, 500_000, 8].map((length, number) => publisher.publish(RANK, numbered(number, length)));
      await s.server.restart();
      assert.equal(await Promise.all(taken), [true, false, true]);
    } finally {
      await s.close();
    }
  });

  test('a plane may be opened before its server is there, and holds so many bytes until then', async () => {
    const s = new Scene(await NatsServer.start());
    try {
      await s.server.kill();
      const [{ publisher, told }, listener] = [await s.publisher(), await s.listen()];
      const length = 1 << 19;
      const taken = from(0, 129).map((number) => publisher.publish(RANK, numbered(number, length)));
      assert.is(await taken.at(-1), false);
      await until('an attempt', () => told('trouble').length > 0 && listener.told('trouble').length > 0);
      await s.server.restart();
      assert.ok((await Promise.all(taken.slice(0, -1))).every(Boolean));
      await until('all', () => listener.numbers.length === 128);
      assert.equal(listener.numbers, from(0, 128));
    } finally {
      await s.close();
    }
  });

  scene('a question waits for a connection, within its patience, and survives the loss of one', async (s) => {
    const { publisher } = await s.publisher();
    await publisher.serve((question) => Uint8Array.of(...question, 2));
    const { subscriber, told } = await s.listen();
    await until('the connection', () => told('connected').length === 1);
    await s.server.kill();
    // The publisher may come back later than the router: then the question comes too early.
    const asked = subscriber.ask(RANK, Uint8Array.of(1), PATIENCE).catch((error) => error.code);
    const impatient = subscriber.ask(RANK, Uint8Array.of(1), 30).catch((error) => error.code);
    assert.is(await impatient, 'plane-unanswered');
    await s.server.restart();
    const again = async (): Promise<number[]> => {
      try {
        return [...(await subscriber.ask(RANK, Uint8Array.of(1), PATIENCE))];
      } catch {
        return [];
      }
    };
    const outcome = await asked;
    assert.ok(outcome === 'plane-unanswered' || outcome.length === 2, String(outcome));
    await until('an answer', async () => (await again()).join() === '1,2');
  });

  scene("routers hear each other's load, and not their own", async (s) => {
    const heard: string[] = [];
    const routers: PlaneSubscriber[] = [];
    for (const name of ['a', 'b', 'c']) {
      const router = await openPlaneSubscriber(s.server.url, { model: MODEL });
      s.onClose(() => router.close());
      const side = newSide();
      await router.open({
        onMessage: () => {},
        onNotice: (notice) => side.notices.push(notice),
        onLoad: (payload) => heard.push(`${String.fromCharCode(payload[0]!)} to ${name}`),
      });
      await until('the connection', () => side.told('connected').length === 1);
      routers.push(router);
    }
    for (const [at, router] of routers.entries()) router.publishLoad(Uint8Array.of(97 + at));
    await until('all reports', () => heard.length >= 6);
    assert.equal(heard.sort(), ['a to b', 'a to c', 'b to a', 'b to c', 'c to a', 'c to b']);
  });
}

test.run();
