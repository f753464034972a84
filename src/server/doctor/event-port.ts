// Listens at what is configured as an event socket, under every topic; and where no events are, finds out what is there instead.
import { parseEndpoint } from '../../live/zmtp/endpoint.js';
import { type SocketEvent, type SocketOptions, ZmtpDealer, ZmtpSubscriber } from '../../live/zmtp/socket.js';
import { ask, WorkerHttpError } from '../registry-http.js';
import type { PortEvidence, PortKind } from './evidence.js';
import type { CollectParts } from './parts.js';

/** Time for one attempt to find out what a port is. */
const LOOK_MS = 1500;
const LOOK_BYTES = 65_536;

export class EventPort {
  readonly endpoint: string;
  readonly #parts: CollectParts;
  readonly #socket: ZmtpSubscriber;
  #everConnected = false;
  #lost: PortEvidence['lost'] = null;
  #onceSettled: () => void = () => {};
  /** Resolves when the first attempt to connect has ended, either way. */
  readonly settled: Promise<void>;

  /** @throws ConfigError `endpoint`, `curve-keys` */
  constructor(endpoint: string, parts: CollectParts, onMessage: (frames: Uint8Array[]) => void) {
    this.endpoint = endpoint;
    this.#parts = parts;
    this.settled = new Promise((resolve) => {
      this.#onceSettled = resolve;
    });
    const handlers = { onMessage, onEvent: (event: SocketEvent) => this.#on(event) };
    this.#socket = new ZmtpSubscriber(endpoint, '', handlers, socketOptions(parts));
    this.#socket.open();
  }

  close(): void {
    this.#onceSettled();
    this.#socket.close();
  }

  /** What there was until now. Where no event socket was, the port is looked at once more, in other ways. */
  async evidence(): Promise<PortEvidence> {
    const connected = this.#socket.connected;
    const found = this.#everConnected ? 'events' : await lookAt(this.endpoint, this.#lost, this.#parts);
    return { endpoint: this.endpoint, connected, lost: this.#lost, found };
  }

  #on(event: SocketEvent): void {
    if (event.kind === 'connected') this.#everConnected = true;
    else if (event.kind === 'lost') this.#lost = { cause: event.cause, detail: event.detail };
    this.#onceSettled();
  }
}

export function socketOptions({ curve }: CollectParts): SocketOptions {
  return { connectTimeoutMs: LOOK_MS, reconnectMaxMs: 1000, ...(curve === null ? {} : { curve }) };
}

/** What is at an endpoint where no publisher answered. */
async function lookAt(endpoint: string, lost: PortEvidence['lost'], parts: CollectParts): Promise<PortKind> {
  if (lost?.cause === 'refused') return 'nobody';
  if (await answersHttp(endpoint, parts)) return 'http';
  if (await isRouter(endpoint, parts)) return 'replay';
  return 'other';
}

/** Whether an HTTP server is at a socket's endpoint. */
export async function answersHttp(endpoint: string, { fetch, clock, signal }: CollectParts): Promise<boolean> {
  const place = parseEndpoint(endpoint);
  if (place.kind !== 'tcp') return false;
  const host = place.host.includes(':') ? `[${place.host}]` : place.host;
  const url = `http://${host}:${place.port}/health`;
  try {
    await ask({ fetch, clock }, { url, body: null, time: LOOK_MS, bytes: LOOK_BYTES, signal });
    return true;
  } catch (error) {
    if (!(error instanceof WorkerHttpError)) throw error;
    return error.code === 'http-redirect' || error.code === 'http-too-large';
  }
}

function isRouter(endpoint: string, parts: CollectParts): Promise<boolean> {
  return connects((handlers) => new ZmtpDealer(endpoint, handlers, socketOptions(parts)), parts);
}

/** Whether a publisher is there. */
export function isPublisher(endpoint: string, parts: CollectParts): Promise<boolean> {
  return connects((handlers) => new ZmtpSubscriber(endpoint, '', handlers, socketOptions(parts)), parts);
}

type Handlers = ConstructorParameters<typeof ZmtpDealer>[1];

/** Whether a socket's first attempt to connect ends with a handshake. */
function connects(
  make: (handlers: Handlers) => ZmtpDealer | ZmtpSubscriber,
  { clock, signal }: CollectParts,
): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (connected: boolean): void => {
      cancel();
      signal.removeEventListener('abort', giveUp);
      socket.close();
      resolve(connected);
    };
    const giveUp = (): void => end(false);
    const cancel = clock.after(LOOK_MS, giveUp);
    signal.addEventListener('abort', giveUp);
    const socket = make({ onMessage: () => {}, onEvent: ({ kind }) => end(kind === 'connected') });
    socket.open();
  });
}
