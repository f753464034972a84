// Decisions without a proxy: `POST /route` says where a request should go, for gateways that send it themselves, and `POST /explain` also why it should
// go nowhere else. Prompts come as token ids, as local hashes, or as the body of a completion. That a prompt is text alone is believed of ids and
// hashes only where the configuration allows it: nobody here has seen what they were made from.
import { z } from 'zod';
import type { Decision } from '../../router/decision.js';
import type { RouteRequest } from '../../router/prompt.js';
import type { EndedRequest, PreparedPrompt } from '../types.js';
import { decisionHeaders, decisionJson, explanationJson, jsonText } from './decision-said.js';
import { decisionPart, NO_DECISION, NO_WORKER, predictedTokens, promptPart, requestId } from './ended.js';
import { ApiError, apiErrorOf, ClientGone, clientGoneResponse } from './errors.js';
import type { Exchange } from './exchange.js';
import { headerValue } from './headers.js';
import type { HttpParts } from './parts.js';
import { rawFieldsWithin } from './raw-fields.js';
import { type ReadBody, readRequestBody } from './request-body.js';
import { LEASE_REPORTS, type LeaseReport, RouteLeases } from './route-leases.js';

const MAX_COUNT = 0xffff_ffff;
const MAX_U64 = (1n << 64n) - 1n;
const count = z.int().min(0).max(MAX_COUNT);
const name = z.string().max(1024).nullable().optional();

const routeSchema = z.strictObject({
  tokens: z.array(z.unknown()).optional(),
  local_hashes: z.array(z.string()).optional(),
  token_count: count.optional(),
  /** The body of a chat completion, or of a completion, in place of tokens. */
  chat: z.record(z.string(), z.unknown()).optional(),
  completions: z.record(z.string(), z.unknown()).optional(),
  text_only: z.boolean().optional(),
  lora_name: name,
  cache_salt: name,
  allowed: z.array(z.string()).nullable().optional(),
  expected_output_tokens: count.nullable().optional(),
  shared_cache_multiplier: z.number().min(0).max(1).nullable().optional(),
  lease: z.enum(['none', 'open']).optional(),
});
type RouteBody = z.infer<typeof routeSchema>;

const reportSchema = z.strictObject({
  generated_tokens: count.optional(),
  cached_tokens: count.nullable().optional(),
});

/** Answers both, and reports of leases. */
export class RouteApi {
  readonly #parts: HttpParts;
  readonly #leases: RouteLeases;

  constructor(parts: HttpParts) {
    this.#parts = parts;
    this.#leases = new RouteLeases(parts.service.config.limits.requestTime);
  }

  /** Leases that are kept. */
  get open(): number {
    return this.#leases.size;
  }

  route(exchange: Exchange): Promise<Response> {
    return this.#decide(exchange, false);
  }

  explain(exchange: Exchange): Promise<Response> {
    return this.#decide(exchange, true);
  }

  /** A report of a lease. */
  async report(exchange: Exchange, id: string, what: string): Promise<Response> {
    try {
      const { keys } = this.#parts;
      const { headers } = exchange;
      const caller = keys.check('either', headerValue(headers, 'authorization'), headerValue(headers, 'host'));
      if (!(LEASE_REPORTS as readonly string[]).includes(what)) {
        throw new ApiError(404, 'unknown-report', `reports are ${LEASE_REPORTS.join(', ')}.`);
      }
      const body = await readRequestBody(exchange, this.#parts);
      body.share.end();
      const { generated_tokens: generated = 0, cached_tokens: cached = null } = checked(reportSchema, body.fields);
      this.#leases.report(id, what as LeaseReport, { generated, cached }, caller);
      return json(200, {});
    } catch (error) {
      return this.#refusal(error);
    }
  }

  async #decide(exchange: Exchange, explain: boolean): Promise<Response> {
    const { service, keys, observers } = this.#parts;
    const started = performance.now();
    const id = requestId();
    let leave: (() => void) | null = null;
    try {
      // What others' requests have put where is shown by an explanation: that is for administrators.
      const door = explain ? 'admin' : 'client';
      const { headers } = exchange;
      const caller = keys.check(door, headerValue(headers, 'authorization'), headerValue(headers, 'host'));
      leave = service.activity.begin();
      if (leave === null) throw new ApiError(503, 'shutting-down', 'this router is shutting down.');
      const body = await readRequestBody(exchange, this.#parts);
      body.share.end();
      const fields = checked(routeSchema, body.fields);
      const opens = fields.lease === 'open' && !explain;
      if (opens) this.#leases.refuseFull();
      const { request, prompt } = await this.#requestOf(fields, body, exchange.breaker.signal);
      const now = performance.now();
      const decision = service.router.route({ ...request, now, explain });
      const decisionTime = performance.now() - now;
      const end = this.#reportEnd(id, started, decisionTime, decision, prompt);
      let lease = 'none';
      if (opens) {
        decision.lease.attach({
          ended: ({ outcome, cachedTokens, generatedTokens }) => end(outcome, cachedTokens, generatedTokens),
        });
        lease = this.#leases.keep(decision.lease, caller);
      } else {
        decision.lease.cancel(performance.now());
        end('completed', null, 0);
      }
      const { blockSize } = service.config;
      const url = service.registry.get(decision.worker.id)?.url ?? null;
      const said = {
        request_id: id,
        lease,
        url,
        ...decisionJson(decision, blockSize),
        prompt: { source: prompt.source, tokens: prompt.tokenCount, text_only: prompt.textOnly, reason: prompt.reason },
        ...(explain ? explanationJson(decision) : {}),
      };
      return json(200, said, decisionHeaders(decision, prompt, blockSize, id));
    } catch (error) {
      const refusal = this.#refusal(error);
      observers.ended({ ...refusedRequest(id, started), status: refusal.status });
      return refusal;
    } finally {
      leave?.();
    }
  }

  /** @throws ApiError */
  async #requestOf(
    fields: RouteBody,
    body: ReadBody,
    gone: AbortSignal,
  ): Promise<{ readonly request: RouteRequest; readonly prompt: PreparedPrompt }> {
    const given = [fields.tokens, fields.local_hashes, fields.chat, fields.completions].filter(
      (it) => it !== undefined,
    );
    if (given.length !== 1) {
      throw new ApiError(400, 'route-request', 'give one of tokens, local_hashes, chat and completions.');
    }
    const prompt = await this.#promptOf(fields, body, gone);
    const most = this.#parts.service.config.limits.promptTokens;
    if (prompt.reason?.code === 'prompt-too-long' || prompt.tokenCount > most) {
      throw new ApiError(400, 'prompt-too-long', `the prompt has more than ${most} tokens (limits.promptTokens).`);
    }
    const { tokens, tokenCount, textOnly, loraName, cacheSalt } = prompt;
    const localHashes = fields.local_hashes === undefined ? new BigUint64Array(0) : hashesOf(fields.local_hashes);
    const request = {
      ...(tokens === null ? { localHashes, tokenCount } : { tokens }),
      textOnly,
      loraName,
      cacheSalt,
      allowed: this.#allowedOf(fields),
      expectedOutputTokens: fields.expected_output_tokens ?? 0,
      sharedCacheMultiplier: fields.shared_cache_multiplier ?? null,
    };
    return { request, prompt };
  }

  /** Whoever the request may go to: those that it names, and those that have its model. Null for all. */
  #allowedOf({ allowed = null, chat, completions }: RouteBody): readonly string[] | null {
    const model = (chat ?? completions)?.['model'];
    const listed = typeof model === 'string' ? this.#parts.service.registry.listedBy(model) : null;
    return allowed === null || listed === null ? (allowed ?? listed) : allowed.filter((id) => listed.includes(id));
  }

  async #promptOf(fields: RouteBody, body: ReadBody, gone: AbortSignal): Promise<PreparedPrompt> {
    const { service } = this.#parts;
    const isBody = fields.chat !== undefined || fields.completions !== undefined;
    if (fields.text_only === true && (isBody || !service.config.provenance.route)) {
      throw new ApiError(
        403,
        'provenance-not-allowed',
        isBody
          ? 'what the body of a completion is gets judged here; leave text_only out.'
          : 'text_only is believed only where the configuration has provenance.route.',
        { param: 'text_only' },
      );
    }
    for (const kind of ['chat', 'completions'] as const) {
      const given = fields[kind];
      if (given !== undefined) return service.prompts.read(kind, given, gone, rawFieldsWithin(body, kind));
    }
    const textOnly = fields.text_only === true;
    const tokens = fields.tokens === undefined ? null : idsOf(fields.tokens);
    if (tokens === null && fields.token_count === undefined) {
      throw new ApiError(400, 'route-request', 'local_hashes need token_count, the tokens of the whole prompt.');
    }
    return {
      tokens,
      tokenCount: tokens?.length ?? fields.token_count!,
      source: 'ids',
      textOnly,
      loraName: fields.lora_name ?? null,
      cacheSalt: fields.cache_salt ?? null,
      reason: textOnly ? null : { code: 'not-claimed', text: 'the request does not claim to be text alone' },
    };
  }

  /** Tells observers of an ended decision, once. */
  #reportEnd(
    id: string,
    started: number,
    decisionTime: number,
    decision: Decision,
    prompt: PreparedPrompt,
  ): (outcome: EndedRequest['outcome'], cachedTokens: number | null, generatedTokens: number) => void {
    const { service, observers } = this.#parts;
    const part = {
      worker: { id: String(decision.worker.id), dpRank: decision.worker.dpRank },
      ...promptPart(prompt),
      decision: decisionPart(decision),
      sharedReason: decision.sharedReason?.code ?? null,
      predictedTokens: predictedTokens(decision.blocks, service.config.blockSize),
    };
    return (outcome, cachedTokens, generatedTokens) => {
      const ended = { ...refusedRequest(id, started), ...part, status: 200 };
      observers.ended({ ...ended, cachedTokens, generatedTokens, outcome, decisionTime });
    };
  }

  #refusal(error: unknown): Response {
    if (error instanceof ClientGone) return clientGoneResponse();
    const refusal = apiErrorOf(error);
    this.#parts.observers.fault(refusal.code);
    if (refusal.code === 'internal-error') {
      this.#parts.service.log.error({ error: (error as Error).stack ?? String(error) }, 'a decision could not be made');
    }
    return refusal.response();
  }
}

/** What is said of a request that came to nothing. */
function refusedRequest(id: string, started: number): EndedRequest {
  return {
    id,
    at: Date.now(),
    kind: 'route',
    model: '',
    worker: NO_WORKER,
    ...promptPart(null),
    decision: NO_DECISION,
    sharedReason: null,
    predictedTokens: 0,
    cachedTokens: null,
    generatedTokens: 0,
    outcome: 'refused',
    status: 0,
    retried: false,
    decisionTime: 0,
    firstByteTime: null,
    totalTime: performance.now() - started,
  };
}

/** @throws ApiError that names the field */
export function checked<T>(schema: z.ZodType<T>, fields: unknown): T {
  const result = schema.safeParse(fields);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = issue?.path.join('.') ?? '';
  throw new ApiError(
    400,
    'invalid-request',
    `${path === '' ? 'the body' : path}: ${issue?.message ?? 'not as expected'}.`,
    {
      ...(path === '' ? {} : { param: path }),
    },
  );
}

/** Token ids. @throws ApiError */
function idsOf(tokens: readonly unknown[]): Uint32Array {
  const ids = new Uint32Array(tokens.length);
  for (let i = 0; i < tokens.length; i++) {
    const id = tokens[i];
    if (!Number.isInteger(id) || Number(id) < 0 || Number(id) > MAX_COUNT) {
      throw new ApiError(400, 'route-request', `tokens.${i} is no whole number from 0 to ${MAX_COUNT}.`, {
        param: 'tokens',
      });
    }
    ids[i] = Number(id);
  }
  return ids;
}

/** Local hashes, as texts of decimal digits: they are longer than JSON's numbers. @throws ApiError */
function hashesOf(texts: readonly string[]): BigUint64Array {
  return BigUint64Array.from(texts, (text, i) => {
    const hash = /^\d{1,20}$/.test(text) ? BigInt(text) : -1n;
    if (hash >= 0n && hash <= MAX_U64) return hash;
    throw new ApiError(400, 'route-request', `local_hashes.${i} is no whole number below 2^64, in decimal digits.`, {
      param: 'local_hashes',
    });
  });
}

export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(jsonText(value), { status, headers: { 'content-type': 'application/json', ...headers } });
}
