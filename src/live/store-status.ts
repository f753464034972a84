// How the store's stream stands, as numbers and in sentences for people.
import type { MasterState } from './master-choice.js';
import type { MasterView } from './masters.js';

/** The last reconcile that was accepted. Times in milliseconds. */
export interface ReconcileReport {
  readonly cause: string;
  /** How long ago it began. */
  readonly age: number;
  /** From its first request to its end. */
  readonly took: number;
  /** Of that, the final step, during which nothing else was done. */
  readonly step: number;
  /** Objects that are resident by it, and those for which there was no room. */
  readonly placed: number;
  readonly leftOut: number;
  /** Keys under none of the contract's prefixes, and keys that are but without a digest. */
  readonly foreign: number;
  readonly malformed: number;
}

/** How the store's stream stands. Ages and times in milliseconds. */
export interface StoreStreamStatus {
  readonly masters: readonly MasterView[];
  /** Index of the followed one; null while none is known to serve. */
  readonly followed: number | null;
  readonly connected: boolean;
  readonly lastSequence: bigint | null;
  /** Wire generation by the status' fields; null before the first one. */
  readonly generation: string | null;
  readonly evidenceAge: number;
  readonly maxEvidenceAge: number;
  /** Why the next reconcile is called for, null when only the timer does; and how long it is held back to keep to its share of time. */
  readonly wanted: string | null;
  readonly heldBack: number;
  readonly reconciling: boolean;
  readonly lastReconcile: ReconcileReport | null;
  /** Reconciles that counted. */
  readonly reconciled: number;
  /** Reconciles that did not count, by reason. */
  readonly voided: Readonly<Record<string, number>>;
  /** Differences between counters and stream that lasted, by cause. */
  readonly drifts: Readonly<Record<string, number>>;
  /** Connections lost, by cause. */
  readonly losses: Readonly<Record<string, number>>;
  /** Times that all evidence went because it was too old. */
  readonly expired: number;
  /** Messages that wait to be looked at, and times that the socket had to wait because of them. */
  readonly queued: number;
  readonly pauses: number;
  /** What a person should know, in sentences. */
  readonly warnings: readonly string[];
}

/** What the sentences are derived from. */
export interface StoreFacts {
  /** Of the followed master; null when none is followed. */
  readonly state: MasterState | null;
  /** Whether its HTTP is configured. */
  readonly hasHttp: boolean;
  /** Why its HTTP could not be used when it was last asked. */
  readonly fault: string | null;
  /** Why the last reconciles, so many of them, did not count. */
  readonly failing: { readonly times: number; readonly why: string } | null;
  readonly maxEvidenceAge: number;
  /** Milliseconds for which the next reconcile is held back to keep to its share of time. */
  readonly heldBack: number;
}

/** Reconciles in a row that do not count before it is said: one may fall into a busy moment. */
const FAILURES_SAID = 2;

/** What a person should know, the worst first. */
export function storeWarnings(facts: StoreFacts): string[] {
  const { heldBack, maxEvidenceAge } = facts;
  const found = [masterWarning(facts)];
  if (heldBack > maxEvidenceAge) {
    found.push(
      'The key list takes so long to read that its share of time is used up: hints will end before the next reconcile.',
    );
  }
  return found.filter((text) => text !== null);
}

function masterWarning({ state, hasHttp, fault, failing, maxEvidenceAge }: StoreFacts): string | null {
  const age = Math.round(maxEvidenceAge / 1000);
  if (state === null) return 'No master is known to serve, so there are no hints of the store.';
  if (!hasHttp) {
    return `The master's HTTP is not configured: nothing confirms the evidence, which is dropped every ${age} s.`;
  }
  if (state === 'standby') return 'The followed master is a standby, so there are no hints of the store.';
  if (state === 'events-off') {
    return 'The master runs without KV events (enable_kv_events, kv_events_bind_endpoint, kv_events_backend_id), so there are no hints of the store.';
  }
  if (failing !== null && failing.times >= FAILURES_SAID) {
    return `The last ${failing.times} reconciles did not count (${failing.why}): hints end at an evidence age of ${age} s.`;
  }
  if (state === 'unreachable') {
    return `The master's HTTP fails (${fault}): unless it answers again, hints end at an evidence age of ${age} s.`;
  }
  return null;
}
