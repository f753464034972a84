// A policy of the caller's own: a function that prices one candidate at a time. It sees only the inputs that it declares, so that what it
// declares is true, and it is never trusted: what it throws, and what is no number, costs that candidate this request and is counted.
import { shown } from '../contract/descriptor.js';
import { ConfigError } from '../errors.js';
import type { Source } from '../events/worker-events.js';
import type { Candidates } from './candidates.js';
import type { Policy, PricedRequest } from './policy.js';
import type { PolicyInput } from './roles.js';

/** A worker's rank that could serve the request. What the policy did not declare as an input is 0. */
export interface PolicyCandidate {
  readonly worker: { readonly id: Source['workerId']; readonly dpRank: number };
  /** Its compact number in this router. */
  readonly rank: number;
  /** Blocks of the prompt from its start: on the device, further ones in host memory, on disk, and past those in the store. */
  readonly blocks: { readonly device: number; readonly host: number; readonly disk: number; readonly shared: number };
  readonly activeRequests: number;
  /** Prompt tokens that it has yet to prefill. */
  readonly prefillTokens: number;
  /** KV blocks of its open requests. */
  readonly decodeBlocks: number;
}

/** What is the same for all candidates. */
export type PolicyRequest = PricedRequest;

/**
 * The price of a candidate: finite, less being better; Infinity where it must not be chosen. Given at once: a promise is no price. It must not
 * change the router's workers.
 */
export type PolicyCost = (candidate: PolicyCandidate, request: PolicyRequest) => number;

/** A policy of the caller's own. */
export interface CustomPolicy {
  readonly name: string;
  /** What it wants to know. Without `shared-cache` no shared cache is kept. */
  readonly inputs: readonly PolicyInput[];
  /** Called as its method. */
  readonly cost: PolicyCost;
}

const INPUTS: readonly PolicyInput[] = ['gpu-cache', 'shared-cache', 'load'];

/**
 * A checked policy. A bare function is one that wants to know everything.
 * @throws ConfigError `policy-name`, `policy-inputs`, `policy-cost`
 */
export function checkCustom(given: PolicyCost | CustomPolicy): CustomPolicy {
  if (typeof given === 'function') {
    return { name: given.name || 'custom', inputs: INPUTS, cost: (candidate, request) => given(candidate, request) };
  }
  const { name, inputs, cost } = given;
  if (typeof name !== 'string' || name === '') {
    throw new ConfigError('policy-name', `a policy's name is ${shown(name)}; give a text.`);
  }
  if (!Array.isArray(inputs) || !inputs.every((input) => INPUTS.includes(input))) {
    throw new ConfigError(
      'policy-inputs',
      `policy ${name}: inputs is ${shown(inputs)}; list any of ${INPUTS.join(', ')}.`,
    );
  }
  if (typeof cost !== 'function') {
    throw new ConfigError(
      'policy-cost',
      `policy ${name}: cost is ${shown(cost)}; give a function of a candidate and the request.`,
    );
  }
  return { name, inputs: [...inputs], cost: (candidate, request) => cost.call(given, candidate, request) };
}

/** Prices by the caller's function. */
export class FunctionPolicy implements Policy {
  readonly name: string;
  readonly tiesByLoad: boolean;
  readonly #cost: PolicyCost;
  readonly #readsGpu: boolean;
  readonly #faults = { threw: 0, 'no-price': 0, promise: 0 };

  constructor(
    { name, inputs, cost }: CustomPolicy,
    readonly temperature: number,
  ) {
    this.name = name;
    this.#cost = cost;
    this.#readsGpu = inputs.includes('gpu-cache');
    this.tiesByLoad = inputs.includes('load');
  }

  get faults(): Readonly<Record<string, number>> {
    return this.#faults;
  }

  price(candidates: Candidates, request: PricedRequest): void {
    const own = Object.freeze({ ...request });
    for (let at = 0; at < candidates.count; at++) {
      candidates.costs[at] = this.#ask(this.#describe(candidates, at), own);
    }
  }

  termsOf(): null {
    return null;
  }

  #ask(candidate: PolicyCandidate, request: PolicyRequest): number {
    try {
      const cost: unknown = this.#cost(candidate, request);
      if (Number.isFinite(cost) || cost === Number.POSITIVE_INFINITY) return cost as number;
      this.#faults[isPromise(cost) ? 'promise' : 'no-price']++;
    } catch {
      this.#faults.threw++; // whatever it threw, the request is served
    }
    return Number.POSITIVE_INFINITY;
  }

  #describe(candidates: Candidates, at: number): PolicyCandidate {
    const { rank, source } = candidates.slots[at]!;
    const gpu = this.#readsGpu ? 1 : 0;
    const load = this.tiesByLoad ? 1 : 0;
    return {
      worker: { id: source.workerId, dpRank: source.dpRank },
      rank,
      blocks: {
        device: gpu * candidates.device[at]!,
        host: gpu * candidates.host[at]!,
        disk: gpu * candidates.disk[at]!,
        shared: candidates.shared(at), // none where it is not declared: then no shared cache is kept
      },
      activeRequests: load * candidates.activeRequests[at]!,
      prefillTokens: load * candidates.prefillTokens[at]!,
      decodeBlocks: load * candidates.decodeBlocks[at]!,
    };
  }
}

/** Whether the answer is a promise, or as good as one. What it comes to is of no interest, and if it fails that is nobody's surprise. */
function isPromise(answer: unknown): boolean {
  if (typeof answer !== 'object' || answer === null || !('then' in answer)) return false;
  if (typeof answer.then !== 'function') return false;
  Promise.resolve(answer).catch(() => undefined);
  return true;
}
