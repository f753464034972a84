// `moonroute bench`: the core and the whole path beside rivals written in plain JavaScript, and whether this build is slower than a base.
import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import type { BenchBundle, BenchComparison } from '../bench/bundle.js';
import { heapBytes, nodeEnvironment } from '../bench/node-engine.js';
import { type Baseline, BaselineSchema, type Report, ReportSchema } from '../bench/report-schema.js';
import { ConfigError } from '../errors.js';
import { printJson } from './files.js';

/** Percent. Chosen from re-runs of one build (docs/bench.md). */
const DEFAULT_THRESHOLD = 25;
/** A suite that looks slower is measured again so often; only one that looks so each time fails. */
const SECOND_LOOKS = 2;

interface Options {
  readonly quick?: true;
  readonly json?: true;
  readonly markdown?: true;
  readonly action?: true;
  readonly list?: true;
  readonly compare?: string;
  readonly threshold: number;
  readonly slowDown?: { readonly suite: string; readonly factor: number };
}

/** The subcommand. */
export function benchCommand(): Command {
  return new Command('bench')
    .description('Measure the core and the whole path beside plain JavaScript, and compare with an earlier run.')
    .argument('[suites...]', 'names of suites (see --list); default all')
    .option('--quick', 'a short run: fewer sizes and turns, at most a minute')
    .option('--json', 'print the report as JSON (docs/bench.md)')
    .option('--markdown', 'print it as Markdown')
    .option('--action', "print the list that GitHub's benchmark action reads (customBiggerIsBetter)")
    .option('--compare <file>', 'a report or a baseline; exit code 1 if a ratio is worse or a counter grew')
    .option('--threshold <percent>', 'how much worse than the base an interval may be', percent, DEFAULT_THRESHOLD)
    .option('--list', 'print the suites')
    .option('--slow-down <suite[=factor]>', 'plant a slow-down, to see that it is found; factor 2 without one', planted)
    .addHelpText('after', '\nExample:\n  moonroute bench --quick\n  moonroute bench lookup-caps wire --json > run.json')
    .action(async (names: string[], options: Options) => {
      const bundle = await loadBundle();
      if (options.list) {
        list(bundle, options.json === true);
        return;
      }
      const known = new Set(bundle.suites.map(({ name }) => name));
      for (const name of [...names, ...(options.slowDown === undefined ? [] : [options.slowDown.suite])])
        if (!known.has(name))
          throw new ConfigError('bench-suite', `there is no suite "${name}"; moonroute bench --list prints them all.`);
      const base = options.compare === undefined ? null : readBase(options.compare, bundle);
      const report = await measure(bundle, names.length === 0 ? null : names, options);
      print(report, bundle, options);
      if (base === null) return;
      const comparison = await judged(report, base, bundle, options);
      if (comparison.comparedRatios + comparison.comparedCounters === 0)
        throw new ConfigError('bench-base', `${options.compare} has no row of this run: there is nothing to compare.`);
      for (const line of linesOf(comparison, bundle, options)) console.error(line);
      if (comparison.failures.length > 0) process.exitCode = 1;
    });
}

/** A module of its own: its rivals come with it, and are no dependencies of this package. */
async function loadBundle(): Promise<BenchBundle> {
  const url = new URL('../../../bench/bench.js', import.meta.url);
  return ((await import(url.href)) as { bench: BenchBundle }).bench;
}

function measure(bundle: BenchBundle, names: readonly string[] | null, options: Options): Promise<Report> {
  return bundle.run(names, {
    mode: options.quick ? 'quick' : 'full',
    environment: nodeEnvironment(bundle.clockStep()),
    engine: { heapBytes },
    slowDown: options.slowDown,
    progress: ({ suite, size, done, all }) => {
      if (size === null) console.error(`moonroute bench: ${done + 1} of ${all}, ${suite}`);
    },
  });
}

/** Compares; what looks worse is looked at again, since a busy machine may be to blame. */
async function judged(report: Report, base: Baseline, bundle: BenchBundle, options: Options): Promise<BenchComparison> {
  let comparison = bundle.compare(report, base, options.threshold);
  for (let look = 0; look < SECOND_LOOKS; look++) {
    const slower = comparison.failures.filter(({ kind }) => kind === 'ratio');
    if (slower.length === 0) break;
    const names = [...new Set(slower.map(({ suite }) => suite))];
    console.error(`moonroute bench: ${names.join(', ')} slower than the base; measured again`);
    const again = bundle.compare(await measure(bundle, names, options), base, options.threshold);
    const still = new Set(again.failures.map(({ row, what }) => `${row} ${what}`));
    const failures = comparison.failures.filter(
      ({ kind, row, what }) => kind === 'counter' || still.has(`${row} ${what}`),
    );
    comparison = { ...comparison, failures };
  }
  return comparison;
}

function linesOf(comparison: BenchComparison, bundle: BenchBundle, { compare, threshold }: Options): string[] {
  const { failures, notes, comparedRatios, comparedCounters } = comparison;
  const compared = `${comparedRatios} ratios and ${comparedCounters} counters compared with ${compare}, threshold ${threshold} %`;
  return [
    ...notes.map((note) => `note: ${note}`),
    ...failures.map((failure) => `WORSE ${bundle.shownFinding(failure)}`),
    failures.length === 0 ? `${compared}: nothing is worse` : `${compared}: ${failures.length} worse`,
  ];
}

function print(report: Report, bundle: BenchBundle, options: Options): void {
  if (options.json) printJson(report);
  else if (options.action) printJson(bundle.actionOf(report));
  else console.log(options.markdown ? bundle.markdownOf(report) : bundle.tableOf(report));
}

function list({ suites }: BenchBundle, json: boolean): void {
  if (json) printJson(suites);
  else
    for (const { name, title, rival, sizeOf, sizes } of suites)
      console.log(
        `${name.padEnd(20)} ${title}; ${sizes.join(', ')} ${sizeOf}${rival === null ? '' : `; beside ${rival}`}`,
      );
}

function readBase(path: string, bundle: BenchBundle): Baseline {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ConfigError('bench-base', `${path} can't be read as JSON: ${(error as Error).message}`);
  }
  const baseline = BaselineSchema.safeParse(json);
  const report = ReportSchema.safeParse(json);
  const base = baseline.success ? baseline.data : report.success ? bundle.baselineOf([report.data]) : null;
  if (base !== null && base.workload === bundle.workload) return base;
  if (base !== null)
    throw new ConfigError(
      'bench-workload',
      `${path} was made with workload ${base.workload}, the suites now have ${bundle.workload}: their work has changed. Make the base anew (docs/bench.md).`,
    );
  const isReport = (json as { format?: unknown } | null)?.format === 'moonroute-bench';
  const [issue] = (isReport ? report.error : baseline.error)!.issues;
  throw new ConfigError(
    'bench-base',
    `${path} is neither a report of moonroute bench --json nor a baseline: ${issue!.path.join('.') || 'file'}: ${issue!.message}.`,
  );
}

function percent(value: string): number {
  const number = Number(value);
  if (value.trim() === '' || !(number >= 0 && number < 100))
    throw new InvalidArgumentError('give a percentage from 0 to below 100.');
  return number;
}

function planted(value: string): { suite: string; factor: number } {
  const [suite, factor = '2'] = value.split('=') as [string, string?];
  if (!(Number(factor) >= 1 && Number(factor) <= 100)) throw new InvalidArgumentError('give a factor from 1 to 100.');
  return { suite, factor: Number(factor) };
}
