// The wiring of a router: every part made once, from checked options, and handed to those that need it. What one part keeps by a rank's
// compact number, all of them keep by the same.
import { buildsOf, SharedCache } from '../cache/shared-cache.js';
import type { ModuleName } from '../core/modules.js';
import { PrefixIndex } from '../core/prefix-index.js';
import type { PrefixIndexLike } from '../core/prefix-types.js';
import { WorkerEvents } from '../events/worker-events.js';
import { Chooser } from './choose.js';
import { Feedback } from './feedback.js';
import { ForeignLoad } from './foreign-load.js';
import { GpuEvents } from './gpu-events.js';
import { RankHealth } from './health.js';
import { LatestTime } from './latest-time.js';
import { LeaseTable } from './leases.js';
import { Lessons } from './lessons.js';
import { LoadTable } from './load.js';
import { PlaneEvents } from './plane-events.js';
import { fallbackPolicy, policyOf } from './policies.js';
import type { Policy } from './policy.js';
import type { RouterPlan } from './router-options.js';
import { SharedCredit } from './shared-credit.js';
import { TtftEstimator } from './ttft.js';
import { WorkerTable } from './workers.js';

/** All that a router is made of. */
export interface RouterParts {
  readonly plan: RouterPlan;
  readonly index: PrefixIndexLike;
  /** Null where the plan does not read one. */
  readonly cache: SharedCache | null;
  readonly workers: WorkerTable;
  readonly events: WorkerEvents;
  readonly gpuEvents: GpuEvents;
  readonly planeEvents: PlaneEvents;
  readonly latest: LatestTime;
  readonly load: LoadTable;
  readonly foreignLoad: ForeignLoad;
  readonly leases: LeaseTable;
  readonly ttft: TtftEstimator;
  readonly feedback: Feedback;
  readonly health: RankHealth;
  readonly credit: SharedCredit;
  readonly policy: Policy;
  readonly fallback: Policy;
  readonly chooser: Chooser;
}

/** The WebAssembly modules that the parts need. */
export function modulesOf({ reading, parts }: RouterPlan): ModuleName[] {
  return ['wire', 'prefixes', ...(reading.reads ? buildsOf(parts.cache) : [])];
}

/**
 * Makes the parts.
 * @throws ConfigError of the part whose option is wrong
 */
export function makeParts(plan: RouterPlan): RouterParts {
  const { settings, role, blockSize, reading, speculative, imageTokenId, parts: given } = plan;
  const events = new WorkerEvents(given.events);
  const feedback = new Feedback(given.feedback);
  const index = PrefixIndex.createSync(given.index);
  const { ranks } = index;
  const ttft = new TtftEstimator(ranks, given.ttft);
  const health = new RankHealth(ranks, given.health);
  const load = new LoadTable(ranks);
  const latest = new LatestTime();
  const observer = new Lessons({ ranks, blockSize, latest, ttft, feedback, health });
  const leases = new LeaseTable(load, { ...given.leases, observer });
  const cache = reading.reads ? SharedCache.createSync(given.cache) : null;
  const workers = new WorkerTable(ranks, { strict: plan.strictContracts });
  const { useKvEvents } = settings;
  const gpuEvents = new GpuEvents({ workers, events, cache, index, blockSize, imageTokenId, useKvEvents });
  return {
    plan,
    index,
    cache,
    workers,
    events,
    gpuEvents,
    planeEvents: new PlaneEvents({ workers, gpuEvents, useKvEvents }),
    latest,
    load,
    foreignLoad: new ForeignLoad(ranks),
    leases,
    ttft,
    feedback,
    health,
    credit: new SharedCredit({ cache, reading, workers, feedback, blockSize, speculative }),
    policy: policyOf(plan.policy, { ...plan, ranks, ttft }),
    fallback: fallbackPolicy(role),
    chooser: new Chooser(settings.seed),
  };
}
