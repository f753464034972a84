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
/** A kept connection that was closed on its other side says so soon; one that ends later has worked on the request, which is not sent twice. */
const STALE_MS = 1000;

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
  ask(question: Question, breaker: Breaker): Promise<Answer> {
    return this.#ask(question, breaker, this.#agent);
  }

  /** @param agent false for a connection of its own */
  #ask(question: Question, breaker: Breaker, agent: Agent | false): Promise<Answer> {
    const { url, target, headers, body } = question;
    const { hostname, port } = addressOf(url);
    return new Promise((resolve, reject) => {
      if (breaker.reason !== null) return reject(breaker.reason);
      const request = httpRequest({
        agent,
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
      const asked = performance.now();
      let begun = false;
      const fail = (how: WorkerFailed['how']) => {
        if (begun) return; // the answer tells of itself
        unbound();
        request.destroy();
        // The worker closed a kept connection while the request was on its way, as everybody may: that is no failure, once.
        const isSoon = performance.now() - asked < STALE_MS;
        if (how === 'reset' && isSoon && agent !== false && request.reusedSocket && !heard()) {
          resolve(this.#ask(question, breaker, false));
        } else reject(new WorkerFailed(how));
      };
      let connected = false;
      const heard = listenForBytes(request);
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
      // Nobody asked for another protocol.
      request.on('upgrade', (_, socket) => {
        socket.destroy();
        fail('no-http');
      });
      request.on('response', (response) => {
        if (!isFinal(response.statusCode)) return fail('no-http');
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

/** Whether a status is one that an answer can have. */
function isFinal(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status <= 599;
}

/** Tells whether anything has come back for a request, on a connection that may have served others. */
function listenForBytes(request: ClientRequest): () => boolean {
  let heard = () => false;
  request.on('socket', (socket) => {
    const before = socket.bytesRead;
    heard = () => socket.bytesRead > before;
  });
  return () => heard();
}

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
