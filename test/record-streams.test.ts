// A recording from its streams to its files: stand-ins for the sockets, a real HTTP server for the master, and real ZeroMQ publishers.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { type RecordOptions, startRecording } from '../src/live/record.js';
import type { Recorded, RecordedSource } from '../src/live/recording.js';
import { readRecordedLine } from '../src/live/recording-read.js';
import { type SocketHandlers, ZmtpSubscriber } from '../src/live/zmtp/socket.js';
import { writeSequence } from '../src/wire/frames.js';

const folder = mkdtempSync(join(tmpdir(), 'moonroute-record-'));
test.after(() => rmSync(folder, { recursive: true }));
let files = 0;
const freshFile = () => join(folder, `${files++}.jsonl`);

const WORKER: RecordedSource = { name: 'w0', kind: 'worker', endpoint: 'tcp://127.0.0.1:1' };
const STORE: RecordedSource = { name: 'store', kind: 'store', endpoint: 'tcp://127.0.0.1:2' };

const linesOf = (file: string): Recorded[] =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line, i) => readRecordedLine(line, `${file}:${i + 1}`)!);

const frames = (sequence: number): Uint8Array[] => [
  new Uint8Array(0),
  writeSequence(BigInt(sequence)),
  Uint8Array.of(0x93, sequence),
];

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 10_000; !holds(); ) {
    if (Date.now() > end) throw new Error(`waited 10 s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Streams that the test speaks for. */
function standIns() {
  const handlers = new Map<string, SocketHandlers>();
  const log: string[] = [];
  const subscribe: RecordOptions['subscribe'] = (endpoint, given) => {
    handlers.set(endpoint, given);
    return { open: () => log.push(`open ${endpoint}`), close: () => log.push(`close ${endpoint}`) };
  };
  return { handlers, log, subscribe };
}

const BASE = { gzip: false, rotateBytes: 1e8, keep: 10 };

test('messages and what sockets tell come in one order, and the last line says how it ended', async () => {
  const { handlers, log, subscribe } = standIns();
  const out = freshFile();
  const recording = await startRecording({ ...BASE, sources: [WORKER, STORE], out, subscribe });
  const worker = handlers.get(WORKER.endpoint)!;
  worker.onEvent({ kind: 'connected' });
  worker.onMessage(frames(0));
  worker.onMessage(frames(2));
  worker.onEvent({ kind: 'lost', cause: 'disconnect', detail: 'the peer closed' });
  worker.onEvent({ kind: 'retry', inMs: 120 });
  handlers.get(STORE.endpoint)!.onMessage(frames(9));
  const summary = await recording.stop('duration');
  assert.is(await recording.stop('again'), summary);
  assert.equal(
    log,
    [WORKER, STORE]
      .map(({ endpoint }) => `open ${endpoint}`)
      .concat([WORKER, STORE].map(({ endpoint }) => `close ${endpoint}`)),
  );
  const lines = linesOf(out);
  assert.equal(
    lines.map((line) => ('event' in line ? line.event : line.type)),
    ['header', 'connected', 'message', 'gap', 'message', 'lost', 'retry', 'message', 'summary'],
  );
  const times = lines.flatMap((line) => ('t' in line ? [line.t!] : []));
  assert.equal(
    times,
    times.toSorted((a, b) => a - b),
  );
  const text = readFileSync(out, 'utf8');
  assert.match(text, '"event":"lost","cause":"disconnect","detail":"the peer closed"');
  assert.match(text, '"why":"duration","messages":3');
  assert.equal([summary.messages, summary.sources['w0']!.losses, summary.sources['w0']!.gaps], [3, 1, 1]);
  assert.is(summary.bytes, Buffer.byteLength(text));
});

test('an endpoint that can not be leaves no file', async () => {
  const out = freshFile();
  const subscribe = () => {
    throw new ConfigError('endpoint', 'no');
  };
  const error = await startRecording({ ...BASE, sources: [WORKER], out, subscribe }).then(
    () => null,
    (error: ConfigError) => error.code,
  );
  assert.is(error, 'endpoint');
  assert.throws(() => readFileSync(out));
});

async function master(
  answer: (path: string, asked: number) => string | number | null,
): Promise<{ server: Server; base: string }> {
  let asked = 0;
  const server = createServer((request, response) => {
    const text = answer(request.url!, asked++);
    if (text === null) request.socket.destroy();
    else if (typeof text === 'number') response.writeHead(text).end();
    else response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, base: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("the master's status and keys are asked for again and again: poll, status, keys, status", async () => {
  const asked: string[] = [];
  const { server, base } = await master((path) => {
    asked.push(path);
    return path === '/get_all_keys' ? 'p@1\np@2\n' : '{"published_batches":1}';
  });
  try {
    const { subscribe } = standIns();
    const out = freshFile();
    const http = { base, everyMs: 20, from: 'store' };
    const recording = await startRecording({ ...BASE, sources: [STORE], http, out, subscribe });
    await until('two rounds', () => asked.length >= 7);
    await recording.stop('duration');
    const lines = linesOf(out).slice(1, 9);
    assert.equal(
      lines.map((line) => ('event' in line ? line.event : line.type)),
      ['poll', 'status', 'keys', 'status', 'poll', 'status', 'keys', 'status'],
    );
    assert.equal(
      lines.flatMap((line) => (line.type === 'keys' ? [line.keys] : [])),
      [['p@1', 'p@2'], null],
    );
    const before = asked.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.is(asked.length, before);
  } finally {
    server.close();
  }
});

const failures: readonly (readonly [string, (path: string) => string | number | null, RegExp])[] = [
  ['a standby', () => 503, /the master is a standby/],
  ['a master that hangs up', () => null, /\/kv_events\/status: /],
  ['a status without end', () => 'x'.repeat(100_000), /larger than 65536 bytes/],
  [
    'a master without key list',
    (path) => (path === '/get_all_keys' ? 404 : '{}'),
    /\/get_all_keys answers with status 404/,
  ],
];
for (const [name, answer, text] of failures) {
  test(`${name} is noted, and asked again`, async () => {
    const { server, base } = await master(answer);
    try {
      const { subscribe } = standIns();
      const out = freshFile();
      const http = { base, everyMs: 10, from: 'store' };
      const recording = await startRecording({ ...BASE, sources: [STORE], http, out, subscribe });
      const notes = () => readFileSync(out, 'utf8').match(/"event":"http-error".*/g) ?? [];
      await until('two notes', () => notes().length >= 2);
      await recording.stop('duration');
      assert.match(notes()[1]!, text);
    } finally {
      server.close();
    }
  });
}

test('a master that does not answer does not hold up the end', async () => {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { subscribe } = standIns();
    const http = { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, everyMs: 10, from: 'store' };
    const out = freshFile();
    const recording = await startRecording({ ...BASE, sources: [STORE], http, out, subscribe });
    const began = performance.now();
    await recording.stop('duration');
    assert.ok(performance.now() - began < 2000);
    assert.not.match(readFileSync(out, 'utf8'), 'http-error');
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a file that can not be written ends the recording, and says why', async () => {
  const { handlers, subscribe } = standIns();
  const out = freshFile();
  const recording = await startRecording({ ...BASE, rotateBytes: 1000, sources: [WORKER], out, subscribe });
  rmSync(out);
  for (let sequence = 0; sequence < 50; sequence++) handlers.get(WORKER.endpoint)!.onMessage(frames(sequence));
  const error = await recording.failed;
  assert.is(error.code, 'record-failed');
  await recording.stop('failed');
});

const zeromq = await import('zeromq').catch(() => null);
if (zeromq === null && !process.env['CI'])
  console.log('skipped: record-streams over sockets (zeromq is not installed)');
else {
  if (zeromq === null) throw new Error('zeromq is not installed, and CI may not skip its tests');
  test('real sockets: what a publisher sends is recorded byte for byte, its restart is a loss', async () => {
    const bound = async (endpoint: string) => {
      const socket = new zeromq.XPublisher({ linger: 0 });
      await socket.bind(endpoint);
      return socket;
    };
    let publisher = await bound('tcp://127.0.0.1:*');
    const endpoint = publisher.lastEndpoint!;
    const out = freshFile();
    const recording = await startRecording({
      ...BASE,
      sources: [{ ...WORKER, endpoint }],
      out,
      subscribe: (at, handlers) => new ZmtpSubscriber(at, '', handlers, { reconnectMs: 10, reconnectMaxMs: 50 }),
    });
    const count = () => recording.summary().sources['w0']!.messages;
    const send = async (sequence: number) => publisher.send(frames(sequence).map((frame) => Buffer.from(frame)));
    try {
      await publisher.receive();
      for (let sequence = 0; sequence < 100; sequence++) await send(sequence);
      await until('100 messages', () => count() === 100);
      publisher.close();
      await until('the loss', () => recording.summary().sources['w0']!.losses > 0);
      publisher = await bound(endpoint);
      await publisher.receive();
      await send(0);
      await until('the first message of the new life', () => count() === 101);
      const summary = await recording.stop('duration');
      assert.is(summary.sources['w0']!.gaps, 1);
      const lines = linesOf(out);
      const messages = lines.flatMap((line) => (line.type === 'message' ? [line.frames] : []));
      assert.equal(
        messages.slice(0, 100),
        Array.from({ length: 100 }, (_, i) => frames(i)),
      );
      assert.equal(messages[100], frames(0));
      const events = lines.flatMap((line) => ('event' in line ? [line.event] : []));
      assert.is(events[0], 'connected');
      assert.ok(events.indexOf('lost') < events.lastIndexOf('connected'));
      assert.is(events.at(-1), 'summary');
    } finally {
      publisher.close();
      await recording.stop('the end of the test');
    }
  });
}

test.run();
