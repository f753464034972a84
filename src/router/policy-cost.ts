// The policies that price in blocks, by the formula of spec/kv-events.md 7.2 (cost.ts): `kv`, and `least-loaded`, which is `kv` with no
// worth in any overlap. A decode router without conditional disaggregation also gives overlap no worth, for the prompts that it is sent
// were computed elsewhere: the least decode load wins (design.md 7).
import type { Candidates } from './candidates.js';
import { type CostCandidate, type CostRequest, type CostWeights, costOf, priceOf } from './cost.js';
import type { Policy, PolicyTerms, PricedRequest } from './policy.js';

/** What makes the weights such that only load counts. */
const NO_OVERLAP = { overlapScoreCredit: 0, hostCacheHitWeight: 0, diskCacheHitWeight: 0 } as const;

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };
/** What the formula asks of a candidate; one serves for all of them. */
type Sheet = Writable<Omit<CostCandidate, 'overlap'>> & { readonly overlap: Writable<CostCandidate['overlap']> };

/** How a policy prices. */
export interface CostPolicyOptions {
  readonly name: string;
  readonly weights: CostWeights;
  /** No overlap counts, local or shared, whatever the weights. */
  readonly byLoad: boolean;
  readonly temperature: number;
  /** The router serves decode workers, whose prefill is not tracked. */
  readonly decodeRouter: boolean;
}

/** Prices by cost. */
export class CostPolicy implements Policy {
  readonly name: string;
  readonly temperature: number;
  readonly tiesByLoad = true;
  readonly #weights: CostWeights;
  readonly #byLoad: boolean;
  readonly #decodeRouter: boolean;

  constructor({ name, weights, byLoad, temperature, decodeRouter }: CostPolicyOptions) {
    this.name = name;
    this.temperature = temperature;
    this.#weights = byLoad ? { ...weights, ...NO_OVERLAP } : weights;
    this.#byLoad = byLoad;
    this.#decodeRouter = decodeRouter;
  }

  price(candidates: Candidates, request: PricedRequest): void {
    const costRequest = this.#requestOf(candidates, request);
    const sheet = newSheet();
    for (let at = 0; at < candidates.count; at++) {
      fillIn(sheet, costRequest, candidates, at, request);
      candidates.costs[at] = priceOf(this.#weights, costRequest, sheet);
    }
  }

  termsOf(candidates: Candidates, at: number, request: PricedRequest): PolicyTerms {
    const costRequest = this.#requestOf(candidates, request);
    const sheet = newSheet();
    fillIn(sheet, costRequest, candidates, at, request);
    return { kind: 'cost', ...costOf(this.#weights, costRequest, sheet) };
  }

  #requestOf({ minPrefillTokens }: Candidates, request: PricedRequest): Writable<CostRequest> {
    return {
      requestBlocks: request.blocks,
      blockSize: request.blockSize,
      sharedEnd: 0,
      sharedCacheMultiplier: this.#byLoad ? 0 : request.sharedCacheMultiplier,
      tracksPrefill: !this.#decodeRouter,
      minActivePrefillTokens: minPrefillTokens,
      decodeRouter: this.#decodeRouter,
    };
  }
}

function newSheet(): Sheet {
  const overlap = { device: 0, host: 0, disk: 0 };
  return { overlap, rawPrefillBlocks: 0, decodeBlocks: 0, activePrefillTokens: 0, activeRequests: 0 };
}

/** Writes down what the formula asks of a candidate. */
function fillIn(
  sheet: Sheet,
  costRequest: Writable<CostRequest>,
  candidates: Candidates,
  at: number,
  request: PricedRequest,
): void {
  const prefillTokens = candidates.prefillTokens[at]!;
  sheet.overlap.device = candidates.device[at]!;
  sheet.overlap.host = candidates.host[at]!;
  sheet.overlap.disk = candidates.disk[at]!;
  sheet.rawPrefillBlocks = (prefillTokens + request.tokenCount) / request.blockSize;
  sheet.decodeBlocks = candidates.decodeBlocks[at]! + request.decodeBlocks;
  sheet.activePrefillTokens = prefillTokens;
  sheet.activeRequests = candidates.activeRequests[at]!;
  costRequest.sharedEnd = candidates.sharedEnd[at]!; // not every rank is under the contract in force
}
