// What it costs to give a request to a worker, in blocks: the formula of spec/kv-events.md 7.2, every term by name, so that a decision
// can explain itself. One deliberate difference (design.md 7): shared blocks start at the deepest local tier, not at the device's, so
// that no block is credited twice. It has a price: a block that the worker's disk and the store both hold is worth the disk's weight,
// even where the shared multiplier is higher.
import type { RouterSettings } from './settings.js';

/** The settings that the formula reads. */
export type CostWeights = Pick<
  RouterSettings,
  | 'overlapScoreCredit'
  | 'overlapScoreCreditDecay'
  | 'prefillLoadScale'
  | 'decodeActiveRequestWeight'
  | 'hostCacheHitWeight'
  | 'diskCacheHitWeight'
>;

/** What is the same for all candidates of a request. */
export interface CostRequest {
  /** Blocks of the prompt, its last part counting as one. Less than 1 counts as 1. */
  readonly requestBlocks: number;
  /** Tokens of a block. */
  readonly blockSize: number;
  /** The first so many blocks are in the shared cache; 0 without a hit. */
  readonly sharedEnd: number;
  /** Worth of a shared block, 0 … 1: the request's own or that of the settings (`multiplierFor`). */
  readonly sharedCacheMultiplier: number;
  /** Prefill tokens are counted per worker. Where not, no prefill load is known and none is charged. */
  readonly tracksPrefill: boolean;
  /** Least active prefill tokens of any eligible worker. */
  readonly minActivePrefillTokens: number;
  /** This router serves decode workers. With conditional disaggregation off they are given `overlapScoreCredit` 0. */
  readonly decodeRouter: boolean;
}

/** What a worker's own tiers hold of the prompt, in blocks from its start; each tier goes on where the one before ends. */
export interface LocalOverlap {
  /** Blocks on the device. Where tiers aren't told apart, all that the worker holds, possibly weighted and so a fraction. */
  readonly device: number;
  /** Further blocks in host memory. */
  readonly host: number;
  /** Further blocks on disk or in the external tier. */
  readonly disk: number;
}

/** A worker that could serve the request. */
export interface CostCandidate {
  readonly overlap: LocalOverlap;
  /** (Active prefill tokens + tokens of the prompt) / block size, nothing cached subtracted. */
  readonly rawPrefillBlocks: number;
  /** Blocks that decoding would hold on this worker, this request's included. */
  readonly decodeBlocks: number;
  readonly activePrefillTokens: number;
  readonly activeRequests: number;
}

/** Credit by tier and in all, in blocks. */
export interface Credit {
  /** Blocks of the shared cache past the worker's own. */
  readonly sharedBlocks: number;
  readonly device: number;
  readonly host: number;
  readonly disk: number;
  readonly shared: number;
  readonly total: number;
}

/** Every term of a candidate's cost, in blocks but for `decay` and `form`. */
export interface CostTerms {
  readonly overlap: LocalOverlap;
  readonly credit: Credit;
  /** Active prefill above that of the least busy eligible worker; 0 where decay is off. */
  readonly excess: number;
  /** Factor on the device's credit, in (0, 1]; 1 where decay is off. */
  readonly decay: number;
  /** What the credit was subtracted from. */
  readonly form: 'prefill' | 'decode';
  /** Scaled prefill load after credit; 0 in the decode form. */
  readonly prefill: number;
  /** Decode load; after credit in the decode form. */
  readonly decode: number;
  /** Active requests, weighted. */
  readonly active: number;
  /** prefill + decode + active: 0 or more, less being better. */
  readonly cost: number;
}

/** The cost of one candidate with all its terms. Pure. */
export function costOf(weights: CostWeights, request: CostRequest, candidate: CostCandidate): CostTerms {
  const { overlap } = candidate;
  const excess = excessOf(weights, request, candidate);
  const decay = decayOf(weights, request, excess);
  const credit = creditOf(weights, request, overlap, decay);
  const form = formOf(weights, request);
  const prefill = prefillOf(weights, request, candidate, credit.total);
  const decode = decodeOf(weights, request, candidate, credit.total);
  const active = activeOf(weights, candidate);
  return { overlap, credit, excess, decay, form, prefill, decode, active, cost: prefill + decode + active };
}

/** The cost alone, the same number as `costOf(…).cost`, without an object for its terms: for every candidate of every request. */
export function priceOf(weights: CostWeights, request: CostRequest, candidate: CostCandidate): number {
  const decay = decayOf(weights, request, excessOf(weights, request, candidate));
  const { device, host, disk } = candidate.overlap;
  const credit =
    deviceCredit(weights, device, decay) +
    hostCredit(weights, host) +
    diskCredit(weights, disk) +
    sharedCredit(request, sharedBeyond(request.sharedEnd, candidate.overlap));
  const prefill = prefillOf(weights, request, candidate, credit);
  return prefill + decodeOf(weights, request, candidate, credit) + activeOf(weights, candidate);
}

/** The overlap score: the credit as it is before decay, in blocks. */
export function overlapScore(
  weights: CostWeights,
  request: Pick<CostRequest, 'sharedEnd' | 'sharedCacheMultiplier'>,
  overlap: LocalOverlap,
): number {
  return creditOf(weights, request, overlap, 1).total;
}

/** Shared blocks that a worker's own tiers don't hold. A fraction of a block is rounded, as in 7.2. */
export function sharedBeyond(sharedEnd: number, { device, host, disk }: LocalOverlap): number {
  return Math.max(0, sharedEnd - Math.round(Math.max(0, device + host + disk)));
}

function creditOf(
  weights: CostWeights,
  request: Pick<CostRequest, 'sharedEnd' | 'sharedCacheMultiplier'>,
  overlap: LocalOverlap,
  decay: number,
): Credit {
  const sharedBlocks = sharedBeyond(request.sharedEnd, overlap);
  const device = deviceCredit(weights, overlap.device, decay);
  const host = hostCredit(weights, overlap.host);
  const disk = diskCredit(weights, overlap.disk);
  const shared = sharedCredit(request, sharedBlocks);
  return { sharedBlocks, device, host, disk, shared, total: device + host + disk + shared };
}

function deviceCredit({ overlapScoreCredit }: CostWeights, blocks: number, decay: number): number {
  return overlapScoreCredit * decay * blocks;
}

function hostCredit({ hostCacheHitWeight }: CostWeights, blocks: number): number {
  return hostCacheHitWeight * blocks;
}

function diskCredit({ diskCacheHitWeight }: CostWeights, blocks: number): number {
  return diskCacheHitWeight * blocks;
}

function sharedCredit({ sharedCacheMultiplier }: Pick<CostRequest, 'sharedCacheMultiplier'>, blocks: number): number {
  return sharedCacheMultiplier * blocks;
}

function excessOf(weights: CostWeights, request: CostRequest, candidate: CostCandidate): number {
  if (!request.tracksPrefill || weights.overlapScoreCreditDecay === 0) return 0;
  return Math.max(0, candidate.activePrefillTokens - request.minActivePrefillTokens) / request.blockSize;
}

function decayOf(weights: CostWeights, request: CostRequest, excess: number): number {
  return 1 / (1 + (weights.overlapScoreCreditDecay * excess) / Math.max(1, request.requestBlocks));
}

function formOf(weights: CostWeights, request: CostRequest): CostTerms['form'] {
  return request.decodeRouter && !request.tracksPrefill && weights.overlapScoreCredit > 0 ? 'decode' : 'prefill';
}

function prefillOf(weights: CostWeights, request: CostRequest, candidate: CostCandidate, credit: number): number {
  if (formOf(weights, request) === 'decode') return 0;
  const raw = request.tracksPrefill ? candidate.rawPrefillBlocks : 0;
  return weights.prefillLoadScale * Math.max(0, raw - credit);
}

function decodeOf(weights: CostWeights, request: CostRequest, candidate: CostCandidate, credit: number): number {
  const { decodeBlocks } = candidate;
  return formOf(weights, request) === 'decode' ? Math.max(0, decodeBlocks - credit) : decodeBlocks;
}

function activeOf(weights: CostWeights, candidate: CostCandidate): number {
  return weights.decodeActiveRequestWeight * candidate.activeRequests;
}
