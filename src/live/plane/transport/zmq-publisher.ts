// A worker's side over ZMQ: a PUB socket for the batches and a ROUTER for recovery, both bound here, so that routers come and go as they like.
import type { Publisher, Router } from 'zeromq';
import { bindTcp, portOf, SendQueue } from '../../../fleet/sockets.js';
import type { PlaneNotice, PlanePublisher, PlaneRank } from '../transport.js';
import { hostText, type ZmqAddress } from './address.js';
import { type Answer, Answering } from './answering.js';
import { type PlaneNames, planeNames, rankText } from './names.js';
import {
  CLOSE_PATIENCE_MS,
  MAX_PAYLOAD,
  MAX_PENDING,
  MAX_QUESTION_BYTES,
  MAX_QUESTIONS,
  type PlanePublisherOptions,
} from './options.js';
import { answerFrames, bytes, number, readQuestion } from './zmq-frames.js';
import { loadPlaneZeromq } from './zmq-package.js';

/**
 * Batches that wait for one router that reads slowly (libzmq's own default); above, PUB drops for that one, which sees a gap in the counters and
 * asks. libzmq counts no bytes: with batches of some 10 KB that is 10 MB a router.
 */
const BATCHES_WAITING = 1000;
/** Answers that wait for one router, which may be as long as a batch: as many as are worked on at a time. More are dropped, and asked for again. */
const ANSWERS_WAITING = MAX_QUESTIONS;

export class ZmqPublisher implements PlanePublisher {
  readonly url: string;
  readonly maxPayload = MAX_PAYLOAD;
  readonly onNotice: ((notice: PlaneNotice) => void) | null;
  readonly #names: PlaneNames;
  readonly #publisher: Publisher;
  readonly #router: Router;
  readonly #queue: SendQueue;
  readonly #answers: SendQueue;
  readonly #ranks: ReadonlySet<string>;
  readonly #answering = new Answering(() => MAX_PAYLOAD);
  readonly #serving: Promise<void>;
  #counter = 0n;
  #pending = 0;
  #closed = false;

  private constructor(
    options: PlanePublisherOptions,
    names: PlaneNames,
    url: string,
    sockets: { publisher: Publisher; router: Router },
  ) {
    this.url = url;
    this.onNotice = options.onNotice ?? null;
    this.#names = names;
    this.#publisher = sockets.publisher;
    this.#router = sockets.router;
    this.#queue = new SendQueue(sockets.publisher);
    this.#answers = new SendQueue(sockets.router);
    this.#ranks = new Set(options.ranks.map(rankText));
    this.#serving = this.#serve();
  }

  /** Binds both sockets. @throws ConfigError `zeromq-missing`, `bind-failed`, `plane-model`; nothing stays open then */
  static async open(address: ZmqAddress, options: PlanePublisherOptions): Promise<ZmqPublisher> {
    const names = planeNames(options.model);
    const zeromq = await loadPlaneZeromq();
    const { host } = address;
    const publisher = new zeromq.Publisher({ sendHighWaterMark: BATCHES_WAITING, linger: CLOSE_PATIENCE_MS });
    const router = new zeromq.Router({
      sendHighWaterMark: ANSWERS_WAITING,
      maxMessageSize: MAX_QUESTION_BYTES,
      linger: 0,
    });
    try {
      const port = portOf(await bindTcp(publisher, host, address.port));
      const recoverPort = portOf(await bindTcp(router, host, address.recoverPort));
      const url = `tcp://${hostText(host)}:${port}${recoverPort === port + 1 ? '' : `?recover=${recoverPort}`}`;
      return new ZmqPublisher(options, names, url, { publisher, router });
    } catch (error) {
      publisher.close();
      router.close();
      throw error;
    }
  }

  async publish(rank: PlaneRank, payload: Uint8Array): Promise<boolean> {
    if (this.#closed) return false;
    if (payload.length > MAX_PAYLOAD) {
      this.#trouble(`a batch of ${payload.length} bytes is above the ${MAX_PAYLOAD} allowed, and is lost`);
      return false;
    }
    // Its number is used up where it is lost, so that readers see the gap.
    this.#counter++;
    if (this.#pending + payload.length > MAX_PENDING) return false;
    const failed = this.#queue.failed;
    if (!this.#queue.push([bytes(this.#names.topic(rank)), number(this.#counter), payload])) return false;
    this.#pending += payload.length;
    await this.#queue.flushed();
    this.#pending -= payload.length;
    return this.#queue.failed === failed;
  }

  async serve(answer: Answer): Promise<void> {
    this.#answering.answer = answer;
  }

  /** What was taken goes out, as far as routers read it within a second. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#queue.flushed();
    this.#queue.close();
    this.#answers.close();
    this.#publisher.close();
    this.#router.close();
    await this.#serving;
  }

  async #serve(): Promise<void> {
    try {
      for await (const frames of this.#router) void this.#answer(frames);
    } catch (error) {
      // Waiting ends with an error when the socket closes under it.
      if (!this.#closed) this.#trouble(`the recovery socket failed: ${(error as Error).message}`);
    }
  }

  /** One that is no question gets no answer. */
  async #answer(frames: readonly Uint8Array[]): Promise<void> {
    const asked = readQuestion(frames);
    if (asked === null) return;
    const { identity, id } = asked;
    if (!this.#ranks.has(rankText(asked.rank))) {
      this.#answers.push(answerFrames(identity, id, 'not-mine'));
      return;
    }
    const outcome = await this.#answering.of(asked.question);
    if ('answer' in outcome) this.#answers.push(answerFrames(identity, id, 'answer', outcome.answer));
    else this.#answers.push(answerFrames(identity, id, 'refused', bytes(outcome.refused)));
  }

  #trouble(detail: string): void {
    this.onNotice?.({ kind: 'trouble', detail });
  }
}
