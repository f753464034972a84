// `moonroute record` and `replay` as a person meets them: a recording made over real sockets by a process of its own, ended by a signal, gives
// the same when replayed as what was published gives directly; and what is refused.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCapture } from '../src/oracle/capture.js';

const folder = mkdtempSync(join(tmpdir(), 'moonroute-cli-record-'));
test.after(() => rmSync(folder, { recursive: true }));

const CONTRACT = 'examples/contract.json';
const STORE_CAPTURE = 'test/fixtures/mooncake-captures/tp2_fa16_mamba16_late.jsonl';
const WORKER_CAPTURE = 'examples/worker.jsonl';
/** The subcommand alone. */
const RECORD = [
  '--input-type=module',
  '-e',
  "import { recordCommand } from './build/js/src/cli/record.js'; import { MoonrouteError } from './build/js/src/errors.js'; try { await recordCommand().parseAsync(process.argv.slice(1), { from: 'user' }); } catch (error) { if (!(error instanceof MoonrouteError)) throw error; console.error(error.message); process.exitCode = 1; }",
  '--',
];

const record = (...args: string[]) => spawnSync(process.execPath, [...RECORD, ...args], { encoding: 'utf8' });
const replay = (...args: string[]) =>
  spawnSync(process.execPath, ['build/js/src/cli/main.js', 'replay', ...args], { encoding: 'utf8' });

const refused: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['nothing to record', [], /nothing to record; say --worker/],
  ['a worker without a name', ['--worker', 'tcp://127.0.0.1:1'], /names no worker; write it like w0=tcp/],
  [
    'two workers of one name',
    ['--worker', 'a=tcp://127.0.0.1:1', '--worker', 'a=tcp://127.0.0.1:2'],
    /two workers are called a/,
  ],
  [
    'a worker called store',
    ['--worker', 'store=tcp://127.0.0.1:1', '--store', 'tcp://127.0.0.1:2'],
    /can't be called store/,
  ],
  [
    'key lists without a stream',
    ['--worker', 'a=tcp://127.0.0.1:1', '--store-http', 'http://127.0.0.1:1'],
    /say --store too/,
  ],
  ['a time for no questions', ['--store', 'tcp://127.0.0.1:1', '--every', '1s'], /--every is how often --store-http/],
  ['an endpoint of another kind', ['--store', 'udp://127.0.0.1:1'], /udp:\/\/127\.0\.0\.1:1/],
  ['an address of another kind', ['--store', 'tcp://127.0.0.1:1', '--store-http', 'ftp://x'], /is no address/],
  ['no parts at all', ['--store', 'tcp://127.0.0.1:1', '--keep', '0'], /--keep 0/],
  ['parts of nothing', ['--store', 'tcp://127.0.0.1:1', '--rotate', '1B'], /too small/],
  ['a time that is none', ['--store', 'tcp://127.0.0.1:1', '--duration', '5'], /no time/],
];
test('what can not be recorded is refused, and leaves no file', () => {
  const out = join(folder, 'refused.jsonl');
  for (const [name, args, text] of refused) {
    const { status, stdout, stderr } = record(...args, '--out', out);
    assert.is.not(status, 0, name);
    assert.is(stdout, '', name);
    assert.match(stderr, text, name);
    assert.not.match(stderr, / at .*\.js:/, name);
  }
  assert.is(existsSync(out), false);
});

test('help has an example, and says whose data this is', () => {
  const { status, stdout } = record('--help');
  assert.is(status, 0);
  for (const text of [/Examples?:\n {2}moonroute record /, /--json/, /token ids of prompts/, /0600/])
    assert.match(stdout, text);
});

test('what is there is not overwritten', () => {
  const out = join(folder, 'there.jsonl');
  writeFileSync(out, 'mine');
  const { status, stderr } = record('--worker', 'a=tcp://127.0.0.1:1', '--out', out);
  assert.is.not(status, 0);
  assert.match(stderr, /there\.jsonl is there already/);
  assert.is(readFileSync(out, 'utf8'), 'mine');
});

test('--duration ends it: connecting in vain is no error, and is counted', () => {
  const out = join(folder, 'short.jsonl');
  const { status, stdout, stderr } = record(
    '--worker',
    'a=tcp://127.0.0.1:1',
    '--out',
    out,
    '--duration',
    '300ms',
    '--json',
  );
  assert.equal([status, stderr], [0, '']);
  const summary = JSON.parse(stdout);
  assert.equal([summary.messages, summary.parts], [0, 1]);
  assert.ok(summary.sources.a.losses > 0);
  assert.match(readFileSync(out, 'utf8'), '"why":"duration"');
  assert.is(statSync(out).mode & 0o777, 0o600);
});

const zeromq = await import('zeromq').catch(() => null);
if (zeromq === null && !process.env['CI']) console.log('skipped: cli-record over sockets (zeromq is not installed)');
else {
  if (zeromq === null) throw new Error('zeromq is not installed, and CI may not skip its tests');

  /** Publishes captures to a recorder, ends it, and gives its folder. */
  const recorded = async (name: string, signal: NodeJS.Signals, ...more: string[]) => {
    const place = mkdtempSync(join(folder, `${name}-`));
    const out = join(place, 'pool.jsonl');
    const bound = async () => {
      const socket = new zeromq.XPublisher({ linger: 0 });
      await socket.bind('tcp://127.0.0.1:*');
      return socket;
    };
    const [worker, store] = [await bound(), await bound()];
    const server = createServer((request, response) => {
      response.end(request.url === '/get_all_keys' ? '' : '{"published_batches":0,"dropped_events":0}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const http = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const sources = ['--worker', `worker=${worker.lastEndpoint}`, '--store', store.lastEndpoint!, '--store-http', http];
    const child = spawn(process.execPath, [...RECORD, ...sources, '--out', out, ...more], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    try {
      await Promise.all([worker.receive(), store.receive()]);
      for (const [socket, file] of [
        [worker, WORKER_CAPTURE],
        [store, STORE_CAPTURE],
      ] as const)
        for (const frames of readCapture(readFileSync(file, 'utf8'), file))
          await socket.send(frames.map((frame) => Buffer.from(frame)));
      const size = () => readdirSync(place).reduce((sum, file) => sum + statSync(join(place, file)).size, 0);
      // Nothing tells when all has arrived but that nothing more does.
      for (let [last, still, end] = [0, 0, Date.now() + 20_000]; still < 40; ) {
        if (Date.now() > end) throw new Error(`waited 20 s: ${stderr}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
        still = size() === last ? still + 1 : 0;
        last = size();
      }
      child.kill(signal);
      return { place, status: await ended, stdout, stderr };
    } finally {
      child.kill('SIGKILL');
      await ended;
      worker.close();
      store.close();
      server.close();
    }
  };

  const direct = () => {
    const { edges, resident } = JSON.parse(
      replay(WORKER_CAPTURE, STORE_CAPTURE, '--contract', CONTRACT, '--json').stdout,
    );
    return { edges, resident };
  };

  test('a recording replayed gives what the streams give directly', async () => {
    const { place, status, stdout, stderr } = await recorded('whole', 'SIGINT', '--every', '1h', '--json');
    assert.equal([status, stderr], [0, '']);
    const messages = [WORKER_CAPTURE, STORE_CAPTURE].map(
      (file) => readFileSync(file, 'utf8').trim().split('\n').length,
    );
    const summary = JSON.parse(stdout);
    assert.equal([summary.sources.worker.messages, summary.sources.store.messages], messages);
    assert.is(summary.dropped, 0);
    const file = join(place, 'pool.jsonl');
    const { edges, resident, files } = JSON.parse(replay(file, '--contract', CONTRACT, '--json').stdout);
    assert.equal({ edges, resident }, direct());
    assert.equal(
      files
        .map(({ publisher, messages, losses }: { publisher: string; messages: number; losses: number }) => [
          publisher,
          messages,
          losses,
        ])
        .sort(),
      [
        ['store', messages[1], 0],
        ['worker', messages[0], 0],
      ],
    );
  });

  test('so do its parts, packed, in any order', async () => {
    const { place, status } = await recorded('parts', 'SIGTERM', '--gzip', '--rotate', '2kB', '--every', '1h');
    assert.is(status, 0);
    const parts = readdirSync(place).sort();
    assert.ok(parts.length > 3, parts.join());
    assert.equal([parts[0], parts.at(-1)], ['pool.0001.jsonl.gz', 'pool.jsonl.gz']);
    const paths = parts.map((part) => join(place, part));
    for (const order of [paths, paths.toReversed()]) {
      const { edges, resident } = JSON.parse(replay(...order, '--contract', CONTRACT, '--json').stdout);
      assert.equal({ edges, resident }, direct());
    }
  });

  test('a recording that was killed is read up to its last whole line', async () => {
    const { place, status } = await recorded('killed', 'SIGKILL');
    assert.is(status, null);
    const file = join(place, 'pool.jsonl');
    assert.equal(
      (({ edges, resident }) => ({ edges, resident }))(
        JSON.parse(replay(file, '--contract', CONTRACT, '--json').stdout),
      ),
      direct(),
    );
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.slice(0, text.trimEnd().length - 20));
    const { status: cutStatus, stdout } = replay(file, '--contract', CONTRACT);
    assert.is(cutStatus, 0);
    assert.match(stdout, /is cut short: line \d+ has no end/);
  });
}

test.run();
