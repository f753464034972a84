// `moonroute bench` as people and CI use it: the list, the report in each form, counters that are the same in Node and Deno, a planted slow-down that
// fails against the same build's own report, and errors that say what to do.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type Report, ReportSchema } from '../src/bench/report-schema.js';
import { countersOf, FAST_SUITES } from './support/bench-counters.js';

const MAIN = 'build/js/src/cli/main.js';
const DENO = ['run', '--no-lock', '--no-remote', '--allow-read', '--allow-env', MAIN, 'bench'];

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function ended(command: string, args: readonly string[]): Ended {
  return spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 26 });
}
const bench = (...args: string[]) => ended(process.execPath, [MAIN, 'bench', ...args]);

function reportOf({ status, stdout, stderr }: Ended): Report {
  assert.is(status, 0, stderr);
  return ReportSchema.parse(JSON.parse(stdout));
}

const folder = mkdtempSync(join(tmpdir(), 'moonroute-bench-'));
let counted: Record<string, Record<string, number>> = {};

test('--list names every suite with its sizes and its rival', () => {
  const { status, stdout } = bench('--list');
  assert.is(status, 0);
  for (const name of [...FAST_SUITES, 'lookup-caps', 'churn', 'evict', 'decision', 'reconcile', 'memory', 'start-up'])
    assert.match(stdout, new RegExp(`^${name} `, 'm'));
  assert.match(stdout, /^lookup-caps .*512, 1024, 2048, 4096, 8192, 16384 blocks; beside nested Maps/m);
  const listed = JSON.parse(bench('--list', '--json').stdout) as { name: string; sizes: number[] }[];
  assert.ok(listed.length >= 20);
});

test('--json prints a report of the documented shape, and nothing else on standard output', () => {
  const run = bench('--quick', '--json', ...FAST_SUITES);
  const report = reportOf(run);
  assert.equal(
    report.suites.map(({ name }) => name),
    FAST_SUITES,
  );
  assert.match(run.stderr, /moonroute bench: 1 of 6, lookup-alone/);
  assert.match(report.environment.engine, /^Node \d+/);
  assert.match(report.rivals['hash-wasm']!, /^\d+\.\d+/);
  const [lookup] = report.suites;
  assert.is(lookup!.rows.length, 6);
  assert.ok(lookup!.growth.some(({ of, exponent }) => of === 'walkedBlocks' && Math.abs(exponent - 1) < 0.01));
  counted = countersOf(report);
  writeFileSync(join(folder, 'base.json'), run.stdout);
});

test('Deno counts the same', () => {
  assert.equal(
    countersOf(reportOf(ended('node_modules/.bin/deno', [...DENO, '--quick', '--json', ...FAST_SUITES]))),
    counted,
  );
});

test('the same build passes against its own report', () => {
  const { status, stderr } = bench(
    '--quick',
    '--compare',
    join(folder, 'base.json'),
    '--threshold',
    '40',
    'hash',
    'wire',
  );
  assert.is(status, 0, stderr);
  assert.match(stderr, /3 ratios and \d+ counters compared with .*nothing is worse/);
});

test('a planted slow-down fails, by name, after a second and a third look', () => {
  const args = ['--quick', '--compare', join(folder, 'base.json'), '--slow-down', 'hash=3', 'hash', 'wire'];
  const { status, stdout, stderr } = bench(...args);
  assert.is(status, 1, stderr);
  assert.match(stdout, /PLANTED SLOW-DOWN: hash × 3/);
  assert.is(stderr.match(/measured again/g)?.length, 2);
  assert.match(stderr, /^WORSE hash\/16: at best .* slower\. Look closer with: moonroute bench hash$/m);
  assert.not.match(stderr, /WORSE wire/);
});

test('a counter that grew fails', () => {
  const base = reportOf(bench('--quick', '--json', 'hash'));
  base.suites[0]!.rows[0]!.counters['linesWritten']! -= 1;
  const path = join(folder, 'less.json');
  writeFileSync(path, JSON.stringify(base));
  const { status, stderr } = bench('--quick', '--compare', path, '--threshold', '90', 'hash');
  assert.is(status, 1);
  assert.match(stderr, /^WORSE hash\/16: linesWritten grew from \d+ to \d+/m);
});

test('a base that shares nothing with the run, or was made for other work, is refused', () => {
  const base = reportOf(bench('--quick', '--json', 'start-up'));
  const path = join(folder, 'other.json');
  writeFileSync(path, JSON.stringify(base));
  const nothing = bench('--quick', '--compare', path, 'hash');
  assert.is(nothing.status, 1);
  assert.match(nothing.stderr, /nothing to compare/);
  writeFileSync(path, JSON.stringify({ ...base, workload: base.workload + 1 }));
  const other = bench('--quick', '--compare', path, 'hash');
  assert.is(other.status, 1);
  assert.match(other.stderr, /their work has changed/);
});

test('--action prints what the benchmark action reads, --markdown a table', () => {
  const values = JSON.parse(bench('--quick', '--action', 'hash').stdout) as Record<string, unknown>[];
  assert.equal(
    values.map(({ name, unit }) => [name, unit]),
    [
      ['hash/16', '× the rival'],
      ['hash/512', '× the rival'],
    ],
  );
  for (const { value, range, extra } of values) {
    assert.type(value, 'number');
    assert.match(range as string, /^[\d.]+–[\d.]+$/);
    assert.match(extra as string, /beside hash-wasm/);
  }
  assert.match(bench('--quick', '--markdown', 'hash').stdout, /^\| hash \| 16 \|/m);
});

for (const [args, said] of [
  [['nothing'], /there is no suite "nothing"; moonroute bench --list/],
  [['--slow-down', 'nothing'], /there is no suite "nothing"/],
  [['--slow-down', 'hash=0.5'], /give a factor from 1 to 100/],
  [['--threshold', 'x'], /give a percentage/],
  [['--compare', 'no-such-file.json', 'hash'], /no-such-file.json can't be read/],
  [['--compare', 'package.json', 'hash'], /package.json is neither a report of moonroute bench --json nor a baseline/],
] as const)
  test(`moonroute bench ${args.join(' ')} is refused`, () => {
    const { status, stderr, stdout } = bench(...args);
    assert.is(status, 1);
    assert.match(stderr, said);
    assert.is(stdout, '');
  });

test.after(() => rmSync(folder, { recursive: true }));

test.run();
