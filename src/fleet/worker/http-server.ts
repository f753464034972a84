// The HTTP of a simulated worker: what OpenAI's and vLLM's servers answer, on node:http. It reads and writes; what is asked for is judged in api.ts,
// worded in http-reply.ts, and done by the worker behind it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { ConfigError, MoonrouteError } from '../../errors.js';
import { type AnswerRequest, type ApiTerms, readChat, readCompletion, readDetokenize, readTokenize } from './api.js';
import type { Output } from './engine.js';
import type { HttpFault } from './faults.js';
import { errorBody, Reply, type Truth } from './http-reply.js';
import { refusal, TOKENIZER_INFO, tokensText } from './tokenizer.js';

/** What the HTTP needs of its worker. */
export interface HttpHost {
  readonly id: string;
  readonly terms: ApiTerms;
  /** What `GET /moonroute/descriptor` says; null for 404. */
  readonly descriptor: unknown;
  now(): number;
  /** Gives a request to an engine. @throws MoonrouteError */
  submit(request: AnswerRequest, rank: number | null, listener: (output: Output) => void): Ticket;
  nextFault(): HttpFault | null;
  orderFault(json: unknown): void;
  clear(): boolean;
  metrics(): string;
  status(): unknown;
}

/** A request that an engine works on. */
export interface Ticket {
  readonly dpRank: number;
  abort(): void;
}

/** Largest body: prompts of the longest models as token ids fit. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;

const STATUS: Readonly<Record<string, number>> = {
  'bad-request': 400,
  'prompt-empty': 400,
  'prompt-too-long': 400,
  'no-such-model': 404,
  'engine-full': 503,
};

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;

export class WorkerHttp {
  readonly #host: HttpHost;
  readonly #server: Server;
  #answers = 0;

  private constructor(host: HttpHost) {
    this.#host = host;
    this.#server = createServer((request, response) => void this.#handle(request, response));
  }

  /** Listens. @throws ConfigError `bind-failed` */
  static async open(host: HttpHost, address: string, port: number): Promise<WorkerHttp> {
    const http = new WorkerHttp(host);
    await new Promise<void>((resolve, reject) => {
      http.#server.once('error', (error) =>
        reject(
          new ConfigError('bind-failed', `can't listen on ${address}:${port}: ${error.message}. Choose another port.`),
        ),
      );
      http.#server.listen(port, address, resolve);
    });
    return http;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Ends at once, whatever is under way. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  readonly #routes: Readonly<Record<string, Handler>> = {
    'GET /health': (_, response) => sendJson(response, 200, {}),
    'GET /ping': (_, response) => sendJson(response, 200, {}),
    'GET /version': (_, response) => sendJson(response, 200, { version: 'moonroute-simulated' }),
    'GET /v1/models': (_, response) => sendJson(response, 200, this.#models()),
    'GET /metrics': (_, response) => {
      response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
      response.end(this.#host.metrics());
    },
    'GET /tokenizer_info': (_, response) => sendJson(response, 200, TOKENIZER_INFO),
    'GET /moonroute/descriptor': (_, response) => {
      const { descriptor } = this.#host;
      if (descriptor === null) sendError(response, 404, 'this worker publishes no descriptor');
      else sendJson(response, 200, descriptor);
    },
    'GET /moonroute/status': (_, response) => sendJson(response, 200, this.#host.status()),
    'POST /moonroute/fault': async (request, response) => {
      this.#host.orderFault(await readJson(request));
      sendJson(response, 200, {});
    },
    'POST /reset_prefix_cache': (_, response) => {
      const cleared = this.#host.clear();
      sendJson(response, cleared ? 200 : 409, { cleared });
    },
    'POST /tokenize': async (request, response) => {
      const tokens = readTokenize(await readJson(request));
      const max_model_len = this.#host.terms.maxModelLength;
      sendJson(response, 200, { count: tokens.length, max_model_len, tokens, token_strs: null });
    },
    'POST /detokenize': async (request, response) => {
      sendJson(response, 200, { prompt: tokensText(readDetokenize(await readJson(request))) });
    },
    'POST /v1/chat/completions': (request, response) => this.#answer(request, response, readChat),
    'POST /v1/completions': (request, response) => this.#answer(request, response, readCompletion),
  };

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined); // whoever asked has gone
    const path = (request.url ?? '/').split('?', 1)[0]!;
    const handler = this.#routes[`${request.method} ${path}`];
    try {
      if (handler === undefined) sendError(response, 404, `there is no ${request.method} ${path}`);
      else await handler(request, response);
    } catch (error) {
      if (response.headersSent || response.destroyed) response.destroy();
      else if (error instanceof MoonrouteError) sendError(response, STATUS[error.code] ?? 500, error.message);
      else sendError(response, 500, String(error));
    }
  }

  #models(): object {
    const { model, adapters, maxModelLength } = this.#host.terms;
    const created = Math.floor(this.#host.now() / 1000);
    const card = (id: string, parent: string | null) => ({
      id,
      object: 'model',
      created,
      owned_by: 'moonroute fleet (simulated)',
      root: id,
      parent,
      max_model_len: maxModelLength,
    });
    return { object: 'list', data: [card(model, null), ...adapters.map((adapter) => card(adapter, model))] };
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    read: (body: unknown, terms: ApiTerms) => AnswerRequest,
  ): Promise<void> {
    const body = await readJson(request);
    const fault = this.#host.nextFault();
    if (fault?.kind === 'unavailable') return sendError(response, 503, 'simulated fault: unavailable');
    if (fault?.kind === 'no-first-byte') return void response.destroy();
    if (fault?.kind === 'hang') return;
    const asked = read(body, this.#host.terms);
    const reply = new Reply(asked, ++this.#answers, Math.floor(this.#host.now() / 1000));
    const ticket = this.#host.submit(asked, rankOf(request), (output) =>
      this.#send(response, asked, reply, output, fault, ticket),
    );
    response.on('close', () => {
      if (!response.writableFinished) ticket.abort();
    });
    if (response.destroyed) ticket.abort();
  }

  /** Sends on what an engine generated. */
  #send(
    response: ServerResponse,
    asked: AnswerRequest,
    reply: Reply,
    { token, finished, sources }: Output,
    fault: HttpFault | null,
    ticket: Ticket,
  ): void {
    reply.take();
    const truth: Truth = { ...sources, worker: this.#host.id, dpRank: ticket.dpRank };
    const cached = fault?.kind === 'wrong-usage' ? fault.cachedTokens : sources.gpuTokens + sources.storeTokens;
    if (asked.stream) {
      if (!response.headersSent) {
        response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
      }
      response.write(`data: ${JSON.stringify(reply.chunk(token, finished))}\n\n`);
      if (finished && asked.includeUsage)
        response.write(`data: ${JSON.stringify(reply.usageChunk(cached, truth))}\n\n`);
    }
    if (fault?.kind === 'mid-stream') {
      // What was written must be on its way before the connection ends. A whole answer breaks off behind its first bytes.
      if (!asked.stream) response.writeHead(200, { 'content-type': 'application/json' });
      response.write(asked.stream ? ': simulated fault\n\n' : '{"id":', () => response.destroy());
      ticket.abort();
      return;
    }
    if (!finished) return;
    if (asked.stream) response.end('data: [DONE]\n\n');
    else sendJson(response, 200, reply.whole(cached, truth));
  }
}

/** The rank that the request asks for by vLLM's header; null for any. */
function rankOf(request: IncomingMessage): number | null {
  const rank = request.headers['x-data-parallel-rank'];
  if (rank === undefined) return null;
  if (!/^\d+$/.test(String(rank)))
    throw refusal(`X-data-parallel-rank is ${JSON.stringify(rank)}; give a whole number`);
  return Number(rank);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) throw refusal(`the body is longer than ${MAX_BODY_BYTES} bytes`);
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch (error) {
    throw refusal(`the body is no JSON: ${(error as Error).message}`);
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendError(response: ServerResponse, status: number, message: string): void {
  sendJson(response, status, errorBody(message, status < 500 ? 'BadRequestError' : 'InternalServerError', status));
}
