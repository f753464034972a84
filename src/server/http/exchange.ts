// One request with its answer, as the proxy sees it whatever server it came through: Node's own request and response where there are any, so that
// bytes pass without a detour and headers as they came, and the web's otherwise (Deno).
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { BodyShare } from './body-budget.js';
import { Breaker } from './breaker.js';
import { ApiError, ClientGone } from './errors.js';
import { type HeaderList, headerValue } from './headers.js';

/** Bounds of a body. */
export interface BodyLimits {
  readonly bytes: number;
  /** Milliseconds for all of it. */
  readonly time: number;
  readonly share: BodyShare;
}

/** Where an answer's body goes. */
export interface Sink {
  /** False when nothing more should be written before `onDrain` has been called. */
  write(chunk: Uint8Array): boolean;
  onDrain: (() => void) | null;
  end(): void;
  /** Ends the connection so that the client sees that the answer is not whole. */
  break(): void;
}

/** A request with its answer. */
export interface Exchange {
  /** Path and query, as they were sent. */
  readonly target: string;
  readonly headers: HeaderList;
  /** Broken off when the client has gone; may be, too, after the answer has been sent. */
  readonly breaker: Breaker;
  /** @throws ApiError 413 `body-too-large`, 408 `body-timeout`, 503 `busy`; ClientGone */
  readBody(limits: BodyLimits): Promise<Uint8Array>;
  /** Begins the answer. */
  start(status: number, statusText: string, headers: HeaderList): Sink;
  /** What the handler returns once the answer has begun. */
  readonly response: Response;
}

/** What `@hono/node-server` hands to the app. */
interface NodeEnvironment {
  readonly incoming?: IncomingMessage;
  readonly outgoing?: ServerResponse;
}

export function exchangeOf(request: Request, environment: unknown): Exchange {
  const { incoming, outgoing } = (environment ?? {}) as NodeEnvironment;
  if (incoming !== undefined && outgoing !== undefined) return new NodeExchange(incoming, outgoing);
  return new WebExchange(request);
}

/** Gathers a body under its bounds. */
class BodyParts {
  readonly #limits: BodyLimits;
  readonly #parts: Uint8Array[] = [];
  #bytes = 0;

  /** @throws ApiError where the length that was declared is too much */
  constructor(limits: BodyLimits, headers: HeaderList) {
    this.#limits = limits;
    if (Number(headerValue(headers, 'content-length') ?? 0) > limits.bytes) throw tooLarge(limits.bytes);
  }

  /** @throws ApiError */
  add(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#limits.bytes) throw tooLarge(this.#limits.bytes);
    if (!this.#limits.share.take(part.length)) {
      throw new ApiError(503, 'busy', 'too many large requests at once; try again.', {
        headers: { 'retry-after': '1' },
      });
    }
    this.#parts.push(part);
  }

  whole(): Uint8Array {
    const [first] = this.#parts;
    if (this.#parts.length === 1) return first!;
    const bytes = new Uint8Array(this.#bytes);
    let at = 0;
    for (const part of this.#parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
}

class NodeExchange implements Exchange {
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  readonly breaker = new Breaker();

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) this.breaker.break(new ClientGone());
    });
  }

  get target(): string {
    return this.#incoming.url ?? '/';
  }
  get headers(): HeaderList {
    return this.#incoming.rawHeaders;
  }
  get response(): Response {
    return RESPONSE_ALREADY_SENT;
  }

  readBody(limits: BodyLimits): Promise<Uint8Array> {
    const incoming = this.#incoming;
    return new Promise((resolve, reject) => {
      const parts = new BodyParts(limits, incoming.rawHeaders);
      const settle = (end: () => void) => {
        clearTimeout(timer);
        incoming.off('data', onData).off('end', onEnd).off('close', onClose);
        end();
      };
      const onData = (part: Uint8Array) => {
        try {
          parts.add(part);
        } catch (error) {
          incoming.pause();
          settle(() => reject(error));
        }
      };
      const onEnd = () => settle(() => resolve(parts.whole()));
      const onClose = () => settle(() => reject(new ClientGone()));
      const timer = setTimeout(() => {
        incoming.pause();
        settle(() => reject(tooSlow(limits.time)));
      }, limits.time);
      incoming.on('data', onData).on('end', onEnd).on('close', onClose).on('error', ignore);
    });
  }

  start(status: number, statusText: string, headers: HeaderList): Sink {
    const outgoing = this.#outgoing;
    outgoing.on('error', ignore);
    // Node takes the list as it is, but its types know only the object.
    outgoing.writeHead(status, statusText, headers as unknown as string[]);
    const sink: Sink = {
      write: (chunk) => outgoing.write(chunk),
      onDrain: null,
      end: () => outgoing.end(),
      break: () => outgoing.destroy(),
    };
    outgoing.on('drain', () => sink.onDrain?.());
    return sink;
  }
}

/** Bytes of an answer that wait for a client before its worker has to. */
const WAITING_BYTES = 65_536;
/** Statuses whose answers have no body. */
const WITHOUT_BODY = new Set([204, 205, 304]);

class WebExchange implements Exchange {
  readonly #request: Request;
  readonly breaker = new Breaker();
  #response: Response | null = null;
  readonly target: string;
  readonly headers: HeaderList;

  constructor(request: Request) {
    this.#request = request;
    const { pathname, search } = new URL(request.url);
    this.target = pathname + search;
    this.headers = [...request.headers].flat();
    request.signal.addEventListener('abort', () => this.breaker.break(new ClientGone()));
  }

  get response(): Response {
    if (this.#response === null) throw new Error('the answer has not begun');
    return this.#response;
  }

  async readBody(limits: BodyLimits): Promise<Uint8Array> {
    const parts = new BodyParts(limits, this.headers);
    const reader = this.#request.body?.getReader();
    if (reader === undefined) return parts.whole();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(tooSlow(limits.time)), limits.time);
    });
    try {
      for (;;) {
        const { done, value } = await Promise.race([reader.read(), tooLate]);
        if (done) return parts.whole();
        parts.add(value);
      }
    } catch (error) {
      reader.cancel().catch(ignore);
      throw error instanceof ApiError ? error : new ClientGone();
    } finally {
      clearTimeout(timer);
    }
  }

  start(status: number, statusText: string, headers: HeaderList): Sink {
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const sink: Sink = {
      write: (chunk) => {
        controller.enqueue(chunk);
        return (controller.desiredSize ?? 0) > 0;
      },
      onDrain: null,
      end: () => controller.close(),
      break: () => {
        // Who has gone has cancelled the stream. Deno's server shows the error on standard error.
        if (!(this.breaker.reason instanceof ClientGone))
          controller.error(new Error('the worker failed in the middle of its answer'));
      },
    };
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (given) => {
          controller = given;
        },
        pull: () => sink.onDrain?.(),
        cancel: () => this.breaker.break(new ClientGone()),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES }),
    );
    const pairs: [string, string][] = [];
    for (let i = 0; i < headers.length; i += 2) pairs.push([headers[i]!, headers[i + 1]!]);
    const body = WITHOUT_BODY.has(status) ? null : stream;
    this.#response = new Response(body, { status, statusText, headers: pairs });
    return sink;
  }
}

function ignore(): void {}

function tooLarge(most: number): ApiError {
  return new ApiError(413, 'body-too-large', `the body is longer than ${most} bytes (limits.bodyBytes).`);
}

function tooSlow(ms: number): ApiError {
  return new ApiError(408, 'body-timeout', `the body did not arrive within ${ms} ms (limits.bodyTime).`);
}
