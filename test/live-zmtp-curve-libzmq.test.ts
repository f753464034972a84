// CURVE against the real libzmq: messages both ways, of all sizes, restarts, heartbeats from both sides, and every disagreement on keys or
// mechanism, which must say what is wrong. Skipped, with a notice, where the optional zeromq package is not installed.
import { createHash } from 'node:crypto';
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LiveStreams } from '../src/live/live-streams.js';
import {
  CurveKeys,
  type CurveOptions,
  type SocketEvent,
  type SocketHandlers,
  type SocketOptions,
  ZmtpDealer,
  ZmtpSubscriber,
} from '../src/live/zmtp/socket.js';
import { decodeZ85 } from '../src/live/zmtp/z85.js';
import { Router } from '../src/router/router.js';
import { Random } from './support/random.js';

const zeromq = await import('zeromq').catch(() => null);

const text = (frame: Uint8Array) => Buffer.from(frame).toString();
const digest = (frame: Uint8Array) => createHash('sha1').update(frame).digest('hex');
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
const QUICK: SocketOptions = { reconnectMs: 2, reconnectMaxMs: 20 };

async function until(what: string, holds: () => boolean, ms = 5_000): Promise<void> {
  for (const end = Date.now() + ms; !holds(); await pause(2)) {
    if (Date.now() > end) throw new Error(`waited ${ms} ms for ${what}`);
  }
}

/** All that a client says, in one list: `connected`, `lost CAUSE` and the texts of messages. */
class Log implements SocketHandlers {
  readonly said: string[] = [];
  readonly details: string[] = [];
  onMessage(frames: Uint8Array[]): void {
    this.said.push(frames.map(text).join('|'));
  }
  onEvent(event: SocketEvent): void {
    if (event.kind === 'lost') this.details.push(event.detail);
    if (event.kind !== 'retry') this.said.push(event.kind === 'lost' ? `lost ${event.cause}` : 'connected');
  }
}

if (zeromq === null && !process.env['CI']) console.log('skipped: live-zmtp-curve-libzmq (zeromq is not installed)');
else {
  if (zeromq === null) throw new Error('zeromq is not installed, and CI may not skip its tests');

  const server = zeromq.curveKeyPair();
  const client = zeromq.curveKeyPair();
  const curve: CurveOptions = { ...client, serverKey: server.publicKey };
  const SERVER = { linger: 0, curveServer: true, curveSecretKey: server.secretKey };

  const publish = async (options: object = SERVER, endpoint = 'tcp://127.0.0.1:*') => {
    const publisher = new zeromq.XPublisher({ linger: 0, sendHighWaterMark: 0, ...options });
    // A port that was just closed may be taken for a moment.
    for (const end = Date.now() + 5_000; ; await pause(5)) {
      try {
        await publisher.bind(endpoint);
        return publisher;
      } catch (error) {
        if (Date.now() > end) throw error;
      }
    }
  };

  /** A subscriber at an endpoint, until `run` is done. */
  const withSub = async (
    endpoint: string,
    options: SocketOptions,
    run: (log: Log, sub: ZmtpSubscriber) => Promise<void>,
    log = new Log(),
  ) => {
    const sub = new ZmtpSubscriber(endpoint, 'kv', log, { ...QUICK, curve, ...options });
    try {
      sub.open();
      await run(log, sub);
    } finally {
      sub.close();
    }
  };

  /** Runs something with a publisher under CURVE and a subscriber whose subscription has arrived. */
  const subscribed = async (
    run: (scene: { publisher: Awaited<ReturnType<typeof publish>>; log: Log; sub: ZmtpSubscriber }) => Promise<void>,
    options: SocketOptions = {},
    publisherOptions = {},
    handlers = new Log(),
  ) => {
    const publisher = await publish({ ...SERVER, ...publisherOptions });
    try {
      await withSub(
        publisher.lastEndpoint!,
        options,
        async (log, sub) => {
          assert.is(text((await publisher.receive())[0]!), '\x01kv');
          await run({ publisher, log, sub });
        },
        handlers,
      );
    } finally {
      publisher.close();
    }
  };

  test('our Z85 is libzmq’s, and keys may be bytes', async () => {
    const bytes = { serverKey: server.publicKey, publicKey: client.publicKey, secretKey: client.secretKey };
    const decoded = Object.fromEntries(Object.entries(bytes).map(([name, key]) => [name, decodeZ85(key)!]));
    await subscribed(
      async ({ publisher, log }) => {
        await publisher.send(['other', '1']);
        await publisher.send(['kv', '2']);
        await until('the message', () => log.said.length === 2);
        assert.equal(log.said, ['connected', 'kv|2']);
      },
      { curve: new CurveKeys(decoded as unknown as CurveOptions) },
    );
  });

  test('multipart messages and long frames, up to 5 MB, each in one buffer', async () => {
    const random = new Random(7);
    const sizes = [[0], [0, 0, 0], [1, 221, 222, 223, 255, 256], [65_535], [9, 8, 300_000], [5 << 20], [3, 2 << 20, 5]];
    const messages = sizes.map((message) =>
      ['kv', ...message].map((one) =>
        typeof one === 'string'
          ? Buffer.from(one)
          : Buffer.from(Uint8Array.from({ length: one }, () => random.int(256))),
      ),
    );
    const got: Uint8Array[][] = [];
    const log = new Log();
    log.onMessage = (frames) => got.push(frames);
    const run = async ({ publisher }: { publisher: Awaited<ReturnType<typeof publish>> }) => {
      for (const message of messages) await publisher.send(message);
      await until('all of them', () => got.length === messages.length, 10_000);
    };
    await subscribed(run, {}, {}, log);
    assert.equal(
      got.map((one) => one.map(digest)),
      messages.map((one) => one.map(digest)),
    );
    for (const frames of got) assert.ok(frames.every((one) => one.buffer === frames[0]!.buffer));
  });

  test('5,000 messages, all and in order, with a pause', async () => {
    const COUNT = 5_000;
    const log = new Log();
    await subscribed(
      async ({ publisher, sub }) => {
        for (let i = 0; i < COUNT; i++) {
          if (i === 1_000) sub.pause();
          if (i === 2_000) sub.resume();
          await publisher.send(['kv', `${i}`, Buffer.alloc(i % 300, 'x')]);
        }
        await until('all of them', () => log.said.length > COUNT, 20_000);
        const wanted = Array.from({ length: COUNT }, (_, i) => `kv|${i}|${'x'.repeat(i % 300)}`);
        assert.equal(log.said, ['connected', ...wanted]);
      },
      {},
      {},
      log,
    );
  });

  test('restarts of the publisher: the loss behind its last message, before the next connection', async () => {
    let publisher = await publish();
    const endpoint = publisher.lastEndpoint!;
    const expected: string[] = [];
    try {
      await withSub(endpoint, {}, async (log) => {
        for (let life = 0; life < 4; life++) {
          if (life > 0) publisher = await publish(SERVER, endpoint);
          await publisher.receive();
          for (let i = 0; i < 5; i++) await publisher.send(['kv', `${life}.${i}`]);
          await until('its last message', () => log.said.at(-1) === `kv|${life}.4`);
          publisher.close();
          await until('the loss', () => log.said.at(-1) !== `kv|${life}.4`);
          expected.push('connected', ...Array.from({ length: 5 }, (_, i) => `kv|${life}.${i}`), 'lost disconnect');
        }
        assert.equal(
          log.said.filter((said) => said !== 'lost refused'),
          expected,
        );
      });
    } finally {
      publisher.close();
    }
  });

  test('heartbeats under CURVE, of the publisher and of ours', async () => {
    const asked = { heartbeatInterval: 30, heartbeatTimeout: 150, heartbeatTimeToLive: 1_000 };
    for (const publisherOptions of [asked, {}]) {
      await subscribed(
        async ({ publisher, log }) => {
          await pause(500);
          await publisher.send('kv still there');
          await until('the message', () => log.said.length > 1);
          assert.equal(log.said, ['connected', 'kv still there']);
        },
        { heartbeatMs: 40, heartbeatTimeoutMs: 200 },
        publisherOptions,
      );
    }
  });

  test('a dealer and a router, with the empty delimiter both ways', async () => {
    const router = new zeromq.Router(SERVER);
    await router.bind('tcp://127.0.0.1:*');
    const log = new Log();
    const dealer = new ZmtpDealer(router.lastEndpoint!, log, { ...QUICK, curve });
    try {
      dealer.open();
      assert.is(dealer.send([Buffer.from('too early')]), false);
      await until('the connection', () => dealer.connected);
      assert.is(dealer.send([new Uint8Array(0), Buffer.from('from 5')]), true);
      const [identity, delimiter, start, ...more] = await router.receive();
      assert.equal([delimiter!.length, text(start!), more.length], [0, 'from 5', 0]);
      const big = Buffer.alloc(300_000, 'x');
      await router.send([identity!, '', 'topic', '5', 'payload']);
      await router.send([identity!, '', big]);
      await until('both replies', () => log.said.length === 3);
      assert.equal(log.said, ['connected', '|topic|5|payload', `|${big}`]);
      assert.is(dealer.send([big, new Uint8Array(0)]), true);
      const [, echo, last] = await router.receive();
      assert.equal([digest(echo!), last!.length], [digest(big), 0]);
    } finally {
      dealer.close();
      router.close();
    }
  });

  /** Waits for a loss that says it, and asserts that there was no connection and no key in what was said. */
  const refusedWith = async (endpoint: string, options: SocketOptions, says: RegExp) => {
    await withSub(endpoint, options, async (log) => {
      await until(`the loss that says ${says}`, () => log.details.some((detail) => says.test(detail)));
      assert.ok(
        log.said.every((said) => said === 'lost protocol'),
        log.details.join('\n'),
      );
      for (const key of [...Object.values(client), ...Object.values(server)]) {
        assert.not.ok(log.details.join().includes(key));
      }
    });
  };

  test('wrong server keys, and peers of another mechanism, are losses that say so', async () => {
    const [encrypted, open, plain, otherClient] = [
      await publish(),
      await publish({}),
      await publish({ plainServer: true }),
      await publish({
        curveServerKey: server.publicKey,
        curvePublicKey: client.publicKey,
        curveSecretKey: client.secretKey,
      }),
    ];
    const foreign = { ...curve, serverKey: zeromq.curveKeyPair().publicKey };
    try {
      await refusedWith(encrypted.lastEndpoint!, { curve: foreign }, /^curve-refused: .*HELLO.*serverKey/);
      await refusedWith(encrypted.lastEndpoint!, { curve: null }, /^greeting-mechanism: .*"CURVE".*is NULL/);
      await refusedWith(open.lastEndpoint!, {}, /^greeting-mechanism: .*"NULL".*is CURVE/);
      await refusedWith(plain.lastEndpoint!, {}, /^greeting-mechanism: .*"PLAIN".*is CURVE/);
      await refusedWith(otherClient.lastEndpoint!, {}, /^handshake-order: .*HELLO before its WELCOME/);
    } finally {
      for (const one of [encrypted, open, plain, otherClient]) one.close();
    }
  });

  test('live streams with keys: events, replay and the store’s stream are all under CURVE', async () => {
    const [events, store] = [await publish(), await publish()];
    const replay = new zeromq.Router(SERVER);
    await replay.bind('tcp://127.0.0.1:*');
    const router = await Router.create({ index: { bytes: 1 << 20 } });
    const lines: string[] = [];
    const live = LiveStreams.open(router, {
      workers: [{ id: 'w0', events: events.lastEndpoint!, replay: replay.lastEndpoint! }],
      store: { masters: [{ events: store.lastEndpoint!, http: null }] },
      log: (level, line) => lines.push(`${level} ${line}`),
      curve,
    });
    try {
      for (const publisher of [events, store]) assert.equal([...(await publisher.receive())[0]!], [1]);
      await until('both connections', () => live.status().workers[0]!.connected && live.status().store!.connected);
      const sequence = Buffer.alloc(8);
      sequence.writeUInt8(5, 7);
      await events.send(['', sequence, encode([1, [], null])]);
      const [, delimiter, start] = await replay.receive();
      assert.equal([delimiter!.length, start!.length], [0, 8], 'what was missed is asked for');
      assert.not.ok(
        lines.some((line) => /^(warn|error)/.test(line)),
        lines.join('\n'),
      );
      for (const key of Object.values(curve)) assert.not.ok(lines.join().includes(key as string));
    } finally {
      await live.close();
      for (const socket of [events, store, replay]) socket.close();
    }
    const wrong = { ...curve, secretKey: 'too short' };
    assert.throws(
      () => LiveStreams.open(router, { curve: wrong }),
      (error: Error & { code?: string }) => error.code === 'curve-keys',
    );
  });

  test.run();
}
