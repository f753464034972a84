// Which runs a sweep makes, and how the command's options become sweeps and configurations: units, files, options that win.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Progress, progressText } from '../src/cli/simulate-progress.js';
import { checkSimConfig } from '../src/sim/config.js';
import { configInput, joined } from '../src/sim/settings/config-input.js';
import { checkRuns, namedValues, policiesOf, restartsOf, settingsOf, sweepOf } from '../src/sim/settings/lists.js';
import { MODEL_PRESETS, presetGroups } from '../src/sim/settings/models.js';
import { inputOf } from '../src/sim/settings/plan.js';
import { COUNT, gpuBlocksOf, NUMBER, RATE, SHARE, SIZE, TIME, type Unit } from '../src/sim/settings/units.js';
import { planRuns, pointText, runText } from '../src/sim/sweep.js';
import type { SimConfig } from '../src/sim/types.js';

/** What the simulation gets of options and files. */
const configOf = (...given: Parameters<typeof inputOf>): SimConfig => checkSimConfig(inputOf(...given));

const noFiles = (file: string): unknown => assert.unreachable(`no file is read, not even ${file}`);

test('units: what people type', () => {
  const rows: readonly (readonly [Unit, string, number])[] = [
    [SIZE, '0', 0],
    [SIZE, '50GB', 50e9],
    [SIZE, '50 gb', 50e9],
    [SIZE, '200GiB', 200 * 2 ** 30],
    [SIZE, '1.5TB', 1.5e12],
    [SIZE, '.5kB', 500],
    [SIZE, '12B', 12],
    [RATE, '25GB/s', 25e9],
    [RATE, '400Gbit/s', 50e9],
    [RATE, '1 GiB/s', 2 ** 30],
    [TIME, '5ms', 5],
    [TIME, '2s', 2000],
    [TIME, '1.5min', 90_000],
    [TIME, '2h', 7_200_000],
    [TIME, '250us', 0.25],
    [TIME, '0', 0],
    [COUNT, '65_536', 65_536],
    [COUNT, '20k', 20_000],
    [COUNT, '1.1k', 1100],
    [COUNT, '1.5M', 1_500_000],
    [NUMBER, '2.5', 2.5],
    [SHARE, '1%', 0.01],
    [SHARE, '0.25', 0.25],
  ];
  for (const [unit, text, value] of rows) assert.is(unit.parse(text), value, text);
});

test('units: what is refused says what was seen and shows a right one', () => {
  const rows: readonly (readonly [Unit, string])[] = [
    [SIZE, '50'],
    [SIZE, '50G'],
    [SIZE, '50Gb'],
    [SIZE, '-5GB'],
    [SIZE, 'GB'],
    [SIZE, '1e9B'],
    [SIZE, ''],
    [RATE, '25GB'],
    [RATE, '25/s'],
    [RATE, '25Gb/s'],
    [TIME, '5'],
    [TIME, '5 days'],
    [COUNT, '1.5'],
    [COUNT, '5x'],
    [COUNT, '-1'],
    [COUNT, '99999999999999999999'],
    [NUMBER, '1s'],
    [SHARE, '2'],
    [SHARE, '101%'],
  ];
  for (const [unit, text] of rows)
    assert.throws(
      () => unit.parse(text),
      (error: { code: string; message: string }) =>
        error.code === 'quantity' && error.message.includes(`"${text}"`) && error.message.includes(unit.example),
      text,
    );
});

test('GPU memory is blocks, or a size that holds so many', () => {
  assert.is(gpuBlocksOf('65536', 1000), 65_536);
  assert.is(gpuBlocksOf('64k', 1000), 64_000);
  assert.is(gpuBlocksOf('1GB', 3000), 333_333);
});

test('a sweep changes one quantity: value by value, policy by policy', () => {
  const base = checkSimConfig({ workers: { count: 4 } });
  const runs = planRuns(base, ['kv', 'random'], { axis: 'store', values: [0, 5e9] });
  assert.equal(
    runs.map(({ policy, point, config }) => [policy, point?.value, config.policy, config.store.dramBytes]),
    [
      ['kv', 0, 'kv', 0],
      ['random', 0, 'random', 0],
      ['kv', 5e9, 'kv', 5e9],
      ['random', 5e9, 'random', 5e9],
    ],
  );
  assert.equal(runs[2]!.config, { ...base, store: { ...base.store, dramBytes: 5e9 } });
  for (const [axis, value, seen] of [
    ['ssd', 7, (c: typeof base) => c.store.ssdBytes],
    ['gpu', 8, (c: typeof base) => c.workers.gpuBlocks],
    ['workers', 9, (c: typeof base) => c.workers.count],
    ['speedup', 1.5, (c: typeof base) => c.speedup],
  ] as const)
    assert.is(seen(planRuns(base, ['kv'], { axis, values: [value] })[0]!.config), value, axis);
  const [only] = planRuns(base, ['ttft'], null);
  assert.equal([only!.point, only!.config], [null, { ...base, policy: 'ttft' }]);
});

test('points and runs have names', () => {
  assert.is(pointText({ axis: 'store', value: 50e9 }), 'store 50 GB');
  assert.is(pointText({ axis: 'speedup', value: 2 }), 'speedup ×2');
  assert.is(runText({ policy: 'kv', point: { axis: 'gpu', value: 65_536 } }), 'kv, gpu 65,536');
  assert.is(runText({ policy: 'kv', point: null }), 'kv');
});

test('--sweep: values by their axis, sorted, each once; auto is the curve', () => {
  assert.equal(sweepOf('store=100GB,0,50GB,50GB', 1), { axis: 'store', values: [0, 50e9, 100e9] });
  assert.equal(sweepOf('gpu=1k,1GB', 1_000_000), { axis: 'gpu', values: [1000] });
  assert.equal(sweepOf('workers=4,8', 1), { axis: 'workers', values: [4, 8] });
  assert.equal(sweepOf('speedup=0.5,2', 1), { axis: 'speedup', values: [0.5, 2] });
  assert.is(sweepOf('store=auto', 1), 'curve');
  assert.throws(() => sweepOf('colour=1', 1), /store, ssd, gpu, workers, speedup can be swept/);
  assert.throws(() => sweepOf('store', 1), /"" is no size/);
  assert.throws(() => sweepOf('workers=auto', 1), /"auto" is no whole number/);
  assert.throws(() => checkRuns(257), /257 runs .* 256 at most/);
  checkRuns(256);
});

test('policies, restarts, settings and named values', () => {
  assert.equal(policiesOf('kv, ttft,kv'), ['kv', 'ttft']);
  assert.throws(() => policiesOf('kv,best'), /"best" is not known; take some of kv,ttft/);
  assert.equal(restartsOf('worker:3@60s', restartsOf('store@2min')), [
    { at: 120_000, worker: null },
    { at: 60_000, worker: 3 },
  ]);
  assert.throws(() => restartsOf('worker@5s'), /write it like store@2min or worker:3@60s/);
  assert.equal(settingsOf('useKvEvents=false', settingsOf('temperature=0.5')), {
    temperature: 0.5,
    useKvEvents: false,
  });
  assert.throws(() => settingsOf('temperature'), /write it like temperature=0.5/);
  assert.equal(namedValues('chat=3, agent=1', ['chat', 'agent'], ''), { chat: '3', agent: '1' });
  assert.throws(
    () => namedValues('robot=1', ['chat'], 'chat=65'),
    /"robot=1" is not understood; write it like chat=65/,
  );
});

test('a configuration file: unknown names and wrong types are refused with file and place', () => {
  const refused: readonly (readonly [unknown, RegExp])[] = [
    [[], /c\.json: a configuration must be an object, and is a list/],
    [{ workrs: {} }, /c\.json: workrs is not known; there are policy, settings, blockSize/],
    [{ store: { size: 1 } }, /c\.json: store\.size is not known; store has dramBytes/],
    [{ workers: { count: '8' } }, /c\.json: workers\.count must be a number, and is a text \("8"\)/],
    [{ groups: {} }, /groups must be a list, and is an object/],
    [{ groups: [{}, 5] }, /groups\[1\] must be an object, and is a number/],
    [{ wire: 1 }, /wire must be true or false, and is a number \(1\)/],
    [{ events: null }, /events must be an object, and is null/],
  ];
  for (const [json, message] of refused) assert.throws(() => configInput(json, 'c.json'), message);
  assert.equal(configInput({ settings: { anything: 1 } }, 'c.json'), { settings: { anything: 1 } });
});

test('options win over the file, the file over defaults; sections join, lists are whole', () => {
  assert.equal(joined({ store: { latency: 1, ssdBytes: 2 }, seed: 1 }, { store: { latency: 5 }, seed: 3 }), {
    store: { latency: 5, ssdBytes: 2 },
    seed: 3,
  });
  const file = { workers: { count: 3, batch: 7 }, store: { latency: 9 }, settings: { temperature: 1 } };
  const config = configOf({ config: 'c.json', workers: 5, speedup: 2, setting: { seed: 4 } }, (name) => {
    assert.is(name, 'c.json');
    return file;
  });
  const usual = checkSimConfig();
  assert.equal(config, {
    ...usual,
    workers: { ...usual.workers, count: 5, batch: 7 },
    store: { ...usual.store, latency: 9 },
    settings: { temperature: 1, seed: 4 },
    speedup: 2,
  });
  assert.equal(configOf({}, noFiles), usual);
});

test('groups: presets by block size, a file of one’s own, never both', () => {
  assert.equal(presetGroups('full', 16), checkSimConfig().groups);
  assert.is(presetGroups('full', 32)[0]!.bytesPerBlock, 2 * 5_242_880);
  assert.equal(
    presetGroups('sliding', 16).map(({ bytesPerBlock }) => bytesPerBlock),
    [1_310_720, 6_815_744],
  );
  assert.equal(
    presetGroups('mamba', 16).map(({ bytesPerBlock }) => bytesPerBlock),
    [393_216, 37_748_736],
  );
  for (const name of Object.keys(MODEL_PRESETS)) checkSimConfig({ groups: presetGroups(name, 16) });
  assert.throws(() => presetGroups('toString', 16), /take full, sliding, mamba/);
  assert.equal(configOf({ model: 'sliding', gpu: '131.072GB' }, noFiles).workers.gpuBlocks, 100_000);
  const own = [{ kind: 'full_attention', window: null, bytesPerBlock: 10 }];
  assert.equal(configOf({ groups: 'g.json' }, () => own).groups, own);
  assert.throws(() => configOf({ groups: 'g.json' }, () => 5), /g\.json: groups must be a list/);
  assert.throws(() => configOf({ groups: 'g.json', model: 'full' }, () => own), /give one of them/);
  assert.is(
    configOf({ config: 'c', model: 'full' }, () => ({ blockSize: 64 })).groups[0]!.bytesPerBlock,
    4 * 5_242_880,
  );
});

test('progress: a bar that fits a terminal, a line every five seconds elsewhere', () => {
  const standing = { part: 0.5, requests: 1234, at: 61_000 };
  assert.is(
    progressText('kv', 0, 2, standing, 200),
    `1/2 ${'█'.repeat(12)}${'░'.repeat(12)}  50 % 1,234 requests, 61 s of the trace  kv`,
  );
  assert.is(progressText('kv', 0, 1, { ...standing, part: null }, 20), '1,234 requests, 61 …');
  const written: string[] = [];
  let now = 0;
  const of = (terminal: boolean) =>
    new Progress({ terminal, width: 100, write: (text) => written.push(text), now: () => now });
  const lines = of(false);
  for (; now <= 10_000; now += 100) lines.tell('kv', 0, 1, standing);
  lines.clear();
  assert.is(written.length, 2);
  assert.ok(written.every((text) => text.endsWith('kv\n')));
  written.length = 0;
  const bar = of(true);
  now += 99;
  bar.tell('kv', 0, 1, standing);
  assert.is(written.length, 0);
  now++;
  bar.tell('kv', 0, 1, standing);
  bar.clear();
  bar.clear();
  assert.is(written.length, 2);
  assert.ok(written.every((text) => text.startsWith('\r\x1b[K')));
});

test.run();
