// The `ttft` policy: the candidate with the least estimated time to first token (ttft.ts), in milliseconds.
import type { Candidates } from './candidates.js';
import type { Policy, PolicyTerms, PricedRequest } from './policy.js';
import type { TtftEstimator, TtftTerms } from './ttft.js';

/** Prices by time. */
export class TtftPolicy implements Policy {
  readonly name = 'ttft';
  readonly tiesByLoad = true;
  readonly #estimator: TtftEstimator;
  /** Terms of the last request's candidates: an estimate is made once, for the estimator counts what it answers. */
  #terms: TtftTerms[] = [];

  constructor(
    estimator: TtftEstimator,
    readonly temperature: number,
  ) {
    this.#estimator = estimator;
  }

  price(candidates: Candidates, { tokenCount, blockSize }: PricedRequest): void {
    this.#terms = [];
    for (let at = 0; at < candidates.count; at++) {
      const terms = this.#estimator.estimate({
        rank: candidates.slots[at]!.rank,
        activePrefillTokens: candidates.prefillTokens[at]!,
        promptTokens: tokenCount,
        localTokens: candidates.local(at) * blockSize,
        sharedTokens: candidates.shared(at) * blockSize,
      });
      this.#terms.push(terms);
      candidates.costs[at] = terms.time;
    }
  }

  termsOf(_candidates: Candidates, at: number): PolicyTerms {
    return { kind: 'time', ...this.#terms[at]! };
  }
}
