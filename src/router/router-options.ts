// How a router is made: every option with its default, checked at start, by name (design.md 7). The settings of the formula and of the shared
// cache are settings.ts's; parts with options of their own check these when they are made.
import type { SharedCacheOptions } from '../cache/types.js';
import { checkHashing } from '../contract/check-hashing.js';
import { type Hashing, shown } from '../contract/descriptor.js';
import { defaultRevisions, type RevisionSet } from '../contract/revisions.js';
import type { PrefixIndexOptions } from '../core/prefix-types.js';
import { ConfigError } from '../errors.js';
import type { WorkerLimits } from '../events/worker-events.js';
import type { FeedbackOptions } from './feedback.js';
import type { HealthOptions } from './health.js';
import type { LeaseOptions } from './lease-types.js';
import { type PartOptions, partOptionsOf } from './part-options.js';
import { type CheckedPolicy, checkPolicy, type PolicyOption, policyForReading } from './policies.js';
import { type Role, readsSharedCache, type SharedCacheReading } from './roles.js';
import { type RouterSettings, type RouterSettingsInput, validateSettings } from './settings.js';
import type { TtftOptions } from './ttft-options.js';

/** How a router is made. Those left out, undefined or (of parts) null take their defaults. */
export interface RouterOptions {
  /**
   * Weights, shared cache, temperature and seed. A seed that is given here is that of the tables of index and cache too, unless they have a
   * `tableSeed` of their own: the same calls then make the same decisions, also where tables are full. Leave it out where clients are not
   * trusted: who knows the seed can choose prompts that crowd the tables.
   */
  readonly settings?: RouterSettingsInput | undefined;
  /** Default `kv`. */
  readonly policy?: PolicyOption | undefined;
  /** What its workers do. Default `aggregated`. */
  readonly role?: Role | undefined;
  /** A decode worker may keep a request whose prompt is mostly cached, and so prefill it. Default false. */
  readonly conditionalDisaggregation?: boolean | undefined;
  /** The model decodes speculatively (Eagle). Default false. */
  readonly speculative?: boolean | undefined;
  /** Tokens of a block, of the index and of the contracts' main event blocks: 1 … 65,536. Default 16, as vLLM's. */
  readonly blockSize?: number | undefined;
  /** Any disagreement about contracts: no shared credit at all. Default false: the contract of most ranks is in force. */
  readonly strictContracts?: boolean | undefined;
  /** The model's image token, where it has one; null, the default, otherwise. */
  readonly imageTokenId?: number | null | undefined;
  /** vLLM revisions that descriptors may name. Default the pinned one. */
  readonly revisions?: RevisionSet | undefined;
  /** The GPU prefix index: its memory, and most worker ranks of this router. */
  readonly index?: PrefixIndexOptions | null | undefined;
  /** The shared cache, where one is kept. */
  readonly cache?: SharedCacheOptions | null | undefined;
  /** What is remembered of workers' event streams. */
  readonly events?: Partial<WorkerLimits> | null | undefined;
  readonly leases?: Pick<LeaseOptions, 'maxOpen'> | null | undefined;
  readonly ttft?: TtftOptions | null | undefined;
  readonly feedback?: FeedbackOptions | null | undefined;
  readonly health?: HealthOptions | null | undefined;
}

/** Checked options, and what follows from them. */
export interface RouterPlan {
  readonly settings: RouterSettings;
  readonly policy: CheckedPolicy;
  readonly role: Role;
  readonly conditionalDisaggregation: boolean;
  readonly speculative: boolean;
  readonly blockSize: number;
  readonly strictContracts: boolean;
  readonly imageTokenId: number | null;
  readonly revisions: RevisionSet;
  /** Where engine hashes come from: what contracts must be good for. */
  readonly hashing: Hashing;
  /** Whether contracts count that no engine has vouched for. */
  readonly allowUnverifiedContract: boolean;
  /** Whether there is a shared cache, and why not. */
  readonly reading: SharedCacheReading;
  readonly parts: PartOptions;
}

const DEFAULT_BLOCK_SIZE = 16;
const MAX_BLOCK_SIZE = 65_536;
const MAX_TOKEN_ID = 0xffff_ffff;
const ROLES: readonly Role[] = ['aggregated', 'prefill', 'decode'];

const NAMES: Readonly<Record<keyof RouterOptions, true>> = {
  settings: true,
  policy: true,
  role: true,
  conditionalDisaggregation: true,
  speculative: true,
  blockSize: true,
  strictContracts: true,
  imageTokenId: true,
  revisions: true,
  index: true,
  cache: true,
  events: true,
  leases: true,
  ttft: true,
  feedback: true,
  health: true,
};

/**
 * Checks options.
 * @throws ConfigError `malformed-options`, `unknown-option`, those of `validateSettings` and of the policy, an option's name in kebab-case
 *   where its value is out of range, `hashing`, `remote-indexer-not-supported`, `load-aware-policy`, those of `partOptionsOf`
 */
export function planRouter(given: RouterOptions = {}): RouterPlan {
  if (typeof given !== 'object' || given === null) {
    throw new ConfigError('malformed-options', `router options are ${shown(given)}; give an object, or nothing.`);
  }
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(NAMES, name));
  if (unknown !== undefined) {
    throw new ConfigError(
      'unknown-option',
      `unknown router option ${shown(unknown)}; the options are ${Object.keys(NAMES).join(', ')}.`,
    );
  }
  const settings = validateSettings(given.settings);
  const policy = checkPolicy(given.policy ?? 'kv');
  const parts = partOptionsOf(given, given.settings?.seed);
  const hashing = parts.cache.hashing ?? 'learned';
  checkHashing(hashing);
  const plan = {
    settings,
    policy,
    role: roleOf(given.role),
    conditionalDisaggregation: flagOf(given, 'conditionalDisaggregation'),
    speculative: flagOf(given, 'speculative'),
    blockSize: numberOf('block-size', 'blockSize', given.blockSize ?? DEFAULT_BLOCK_SIZE, 1, MAX_BLOCK_SIZE),
    strictContracts: flagOf(given, 'strictContracts'),
    imageTokenId:
      (given.imageTokenId ?? null) === null
        ? null
        : numberOf('image-token-id', 'imageTokenId', given.imageTokenId, 0, MAX_TOKEN_ID),
    revisions: revisionsOf(given.revisions),
    hashing,
    allowUnverifiedContract: parts.cache.allowUnverifiedContract ?? false,
    parts,
  };
  refuseContradictions(settings, policy);
  const reading = readsSharedCache({
    role: plan.role,
    conditionalDisaggregation: plan.conditionalDisaggregation,
    policy: policyForReading(policy),
    gpuEvents: settings.useKvEvents,
    speculative: plan.speculative,
    sharedCacheType: settings.sharedCacheType,
    sharedCacheMultiplier: settings.sharedCacheMultiplier,
  });
  return { ...plan, reading };
}

/** Settings that this router can't keep. */
function refuseContradictions({ useRemoteIndexer, loadAware }: RouterSettings, policy: CheckedPolicy): void {
  if (useRemoteIndexer) {
    throw new ConfigError(
      'remote-indexer-not-supported',
      'use_remote_indexer=true is not supported: a router has its own index. Set useRemoteIndexer to false.',
    );
  }
  if (loadAware && policy !== 'kv' && policy !== 'least-loaded') {
    const name = typeof policy === 'string' ? policy : policy.name;
    throw new ConfigError(
      'load-aware-policy',
      `load_aware routes by load alone, and the policy is ${name}. Use kv or least-loaded, or set loadAware to false.`,
    );
  }
}

function revisionsOf(revisions: unknown): RevisionSet {
  if (revisions === undefined || revisions === null) return defaultRevisions;
  if (Array.isArray(revisions)) return revisions as unknown as RevisionSet;
  throw new ConfigError('revisions', `revisions is ${shown(revisions)}; give a list made with acceptRevision.`);
}

function roleOf(role: Role = 'aggregated'): Role {
  if (ROLES.includes(role)) return role;
  throw new ConfigError('role', `role is ${shown(role)}; use ${ROLES.join(', ')}.`);
}

function flagOf(given: RouterOptions, name: 'conditionalDisaggregation' | 'speculative' | 'strictContracts'): boolean {
  const value: unknown = given[name];
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  const code = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new ConfigError(code, `${name} is ${shown(value)}; give true or false.`);
}

function numberOf(code: string, name: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  throw new ConfigError(code, `${name} is ${shown(value)}; give a whole number from ${least} to ${most}.`);
}
