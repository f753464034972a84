// The simulated master's events, byte for byte. Every message captured from the real one, of generation A and of the newer format, is taken apart and
// encoded again; captured scenes are played again and must give the same messages; and what no capture shows, generation B and odd keys,
// is held against the rules of spec/mooncake-events.md 0 and 3.
import { readFileSync } from 'node:fs';
import { Decoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connectorKey } from '../src/fleet/master/connector-key.js';
import { encodeBatch, prepare } from '../src/fleet/master/event-fields.js';
import { EventQueue } from '../src/fleet/master/event-queue.js';
import { looseKeyHash, strictKeyHash } from '../src/fleet/master/key-hash.js';
import { StoreModel } from '../src/fleet/master/store-model.js';
import type { Announcement, EventFlags, Generation } from '../src/fleet/master/types.js';
import { captured, captureNames } from './support/captures.js';
import { recordedMessages, recordingLines, recordingNames } from './support/recorded-master.js';

type Fields = Record<string, unknown>;
const decoder = new Decoder({ useBigInt64: true });
const FLAGS: EventFlags = {
  backendId: 'pool',
  emitLegacyCompat: true,
  emitObjectKey: true,
  modelName: '',
  blockSize: 0,
  dpRank: 0,
  additionalSalt: '',
  loraName: '',
};
const KEY = `cache@org/model@tp_rank:1@pcp0@dcp2@pp_rank:3@group:4@${'ab'.repeat(24)}00000000000000ff`;

const decode = (payload: Uint8Array) => decoder.decode(payload) as [bigint, Fields[], number];

/** The same message by our encoder. */
function again(payload: Uint8Array): Uint8Array {
  const [now, events, dpRank] = decode(payload);
  const first = events[0]!;
  const generation: Generation = first['dp_rank'] === null ? 'A' : 'C';
  const flags: EventFlags = {
    backendId: first['backend_id'] as string,
    emitLegacyCompat: 'type' in first,
    emitObjectKey: 'object_key' in first,
    modelName: (first['model_name'] ?? '') as string,
    blockSize: (first['block_size'] ?? 0) as number,
    dpRank,
    additionalSalt: (first['additional_salt'] ?? '') as string,
    loraName: (first['lora_name'] ?? '') as string,
  };
  const prepared = events.map((event) => prepare(generation, announcementOf(event), flags));
  return encodeBatch(generation, prepared, Number(first['event_id']), Number(now), flags);
}

function announcementOf(event: Fields): Announcement {
  const hashes = (event['seq_hashes'] ?? []) as (number | bigint)[];
  return {
    kind: event['event_type'] as Announcement['kind'],
    tenant: event['tenant_id'] as string,
    key: (event['object_key'] ?? String(hashes[0] ?? '')) as string,
    group: (event['group_id'] ?? null) as string | null,
    medium: event['medium'] as Announcement['medium'],
  };
}

function checkAgain(name: string, payload: Uint8Array): void {
  assert.is(hex(again(payload)), hex(payload), name);
}

interface Sample {
  readonly name: string;
  readonly frames: { readonly payload_hex: string };
}
const { samples } = JSON.parse(readFileSync('test/fixtures/mooncake-event-samples.json', 'utf8')) as {
  samples: readonly Sample[];
};
for (const { name, frames } of samples)
  test(`sample ${name}: the same bytes`, () => checkAgain(name, Buffer.from(frames.payload_hex, 'hex')));

test('every captured stream: the same bytes', () => {
  let messages = 0;
  for (const folder of ['cases', 'scenarios'] as const)
    for (const name of captureNames(folder))
      for (const frames of captured(folder, name)) {
        checkAgain(name, frames[2]!);
        messages++;
      }
  assert.ok(messages > 500, `${messages} messages`);
});

function fieldsOf(generation: Generation, event: Partial<Announcement>, flags: Partial<EventFlags> = {}): Fields {
  const all = { ...FLAGS, ...flags };
  const whole: Announcement = {
    kind: 'stored',
    tenant: 'default',
    key: 'key',
    group: null,
    medium: 'cpu',
    ...event,
  };
  const prepared = prepare(generation, whole, all);
  assert.ok(prepared.sent);
  return decode(encodeBatch(generation, [prepared], 1, 1_796_015_123_383, all))[1][0]!;
}

const sizes: readonly (readonly [Generation, Announcement['kind'], boolean, boolean, number])[] = [
  ['A', 'stored', true, true, 20],
  ['A', 'removed', true, true, 17],
  ['A', 'stored', false, false, 16],
  ['A', 'removed', false, false, 14],
  ['C', 'stored', true, true, 20],
  ['C', 'removed', true, true, 17],
  ['C', 'cleared', true, true, 12],
  ['C', 'cleared', false, true, 11],
  ['B', 'stored', true, true, 20],
];
for (const [generation, kind, emitLegacyCompat, emitObjectKey, entries] of sizes)
  test(`${generation} ${kind}, legacy ${emitLegacyCompat}, key ${emitObjectKey}: ${entries} entries`, () => {
    const medium = kind === 'cleared' ? null : 'cpu';
    const fields = fieldsOf(generation, { kind, key: '777', medium }, { emitLegacyCompat, emitObjectKey });
    assert.is(Object.keys(fields).length, entries);
  });

test('B adds what it parses of a vLLM key, between key and hashes, and replaces the group by its number', () => {
  const flags = { modelName: 'flag', blockSize: 16, dpRank: 2, loraName: 'adapter', additionalSalt: 'salt' };
  const fields = fieldsOf('B', { key: KEY, group: 'store group', medium: 'disk' }, flags);
  assert.equal(Object.entries(fields).slice(3), [
    ['type', 'BlockStored'],
    ['model_name', 'org/model'],
    ['block_size', 16],
    ['additional_salt', 'salt'],
    ['lora_name', 'adapter'],
    ['tenant_id', 'default'],
    ['backend_id', 'pool'],
    ['medium', 'disk'],
    ['dp_rank', 2],
    ['group_id', '4'],
    ['object_key', KEY],
    ['connector_block_hash', `${'ab'.repeat(24)}00000000000000ff`],
    ['cache_prefix', 'cache'],
    ['tp_rank', 1],
    ['pcp_rank', 0],
    ['dcp_rank', 2],
    ['pp_rank', 3],
    ['seq_hashes', [255]],
    ['block_hashes', [255]],
    ['base_block_idx', null],
    ['parent_hash', null],
    ['token_ids', null],
    ['parent_block_hash', null],
  ]);
});

test('C copies the flags and parses nothing; the store group stays', () => {
  const fields = fieldsOf('C', { key: KEY, group: 'store group' }, { modelName: 'flag', dpRank: 3 });
  assert.is(fields['model_name'], 'flag');
  assert.is(fields['group_id'], 'store group');
  assert.is(fields['dp_rank'], 3);
  assert.equal(fields['seq_hashes'], []);
  assert.not('tp_rank' in fields);
});

const keys: readonly (readonly [string, ReturnType<typeof connectorKey>])[] = [
  [
    'a@b@model@tp_rank:0@pcp0@dcp0@pp_rank:0@2a',
    {
      model: 'model',
      hash: '2a',
      seqHash: 42n,
      group: null,
      cachePrefix: 'a@b',
      ranks: [
        ['tp_rank', 0],
        ['pcp_rank', 0],
        ['dcp_rank', 0],
        ['pp_rank', 0],
      ],
    },
  ],
  [
    'or@g@pcp0@dcp1@head_or_tp_rank:2@pp_rank:3@xyz',
    {
      model: 'or@g',
      hash: 'xyz',
      seqHash: null,
      group: null,
      cachePrefix: '',
      ranks: [
        ['head_or_tp_rank', 2],
        ['pcp_rank', 0],
        ['dcp_rank', 1],
        ['pp_rank', 3],
      ],
    },
  ],
  [
    'm@pcp0@dcp0@head_or_tp_rank:0@ff@31',
    {
      model: 'm',
      hash: 'ff',
      seqHash: 255n,
      group: null,
      cachePrefix: '',
      ranks: [
        ['head_or_tp_rank', 0],
        ['pcp_rank', 0],
        ['dcp_rank', 0],
        ['layer_id', 31],
      ],
    },
  ],
  ['vllm@model@2@0@ff', null],
  [`${'ab'.repeat(32)}_0_k`, null],
];
for (const [key, parts] of keys) test(`B parses ${key}`, () => assert.equal(connectorKey(key), parts));

test('B counts a connector key whose hash is none as invalid, and keeps its event without a hash', () => {
  const event: Announcement = {
    kind: 'stored',
    tenant: 'default',
    key: 'm@tp_rank:0@pcp0@dcp0@pp_rank:0@zz',
    group: null,
    medium: 'cpu',
  };
  const prepared = prepare('B', event, FLAGS);
  assert.equal([prepared.sent, prepared.skippedKey, prepared.invalidHash], [true, false, true]);
  assert.not('connector_block_hash' in fieldsOf('B', event));
});

const numbers: readonly (readonly [key: string, loose: bigint | null, strict: bigint | null])[] = [
  ['12345', 12345n, 12345n],
  ['0x2a', 42n, 42n],
  ['-1', (1n << 64n) - 1n, null],
  ['+7', 7n, null],
  ['18446744073709551615', (1n << 64n) - 1n, (1n << 64n) - 1n],
  ['18446744073709551616', null, null],
  ['0x', null, null],
  ['12a', null, null],
  ['', null, null],
  ['ab'.repeat(32), null, null],
];
for (const [key, loose, strict] of numbers)
  test(`key ${JSON.stringify(key)} as a number`, () => {
    assert.is(looseKeyHash(key), loose);
    assert.is(strictKeyHash(key), strict);
  });

test('every recorded message: the same bytes', () => {
  for (const name of recordingNames())
    for (const frames of recordedMessages(recordingLines(name))) checkAgain(name, frames[2]!);
});

// ---- captured scenes, played again ----

/** What was done to the master when a stream was captured, as far as its messages tell. */
interface Scene {
  readonly capture: string;
  /** A new life begins before these messages, counted from 0. */
  readonly lives?: readonly number[];
  /** One step for each message. */
  readonly steps: readonly ((store: StoreModel) => void)[];
}

const chunk = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const rank = (n: number) => `meta-llama/Llama-3.1-8B@tp_rank:${n}@pcp0@dcp0@pp_rank:0@group:0@${chunk}`;
const put =
  (...keys: readonly string[]) =>
  (store: StoreModel) => {
    for (const key of keys) assert.is(store.putEnd(key, 'cpu', 1), 'stored');
  };
const padded = (prefix: string, n: number) => `${prefix}@${n.toString(16).padStart(64, '0')}`;

const scenes: readonly Scene[] = [
  {
    capture: 'basic-put-remove',
    steps: [
      put(rank(0)),
      (store) =>
        store.putEnd(rank(1), 'cpu', 1, {
          group: `vllm-mooncake-store:meta-llama/Llama-3.1-8B@${chunk}`,
          softPin: true,
        }),
      put('12345'),
      put('0x2a'),
      put(...Array.from({ length: 10 }, (_, n) => padded('bp', n))),
      (store) => {
        store.putEnd('12345', 'cpu', 1); // already exists: nothing is said
        store.remove('12345');
      },
      (store) => store.upsert('0x2a', 1),
      (store) => {
        store.upsert('0x2a', 2);
        store.batchRemove([padded('bp', 0), padded('bp', 1)]);
        store.removeByRegex('^bp@.*2$');
        store.removeAll();
        assert.equal(store.readableKeys(), []);
      },
    ],
  },
  {
    capture: 'two-replicas',
    steps: [
      (store) => store.putEnd('rep2-key', 'cpu', 1, { segment: ['one', 'two'] }),
      (store) => store.putEnd('rep1-keyA', 'cpu', 1, { segment: 'one' }),
      (store) => {
        store.putEnd('rep1-keyB', 'cpu', 1, { segment: 'one' });
        store.putEnd('rep1-keyC', 'cpu', 1, { segment: 'one' });
      },
      (store) => store.putEnd('rep1-keyD', 'cpu', 1, { segment: 'two' }),
      (store) => store.putEnd('rep1-keyE', 'cpu', 1, { segment: 'two' }),
      (store) => {
        store.unmountSegment('one');
        assert.equal(store.readableKeys(), ['rep2-key', 'rep1-keyD', 'rep1-keyE']);
        store.remove('rep2-key');
      },
    ],
  },
  {
    capture: 'snapshot-restore-silent',
    lives: [3],
    steps: [
      put('s1'),
      put('s2'),
      put('s3'),
      (store) => {
        const before = new StoreModel({ generation: 'A' }, () => {});
        put('s1', 's2', 's3')(before);
        store.restore(before.snapshot(), ({ key }) => key === 's3');
        put('s4')(store);
      },
      (store) => store.remove('s1'),
    ],
  },
  {
    capture: 'restart-backwards',
    lives: [2],
    steps: [put('a1'), put('a2', 'a3'), put('a1'), put('b1'), put('b2'), put('b3'), put('b4')],
  },
];

for (const { capture, lives = [], steps } of scenes)
  test(`${capture}, played again: the same messages, sequences and all`, () => {
    const messages = captured('scenarios', capture);
    assert.is(messages.length, steps.length);
    const [, events] = decode(messages[0]![2]!);
    const flags = { ...FLAGS, backendId: events[0]!['backend_id'] as string };
    const begin = () => {
      const queue = new EventQueue('A', flags, 1_000);
      return { queue, store: new StoreModel({ generation: 'A' }, (event) => queue.push(event)) };
    };
    let life = begin();
    for (const [index, step] of steps.entries()) {
      if (lives.includes(index)) life = begin();
      step(life.store);
      const [now] = decode(messages[index]![2]!);
      const message = life.queue.next(Number(now));
      assert.equal(message?.frames.map(hex), messages[index]!.map(hex), `message ${index}`);
      assert.is(life.queue.next(Number(now)), null);
    }
  });

test('queue-overflow-gap, played again: 20,000 puts into a queue of 100', () => {
  const [first, second, third] = captured('scenarios', 'queue-overflow-gap');
  const flags = { ...FLAGS, backendId: decode(first![2]!)[1][0]!['backend_id'] as string };
  const queue = new EventQueue('A', flags, 100);
  const store = new StoreModel({ generation: 'A' }, (event) => queue.push(event));
  for (let i = 0; i < 20_000; i++) store.putEnd(`k_${i}`, 'cpu', 1);
  for (const frames of [first!, second!])
    assert.equal(queue.next(Number(decode(frames[2]!)[0]))!.frames.map(hex), frames.map(hex));
  store.putEnd('after', 'cpu', 1);
  assert.equal(queue.next(Number(decode(third![2]!)[0]))!.frames.map(hex), third!.map(hex));
});

test('memory-eviction, played again: the same objects go each time, with their groups; pinned ones stay', () => {
  const pins: Record<string, object> = { hp1: { hardPin: true }, sp1: { softPin: true } };
  const said: string[] = [];
  const store = new StoreModel({ generation: 'A' }, ({ kind, key, group }) => {
    if (kind === 'removed') said.push(`${key} of ${group}`);
  });
  const wanted: string[] = [];
  let evictions = 0;
  const evict = () => {
    if (wanted.length === 0) return;
    store.evict(wanted.length);
    assert.equal(said.splice(0).sort(), wanted.splice(0).sort()); // the real order is that of parallel shards
    evictions++;
  };
  for (const frames of captured('scenarios', 'memory-eviction'))
    for (const event of decode(frames[2]!)[1]) {
      const { kind, key, group } = announcementOf(event);
      if (kind === 'removed') wanted.push(`${key} of ${group}`);
      else {
        evict();
        store.putEnd(key, 'cpu', 1, { ...pins[key], ...(group === null ? {} : { group }) });
      }
    }
  evict();
  assert.is(evictions, 4);
  assert.ok(store.has('hp1') && store.has('sp1'));
});

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

test.run();
