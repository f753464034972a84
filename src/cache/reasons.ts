// Why a lookup credits nothing, or less than the prompt: stable codes, and texts a person can act on (design.md 2, promise 2).
import type { CoreExplanation } from '../core/core.js';
import type { Evaluation, Plan } from '../core/plan.js';

/** Why credit ends where it does. */
export type ReasonCode =
  | 'stopped' //             the cache was stopped
  | 'pending' //             contract changes are being read
  | 'no-contract' //         no validated contract is in force
  | 'contract-too-large' //  more groups or prefixes than the core's build holds
  | 'contract-unverified' // it was derived from public facts, and that is not allowed
  | 'contract-unfit' //      it was validated for another way of hashing
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
  | 'last-token' //          at least one token is always computed
  | 'tokens-missing' //      hashes are derived from tokens, and only local hashes were given
  | 'hashes-unproven' //     no event of the ranks has yet agreed with derived hashes
  | 'hashes-refuted' //      an event has disagreed with them
  | 'not-derived'; //        derivation ended for want of room

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
  /** The plan's evaluation along the edges that were walked; blocks below are its. */
  readonly evaluation: Evaluation;
  /** The edges were derived ones. */
  readonly derived: boolean;
  /** Tokens of a main event block, in which reasons give their places. */
  readonly mainBlockSize: number;
  readonly kinds: readonly string[];
  readonly hashBlockSize: number;
  readonly explanation: CoreExplanation;
  /** Local hashes that were looked at. */
  readonly blocks: number;
  readonly tokens: number;
  /** Most blocks that one lookup reads. */
  readonly requestBlocks: number;
  /** How residency last became empty, null if it never did. */
  readonly lastClear: string | null;
  /** Whether nothing at all is resident. Dear to find out, and so asked only where it may be the reason. */
  readonly isEmpty: () => boolean;
}

const MISSING_SHOWN = 3;

/** All reasons why the hit is what it is and not more, the decisive ones first. Empty only if the hit is all that any engine restores. */
export function hitReasons(facts: HitFacts): Reason[] {
  const { evaluation, explanation, tokens } = facts;
  const { hit, walked, blocked } = explanation;
  const size = evaluation.blockSize;
  const most = Math.floor((tokens - 1) / size);
  const found: (Reason | null)[] = [];
  if (most < 1) {
    const text = `The prompt has ${tokens} tokens; the first restart point is ${size} tokens, and one token is always computed.`;
    found.push(reason('too-short', text));
  } else {
    const empty = (walked > 0 || facts.derived) && facts.isEmpty();
    if (empty) found.push(emptyReason(facts));
    // With all that may be credited credited, what the block of the last token lacks is to blame for nothing.
    if (hit < most) found.push(...blocked.map((one) => blockedReason(facts, one)));
    // Derivation ends of itself where full attention lacks something.
    const gap = blocked.some(({ group }) => facts.kinds[group] === 'full_attention');
    if (hit < most && !(facts.derived && (empty || gap))) found.push(walkReason(facts, most));
    if (hit < Math.min(walked, most) && blocked.length === 0) {
      const text = `The model restarts at multiples of ${evaluation.step * size} tokens; the next one lies behind the ${walked * size} tokens known.`;
      found.push(reason('endpoint-alignment', text, placeOf(facts, hit)));
    }
  }
  found.push(unseenReason(facts));
  if (most >= 1 && hit === most) {
    const text = `${hit * size} of ${tokens} tokens: all full blocks before the last token, which is always computed.`;
    found.push(reason('last-token', text, placeOf(facts, hit)));
  }
  return found.filter((one) => one !== null);
}

/** The main event block that one of the evaluation's lies in. */
function placeOf({ evaluation, mainBlockSize }: HitFacts, block: number): number {
  return Math.floor((block * evaluation.blockSize) / mainBlockSize);
}

function emptyReason({ lastClear }: HitFacts): Reason {
  const cause =
    lastClear === null
      ? 'no store message has been applied under this contract yet'
      : `residency was cleared (${lastClear})`;
  const text = `Nothing in the store is known: ${cause}. It fills from the master's events or a reconcile.`;
  return reason('residency-empty', text);
}

/** Why the walk ended before the prompt's last full block. */
function walkReason(facts: HitFacts, most: number): Reason | null {
  const { evaluation, explanation, blocks, requestBlocks, derived } = facts;
  const { walked, stopped } = explanation;
  if (walked >= most) return null;
  if (derived && walked < blocks) {
    const text = `Hashes were derived up to token ${walked * evaluation.blockSize} only: this prompt fills the core's tables by itself, or a hash of it is ambiguous.`;
    return reason('not-derived', text, placeOf(facts, walked));
  }
  if (stopped === 'missing') {
    const tokens = `tokens ${walked * evaluation.blockSize}–${(walked + 1) * evaluation.blockSize - 1}`;
    const text = `No admitted worker has announced block ${walked} (${tokens}) behind this prefix, so its engine hash is unknown.`;
    return reason('not-learned', text, walked);
  }
  if (stopped === 'conflict') {
    const text = `Workers' events contradict each other about block ${walked}; it is not credited until the contract changes. Check that all workers hash alike.`;
    return reason('conflict', text, walked);
  }
  if (walked === requestBlocks)
    return reason('request-too-long', `One lookup reads ${requestBlocks} blocks.`, placeOf(facts, walked));
  return reason('hashes-missing', `Only ${blocks} local hashes were given for ${most} blocks.`, blocks);
}

/** vLLM may know a restart point that no event shows. */
function unseenReason({ evaluation, explanation, hashBlockSize, tokens }: HitFacts): Reason | null {
  const size = evaluation.blockSize;
  const last = Math.floor((tokens - 1) / hashBlockSize) * hashBlockSize;
  if (!evaluation.partial || size === hashBlockSize || last <= explanation.hit * size) return null;
  const text = `vLLM may restart every ${hashBlockSize} tokens; boundaries inside a block of ${size} are not in workers' events and are not credited.`;
  return reason('unseen-boundary', text, explanation.hit);
}

function blockedReason(facts: HitFacts, blocked: CoreExplanation['blocked'][number]): Reason {
  const { plan, evaluation, kinds } = facts;
  const { group, digest } = blocked;
  const block = placeOf(facts, blocked.block);
  const end = (blocked.block + 1) * evaluation.blockSize;
  const place = `block ${block} (endpoint ${end} tokens), group ${group} (${kinds[group]})`;
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
