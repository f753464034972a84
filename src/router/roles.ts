// When a router reads the shared cache, and why not (design.md 7; spec/kv-events.md 6.4 "created only if"). The cache is made only where
// it is read, so a "no" here is also the reason that every lookup of that router credits nothing.
import type { SharedCacheType } from './settings.js';

/** What the router's workers do: whole requests, prompts only, or what follows a prompt that another worker computed. */
export type Role = 'aggregated' | 'prefill' | 'decode';

/** What a policy may ask about a candidate. */
export type PolicyInput = 'gpu-cache' | 'shared-cache' | 'load';

/** Policies that come with the router. */
export type BuiltInPolicy = 'kv' | 'ttft' | 'round-robin' | 'random' | 'least-loaded';

/** What the built-in policies ask about a candidate. */
export const BUILT_IN_INPUTS: Readonly<Record<BuiltInPolicy, readonly PolicyInput[]>> = {
  kv: ['gpu-cache', 'shared-cache', 'load'],
  ttft: ['gpu-cache', 'shared-cache', 'load'],
  'round-robin': [],
  random: [],
  'least-loaded': ['load'],
};

/** All that decides whether the shared cache is read. */
export interface ReadingFacts {
  readonly role: Role;
  /** A decode router may keep a request whose prompt is mostly cached, and so prefill it. */
  readonly conditionalDisaggregation: boolean;
  /** A built-in policy's name, or the inputs that a policy of the caller's own declares. */
  readonly policy: BuiltInPolicy | readonly PolicyInput[];
  /** The workers' GPU events are read: from them hash edges are learned. */
  readonly gpuEvents: boolean;
  /** The model decodes speculatively (Eagle). */
  readonly speculative: boolean;
  readonly sharedCacheType: SharedCacheType;
  /** Worth of a shared block in the cost of the `kv` policy (and of `ttft` on a decode router), from the settings. */
  readonly sharedCacheMultiplier: number;
}

/** Why a router does not read the shared cache. */
export type NotReadCode =
  | 'shared-cache-off'
  | 'policy-does-not-read'
  | 'decode-role'
  | 'gpu-events-off'
  | 'speculative'
  | 'multiplier-zero';

/** Yes, or no with its reason. */
export type SharedCacheReading =
  | { readonly reads: true }
  | { readonly reads: false; readonly code: NotReadCode; readonly text: string };

interface Rule {
  readonly code: NotReadCode;
  readonly applies: (facts: ReadingFacts) => boolean;
  readonly text: string;
}

// Every rule is a "no"; the first that applies is the reason given, the operator's own choices standing first.
const RULES: readonly Rule[] = [
  {
    code: 'shared-cache-off',
    applies: ({ sharedCacheType }) => sharedCacheType === 'none',
    text: 'no shared cache is set; set shared_cache_type to mooncake-store',
  },
  {
    code: 'policy-does-not-read',
    applies: ({ policy }) => !inputsOf(policy).includes('shared-cache'),
    text: 'the policy does not read the shared cache; use kv or ttft, or declare the input shared-cache',
  },
  {
    code: 'decode-role',
    applies: ({ role, conditionalDisaggregation, policy }) =>
      role === 'decode' && !conditionalDisaggregation && isBuiltIn(policy),
    text: 'decode workers receive prompts that are computed already, so built-in policies route them by load; turn on conditional disaggregation to let them prefill',
  },
  {
    code: 'gpu-events-off',
    applies: ({ gpuEvents }) => !gpuEvents,
    text: 'GPU events are off, and without them no block of the store can be recognised; set use_kv_events to true',
  },
  {
    code: 'speculative',
    applies: ({ speculative }) => speculative,
    text: 'the model decodes speculatively (Eagle), for which no restart point is proven; nothing is to be done',
  },
  {
    code: 'multiplier-zero',
    applies: ({ policy, role, sharedCacheMultiplier }) =>
      sharedCacheMultiplier === 0 && (policy === 'kv' || (policy === 'ttft' && role === 'decode')),
    text: 'the cost gives shared blocks no worth; set shared_cache_multiplier above 0',
  },
];

/** Whether a router reads the shared cache, and so has one. Pure. */
export function readsSharedCache(facts: ReadingFacts): SharedCacheReading {
  const rule = RULES.find(({ applies }) => applies(facts));
  return rule === undefined ? { reads: true } : { reads: false, code: rule.code, text: rule.text };
}

function isBuiltIn(policy: ReadingFacts['policy']): policy is BuiltInPolicy {
  return typeof policy === 'string';
}

function inputsOf(policy: ReadingFacts['policy']): readonly PolicyInput[] {
  return isBuiltIn(policy) ? BUILT_IN_INPUTS[policy] : policy;
}
