// A client that keeps one connection: it connects, tells of the loss, waits, and connects again, until it is closed. What SUB and DEALER
// have in common.
import { ConfigError } from '../../errors.js';
import { Connection, type LossCause } from './connection.js';
import { type Endpoint, parseEndpoint } from './endpoint.js';
import { type SocketOptions, type SocketSettings, socketSettings } from './options.js';
import { ReconnectWaits } from './reconnect.js';
import type { SessionRole } from './session.js';

export type SocketEvent =
  /** The handshake is done; a SUB has sent its subscription. */
  | { readonly kind: 'connected' }
  /** A connection ended, behind its last message, or an attempt failed. Once for each. */
  | { readonly kind: 'lost'; readonly cause: LossCause; readonly detail: string }
  /** The next attempt is made in so long. */
  | { readonly kind: 'retry'; readonly inMs: number };

/** What a client calls. Nothing is called any more once it is closed. */
export interface SocketHandlers {
  /** At least one frame; all are views of one ArrayBuffer, which is the receiver's own. */
  onMessage(frames: Uint8Array[]): void;
  onEvent(event: SocketEvent): void;
}

export class Client {
  readonly #endpoint: Endpoint;
  readonly #role: SessionRole;
  readonly #handlers: SocketHandlers;
  readonly #settings: SocketSettings;
  readonly #waits: ReconnectWaits;
  #connection: Connection | null = null;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #state: 'new' | 'open' | 'closed' = 'new';
  #paused = false;

  /** @throws {ConfigError} `endpoint`, `socket-options` or `curve-keys`. */
  constructor(endpoint: string, role: SessionRole, handlers: SocketHandlers, options: SocketOptions) {
    this.#endpoint = parseEndpoint(endpoint);
    this.#settings = socketSettings(options);
    this.#role = role;
    this.#handlers = handlers;
    const { reconnectMs, reconnectMaxMs, random } = this.#settings;
    this.#waits = new ReconnectWaits(reconnectMs, reconnectMaxMs, random);
  }

  get connected(): boolean {
    return this.#connection?.ready ?? false;
  }

  /** Starts to connect; a second time does nothing. @throws {ConfigError} `socket-closed` after `close`: make a new one. */
  open(): void {
    if (this.#state === 'closed') {
      throw new ConfigError('socket-closed', 'a closed socket was opened again; make a new one');
    }
    if (this.#state === 'open') return;
    this.#state = 'open';
    this.#attempt();
  }

  /** Ends everything at once and for good. */
  close(): void {
    this.#state = 'closed';
    clearTimeout(this.#retry);
    this.#connection?.destroy();
    this.#connection = null;
  }

  pause(): void {
    this.#paused = true;
    this.#connection?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#connection?.resume();
  }

  send(frames: readonly Uint8Array[]): boolean {
    return this.#connection?.send(frames) ?? false;
  }

  #attempt(): void {
    let readyAt: number | null = null;
    this.#connection = new Connection(this.#endpoint, this.#role, this.#paused, this.#settings, {
      onReady: () => {
        readyAt = performance.now();
        this.#handlers.onEvent({ kind: 'connected' });
      },
      onMessage: (frames) => this.#handlers.onMessage(frames),
      onEnd: (cause, detail) => this.#lost(cause, detail, readyAt === null ? 0 : performance.now() - readyAt),
    });
  }

  #lost(cause: LossCause, detail: string, lastedMs: number): void {
    this.#connection = null;
    const inMs = this.#waits.next(lastedMs);
    // Set before the handlers run, so that one that throws doesn't stop the attempts, and one that closes stops this one too.
    this.#retry = setTimeout(() => this.#attempt(), inMs);
    this.#handlers.onEvent({ kind: 'lost', cause, detail });
    if (this.#state === 'open') this.#handlers.onEvent({ kind: 'retry', inMs });
  }
}
