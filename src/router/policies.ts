// From a policy's name, or a function, to the policy itself; and the two built-in ones that ask nothing about a candidate, `round-robin`
// and `random`.
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';
import type { Candidates } from './candidates.js';
import type { Policy } from './policy.js';
import { CostPolicy } from './policy-cost.js';
import { type CustomPolicy, checkCustom, FunctionPolicy, type PolicyCost } from './policy-custom.js';
import { TtftPolicy } from './policy-ttft.js';
import { BUILT_IN_INPUTS, type BuiltInPolicy, type ReadingFacts, type Role } from './roles.js';
import { type RouterSettings, validateSettings } from './settings.js';
import type { TtftEstimator } from './ttft.js';

/** A policy as it is given: a built-in one by name, a function that prices candidates, or one with a name and its inputs. */
export type PolicyOption = BuiltInPolicy | PolicyCost | CustomPolicy;
/** A policy as it was checked. */
export type CheckedPolicy = BuiltInPolicy | CustomPolicy;

/** What a policy is made for. */
export interface PolicyFacts {
  readonly settings: RouterSettings;
  readonly role: Role;
  readonly conditionalDisaggregation: boolean;
  /** Most ranks. */
  readonly ranks: number;
  readonly ttft: TtftEstimator;
}

/**
 * Checks a policy.
 * @throws ConfigError `unknown-policy`, and those of `checkCustom`
 */
export function checkPolicy(given: PolicyOption): CheckedPolicy {
  if (typeof given === 'function' || (typeof given === 'object' && given !== null)) return checkCustom(given);
  if (Object.hasOwn(BUILT_IN_INPUTS, given)) return given;
  const known = Object.keys(BUILT_IN_INPUTS).join(', ');
  throw new ConfigError('unknown-policy', `unknown policy ${shown(given)}; use ${known}, or a function.`);
}

/** A policy as the rule asks about it that decides whether the shared cache is read. */
export function policyForReading(policy: CheckedPolicy): ReadingFacts['policy'] {
  return typeof policy === 'string' ? policy : policy.inputs;
}

/** The policy itself. */
export function policyOf(policy: CheckedPolicy, facts: PolicyFacts): Policy {
  const { settings, role, conditionalDisaggregation, ranks, ttft } = facts;
  const { temperature } = settings;
  if (typeof policy !== 'string') return new FunctionPolicy(policy, temperature);
  if (policy === 'round-robin') return new TurnPolicy(ranks);
  if (policy === 'random') return RANDOM;
  const decodeRouter = role === 'decode';
  // The first token comes from the rank that prefills: on a decode router `ttft` has nothing to estimate, and prices as `kv` does.
  if (policy === 'ttft' && !decodeRouter) return new TtftPolicy(ttft, temperature);
  const byLoad = policy === 'least-loaded' || settings.loadAware || (decodeRouter && !conditionalDisaggregation);
  return new CostPolicy({
    name: policy,
    weights: settings,
    byLoad,
    temperature: policy === 'least-loaded' ? 0 : temperature,
    decodeRouter,
  });
}

/** The policy that serves when another one has priced nobody: load alone, under the default weights, whose costs are always finite. */
export function fallbackPolicy(role: Role): Policy {
  return new CostPolicy({
    name: 'least-loaded',
    weights: validateSettings(),
    byLoad: true,
    temperature: 0,
    decodeRouter: role === 'decode',
  });
}

/** `round-robin`: whose turn is longest ago. So it stays fair while ranks come and go, and where not all may serve a request. */
class TurnPolicy implements Policy {
  readonly name = 'round-robin';
  readonly temperature = 0;
  readonly tiesByLoad = false;
  /** By rank: the number of its last turn, 0 when it had none. */
  readonly #turns: Float64Array;
  #turn = 0;

  constructor(ranks: number) {
    this.#turns = new Float64Array(ranks);
  }

  price(candidates: Candidates): void {
    for (let at = 0; at < candidates.count; at++) candidates.costs[at] = this.#turns[candidates.slots[at]!.rank]!;
  }

  termsOf(): null {
    return null;
  }

  chosen(rank: number): void {
    this.#turns[rank] = ++this.#turn;
  }

  forget(rank: number): void {
    this.#turns[rank] = 0;
  }
}

/** `random`: all cost the same, and ties are drawn. */
const RANDOM: Policy = {
  name: 'random',
  temperature: 0,
  tiesByLoad: false,
  price: (candidates) => {
    candidates.costs.fill(0, 0, candidates.count);
  },
  termsOf: () => null,
};
