// A worker's side over NATS: batches go into the model's stream of JetStream, each confirmed by the server, and recovery questions come by
// request and reply. The server may go and come back: what is not confirmed is sent again, under the same id, so that it is stored once.
import type { JetStreamClient } from '@nats-io/jetstream';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { Backoff } from '../../backoff.js';
import type { PlaneNotice, PlanePublisher, PlaneRank } from '../transport.js';
import type { NatsAddress } from './address.js';
import { type Answer, Answering } from './answering.js';
import { type PlaneNames, planeNames } from './names.js';
import { hasEnded, NatsLink, wait } from './nats-link.js';
import type { NatsPackages } from './nats-package.js';
import { apiCode, findOrMakeStream } from './nats-stream.js';
import {
  CLOSE_PATIENCE_MS,
  MAX_PAYLOAD,
  MAX_PENDING,
  type PlanePublisherOptions,
  type StreamLimits,
  streamLimits,
} from './options.js';
import { SendWindow, type WindowEntry } from './send-window.js';

/** What a server takes that was never configured; until the first connection says otherwise. */
const DEFAULT_MAX_PAYLOAD = 1 << 20;
/** Headers count in the server's limit: ours have some 60 bytes. */
const HEADER_ROOM = 1024;
/** A confirmation that takes so long is not waited for. */
const CONFIRM_MS = 5000;
const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 2000;
/** The server's word for a message that this stream never takes. */
const MESSAGE_TOO_LONG = 10054;
/** Header of an answer that is none: why. */
export const REFUSED_HEADER = 'Moonroute-Refused';

export class NatsPublisher implements PlanePublisher {
  readonly url: string;
  readonly onNotice: ((notice: PlaneNotice) => void) | null;
  readonly #packages: NatsPackages;
  readonly #names: PlaneNames;
  readonly #ranks: readonly PlaneRank[];
  readonly #limits: StreamLimits;
  readonly #link: NatsLink;
  readonly #window: SendWindow;
  readonly #backoff: Backoff;
  readonly #answering = new Answering(() => this.maxPayload);
  /** Nothing is waited for any more. */
  readonly #ended = new AbortController();
  #closed = false;
  /** Whether this connection has been told of as standing. */
  #isTold = false;
  /** Of this publisher alone, so that ids of two lives never meet. */
  readonly #life = crypto.randomUUID();
  #count = 0;
  #maxPayload = DEFAULT_MAX_PAYLOAD - HEADER_ROOM;
  #client: JetStreamClient | null = null;
  /** Settles a failure; null while all goes well. */
  #mending: Promise<void> | null = null;
  #differs: string | null = null;

  /** @throws ConfigError `plane-model`, `plane-stream` */
  constructor(packages: NatsPackages, address: NatsAddress, options: PlanePublisherOptions) {
    this.url = address.shown;
    this.onNotice = options.onNotice ?? null;
    this.#packages = packages;
    this.#names = planeNames(options.model);
    this.#ranks = options.ranks;
    this.#limits = streamLimits(options.stream);
    this.#backoff = new Backoff(RETRY_FIRST_MS, RETRY_MOST_MS, options.random);
    this.#window = new SendWindow((entry) => void this.#send(entry));
    this.#link = new NatsLink(
      packages,
      { address, tls: options.tls, random: options.random, noEcho: true },
      {
        up: (connection) => this.#up(connection),
        down: (detail) => this.#down(detail),
        trouble: (detail) => this.#notice({ kind: 'trouble', detail }),
      },
    );
  }

  /** Begins to connect, and goes on until it is closed. */
  open(): void {
    this.#link.open();
  }

  get maxPayload(): number {
    return this.#maxPayload;
  }

  publish(rank: PlaneRank, payload: Uint8Array): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    if (payload.length > this.#maxPayload) {
      const detail = `a batch of ${payload.length} bytes is above the ${this.#maxPayload} that the server takes, and is lost`;
      this.#notice({ kind: 'trouble', detail });
      return Promise.resolve(false);
    }
    if (this.#window.pendingBytes + payload.length > MAX_PENDING) return Promise.resolve(false);
    return this.#window.add({ subject: this.#names.events(rank), payload, id: `${this.#life}-${this.#count++}` });
  }

  async serve(answer: Answer): Promise<void> {
    const first = this.#answering.answer === null;
    this.#answering.answer = answer;
    const { connection } = this.#link;
    if (!first || connection === null) return;
    this.#subscribe(connection);
    await connection.flush().catch(() => {}); // the next connection subscribes anew
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const patience = new AbortController();
    await Promise.race([this.#window.emptied(), wait(CLOSE_PATIENCE_MS, patience.signal)]);
    patience.abort();
    this.#ended.abort();
    this.#window.drop();
    await this.#link.close();
    await this.#mending;
  }

  // ---- connections ----

  #up(connection: NatsConnection): void {
    this.#maxPayload = Math.min(MAX_PAYLOAD, (connection.info?.max_payload ?? DEFAULT_MAX_PAYLOAD) - HEADER_ROOM);
    this.#client = this.#packages.jetstream.jetstream(connection);
    if (this.#answering.answer !== null) this.#subscribe(connection);
    this.#mend(null);
  }

  #down(detail: string): void {
    this.#client = null;
    this.#isTold = false;
    this.#window.hold();
    if (!this.#link.closed) this.#notice({ kind: 'lost', to: this.url, detail });
  }

  /** Makes sure of the stream, then sends what waits: at the beginning of a connection, and after a failure within it. */
  #mend(failure: string | null): void {
    this.#window.hold();
    this.#mending ??= this.#mendNow(failure).finally(() => {
      this.#mending = null;
      // The connection may have changed under it.
      if (this.#client !== null && this.#window.held && !this.#ended.signal.aborted) this.#mend(null);
    });
  }

  async #mendNow(failure: string | null): Promise<void> {
    if (failure !== null) {
      this.#notice({ kind: 'trouble', detail: failure });
      await wait(this.#backoff.next(), this.#ended.signal);
    }
    // Those of a lost connection fail at once, others within CONFIRM_MS.
    await this.#window.landed();
    const client = this.#client;
    if (client === null) return;
    try {
      const manager = await client.jetstreamManager(false);
      const { differs } = await findOrMakeStream(manager, this.#names, this.#limits);
      if (differs !== null && differs !== this.#differs) this.#notice({ kind: 'trouble', detail: differs });
      this.#differs = differs;
    } catch (error) {
      if (this.#client !== client) return;
      this.#notice({ kind: 'trouble', detail: `the stream ${this.#names.stream}: ${(error as Error).message}` });
      await wait(this.#backoff.next(), this.#ended.signal);
      return;
    }
    if (this.#client !== client) return;
    if (!this.#isTold) this.#notice({ kind: 'connected', to: this.url });
    this.#isTold = true;
    this.#window.release();
  }

  // ---- batches ----

  async #send({ subject, payload, id }: WindowEntry): Promise<void> {
    // It may have been taken before a server said how much it takes.
    if (payload.length > this.#maxPayload) {
      this.#refuse(id, `a batch of ${payload.length} bytes is above the ${this.#maxPayload} that the server takes`);
      return;
    }
    const { connection } = this.#link;
    try {
      if (this.#client === null) throw new Error('the connection ended');
      await this.#client.publish(subject, payload, {
        msgID: id,
        timeout: CONFIRM_MS,
        // Else a stream of another name that has the subject would take it.
        expect: { streamName: this.#names.stream },
      });
      this.#backoff.succeeded();
      this.#window.stored(id);
    } catch (error) {
      const { message } = error as Error;
      if (apiCode(error) === MESSAGE_TOO_LONG) {
        this.#refuse(id, `a batch of ${payload.length} bytes is not stored: ${message}`);
        return;
      }
      this.#window.failed(id);
      // At the end of a connection the next one mends.
      if (connection !== null && !(await hasEnded(connection))) this.#mend(`a batch was not stored: ${message}`);
    }
  }

  #refuse(id: string, why: string): void {
    this.#notice({ kind: 'trouble', detail: `${why}, and is lost` });
    this.#window.refused(id);
  }

  // ---- questions ----

  #subscribe(connection: NatsConnection): void {
    for (const rank of this.#ranks) {
      connection.subscribe(this.#names.recover(rank), {
        callback: (error, message) => {
          if (error === null) void this.#answer(connection, message);
        },
      });
    }
  }

  async #answer(connection: NatsConnection, message: Msg): Promise<void> {
    const outcome = await this.#answering.of(message.data);
    if (connection.isClosed()) return;
    if ('answer' in outcome) {
      message.respond(outcome.answer);
      return;
    }
    const headers = this.#packages.transport.headers();
    headers.set(REFUSED_HEADER, outcome.refused.replace(/[\r\n]+/g, ' '));
    message.respond(new Uint8Array(0), { headers });
  }

  #notice(notice: PlaneNotice): void {
    this.onNotice?.(notice);
  }
}
