// Whether engines hash as their contract says: nothing derived is credited to a rank before one of its own events agreed, and nothing to anyone after
// one disagreed. A pool may have been left by engines of another seed; whoever credits it sends requests to workers that can restore nothing.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import type { SharedCacheOptions } from '../src/cache/types.js';
import type { Hashing } from '../src/contract/descriptor.js';
import { validateContract } from '../src/contract/validate.js';
import { blockHashes } from '../src/core/local-hash.js';
import { ConfigError } from '../src/errors.js';
import type { CandidateView } from '../src/router/decision.js';
import type { RouteRequest } from '../src/router/prompt.js';
import { Router } from '../src/router/router.js';
import {
  type Announcement,
  DerivedPool,
  type DerivedShape,
  derivedContractOf,
  derivedDescriptor,
  Hashed,
  type Scope,
  workerFrames,
} from './support/derived-pool.js';
import { SOURCE, stored, storeMessage } from './support/messages.js';

const RANK_1 = { workerId: SOURCE.workerId, dpRank: 1 };
const OTHER = { workerId: 'other', dpRank: 0 };
const derivation = ({ cache }: DerivedPool) => cache.stats().derivation!;

// ---- proof ----

test('nothing is credited before an event agrees, all of it after, and the reason says so', async () => {
  const pool = await DerivedPool.open();
  const prompt = pool.prompt(1, 4);
  pool.store(prompt);
  assert.is(pool.hits(prompt), 0);
  assert.equal(pool.codes(prompt), ['hashes-unproven']);
  assert.equal(derivation(pool), { provenRanks: 0, agreed: 0, refuted: null });
  assert.equal(pool.teach(pool.prompt(2, 1)), { blocks: 0, refused: 'derived-only' });
  assert.is(pool.hits(prompt), 4);
  assert.equal(pool.codes(prompt), ['last-token']);
  assert.equal(derivation(pool), { provenRanks: 1, agreed: 1, refuted: null });
  const { edges, learned } = pool.cache.stats().core!;
  assert.equal([edges, Number(learned)], [4, 0], 'the event taught no edge');
});

test('with trustSeed nobody has to prove anything', async () => {
  const pool = await DerivedPool.open({ trustSeed: true });
  for (const scope of [{}, { loraName: 'a' }, { namespace: 'n' }, { rawSalt: 's', loraName: 'a' }] satisfies Scope[]) {
    const prompt = pool.prompt(1, 3, scope);
    pool.store(prompt);
    assert.is(pool.hits(prompt), 3, JSON.stringify(scope));
  }
  assert.is(pool.cache.provenRanks({ loraName: 'a' }), 'all');
  assert.ok(pool.cache.isProven(SOURCE, { rawSalt: 's' }));
});

for (const [seedPolicy, seed] of [
  ['pythonhashseed-0', '0'],
  ['pythonhashseed-42', '42'],
  ['vllm-none-hash', 'vllm-none-hash'],
] as const) {
  test(`engines of seed policy ${seedPolicy}: proven by their own events, and credited`, async () => {
    const pool = await DerivedPool.open({}, { seedPolicy });
    const prompt = pool.prompt(1, 3, { seed });
    pool.store(prompt);
    pool.teach(pool.prompt(2, 2, { seed }));
    assert.is(pool.hits(prompt), 3);
  });
}

// ---- another seed ----

type Told = readonly [how: string, (pool: DerivedPool, prompt: Hashed) => void];
const TELLINGS: readonly Told[] = [
  ['an event', (pool, prompt) => void pool.teach(prompt)],
  ['an event of one block', (pool, prompt) => void pool.teach(prompt, { end: 1 })],
  ['an event of 32-byte digests', (pool, prompt) => void pool.teach(prompt, { hashes: 'binary' })],
  ['a message', (pool, prompt) => void pool.tell([prompt.event()])],
  [
    'a message whose first events say nothing',
    (pool, prompt) => void pool.tell([prompt.event({ first: 1 }), prompt.event()]),
  ],
];

for (const [how, tell] of TELLINGS) {
  test(`contract of seed 0, worker of another, a pool left by seed 0: caught by ${how}, never credited`, async () => {
    const pool = await DerivedPool.open();
    const left = pool.prompt(1, 4);
    pool.store(left);
    assert.is(pool.hits(left), 0, 'before');
    tell(pool, pool.prompt(1, 4, { seed: '1' }));
    assert.is(pool.hits(left), 0, 'after');
    assert.is(pool.hits(left, { credits: 'proven-ranks' }), 0, 'for proven ranks');
    assert.equal(pool.codes(left), ['hashes-refuted']);
    const { text } = pool.explain(left).reasons[0]!;
    assert.match(text, /worker worker, rank 0/);
    assert.match(text, /PYTHONHASHSEED/);
    assert.match(derivation(pool).refuted!, /sha256 with seed "0"/);
    assert.is(pool.cache.provenRanks(), 'none');
    assert.is.not(pool.cache.isProven(SOURCE), true);
    // What agrees later changes nothing, nor does a restart or another rank, until the contract changes.
    pool.teach(left);
    pool.cache.sourceLost(SOURCE);
    pool.cache.updateContract(pool.contract, [SOURCE, RANK_1]);
    pool.teach(left, {}, RANK_1);
    assert.is(pool.hits(left), 0, 'for good');
  });
}

test('one rank that hashes otherwise ends derivation for all, however many had agreed', async () => {
  const pool = await DerivedPool.open({}, {}, [SOURCE, RANK_1]);
  const prompt = pool.prompt(1, 2);
  pool.store(prompt);
  pool.teach(prompt);
  pool.teach(prompt, {}, RANK_1);
  assert.is(pool.hits(prompt), 2);
  pool.teach(pool.prompt(2, 1, { seed: '7' }), {}, RANK_1);
  assert.is(pool.hits(prompt), 0);
  assert.match(derivation(pool).refuted!, /worker worker, rank 1/);
  assert.equal(pool.codes(prompt), ['hashes-refuted']);
});

test('trustSeed does not outlive an event that disagrees', async () => {
  const pool = await DerivedPool.open({ trustSeed: true });
  const prompt = pool.prompt(1, 2);
  pool.store(prompt);
  assert.is(pool.hits(prompt), 2);
  pool.teach(pool.prompt(2, 1, { seed: '1' }));
  assert.is(pool.hits(prompt), 0);
});

test('a pool left by another seed than that of contract and workers is never credited: its keys are others', async () => {
  for (const options of [{}, { trustSeed: true }]) {
    const pool = await DerivedPool.open(options, { groups: [{ ranks: 2 }] });
    const [left, own] = [pool.prompt(1, 4, { seed: '7' }), pool.prompt(1, 4)];
    pool.store(left);
    pool.teach(own);
    assert.is(pool.hits(own), 0);
    const { hits, reasons } = pool.explain(own);
    assert.is(hits.tokens, 0);
    assert.equal(
      reasons.map(({ code, missing }) => [code, missing]),
      [['object-missing', own.keys(pool.contract).slice(0, 2)]],
    );
  }
});

test('another contract is proven anew: other seeds, and the same contract that comes back', async () => {
  const pool = await DerivedPool.open();
  const prompt = pool.prompt(1, 2);
  const fill = () =>
    pool.cache.applyStoreMessage(
      storeMessage(
        1,
        prompt.keys(pool.contract).map((key) => stored(key)),
      ),
    );
  pool.teach(pool.prompt(2, 1, { seed: '42' }));
  assert.is.not(derivation(pool).refuted, null);
  pool.cache.updateContract(derivedContractOf({ seedPolicy: 'pythonhashseed-42' }), [SOURCE]);
  assert.equal(derivation(pool), { provenRanks: 0, agreed: 0, refuted: null });
  const other = pool.prompt(3, 2, { seed: '42' });
  pool.cache.applyStoreMessage(
    storeMessage(
      1,
      other.keys(pool.contract).map((key) => stored(key)),
    ),
  );
  assert.is(pool.hits(other), 0);
  pool.teach(other);
  assert.is(pool.hits(other), 2);
  pool.cache.updateContract(null);
  assert.is(pool.cache.stats().derivation, null);
  assert.is(pool.cache.provenRanks(), 'none');
  pool.cache.updateContract(pool.contract, [SOURCE]);
  fill();
  assert.is(pool.hits(prompt), 0, 'what was proven is forgotten, and so is what was refuted');
  pool.teach(prompt);
  assert.is(pool.hits(prompt), 2);
});

// ---- ranks ----

test('each admitted rank proves itself; those that have may be credited before', async () => {
  const pool = await DerivedPool.open({}, {}, [SOURCE, RANK_1, OTHER]);
  const prompt = pool.prompt(1, 3);
  pool.store(prompt);
  const state = () => [
    pool.cache.provenRanks(),
    pool.hits(prompt),
    [SOURCE, RANK_1, OTHER].map((source) => pool.cache.isProven(source)),
  ];
  assert.equal(state(), ['none', 0, [false, false, false]]);
  pool.teach(prompt, {}, RANK_1);
  assert.equal(state(), ['some', 0, [false, true, false]]);
  assert.is(pool.hits(prompt, { credits: 'proven-ranks' }), 3);
  assert.equal(pool.codes(prompt, { credits: 'proven-ranks' }), ['last-token']);
  pool.teach(prompt);
  assert.equal(state(), ['some', 0, [true, true, false]]);
  assert.equal(pool.codes(prompt), ['hashes-unproven']);
  pool.teach(prompt, {}, OTHER);
  assert.equal(state(), ['all', 3, [true, true, true]]);
});

test('a restart, and a rank that leaves and comes back, must prove themselves again', async () => {
  const pool = await DerivedPool.open({}, {}, [SOURCE, RANK_1]);
  const prompt = pool.prompt(1, 3);
  pool.store(prompt);
  const proveBoth = () => {
    for (const source of [SOURCE, RANK_1]) pool.teach(prompt, {}, source);
    assert.is(pool.hits(prompt), 3);
  };
  proveBoth();
  pool.cache.sourceLost(RANK_1);
  assert.equal([pool.hits(prompt), pool.cache.isProven(SOURCE), pool.cache.isProven(RANK_1)], [0, true, false]);
  proveBoth();
  pool.cache.updateContract(pool.contract, [SOURCE]);
  assert.is(pool.hits(prompt), 3, 'the one that is left has proven itself');
  pool.cache.updateContract(pool.contract, [SOURCE, RANK_1]);
  assert.equal([pool.hits(prompt), pool.cache.provenRanks(), derivation(pool).provenRanks], [0, 'some', 1]);
  proveBoth();
  pool.cache.updateContract(pool.contract, [SOURCE, RANK_1, OTHER]);
  assert.is(pool.hits(prompt), 0, 'a new one');
  pool.cache.updateContract(pool.contract, []);
  assert.equal([pool.hits(prompt), pool.cache.provenRanks()], [0, 'none'], 'nobody');
  pool.cache.updateContract(pool.contract, [SOURCE]);
  assert.is(pool.hits(prompt), 0);
});

test('a rank that is not admitted proves and refutes nothing', async () => {
  const pool = await DerivedPool.open();
  const prompt = pool.prompt(1, 2);
  pool.store(prompt);
  for (const source of [RANK_1, OTHER]) {
    assert.is(pool.teach(prompt, {}, source).refused, 'source-not-admitted');
    pool.tell([prompt.event()], source);
    pool.teach(pool.prompt(1, 2, { seed: '1' }), {}, source);
    pool.tell([pool.prompt(1, 2, { seed: '1' }).event()], source);
  }
  assert.equal(derivation(pool), { provenRanks: 0, agreed: 0, refuted: null });
});

// ---- kinds ----

const SCOPES = {
  plain: {},
  lora: { loraName: 'a' },
  salt: { namespace: 'n' },
  'lora and salt': { loraName: 'a', namespace: 'n' },
} satisfies Record<string, Scope>;
type Kind = keyof typeof SCOPES;
const KINDS = Object.keys(SCOPES) as Kind[];
/** What an event of a kind proves. */
const PROVES: Readonly<Record<Kind, readonly Kind[]>> = {
  plain: ['plain'],
  lora: ['plain', 'lora'],
  salt: ['plain', 'salt'],
  'lora and salt': KINDS,
};

for (const [said, proven] of Object.entries(PROVES) as [Kind, readonly Kind[]][]) {
  test(`an event of kind ${said} proves: ${proven.join(', ')}`, async () => {
    const pool = await DerivedPool.open();
    const asked = KINDS.map((kind, i) => [kind, pool.prompt(10 + i, 2, SCOPES[kind])] as const);
    for (const [, prompt] of asked) pool.store(prompt);
    pool.teach(pool.prompt(1, 1, SCOPES[said]));
    for (const [kind, prompt] of asked) {
      assert.is(pool.hits(prompt), proven.includes(kind) ? 2 : 0, kind);
      const { loraName = null, cacheSalt = null } = prompt.query();
      const expected = proven.includes(kind);
      assert.is(pool.cache.isProven(SOURCE, { loraName, cacheSalt }), expected, kind);
      assert.is(pool.cache.provenRanks({ loraName, cacheSalt }), expected ? 'all' : 'some', kind);
      if (!expected) assert.equal(pool.codes(prompt), ['hashes-unproven'], kind);
    }
    const raw = pool.prompt(20, 2, { rawSalt: 's' });
    pool.store(raw);
    assert.is(pool.hits(raw), proven.includes('salt') ? 2 : 0, 'a raw salt is a salt');
  });
}

test('kinds of two events add up, and each rank has its own', async () => {
  const pool = await DerivedPool.open({}, {}, [SOURCE, RANK_1]);
  const prompt = pool.prompt(1, 2, SCOPES['lora and salt']);
  pool.store(prompt);
  pool.teach(pool.prompt(2, 1, SCOPES.lora));
  pool.teach(pool.prompt(2, 1, SCOPES.salt), {}, RANK_1);
  assert.is(pool.hits(prompt), 0);
  pool.teach(pool.prompt(2, 1, SCOPES.salt));
  assert.is(pool.hits(prompt), 0);
  pool.teach(pool.prompt(2, 1, SCOPES.lora), {}, RANK_1);
  assert.is(pool.hits(prompt), 2);
});

test('engines that hash adapters otherwise: their plain requests are no proof, their first LoRA event refutes', async () => {
  const pool = await DerivedPool.open();
  const prompt = pool.prompt(1, 2, SCOPES.lora);
  pool.store(prompt);
  pool.teach(pool.prompt(2, 2));
  assert.is(pool.hits(prompt), 0);
  // As a release with tagged extra keys would: another text is hashed than the name.
  const tagged = pool.prompt(3, 1, { loraName: 'lora:a' });
  pool.teach(tagged, { fields: { lora_name: 'a', extra_keys: [['a']] } });
  assert.is(pool.hits(prompt), 0);
  assert.is.not(derivation(pool).refuted, null);
});

// ---- which events say something ----

test('an event behind a parent that only a lookup has derived proves, and refutes', async () => {
  for (const hashes of ['u64', 'binary'] as const) {
    const pool = await DerivedPool.open();
    const prompt = pool.prompt(1, 4);
    pool.store(prompt);
    pool.teach(prompt, { first: 2, hashes });
    assert.equal(derivation(pool), { provenRanks: 0, agreed: 0, refuted: null }, 'its parent is not known');
    // Looked up for others, or without effect: the blocks are derived.
    assert.is(pool.hits(prompt, { credits: 'proven-ranks' }), 4);
    const wrong = pool.prompt(1, 4, { seed: '1' });
    const parent = prompt.event({ first: 2, hashes })['parent_block_hash'];
    pool.teach(prompt, { first: 2, hashes });
    assert.equal([derivation(pool).provenRanks, pool.hits(prompt)], [1, 4], 'proven');
    pool.teach(wrong, { first: 2, hashes, fields: { parent_block_hash: parent } });
    assert.is.not(derivation(pool).refuted, null, 'refuted');
    assert.is(pool.hits(prompt), 0);
  }
});

test('32-byte digests are compared whole', async () => {
  const pool = await DerivedPool.open();
  const prompt = pool.prompt(1, 1);
  const twin = Buffer.from(prompt.digest(1), 'hex');
  twin[0] = twin[0]! ^ 1;
  pool.teach(prompt, { fields: { block_hashes: [new Uint8Array(twin)] } });
  assert.is.not(derivation(pool).refuted, null);
});

test('events of several hash blocks, and of one with several hash blocks in each', async () => {
  for (const hashBlockSize of [1, 4, 8]) {
    for (const seed of ['0', '1']) {
      const pool = await DerivedPool.open({}, { hashBlockSize });
      const prompt = pool.prompt(1, 3);
      pool.store(prompt);
      pool.teach(pool.prompt(2, 3, { seed }));
      assert.is(pool.hits(prompt), seed === '0' ? 3 : 0, `${hashBlockSize} ${seed}`);
      assert.is(derivation(pool).refuted === null, seed === '0');
    }
  }
});

/** Events that may not teach: whatever they are hashed with, they say nothing about the rule. */
const SILENT: Readonly<Record<string, { readonly scope?: Scope; readonly announcement: Announcement }>> = {
  'a raw salt': { scope: { rawSalt: 's' }, announcement: {} },
  multimodal: { announcement: { fields: { block_mm_infos: [{ mm_hash: 1 }, null] } } },
  'an image’s hash among the extra keys': { announcement: { fields: { extra_keys: [['image'], null] } } },
  'prompt embeddings': { announcement: { fields: { extra_keys: [[Uint8Array.of(1)], null] } } },
  'another group': { announcement: { fields: { group_idx: 1, kv_cache_spec_kind: 'full_attention' } } },
  'host memory': { announcement: { fields: { medium: 'CPU' } } },
  'another block size': { announcement: { fields: { block_size: 8 } } },
  sparse: { announcement: { fields: { token_ids: Array.from({ length: 31 }, (_, i) => i) } } },
  'flagged ineligible': { announcement: { fields: { shared_cache_eligible: false } } },
  speculative: { announcement: { fields: { is_eagle: true } } },
  'an adapter without a name': { announcement: { fields: { lora_id: 7 } } },
  'a namespace said outright': { announcement: { fields: { cache_salt: 'n' } } },
  'a parent that nobody knows': { announcement: { first: 1, end: 2 } },
};

for (const [name, { scope = {}, announcement }] of Object.entries(SILENT)) {
  test(`no proof and no refutation: ${name}`, async () => {
    for (const seed of ['0', '1']) {
      const pool = await DerivedPool.open();
      const prompt = pool.prompt(1, 2, { ...scope, seed });
      pool.teach(prompt, announcement);
      pool.tell([prompt.event(announcement)]);
      assert.equal(derivation(pool), { provenRanks: 0, agreed: 0, refuted: null }, seed);
      // It does not hide a good event behind it, either.
      pool.tell([prompt.event(announcement), pool.prompt(2, 1).event()]);
      assert.is(derivation(pool).provenRanks, 1, seed);
    }
  });
}

test('a busy worker: the first event of a new prompt is found behind many of prompts that were there before', async () => {
  for (const seed of ['0', '1']) {
    const pool = await DerivedPool.open();
    // Running requests come first in an engine's step, and nobody has derived what they stand behind.
    const running = Array.from({ length: 40 }, (_, i) => pool.prompt(i + 10, 3, { seed }).event({ first: 2 }));
    pool.tell([...running, pool.prompt(1, 2, { seed }).event()]);
    const { provenRanks, refuted } = derivation(pool);
    assert.equal([provenRanks, refuted === null], seed === '0' ? [1, true] : [0, false]);
  }
});

test('refusals are counted, whether events come by themselves or in messages', async () => {
  const pool = await DerivedPool.open();
  const multimodal = pool.prompt(1, 2).event({ fields: { block_mm_infos: [{ mm_hash: 1 }, null] } });
  const inHost = pool.prompt(2, 2).event({ fields: { medium: 'CPU' } });
  pool.tell([multimodal, inHost, multimodal]);
  assert.equal(pool.cache.stats().refusals, { multimodal: 2, 'not-device-tier': 1 });
  pool.tell([multimodal], OTHER);
  assert.equal(pool.cache.stats().refusals, { multimodal: 2, 'not-device-tier': 1, 'source-not-admitted': 1 });
});

test('a block of more tokens than the core takes in at once says nothing, and breaks nothing', async () => {
  const BIG = 1_060_000; // the reader takes as many
  const pool = await DerivedPool.open({}, { blockSize: BIG, hashBlockSize: 4_000 });
  const event = {
    type: 'BlockStored',
    block_hashes: [1],
    parent_block_hash: null,
    token_ids: new Array<number>(BIG).fill(0),
    block_size: BIG,
    medium: 'GPU',
  };
  pool.tell([event, event]);
  assert.is(derivation(pool).refuted, null);
});

test('no main event group: no event proves anything, and only trustSeed lets hashes be credited', async () => {
  for (const trustSeed of [false, true]) {
    for (const hashing of ['derived', 'both'] as const) {
      const pool = await DerivedPool.open({ hashing, trustSeed }, { noMainGroup: true });
      assert.is(pool.contract.mainEventGroup, null);
      const prompt = pool.prompt(1, 3);
      pool.store(prompt);
      for (const seed of ['0', '1']) {
        const event = pool.prompt(2, 2, { seed });
        assert.is(pool.teach(event).refused, 'not-main-group');
        pool.tell([event.event()]);
      }
      assert.equal(derivation(pool), { provenRanks: 0, agreed: 0, refuted: null });
      assert.is(pool.hits(prompt), trustSeed ? 3 : 0);
      if (!trustSeed) assert.is(pool.codes(prompt)[0], 'hashes-unproven');
    }
  }
});

test('agreeing events are counted, one a message', async () => {
  const pool = await DerivedPool.open();
  const prompts = Array.from({ length: 6 }, (_, i) => pool.prompt(i + 1, 1).event());
  pool.tell(prompts);
  assert.is(derivation(pool).agreed, 1);
  for (let i = 0; i < 5; i++) pool.teach(pool.prompt(20 + i, 1));
  assert.equal(derivation(pool), { provenRanks: 1, agreed: 6, refuted: null });
});

test('pending, stopped and without a contract: events prove nothing', async () => {
  let pending = true;
  const pool = await DerivedPool.open({ isPending: () => pending });
  const prompt = pool.prompt(1, 1);
  assert.is(pool.teach(prompt).refused, 'pending');
  pool.tell([prompt.event()]);
  pending = false;
  assert.is(derivation(pool).provenRanks, 0);
  pool.cache.stop();
  pool.teach(prompt);
  assert.is(derivation(pool).provenRanks, 0);
});

// ---- both ----

test('both: while unproven and once refuted, learned edges answer', async () => {
  const pool = await DerivedPool.open({ hashing: 'both' }, {}, [SOURCE, RANK_1]);
  const prompt = pool.prompt(1, 4);
  pool.store(prompt);
  assert.is(pool.teach(prompt, { end: 3 }).refused, null);
  assert.is(pool.hits(prompt), 3, 'learned: rank 1 has proven nothing');
  assert.equal(pool.codes(prompt), ['not-learned', 'hashes-unproven']);
  assert.is(pool.hits(prompt, { credits: 'proven-ranks' }), 4, 'derived');
  pool.teach(prompt, { end: 1 }, RANK_1);
  assert.is(pool.hits(prompt), 4);
  assert.equal(pool.codes(prompt), ['last-token']);
  pool.teach(pool.prompt(2, 1, { seed: '1' }), {}, RANK_1);
  assert.is(pool.hits(prompt), 3, 'learned again');
  assert.is(pool.hits(prompt, { credits: 'proven-ranks' }), 3);
  assert.equal(pool.codes(prompt), ['not-learned', 'hashes-refuted']);
  assert.is(pool.teach(prompt).blocks, 4);
  assert.is(pool.hits(prompt), 4);
});

test('both: engines of another seed than their contract says teach what they hash, and that is credited alone', async () => {
  const pool = await DerivedPool.open({ hashing: 'both' });
  const [left, own] = [pool.prompt(1, 3), pool.prompt(1, 3, { seed: '1' })];
  pool.store(left);
  pool.teach(own);
  assert.is(pool.hits(own), 0);
  pool.store(own);
  assert.is(pool.hits(own), 3);
});

test('both: local hashes alone are looked up along learned edges; derived: they get a reason', async () => {
  for (const hashing of ['derived', 'both'] as const) {
    const pool = await DerivedPool.open({ hashing });
    const prompt = pool.prompt(1, 3);
    pool.store(prompt);
    pool.teach(prompt);
    const { tokens: _given, ...query } = prompt.query();
    const asked = { ...query, localHashes: blockHashes(prompt.tokens, 16).subarray(0, 3) };
    assert.is(pool.cache.lookup(asked).blocks, hashing === 'both' ? 3 : 0);
    const { hits, reasons } = pool.cache.explain(asked);
    assert.is(hits.blocks, hashing === 'both' ? 3 : 0);
    assert.ok(
      reasons.some(({ code }) => code === 'tokens-missing'),
      hashing,
    );
  }
});

test('both: a contract whose events teach nothing is derived, and a raw salt has no learned answer', async () => {
  const unlearnable = await DerivedPool.open({ hashing: 'both' }, { noMainGroup: true, groups: [{}] });
  assert.is(unlearnable.contract.learnable, false);
  const pool = await DerivedPool.open({ hashing: 'both' });
  const prompt = pool.prompt(1, 2, { rawSalt: 's' });
  pool.store(prompt);
  assert.is(pool.hits(prompt), 0);
  assert.equal(pool.codes(prompt), ['hashes-unproven', 'ineligible']);
  pool.teach(pool.prompt(2, 1, SCOPES.salt));
  assert.is(pool.hits(prompt), 2);
});

// ---- a cache of another mode ----

test('a cache that learns, given a contract that can only be derived: contract-unfit, and nothing happens', async () => {
  const pool = await DerivedPool.open({ hashing: 'learned' }, { noMainGroup: true });
  const prompt = pool.prompt(1, 2);
  pool.store(prompt);
  assert.is(pool.teach(prompt).refused, 'no-contract');
  assert.is(pool.hits(prompt), 0);
  assert.equal(pool.codes(prompt), ['contract-unfit']);
  assert.is(pool.cache.contract, null);
  assert.equal(
    [pool.cache.stats().derivation, pool.cache.provenRanks(), pool.cache.isProven(SOURCE)],
    [null, 'none', false],
  );
  pool.cache.updateContract(derivedContractOf(), [SOURCE]);
  pool.store(prompt);
  pool.teach(prompt);
  assert.is(pool.hits(prompt), 2, 'the next one is fit');
});

test('a mode that there is not is refused when the cache is made', async () => {
  for (const hashing of ['guessed', '', 1] as unknown as Hashing[]) {
    let error: unknown;
    await SharedCache.create({ hashing }).catch((thrown) => (error = thrown));
    assert.ok(error instanceof ConfigError && error.code === 'hashing', String(hashing));
  }
});

// ---- in the router ----

class RoutedPool {
  #sequence = 0;
  private constructor(readonly router: Router) {}

  static async open(workers: number, cache: SharedCacheOptions = {}, shape: DerivedShape = {}): Promise<RoutedPool> {
    const router = await Router.create({
      index: { bytes: 4 << 20 },
      settings: { sharedCacheType: 'mooncake-store' },
      cache: { hashing: 'derived', ...cache },
    });
    for (let id = 0; id < workers; id++) router.addWorker({ id, descriptor: derivedDescriptor(shape) });
    return new RoutedPool(router);
  }

  store(prompt: Hashed): void {
    this.#sequence++;
    const keys = prompt.keys(derivedContractOf());
    this.router.onStoreMessage(
      storeMessage(
        this.#sequence,
        keys.map((key) => stored(key)),
      ),
    );
  }

  announce(id: number, prompt: Hashed, dpRank = 0): void {
    this.router.onWorkerMessage(id, workerFrames([prompt.event()], dpRank));
  }

  /** What each worker is credited with, and else why not. */
  shared(prompt: Hashed, request: RouteRequest = {}): (number | string)[] {
    const { loraName = null, cacheSalt = null } = prompt.query();
    const { candidates } = this.router.route({
      tokens: prompt.tokens,
      textOnly: true,
      explain: true,
      loraName,
      cacheSalt,
      ...request,
    });
    return candidates!.map(({ blocks, zero }: CandidateView) =>
      blocks.shared > 0 ? blocks.shared : zero.shared!.code,
    );
  }
}

test('router: of two workers only the proven one gets shared credit, the other a reason', async () => {
  const pool = await RoutedPool.open(2);
  const prompt = new Hashed(1, 4);
  pool.store(prompt);
  assert.equal(pool.shared(prompt), ['hashes-unproven', 'hashes-unproven']);
  pool.announce(1, new Hashed(2, 1));
  assert.equal(pool.shared(prompt), ['hashes-unproven', 4]);
  const { worker } = pool.router.route({ tokens: prompt.tokens, textOnly: true });
  assert.is(worker.id, 1);
  pool.announce(0, new Hashed(3, 1));
  assert.equal(pool.shared(prompt), [4, 4]);
});

test('router: kinds are proven by each worker itself', async () => {
  const pool = await RoutedPool.open(2);
  const prompt = new Hashed(1, 4, { namespace: 'n' });
  pool.store(prompt);
  pool.announce(0, new Hashed(2, 1));
  pool.announce(1, new Hashed(2, 1));
  assert.equal(pool.shared(prompt), ['hashes-unproven', 'hashes-unproven']);
  pool.announce(1, new Hashed(3, 1, { namespace: 'm' }));
  assert.equal(pool.shared(prompt), ['hashes-unproven', 4]);
});

test('router: a lost stream and a worker that comes back must prove themselves again', async () => {
  const pool = await RoutedPool.open(2);
  const prompt = new Hashed(1, 4);
  pool.store(prompt);
  const prove = () => {
    for (const id of [0, 1]) pool.announce(id, new Hashed(2, 1));
    assert.equal(pool.shared(prompt), [4, 4]);
  };
  prove();
  pool.router.workerStreamLost(0);
  assert.equal(pool.shared(prompt), ['hashes-unproven', 4]);
  prove();
  pool.router.workerStreamLost(1, 0);
  assert.equal(pool.shared(prompt), [4, 'hashes-unproven']);
  pool.router.workerStreamLost(0, 7);
  assert.equal(pool.shared(prompt), [4, 'hashes-unproven'], 'another rank');
  prove();
  pool.router.removeWorker(1);
  pool.router.addWorker({ id: 1, descriptor: derivedDescriptor() });
  assert.equal(pool.shared(prompt), [4, 'hashes-unproven']);
});

test('router: one event that disagrees ends shared credit for every worker', async () => {
  const pool = await RoutedPool.open(2);
  const prompt = new Hashed(1, 4);
  pool.store(prompt);
  for (const id of [0, 1]) pool.announce(id, new Hashed(2, 1));
  pool.announce(1, new Hashed(3, 1, { seed: '1' }));
  assert.equal(pool.shared(prompt), ['hashes-refuted', 'hashes-refuted']);
});

test('router, both: who has not proven itself gets what is learned, and who has what is derived', async () => {
  const pool = await RoutedPool.open(2, { hashing: 'both' });
  const prompt = new Hashed(1, 4);
  pool.store(prompt);
  const short = new Hashed(1, 2); // the same tokens
  pool.announce(1, short);
  pool.router.onWorkerMessage(
    1,
    workerFrames([{ type: 'BlockRemoved', block_hashes: short.event()['block_hashes'], medium: 'GPU' }]),
  );
  assert.equal(pool.shared(prompt), [2, 4]);
});

test('router: local hashes alone are said to be too little, where hashes are only derived', async () => {
  const pool = await RoutedPool.open(1);
  const prompt = new Hashed(1, 4);
  pool.store(prompt);
  pool.announce(0, new Hashed(2, 1));
  const { candidates } = pool.router.route({
    localHashes: blockHashes(prompt.tokens, 16),
    tokenCount: prompt.tokens.length,
    textOnly: true,
    explain: true,
  });
  assert.is(candidates![0]!.zero.shared!.code, 'tokens-missing');
});

test('router: tokens as a plain list, and a prompt that ends with a block', async () => {
  const pool = await RoutedPool.open(1);
  const prompt = new Hashed(1, 4);
  pool.store(prompt);
  pool.announce(0, new Hashed(2, 1));
  const list = Array.from(prompt.tokens);
  for (const [length, blocks] of [
    [65, 4],
    [64, 3],
    [63, 3],
    [33, 2],
  ] as const) {
    assert.equal(pool.shared(prompt, { tokens: list.slice(0, length) }), [blocks], String(length));
    assert.equal(pool.shared(prompt, { tokens: prompt.tokens.slice(0, length) }), [blocks], String(length));
  }
});

test('router: a descriptor that can only be derived is refused by a router that learns', async () => {
  const descriptor = derivedDescriptor({ noMainGroup: true });
  for (const [hashing, admitted] of [
    ['learned', 'contract-invalid'],
    ['derived', 'admitted'],
    ['both', 'admitted'],
  ] as const) {
    const router = await Router.create({
      index: { bytes: 4 << 20 },
      settings: { sharedCacheType: 'mooncake-store' },
      cache: { hashing, trustSeed: true },
    });
    router.addWorker({ id: 0, descriptor });
    const { candidates } = router.route({ tokens: new Uint32Array(40), textOnly: true, explain: true });
    assert.is(candidates![0]!.admission, admitted, hashing);
  }
  assert.ok(validateContract(descriptor, { hashing: 'derived' }));
});

test.run();
