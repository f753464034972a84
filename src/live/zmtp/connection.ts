// One connection: a socket of node:net, the session that reads it, and the timers that end it. It lives from the attempt to the loss, which
// it reports once, behind the last message. The shell around session.ts and heartbeat.ts, and nothing that decides for itself.
import { connect, type Socket } from 'node:net';
import { encodeMetadata } from './codec.js';
import { CurveMechanism } from './curve-mechanism.js';
import type { Endpoint } from './endpoint.js';
import { ZmtpFault } from './faults.js';
import { Heartbeat } from './heartbeat.js';
import { type Mechanism, NullMechanism } from './mechanism.js';
import type { SocketSettings } from './options.js';
import { Session, type SessionRole, type SessionStep } from './session.js';

/** Why there is no connection. */
export type LossCause =
  | 'refused' // nobody listens there
  | 'unreachable' // no way there: name, network, permission
  | 'timeout' // no connection or no handshake in time
  | 'disconnect' // the peer, or something on the way, ended it
  | 'heartbeat' // nothing came for too long
  | 'protocol'; // what the peer sent can't be read, or its keys are others; the detail begins with the fault's code

export interface ConnectionHandlers {
  onReady(): void;
  onMessage(frames: Uint8Array[]): void;
  onEnd(cause: LossCause, detail: string): void;
}

interface End {
  readonly cause: LossCause;
  readonly detail: string;
}

/** Most bytes that may wait for a peer that doesn't read, before one more message is taken. */
const MAX_UNSENT_BYTES = 1 << 20;
/** Peers of ZMTP 3.0 know no PING; where one is gone, the system's own probes find it, though later. */
const KEEP_ALIVE_MS = 10_000;

const CAUSES: Readonly<Record<string, LossCause>> = {
  ECONNREFUSED: 'refused',
  ENOENT: 'refused', // no such socket file
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'disconnect',
  EPIPE: 'disconnect',
};

export class Connection {
  readonly #socket: Socket;
  readonly #session: Session;
  readonly #handlers: ConnectionHandlers;
  readonly #settings: SocketSettings;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #heartbeat: Heartbeat | null = null;
  #error: NodeJS.ErrnoException | null = null;
  /** The end that waits for a paused user to take the messages before it. */
  #heldEnd: End | null = null;
  /** The handshake is done. */
  #ready = false;
  #ended = false;
  #paused: boolean;

  constructor(
    endpoint: Endpoint,
    role: SessionRole,
    paused: boolean,
    settings: SocketSettings,
    handlers: ConnectionHandlers,
  ) {
    this.#session = new Session(role, mechanismFor(role, settings));
    this.#handlers = handlers;
    this.#settings = settings;
    this.#paused = paused;
    const socket =
      endpoint.kind === 'tcp'
        ? connect({ host: endpoint.host, port: endpoint.port })
        : connect({ path: endpoint.path });
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('connect', () => socket.write(this.#session.opening()));
    socket.on('data', (chunk: Uint8Array) => this.#take(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#error = error;
    });
    // Not waiting for `close`: that would wait for a peer that has gone half way to read what we sent.
    socket.on('end', () => this.#end(this.#closedBy()));
    socket.on('close', () => this.#end(this.#closedBy()));
    this.#timer = setTimeout(() => this.#late(), settings.connectTimeoutMs);
  }

  /** Whether messages can be sent. */
  get ready(): boolean {
    return this.#ready && !this.#ended && this.#heldEnd === null;
  }

  /** Sends a message; false if it can't be sent, since there is no handshake yet, or too much waits for the peer. */
  send(frames: readonly Uint8Array[]): boolean {
    if (!this.ready || this.#congested) return false;
    return this.#write(this.#session.message(frames));
  }

  /** No more messages from now on, and no end either if one comes. */
  pause(): void {
    this.#paused = true;
    if (!this.#ready) return;
    this.#socket.pause();
    this.#heartbeat?.hold();
  }

  /** Messages go on, but not before the caller is done with what it does. */
  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#heartbeat?.release(performance.now());
    queueMicrotask(() => this.#goOn());
  }

  /** Ends it without a word. */
  destroy(): void {
    this.#ended = true;
    this.#drop();
  }

  #goOn(): void {
    if (this.#paused || this.#ended) return;
    if (this.#ready && this.#heldEnd === null) this.#socket.resume();
    this.#read();
    if (this.#heldEnd !== null && !this.#paused) this.#end(this.#heldEnd);
  }

  #take(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#heartbeat?.heard(performance.now());
    try {
      this.#session.feed(chunk);
    } catch (error) {
      this.#fault(error);
      return;
    }
    this.#read();
  }

  /** Does the session's steps while there are any and the user wants them. It is never entered twice: `resume` waits for its end. */
  #read(): void {
    try {
      while (!this.#ended && !(this.#paused && this.#ready)) {
        const step = this.#step();
        if (step === null) return;
        if (step.kind === 'message') this.#handlers.onMessage(step.frames);
        else if (step.kind === 'send') this.#write(step.bytes);
        else this.#becomeReady();
      }
    } catch (error) {
      // A handler's own error is for the process to see. It costs its message, not those behind it.
      queueMicrotask(() => this.#goOn());
      throw error;
    }
  }

  #step(): SessionStep | null {
    try {
      return this.#session.next();
    } catch (error) {
      this.#fault(error);
      return null;
    }
  }

  #becomeReady(): void {
    this.#ready = true;
    clearTimeout(this.#timer);
    if (this.#session.pings) {
      this.#heartbeat = new Heartbeat(this.#settings.heartbeatMs, this.#settings.heartbeatTimeoutMs, performance.now());
      this.#beat();
    }
    if (this.#paused) this.pause();
    this.#handlers.onReady();
  }

  #beat(): void {
    const { act, inMs } = this.#heartbeat!.step(performance.now());
    if (act === 'lost') {
      this.#end({ cause: 'heartbeat', detail: `nothing came for ${this.#settings.heartbeatTimeoutMs} ms` });
      return;
    }
    if (act === 'ping') this.#write(this.#session.ping());
    this.#timer = setTimeout(() => this.#beat(), Math.ceil(inMs));
  }

  #late(): void {
    const missing = this.#socket.connecting ? 'connection' : 'handshake';
    this.#end({ cause: 'timeout', detail: `no ${missing} within ${this.#settings.connectTimeoutMs} ms` });
  }

  get #congested(): boolean {
    return this.#socket.writableLength > MAX_UNSENT_BYTES;
  }

  #write(bytes: Uint8Array): boolean {
    if (this.#congested) return false;
    this.#socket.write(bytes);
    return true;
  }

  #closedBy(): End {
    const error = this.#error;
    const hungUp = error === null || CAUSES[error.code ?? ''] === 'disconnect' ? this.#session.hungUp() : null;
    if (hungUp !== null) return faultEnd(hungUp);
    if (error === null) {
      // libzmq may do so before its own READY or greeting is on the way, and then this is all there is to see.
      const hint = this.#ready ? '' : ' before the handshake was done, as where socket types or mechanisms differ';
      return { cause: 'disconnect', detail: `the peer closed the connection${hint}` };
    }
    const other = this.#ready ? 'disconnect' : 'unreachable';
    // The error of a name with several addresses has a code and no message.
    return { cause: CAUSES[error.code ?? ''] ?? other, detail: error.message || String(error.code) };
  }

  /** Whatever can't be read ends the connection, be it the peer's fault or that there is no memory for a message. */
  #fault(error: unknown): void {
    this.#end(error instanceof ZmtpFault ? faultEnd(error) : { cause: 'protocol', detail: String(error) });
  }

  #end(end: End): void {
    if (this.#ended) return;
    this.#drop();
    if (this.#paused && this.#ready) {
      this.#heldEnd ??= end;
      return;
    }
    this.#ended = true;
    this.#handlers.onEnd(end.cause, end.detail);
  }

  #drop(): void {
    clearTimeout(this.#timer);
    this.#socket.destroy();
  }
}

function faultEnd(fault: ZmtpFault): End {
  return { cause: 'protocol', detail: `${fault.code}: ${fault.message}` };
}

function mechanismFor({ socketType }: SessionRole, settings: SocketSettings): Mechanism {
  const limits = { messageBytes: settings.maxMessageBytes, frames: settings.maxFrames };
  const metadata = encodeMetadata(socketType);
  return settings.curve === null
    ? new NullMechanism(metadata, limits)
    : new CurveMechanism(settings.curve, metadata, limits);
}
