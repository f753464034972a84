// Load that other routers have put onto the same ranks, as they report it over an event plane: so that replicas do not all send to the worker that
// each of them believes to be idle. A report is the whole of one router's open leases and takes the place of its last one, so a lost report costs
// nothing but time; one that is silent for longer than it promised is taken for dead, and its load is returned (plane: spec/kv-events.md 4).
//
// Foreign load counts wherever one's own does, and nowhere else: it is no lease of ours, so none of it is ever admitted, progressed or credited.
// A sum is that of the reports in force, all whole numbers below 2^53: never negative, and exactly zero when the last one has gone.
import type { LoadReport, RankLoadShare } from '../wire/envelope/types.js';
import type { RankLoad } from './load.js';

/** Routers whose load is kept: a pool with more of them than that should be split. */
export const MAX_FOREIGN_ROUTERS = 64;
/** Ranks of one report: as many as a router has room for. */
export const MAX_REPORT_RANKS = 1024;
/** Longest time for which a report is believed, whatever it says of itself, in milliseconds. */
export const MAX_GOOD_FOR = 60_000;
/** How long a router that has said good-bye is remembered, so that a report of before, which comes late, does not bring its load back. */
const GONE_KEPT = 10_000;
/** Longest name. */
const MAX_NAME = 256;
/** Greatest amount of one rank in one report: 2^21 leases of 2^25 tokens. 64 routers' sum is below 2^53. */
const MAX_AMOUNT = 2 ** 46;

/** What became of a report. */
export type LoadReportFate =
  | 'taken'
  | 'good-bye' //         its load is returned
  | 'own' //              our own, which the transport sends back
  | 'stale' //            an older one than the last
  | 'too-many-routers' // no room for another router
  | 'too-many-ranks'
  | 'malformed' //        an amount, a name or a time that is none
  | 'disposed'; //        the router has ended

/** Counts since the router was made; routers and amounts as they stand. */
export interface ForeignLoadStats {
  /** Other routers whose reports are in force. */
  readonly routers: number;
  readonly activeRequests: number;
  readonly prefillTokens: number;
  readonly decodeBlocks: number;
  /** Reports by fate. */
  readonly reports: Readonly<Record<string, number>>;
  /** Routers that fell silent. */
  readonly expired: number;
  /** Shares of ranks that this router does not have. */
  readonly unknownRanks: number;
}

/** One other router, as it reported last. */
interface Reporter {
  sequence: bigint;
  /** When it is taken for dead; when a good-bye is forgotten. */
  until: number;
  gone: boolean;
  /** Rank, requests, tokens, blocks; and again. */
  shares: Float64Array;
}

const SHARE = 4;
const NOTHING = new Float64Array(0);

/** Which rank a share is of; undefined where this router has none such. */
export type RankFinder = (workerId: bigint, dpRank: number) => number | undefined;

/** The load of all other routers, by the compact index that this one gave the ranks. */
export class ForeignLoad {
  readonly activeRequests: Float64Array;
  readonly prefillTokens: Float64Array;
  readonly decodeBlocks: Float64Array;
  readonly #routers = new Map<string, Reporter>();
  readonly #fates = new Map<LoadReportFate, number>();
  #nextEnd = Number.POSITIVE_INFINITY;
  #live = 0;
  #expired = 0;
  #unknown = 0;

  /** @param ranks most ranks: indexes are 0 … ranks − 1 */
  constructor(ranks: number) {
    this.activeRequests = new Float64Array(ranks);
    this.prefillTokens = new Float64Array(ranks);
    this.decodeBlocks = new Float64Array(ranks);
  }

  /** Whether any is known at that time; what is past its end goes first. For hot paths: two comparisons where there is none. */
  any(now: number): boolean {
    if (now >= this.#nextEnd) this.#expire(now);
    return this.#live > 0;
  }

  /** A copy of a rank's. */
  of(rank: number): RankLoad {
    return {
      activeRequests: this.activeRequests[rank]!,
      prefillTokens: this.prefillTokens[rank]!,
      decodeBlocks: this.decodeBlocks[rank]!,
    };
  }

  /** Takes a report in. Never throws for what it says. `own`: the names under which this router reports; `now` by the clock of requests. */
  take(report: LoadReport, now: number, own: ReadonlySet<string>, find: RankFinder): LoadReportFate {
    const fate = this.#take(report, now, own, find);
    this.#fates.set(fate, (this.#fates.get(fate) ?? 0) + 1);
    return fate;
  }

  /** The rank is gone or has restarted: its index stands for another one from now on. */
  forget(rank: number): void {
    for (const { shares } of this.#routers.values()) {
      for (let at = 0; at < shares.length; at += SHARE) if (shares[at] === rank) shares.fill(0, at + 1, at + SHARE);
    }
    this.activeRequests[rank] = 0;
    this.prefillTokens[rank] = 0;
    this.decodeBlocks[rank] = 0;
  }

  /** The router ends. */
  forgetAll(): void {
    for (const name of [...this.#routers.keys()]) this.#drop(name);
    this.#nextEnd = Number.POSITIVE_INFINITY;
  }

  stats(now: number): ForeignLoadStats {
    this.any(now);
    const sum = (column: Float64Array) => column.reduce((all, amount) => all + amount, 0);
    return {
      routers: this.#live,
      activeRequests: sum(this.activeRequests),
      prefillTokens: sum(this.prefillTokens),
      decodeBlocks: sum(this.decodeBlocks),
      reports: Object.fromEntries(this.#fates),
      expired: this.#expired,
      unknownRanks: this.#unknown,
    };
  }

  #take(report: LoadReport, now: number, own: ReadonlySet<string>, find: RankFinder): LoadReportFate {
    const { router, sequence, goodFor, ranks } = report;
    if (own.has(router)) return 'own';
    if (!isSound(report) || !Number.isFinite(now)) return 'malformed';
    if (ranks.length > MAX_REPORT_RANKS) return 'too-many-ranks';
    this.any(now);
    const known = this.#routers.get(router);
    if (known !== undefined && sequence <= known.sequence) return 'stale';
    const gone = goodFor === 0;
    if (known === undefined && this.#routers.size >= MAX_FOREIGN_ROUTERS && !this.#forgetGone()) {
      return gone ? 'good-bye' : 'too-many-routers';
    }
    this.#drop(router);
    const until = now + (gone ? GONE_KEPT : Math.min(goodFor, MAX_GOOD_FOR));
    const shares = gone ? NOTHING : this.#sharesOf(ranks, find);
    this.#routers.set(router, { sequence, until, gone, shares });
    this.#add(shares, 1);
    if (!gone) this.#live++;
    this.#nextEnd = Math.min(this.#nextEnd, until);
    return gone ? 'good-bye' : 'taken';
  }

  #sharesOf(ranks: readonly RankLoadShare[], find: RankFinder): Float64Array {
    const shares = new Float64Array(ranks.length * SHARE);
    let at = 0;
    for (const { workerId, dpRank, activeRequests, prefillTokens, decodeBlocks } of ranks) {
      const rank = find(workerId, dpRank);
      if (rank === undefined) {
        this.#unknown++;
        continue;
      }
      shares.set([rank, activeRequests, prefillTokens, decodeBlocks], at);
      at += SHARE;
    }
    return shares.subarray(0, at);
  }

  #add(shares: Float64Array, sign: 1 | -1): void {
    for (let at = 0; at < shares.length; at += SHARE) {
      const rank = shares[at]!;
      this.activeRequests[rank]! += sign * shares[at + 1]!;
      this.prefillTokens[rank]! += sign * shares[at + 2]!;
      this.decodeBlocks[rank]! += sign * shares[at + 3]!;
    }
  }

  #drop(name: string): void {
    const reporter = this.#routers.get(name);
    if (reporter === undefined) return;
    this.#routers.delete(name);
    this.#add(reporter.shares, -1);
    if (!reporter.gone) this.#live--;
  }

  /** Makes room at the cost of one that has said good-bye. */
  #forgetGone(): boolean {
    for (const [name, { gone }] of this.#routers) {
      if (!gone) continue;
      this.#drop(name);
      return true;
    }
    return false;
  }

  #expire(now: number): void {
    this.#nextEnd = Number.POSITIVE_INFINITY;
    for (const [name, { until, gone }] of [...this.#routers]) {
      if (now < until) {
        this.#nextEnd = Math.min(this.#nextEnd, until);
        continue;
      }
      this.#drop(name);
      if (!gone) this.#expired++;
    }
  }
}

function isSound({ router, goodFor, ranks }: LoadReport): boolean {
  const named = router !== '' && router.length <= MAX_NAME;
  return named && Number.isFinite(goodFor) && goodFor >= 0 && ranks.every(isSoundShare);
}

function isSoundShare({ activeRequests, prefillTokens, decodeBlocks }: RankLoadShare): boolean {
  return isAmount(activeRequests) && isAmount(prefillTokens) && isAmount(decodeBlocks);
}

function isAmount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= MAX_AMOUNT;
}
