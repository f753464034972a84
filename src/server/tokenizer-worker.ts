// Asks workers to tokenise (vLLM's `/tokenize`): whoever will hash the prompt knows its tokens best. Answers are kept for a while, equal prompts under
// way share one question, and everything is bounded: time, size, questions at once.
import { createHmac, randomBytes } from 'node:crypto';
import { ask, type HttpParts, statusText, type WorkerHttpError } from './registry-http.js';
import { TokenCache } from './tokenizer-cache.js';
import type { RegisteredWorker, WorkerRegistry } from './types.js';

/** Tokens of a prompt. */
export interface Tokenised {
  readonly tokens: Uint32Array;
  /** Names the prompt without holding it. */
  readonly key: string;
  /** Nobody was asked for it just now. */
  readonly cached: boolean;
}

/** Why there are none. */
export interface NotTokenised {
  readonly fault: string;
}

export interface WorkerTokenizerOptions extends HttpParts {
  readonly registry: Pick<WorkerRegistry, 'list' | 'knows' | 'listedBy'>;
  /** Milliseconds for all that one prompt costs. */
  readonly time: number;
  readonly cacheEntries: number;
  /** Longest prompt, in tokens: what a worker's answer is bounded by. */
  readonly promptTokens: number;
}

/** A question that is under way, with those who wait for it. */
interface Flight {
  waiting: number;
  readonly controller: AbortController;
  readonly answer: Promise<Uint32Array | NotTokenised>;
}

/** Questions at once: each holds a socket, and a prompt. */
const MAX_FLIGHTS = 256;
/** Tries for one prompt, at different workers where there are several: a connection may end just as we ask. */
const TRIES = 2;
/** An id's digits, its comma and a space; and what else an answer holds. */
const BYTES_PER_TOKEN = 12;
const OTHER_BYTES = 65_536;
const MAX_ID = 0xffff_ffff;

export class WorkerTokenizer {
  readonly #options: WorkerTokenizerOptions;
  readonly #cache: TokenCache;
  readonly #flights = new Map<string, Flight>();
  /** Makes hashes of prompts useless to whoever sees one and guesses at its text. */
  readonly #secret = randomBytes(32);
  #turn = 0;
  #hits = 0;
  #misses = 0;

  constructor(options: WorkerTokenizerOptions) {
    this.#options = options;
    this.#cache = new TokenCache(options.cacheEntries);
  }

  stats(): { entries: number; hits: number; misses: number } {
    return { entries: this.#cache.entries, hits: this.#hits, misses: this.#misses };
  }

  /** Forgets the answer to one prompt. */
  forget(key: string): void {
    this.#cache.delete(key);
  }

  /** Forgets all answers to prompts of a variant. */
  forgetAll(variant: string): void {
    this.#cache.deleteAll(prefixOf(variant));
  }

  /**
   * Tokens of a prompt. Never throws.
   * @param fields of the question, an object as JSON
   * @param variant of the request, see prompt-input.ts: answers are kept apart by it
   * @param model as the request names it; null where it names none that is known
   */
  async tokenise(
    fields: string,
    variant: string,
    model: string | null,
    signal: AbortSignal,
  ): Promise<Tokenised | NotTokenised> {
    const body = model === null ? fields : `{"model":${JSON.stringify(model)},${fields.slice(1)}`;
    const key = prefixOf(variant) + createHmac('sha256', this.#secret).update(body).digest('base64');
    const known = this.#cache.get(key, this.#options.clock.now());
    if (known !== null) {
      this.#hits++;
      return { tokens: known, key, cached: true };
    }
    this.#misses++;
    let flight = this.#flights.get(key);
    const isOurs = flight === undefined;
    if (flight === undefined) {
      if (this.#flights.size >= MAX_FLIGHTS) return { fault: `${MAX_FLIGHTS} prompts are being tokenised already` };
      flight = this.#start(key, body, model);
    }
    const answer = await this.#wait(key, flight, signal);
    return 'fault' in answer ? answer : { tokens: answer, key, cached: !isOurs };
  }

  #start(key: string, body: string, model: string | null): Flight {
    const controller = new AbortController();
    const answer = this.#askWorkers(body, model, controller.signal).then((tokens) => {
      if (this.#flights.get(key)?.controller === controller) this.#flights.delete(key);
      if (!('fault' in tokens)) this.#cache.set(key, tokens, this.#options.clock.now());
      return tokens;
    });
    const flight = { waiting: 0, controller, answer };
    this.#flights.set(key, flight);
    return flight;
  }

  /** Waits for a question as long as the client does; when nobody waits any more, it is taken back. */
  async #wait(key: string, flight: Flight, signal: AbortSignal): Promise<Uint32Array | NotTokenised> {
    let leave = (): void => undefined;
    const left = new Promise<NotTokenised>((resolve) => {
      leave = () => resolve({ fault: 'the client has gone' });
    });
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave);
    flight.waiting++;
    try {
      return await Promise.race([flight.answer, left]);
    } finally {
      signal.removeEventListener('abort', leave);
      if (--flight.waiting === 0) {
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
        flight.controller.abort();
      }
    }
  }

  async #askWorkers(body: string, model: string | null, signal: AbortSignal): Promise<Uint32Array | NotTokenised> {
    const { clock, time } = this.#options;
    const end = clock.now() + time;
    const candidates = this.#candidates(model);
    if (candidates.length === 0) return { fault: 'no healthy worker serves the model' };
    let fault = 'no time was left';
    const first = this.#turn++;
    for (let i = 0; i < TRIES; i++) {
      const left = end - clock.now();
      if (left <= 0 || signal.aborted) break;
      const worker = candidates[(first + i) % candidates.length]!;
      const answer = await this.#askOne(worker, body, left, signal);
      if (!('fault' in answer)) return answer;
      fault = answer.fault;
      // The prompt is at fault, and is so at the next one.
      if (answer.isFinal) break;
    }
    return { fault };
  }

  #candidates(model: string | null): readonly RegisteredWorker[] {
    const { registry } = this.#options;
    const isAdapter = model !== null && registry.knows(model) === 'adapter';
    const listed = model === null ? null : registry.listedBy(model);
    return registry
      .list()
      .filter(({ id, healthy, adapters }) => healthy && (!isAdapter || adapters.includes(model)) && isIn(listed, id));
  }

  async #askOne(
    worker: RegisteredWorker,
    body: string,
    time: number,
    signal: AbortSignal,
  ): Promise<Uint32Array | (NotTokenised & { readonly isFinal: boolean })> {
    const url = `${worker.url}/tokenize`;
    const bytes = OTHER_BYTES + this.#options.promptTokens * BYTES_PER_TOKEN;
    try {
      const { status, text } = await ask(this.#options, { url, body, time, bytes, signal });
      if (status !== 200) return { fault: statusText(url, status), isFinal: status === 400 || status === 422 };
      const tokens = tokensOf(text);
      return tokens ?? { fault: `${url} answers with no list of tokens`, isFinal: false };
    } catch (error) {
      return { fault: (error as WorkerHttpError).message, isFinal: false };
    }
  }
}

function isIn(ids: readonly string[] | null, id: string): boolean {
  return ids === null || ids.includes(id);
}

function prefixOf(variant: string): string {
  return `${variant}:`;
}

/** The tokens of an answer; null where it is none, or contradicts itself. */
function tokensOf(text: string): Uint32Array | null {
  let answer: { readonly tokens?: unknown; readonly count?: unknown } | null;
  try {
    answer = JSON.parse(text);
  } catch {
    return null;
  }
  const { tokens, count } = answer ?? {};
  if (!Array.isArray(tokens) || (count !== undefined && count !== tokens.length)) return null;
  const ids = new Uint32Array(tokens.length);
  for (let i = 0; i < ids.length; i++) {
    const id: unknown = tokens[i];
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) > MAX_ID) return null;
    ids[i] = id as number;
  }
  return ids;
}
