// A decision's full account: every rank of the router, whether it was a candidate, what it holds, its price with every term, and a reason
// for every tier that gives nothing. Made only on demand, from the same columns that decided.
import type { PrefixDepths } from '../core/prefix-types.js';
import { Candidates, type Demands, type OutCode } from './candidates.js';
import { creditedBlocks, whyNoShared } from './credited.js';
import type { CandidateView, DecisionBlocks, NotEligibleCode } from './decision.js';
import type { ForeignLoad } from './foreign-load.js';
import type { RankHealth } from './health.js';
import type { LoadTable } from './load.js';
import type { Policy, PricedRequest } from './policy.js';
import type { Prompt } from './prompt.js';
import type { SharedHit } from './shared-credit.js';
import type { RankSlot } from './workers.js';
import type { LocalZeroCode, ZeroReason } from './zero-credit.js';

/** What a decision was made from. */
export interface DecisionFacts {
  /** Every rank of the router (`allRanks`). */
  readonly all: Candidates;
  /** Those that could have been chosen, with their prices. */
  readonly candidates: Candidates;
  readonly demands: Demands;
  readonly prompt: Prompt;
  readonly priced: PricedRequest;
  readonly policy: Policy;
  readonly hit: SharedHit;
  readonly health: RankHealth;
  readonly useKvEvents: boolean;
}

const OUT_TEXT: Readonly<Record<OutCode, string>> = {
  draining: 'it is draining and gets no new requests',
  'not-allowed': 'the request does not allow this worker',
  'adapter-missing': 'it does not list the adapter that the request names, and another worker does',
  resting: 'its last requests failed in a row, and it rests for a while',
};
const NOT_PRICED: ZeroReason<NotEligibleCode> = {
  code: 'not-priced',
  text: 'the policy gave it no finite price',
};

/** Columns of every rank, whether it may serve or not. Copied from what the index and the load table show now. */
export function allRanks(
  slots: readonly RankSlot[],
  depths: PrefixDepths,
  load: LoadTable,
  foreign: ForeignLoad | null,
): Candidates {
  const all = new Candidates(slots.length);
  all.count = all.slots.push(...slots);
  all.fill(depths, load, foreign);
  return all;
}

/** Every rank, by number. */
export function explainCandidates(facts: DecisionFacts): CandidateView[] {
  const { all, candidates, hit } = facts;
  all.credit(hit);
  const places = new Map(candidates.slots.map((slot, at) => [slot, at]));
  return all.slots.map((slot, at) => viewOf(facts, at, places.get(slot)));
}

/** The rank at `at` of all; its place among the candidates is undefined where it was none. */
function viewOf(facts: DecisionFacts, at: number, place: number | undefined): CandidateView {
  const { all, candidates, policy, priced, hit } = facts;
  const { rank, source, admission } = all.slots[at]!;
  const price = place === undefined ? Number.POSITIVE_INFINITY : candidates.costs[place]!;
  const cost = Number.isFinite(price) ? price : null;
  const terms = cost === null ? null : policy.termsOf(candidates, place!, priced);
  const blocks = creditedBlocks(all, at, terms, priced.blocks);
  return {
    worker: { id: source.workerId, dpRank: source.dpRank },
    rank,
    notEligible: cost === null ? whyNotEligible(facts, all.slots[at]!) : null,
    cost,
    terms,
    load: {
      activeRequests: all.activeRequests[at]!,
      prefillTokens: all.prefillTokens[at]!,
      decodeBlocks: all.decodeBlocks[at]!,
    },
    blocks,
    admission: admission.code,
    zero: { ...localZeros(facts, blocks), shared: whyNoShared(all, at, terms, hit) },
  };
}

function whyNotEligible({ candidates, demands, health }: DecisionFacts, slot: RankSlot): ZeroReason<NotEligibleCode> {
  const code = candidates.whyOut(slot, demands, health);
  return code === null ? NOT_PRICED : { code, text: OUT_TEXT[code] };
}

function localZeros({ prompt, useKvEvents }: DecisionFacts, { device, host, disk }: DecisionBlocks) {
  const usable = prompt.localHashes.length;
  const zero = (blocks: number, before: number, where: string): ZeroReason<LocalZeroCode> | null => {
    if (blocks > 0) return null;
    if (!useKvEvents)
      return { code: 'gpu-events-off', text: 'the GPU events of workers are off; set use_kv_events to true' };
    if (prompt.unhashable) return { code: 'unhashable', text: 'LoRA name or salt is too long, or no well-formed text' };
    if (usable === 0) return { code: 'too-short', text: 'the prompt has no full block before its last token' };
    if (before === usable) return { code: 'nothing-left', text: 'the tiers before it hold every block that counts' };
    return { code: 'not-held', text: `block ${before} of the prompt is not known to be ${where}` };
  };
  return {
    device: zero(device, 0, 'on its device'),
    host: zero(host, device, 'in its host memory'),
    disk: zero(disk, device + host, 'on its disk or in its external tier'),
  };
}
