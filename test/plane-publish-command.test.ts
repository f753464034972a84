// `moonroute publish` as a process: beside a simulated worker, over ZMQ, to a subscriber; its lines, its good-bye, and what it refuses.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SimulatedWorker } from '../src/fleet/worker.js';
import { openPlaneSubscriber } from '../src/live/plane/transport/index.js';
import { EventBatchReader, type RouterEvent } from '../src/wire/envelope/index.js';
import { complete, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { hasNats, NatsServer } from './support/nats.js';
import { said } from './support/plane-drafts.js';

const MAIN = new URL('../src/cli/main.js', import.meta.url).pathname;
const NEEDED = ['--worker', 'tcp://127.0.0.1:1', '--to', 'tcp://127.0.0.1:0', '--model', 'm', '--id', '7'];

interface Running {
  readonly process: ChildProcess;
  readonly out: string[];
  readonly err: string[];
}

function publish(...args: readonly string[]): Running {
  const child = spawn(process.execPath, [MAIN, 'publish', ...args]);
  const running: Running = { process: child, out: [], err: [] };
  for (const [stream, lines] of [
    [child.stdout, running.out],
    [child.stderr, running.err],
  ] as const) {
    let rest = '';
    stream.setEncoding('utf8').on('data', (text: string) => {
      const parts = (rest + text).split('\n');
      rest = parts.pop()!;
      lines.push(...parts);
    });
  }
  return running;
}

async function ended({ process: child }: Running): Promise<number | null> {
  if (child.exitCode === null) await once(child, 'exit');
  return child.exitCode;
}

const REFUSED: readonly [what: string, args: readonly string[], says: RegExp][] = [
  ['no number', ['--id', '-1'], /no worker's number/],
  ['a number past 2^64', ['--id', '18446744073709551616'], /no worker's number/],
  ['a timeout above 15 s', ['--batching-timeout', '16s'], /batching timeout is 16000 ms/],
  ['ranks that are none', ['--dp-ranks', '4-2'], /names no ranks/],
  ['no ranks', ['--dp-ranks', '0'], /names no ranks/],
  ['a worker’s address that is none', ['--worker', 'http://127.0.0.1'], /endpoint is "http:/],
  ['a plane that is none', ['--to', 'kafka://127.0.0.1'], /kafka/],
  ['a retention without a log', ['--retention', '1min'], /over ZMQ/],
  ['tokens that are none', ['--block-size', '0'], /block size is 0/],
];

for (const [what, args, says] of REFUSED)
  test(`${what}: refused`, async () => {
    if (zeromq === null) return;
    const running = publish(...NEEDED, ...args);
    assert.is(await ended(running), 1);
    assert.match(running.err.join('\n'), says);
    assert.is(running.out.length, 0);
  });

test('the help says what it is for, with examples', async () => {
  const running = publish('--help');
  assert.is(await ended(running), 0);
  const text = running.out.join('\n');
  for (const option of [
    '--worker',
    '--to',
    '--model',
    '--id',
    '--replay',
    '--dp-ranks',
    '--block-size',
    '--batching-timeout',
  ])
    assert.match(text, option);
  for (const option of ['--topic', '--retention', '--json', 'moonroute publish --worker tcp://'])
    assert.match(text, option);
});

test('a subscriber hears what the worker holds; Ctrl-C clears the rank and says the sums', async () => {
  if (zeromq === null) return;
  const worker = await SimulatedWorker.start({ gpuBlocks: 200 });
  const running = publish(
    ...['--worker', worker.eventsEndpoints[0]!, '--replay', worker.replayEndpoints![0]!, '--to', 'tcp://127.0.0.1:0'],
    ...['--model', 'llama', '--id', '18446744073709551615', '--json', '--every', '100ms'],
  );
  const events: RouterEvent[] = [];
  try {
    await until('its first line', () => running.out.length > 0);
    const opened = JSON.parse(running.out[0]!);
    assert.is(opened.id, '18446744073709551615');
    const subscriber = await openPlaneSubscriber(opened.url, { model: 'llama' });
    try {
      let connected = false;
      await subscriber.open({
        onMessage: ({ payload }) => {
          events.push(...new EventBatchReader().read(payload).events);
        },
        onNotice: ({ kind }) => {
          connected ||= kind === 'connected';
        },
        onLoad: () => {},
      });
      await until('the connection', () => connected);
      let name = 0;
      await until('blocks', async () => {
        await complete(worker.httpUrl, tokensOf(name++, 8 * 16 + 1));
        return events.some(({ data }) => data.kind === 'stored');
      });
      running.process.kill('SIGINT');
      assert.is(await ended(running), 0);
      await until('the good-bye', () => events.length > 0 && said(events.at(-1)!) === 'clear');
      const last = JSON.parse(running.out.at(-1)!);
      assert.is(last.kind, 'counters');
      assert.ok(last.eventsOut >= 3 && last.blocksOut >= 8 && last.queuedEvents === 0);
      assert.match(running.err.at(-1)!, /events in, .* blocks, .* merged, .* deduplicated, .* lag /);
    } finally {
      await subscriber.close();
    }
  } finally {
    running.process.kill('SIGKILL');
    await worker.kill();
  }
});

test('over NATS: what a worker says while the server is down is published when it is back, in order and without a gap', async () => {
  if (zeromq === null || !hasNats) return;
  const server = await NatsServer.start();
  const worker = await SimulatedWorker.start({ gpuBlocks: 200 });
  const running = publish(
    ...['--worker', worker.eventsEndpoints[0]!, '--replay', worker.replayEndpoints![0]!, '--to', server.url],
    ...[
      '--model',
      'llama',
      '--id',
      '7',
      '--json',
      '--every',
      '100ms',
      '--retention',
      '1min',
      '--retention-bytes',
      '10MB',
    ],
  );
  const counted = () => JSON.parse(running.out.at(-1)!);
  try {
    await until('what the worker says', async () => {
      await complete(worker.httpUrl, tokensOf(1, 8 * 16 + 1));
      return running.out.length > 1 && counted().blocksOut >= 8 && counted().queuedEvents === 0;
    });
    await server.kill();
    for (let name = 2; name < 6; name++) await complete(worker.httpUrl, tokensOf(name, 8 * 16 + 1));
    await until('that it waits', () => counted().blocksOut >= 40);
    await server.restart();
    await until('that it went', () => counted().queuedEvents === 0 && counted().messagesOut >= 3);
    // A router that comes late has all of it from the log.
    const events: RouterEvent[] = [];
    const subscriber = await openPlaneSubscriber(server.url, { model: 'llama' });
    try {
      await subscriber.open({
        onMessage: ({ payload }) => {
          events.push(...new EventBatchReader().read(payload).events);
        },
        onNotice: () => {},
        onLoad: () => {},
      });
      running.process.kill('SIGTERM');
      assert.is(await ended(running), 0);
      await until('the good-bye', () => events.length > 1 && said(events.at(-1)!) === 'clear');
    } finally {
      await subscriber.close();
    }
    assert.equal(
      events.map(({ eventId }) => Number(eventId)),
      events.map((_, i) => i + 1),
    );
    assert.ok(events.reduce((sum, { data }) => sum + (data.kind === 'stored' ? data.hashes.length : 0), 0) >= 40);
    assert.is(counted().lostEvents, 0);
  } finally {
    running.process.kill('SIGKILL');
    await worker.kill();
    await server.close();
  }
});

test.run();
