// Prompts of requests, as far as routing needs them: their tokens, and whether they are proven to be text alone. Tokens come from the request, from
// the local tokenizer where it is trusted, or from a worker; a prompt without tokens is routed by load, and says why.
import { setImmediate } from 'node:timers';
import { type Clock, systemClock } from '../live/clock.js';
import type { ServerConfig } from './config.js';
import { estimatedTokens, promptInput, type TokenizeFields, tooLong } from './prompt-input.js';
import { provenanceOf } from './prompt-provenance.js';
import { questionOf } from './prompt-question.js';
import { LocalTokenizer } from './tokenizer-local.js';
import { LocalTrust, PLAIN_VARIANTS, WorkerTrust } from './tokenizer-trust.js';
import { type Tokenised, WorkerTokenizer } from './tokenizer-worker.js';
import type {
  PreparedPrompt,
  PromptKind,
  PromptReader,
  PromptStats,
  RawFields,
  ServerLog,
  TokenSource,
  WorkerRegistry,
} from './types.js';

/** What a reader is made with. */
export interface PromptReaderOptions {
  readonly config: Pick<ServerConfig, 'tokenizer' | 'salt'> & { readonly limits: { readonly promptTokens: number } };
  readonly registry: Pick<WorkerRegistry, 'list' | 'knows' | 'listedBy'>;
  readonly log: ServerLog;
  /** Default the platform's. */
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
}

/** Where no tokenizer is configured. */
const DEFAULT_TIMEOUT_MS = 2000;
const DEFAULT_CACHE_ENTRIES = 4096;

type Body = Readonly<Record<string, unknown>>;
type Reason = NonNullable<PreparedPrompt['reason']>;

/** Makes one. @throws ConfigError `tokenizer-file`, `tokenizer-chat-template` */
export function createPromptReader(options: PromptReaderOptions): PromptReader {
  return new Reader(options);
}

/** What was found out of a prompt's tokens. */
interface Found {
  readonly tokens: Uint32Array | null;
  readonly tokenCount: number;
  readonly source: TokenSource;
  /** How they were come by; null where nobody tokenised. */
  readonly made: Made | null;
  /** Why there are none. */
  readonly reason: Reason | null;
  /** Why they may not be the engine's. */
  readonly doubt: Reason | null;
}

/** What is to be thought of anew when the engine counts otherwise. */
interface Made {
  readonly by: 'local' | 'worker';
  /** Of requests like it. */
  readonly variant: string;
  /** For the local tokenizer its shape, for workers the name of what they said. */
  readonly name: string;
}

class Reader implements PromptReader {
  readonly #options: PromptReaderOptions;
  readonly #log: ServerLog;
  readonly #most: number;
  readonly #local: LocalTokenizer | null;
  readonly #localTrust = new LocalTrust();
  readonly #workers: WorkerTokenizer;
  readonly #workerTrust = new WorkerTrust();
  /** How prompts that were handed out and are not ended yet were made, to judge what engines report of them. */
  readonly #made = new WeakMap<PreparedPrompt, Made>();
  readonly #bySource: Record<TokenSource, number> = { ids: 0, local: 0, worker: 0, none: 0 };
  readonly #notProven: Record<string, number> = {};

  constructor(options: PromptReaderOptions) {
    const { tokenizer, limits } = options.config;
    this.#options = options;
    this.#log = options.log;
    this.#most = limits.promptTokens;
    this.#local = tokenizer === null ? null : LocalTokenizer.load(tokenizer);
    this.#workers = new WorkerTokenizer({
      fetch: options.fetch ?? fetch,
      clock: options.clock ?? systemClock,
      registry: options.registry,
      time: tokenizer?.timeout ?? DEFAULT_TIMEOUT_MS,
      cacheEntries: tokenizer?.cacheEntries ?? DEFAULT_CACHE_ENTRIES,
      promptTokens: limits.promptTokens,
    });
  }

  async read(kind: PromptKind, body: Body, signal: AbortSignal, raw: RawFields | null = null): Promise<PreparedPrompt> {
    const { registry, config } = this.#options;
    const { loraName, cacheSalt, reason } = provenanceOf(kind, body, { registry, saltMode: config.salt.mode });
    const { tokens, tokenCount, source, made, ...found } = await this.#find(kind, body, signal, raw);
    const why = found.reason ?? reason ?? found.doubt;
    const prompt = { tokens, tokenCount, source, textOnly: why === null, loraName, cacheSalt, reason: why };
    this.#bySource[source]++;
    if (why !== null) this.#notProven[why.code] = (this.#notProven[why.code] ?? 0) + 1;
    if (made !== null) this.#made.set(prompt, made);
    return prompt;
  }

  reported(prompt: PreparedPrompt, promptTokens: number): void {
    const made = this.#made.get(prompt);
    // Of other prompts it is known that the engine may count otherwise, or not known that it may not.
    if (made === undefined || !(prompt.reason === null || COUNTED.has(prompt.reason.code))) return;
    const { by, variant, name } = made;
    const agrees = promptTokens === prompt.tokenCount;
    const seen = `${prompt.tokenCount} tokens prepared, ${promptTokens} counted by the engine`;
    if (by === 'local') {
      // What was made before trust was lost is no news.
      if (!agrees && this.#localTrust.trusts(name)) this.#disagree(`${variant}: ${seen}`);
      return;
    }
    if (!agrees) this.#workers.forget(name);
    if (!this.#workerTrust.take(variant, agrees)) return;
    if (agrees) {
      this.#log.info({ variant }, "engines confirm workers' /tokenize, which proves prompts from now on");
    } else {
      this.#workers.forgetAll(variant);
      this.#log.warn({ variant }, `engines contradict workers' /tokenize, which proves nothing now: ${seen}`);
    }
  }

  stats(): PromptStats {
    return {
      bySource: { ...this.#bySource },
      notProven: { ...this.#notProven },
      local: this.#local === null ? { state: 'none', detail: null } : this.#localTrust.state,
      cache: this.#workers.stats(),
    };
  }

  async #find(kind: PromptKind, body: Body, signal: AbortSignal, raw: RawFields | null): Promise<Found> {
    const input = promptInput(kind, body, this.#most);
    if (input.kind === 'none') return without(input);
    if (input.kind === 'ids') {
      const { tokens } = input;
      return { tokens, tokenCount: tokens.length, source: 'ids', made: null, reason: null, doubt: null };
    }
    const { fields, variant } = input;
    const shape = PLAIN_VARIANTS.has(variant) ? (this.#local?.shapeOf(fields) ?? null) : null;
    if (shape !== null && this.#localTrust.trusts(shape)) {
      const tokens = this.#local!.tokenise(fields);
      if (tokens !== null) return this.#bounded(tokens, { by: 'local', variant, name: shape }, null);
    }
    const question = questionOf(fields, raw);
    if (question === null) return without({ ...TOO_DEEP, tokenCount: 0 });
    const { model } = body;
    const named = typeof model === 'string' && this.#options.registry.knows(model) !== null ? model : null;
    const { json, exact } = question;
    const answer = await this.#workers.tokenise(json, variant, named, signal);
    if ('fault' in answer) {
      return without({
        code: 'tokenize-failed',
        text: answer.fault,
        tokenCount: estimatedTokens(textOf(fields, json)),
      });
    }
    if (shape !== null && !answer.cached) this.#compare(fields, shape, answer);
    const distrust = this.#workerTrust.trusts(variant) ? null : UNCONFIRMED;
    return this.#bounded(answer.tokens, { by: 'worker', variant, name: answer.key }, exact ? distrust : REWRITTEN);
  }

  #bounded(tokens: Uint32Array, made: Made, doubt: Reason | null): Found {
    if (tokens.length > this.#most) return without(tooLong(tokens.length, this.#most));
    return { tokens, tokenCount: tokens.length, source: made.by, made, reason: null, doubt };
  }

  /** Has the local tokenizer do what a worker did, when there is time, and compares. */
  #compare(fields: TokenizeFields, shape: string, { tokens, key }: Tokenised): void {
    if (!this.#localTrust.wants(shape, key)) {
      this.#localTrust.pass();
      return;
    }
    setImmediate(() => {
      if (!this.#localTrust.wants(shape, key)) return;
      const ours = this.#local!.tokenise(fields);
      if (ours === null) return this.#disagree(`the chat template refuses a prompt that a worker takes (${shape})`);
      const at = ours.findIndex((token, i) => token !== tokens[i]);
      if (at >= 0 || ours.length !== tokens.length) {
        const place = at >= 0 ? at : ours.length;
        return this.#disagree(
          `${ours.length} tokens here, ${tokens.length} at a worker, from token ${place} on (${shape})`,
        );
      }
      this.#localTrust.agree(shape, key);
      if (this.#localTrust.trusts(shape)) {
        this.#log.info(
          { shape, prompts: this.#localTrust.needed },
          'local tokenizer agrees with the workers, and is used',
        );
      }
    });
  }

  #disagree(detail: string): void {
    if (!this.#localTrust.disagree(detail)) return;
    const prompts = this.#localTrust.needed;
    this.#log.warn({ prompts }, `local tokenizer disagrees with the workers, and has to prove itself anew: ${detail}`);
  }
}

const TOO_DEEP: Reason = { code: 'bad-prompt', text: 'the request nests too deeply' };
const UNCONFIRMED: Reason = {
  code: 'tokenize-unconfirmed',
  text: "engines have not confirmed what workers' /tokenize says of such requests",
};
const REWRITTEN: Reason = {
  code: 'prompt-changed',
  text: 'the prompt holds numbers, or names that look like numbers, and the text that they stood in is not at hand',
};

/** Reasons against the proof that say nothing against the tokens. */
const COUNTED: ReadonlySet<string> = new Set([UNCONFIRMED.code, 'raw-salt', 'bad-salt', 'unknown-model']);

function without({ code, text, tokenCount }: Reason & { readonly tokenCount: number }): Found {
  return { tokens: null, tokenCount, source: 'none', made: null, reason: { code, text }, doubt: null };
}

/** What is tokenised, about. */
function textOf(fields: TokenizeFields, json: string): string {
  return 'prompt' in fields ? fields.prompt : json;
}
