// The benchmark's plain reader of worker messages hashes and learns what the events say, in both of their forms, and leaves
// out what may not teach: a rival that did less would be a rival of something else.
import { encode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NestedMapCore } from '../bench/rivals/nested-map.js';
import type { RivalEvent } from '../bench/rivals/rival.js';
import { localHashers, type RivalStyle, WorkerMessageRival } from '../bench/rivals/worker-messages.js';
import { sessionPart, type WorkerForm, workerBatch } from '../bench/worker-workload.js';
import { rivalOptions } from '../bench/workload.js';
import { xxh3BigInt } from './support/xxh3-bigint.js';

const BLOCK = 16;
const LORA = 'adapter-a';
const hashers = await localHashers([LORA]);

/** What a rival is told to learn from payloads. */
function learned(payloads: readonly Uint8Array[]): RivalEvent[] {
  const [plain, tuned] = [learnedBy('plain', payloads), learnedBy('tuned', payloads)];
  assert.equal(plain, tuned, 'both styles learn the same');
  return plain;
}

function learnedBy(style: RivalStyle, payloads: readonly Uint8Array[]): RivalEvent[] {
  const events: RivalEvent[] = [];
  const copy = (event: RivalEvent) => ({
    ...event,
    locals: event.locals.slice(),
    children: event.children.slice(),
  });
  const rival = new WorkerMessageRival({ learn: (event) => events.push(copy(event)) }, hashers, style);
  for (const payload of payloads) rival.apply(payload);
  return events;
}

const payloadOf = (...events: unknown[]) => encode([1.5, events, 0], { useBigInt64: true });

/** A stored event of two blocks, as vLLM 0.26 writes it. */
const stored = (fields: Record<string, unknown> = {}) => ({
  type: 'BlockStored',
  block_hashes: [2n ** 64n - 1n, 7],
  parent_block_hash: null,
  token_ids: Array.from({ length: 2 * BLOCK }, (_, i) => i * 5_003),
  block_size: BLOCK,
  lora_id: null,
  medium: 'GPU',
  lora_name: null,
  extra_keys: [null, null],
  group_idx: 0,
  kv_cache_spec_kind: 'full_attention',
  ...fields,
});

const localsOf = (tokens: Uint32Array, seed: bigint) =>
  Array.from({ length: tokens.length / BLOCK }, (_, i) =>
    xxh3BigInt(new Uint8Array(tokens.slice(i * BLOCK, (i + 1) * BLOCK).buffer), seed),
  );

for (const form of ['map', 'positional'] as const) {
  test(`${form}: local hashes are XXH3 of the tokens, and each event continues its session`, () => {
    const shape = { events: 3, blocksPerEvent: 5, form, firstSession: 4 };
    const events = learned([workerBatch({ ...shape, step: 0 }), workerBatch({ ...shape, step: 1 })]);
    assert.is(events.length, 6);
    for (const [i, event] of events.entries()) {
      const session = 4 + (i % 3);
      const before = sessionPart(session, 0, 5).hashes[4]!;
      const { tokens, hashes } = sessionPart(session, i < 3 ? 0 : 1, 5);
      assert.is(event.parent, i < 3 ? null : before);
      assert.equal(event.children, hashes);
      assert.equal([...event.locals], localsOf(tokens, 1337n));
    }
  });

  test(`${form}: a LoRA name goes into the seed`, () => {
    const event = stored({ lora_name: LORA, lora_id: 7, extra_keys: [[LORA], [LORA]] });
    const [only] = learned([payloadOf(form === 'map' ? event : Object.values(event))]);
    const seed = (1337n + xxh3BigInt(new TextEncoder().encode(LORA), 0n)) & (2n ** 64n - 1n);
    assert.equal([...only!.locals], localsOf(Uint32Array.from(event.token_ids), seed));
  });
}

test('both forms lead to the same edges', () => {
  const steps = [0, 1, 2];
  const filled = (form: WorkerForm) => {
    const core = new NestedMapCore(rivalOptions(64));
    const rival = new WorkerMessageRival(core, hashers, 'plain');
    for (const step of steps) rival.apply(workerBatch({ events: 8, blocksPerEvent: 4, form, step }));
    return core.counts().edges;
  };
  assert.is(filled('map'), 8 * 4 * steps.length);
  assert.is(filled('positional'), 8 * 4 * steps.length);
  const payloads = (form: WorkerForm) => steps.map((step) => workerBatch({ events: 8, blocksPerEvent: 4, form, step }));
  assert.equal(learned(payloads('map')), learned(payloads('positional')));
});

test('events that may teach: other spellings of the plain case', () => {
  const { extra_keys: _, ...withoutKeys } = stored();
  const plain = [
    withoutKeys,
    stored({ medium: null }),
    stored({ group_idx: null, kv_cache_spec_kind: null }),
    stored({ extra_keys: [[], null], lora_id: 0 }),
    stored({ is_eagle: false, shared_cache_eligible: true, cache_salt: null, session_id: 'unknown field' }),
    stored({ parent_block_hash: -1n }),
    Object.values(stored()).slice(0, 9),
    Object.values(stored()).slice(0, 5),
  ];
  const events = learned([payloadOf(...plain)]);
  assert.is(events.length, plain.length);
  assert.is(events[5]!.parent, 2n ** 64n - 1n);
  for (const event of events) assert.equal([...event.children], [2n ** 64n - 1n, 7n]);
});

test('events that may not teach', () => {
  const refused: Record<string, unknown> = {
    'another medium': stored({ medium: 'CPU' }),
    'another kind': stored({ kv_cache_spec_kind: 'sliding_window' }),
    'another group': stored({ group_idx: 1 }),
    'another block size': stored({ block_size: 8, token_ids: Array(16).fill(1) }),
    sparse: stored({ token_ids: Array(3 * BLOCK).fill(1) }),
    'no blocks': stored({ block_hashes: [], token_ids: [], extra_keys: [] }),
    'binary hashes': stored({ block_hashes: [new Uint8Array(32), new Uint8Array(32)] }),
    'token pairs': stored({ token_ids: Array(2 * BLOCK).fill([1, 2]) }),
    'a token of 64 bits': stored({ token_ids: Array(2 * BLOCK).fill(2n ** 40n) }),
    'unknown extra key': stored({ extra_keys: [['image'], null] }),
    'LoRA name twice': stored({ lora_name: LORA, extra_keys: [[LORA, LORA], null] }),
    'extra keys of fewer blocks': stored({ extra_keys: [null] }),
    'adapter without a name': stored({ lora_id: 7 }),
    'a salt': stored({ cache_salt: 'tenant-a' }),
    speculative: stored({ is_eagle: true }),
    flagged: stored({ shared_cache_eligible: false }),
    multimodal: stored({ block_mm_infos: [{ mm_objects: [] }, null] }),
    remote: stored({ locality: 'REMOTE' }),
    removed: { type: 'BlockRemoved', block_hashes: [7], medium: 'GPU' },
    cleared: ['AllBlocksCleared'],
    'no event': null,
  };
  for (const [what, event] of Object.entries(refused)) assert.is(learned([payloadOf(event)]).length, 0, what);
  assert.is(learned([Uint8Array.of(0xc1), encode(null)]).length, 0);
});

test.run();
