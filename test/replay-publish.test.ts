// `moonroute replay --publish`: any subscriber gets the recorded frames again, byte for byte and in order, from a socket for each source.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Pace } from '../src/cli/replay-pace.js';
import { publishAll } from '../src/cli/replay-publish.js';
import { openFiles } from '../src/cli/replay-read.js';
import { headerLine, messageLine, monitorLine } from '../src/live/recording-write.js';
import { readCapture } from '../src/oracle/capture.js';
import { writeSequence } from '../src/wire/frames.js';

const folder = mkdtempSync(join(tmpdir(), 'moonroute-publish-'));
test.after(() => rmSync(folder, { recursive: true }));
const CAPTURE = 'test/fixtures/mooncake-captures/tp2_fa16_mamba16_late.jsonl';
const COMMAND = ['build/js/src/cli/main.js', 'replay'];

const frames = (sequence: number, bytes: number): Uint8Array[] => [
  Uint8Array.of(0x6b, 0x76),
  writeSequence(BigInt(sequence)),
  Uint8Array.from({ length: bytes }, (_, i) => (i * sequence) & 255),
];

/** A recording of two workers, and what each says. */
function recording(messages: number, everyMs: number, bytes: number) {
  const sources = ['a', 'b'].map((name) => ({ name, kind: 'worker', endpoint: 'tcp://127.0.0.1:1' }) as const);
  const said: Record<string, Uint8Array[][]> = { a: [], b: [] };
  const lines = [headerLine(Date.now(), sources), monitorLine(0, 'a', 'connected')];
  for (let i = 0; i < messages; i++) {
    const from = i % 3 === 0 ? 'b' : 'a';
    const message = frames(i, bytes);
    said[from]!.push(message);
    lines.push(messageLine(i * everyMs, from, 'worker', message));
  }
  const path = join(mkdtempSync(join(folder, 'r-')), 'pool.jsonl');
  writeFileSync(path, lines.join(''));
  return { path, said };
}

test('its options are refused where they mean nothing', () => {
  for (const args of [['--port', '5557'], ['--wait-for-subscriber']]) {
    const { status, stderr } = spawnSync(process.execPath, [...COMMAND, CAPTURE, ...args], { encoding: 'utf8' });
    assert.is(status, 1);
    assert.match(stderr, 'are for --publish');
  }
  const { status, stderr } = spawnSync(process.execPath, [...COMMAND, CAPTURE, '--publish', '--port', '99999'], {
    encoding: 'utf8',
  });
  assert.is.not(status, 0);
  assert.match(stderr, '"99999" is no port');
});

const zeromq = await import('zeromq').catch(() => null);
if (zeromq === null && !process.env['CI'])
  console.log('skipped: replay-publish over sockets (zeromq is not installed)');
else {
  if (zeromq === null) throw new Error('zeromq is not installed, and CI may not skip its tests');

  /** Lines that a command prints, one after the other. */
  const linesOf = (child: ChildProcess) => {
    let text = '';
    let waiting: (() => void) | null = null;
    child.stdout!.on('data', (chunk) => {
      text += chunk;
      waiting?.();
    });
    const next = async (): Promise<string> => {
      while (!text.includes('\n')) {
        await new Promise<void>((resolve) => {
          waiting = resolve;
        });
      }
      const [line = '', ...rest] = text.split('\n');
      text = rest.join('\n');
      return line;
    };
    return { next };
  };

  const received = async (endpoint: string, count: number): Promise<Uint8Array[][]> => {
    const socket = new zeromq.Subscriber({ receiveTimeout: 10_000 });
    socket.subscribe('');
    socket.connect(endpoint);
    const messages: Uint8Array[][] = [];
    try {
      while (messages.length < count) messages.push((await socket.receive()).map((frame) => new Uint8Array(frame)));
      return messages;
    } finally {
      socket.close();
    }
  };

  const published = async (args: readonly string[]) => {
    const child = spawn(process.execPath, [...COMMAND, ...args, '--publish', '--wait-for-subscriber', '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const { next } = linesOf(child);
    const { endpoints } = JSON.parse(await next()) as { endpoints: Record<string, string> };
    return { child, ended, endpoints, next };
  };

  test('each source has a socket, whose frames are those recorded, in their order', async () => {
    const { path, said } = recording(6000, 1, 2000);
    const { child, ended, endpoints, next } = await published([path]);
    try {
      assert.equal(Object.keys(endpoints), ['a', 'b']);
      for (const endpoint of Object.values(endpoints)) assert.match(endpoint, /^tcp:\/\/127\.0\.0\.1:\d+$/);
      const [a, b] = await Promise.all([received(endpoints['a']!, 4000), received(endpoints['b']!, 2000)]);
      assert.equal(a, said['a']);
      assert.equal(b, said['b']);
      assert.equal(JSON.parse(await next()), { sent: { a: 4000, b: 2000 } });
      assert.is(await ended, 0);
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  });

  test('captures are sent too, each as a source of its own', async () => {
    const { child, ended, endpoints } = await published([CAPTURE]);
    try {
      const wanted = readCapture(readFileSync(CAPTURE, 'utf8'), CAPTURE);
      assert.equal(await received(endpoints['tp2_fa16_mamba16_late']!, wanted.length), wanted);
      assert.is(await ended, 0);
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  });

  test('a subscriber that is slow makes it slow, and loses nothing', async () => {
    const { path, said } = recording(600, 1, 30_000);
    const endpoints: Record<string, string> = {};
    let ready: () => void = () => undefined;
    const bound = new Promise<void>((resolve) => {
      ready = resolve;
    });
    let done = false;
    const sent = publishAll(await openFiles([path]), {
      ...{ port: null, waitForSubscriber: true, pace: new Pace(Number.POSITIVE_INFINITY), highWaterMark: 5, ready },
      bound: (name, endpoint) => {
        endpoints[name] = endpoint;
      },
    }).finally(() => {
      done = true;
    });
    await bound;
    const subscribers = Object.entries(endpoints).map(([name, endpoint]) => {
      const socket = new zeromq.Subscriber({ receiveHighWaterMark: 1, receiveTimeout: 10_000 });
      socket.subscribe('');
      socket.connect(endpoint);
      return { name, socket };
    });
    try {
      // Long enough for all there is room for to be sent.
      await new Promise((resolve) => setTimeout(resolve, 500));
      assert.is(done, false);
      const all = await Promise.all(
        subscribers.map(async ({ name, socket }) => {
          const messages: Uint8Array[][] = [];
          while (messages.length < said[name]!.length)
            messages.push((await socket.receive()).map((frame) => new Uint8Array(frame)));
          return [name, messages] as const;
        }),
      );
      assert.equal(Object.fromEntries(all), said);
      assert.equal(await sent, { a: 400, b: 200 });
    } finally {
      for (const { socket } of subscribers) socket.close();
      await sent.catch(() => undefined);
    }
  });

  test('original speed keeps the times', async () => {
    const { path } = recording(7, 100, 10);
    const { child, ended, endpoints } = await published([path, '--speed', 'original']);
    try {
      // From b's first at 0 ms to a's last at 500 ms.
      const timed = async (name: string, count: number) => {
        await received(endpoints[name]!, count);
        return performance.now();
      };
      const [last, first] = await Promise.all([timed('a', 4), timed('b', 1)]);
      assert.ok(last - first > 450, `${last - first} ms`);
      assert.is(await ended, 0);
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  });
}

test.run();
