// Whether a normalised stored event can teach the shared cache. Learning demands dense events of the contract's block size and main
// group on the device tier, for only there does token i of the event belong to block ⌊i / blockSize⌋ (design.md 5; sparse groups:
// spec/kv-events.md 1.5). Everything else is refused with a reason, and still counts for GPU overlap.
import type { EligibilityReason } from './eligibility.js';
import type { NormalisedStored } from './normaliser.js';

/** Why an event teaches nothing. */
export type LearnRefusal =
  | EligibilityReason
  | 'ambiguous-namespace' // a block of it was announced under two namespaces
  | 'not-device-tier' //     the blocks are elsewhere than on the GPU
  | 'not-main-group' //      another group than the contract's main event group
  | 'other-block-size' //    not the contract's: a partial block, or another engine
  | 'no-blocks'
  | 'sparse' //              tokens ≠ blocks × block size
  | 'extra-keys-count'; //   not one entry for each block

/** The contract's main event group and the tokens of its blocks. */
export interface LearnTerms {
  /** Null where there is none: then no event is known to be of it. */
  readonly mainEventGroup: number | null;
  readonly mainEventBlockSize: number;
}

/** Why `stored` teaches nothing under a contract, null when it teaches. */
export function whyNotLearned(stored: NormalisedStored, terms: LearnTerms): LearnRefusal | null {
  const { event, tier, ineligible } = stored;
  const { groupIdx, blockSize } = event.shape;
  if (tier !== 'device') return 'not-device-tier';
  const { mainEventGroup } = terms;
  if (mainEventGroup === null || (groupIdx !== null && groupIdx !== mainEventGroup)) return 'not-main-group';
  if (ineligible !== null) return ineligible;
  if (blockSize !== terms.mainEventBlockSize) return 'other-block-size';
  if (event.wellLaid) return null;
  if (!event.dense) return event.blockCount === 0 ? 'no-blocks' : 'sparse';
  return 'extra-keys-count';
}
