// From worker messages to drafts: the blocks that the direct path would index, and `sce` only where it would learn from what the envelope can say.
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { blockHashes } from '../src/core/local-hash.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { Contradicted } from '../src/live/plane/publish/contradicted.js';
import { Intake, type IntakeOptions } from '../src/live/plane/publish/intake.js';
import { writeSequence } from '../src/wire/frames.js';
import { said } from './support/plane-drafts.js';

const BLOCK = 4;
const BASE = {
  type: 'BlockStored',
  parent_block_hash: null,
  block_size: BLOCK,
  lora_id: null,
  medium: 'GPU',
  lora_name: null,
};

function tokens(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

type Fields = Readonly<Record<string, unknown>>;

/** A stored event of `hashes.length` whole blocks. */
function storing(hashes: readonly number[], fields: Fields = {}): Fields {
  return { ...BASE, block_hashes: hashes, token_ids: tokens(hashes.length * BLOCK), ...fields };
}

function taking(options: Partial<IntakeOptions> = {}) {
  const intake = new Intake({ workerId: 7n, blockSize: BLOCK, ...options });
  const events = new WorkerEvents();
  let sequence = 0n;
  const take = (...list: readonly Fields[]) =>
    intake.take(events.read(7n, [new Uint8Array(0), writeSequence(sequence++), encode([1.5, list, 3])]));
  return { intake, take };
}

test('stores, removals and clears come out in their order, of the worker and rank, with local hashes', () => {
  const { intake, take } = taking();
  const drafts = take(
    storing([1, 2]),
    storing([3], { parent_block_hash: 2, medium: 'CPU' }),
    { type: 'BlockRemoved', block_hashes: [2, 1], medium: 'DISK' },
    { type: 'AllBlocksCleared' },
  );
  assert.equal(drafts.map(said), ['+>1,2 e', '+2>3 e', '-2,1', 'clear']);
  assert.equal(
    drafts.map(({ tier }) => tier),
    ['device', 'host_pinned', 'disk', 'device'],
  );
  for (const { workerId, dpRank, domain, sessionId, stateSource } of drafts)
    assert.equal([workerId, dpRank, domain, sessionId, stateSource], [7n, 3, null, null, null]);
  const [first] = drafts;
  if (first!.data.kind !== 'stored') throw new Error('no store');
  assert.equal(first!.data.locals, blockHashes(tokens(2 * BLOCK), BLOCK));
  assert.is(intake.stats().events, 4);
  assert.is(intake.stats().blocks, 3);
});

test('what comes out outlives its message', () => {
  const { take } = taking();
  const [first] = take(storing([1, 2]));
  take(storing([8, 9]), storing([10]));
  assert.is(said(first!), '+>1,2 e');
});

const NONE: readonly { what: string; event: Fields; stopped?: string }[] = [
  { what: 'another group’s blocks', event: storing([1], { group_idx: 1, kv_cache_spec_kind: 'mamba' }) },
  { what: 'a medium that is no tier', event: storing([1], { medium: 'cpu' }) },
  { what: 'a store elsewhere', event: storing([1], { locality: 'REMOTE' }) },
  { what: 'a placeholder without blocks', event: storing([], { medium: 'STORAGE', block_size: 0 }) },
  {
    what: 'another block size',
    event: storing([1], { block_size: 8, token_ids: tokens(8) }),
    stopped: 'foreign-block-size',
  },
  { what: 'a hash twice', event: storing([1, 1]), stopped: 'self-reference' },
  { what: 'a removal of nothing', event: { type: 'BlockRemoved', block_hashes: [], medium: 'GPU' } },
];

for (const { what, event, stopped } of NONE)
  test(`nothing comes of ${what}`, () => {
    const { intake, take } = taking();
    assert.equal(take(event), []);
    assert.equal(intake.stats().stopped, stopped === undefined ? {} : { [stopped]: 1 });
  });

const ELIGIBILITY: readonly { what: string; event: Fields; eligible: boolean; withheld?: string }[] = [
  { what: 'plain blocks', event: storing([1]), eligible: true },
  {
    what: 'a LoRA adapter’s',
    event: storing([1], { lora_id: 1, lora_name: 'a', extra_keys: [['a']] }),
    eligible: true,
  },
  {
    what: 'the main group’s',
    event: storing([1], { group_idx: 0, kv_cache_spec_kind: 'full_attention' }),
    eligible: true,
  },
  { what: 'a host tier’s', event: storing([1], { medium: 'CPU' }), eligible: true },
  { what: 'those flagged as not', event: storing([1], { shared_cache_eligible: false }), eligible: false },
  { what: 'multimodal ones', event: storing([1], { extra_keys: [['f'.repeat(64)]] }), eligible: false },
  { what: 'salted ones', event: storing([1], { cache_salt: 's' }), eligible: false, withheld: 'namespace' },
  {
    what: 'ones with tokens to spare',
    event: storing([1], { token_ids: tokens(BLOCK + 1) }),
    eligible: false,
    withheld: 'layout',
  },
];

for (const { what, event, eligible, withheld } of ELIGIBILITY)
  test(`${what} may ${eligible ? '' : 'not '}teach`, () => {
    const { intake, take } = taking();
    const [draft] = take(event);
    assert.is(draft!.eligible, eligible);
    assert.equal(intake.stats().withheld, withheld === undefined ? {} : { [withheld]: 1 });
  });

test('blocks behind salted ones are salted; they teach nothing either', () => {
  const { take } = taking();
  const drafts = take(storing([1], { cache_salt: 's' }), storing([2], { parent_block_hash: 1 }));
  assert.equal(
    drafts.map(({ eligible }) => eligible),
    [false, false],
  );
});

test('of two groups that pass for main attention the first teaches, or the one that is named', () => {
  const group = (group_idx: number, hash: number) =>
    storing([hash], { group_idx, kv_cache_spec_kind: 'full_attention' });
  const events = [group(0, 1), group(2, 2), group(0, 3)];
  const first = taking().take(...events);
  assert.equal(
    first.map(({ eligible }) => eligible),
    [true, false, true],
  );
  const anew = taking();
  anew.take(group(0, 1));
  anew.intake.newLife();
  assert.ok(anew.take(group(2, 2))[0]!.eligible, 'of a new life again the first');
  const named = taking({ mainGroup: 2 }).take(...events);
  assert.equal(
    named.map(({ eligible }) => eligible),
    [false, true, false],
  );
});

// ---- contradictions ----

/** Block 1 is a salted one of the host, and then plain text on the device. */
const TWICE = [storing([1], { medium: 'CPU', cache_salt: 's' }), storing([1])];

test('what contradicts itself says so, and is never taught again', () => {
  const { intake, take } = taking();
  assert.equal(take(storing([1, 2])).map(said), ['+>1,2 e']);
  assert.equal(take(...TWICE).map(said), ['+>1', '+>1 c']);
  assert.is(intake.stats().contradicted, 1);
  // The normaliser forgets with the worker's clear; readers do not, so the publisher does not either.
  take({ type: 'AllBlocksCleared' });
  assert.equal(take(storing([1, 2]), storing([3])).map(said), ['+>1,2', '+>3 e']);
  intake.newLife();
  assert.equal(take(storing([1])).map(said), ['+>1']);
  assert.is(intake.stats().withheld['contradicted'], 2);
});

test('blocks of a contradiction that no router takes are told of by themselves, as nobody’s', () => {
  const { intake, take } = taking();
  take(TWICE[0]!, storing([2], { medium: 'CPU', cache_salt: 's', parent_block_hash: 1 }));
  const [taken, beyond] = take(storing([1, 2], { token_ids: tokens(BLOCK) }));
  assert.equal([said(taken!), said(beyond!)], ['+>1 c', '-2 c']);
  assert.equal([beyond!.domain, beyond!.tier, beyond!.workerId, beyond!.dpRank], ['cache_owner', 'external', 7n, 3]);
  const [whole] = take(storing([1], { block_size: 8, token_ids: tokens(8) }));
  assert.is(said(whole!), '-1 c', 'of another block size all are');
  assert.is(intake.stats().contradicted, 2);
});

test('contradictions are kept up to a bound, the newest', () => {
  const kept = new Contradicted(3);
  kept.add([1n, 2n, 3n, 2n, 4n]);
  assert.equal([kept.size, kept.forgotten, [...kept.all()]], [3, 1, [2n, 3n, 4n]]);
  assert.ok(kept.hasAny(BigUint64Array.of(9n, 4n)));
  assert.not.ok(kept.hasAny(BigUint64Array.of(1n)));
});

test.run();
