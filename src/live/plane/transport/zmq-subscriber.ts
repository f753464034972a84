// A router's side over ZMQ: for each publisher a SUB for its batches and a DEALER for questions, both our own sockets; for load a PUB of the
// router's own, where it has one, and a SUB for each peer. A rank is asked of the publisher that its batches come from; before any came, of all.
import type { Publisher } from 'zeromq';
import { MoonrouteError } from '../../../errors.js';
import { bindTcp, SendQueue } from '../../../fleet/sockets.js';
import { parseEndpoint } from '../../zmtp/endpoint.js';
import { ZmtpDealer, ZmtpSubscriber } from '../../zmtp/socket.js';
import type { PlaneNotice, PlaneRank, PlaneSubscriber } from '../transport.js';
import { hostText, readAddress, type ZmqAddress } from './address.js';
import { DeliveryQueue, deliverLoad, type PlaneHandlers } from './delivery.js';
import { type PlaneNames, planeNames, rankText } from './names.js';
import { MAX_PAYLOAD, PAYLOAD_SLACK, type PlaneSubscriberOptions } from './options.js';
import { bytes, questionFrames, readAnswer, readNumber, text } from './zmq-frames.js';
import { loadPlaneZeromq } from './zmq-package.js';

/** Load reports that wait for a peer that reads slowly: each replaces the one before, so few are enough. */
const LOAD_WAITING = 16;
/** Most ranks whose publisher is kept; the oldest is forgotten, and asked of all publishers. */
const ORIGINS_KEPT = 65_536;

/** One publisher's connections. */
interface Source {
  readonly endpoint: string;
  readonly events: ZmtpSubscriber;
  readonly questions: ZmtpDealer;
  /** Counter of the last batch; null before the first. */
  counter: bigint | null;
}

interface Question {
  readonly rank: PlaneRank;
  readonly frames: Uint8Array[];
  /** Those that may still answer. */
  readonly asked: Set<Source>;
  /** What they refused with. */
  refusal: string | null;
  resolve(answer: Uint8Array): void;
  reject(error: Error): void;
}

export class ZmqSubscriber implements PlaneSubscriber {
  readonly #addresses: readonly ZmqAddress[];
  readonly #options: PlaneSubscriberOptions;
  readonly #names: PlaneNames;
  readonly #sources: Source[] = [];
  readonly #peers: ZmtpSubscriber[] = [];
  /** By rank. */
  readonly #origins = new Map<string, Source>();
  readonly #questions = new Map<bigint, Question>();
  #nextQuestion = 1n;
  #queue: DeliveryQueue | null = null;
  #load: { readonly socket: Publisher; readonly queue: SendQueue; readonly url: string } | null = null;
  #closed = false;

  /** @throws ConfigError `plane-model`, `plane-url`, `endpoint` */
  constructor(addresses: readonly ZmqAddress[], options: PlaneSubscriberOptions) {
    this.#names = planeNames(options.model);
    this.#addresses = addresses;
    this.#options = options;
    for (const { events, recover } of addresses.map(endpointsOf)) {
      parseEndpoint(events);
      parseEndpoint(recover);
    }
    for (const peer of options.loadPeers ?? []) parseEndpoint(peer);
  }

  /** Where peers find this router's load; null for none. */
  get loadUrl(): string | null {
    return this.#load?.url ?? null;
  }

  async open(handlers: PlaneHandlers): Promise<void> {
    const queue = new DeliveryQueue(handlers, {
      pause: () => {
        for (const { events } of this.#sources) events.pause();
      },
      resume: () => {
        for (const { events } of this.#sources) events.resume();
      },
    });
    this.#queue = queue;
    const { loadBind, loadPeers } = this.#options;
    if (loadBind != null) await this.#bindLoad(loadBind);
    for (const address of this.#addresses) this.#sources.push(this.#newSource(address, queue));
    for (const peer of loadPeers ?? []) this.#peers.push(this.#newPeer(peer, handlers));
    for (const { events, questions } of this.#sources) {
      events.open();
      questions.open();
    }
    for (const peer of this.#peers) peer.open();
  }

  ask(rank: PlaneRank, question: Uint8Array, patience: number): Promise<Uint8Array> {
    if (this.#closed) return Promise.reject(closedError(rank));
    const id = this.#nextQuestion++;
    const origin = this.#origins.get(rankText(rank));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(id, `no answer within ${patience} ms`), patience);
      const done = (end: () => void) => {
        clearTimeout(timer);
        this.#questions.delete(id);
        end();
      };
      const asked: Question = {
        rank,
        frames: questionFrames(id, rank, question),
        asked: new Set(origin === undefined ? this.#sources : [origin]),
        refusal: null,
        resolve: (answer) => done(() => resolve(answer)),
        reject: (error) => done(() => reject(error)),
      };
      this.#questions.set(id, asked);
      // Those that are not connected are asked when they are.
      for (const source of asked.asked) source.questions.send(asked.frames);
    });
  }

  publishLoad(payload: Uint8Array): void {
    this.#load?.queue.push([bytes(this.#names.load), payload]);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue?.close();
    for (const { events, questions } of this.#sources) {
      events.close();
      questions.close();
    }
    for (const peer of this.#peers) peer.close();
    for (const question of [...this.#questions.values()]) question.reject(closedError(question.rank));
    // The last report is a good-bye: it goes to the socket before that closes.
    await this.#load?.queue.flushed();
    this.#load?.queue.close();
    this.#load?.socket.close();
  }

  // ---- batches ----

  #newSource(address: ZmqAddress, queue: DeliveryQueue): Source {
    const { events, recover } = endpointsOf(address);
    const limits = { maxMessageBytes: MAX_PAYLOAD + PAYLOAD_SLACK, ...this.#jitter() };
    const source: Source = {
      endpoint: events,
      counter: null,
      events: new ZmtpSubscriber(
        events,
        this.#names.topicPrefix,
        {
          onMessage: (frames) => this.#batch(source, frames, queue),
          onEvent: (event) => {
            if (event.kind === 'connected') queue.push({ notice: { kind: 'connected', to: events } });
            else if (event.kind === 'lost') {
              queue.push({ notice: { kind: 'lost', to: events, detail: `${event.cause}: ${event.detail}` } });
            }
          },
        },
        limits,
      ),
      questions: new ZmtpDealer(
        recover,
        {
          onMessage: (frames) => this.#answer(source, frames),
          onEvent: (event) => {
            if (event.kind === 'connected') this.#askAgain(source);
          },
        },
        limits,
      ),
    };
    return source;
  }

  #batch(source: Source, frames: readonly Uint8Array[], queue: DeliveryQueue): void {
    const [topic, counter, payload] = frames;
    const rank = topic === undefined ? null : this.#names.rankOfTopic(text(topic));
    const number = counter === undefined ? null : readNumber(counter);
    if (frames.length !== 3 || rank === null || number === null || payload === undefined) {
      queue.push({ notice: trouble(`${source.endpoint} sent a message that is no batch (${frames.length} frames)`) });
      return;
    }
    if (payload.length > MAX_PAYLOAD) {
      queue.push({
        notice: trouble(`${source.endpoint} sent a batch of ${payload.length} bytes, above ${MAX_PAYLOAD}`),
      });
      return;
    }
    // Lower numbers are those of a publisher that began anew, which its events' ids show.
    if (source.counter !== null && number > source.counter + 1n) {
      const missed = number - source.counter - 1n;
      queue.push({ notice: { kind: 'gap', detail: `${missed} batches of ${source.endpoint} are missed` } });
    }
    source.counter = number;
    this.#remember(rank, source);
    queue.push({ message: { rank, payload, place: null } });
  }

  #remember(rank: PlaneRank, source: Source): void {
    const name = rankText(rank);
    if (this.#origins.get(name) === source) return;
    this.#origins.delete(name);
    this.#origins.set(name, source);
    if (this.#origins.size > ORIGINS_KEPT) this.#origins.delete(this.#origins.keys().next().value!);
  }

  // ---- questions ----

  /** After a connection, what it may still answer: the questions harm nothing when they come twice. */
  #askAgain(source: Source): void {
    for (const question of this.#questions.values()) {
      if (question.asked.has(source)) source.questions.send(question.frames);
    }
  }

  #answer(source: Source, frames: readonly Uint8Array[]): void {
    const found = readAnswer(frames);
    const question = found === null ? undefined : this.#questions.get(found.id);
    if (found === null || question === undefined || !question.asked.has(source)) return;
    if (found.status === 'answer') {
      this.#remember(question.rank, source);
      question.resolve(found.answer);
      return;
    }
    if (found.status === 'refused') question.refusal = text(found.answer);
    else if (this.#origins.get(rankText(question.rank)) === source) {
      // The rank has moved: whoever has it now is asked.
      this.#origins.delete(rankText(question.rank));
      for (const other of this.#sources) {
        if (other === source) continue;
        question.asked.add(other);
        other.questions.send(question.frames);
      }
    }
    question.asked.delete(source);
    if (question.asked.size === 0) this.#giveUp(found.id, question.refusal ?? 'no publisher has this rank');
  }

  #giveUp(id: bigint, why: string): void {
    const question = this.#questions.get(id);
    if (question === undefined) return;
    question.reject(
      new MoonrouteError(
        'plane-unanswered',
        `rank ${rankText(question.rank)} was asked for its events: ${question.refusal ?? why}`,
      ),
    );
  }

  // ---- load ----

  async #bindLoad(url: string): Promise<void> {
    const address = readAddress(url);
    if (address.kind !== 'zmq')
      throw new MoonrouteError('plane-url', `load over ZMQ is bound at tcp://HOST:PORT, not ${url}`);
    const zeromq = await loadPlaneZeromq();
    const socket = new zeromq.Publisher({ sendHighWaterMark: LOAD_WAITING, linger: 200 });
    try {
      const endpoint = await bindTcp(socket, address.host, address.port);
      this.#load = { socket, queue: new SendQueue(socket), url: endpoint };
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  #newPeer(endpoint: string, handlers: PlaneHandlers): ZmtpSubscriber {
    return new ZmtpSubscriber(
      endpoint,
      this.#names.load,
      {
        onMessage: ([topic, report]) => {
          if (topic !== undefined && report !== undefined && text(topic) === this.#names.load)
            deliverLoad(handlers, report);
        },
        onEvent: () => {},
      },
      { maxMessageBytes: MAX_PAYLOAD + PAYLOAD_SLACK, ...this.#jitter() },
    );
  }

  #jitter(): { random?: () => number } {
    return this.#options.random === undefined ? {} : { random: this.#options.random };
  }
}

function endpointsOf({ host, port, recoverPort }: ZmqAddress): { readonly events: string; readonly recover: string } {
  return { events: `tcp://${hostText(host)}:${port}`, recover: `tcp://${hostText(host)}:${recoverPort}` };
}

function trouble(detail: string): PlaneNotice {
  return { kind: 'trouble', detail };
}

function closedError(rank: PlaneRank): MoonrouteError {
  return new MoonrouteError('plane-closed', `rank ${rankText(rank)} was asked on a plane that is closed`);
}
