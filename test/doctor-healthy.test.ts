// A pool without faults has no finding that failed, whatever it is built of; and the command says so with exit code 0.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { doctorCommand } from '../src/cli/doctor.js';
import type { ConfigError } from '../src/errors.js';
import type { FleetOptions } from '../src/fleet/fleet.js';
import { parseEncoding } from '../src/fleet/worker/encoding.js';
import { chatTokens, textTokens } from '../src/fleet/worker/tokenizer.js';
import type { TokenizeFields } from '../src/server/prompt-input.js';
import { during, examine, failures, said, specOf, targetOf, withFleet } from './support/doctor.js';
import { zeromq } from './support/fleet-worker.js';
import { TokenizerFiles, tinyTokenizer } from './support/tiny-tokenizer.js';

const folder = mkdtempSync(join(tmpdir(), 'moonroute-doctor-'));
test.after(() => rmSync(folder, { recursive: true }));

const FLEETS: Readonly<Record<string, FleetOptions>> = {
  'generation A': { master: { generation: 'A' } },
  'generation B': { master: { generation: 'B' } },
  'generation C, two ranks of each kind': { worker: { tp: 2, dp: 2 }, master: { generation: 'C' } },
  'a standby': { standby: true },
  'sliding window and mamba': {
    worker: { groups: [{ kind: 'full_attention' }, { kind: 'sliding_window', window: 48 }, { kind: 'mamba' }] },
  },
  'whole digests in arrays': { worker: { encoding: parseEncoding('array-9:bytes') } },
  'maps of another time, without replay': {
    workers: [{ replayPort: null }, { replayPort: null }],
    worker: { encoding: parseEncoding('map:i64:map-batch') },
  },
};

if (zeromq !== null) {
  for (const [name, options] of Object.entries(FLEETS)) {
    test(`nothing is wrong with ${name}`, () =>
      withFleet(options, async (fleet) => {
        const target = targetOf(
          fleet.workers.map((worker) => specOf(worker)),
          fleet.masters,
        );
        const findings = await examine(target, { probe: true });
        assert.equal(failures(findings), []);
        assert.match(said(findings, 'hash-seed'), /ok worker-1/);
        assert.match(said(findings, 'hashes-meet-store'), /ok worker-1/);
        assert.match(said(findings, 'key-prefixes'), /^ok/);
        assert.match(said(findings, 'reconcile-drift'), /^ok store: \d+ keys/);
      }));
  }

  test('an idle pool without a probe has nothing wrong, and silence is said to mean nothing', () =>
    withFleet({}, async (fleet) => {
      const findings = await examine(targetOf([specOf(fleet.workers[0]!)], fleet.masters));
      assert.equal(failures(findings), []);
      assert.match(
        said(findings, 'events-arrive'),
        /skipped worker-0: nothing in 0.5 s; if the pool is idle, say --probe/,
      );
      assert.match(said(findings, 'key-prefixes'), /skipped store: the store is empty/);
    }));

  test('tagged salts and adapters by their names are as they should be', () =>
    withFleet({ workers: 1, worker: { adapters: ['sql'] } }, async (fleet) => {
      const worker = fleet.workers[0]!;
      const target = targetOf([specOf(worker)], fleet.masters);
      const asked = { model: 'sql', cache_salt: 'dynamo-cache-salt:tenant' };
      const findings = await during(examine(target), worker.httpUrl, asked);
      assert.equal(failures(findings), []);
      assert.match(said(findings, 'salt-naming'), /ok worker-0: \d+ prompts with a tagged salt/);
      assert.match(said(findings, 'lora-naming'), /ok worker-0: sql/);
      assert.match(said(findings, 'tenants'), /ok store: \d+ default/);
    }));

  test('a tokenizer that agrees is said to', () =>
    withFleet({ workers: 1 }, async (fleet) => {
      const local = {
        shapeOf: () => 'any',
        tokenise: (fields: TokenizeFields) =>
          Uint32Array.from(
            'prompt' in fields ? textTokens(fields.prompt, true) : chatTokens(fields.messages, true, null),
          ),
      };
      const tokenizer = { file: 'tokenizer.json', chatTemplate: 'template.jinja' };
      const target = targetOf([specOf(fleet.workers[0]!)], fleet.masters, { tokenizer });
      const findings = await examine(target, { local });
      assert.match(said(findings, 'tokenizer'), /ok worker-0: 4 samples, the same tokens here and there/);
      assert.match(said(findings, 'chat-template'), /ok worker-0: 2 samples, the same tokens here and there/);
    }));

  test('the command: a configuration, ✓ for everything, exit code 0', () =>
    withFleet({}, async (fleet) => {
      const config = join(folder, 'healthy.json');
      const workers = fleet.workers.map((worker) => specOf(worker));
      const { sharedCache } = targetOf([], fleet.masters);
      writeFileSync(config, JSON.stringify({ workers, sharedCache }));
      const { text, exitCode } = await command(['--config', config, '--probe', '--seconds', '1']);
      assert.is(exitCode, undefined);
      assert.match(text, /✓ worker-0: tcp:\S+ is an event socket/);
      assert.match(text, /\n✓ \d+ fine, 0 failed, \d+ not applicable$/);
    }));

  test('the command: a real tokenizer.json and template that agree, and one that merges otherwise', () =>
    withFleet({ workers: 1 }, async (fleet) => {
      for (const [merges, told] of [
        [
          [],
          /tokenizer: .*\n {2}✓ worker-0: 4 samples, the same tokens here and there\nchat-template: .*\n {2}✓ worker-0: 2 samples, the same/,
        ],
        [[['t', 'h']], /tokenizer: .*\n {2}✗ worker-0: the local one and the worker's \/tokenize differ: sample "/],
      ] as const) {
        const files = new TokenizerFiles(tinyTokenizer(merges));
        try {
          const config = join(folder, 'tokenizer.json');
          const tokenizer = { file: files.file, chatTemplate: files.template };
          writeFileSync(config, JSON.stringify({ workers: [specOf(fleet.workers[0]!)], tokenizer }));
          const { text, exitCode } = await command(['--config', config, '--seconds', '1']);
          assert.match(text, told);
          assert.is(exitCode, merges.length === 0 ? undefined : 1);
        } finally {
          files.remove();
        }
      }
    }));

  test('the command: ✗ with what was seen and the fix, exit code 1; --json is one document of the same', () =>
    withFleet({ workers: 1 }, async (fleet) => {
      const config = join(folder, 'sick.json');
      const workers = [specOf(fleet.workers[0]!, { events: 'tcp://127.0.0.1:1', replay: null })];
      writeFileSync(config, JSON.stringify({ workers }));
      const told = await command(['--config', config, '--seconds', '1']);
      assert.is(told.exitCode, 1);
      assert.match(
        told.text,
        /✗ worker-0: nothing listens at tcp:\/\/127.0.0.1:1 .*\n {6}fix: Start vLLM with --kv-events-config/,
      );
      const { text, exitCode } = await command(['--config', config, '--seconds', '1', '--json']);
      assert.is(exitCode, 1);
      const report = JSON.parse(text);
      assert.is(report.ok, false);
      assert.equal(
        report.findings
          .filter((finding: { status: string }) => finding.status === 'failed')
          .map((finding: { code: string }) => finding.code),
        ['events-port'],
      );
    }));
}

test('the command: without a configuration it says what to give', async () => {
  try {
    await command([]);
    assert.unreachable();
  } catch (error) {
    assert.is((error as ConfigError).code, 'doctor-nothing');
  }
});

/** Runs the command in this process. */
async function command(args: readonly string[]): Promise<{ text: string; exitCode: typeof process.exitCode }> {
  const { log } = console;
  const lines: string[] = [];
  console.log = (line: string) => lines.push(line);
  try {
    await doctorCommand().parseAsync(args, { from: 'user' });
    return { text: lines.join('\n'), exitCode: process.exitCode };
  } finally {
    console.log = log;
    process.exitCode = undefined;
  }
}

test.run();
