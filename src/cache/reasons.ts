// Why a lookup credits nothing, or less than the prompt: stable codes, and texts a person can act on (design.md 2, promise 2).
import type { CoreExplanation } from '../core/core.js';
import type { Plan } from '../core/plan.js';

/** Why credit ends where it does. */
export type ReasonCode =
  | 'stopped' //             the cache was stopped
  | 'pending' //             contract changes are being read
  | 'no-contract' //         no validated contract is in force
  | 'contract-too-large' //  more groups or prefixes than the core's build holds
  | 'ineligible' //          the request's provenance is not proven
  | 'block-size' //          the query's blocks are not the contract's
  | 'empty-prompt'
  | 'too-short' //           no full block before the last token
  | 'request-too-long' //    more blocks than one lookup reads
  | 'hashes-missing' //      fewer local hashes than the prompt has blocks
  | 'not-learned' //         no worker's event has named the next block
  | 'conflict' //            events contradict each other about the next block
  | 'residency-empty' //     nothing of the store is known right now
  | 'object-missing' //      objects that the endpoint needs are not in the store
  | 'digest-ambiguous' //    two digests share the block's 64-bit hash
  | 'endpoint-alignment' //  the next restart point lies behind what is stored
  | 'unseen-boundary' //     vLLM may restart inside a block, where no event teaches a hash
  | 'last-token'; //         at least one token is always computed

/** One reason. Blocks count from 0 in main event blocks. */
export interface Reason {
  readonly code: ReasonCode;
  readonly block: number | null;
  /** Store group, where one is to blame. */
  readonly group: number | null;
  /** Object keys (or, while the digest is unknown, their prefixes) that are not in the store. */
  readonly missing: readonly string[];
  readonly text: string;
}

/** A reason without a place. */
export function reason(code: ReasonCode, text: string, block: number | null = null): Reason {
  return { code, block, group: null, missing: [], text };
}

/** What the reasons of a performed lookup are derived from. */
export interface HitFacts {
  readonly plan: Plan;
  readonly kinds: readonly string[];
  readonly hashBlockSize: number;
  readonly explanation: CoreExplanation;
  /** Local hashes that were looked at. */
  readonly blocks: number;
  readonly tokens: number;
  /** How residency last became empty, null if it never did. */
  readonly lastClear: string | null;
  readonly digests: number;
}

const MISSING_SHOWN = 3;

/** All reasons why the hit is what it is and not more, the decisive ones first. Empty only if the hit is all that any engine restores. */
export function hitReasons(facts: HitFacts): Reason[] {
  const { plan, explanation, tokens, blocks } = facts;
  const { hit, walked, stopped } = explanation;
  const size = plan.blockSize;
  const most = Math.floor((tokens - 1) / size);
  const reasons: Reason[] = [];
  if (most < 1)
    return [
      reason(
        'too-short',
        `The prompt has ${tokens} tokens; the first restart point is ${size} tokens, and one token is always computed.`,
      ),
    ];
  if (walked > 0 && facts.digests === 0) {
    const cause =
      facts.lastClear === null
        ? 'no store message has been applied under this contract yet'
        : `residency was cleared (${facts.lastClear})`;
    reasons.push(
      reason(
        'residency-empty',
        `Nothing in the store is known: ${cause}. It fills from the master's events or a reconcile.`,
      ),
    );
  }
  for (const blocked of explanation.blocked) reasons.push(blockedReason(facts, blocked));
  if (stopped === 'missing') {
    const text = `No admitted worker has announced block ${walked} (tokens ${walked * size}–${(walked + 1) * size - 1}) behind this prefix, so its engine hash is unknown.`;
    reasons.push(reason('not-learned', text, walked));
  } else if (stopped === 'conflict') {
    const text = `Workers' events contradict each other about block ${walked}; it is not credited until the contract changes. Check that all workers hash alike.`;
    reasons.push(reason('conflict', text, walked));
  } else if (blocks < most && walked === blocks) {
    reasons.push(reason('hashes-missing', `Only ${blocks} local hashes were given for ${most} blocks.`, blocks));
  }
  if (reasons.length === 0 && hit < Math.min(walked, most)) {
    reasons.push(
      reason(
        'endpoint-alignment',
        `The model restarts at multiples of ${plan.step * size} tokens; the next one lies behind the ${walked * size} tokens known.`,
        hit,
      ),
    );
  }
  if (plan.partial && size > facts.hashBlockSize && hit * size < tokens - 1) {
    const text = `vLLM may restart every ${facts.hashBlockSize} tokens; boundaries inside a block of ${size} are not in workers' events and are not credited.`;
    reasons.push(reason('unseen-boundary', text, hit));
  }
  if (hit === most) {
    reasons.push(
      reason(
        'last-token',
        `${hit * size} of ${tokens} tokens: all full blocks before the last token, which is always computed.`,
        hit,
      ),
    );
  }
  return reasons;
}

function blockedReason({ plan, kinds }: HitFacts, blocked: CoreExplanation['blocked'][number]): Reason {
  const { group, block, digest } = blocked;
  const place = `block ${block} (endpoint ${(block + 1) * plan.blockSize} tokens), group ${group} (${kinds[group]})`;
  if (blocked.ambiguous) {
    return {
      code: 'digest-ambiguous',
      block,
      group,
      missing: [],
      text: `Two digests share the 64-bit hash of ${place}; neither is credited until the contract changes.`,
    };
  }
  const missing = blocked.missing.map((id) => plan.prefixes[id]!.text + (digest === null ? '' : `@${digest}`));
  const shown =
    missing.slice(0, MISSING_SHOWN).join(', ') +
    (missing.length > MISSING_SHOWN ? `, … (${missing.length} in all)` : '');
  const known =
    digest === null ? 'No object of this block was ever seen in the store; needed under' : 'Not in the store:';
  return { code: 'object-missing', block, group, missing, text: `${place}: ${known} ${shown}` };
}
