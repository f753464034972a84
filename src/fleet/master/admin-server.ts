// The master's admin port: node:http around admin-replies.ts, with a count of every request and the faults of http-faults.ts.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError } from '../../errors.js';
import { type AdminReply, splitTarget } from './admin-replies.js';
import { FOREIGN_LINE, GARBAGE, type HttpFault } from './http-faults.js';

/** How often a slow reply sends its share. */
const SLOW_TICK_MS = 20;
/** Lines of a huge reply that are sent at once. */
const LINES_AT_ONCE = 512;
/** Most paths whose requests are counted one by one; the master has about ten. */
const MAX_COUNTED_PATHS = 64;
const EVERY_PATH = '*';

/** What a request's path and query are answered. */
export type Answer = (method: string, target: string) => AdminReply | Promise<AdminReply>;

export class AdminServer {
  readonly #host: string;
  readonly #answer: Answer;
  readonly #faults = new Map<string, HttpFault>();
  readonly #requests = new Map<string, number>();
  #server: Server | null = null;
  #port: number;

  /** @param port 0 for any; the one it got is kept when it is stopped and started again */
  constructor(host: string, port: number, answer: Answer) {
    this.#host = host;
    this.#port = port;
    this.#answer = answer;
  }

  get url(): string {
    return `http://${this.#host.includes(':') ? `[${this.#host}]` : this.#host}:${this.#port}`;
  }

  get running(): boolean {
    return this.#server !== null;
  }

  /** Requests by path since the beginning. */
  requests(path: string): number {
    return this.#requests.get(path) ?? 0;
  }

  /** @param path all paths that have no fault of their own, unless given */
  setFault(fault: HttpFault | null, path = EVERY_PATH): void {
    if (fault === null) this.#faults.delete(path);
    else this.#faults.set(path, fault);
  }

  /** @throws ConfigError `bind-failed` */
  async start(): Promise<void> {
    const server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    server.listen(this.#port, this.#host);
    try {
      await once(server, 'listening');
    } catch (error) {
      throw new ConfigError(
        'bind-failed',
        `can't listen on ${this.#host}:${this.#port} for HTTP: ${(error as Error).message}. Choose another port, or 0 for any that is free.`,
      );
    }
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Breaks every connection off; connecting is refused from now on. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = request.url ?? '/';
    const { path } = splitTarget(target);
    if (this.#requests.has(path) || this.#requests.size < MAX_COUNTED_PATHS)
      this.#requests.set(path, (this.#requests.get(path) ?? 0) + 1);
    request.resume();
    const fault = this.#faults.get(path) ?? this.#faults.get(EVERY_PATH);
    if (fault?.kind === 'silent') return;
    if (fault?.kind === 'status') {
      response.writeHead(fault.status, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(fault.body ?? '');
      return;
    }
    await reply(response, await this.#answer(request.method ?? 'GET', target), fault);
  }
}

async function reply(response: ServerResponse, { status, type, body }: AdminReply, fault?: HttpFault): Promise<void> {
  const pieces = fault?.kind === 'garbage' ? [GARBAGE] : body;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const declared = fault?.kind === 'huge' ? Math.max(length, fault.bytes) : length;
  response.writeHead(status, { 'content-type': type, 'content-length': declared });
  response.flushHeaders(); // the head goes out even when nothing follows it
  const send = sender(response);
  if (fault?.kind === 'slow') await sendSlowly(send, Buffer.concat(pieces), fault.bytesPerSecond);
  else if (fault?.kind === 'truncated') {
    await send(Buffer.concat(pieces).subarray(0, Math.floor(length * fault.share)));
    response.destroy();
  } else {
    for (const piece of pieces) await send(piece);
    await sendFiller(send, declared - length);
  }
  response.end();
}

/** Sends bytes; false when the other side is gone. */
type Send = (bytes: Uint8Array) => Promise<boolean>;

function sender(response: ServerResponse): Send {
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  return async (bytes) => {
    if (response.destroyed) return false;
    const written = new Promise<void>((resolve) => response.write(bytes, () => resolve()));
    await Promise.race([written, closed]);
    return !response.destroyed;
  };
}

async function sendSlowly(send: Send, bytes: Uint8Array, bytesPerSecond: number): Promise<void> {
  const share = Math.max(1, Math.round((bytesPerSecond * SLOW_TICK_MS) / 1000));
  for (let at = 0; at < bytes.length; at += share) {
    if (!(await send(bytes.subarray(at, at + share)))) return;
    await wait(SLOW_TICK_MS);
  }
}

async function sendFiller(send: Send, bytes: number): Promise<void> {
  const filler = Buffer.from(FOREIGN_LINE.repeat(LINES_AT_ONCE));
  for (let left = bytes; left > 0; left -= filler.length)
    if (!(await send(filler.subarray(0, Math.min(left, filler.length))))) return;
}
