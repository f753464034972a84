// Our own ZeroMQ client sockets, SUB and DEALER, over node:net alone, so that they run in Node and Deno alike. Messages and losses come in
// one order, which the monitor of libzmq's sockets, a socket of its own, can't give.
import { Client, type SocketHandlers } from './client.js';
import { subscription } from './codec.js';
import type { SocketOptions } from './options.js';

export type { SocketEvent, SocketHandlers } from './client.js';
export type { LossCause } from './connection.js';
export { CurveKeys, type CurveOptions } from './curve-keys.js';
export type { SocketOptions } from './options.js';

/** Receives what a publisher sends under a topic. It filters nothing itself; the publisher does. */
export class ZmtpSubscriber {
  readonly #client: Client;

  /**
   * `topic` is the beginning of the topics that are wanted, '' for all.
   * @throws {ConfigError} `endpoint`, `socket-options` or `curve-keys`.
   */
  constructor(endpoint: string, topic: string, handlers: SocketHandlers, options: SocketOptions = {}) {
    const role = { socketType: 'SUB', peerTypes: ['PUB', 'XPUB'], first: [subscription(topic)] } as const;
    this.#client = new Client(endpoint, role, handlers, options);
  }

  /** Starts to connect; a second time does nothing. @throws {ConfigError} `socket-closed` after `close`. */
  open(): void {
    this.#client.open();
  }

  /** Ends it at once and for good; no handler is called any more. */
  close(): void {
    this.#client.close();
  }

  /**
   * No messages until `resume`, also none that have come already. A connection that ends meanwhile is told of after `resume`, behind its
   * last message. The peer is not given up for silence, and is told now and then that this side is alive.
   */
  pause(): void {
    this.#client.pause();
  }

  resume(): void {
    this.#client.resume();
  }

  get connected(): boolean {
    return this.#client.connected;
  }
}

/** Talks to a ROUTER. Empty delimiters are the caller's to send and to read. */
export class ZmtpDealer {
  readonly #client: Client;

  /** @throws {ConfigError} `endpoint`, `socket-options` or `curve-keys`. */
  constructor(endpoint: string, handlers: SocketHandlers, options: SocketOptions = {}) {
    const role = { socketType: 'DEALER', peerTypes: ['ROUTER', 'REP', 'DEALER'], first: null } as const;
    this.#client = new Client(endpoint, role, handlers, options);
  }

  /** Starts to connect; a second time does nothing. @throws {ConfigError} `socket-closed` after `close`. */
  open(): void {
    this.#client.open();
  }

  /** Ends it at once and for good; no handler is called any more. */
  close(): void {
    this.#client.close();
  }

  /** As a subscriber's. */
  pause(): void {
    this.#client.pause();
  }

  resume(): void {
    this.#client.resume();
  }

  /**
   * Sends a message of at least one frame. False, and nothing is sent, while there is no connection, or when more than 1 MiB waits for a
   * peer that doesn't read. True doesn't mean that it arrived.
   */
  send(frames: readonly Uint8Array[]): boolean {
    return frames.length > 0 && this.#client.send(frames);
  }

  get connected(): boolean {
    return this.#client.connected;
  }
}
