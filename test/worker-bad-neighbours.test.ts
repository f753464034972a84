// A bad or hostile event costs only itself: not the room of those behind it, not what can be known of them, not memory, and a hostile worker
// not what is remembered of others. And what a gateway may plausibly hand in by mistake is refused by name.
import { Encoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { blockHashes } from '../src/core/local-hash.js';
import { sharedNumbers } from '../src/core/numbers.js';
import type { ConfigError, MoonrouteError } from '../src/errors.js';
import { whyIneligible } from '../src/events/eligibility.js';
import type { NormalisedStored } from '../src/events/normaliser.js';
import { routerBlocks } from '../src/events/router-blocks.js';
import { WorkerEvents, type WorkerMessage } from '../src/events/worker-events.js';
import { BatchReader, MAX_BATCH_EVENTS } from '../src/wire/read-batch.js';
import { decodeWorkerBatch, MAX_EVENT_TOKENS, type StoredEvent } from '../src/wire/vllm.js';
import { framesOf, stored as objectStored, Pool, SOURCE } from './support/messages.js';

const MIB = 1024 * 1024;
const encoder = new Encoder({ useBigInt64: true, maxDepth: 200 });
const payloadOf = (...events: unknown[]) => encoder.encode([1.5, events, 0]);
const messageOf = (...events: unknown[]) => framesOf(0, payloadOf(...events));
const GOOD = ['BlockStored', [7, 8], null, [1, 2, 3, 4], 2, null, 'GPU', null, [null, null]];
const codes = (payload: Uint8Array) => {
  const { events, rejected } = decodeWorkerBatch(payload);
  return [events.length, rejected.map(({ code }) => code)];
};

test('room that a bad event had taken is there for those behind it', () => {
  const { hashCap, tokenCap } = sharedNumbers();
  const hashes = ['BlockStored', Array(hashCap).fill(1), null, 'bad', 16];
  assert.equal(codes(payloadOf(hashes, ['BlockRemoved', [7], 'GPU'], GOOD)), [2, ['field-type']]);
  assert.equal(codes(payloadOf(...Array(4).fill(hashes), ['BlockRemoved', Array(hashCap).fill(1), 'GPU'])), [
    1,
    Array(4).fill('field-type'),
  ]);
  const tokens = ['BlockStored', [1], null, Array(MAX_EVENT_TOKENS).fill(1), 'bad'];
  const full = ['BlockStored', [1], null, Array(MAX_EVENT_TOKENS).fill(1), 16];
  const fitting = tokenCap / MAX_EVENT_TOKENS;
  assert.equal(codes(payloadOf(...Array(8).fill(tokens), ...Array(fitting).fill(full))), [
    fitting,
    Array(8).fill('field-type'),
  ]);
});

test('a large bad event takes nothing from what can be known of those behind it', () => {
  const salted = [...GOOD.slice(0, 7), 'adapter', [['adapter', 'dynamo-cache-salt:tenant'], ['adapter']]];
  for (const junk of [
    new Uint8Array(5 * MIB),
    'x'.repeat(5 * MIB),
    Array(MIB * 2).fill([]),
    { a: Array(MIB * 5).fill(1) },
  ]) {
    const workers = new WorkerEvents();
    const { events, rejected } = workers.read('w', messageOf(junk, salted, ['BlockStored', junk], salted));
    assert.is(rejected.length, 2);
    const seen = events.map((event) => event.kind === 'stored' && [event.ineligible, event.namespace]);
    assert.equal(seen, [
      [null, 'tenant'],
      [null, 'tenant'],
    ]);
  }
});

test('values that nobody reads cost no memory, however many', () => {
  const reader = new BatchReader();
  const many = new Uint8Array(15 * MIB).fill(0xc0);
  const tag = encoder.encode('Ignored');
  const length = many.length - 8 - tag.length;
  many.set([
    0x92,
    0,
    0x91,
    0xdd,
    (length + 1) >>> 24,
    ((length + 1) >>> 16) & 0xff,
    ((length + 1) >>> 8) & 0xff,
    (length + 1) & 0xff,
  ]);
  many.set(tag, 8);
  const before = process.memoryUsage().heapUsed;
  assert.is(reader.read(many).events.length, 1);
  assert.ok(process.memoryUsage().heapUsed - before < 64 * MIB);
});

test('a worker with ranks without end forgets its own, not those of others', () => {
  const workers = new WorkerEvents();
  const root = { type: 'BlockStored', block_hashes: [1], token_ids: [1], block_size: 1, cache_salt: 'tenant' };
  workers.read('victim', messageOf(root));
  for (let rank = 1; rank <= 5_000; rank++) workers.read('hostile', framesOf(0, encoder.encode([0, [], rank])));
  const child = { type: 'BlockStored', block_hashes: [2], parent_block_hash: 1, token_ids: [1], block_size: 1 };
  const [event] = workers.read('victim', messageOf(child)).events;
  assert.is((event as NormalisedStored).namespace, 'tenant');
  assert.is(workers.stats().publishers, 257);
  workers.forget('hostile');
  assert.is(workers.stats().publishers, 1);
});

test('limits that make no sense are refused by name; undefined is none', () => {
  new WorkerEvents({ hashes: undefined, publishers: undefined } as object);
  for (const name of ['hashes', 'namespaces', 'units', 'ambiguous', 'publishers']) {
    for (const value of [0, -1, 1.5, Number.NaN, 300_000_000, '7']) {
      assert.throws(
        () => new WorkerEvents({ [name]: value } as object),
        (error: ConfigError) => error.code === `limits-${name}` && error.message.includes(`limits.${name} is ${value}`),
      );
    }
  }
});

test('a field of provenance that is said twice proves nothing, whichever comes last', () => {
  const text = (value: unknown) => encoder.encode(value);
  const event = (...pairs: [string, unknown][]) =>
    Uint8Array.from([0x80 + pairs.length, ...pairs.flatMap(([name, value]) => [...text(name), ...text(value)])]);
  const base: [string, unknown][] = [
    ['type', 'BlockStored'],
    ['block_hashes', [1]],
    ['token_ids', [1]],
    ['block_size', 1],
  ];
  for (const [name, first, last] of [
    ['shared_cache_eligible', false, true],
    ['is_eagle', true, false],
    ['extra_keys', [['image']], [null]],
    ['block_mm_infos', [{}], null],
    ['lora_id', 'x', null],
    ['token_ids', [9], [1]],
  ] as const) {
    const bytes = event(...base, [name, first], [name, last]);
    for (const batch of [Uint8Array.of(0x92, 0, 0x91, ...bytes), Uint8Array.of(0x92, 0, 0x92, ...bytes, ...bytes)]) {
      for (const stored of decodeWorkerBatch(batch).events) {
        assert.is(whyIneligible(stored as StoredEvent, null), 'field-repeated', name);
      }
    }
  }
  const twoRanks = [
    ['data_parallel_rank', 1],
    ['events', []],
    ['data_parallel_rank', 2],
  ] as [string, unknown][];
  assert.throws(
    () => decodeWorkerBatch(event(...twoRanks)),
    (error: MoonrouteError) => error.code === 'batch-shape',
  );
});

test('a clock that gives no number gives null', () => {
  for (const time of [Number.NaN, Number.POSITIVE_INFINITY, 'now', null]) {
    assert.is(decodeWorkerBatch(encoder.encode([time, []])).timestamp, null);
  }
});

test('router blocks are good as long as their event, and block sizes are whole numbers', () => {
  const workers = new WorkerEvents();
  const read = (...events: unknown[]) => workers.read('w', messageOf(...events)).events[0] as NormalisedStored;
  const blocks = routerBlocks(read(GOOD), { blockSize: 2 });
  assert.equal([...blocks.hashes], [7n, 8n]);
  read(GOOD);
  for (const use of [() => blocks.hashes, () => blocks.locals]) {
    assert.throws(use, (error: MoonrouteError) => error.code === 'stale-event');
  }
  const empty = read(['BlockStored', [7], null, [], 0]);
  assert.is(empty.event.dense, false);
  for (const blockSize of [0, -1, 1.5, Number.NaN]) {
    assert.throws(
      () => routerBlocks(empty, { blockSize }),
      (error: ConfigError) => error.code === 'block-size',
    );
  }
  assert.is(routerBlocks(empty, { blockSize: 16 }).stopped, 'foreign-block-size');
});

test('a message put together from events of two messages teaches nothing stale', async () => {
  const pool = await Pool.open({ blockSize: 2 });
  const workers = new WorkerEvents();
  const old = workers.read(SOURCE.workerId, messageOf(GOOD, ['BlockStored', [17, 18], null, [5, 6, 7, 8], 2]));
  const now = workers.read(SOURCE.workerId, messageOf(GOOD, GOOD));
  const mixed: WorkerMessage = { ...now, events: [now.events[0]!, old.events[1]!] };
  assert.throws(
    () => pool.cache.observeMessage(mixed),
    (error: MoonrouteError) => error.code === 'stale-event',
  );
  assert.is(pool.cache.stats().core!.edges, 0);
});

test('a contradiction costs the credit of every block it names, however many', async () => {
  const pool = await Pool.open({ blockSize: 1 });
  const workers = new WorkerEvents();
  const say = (hashes: number[], cache_salt: string) => {
    const event = {
      type: 'BlockStored',
      block_hashes: hashes,
      token_ids: hashes.map(() => 1),
      block_size: 1,
      cache_salt,
    };
    return pool.cache.observeMessage(workers.read(SOURCE.workerId, messageOf(event)));
  };
  assert.is(say([1, 2], 'a'), 2);
  say([...Array.from({ length: 70_000 }, (_, i) => 1_000 + i), 1], 'b');
  assert.is(pool.cache.stats().core!.conflicted, 1);
  say([3, ...Array.from({ length: 70_000 }, (_, i) => 1_000 + i), 2], 'b');
  assert.is(pool.cache.stats().core!.conflicted, 2);
});

test('half of a character is no name: it would be hashed like another', async () => {
  const pool = await Pool.open();
  const prompt = pool.prompt(1, 2);
  pool.teach(prompt, { fields: { cache_salt: '\ufffd', lora_name: '\ufffd' } });
  pool.send(prompt.keys(pool.contract).map((key) => objectStored(key)));
  const hits = (loraName: string, cacheSalt: string) => pool.cache.lookup({ ...prompt.query(), loraName, cacheSalt });
  assert.is(hits('\ufffd', '\ufffd').blocks, 2);
  for (const name of ['\ud800', '\udc01', 'a\ud800b']) {
    for (const [lora, salt] of [
      [name, '\ufffd'],
      ['\ufffd', name],
    ] as const) {
      assert.is(hits(lora, salt).blocks, 0);
      const query = { ...prompt.query(), loraName: lora, cacheSalt: salt };
      assert.is(pool.cache.explain(query).reasons[0]!.code, 'ineligible');
    }
    for (const bad of [{ loraName: name }, { cacheNamespace: name }]) {
      assert.throws(
        () => blockHashes([1, 2], 1, bad),
        (error: ConfigError) => error.code === 'bad-scope',
      );
    }
  }
  assert.is(blockHashes([1], 1, { loraName: 'a\ud83d\ude00b' }).length, 1);
});

test('limits that stand in both languages are the same', () => {
  const reader = new BatchReader();
  assert.is(
    reader.read(encoder.encode([0, Array(MAX_BATCH_EVENTS).fill(['Ignored'])])).events.length,
    MAX_BATCH_EVENTS,
  );
  assert.is(sharedNumbers().rows.length, MAX_BATCH_EVENTS * 16);
  const tokens = ['BlockStored', [1], null, Array(MAX_EVENT_TOKENS + 1).fill(1), 1];
  const first = ['BlockStored', [1], null, [1], 1];
  assert.equal(codes(payloadOf(first, tokens, first)), [2, ['too-many-tokens']]);
});

test.run();
