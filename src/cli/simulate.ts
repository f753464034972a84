// `moonroute simulate`: what would the shared store and a policy do for this traffic? Reads traces, runs the simulator, shows the reports.
// Several traces are several simulations: each has its own clock, so one can't follow the other, and nothing merges them.
import { accessSync, constants, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Command, Option } from 'commander';
import { ConfigError } from '../errors.js';
import { BUILT_IN_INPUTS, type BuiltInPolicy } from '../router/roles.js';
import { checkSimConfig } from '../sim/config.js';
import { curvesCsv, runsCsv } from '../sim/report-csv.js';
import { blockBytes, curveText } from '../sim/report-curve.js';
import { reportHtml } from '../sim/report-html.js';
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
import { planRuns, type Sweep } from '../sim/sweep.js';
import { TRACE_FORMATS, type TraceFormat } from '../sim/traces/types.js';
import { printJson, readJson } from './files.js';
import { MODEL_PRESETS } from './simulate-models.js';
import {
  checkRuns,
  configOptions,
  inputOf,
  namedValues,
  parser,
  policiesOf,
  restartsOf,
  type SpecialOptions,
  settingsOf,
  sweepOf,
} from './simulate-options.js';
import { Progress } from './simulate-progress.js';
import { runAll, Stop } from './simulate-run.js';
import { type TraceInput, traceInput, workloadInput } from './simulate-trace.js';
import { COUNT, NUMBER } from './simulate-units.js';

const DEFAULT_POLICIES = 'kv,round-robin';
const DEFAULT_REQUESTS = 5000;
/** Ended by Ctrl-C: 128 and the signal's number, as shells have it. */
const EXIT_INTERRUPTED = 130;
const TERMINAL_WIDTH = 80;

interface Options extends SpecialOptions {
  readonly policy?: BuiltInPolicy[];
  readonly sweep?: string;
  readonly curve?: boolean;
  readonly limit?: number;
  readonly format?: TraceFormat;
  readonly idTokens?: number;
  readonly columns?: Record<string, string>;
  readonly timeUnit?: 'ms' | 's';
  readonly requests?: number;
  readonly rate?: number;
  readonly mix?: Record<string, string>;
  readonly workloadSeed?: number;
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly html?: string;
  readonly verbose?: boolean;
}

/** The subcommand. */
export function simulateCommand(): Command {
  const presets = Object.entries(MODEL_PRESETS).map(([name, { says }]) => `  ${name.padEnd(8)} ${says}`);
  const count = parser(someOf);
  const command = new Command('simulate')
    .description(
      'Simulate workers and a shared store on traces of requests, routed by the real router, and compare policies. Without a trace a built-in workload runs; - is standard input; gzip is seen by its first bytes. Each trace is a simulation of its own; the parts of a recording are one trace when they are joined (cat).',
    )
    .argument('[trace...]', `traces: ${TRACE_FORMATS.join(', ')}`)
    .option(
      '--policy <list>',
      `policies, run one after the other, of ${Object.keys(BUILT_IN_INPUTS).join(', ')} (default ${DEFAULT_POLICIES})`,
      parser(policiesOf),
    )
    .option('--config <file>', 'JSON with any part of the configuration; options win')
    .option(
      '--sweep <axis=list>',
      'a run for each value: store=0,50GB, ssd=, gpu=, workers=, speedup=; store=auto is --curve',
    )
    .option(
      '--curve',
      'hit rate of one shared LRU cache at many capacities, in one pass; no run unless --policy or --sweep asks',
    )
    .option('--limit <n>', 'take so many requests of each trace', count)
    .option('--json', 'print one JSON document: traces, runs with configuration and report, curves')
    .option('--csv', 'print CSV, a row for each policy and sweep point; of a curve alone, a row for each capacity')
    .option('--html <file>', 'also write a page with charts that needs nothing else')
    .option('--verbose', 'also print reasons for zero credit, workers, and tables of each sweep point')
    .optionsGroup('Trace:')
    .addOption(new Option('--format <name>', 'format, where the first row does not tell').choices([...TRACE_FORMATS]))
    .option(
      '--id-tokens <n>',
      "tokens of one hash id, where they are not the format's own; of a recording, the block size that counts",
      count,
    )
    .option(
      '--columns <names>',
      'columns of a CSV by their header, like time=arrived,input=prompt,output=answer',
      parser((text) => namedValues(text, ['time', 'input', 'output'], 'time=arrived,input=prompt,output=answer')),
    )
    .addOption(new Option('--time-unit <unit>', "unit of a CSV's times").choices(['ms', 's']))
    .optionsGroup('Built-in workload:')
    .option('--requests <n>', `requests (default ${DEFAULT_REQUESTS})`, count)
    .option('--rate <n>', 'requests a second (default: all within ten minutes)', parser(NUMBER.parse))
    .option(
      '--mix <shares>',
      'chats and agents (default chat=65,agent=35)',
      parser((text) => namedValues(text, ['chat', 'agent'], 'chat=65,agent=35')),
    )
    .option('--workload-seed <n>', 'seed (default 1)', parser(COUNT.parse));
  for (const option of configOptions()) command.addOption(option);
  return command
    .addOption(
      new Option(
        '--gpu <blocks|size>',
        `GPU KV blocks of a worker, or memory for them like 100GB, counted by full-attention groups (default ${COUNT.say(checkSimConfig().workers.gpuBlocks)} blocks)`,
      ).helpGroup('Workers:'),
    )
    .addOption(new Option('--model <name>', 'KV geometry of a preset, listed below (default full)').helpGroup('Model:'))
    .addOption(
      new Option('--groups <file>', 'JSON list of { kind, window, bytesPerBlock }, all ranks together').helpGroup(
        'Model:',
      ),
    )
    .addOption(
      new Option('--restart <what@time>', 'store@2min or worker:3@60s starts anew, empty; may be repeated')
        .argParser(parser(restartsOf))
        .helpGroup('Router and clock:'),
    )
    .addOption(
      new Option('--setting <name=value>', 'a setting of the router, like temperature=0.5; may be repeated')
        .argParser(parser(settingsOf))
        .helpGroup('Router and clock:'),
    )
    .addOption(
      new Option('--wire', 'feed the router the bytes of real messages: slow, for checking').helpGroup(
        'Router and clock:',
      ),
    )
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
  cat pool*.jsonl | moonroute simulate - --policy kv`,
    )
    .action(simulateAction);
}

/** A count of at least one. */
function someOf(text: string): number {
  const count = COUNT.parse(text);
  if (count === 0) throw new ConfigError('quantity', 'give 1 or more');
  return count;
}

async function simulateAction(paths: string[], options: Options): Promise<void> {
  const input = inputOf({ ...options }, readJson);
  const base = checkSimConfig(input);
  const sweeps = options.sweep === undefined ? null : sweepOf(options.sweep, blockBytes(base.groups));
  const sweep: Sweep | null = sweeps === 'curve' ? null : sweeps;
  const curveAsked = options.curve === true || sweeps === 'curve';
  const curveOnly = curveAsked && sweep === null && options.policy === undefined;
  // A page shows the curve anyway: it comes with the first pass.
  const curve = curveAsked || options.html !== undefined;
  const policies = options.policy ?? policiesOf(input.policy ?? DEFAULT_POLICIES);
  const runs = curveOnly ? [] : planRuns(base, policies, sweep);
  checkRuns(runs.length);
  for (const { config } of runs) checkSimConfig(config);
  if (options.json && options.csv)
    throw new ConfigError('output-twice', '--json and --csv both print; give one of them');
  if (options.html !== undefined) checkWritable(options.html);
  const inputs = inputsOf(paths, options, base.blockSize, Math.max(1, runs.length));

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
      inputs,
      runs,
      base,
      curve,
      limit: options.limit ?? Number.POSITIVE_INFINITY,
      stop,
      tell: silent ? () => undefined : (...standing) => progress.tell(...standing),
    });
  } finally {
    progress.clear();
    process.off('SIGINT', interrupt);
  }
  if (result.partial) process.exitCode = EXIT_INTERRUPTED;
  show(result, options, curveAsked, curveOnly);
}

function inputsOf(paths: readonly string[], options: Options, blockSize: number, passes: number): TraceInput[] {
  const { format, idTokens, columns, timeUnit, requests, rate, mix, workloadSeed } = options;
  const ofWorkload = { requests, rate, mix, workloadSeed };
  const ofTraces = { format, idTokens, columns, timeUnit };
  const misplaced = Object.entries(paths.length > 0 ? ofWorkload : ofTraces).find(([, value]) => value !== undefined);
  if (misplaced !== undefined) {
    const flag = `--${misplaced[0].replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw new ConfigError(
      'option-misplaced',
      paths.length > 0
        ? `${flag} is for the built-in workload, which runs without a trace; for fewer requests of a trace say --limit`
        : `${flag} is for traces; name one`,
    );
  }
  if (paths.length === 0) {
    return [
      workloadInput({
        requests: requests ?? DEFAULT_REQUESTS,
        idTokens: blockSize,
        ...(rate === undefined ? {} : { rate }),
        ...(workloadSeed === undefined ? {} : { seed: workloadSeed }),
        ...(mix === undefined
          ? {}
          : { mix: Object.fromEntries(Object.entries(mix).map(([kind, share]) => [kind, NUMBER.parse(share)])) }),
      }),
    ];
  }
  const twice = paths.find((path, i) => paths.indexOf(path) !== i);
  if (twice !== undefined) throw new ConfigError('trace-twice', `${twice} is given twice; each trace is read once`);
  const given = Object.fromEntries(Object.entries(ofTraces).filter(([, value]) => value !== undefined));
  return paths.map((path) => traceInput(path, given, passes));
}

/** Refuses a page that could not be written after a long simulation. */
function checkWritable(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    throw new ConfigError('html-unwritable', `cannot write ${file}: ${(error as Error).message}`);
  }
}

function show(result: SimResult, options: Options, curveAsked: boolean, curveOnly: boolean): void {
  if (options.html !== undefined) {
    writeFileSync(options.html, reportHtml(result));
    console.error(`moonroute: wrote ${options.html}`);
  }
  if (options.json) {
    printJson(result);
    return;
  }
  for (const facts of result.traces) for (const line of warningLines(facts)) console.error(`moonroute: ${line}`);
  if (options.csv) process.stdout.write(curveOnly ? curvesCsv(result.curves) : runsCsv(result.runs));
  else for (const text of resultTexts(result, options.verbose === true, curveAsked)) console.log(text);
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
