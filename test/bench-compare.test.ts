// When a run counts as worse than its base: only where whole intervals lie apart by more than the threshold, or a counter grew.
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { baselineOf, compare, shownFinding } from '../bench/method/compare.js';
import { suites, WORKLOAD } from '../bench/suites/index.js';
import { type Baseline, BaselineSchema, type Report, ReportSchema } from '../src/bench/report-schema.js';

type Interval = readonly [low: number, median: number, high: number];

function reportOf(
  ratio: Interval | null,
  counters: Record<string, number> = { lines: 10 },
  family = 'Node 20',
): Report {
  const spread = { median: 1, p10: 1, p90: 1 };
  const [low, median, high] = ratio ?? [1, 1, 1];
  return {
    ...{ format: 'moonroute-bench', version: 1, workload: WORKLOAD, mode: 'quick', rivals: {}, seconds: 1 },
    environment: {
      ...{ engine: family, engineFamily: family, machine: 'm', processors: 2, package: '0', commit: 'c', date: 'd' },
      clockStep: 0.001,
    },
    method: { confidence: 0.95, resamples: 1000, slowDown: null },
    suites: [
      {
        ...{ name: 's', title: 'S', measures: 'time', unit: 'block', sizeOf: 'blocks', rival: 'r', growth: [] },
        rows: [
          {
            ...{ size: 8, turns: 9, a: spread, b: ratio === null ? null : spread, aim: null, counters },
            ratio: ratio === null ? null : { median, low, high, p10: low, p90: high },
          },
        ],
      },
    ],
  };
}

const BASE = baselineOf([reportOf([9, 10, 11])]);

for (const [what, now, threshold, fails] of [
  ['the same', [9, 10, 11], 25, false],
  ['better', [19, 20, 21], 25, false],
  ['worse within the threshold', [7, 7.2, 7.4], 25, false],
  ['worse by a median, with an interval that reaches the base', [3, 4, 9], 25, false],
  ['worse by just the threshold', [6, 6.5, 6.75], 25, false],
  ['worse beyond the threshold', [5, 6, 6.7], 25, true],
  ['worse within a wider threshold', [5, 6, 6.7], 30, false],
  ['half as good', [4.5, 5, 5.5], 25, true],
] as const)
  test(`a ratio: ${what} ${fails ? 'fails' : 'passes'}`, () => {
    const { failures, comparedRatios } = compare(reportOf(now), BASE, threshold);
    assert.is(failures.length, fails ? 1 : 0);
    assert.is(comparedRatios, 1);
  });

for (const [what, counters, fails] of [
  ['equal', { lines: 10 }, false],
  ['fell', { lines: 9 }, false],
  ['grew by one', { lines: 11 }, true],
  ['came from nothing', { lines: 10, probes: 5 }, true],
  ['is gone', {}, false],
] as const)
  test(`a counter that ${what} ${fails ? 'fails' : 'passes'}`, () => {
    const { failures } = compare(reportOf([9, 10, 11], counters), BASE, 25);
    assert.equal(
      failures.map(({ kind }) => kind),
      fails ? ['counter'] : [],
    );
  });

test('ratios of another engine are not compared, counters are', () => {
  const { failures, notes, comparedRatios } = compare(reportOf([1, 1, 1], { lines: 11 }, 'Deno 2'), BASE, 25);
  assert.equal([comparedRatios, failures.map(({ what }) => what)], [0, ['lines']]);
  assert.match(notes[0]!, /Node 20.*Deno 2/);
});

test('the base of several runs has the interval that holds all of theirs', () => {
  const base = baselineOf([reportOf([9, 10, 11]), reportOf([7, 8, 12]), reportOf([10, 11, 11.5])]);
  assert.equal(base.rows['s/8'], { ratio: { low: 7, median: 10, high: 12 }, counters: { lines: 10 } });
  assert.is(base.runs, 3);
});

test('what fails says which, by how much, and what to do', () => {
  const [slow] = compare(reportOf([4.5, 5, 5.5]), BASE, 25).failures;
  assert.match(
    shownFinding(slow!),
    /^s\/8: at best 5.50 × its rival, the base at worst 9.00 ×: 39 % slower.*moonroute bench s$/,
  );
  const [more] = compare(reportOf([9, 10, 11], { lines: 12 }), BASE, 25).failures;
  assert.match(shownFinding(more!), /^s\/8: lines grew from 10 to 12 \(20.0 %\)/);
});

test('the committed baseline fits the suites', () => {
  const base: Baseline = BaselineSchema.parse(JSON.parse(readFileSync('bench/baseline.json', 'utf8')));
  assert.is(base.workload, WORKLOAD);
  const rows = suites.flatMap(({ name, sizes, quickSizes }) =>
    quickSizes.length === 0 ? [] : sizes.map((size) => `${name}/${size}`),
  );
  assert.equal(Object.keys(base.rows).sort(), rows.sort());
  for (const { name, quickSizes, rival } of suites)
    for (const size of quickSizes)
      if (rival !== null) assert.ok(base.rows[`${name}/${size}`]!.ratio !== null, `${name}/${size}`);
  assert.not.match(JSON.stringify(base), /"(a|b|p10|p90)":/, 'no times');
});

test('the schema refuses what is no report', () => {
  assert.ok(ReportSchema.safeParse(reportOf([9, 10, 11])).success);
  assert.not(ReportSchema.safeParse({ ...reportOf([9, 10, 11]), extra: 1 }).success);
  assert.not(ReportSchema.safeParse(reportOf([0, 0, 0])).success);
});

test.run();
