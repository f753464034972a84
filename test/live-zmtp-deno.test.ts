// Our sockets in Deno: the tests with raw peers run there as they are; and against libzmq in this process, through twenty restarts, every
// message and every loss is seen, in order, in the clear and under CURVE. The zeromq package itself can't do this there (denoland/deno#36317). The second is skipped, with
// a notice, where that package is not installed.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const zeromq = await import('zeromq').catch(() => null);

const RESTARTS = 20;
const CURVE_RESTARTS = 3;
const MESSAGES = 10;
const LONG_BYTES = 300_000;
const BASE = ['run', '--no-lock', '--no-remote'];
const FLAGS = [...BASE, '--allow-read', '--allow-env', '--allow-net'];
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 15_000; !holds(); await pause(2)) {
    if (Date.now() > end) throw new Error(`waited 15 s for ${what}`);
  }
}

for (const name of ['live-zmtp-socket', 'live-zmtp-curve']) {
  test(`${name} passes in Deno`, () => {
    const file = `build/js/test/${name}.test.js`;
    const { status, stdout, stderr } = spawnSync('node_modules/.bin/deno', [...BASE, '--allow-all', file], {
      encoding: 'utf8',
    });
    assert.is(status, 0, stdout + stderr);
    const [total, passed] = ['Total', 'Passed'].map((what) => Number(new RegExp(`${what}: +(\\d+)`).exec(stdout)?.[1]));
    assert.ok(total! > 0 && passed === total, stdout);
  });
}

if (zeromq === null && !process.env['CI']) console.log('skipped: live-zmtp-deno (zeromq is not installed)');
else {
  if (zeromq === null) throw new Error('zeromq is not installed, and CI may not skip its tests');

  /** A port that was just closed may be taken for a moment. */
  const bind = async (socket: { bind(endpoint: string): Promise<void> }, endpoint: string) => {
    for (const end = Date.now() + 5_000; ; await pause(5)) {
      try {
        return await socket.bind(endpoint);
      } catch (error) {
        if (Date.now() > end) throw error;
      }
    }
  };

  /** The server's options, and what the clients need to know. */
  const server = zeromq.curveKeyPair();
  const keys = { ...zeromq.curveKeyPair(), serverKey: server.publicKey };
  const scenes = [
    { how: 'in the clear', restarts: RESTARTS, options: {}, curve: null },
    {
      how: 'under CURVE',
      restarts: CURVE_RESTARTS,
      options: { curveServer: true, curveSecretKey: server.secretKey },
      curve: keys,
    },
  ];
  for (const { how, restarts, options, curve } of scenes) {
    test(`a subscriber and a dealer in Deno see every message and every loss of ${restarts} restarts, ${how}`, async () => {
      const newPublisher = () => new zeromq.XPublisher({ linger: 0, sendHighWaterMark: 0, ...options });
      const newRouter = () => new zeromq.Router({ linger: 0, ...options });
      let publisher = newPublisher();
      let router = newRouter();
      await publisher.bind('tcp://127.0.0.1:*');
      await router.bind('tcp://127.0.0.1:*');
      const endpoints = [publisher.lastEndpoint!, router.lastEndpoint!] as const;
      const deno = spawn('node_modules/.bin/deno', [
        ...FLAGS,
        'test/runtimes/deno-live.js',
        ...endpoints,
        JSON.stringify(curve),
      ]);
      const exit = once(deno, 'exit');
      const said: Record<string, string[]> = { subscriber: [], dealer: [] };
      const expected: Record<string, string[]> = { subscriber: [], dealer: [] };
      const errors: string[] = [];
      deno.stderr.on('data', (chunk) => errors.push(String(chunk)));
      createInterface(deno.stdout).on('line', (line) => {
        const { who, what } = JSON.parse(line) as { who: string; what: string };
        said[who]!.push(what);
      });
      const expectSoon = async (who: string, ...what: string[]) => {
        expected[who]!.push(...what);
        await until(`${who} ${what.at(-1)} ${errors.join('')}`, () => said[who]!.length >= expected[who]!.length);
      };
      try {
        for (let life = 0; life <= restarts; life++) {
          if (life > 0) {
            publisher = newPublisher();
            router = newRouter();
            await bind(publisher, endpoints[0]);
            await bind(router, endpoints[1]);
          }
          assert.is(String((await publisher.receive())[0]), '\x01kv');
          const [identity, delimiter, request] = await router.receive();
          assert.equal([delimiter!.length, String(request)], [0, 'start']);
          for (let i = 0; i < MESSAGES; i++) {
            await publisher.send(['kv', `${life}.${i}`, i === 5 ? Buffer.alloc(LONG_BYTES) : '']);
            await router.send([identity!, '', `${life}.${i}`]);
          }
          const numbers = Array.from({ length: MESSAGES }, (_, i) => i);
          const long = (i: number) => (i === 5 ? `${LONG_BYTES} bytes` : '');
          await expectSoon('subscriber', 'connected', ...numbers.map((i) => `kv|${life}.${i}|${long(i)}`));
          await expectSoon('dealer', 'connected', ...numbers.map((i) => `|${life}.${i}`));
          if (life === restarts) break;
          publisher.close();
          router.close();
          await expectSoon('subscriber', 'lost disconnect');
          await expectSoon('dealer', 'lost disconnect');
        }
        await pause(100); // some heartbeats
        await publisher.send(['kv', 'stop']);
        await expectSoon('subscriber', 'kv|stop');
        assert.equal(await Promise.race([exit, pause(5_000)]), [0, null], `it ends by itself ${errors.join('')}`);
        assert.equal(said, expected);
      } finally {
        deno.kill('SIGKILL');
        publisher.close();
        router.close();
      }
    });
  }
}

test.run();
