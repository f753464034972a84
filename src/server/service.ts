// The service put together: one router with its streams, workers, prompts, metrics, console and HTTP. Made in that order, ended in the other.
import { LiveStreams } from '../live/live-streams.js';
import { Router } from '../router/router.js';
import { planRouter } from '../router/router-options.js';
import { createApp } from './app.js';
import type { ServerConfig } from './config.js';
import { routerOptionsOf } from './config-router.js';
import { createConsole } from './console.js';
import { watchDerivation } from './derivation-watch.js';
import { Activity } from './http/activity.js';
import { listen } from './http/listen.js';
import { createMetrics } from './metrics.js';
import { openPlane } from './plane.js';
import { createPromptReader } from './prompts.js';
import { createRegistry } from './registry.js';
import type { ServerLog, Service, WorkerRegistry } from './types.js';

/** A service that listens. */
export interface RunningService {
  readonly service: Service;
  /** Where it listens. */
  readonly url: string;
  /**
   * Makes the configured workers those of another configuration, and nothing else of it.
   * @returns what was done, and the settings that differ and need a restart
   * @throws MoonrouteError `reload-abandoned` once the service is being closed, and those of `WorkerRegistry.reload`
   */
  reload(
    config: ServerConfig,
  ): Promise<Awaited<ReturnType<WorkerRegistry['reload']>> & { readonly kept: readonly string[] }>;
  /** Refuses new requests, waits for those under way within the limit, and ends everything. */
  close(): Promise<void>;
}

/** How a service is started. */
export interface StartOptions {
  readonly log: ServerLog;
  /** Abandons the start where it waits for workers. */
  readonly signal?: AbortSignal;
}

/** For the last bytes of answers to leave, in milliseconds. */
const LAST_BYTES = 500;

/**
 * Starts a service.
 * @throws ConfigError for what its parts refuse, MoonrouteError `reload-abandoned` where the signal came first; nothing stays open then
 */
export async function startService(config: ServerConfig, { log, signal }: StartOptions): Promise<RunningService> {
  const options = routerOptionsOf(config);
  const { reading } = planRouter(options);
  // What has been opened so far, to be closed in the other order.
  const open: (() => unknown)[] = [];
  const closeAll = async (): Promise<void> => {
    for (let close = open.pop(); close !== undefined; close = open.pop()) {
      await Promise.resolve(close()).catch((error: Error) =>
        log.error({ error: error.message }, 'a part did not close'),
      );
    }
  };
  try {
    const router = await Router.create(options);
    open.push(() => router.dispose());
    if (!reading.reads && config.sharedCache.type !== 'none') {
      log.warn({ code: reading.code }, `the shared cache is not read: ${reading.text}`);
    }
    const { sharedCache } = config;
    if (sharedCache.allowUnverifiedContract) {
      const fix = 'moonroute doctor says how far what the store holds bears them out';
      log.warn({ code: 'contract-unverified' }, `contracts that no engine has vouched for are credited: ${fix}`);
    }
    const { masters, maxEvidenceAge } = sharedCache;
    const live = LiveStreams.open(router, {
      store: reading.reads ? { masters, ...(maxEvidenceAge === null ? {} : { keeper: { maxEvidenceAge } }) } : null,
      curve: config.curve,
      log: (level, text) => log[level]({ part: 'live' }, text),
    });
    open.push(() => live.close());
    const plane = await openPlane(router, config, log);
    open.push(() => plane?.close());
    const registry = createRegistry({ router, live, plane, config, log });
    open.push(() => registry.close());
    await registry.reload(config.workers, signal);
    const prompts = createPromptReader({ config, registry, log });
    if (reading.reads) open.push(watchDerivation({ router, sharedCache, log }));
    const metrics = createMetrics({ router, live, plane, registry, prompts, sharedCache });
    const console = createConsole({ router, live, registry, prompts, sharedCache });
    const activity = new Activity();
    const service: Service = {
      config,
      router,
      live,
      plane,
      registry,
      prompts,
      observers: [metrics.observer, console.observer],
      log,
      activity,
      notReady: () => (activity.draining ? 'draining: no new requests' : whyNoWorker(registry)),
      drain: (ms) => activity.drain(ms),
      get active() {
        return activity.active;
      },
    };
    const server = await listen(createApp(service, { metrics, console }), config, log);
    warnOfDeno(config, log);
    const ending = new AbortController();
    return {
      service,
      url: server.url,
      async reload(other) {
        const done = await registry.reload(other.workers, ending.signal);
        return { ...done, kept: differing(config, other) };
      },
      async close() {
        ending.abort();
        // Who asks meanwhile still hears that it is not ready.
        if (activity.active > 0) log.info({ active: activity.active }, 'draining');
        await activity.drain(config.limits.drainTime);
        if (activity.active > 0) log.warn({ active: activity.active }, 'requests are cut: the time to drain is over');
        const closed = server.close();
        const cut = setTimeout(() => server.destroy(), activity.active > 0 ? 0 : LAST_BYTES);
        await closed;
        clearTimeout(cut);
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Limits that Node's server keeps, and Deno's has no setting for. */
const NOT_IN_DENO = [
  'headerBytes',
  'headerTime',
  'connections',
] as const satisfies readonly (keyof ServerConfig['limits'])[];

function warnOfDeno({ limits }: ServerConfig, log: ServerLog): void {
  if (!('Deno' in globalThis)) return;
  const settings = Object.fromEntries(NOT_IN_DENO.map((name) => [`limits.${name}`, limits[name]]));
  log.warn(settings, 'these limits have no effect in Deno: run it in Node, or behind a proxy that bounds connections');
}

/** Why no request can be served; null when one can. */
function whyNoWorker(registry: WorkerRegistry): string | null {
  const workers = registry.list();
  if (workers.length === 0) return 'no worker is registered: name some in the configuration, or POST /workers';
  if (workers.some(({ healthy }) => healthy)) return null;
  return `none of ${workers.length} workers answers its /health`;
}

/** Settings but the workers that differ. */
function differing(one: ServerConfig, other: ServerConfig): string[] {
  const names = Object.keys(one) as (keyof ServerConfig)[];
  return names.filter((name) => name !== 'workers' && JSON.stringify(one[name]) !== JSON.stringify(other[name]));
}
