// `moonroute simulate RECORDING`: a recording is a trace, from its file to the report, with its warnings said.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { headerLine, messageLine } from '../src/live/recording-write.js';
import type { SimResult } from '../src/sim/report-types.js';
import { blockStored, workerMessage } from '../src/sim/wire-worker-messages.js';

const folder = mkdtempSync(join(tmpdir(), 'moonroute-recorded-trace-'));
test.after(() => rmSync(folder, { recursive: true }));

const BLOCK = 16;
const REQUESTS = 60;
const SYSTEM = Array.from({ length: 20 }, (_, i) => BigInt(i + 1));

/** Requests that share a system prompt, on two workers in turn; each generates 3 blocks. */
function lines(): string[] {
  const events: { t: number; worker: number; parent: bigint | null; hashes: bigint[] }[] = [];
  for (let i = 0; i < REQUESTS; i++) {
    const [t, worker] = [i * 500, i % 2];
    const own = Array.from({ length: 10 }, (_, k) => BigInt(1000 * (i + 1) + k));
    const isFirst = i < 2;
    events.push({ t, worker, parent: isFirst ? null : SYSTEM.at(-1)!, hashes: isFirst ? [...SYSTEM, ...own] : own });
    for (let block = 0; block < 3; block++) {
      const parent = block === 0 ? own.at(-1)! : BigInt(1000 * (i + 1) + 99 + block);
      events.push({ t: t + 320 * (block + 1), worker, parent, hashes: [BigInt(1000 * (i + 1) + 100 + block)] });
    }
  }
  events.sort((a, b) => a.t - b.t);
  const sequences = [0, 0];
  const sources = [0, 1].map((w) => ({ name: `w${w}`, kind: 'worker', endpoint: 'tcp://127.0.0.1:1' }) as const);
  return [
    headerLine(Date.now(), sources),
    ...events.map(({ t, worker, parent, hashes }) => {
      const event = blockStored(parent, hashes, new Uint32Array(hashes.length * BLOCK), 0);
      return messageLine(t, `w${worker}`, 'worker', workerMessage(sequences[worker]!++, [event]));
    }),
  ];
}

const simulate = (args: readonly string[], input?: Uint8Array) =>
  spawnSync(process.execPath, ['build/js/src/cli/main.js', 'simulate', '--policy', 'kv', '--workers', '2', ...args], {
    encoding: 'utf8',
    ...(input === undefined ? {} : { input }),
  });

function checked({ traces, runs }: SimResult): void {
  const [facts] = traces;
  assert.equal(
    [facts!.format, facts!.requests, facts!.skipped, facts!.idTokens, facts!.span],
    ['recording', REQUESTS, 0, BLOCK, (REQUESTS - 1) * 500],
  );
  assert.equal([facts!.promptTokens, facts!.outputTokens], [REQUESTS * 30 * BLOCK, REQUESTS * 3 * BLOCK]);
  assert.equal(
    facts!.warnings.map(({ code, count }) => [code, count]),
    [['recording-estimate', REQUESTS]],
  );
  assert.match(facts!.warnings[0]!.text, 'is an estimate');
  assert.is(runs[0]!.report.requests, REQUESTS);
  // The system prompt is found again by all but those that came first.
  const { cached } = runs[0]!.report.tokens;
  assert.ok(cached >= (REQUESTS - 4) * SYSTEM.length * BLOCK, `${cached} tokens`);
}

test('plain and packed, from a file and from standard input in parts', () => {
  const all = lines();
  const plain = join(folder, 'pool.jsonl');
  const packed = join(folder, 'pool.jsonl.gz');
  writeFileSync(plain, all.join(''));
  writeFileSync(packed, gzipSync(all.join('')));
  const parts = [all.slice(0, 100), [all[0]!, ...all.slice(100)]].map((part) => part.join('')).join('');
  const outputs = [
    simulate([plain, '--json']),
    simulate([packed, '--json']),
    simulate(['-', '--json'], Buffer.from(parts)),
  ];
  for (const { status, stdout, stderr } of outputs) {
    assert.is(status, 0, stderr);
    checked(JSON.parse(stdout) as SimResult);
  }
});

test('people are told that it is an estimate', () => {
  const path = join(folder, 'told.jsonl');
  writeFileSync(path, lines().join(''));
  const { status, stdout, stderr } = simulate([path]);
  assert.is(status, 0);
  assert.match(stderr, /60 × recording-estimate .*is an estimate/);
  assert.match(stdout, /recording/);
});

test('a recording without workers is refused with the reason', () => {
  const path = join(folder, 'store.jsonl');
  writeFileSync(path, '{"t":1,"kind":"zmq","frames":["","0000000000000001","920090"]}\n');
  const { status, stderr } = simulate([path]);
  assert.is(status, 1);
  assert.match(stderr, /store\.jsonl holds no request: 1 messages of the store's master, and none of a worker/);
});

test.run();
