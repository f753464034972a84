// Options as texts by flag become what the command makes of them, with the same refusals; and the command line that does the same.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { checkSimConfig } from '../src/sim/config.js';
import type { SimResult } from '../src/sim/report-types.js';
import { commandOf, GROUPS_FILE } from '../src/sim/settings/command.js';
import { runOf, type SettingTexts } from '../src/sim/settings/from-texts.js';
import { HEADINGS, optionOf, SETTING_OPTIONS } from '../src/sim/settings/options.js';
import { flagOf, type SettingError } from '../src/sim/settings/refusal.js';

const MAIN = resolve('build/js/src/cli/main.js');
const folder = mkdtempSync(join(tmpdir(), 'moonroute-settings-'));
test.after(() => rmSync(folder, { recursive: true }));

/** Runs a command line in a shell, as someone who pastes it does. */
function pasted(command: string) {
  const line = command.replace(/^moonroute/, `'${process.execPath}' '${MAIN}'`);
  const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: folder });
  return { status, stdout: stdout.toString(), stderr: stderr.toString() };
}

/** Everything at once but what excludes something else. */
const MANY: SettingTexts = {
  policy: 'ttft, kv',
  sweep: 'store=50GB,0',
  limit: '12',
  requests: '15',
  rate: '2.5',
  mix: 'chat=1,agent=2',
  'workload-seed': '7',
  workers: '3',
  prefill: '10k',
  chunk: '1024',
  'decode-step': '25ms',
  'decode-step-more': '250us',
  batch: '16',
  gpu: '100GB',
  store: '1.5TB',
  ssd: '2TB',
  link: '400Gbit/s',
  'store-rate': '80GB/s',
  'ssd-rate': '10GB/s',
  latency: '3ms',
  'block-size': '32',
  ranks: '4',
  model: 'sliding',
  delay: '2ms',
  jitter: '1ms',
  loss: '1%',
  'reconcile-after': '2s',
  speedup: '2',
  seed: '5',
  index: '32MiB',
  'core-edges': '100k',
  restart: 'store@2min, worker:1@60s',
  setting: 'temperature=0.5, loadAware=false',
  wire: 'false',
  curve: 'true',
};

test('every option that is given: the same runs as the command makes of the line', () => {
  assert.equal(
    SETTING_OPTIONS.map(({ flag }) => flag).filter((flag) => !(flag in MANY)),
    ['format', 'id-tokens', 'columns', 'time-unit', 'groups'],
  );
  const plan = runOf(MANY, false);
  const command = commandOf(MANY, null);
  assert.match(command, /^moonroute simulate --policy 'ttft, kv' --sweep store=50GB,0 --curve --limit 12 /);
  assert.match(
    command,
    / --restart store@2min --restart worker:1@60s --setting temperature=0\.5 --setting loadAware=false$/,
  );
  const { status, stdout, stderr } = pasted(`${command} --json`);
  assert.is(status, 0, stderr);
  const { runs, traces, curves } = JSON.parse(stdout) as SimResult;
  assert.equal(
    runs.map(({ policy, point, config }) => ({ policy, point, config })),
    JSON.parse(JSON.stringify(plan.runs)),
  );
  assert.equal([plan.curve, plan.curveOnly, curves.length], [true, false, 1]);
  assert.equal([traces[0]!.name, traces[0]!.requests, plan.limit], ['built-in workload, seed 7', 12, 12]);
  assert.equal(plan.workload, {
    ...{ requests: 15, rate: 2.5, mix: { chat: 1, agent: 2 }, seed: 7 },
    idTokens: 32,
  });
});

test('nothing given: the simulator’s defaults; empty texts are nothing', () => {
  for (const texts of [{}, { workers: '', store: ' ', wire: 'false', curve: '' }]) {
    const { base, runs, workload, limit, trace, curve } = runOf(texts, false);
    assert.equal(base, checkSimConfig());
    assert.equal(
      runs.map(({ policy, point }) => [policy, point]),
      [
        ['kv', null],
        ['round-robin', null],
      ],
    );
    assert.equal(
      [workload, limit, trace, curve],
      [{ requests: 5000, idTokens: 16 }, Number.POSITIVE_INFINITY, {}, false],
    );
    assert.is(commandOf(texts, null), 'moonroute simulate');
  }
});

test('options of traces, and groups, which the command has from a file', () => {
  const groups = '[{"kind": "full_attention", "window": null, "bytesPerBlock": 1000}]';
  const texts = { columns: 'time=when,input=in', 'time-unit': 's', format: 'csv', 'id-tokens': '512', groups };
  const plan = runOf(texts, true);
  assert.equal(plan.trace, { format: 'csv', idTokens: 512, columns: { time: 'when', input: 'in' }, timeUnit: 's' });
  assert.is(plan.workload, null);
  assert.is(plan.base.groups[0]!.bytesPerBlock, 1000);
  const command = commandOf(texts, "my trace's.csv");
  assert.match(command, / --groups groups\.json 'my trace'\\''s\.csv'$/);
  writeFileSync(join(folder, GROUPS_FILE), groups);
  writeFileSync(join(folder, "my trace's.csv"), 'when,in\n5,100\n6,100\n');
  const { status, stdout, stderr } = pasted(`${command} --json`);
  assert.is(status, 0, stderr);
  const { runs } = JSON.parse(stdout) as SimResult;
  assert.equal(
    runs.map(({ config }) => config),
    JSON.parse(JSON.stringify(plan.runs.map(({ config }) => config))),
  );
});

test('a file whose name looks like an option is named so that it is none', () => {
  assert.is(commandOf({}, '-rf.csv'), 'moonroute simulate ./-rf.csv');
  assert.is(commandOf({}, '$(reboot).csv'), "moonroute simulate '$(reboot).csv'");
});

test('curve alone is no run', () => {
  for (const texts of [{ curve: 'true' }, { sweep: 'store=auto' }] as SettingTexts[]) {
    const { runs, curve, curveOnly } = runOf(texts, true);
    assert.equal([runs.length, curve, curveOnly], [0, true, true]);
  }
});

test('refusals: typed, with the flag that is to blame, and in the command’s words', () => {
  const rows: readonly (readonly [texts: SettingTexts, flag: string | null, code: string, traces?: boolean])[] = [
    [{ store: '50' }, 'store', 'quantity'],
    [{ loss: '2' }, 'loss', 'quantity'],
    [{ policy: 'best' }, 'policy', 'policy'],
    [{ workers: '0' }, 'workers', 'sim-workers-count'],
    [{ 'decode-step': '5' }, 'decode-step', 'quantity'],
    [{ 'block-size': '0' }, 'block-size', 'sim-block-size'],
    [{ gpu: '7x' }, 'gpu', 'quantity'],
    [{ gpu: '0' }, 'gpu', 'sim-workers-gpu-blocks'],
    [{ sweep: 'colour=1' }, 'sweep', 'sweep'],
    [{ sweep: 'workers=2,0' }, 'sweep', 'sim-workers-count'],
    [{ sweep: `workers=${Array.from({ length: 200 }, (_, i) => i + 1)}` }, 'sweep', 'sweep'],
    [{ limit: '0' }, 'limit', 'quantity'],
    [{ model: 'best' }, 'model', 'model-preset'],
    [{ model: 'full', groups: '[]' }, 'groups', 'model-twice'],
    [{ groups: '[1' }, 'groups', 'config-json'],
    [{ groups: '[1]' }, 'groups', 'config-type'],
    [{ groups: '[]' }, 'groups', 'sim-groups'],
    [{ restart: 'store@2min,worker' }, 'restart', 'restart'],
    [{ restart: 'worker:99@5s' }, 'restart', 'sim-restarts'],
    [{ setting: 'colour' }, 'setting', 'setting'],
    [{ setting: 'colour=1' }, 'setting', 'unknown-setting'],
    [{ setting: 'temperature=-1' }, 'setting', 'temperature'],
    [{ wire: 'yes' }, 'wire', 'choice'],
    [{ mix: 'robot=1' }, 'mix', 'named-values'],
    [{ mix: 'chat=x' }, 'mix', 'quantity'],
    [{ 'time-unit': 's' }, 'time-unit', 'option-misplaced'],
    [{ requests: '5' }, 'requests', 'option-misplaced', true],
    [{ format: 'excel' }, 'format', 'choice', true],
    [{ columns: 'when=1' }, 'columns', 'named-values', true],
    [{ colour: '1' }, 'colour', 'unknown-option'],
    [{ config: 'x.json' }, 'config', 'unknown-option'],
  ];
  for (const [texts, flag, code, traces = false] of rows) {
    const what = JSON.stringify(texts).slice(0, 80);
    try {
      runOf(texts, traces);
      assert.unreachable(what);
    } catch (error) {
      assert.instance(error, ConfigError, what);
      assert.equal([flagOf(error), (error as ConfigError).code], [flag, code], what);
    }
  }
  for (const texts of [{ store: '50' }, { workers: '0' }, { sweep: 'workers=2,0' }, { setting: 'colour=1' }]) {
    let message = '';
    try {
      runOf(texts, false);
    } catch (error) {
      message = (error as SettingError).message;
    }
    const { status, stderr } = pasted(commandOf(texts, null));
    assert.is(status, 1);
    assert.ok(stderr.includes(message), `${stderr} says ${message}`);
  }
});

test('the table has words for everything, under known headings', () => {
  for (const option of SETTING_OPTIONS) {
    assert.ok(option.text.length > 3 && HEADINGS.includes(option.heading), option.flag);
    assert.is(optionOf(option.flag), option);
    // What stands as an example is taken.
    if (option.value !== null && option.choices === null && !/ or |, /.test(option.example))
      option.parse(option.example);
  }
  assert.is(new Set(SETTING_OPTIONS.map(({ flag }) => flag)).size, SETTING_OPTIONS.length);
});

test.run();
