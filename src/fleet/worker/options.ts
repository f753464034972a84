// What a simulated worker is made with, and how that is checked. Every value has a default, so that a test or a command names only what it is about.
import { utf8Bytes } from '../../contract/descriptor.js';
import { ConfigError } from '../../errors.js';
import { MAX_EXTRA_KEY_BYTES } from '../../wire/block-digests.js';
import type { ReplayLayout } from '../../wire/replay.js';
import { DEFAULT_ENCODING, type Encoding } from './encoding.js';
import type { Retention } from './engine-run.js';
import { DEFAULT_BUFFER_STEPS } from './event-log.js';
import { type Geometry, type GroupOptions, geometryOf } from './geometry.js';
import { checkedLatency, type LatencyModel } from './latency.js';
import type { SharedStore } from './shared-store.js';

/** What a simulated worker is made with. All is optional. */
export interface WorkerOptions {
  /** Default `worker-0`. */
  readonly id?: string;
  /** Address to listen on; 127.0.0.1 unless given. */
  readonly host?: string;
  /** 0 for any that is free, here and below. */
  readonly httpPort?: number;
  /** Of rank 0; rank r has the port r above. */
  readonly eventsPort?: number;
  /** Likewise; null for a worker without replay. */
  readonly replayPort?: number | null;
  /** As requests name it; its last path component stands in object keys. */
  readonly model?: string;
  /** LoRA adapters, as requests name them. */
  readonly adapters?: readonly string[];
  /** What object keys begin with. */
  readonly cachePrefix?: string;
  /** Tokens of a block. */
  readonly blockSize?: number;
  /** Tensor-parallel ranks: each puts a part of every block into the store. */
  readonly tp?: number;
  /** Data-parallel ranks: each is an engine with its own stream. */
  readonly dp?: number;
  /** KV-cache groups; one of full attention unless given. */
  readonly groups?: readonly GroupOptions[];
  /** Blocks of one rank's GPU, all groups together. */
  readonly gpuBlocks?: number;
  /** Tokens that one step computes at most. */
  readonly stepTokens?: number;
  /** Requests that run at a time, and that wait; more are refused. */
  readonly maxRunning?: number;
  readonly maxWaiting?: number;
  /** Tokens of prompt and answer together. */
  readonly maxModelLength?: number;
  readonly latency?: Partial<LatencyModel>;
  /** How events are written. */
  readonly encoding?: Encoding;
  /** Topic of its messages; empty unless given. */
  readonly topic?: string;
  /** Batches kept for replay. */
  readonly bufferSteps?: number;
  /** Messages that wait for one slow subscriber before more are lost to it. */
  readonly highWaterMark?: number;
  /** Which of vLLM's layouts replays have. */
  readonly replayLayout?: ReplayLayout;
  /** Windows of which endpoints prompts keep: 0 the last one's alone, N also those of each multiple of N tokens, null all. */
  readonly retention?: Retention;
  /** Whether the store's connector announces what it puts among the KV events, as medium `cpu`. */
  readonly connectorEvents?: boolean;
  /** The shared store; null for none. */
  readonly store?: SharedStore | null;
  /** What `/moonroute/descriptor` says in place of the engine's own; null for 404. */
  readonly descriptor?: unknown;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** The same with everything in its place. */
export interface WorkerPlan extends Required<Omit<WorkerOptions, 'groups' | 'latency'>> {
  readonly geometry: Geometry;
  readonly latency: LatencyModel;
}

const MAX_PORT = 65_535;
/** Most ranks of a kind. */
const MAX_RANKS = 64;
/** vLLM's own defaults of a large model. */
const STEP_TOKENS = 8192;
const MAX_RUNNING = 256;
const HIGH_WATER_MARK = 100_000;
/** Blocks of 16 tokens: 131,072 tokens of full attention. */
const GPU_BLOCKS = 8192;
const MAX_WAITING = 1024;
const MAX_MODEL_LENGTH = 32_768;

/** Checks options. @throws ConfigError `worker-option`, `worker-groups`, `worker-model`, `worker-latency` */
export function planWorker(options: WorkerOptions): WorkerPlan {
  const { id = 'worker-0', model = 'moonroute/simulated-70b', adapters = [], cachePrefix = 'fleet' } = options;
  const blockSize = whole('blockSize', options.blockSize ?? 16, 1);
  const tp = whole('tp', options.tp ?? 1, 1, MAX_RANKS);
  for (const name of adapters) {
    if (name === '' || name === model || utf8Bytes(name) > MAX_EXTRA_KEY_BYTES)
      throw new ConfigError(
        'worker-option',
        `an adapter is named ${JSON.stringify(name)}; give 1 to ${MAX_EXTRA_KEY_BYTES} bytes, and not the model's name`,
      );
  }
  const groups = options.groups ?? [{ kind: 'full_attention' }];
  const geometry = geometryOf({ model, cachePrefix, blockSize, tp, groups });
  return {
    id,
    host: options.host ?? '127.0.0.1',
    httpPort: whole('httpPort', options.httpPort ?? 0, 0, MAX_PORT),
    eventsPort: whole('eventsPort', options.eventsPort ?? 0, 0, MAX_PORT),
    replayPort: options.replayPort === null ? null : whole('replayPort', options.replayPort ?? 0, 0, MAX_PORT),
    model,
    adapters,
    cachePrefix,
    blockSize,
    tp,
    dp: whole('dp', options.dp ?? 1, 1, MAX_RANKS),
    geometry,
    gpuBlocks: whole('gpuBlocks', options.gpuBlocks ?? GPU_BLOCKS, 1),
    stepTokens: whole('stepTokens', options.stepTokens ?? STEP_TOKENS, 1),
    maxRunning: whole('maxRunning', options.maxRunning ?? MAX_RUNNING, 1),
    maxWaiting: whole('maxWaiting', options.maxWaiting ?? MAX_WAITING, 0),
    maxModelLength: whole('maxModelLength', options.maxModelLength ?? MAX_MODEL_LENGTH, 1),
    latency: checkedLatency(options.latency ?? {}),
    encoding: checkedEncoding(options.encoding ?? DEFAULT_ENCODING, options.dp ?? 1),
    topic: options.topic ?? '',
    bufferSteps: whole('bufferSteps', options.bufferSteps ?? DEFAULT_BUFFER_STEPS, 0),
    highWaterMark: whole('highWaterMark', options.highWaterMark ?? HIGH_WATER_MARK, 1),
    replayLayout: options.replayLayout ?? 'with-topic',
    retention: checkedRetention(options.retention, geometry.alignment),
    connectorEvents: options.connectorEvents ?? false,
    store: options.store ?? null,
    descriptor: options.descriptor === undefined ? geometry.descriptor : options.descriptor,
    now: options.now ?? Date.now,
  };
}

function whole(name: string, value: number, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`;
  throw new ConfigError('worker-option', `${name} is ${value}; give a whole number ${range}`);
}

/** Rounded up to whole alignments. */
function checkedRetention(retention: Retention | undefined, alignment: number): Retention {
  if (retention === null) return null;
  return Math.ceil(whole('retention', retention ?? 0, 0) / alignment) * alignment;
}

function checkedEncoding(encoding: Encoding, dp: number): Encoding {
  if (encoding.rank || dp === 1) return encoding;
  throw new ConfigError(
    'worker-option',
    `${dp} data-parallel ranks and an encoding without a rank: their events could not be told apart. Take one rank, or an encoding with it`,
  );
}
