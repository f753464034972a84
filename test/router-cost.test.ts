// The formula of spec/kv-events.md 7.2 term by term, with numbers worked out by hand; then its properties, and the credit of shared
// blocks against a count of single blocks. The one deliberate difference to 7.2 is design.md 7's: shared blocks start at the deepest
// local tier.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type CostCandidate,
  type CostRequest,
  type CostTerms,
  type CostWeights,
  costOf,
  type LocalOverlap,
  overlapScore,
  priceOf,
  sharedBeyond,
} from '../src/router/cost.js';
import { validateSettings } from '../src/router/settings.js';

const weights: CostWeights = validateSettings();

/** A prompt of 20 blocks of 16 tokens, of which the shared cache holds none. */
const request: CostRequest = {
  requestBlocks: 20,
  blockSize: 16,
  sharedEnd: 0,
  sharedCacheMultiplier: 0.5,
  tracksPrefill: true,
  minActivePrefillTokens: 0,
  decodeRouter: false,
};

/** An idle worker that holds nothing of the prompt: 20 blocks to prefill, 20 to hold. */
const idle: CostCandidate = {
  overlap: { device: 0, host: 0, disk: 0 },
  rawPrefillBlocks: 20,
  decodeBlocks: 20,
  activePrefillTokens: 0,
  activeRequests: 0,
};

const holding = (device: number, host = 0, disk = 0): Pick<CostCandidate, 'overlap'> => ({
  overlap: { device, host, disk },
});

interface Flat extends Omit<CostTerms, 'credit' | 'overlap'> {
  readonly sharedBlocks: number;
  readonly device: number;
  readonly host: number;
  readonly disk: number;
  readonly shared: number;
  readonly credit: number;
}

function flat({ credit, overlap: _, ...terms }: CostTerms): Flat {
  const { total, ...parts } = credit;
  return { ...terms, ...parts, credit: total };
}

interface Row {
  readonly name: string;
  readonly weights?: Partial<CostWeights>;
  readonly request?: Partial<CostRequest>;
  readonly candidate?: Partial<CostCandidate>;
  readonly expected: Partial<Flat>;
}

const rows: readonly Row[] = [
  {
    name: 'cold and idle',
    // 20 to prefill + 20 to hold
    expected: {
      sharedBlocks: 0,
      device: 0,
      host: 0,
      disk: 0,
      shared: 0,
      credit: 0,
      excess: 0,
      decay: 1,
      form: 'prefill',
      prefill: 20,
      decode: 20,
      active: 0,
      cost: 40,
    },
  },
  {
    name: 'device blocks: overlap_score_credit · d',
    candidate: holding(8),
    // 1 · 8; 20 − 8 = 12; 12 + 20
    expected: { device: 8, credit: 8, prefill: 12, cost: 32 },
  },
  {
    name: 'device blocks at another credit',
    weights: { overlapScoreCredit: 0.25 },
    candidate: holding(8),
    // 0.25 · 8 = 2; 20 − 2 = 18; 18 + 20
    expected: { device: 2, credit: 2, prefill: 18, cost: 38 },
  },
  {
    name: 'host blocks: host_cache_hit_weight · h',
    candidate: holding(0, 4),
    // 0.75 · 4 = 3; 17 + 20
    expected: { host: 3, credit: 3, prefill: 17, cost: 37 },
  },
  {
    name: 'disk blocks: disk_cache_hit_weight · k',
    candidate: holding(0, 0, 4),
    // 0.25 · 4 = 1; 19 + 20
    expected: { disk: 1, credit: 1, prefill: 19, cost: 39 },
  },
  {
    name: 'shared blocks: shared_cache_multiplier · s, all of them for a cold worker',
    request: { sharedEnd: 12 },
    // 0.5 · 12 = 6; 14 + 20
    expected: { sharedBlocks: 12, shared: 6, credit: 6, prefill: 14, cost: 34 },
  },
  {
    name: 'shared blocks at the multiplier of the request',
    request: { sharedEnd: 12, sharedCacheMultiplier: 0.25 },
    // 0.25 · 12 = 3; 17 + 20
    expected: { sharedBlocks: 12, shared: 3, credit: 3, cost: 37 },
  },
  {
    name: 'shared blocks start at the deepest local tier (7.2 would credit 12 − 2 = 10)',
    request: { sharedEnd: 12 },
    candidate: holding(2, 4, 4),
    // d 2 + h 0.75 · 4 = 3 + k 0.25 · 4 = 1 + s 0.5 · (12 − 10) = 1: 7; 13 + 20
    expected: { sharedBlocks: 2, device: 2, host: 3, disk: 1, shared: 1, credit: 7, prefill: 13, cost: 33 },
  },
  {
    name: 'a shared hit that ends inside the local blocks credits nothing',
    request: { sharedEnd: 9 },
    candidate: holding(2, 4, 4),
    // 2 + 3 + 1 = 6; 14 + 20
    expected: { sharedBlocks: 0, shared: 0, credit: 6, cost: 34 },
  },
  {
    name: 'an overlap of 2.4 blocks is rounded to 2 for the start of the shared ones, not for its credit',
    request: { sharedEnd: 12 },
    candidate: holding(2.4),
    // 2.4 + 0.5 · (12 − 2) = 7.4; 12.6 + 20
    expected: { sharedBlocks: 10, device: 2.4, shared: 5, credit: 7.4, prefill: 12.6, cost: 32.6 },
  },
  {
    name: 'an overlap of 2.5 blocks is rounded to 3',
    request: { sharedEnd: 12 },
    candidate: holding(2.5),
    // 2.5 + 0.5 · (12 − 3) = 7; 13 + 20
    expected: { sharedBlocks: 9, shared: 4.5, credit: 7, cost: 33 },
  },
  {
    name: 'a negative overlap starts the shared blocks at 0',
    request: { sharedEnd: 12 },
    candidate: holding(-3),
    // −3 + 0.5 · 12 = 3; 17 + 20
    expected: { sharedBlocks: 12, device: -3, credit: 3, cost: 37 },
  },
  {
    name: 'credit above the raw prefill load leaves a prefill part of 0',
    weights: { overlapScoreCredit: 2 },
    candidate: holding(15),
    // 2 · 15 = 30; max(0, 20 − 30) = 0; 0 + 20
    expected: { device: 30, credit: 30, prefill: 0, decode: 20, cost: 20 },
  },
  {
    name: 'prefill_load_scale · (raw − credit)',
    weights: { prefillLoadScale: 3 },
    candidate: holding(8),
    // 3 · (20 − 8) = 36; 36 + 20
    expected: { credit: 8, prefill: 36, decode: 20, cost: 56 },
  },
  {
    name: 'a raw prefill load with 160 tokens at work: (160 + 320) / 16',
    candidate: { rawPrefillBlocks: 30, activePrefillTokens: 160, ...holding(8) },
    // 30 − 8 = 22; 22 + 20; no decay by default
    expected: { excess: 0, decay: 1, prefill: 22, cost: 42 },
  },
  {
    name: 'decode_active_request_weight · active requests',
    weights: { decodeActiveRequestWeight: 1.5 },
    candidate: { activeRequests: 4, decodeBlocks: 60 },
    // 1.5 · 4 = 6; 20 + 60 + 6
    expected: { prefill: 20, decode: 60, active: 6, cost: 86 },
  },
  {
    name: 'active requests weigh nothing by default',
    candidate: { activeRequests: 4 },
    expected: { active: 0, cost: 40 },
  },
  {
    name: 'decay = 1 / (1 + decay · excess / request blocks), on the device credit alone',
    weights: { overlapScoreCreditDecay: 2 },
    request: { minActivePrefillTokens: 160, sharedEnd: 16 },
    candidate: { activePrefillTokens: 640, rawPrefillBlocks: 60, ...holding(8, 4, 0) },
    // excess (640 − 160) / 16 = 30; 1 / (1 + 2 · 30 / 20) = 1/4; d 8 / 4 = 2, h 3, s 0.5 · 4 = 2: 7; 53 + 20
    expected: { excess: 30, decay: 0.25, device: 2, host: 3, shared: 2, credit: 7, prefill: 53, cost: 73 },
  },
  {
    name: 'the least busy worker keeps its whole credit',
    weights: { overlapScoreCreditDecay: 2 },
    request: { minActivePrefillTokens: 160 },
    candidate: { activePrefillTokens: 160, rawPrefillBlocks: 30, ...holding(8) },
    // 30 − 8 = 22; 22 + 20
    expected: { excess: 0, decay: 1, device: 8, cost: 42 },
  },
  {
    name: 'less work than the minimum is no excess',
    weights: { overlapScoreCreditDecay: 2 },
    request: { minActivePrefillTokens: 160 },
    candidate: holding(8),
    expected: { excess: 0, decay: 1, device: 8, cost: 32 },
  },
  {
    name: 'an excess of half a block counts',
    weights: { overlapScoreCreditDecay: 40 },
    candidate: { activePrefillTokens: 8, ...holding(8) },
    // 8 / 16 = 0.5; 1 / (1 + 40 · 0.5 / 20) = 1/2; 20 − 4 = 16; 16 + 20
    expected: { excess: 0.5, decay: 0.5, device: 4, cost: 36 },
  },
  {
    name: 'a request without blocks counts as one',
    weights: { overlapScoreCreditDecay: 1 },
    request: { requestBlocks: 0 },
    candidate: { activePrefillTokens: 48, rawPrefillBlocks: 3, ...holding(1) },
    // 48 / 16 = 3; 1 / (1 + 3 / 1) = 1/4; 3 − 0.25; + 20
    expected: { excess: 3, decay: 0.25, prefill: 2.75, cost: 22.75 },
  },
  {
    name: 'without prefill tracking there is neither decay nor a prefill load',
    weights: { overlapScoreCreditDecay: 2 },
    request: { tracksPrefill: false },
    candidate: { activePrefillTokens: 640, ...holding(8) },
    // max(0, 0 − 8) = 0; 0 + 20
    expected: { excess: 0, decay: 1, device: 8, form: 'prefill', prefill: 0, decode: 20, cost: 20 },
  },
  {
    name: 'decode router: max(0, decode − credit) + active part',
    weights: { decodeActiveRequestWeight: 1.5, overlapScoreCreditDecay: 2 },
    request: { tracksPrefill: false, decodeRouter: true, sharedEnd: 12 },
    candidate: { activeRequests: 4, activePrefillTokens: 640, decodeBlocks: 60, ...holding(8) },
    // credit 8 + 0.5 · 4 = 10, no decay; 60 − 10 = 50; 50 + 6
    expected: { decay: 1, credit: 10, form: 'decode', prefill: 0, decode: 50, active: 6, cost: 56 },
  },
  {
    name: 'decode router: credit above the decode load leaves 0',
    weights: { decodeActiveRequestWeight: 1 },
    request: { tracksPrefill: false, decodeRouter: true },
    candidate: { activeRequests: 2, decodeBlocks: 5, ...holding(8) },
    expected: { form: 'decode', decode: 0, active: 2, cost: 2 },
  },
  {
    name: 'decode router with a credit of 0: load alone',
    weights: { overlapScoreCredit: 0 },
    request: { tracksPrefill: false, decodeRouter: true, sharedCacheMultiplier: 0 },
    candidate: { decodeBlocks: 60, ...holding(8) },
    expected: { form: 'prefill', credit: 0, prefill: 0, decode: 60, cost: 60 },
  },
  {
    name: 'decode router that tracks prefill tokens: the prefill form',
    request: { decodeRouter: true },
    candidate: holding(8),
    expected: { form: 'prefill', prefill: 12, decode: 20, cost: 32 },
  },
];

for (const row of rows) {
  test(row.name, () => {
    const inputs = [
      { ...weights, ...row.weights },
      { ...request, ...row.request },
      { ...idle, ...row.candidate },
    ] as const;
    const terms = flat(costOf(...inputs));
    assert.is(priceOf(...inputs), terms.cost);
    for (const [name, value] of Object.entries(row.expected)) {
      const seen = terms[name as keyof Flat];
      if (typeof value === 'number') assert.ok(Math.abs(Number(seen) - value) < 1e-12, `${name}: ${seen} ≠ ${value}`);
      else assert.is(seen, value, name);
    }
  });
}

test('the overlap score is the credit without decay', () => {
  const overlap: LocalOverlap = { device: 8, host: 4, disk: 2 };
  const shared = { ...request, sharedEnd: 16 };
  // 8 + 0.75 · 4 + 0.25 · 2 + 0.5 · (16 − 14) = 8 + 3 + 0.5 + 1
  assert.is(overlapScore({ ...weights, overlapScoreCreditDecay: 9 }, shared, overlap), 12.5);
  // 0.5 · 8 + 3 + 0.5 + 1
  assert.is(overlapScore({ ...weights, overlapScoreCredit: 0.5 }, shared, overlap), 8.5);
});

test('a block on disk is worth the weight of the disk, even where the store would be worth more', () => {
  const shared = { ...request, sharedEnd: 10 };
  // 0.25 · 10 against 0.5 · 10: the price of starting shared blocks at the deepest local tier.
  assert.is(overlapScore(weights, shared, { device: 0, host: 0, disk: 10 }), 2.5);
  assert.is(overlapScore(weights, shared, { device: 0, host: 0, disk: 0 }), 5);
});

const blocks = fc.nat(64);
const weight = fc.double({ min: 0, max: 1, noNaN: true });
const anyOverlap = fc.record({ device: blocks, host: blocks, disk: blocks });
const anyWeights: fc.Arbitrary<CostWeights> = fc.record({
  overlapScoreCredit: fc.double({ min: 0, max: 4, noNaN: true }),
  overlapScoreCreditDecay: fc.double({ min: 0, max: 100, noNaN: true }),
  prefillLoadScale: fc.double({ min: 0, max: 4, noNaN: true }),
  decodeActiveRequestWeight: fc.double({ min: 0, max: 4, noNaN: true }),
  hostCacheHitWeight: weight,
  diskCacheHitWeight: weight,
});
const anyRequest: fc.Arbitrary<CostRequest> = fc.record({
  requestBlocks: fc.nat(1000),
  blockSize: fc.constantFrom(1, 16, 64),
  sharedEnd: fc.nat(256),
  sharedCacheMultiplier: weight,
  tracksPrefill: fc.boolean(),
  minActivePrefillTokens: fc.nat(100_000),
  decodeRouter: fc.boolean(),
});
const anyCandidate: fc.Arbitrary<CostCandidate> = fc.record({
  overlap: anyOverlap,
  rawPrefillBlocks: fc.double({ min: 0, max: 1000, noNaN: true }),
  decodeBlocks: blocks,
  activePrefillTokens: fc.nat(100_000),
  activeRequests: fc.nat(100),
});

/** What one block at `position` of the prompt is worth: that of the first tier that holds it, and no other. */
function worthAt(position: number, w: CostWeights, r: CostRequest, { device, host, disk }: LocalOverlap): number {
  if (position < device) return w.overlapScoreCredit;
  if (position < device + host) return w.hostCacheHitWeight;
  if (position < device + host + disk) return w.diskCacheHitWeight;
  return position < r.sharedEnd ? r.sharedCacheMultiplier : 0;
}

const near = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));

test('credit never counts a block twice: the score is the sum over single blocks', () => {
  const property = fc.property(anyWeights, anyRequest, anyOverlap, (w, r, overlap) => {
    let sum = 0;
    for (let position = 0; position < 512; position++) sum += worthAt(position, w, r, overlap);
    assert.ok(near(overlapScore(w, r, overlap), sum));
  });
  fc.assert(property, { numRuns: 500 });
});

test('local and shared blocks together are those that are held anywhere', () => {
  const property = fc.property(fc.nat(256), anyOverlap, (end, overlap) => {
    const local = overlap.device + overlap.host + overlap.disk;
    assert.is(local + sharedBeyond(end, overlap), Math.max(local, end));
  });
  fc.assert(property, { numRuns: 500 });
});

test('the terms add up, decay is in (0, 1], and no term is NaN or negative', () => {
  const property = fc.property(anyWeights, anyRequest, anyCandidate, (w, r, candidate) => {
    const terms = costOf(w, r, candidate);
    const { credit } = terms;
    assert.ok(near(credit.total, credit.device + credit.host + credit.disk + credit.shared));
    assert.ok(near(terms.cost, terms.prefill + terms.decode + terms.active));
    assert.ok(terms.decay > 0 && terms.decay <= 1);
    for (const value of Object.values(flat(terms))) assert.ok(typeof value === 'string' || value >= 0);
  });
  fc.assert(property, { numRuns: 500 });
});

test('the price is the cost, to the last bit', () => {
  const property = fc.property(anyWeights, anyRequest, anyCandidate, (w, r, candidate) => {
    assert.is(priceOf(w, r, candidate), costOf(w, r, candidate).cost);
  });
  fc.assert(property, { numRuns: 2000 });
});

test('more shared blocks never raise the cost', () => {
  const property = fc.property(anyWeights, anyRequest, anyCandidate, blocks, (w, r, candidate, more) => {
    const before = costOf(w, r, candidate).cost;
    assert.ok(costOf(w, { ...r, sharedEnd: r.sharedEnd + more }, candidate).cost <= before + 1e-9);
  });
  fc.assert(property, { numRuns: 500 });
});

test('more blocks in a local tier never raise the cost where that tier is worth as much as the shared cache', () => {
  const tier = fc.constantFrom('device', 'host', 'disk');
  const property = fc.property(anyWeights, anyRequest, anyCandidate, tier, blocks, (w, r, candidate, name, more) => {
    const before = costOf(w, r, candidate);
    const { device, host, disk } = worthOfTiers(w, before.decay);
    const multiplier = Math.min(r.sharedCacheMultiplier, { device, host, disk }[name]);
    const fair = { ...r, sharedCacheMultiplier: multiplier };
    const grown = { ...candidate, overlap: { ...candidate.overlap, [name]: candidate.overlap[name] + more } };
    assert.ok(costOf(w, fair, grown).cost <= costOf(w, fair, candidate).cost + 1e-9);
  });
  fc.assert(property, { numRuns: 500 });
});

function worthOfTiers(w: CostWeights, decay: number): LocalOverlap {
  return { device: w.overlapScoreCredit * decay, host: w.hostCacheHitWeight, disk: w.diskCacheHitWeight };
}

test('more excess load never raises the credit', () => {
  const property = fc.property(anyWeights, anyRequest, anyCandidate, fc.nat(100_000), (w, r, candidate, more) => {
    const busier = { ...candidate, activePrefillTokens: candidate.activePrefillTokens + more };
    assert.ok(costOf(w, r, busier).decay <= costOf(w, r, candidate).decay);
    assert.ok(costOf(w, r, busier).cost >= costOf(w, r, candidate).cost - 1e-9);
  });
  fc.assert(property, { numRuns: 500 });
});

test.run();
