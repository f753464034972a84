// How a store message stands to the one before it, as a table; and that one fault costs one clear (design.md 5, spec/kv-events.md 5.9).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type SequenceStep, sequenceStep } from '../src/cache/sequence.js';
import type { StoreMessageFate } from '../src/cache/types.js';
import { MAX_STORE_MESSAGE_BYTES } from '../src/wire/mooncake.js';
import { framesOf, Pool, type Prompt, stored, storeMessage } from './support/messages.js';

const TOP = 2n ** 64n - 1n;

const table: readonly (readonly [last: bigint | null, sequence: bigint, step: SequenceStep])[] = [
  [null, 1n, 'first'],
  [null, 0n, 'first'],
  [null, 19_901n, 'first'],
  [null, TOP, 'first'],
  [5n, 6n, 'next'],
  [0n, 1n, 'next'],
  [2n ** 53n, 2n ** 53n + 1n, 'next'],
  [2n ** 63n - 1n, 2n ** 63n, 'next'],
  [TOP - 1n, TOP, 'next'],
  [TOP, 0n, 'next'], // numbers wrap
  [5n, 5n, 'duplicate'],
  [0n, 0n, 'duplicate'],
  [TOP, TOP, 'duplicate'],
  [5n, 7n, 'gap'],
  [5n, 4n, 'gap'],
  [5n, 1n, 'gap'],
  [5n, 0n, 'gap'],
  [0n, TOP, 'gap'],
  [TOP, 1n, 'gap'],
  [2n ** 53n, 2n ** 53n + 2n, 'gap'], // numbers that a double can't tell apart
  [2n ** 53n + 1n, 2n ** 53n, 'gap'],
];

const fateOf: Readonly<Record<SequenceStep, StoreMessageFate>> = {
  first: 'applied',
  next: 'applied',
  duplicate: 'duplicate',
  gap: 'gap-applied',
};

test('the table of steps', () => {
  for (const [last, sequence, step] of table) assert.is(sequenceStep(last, sequence), step, `${last} → ${sequence}`);
});

test('each step through the cache: only a gap clears, only a duplicate is ignored', async () => {
  const pool = await Pool.open();
  const prompt = pool.prompt(1, 2);
  const [before, now] = prompt.keys(pool.contract);
  pool.teach(prompt);
  for (const [last, sequence, step] of table) {
    const label = `${last} → ${sequence}`;
    pool.cache.streamLost('reconnect');
    if (last !== null) pool.cache.applyStoreMessage(storeMessage(last, [stored(before)]));
    const gaps = pool.clears('gap');
    const result = pool.cache.applyStoreMessage(storeMessage(sequence, [stored(now)]));
    assert.equal([result.fate, result.sequence], [fateOf[step], sequence], label);
    assert.is(pool.clears('gap') - gaps, step === 'gap' ? 1 : 0, label);
    // The first block is the earlier message's, the second this one's.
    assert.is(pool.hits(prompt), { first: 0, next: 2, duplicate: 1, gap: 0 }[step], label);
    assert.is(pool.objects, { first: 1, next: 2, duplicate: 1, gap: 1 }[step], label);
  }
});

test('sequences 3 → 5 clear, 5 → 1 clear, then 2 is accepted', async () => {
  const pool = await Pool.open();
  const keys = pool.prompt(1, 4).keys(pool.contract);
  const seen = ([3n, 5n, 1n, 2n] as const).map((sequence, i) => {
    const { fate } = pool.cache.applyStoreMessage(storeMessage(sequence, [stored(keys[i])]));
    return [fate, pool.objects];
  });
  assert.equal(seen, [
    ['applied', 1],
    ['gap-applied', 1],
    ['gap-applied', 1],
    ['applied', 2],
  ]);
});

/** A filled pool, and how often it was cleared since. */
async function filledPool(): Promise<{ pool: Pool; prompt: Prompt; clears: () => number }> {
  const pool = await Pool.open();
  const prompt = pool.filled(1, 2);
  const { clears } = pool.cache.stats().core!;
  return { pool, prompt, clears: () => pool.cache.stats().core!.clears - clears };
}

const TOO_LARGE = new Uint8Array(MAX_STORE_MESSAGE_BYTES);

/** Messages that can't be used although their sequence can be read. */
const readable: Readonly<Record<string, Uint8Array>> = {
  'too large': TOO_LARGE,
  'no MessagePack': Uint8Array.of(0xc1),
  'not a batch': Uint8Array.of(0x90),
  malformed: storeMessage(0, [stored(null)])[2]!,
};

for (const [what, payload] of Object.entries(readable)) {
  test(`an unusable message with a readable sequence (${what}) costs one clear only`, async () => {
    const { pool, prompt, clears } = await filledPool();
    const result = pool.sendPayload(payload);
    assert.equal([result.sequence, clears(), pool.objects], [pool.sequence, 1, 0]);
    assert.is(pool.send(prompt.keys(pool.contract).map((key) => stored(key))).fate, 'applied');
    assert.equal([pool.hits(prompt), clears()], [2, 1]);
  });
}

test('an unusable message far ahead is recorded too: what follows it is no gap', async () => {
  const { pool, prompt } = await filledPool();
  assert.is(pool.cache.applyStoreMessage(framesOf(500, TOO_LARGE)).fate, 'unreadable');
  pool.sequence = 500n;
  assert.is(pool.send(prompt.keys(pool.contract).map((key) => stored(key))).fate, 'applied');
  assert.equal([pool.hits(prompt), pool.clears('gap')], [2, 0]);
});

test('a message without a readable sequence clears, and its number is missed: the next one is a gap', async () => {
  const { pool, prompt, clears } = await filledPool();
  const refill = prompt.keys(pool.contract).map((key) => stored(key));
  const result = pool.cache.applyStoreMessage([new Uint8Array(0), new Uint8Array(7), new Uint8Array(0)]);
  assert.equal([result.fate, result.sequence, clears(), pool.hits(prompt)], ['unreadable', null, 1, 0]);
  pool.sequence++;
  assert.is(pool.send(refill).fate, 'gap-applied');
  assert.equal([pool.hits(prompt), clears()], [2, 2]);
});

test('event ids are not checked: queue overflow leaves them contiguous, and batches may repeat them', async () => {
  const { pool, prompt } = await filledPool();
  for (const event_id of [7, 7, 1, 999_999, 2n ** 63n, null, 'x']) pool.send([{ ...stored('foreign'), event_id }]);
  assert.is(pool.hits(prompt), 2);
  assert.equal(Object.keys(pool.cache.stats().messages), ['applied']);
});

test.run();
