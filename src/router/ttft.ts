// The `ttft` policy's estimate of the time to first token (design.md 7): queue + fetch of shared bytes at measured bandwidth + prefill of
// the rest. Both rates are learned from requests that completed (ttft-rates.ts). A store that would take as long as computing the same
// tokens is not credited.
//
// What may teach, and what may not:
// - Prefill: requests without shared credit, by the tokens that the engine had to compute. It may have restored some all the same (it asks
//   the store whether the router credits it or not), and then the time holds a fetch. `cachedTokens` above `localTokens` is the trace
//   of that, though a GPU hit unknown to the router leaves the same one. So such a request teaches only where a fetch of the surplus would,
//   as believed, be a small part of its time. Else a slow store, not credited, would make prefill look slow and itself look good.
// - Fetch: requests with shared credit whose `cachedTokens` show that more was there than the rank's own. What the believed prefill of the
//   rest and the latency leave of the time is the fetch. Where they leave nothing, all that is known is that it was fast: it
//   counts as the fast edge of the band, BAND times the believed rate. Without shared credit nothing tells store from GPU: no lesson.
// - So a store once found slow would never be heard of again. But crediting it costs nothing that the engine would not do anyway; only the
//   estimate must not promise a gain. Hence the probe: after PROBE_AFTER completions on a rank that told nothing of the store,
//   estimates for that rank credit it again, priced as computing the tokens, so that the decision is what it would have been. The next
//   request with credit that completes there is the answer. If it was much faster than believed, the rank goes on asking.
import { ConfigError } from '../errors.js';
import type { LeaseObservation, LeaseObserver } from './lease-types.js';
import { MAX_LOAD_RANKS } from './load.js';
import { TTFT_LIMITS, type TtftOptions, validateTtftOptions } from './ttft-options.js';
import { LearnedRate } from './ttft-rates.js';

export type { TtftOptions } from './ttft-options.js';

/** Completions on a rank without word of the store, after which one that is judged slower is tried again. */
export const PROBE_AFTER = 16;
/** A fetch faster than believed by more than this factor says that the belief is out of date: the rank goes on asking. */
const OUTDATED = 2;
/** Most that a fetch nobody credited may take, as believed, of a time that teaches the prefill rate. */
const MAX_HIDDEN_FETCH = 1 / 4;

/** A rank that could serve the request. Tokens, 0 or more. */
export interface TtftCandidate {
  /** Index of the rank, as in the load table. */
  readonly rank: number;
  /** Tokens that it has yet to prefill for others. */
  readonly activePrefillTokens: number;
  readonly promptTokens: number;
  /** Tokens of the prompt that the rank holds itself. */
  readonly localTokens: number;
  /** Tokens that the store could restore beyond the local ones. */
  readonly sharedTokens: number;
}

/** Every term of a candidate's estimate. Times are milliseconds, less being better. */
export interface TtftTerms {
  /** Prefill of what is ahead. */
  readonly queue: number;
  /** Restoring the credited tokens, latency included; never more than computing them (a probe is priced so). 0 where none are credited. */
  readonly fetch: number;
  /** Computing the tokens that are neither local nor credited. */
  readonly prefill: number;
  /** queue + fetch + prefill */
  readonly time: number;
  /** Shared tokens that are credited: 0 where `storeSlower`. */
  readonly sharedTokens: number;
  /** There were shared tokens, and none are credited: fetching them would take as long as computing them. */
  readonly storeSlower: boolean;
}

/** What is believed of a rank now. */
export interface TtftRates {
  readonly prefillTokensPerSecond: number;
  readonly fetchBytesPerSecond: number;
  /** The rank's own observations, older ones counting less; with 8 it needs neither fleet nor prior. */
  readonly prefillObservations: number;
  readonly fetchObservations: number;
}

/** Counts since the estimator was made. */
export interface TtftStats {
  readonly prefillLearned: number;
  readonly fetchLearned: number;
  /** Ended leases that taught nothing: not completed, no usable times, or nothing certain in them. */
  readonly unusable: number;
  /** Lessons outside of the rank's band, which counted as its edge. */
  readonly clamped: number;
  /** Estimates that credited a store judged slower, to hear of it again. */
  readonly probes: number;
}

/** Estimates times to first token, and learns its rates as an observer of leases. Memory is fixed at the start. */
export class TtftEstimator implements LeaseObserver {
  readonly #prefill: LearnedRate;
  readonly #fetch: LearnedRate;
  /** By rank: completions since the store was last asked, up to PROBE_AFTER. */
  readonly #sinceAsked: Uint8Array;
  readonly #kvBytes: number;
  readonly #latency: number;
  readonly #counts = { prefillLearned: 0, fetchLearned: 0, unusable: 0, clamped: 0, probes: 0 };

  /**
   * @param ranks most ranks: indexes are 0 … ranks − 1
   * @throws {ConfigError} `ttft-ranks`, a setting's name in kebab-case, or `unknown-setting`
   */
  constructor(ranks: number, options: TtftOptions = {}) {
    if (!Number.isInteger(ranks) || ranks < 1 || ranks > MAX_LOAD_RANKS) {
      throw new ConfigError('ttft-ranks', `ranks is ${ranks}; give a whole number from 1 to ${MAX_LOAD_RANKS}.`);
    }
    const settings = validateTtftOptions(options);
    const { prefillTokensPerSecond, fetchBytesPerSecond, kvBytesPerToken, fetchLatency, halfLife } = settings;
    const prefillRange = { ...TTFT_LIMITS.prefillTokensPerSecond, prior: prefillTokensPerSecond };
    const fetchRange = { ...TTFT_LIMITS.fetchBytesPerSecond, prior: fetchBytesPerSecond };
    this.#prefill = new LearnedRate(ranks, prefillRange, halfLife);
    this.#fetch = new LearnedRate(ranks, fetchRange, halfLife);
    this.#sinceAsked = new Uint8Array(ranks);
    this.#kvBytes = kvBytesPerToken;
    this.#latency = fetchLatency;
  }

  /** The time to first token on one candidate, with all its terms. `rank` must be an index of the table. */
  estimate(candidate: TtftCandidate): TtftTerms {
    const { rank, promptTokens } = candidate;
    const prefillPace = this.#prefill.paceOf(rank);
    const missing = Math.max(0, promptTokens - candidate.localTokens);
    let credited = Math.min(missing, candidate.sharedTokens);
    let fetch = 0;
    let storeSlower = false;
    if (credited > 0) {
      const recompute = credited * prefillPace;
      fetch = this.#fetchTime(rank, credited);
      if (fetch >= recompute) {
        storeSlower = !this.#mayProbe(rank, recompute);
        fetch = storeSlower ? 0 : recompute;
        if (storeSlower) credited = 0;
        else this.#counts.probes++;
      }
    }
    const queue = candidate.activePrefillTokens * prefillPace;
    const prefill = (missing - credited) * prefillPace;
    return { queue, fetch, prefill, time: queue + fetch + prefill, sharedTokens: credited, storeSlower };
  }

  /** Learns from a request that completed. Never throws. */
  leaseEnded(seen: LeaseObservation): void {
    const known = seen.rank >= 0 && seen.rank < this.#sinceAsked.length;
    if (seen.outcome !== 'completed' || !known) this.#counts.unusable++;
    else if (seen.sharedTokens > 0) this.#learnFetch(seen);
    else this.#learnPrefill(seen);
  }

  /** The rank is gone, or has restarted as something else: it is believed to be like the fleet. */
  forget(rank: number): void {
    this.#prefill.forget(rank);
    this.#fetch.forget(rank);
    this.#sinceAsked[rank] = 0;
  }

  /** What is believed of the rank now. `rank` must be an index of the table. */
  rates(rank: number): TtftRates {
    return {
      prefillTokensPerSecond: this.#prefill.rateOf(rank),
      fetchBytesPerSecond: this.#fetch.rateOf(rank),
      prefillObservations: this.#prefill.weightOf(rank),
      fetchObservations: this.#fetch.weightOf(rank),
    };
  }

  stats(): TtftStats {
    return { ...this.#counts };
  }

  #fetchTime(rank: number, tokens: number): number {
    return this.#latency + tokens * this.#kvBytes * this.#fetch.paceOf(rank);
  }

  /** Where the latency alone is too much, no bandwidth would help, and there is nothing to ask. */
  #mayProbe(rank: number, recompute: number): boolean {
    return this.#sinceAsked[rank] === PROBE_AFTER && this.#latency < recompute;
  }

  #learnPrefill({ rank, promptTokens, localTokens, cachedTokens, prefillTime }: LeaseObservation): void {
    if (this.#sinceAsked[rank]! < PROBE_AFTER) this.#sinceAsked[rank]!++;
    const cached = cachedTokens ?? localTokens;
    const computed = promptTokens - cached;
    const surplus = cached - localTokens;
    const usable = isUsable(prefillTime) && computed > 0;
    if (!usable || (surplus > 0 && this.#fetchTime(rank, surplus) > MAX_HIDDEN_FETCH * prefillTime)) {
      this.#counts.unusable++;
      return;
    }
    if (this.#prefill.learn(rank, computed, prefillTime)) this.#counts.clamped++;
    this.#counts.prefillLearned++;
  }

  #learnFetch({ rank, promptTokens, localTokens, cachedTokens, prefillTime }: LeaseObservation): void {
    this.#sinceAsked[rank] = 0;
    const restored = (cachedTokens ?? 0) - localTokens;
    if (!isUsable(prefillTime) || cachedTokens === null || restored <= 0) {
      this.#counts.unusable++;
      return;
    }
    const rest = (promptTokens - cachedTokens) * this.#prefill.paceOf(rank);
    const time = Math.max(0, prefillTime - rest - this.#latency);
    const bytes = restored * this.#kvBytes;
    if (time * OUTDATED < bytes * this.#fetch.paceOf(rank)) this.#sinceAsked[rank] = PROBE_AFTER;
    if (this.#fetch.learn(rank, bytes, time)) this.#counts.clamped++;
    this.#counts.fetchLearned++;
  }
}

function isUsable(time: number | null): time is number {
  return time !== null && time > 0;
}
