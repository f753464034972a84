// Options of a router's parts: that each is an object of the names that its part knows, and of the types that the part takes for granted.
// Ranges are the parts' own to check.
import type { SharedCacheOptions } from '../cache/types.js';
import type { PrefixIndexOptions } from '../core/prefix-types.js';
import type { WorkerLimits } from '../events/worker-events.js';
import type { FeedbackOptions } from './feedback.js';
import type { HealthOptions } from './health.js';
import type { LeaseOptions } from './lease-types.js';
import { checkedPart, type FieldTypes } from './option-checks.js';
import type { RouterOptions } from './router-options.js';
import { tableSeedOf } from './table-seeds.js';
import type { TtftOptions } from './ttft-options.js';

/** The options of every part that has any; one that is undefined takes all its defaults. */
export interface PartOptions {
  readonly index: PrefixIndexOptions;
  readonly cache: SharedCacheOptions;
  readonly events: Partial<WorkerLimits> | undefined;
  readonly leases: Pick<LeaseOptions, 'maxOpen'> | undefined;
  readonly ttft: TtftOptions | undefined;
  readonly feedback: FeedbackOptions | undefined;
  readonly health: HealthOptions | undefined;
}

const INDEX: FieldTypes<PrefixIndexOptions> = {
  bytes: 'number',
  ranks: 'number',
  provenance: 'boolean',
  tableSeed: 'bigint',
};
const CACHE: FieldTypes<SharedCacheOptions> = {
  limits: 'object',
  isPending: 'function',
  tableSeed: 'bigint',
  hashing: 'any',
  trustSeed: 'boolean',
  allowUnverifiedContract: 'boolean',
};
const CACHE_LIMITS: FieldTypes<NonNullable<SharedCacheOptions['limits']>> = { edges: 'number' };
const EVENTS: FieldTypes<WorkerLimits> = {
  publishers: 'number',
  hashes: 'number',
  namespaces: 'number',
  units: 'number',
  ambiguous: 'number',
  lives: 'number',
};
const LEASES: FieldTypes<Pick<LeaseOptions, 'maxOpen'>> = { maxOpen: 'any' };
const FEEDBACK: FieldTypes<FeedbackOptions> = {
  strikes: 'any',
  withholdFor: 'any',
  withholdAtMost: 'any',
  maxMarks: 'any',
};
const HEALTH: FieldTypes<HealthOptions> = { failures: 'any', restFor: 'any', restAtMost: 'any' };

/**
 * The parts' options. A seed that was given is that of the tables too, where these have none of their own.
 * @throws ConfigError `unknown-option`, `malformed-option`; where a type is wrong, the code that the part gives a wrong value
 */
export function partOptionsOf(given: RouterOptions, seed: number | undefined): PartOptions {
  const index = checkedPart('index', given.index, INDEX) ?? {};
  const cache = checkedPart('cache', given.cache, CACHE) ?? {};
  checkedPart('cache.limits', cache.limits, CACHE_LIMITS, 'limits');
  const seeded = (table: 'index' | 'cache') => (seed === undefined ? {} : { tableSeed: tableSeedOf(seed, table) });
  return {
    index: { ...seeded('index'), ...index },
    cache: { ...seeded('cache'), ...cache },
    events: checkedPart('events', given.events, EVENTS, 'limits'),
    leases: checkedPart('leases', given.leases, LEASES),
    ttft: given.ttft ?? undefined,
    feedback: checkedPart('feedback', given.feedback, FEEDBACK),
    health: checkedPart('health', given.health, HEALTH),
  };
}
