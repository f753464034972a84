// What a decision says (design.md 7): who was chosen and at what price, who would have been, what of the prompt is where, how that compares
// with the best that any candidate could have had, and why the store's part is nothing. With `explain`, every rank of the router with
// every term.
import type { Reason } from '../cache/reasons.js';
import type { Source } from '../events/worker-events.js';
import type { AdmissionCode } from './admission.js';
import type { OutCode } from './candidates.js';
import type { Lease } from './leases.js';
import type { RankLoad } from './load.js';
import type { PolicyTerms } from './policy.js';
import type { LocalZeroCode, ZeroReason } from './zero-credit.js';

/** A worker's rank, by the names that its events use. */
export interface ChosenWorker {
  readonly id: Source['workerId'];
  readonly dpRank: number;
}

/** Where blocks of the prompt are, each tier going on where the one before ends. Only blocks before the last token count. */
export interface DecisionBlocks {
  readonly device: number;
  readonly host: number;
  readonly disk: number;
  /** Blocks of the shared store past those, that the decision counts on. */
  readonly shared: number;
  /** Blocks of the whole prompt, the last part counting as one. */
  readonly request: number;
}

/** Why a rank that was a candidate has no price, or why it was none. */
export type NotEligibleCode = OutCode | 'not-priced';

/** One rank of the router, as a decision saw it. */
export interface CandidateView {
  readonly worker: ChosenWorker;
  /** Its compact number in this router. */
  readonly rank: number;
  /** Why it could not be chosen; null for a candidate that could. */
  readonly notEligible: ZeroReason<NotEligibleCode> | null;
  /** The policy's price, less being better; null where it has none. */
  readonly cost: number | null;
  readonly terms: PolicyTerms | null;
  /** Before this request. */
  readonly load: RankLoad;
  readonly blocks: DecisionBlocks;
  readonly admission: AdmissionCode;
  /** Why a tier, or the store, gives it nothing; null where it gives something. */
  readonly zero: {
    readonly device: ZeroReason<LocalZeroCode> | null;
    readonly host: ZeroReason<LocalZeroCode> | null;
    readonly disk: ZeroReason<LocalZeroCode> | null;
    readonly shared: ZeroReason | null;
  };
}

/** Where a request goes, and why. */
export interface Decision {
  readonly worker: ChosenWorker;
  /** Its compact number in this router. */
  readonly rank: number;
  /** The policy that priced it. */
  readonly policy: string;
  /** The router's own policy priced nobody, and `least-loaded` decided. */
  readonly fallback: boolean;
  /** The price, in the unit of the policy: blocks (`kv`, `least-loaded`), milliseconds (`ttft`), turns (`round-robin`), or its own. */
  readonly cost: number;
  /** Of what the price is made; null for policies without terms. */
  readonly terms: PolicyTerms | null;
  /** Who would have been chosen without this one; null for a single candidate. */
  readonly runnerUp: { readonly worker: ChosenWorker; readonly rank: number; readonly cost: number } | null;
  readonly blocks: DecisionBlocks;
  /** The most blocks that any candidate could have without computing them, local or from the store. */
  readonly bestReachable: number;
  /** The same of the chosen one. */
  readonly achieved: number;
  /** Why `blocks.shared` is 0; null when it is not. */
  readonly sharedReason: ZeroReason | null;
  /** The request's claim on its rank. Report through it, and keep it as long as the request lives. */
  readonly lease: Lease;
  /** Every rank of the router, by number; null unless the request asked for it, like … */
  readonly candidates: readonly CandidateView[] | null;
  /** … every reason why the store's part is not longer, the decisive ones first. */
  readonly reasons: readonly (Reason | ZeroReason)[] | null;
}
