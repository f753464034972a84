// `moonroute simulate --wire`: the same report as without, and a refusal by name where blocks are too large for it.
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { SimResult } from '../src/sim/report-types.js';

function simulate(...args: readonly string[]) {
  const all = ['build/js/src/cli/main.js', 'simulate', '--requests', '40', '--workers', '2', '--json', ...args];
  return spawnSync(process.execPath, all, { encoding: 'utf8' });
}

test('the report is the one without it', () => {
  const lossy = ['--jitter', '50ms', '--loss', '5%'];
  const [wire, decoded] = [simulate('--wire', ...lossy), simulate(...lossy)].map(({ status, stdout, stderr }) => {
    assert.equal([status, stderr], [0, '']);
    return JSON.parse(stdout) as SimResult;
  });
  assert.equal(
    wire!.runs.map(({ report }) => report),
    decoded!.runs.map(({ report }) => report),
  );
  assert.equal([wire!.runs[0]!.config.wire, decoded!.runs[0]!.config.wire], [true, false]);
});

test('blocks of more tokens than one pickle frame holds are refused', () => {
  const { status, stdout, stderr } = simulate('--wire', '--block-size', '16384');
  assert.is.not(status, 0);
  assert.is(stdout, '');
  assert.match(stderr, /with wire, blocks have at most 8192 tokens, and blockSize is 16384/);
});

test.run();
