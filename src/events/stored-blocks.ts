// From a stored event to what the core can learn from it: parent, one hash for each block, and the blocks' tokens. Learning
// demands dense events of the contract's block size on the device tier, for only there does token i of the event belong to
// block ⌊i / blockSize⌋ (design.md 5; sparse groups: spec/kv-events.md 1.5). Everything else is refused with a reason.
import { isAbsent } from '../wire/values.js';
import type { StoredEvent } from '../wire/vllm.js';
import { isMainAttention } from './attention.js';
import type { Eligibility, EligibilityReason } from './eligibility.js';
import { tierOf } from './tiers.js';

/** What an event teaches. */
export interface LearnableBlocks {
  /** Low 64 bits of the hash of the block before, null at a prompt's start. */
  readonly parent: bigint | null;
  /** Low 64 bits of each block's hash. */
  readonly lows: BigUint64Array;
  /** The whole digests, 32 bytes each, back to back; null when the engine sends 64-bit hashes. */
  readonly digests: Uint8Array | null;
  /** `lows.length × blockSize` token ids. */
  readonly tokens: Uint32Array;
  readonly loraName: string | null;
  readonly namespace: string | null;
  /** Whether a namespace is known; an unsalted child of an unknown parent is only assumed to be unsalted. */
  readonly salted: boolean;
}

/** Why an event teaches nothing. An ineligible one gives the reason of its judgement. */
export type LearnRefusal =
  | EligibilityReason
  | 'not-device-tier' //     the blocks are elsewhere than on the GPU
  | 'not-local' //           locality is neither absent nor LOCAL
  | 'owned' //               another system owns the blocks
  | 'not-main-attention' //  a sliding-window, mamba or other group
  | 'not-main-group' //      another group than the contract's main event group
  | 'other-block-size' //    not the contract's: a partial block, or another engine
  | 'no-blocks'
  | 'sparse' //              tokens ≠ blocks × block size
  | 'extra-keys-count'; //   not one entry for each block

/** What the event is held against. */
export interface LearnTerms {
  /** The contract's main event block size, in tokens. */
  readonly blockSize: number;
  /** The contract's main event group; left out, any main-attention group may teach. */
  readonly mainEventGroup?: number | undefined;
  readonly verdict: Eligibility;
}

/** The blocks that a stored event teaches, or why it teaches none. Arrays are those of the event, not copies. */
export function toLearnable(event: StoredEvent, terms: LearnTerms): LearnableBlocks | { refused: LearnRefusal } {
  const refused = whyRefused(event, terms);
  if (refused !== null) return { refused };
  const { namespace } = terms.verdict;
  return {
    parent: event.parentBlockHash?.low64 ?? null,
    lows: event.blockHashes.low64,
    digests: event.blockHashes.digests,
    tokens: event.tokenIds,
    loraName: event.loraName || null,
    namespace,
    salted: namespace !== null,
  };
}

function whyRefused(event: StoredEvent, terms: LearnTerms): LearnRefusal | null {
  if (event.ownership !== null) return 'owned';
  if (event.locality !== null && event.locality !== 'LOCAL') return 'not-local';
  if (tierOf(event.medium) !== 'device') return 'not-device-tier';
  if (event.specKind !== null && !isMainAttention(event.specKind)) return 'not-main-attention';
  const { mainEventGroup } = terms;
  if (mainEventGroup !== undefined && event.groupIdx !== null && event.groupIdx !== mainEventGroup) {
    return 'not-main-group';
  }
  if (terms.verdict.reason !== null) return terms.verdict.reason;
  if (event.blockSize !== terms.blockSize) return 'other-block-size';
  const blocks = event.blockHashes.low64.length;
  if (blocks === 0) return 'no-blocks';
  if (event.tokenIds.length !== blocks * event.blockSize) return 'sparse';
  const { extraKeys } = event;
  if (!isAbsent(extraKeys) && (extraKeys as readonly unknown[]).length !== blocks) return 'extra-keys-count';
  return null;
}
