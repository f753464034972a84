// Decisions end to end, from the bytes that workers and master send: who is chosen, at what price and with which terms, what could have been,
// and why the store gives nothing; then who may serve a request at all, every policy, and what happens when a policy fails.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { blockHashes } from '../src/core/local-hash.js';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import { proveTextOnly } from '../src/events/request.js';
import type { CandidateView, Decision } from '../src/router/decision.js';
import type { PolicyOption } from '../src/router/policies.js';
import type { PolicyCandidate, PolicyRequest } from '../src/router/policy-custom.js';
import type { RouteRequest } from '../src/router/prompt.js';
import { Router } from '../src/router/router.js';
import type { RouterOptions } from '../src/router/router-options.js';
import { RouterPool, SHARED } from './support/router-pool.js';

const explain = true;

/** The view of a worker's rank in an explained decision. */
function viewOf(decision: Decision, id: number | string): CandidateView {
  const view = decision.candidates!.find(({ worker }) => worker.id === id);
  assert.ok(view, `worker ${id} is not in the explanation`);
  return view!;
}

/** The error that `work` ends in. */
function errorOf(work: () => unknown): MoonrouteError {
  try {
    work();
  } catch (error) {
    if (error instanceof MoonrouteError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

const idOf = ({ worker }: Decision) => worker.id;

// ---- blocks, terms, runner-up ----

test('the worker that holds the prompt is chosen, with every term of its cost and the runner-up', async () => {
  const pool = await RouterPool.shared(3);
  const prompt = pool.prompt(1, 10);
  pool.announce(1, prompt);
  pool.announce(2, prompt, { end: 4 });
  const decision = pool.route(prompt);
  assert.equal(decision.worker, { id: 1, dpRank: 0 });
  assert.is(decision.policy, 'kv');
  assert.is(decision.fallback, false);
  assert.equal(decision.blocks, { device: 10, host: 0, disk: 0, shared: 0, request: 11 });
  // 161 tokens are 10.0625 blocks; 10 of them are held, and 11 will be decoded from.
  assert.equal(decision.terms, {
    kind: 'cost',
    overlap: { device: 10, host: 0, disk: 0 },
    credit: { sharedBlocks: 0, device: 10, host: 0, disk: 0, shared: 0, total: 10 },
    excess: 0,
    decay: 1,
    form: 'prefill',
    prefill: 0.0625,
    decode: 11,
    active: 0,
    cost: 11.0625,
  });
  assert.is(decision.cost, 11.0625);
  assert.equal(decision.runnerUp, { worker: { id: 2, dpRank: 0 }, rank: 2, cost: 17.0625 });
  assert.is(decision.bestReachable, 10);
  assert.is(decision.achieved, 10);
  assert.equal([decision.candidates, decision.reasons], [null, null]);
});

test('tiers go on where the one before ends: device, then host, then disk with the external tier, then the store', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 12);
  pool.announce(0, prompt);
  pool.store(prompt);
  pool.announce(0, prompt, { first: 3, end: 5, medium: 'CPU' });
  pool.announce(0, prompt, { first: 5, end: 6, medium: 'DISK' });
  pool.announce(0, prompt, { first: 6, end: 8, medium: 'REMOTE' });
  pool.evict(0, prompt, { first: 3 });
  const { blocks, terms, achieved, bestReachable } = pool.route(prompt);
  assert.equal(blocks, { device: 3, host: 2, disk: 3, shared: 4, request: 13 });
  assert.is(terms?.kind, 'cost');
  if (terms?.kind !== 'cost') return;
  // 3 + 0.75 · 2 + 0.25 · 3 + 0.5 · 4
  assert.equal(terms.credit, { sharedBlocks: 4, device: 3, host: 1.5, disk: 0.75, shared: 2, total: 7.25 });
  assert.equal([achieved, bestReachable], [12, 12]);
});

test('a block that holds the last token never counts, nor its credit: the engine computes that token', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 10);
  pool.announce(0, prompt);
  pool.store(prompt);
  const tokens = prompt.tokens.subarray(0, 160);
  const held = pool.route(prompt, { tokens });
  assert.equal(held.blocks, { device: 9, host: 0, disk: 0, shared: 0, request: 10 });
  assert.is(held.sharedReason?.code, 'held-locally');
  assert.is(pool.router.workers()[0]!.ranks[0]!.load.prefillTokens, 16);
  pool.evict(0, prompt);
  assert.is(pool.route(prompt, { tokens }).blocks.shared, 9);
});

test('shared credit enters the cost alone: a lease counts the tokens that are not local', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 10);
  pool.offload(0, prompt);
  const { blocks, lease } = pool.route(prompt);
  assert.is(blocks.shared, 10);
  assert.equal(pool.router.workers()[0]!.ranks[0]!.load, { activeRequests: 1, prefillTokens: 161, decodeBlocks: 11 });
  lease.prefilled(1);
  assert.equal(pool.router.workers()[0]!.ranks[0]!.load, { activeRequests: 1, prefillTokens: 0, decodeBlocks: 11 });
  lease.complete(2);
  assert.equal(pool.router.workers()[0]!.ranks[0]!.load, { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 });
});

test('what the router holds is balanced against load: the best reachable hit may not be the achieved one', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 10);
  const other = pool.prompt(2, 40);
  pool.announce(0, prompt);
  const leases = [pool.route(other, { allowed: [0] }).lease, pool.route(other, { allowed: [0] }).lease];
  const decision = pool.route(prompt);
  assert.is(idOf(decision), 1);
  assert.equal([decision.achieved, decision.bestReachable], [0, 10]);
  assert.equal(decision.runnerUp!.worker, { id: 0, dpRank: 0 });
  for (const lease of leases) lease.complete(1);
  const { achievedBlocks, bestReachableBlocks, decisions } = pool.router.stats().decisions;
  assert.equal([decisions, achievedBlocks, bestReachableBlocks], [3, 0, 10]);
});

test('the decay of a busy worker’s overlap reaches the decision', async () => {
  const pool = await RouterPool.open({ settings: { overlapScoreCreditDecay: 1 } });
  for (const id of [0, 1]) pool.add(id);
  const prompt = pool.prompt(1, 10);
  pool.announce(0, prompt);
  const { lease } = pool.route(pool.prompt(2, 11), { allowed: [0] });
  const { terms } = pool.route(prompt, { allowed: [0], explain });
  assert.is(terms?.kind, 'cost');
  if (terms?.kind === 'cost')
    assert.equal([terms.excess, terms.decay], [0, 1], 'the only candidate is its own minimum');
  const { candidates } = pool.route(prompt, { explain });
  const busy = candidates![0]!.terms;
  if (busy?.kind === 'cost') assert.equal([busy.excess, busy.decay], [11.125, 1 / (1 + 11.125 / 11)]);
  lease.complete(1);
});

// ---- reasons ----

interface ReasonRow {
  readonly name: string;
  readonly code: string;
  readonly request?: RouteRequest;
  readonly prepare?: (pool: RouterPool) => void;
}

const reasonRows: readonly ReasonRow[] = [
  { name: 'nobody said that it is text alone', code: 'not-proven', request: { textOnly: false } },
  { name: 'its body is not proven', code: 'not-proven', request: { body: {} } },
  { name: 'its body has an opaque field', code: 'opaque-input', request: { body: { multi_modal_data: {} } } },
  { name: 'the request gives shared blocks no worth', code: 'multiplier-zero', request: { sharedCacheMultiplier: 0 } },
  { name: 'an adapter that nobody lists', code: 'unknown-adapter', request: { loraName: 'nobody' } },
  { name: 'a salt that is no well-formed text', code: 'ineligible', request: { cacheSalt: '\ud800' } },
  { name: 'an empty prompt', code: 'empty-prompt', request: { tokens: [] } },
  { name: 'a prompt without a full block', code: 'too-short', request: { tokens: [1, 2, 3] } },
  { name: 'another prompt', code: 'not-learned', request: { tokens: Array.from({ length: 40 }, (_, i) => i) } },
  { name: 'the objects have gone', code: 'object-missing', prepare: (pool) => pool.unstore(pool.prompt(1, 10)) },
  {
    name: 'the master’s stream was lost',
    code: 'residency-empty',
    prepare: ({ router }) => router.storeStreamLost('disconnect'),
  },
  { name: 'the rank holds it all', code: 'held-locally', prepare: (pool) => pool.announce(0, pool.prompt(1, 10)) },
  { name: 'no contract', code: 'no-contract', prepare: (pool) => pool.add(0, { contract: null }) },
  {
    name: 'a contract that was refused',
    code: 'contract-invalid',
    prepare: (pool) => pool.add(0, { contract: { invalid: 'ranks disagree' } }),
  },
];

for (const { name, code, request = {}, prepare } of reasonRows) {
  test(`no shared credit: ${name}: ${code}`, async () => {
    const pool = await RouterPool.shared(1);
    const prompt = pool.prompt(1, 10);
    pool.offload(0, prompt);
    pool.store(pool.prompt(3, 1)); // so that something is resident
    assert.is(pool.route(prompt).blocks.shared, 10);
    prepare?.(pool);
    const decision = pool.route(prompt, { ...request, explain });
    assert.is(decision.blocks.shared, 0);
    assert.is(decision.sharedReason?.code, code);
    assert.ok(decision.sharedReason!.text.length > 0);
    assert.equal(viewOf(decision, 0).zero.shared, decision.sharedReason);
    assert.is(pool.router.stats().decisions.zeroCredit[code], 1);
    assert.ok(decision.reasons!.length > 0);
  });
}

test('a proven body and textOnly together are credited', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 10);
  pool.offload(0, prompt);
  const body = {};
  proveTextOnly(body);
  assert.is(pool.route(prompt, { body }).blocks.shared, 10);
  assert.is(pool.route(prompt, { body, textOnly: false }).blocks.shared, 0);
});

test('a router without a shared cache says why on every decision', async () => {
  const pool = await RouterPool.open();
  pool.add('a');
  const decision = pool.route(pool.prompt(1, 3), { explain });
  assert.is(decision.sharedReason?.code, 'shared-cache-off');
  assert.is(pool.router.contract, null);
  assert.is(pool.router.stats().cache, null);
  const stored = pool.store(pool.prompt(1, 3));
  assert.is(stored.fate, 'no-cache');
  assert.match(stored.detail!, /set shared_cache_type/);
  const token = pool.router.beginReconcile();
  assert.is(token.voided, 'no-cache');
  assert.equal(pool.router.reconcile(token, [], { s0: 0, firstSequence: null }), {
    accepted: false,
    reason: 'no-cache',
  });
  pool.router.storeStreamLost('disconnect');
  assert.is(pool.router.generation, 0);
});

test('a reconcile through the router fills the store’s part', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 10);
  pool.announce(0, prompt);
  pool.evict(0, prompt);
  const token = pool.router.beginReconcile();
  const result = pool.router.reconcile(token, prompt.keys(pool.contract), { s0: 0, firstSequence: null });
  assert.ok(result.accepted);
  assert.is(pool.route(prompt).blocks.shared, 10);
});

test('explained: every rank with terms, load and a reason for each tier that gives nothing', async () => {
  const pool = await RouterPool.shared(3);
  const prompt = pool.prompt(1, 6);
  pool.announce(1, prompt, { end: 2 });
  pool.announce(1, prompt, { first: 2, end: 3, medium: 'CPU' });
  pool.announce(2, prompt);
  pool.store(prompt);
  pool.add(0, { draining: true });
  const decision = pool.route(prompt, { explain });
  assert.is(decision.candidates!.length, 3);
  const [out, part, whole] = [0, 1, 2].map((id) => viewOf(decision, id));
  assert.is(out!.notEligible?.code, 'draining');
  assert.equal([out!.cost, out!.terms], [null, null]);
  assert.equal(out!.zero.device?.code, 'not-held');
  assert.is(part!.notEligible, null);
  assert.equal(part!.blocks, { device: 2, host: 1, disk: 0, shared: 3, request: 7 });
  assert.equal(part!.zero, {
    device: null,
    host: null,
    disk: { code: 'not-held', text: 'block 3 of the prompt is not known to be on its disk or in its external tier' },
    shared: null,
  });
  assert.equal(part!.load, { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 });
  assert.is(part!.admission, 'admitted');
  assert.is(whole!.zero.host?.code, 'nothing-left');
  assert.equal(whole!.terms, decision.terms);
  assert.is(whole!.cost, decision.cost);
  assert.is(decision.runnerUp!.cost, part!.cost);
});

test('explained: a prompt without a full block, and one whose names can’t be hashed', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 6);
  pool.announce(0, prompt);
  const short = pool.route(prompt, { tokens: prompt.tokens.subarray(0, 16), explain });
  assert.is(viewOf(short, 0).zero.device?.code, 'too-short');
  const unhashable = pool.route(prompt, { loraName: 'x'.repeat(5000), explain });
  assert.is(viewOf(unhashable, 0).zero.device?.code, 'unhashable');
});

test('explaining changes nothing: the same decisions with and without', async () => {
  const run = async (explained: boolean) => {
    const pool = await RouterPool.shared(4);
    const prompts = [1, 2, 3].map((name) => pool.prompt(name, name * 5));
    prompts.forEach((prompt, i) => {
      pool.announce(i, prompt);
    });
    return Array.from({ length: 30 }, (_, i) => {
      const { worker, cost, runnerUp } = pool.route(prompts[i % 3]!, { explain: explained });
      return { worker, cost, runnerUp };
    });
  };
  assert.equal(await run(true), await run(false));
});

// ---- prompts ----

test('tokens as a list, and local hashes with their count, decide like a Uint32Array', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 10);
  pool.offload(0, prompt);
  pool.announce(1, prompt, { end: 4 });
  const plain = pool.route(prompt, { explain });
  const asList = pool.route(prompt, { tokens: [...prompt.tokens], explain });
  const blocksOf = (decision: Decision) => decision.candidates!.map(({ blocks }) => blocks);
  assert.equal(blocksOf(asList), blocksOf(plain));
  const localHashes = blockHashes(prompt.tokens, 16);
  const byHash = pool.router.route({ localHashes, tokenCount: prompt.tokens.length, textOnly: true, explain });
  assert.equal(blocksOf(byHash), blocksOf(plain));
  // More hashes than full blocks before the last token are left alone.
  const shorter = pool.router.route({ localHashes, tokenCount: 33, textOnly: true });
  assert.is(shorter.bestReachable, 2);
});

test('LoRA name and salt are part of a block’s name', async () => {
  const pool = await RouterPool.shared(2);
  for (const id of [0, 1]) pool.add(id, { adapters: ['adapter'] });
  const prompt = pool.prompt(1, 5);
  pool.announce(0, prompt, { fields: { lora_name: 'adapter', lora_id: 1, extra_keys: Array(5).fill(['adapter']) } });
  const salted = pool.prompt(2, 5);
  pool.announce(1, salted, { fields: { cache_salt: 'tenant' } });
  assert.is(pool.route(prompt).bestReachable, 0);
  assert.is(pool.route(prompt, { loraName: 'adapter' }).bestReachable, 5);
  assert.is(pool.route(salted).bestReachable, 0);
  assert.is(pool.route(salted, { cacheSalt: 'other' }).bestReachable, 0);
  assert.is(pool.route(salted, { cacheSalt: 'tenant' }).bestReachable, 5);
});

test('salted and adapter prompts are credited from the store under the very names that they were learned with', async () => {
  const pool = await RouterPool.shared(1);
  pool.add(0, { adapters: ['adapter'] });
  const prompt = pool.prompt(1, 5);
  pool.announce(0, prompt, {
    fields: {
      lora_name: 'adapter',
      lora_id: 1,
      extra_keys: [['adapter', 'dynamo-cache-salt:tenant'], ...Array(4).fill(['adapter'])],
    },
  });
  pool.store(prompt);
  pool.evict(0, prompt);
  const shared = (request: RouteRequest) => pool.route(prompt, request).blocks.shared;
  assert.is(shared({ loraName: 'adapter', cacheSalt: 'tenant' }), 5);
  assert.is(shared({ loraName: 'adapter' }), 0);
  assert.is(shared({ cacheSalt: 'tenant' }), 0);
  assert.is(shared({}), 0);
});

test('a prompt of pairs (Eagle): its blocks’ windows reach into the next one, and there is no shared credit', async () => {
  const pool = await RouterPool.open({ ...SHARED, speculative: true });
  pool.add(0);
  const prompt = pool.prompt(1, 5);
  const pairs = Array.from({ length: 80 }, (_, i) => [prompt.tokens[i]!, prompt.tokens[i + 1]!]);
  const { stored, learned } = pool.announce(0, prompt, { fields: { token_ids: pairs } });
  assert.equal([stored, learned], [5, 0]);
  const decision = pool.route(prompt);
  assert.is(decision.blocks.device, 5);
  assert.is(decision.sharedReason?.code, 'speculative');
});

const refusedRequests: readonly (readonly [string, RouteRequest])[] = [
  ['neither tokens nor hashes', {}],
  ['tokens that are no list', { tokens: 'text' as unknown as number[] }],
  ['both', { tokens: [1], localHashes: new BigUint64Array(1), tokenCount: 20 }],
  ['hashes without a count', { localHashes: new BigUint64Array(1) }],
  ['hashes that are no 64-bit numbers', { localHashes: [1n] as unknown as BigUint64Array, tokenCount: 20 }],
  ['a time that is no number', { tokens: [1], now: Number.NaN }],
  ['a LoRA name that is no text', { tokens: [1], loraName: 7 as unknown as string }],
  ['a salt that is no text', { tokens: [1], cacheSalt: {} as unknown as string }],
  ['half a token expected', { tokens: [1], expectedOutputTokens: 0.5 }],
  ['no request', null as unknown as RouteRequest],
  ['a text in place of a request', 'text' as unknown as RouteRequest],
  ['signed 32-bit tokens', { tokens: new Int32Array(40) as unknown as number[] }],
  ['a token past 32 bits', { tokens: [1, 2 ** 32] }],
  ['a token below 0', { tokens: [1, -1] }],
  ['half a token', { tokens: [0.5] }],
  ['a token that is no number', { tokens: [Number.NaN] }],
  ['a token that is a BigInt', { tokens: [1n] as unknown as number[] }],
  ['a token that is a text', { tokens: ['1'] as unknown as number[] }],
  ['nothing among the tokens', { tokens: [1, undefined as unknown as number, 3] }],
  ['a list that is all holes', { tokens: new Array<number>(2 ** 32 - 1) }],
  ['a time that is a text', { tokens: [1], now: '5' as unknown as number }],
  ['a time that can’t be shown', { tokens: [1], now: Object.create(null) as number }],
  ['one id allowed', { tokens: [1], allowed: 'abc' }],
  ['a number allowed', { tokens: [1], allowed: 5 as unknown as string[] }],
  ['an object allowed', { tokens: [1], allowed: {} as unknown as string[] }],
  ['half an id allowed', { tokens: [1], allowed: [0.5] }],
  ['an object among the allowed', { tokens: [1], allowed: [Object.create(null) as string] }],
];

for (const [name, request] of refusedRequests) {
  test(`refused: ${name}`, async () => {
    const pool = await RouterPool.shared(1);
    const error = errorOf(() => pool.router.route(request));
    assert.is(error.code, 'route-request');
    assert.is(pool.router.stats().decisions.decisions, 0);
  });
}

test('ids that are no tokens get no credit of those that they would be cut to', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 5);
  pool.offload(0, prompt);
  const ids = Array.from(prompt.tokens);
  assert.is(pool.route(prompt, { tokens: ids }).blocks.shared, 5);
  for (const spoil of [(id: number) => id + 2 ** 32, (id: number) => id - 2 ** 32, (id: number) => id + 0.5]) {
    assert.is(errorOf(() => pool.route(prompt, { tokens: ids.map(spoil) })).code, 'route-request');
    const last = ids.with(-1, spoil(ids.at(-1)!));
    assert.is(errorOf(() => pool.route(prompt, { tokens: last })).code, 'route-request', 'behind the last full block');
  }
});

test('null in a request is what was left out', async () => {
  const nothing = { now: null, expectedOutputTokens: null, sharedCacheMultiplier: null, allowed: null };
  const seen = [];
  for (const request of [{}, nothing]) {
    const pool = await RouterPool.shared(1);
    const prompt = pool.prompt(1, 5);
    pool.offload(0, prompt);
    pool.route(prompt, { now: 7 }).lease.complete(8, null);
    const { cost, blocks, lease } = pool.route(prompt, request);
    lease.attach({ ended: ({ totalTime }) => seen.push(totalTime) });
    lease.complete(10);
    seen.push(cost, blocks);
  }
  assert.equal(seen.slice(0, 3), seen.slice(3));
  assert.is(seen[0], 2, 'from the last report on');
});

test('refused: a multiplier out of range', async () => {
  const pool = await RouterPool.shared(1);
  const error = errorOf(() => pool.router.route({ tokens: [1], sharedCacheMultiplier: 2 }));
  assert.ok(error instanceof ConfigError);
  assert.is(error.code, 'shared-cache-multiplier');
});

test('a request’s own multiplier weighs its shared blocks', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 10);
  pool.offload(0, prompt);
  const creditAt = (sharedCacheMultiplier?: number) => {
    const { terms, lease } = pool.route(prompt, { sharedCacheMultiplier });
    lease.complete(0);
    return terms?.kind === 'cost' ? terms.credit.shared : null;
  };
  assert.equal([creditAt(), creditAt(1), creditAt(0.25), creditAt(0)], [5, 10, 2.5, 0]);
});

test('expected output counts among the blocks that decoding will hold', async () => {
  const pool = await RouterPool.shared(1);
  const { terms } = pool.route(pool.prompt(1, 10), { expectedOutputTokens: 159 });
  assert.is(terms?.kind === 'cost' && terms.decode, 20);
});

// ---- who may serve ----

test('allowed: only these, and the decision says why the others are out', async () => {
  const pool = await RouterPool.shared(3);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  const decision = pool.route(prompt, { allowed: [1, 2, 'nobody'], explain });
  assert.ok(decision.worker.id === 1 || decision.worker.id === 2);
  assert.is(viewOf(decision, 0).notEligible?.code, 'not-allowed');
  assert.is(decision.bestReachable, 0, 'what a forbidden worker holds can’t be reached');
});

test('ids of other types are other workers', async () => {
  const pool = await RouterPool.open();
  pool.add(1);
  pool.add('1');
  assert.equal(pool.route(pool.prompt(1, 1), { allowed: ['1'] }).worker.id, '1');
  assert.equal(pool.route(pool.prompt(1, 1), { allowed: [1n] }).worker.id, 1);
});

test('draining: no new requests; what runs goes on, and an end of draining is one', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  const { lease } = pool.route(prompt);
  assert.ok(pool.router.setDraining(0, true));
  assert.is(idOf(pool.route(prompt)), 1);
  assert.is(pool.router.workers()[0]!.ranks[0]!.load.activeRequests, 1);
  lease.complete(1);
  assert.ok(pool.router.setDraining(0, false));
  assert.is(idOf(pool.route(prompt)), 0, 'what it holds was not forgotten');
  assert.not(pool.router.setDraining('nobody', true));
});

test('no worker at all, all draining, none allowed: no-workers, which says what to do', async () => {
  const pool = await RouterPool.open();
  const prompt = pool.prompt(1, 1);
  const none = errorOf(() => pool.route(prompt));
  assert.is(none.code, 'no-workers');
  assert.match(none.message, /Add a worker/);
  pool.add(0);
  assert.match(errorOf(() => pool.route(prompt, { allowed: [] })).message, /1 are not allowed/);
  pool.router.setDraining(0, true);
  assert.match(errorOf(() => pool.route(prompt)).message, /1 are draining/);
  assert.is(pool.router.stats().decisions.noWorkers, 3);
});

test('a worker that does not list the adapter is no candidate while another does', async () => {
  const pool = await RouterPool.shared(3);
  pool.add(1, { adapters: ['adapter'] });
  const prompt = pool.prompt(1, 4);
  const decision = pool.route(prompt, { loraName: 'adapter', explain });
  assert.is(idOf(decision), 1);
  assert.is(viewOf(decision, 0).notEligible?.code, 'adapter-missing');
  assert.is.not(decision.sharedReason?.code, 'unknown-adapter');
  pool.router.setDraining(1, true);
  const unknown = pool.route(prompt, { loraName: 'adapter', explain });
  assert.is.not(idOf(unknown), 1);
  assert.is(unknown.sharedReason?.code, 'unknown-adapter');
  assert.is(viewOf(unknown, 0).notEligible, null);
});

test('three failures in a row: the rank rests; when all rest, all are candidates', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  for (let i = 0; i < 3; i++) pool.route(prompt, { now: 10 }).lease.fail(11);
  const decision = pool.route(prompt, { now: 12, explain });
  assert.is(idOf(decision), 1);
  assert.is(viewOf(decision, 0).notEligible?.code, 'resting');
  assert.ok(pool.router.workers()[0]!.ranks[0]!.resting);
  for (let i = 0; i < 3; i++) pool.route(prompt, { allowed: [1], now: 13 }).lease.fail(13);
  assert.is(idOf(pool.route(prompt, { now: 14 })), 0);
  assert.is(pool.router.stats().decisions.allResting, 1);
  assert.is(idOf(pool.route(prompt, { now: 10_000 })), 0, 'its rest is over');
});

test('a success between failures, and the rank goes on', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  for (let i = 0; i < 2; i++) pool.route(prompt, { now: 1 }).lease.fail(2);
  pool.route(prompt, { now: 3 }).lease.complete(4);
  for (let i = 0; i < 2; i++) pool.route(prompt, { now: 5 }).lease.fail(6);
  assert.is(idOf(pool.route(prompt, { now: 7 })), 0);
});

test('a request that was under way when others failed, and succeeds, is no sign of health', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  const old = [1, 2, 3].map(() => pool.route(prompt, { now: 0, allowed: [0] }).lease);
  for (const [i, lease] of old.entries()) {
    pool.route(prompt, { now: 10 + i, allowed: [0] }).lease.fail(10 + i);
    lease.complete(10 + i);
  }
  assert.is(idOf(pool.route(prompt, { now: 20 })), 1);
  // A clock that was set back: what failed in its future says nothing.
  const after = pool.route(prompt, { now: -100, allowed: [0] }).lease;
  after.complete(-50);
  assert.is(idOf(pool.route(prompt, { now: 20 })), 0);
});

test('a cancelled request is nobody’s failure', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  for (let i = 0; i < 5; i++) pool.route(prompt, { now: 1 }).lease.cancel(2);
  assert.is(idOf(pool.route(prompt, { now: 3 })), 0);
  assert.is(pool.router.stats().leases.cancelled, 5);
});

test('times in reports alone: a rank that fails rests, and comes back', async () => {
  const pool = await RouterPool.open();
  for (const id of [0, 1, 2]) pool.add(id);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  let clock = 1_796_000_000_000;
  const run = (requests: number): number => {
    let failed = 0;
    for (let i = 0; i < requests; i++) {
      const { worker, lease } = pool.route(prompt);
      clock += 10;
      if (worker.id !== 0) lease.complete(clock);
      else {
        failed++;
        lease.fail(clock);
      }
    }
    return failed;
  };
  assert.is(run(400), 3);
  assert.ok(pool.router.workers()[0]!.ranks[0]!.resting);
  clock += 5000;
  assert.is(run(400), 1, 'one try after its rest');
});

test('times in reports alone: feedback withholds, and ends', async () => {
  const pool = await RouterPool.shared(1);
  const [prompt, other] = [pool.prompt(1, 40), pool.prompt(2, 4)];
  pool.offload(0, prompt);
  const clock = 1_796_000_000_000;
  for (let i = 0; i < 3; i++) pool.route(prompt).lease.complete(clock + i, { cachedTokens: 0 });
  assert.is(pool.route(prompt).sharedReason?.code, 'withheld');
  pool.route(other).lease.complete(clock + 61_000);
  assert.is(pool.route(prompt).blocks.shared, 40);
});

test('one wild time, in a request or a report, rules no longer than until the next one', async () => {
  const pool = await RouterPool.open();
  for (const id of [0, 1]) pool.add(id);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  for (let i = 0; i < 3; i++) pool.route(prompt, { now: 1000 }).lease.fail(1000);
  pool.route(prompt, { now: 1e300 }).lease.cancel(1e300);
  assert.is(idOf(pool.route(prompt)), 0);
  pool.route(prompt, { allowed: [1] }).lease.complete(1001);
  assert.is(idOf(pool.route(prompt)), 1);
});

test('the time is the latest that the router was told, where a request names none', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt);
  for (let i = 0; i < 3; i++) pool.route(prompt, { now: 1000 }).lease.fail(1000);
  assert.is(idOf(pool.route(prompt)), 1);
  pool.route(prompt, { now: 9000, allowed: [1] });
  assert.is(idOf(pool.route(prompt)), 0);
});

// ---- policies ----

test('least-loaded: the fewest blocks of load, whatever anybody holds', async () => {
  const pool = await RouterPool.open({ policy: 'least-loaded' });
  for (const id of [0, 1, 2]) pool.add(id);
  const prompt = pool.prompt(1, 10);
  pool.announce(0, prompt);
  const { lease } = pool.route(prompt, { allowed: [0] });
  const seen = [pool.route(prompt), pool.route(prompt)].map(idOf);
  assert.equal(seen.sort(), [1, 2]);
  lease.complete(1);
  const decision = pool.route(prompt);
  assert.is(idOf(decision), 0);
  assert.is(decision.blocks.device, 10, 'it is told all the same');
});

test('kv under load_aware is least-loaded', async () => {
  const pool = await RouterPool.open({ settings: { loadAware: true } });
  for (const id of [0, 1]) pool.add(id);
  const prompt = pool.prompt(1, 10);
  pool.announce(0, prompt);
  pool.route(prompt, { allowed: [0] });
  assert.is(pool.route(prompt).worker.id, 1);
  const { blocks, terms } = pool.route(prompt, { allowed: [0] });
  assert.equal([blocks.device, terms?.kind === 'cost' && terms.credit.total], [10, 0]);
});

test('round-robin is fair while workers come, go and drain', async () => {
  const pool = await RouterPool.open({ policy: 'round-robin' });
  for (const id of [0, 1, 2, 3]) pool.add(id);
  const prompt = pool.prompt(1, 2);
  const round = (n: number) => Array.from({ length: n }, () => idOf(pool.route(prompt)));
  const first = round(4);
  assert.equal([...first].sort(), [0, 1, 2, 3]);
  assert.equal(round(8), [...first, ...first]);
  pool.router.setDraining(2, true);
  const without = first.filter((id) => id !== 2);
  assert.equal(round(6), [...without, ...without]);
  pool.router.removeWorker(3);
  pool.add(9);
  assert.is(round(1)[0], 9, 'a new worker’s turn is longest ago, though its number was used before');
  assert.equal(round(3).sort(), [0, 1, 9].sort());
});

test('random: each as likely, whatever the load, and the same for the same seed', async () => {
  const run = async (seed: number) => {
    const pool = await RouterPool.open({ policy: 'random', settings: { seed } });
    for (const id of [0, 1, 2, 3]) pool.add(id);
    const prompt = pool.prompt(1, 2);
    const busy = Array.from({ length: 200 }, () => pool.route(prompt, { allowed: [0] }).lease);
    const chosen = Array.from({ length: 400 }, () => idOf(pool.route(prompt)) as number);
    for (const lease of busy) lease.complete(1);
    return chosen;
  };
  const [one, again, two] = [await run(1), await run(1), await run(2)];
  assert.equal(one, again);
  assert.not.equal(one, two);
  for (const id of [0, 1, 2, 3]) {
    const share = one.filter((chosen) => chosen === id).length;
    assert.ok(share > 60 && share < 140, `worker ${id} got ${share} of 400`);
  }
});

test('ttft: the least estimated time, with its terms', async () => {
  const pool = await RouterPool.shared(2, { policy: 'ttft' });
  const prompt = pool.prompt(1, 100);
  pool.announce(0, prompt, { end: 50 });
  const decision = pool.route(prompt);
  assert.is(idOf(decision), 0);
  assert.is(decision.policy, 'ttft');
  // 1,601 tokens, of which 800 are held, at 8,000 a second
  assert.is(decision.terms?.kind, 'time');
  if (decision.terms?.kind !== 'time') return;
  const { queue, fetch, prefill, time } = decision.terms;
  assert.equal([queue, fetch], [0, 0]);
  assert.ok(Math.abs(prefill - 100.125) < 1e-9 && time === decision.cost, `${prefill} ${time}`);
  assert.ok(Math.abs(decision.runnerUp!.cost - 200.125) < 1e-9);
});

test('ttft: the store is credited where fetching beats computing, and not where it does not', async () => {
  const slow = { fetchBytesPerSecond: 1e5 };
  for (const [ttft, shared, reason] of [
    [{}, 100, null],
    [slow, 0, 'store-slower'],
  ] as const) {
    const pool = await RouterPool.shared(1, { policy: 'ttft', ttft });
    const prompt = pool.prompt(1, 100);
    pool.offload(0, prompt);
    const { blocks, sharedReason, achieved } = pool.route(prompt);
    assert.is(blocks.shared, shared);
    assert.is(sharedReason?.code ?? null, reason);
    assert.is(achieved, 100, 'the engine restores it all the same');
  }
});

test('ttft learns from leases: a rank that computes slowly gets fewer cold prompts', async () => {
  const pool = await RouterPool.open({ policy: 'ttft' });
  for (const id of [0, 1]) pool.add(id);
  const prompt = pool.prompt(1, 50);
  for (let i = 0; i < 40; i++) {
    const { lease, worker } = pool.route(prompt, { now: i * 10_000, allowed: [i % 2] });
    lease.admitted(i * 10_000);
    lease.prefilled(i * 10_000 + (worker.id === 0 ? 1000 : 100));
    lease.complete(i * 10_000 + 2000, { cachedTokens: 0 });
  }
  const [slow, fast] = pool.router.workers().map(({ ranks }) => ranks[0]!.rates.prefillTokensPerSecond);
  assert.ok(slow! < fast! / 4, `${slow} and ${fast}`);
  const leases = [pool.route(prompt), pool.route(prompt), pool.route(prompt)];
  assert.equal(leases.map(idOf), [1, 1, 1]);
});

test('a function of the caller’s prices candidates, and sees what it declares', async () => {
  const seen: [PolicyCandidate, PolicyRequest][] = [];
  const cost = (candidate: PolicyCandidate, request: PolicyRequest) => {
    seen.push([candidate, request]);
    return -candidate.blocks.device - candidate.blocks.shared / 2;
  };
  const pool = await RouterPool.shared(2, { policy: cost });
  const prompt = pool.prompt(1, 10);
  pool.offload(0, prompt);
  pool.announce(1, prompt, { end: 3 });
  const decision = pool.route(prompt, { loraName: '', now: 5, expectedOutputTokens: 10 });
  assert.is(decision.policy, 'cost');
  assert.equal([idOf(decision), decision.cost, decision.terms], [1, -6.5, null]);
  assert.is(decision.runnerUp?.cost, -5);
  assert.equal(seen[1]![0], {
    worker: { id: 1, dpRank: 0 },
    rank: 1,
    blocks: { device: 3, host: 0, disk: 0, shared: 7 },
    activeRequests: 0,
    prefillTokens: 0,
    decodeBlocks: 0,
  });
  assert.equal(seen[1]![1], {
    tokenCount: 161,
    blocks: 11,
    blockSize: 16,
    decodeBlocks: 11,
    sharedCacheMultiplier: 0.5,
    loraName: null,
    now: 5,
  });
});

test('what a policy does not declare is 0, and without shared-cache there is none', async () => {
  const seen: PolicyCandidate[] = [];
  const policy: PolicyOption = { name: 'blind', inputs: ['load'], cost: (one) => seen.push(one) };
  const pool = await RouterPool.shared(1, { policy });
  const prompt = pool.prompt(1, 10);
  pool.offload(0, prompt);
  pool.announce(0, prompt, { end: 4 });
  pool.route(prompt);
  const decision = pool.route(prompt);
  assert.equal(seen[1]!.blocks, { device: 0, host: 0, disk: 0, shared: 0 });
  assert.equal([seen[1]!.activeRequests, seen[1]!.decodeBlocks], [1, 11]);
  assert.is(decision.blocks.device, 4);
  assert.is(decision.sharedReason?.code, 'policy-does-not-read');
});

const wild: readonly (readonly [string, () => unknown])[] = [
  [
    'throws',
    () => {
      throw new Error('policy bug');
    },
  ],
  [
    'throws nothing',
    () => {
      throw undefined;
    },
  ],
  ['NaN', () => Number.NaN],
  ['minus infinity', () => Number.NEGATIVE_INFINITY],
  ['a text', () => '5'],
  ['a promise', () => Promise.resolve(1)],
  ['a bigint', () => 5n],
];

for (const [name, fault] of wild) {
  test(`a policy that gives ${name}: that candidate is out and counted; when all are, load decides`, async () => {
    let bad = new Set<unknown>([0]);
    const policy = ({ worker }: PolicyCandidate) => (bad.has(worker.id) ? (fault() as number) : 1);
    const pool = await RouterPool.open({ policy });
    for (const id of [0, 1]) pool.add(id);
    const prompt = pool.prompt(1, 3);
    const decision = pool.route(prompt, { explain });
    assert.equal([idOf(decision), decision.fallback, decision.runnerUp], [1, false, null]);
    assert.is(viewOf(decision, 0).notEligible?.code, 'not-priced');
    bad = new Set([0, 1]);
    const fallback = pool.route(prompt);
    assert.equal([idOf(fallback), fallback.fallback, fallback.policy], [0, true, 'least-loaded']);
    assert.is(fallback.terms?.kind, 'cost');
    const { policyFaults, fallbacks } = pool.router.stats().decisions;
    assert.equal([policyFaults, fallbacks], [3, 1]);
  });
}

test('where load decides in the end, nothing that anybody holds counts', async () => {
  const pool = await RouterPool.shared(1, { policy: () => Number.NaN });
  const prompt = pool.prompt(1, 10);
  pool.offload(0, prompt);
  pool.announce(0, prompt, { end: 4 });
  const { terms, blocks, fallback } = pool.route(prompt);
  assert.equal([fallback, blocks.device, blocks.shared], [true, 4, 6]);
  assert.is(terms?.kind === 'cost' && terms.credit.total, 0);
});

test('infinity is a policy’s way to rule a candidate out, and no fault', async () => {
  const policy = ({ worker }: PolicyCandidate) => (worker.id === 0 ? Number.POSITIVE_INFINITY : 1);
  const pool = await RouterPool.open({ policy });
  for (const id of [0, 1]) pool.add(id);
  assert.is(idOf(pool.route(pool.prompt(1, 3))), 1);
  assert.is(pool.router.stats().decisions.policyFaults, 0);
});

test('a policy that routes while it is asked fails its candidate, not the request', async () => {
  const pools: RouterPool[] = [];
  const policy = () => pools[0]!.router.route({ tokens: [1] }).cost;
  pools.push(await RouterPool.open({ policy }));
  pools[0]!.add(0);
  const decision = pools[0]!.router.route({ tokens: [1] });
  assert.ok(decision.fallback);
  assert.is(pools[0]!.router.stats().decisions.policyFaults, 1);
});

for (const [call, change] of [
  ['addWorker', (router: Router) => router.addWorker({ id: 9 })],
  ['removeWorker', (router: Router) => router.removeWorker(0)],
  ['setDraining', (router: Router) => router.setDraining(0, true)],
  ['dispose', (router: Router) => router.dispose()],
] as const) {
  test(`a policy can't call ${call} while it is asked: its candidate is out, the workers are as they were`, async () => {
    const pools: RouterPool[] = [];
    const policy = ({ worker }: PolicyCandidate) => {
      if (worker.id === 0) change(pools[0]!.router);
      return 1;
    };
    pools.push(await RouterPool.open({ policy }));
    const [{ router }] = pools as [RouterPool];
    for (const id of [0, 1]) router.addWorker({ id });
    assert.is(idOf(router.route({ tokens: [1] })), 1);
    const { policyFaults, policyFaultsBy, reentries } = router.stats().decisions;
    assert.equal([policyFaults, policyFaultsBy['threw'], reentries], [1, 1, 1]);
    assert.equal(
      router.workers().map(({ id, draining }) => [id, draining]),
      [
        [0, false],
        [1, false],
      ],
    );
    change(router);
  });
}

test('a policy that swallows the refusal has changed nothing either: load is with whoever got the request', async () => {
  const pools: RouterPool[] = [];
  const policy = ({ worker }: PolicyCandidate) => {
    try {
      pools[0]!.router.removeWorker('first');
      pools[0]!.router.addWorker({ id: 'next' });
    } catch {
      // As if nothing had happened.
    }
    return worker.id === 'first' ? 0 : 1;
  };
  pools.push(await RouterPool.open({ policy }));
  const [{ router }] = pools as [RouterPool];
  for (const id of ['first', 'second']) router.addWorker({ id });
  assert.is(idOf(router.route({ tokens: new Uint32Array(100) })), 'first');
  assert.equal(
    router.workers().map(({ id, ranks }) => [id, ranks[0]!.load.activeRequests]),
    [
      ['first', 1],
      ['second', 0],
    ],
  );
  assert.equal([router.stats().decisions.reentries, router.stats().decisions.policyFaults], [2, 0]);
});

test('isPending can’t change the workers while a request asks it: it counts as having thrown', async () => {
  const pools: RouterPool[] = [];
  let armed = false;
  const isPending = () => armed && pools[0]!.router.removeWorker(0);
  pools.push(await RouterPool.shared(1, { cache: { isPending } }));
  const [pool] = pools as [RouterPool];
  const prompt = pool.prompt(1, 6);
  pool.offload(0, prompt);
  armed = true;
  assert.is(pool.route(prompt).sharedReason?.code, 'pending');
  assert.is(pool.router.workers().length, 1);
  assert.is(pool.router.stats().cache!.pendingFaults, pool.router.stats().decisions.reentries);
});

test('a policy’s cost is called as its method; a bare function’s as none', async () => {
  class Mine {
    readonly name = 'mine';
    readonly inputs = ['load'] as const;
    readonly favourite = 1;
    cost({ worker }: PolicyCandidate): number {
      return worker.id === this.favourite ? 0 : 1;
    }
  }
  let bare: unknown = 'not asked';
  function cost(this: unknown): number {
    bare = this;
    return 0;
  }
  for (const policy of [new Mine(), cost]) {
    const pool = await RouterPool.open({ policy });
    for (const id of [0, 1, 2]) pool.add(id);
    const { fallback, worker } = pool.route(pool.prompt(1, 3));
    assert.not(fallback);
    if (policy !== cost) assert.is(worker.id, 1);
  }
  assert.is(bare, undefined);
});

test('an asynchronous policy is a fault of its own kind, and what becomes of its promises is nobody’s surprise', async () => {
  const unhandled: unknown[] = [];
  const listener = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', listener);
  const thenable = {
    // biome-ignore lint/suspicious/noThenProperty: the case
    then: (_: unknown, reject: (reason: Error) => void) => reject(new Error('later')),
  };
  for (const answer of [() => Promise.reject(new Error('later')), () => thenable]) {
    const pool = await RouterPool.open({ policy: answer as unknown as PolicyOption });
    pool.add(0);
    assert.ok(pool.route(pool.prompt(1, 3)).fallback);
    assert.equal(pool.router.stats().decisions.policyFaultsBy, { threw: 0, 'no-price': 0, promise: 1 });
  }
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', listener);
  assert.equal(unhandled, []);
});

test('settings whose costs are infinite fall back to load as well', async () => {
  const pool = await RouterPool.open({ settings: { prefillLoadScale: Number.MAX_VALUE } });
  pool.add(0);
  assert.ok(pool.route(pool.prompt(1, 10)).fallback);
});

test('temperature spreads, seeded', async () => {
  const run = async (seed: number) => {
    const pool = await RouterPool.open({ settings: { temperature: 50, seed } });
    for (const id of [0, 1, 2, 3]) pool.add(id);
    const prompt = pool.prompt(1, 10);
    pool.announce(0, prompt);
    return Array.from({ length: 100 }, () => {
      const { lease, worker } = pool.route(prompt);
      lease.complete(0);
      return worker.id;
    });
  };
  const one = await run(3);
  assert.equal(one, await run(3));
  assert.is(new Set(one).size, 4);
});

// ---- feedback ----

test('where engines repeatedly restore less than was credited, the prefix is not credited for a while', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 40);
  pool.offload(0, prompt);
  for (let now = 0; now < 3; now++) {
    const { blocks, lease } = pool.route(prompt, { now });
    assert.is(blocks.shared, 40);
    lease.complete(now, { cachedTokens: 0 });
  }
  const withheld = pool.route(prompt, { now: 10, explain });
  assert.is(withheld.blocks.shared, 0);
  assert.is(withheld.sharedReason?.code, 'withheld');
  assert.is(withheld.reasons![0]!.code, 'withheld');
  assert.is(pool.router.stats().feedback.withheld, 1);
  assert.is(pool.route(prompt, { now: 120_000 }).blocks.shared, 40, 'it is tried again');
});

test('an engine that found less of what was local has said nothing of the store', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 40);
  pool.announce(0, prompt);
  for (let now = 0; now < 3; now++) pool.route(prompt, { now }).lease.complete(now, { cachedTokens: 0 });
  assert.is(pool.router.stats().feedback.strikes, 0);
});

test('what engines did restore stays credited, as far as evidence has an end there', async () => {
  // Restart points every 32 tokens: of 5 blocks that engines found, 4 may be credited.
  const pool = await RouterPool.shared(1, {}, { lcm: 32, groups: [{}, { blockSize: 32 }] });
  const prompt = pool.prompt(1, 40);
  pool.announce(0, prompt);
  pool.router.reconcile(pool.router.beginReconcile(), prompt.keys(pool.contract), { s0: 0, firstSequence: null });
  pool.evict(0, prompt);
  for (let now = 0; now < 3; now++) pool.route(prompt, { now }).lease.complete(now, { cachedTokens: 80 });
  assert.is(pool.route(prompt, { now: 3 }).blocks.shared, 4);
});

test('another contract, and nothing is held against a prefix any more', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 10);
  pool.offload(0, prompt);
  for (let now = 0; now < 3; now++) pool.route(prompt, { now }).lease.complete(now, { cachedTokens: 0 });
  assert.is(pool.router.stats().feedback.withheld, 1);
  pool.add(0, { contract: null });
  assert.is(pool.router.stats().feedback.withheld, 0);
});

// ---- the end ----

test('a disposed router refuses requests and workers, and messages have no effect', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 10);
  const { lease } = pool.route(prompt);
  pool.router.dispose();
  pool.router.dispose();
  assert.is(pool.router.workers()[0]!.ranks[0]!.load.activeRequests, 0);
  assert.is(errorOf(() => pool.route(prompt)).code, 'router-disposed');
  assert.is(errorOf(() => pool.add(1)).code, 'router-disposed');
  assert.is(pool.announce(0, prompt).fate, 'disposed');
  assert.is(pool.store(prompt).fate, 'stopped');
  lease.complete(1);
  assert.is(lease.outcome, 'completed');
  assert.equal([pool.router.stats().leases.open, pool.router.stats().leases.completed], [0, 0]);
});

test('options are refused by name', async () => {
  const rows: readonly (readonly [object, string])[] = [
    [{ polices: 'kv' }, 'unknown-option'],
    [{ policy: 'best' }, 'unknown-policy'],
    [{ policy: 7 }, 'unknown-policy'],
    [{ policy: { name: '', inputs: [], cost: () => 0 } }, 'policy-name'],
    [{ policy: { name: 'mine', inputs: ['cpu'], cost: () => 0 } }, 'policy-inputs'],
    [{ policy: { name: 'mine', inputs: [], cost: 1 } }, 'policy-cost'],
    [{ role: 'encode' }, 'role'],
    [{ speculative: 1 }, 'speculative'],
    [{ conditionalDisaggregation: 'yes' }, 'conditional-disaggregation'],
    [{ strictContracts: null }, 'strict-contracts'],
    [{ blockSize: 0 }, 'block-size'],
    [{ imageTokenId: -1 }, 'image-token-id'],
    [{ settings: { useRemoteIndexer: true } }, 'remote-indexer-not-supported'],
    [{ settings: { loadAware: true }, policy: 'ttft' }, 'load-aware-policy'],
    [{ index: { ranks: 0 } }, 'index-ranks'],
    [{ leases: { maxOpen: 0 } }, 'max-open-leases'],
    [{ health: { failures: 0 } }, 'health-failures'],
    [{ feedback: { strikes: 0 } }, 'feedback-strikes'],
    [{ ttft: { halfLife: 0 } }, 'half-life'],
    [{ ...SHARED, cache: { limits: { edges: 0 } } }, 'limits-edges'],
    [null as unknown as object, 'malformed-options'],
    ['kv' as unknown as object, 'malformed-options'],
    [{ settings: null }, 'malformed-settings'],
    [{ role: null }, 'role'],
    [{ revisions: 7 }, 'revisions'],
    ...(['index', 'cache', 'events', 'leases', 'feedback', 'health'] as const).flatMap((part) => [
      [{ [part]: { nonsense: 1 } }, 'unknown-option'] as const,
      [{ [part]: 'text' }, 'malformed-option'] as const,
      [{ [part]: [] }, 'malformed-option'] as const,
    ]),
    [{ ttft: { nonsense: 1 } }, 'unknown-setting'],
    [{ cache: { limits: { nonsense: 1 } } }, 'unknown-option'],
    [{ cache: { limits: 5 } }, 'cache-limits'],
    [{ cache: { limits: { edges: '9' } } }, 'limits-edges'],
    [{ cache: { isPending: true } }, 'cache-is-pending'],
    [{ cache: { tableSeed: 5 } }, 'cache-table-seed'],
    [{ index: { tableSeed: 5 } }, 'index-table-seed'],
    [{ index: { provenance: 'yes' } }, 'index-provenance'],
    [{ index: { bytes: null } }, 'index-bytes'],
    [{ index: { ranks: Symbol('ranks') } }, 'index-ranks'],
    [{ events: { publishers: Object.create(null) } }, 'limits-publishers'],
    [{ feedback: { maxMarks: Object.create(null) } }, 'feedback-max-marks'],
    [{ health: { restFor: null } }, 'health-rest-for'],
    [{ leases: { maxOpen: Symbol('leases') } }, 'max-open-leases'],
  ];
  for (const [options, code] of rows) {
    const error = await Router.create(options).then(
      () => null,
      (error: unknown) => error,
    );
    assert.instance(error, ConfigError, code);
    assert.is((error as ConfigError).code, code);
  }
});

test('a part’s options that are null, or undefined in part, are those by default', async () => {
  const none = { index: null, cache: null, events: null, leases: null, ttft: null, feedback: null, health: null };
  const router = await Router.create({ ...none, policy: 'ttft' });
  assert.is(router.stats().index.ranks, 64);
  const partly = { index: { bytes: 4 << 20, ranks: undefined }, feedback: { strikes: undefined } };
  await Router.create(partly as unknown as RouterOptions);
});

test.run();
