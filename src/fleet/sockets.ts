// What binds a socket in the fleet: the optional zeromq package, loaded when it is first needed, with an error that says what to do when it is
// missing; endpoints by host and port; and a queue before a socket, which takes one message at a time.
import { ConfigError } from '../errors.js';

type Zeromq = typeof import('zeromq');

/**
 * The zeromq package.
 * @throws ConfigError `zeromq-missing`
 */
export async function loadZeromq(): Promise<Zeromq> {
  try {
    return await import('zeromq');
  } catch (error) {
    throw new ConfigError(
      'zeromq-missing',
      `simulated workers and masters publish through the zeromq package, which can't be loaded: ${(error as Error).message}. Install it (npm install zeromq) and run this in Node.`,
    );
  }
}

/** The endpoint to bind; port 0 leaves the choice to the system. */
export function tcpEndpoint(host: string, port: number): string {
  return `tcp://${host.includes(':') ? `[${host}]` : host}:${port === 0 ? '*' : port}`;
}

/** The port of a TCP endpoint. @throws ConfigError `endpoint` when there is none. */
export function portOf(endpoint: string): number {
  const port = Number(/^tcp:\/\/.*:(\d+)$/.exec(endpoint)?.[1]);
  if (!Number.isInteger(port)) throw new ConfigError('endpoint', `${endpoint} is no tcp://HOST:PORT`);
  return port;
}

/** What can be bound and closed. */
interface Bindable {
  bind(endpoint: string): Promise<void>;
  readonly lastEndpoint: string | null;
}

/** Binds, and says the endpoint with the port that it got. @throws ConfigError `bind-failed` */
export async function bindTcp(socket: Bindable, host: string, port: number): Promise<string> {
  const endpoint = tcpEndpoint(host, port);
  try {
    await socket.bind(endpoint);
  } catch (error) {
    throw new ConfigError(
      'bind-failed',
      `can't bind ${endpoint}: ${(error as Error).message}. Choose another port, or 0 for any that is free.`,
    );
  }
  return socket.lastEndpoint ?? endpoint;
}

/** Where a queue's messages go. */
interface Sendable {
  send(frames: Uint8Array[]): Promise<void>;
}

/** Most messages that wait before a socket: as many batches as vLLM's publisher queues (its `max_queue_size`). */
export const MAX_QUEUED_MESSAGES = 100_000;

/** Sends messages one after the other, in order: a socket refuses a second one while it is busy with the first. */
export class SendQueue {
  readonly #socket: Sendable;
  readonly #waiting: Uint8Array[][] = [];
  #draining: Promise<void> | null = null;
  #closed = false;
  /** Messages that the socket refused. */
  failed = 0;

  constructor(socket: Sendable) {
    this.#socket = socket;
  }

  /** False when the queue is full or closed. */
  push(frames: Uint8Array[]): boolean {
    if (this.#closed || this.#waiting.length >= MAX_QUEUED_MESSAGES) return false;
    this.#waiting.push(frames);
    this.#draining ??= this.#drain();
    return true;
  }

  /** Resolves when everything pushed so far has gone to the socket. */
  async flushed(): Promise<void> {
    await this.#draining;
  }

  /** Forgets what waits. */
  close(): void {
    this.#closed = true;
    this.#waiting.length = 0;
  }

  async #drain(): Promise<void> {
    // Taken in turns of all that wait, so that a long queue is not moved up once a message.
    while (this.#waiting.length > 0) {
      const turn = this.#waiting.splice(0);
      for (const frames of turn) {
        if (this.#closed) break;
        try {
          await this.#socket.send(frames);
        } catch {
          this.failed++;
        }
      }
    }
    this.#draining = null;
  }
}
