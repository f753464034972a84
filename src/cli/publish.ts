// `moonroute publish`: sits beside one worker and tells what it holds on an event plane, for routers that come and go.
import { once } from 'node:events';
import { Command, InvalidArgumentError, Option } from 'commander';
import { ConfigError } from '../errors.js';
import { MOST_BATCHING_MS } from '../live/plane/publish/coalesce.js';
import { DEFAULT_TRACKED_BLOCKS } from '../live/plane/publish/dedup.js';
import { DEFAULT_INDEX_BYTES, WorkerPublisher } from '../live/plane/publish/publisher.js';
import { openPlanePublisher, STREAM_LIMITS } from '../live/plane/transport/index.js';
import type { PlaneNotice } from '../live/plane/transport.js';
import { planeIdFrom } from '../router/worker-info.js';
import { COUNT, SIZE, TIME, type Unit } from '../sim/settings/units.js';
import { publisherText, publisherTotals } from './publish-progress.js';

const DEFAULT_BLOCK_SIZE = 16;
const DEFAULT_EVERY_MS = 5000;
const LEAST_EVERY_MS = 100;

interface Ranks {
  readonly start: number;
  readonly size: number;
}

const ONE_RANK: Ranks = { start: 0, size: 1 };

interface Options {
  readonly worker: readonly string[];
  readonly to: string;
  readonly model: string;
  readonly id: bigint;
  readonly replay?: readonly string[];
  readonly dpRanks: Ranks;
  readonly blockSize: number;
  readonly batchingTimeout: number;
  readonly topic: string;
  readonly retention?: number;
  readonly retentionBytes?: number;
  readonly mainGroup?: number;
  readonly imageToken?: number;
  readonly indexBytes: number;
  readonly trackedBlocks: number;
  readonly every: number;
  readonly json?: boolean;
}

/** The subcommand. */
export function publishCommand(): Command {
  return new Command('publish')
    .description(
      'Publish what a vLLM worker says of its KV cache on an event plane (NATS JetStream or ZMQ), hashed, de-duplicated and coalesced, and answer routers that missed something. Ends with Ctrl-C or SIGTERM.',
    )
    .requiredOption(
      '--worker <url>',
      "the worker's KV event socket, like tcp://10.0.0.1:5557; further ranks follow by port, or give a list",
      listOf,
    )
    .requiredOption('--to <url>', 'the plane: nats://HOST:4222, tls://…, or tcp://HOST:PORT to bind')
    .requiredOption('--model <name>', "the model's name on the plane")
    .requiredOption('--id <n>', "the worker's number on the plane, 0 to 2^64 - 1", reader(planeId))
    .option('--replay <url>', "the worker's replay socket, likewise; without it every loss clears the rank", listOf)
    .addOption(
      new Option('--dp-ranks <ranks>', 'data-parallel ranks: how many, or the first and the last, like 4-7')
        .argParser(reader(ranksOf))
        .default(ONE_RANK, '1'),
    )
    .option('--block-size <tokens>', "tokens of the routers' blocks", reader(COUNT.parse), DEFAULT_BLOCK_SIZE)
    .addOption(
      new Option(
        '--batching-timeout <time>',
        `how long an event may wait for its neighbours, at most ${TIME.say(MOST_BATCHING_MS)}`,
      )
        .argParser(reader(TIME.parse))
        .default(0, "0ms: until the end of the worker's message"),
    )
    .option('--topic <prefix>', "what the worker's topics begin with", '')
    .option(
      '--retention <time>',
      `how long JetStream keeps events, where this makes the stream (default ${TIME.say(STREAM_LIMITS.maxAge)})`,
      reader(TIME.parse),
    )
    .option(
      '--retention-bytes <size>',
      `how much it keeps (default ${SIZE.say(STREAM_LIMITS.maxBytes)})`,
      reader(SIZE.parse),
    )
    .option(
      '--main-group <n>',
      'KV-cache group whose blocks may teach a shared cache (default the first that comes)',
      reader(COUNT.parse),
    )
    .option('--image-token <id>', "the model's image token, whose runs are replaced by pad values", reader(COUNT.parse))
    .addOption(quantity('--index-bytes <size>', "memory of each rank's index", SIZE, DEFAULT_INDEX_BYTES))
    .addOption(
      quantity('--tracked-blocks <n>', 'blocks of a rank whose references are counted', COUNT, DEFAULT_TRACKED_BLOCKS),
    )
    .addOption(quantity('--every <time>', 'time between two status lines', TIME, DEFAULT_EVERY_MS))
    .option('--json', 'print JSON lines: what is open first, then the counters')
    .addHelpText(
      'after',
      `
Ids of events begin at 1 at every start. Each rank is cleared at the start and at the end: nobody watches the worker in between.

Examples:
  moonroute publish --worker tcp://10.0.0.1:5557 --replay tcp://10.0.0.1:5558 --to nats://10.0.0.9:4222 --model llama-70b --id 1
  moonroute publish --worker tcp://127.0.0.1:5557 --dp-ranks 4 --to tcp://0.0.0.0:6100 --model llama-70b --id 2 --batching-timeout 20ms`,
    )
    .action(publishAction);
}

function quantity(flags: string, says: string, unit: Unit, value: number): Option {
  return new Option(flags, says).argParser(reader(unit.parse)).default(value, unit.say(value));
}

async function publishAction(options: Options): Promise<void> {
  const { json = false, id, dpRanks, model, to, retention, retentionBytes } = options;
  if (to.startsWith('tcp:') && (retention !== undefined || retentionBytes !== undefined)) {
    throw new ConfigError('option-misplaced', '--retention is what JetStream keeps; over ZMQ (tcp://) nothing is kept');
  }
  const ended = new AbortController();
  const end = (): void => ended.abort();
  // Once: with no listener left, a second signal ends the process, whatever the plane does.
  process.once('SIGINT', end).once('SIGTERM', end);
  const began = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const plane = await openPlanePublisher(to, {
    model,
    ranks: Array.from({ length: dpRanks.size }, (_, i) => ({ workerId: id, dpRank: dpRanks.start + i })),
    stream: {
      ...(retention !== undefined && { maxAge: retention }),
      ...(retentionBytes !== undefined && { maxBytes: retentionBytes }),
    },
    onNotice: (notice) => console.error(`moonroute: ${noticeText(notice)}`),
  });
  try {
    const publisher = await WorkerPublisher.open(plane, {
      workerId: id,
      events: oneOrEach(options.worker),
      replay: options.replay === undefined ? null : oneOrEach(options.replay),
      topic: options.topic,
      dpRanks,
      blockSize: options.blockSize,
      batchingTimeout: options.batchingTimeout,
      mainGroup: options.mainGroup ?? null,
      imageTokenId: options.imageToken ?? null,
      indexBytes: options.indexBytes,
      trackedBlocks: options.trackedBlocks,
      log: (level, text) => console.error(`moonroute: ${level}: ${text}`),
    });
    const say = (): void => {
      const totals = publisherTotals(publisher.status());
      console.error(`moonroute: ${publisherText(totals, performance.now() - began)}`);
      if (json) console.log(JSON.stringify({ kind: 'counters', ...totals }));
    };
    try {
      const opened = { kind: 'open', url: plane.url, model, id: `${id}`, ranks: dpRanks.size };
      console.log(
        json ? JSON.stringify(opened) : `Publishing worker ${id} of ${model} on ${plane.url}. Ctrl-C ends it.`,
      );
      timer = setInterval(say, Math.max(LEAST_EVERY_MS, options.every));
      if (!ended.signal.aborted) await once(ended.signal, 'abort');
    } finally {
      clearInterval(timer);
      await publisher.close();
      say();
    }
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
    await plane.close();
  }
}

function noticeText(notice: PlaneNotice): string {
  switch (notice.kind) {
    case 'connected':
      return `connected to ${notice.to}`;
    case 'lost':
      return `lost ${notice.to}: ${notice.detail}`;
    default:
      return `${notice.kind}: ${notice.detail}`;
  }
}

/** One endpoint stands for all ranks, a list for each of them. */
function oneOrEach(endpoints: readonly string[]): string | readonly string[] {
  return endpoints.length === 1 ? endpoints[0]! : endpoints;
}

function listOf(text: string): readonly string[] {
  return text.split(',');
}

/** Commander names the option when a value is refused in its own way. */
function reader<T>(read: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return read(text);
    } catch (error) {
      if (error instanceof ConfigError) throw new InvalidArgumentError(error.message);
      throw error;
    }
  };
}

function planeId(text: string): bigint {
  const id = planeIdFrom(text);
  if (id !== null) return id;
  throw new ConfigError('publish-worker', `"${text}" is no worker's number; give a whole number from 0 to 2^64 - 1`);
}

function ranksOf(text: string): Ranks {
  const [, first = '', last] = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(text) ?? [];
  const start = last === undefined ? 0 : Number(first);
  const size = last === undefined ? Number(first) : Number(last) - start + 1;
  if (first !== '' && size >= 1) return { start, size };
  throw new ConfigError(
    'publish-ranks',
    `"${text}" names no ranks; write how many, like 4, or the first and the last, like 4-7`,
  );
}
