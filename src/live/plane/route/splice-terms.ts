// How patient a splice is, what it asks of its shell, and what it counts.
import type { RecoveryQuestion, RouterEvent } from '../../../wire/envelope/types.js';

/** Live events that wait while a rank is recovered; beyond, the oldest go, and are asked for again. */
export const BUFFER_EVENTS = 1024;
/** Their blocks: 32 bytes each, so 8 MiB a rank. */
export const BUFFER_BLOCKS = 262_144;
/** Events over the bound before the buffer is cut back to it, so that it is not cut at every event. */
export const PRUNE_MARGIN = 10;
/** Events that one question asks for: half the buffer, so that what comes live meanwhile has room. */
export const APPEND_BUDGET = BUFFER_EVENTS / 2;
/** Missing events beyond which a dump is asked for at once: it is cheaper than eight ranges. */
export const MOST_MISSING = 8 * APPEND_BUDGET;
/** Attempts after the first before a recovery is given up. */
export const RETRIES = 8;
/** Delay before the first retry, in milliseconds; it doubles, and is scattered. */
export const FIRST_BACKOFF = 200;
/** The longest delay, in milliseconds. */
export const MOST_BACKOFF = 30_000;
/** How long one attempt may take, in milliseconds. */
export const ATTEMPT_PATIENCE = 30_000;
/** A recovery that lasts longer empties the rank: as long as a direct stream may be down. */
export const STALE_AFTER = 30_000;
/** How long a rank that could not be recovered is left in peace, in milliseconds. */
export const COLD_RETRY = 60_000;
/** Applied events whose look is remembered, to know their duplicates by. */
export const RECENT = 16;
/** Ids behind a publisher's first that may have come before it. */
export const REORDERED = 16n;
/** After an answer, how long live events may still be on their way that it has brought already, in milliseconds. */
export const OVERLAP_GRACE = 2000;
/** The same where a transport first sends its log again: a million batches take no longer. */
export const LOG_GRACE = 120_000;
/** Least time from a dump to the next that a gap behind it costs, in milliseconds: an indexer that lags behind its own events must not be asked at each. */
export const DUMP_EVERY = 1000;
/** Least time between two recoveries for the sake of unexplained old ids, in milliseconds: a transport that repeats itself must not cost a dump each time. */
export const DOUBT_EVERY = 5_000;
/** Pages of one dump: a thousand ranks' worth of an index. */
export const MOST_PAGES = 4096;

/** Why a rank is emptied. */
export type ResetCause =
  | 'new-life' //    the publisher began anew
  | 'dump' //        its contents are told anew
  | 'stale' //       a recovery has lasted for too long
  | 'unanswered'; // it was given up

/** Why a recovery began. */
export type RecoveryCause =
  | 'start' //     nothing of the rank is known yet
  | 'gap' //       events were missed
  | 'check' //     the transport may have missed some
  | 'doubt' //     an old id that nothing explains
  | 'new-life' //  another publisher than before answers
  | 'cold'; //     it was given up some time ago

/** What an attempt came to. */
export type RecoveryOutcome =
  | 'range' //            the missing events
  | 'dump' //             all of a dump's pages
  | 'too-new' //          the publisher has no newer events: nothing is missed, or it began anew
  | 'invalid-range'
  | 'dump-failed'
  | 'error' //            the indexer said so
  | 'malformed' //        an answer that is none to the question
  | 'unanswered' //       nothing came in time, or the question could not be sent
  | 'given-up'; //        that was the last attempt

/** Counts since the rank is watched. */
export interface SpliceCounts {
  /** Events handed to the router. */
  applied: number;
  /** Of those, what a recovery brought. */
  recovered: number;
  duplicates: number;
  /** Ids that were older than what is known, for a recovery has brought more already. */
  overlapped: number;
  gaps: number;
  /** Old ids that nothing explained. */
  doubts: number;
  /** Publishers that began anew. */
  lives: number;
  /** Live events dropped from the buffer. */
  dropped: number;
}

/** What the machine asks of its shell. */
export interface SpliceActions {
  /** Hands an event to the router. */
  apply(event: RouterEvent): void;
  /** Empties the rank; with `new-life` what was kept of its publisher goes too. */
  reset(cause: ResetCause): void;
  /** Asks the rank's indexer, after `delay` milliseconds; `answered` or `failed` follows. The question before, if any, is given up. */
  ask(question: Pick<RecoveryQuestion, 'startEventId' | 'endEventId' | 'page'>, delay: number): void;
  /** The running question is needed no more. */
  cancel(): void;
}
