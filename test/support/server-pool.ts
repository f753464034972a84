// A served pool for tests of the HTTP app: simulated workers, the real router with live streams and registry, and the app on a real socket. Its prompt
// reader takes ids as they are, and texts as simulated workers would tokenise them; `ended` has what observers heard.

import { Fleet, type FleetOptions } from '../../src/fleet/fleet.js';
import { chatTokens, textTokens } from '../../src/fleet/worker/tokenizer.js';
import { LiveStreams } from '../../src/live/live-streams.js';
import { Router } from '../../src/router/router.js';
import { createApp, type Listening, listen } from '../../src/server/app.js';
import type { ConfigInput, ServerConfig } from '../../src/server/config.js';
import { configSchema } from '../../src/server/config-schema.js';
import { Activity } from '../../src/server/http/activity.js';
import { createRegistry } from '../../src/server/registry.js';
import type {
  EndedRequest,
  PreparedPrompt,
  PromptReader,
  ServerLog,
  Service,
  WorkerRegistry,
} from '../../src/server/types.js';
import { until } from './fleet-worker.js';

export const MODEL = 'moonroute/simulated-70b';
export const FAST = { timeScale: 0 };
const SMALL_INDEX = { bytes: 4 << 20 };

/** A configuration with defaults. */
export function configOf(input: ConfigInput = {}): ServerConfig {
  return configSchema.parse({ listen: { port: 0 }, ...input }) as unknown as ServerConfig;
}

export interface ServedOptions {
  readonly fleet?: FleetOptions;
  readonly config?: ConfigInput;
  /** Workers in place of the fleet's. */
  readonly workers?: ConfigInput['workers'];
  /** Keeps the store's stream closed. */
  readonly shared?: boolean;
}

/** Makes prompts of ids and, as simulated workers do, of texts. */
export class PlainPrompts implements PromptReader {
  readonly reports: { readonly prompt: PreparedPrompt; readonly promptTokens: number }[] = [];
  #registry: WorkerRegistry;

  constructor(registry: WorkerRegistry) {
    this.#registry = registry;
  }

  async read(kind: 'chat' | 'completions', body: Readonly<Record<string, unknown>>): Promise<PreparedPrompt> {
    const { prompt, model, cache_salt: salt } = body;
    const isAdapter = typeof model === 'string' && this.#registry.knows(model) === 'adapter';
    const rest = {
      loraName: isAdapter ? model : null,
      cacheSalt: typeof salt === 'string' && salt !== '' ? salt : null,
      textOnly: true,
      reason: null,
    };
    if (Array.isArray(prompt) && typeof prompt[0] === 'number') {
      const tokens = Uint32Array.from(prompt as number[]);
      return { ...rest, tokens, tokenCount: tokens.length, source: 'ids' };
    }
    try {
      const ids =
        kind === 'chat' ? chatTokens(body['messages'], true, body['tools']) : textTokens(String(prompt), true);
      return { ...rest, tokens: Uint32Array.from(ids), tokenCount: ids.length, source: 'local' };
    } catch {
      const reason = { code: 'tokenize-failed', text: 'no tokens' };
      return { ...rest, tokens: null, tokenCount: 10, source: 'none', textOnly: false, reason };
    }
  }

  reported(prompt: PreparedPrompt, promptTokens: number): void {
    this.reports.push({ prompt, promptTokens });
  }

  stats(): ReturnType<PromptReader['stats']> {
    return {
      bySource: { ids: 0, local: 0, worker: 0, none: 0 },
      notProven: {},
      local: { state: 'none', detail: null },
      cache: { entries: 0, hits: 0, misses: 0 },
    };
  }
}

/** Everything, opened. */
export class Served {
  readonly ended: EndedRequest[] = [];
  readonly faults: string[] = [];
  readonly logged: string[] = [];

  private constructor(
    readonly fleet: Fleet,
    readonly router: Router,
    readonly live: LiveStreams,
    readonly registry: WorkerRegistry,
    readonly config: ServerConfig,
  ) {}

  service!: Service;
  prompts!: PlainPrompts;
  listening!: Listening;

  static async open({
    fleet: options = {},
    config: input = {},
    workers,
    shared = true,
  }: ServedOptions = {}): Promise<Served> {
    const fleet = await Fleet.start({ workers: 2, worker: { latency: FAST }, ...options });
    const config = configOf({
      workers: workers ?? workersOf(fleet),
      ...input,
    });
    const router = await Router.create({
      settings: shared ? { sharedCacheType: 'mooncake-store' } : {},
      policy: config.policy,
      index: SMALL_INDEX,
    });
    const masters = fleet.masters.map(({ eventsEndpoint, httpUrl }) => ({ events: eventsEndpoint, http: httpUrl }));
    const live = LiveStreams.open(router, shared ? { store: { masters } } : {});
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const registry = createRegistry({ router, live, config, log });
    const served = new Served(fleet, router, live, registry, config);
    await registry.reload(config.workers);
    await served.#serve();
    return served;
  }

  get url(): string {
    return this.listening.url;
  }

  async #serve(): Promise<void> {
    const activity = new Activity();
    const say = (level: string) => (fields: object, text: string) =>
      void this.logged.push(`${level}: ${text} ${JSON.stringify(fields)}`);
    const log: ServerLog = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
    this.prompts = new PlainPrompts(this.registry);
    const { router, live, registry, config } = this;
    this.service = {
      ...{ config, router, live, registry, prompts: this.prompts, log, activity },
      observers: [{ ended: (request) => void this.ended.push(request), fault: (code) => void this.faults.push(code) }],
      notReady: () => (registry.list().some(({ healthy }) => healthy) ? null : 'no worker'),
      drain: (ms) => activity.drain(ms),
      get active() {
        return activity.active;
      },
    };
    this.listening = await listen(createApp(this.service), config, log);
  }

  /** Waits until so many requests have ended, and no lease is open. */
  async settled(requests: number): Promise<EndedRequest[]> {
    await until(`${requests} ended requests, of which ${this.ended.length} have`, () => this.ended.length >= requests);
    if (this.router.stats().leases.open !== 0) throw new Error('a lease is open');
    return this.ended;
  }

  async close(): Promise<void> {
    await this.listening.close();
    await this.registry.close();
    await this.live.close();
    this.router.dispose();
    await this.fleet.close();
  }
}

/** The fleet's workers as a configuration names them. */
export function workersOf(fleet: Fleet): NonNullable<ConfigInput['workers']> {
  return fleet.workers.map((worker) => ({
    id: worker.id,
    url: worker.httpUrl,
    events: [...worker.eventsEndpoints],
    replay: [...worker.replayEndpoints],
    dpRanks: { start: 0, size: worker.dp },
  }));
}

/** Runs a test on a pool of its own. */
export async function withServed(options: ServedOptions, work: (served: Served) => Promise<void>): Promise<void> {
  const served = await Served.open(options);
  try {
    await work(served);
  } finally {
    await served.close();
  }
}
