// `moonroute record`: writes what workers and the store's master publish to files, for `replay` and as a trace for `simulate`.
import { Command } from 'commander';
import { ConfigError } from '../errors.js';
import { type RecordOptions, startRecording } from '../live/record.js';
import type { RecordedSource } from '../live/recording.js';
import { ZmtpSubscriber } from '../live/zmtp/socket.js';
import { COUNT, SIZE, TIME } from '../sim/settings/units.js';
import { printJson } from './files.js';
import { recordProgressText } from './record-progress.js';
import { parser } from './simulate-options.js';

const STORE = 'store';
const DEFAULT_EVERY_MS = 5000;
/** With the default number of parts, 1 GB. */
const DEFAULT_ROTATE_BYTES = 100e6;
const DEFAULT_KEEP = 10;
const MAX_KEEP = 10_000;
const LEAST_ROTATE_BYTES = 1000;
const LEAST_EVERY_MS = 100;
/** The longest time that a timer takes. */
const MAX_TIMER_MS = 0x7fff_ffff;
const PROGRESS_EVERY_MS = 5000;
const MAX_WORKERS = 4096;

interface Options {
  readonly worker?: readonly RecordedSource[];
  readonly store?: string;
  readonly storeHttp?: string;
  readonly every?: number;
  readonly out: string;
  readonly rotate: number;
  readonly keep: number;
  readonly duration?: number;
  readonly gzip?: boolean;
  readonly json?: boolean;
}

/** The subcommand. */
export function recordCommand(): Command {
  return new Command('record')
    .description(
      "Record the raw messages of vLLM workers and of a Mooncake master, with times, losses and the master's key lists, as JSON lines. Ends with Ctrl-C, SIGTERM or --duration.",
    )
    .option(
      '--worker <id=endpoint>',
      "a worker's KV event socket, like w0=tcp://10.0.0.1:5557; may be repeated",
      parser(workersOf),
    )
    .option('--store <endpoint>', "the master's event socket")
    .option('--store-http <url>', "the master's admin address, asked for its status and its keys", parser(urlOf))
    .option('--every <time>', 'how often it is asked (default 5s)', parser(timeFrom(LEAST_EVERY_MS)))
    .requiredOption('--out <file>', 'file to write, which must not be there yet; a name that ends in .gz is packed')
    .option('--rotate <size>', 'lines of a part, before they are packed', parser(rotateOf), DEFAULT_ROTATE_BYTES)
    .option('--keep <n>', 'parts that are kept; the oldest is deleted', parser(keepOf), DEFAULT_KEEP)
    .option('--duration <time>', 'end after so long, like 10min', parser(timeFrom(1)))
    .option('--gzip', 'pack the files; .gz is added to the name')
    .option('--json', 'print the summary as one JSON document')
    .addHelpText(
      'after',
      `
Recordings hold the token ids of prompts: who reads them reads what people asked. Only their owner may (mode 0600).

Parts that are done are numbered: pool.0001.jsonl, pool.0002.jsonl, … and pool.jsonl, which is written.

Examples:
  moonroute record --worker w0=tcp://10.0.0.1:5557 --worker w1=tcp://10.0.0.2:5557 --out pool.jsonl --duration 10min
  moonroute record --store tcp://10.0.0.9:19997 --store-http http://10.0.0.9:9003 --out store.jsonl --gzip --rotate 1GB --keep 5`,
    )
    .action(recordAction);
}

async function recordAction(options: Options): Promise<void> {
  const recording = await startRecording(recordOptions(options));
  const began = performance.now();
  const elapsed = (): number => performance.now() - began;
  let end: (why: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    end = resolve;
  });
  const signals = (['SIGINT', 'SIGTERM'] as const).map((signal) => [signal, () => end(signal)] as const);
  // Once: with no listener left, a second signal ends the process, whatever the disk does.
  for (const [signal, listener] of signals) process.once(signal, listener);
  const duration = options.duration === undefined ? undefined : setTimeout(end, options.duration, 'duration');
  const progress = setInterval(() => {
    recording.flush();
    console.error(`moonroute: ${recordProgressText(recording.summary(), elapsed())}`);
  }, PROGRESS_EVERY_MS);
  try {
    const failure = await Promise.race([recording.failed, ended.then(() => null)]);
    const summary = await recording.stop(failure === null ? await ended : 'failed');
    const late = failure ?? (await Promise.race([recording.failed, null]));
    if (options.json) printJson(summary);
    else console.log(recordProgressText(summary, elapsed()));
    if (late !== null) throw late;
  } finally {
    clearTimeout(duration);
    clearInterval(progress);
    for (const [signal, listener] of signals) process.off(signal, listener);
  }
}

/** @throws ConfigError `record-nothing`, `record-name`, `option-misplaced` */
function recordOptions({ worker, store, storeHttp, every, out, rotate, keep, gzip }: Options): RecordOptions {
  const workers = worker ?? [];
  if (workers.length === 0 && store === undefined)
    throw new ConfigError('record-nothing', 'there is nothing to record; say --worker ID=tcp://… or --store tcp://…');
  if (storeHttp !== undefined && store === undefined)
    throw new ConfigError(
      'option-misplaced',
      "--store-http is for key lists next to the master's events: say --store too",
    );
  if (every !== undefined && storeHttp === undefined)
    throw new ConfigError('option-misplaced', '--every is how often --store-http is asked');
  if (store !== undefined && workers.some(({ name }) => name === STORE))
    throw new ConfigError('record-name', `a worker can't be called ${STORE}, for that is what the master is called`);
  const sources = store === undefined ? workers : [...workers, { name: STORE, kind: STORE, endpoint: store } as const];
  const packed = gzip === true || out.endsWith('.gz');
  return {
    sources,
    out: packed && !out.endsWith('.gz') ? `${out}.gz` : out,
    gzip: packed,
    rotateBytes: rotate,
    keep,
    ...(storeHttp === undefined ? {} : { http: { base: storeHttp, everyMs: every ?? DEFAULT_EVERY_MS, from: STORE } }),
    subscribe: (endpoint, handlers) => new ZmtpSubscriber(endpoint, '', handlers),
  };
}

/** `ID=tcp://…`, one after the other. @throws ConfigError `record-worker` */
function workersOf(text: string, before: readonly RecordedSource[] = []): RecordedSource[] {
  const [name = '', endpoint = ''] = text.split(/=(.*)/s);
  if (name === '' || endpoint === '')
    throw new ConfigError('record-worker', `"${text}" names no worker; write it like w0=tcp://10.0.0.1:5557`);
  if (before.some((other) => other.name === name))
    throw new ConfigError('record-worker', `two workers are called ${name}; each needs a name of its own`);
  if (before.length === MAX_WORKERS)
    throw new ConfigError('record-worker', `at most ${MAX_WORKERS} workers are recorded`);
  return [...before, { name, kind: 'worker', endpoint }];
}

function urlOf(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new ConfigError('record-http', `"${text}" is no address; write it like http://10.0.0.9:9003`);
}

const timeFrom =
  (least: number) =>
  (text: string): number => {
    const ms = TIME.parse(text);
    if (ms >= least && ms <= MAX_TIMER_MS) return ms;
    throw new ConfigError(
      'quantity',
      `${text} is too ${ms < least ? `short; give at least ${least}ms` : 'long; give at most 24 days'}`,
    );
  };

function rotateOf(text: string): number {
  const bytes = SIZE.parse(text);
  if (bytes >= LEAST_ROTATE_BYTES) return bytes;
  throw new ConfigError('quantity', `a part of ${text} is too small; give at least ${SIZE.say(LEAST_ROTATE_BYTES)}`);
}

function keepOf(text: string): number {
  const count = COUNT.parse(text);
  if (count >= 1 && count <= MAX_KEEP) return count;
  throw new ConfigError('quantity', `--keep ${text}: give 1 to ${MAX_KEEP}`);
}
