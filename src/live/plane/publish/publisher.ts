// Sits beside one worker: its ranks' event streams go in, and come out on an event plane; the plane's readers get what they missed from the local indexers.
// What the worker's own streams lose is replayed by the worker where it can be (worker-recovery.ts), else the rank is cleared, here and for all readers.
// Here are sockets, timers and turns; what happens to the events is decided by the files around.
//
// Every life begins and ends with a Cleared event of each rank: whatever a life before has told is worth nothing from then on, for nobody watched the worker
// in between, and after the end nobody does any more.
import { PrefixIndex } from '../../../core/prefix-index.js';
import { ConfigError, WireError } from '../../../errors.js';
import { WorkerEvents, type WorkerMessage, type WorkerStats } from '../../../events/worker-events.js';
import type { WorkerMessageResult } from '../../../router/gpu-events.js';
import { decodeRecoveryQuestion, encodeEvents, encodeRecoveryAnswer } from '../../../wire/envelope/index.js';
import type { RecoveryAnswer, RecoveryQuestion } from '../../../wire/envelope/types.js';
import { type Clock, systemClock } from '../../clock.js';
import { Drain } from '../../drain.js';
import { LimitedLog, type LogSink } from '../../limited-log.js';
import { endpointsOf } from '../../live-streams.js';
import type { WorkerSink } from '../../worker-sink.js';
import {
  WORKER_STREAM_LIMITS,
  WorkerStream,
  type WorkerStreamLimits,
  type WorkerStreamStatus,
} from '../../worker-stream.js';
import { CurveKeys, type CurveOptions } from '../../zmtp/socket.js';
import type { PlanePublisher } from '../transport.js';
import { Contradicted } from './contradicted.js';
import type { Draft } from './draft.js';
import { ANSWER_BYTES } from './dump-snapshots.js';
import type { RingLimits } from './event-ring.js';
import { Intake, type IntakeStats } from './intake.js';
import { LocalIndexer, type LocalIndexerStats } from './local-indexer.js';
import { Outbox, type OutboxStats } from './outbox.js';
import { RankPipeline, type RankPipelineStats } from './rank-pipeline.js';
import { BATCH_CAPS, type BatchCaps } from './split.js';

/** Memory of each rank's index: some 570,000 blocks. */
export const DEFAULT_INDEX_BYTES = 32 << 20;
/** How often what nobody needs any more is given back. */
const TIDY_EVERY_MS = 5000;
/** How long a good-bye waits for the transport. */
const CLOSE_PATIENCE_MS = 2000;
/** What an answer says beside its events. */
const ANSWER_ROOM = 1024;
const MOST_BLOCK_SIZE = 65_536;
const MOST_RANKS = 256;
const MOST_DP_RANK = 0xffff_ffff;
const MOST_WORKER_ID = (1n << 64n) - 1n;

/** How a worker's publisher is made. */
export interface PublisherOptions {
  /** The worker's number on the plane. */
  readonly workerId: bigint;
  /** Where its ranks publish, as for `LiveStreams`: rank 0's endpoint, or one for each. */
  readonly events: string | readonly string[];
  /** Where they answer replays, likewise. Without it every loss clears the rank. */
  readonly replay?: string | readonly string[] | null;
  readonly topic?: string;
  /** Default rank 0 alone. */
  readonly dpRanks?: { readonly start: number; readonly size: number };
  /** Tokens of a router's block. */
  readonly blockSize: number;
  readonly imageTokenId?: number | null;
  /** The group whose blocks may teach; null: the first that comes. */
  readonly mainGroup?: number | null;
  /** Milliseconds that an event may wait for its neighbours; 0, the default: until the end of the worker's message. */
  readonly batchingTimeout?: number;
  /** Blocks of a rank whose references are counted. */
  readonly trackedBlocks?: number;
  /** Of each rank's index. */
  readonly indexBytes?: number;
  readonly ring?: RingLimits;
  readonly limits?: Partial<WorkerStreamLimits>;
  readonly log?: LogSink;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly curve?: CurveOptions | CurveKeys | null;
}

/** How a publisher stands. */
export interface PublisherStatus {
  readonly intake: IntakeStats;
  /** Of the worker's messages. */
  readonly messages: WorkerStats;
  readonly ranks: readonly RankStatus[];
}

/** How one rank of it stands: the worker's stream, what waits and went out, and what it answers from. */
export interface RankStatus {
  readonly dpRank: number;
  readonly stream: WorkerStreamStatus;
  readonly pipeline: RankPipelineStats;
  readonly outbox: OutboxStats;
  readonly indexer: LocalIndexerStats;
}

interface Rank {
  readonly dpRank: number;
  readonly pipeline: RankPipeline;
  readonly indexer: LocalIndexer;
  readonly outbox: Outbox;
  stream: WorkerStream | null;
  /** Ends the wait of a pending event; null while there is none. */
  timer: (() => void) | null;
}

/** One worker's publisher. */
export class WorkerPublisher implements WorkerSink {
  readonly #options: PublisherOptions;
  readonly #plane: PlanePublisher;
  readonly #clock: Clock;
  readonly #log: LimitedLog;
  readonly #drain: Drain;
  readonly #events = new WorkerEvents();
  readonly #contradicted = new Contradicted();
  readonly #intake: Intake;
  readonly #ranks = new Map<number, Rank>();
  #tidies: () => void = () => {};
  #closed: Promise<void> | null = null;

  private constructor(plane: PlanePublisher, options: PublisherOptions) {
    const { clock = systemClock, log = () => {} } = options;
    this.#options = options;
    this.#plane = plane;
    this.#clock = clock;
    this.#log = new LimitedLog(log, clock);
    this.#drain = new Drain(clock, (error) => this.#log.say('fault', 'error', `${(error as Error).stack ?? error}`));
    this.#intake = new Intake({ ...options, contradicted: this.#contradicted });
  }

  /**
   * Opens the streams and answers questions; streams connect on their own, now and after every loss. The plane stays its caller's.
   * @throws ConfigError `publish-worker`, `publish-block-size`, `publish-ranks`, `batching-timeout`, `publish-tracked`, `index-bytes`, `endpoint`,
   * `live-endpoints`
   */
  static async open(plane: PlanePublisher, options: PublisherOptions): Promise<WorkerPublisher> {
    checkOptions(options);
    const publisher = new WorkerPublisher(plane, options);
    await publisher.#open();
    return publisher;
  }

  async #open(): Promise<void> {
    const {
      workerId,
      dpRanks = { start: 0, size: 1 },
      topic = '',
      limits,
      random = Math.random,
      curve,
    } = this.#options;
    const { start, size } = dpRanks;
    const events = endpointsOf(workerId, 'events', this.#options.events, start, size);
    const replay =
      this.#options.replay == null ? null : endpointsOf(workerId, 'replay', this.#options.replay, start, size);
    const keys = curve == null ? null : CurveKeys.of(curve);
    const parts = { clock: this.#clock, drain: this.#drain, log: this.#log, random, curve: keys };
    for (let i = 0; i < size; i++) {
      const endpoint = { id: workerId, dpRank: start + i, events: events[i]!, replay: replay?.[i] ?? null, topic };
      const rank = await this.#newRank(start + i, random);
      rank.stream = new WorkerStream(endpoint, this, parts, { ...WORKER_STREAM_LIMITS, ...limits });
      this.#ranks.set(rank.dpRank, rank);
    }
    await this.#plane.serve((question) => this.#answer(question));
    for (const rank of this.#ranks.values()) {
      this.#take(rank, [this.#intake.cleared(rank.dpRank)]);
      rank.stream!.open();
    }
    this.#tidy();
  }

  async #newRank(dpRank: number, random: () => number): Promise<Rank> {
    const { workerId, batchingTimeout, trackedBlocks, indexBytes = DEFAULT_INDEX_BYTES, ring } = this.#options;
    const index = await PrefixIndex.create({ bytes: indexBytes, ranks: 1, provenance: true });
    const answerBytes = (): number => Math.min(ANSWER_BYTES, this.#plane.maxPayload - ANSWER_ROOM);
    const contradicted = this.#contradicted;
    const indexer = new LocalIndexer({ workerId, dpRank, index, answerBytes, contradicted, ...(ring && { ring }) });
    const pipeline = new RankPipeline({
      ...(batchingTimeout !== undefined && { batchingTimeout }),
      ...(trackedBlocks !== undefined && { trackedBlocks }),
      caps: () => this.#caps(),
      keeper: indexer,
    });
    const outbox = new Outbox({
      rank: { workerId, dpRank },
      queue: pipeline.queue,
      plane: this.#plane,
      encode: encodeEvents,
      clock: this.#clock,
      random,
      onLost: (events) => {
        const [first, last] = [events[0]!.eventId, events.at(-1)!.eventId];
        const text = `rank ${dpRank}: the plane refused events ${first} to ${last}; readers get them by asking`;
        this.#log.say(`rank ${dpRank} refused`, 'warn', text);
      },
    });
    return { dpRank, pipeline, indexer, outbox, stream: null, timer: null };
  }

  #caps(): BatchCaps {
    return { ...BATCH_CAPS, bytes: Math.min(BATCH_CAPS.bytes, this.#plane.maxPayload) };
  }

  // ---- what the worker's streams bring ----

  onWorkerMessage(
    _id: unknown,
    frames: readonly Uint8Array[],
    { dpRank }: { readonly dpRank: number },
  ): Pick<WorkerMessageResult, 'fate' | 'lostRemoval' | 'detail'> {
    let message: WorkerMessage;
    try {
      message = this.#events.read(this.#options.workerId, frames);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      return { fate: 'unreadable', lostRemoval: true, detail: error.message };
    }
    if (message.source.dpRank !== dpRank) {
      const detail = `a message of rank ${message.source.dpRank} came over the stream of rank ${dpRank}`;
      return { fate: 'other-rank', lostRemoval: false, detail };
    }
    this.#take(this.#ranks.get(dpRank)!, this.#intake.take(message));
    return { fate: 'applied', lostRemoval: message.lostRemoval, detail: null };
  }

  rebuildWorker(_id: unknown, dpRank: number): void {
    this.#take(this.#ranks.get(dpRank)!, [this.#intake.cleared(dpRank)]);
  }

  workerStreamLost(id: unknown, dpRank: number): void {
    this.#events.forget(this.#options.workerId, dpRank);
    this.#intake.newLife();
    this.rebuildWorker(id, dpRank);
  }

  /** The events of one message of the rank go their way. */
  #take(rank: Rank, drafts: readonly Draft[]): void {
    rank.pipeline.batch(drafts, this.#clock.now());
    rank.outbox.wake();
    this.#wait(rank);
  }

  #wait(rank: Rank): void {
    const due = rank.pipeline.dueAt;
    if (due === null || rank.timer !== null) return;
    rank.timer = this.#clock.after(Math.max(0, due - this.#clock.now()), () => {
      rank.timer = null;
      rank.pipeline.tick(this.#clock.now());
      rank.outbox.wake();
      this.#wait(rank);
    });
  }

  #tidy(): void {
    this.#tidies = this.#clock.after(TIDY_EVERY_MS, () => {
      for (const { indexer } of this.#ranks.values()) indexer.tidy(this.#clock.now());
      this.#tidy();
    });
  }

  // ---- what readers ask ----

  #answer(bytes: Uint8Array): Uint8Array {
    return encodeRecoveryAnswer(this.#answerTo(bytes));
  }

  #answerTo(bytes: Uint8Array): RecoveryAnswer {
    let question: RecoveryQuestion;
    try {
      question = decodeRecoveryQuestion(bytes);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      return { kind: 'error', detail: error.message };
    }
    const rank = this.#ranks.get(question.dpRank);
    if (rank !== undefined) return rank.indexer.answer(question, this.#clock.now());
    return { kind: 'error', detail: `worker ${this.#options.workerId} has no rank ${question.dpRank} here` };
  }

  // ---- state ----

  status(): PublisherStatus {
    return {
      intake: this.#intake.stats(),
      messages: this.#events.stats(),
      ranks: [...this.#ranks.values()].map(({ dpRank, stream, pipeline, outbox, indexer }) => ({
        dpRank,
        stream: stream!.status(),
        pipeline: pipeline.stats(),
        outbox: outbox.stats(),
        indexer: indexer.stats(),
      })),
    };
  }

  /** Says good-bye: what is pending goes out, then that each rank is cleared. Resolves when the transport has it, or has had its time. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#tidies();
    const ranks = [...this.#ranks.values()];
    for (const rank of ranks) rank.stream!.close();
    await this.#drain.close();
    for (const rank of ranks) {
      rank.pipeline.batch([this.#intake.cleared(rank.dpRank)], this.#clock.now());
      rank.pipeline.flush();
      rank.timer?.();
    }
    let late: () => void = () => {};
    const patience = new Promise<void>((resolve) => {
      late = this.#clock.after(CLOSE_PATIENCE_MS, resolve);
    });
    await Promise.race([Promise.all(ranks.map(({ outbox }) => outbox.close())), patience]);
    late();
  }
}

function checkOptions({ workerId, blockSize, dpRanks = { start: 0, size: 1 } }: PublisherOptions): void {
  if (typeof workerId !== 'bigint' || workerId < 0n || workerId > MOST_WORKER_ID) {
    throw new ConfigError(
      'publish-worker',
      `the worker's number is ${workerId}; give a whole number from 0 to 2^64 - 1.`,
    );
  }
  if (!Number.isInteger(blockSize) || blockSize < 1 || blockSize > MOST_BLOCK_SIZE) {
    throw new ConfigError(
      'publish-block-size',
      `the block size is ${blockSize}; give the tokens of a router's block, 1 to ${MOST_BLOCK_SIZE}.`,
    );
  }
  const { start, size } = dpRanks;
  const whole = Number.isInteger(start) && Number.isInteger(size);
  if (!whole || start < 0 || size < 1 || size > MOST_RANKS || start + size - 1 > MOST_DP_RANK) {
    throw new ConfigError(
      'publish-ranks',
      `the ranks are ${size} from ${start} on; give 1 to ${MOST_RANKS} of them, numbered 0 to ${MOST_DP_RANK}.`,
    );
  }
}
