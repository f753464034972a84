// `moonroute fleet`: simulated vLLM workers and a simulated Mooncake master on loopback, for trying out routers, this project's or others'.
import { once } from 'node:events';
import { Command, InvalidArgumentError, Option } from 'commander';
import { ConfigError } from '../errors.js';
import { Fleet, type FleetEndpoints, type FleetStatus } from '../fleet/fleet.js';
import { CHURN_TEXTS, type ChurnIntervals, type ChurnKind } from '../fleet/fleet-churn.js';
import { DEFAULT_ENCODING, type Encoding, EVENT_FORMS, HASH_FORMS, parseEncoding } from '../fleet/worker/encoding.js';
import { MODEL_PRESETS, presetGroups } from '../sim/settings/models.js';
import { COUNT, NUMBER, TIME, type Unit } from '../sim/settings/units.js';
import type { ReplayLayout } from '../wire/replay.js';

const HOST = '127.0.0.1';
/** What `--churn some` means, in milliseconds. */
const SOME_CHURN: ChurnIntervals = {
  'gpu-evict': 2_000,
  'store-remove': 5_000,
  'store-evict': 20_000,
  'store-batch-remove': 30_000,
  'lose-message': 30_000,
  'worker-restart': 120_000,
  'master-restart': 300_000,
};
const DEFAULT_EVERY_MS = 10_000;
/** Least time between two lines. */
const LEAST_EVERY_MS = 100;

interface Options {
  readonly workers: number;
  readonly tp: number;
  readonly dp: number;
  readonly blockSize: number;
  readonly model: string;
  readonly adapters?: string;
  readonly gpuBlocks?: number;
  readonly generation: 'A' | 'B' | 'C';
  readonly standby?: boolean;
  readonly port: number;
  readonly encoding: Encoding;
  readonly replay: ReplayLayout | 'none';
  readonly connectorEvents?: boolean;
  readonly timeScale: number;
  readonly churn?: ChurnIntervals;
  readonly seed: number;
  readonly duration?: number;
  readonly every: number;
  readonly json?: boolean;
}

/** The subcommand. */
export function fleetCommand(): Command {
  return new Command('fleet')
    .description(
      'Run simulated vLLM workers and a simulated Mooncake master on loopback until Ctrl-C, for trying out a router. They speak the real wire (OpenAI HTTP, KV events, replay, the store’s events and admin HTTP) and keep books as engines do; no model computes anything.',
    )
    .option('--workers <n>', 'workers', reader(COUNT), 2)
    .option('--tp <n>', 'tensor-parallel ranks: parts of each stored block', reader(COUNT), 1)
    .option('--dp <n>', 'data-parallel ranks: engines of a worker, each with its own event stream', reader(COUNT), 1)
    .option('--block-size <tokens>', 'tokens a block', reader(COUNT), 16)
    .addOption(
      new Option('--model <preset>', 'KV-cache groups of a model').choices(Object.keys(MODEL_PRESETS)).default('full'),
    )
    .option('--adapters <list>', 'names of LoRA adapters that all workers serve')
    .option('--gpu-blocks <n>', 'blocks of a rank’s GPU (default 8192)', reader(COUNT))
    .addOption(
      new Option('--encoding <words>', 'how KV events are written, like array-9:i64:no-rank; see below')
        .argParser(encoding)
        .default(DEFAULT_ENCODING, 'map:u64'),
    )
    .addOption(
      new Option('--replay <layout>', 'replies of the replay sockets; none leaves these out')
        .choices(['with-topic', 'without-topic', 'none'])
        .default('with-topic'),
    )
    .option(
      '--connector-events',
      'KV events also tell what is put into the store, as vLLM’s connector does (medium cpu)',
    )
    .option('--time-scale <n>', 'real time by simulated time: 1 is real, 0 does not wait', reader(NUMBER), 1)
    .addOption(new Option('--generation <name>', 'wire generation of the master').choices(['A', 'B', 'C']).default('C'))
    .option('--standby', 'a second master that can take over')
    .option('--port <base>', 'first of the ports, which follow one another; 0 for any that are free', reader(COUNT), 0)
    .option(
      '--churn <list>',
      'what happens by itself, and how often, like gpu-evict=2s,worker-restart=1min; or some',
      churn,
    )
    .option('--seed <n>', 'seed of the churn', reader(COUNT), 1)
    .option('--duration <time>', 'end by itself after that time', reader(TIME))
    .addOption(
      new Option('--every <time>', 'time between two lines of counters')
        .argParser(reader(TIME))
        .default(DEFAULT_EVERY_MS, TIME.say(DEFAULT_EVERY_MS)),
    )
    .option('--json', 'print JSON lines: endpoints first, then counters and what happened')
    .addHelpText('after', helpText())
    .action(run);
}

function helpText(): string {
  const models = Object.entries(MODEL_PRESETS).map(([name, { says }]) => `  ${name.padEnd(20)} ${says}`);
  const happenings = Object.entries(CHURN_TEXTS).map(([kind, says]) => `  ${kind.padEnd(20)} ${says}`);
  return `
Models:
${models.join('\n')}

Encodings: a form, hashes, and no-rank or map-batch, with : between
  forms                ${EVENT_FORMS.join(', ')}
  hashes               ${HASH_FORMS.join(', ')}

Churn:
${happenings.join('\n')}

A worker's HTTP also has
  GET /moonroute/descriptor   its contract (moonroute contract check reads it)
  GET /moonroute/status       its counters
  POST /moonroute/fault       {"kind": "unavailable" | "no-first-byte" | "mid-stream" | "hang" | "wrong-usage", "count": 1}

Example:
  moonroute fleet --workers 3 --tp 2 --generation A --port 18000 --churn gpu-evict=2s,store-batch-remove=10s`;
}

function reader(unit: Unit): (text: string) => number {
  return (text) => asArgument(() => unit.parse(text));
}

function encoding(text: string): Encoding {
  return asArgument(() => parseEncoding(text));
}

function churn(text: string): ChurnIntervals {
  if (text === 'some') return SOME_CHURN;
  return asArgument(() => {
    const intervals: Partial<Record<ChurnKind, number>> = {};
    for (const pair of text.split(',')) {
      const [kind, every, more] = pair.split('=');
      if (every === undefined || more !== undefined || !Object.hasOwn(CHURN_TEXTS, kind!)) {
        throw new ConfigError(
          'churn',
          `"${pair}" is nothing that happens; write some, or a list like gpu-evict=2s of ${Object.keys(CHURN_TEXTS).join(', ')}`,
        );
      }
      intervals[kind as ChurnKind] = TIME.parse(every);
    }
    return intervals;
  });
}

/** Commander names the option when a value is refused in its own way. */
function asArgument<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ConfigError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

async function run(options: Options): Promise<void> {
  const { json = false } = options;
  const ended = new AbortController();
  const end = (): void => ended.abort();
  // Listened to before anything is bound, so that an early Ctrl-C leaves nothing behind. A second one ends the process.
  process.once('SIGINT', end).once('SIGTERM', end);
  const fleet = await Fleet.start({
    workers: options.workers,
    worker: {
      host: HOST,
      tp: options.tp,
      dp: options.dp,
      blockSize: options.blockSize,
      groups: presetGroups(options.model, options.blockSize),
      encoding: options.encoding,
      latency: { timeScale: options.timeScale },
      connectorEvents: options.connectorEvents ?? false,
      ...(options.adapters === undefined ? {} : { adapters: options.adapters.split(',') }),
      ...(options.gpuBlocks === undefined ? {} : { gpuBlocks: options.gpuBlocks }),
      ...(options.replay === 'none' ? { replayPort: null } : { replayLayout: options.replay }),
    },
    master: { generation: options.generation, host: HOST },
    standby: options.standby ?? false,
    basePort: options.port,
    seed: options.seed,
    ...(options.churn === undefined ? {} : { churn: options.churn }),
    onChurn: (kind, what) => console.log(json ? JSON.stringify({ kind: 'churn', what: kind, text: what }) : what),
  });
  const counters = (): void =>
    console.log(json ? JSON.stringify({ kind: 'counters', ...fleet.status() }) : countersText(fleet.status()));
  const timers = [setInterval(counters, Math.max(LEAST_EVERY_MS, options.every))];
  if (options.duration !== undefined) timers.push(setTimeout(end, options.duration));
  try {
    const endpoints = fleet.endpoints();
    if (json) console.log(JSON.stringify({ kind: 'endpoints', ...endpoints }));
    else console.log(endpointsText(endpoints, options));
    if (!ended.signal.aborted) await once(ended.signal, 'abort');
    counters();
  } finally {
    for (const timer of timers) clearTimeout(timer);
    process.off('SIGINT', end).off('SIGTERM', end);
    await fleet.close();
  }
}

function endpointsText({ workers, masters }: FleetEndpoints, { model, blockSize, tp }: Options): string {
  const rows = [
    ['', 'HTTP', 'events', 'replay'],
    ...masters.map(({ role, http, events, generation }) => [`${role} (generation ${generation})`, http, events, '']),
    ...workers.flatMap(({ id, http, events, replay }) =>
      events.map((endpoint, rank) => [
        events.length === 1 ? id : `${id} rank ${rank}`,
        http,
        endpoint,
        replay[rank] ?? 'none',
      ]),
    ),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const table = rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd());
  return [
    'Simulated: no model computes here, nothing is stored; the sockets, messages and books are like the real ones.',
    `Model preset ${model}, blocks of ${blockSize} tokens, ${tp} tensor-parallel ${tp === 1 ? 'rank' : 'ranks'}. Ctrl-C ends it.`,
    '',
    ...table,
    '',
  ].join('\n');
}

/** One line. */
function countersText({ workers, objects, published }: FleetStatus): string {
  const ranks = workers.flatMap(({ ranks }) => ranks);
  const sum = (read: (rank: (typeof ranks)[number]) => number) => ranks.reduce((total, rank) => total + read(rank), 0);
  const store =
    published === null ? 'no master serves' : `${published.events} store events in ${published.batches} messages`;
  return [
    `${sum(({ finished }) => finished)} answers, ${sum(({ running, waiting }) => running + waiting)} under way`,
    `${sum(({ promptTokens }) => promptTokens)} prompt tokens: ${sum(({ gpuTokens }) => gpuTokens)} from GPUs, ${sum(({ storeTokens }) => storeTokens)} from the store`,
    `${sum(({ published }) => published)} KV event messages`,
    `${objects} objects`,
    store,
  ].join(' · ');
}
