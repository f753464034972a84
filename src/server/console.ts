// The console: one static page, and the data that it asks for once a second. What it shows is read off the router's rooms when it is asked for; of
// requests the last ones and sums by the second are kept, and nothing else.

import { publisherKey } from '../events/worker-events.js';
import type { LiveStreams } from '../live/live-streams.js';
import type { WorkerStreamStatus } from '../live/worker-stream.js';
import type { Router } from '../router/router.js';
import type { WorkerView } from '../router/worker-views.js';
import { html, script, styles } from './console-assets.js';
import type { ConsoleData, RankData, RequestData, WorkerData } from './console-data.js';
import { SecondSeries } from './console-series.js';
import { warningsOf } from './console-warnings.js';
import { derivationOf, type HashingConfig, LEARNED } from './derivation.js';
import { BoundedCodes } from './metrics-labels.js';
import type { EndedRequest, PromptReader, RegisteredWorker, RequestObserver, WorkerRegistry } from './types.js';

/** What is read. */
export interface ConsoleSources {
  readonly router: Pick<Router, 'stats' | 'workers' | 'contract'>;
  readonly live: Pick<LiveStreams, 'status'>;
  readonly registry: Pick<WorkerRegistry, 'list'>;
  readonly prompts: Pick<PromptReader, 'stats'>;
  /** Default: hashes are learned. */
  readonly sharedCache?: HashingConfig;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** A file of the console as it is served. */
export interface ConsoleFile {
  readonly body: string;
  readonly type: string;
}

export interface Console {
  readonly observer: RequestObserver;
  /** The page, for `/`. Everything that it loads is below `/console/`. */
  page(): ConsoleFile;
  /** The page's own files, `console.js` and `console.css`, for `/console/NAME`; null for other names. No secrets, so no key is asked for. */
  asset(name: string): ConsoleFile | null;
  /** For `/console/data.json`, with admin's key where there is one. @param after the number of the last request that is known already */
  json(after?: number): ConsoleData;
}

/** Requests that are kept. */
export const REQUESTS_KEPT = 200;
/** Workers that one answer shows; it is sent every second. */
const MOST_WORKERS = 256;
/** Of texts that clients choose. */
const MOST_CHARS = 100;

/** Makes the console of one server. */
export function createConsole(sources: ConsoleSources): Console {
  const { now = Date.now, sharedCache = LEARNED } = sources;
  const startedAt = now();
  const series = new SecondSeries();
  const requests: RequestData[] = [];
  const faults = new Map<string, number>();
  const codes = new BoundedCodes();
  let count = 0;
  let refused = 0;
  const files: Readonly<Record<string, ConsoleFile>> = {
    'console.js': { body: script, type: 'text/javascript; charset=utf-8' },
    'console.css': { body: styles, type: 'text/css; charset=utf-8' },
  };
  return {
    observer: {
      ended(request) {
        // Anybody can be refused, as often as they like: that must neither push requests out of sight nor thin out what sums say.
        if (request.outcome === 'refused') {
          refused++;
          return;
        }
        count++;
        requests.push(kept(request, count));
        if (requests.length > REQUESTS_KEPT) requests.shift();
        series.add(now(), sumsOf(request));
      },
      fault(code) {
        const known = codes.of(code);
        faults.set(known, (faults.get(known) ?? 0) + 1);
      },
    },
    page: () => ({ body: html, type: 'text/html; charset=utf-8' }),
    asset: (name) => (Object.hasOwn(files, name) ? files[name]! : null),
    json(after = 0) {
      const at = now();
      const stats = sources.router.stats();
      const { workers: streams, store } = sources.live.status();
      const registered = sources.registry.list();
      const workers = workersOf(registered.slice(0, MOST_WORKERS), sources.router.workers(), streams);
      const data = {
        now: at,
        startedAt,
        model: registered.flatMap(({ models }) => models)[0] ?? null,
        contracts: stats.contracts,
        shares: stats.cache !== null,
        derivation: derivationOf(stats, sources.router.contract, sharedCache),
        openLeases: stats.leases.open,
        decisions: stats.decisions.decisions,
        zeroCredit: stats.decisions.zeroCredit,
        faults: Object.fromEntries(faults),
        seconds: series.view(at),
        workers,
        workersLeftOut: registered.length - workers.length,
        store: store === null ? null : { ...store, lastSequence: textOf(store.lastSequence) },
        prompts: sources.prompts.stats(),
        refused,
        requests: requests.filter(({ number }) => number > after),
      };
      return { ...data, warnings: warningsOf(data, series.totals(at)) };
    },
  };
}

/** A request as it is kept: texts that clients choose are cut. */
function kept(request: EndedRequest, number: number): RequestData {
  const { id, model } = request;
  return { ...request, id: id.slice(0, MOST_CHARS), model: model.slice(0, MOST_CHARS), number };
}

function sumsOf(request: EndedRequest): Parameters<SecondSeries['add']>[1] {
  const { outcome, decision, predictedTokens, cachedTokens } = request;
  const { blocks, achieved, bestReachable } = decision;
  const compared = outcome === 'completed' && cachedTokens !== null;
  return {
    requests: 1,
    failed: outcome === 'failed' ? 1 : 0,
    blocks: blocks.request,
    device: blocks.device,
    host: blocks.host,
    disk: blocks.disk,
    shared: blocks.shared,
    achieved,
    reachable: bestReachable,
    predicted: compared ? predictedTokens : 0,
    reported: compared ? cachedTokens : 0,
  };
}

function workersOf(
  registered: readonly RegisteredWorker[],
  views: readonly WorkerView[],
  streams: readonly WorkerStreamStatus[],
): WorkerData[] {
  const byId = new Map(views.map((view) => [String(view.id), view]));
  const byRank = new Map(streams.map((stream) => [rankKey(String(stream.id), stream.dpRank), stream]));
  return registered.map(({ id, url, healthy, adapters, models, contractFault }) => {
    const view = byId.get(id);
    const ranks = (view?.ranks ?? []).map(({ dpRank, admission, admissionText, load, resting }): RankData => {
      const stream = byRank.get(rankKey(id, dpRank));
      return {
        dpRank,
        admission,
        admissionText,
        load,
        resting,
        stream: stream === undefined ? null : streamOf(stream),
      };
    });
    return {
      id,
      url: shownUrl(url),
      healthy,
      adapters,
      models,
      contractFault,
      draining: view?.draining ?? false,
      ranks,
    };
  });
}

function streamOf({ id: _, dpRank: __, lastSequence, ...rest }: WorkerStreamStatus): RankData['stream'] {
  return { ...rest, lastSequence: textOf(lastSequence) };
}

function rankKey(workerId: string, dpRank: number): string {
  return publisherKey(workerId, dpRank);
}

function shownUrl(url: string): string {
  return url.replace(/^([a-z]+:\/\/)[^/]*@/i, '$1');
}

function textOf(sequence: bigint | null): string | null {
  return sequence === null ? null : String(sequence);
}
