// `moonroute simulate` as a person or a script meets it: what goes to which stream, exit codes, and output that adds up. Small workloads.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { SimResult } from '../src/sim/report-types.js';

const MAIN = 'build/js/src/cli/main.js';
const SMALL = ['--requests', '60', '--workers', '2'];
const folder = mkdtempSync(join(tmpdir(), 'moonroute-simulate-'));
test.after(() => rmSync(folder, { recursive: true }));

function simulate(args: readonly string[], input: string | Uint8Array = '') {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'simulate', ...args], { input });
  return { status, stdout: stdout.toString(), stderr: stderr.toString() };
}
function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}
const json = (args: readonly string[], input?: string): SimResult =>
  JSON.parse(simulate([...args, '--json'], input).stdout);

/** 512-token ids: a prompt of two blocks that comes again, and one of another kind. */
const ROWS = [
  '{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2]}',
  '{"timestamp": 60000, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2]}',
  '{"timestamp": 120000, "input_length": 600, "output_length": 5, "hash_ids": [3, 4]}',
  '',
].join('\n');

test('without a trace the built-in workload runs, and policies stand side by side', () => {
  const { status, stdout, stderr } = simulate([...SMALL, '--policy', 'kv,ttft']);
  assert.is(status, 0);
  assert.is(stderr, '');
  assert.match(stdout, /^built-in workload, seed 1: 60 requests in .*\n +2 workers of 65,536 GPU blocks/);
  assert.match(stdout, /\n +kv +ttft\nRequests\n {2}arrived +60 +60\n {2}completed +60 +60\n/);
  for (const line of [
    'hit',
    'store memory',
    'reachable by any routing',
    'p99',
    'load imbalance',
    'fetch, busiest second',
  ])
    assert.match(stdout, new RegExp(`\n +${line}`));
  assert.not.match(stdout, /NaN|undefined|capacity curve|Decisions without/);
});

test('--json: one document whose numbers add up, the same for the same seeds', () => {
  const args = [...SMALL, '--policy', 'kv,random', '--seed', '7', '--jitter', '5ms', '--loss', '1%'];
  const { partial, traces, runs, curves } = json(args);
  assert.is(partial, false);
  assert.equal([traces.length, curves.length], [1, 0]);
  assert.equal(
    runs.map(({ policy, config }) => [policy, config.policy, config.seed, config.events.loss, config.workers.count]),
    [
      ['kv', 'kv', 7, 0.01, 2],
      ['random', 'random', 7, 0.01, 2],
    ],
  );
  for (const { report, trace, point } of runs) {
    assert.equal([trace, point], [traces[0]!.name, null]);
    assert.is(report.requests, 60);
    assert.is(report.tokens.prompt, traces[0]!.promptTokens);
    assert.is(report.tokens.cached + report.tokens.computed, report.tokens.prompt);
    const { full, gpu, dram, ssd, computed } = report.blocks;
    assert.is(gpu + dram + ssd + computed, full);
  }
  assert.equal(json(args), { partial, traces, runs, curves });
});

test('--csv: a row for each policy and sweep point', () => {
  const { status, stdout } = simulate([...SMALL, '--policy', 'kv,random', '--sweep', 'store=50GB,0', '--csv']);
  assert.is(status, 0);
  const [head, ...rows] = stdout.trim().split('\n');
  assert.match(head!, /^trace,policy,sweep,sweep_value,partial,workers,/);
  const cells = rows.map((row) => row.replace(/^"[^"]*"/, 'trace').split(','));
  assert.equal(
    cells.map(([, policy, sweep, value]) => [policy, sweep, value]),
    [
      ['kv', 'store', '0'],
      ['random', 'store', '0'],
      ['kv', 'store', '50000000000'],
      ['random', 'store', '50000000000'],
    ],
  );
  const dram = head!.split(',').indexOf('dram_share');
  assert.equal([cells[0]![dram], cells[1]![dram]], ['0', '0']);
  assert.ok(cells.every((row) => row.length === head!.split(',').length));
});

test('a sweep prints a line for each run, and with --verbose the tables, reasons and workers too', () => {
  const args = [...SMALL, '--policy', 'kv', '--sweep', 'workers=1,2'];
  const { stdout } = simulate(args);
  assert.match(stdout, /swept: workers 1, workers 2; all else as above/);
  assert.match(stdout, /\nworkers +policy +hit .*\n1 +kv .*\n2 +kv /);
  assert.not.match(stdout, /Throughput/);
  const { stdout: more } = simulate([...args, '--verbose']);
  assert.match(more, /Throughput[\s\S]*Decisions without shared credit +kv, workers 1 +kv, workers 2[\s\S]*worker 1 /);
});

test('a trace from a file, gzip, a pipe of any number of runs: the same numbers', () => {
  const args = ['--policy', 'kv,random', '--workers', '1'];
  const plain = json([file('t.jsonl', ROWS), ...args]);
  const packed = json([file('t.jsonl.gz', gzipSync(ROWS)), ...args]);
  const piped = json(['-', ...args], ROWS);
  assert.equal([packed.traces[0]!.gzip, piped.traces[0]!.name], [true, 'standard input']);
  for (const { runs } of [packed, piped])
    assert.equal(
      runs.map(({ report }) => report),
      plain.runs.map(({ report }) => report),
    );
  // 64 + 64 + 37 full blocks; the second prompt is there but for the block that holds its last token.
  assert.equal(plain.runs[0]!.report.blocks, { full: 165, gpu: 63, dram: 0, ssd: 0, computed: 102 });
  assert.equal([plain.traces[0]!.format, plain.traces[0]!.distinctIds, plain.traces[0]!.span], ['fast25', 4, 120_000]);
});

test('several traces are several simulations; --limit takes the first requests of each', () => {
  const other = file('other.csv', 'time,input,output\n5,100,1\n6,100,1\n7,100,1\n');
  const { traces, runs } = json([file('a.jsonl', ROWS), other, '--policy', 'kv', '--limit', '2']);
  assert.equal(
    traces.map(({ format, requests }) => [format, requests]),
    [
      ['fast25', 2],
      ['csv', 2],
    ],
  );
  assert.equal(
    runs.map(({ report }) => report.requests),
    [2, 2],
  );
});

test('what is odd about a trace is told on stderr, and in the JSON', () => {
  const path = file('odd.jsonl', `${ROWS}{"timestamp": "x"}\n`);
  const { status, stderr } = simulate([path, '--policy', 'kv']);
  assert.is(status, 0);
  assert.match(stderr, /odd\.jsonl: 1 × missing-field \(first in line 4\): .*skipped\n.* {4}\{"timestamp": "x"\}/);
  assert.match(stderr, /1 × partial-tail/);
  const { traces } = json([path, '--policy', 'kv']);
  assert.equal([traces[0]!.skipped, traces[0]!.warnings.length], [1, 2]);
});

test('--curve is one pass without a run, unless a policy is named too', () => {
  const path = file('curve.jsonl', ROWS);
  const { status, stdout } = simulate([path, '--curve']);
  assert.is(status, 0);
  assert.match(stdout, /6 references to 4 ids of 512 tokens, 168 MB each/);
  assert.match(stdout, /unlimited \(671 MB\) +33\.33 % {2}█+\n/);
  assert.not.match(stdout, /TTFT|Time to first token/);
  const auto = json([path, '--sweep', 'store=auto']);
  assert.equal([auto.runs.length, auto.curves[0]!.points.at(-1)!.hits], [0, 2]);
  const both = json([path, '--curve', '--policy', 'kv']);
  assert.equal([both.runs.length, both.curves], [1, auto.curves]);
  assert.match(simulate([path, '--curve', '--csv']).stdout, /^trace,capacity_bytes,capacity_ids,hits,share,partial\n/);
  assert.match(simulate(['-', '--curve'], '0,100,1\n').stdout, /no block ids/);
});

test('--html writes a page beside the table', () => {
  const path = join(folder, 'report.html');
  const { status, stdout, stderr } = simulate([...SMALL, '--policy', 'kv', '--html', path]);
  assert.is(status, 0);
  assert.match(stdout, /Throughput/);
  assert.match(stderr, /wrote .*report\.html/);
  const page = readFileSync(path, 'utf8');
  assert.match(page, /^<!doctype html>/);
  assert.is(page.match(/<svg /g)?.length, 3);
  assert.not.match(page, /<script|https?:|NaN|undefined/);
});

test('--config and --groups: files are read, options win', () => {
  const config = file(
    'config.json',
    '{"workers": {"count": 1, "gpuBlocks": 20000}, "policy": "least-loaded", "seed": 3}',
  );
  const groups = file('groups.json', '[{"kind": "full_attention", "window": null, "bytesPerBlock": 1000}]');
  const { runs } = json(['--requests', '20', '--config', config, '--groups', groups, '--seed', '4']);
  assert.equal(
    runs.map(({ policy, config: { workers, seed, groups } }) => [
      policy,
      workers.count,
      workers.gpuBlocks,
      seed,
      groups[0]!.bytesPerBlock,
    ]),
    [['least-loaded', 1, 20_000, 4, 1000]],
  );
});

test('errors: exit 1, nothing on stdout, and what to do on stderr', () => {
  const trace = file('good.jsonl', ROWS);
  const rows: readonly (readonly [string[], RegExp])[] = [
    [['nowhere.jsonl'], /cannot read nowhere\.jsonl/],
    [[folder], /it is a folder; name a file/],
    [[file('odd.txt', 'once upon a time\n')], /odd\.txt: no known trace begins with 'once upon a time'.*fast25.*csv/],
    [[file('empty.jsonl', '\n\n')], /empty\.jsonl holds no request: 2 blank lines/],
    [[file('cut.gz', gzipSync(ROWS).subarray(0, 40))], /cut\.gz: .*cut short or damaged/],
    [[trace, trace], /given twice/],
    [['--store', '50'], /"50" is no size; write it like 50GB/],
    [['--policy', 'best'], /"best" is not known; take some of kv,ttft/],
    [['--sweep', 'colour=1'], /store, ssd, gpu, workers, speedup can be swept/],
    [['--limit', '0'], /give 1 or more/],
    [['--json', '--csv'], /give one of them/],
    [['--html', join(folder, 'none', 'x.html')], /cannot write .*x\.html/],
    [[trace, '--requests', '5'], /--requests is for the built-in workload.*--limit/],
    [['--time-unit', 's'], /--time-unit is for traces/],
    [['--config', file('bad.json', '{"workrs": 1}')], /bad\.json: workrs is not known/],
    [['--config', file('policy.json', '{"policy": "best"}')], /"best" is not known/],
    [['--workers', '0'], /workers\.count is 0/],
    [['--sweep', 'workers=2,0'], /workers\.count is 0/],
    [['--setting', 'colour=1', '--requests', '5'], /unknown router setting/],
  ];
  for (const [args, message] of rows) {
    const { status, stdout, stderr } = simulate(args);
    assert.is(status, 1, args.join(' '));
    assert.is(stdout, '', args.join(' '));
    assert.match(stderr, message);
  }
});

test('Ctrl-C ends with what is measured so far, marked as partial: exit 130', async () => {
  // More requests than fit the reordering window, from a pipe that stays open, and more bytes than a pipe holds: once they are written, the
  // command is at work.
  const child = spawn(process.execPath, [MAIN, 'simulate', '-', '--policy', 'kv', '--workers', '2', '--json']);
  let stdout = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  const lines = Array.from({ length: 3000 }, (_, i) => `${i * 50},64,2,${'.'.repeat(400)}\n`);
  await new Promise((resolve) => child.stdin.write(lines.join(''), resolve));
  child.kill('SIGINT');
  const status = await new Promise((resolve) => child.on('close', resolve));
  assert.is(status, 130);
  const { partial, runs } = JSON.parse(stdout) as SimResult;
  assert.equal([partial, runs[0]!.partial], [true, true]);
  const { requests, completed } = runs[0]!.report;
  assert.ok(requests > 1000 && requests < 3000, `${requests} requests`);
  assert.is(completed, requests);
});

test('the help has examples, units and defaults', () => {
  const { status, stdout } = simulate(['--help']);
  assert.is(status, 0);
  assert.match(stdout, /Examples:\n {2}moonroute simulate /);
  assert.match(stdout, /--store <size> .*default 2\s+TB/);
  assert.match(stdout, /Models:\n {2}full /);
});

test.run();
