// What goes into a lease and what comes out of it: the request that it is opened for, the reports that its caller hears of, the
// observation at its end, and the bounds and counts of a table of leases. How leases work is in leases.ts.
import type { PrefixMarks } from './feedback.js';

/** Open leases that a table tracks unless told otherwise. */
export const DEFAULT_MAX_OPEN_LEASES = 1_048_576;
/** Most that it may be told to track; keeps sums of tokens exact (load.ts). */
export const MAX_OPEN_LEASES = 2_097_152;

/** What the decision was, as far as the lease needs it. Whole numbers. */
export interface LeaseRequest {
  /** The chosen rank's index in the load table. */
  readonly rank: number;
  readonly promptTokens: number;
  /** Tokens of the prompt that the rank holds itself. */
  readonly localTokens: number;
  /** Tokens credited from the shared store beyond those. Handed to the observer; changes no load. Default 0. */
  readonly sharedTokens?: number;
  /** Tokens in a KV block. */
  readonly blockSize: number;
  /** False where the rank prefills nothing (role decode). Default true. */
  readonly tracksPrefill?: boolean;
  /** Names the prefix that shared credit was given for to the observer. Default null: none was given. */
  readonly prefix?: PrefixMarks | null;
}

/** How a lease ended. An abandoned one is told to nobody: it is only counted. */
export type LeaseOutcome =
  | 'completed'
  | 'failed' //    by the worker's fault
  | 'cancelled'; // by the client, which went away: says nothing of the worker

/** What was seen of a request, at its end. */
export interface LeaseObservation {
  readonly outcome: LeaseOutcome;
  readonly rank: number;
  readonly promptTokens: number;
  readonly localTokens: number;
  readonly sharedTokens: number;
  readonly prefix: PrefixMarks | null;
  /** When it ended, in milliseconds, as the report says. */
  readonly endedAt: number;
  /** Milliseconds from decision to admission; like those below null where a report is missing or the clock went backwards. */
  readonly queueTime: number | null;
  /** Milliseconds from admission to the first token, a fetch from the store included. */
  readonly prefillTime: number | null;
  /** Milliseconds from decision to the first token. */
  readonly timeToFirstToken: number | null;
  /** Milliseconds from decision to end. */
  readonly totalTime: number | null;
  readonly generatedTokens: number;
  /** Prompt tokens that the engine reported as cached, whatever the tier; null when it said nothing usable or did not complete. */
  readonly cachedTokens: number | null;
}

/** Learns from ended requests: the `ttft` policy its rates, the feedback rule which prefixes are restored less than credited (design.md 6). */
export interface LeaseObserver {
  /** Must not throw; what it throws is counted and goes no further. */
  leaseEnded(observation: LeaseObservation): void;
}

/** What a caller may hear of its request. What a handler throws reaches whoever made the report, after all others of that event were called. */
export interface LeaseHandlers {
  admitted?(now: number): void;
  prefilled?(now: number): void;
  progress?(generatedTokens: number, now: number): void;
  ended?(observation: LeaseObservation): void;
}

/** How a table is made. */
export interface LeaseOptions {
  /** Open leases that are tracked, 1 … 2,097,152. Default 1,048,576. */
  readonly maxOpen?: number;
  readonly observer?: LeaseObserver | null;
}

/** Leases now, and counts since the table was made. `opened = open + completed + failed + cancelled + abandoned` until `dispose`. */
export interface LeaseStats {
  readonly open: number;
  readonly opened: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Dropped without an end, and collected. */
  readonly abandoned: number;
  /** Given without tracking, for `maxOpen` were open. */
  readonly untracked: number;
  /** Reports of progress after the end. */
  readonly late: number;
  /** Reported numbers that can't be meant. */
  readonly malformed: number;
  /** Ended after their rank had been forgotten: the observer was not told. */
  readonly orphaned: number;
  readonly observerFaults: number;
  /** Whether dropped leases are noticed in this JavaScript engine. */
  readonly detectsAbandoned: boolean;
}
