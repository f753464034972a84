// Workers of a router: added, replaced and removed, with nothing of an old one left to the next one under its number; contracts by majority
// and strictly; what their messages do, and what a message can't do.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import type { RouterOptions } from '../src/router/router-options.js';
import type { WorkerInfo } from '../src/router/worker-info.js';
import { smallDescriptor } from './support/descriptor.js';
import { contractOf, framesOf } from './support/messages.js';
import { blockRemoved, blockStored, hashOf, RouterPool, workerMessage } from './support/router-pool.js';

const explain = true;

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof MoonrouteError) return error.code;
    throw error;
  }
  return 'nothing thrown';
}

/** `id/dpRank: number` of every rank. */
function numbers({ router }: RouterPool): string[] {
  return router.workers().flatMap(({ id, ranks }) => ranks.map(({ dpRank, rank }) => `${id}/${dpRank}: ${rank}`));
}

/** `id/dpRank: code` of every rank. */
function admissions({ router }: RouterPool): string[] {
  return router
    .workers()
    .flatMap(({ id, ranks }) => ranks.map(({ dpRank, admission }) => `${id}/${dpRank}: ${admission}`));
}

/** Blocks that each rank is believed to hold, by the explanation of a decision. */
function held(pool: RouterPool, prompt: ReturnType<RouterPool['prompt']>): Record<string, number> {
  const { candidates, lease } = pool.route(prompt, { explain });
  lease.cancel(0);
  return Object.fromEntries(
    candidates!.map(({ worker, blocks }) => [
      `${worker.id}/${worker.dpRank}`,
      blocks.device + blocks.host + blocks.disk,
    ]),
  );
}

test("messages of another rank than the stream's are not taken where the stream's is known", async () => {
  const pool = await RouterPool.open();
  pool.add('a', { dpRanks: { start: 0, size: 2 } });
  const frames = workerMessage([blockStored(pool.prompt(1, 2))], 0);
  const { fate, detail, stored } = pool.router.onWorkerMessage('a', frames, { dpRank: 1 });
  assert.equal([fate, stored], ['other-rank', 0]);
  assert.match(detail!, /rank 0 .* rank 1/);
  assert.is(pool.router.onWorkerMessage('a', frames, { dpRank: 0 }).stored, 2);
});

// ---- adding, replacing, removing ----

test('ranks get the lowest free numbers, and free ones are given again', async () => {
  const pool = await RouterPool.open();
  pool.add('a', { dpRanks: { start: 0, size: 2 } });
  pool.add('b');
  pool.add('c', { dpRanks: { start: 4, size: 2 } });
  assert.equal(numbers(pool), ['a/0: 0', 'a/1: 1', 'b/0: 2', 'c/4: 3', 'c/5: 4']);
  assert.ok(pool.router.removeWorker('a'));
  assert.not(pool.router.removeWorker('a'));
  pool.add('d', { dpRanks: { start: 0, size: 3 } });
  assert.equal(numbers(pool), ['d/0: 0', 'd/1: 1', 'd/2: 5', 'b/0: 2', 'c/4: 3', 'c/5: 4']);
});

test('a router has so many ranks: one more is refused, and nothing has changed', async () => {
  const pool = await RouterPool.open();
  pool.add('a', { dpRanks: { start: 0, size: 60 } });
  pool.add('b', { dpRanks: { start: 0, size: 4 } });
  const before = numbers(pool);
  assert.is(
    codeOf(() => pool.add('c')),
    'router-full',
  );
  assert.is(
    codeOf(() => pool.add('b', { dpRanks: { start: 0, size: 5 } })),
    'router-full',
  );
  assert.is(
    codeOf(() => pool.add('b', { dpRanks: { start: 0, size: 4_000_000_000 } })),
    'router-full',
  );
  assert.equal(numbers(pool), before);
  pool.add('b', { dpRanks: { start: 7, size: 4 } });
  pool.add('a', { dpRanks: { start: 59, size: 1 } });
  pool.add('c', { dpRanks: { start: 0, size: 59 } });
  assert.is(numbers(pool).length, 64);
});

test('as many workers as there are ranks, each with a prompt of its own', async () => {
  const pool = await RouterPool.open({ index: { ranks: 256 } });
  for (let id = 0; id < 256; id++) pool.add(id);
  const prompts = [0, 100, 255].map((id) => ({ id, prompt: pool.prompt(id + 1, 5) }));
  for (const { id, prompt } of prompts) pool.announce(id, prompt);
  for (const { id, prompt } of prompts) assert.is(pool.route(prompt).worker.id, id);
});

test('adding again replaces contract, adapters and draining, and keeps what is known of ranks that stay', async () => {
  const pool = await RouterPool.shared(0);
  pool.add('a', { dpRanks: { start: 0, size: 2 }, adapters: ['x'], draining: true });
  const prompt = pool.prompt(1, 6);
  pool.announce('a', prompt);
  pool.announce('a', prompt, { dpRank: 1, end: 3 });
  pool.add('a', { dpRanks: { start: 1, size: 2 }, adapters: ['y'] });
  assert.equal(numbers(pool), ['a/2: 0', 'a/1: 1']);
  const [worker] = pool.router.workers();
  assert.equal([worker!.adapters, worker!.draining], [['y'], false]);
  assert.equal(held(pool, prompt), { 'a/2': 0, 'a/1': 3 });
});

test('adding again keeps load and open leases', async () => {
  const pool = await RouterPool.shared(1);
  const { lease } = pool.route(pool.prompt(1, 6));
  pool.add(0, { adapters: ['x'] });
  assert.is(pool.router.workers()[0]!.ranks[0]!.load.activeRequests, 1);
  lease.complete(1);
  assert.is(pool.router.workers()[0]!.ranks[0]!.load.activeRequests, 0);
  assert.is(pool.router.stats().leases.orphaned, 0);
});

test('nothing of a removed worker is left to the next one under its number', async () => {
  const pool = await RouterPool.shared(2, { policy: 'ttft' });
  const prompt = pool.prompt(1, 6);
  const salted = pool.prompt(2, 6);
  pool.announce(0, prompt);
  pool.announce(0, prompt, { medium: 'CPU' });
  pool.announce(0, prompt, { medium: 'DISK' });
  // health: out; rates: slow; load: one open lease; events: a namespace for the chain of `salted`
  for (let now = 0; now < 12; now++) {
    const { lease } = pool.route(prompt, { allowed: [0], now });
    lease.admitted(now);
    lease.prefilled(now + 900);
    lease.complete(now + 1000, { cachedTokens: 0 });
  }
  for (let now = 0; now < 3; now++) pool.route(prompt, { allowed: [0], now }).lease.fail(now);
  const { lease } = pool.route(prompt, { allowed: [0], now: 20 });
  pool.announce(0, salted, { end: 3, fields: { cache_salt: 'tenant' } });
  const before = pool.router.workers()[0]!.ranks[0]!;
  assert.ok(before.resting && before.load.activeRequests === 1 && before.rates.prefillObservations > 0);

  pool.router.removeWorker(0);
  pool.add(7, { contract: null });
  assert.equal(numbers(pool), ['7/0: 0', '1/0: 1']);
  const after = pool.router.workers()[0]!.ranks[0]!;
  assert.equal(after.load, { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 });
  assert.equal([after.resting, after.rates.prefillObservations, after.admission], [false, 0, 'no-contract']);
  assert.equal(held(pool, prompt), { '7/0': 0, '1/0': 0 });
  // The child of a block that only the old worker held is unknown to the index, and not taken for salted.
  const child = pool.announce(7, salted, { first: 3 });
  assert.equal([child.stored, child.rejected], [0, 1]);
  pool.announce(7, salted);
  assert.is(held(pool, salted)['7/0'], 6, 'unsalted');
  // What the old worker's lease still reports reaches nobody.
  lease.fail(30);
  assert.is(pool.router.workers()[0]!.ranks[0]!.load.activeRequests, 0);
  assert.is(pool.router.stats().leases.orphaned, 1);
});

test('a worker of the same name that comes back is a new publisher', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 6);
  pool.announce(0, prompt, { end: 3, fields: { cache_salt: 'tenant' } });
  pool.router.removeWorker(0);
  pool.add(0);
  assert.is(pool.announce(0, prompt).learned, 6, 'its namespaces are not held against it');
  assert.is(held(pool, prompt)['0/0'], 6);
});

test('a removed worker no longer teaches, and its messages are unknown', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 6);
  pool.router.removeWorker(0);
  const result = pool.announce(0, prompt);
  assert.equal([result.fate, result.learned, result.stored, result.lostRemoval], ['unknown-worker', 0, 0, false]);
  pool.store(prompt);
  assert.is(pool.route(prompt).sharedReason?.code, 'not-learned');
});

const badWorkers: readonly (readonly [string, object, string])[] = [
  ['no id', { id: undefined }, 'worker-id'],
  ['an empty id', { id: '' }, 'worker-id'],
  ['half an id', { id: 0.5 }, 'worker-id'],
  ['no rank', { id: 'a', dpRanks: { start: 0, size: 0 } }, 'worker-dp-ranks'],
  ['a rank below 0', { id: 'a', dpRanks: { start: -1, size: 1 } }, 'worker-dp-ranks'],
  ['ranks past 2^32', { id: 'a', dpRanks: { start: 0xffff_ffff, size: 2 } }, 'worker-dp-ranks'],
  ['adapters that are no list', { id: 'a', adapters: 'x' }, 'worker-adapters'],
  ['an adapter without a name', { id: 'a', adapters: [''] }, 'worker-adapters'],
  ['a descriptor as contract', { id: 'a', contract: smallDescriptor() }, 'worker-contract'],
  ['contract and descriptor', { id: 'a', contract: contractOf(), descriptor: {} }, 'worker-contract'],
  ['a contract made by hand', { id: 'a', contract: { fingerprint: 'x', mainEventBlockSize: 16 } }, 'worker-contract'],
  ['a copy of a contract', { id: 'a', contract: { ...contractOf() } }, 'worker-contract'],
  ['a contract that is a text', { id: 'a', contract: 'x' }, 'worker-contract'],
  ['a contract that is a list', { id: 'a', contract: [] }, 'worker-contract'],
  ['an error as the reason', { id: 'a', contract: { invalid: new Error('no contract') } }, 'worker-contract'],
  ['no reason', { id: 'a', contract: { invalid: undefined } }, 'worker-contract'],
  ['draining that is no answer', { id: 'a', draining: 'yes' }, 'worker-draining'],
  ['draining null', { id: 'a', draining: null }, 'worker-draining'],
  ['ranks that are a number', { id: 'a', dpRanks: 2 }, 'worker-dp-ranks'],
  ['a text in place of a worker', 'a' as unknown as object, 'worker-id'],
  ['nothing in place of a worker', null as unknown as object, 'worker-id'],
];

for (const [name, info, code] of badWorkers) {
  test(`refused: ${name}: ${code}`, async () => {
    const pool = await RouterPool.open();
    let error: unknown;
    try {
      pool.router.addWorker(info as WorkerInfo);
    } catch (thrown) {
      error = thrown;
    }
    assert.instance(error, ConfigError);
    assert.is((error as ConfigError).code, code);
    assert.equal(pool.router.workers(), []);
  });
}

test('a worker that is refused leaves those before and after it as they are', async () => {
  const pool = await RouterPool.open();
  pool.add('good', { contract: null });
  for (const [, info] of badWorkers) assert.throws(() => pool.router.addWorker(info as WorkerInfo));
  for (const [, info] of badWorkers) {
    if (info === null || typeof info !== 'object') continue;
    assert.throws(() => pool.router.addWorker({ ...info, id: 'good', draining: 1 } as unknown as WorkerInfo));
  }
  pool.add('next', { contract: null });
  assert.equal(admissions(pool), ['good/0: no-contract', 'next/0: no-contract']);
  assert.is(pool.router.workers()[0]!.draining, false);
  pool.router.route({ tokens: new Uint32Array(40) });
});

test('draining takes an answer, and nothing like one', async () => {
  const pool = await RouterPool.open();
  pool.add('a');
  assert.is(
    codeOf(() => pool.router.setDraining('a', 1 as unknown as boolean)),
    'worker-draining',
  );
  assert.is(pool.router.workers()[0]!.draining, false);
});

test('ranks that are null are those by default', async () => {
  const pool = await RouterPool.open();
  pool.router.addWorker({ id: 'a', dpRanks: null } as unknown as WorkerInfo);
  assert.equal(numbers(pool), ['a/0: 0']);
});

// ---- contracts ----

test('a descriptor is validated here: what is refused is invalid with its reason, and the worker serves', async () => {
  const pool = await RouterPool.shared(0);
  pool.router.addWorker({ id: 'good', descriptor: smallDescriptor() });
  pool.router.addWorker({ id: 'bad', descriptor: { ...smallDescriptor(), schema_version: 2 } });
  pool.router.addWorker({ id: 'none' });
  assert.equal(admissions(pool), ['good/0: admitted', 'bad/0: contract-invalid', 'none/0: no-contract']);
  const [, bad] = pool.router.workers();
  assert.match(bad!.ranks[0]!.admissionText!, /unsupported Mooncake Store schema/);
  assert.ok(pool.route(pool.prompt(1, 2), { allowed: ['bad'] }).worker.id === 'bad');
});

test('a contract whose main event blocks are not the router’s is invalid, and says so', async () => {
  const pool = await RouterPool.shared(0, {}, { blockSize: 32 });
  pool.add('a');
  assert.equal(admissions(pool), ['a/0: contract-invalid']);
  assert.match(
    pool.router.workers()[0]!.ranks[0]!.admissionText!,
    /main event blocks have 32 tokens, the router's blocks 16/,
  );
  assert.is(pool.route(pool.prompt(1, 2)).sharedReason?.code, 'contract-invalid');
});

/** Three workers under the pool's contract and one under another. */
async function disagreeing(options: RouterOptions = {}): Promise<RouterPool> {
  const pool = await RouterPool.shared(3, options);
  pool.add('other', { contract: contractOf({ model: 'other' }) });
  return pool;
}

test('majority: the disagreeing rank shows so, neither teaches nor receives, and the others go on', async () => {
  const pool = await disagreeing();
  assert.equal(admissions(pool), ['0/0: admitted', '1/0: admitted', '2/0: admitted', 'other/0: contract-disagrees']);
  assert.equal(pool.router.stats().contracts, { ranks: 4, admitted: 3, reason: null });
  const untaught = pool.prompt(1, 6);
  const result = pool.announce('other', untaught);
  assert.equal([result.fate, result.learned, result.stored], ['applied', 0, 6]);
  pool.store(untaught);
  assert.is(pool.route(untaught, { allowed: [0] }).sharedReason?.code, 'not-learned');
  assert.is(pool.route(untaught).worker.id, 'other', 'for its GPU it counts all the same');

  const prompt = pool.prompt(2, 6);
  pool.offload(0, prompt);
  assert.is(pool.route(prompt, { allowed: [1] }).blocks.shared, 6);
  const decision = pool.route(prompt, { allowed: ['other'] });
  assert.is(decision.blocks.shared, 0);
  assert.is(decision.sharedReason?.code, 'contract-disagrees');
  assert.match(decision.sharedReason!.text, /1 of 4 ranks/);
});

test('majority: another contract takes over with a strict majority, and everything learned goes', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 6);
  pool.offload(0, prompt);
  const { generation } = pool.router;
  const other = contractOf({ model: 'other' });
  pool.add('x', { contract: other });
  assert.is(pool.router.generation, generation, 'a tie changes nothing');
  assert.is(pool.route(prompt, { allowed: [0] }).blocks.shared, 6);
  pool.add('y', { contract: other });
  assert.is(pool.router.generation, generation + 1);
  assert.is(pool.router.contract?.fingerprint, other.fingerprint);
  assert.equal(admissions(pool), ['0/0: contract-disagrees', 'x/0: admitted', 'y/0: admitted']);
  assert.is(pool.route(prompt, { allowed: ['x'] }).sharedReason?.code, 'not-learned');
});

test('the same contract with another worker: nothing goes', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 6);
  pool.offload(0, prompt);
  const { generation } = pool.router;
  pool.add(1);
  pool.router.removeWorker(0);
  assert.is(pool.router.generation, generation);
  assert.is(pool.route(prompt).blocks.shared, 6);
});

test('strict: any disagreement, and there are no hints', async () => {
  const pool = await disagreeing({ strictContracts: true });
  const prompt = pool.prompt(1, 6);
  pool.offload(0, prompt);
  assert.is(pool.router.contract, null);
  assert.is(pool.route(prompt).sharedReason?.code, 'contract-disagrees');
  assert.match(pool.router.stats().contracts.reason!, /^Strict admission/);
  pool.router.removeWorker('other');
  assert.is(pool.router.stats().contracts.admitted, 3);
  pool.offload(0, prompt);
  assert.is(pool.route(prompt).blocks.shared, 6);
});

test('pending contract changes: no credit and no learning while they last', async () => {
  let pending = false;
  const pool = await RouterPool.shared(1, { cache: { isPending: () => pending } });
  const prompt = pool.prompt(1, 6);
  pool.offload(0, prompt);
  pending = true;
  assert.is(pool.route(prompt).sharedReason?.code, 'pending');
  assert.is(pool.announce(0, pool.prompt(2, 3)).learned, 0);
  pending = false;
  assert.is(pool.route(prompt).blocks.shared, 6);
});

test('where isPending throws, contract changes count as unread, which is counted', async () => {
  let broken = false;
  const isPending = () => {
    if (broken) throw new TypeError('no such table');
    return false;
  };
  const pool = await RouterPool.shared(1, { cache: { isPending } });
  const prompt = pool.prompt(1, 6);
  pool.offload(0, prompt);
  broken = true;
  const { sharedReason, reasons } = pool.route(prompt, { explain });
  assert.is(sharedReason?.code, 'pending');
  assert.match(sharedReason!.text, /isPending threw/);
  assert.is(reasons![0]!.code, 'pending');
  assert.is(pool.announce(0, pool.prompt(2, 3)).learned, 0);
  assert.is(pool.store(prompt).fate, 'pending');
  assert.ok(pool.router.stats().cache!.pendingFaults >= 4);
  broken = false;
  assert.is(pool.route(prompt).sharedReason?.code, 'residency-empty');
  pool.store(prompt);
  assert.is(pool.route(prompt).blocks.shared, 6);
});

test('store messages stamped before a contract change have no effect', async () => {
  const pool = await RouterPool.shared(1);
  const { generation } = pool.router;
  pool.add(0, { contract: contractOf({ model: 'other' }) });
  const message = framesOf(1, new Uint8Array([0x93, 0, 0x90, 0]));
  assert.is(pool.router.onStoreMessage(message, { generation }).fate, 'stale-generation');
});

// ---- messages ----

test('learn, then insert: a child whose parent the index does not know has taught all the same', async () => {
  const pool = await RouterPool.shared(2);
  const prompt = pool.prompt(1, 6);
  pool.announce(0, prompt, { end: 3 });
  const child = pool.announce(1, prompt, { first: 3 });
  assert.equal([child.learned, child.stored, child.rejected], [3, 0, 1]);
  assert.equal(pool.router.stats().gpuEvents.notIndexed, { 'unknown-parent': 1 });
  pool.store(prompt);
  assert.is(pool.route(prompt).bestReachable, 6, 'the chain was learned from both');
  assert.equal(held(pool, prompt), { '0/0': 3, '1/0': 0 });
});

test('blocks whose local hashes are made over in place have taught nothing wrong', async () => {
  const pool = await RouterPool.shared(1, { imageTokenId: 1 });
  const prompt = pool.prompt(1, 4);
  const image = { mm_objects: [{ mm_hash: 99n, offsets: [] }] };
  const plain = blockStored(pool.prompt(2, 4));
  const pictured = blockStored(prompt, { fields: { block_mm_infos: [image, null, null, null] } });
  const { learned, stored } = pool.router.onWorkerMessage(0, workerMessage([plain, pictured, plain]));
  assert.equal([learned, stored], [8, 12]);
  assert.equal(held(pool, pool.prompt(2, 4)), { '0/0': 4 });
  pool.store(prompt);
  assert.is(pool.route(prompt).sharedReason?.code, 'not-learned');
});

test('a message of several events, in order', async () => {
  const pool = await RouterPool.shared(1);
  const [a, b] = [pool.prompt(1, 6), pool.prompt(2, 4)];
  const events = [
    blockStored(a),
    blockRemoved(a, { first: 4 }),
    { type: 'AllBlocksCleared' },
    blockStored(b),
    blockStored(a, { end: 2 }),
  ];
  const result = pool.router.onWorkerMessage(0, workerMessage(events, 0, 41));
  assert.equal(result, {
    fate: 'applied',
    sequence: 41n,
    source: { workerId: 0, dpRank: 0 },
    learned: 12,
    stored: 12,
    removed: 2,
    rejected: 0,
    lostRemoval: false,
    detail: null,
  });
  assert.equal([held(pool, a)['0/0'], held(pool, b)['0/0']], [2, 4]);
});

test('salted blocks that are offloaded, and so announced without their salt, stay those of the salt', async () => {
  const pool = await RouterPool.open();
  pool.add(0);
  const prompt = pool.prompt(1, 5);
  const salted = { cacheSalt: 'tenant', explain } as const;
  const tiers = (request: { readonly cacheSalt?: string }) => {
    const { blocks, lease } = pool.router.route({ tokens: prompt.tokens, explain, ...request });
    lease.cancel(0);
    return [blocks.device, blocks.host];
  };
  pool.announce(0, prompt, { fields: { cache_salt: 'tenant' } });
  assert.is(pool.announce(0, prompt, { medium: 'CPU' }).stored, 5);
  assert.equal(tiers(salted), [5, 0]);
  pool.evict(0, prompt, { first: 2 });
  assert.equal(tiers(salted), [2, 3]);
  assert.equal(tiers({}), [0, 0], 'and nothing is said of the same tokens without it');
});

test('a removal in the middle makes what is behind unreachable, until it is stored again', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 6);
  pool.announce(0, prompt);
  assert.is(pool.evict(0, prompt, { first: 2, end: 3 }).removed, 1);
  assert.is(held(pool, prompt)['0/0'], 2);
  pool.announce(0, prompt, { first: 2, end: 3 });
  assert.is(held(pool, prompt)['0/0'], 6);
});

test('cleared: the rank’s part is empty, another rank’s is not', async () => {
  const pool = await RouterPool.shared(0);
  pool.add('a', { dpRanks: { start: 0, size: 2 } });
  const prompt = pool.prompt(1, 6);
  for (const dpRank of [0, 1]) pool.announce('a', prompt, { dpRank });
  assert.is(pool.clear('a').fate, 'applied');
  assert.equal(held(pool, prompt), { 'a/0': 0, 'a/1': 6 });
});

test('an unknown rank: read, counted, without effect', async () => {
  const pool = await RouterPool.shared(1);
  const result = pool.announce(0, pool.prompt(1, 3), { dpRank: 5 });
  assert.equal([result.fate, result.source, result.stored], ['unknown-rank', { workerId: 0, dpRank: 5 }, 0]);
  assert.equal(pool.router.stats().gpuEvents.messages, { 'unknown-rank': 1 });
});

test('a message that can’t be read is told, and may have held a removal', async () => {
  const pool = await RouterPool.shared(1);
  for (const frames of [framesOf(1, Uint8Array.of(0xc1)), [], [new Uint8Array(0)]]) {
    const result = pool.router.onWorkerMessage(0, frames);
    assert.equal([result.fate, result.lostRemoval], ['unreadable', true]);
    assert.ok(result.detail!.length > 0);
  }
  assert.equal(pool.router.stats().gpuEvents.messages, { unreadable: 3 });
});

test('a lost removal is told; the caller rebuilds the part, or replays', async () => {
  const pool = await RouterPool.shared(0);
  pool.add('a', { dpRanks: { start: 0, size: 2 } });
  const prompt = pool.prompt(1, 6);
  for (const dpRank of [0, 1]) pool.announce('a', prompt, { dpRank });
  const broken = { type: 'BlockRemoved', block_hashes: 'all of them', medium: 'GPU' };
  const result = pool.router.onWorkerMessage('a', workerMessage([broken, blockStored(pool.prompt(2, 2))]));
  assert.equal([result.fate, result.rejected, result.lostRemoval, result.stored], ['applied', 1, true, 2]);
  assert.ok(pool.router.rebuildWorker('a', 0));
  assert.equal(held(pool, prompt), { 'a/0': 0, 'a/1': 6 });
  assert.ok(pool.router.rebuildWorker('a'));
  assert.equal(held(pool, prompt), { 'a/0': 0, 'a/1': 0 });
  assert.not(pool.router.rebuildWorker('a', 2));
  assert.not(pool.router.rebuildWorker('nobody'));
  assert.is(pool.router.stats().gpuEvents.rebuilt, 3);
});

test('a worker’s stream that is lost: its parts start from empty, its namespaces are forgotten', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 6);
  pool.announce(0, prompt, { end: 3, fields: { cache_salt: 'tenant' } });
  assert.ok(pool.router.workerStreamLost(0));
  assert.is(held(pool, prompt)['0/0'], 0);
  pool.announce(0, prompt);
  assert.is(held(pool, prompt)['0/0'], 6);
  assert.equal(pool.router.stats().events.ineligible, {}, 'the restarted engine does not contradict the old one');
  assert.not(pool.router.workerStreamLost('nobody'));
});

test('blocks of another size, partial ones and repeats are not indexed, and counted by cause', async () => {
  const pool = await RouterPool.shared(1);
  const prompt = pool.prompt(1, 4);
  const foreign = blockStored(prompt, { fields: { block_size: 8 } });
  const short = blockStored(prompt, { fields: { token_ids: Array.from(prompt.tokens.subarray(0, 40)) } });
  const hash = hashOf(prompt, 0);
  const repeat = blockStored(prompt, { end: 2, fields: { block_hashes: [hash, hash] } });
  const result = pool.router.onWorkerMessage(0, workerMessage([foreign, repeat, short]));
  assert.equal([result.stored, result.rejected], [2, 3]);
  assert.equal(pool.router.stats().gpuEvents.notIndexed, {
    'foreign-block-size': 1,
    'self-reference': 1,
    'tokens-missing': 1,
  });
});

test('an event of more blocks than the index takes at once goes in whole', async () => {
  const pool = await RouterPool.open({ blockSize: 1, index: { bytes: 16 << 20 } });
  pool.add(0);
  const blocks = 70_000;
  const tokens = Uint32Array.from({ length: blocks + 1 }, (_, i) => i);
  const event = {
    type: 'BlockStored',
    block_hashes: Array.from({ length: blocks }, (_, i) => i + 1),
    parent_block_hash: null,
    token_ids: Array.from(tokens.subarray(0, blocks)),
    block_size: 1,
  };
  assert.is(pool.router.onWorkerMessage(0, workerMessage([event])).stored, blocks);
  assert.is(pool.router.route({ tokens }).blocks.device, blocks);
});

test('a removal of more blocks than the index takes at once is carried out, and what stands behind it too', async () => {
  const pool = await RouterPool.open();
  pool.add(0);
  const [first, second] = [pool.prompt(1, 5), pool.prompt(2, 5)];
  const hashes = Array.from({ length: 65_537 }, (_, i) => 10n ** 18n + BigInt(i));
  hashes[65_536] = hashOf(first, 0);
  const removals = [{ type: 'BlockRemoved', block_hashes: hashes, medium: 'GPU' }, blockRemoved(second)];
  for (const prompt of [first, second]) pool.announce(0, prompt);
  assert.is(pool.router.onWorkerMessage(0, workerMessage(removals)).removed, 6);
  assert.equal([held(pool, first)['0/0'], held(pool, second)['0/0']], [0, 0]);
  pool.announce(0, first);
  const lows = new Uint32Array(BigUint64Array.from(hashes).buffer);
  assert.is(pool.router.takeRemoved(0, 0, 'device', lows, 0, hashes.length), 1);
  assert.is(held(pool, first)['0/0'], 0);
});

test('what a rank holds can be dumped, with each block’s eligibility', async () => {
  const pool = await RouterPool.shared(2, { index: { bytes: 4 << 20, provenance: true } });
  const prompt = pool.prompt(1, 4);
  pool.announce(0, prompt, { end: 2 });
  pool.announce(0, prompt, { first: 2, fields: { extra_keys: [['who knows'], null] } });
  const dump = pool.router.dump(0);
  assert.equal(
    dump.map(({ tier, hashes, eligible }) => [tier, hashes.length, eligible]),
    [
      ['device', 2, true],
      ['device', 2, false],
    ],
  );
  assert.equal([...dump[0]!.hashes], [hashOf(prompt, 0), hashOf(prompt, 1)]);
  assert.is(dump[1]!.parent, hashOf(prompt, 1));
  assert.equal([pool.router.dump(1), pool.router.dump('nobody')], [[], []]);
});

test.run();
