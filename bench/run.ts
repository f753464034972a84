// Runs suites and makes their report. Nothing here knows a platform: what an engine offers comes in, progress goes out.
import type { Environment, Report, ReportRow, ReportSuite } from '../src/bench/report-schema.js';
import { CONFIDENCE, medianInterval, RESAMPLES } from './method/bootstrap.js';
import { growthOf } from './method/growth.js';
import { type TurnOptions, takeTurns } from './method/pairing.js';
import { Sample } from './method/sample.js';
import { rivalVersions } from './rivals/versions.js';
import type { Contest, Engine, Suite, TimedSuite, WeighedSuite } from './suite.js';
import { WORKLOAD } from './suites/index.js';

export type Mode = Report['mode'];

export interface RunOptions {
  readonly mode: Mode;
  readonly environment: Environment;
  readonly engine: Engine;
  /** A planted slow-down: every turn of this suite's A takes so many times as long. */
  readonly slowDown?: { readonly suite: string; readonly factor: number } | undefined;
  /** Hears before each suite and each size. */
  readonly progress?: (progress: Progress) => void;
}

export interface Progress {
  readonly suite: string;
  /** Null while the suite is made and counts. */
  readonly size: number | null;
  /** Suites that are done, and all. */
  readonly done: number;
  readonly all: number;
}

/** How long a size is timed. */
const TURNS: Readonly<Record<Mode, TurnOptions>> = {
  quick: { turnMs: 0.5, budgetMs: 300, leastRounds: 7, mostRounds: 61, mostWarmUpMs: 200 },
  full: { turnMs: 0.5, budgetMs: 1_000, leastRounds: 9, mostRounds: 201, mostWarmUpMs: 600 },
};
/** Enough for an optimising compiler's work on the core's largest functions. */
const COMPILE_MS = 60;
/** Sizes from which a growth is read. */
const LEAST_SIZES = 4;

/** Runs the suites one after the other. Between two sizes the event loop gets a turn, so that a page can draw and be told to stop. */
export async function run(suites: readonly Suite[], options: RunOptions): Promise<Report> {
  const started = performance.now();
  const done: ReportSuite[] = [];
  for (const suite of suites) {
    const say = (size: number | null) =>
      options.progress?.({ suite: suite.name, size, done: done.length, all: suites.length });
    say(null);
    done.push(suite.kind === 'time' ? await timed(suite, options, say) : await weighed(suite, options));
  }
  const { slowDown } = options;
  return {
    format: 'moonroute-bench',
    version: 1,
    workload: WORKLOAD,
    mode: options.mode,
    environment: options.environment,
    rivals: { ...rivalVersions },
    method: {
      confidence: CONFIDENCE,
      resamples: RESAMPLES,
      slowDown: slowDown === undefined ? null : `${slowDown.suite} × ${slowDown.factor}`,
    },
    seconds: (performance.now() - started) / 1000,
    suites: done,
  };
}

async function timed(suite: TimedSuite, options: RunOptions, say: (size: number) => void): Promise<ReportSuite> {
  const contestOf = await suite.make();
  const contests: { size: number; contest: Contest; counters: ReportRow['counters'] }[] = [];
  // Everything is counted before anything is timed: how often a thing is run depends on time, and must not be seen in a count.
  for (const size of suite.sizes) {
    const contest = await contestOf(size);
    contests.push({ size, contest, counters: { ...contest.counters() } });
  }
  const timedSizes = options.mode === 'quick' ? suite.quickSizes : suite.sizes;
  const factor = options.slowDown?.suite === suite.name ? options.slowDown.factor : 1;
  const rows: ReportRow[] = [];
  for (const { size, contest, counters } of contests) {
    if (!timedSizes.includes(size)) {
      rows.push({ size, turns: null, a: null, b: null, ratio: null, aim: null, counters });
      continue;
    }
    say(size);
    await breathe();
    contest.check?.();
    contest.begin?.();
    if (rows.every(({ a }) => a === null)) await letCompile(contest, TURNS[options.mode]);
    const turns = takeTurns(contest.a, contest.b, { ...TURNS[options.mode], slowDown: factor });
    rows.push(rowOf(suite, size, turns.a, turns.b, turns.ratios, counters));
  }
  return {
    ...headOf(suite),
    rows,
    growth: growthsOf(rows, new Map(contests.map((one) => [one.size, one.contest.a.items]))),
  };
}

async function weighed(suite: WeighedSuite, options: RunOptions): Promise<ReportSuite> {
  const rows: ReportRow[] = [];
  for (const size of suite.sizes) {
    const { a, b, counters } = await suite.weigh(options.engine, size);
    const factor = options.slowDown?.suite === suite.name ? options.slowDown.factor : 1;
    rows.push(
      rowOf(suite, size, [a * factor], b === null ? null : [b], b === null ? null : [b / (a * factor)], {
        ...counters(),
      }),
    );
  }
  return { ...headOf(suite), rows, growth: growthsOf(rows, new Map()) };
}

function headOf({ name, title, kind, unit, sizeOf, rival }: Suite): Omit<ReportSuite, 'rows' | 'growth'> {
  return { name, title, measures: kind, unit, sizeOf, rival };
}

function rowOf(
  suite: Suite,
  size: number,
  a: readonly number[],
  b: readonly number[] | null,
  ratios: readonly number[] | null,
  counters: ReportRow['counters'],
): ReportRow {
  const spread = (values: readonly number[]) => {
    const sample = new Sample(values);
    return { median: sample.median, p10: sample.at(0.1), p90: sample.at(0.9) };
  };
  const { p10, p90 } = ratios === null ? { p10: 0, p90: 0 } : spread(ratios);
  const ratio = ratios === null ? null : { ...medianInterval(ratios), p10, p90 };
  const wanted = suite.aims?.[size];
  return {
    size,
    turns: a.length,
    a: spread(a),
    b: b === null ? null : spread(b),
    ratio,
    aim: wanted === undefined || ratio === null ? null : { atLeast: wanted, met: ratio.median >= wanted },
    counters,
  };
}

/** How the cost of the whole work grows with its size: its time where enough sizes were timed, and every counter that all sizes have. */
function growthsOf(rows: readonly ReportRow[], items: ReadonlyMap<number, number>): ReportSuite['growth'] {
  const growths: ReportSuite['growth'] = [];
  if (rows.length < LEAST_SIZES) return growths;
  const add = (of: string, points: { size: number; cost: number }[]) => {
    const growth = points.length < LEAST_SIZES ? null : growthOf(points);
    if (growth !== null) growths.push({ of, ...growth });
  };
  add(
    'time',
    rows.flatMap(({ size, a }) => (a === null ? [] : { size, cost: a.median * (items.get(size) ?? 1) })),
  );
  for (const name of Object.keys(rows[0]!.counters))
    if (rows.every(({ counters }) => (counters[name] ?? 0) > 0))
      add(
        name,
        rows.map(({ size, counters }) => ({ size, cost: counters[name]! })),
      );
  return growths;
}

/** Warms up without measuring, then is still for a while: engines compile hot code beside the program, on a busy machine only when that rests. */
async function letCompile({ a, b }: Contest, options: TurnOptions): Promise<void> {
  takeTurns(a, b, { ...options, budgetMs: 0, leastRounds: 0 });
  await breathe(COMPILE_MS);
}

/** Lets whoever waits have a turn. */
function breathe(ms = 0): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
