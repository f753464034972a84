// One attempt at one worker: the request goes out on a kept connection, and what comes back is handed over with its first bytes, so that whoever asked
// can still ask somebody else up to then. On node:http and not on fetch, which would unpack compressed answers and lose the case of headers.
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Breaker } from './breaker.js';
import type { HeaderList } from './headers.js';

/** What a worker is asked. */
export interface Question {
  /** `http://HOST:PORT` */
  readonly url: string;
  readonly target: string;
  readonly headers: HeaderList;
  readonly body: Uint8Array;
}

/** Who takes an answer's body. */
export interface Taker {
  data(chunk: Uint8Array): void;
  /** Once, and after it nothing more. */
  end(): void;
  /** Likewise: the worker died, or was broken off. */
  fail(): void;
}

/** An answer that has begun: it has its head and its first bytes, or has ended without any. */
export interface Answer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderList;
  /** Hands the body over, from its first bytes on. */
  pass(taker: Taker): void;
  pause(): void;
  resume(): void;
  /** Breaks it off. */
  abort(): void;
}

/** A worker gave nothing of an answer. */
export class WorkerFailed extends Error {
  override readonly name = 'WorkerFailed';

  constructor(readonly how: 'connect' | 'connect-timeout' | 'reset' | 'no-http') {
    super(how);
  }
}

/** Connections to one worker. Each serves one request at a time, so this many are under way; more wait. */
const MAX_CONNECTIONS = 4096;
/** Idle connections that are kept for one worker. */
const MAX_IDLE = 256;
/** How long: less than the 5 s after which Node's and uvicorn's servers close theirs, or requests would meet the closing. */
const IDLE_MS = 4000;
const CONNECT_MS = 5000;

/** Asks workers; connections are kept by address. */
export class Upstream {
  readonly #agent = new Agent({
    keepAlive: true,
    maxSockets: MAX_CONNECTIONS,
    maxFreeSockets: MAX_IDLE,
    scheduling: 'lifo',
    timeout: IDLE_MS,
    noDelay: true,
  });

  /**
   * Asks.
   * @throws WorkerFailed; the breaker's reason
   */
  ask({ url, target, headers, body }: Question, breaker: Breaker): Promise<Answer> {
    const { hostname, port } = addressOf(url);
    return new Promise((resolve, reject) => {
      if (breaker.reason !== null) return reject(breaker.reason);
      const request = httpRequest({
        agent: this.#agent,
        method: 'POST',
        host: hostname,
        port,
        path: target,
        headers: headers as string[],
      });
      const unbound = breaker.on((reason) => {
        reject(reason);
        request.destroy();
      });
      let begun = false;
      const fail = (how: WorkerFailed['how']) => {
        if (begun) return; // the answer tells of itself
        unbound();
        reject(new WorkerFailed(how));
        request.destroy();
      };
      let connected = false;
      boundConnect(
        request,
        () => fail('connect-timeout'),
        () => {
          connected = true;
        },
      );
      request.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code?.startsWith('HPE_') === true) fail('no-http');
        else fail(connected ? 'reset' : 'connect');
      });
      request.on('response', (response) => {
        const answer = new BegunAnswer(request, response, () => {
          begun = true;
          unbound();
          resolve(answer);
        });
        // Before it has begun, a connection that ends is a request that failed.
        response.on('close', () => fail('reset'));
      });
      request.end(body);
    });
  }
}

/** An answer from its head on; `begun` is called when there are bytes, or none will come. */
class BegunAnswer implements Answer {
  readonly #request: ClientRequest;
  readonly #response: IncomingMessage;
  #first: Uint8Array | null = null;
  #taker: Taker | null = null;
  /** What has happened before somebody took it. */
  #over: 'end' | 'fail' | null = null;

  constructor(request: ClientRequest, response: IncomingMessage, begun: () => void) {
    this.#request = request;
    this.#response = response;
    response.on('data', (chunk: Uint8Array) => {
      if (this.#taker !== null) return this.#taker.data(chunk);
      // Paused behind its first chunk, it has only this one.
      this.#first = chunk;
      response.pause();
      begun();
    });
    response.on('end', () => {
      this.#settle('end');
      begun();
    });
    response.on('error', ignore);
    response.on('close', () => this.#settle('fail'));
  }

  get status(): number {
    return this.#response.statusCode ?? 0;
  }
  get statusText(): string {
    return this.#response.statusMessage ?? '';
  }
  get headers(): HeaderList {
    return this.#response.rawHeaders;
  }

  pass(taker: Taker): void {
    this.#taker = taker;
    const first = this.#first;
    this.#first = null;
    if (first !== null) taker.data(first);
    if (this.#over === null) return;
    taker[this.#over]();
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  abort(): void {
    this.#request.destroy();
  }

  #settle(how: 'end' | 'fail'): void {
    if (this.#over !== null) return;
    this.#over = how;
    this.#taker?.[how]();
  }
}

function ignore(): void {}

/** Calls `connected` when the request has a connection, and `tooLate` when it takes too long to get a new one. */
function boundConnect(request: ClientRequest, tooLate: () => void, connected: () => void): void {
  request.on('socket', (socket) => {
    if (!socket.connecting) return connected();
    const timer = setTimeout(tooLate, CONNECT_MS);
    socket.once('connect', () => {
      clearTimeout(timer);
      connected();
    });
    socket.once('close', () => clearTimeout(timer));
  });
}

/** Addresses as they were last looked at; workers are few. */
const addresses = new Map<string, { readonly hostname: string; readonly port: number }>();
const MAX_ADDRESSES = 4096;

function addressOf(url: string): { readonly hostname: string; readonly port: number } {
  const known = addresses.get(url);
  if (known !== undefined) return known;
  const { hostname, port } = new URL(url);
  const address = { hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 80 : Number(port) };
  if (addresses.size >= MAX_ADDRESSES) addresses.clear();
  addresses.set(url, address);
  return address;
}
