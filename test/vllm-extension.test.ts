// The worker extension of vLLM and the client that collects its ranks' answers (src/vllm): the Python tests, each as one of these, and their descriptors
// through our own rules. Nothing of vLLM's is needed: modules shaped like its stand in (test/support/vllm_stand_in).
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  adapterOf,
  agreeOnContract,
  MAX_WORLD_SIZE,
  PINNED_REVISION,
  validateContract,
} from '../src/contract/index.js';

const run = promisify(execFile);
const STAND_IN = 'test/support/vllm_stand_in';
const COLLECT = 'src/vllm/moonroute_collect.py';
/** For all Python tests, which take some seconds. */
const DEADLINE_MS = 120_000;
/** The oldest Python that vLLM runs on. */
const LEAST = [3, 10] as const;

/** What test/support/vllm_stand_in/run.py prints. */
interface Outcome {
  readonly tests: readonly { readonly name: string; readonly error: string | null }[];
  readonly kinds: Readonly<Record<string, readonly { readonly descriptor: unknown }[]>>;
}

/** Why there is no Python to test with; null when there is one. */
function whyNoPython(): string | null {
  const asked = spawnSync('python3', ['-c', 'import sys; print(*sys.version_info[:2])'], { encoding: 'utf8' });
  if (asked.status !== 0) return `python3 does not run here (${asked.error?.message ?? asked.stderr})`;
  const [major, minor] = asked.stdout.trim().split(' ').map(Number) as [number, number];
  return major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1])
    ? null
    : `python3 is ${major}.${minor}, and the extension needs ${LEAST.join('.')}`;
}

test('the extension is pinned to the revision that contracts are accepted for', () => {
  const source = readFileSync('src/vllm/moonroute_worker.py', 'utf8');
  assert.match(source, `VLLM_REVISION = "${PINNED_REVISION}"\nADAPTER = "${adapterOf(PINNED_REVISION)}"`);
});

const lacks = whyNoPython();
if (lacks !== null) {
  if (process.env['CI'] === 'true') {
    test('Python is there', () => assert.unreachable(`${lacks}; install it`));
  } else {
    test.skip(`not run: ${lacks}`, () => undefined);
    console.error(`vllm-extension: ${lacks}; its tests are skipped`);
  }
} else {
  // -B: nothing is written beside the sources.
  const ran = spawnSync('python3', ['-B', `${STAND_IN}/run.py`], {
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    timeout: DEADLINE_MS,
  });
  if (ran.status !== 0) test('the Python tests run', () => assert.unreachable(ran.error?.message ?? ran.stderr));
  else declare(JSON.parse(ran.stdout) as Outcome);
}

function declare({ tests, kinds }: Outcome): void {
  test('every condition has its Python test', () => {
    const conditions = tests.filter(({ name }) => name.startsWith('Conditions.'));
    assert.ok(conditions.length >= 90, `${conditions.length} conditions`);
    assert.ok(tests.length >= conditions.length + 60, `${tests.length} tests`);
  });

  for (const { name, error } of tests) {
    test(`Python: ${name}`, () => {
      if (error !== null) assert.unreachable(error);
    });
  }

  for (const [kind, replies] of Object.entries(kinds)) {
    test(`ranks agree, and the contract is good: ${kind}`, () => {
      // Windows alone: no group's events are dense, so hashes must be derived.
      const hashing = kind === 'windows alone' ? 'derived' : 'learned';
      const contract = agreeOnContract(replies, { worldSize: replies.length, hashing });
      assert.is(contract.revision, PINNED_REVISION);
      assert.is(contract.learnable, hashing === 'learned');
      assert.is(contract.fingerprint, validateContract(replies[0]!.descriptor, { hashing }).fingerprint);
    });
  }

  test('kinds, windows and prefixes arrive as the engine has them', () => {
    const contractOf = (kind: string) => agreeOnContract(kinds[kind]!, { worldSize: kinds[kind]!.length });
    const prefixes = (kind: string) => contractOf(kind).groups.map(({ keyPrefixes }) => keyPrefixes.length);
    assert.equal(prefixes('full attention over 4 tensor and 2 pipeline ranks'), [4]);
    assert.equal(prefixes('one KV head over 8 tensor ranks'), [1]);
    assert.equal(prefixes('mamba beside full attention'), [2, 2, 1]);
    const windows = contractOf('windows beside full attention');
    assert.equal(
      windows.groups.map(({ kind, slidingWindow }) => [kind, slidingWindow]),
      [
        ['sliding_window', 128],
        ['full_attention', null],
      ],
    );
    assert.is(windows.mainEventGroup, 1);
    const partial = contractOf('partial hits');
    assert.equal([partial.partialHashHits, partial.hashBlockSize, partial.mainEventBlockSize], [true, 16, 32]);
    assert.equal(contractOf('a scratch group first').gpuToStoreGroup, [null, 0, 1, 2]);
    assert.match(contractOf('letters of other scripts').groups[0]!.keyPrefixes[0]!, /^Köln-月@/);
  });

  test('collected over HTTP by the command, and checked by ours', async () => {
    const replies = kinds['mamba beside full attention']!;
    const asked: string[] = [];
    const server = createServer(async (request, response) => {
      asked.push(`${request.url} ${await bodyOf(request)}`);
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ results: replies }));
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const folder = mkdtempSync(join(tmpdir(), 'moonroute-vllm-'));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { stdout } = await run('python3', ['-B', COLLECT, url, '--world-size', String(replies.length)]);
      assert.equal(asked, ['/collective_rpc {"method": "dynamo_mooncake_store_descriptor", "timeout": 10.0}']);
      const file = join(folder, 'contract.json');
      writeFileSync(file, stdout);
      const checked = await run(process.execPath, ['build/js/src/cli/main.js', 'contract', 'check', file, '--json']);
      assert.is(JSON.parse(checked.stdout).valid, true);
      writeFileSync(file, JSON.stringify(replies));
      const both = await run(process.execPath, ['build/js/src/cli/main.js', 'contract', 'check', file, '--json']);
      assert.equal(JSON.parse(both.stdout), JSON.parse(checked.stdout));
    } finally {
      rmSync(folder, { recursive: true });
      server.close();
      server.closeAllConnections();
    }
  });

  test('the bounds of both sides are the same numbers', async () => {
    const names =
      'MAX_DESCRIPTOR_BYTES, MAX_WORLD_SIZE, MAX_GROUPS, MAX_PREFIXES, MAX_PREFIX_BYTES, MAX_REASON_CHARS, MAX_SPAN';
    const code = `import json; from moonroute_worker import *; print(json.dumps([${names}, VLLM_REVISION, ADAPTER]))`;
    const { stdout } = await run('python3', ['-B', '-c', code], { env: { ...process.env, PYTHONPATH: 'src/vllm' } });
    const ours = await import('../src/contract/index.js');
    assert.equal(JSON.parse(stdout), [
      ours.MAX_DESCRIPTOR_BYTES,
      MAX_WORLD_SIZE,
      ours.MAX_GROUPS,
      ours.MAX_PREFIXES,
      ours.MAX_PREFIX_BYTES,
      ours.MAX_REASON_CHARS,
      ours.MAX_SPAN,
      PINNED_REVISION,
      ours.adapterOf(PINNED_REVISION),
    ]);
  });
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request) text += part;
  return text;
}

test.run();
