// The same package in Deno: the command runs all 600 oracle cases there, and the public entry answers as in Node.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { preparedCases } from './support/prepared-cases.js';

const deno = (...args: string[]): string =>
  execFileSync('node_modules/.bin/deno', ['run', '--no-lock', '--no-remote', '--allow-read', '--allow-env', ...args], {
    encoding: 'utf8',
  });

test('the oracle command gives the same counts in Deno', () => {
  const [report] = JSON.parse(
    deno('build/js/src/cli/main.js', 'oracle', 'test/fixtures/oracle-cases.json.gz', '--json'),
  ) as [{ cases: number; equal: number; over: number }];
  assert.equal({ cases: report.cases, equal: report.equal, over: report.over }, { cases: 600, equal: 490, over: 0 });
});

test('the public entry gives the same answers in Deno', () => {
  const folder = mkdtempSync(join(tmpdir(), 'moonroute-deno-'));
  try {
    const cases = join(folder, 'cases.json');
    writeFileSync(cases, JSON.stringify(preparedCases(8)));
    const result = JSON.parse(deno('test/runtimes/deno.js', cases)) as {
      checked: number;
      withHit: number;
      wrong: string[];
    };
    console.log(`  Deno: ${result.checked} cases, ${result.withHit} with a hit`);
    assert.equal(result.wrong, []);
    assert.ok(result.checked >= 50 && result.withHit >= 25);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.run();
