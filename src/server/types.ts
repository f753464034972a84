// What the server's rooms say to each other: a checked configuration, workers with their addresses, prompts with their provenance, and what became
// of a request. Each room is made with what it needs of these, and knows no other.
import type { LiveStreams } from '../live/live-streams.js';
import type { PlaneStreams } from '../live/plane/route/plane-streams.js';
import type { Decision } from '../router/decision.js';
import type { Router } from '../router/router.js';
import type { WorkerId } from '../router/worker-info.js';

/** Where a line of the log goes; fields are named and hold neither prompts nor secrets. A pino logger is one. */
export interface ServerLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** A worker as it is registered: by the config, by `POST /workers`, or by an embedded fleet. */
export interface WorkerSpec {
  readonly id: string;
  /** `http://HOST:PORT` of its OpenAI server. */
  readonly url: string;
  /** KV event endpoints: of rank 0, or one a rank; null where it sends none. */
  readonly events: string | readonly string[] | null;
  readonly replay: string | readonly string[] | null;
  readonly topic: string;
  readonly dpRanks: { readonly start: number; readonly size: number };
  /** The descriptor itself; or where to get it: `endpoint` asks the worker's `/moonroute/descriptor`; null for none. */
  readonly contract: { readonly inline: unknown } | { readonly file: string } | 'endpoint' | null;
  /** Its events come over the event plane, under that number (null: its id). Default: they do not. */
  readonly plane?: { readonly workerId: number | string | null } | null;
}

/** A registered worker, as it stands. */
export interface RegisteredWorker extends WorkerSpec {
  /** From the config file, and so gone when a reload no longer names it. */
  readonly configured: boolean;
  /** Answers its `/health`. */
  readonly healthy: boolean;
  /** LoRA adapters that its `/v1/models` lists. */
  readonly adapters: readonly string[];
  /** Models that it lists, adapters not among them. */
  readonly models: readonly string[];
  /** Why it has no contract in use, for people; null when it has. */
  readonly contractFault: string | null;
}

/** Knows all workers, and keeps router and live streams told of them. */
export interface WorkerRegistry {
  list(): readonly RegisteredWorker[];
  get(id: WorkerId): RegisteredWorker | null;
  /** Adds or replaces one. @throws MoonrouteError `worker-address` (outside the allowed networks), `worker-spec`, and the router's */
  add(spec: WorkerSpec, configured?: boolean): Promise<RegisteredWorker>;
  remove(id: WorkerId): boolean;
  /** Whether new requests may go to it. */
  setDraining(id: WorkerId, draining: boolean): boolean;
  /**
   * Makes the configured workers those given; others stay.
   * @param signal abandons it; what was done until then stays
   * @throws MoonrouteError `worker-spec`, `router-full`, `too-many-workers`: nothing has changed then; `reload-abandoned`; `reload-incomplete`, where single workers fail
   */
  reload(
    specs: readonly WorkerSpec[],
    signal?: AbortSignal,
  ): Promise<{ readonly added: number; readonly removed: number; readonly changed: number }>;
  /** Names under which a request may ask: the model's, and every adapter's. Null too where workers disagree over what a name is (`listedBy`). */
  knows(model: string): 'model' | 'adapter' | null;
  /**
   * The only workers that requests under a name may go to: those that list it, where others that serve do not, or where workers disagree over what
   * it is. Null where nothing has to be kept to: all list it, nobody does, or it is an adapter, which the router looks after.
   */
  listedBy(model: string): readonly string[] | null;
  close(): Promise<void>;
}

/** How a prompt's tokens were come by. */
export type TokenSource = 'ids' | 'local' | 'worker' | 'none';

/** A request's prompt, as far as routing needs it. */
export interface PreparedPrompt {
  /** Null where it could not be tokenised; then it is routed by load. */
  readonly tokens: Uint32Array | null;
  /** Their number; an estimate from the text's length where there are none. */
  readonly tokenCount: number;
  readonly source: TokenSource;
  /** Proven: the engine will hash these tokens, the LoRA name and the salt, and nothing else. */
  readonly textOnly: boolean;
  readonly loraName: string | null;
  /** The client's salt, without prefix; null for none, and in raw mode. */
  readonly cacheSalt: string | null;
  /** Why it is not proven, or not tokenised: a stable code, and words. Null when neither. */
  readonly reason: { readonly code: string; readonly text: string } | null;
}

/** The kinds of requests that have prompts. */
export type PromptKind = 'chat' | 'completions';

/** The JSON text of one of a request's fields, as the client wrote it; null for a field that the request does not have. */
export type RawFields = (name: string) => string | null;

/** Turns request bodies into prompts. */
export interface PromptReader {
  /**
   * The prompt of a parsed request body. Never throws for what the body holds; a worker that is asked has a bounded time.
   * @param signal ends when the client has gone
   * @param raw the body's own text, so that workers are asked for exactly what the engine gets. Without it a prompt with what JSON can write in
   *   several ways, such as numbers, is not proven
   */
  read(
    kind: PromptKind,
    body: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    raw?: RawFields | null,
  ): Promise<PreparedPrompt>;
  /** The engine reported so many prompt tokens for what was prepared: local tokenisation that disagrees has to prove itself anew. */
  reported(prompt: PreparedPrompt, promptTokens: number): void;
  stats(): PromptStats;
}

/** Where prompts' tokens came from, and which prompts were not proven to be text alone. */
export interface PromptStats {
  /** Prompts. */
  readonly bySource: Readonly<Record<TokenSource, number>>;
  /** Prompts by what spoke against the proof. */
  readonly notProven: Readonly<Record<string, number>>;
  /** State of the local tokenizer: 'none', 'unverified', 'agrees', 'disagrees'. */
  readonly local: { readonly state: 'none' | 'unverified' | 'agrees' | 'disagrees'; readonly detail: string | null };
  readonly cache: { readonly entries: number; readonly hits: number; readonly misses: number };
}

/** A request that has ended, as metrics and console see it. No text of it is kept. */
export interface EndedRequest {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly kind: PromptKind | 'route';
  readonly model: string;
  /** An empty id where nobody was asked: refused before it was routed. Then `decision` is an empty one. */
  readonly worker: { readonly id: string; readonly dpRank: number };
  readonly source: TokenSource;
  readonly promptTokens: number;
  readonly decision: Pick<
    Decision,
    'policy' | 'fallback' | 'cost' | 'terms' | 'runnerUp' | 'blocks' | 'bestReachable' | 'achieved'
  >;
  readonly sharedReason: string | null;
  readonly notProven: string | null;
  /** Tokens that the decision counted on, and that the engine said were cached; null where it did not say. */
  readonly predictedTokens: number;
  readonly cachedTokens: number | null;
  readonly generatedTokens: number;
  readonly outcome: 'completed' | 'failed' | 'cancelled' | 'refused';
  /** HTTP status sent; 0 where the client went first. */
  readonly status: number;
  readonly retried: boolean;
  /** Milliseconds. */
  readonly decisionTime: number;
  readonly firstByteTime: number | null;
  readonly totalTime: number;
}

/** Hears of requests. */
export interface RequestObserver {
  ended(request: EndedRequest): void;
  /** Something went wrong that is no request's end: a stable code. */
  fault(code: string): void;
}

/** Everything behind the HTTP app. */
export interface Service {
  readonly config: import('./config.js').ServerConfig;
  readonly router: Router;
  readonly live: LiveStreams;
  /** Null, or left out, without an event plane. */
  readonly plane?: PlaneStreams | null;
  readonly registry: WorkerRegistry;
  readonly prompts: PromptReader;
  readonly observers: readonly RequestObserver[];
  readonly log: ServerLog;
  /** Why it is not ready; null when it is. */
  notReady(): string | null;
  /** Begins to refuse new requests; resolves when those under way have ended or the time is over. */
  drain(ms: number): Promise<void>;
  /** Requests under way. */
  readonly active: number;
  /** Counts them: the HTTP app lets each in here, and `drain` and `active` are its own. */
  readonly activity: import('./http/activity.js').Activity;
}
