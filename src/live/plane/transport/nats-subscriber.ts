// A router's side over NATS: the model's log from its beginning (nats-log.ts), questions by request and reply, and load between routers over a
// subject that nothing keeps.
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { MoonrouteError } from '../../../errors.js';
import type { PlaneRank, PlaneSubscriber } from '../transport.js';
import type { NatsAddress } from './address.js';
import { deliverLoad, type PlaneHandlers } from './delivery.js';
import { type PlaneNames, planeNames, rankText } from './names.js';
import { hasEnded, NatsLink, wait } from './nats-link.js';
import { NatsLog } from './nats-log.js';
import type { NatsPackages } from './nats-package.js';
import { REFUSED_HEADER } from './nats-publisher.js';
import { type PlaneSubscriberOptions, type StreamLimits, streamLimits } from './options.js';

/** How often a question looks for a connection while there is none. */
const LOOK_MS = 20;

export class NatsSubscriber implements PlaneSubscriber {
  /** Load goes over the server. */
  readonly loadUrl = null;
  readonly #packages: NatsPackages;
  readonly #address: NatsAddress;
  readonly #options: PlaneSubscriberOptions;
  readonly #names: PlaneNames;
  readonly #limits: StreamLimits;
  readonly #closing = new AbortController();
  #link: NatsLink | null = null;
  /** Ends with its connection. */
  #reading: Promise<void> = Promise.resolve();

  /** @throws ConfigError `plane-model`, `plane-stream` */
  constructor(packages: NatsPackages, address: NatsAddress, options: PlaneSubscriberOptions) {
    this.#packages = packages;
    this.#address = address;
    this.#options = options;
    this.#names = planeNames(options.model);
    this.#limits = streamLimits(options.stream);
  }

  async open(handlers: PlaneHandlers): Promise<void> {
    const { tls, random } = this.#options;
    const { shown } = this.#address;
    const log = new NatsLog({
      packages: this.#packages,
      names: this.#names,
      limits: this.#limits,
      handlers,
      shown,
      random,
    });
    this.#link = new NatsLink(
      this.#packages,
      { address: this.#address, tls, random, noEcho: true },
      {
        up: (connection) => {
          connection.subscribe(this.#names.load, {
            callback: (error, message) => {
              if (error === null && !this.#closing.signal.aborted) deliverLoad(handlers, message.data);
            },
          });
          // A handler may still be at work on the last message of the connection before.
          this.#reading = this.#reading.then(() => log.read(connection, this.#closing.signal));
        },
        down: (detail) => {
          if (!this.#closing.signal.aborted) handlers.onNotice({ kind: 'lost', to: shown, detail });
        },
        trouble: (detail) => handlers.onNotice({ kind: 'trouble', detail }),
      },
    );
    this.#link.open();
  }

  async ask(rank: PlaneRank, question: Uint8Array, patience: number): Promise<Uint8Array> {
    const end = performance.now() + patience;
    for (;;) {
      if (this.#closing.signal.aborted) {
        throw new MoonrouteError('plane-closed', `rank ${rankText(rank)} was asked on a plane that is closed`);
      }
      const left = Math.floor(end - performance.now());
      if (left < 1) throw unanswered(rank, `no answer within ${patience} ms`);
      const connection = this.#link?.connection ?? null;
      if (connection === null || connection.isClosed()) {
        await wait(Math.min(LOOK_MS, left), this.#closing.signal);
        continue;
      }
      const answer = await this.#askOver(connection, rank, question, left);
      if (answer !== null) return answer;
    }
  }

  publishLoad(payload: Uint8Array): void {
    const connection = this.#link?.connection ?? null;
    if (connection === null || connection.isClosed()) return;
    try {
      connection.publish(this.#names.load, payload);
    } catch {
      // It ends at this moment; the next report replaces this one.
    }
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    await this.#link?.close();
    await this.#reading;
  }

  /** Null when the connection ended under it. */
  async #askOver(
    connection: NatsConnection,
    rank: PlaneRank,
    question: Uint8Array,
    patience: number,
  ): Promise<Uint8Array | null> {
    let message: Msg;
    try {
      message = await connection.request(this.#names.recover(rank), question, { timeout: patience });
    } catch (error) {
      const { message: why } = error as Error;
      if (this.#closing.signal.aborted || (await hasEnded(connection))) return null;
      throw unanswered(rank, why);
    }
    const refused = message.headers?.get(REFUSED_HEADER) ?? '';
    if (refused !== '') throw unanswered(rank, refused);
    return message.data;
  }
}

function unanswered(rank: PlaneRank, why: string): MoonrouteError {
  return new MoonrouteError('plane-unanswered', `rank ${rankText(rank)} was asked for its events: ${why}`);
}
