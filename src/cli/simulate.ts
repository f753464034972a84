// `moonroute simulate`: what would the shared store and a policy do for this traffic? Reads traces, runs the simulator, shows the reports.
// Several traces are several simulations: each has its own clock, so one can't follow the other, and nothing merges them.
import { accessSync, constants, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Command } from 'commander';
import { ConfigError } from '../errors.js';
import { curvesCsv, runsCsv } from '../sim/report-csv.js';
import { curveText } from '../sim/report-curve.js';
import { reportHtml } from '../sim/report-html.js';
import { resultJson } from '../sim/report-json.js';
import {
  configText,
  factsText,
  policyTable,
  sweepTable,
  sweptText,
  warningLines,
  workerTable,
  zeroTable,
} from '../sim/report-table.js';
import type { SimResult } from '../sim/report-types.js';
import { runAll, Stop } from '../sim/run-all.js';
import { MODEL_PRESETS } from '../sim/settings/models.js';
import { planOf, type RunPlan } from '../sim/settings/plan.js';
import type { SimBreath } from '../sim/simulate.js';
import { type TraceInput, workloadInput } from '../sim/trace-input.js';
import { TRACE_FORMATS } from '../sim/traces/types.js';
import { readJson } from './files.js';
import { settingOptions, settingValues } from './simulate-options.js';
import { Progress } from './simulate-progress.js';
import { traceInput } from './simulate-trace.js';
import { serveUi, type UiOptions, withUi } from './simulate-ui.js';

/** Ended by Ctrl-C: 128 and the signal's number, as shells have it. */
const EXIT_INTERRUPTED = 130;
const TERMINAL_WIDTH = 80;
/** How long a simulation runs before timers and signals get their turn. */
const BREATH_MS = 50;

/** Options that are not of the table. */
interface Options {
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly html?: string;
  readonly verbose?: boolean;
}

/** The subcommand. */
export function simulateCommand(): Command {
  const presets = Object.entries(MODEL_PRESETS).map(([name, { says }]) => `  ${name.padEnd(8)} ${says}`);
  const command = new Command('simulate')
    .description(
      'Simulate workers and a shared store on traces of requests, routed by the real router, and compare policies. Without a trace a built-in workload runs; - is standard input; gzip is seen by its first bytes. Each trace is a simulation of its own; the parts of a recording are one trace when they are joined (cat).',
    )
    .argument('[trace...]', `traces: ${TRACE_FORMATS.join(', ')}`);
  for (const option of settingOptions()) command.addOption(option);
  const typed = withUi(command);
  return command
    .option('--config <file>', 'JSON with any part of the configuration; options win')
    .option('--json', 'print one JSON document: traces, runs with configuration and report, curves')
    .option('--csv', 'print CSV, a row for each policy and sweep point; of a curve alone, a row for each capacity')
    .option('--html <file>', 'also write a page with charts that needs nothing else')
    .option('--verbose', 'also print reasons for zero credit, workers, and tables of each sweep point')
    .addHelpText(
      'after',
      `
Models:
${presets.join('\n')}

Examples:
  moonroute simulate --requests 500 --policy kv,ttft,round-robin
  moonroute simulate trace.jsonl.gz --workers 16 --store 2TB --link 400Gbit/s --html report.html
  moonroute simulate trace.jsonl --sweep store=0,100GB,500GB,2TB --policy kv --csv
  moonroute simulate trace.jsonl --curve
  moonroute simulate trace.jsonl --ui --workers 16 --store 2TB
  cat pool*.jsonl | moonroute simulate - --policy kv`,
    )
    .action((paths: string[], options: Options & UiOptions) =>
      options.ui === true ? serveUi(paths, options, typed) : simulateAction(paths, options),
    );
}

async function simulateAction(paths: string[], options: Options): Promise<void> {
  const plan = planOf(settingValues({ ...options }), paths.length > 0, { readJson });
  if (options.json && options.csv)
    throw new ConfigError('output-twice', '--json and --csv both print; give one of them');
  if (options.html !== undefined) checkWritable(options.html);
  const inputs = inputsOf(paths, plan);

  const progress = new Progress({
    terminal: process.stderr.isTTY === true,
    // Some terminals say that they have no columns.
    width: process.stderr.columns || TERMINAL_WIDTH,
    write: (text) => process.stderr.write(text),
    now: () => performance.now(),
  });
  const silent = options.json === true && process.stderr.isTTY !== true;
  const stop = new Stop();
  const interrupt = (): void => {
    progress.clear();
    console.error('moonroute: ending with what is measured so far; Ctrl-C again ends at once');
    stop.request();
  };
  // Once: with no listener left, a second Ctrl-C ends the process, however busy it is.
  process.once('SIGINT', interrupt);
  let result: SimResult;
  try {
    result = await runAll({
      ...plan,
      inputs,
      // A page shows the curve anyway: it comes with the first pass.
      curve: plan.curve || options.html !== undefined,
      stop,
      breath: breathEvery(BREATH_MS),
      tell: silent ? () => undefined : (...standing) => progress.tell(...standing),
    });
  } finally {
    progress.clear();
    process.off('SIGINT', interrupt);
  }
  if (result.partial) process.exitCode = EXIT_INTERRUPTED;
  show(result, options, plan);
}

function inputsOf(paths: readonly string[], { workload, trace, runs }: RunPlan): TraceInput[] {
  if (workload !== null) return [workloadInput(workload)];
  const twice = paths.find((path, i) => paths.indexOf(path) !== i);
  if (twice !== undefined) throw new ConfigError('trace-twice', `${twice} is given twice; each trace is read once`);
  return paths.map((path) => traceInput(path, trace, Math.max(1, runs.length)));
}

/** A breath every so many milliseconds. */
function breathEvery(ms: number): SimBreath {
  let taken = performance.now();
  return {
    due: () => performance.now() - taken >= ms,
    take: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      taken = performance.now();
    },
  };
}

/** Refuses a page that could not be written after a long simulation. */
function checkWritable(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    throw new ConfigError('html-unwritable', `cannot write ${file}: ${(error as Error).message}`);
  }
}

function show(result: SimResult, options: Options, { curve, curveOnly }: RunPlan): void {
  if (options.html !== undefined) {
    writeFileSync(options.html, reportHtml(result));
    console.error(`moonroute: wrote ${options.html}`);
  }
  if (options.json) {
    process.stdout.write(resultJson(result));
    return;
  }
  for (const facts of result.traces) for (const line of warningLines(facts)) console.error(`moonroute: ${line}`);
  if (options.csv) process.stdout.write(curveOnly ? curvesCsv(result.curves) : runsCsv(result.runs));
  else for (const text of resultTexts(result, options.verbose === true, curve)) console.log(text);
  if (result.partial)
    console.error(
      `moonroute: partial: ended before the traces did${result.traces.length === 0 ? '; nothing was measured yet' : ''}`,
    );
}

/** What a terminal gets, a piece each. */
function resultTexts({ traces, runs, curves }: SimResult, verbose: boolean, curveAsked: boolean): string[] {
  return traces.flatMap((facts) => {
    const own = runs.filter(({ trace }) => trace === facts.name);
    const swept = own.filter(({ point }) => point !== null);
    const pieces = [factsText(facts)];
    if (own[0] !== undefined) pieces.push(configText(own[0].config));
    if (swept.length > 0) pieces.push(sweptText(swept), '', sweepTable(swept), '');
    else if (own.length > 0) pieces.push('');
    if (own.length > 0 && (swept.length === 0 || verbose)) pieces.push(policyTable(own), '');
    if (verbose && own.length > 0) pieces.push(zeroTable(own), '', ...own.flatMap((run) => [workerTable(run), '']));
    if (curveAsked) {
      const curve = curves.find(({ trace }) => trace === facts.name);
      pieces.push(curve === undefined ? 'No capacity curve: the trace has no block ids.\n' : curveText(curve));
    }
    return pieces;
  });
}
