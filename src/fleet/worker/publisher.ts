// The sockets of one data-parallel rank: PUB for its KV events, ROUTER for those who ask for past ones, as vLLM's publisher has them
// (spec/kv-events.md 1.2 and 1.3). Faults are played here: messages that get lost, a replay that is silent or slow.
import { setTimeout as wait } from 'node:timers/promises';
import type { Publisher, Router } from 'zeromq';
import { WireError } from '../../errors.js';
import { type ReplayLayout, readReplayRequest, replayEnd, replayReply } from '../../wire/replay.js';
import { bindTcp, loadZeromq, SendQueue } from '../sockets.js';
import { EventLog } from './event-log.js';
import type { LossKind, ReplayFault } from './faults.js';

export interface PublisherOptions {
  readonly host: string;
  readonly eventsPort: number;
  /** Null for no replay socket. */
  readonly replayPort: number | null;
  readonly topic: string;
  /** Batches kept for replay. */
  readonly bufferSteps: number;
  /** Messages that wait for a slow subscriber; PUB drops above. */
  readonly highWaterMark: number;
  readonly replayLayout: ReplayLayout;
}

/** What a rank's sockets have seen. */
export interface PublisherCounts {
  /** Messages given to the socket. */
  readonly published: number;
  /** Messages that used up a number only. */
  readonly lost: number;
  readonly replays: number;
  readonly replayedBatches: number;
  readonly badReplayRequests: number;
}

export class RankPublisher {
  readonly eventsEndpoint: string;
  readonly replayEndpoint: string | null;
  /** How the replay socket behaves from now on. */
  replayFault: ReplayFault = 'none';
  readonly #log: EventLog;
  readonly #publisher: Publisher;
  readonly #queue: SendQueue;
  readonly #router: Router | null;
  readonly #layout: ReplayLayout;
  readonly #closing = new AbortController();
  readonly #serving: Promise<void>;
  #published = 0;
  #lost = 0;
  #replays = 0;
  #replayedBatches = 0;
  #badReplayRequests = 0;
  #losses: { readonly kind: LossKind; left: number }[] = [];

  private constructor(
    options: PublisherOptions,
    publisher: Publisher,
    eventsEndpoint: string,
    router: Router | null,
    replayEndpoint: string | null,
  ) {
    this.eventsEndpoint = eventsEndpoint;
    this.replayEndpoint = replayEndpoint;
    this.#log = new EventLog(options.topic, options.bufferSteps);
    this.#publisher = publisher;
    this.#queue = new SendQueue(publisher);
    this.#router = router;
    this.#layout = options.replayLayout;
    this.#serving = this.#serve();
  }

  /** Binds both sockets. @throws ConfigError `zeromq-missing`, `bind-failed`; nothing stays open then. */
  static async open(options: PublisherOptions): Promise<RankPublisher> {
    const zeromq = await loadZeromq();
    const publisher = new zeromq.Publisher({ sendHighWaterMark: options.highWaterMark, linger: 0 });
    let router: Router | null = null;
    try {
      const eventsEndpoint = await bindTcp(publisher, options.host, options.eventsPort);
      if (options.replayPort === null) return new RankPublisher(options, publisher, eventsEndpoint, null, null);
      router = new zeromq.Router({ sendHighWaterMark: options.highWaterMark, linger: 0 });
      const replayEndpoint = await bindTcp(router, options.host, options.replayPort);
      return new RankPublisher(options, publisher, eventsEndpoint, router, replayEndpoint);
    } catch (error) {
      publisher.close();
      router?.close();
      throw error;
    }
  }

  /** The sequence of the next message. */
  get nextSequence(): bigint {
    return this.#log.next;
  }

  get counts(): PublisherCounts {
    const refused = this.#queue.failed;
    return {
      published: this.#published - refused,
      lost: this.#lost + refused,
      replays: this.#replays,
      replayedBatches: this.#replayedBatches,
      badReplayRequests: this.#badReplayRequests,
    };
  }

  /** Batches that can be asked for. */
  get buffered(): number {
    return this.#log.buffered;
  }

  /** Publishes a batch, unless a loss was ordered: then its number is used up and nothing is sent. */
  publish(payload: Uint8Array): void {
    const loss = this.#takeLoss();
    const frames = this.#log.take(payload, loss !== 'send');
    if (loss === null && this.#queue.push(frames)) this.#published++;
    else this.#lost++;
  }

  /** Loses the next `count` messages. */
  loseNext(count: number, kind: LossKind = 'network'): void {
    this.#losses.push({ kind, left: count });
  }

  /** Keeps so many batches for replay from now on. */
  resizeBuffer(batches: number): void {
    this.#log.resize(batches);
  }

  /** Resolves when what was published has gone to the socket. */
  flushed(): Promise<void> {
    return this.#queue.flushed();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#queue.close();
    await this.#queue.flushed();
    this.#publisher.close();
    this.#router?.close();
    await this.#serving;
  }

  #takeLoss(): LossKind | null {
    const loss = this.#losses[0];
    if (loss === undefined) return null;
    if (--loss.left <= 0) this.#losses.shift();
    return loss.kind;
  }

  async #serve(): Promise<void> {
    if (this.#router === null) return;
    try {
      for await (const frames of this.#router) await this.#answer(this.#router, frames);
    } catch (error) {
      // Sending or waiting ends with an error when the socket closes under it.
      if (!this.#closing.signal.aborted) throw error;
    }
  }

  /** Answers one request; a malformed one gets no answer, as from vLLM. */
  async #answer(router: Router, frames: readonly Uint8Array[]): Promise<void> {
    let request: ReturnType<typeof readReplayRequest>;
    try {
      request = readReplayRequest(frames);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#badReplayRequests++;
      return;
    }
    this.#replays++;
    if (this.replayFault === 'silent') return;
    const reply = async (parts: Uint8Array[]): Promise<void> => {
      const { replayFault } = this;
      if (typeof replayFault === 'object') await wait(replayFault.slowMs, undefined, { signal: this.#closing.signal });
      await router.send(parts);
    };
    for (const batch of this.#log.from(request.start)) {
      await reply(replayReply(request.identity, batch, this.#layout));
      this.#replayedBatches++;
    }
    await reply(replayEnd(request.identity, this.#layout));
  }
}
