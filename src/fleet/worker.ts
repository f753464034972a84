// A simulated vLLM worker on real sockets: OpenAI's and vLLM's HTTP, and for each data-parallel rank an engine with its KV event stream and replay
// socket. Nothing is computed by a model; which blocks exist where is worked out as an engine would (worker/engine.ts), and told truly unless a
// fault was ordered. One object is one worker through all its lives: `kill` and `revive` are a process that dies and starts again.
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError, MoonrouteError } from '../errors.js';
import { portOf } from './sockets.js';
import type { AnswerRequest } from './worker/api.js';
import { BatchEncoder } from './worker/encoding.js';
import type { EngineCounts, Output } from './worker/engine.js';
import { EngineLoop } from './worker/engine-loop.js';
import { type HttpFault, HttpFaults, type LossKind, type ReplayFault, readFault } from './worker/faults.js';
import type { Geometry } from './worker/geometry.js';
import { type HttpHost, type Ticket, WorkerHttp } from './worker/http-server.js';
import { metricsText } from './worker/metrics.js';
import { planWorker, type WorkerOptions, type WorkerPlan } from './worker/options.js';
import { openInRow } from './worker/ports.js';
import { type PublisherCounts, RankPublisher } from './worker/publisher.js';

export type { WorkerOptions } from './worker/options.js';

/** One rank of one life. */
interface Rank {
  readonly loop: EngineLoop;
  readonly publisher: RankPublisher;
}

/** One life: from start to death. */
interface Life {
  readonly ranks: readonly Rank[];
  readonly http: WorkerHttp;
}

/** How a worker stands. */
export interface WorkerStatus {
  readonly worker: string;
  readonly simulated: true;
  readonly lives: number;
  readonly ranks: readonly RankStatus[];
}

/** How one rank of a simulated worker stands. */
export interface RankStatus extends EngineCounts, PublisherCounts {
  readonly dpRank: number;
  /** Requests that run, and that wait. */
  readonly running: number;
  readonly waiting: number;
  /** Part of the GPU's blocks that is in use, 0 … 1. */
  readonly usage: number;
  readonly steps: number;
  /** Sequence of its next message, decimal. */
  readonly nextSequence: string;
  /** Messages kept for replay. */
  readonly buffered: number;
}

/** Waits of a socket whose port the last life has not given back yet. */
const REBIND_TRIES = 100;
const REBIND_MS = 20;

/** A simulated vLLM worker: OpenAI HTTP, KV events, replay, and a model of its KV cache. Make one with `SimulatedWorker.start`. */
export class SimulatedWorker {
  readonly #plan: WorkerPlan;
  readonly #faults = new HttpFaults();
  #ports: { readonly http: number; readonly events: number; readonly replay: number | null };
  #life: Life | null = null;
  #lives = 0;

  private constructor(plan: WorkerPlan) {
    this.#plan = plan;
    this.#ports = { http: plan.httpPort, events: plan.eventsPort, replay: plan.replayPort };
  }

  /**
   * Starts a worker.
   * @throws ConfigError of `planWorker`, `zeromq-missing`, `bind-failed`; nothing stays open then
   */
  static async start(options: WorkerOptions = {}): Promise<SimulatedWorker> {
    const worker = new SimulatedWorker(planWorker(options));
    await worker.#begin();
    return worker;
  }

  // ---- where it is, and what it is ----

  get id(): string {
    return this.#plan.id;
  }
  get httpUrl(): string {
    return `http://${urlHost(this.#plan.host)}:${this.#ports.http}`;
  }
  /** Of each rank. */
  get eventsEndpoints(): readonly string[] {
    return this.#inRow(this.#ports.events);
  }
  /** Of each rank; empty for a worker without replay. */
  get replayEndpoints(): readonly string[] {
    return this.#ports.replay === null ? [] : this.#inRow(this.#ports.replay);
  }
  get geometry(): Geometry {
    return this.#plan.geometry;
  }
  /** As `/moonroute/descriptor` says it; null for none. */
  get descriptor(): unknown {
    return this.#plan.descriptor;
  }
  get adapters(): readonly string[] {
    return this.#plan.adapters;
  }
  get dp(): number {
    return this.#plan.dp;
  }
  get alive(): boolean {
    return this.#life !== null;
  }

  /** What a rank's GPU holds now: for each group the digests of its findable blocks, in hex. */
  contents(dpRank = 0): ReadonlySet<string>[] {
    return this.#rank(dpRank).loop.engine.contents();
  }

  status(): WorkerStatus {
    const ranks = this.#life?.ranks ?? [];
    return {
      worker: this.#plan.id,
      simulated: true,
      lives: this.#lives,
      ranks: ranks.map(({ loop, publisher }, dpRank) => ({
        dpRank,
        running: loop.engine.running,
        waiting: loop.engine.waiting,
        usage: loop.engine.usage,
        steps: loop.steps,
        ...loop.engine.counts,
        nextSequence: String(publisher.nextSequence),
        buffered: publisher.buffered,
        ...publisher.counts,
      })),
    };
  }

  // ---- what happens to it ----

  /** Forgets a rank's blocks, and says so; false while it serves a request. */
  clear(dpRank = 0): boolean {
    return this.#rank(dpRank).loop.clear();
  }

  /** Evicts blocks that were used longest ago. Returns how many. */
  evict(blocks: number, dpRank = 0): number {
    return this.#rank(dpRank).loop.evict(blocks);
  }

  /** Orders a fault for the next requests for an answer. */
  failNext(fault: HttpFault, count = 1): void {
    this.#faults.order(fault, count);
  }

  /** Forgets faults that were ordered. */
  heal(): void {
    this.#faults.clear();
  }

  /** Loses a rank's next messages; their numbers are used up. */
  loseNext(count: number, kind: LossKind = 'network', dpRank = 0): void {
    this.#rank(dpRank).publisher.loseNext(count, kind);
  }

  /** How a rank's replay socket behaves from now on. */
  setReplay(fault: ReplayFault, dpRank = 0): void {
    this.#rank(dpRank).publisher.replayFault = fault;
  }

  /** Keeps so many batches of a rank for replay from now on. */
  resizeReplayBuffer(batches: number, dpRank = 0): void {
    this.#rank(dpRank).publisher.resizeBuffer(batches);
  }

  /** Resolves when every message published so far has gone to its socket. */
  async flushed(): Promise<void> {
    for (const { publisher } of this.#life?.ranks ?? []) await publisher.flushed();
  }

  /** Dies: connections break, requests are lost, ports are free. */
  async kill(): Promise<void> {
    const life = this.#life;
    this.#life = null;
    if (life === null) return;
    for (const { loop } of life.ranks) loop.stop();
    await life.http.close();
    for (const { publisher } of life.ranks) await publisher.close();
  }

  /** Starts again after `kill`, at the same ports, with nothing cached and sequences from 0. @throws ConfigError `bind-failed` */
  async revive(): Promise<void> {
    if (this.#life !== null) throw new MoonrouteError('worker-alive', `${this.id} is alive; kill it first`);
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#begin();
        return;
      } catch (error) {
        const isTaken = error instanceof ConfigError && error.code === 'bind-failed';
        if (!isTaken || attempt === REBIND_TRIES) throw error;
        await wait(REBIND_MS);
      }
    }
  }

  /** Dies and starts again at once. */
  async restart(): Promise<void> {
    await this.kill();
    await this.revive();
  }

  /** Ends it for good. */
  close(): Promise<void> {
    return this.kill();
  }

  // ---- one life ----

  async #begin(): Promise<void> {
    const plan = this.#plan;
    const { events, replay } = this.#ports;
    const publishers = await openInRow(
      plan.dp,
      [events, replay],
      ([eventsPort, replayPort]) => RankPublisher.open({ ...plan, eventsPort: eventsPort!, replayPort: replayPort! }),
      ({ eventsEndpoint, replayEndpoint }) => [
        portOf(eventsEndpoint),
        replayEndpoint === null ? null : portOf(replayEndpoint),
      ],
    );
    const ranks = publishers.map((publisher, dpRank): Rank => {
      const encoder = new BatchEncoder(plan.encoding, plan.geometry);
      const loop = new EngineLoop(plan, plan.latency, (kvEvents) => {
        const payload = encoder.encode(kvEvents, dpRank, plan.now() / 1000);
        if (payload !== null) publisher.publish(payload);
      });
      return { loop, publisher };
    });
    try {
      const http = await WorkerHttp.open(this.#httpHost(ranks), plan.host, this.#ports.http);
      const [first] = publishers;
      this.#ports = {
        http: http.port,
        events: portOf(first!.eventsEndpoint),
        replay: first!.replayEndpoint === null ? null : portOf(first!.replayEndpoint),
      };
      this.#life = { ranks, http };
      this.#lives++;
    } catch (error) {
      for (const publisher of publishers) await publisher.close();
      throw error;
    }
  }

  #httpHost(ranks: readonly Rank[]): HttpHost {
    const plan = this.#plan;
    return {
      id: plan.id,
      terms: plan,
      descriptor: plan.descriptor,
      now: plan.now,
      submit: (request, rank, listener) => submitTo(ranks, request, rank, listener),
      nextFault: () => this.#faults.next(),
      orderFault: (json) => {
        const { fault, count } = readFault(json);
        this.#faults.order(fault, count);
      },
      // All ranks are asked, whatever the first one says.
      clear: () => ranks.map(({ loop }) => loop.clear()).every((cleared) => cleared),
      metrics: () => metricsText(plan.model, this.status()),
      status: () => this.status(),
    };
  }

  #rank(dpRank: number): Rank {
    const rank = this.#life?.ranks[dpRank];
    if (rank !== undefined) return rank;
    throw new MoonrouteError(
      'worker-rank',
      this.#life === null ? `${this.id} is dead; revive it first` : `${this.id} has no rank ${dpRank}`,
    );
  }

  #inRow(first: number): string[] {
    return Array.from({ length: this.#plan.dp }, (_, rank) => `tcp://${urlHost(this.#plan.host)}:${first + rank}`);
  }
}

/** Gives a request to the rank that it names, or to the one with the fewest. */
function submitTo(
  ranks: readonly Rank[],
  request: AnswerRequest,
  asked: number | null,
  listener: (output: Output) => void,
): Ticket {
  const loads = ranks.map(({ loop }) => loop.load);
  const dpRank = asked ?? loads.indexOf(Math.min(...loads));
  const rank = ranks[dpRank];
  if (rank === undefined)
    throw new MoonrouteError('bad-request', `there is no data-parallel rank ${dpRank}; there are ${ranks.length}`);
  const run = rank.loop.submit({ ...request, answer: request.answer.tokens }, listener);
  return { dpRank, abort: () => void rank.loop.abort(run) };
}

function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
