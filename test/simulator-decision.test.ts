// "Why this worker?": sums add up, the runner-up is compared term by term, and every sentence says what was.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { costOf } from '../src/router/cost.js';
import type { CandidateView } from '../src/router/decision.js';
import type { PolicyTerms } from '../src/router/policy.js';
import type { DecisionAccount, RequestRow } from '../src/sim/observed/types.js';
import { columnsOf, noteOf, roleOf, sorted } from '../src/web/simulator/decision/candidates.js';
import {
  amountText,
  choiceSentence,
  decidingSentence,
  foundSentences,
  hindsight,
  insteadSentence,
  priceText,
  reasonTexts,
  signedText,
} from '../src/web/simulator/decision/sentences.js';
import { barScale, compared, piecesOf, type Sum, sumOf } from '../src/web/simulator/decision/sums.js';

const WEIGHTS = {
  overlapScoreCredit: 1,
  overlapScoreCreditDecay: 0,
  prefillLoadScale: 1,
  decodeActiveRequestWeight: 2,
  hostCacheHitWeight: 0.75,
  diskCacheHitWeight: 0.25,
};
const REQUEST = {
  requestBlocks: 100,
  blockSize: 16,
  sharedEnd: 60,
  sharedCacheMultiplier: 0.5,
  tracksPrefill: true,
  minActivePrefillTokens: 0,
  decodeRouter: false,
};
const terms = (device: number, waiting = 0, activeRequests = 3): PolicyTerms => ({
  kind: 'cost',
  ...costOf(WEIGHTS, REQUEST, {
    overlap: { device, host: 0, disk: 0 },
    rawPrefillBlocks: (waiting + 1600) / 16,
    decodeBlocks: 200,
    activePrefillTokens: waiting,
    activeRequests,
  }),
});
const facts = (prefillTokens: number, blockSize: number | null = 16) => ({
  prefillTokens,
  promptTokens: 1600,
  blockSize,
});
const valuesOf = (sum: Sum) => Object.fromEntries(sum.terms.map(({ key, value }) => [key, value]));
const total = (sum: Sum) => sum.terms.reduce((all, { value }) => all + value, 0);

// ---- sums ----

test('a cost is load less credits, and what else weighs; it adds up', () => {
  const sum = sumOf(terms(40, 320), facts(320))!;
  assert.equal(valuesOf(sum), { before: 120, device: -40, shared: -10, decode: 200, active: 6 });
  assert.is(sum.total, 276);
  assert.is(total(sum), 276);
  assert.is(sum.unit, 'blocks');
});

test('credit beyond the load is given back, where a block’s size tells it', () => {
  const rich: PolicyTerms = { ...(terms(40) as Extract<PolicyTerms, { kind: 'cost' }>), prefill: 0, cost: 206 };
  const credit = { sharedBlocks: 0, device: 130, host: 0, disk: 0, shared: 0, total: 130 };
  const sum = sumOf({ ...rich, credit } as PolicyTerms, facts(0))!;
  assert.equal(valuesOf(sum), { before: 100, device: -130, unused: 30, decode: 200, active: 6 });
  assert.is(total(sum), sum.total);
  const blind = sumOf({ ...rich, credit } as PolicyTerms, facts(0, null))!;
  assert.is(total(blind), blind.total, 'without it the load counts as just as much');
});

test('a time is queue, fetch and prefill', () => {
  const sum = sumOf(
    { kind: 'time', queue: 10, fetch: 24, prefill: 90, time: 124, sharedTokens: 320, storeSlower: false },
    facts(0),
  )!;
  assert.equal(valuesOf(sum), { queue: 10, fetch: 24, prefill: 90 });
  assert.is(total(sum), sum.total);
  assert.is(sum.unit, 'ms');
  assert.is(sumOf(null, facts(0)), null);
});

test('bars: solid is the price, hatched what was taken off, on one scale', () => {
  const [a, b] = [sumOf(terms(40, 320), facts(320))!, sumOf(terms(0), facts(0))!];
  const scale = barScale([a, b, null]);
  assert.is(scale, 326, '120 + 200 + 6');
  for (const sum of [a, b]) {
    const pieces = piecesOf(sum, scale);
    const solid = pieces.filter(({ kind }) => kind === 'part').reduce((all, { from, to }) => all + to - from, 0);
    assert.ok(Math.abs(solid * scale - sum.total) < 1e-9);
    pieces.forEach(({ from }, i) => {
      assert.ok(Math.abs(from - (pieces[i - 1]?.to ?? 0)) < 1e-12, 'one after the other');
    });
    assert.ok(pieces.findLastIndex(({ kind }) => kind === 'part') < pieces.length);
  }
});

test('terms stand side by side in the order of the sum, missing ones as nothing', () => {
  const rows = compared(sumOf(terms(0), facts(0))!, sumOf(terms(40, 320), facts(320))!);
  assert.equal(
    rows.map(({ name, chosen, other }) => [name, chosen, other]),
    [
      ['To compute', 100, 120],
      ['− on its GPU', 0, -40],
      ['− in the store', -30, -10],
      ['Decode load', 200, 200],
      ['Active requests', 6, 6],
    ],
  );
  assert.is(compared(sumOf(terms(0), facts(0))!, null)[0]!.other, null);
});

// ---- sentences ----

const ROW: RequestRow = {
  request: 4211,
  worker: 1,
  promptTokens: 1600,
  outputTokens: 20,
  at: 1000,
  begunAt: 1010,
  fetchedAt: 1030,
  firstTokenAt: 1120,
  endedAt: 1500,
  full: 100,
  gpu: 68,
  dram: 15,
  ssd: 5,
  credited: 20,
  creditError: 0,
  cost: 12,
  runnerUpCost: 80.5,
  runnerUp: 3,
};
const worker = (id: number) => ({ id, dpRank: 0 });
const account = (decision: Partial<DecisionAccount['decision']>, costUnit: DecisionAccount['costUnit'] = 'blocks') =>
  ({
    costUnit,
    decision: {
      worker: worker(1),
      policy: 'kv',
      fallback: false,
      cost: 12,
      runnerUp: { worker: worker(3), rank: 3, cost: 80.5 },
      ...decision,
    },
  }) as DecisionAccount;

test('the choice is one sentence, whatever the policy', () => {
  for (const [given, unit, words] of [
    [{}, 'blocks', 'Worker 1 was cheapest, at 12 blocks; next was worker 3 at 80.5 blocks.'],
    [{ policy: 'ttft', cost: 120 }, 'ms', null],
    [{ runnerUp: null }, 'blocks', 'Worker 1 was the only candidate.'],
    [{ policy: 'round-robin' }, 'turns', 'It was worker 1’s turn; worker 3 is next.'],
    [{ policy: 'random' }, 'none', 'Worker 1 was drawn at random.'],
    [
      { cost: 80.5 },
      'blocks',
      'Worker 1 was as cheap as worker 3, at 80.5 blocks; of equals the less busy one wins, then a draw.',
    ],
    [{ cost: 90 }, 'blocks', 'Worker 1 was drawn by temperature at 90 blocks, although worker 3 was at 80.5 blocks.'],
    [{ fallback: true }, 'blocks', 'kv priced nobody, so the least loaded one was taken: worker 1.'],
  ] as const)
    if (words !== null) assert.is(choiceSentence(account(given, unit)), words);
  const soonest = account({ policy: 'ttft', cost: 120, runnerUp: { worker: worker(3), rank: 3, cost: 240 } }, 'ms');
  assert.is(
    choiceSentence(soonest),
    'Worker 1 promised the first token soonest, at 120 ms; next was worker 3 at 240 ms.',
  );
});

test('what told most is the largest gain of the chosen one, and what stood against it', () => {
  const told = (a: PolicyTerms, b: PolicyTerms) => decidingSentence(sumOf(a, facts(0))!, sumOf(b, facts(0))!);
  assert.is(told(terms(40), terms(0, 320)), 'What told most: 40 blocks less to compute, with 20 blocks more credit.');
  assert.is(
    told(terms(40, 0, 8), terms(0)),
    'What told most: 20 blocks less to compute, with 20 blocks more credit, against 10 blocks more for active requests.',
  );
  const time = (queue: number, fetch: number): PolicyTerms => ({
    ...{ kind: 'time', queue, fetch, prefill: 7, time: queue + fetch + 7, sharedTokens: 0, storeSlower: false },
  });
  assert.is(told(time(1, 0), time(31, 0)), 'What told most: 30 ms less waiting in its queue.');
  assert.is(told(time(1, 0), time(1, 0)), null);
});

test('the counterfactual says what it would have cost, or saved', () => {
  const other = { ...ROW, worker: 3, firstTokenAt: 1240, gpu: 0, dram: 0, ssd: 0 };
  assert.is(
    insteadSentence(ROW, other),
    'Simulated anew with everything before it equal: on worker 3 its first token would have come after 240 ms instead of 120 ms (120 ms later), 100 blocks computed instead of 12.',
  );
  assert.match(insteadSentence(ROW, { ...other, firstTokenAt: 1100 }), '(20 ms sooner)');
  assert.match(insteadSentence(ROW, { ...other, firstTokenAt: 1120 }), '(no difference)');
  assert.equal(
    [1240, 1100, 1120.2, NaN].map((firstTokenAt) => hindsight(ROW, { ...other, firstTokenAt })),
    ['right', 'wrong', 'equal', 'unknown'],
  );
  assert.is(hindsight(ROW, null), 'unknown');
});

test('what the worker found stands against what the router counted on', () => {
  const found = (row: Partial<RequestRow>, device = 68) =>
    foundSentences({ ...ROW, ...row }, { blocks: { device, host: 0, disk: 0, shared: 20, request: 101 } }).join(' ');
  assert.is(
    found({}),
    'The router knew of 68 blocks on the GPU, and the worker found as many. It counted on 20 blocks of the store, exactly what could be restored. ' +
      'It restored 20 blocks (15 from memory, 5 from SSD) and computed 12 blocks.',
  );
  assert.match(found({ creditError: 4 }), '20 blocks of the store where 24 could be restored: 4 short.');
  assert.match(found({ creditError: -4 }), '20 blocks of the store where only 16 could still be restored: 4 stale.');
  assert.match(found({ credited: 0, creditError: 0 }), 'nothing from the store, and nothing was to be had');
  assert.match(found({}, 70), 'knew of 70 blocks on the GPU; when the request began the worker found 68.');
});

test('reasons come in words with their text, and name few of many missing objects', () => {
  const missing = ['a', 'b', 'c', 'd', 'e'];
  const reasons = [{ code: 'object-missing' as const, block: 41, group: 0, missing, text: 'block 41 lacks 5 objects' }];
  assert.equal(reasonTexts({ reasons, sharedReason: null }), [
    {
      lead: 'The next block is not in the store',
      text: 'Block 41 lacks 5 objects.',
      missing: ['a', 'b', 'c', 'and 2 more'],
    },
  ]);
  assert.equal(reasonTexts({ reasons: null, sharedReason: null }), []);
});

test('amounts keep two digits and their sign', () => {
  assert.equal([0, 12, 12.345, 1234.5, -0.001, -3.2].map(amountText), ['0', '12', '12.35', '1,234.5', '0', '−3.2']);
  assert.is(amountText(1.999), '2');
  assert.equal([5, 0, -5].map(signedText), ['+5', '0', '−5']);
  assert.is(priceText(1, 'blocks'), '1 block');
});

// ---- candidates ----

const candidate = (rank: number, cost: number | null): CandidateView => ({
  worker: worker(rank),
  rank,
  cost,
  notEligible: cost === null ? { code: 'resting', text: 'it rests' } : null,
  terms: cost === null ? null : terms(rank),
  load: { activeRequests: 2, prefillTokens: 100 * rank, decodeBlocks: 5 },
  blocks: { device: rank, host: 0, disk: 0, shared: 0, request: 100 },
  admission: 'admitted',
  zero: { device: null, host: null, disk: null, shared: { code: 'object-missing', text: '' } },
});

test('candidates are ordered by any column, those without a value last', () => {
  const all = [candidate(0, 5), candidate(1, null), candidate(2, 3), candidate(3, 5)];
  const [, cost] = columnsOf('blocks', 'blocks');
  const ranks = (descending: boolean) => sorted(all, cost!, descending).map(({ rank }) => rank);
  assert.equal(ranks(false), [2, 0, 3, 1]);
  assert.equal(ranks(true), [0, 3, 2, 1]);
  assert.equal(
    columnsOf('blocks', 'blocks').map(({ value }) => value(all[2]!)),
    [2, 3, 100 - 2 - 29, 200, 6, 2, 0, 2, 200, 5],
  );
  assert.is(columnsOf(null, 'turns').length, 7);
});

test('a candidate’s remark says what became of it', () => {
  const decision = { rank: 2, runnerUp: { worker: worker(0), rank: 0, cost: 5 } };
  assert.equal(
    [candidate(2, 3), candidate(0, 5), candidate(1, null), candidate(3, 9)].map((each) => roleOf(each, decision)),
    ['chosen', 'runner-up', 'not eligible', ''],
  );
  assert.is(noteOf(candidate(2, 3)), 'No store credit: the next block is not in the store');
  assert.match(noteOf(candidate(1, null)), 'Not eligible: it rests; no store credit');
});

test.run();
