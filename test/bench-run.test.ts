// How suites are run: everything is counted before anything is timed, contenders are checked first, a short run times fewer sizes and counts them all,
// growth is read from times and counters, and a report is shown in every form.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type RunOptions, run } from '../bench/run.js';
import { actionOf, markdownOf, shownAmount, tableOf } from '../bench/shown.js';
import type { Suite, TimedSuite } from '../bench/suite.js';
import { ReportSchema } from '../src/bench/report-schema.js';

const OPTIONS: RunOptions = {
  mode: 'full',
  environment: {
    ...{ engine: 'Node 20.1.0 (V8 11)', engineFamily: 'Node 20', machine: 'a machine', processors: 2 },
    ...{ package: '0.1.0', commit: 'abc', date: '2026-11-30', clockStep: 0.001 },
  },
  engine: { heapBytes: () => null },
};
/** Short, for a test: nothing here is about time. */
const WAIT_MS = 0.01;

const wait = (ms: number) => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

function suiteOf(steps: string[], check?: () => void): TimedSuite {
  return {
    ...{ kind: 'time', name: 'toy', title: 'a toy', rival: 'a slower toy', unit: 'block', sizeOf: 'blocks' },
    ...{ sizes: [1, 2, 4, 8], quickSizes: [4], aims: { 4: 1.5, 8: 1_000 } },
    make: async () => (size: number) => ({
      a: {
        items: size,
        run: () => {
          if (steps.at(-1) !== `time ${size}`) steps.push(`time ${size}`);
          wait(WAIT_MS * size);
        },
      },
      b: { items: size, run: () => wait(3 * WAIT_MS * size) },
      check: () => {
        steps.push(`check ${size}`);
        check?.();
      },
      begin: () => steps.push(`begin ${size}`),
      counters: () => {
        steps.push(`count ${size}`);
        return { walked: size, flat: 7, none: 0 };
      },
    }),
  };
}

const quick = { ...OPTIONS, mode: 'quick' } as const;

test('a short run counts all sizes, then checks and times those that it times', async () => {
  const steps: string[] = [];
  const report = await run([suiteOf(steps)], quick);
  assert.equal(steps, ['count 1', 'count 2', 'count 4', 'count 8', 'check 4', 'begin 4', 'time 4']);
  const [suite] = report.suites;
  assert.equal(
    suite!.rows.map(({ size, a, counters }) => [size, a !== null, counters['walked']]),
    [
      [1, false, 1],
      [2, false, 2],
      [4, true, 4],
      [8, false, 8],
    ],
  );
  assert.equal(
    suite!.growth.map(({ of, exponent }) => [of, Math.round(exponent * 1e6) / 1e6]),
    [
      ['walked', 1],
      ['flat', 0],
    ],
  );
  assert.is(ReportSchema.safeParse(report).success, true);
});

test('contenders that disagree end the run', async () => {
  const suite = suiteOf([], () => {
    throw new Error('the contenders disagree');
  });
  try {
    await run([suite], quick);
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).message, 'the contenders disagree');
  }
});

test('ratio, aim and planted slow-down', async () => {
  const { suites, method } = await run([suiteOf([])], quick);
  const { ratio, aim, turns } = suites[0]!.rows[2]!;
  assert.ok(ratio!.low <= ratio!.median && ratio!.median <= ratio!.high);
  assert.ok(ratio!.median > 2 && ratio!.median < 4, `${ratio!.median}`);
  assert.equal(aim, { atLeast: 1.5, met: true });
  assert.ok(turns! >= 35);
  assert.is(method.slowDown, null);
  const slowed = await run([suiteOf([])], { ...quick, slowDown: { suite: 'toy', factor: 2 } });
  assert.ok(slowed.suites[0]!.rows[2]!.ratio!.high < 0.75 * ratio!.low);
  assert.is(slowed.method.slowDown, 'toy × 2');
});

test('bytes are weighed, with a ratio only where the engine tells of its heap', async () => {
  const weighed = (b: number | null): Suite => ({
    ...{ kind: 'bytes', name: 'weight', title: 'w', rival: 'r', unit: 'byte', sizeOf: 'edges' },
    ...{ sizes: [9], quickSizes: [9] },
    weigh: async () => ({ a: 100, b, counters: () => ({ memory: 100 }) }),
  });
  const [known, unknown] = (await run([weighed(250), weighed(null)], quick)).suites;
  assert.is(known!.rows[0]!.ratio!.median, 2.5);
  assert.equal([unknown!.rows[0]!.ratio, unknown!.rows[0]!.counters], [null, { memory: 100 }]);
});

test('progress says what runs, and how many are done', async () => {
  const heard: string[] = [];
  const progress = ({ suite, size, done, all }: { suite: string; size: number | null; done: number; all: number }) =>
    heard.push(`${suite} ${size} ${done}/${all}`);
  await run([suiteOf([]), { ...suiteOf([]), name: 'other' }], { ...quick, progress });
  assert.equal(heard, ['toy null 0/2', 'toy 4 0/2', 'other null 1/2', 'other 4 1/2']);
});

test('a report is shown as table, Markdown and action list', async () => {
  const report = await run([suiteOf([])], { ...quick, slowDown: { suite: 'toy', factor: 1 } });
  const table = tableOf(report);
  assert.match(table, /^moonroute 0\.1\.0, commit abc, 2026-11-30$/m);
  assert.match(table, /^toy {2,}4 .*\(aim 1\.5 ×: met\).*walked 4, flat 7, none 0$/m);
  assert.match(table, /^ {2}toy: walked \^ 1\.00, flat \^ 0\.00$/m);
  assert.not.match(table, /^toy {2,}8/m);
  assert.match(markdownOf(report), /^\| toy \| 4 \|/m);
  const [value, ...others] = actionOf(report);
  assert.is(others.length, 0);
  assert.equal(
    [value!.name, value!.unit, value!.value],
    ['toy/4', '× the rival', report.suites[0]!.rows[2]!.ratio!.median],
  );
});

for (const [value, measures, shown] of [
  [0.345, 'time', '0.34 ns'],
  [999, 'time', '999 ns'],
  [12_345, 'time', '12.3 µs'],
  [2.5e9, 'time', '2.50 s'],
  [1024, 'bytes', '1.00 KiB'],
  [54.25 * 1024 * 1024, 'bytes', '54.3 MiB'],
] as const)
  test(`${value} (${measures}) reads ${shown}`, () => assert.is(shownAmount(value, measures), shown));

test.run();
