// The event stream of one worker rank, on real sockets: a subscriber whose messages wait in an inbox, and a replay socket that is open only
// while something is asked. What they mean is recovery's (worker-recovery.ts); here are connections, timers and turns.
import type { Router } from '../router/router.js';
import type { WorkerId } from '../router/worker-info.js';
import { replayRequest } from '../wire/replay.js';
import { Backoff } from './backoff.js';
import type { Clock } from './clock.js';
import type { Drain, Drained } from './drain.js';
import { Inbox } from './inbox.js';
import type { LimitedLog } from './limited-log.js';
import { type RecoveryCounts, WorkerRecovery } from './worker-recovery.js';
import type { WorkerSink } from './worker-sink.js';
import { parseEndpoint } from './zmtp/endpoint.js';
import { type CurveKeys, type SocketEvent, ZmtpDealer, ZmtpSubscriber } from './zmtp/socket.js';

/** How patient a stream is. Milliseconds. */
export interface WorkerStreamLimits {
  /** How long a connection may be down before the rank's index part is emptied. Default 30,000. */
  readonly staleAfter: number;
  /** How long the replay socket may be silent before it is asked again; a busy engine answers late. Default 3,000. */
  readonly replayAnswer: number;
  /** How often it is asked before the replay is given up. Default 3. */
  readonly replayAttempts: number;
}

export const WORKER_STREAM_LIMITS: WorkerStreamLimits = { staleAfter: 30_000, replayAnswer: 3000, replayAttempts: 3 };
const RETRY_FIRST = 200;
const RETRY_MOST = 2000;

/** Where one rank's events come from. */
export interface WorkerEndpoint {
  readonly id: WorkerId;
  /** The rank whose events these are. */
  readonly dpRank: number;
  /** `tcp://HOST:PORT` of its PUB socket. */
  readonly events: string;
  /** Of its ROUTER socket; null when it has none. */
  readonly replay: string | null;
  /** What its messages' topics begin with. */
  readonly topic: string;
}

/** What streams share. */
export interface StreamParts {
  readonly clock: Clock;
  readonly drain: Drain;
  readonly log: LimitedLog;
  readonly random: () => number;
  /** Null: in the clear. */
  readonly curve: CurveKeys | null;
}

/** What the live streams of a router share. */
export interface LiveParts extends StreamParts {
  readonly router: Router;
}

/** How a worker rank's stream stands. */
export interface WorkerStreamStatus {
  readonly id: WorkerId;
  readonly dpRank: number;
  readonly endpoint: string;
  readonly connected: boolean;
  readonly replay: 'none' | 'idle' | 'running';
  /** Null before the first message of the worker's life. */
  readonly lastSequence: bigint | null;
  readonly counts: Readonly<RecoveryCounts>;
  /** Times that the rank's index part was emptied, by cause. */
  readonly rebuilds: Readonly<Record<string, number>>;
  /** Connections lost, by cause. */
  readonly losses: Readonly<Record<string, number>>;
  /** Messages that wait to be looked at, and times that the socket had to wait because of them. */
  readonly queued: number;
  readonly pauses: number;
}

/** One rank's stream. */
export class WorkerStream implements Drained {
  readonly #endpoint: WorkerEndpoint;
  readonly #parts: StreamParts;
  readonly #limits: WorkerStreamLimits;
  readonly #name: string;
  #subscriber: ZmtpSubscriber;
  readonly #inbox: Inbox;
  readonly #recovery: WorkerRecovery;
  readonly #losses = new Map<string, number>();
  readonly #backoff: Backoff;
  /** Ends the wait after which the rank's index part is worth nothing; null while there is none. */
  #stale: (() => void) | null = null;
  #question: Question | null = null;
  /** Waiting to ask again. */
  #retry: () => void = () => {};

  constructor(
    endpoint: WorkerEndpoint,
    sink: WorkerSink,
    parts: StreamParts,
    limits: WorkerStreamLimits = WORKER_STREAM_LIMITS,
  ) {
    if (endpoint.replay !== null) parseEndpoint(endpoint.replay);
    this.#endpoint = endpoint;
    this.#parts = parts;
    this.#limits = limits;
    this.#name = `worker ${endpoint.id} rank ${endpoint.dpRank}`;
    this.#backoff = new Backoff(RETRY_FIRST, RETRY_MOST, parts.random);
    const { id, dpRank } = endpoint;
    const { log } = parts;
    this.#recovery = new WorkerRecovery(
      {
        apply: (frames) => {
          const { fate, lostRemoval, detail } = sink.onWorkerMessage(id, frames, { dpRank });
          if (fate !== 'applied') log.say(`${this.#name} ${fate}`, 'warn', `${this.#name}: ${detail ?? fate}`);
          return { lostRemoval, unreadable: fate === 'unreadable' };
        },
        rebuild: (cause, newLife) => {
          log.say(`${this.#name} rebuild`, 'warn', `${this.#name}: its index part starts from empty (${cause})`);
          if (newLife) sink.workerStreamLost(id, dpRank);
          else sink.rebuildWorker(id, dpRank);
        },
        ask: (start) => this.#ask(start),
        resubscribe: () => this.#subscribe(),
      },
      { canReplay: endpoint.replay !== null },
    );
    this.#inbox = new Inbox({ pause: () => this.#subscriber.pause(), resume: () => this.#subscriber.resume() });
    this.#subscriber = this.#newSubscriber();
  }

  open(): void {
    this.#parts.drain.add(this);
    this.#subscriber.open();
  }

  close(): void {
    this.#parts.drain.remove(this);
    this.#stale?.();
    this.#retry();
    this.#question?.close();
    this.#question = null;
    this.#subscriber.close();
  }

  #newSubscriber(): ZmtpSubscriber {
    const { drain, random, curve } = this.#parts;
    const handlers = {
      onMessage: (frames: Uint8Array[]) => {
        this.#inbox.push({ kind: 'message', frames, generation: 0 });
        drain.wake();
      },
      onEvent: (event: SocketEvent) => this.#onEvent(event),
    };
    return new ZmtpSubscriber(this.#endpoint.events, this.#endpoint.topic, handlers, { random, curve });
  }

  /** Takes the connection's place with a new one; what waits of the old one is dropped. */
  #subscribe(): void {
    this.#subscriber.close();
    this.#subscriber = this.#newSubscriber();
    this.#inbox.clear();
    this.#subscriber.open();
  }

  step(): boolean {
    const reply = this.#question?.replies.take();
    if (reply !== undefined) {
      if (reply.kind === 'message') this.#takeReply(reply.frames);
      return true;
    }
    if (this.#recovery.replaying) return false;
    const item = this.#inbox.peek();
    if (item === undefined) return false;
    // A message that shows a gap stays where it is until the replay has been had.
    if (item.kind === 'message' && !this.#recovery.message(item.frames)) return true;
    this.#inbox.take();
    if (item.kind === 'connected') this.#recovery.connected();
    else if (item.kind === 'stale') this.#recovery.stale();
    return true;
  }

  status(): WorkerStreamStatus {
    const { id, dpRank, events, replay } = this.#endpoint;
    return {
      id,
      dpRank,
      endpoint: events,
      connected: this.#subscriber.connected,
      replay: replay === null ? 'none' : this.#recovery.replaying ? 'running' : 'idle',
      lastSequence: this.#recovery.lastSequence,
      counts: { ...this.#recovery.counts },
      rebuilds: this.#recovery.rebuilds,
      losses: Object.fromEntries(this.#losses),
      queued: this.#inbox.size,
      pauses: this.#inbox.pauses,
    };
  }

  #onEvent(event: SocketEvent): void {
    const { clock, drain, log } = this.#parts;
    if (event.kind === 'connected') {
      this.#stale?.();
      this.#stale = null;
      this.#inbox.push({ kind: 'connected' });
      drain.wake();
      log.say(`${this.#name} connected`, 'info', `${this.#name}: connected to ${this.#endpoint.events}`);
    } else if (event.kind === 'lost') {
      this.#losses.set(event.cause, (this.#losses.get(event.cause) ?? 0) + 1);
      log.say(`${this.#name} lost`, 'warn', `${this.#name}: ${this.#endpoint.events}: ${event.detail}`);
      // A failed attempt to reconnect is a loss as well; the wait began with the first.
      this.#stale ??= clock.after(this.#limits.staleAfter, () => {
        this.#inbox.push({ kind: 'stale' });
        drain.wake();
      });
    }
  }

  // ---- replay ----

  #ask(start: bigint): void {
    this.#question?.close();
    this.#retry();
    const { clock, drain, curve } = this.#parts;
    this.#question = new Question(this.#endpoint.replay!, start, {
      clock,
      curve,
      patience: this.#limits.replayAnswer,
      onReply: () => drain.wake(),
      onTrouble: (detail) => this.#trouble(detail),
    });
  }

  #takeReply(frames: readonly Uint8Array[]): void {
    if (!this.#recovery.reply(frames)) this.#trouble('a reply that is none of the protocol');
    if (this.#recovery.replaying) return;
    this.#backoff.succeeded();
    this.#question?.close();
    this.#question = null;
  }

  /** The question is not answered: it is asked again, or given up. */
  #trouble(detail: string): void {
    const { clock, drain, log } = this.#parts;
    this.#question?.close();
    this.#question = null;
    log.say(`${this.#name} replay`, 'warn', `${this.#name}: replay from ${this.#endpoint.replay}: ${detail}`);
    const delay = this.#backoff.next();
    if (this.#backoff.failures < this.#limits.replayAttempts) {
      this.#retry = clock.after(delay, () => this.#recovery.retry());
      return;
    }
    this.#backoff.succeeded();
    this.#recovery.failed();
    drain.wake();
  }
}

interface QuestionOptions {
  readonly clock: Clock;
  readonly curve: CurveKeys | null;
  /** Milliseconds of silence until there is trouble. */
  readonly patience: number;
  readonly onReply: () => void;
  /** Called once at most, and not after `close`. */
  readonly onTrouble: (detail: string) => void;
}

/** One question to a replay socket, on a connection of its own: so no answer to another one can be taken for its. */
class Question {
  readonly replies: Inbox;
  readonly #dealer: ZmtpDealer;
  readonly #options: QuestionOptions;
  #patience: () => void = () => {};

  constructor(endpoint: string, start: bigint, options: QuestionOptions) {
    this.#options = options;
    const handlers = {
      onMessage: (frames: Uint8Array[]) => {
        this.replies.push({ kind: 'message', frames, generation: 0 });
        this.#wait();
        options.onReply();
      },
      onEvent: (event: SocketEvent) => {
        if (event.kind === 'connected') this.#dealer.send(replayRequest(start));
        else if (event.kind === 'lost') this.#fail(event.detail);
      },
    };
    this.#dealer = new ZmtpDealer(endpoint, handlers, { curve: options.curve });
    this.replies = new Inbox(this.#dealer);
    this.#wait();
    this.#dealer.open();
  }

  close(): void {
    this.#patience();
    this.#dealer.close();
  }

  #wait(): void {
    const { clock, patience } = this.#options;
    this.#patience();
    this.#patience = clock.after(patience, () => {
      if (this.replies.size > 0) this.#wait();
      else this.#fail(`silent for ${patience} ms`);
    });
  }

  #fail(detail: string): void {
    this.close();
    this.#options.onTrouble(detail);
  }
}
