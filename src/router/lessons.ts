// Who learns from a request's end: the router the time, the `ttft` policy its rates, feedback which prefixes are restored less than credited,
// health which ranks fail. A cancelled request teaches nothing, for it was the client who went away. Knows neither router nor lease, so that it keeps
// neither alive.
import type { Feedback } from './feedback.js';
import type { RankHealth } from './health.js';
import type { LatestTime } from './latest-time.js';
import type { LeaseObservation, LeaseObserver } from './lease-types.js';
import type { TtftEstimator } from './ttft.js';

/** Those who learn, and what they must know. */
export interface LessonParts {
  /** Most ranks. */
  readonly ranks: number;
  /** Tokens of a block. */
  readonly blockSize: number;
  readonly latest: LatestTime;
  readonly ttft: TtftEstimator;
  readonly feedback: Feedback;
  readonly health: RankHealth;
}

/** Hands every observation to those that learn from it. */
export class Lessons implements LeaseObserver {
  readonly #latest: LatestTime;
  readonly #ttft: TtftEstimator;
  readonly #feedback: Feedback;
  readonly #health: RankHealth;
  readonly #blockSize: number;
  /** By rank: when a request failed last. */
  readonly #failedAt: Float64Array;

  constructor({ ranks, blockSize, latest, ttft, feedback, health }: LessonParts) {
    this.#latest = latest;
    this.#ttft = ttft;
    this.#feedback = feedback;
    this.#health = health;
    this.#blockSize = blockSize;
    this.#failedAt = new Float64Array(ranks).fill(Number.NEGATIVE_INFINITY);
  }

  leaseEnded(observation: LeaseObservation): void {
    this.#latest.tell(observation.endedAt);
    if (observation.outcome === 'failed') this.#fail(observation);
    if (observation.outcome !== 'completed') return;
    if (!this.#isOvertaken(observation)) this.#health.succeeded(observation.rank);
    this.#ttft.leaseEnded(observation);
    this.#reportCached(observation);
  }

  #fail({ rank, endedAt }: LeaseObservation): void {
    this.#failedAt[rank] = endedAt;
    this.#health.failed(rank, endedAt);
  }

  /** A request that was under way when another one failed: a rank that takes no new requests may well end its old ones. */
  #isOvertaken({ rank, endedAt, totalTime }: LeaseObservation): boolean {
    const failedAt = this.#failedAt[rank]!;
    return totalTime !== null && endedAt - totalTime < failedAt && failedAt <= endedAt;
  }

  /** What the engine said of its prompt, against what was credited; nothing where nothing was credited, or nothing said. */
  #reportCached({ prefix, localTokens, sharedTokens, cachedTokens, endedAt }: LeaseObservation): void {
    if (prefix === null || cachedTokens === null) return;
    this.#feedback.report(prefix, localTokens + sharedTokens, cachedTokens, this.#blockSize, endedAt);
  }
}
