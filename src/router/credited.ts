// What a candidate is credited with, and why a part of it is nothing: the same for the chosen one of every decision and for all of them
// where a decision explains itself.
import type { Candidates } from './candidates.js';
import type { DecisionBlocks } from './decision.js';
import type { PolicyTerms } from './policy.js';
import type { SharedHit } from './shared-credit.js';
import type { ZeroReason } from './zero-credit.js';

const HELD_LOCALLY: ZeroReason = {
  code: 'held-locally',
  text: 'the rank itself holds all that the store could restore of this prompt',
};
const STORE_SLOWER: ZeroReason = {
  code: 'store-slower',
  text: 'fetching from the store would take as long as computing the tokens, as measured',
};

/** A candidate's blocks. `terms` are those of its price, for a policy may find the store not worth asking. */
export function creditedBlocks(
  candidates: Candidates,
  at: number,
  terms: PolicyTerms | null,
  request: number,
): DecisionBlocks {
  return {
    device: candidates.device[at]!,
    host: candidates.host[at]!,
    disk: candidates.disk[at]!,
    shared: isSlower(terms) ? 0 : candidates.shared(at),
    request,
  };
}

/** Why a candidate's shared part is nothing; null when it is something. */
export function whyNoShared(
  candidates: Candidates,
  at: number,
  terms: PolicyTerms | null,
  hit: SharedHit,
): ZeroReason | null {
  if (hit.refused) return hit.reason;
  const { admission, source } = candidates.slots[at]!;
  const { code, text } = admission;
  if (code !== 'admitted') return { code, text: text! };
  const { unproven } = hit;
  const { reason } = unproven === null || unproven.proves(source) ? hit : unproven;
  if (reason !== null) return reason;
  if (candidates.shared(at) === 0) return HELD_LOCALLY;
  return isSlower(terms) ? STORE_SLOWER : null;
}

function isSlower(terms: PolicyTerms | null): boolean {
  return terms?.kind === 'time' && terms.storeSlower;
}
