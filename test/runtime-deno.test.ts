// The command in Deno: it runs all 600 oracle cases there. The public entries are in runtime-behaviours.test.ts.
import { execFileSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

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

test.run();
