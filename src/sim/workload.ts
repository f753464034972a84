// The workload that runs when no trace is given: multi-turn chats and agents in long tool loops, over system prompts of which some are far
// more popular than others. Nothing is measured from anyone's traffic: the tables below are round numbers in the range that published
// traces show. What matters is that prefixes are shared truthfully: a session's prompt is its system prompt, then all that was said
// before, and equal tokens at equal places, and only those, have equal ids.
//
// Arrivals are a Poisson process of the asked rate. Each arrival is a chat or an agent by the mix; it goes to the session of that kind that
// has waited longest past its next request's time, and opens a new session where none is waiting.
import { ConfigError } from '../errors.js';
import { SeededRandom, weightTable, zipfTable } from './random.js';
import { DueQueue } from './traces/due-queue.js';
import type { TraceRequest } from './traces/types.js';

const KINDS = ['chat', 'agent'] as const;
type Kind = (typeof KINDS)[number];

/** Shares of requests; any scale. */
export type WorkloadMix = Readonly<Record<Kind, number>>;

/** The built-in workload: how much of it, and of what. */
export interface WorkloadOptions {
  /** Default 5,000. */
  readonly requests?: number;
  /** Requests a second in the mean; by default all within ten minutes. */
  readonly rate?: number;
  /** Default 65 chats to 35 agents. */
  readonly mix?: Partial<WorkloadMix>;
  /** Any integer, of which 32 bits count; default 1. */
  readonly seed?: number;
  /** Tokens an id stands for; default 16, vLLM's usual block. */
  readonly idTokens?: number;
}

const DEFAULT_REQUESTS = 5000;
const DEFAULT_SECONDS = 600;
const DEFAULT_MIX: WorkloadMix = { chat: 65, agent: 35 };
const DEFAULT_ID_TOKENS = 16;
/** Nominal speed, only to say when a request would end: `delay` counts from there. */
const NOMINAL_MS_PER_OUTPUT_TOKEN = 20;
const NOMINAL_INPUT_TOKENS_PER_MS = 8;

/** How one kind of session behaves; lists are equally spaced quantiles, smallest to greatest. */
interface Habits {
  /** Different system prompts, popular by Zipf. */
  readonly systemPrompts: number;
  readonly systemTokens: readonly number[];
  readonly firstTokens: readonly number[];
  /** What comes in with each later request: a person's message, or a tool's result. */
  readonly nextTokens: readonly number[];
  readonly outputTokens: readonly number[];
  readonly turns: readonly number[];
  /** Milliseconds from an answer to the next request, at least. */
  readonly pause: readonly number[];
  /** A session ends before its prompt is longer than this. */
  readonly contextTokens: number;
}

const HABITS: Readonly<Record<Kind, Habits>> = {
  chat: {
    systemPrompts: 40,
    systemTokens: [100, 400, 900, 1_800, 4_000],
    firstTokens: [10, 40, 120, 500, 6_000],
    nextTokens: [5, 20, 60, 200, 2_000],
    outputTokens: [10, 120, 300, 600, 1_500],
    turns: [1, 2, 4, 8, 20],
    pause: [2_000, 10_000, 25_000, 60_000, 180_000],
    contextTokens: 32_768,
  },
  agent: {
    systemPrompts: 10,
    systemTokens: [2_000, 5_000, 8_000, 12_000, 20_000],
    firstTokens: [50, 300, 1_000, 3_000, 12_000],
    nextTokens: [30, 150, 500, 1_500, 8_000],
    outputTokens: [20, 60, 120, 300, 1_200],
    turns: [3, 10, 20, 40, 100],
    pause: [100, 500, 1_500, 5_000, 30_000],
    contextTokens: 131_072,
  },
};

/** A run of tokens that every prompt of its sessions begins with. */
interface SystemPrompt {
  readonly tokens: number;
  /** Its whole blocks; named when first used, so that ids are in order of appearance. */
  readonly ids: number[];
}

interface Session {
  readonly id: string;
  readonly system: SystemPrompt;
  /** Whole blocks of the history past those of the system prompt. */
  readonly ownIds: number[];
  /** Prompt of the next request. */
  inputTokens: number;
  turnsLeft: number;
  /** When its last request ends at the nominal speed; null before the first. */
  ended: number | null;
}

/**
 * The built-in workload, made as it is read: memory goes by the sessions that are open, not by the requests. The same options give the
 * same requests in every engine.
 */
export function* builtInWorkload(options: WorkloadOptions = {}): Generator<TraceRequest, void, undefined> {
  const { requests, rate, mix, seed, idTokens } = checked(options);
  const random = new SeededRandom(seed);
  const kindTable = weightTable(KINDS.map((kind) => mix[kind]));
  const kinds = KINDS.map((kind) => {
    const habits = HABITS[kind];
    const prompts = Array.from(
      { length: habits.systemPrompts },
      (): SystemPrompt => ({ tokens: random.quantile(habits.systemTokens), ids: [] }),
    );
    return { kind, habits, prompts, popularity: zipfTable(habits.systemPrompts), due: new DueQueue<Session>() };
  });
  let clock = 0;
  let nextId = 0;
  let sessions = 0;
  for (let index = 0; index < requests; index++) {
    clock += (random.exponential() * 1000) / rate;
    const at = Math.floor(clock);
    const { kind, habits, prompts, popularity, due } = kinds[random.weighted(kindTable)]!;
    let session = due.nextAt <= at ? due.take()! : null;
    if (session === null) {
      const system = prompts[random.weighted(popularity)]!;
      session = {
        id: `${kind}-${sessions++}`,
        system,
        ownIds: [],
        inputTokens: system.tokens + random.quantile(habits.firstTokens),
        turnsLeft: random.quantile(habits.turns),
        ended: null,
      };
    }
    const { system, ownIds, inputTokens, ended } = session;
    const fullIds = Math.floor(inputTokens / idTokens);
    const systemIds = Math.floor(system.tokens / idTokens);
    while (system.ids.length < systemIds) system.ids.push(nextId++);
    while (systemIds + ownIds.length < fullIds) ownIds.push(nextId++);
    const hashIds = new Uint32Array(Math.ceil(inputTokens / idTokens));
    hashIds.set(system.ids);
    hashIds.set(ownIds, systemIds);
    // A tail's tokens may come again, but never as the same whole block: its name is its own.
    if (hashIds.length > fullIds) hashIds[fullIds] = nextId++;
    const outputTokens = random.quantile(habits.outputTokens);
    yield {
      index,
      at,
      inputTokens,
      outputTokens,
      hashIds,
      idTokens,
      fullIds,
      sessionId: session.id,
      delay: ended === null ? null : at - ended,
      line: 0,
    };
    session.ended =
      at + Math.ceil(inputTokens / NOMINAL_INPUT_TOKENS_PER_MS) + outputTokens * NOMINAL_MS_PER_OUTPUT_TOKEN;
    session.inputTokens += outputTokens + random.quantile(habits.nextTokens);
    session.turnsLeft--;
    const pause = random.quantile(habits.pause);
    if (session.turnsLeft > 0 && session.inputTokens <= habits.contextTokens) due.put(session.ended + pause, session);
  }
}

function checked(options: WorkloadOptions): Required<WorkloadOptions> & { readonly mix: WorkloadMix } {
  const { requests = DEFAULT_REQUESTS, seed = 1, idTokens = DEFAULT_ID_TOKENS } = options;
  const rate = options.rate ?? Math.max(requests, 1) / DEFAULT_SECONDS;
  const mix: WorkloadMix = options.mix === undefined ? DEFAULT_MIX : { chat: 0, agent: 0, ...options.mix };
  const refuse = (name: string, value: unknown, wanted: string): never => {
    throw new ConfigError(`workload-${name}`, `the workload's ${name} is ${value}; give ${wanted}`);
  };
  if (!Number.isSafeInteger(requests) || requests < 0) refuse('requests', requests, 'a whole number of 0 or more');
  if (!(rate > 0 && rate <= 1e6)) refuse('rate', rate, 'requests a second, above 0 and at most a million');
  if (!Number.isSafeInteger(seed)) refuse('seed', seed, 'a whole number');
  if (!Number.isInteger(idTokens) || idTokens < 1 || idTokens > 65_536)
    refuse('id-tokens', idTokens, 'a whole number of tokens from 1 to 65,536');
  for (const [kind, share] of Object.entries(mix)) {
    if (!KINDS.includes(kind as Kind)) refuse('mix', JSON.stringify(mix), `shares of ${KINDS.join(' and ')} only`);
    if (!(share >= 0 && share < Number.POSITIVE_INFINITY)) refuse('mix', JSON.stringify(mix), 'shares of 0 or more');
  }
  if (mix.chat + mix.agent <= 0) refuse('mix', JSON.stringify(mix), 'at least one share above 0');
  return { requests, rate, mix, seed, idTokens };
}
