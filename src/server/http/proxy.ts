// A completion, proxied: read and judged, routed, sent to the chosen worker, and its answer passed on byte for byte as it comes. A worker that fails
// before its first byte is replaced once, by the runner-up; after that the client sees the connection break. Every lease that was opened
// hears how it ended, and so do the observers, whatever becomes of the request.
import { setImmediate } from 'node:timers';
import { CACHE_SALT_PREFIX } from '../../events/namespace.js';
import type { Decision } from '../../router/decision.js';
import type { EndedRequest, PreparedPrompt, PromptKind } from '../types.js';
import type { BodyShare } from './body-budget.js';
import { decisionHeaders } from './decision-said.js';
import { decisionPart, NO_DECISION, NO_WORKER, predictedTokens, promptPart, requestId } from './ended.js';
import { ApiError, apiErrorOf, ClientGone, clientGoneResponse } from './errors.js';
import type { Exchange, Sink } from './exchange.js';
import { headerValue, requestHeaders, responseHeaders } from './headers.js';
import { type Place, withValue } from './json-text.js';
import type { HttpParts } from './parts.js';
import { rawFieldsOf } from './raw-fields.js';
import { type ReadBody, readRequestBody } from './request-body.js';
import { type Answer, WorkerFailed } from './upstream.js';
import { type UsageReader, usageReader } from './usage.js';

/** Statuses with which a worker, or what stands before it, says that it can't serve now. */
const UNAVAILABLE = new Set([502, 503, 504]);
const MAX_COUNT = 0xffff_ffff;

type Outcome = EndedRequest['outcome'];

/** What is needed of a body until a worker answers. What it was parsed to is larger than its bytes, and is not. */
interface Forwarded {
  readonly bytes: Uint8Array;
  readonly share: BodyShare;
  readonly isStream: boolean;
  /** What the client expects at most; 0 where it does not say. */
  readonly outputTokens: number;
  /** A salt that is to be prefixed. */
  readonly salt: { readonly text: string; readonly place: Place } | null;
}

/** Serves one request. Resolves when its answer has begun; never rejects. */
export async function proxy(kind: PromptKind, exchange: Exchange, parts: HttpParts): Promise<Response> {
  return new ProxiedRequest(kind, exchange, parts).serve();
}

/** One request from its first to its last byte. */
class ProxiedRequest {
  readonly #kind: PromptKind;
  readonly #exchange: Exchange;
  readonly #parts: HttpParts;
  readonly #id = requestId();
  readonly #started = performance.now();
  #leave: (() => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #body: Forwarded | null = null;
  #prompt: PreparedPrompt | null = null;
  #model = '';
  #decision: Decision | null = null;
  #decisionTime = 0;
  #retried = false;
  #firstByteTime: number | null = null;
  #status = 0;
  #reader: UsageReader | null = null;
  /** The worker waits until the client has read more. */
  #held = false;
  #ended = false;

  constructor(kind: PromptKind, exchange: Exchange, parts: HttpParts) {
    this.#kind = kind;
    this.#exchange = exchange;
    this.#parts = parts;
  }

  async serve(): Promise<Response> {
    try {
      const { keys, service } = this.#parts;
      const { headers, breaker } = this.#exchange;
      keys.check('client', headerValue(headers, 'authorization'), headerValue(headers, 'host'));
      this.#leave = service.activity.begin();
      if (this.#leave === null) throw new ApiError(503, 'shutting-down', 'this router is shutting down.');
      breaker.throwIfBroken();
      const { requestTime } = service.config.limits;
      this.#timer = setTimeout(() => breaker.break(tooLong(requestTime)), requestTime);
      await this.#read();
      const answer = await this.#answer();
      try {
        return this.#pass(answer);
      } catch (error) {
        answer.abort(); // what it says can't be said on
        throw error;
      }
    } catch (error) {
      return this.#refuse(error);
    }
  }

  // ---- reading ----

  async #read(): Promise<void> {
    const { service } = this.#parts;
    const body = await readRequestBody(this.#exchange, this.#parts);
    this.#body = forwardedOf(body, service.config.salt.mode);
    const { fields } = body;
    this.#checkModel(fields['model']);
    const raw = rawFieldsOf(body);
    const prompt = await service.prompts.read(this.#kind, fields, this.#exchange.breaker.signal, raw);
    this.#exchange.breaker.throwIfBroken();
    const most = service.config.limits.promptTokens;
    if (prompt.reason?.code === 'prompt-too-long' || prompt.tokenCount > most) {
      throw new ApiError(400, 'prompt-too-long', `the prompt has more than ${most} tokens (limits.promptTokens).`, {
        param: this.#kind === 'chat' ? 'messages' : 'prompt',
      });
    }
    this.#prompt = prompt;
  }

  /** @throws ApiError for a model that is not served; a request without one is for whatever the worker has. */
  #checkModel(model: unknown): void {
    if (model === undefined || model === null) return;
    if (typeof model !== 'string')
      throw new ApiError(400, 'invalid-model', 'model must be a text.', { param: 'model' });
    const { registry, config } = this.#parts.service;
    if (registry.knows(model) === null && registry.listedBy(model) === null) {
      if (config.model === null && registry.list().every(({ models }) => models.length === 0)) {
        throw new ApiError(503, 'no-workers', 'no worker has told its model yet; try again.', {
          headers: { 'retry-after': '1' },
        });
      }
      throw new ApiError(404, 'model_not_found', 'the model does not exist; GET /v1/models lists those that do.', {
        param: 'model',
      });
    }
    // Known, and so one of few names: fit for metrics.
    this.#model = model;
  }

  // ---- asking workers ----

  /** The answer of the chosen worker, or of the runner-up. @throws WorkerFailed, ApiError, and why it was broken off */
  async #answer(): Promise<Answer> {
    const { registry } = this.#parts.service;
    const listed = this.#model === '' ? null : registry.listedBy(this.#model);
    let decision = this.#route(listed);
    for (;;) {
      let failed: Answer | WorkerFailed;
      const answered = this.#waitFor(decision);
      try {
        const answer = await this.#ask(decision);
        if (!UNAVAILABLE.has(answer.status)) return answer;
        failed = answer;
      } catch (error) {
        if (!(error instanceof WorkerFailed)) throw error;
        failed = error;
      } finally {
        answered();
      }
      this.#parts.observers.fault(failed instanceof WorkerFailed ? `worker-${failed.how}` : 'worker-unavailable');
      const next = this.#retried ? null : this.#runnerUp(decision, listed);
      if (next === null) {
        if (failed instanceof WorkerFailed) throw failed;
        return failed;
      }
      if (!(failed instanceof WorkerFailed)) failed.abort();
      this.#retried = true;
      decision = next;
    }
  }

  #route(allowed: readonly string[] | null): Decision {
    const { router } = this.#parts.service;
    const { tokens, tokenCount, textOnly, loraName, cacheSalt } = this.#prompt!;
    const now = performance.now();
    const decision = router.route({
      ...(tokens === null ? { localHashes: new BigUint64Array(0), tokenCount } : { tokens }),
      textOnly: textOnly && tokens !== null,
      loraName,
      cacheSalt,
      allowed,
      expectedOutputTokens: this.#body!.outputTokens,
      now,
    });
    this.#decisionTime += performance.now() - now;
    this.#decision = decision;
    return decision;
  }

  /** A decision without the worker that failed, whose lease ends; null when nobody else may serve. */
  #runnerUp({ worker, lease }: Decision, listed: readonly string[] | null): Decision | null {
    const allowed = listed ?? this.#parts.service.registry.list().map(({ id }) => id);
    const others = allowed.filter((id) => id !== worker.id);
    lease.fail(performance.now());
    if (others.length === 0) return null;
    try {
      return this.#route(others);
    } catch {
      return null; // they drain
    }
  }

  /**
   * Counts a request as sent to a rank until its answer begins. With nobody ahead of it there, and where the first byte is the first token, the
   * engine takes it at once, and its lease says so: only then the time to the first token is the time of its prefill, and teaches.
   */
  #waitFor({ rank, lease }: Decision): () => void {
    const { unanswered } = this.#parts;
    const ahead = unanswered.get(rank) ?? 0;
    if (ahead === 0 && this.#body!.isStream) lease.admitted(performance.now());
    unanswered.set(rank, ahead + 1);
    return () => {
      const left = (unanswered.get(rank) ?? 1) - 1;
      if (left === 0) unanswered.delete(rank);
      else unanswered.set(rank, left);
    };
  }

  #ask({ worker }: Decision): Promise<Answer> {
    const { service, upstream } = this.#parts;
    const target = service.registry.get(worker.id);
    if (target === null) return Promise.reject(new WorkerFailed('connect')); // removed since
    const body = this.#bytes();
    const { url, dpRanks } = target;
    const { target: path, headers } = this.#exchange;
    const host = url.replace(/^http:\/\//, '').replace(/\/$/, '');
    const rank = dpRanks.size > 1 ? worker.dpRank : null;
    const question = { url, target: path, headers: requestHeaders(headers, host, body.length, rank), body };
    return upstream.ask(question, this.#exchange.breaker);
  }

  /** The body as the worker gets it: the client's own, but for the salt's prefix. */
  #bytes(): Uint8Array {
    const { bytes, salt } = this.#body!;
    return salt === null ? bytes : withValue(bytes, salt.place, CACHE_SALT_PREFIX + salt.text);
  }

  // ---- passing the answer on ----

  #pass(answer: Answer): Response {
    const { status, statusText, headers } = answer;
    const { config } = this.#parts.service;
    // Nobody else will be asked: the stream must not keep the body.
    this.#body!.share.end();
    this.#body = null;
    this.#firstByteTime = performance.now() - this.#started;
    this.#status = status;
    const ours = decisionHeaders(this.#decision!, this.#prompt!, config.blockSize, this.#id);
    const sink = this.#exchange.start(status, statusText, responseHeaders(headers, ours));
    this.#reader = usageReader(headerValue(headers, 'content-type'), headerValue(headers, 'content-encoding'));
    this.#exchange.breaker.on((reason) => {
      // A client that does not read what is there for it is as good as gone.
      this.#finish(reason instanceof ClientGone || this.#held ? 'cancelled' : 'failed');
      answer.abort();
      sink.break();
    });
    sink.onDrain = () => {
      this.#held = false;
      answer.resume();
    };
    answer.pass({
      data: (chunk) => this.#take(chunk, sink, answer),
      end: () => {
        if (this.#ended) return;
        sink.end();
        this.#finish(outcomeOf(status), { later: true, isWorkers: UNAVAILABLE.has(status) });
      },
      fail: () => {
        if (this.#ended) return;
        this.#parts.observers.fault('worker-mid-stream');
        sink.break();
        this.#finish('failed', { isWorkers: true });
      },
    });
    if (!this.#held) answer.resume();
    return this.#exchange.response;
  }

  #take(chunk: Uint8Array, sink: Sink, answer: Answer): void {
    if (this.#ended) return;
    const reader = this.#reader!;
    reader.take(chunk);
    if (answer.status < 300 && reader.generated > 0) {
      this.#decision!.lease.progress(reader.generated, performance.now());
    }
    if (sink.write(chunk)) return;
    this.#held = true;
    answer.pause();
  }

  // ---- ends ----

  /** The answer of a request that no worker's answer was passed on for. */
  #refuse(error: unknown): Response {
    const cause = this.#exchange.breaker.reason ?? error;
    if (cause instanceof ClientGone) {
      this.#finish('cancelled');
      return clientGoneResponse();
    }
    const refusal = cause instanceof WorkerFailed ? unreachable(this.#decision) : apiErrorOf(cause);
    if (refusal.code === 'internal-error') {
      this.#parts.service.log.error(
        { error: (cause as Error).stack ?? String(cause) },
        'a request could not be served',
      );
    }
    this.#status = refusal.status;
    const wasAsked = this.#decision !== null;
    this.#parts.observers.fault(refusal.code);
    this.#finish(wasAsked ? 'failed' : 'refused', { isWorkers: cause instanceof WorkerFailed });
    const headers =
      wasAsked && this.#prompt !== null
        ? decisionHeaders(this.#decision!, this.#prompt, this.#parts.service.config.blockSize, this.#id)
        : { 'x-moonroute-request-id': this.#id };
    return refusal.response(headers);
  }

  /**
   * @param later once the last bytes have gone out: what is counted must not hold them up
   * @param isWorkers it ended so by the worker's fault, for which it may be passed over. A deadline of ours is none, and neither is an answer with
   *   500: the request may have asked for it.
   */
  #finish(outcome: Outcome, { later = false, isWorkers = false } = {}): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#body?.share.end();
    const now = performance.now();
    if (later) setImmediate(() => this.#account(outcome, isWorkers, now));
    else this.#account(outcome, isWorkers, now);
  }

  /** Tells lease, prompts and observers of the end. */
  #account(outcome: Outcome, isWorkers: boolean, now: number): void {
    const { service, observers } = this.#parts;
    const usage = this.#reader?.usage() ?? null;
    const generated = usage?.generatedTokens ?? this.#reader?.generated ?? 0;
    const decision = this.#decision;
    if (decision !== null) {
      const { lease } = decision;
      if (outcome === 'completed') {
        if (generated > 0) lease.progress(generated, now);
        lease.complete(now, { cachedTokens: usage?.cachedTokens ?? null });
      } else if (isWorkers) lease.fail(now);
      else lease.cancel(now);
    }
    const prompt = this.#prompt;
    if (outcome === 'completed' && prompt !== null && typeof usage?.promptTokens === 'number') {
      service.prompts.reported(prompt, usage.promptTokens);
    }
    const { blockSize } = service.config;
    observers.ended({
      id: this.#id,
      at: Date.now(),
      kind: this.#kind,
      model: this.#model,
      worker: decision === null ? NO_WORKER : { id: String(decision.worker.id), dpRank: decision.worker.dpRank },
      ...promptPart(prompt),
      decision: decision === null ? NO_DECISION : decisionPart(decision),
      sharedReason: decision?.sharedReason?.code ?? null,
      predictedTokens: decision === null ? 0 : predictedTokens(decision.blocks, blockSize),
      cachedTokens: outcome === 'completed' ? (usage?.cachedTokens ?? null) : null,
      generatedTokens: generated,
      outcome,
      status: outcome === 'cancelled' && this.#firstByteTime === null ? 0 : this.#status,
      retried: this.#retried,
      decisionTime: this.#decisionTime,
      firstByteTime: this.#firstByteTime,
      totalTime: now - this.#started,
    });
    this.#leave?.();
  }
}

/** What an answer with this status says of the request: a worker that refuses it has done nothing wrong. */
function outcomeOf(status: number): Outcome {
  if (status >= 500) return 'failed';
  return status < 300 ? 'completed' : 'refused';
}

function forwardedOf({ bytes, share, fields, place }: ReadBody, mode: 'prefixed' | 'raw'): Forwarded {
  const { cache_salt: text, stream } = fields;
  const isPrefixed = mode === 'prefixed' && typeof text === 'string' && text !== '';
  const salt = isPrefixed ? { text, place: place('cache_salt')! } : null;
  return { bytes, share, isStream: stream === true, outputTokens: outputTokensOf(fields), salt };
}

/** What the client expects at most; 0 where it does not say. */
function outputTokensOf(fields: Readonly<Record<string, unknown>>): number {
  const most = fields['max_completion_tokens'] ?? fields['max_tokens'];
  return Number.isInteger(most) && Number(most) >= 0 && Number(most) <= MAX_COUNT ? Number(most) : 0;
}

function unreachable(decision: Decision | null): ApiError {
  const id = decision === null ? '' : ` ${decision.worker.id}`;
  return new ApiError(502, 'worker-unreachable', `worker${id} failed before it answered, and nobody else could.`);
}

function tooLong(ms: number): ApiError {
  return new ApiError(504, 'request-timeout', `the request took longer than ${ms} ms (limits.requestTime).`);
}
