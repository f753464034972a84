// A connection to NATS that is made again whenever it ends, with growing and scattered waits. Each connection is a life of its own: the package's
// own reconnecting, which keeps subscriptions and half-sent messages over from the life before, is off, so what holds in a life is plain.
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node';
import { Backoff } from '../../backoff.js';
import type { NatsAddress } from './address.js';
import type { NatsPackages } from './nats-package.js';
import type { PlaneTls } from './options.js';

const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 2000;
/** A connection that lasted so long was a good one: the waits begin anew. */
const GOOD_AFTER_MS = 5000;
const CONNECT_TIMEOUT_MS = 5000;
/** A server that is silent for three pings is gone. */
const PING_MS = 2000;
const PINGS_OUT = 2;
/** How long the end waits for the server to have what was sent before. */
const FLUSH_MS = 500;
const ENDING_MS = 20;

export interface LinkSettings {
  readonly address: NatsAddress;
  readonly tls: PlaneTls | undefined;
  readonly random: (() => number) | undefined;
  /** Messages of this connection don't come back to it. */
  readonly noEcho: boolean;
}

export interface LinkHandlers {
  up(connection: NatsConnection): void;
  /** Once for each `up`. */
  down(detail: string): void;
  /** An attempt failed, or the server refused something. */
  trouble(detail: string): void;
}

export class NatsLink {
  readonly #packages: NatsPackages;
  readonly #settings: LinkSettings;
  readonly #handlers: LinkHandlers;
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  #connection: NatsConnection | null = null;
  #running: Promise<void> | null = null;

  constructor(packages: NatsPackages, settings: LinkSettings, handlers: LinkHandlers) {
    this.#packages = packages;
    this.#settings = settings;
    this.#handlers = handlers;
    this.#backoff = new Backoff(RETRY_FIRST_MS, RETRY_MOST_MS, settings.random);
  }

  /** Null while there is none. */
  get connection(): NatsConnection | null {
    return this.#connection;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  open(): void {
    this.#running ??= this.#run();
  }

  /** Ends it for good; what was published before goes out if there is a connection. */
  async close(): Promise<void> {
    this.#closing.abort();
    const connection = this.#connection;
    if (connection !== null) {
      // A server that is gone answers no ping.
      const patience = new AbortController();
      await Promise.race([connection.flush().catch(() => {}), connection.closed(), wait(FLUSH_MS, patience.signal)]);
      patience.abort();
      await connection.close();
    }
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.closed) {
      let connection: NatsConnection;
      try {
        connection = await this.#packages.transport.connect(this.#options());
      } catch (error) {
        if (this.closed) return;
        this.#handlers.trouble(`can't connect to ${this.#settings.address.shown}: ${(error as Error).message}`);
        await wait(this.#backoff.next(), this.#closing.signal);
        continue;
      }
      if (this.closed) {
        await connection.close();
        return;
      }
      const since = performance.now();
      this.#connection = connection;
      void this.#watch(connection);
      this.#handlers.up(connection);
      const error = await connection.closed();
      this.#connection = null;
      if (performance.now() - since >= GOOD_AFTER_MS) this.#backoff.succeeded();
      this.#handlers.down(error instanceof Error ? error.message : 'the connection ended');
      await wait(this.#backoff.next(), this.#closing.signal);
    }
  }

  /** What the server says of this connection: refused subjects above all. */
  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === 'error') this.#handlers.trouble(`the NATS server says: ${status.error.message}`);
    }
  }

  #options(): NodeConnectionOptions {
    const { address, tls, noEcho } = this.#settings;
    return {
      servers: [...address.servers],
      name: 'moonroute',
      reconnect: false,
      timeout: CONNECT_TIMEOUT_MS,
      pingInterval: PING_MS,
      maxPingOut: PINGS_OUT,
      noAsyncTraces: true,
      noEcho,
      ...(address.user !== null && { user: address.user, pass: address.password ?? '' }),
      ...(address.token !== null && { token: address.token }),
      ...((address.tls || tls !== undefined) && { tls: { ...tls } }),
    };
  }
}

/**
 * Whether a connection has ended, where something over it has just failed: the package fails what is under way a moment before it says that
 * the connection is closed.
 */
export async function hasEnded(connection: NatsConnection): Promise<boolean> {
  if (connection.isClosed()) return true;
  const patience = new AbortController();
  await Promise.race([connection.closed(), wait(ENDING_MS, patience.signal)]);
  patience.abort();
  return connection.isClosed();
}

/** Waits, no longer than until the signal. Never fails. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
