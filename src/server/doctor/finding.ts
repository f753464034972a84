// What a check says: one finding for each thing that it looked at, with a stable code, what was seen, and for what is wrong the fix.
import type { Evidence } from './evidence.js';

export type FindingStatus = 'ok' | 'failed' | 'skipped';

export interface Finding {
  /** Of the check; stable. docs/doctor.md lists them. */
  readonly code: string;
  readonly status: FindingStatus;
  /** Whom it is about: a worker, a rank, a master, the store. */
  readonly subject: string;
  /** What was seen, or why it does not apply. */
  readonly seen: string;
  /** What to do; null unless it failed. */
  readonly fix: string | null;
}

/** One idea, held against all evidence. */
export interface Check {
  readonly code: string;
  /** The question that it answers. */
  readonly title: string;
  run(evidence: Evidence): readonly Verdict[];
}

/** A finding before it is given its check's code. */
export type Verdict = Omit<Finding, 'code'>;

export function ok(subject: string, seen: string): Verdict {
  return { status: 'ok', subject, seen, fix: null };
}

export function failed(subject: string, seen: string, fix: string): Verdict {
  return { status: 'failed', subject, seen, fix };
}

/** It does not apply, or can't be told. */
export function skipped(subject: string, seen: string): Verdict {
  return { status: 'skipped', subject, seen, fix: null };
}
