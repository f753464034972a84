// Why a derived lookup credits no more: the codes with their block, group and exact keys, since a derived digest is known whole. Blocks are main event
// blocks, whatever the hash blocks are.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { hitReasons, type Reason, type ReasonCode } from '../src/cache/reasons.js';
import { planOf } from '../src/core/plan.js';
import { loadCore } from './support/cores.js';
import { DerivedPool, type DerivedShape, derivedContractOf, Hashed } from './support/derived-pool.js';
import { cleared, prefixOf, removed, stored, storePayload, twinOf } from './support/messages.js';

type Place = readonly [code: ReasonCode, block: number | null, group?: number | null, missing?: readonly string[]];

const placesOf = (reasons: readonly Reason[]) =>
  reasons.map(({ code, block, group, missing }) => [code, block, group, [...missing]]);
const filledOut = (places: readonly Place[]) =>
  places.map(([code, block, group = null, missing = []]) => [code, block, group, [...missing]]);

interface Example {
  readonly name: string;
  readonly shape?: DerivedShape;
  /** Main event blocks of the prompt; 4 unless said. */
  readonly blocks?: number;
  readonly tokenCount?: number;
  /** What goes, of a prompt that is stored whole. */
  readonly gone?: (prompt: Hashed) => readonly string[];
  readonly after?: (pool: DerivedPool, prompt: Hashed) => void;
  readonly tokens: number;
  readonly reasons: (prompt: Hashed) => readonly Place[];
}

const key = (prompt: Hashed, tokens: number, group = 0, rank = 0) =>
  `${prefixOf(group, rank)}@${prompt.digests[tokens / prompt.contract.hashBlockSize - 1]}`;

const EXAMPLES: readonly Example[] = [
  { name: 'all but the last token', tokens: 64, reasons: () => [['last-token', 4]] },
  {
    name: 'the last token in a whole block',
    tokenCount: 64,
    tokens: 48,
    reasons: () => [['last-token', 3]],
  },
  {
    name: 'the last token in a block that full attention could serve whole only',
    shape: { hashBlockSize: 4, partial: true, groups: [{}, { kind: 'mamba' }] },
    blocks: 2,
    tokenCount: 31,
    tokens: 16,
    reasons: () => [['endpoint-alignment', 1]],
  },
  {
    name: 'a prompt shorter than a hash block',
    shape: { hashBlockSize: 4 },
    tokenCount: 4,
    tokens: 0,
    reasons: () => [['too-short', null]],
  },
  {
    name: 'objects of two ranks of one digest',
    shape: { groups: [{ ranks: 3 }] },
    gone: (prompt) => [key(prompt, 48, 0, 0), key(prompt, 48, 0, 2)],
    tokens: 32,
    reasons: (prompt) => [['object-missing', 2, 0, [key(prompt, 48, 0, 0), key(prompt, 48, 0, 2)]]],
  },
  {
    name: 'the first block, of which no object was ever seen',
    shape: { groups: [{ ranks: 2 }] },
    gone: (prompt) => [key(prompt, 16, 0, 0), key(prompt, 16, 0, 1)],
    tokens: 0,
    reasons: (prompt) => [['object-missing', 0, 0, [key(prompt, 16, 0, 0), key(prompt, 16, 0, 1)]]],
  },
  {
    name: 'far behind the first part that is derived at once',
    blocks: 200,
    gone: (prompt) => [key(prompt, 150 * 16)],
    tokens: 149 * 16,
    reasons: (prompt) => [['object-missing', 149, 0, [key(prompt, 150 * 16)]]],
  },
  {
    name: 'a group of larger blocks',
    shape: { groups: [{}, { blockSize: 32 }], lcm: 32 },
    gone: (prompt) => [key(prompt, 64, 1)],
    tokens: 32,
    reasons: (prompt) => [['object-missing', 3, 1, [key(prompt, 64, 1)]]],
  },
  {
    name: 'a window in finer blocks than the main ones, which no event shows',
    shape: { hashBlockSize: 4, groups: [{}, { kind: 'sliding_window', blockSize: 4, window: 13 }] },
    gone: (prompt) => [key(prompt, 56, 1)],
    tokens: 48,
    reasons: (prompt) => [['object-missing', 3, 1, [key(prompt, 56, 1)]]],
  },
  {
    name: 'a fine full-attention group with a gap, behind a coarse one whose first block is not reached yet',
    shape: { hashBlockSize: 16, blockSize: 512, lcm: 512, groups: [{}, { blockSize: 16 }] },
    blocks: 2,
    gone: (prompt) => [key(prompt, 96, 1)],
    tokens: 0,
    reasons: (prompt) => [['object-missing', 0, 1, [key(prompt, 96, 1)]]],
  },
  {
    name: 'the same, where the coarse one lacks its block too',
    shape: { hashBlockSize: 16, blockSize: 512, lcm: 512, groups: [{}, { blockSize: 16 }] },
    blocks: 2,
    gone: (prompt) => [key(prompt, 96, 1), key(prompt, 512, 0)],
    tokens: 0,
    reasons: (prompt) => [['object-missing', 0, 0, [key(prompt, 512, 0)]]],
  },
  {
    name: 'a fine full-attention group with a gap just where the coarse one’s last whole block ends',
    shape: { hashBlockSize: 1, blockSize: 64, lcm: 64, groups: [{}, { blockSize: 1 }] },
    blocks: 2,
    gone: (prompt) => [key(prompt, 65, 1)],
    tokens: 64,
    reasons: (prompt) => [['object-missing', 1, 1, [key(prompt, 65, 1)]]],
  },
  {
    name: 'alignment',
    shape: { lcm: 32 },
    blocks: 3,
    tokens: 32,
    reasons: () => [['endpoint-alignment', 2]],
  },
  {
    name: 'residency lost',
    after: (pool) => pool.cache.streamLost('disconnect'),
    tokens: 0,
    reasons: () => [['residency-empty', null]],
  },
  {
    name: 'residency cleared by the master',
    after: (pool) => pool.send([cleared()]),
    tokens: 0,
    reasons: () => [['residency-empty', null]],
  },
  {
    name: 'another digest under the 64 bits of one derived before',
    after: (pool, prompt) => {
      pool.hits(prompt);
      pool.send([stored(`${prefixOf(0, 0)}@${twinOf(prompt.digest(2))}`)]);
    },
    tokens: 16,
    reasons: () => [['digest-ambiguous', 1, 0]],
  },
  {
    name: 'another digest under the 64 bits of one not derived yet',
    after: (pool, prompt) => pool.send([stored(`${prefixOf(0, 0)}@${twinOf(prompt.digest(2))}`)]),
    tokens: 16,
    reasons: () => [['not-derived', 1]],
  },
];

for (const { name, shape = {}, blocks = 4, tokenCount, gone, after, tokens, reasons } of EXAMPLES) {
  for (const before of ['explained first', 'looked up first'] as const) {
    test(`${name}, ${before}`, async () => {
      const pool = await DerivedPool.open({ trustSeed: true }, shape);
      const prompt = pool.prompt(1, blocks);
      pool.store(pool.prompt(9, 1)); // so that residency is not empty for want of others
      pool.store(prompt);
      if (gone !== undefined) pool.send(gone(prompt).map((one) => removed(one)));
      after?.(pool, prompt);
      const query = prompt.query(tokenCount === undefined ? {} : { tokenCount });
      if (before === 'looked up first') assert.is(pool.cache.lookup(query).tokens, tokens);
      const { hits, reasons: said } = pool.cache.explain(query);
      assert.is(hits.tokens, tokens);
      assert.equal(placesOf(said), filledOut(reasons(prompt)));
      assert.is(pool.cache.lookup(query).tokens, tokens);
      for (const { text } of said) assert.ok(text.length > 10, text);
    });
  }
}

test('explain changes nothing but what has been derived', async () => {
  const pool = await DerivedPool.open({ trustSeed: true });
  const prompt = pool.prompt(1, 40);
  pool.store(prompt);
  pool.explain(prompt);
  const { edges, derivedEdges, digests } = pool.cache.stats().core!;
  assert.equal([edges, derivedEdges, digests], [40, 40, 40]);
  const before = pool.cache.stats();
  pool.explain(prompt);
  assert.equal(
    { ...pool.cache.stats().core!, lookups: 0, walkedBlocks: 0, runs: 0 },
    { ...before.core!, lookups: 0, walkedBlocks: 0, runs: 0 },
  );
});

test('no room: a prompt that fills the tables by itself says so', async () => {
  const ROOM = 64;
  for (const build of ['tiny', 'tiny-wide'] as const) {
    const contract = derivedContractOf({ groups: [{ kind: 'mamba' }], noMainGroup: true });
    const core = await loadCore(build);
    const plan = planOf(contract, 'derived');
    core.configure(plan, 1n, contract.hashRule);
    const prompt = new Hashed(1, 100, {}, contract);
    // Without full attention nothing stops derivation but room.
    const objects = [60, 90].map((block) => stored(key(prompt, block * 16)));
    assert.is(core.applyPayload(storePayload(objects)).outcome, 'applied');
    const tokens = prompt.tokens.length;
    assert.is(core.lookupDerived(prompt.tokens, tokens, {}), 60, build);
    const blocks = core.prepareDerived(prompt.tokens, {});
    const explanation = core.explain(blocks, tokens, 'derived');
    assert.equal([explanation.hit, explanation.walked], [60, ROOM], build);
    const said = hitReasons({
      plan,
      evaluation: plan.derived!,
      derived: true,
      mainBlockSize: contract.mainEventBlockSize,
      kinds: contract.groups.map(({ kind }) => kind),
      hashBlockSize: contract.hashBlockSize,
      explanation,
      blocks,
      tokens,
      requestBlocks: core.requestBlocks,
      lastClear: null,
      isEmpty: () => false,
    });
    assert.ok(
      said.some(({ code, block }) => code === 'not-derived' && block === ROOM),
      `${build}: ${said.map(({ code }) => code).join()}`,
    );
  }
});

test.run();
