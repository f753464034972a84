// When a router tells the others its load: soon after a change, but not after every one, and now and then without one, so that it is not taken for dead.
import type { LoadReport, RankLoadShare } from '../../../wire/envelope/types.js';

/** Least time between two reports, and how often changes are looked for, in milliseconds. */
export const REPORT_EVERY = 50;
/** Longest time between two reports. */
export const REPORT_AT_LEAST = 1000;
/** How long a report is good for: two may be lost. */
export const REPORT_GOOD_FOR = 3000;

/** Times in milliseconds. */
export interface LoadTimes {
  readonly every: number;
  readonly atLeast: number;
  readonly goodFor: number;
}

export const LOAD_TIMES: LoadTimes = { every: REPORT_EVERY, atLeast: REPORT_AT_LEAST, goodFor: REPORT_GOOD_FOR };

/** Decides when there is something to report, and numbers reports. */
export class LoadPace {
  readonly #router: string;
  readonly #times: LoadTimes;
  #sequence = 0n;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #reported: readonly RankLoadShare[] = [];

  constructor(router: string, times: LoadTimes = LOAD_TIMES) {
    this.#router = router;
    this.#times = times;
  }

  /** Reports made. */
  get reports(): number {
    return Number(this.#sequence);
  }

  /** The report that is due; null while there is none. */
  due(shares: readonly RankLoadShare[], now: number): LoadReport | null {
    const { every, atLeast, goodFor } = this.#times;
    const since = now - this.#reportedAt;
    const isDue = since >= atLeast || (since >= every && !isSame(shares, this.#reported));
    // A clock that has gone back must not silence it.
    if (!isDue && since >= 0) return null;
    this.#reportedAt = now;
    this.#reported = shares;
    return { router: this.#router, sequence: ++this.#sequence, goodFor, ranks: shares };
  }

  /** The last one: its load is returned. */
  goodBye(): LoadReport {
    return { router: this.#router, sequence: ++this.#sequence, goodFor: 0, ranks: [] };
  }
}

function isSame(some: readonly RankLoadShare[], others: readonly RankLoadShare[]): boolean {
  return some.length === others.length && some.every((share, i) => isSameShare(share, others[i]!));
}

function isSameShare(one: RankLoadShare, other: RankLoadShare): boolean {
  return (
    one.activeRequests === other.activeRequests &&
    one.prefillTokens === other.prefillTokens &&
    one.decodeBlocks === other.decodeBlocks &&
    one.workerId === other.workerId &&
    one.dpRank === other.dpRank
  );
}
