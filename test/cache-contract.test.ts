// Contract changes: another contract forgets everything; the same contract with other sources forgets nothing and changes only who may
// teach (design.md 5 and 7, spec/kv-events.md 5.4).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { descriptorFromCase, validateContract } from '../src/contract/index.js';
import type { Source } from '../src/events/worker-events.js';
import {
  announced,
  type ContractShape,
  contractOf,
  Pool,
  Prompt,
  prefixOf,
  SOURCE,
  stored,
  storeMessage,
  twinOf,
} from './support/messages.js';

const JOINER: Source = { workerId: 'joiner', dpRank: 0 };
/** Everything that a cache remembers is in use: edges, objects, an ambiguous hash, a sequence. */
async function busyPool(): Promise<{ pool: Pool; prompt: Prompt }> {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 3);
  const other = pool.filled(2, 1);
  pool.send([stored(`${prefixOf(0, 0)}@${twinOf(other.digest(0))}`)]);
  const { edges, digests, ambiguous } = pool.cache.stats().core!;
  assert.equal([pool.hits(prompt), edges, digests, ambiguous], [3, 4, 3, 1]);
  return { pool, prompt };
}

function assertForgotten(pool: Pool, prompt: Prompt, label: string): void {
  const { edges, digests, members, ambiguous } = pool.cache.stats().core!;
  assert.equal([edges, digests, members, ambiguous], [0, 0, 0, 0], label);
  assert.is(pool.hits(prompt), 0, label);
  // The sequence too: the number that was last is no duplicate, and no number is a gap.
  assert.is(pool.cache.applyStoreMessage(storeMessage(pool.sequence, [])).fate, 'applied', label);
  assert.is(pool.clears('gap'), 0, label);
}

const others: Readonly<Record<string, ContractShape>> = {
  'another model': { model: 'other' },
  'one rank more': { groups: [{ ranks: 2 }] },
  'one group more': { groups: [{}, { kind: 'mamba' }] },
  'another block size': { blockSize: 32 },
  'a finer hash block': { hashBlockSize: 8 },
  'another LCM': { lcm: 32 },
  'partial hits': { partial: true },
  'a window': { groups: [{}, { kind: 'sliding_window', window: 17 }] },
  'another window': { groups: [{}, { kind: 'sliding_window', window: 33 }] },
};

for (const [what, shape] of Object.entries(others)) {
  test(`another contract (${what}) forgets everything, and so does going back`, async () => {
    const { pool, prompt } = await busyPool();
    const { generation } = pool.cache;
    pool.cache.updateContract(contractOf(shape), [SOURCE]);
    assertForgotten(pool, prompt, what);
    pool.cache.updateContract(pool.contract, [SOURCE]);
    assertForgotten(pool, prompt, 'back');
    assert.is(pool.cache.generation, generation + 2);
    assert.is(pool.clears('contract-change'), 3);
  });
}

test('no contract forgets everything, gives no hits, and says why', async () => {
  const { pool, prompt } = await busyPool();
  pool.cache.updateContract(null);
  assert.is(pool.cache.contract, null);
  assert.equal([pool.hits(prompt), pool.cache.census(), pool.cache.stats().core], [0, [], null]);
  assert.is(pool.explain(prompt).reasons[0]!.code, 'no-contract');
  assert.equal(pool.teach(prompt), { blocks: 0, refused: 'no-contract' });
  pool.cache.updateContract(pool.contract, [SOURCE]);
  assertForgotten(pool, prompt, 'back');
});

test('after another contract, what is learned and stored anew is credited under it alone', async () => {
  const { pool } = await busyPool();
  const contract = contractOf({ blockSize: 32, model: 'other' });
  pool.cache.updateContract(contract, [SOURCE]);
  const prompt = new Prompt(1, 2, contract);
  pool.cache.observeStored(SOURCE, announced(prompt));
  pool.send(
    pool
      .prompt(1, 3)
      .keys(pool.contract)
      .map((key) => stored(key)),
  ); // keys of the contract before
  assert.is(pool.hits(prompt), 0);
  const result = pool.send(prompt.keys(contract).map((key) => stored(key)));
  assert.equal([result.objects, pool.hits(prompt)], [2, 2]);
});

test('the same contract with other sources forgets nothing', async () => {
  const { pool, prompt } = await busyPool();
  const token = pool.cache.beginReconcile();
  const before = pool.cache.stats();
  for (const sources of [[JOINER], [SOURCE, JOINER], [], [SOURCE]]) {
    pool.cache.updateContract(contractOf(), sources);
    assert.equal(pool.cache.stats(), before);
    assert.is(pool.cache.generation, before.generation);
  }
  assert.is(pool.hits(prompt), 3);
  assert.is(pool.send([]).fate, 'applied');
  assert.is(token.voided, null);
  assert.equal([token.firstSequence, token.events], [pool.sequence, 0]);
});

test('contracts are the same by what they say: prefixes may come in another order', async () => {
  const shape = (prefixes: string[]) =>
    validateContract(
      descriptorFromCase({
        hash_block_size: 16,
        coordinator_alignment: 16,
        partial_hash_hits: false,
        main_event_block_size: 16,
        groups: [{ group_id: 0, kind: 'full_attention', block_size: 16, window: null, prefixes }],
      }),
    );
  const cache = await SharedCache.create();
  cache.updateContract(shape(['rank-0', 'rank-1']), [SOURCE]);
  cache.updateContract(shape(['rank-1', 'rank-0']), [SOURCE]);
  assert.is(cache.generation, 1);
  cache.updateContract(shape(['rank-1', 'rank-2']), [SOURCE]);
  assert.is(cache.generation, 2);
});

test('who left teaches no more, what it taught stays, and who joined teaches', async () => {
  const pool = await Pool.open();
  const prompt = pool.prompt(1, 3);
  assert.is(pool.teach(prompt, { end: 1 }).blocks, 1);
  assert.is(pool.teach(prompt, { first: 1, end: 2 }, JOINER).refused, 'source-not-admitted');
  pool.cache.updateContract(pool.contract, [JOINER]);
  assert.is(pool.teach(prompt, { first: 1, end: 2 }).refused, 'source-not-admitted');
  assert.is(pool.teach(prompt, { first: 1, end: 2 }, JOINER).blocks, 1);
  pool.cache.updateContract(pool.contract, []);
  assert.is(pool.teach(prompt, { first: 2 }, JOINER).refused, 'source-not-admitted');
  pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
  assert.is(pool.hits(prompt), 2);
});

test('sources that come with another contract are the only ones of it', async () => {
  const pool = await Pool.open();
  const contract = contractOf({ model: 'other' });
  pool.cache.updateContract(contract, [JOINER]);
  const prompt = pool.prompt(1, 1);
  assert.is(pool.teach(prompt).refused, 'source-not-admitted');
  assert.is(pool.teach(prompt, {}, JOINER).refused, null);
});

test.run();
