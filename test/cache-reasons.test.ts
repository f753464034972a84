// Every "no" has a reason: each code of src/cache/reasons.ts at least once, with the block, group and object keys that are to blame.
// The table is typed by the codes, so that a new one does not compile without an example here.
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Reason, ReasonCode } from '../src/cache/reasons.js';
import { SharedCache } from '../src/cache/shared-cache.js';
import type { CacheQuery, Explanation } from '../src/cache/types.js';
import { derivedAdapterOf, PINNED_REVISION } from '../src/contract/revisions.js';
import { validateContract } from '../src/contract/validate.js';
import { blockHashes } from '../src/core/local-hash.js';
import type { NormalisedStored } from '../src/events/normaliser.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { DerivedPool } from './support/derived-pool.js';
import { smallDescriptor } from './support/descriptor.js';
import { cleared, contractOf, framesOf, Pool, prefixOf, removed, SOURCE, stored, twinOf } from './support/messages.js';

/** What an example explains, in blocks, and its reasons: code, block, group, missing keys. */
type Place = readonly [code: ReasonCode, block: number | null, group?: number, missing?: readonly string[]];
interface Example {
  readonly explanation: Explanation;
  readonly hits: number;
  readonly reasons: readonly Place[];
}

const REQUEST_BLOCKS = 262_144;
/** A filled prompt of four blocks, asked for with a query that differs from its own. */
async function asked(change: Partial<CacheQuery>, hits: number, reasons: readonly Place[]): Promise<Example> {
  const pool = await Pool.open();
  const query = { ...pool.filled(1, 4).query(), ...change };
  return { explanation: pool.cache.explain(query), hits, reasons };
}

const examples: Readonly<Record<ReasonCode, () => Promise<Example>>> = {
  stopped: async () => {
    const pool = await Pool.open();
    const prompt = pool.filled(1, 4);
    pool.cache.stop();
    return { explanation: pool.explain(prompt), hits: 0, reasons: [['stopped', null]] };
  },
  pending: async () => {
    let pending = false;
    const pool = await Pool.open({}, { isPending: () => pending });
    const prompt = pool.filled(1, 4);
    pending = true;
    return { explanation: pool.explain(prompt), hits: 0, reasons: [['pending', null]] };
  },
  'no-contract': async () => {
    const pool = await Pool.open();
    const prompt = pool.filled(1, 4);
    pool.cache.updateContract(null);
    return { explanation: pool.explain(prompt), hits: 0, reasons: [['no-contract', null]] };
  },
  'contract-too-large': async () => {
    const cache = await SharedCache.create({ limits: { edges: 262_145 } });
    cache.updateContract(contractOf({ groups: Array.from({ length: 9 }, () => ({})) }), [SOURCE]);
    const query = { tokens: new Uint32Array(17), tokenCount: 17, blockSize: 16, eligible: true };
    return { explanation: cache.explain(query), hits: 0, reasons: [['contract-too-large', null]] };
  },
  ineligible: () => asked({ eligible: false }, 0, [['ineligible', null]]),
  'block-size': () => asked({ blockSize: 32 }, 0, [['block-size', null]]),
  'empty-prompt': () => asked({ tokenCount: 0 }, 0, [['empty-prompt', null]]),
  'too-short': () => asked({ tokenCount: 16 }, 0, [['too-short', null]]),
  'request-too-long': async () => {
    const explain = await longPrompt();
    return {
      explanation: explain(REQUEST_BLOCKS + 2),
      hits: 0,
      reasons: [['residency-empty', null], ...unseen(0, [prefixOf(0, 0)]), ['request-too-long', REQUEST_BLOCKS]],
    };
  },
  'hashes-missing': async () => {
    const pool = await Pool.open();
    const prompt = pool.filled(1, 4);
    const localHashes = blockHashes(prompt.tokens, 16).subarray(0, 2);
    const query = { localHashes, tokenCount: prompt.tokens.length, blockSize: 16, eligible: true };
    return { explanation: pool.cache.explain(query), hits: 2, reasons: [['hashes-missing', 2]] };
  },
  'not-learned': async () => {
    const pool = await Pool.open();
    const prompt = pool.prompt(1, 4);
    pool.teach(prompt, { end: 2 });
    pool.send(prompt.keys(pool.contract).map((key) => stored(key)));
    return { explanation: pool.explain(prompt), hits: 2, reasons: [['not-learned', 2]] };
  },
  conflict: async () => {
    const pool = await Pool.open();
    const prompt = pool.filled(1, 4);
    const foreignHash = Buffer.from(pool.prompt(2, 1).digest(0), 'hex').readBigUInt64BE(24);
    pool.teach(prompt, { first: 3, fields: { block_hashes: [foreignHash] } });
    return { explanation: pool.explain(prompt), hits: 3, reasons: [['conflict', 3]] };
  },
  'residency-empty': async () => {
    const pool = await Pool.open();
    const prompt = pool.filled(1, 4);
    pool.cache.streamLost('disconnect');
    return {
      explanation: pool.explain(prompt),
      hits: 0,
      reasons: [['residency-empty', null], ...unseen(0, [`${prefixOf(0, 0)}@${prompt.digest(0)}`])],
    };
  },
  'object-missing': async () => {
    const pool = await Pool.open({ groups: [{ ranks: 3 }] });
    const prompt = pool.filled(1, 4);
    const gone = [0, 2].map((rank) => `${prefixOf(0, rank)}@${prompt.digest(2)}`);
    pool.send(gone.map((key) => removed(key)));
    return { explanation: pool.explain(prompt), hits: 2, reasons: [['object-missing', 2, 0, gone]] };
  },
  'digest-ambiguous': async () => {
    const pool = await Pool.open();
    const prompt = pool.filled(1, 4);
    pool.send([stored(`${prefixOf(0, 0)}@${twinOf(prompt.digest(1))}`)]);
    return { explanation: pool.explain(prompt), hits: 1, reasons: [['digest-ambiguous', 1, 0]] };
  },
  'endpoint-alignment': async () => {
    const pool = await Pool.open({ lcm: 32 });
    return { explanation: pool.explain(pool.filled(1, 3)), hits: 2, reasons: [['endpoint-alignment', 2]] };
  },
  'unseen-boundary': async () => {
    const pool = await Pool.open({ hashBlockSize: 8, partial: true });
    const prompt = pool.filled(1, 2);
    pool.send([removed(`${prefixOf(0, 0)}@${prompt.digest(1)}`)]);
    return {
      explanation: pool.explain(prompt),
      hits: 1,
      reasons: [
        ['object-missing', 1, 0, [`${prefixOf(0, 0)}@${prompt.digest(1)}`]],
        ['unseen-boundary', 1],
      ],
    };
  },
  'last-token': () => asked({}, 4, [['last-token', 4]]),
  // Where hashes are derived; more of these in derived-reasons.test.ts.
  'contract-unverified': async () => {
    const cache = await SharedCache.create();
    const descriptor = { ...smallDescriptor(), adapter: derivedAdapterOf(PINNED_REVISION) };
    cache.updateContract(validateContract(descriptor), []);
    const query = { localHashes: new BigUint64Array(4), tokenCount: 65, blockSize: 16, eligible: true };
    return { explanation: cache.explain(query), hits: 0, reasons: [['contract-unverified', null]] };
  },
  'contract-unfit': async () => {
    const pool = await DerivedPool.open({ hashing: 'learned' }, { noMainGroup: true });
    return { explanation: pool.explain(pool.prompt(1, 4)), hits: 0, reasons: [['contract-unfit', null]] };
  },
  'hashes-unproven': async () => {
    const pool = await DerivedPool.open();
    const prompt = pool.prompt(1, 4);
    pool.store(prompt);
    return { explanation: pool.explain(prompt), hits: 0, reasons: [['hashes-unproven', null]] };
  },
  'hashes-refuted': async () => {
    const pool = await DerivedPool.open();
    const prompt = pool.prompt(1, 4);
    pool.store(prompt);
    pool.teach(pool.prompt(1, 4, { seed: '1' }));
    return { explanation: pool.explain(prompt), hits: 0, reasons: [['hashes-refuted', null]] };
  },
  'tokens-missing': async () => {
    const pool = await DerivedPool.open({ trustSeed: true });
    const prompt = pool.prompt(1, 4);
    pool.store(prompt);
    const localHashes = blockHashes(prompt.tokens, 16);
    const query = { localHashes, tokenCount: prompt.tokens.length, blockSize: 16, eligible: true };
    return { explanation: pool.cache.explain(query), hits: 0, reasons: [['tokens-missing', null]] };
  },
  'not-derived': async () => {
    const pool = await DerivedPool.open({ trustSeed: true });
    const prompt = pool.prompt(1, 4);
    pool.store(prompt);
    pool.send([stored(`${prefixOf(0, 0)}@${twinOf(prompt.digest(3))}`)]);
    return { explanation: pool.explain(prompt), hits: 2, reasons: [['not-derived', 2]] };
  },
};

/** The reason of a full-attention group 0 that lacks everything from `block` on. */
function unseen(block: number, missing: readonly string[]): Place[] {
  return [['object-missing', block, 0, missing]];
}

/** Explains a prompt of one-token blocks, of which the worker announced as many as one lookup reads. */
async function longPrompt(): Promise<(tokenCount: number) => Explanation> {
  const pool = await Pool.open({ blockSize: 1 });
  const tokens = Uint32Array.from({ length: REQUEST_BLOCKS + 2 }, (_, i) => i);
  const perEvent = REQUEST_BLOCKS / 4;
  const workers = new WorkerEvents();
  for (let first = 0; first < REQUEST_BLOCKS; first += perEvent) {
    const event = {
      type: 'BlockStored',
      block_hashes: Array.from({ length: perEvent }, (_, i) => first + i + 1),
      parent_block_hash: first === 0 ? null : first,
      token_ids: Array.from(tokens.subarray(first, first + perEvent)),
      block_size: 1,
    };
    const message = workers.read('worker', framesOf(0, encode([0, [event], 0])));
    assert.is(pool.cache.observeStored(SOURCE, message.events[0] as NormalisedStored).blocks, perEvent);
  }
  return (tokenCount) => pool.cache.explain({ tokens, tokenCount, blockSize: 1, eligible: true });
}

const codesOf = ({ reasons }: Explanation) => reasons.map(({ code }) => code);
const placesOf = (reasons: readonly Reason[]) =>
  reasons.map(({ code, block, group, missing }) => [code, block, group, [...missing]]);
const filledOut = (places: readonly Place[]) =>
  places.map(([code, block, group = null, missing = []]) => [code, block, group, [...missing]]);

for (const [code, example] of Object.entries(examples)) {
  test(`${code}: the hit, and every reason with its place`, async () => {
    const { explanation, hits, reasons } = await example();
    assert.is(explanation.hits.blocks, hits);
    assert.equal(placesOf(explanation.reasons), filledOut(reasons));
    assert.ok(
      explanation.reasons.some((reason) => reason.code === code),
      code,
    );
    for (const { text } of explanation.reasons) assert.ok(text.length > 10, text);
  });
}

// ---- which block, which group ----

test('object-missing: a digest of which no object was ever seen is named by its prefixes alone', async () => {
  const pool = await Pool.open({ groups: [{ ranks: 2 }] });
  const prompt = pool.prompt(1, 2);
  pool.teach(prompt);
  pool.send(
    prompt
      .keys(pool.contract)
      .slice(0, 2)
      .map((key) => stored(key)),
  );
  const { hits, reasons } = pool.explain(prompt);
  assert.is(hits.blocks, 1);
  assert.equal(placesOf(reasons), [['object-missing', 1, 0, [prefixOf(0, 0), prefixOf(0, 1)]]]);
});

test('object-missing: a digest from a worker’s 32-byte event is named though no object was ever seen', async () => {
  const pool = await Pool.open({ groups: [{ ranks: 2 }] });
  const prompt = pool.prompt(1, 1);
  pool.teach(prompt, { hashes: 'binary' });
  pool.filled(2, 1); // so that residency is not empty
  assert.equal(placesOf(pool.explain(prompt).reasons), [
    ['object-missing', 0, 0, [0, 1].map((rank) => `${prefixOf(0, rank)}@${prompt.digest(0)}`)],
  ]);
});

test('object-missing: a text shows at most three keys, the list has all', async () => {
  const pool = await Pool.open({ groups: [{ ranks: 8 }] });
  const prompt = pool.prompt(1, 1);
  pool.teach(prompt);
  pool.filled(2, 1);
  const [why] = pool.explain(prompt).reasons;
  assert.is(why!.missing.length, 8);
  assert.match(why!.text, '(8 in all)');
  assert.not.match(why!.text, prefixOf(0, 3));
});

test('object-missing: every group that stands in the way is named, full attention at its first gap', async () => {
  const pool = await Pool.open({ groups: [{}, { ranks: 2 }, { kind: 'mamba' }] });
  const prompt = pool.filled(1, 6);
  const key = (group: number, rank: number, block: number) => `${prefixOf(group, rank)}@${prompt.digest(block)}`;
  // Group 0 breaks at block 4, group 1 of the same kind at 3: they are one unit, and 3 decides.
  pool.send([key(0, 0, 4), key(1, 1, 3), key(2, 0, 2)].map((gone) => removed(gone)));
  const { hits, reasons } = pool.explain(prompt);
  assert.is(hits.blocks, 2);
  assert.equal(placesOf(reasons), [
    ['object-missing', 3, 1, [key(1, 1, 3)]],
    ['object-missing', 2, 2, [key(2, 0, 2)]],
  ]);
});

test('object-missing: a mamba group is named at the highest endpoint that lacks its state', async () => {
  const pool = await Pool.open({ groups: [{}, { kind: 'mamba' }] });
  const prompt = pool.filled(1, 4);
  const state = (block: number) => `${prefixOf(1, 0)}@${prompt.digest(block)}`;
  pool.send([removed(state(3)), removed(state(2))]);
  const { hits, reasons } = pool.explain(prompt);
  assert.is(hits.blocks, 2);
  assert.equal(placesOf(reasons), [['object-missing', 3, 1, [state(3)]]]);
});

test('object-missing: a sliding window is named at the highest gap inside the window of the last endpoint', async () => {
  const pool = await Pool.open({ groups: [{}, { kind: 'sliding_window', window: 33 }] }); // two blocks back
  const prompt = pool.filled(1, 6);
  const part = (block: number) => `${prefixOf(1, 0)}@${prompt.digest(block)}`;
  pool.send([removed(part(4)), removed(part(1))]);
  const { hits, reasons } = pool.explain(prompt);
  assert.is(hits.blocks, 4); // blocks 2 and 3 are there
  assert.equal(placesOf(reasons), [['object-missing', 4, 1, [part(4)]]]);
});

test('object-missing: groups of larger blocks are named at the end of theirs', async () => {
  const pool = await Pool.open({ groups: [{}, { blockSize: 32 }], lcm: 32 });
  const prompt = pool.filled(1, 6);
  const coarse = `${prefixOf(1, 0)}@${prompt.digestAt(4 * 16)}`;
  pool.send([removed(coarse)]);
  const { hits, reasons } = pool.explain(prompt);
  assert.is(hits.blocks, 2);
  assert.equal(placesOf(reasons), [['object-missing', 3, 1, [coarse]]]);
});

test('a chain that ends and objects that are missing are both named, the missing ones first', async () => {
  const pool = await Pool.open();
  const prompt = pool.prompt(1, 4);
  pool.teach(prompt, { end: 3 });
  const keys = prompt.keys(pool.contract);
  pool.send([keys[0], keys[2]].map((key) => stored(key)));
  const { hits, reasons } = pool.explain(prompt);
  assert.is(hits.blocks, 1);
  assert.equal(placesOf(reasons), [
    ['object-missing', 1, 0, [prefixOf(0, 0)]],
    ['not-learned', 3, null, []],
  ]);
});

test('empty-prompt: a count of tokens that is no whole number from 1 to 2^32 − 1', async () => {
  for (const tokenCount of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32]) {
    const { explanation } = await asked({ tokenCount }, 0, []);
    assert.equal(placesOf(explanation.reasons), [['empty-prompt', null, null, []]], String(tokenCount));
  }
});

test('too-short: one token behind the first block makes it a hit', async () => {
  for (const [tokenCount, blocks] of [
    [1, 0],
    [15, 0],
    [16, 0],
    [17, 1],
    [32, 1],
    [33, 2],
  ] as const) {
    const { explanation } = await asked({ tokenCount }, 0, []);
    assert.is(explanation.hits.blocks, blocks, String(tokenCount));
    assert.is(explanation.reasons[0]!.code, blocks === 0 ? 'too-short' : 'last-token');
  }
});

test('hashes-missing: neither local hashes nor tokens', async () => {
  const pool = await Pool.open();
  pool.filled(1, 4);
  const explanation = pool.cache.explain({ tokenCount: 65, blockSize: 16, eligible: true });
  assert.equal(placesOf(explanation.reasons), [['hashes-missing', 0, null, []]]);
});

test('unseen-boundary: only with partial hits, and only where digests are finer than blocks', async () => {
  for (const [partial, hashBlockSize, codes] of [
    [true, 8, ['object-missing', 'unseen-boundary']],
    [true, 16, ['object-missing']],
    [false, 8, ['object-missing']],
  ] as const) {
    const pool = await Pool.open({ partial, hashBlockSize });
    const prompt = pool.filled(1, 3);
    pool.send([removed(prompt.keys(pool.contract)[1])]);
    const explanation = pool.explain(prompt);
    assert.equal([explanation.hits.blocks, codesOf(explanation)], [1, codes]);
  }
});

test('residency-empty: says that no message came under this contract, when none did', async () => {
  const pool = await Pool.open();
  const prompt = pool.prompt(1, 1);
  pool.teach(prompt);
  assert.match(pool.explain(prompt).reasons[0]!.text, 'no store message has been applied');
});

// ---- what a reason must not say ----

test('request-too-long: not where only the last token is left out, which is computed anyway', async () => {
  const explain = await longPrompt();
  assert.not(codesOf(explain(REQUEST_BLOCKS)).includes('request-too-long'));
  assert.not(codesOf(explain(REQUEST_BLOCKS + 1)).includes('request-too-long'));
});

test('request-too-long: the caller gave all its tokens, so no hashes are missing', async () => {
  const explain = await longPrompt();
  assert.not(codesOf(explain(REQUEST_BLOCKS + 2)).includes('hashes-missing'));
});

test('residency-empty: does not say that no message came when the master itself cleared or listed nothing', async () => {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 1);
  const text = () => pool.explain(prompt).reasons[0]!.text;
  pool.send([cleared()]);
  assert.not.match(text(), /no store message|contract-change/);
  pool.cache.streamLost('disconnect');
  pool.cache.reconcile(pool.cache.beginReconcile(), [], { s0: 1, firstSequence: null });
  assert.not.match(text(), /no store message|disconnect/);
});

test('too-short: where vLLM restarts inside a block, the unseen boundary is the reason', async () => {
  const pool = await Pool.open({ blockSize: 32, hashBlockSize: 8, partial: true });
  assert.ok(codesOf(pool.explain(pool.filled(1, 2), 24)).includes('unseen-boundary')); // vLLM restores 16 of 24
});

test('last-token: with partial hits too, the block that holds the last token is to blame for nothing', async () => {
  const pool = await Pool.open({ partial: true });
  const prompt = pool.filled(1, 4);
  pool.send([removed(prompt.keys(pool.contract)[3])]);
  assert.equal(codesOf(pool.explain(prompt, 4 * 16)), ['last-token']); // stored or not, vLLM restores 48 of 64
});

test.run();
