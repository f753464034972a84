// The eligibility rule of spec/kv-events.md 3.1, and its 40 cases (3.2) as a table numbered like the spec. Every case is built as
// MessagePack and goes through the decoder, so that types arrive as they do from a worker.
import { Encoder, ExtData } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type EligibilityReason, whyIneligible } from '../src/events/eligibility.js';
import { ownNamespace } from '../src/events/namespace.js';
import { decodeWorkerBatch, type StoredEvent } from '../src/wire/vllm.js';

const encoder = new Encoder({ useBigInt64: true });
const L = 'adapter-a';
const S = 'dynamo-cache-salt:tenant-a';
const NS = 'tenant-a';
const bin = (text: string) => new TextEncoder().encode(text);
/** Bytes that are no UTF-8. */
const RANDOM_32 = Uint8Array.from({ length: 32 }, (_, i) => 0x80 + ((i * 37) % 0x80));
const HEX_64 = '0123456789abcdef'.repeat(4);
const MM_OBJECT = { mm_objects: [{ mm_hash: 5, offsets: [] }] };
const PLAIN = {
  type: 'BlockStored',
  block_hashes: [1, 2],
  parent_block_hash: null,
  token_ids: [1, 2, 3, 4],
  block_size: 2,
};
const FIVE = ['BlockStored', [1, 2], null, [1, 2, 3, 4], 2];

function decoded(event: unknown): StoredEvent {
  const { events, rejected } = decodeWorkerBatch(encoder.encode([0, [event], 0]));
  assert.equal(rejected, []);
  return events[0] as StoredEvent;
}

/** Why not, and the namespace that the event names itself. */
function judged(event: unknown): [EligibilityReason | null, string | null] {
  const read = decoded(event);
  const namespace = ownNamespace(read);
  return [whyIneligible(read, namespace), namespace];
}

const map = (fields: object) => ({ ...PLAIN, ...fields });
const positional = (...more: unknown[]) => [...FIVE, ...more];

type Row = [row: string, event: unknown, reason: EligibilityReason | null, namespace: string | null];

const rows: Row[] = [
  ['1 nothing else', map({}), null, null],
  ['2 extra_keys [nil]', map({ extra_keys: [null] }), null, null],
  ['3 extra_keys [[]]', map({ extra_keys: [[]] }), null, null],
  ['4 [[S], nil]', map({ extra_keys: [[S], null] }), null, NS],
  ['5 LoRA, [[L], [L]]', map({ lora_name: L, extra_keys: [[L], [L]] }), null, null],
  ['6 LoRA, [[L, S], [L]]', map({ lora_name: L, extra_keys: [[L, S], [L]] }), null, NS],
  ['7 LoRA, [[S, L], [L]]', map({ lora_name: L, extra_keys: [[S, L], [L]] }), null, NS],
  ['8 lora_id 7 with name', map({ lora_id: 7, lora_name: L, extra_keys: [[L]] }), null, null],
  ['9 lora_id 7, name nil', map({ lora_id: 7, lora_name: null }), 'lora-name-missing', null],
  ['10 lora_id 7, name ""', map({ lora_id: 7, lora_name: '' }), 'lora-name-missing', null],
  ['11 lora_id 0, name nil', map({ lora_id: 0, lora_name: null }), null, null],
  ['12 lora_id text', map({ lora_id: '7' }), 'lora-id-type', null],
  ['13 is_eagle true', map({ is_eagle: true }), 'speculative', null],
  ['14 is_eagle 1', map({ is_eagle: 1 }), 'speculative', null],
  ['15 is_eagle false', map({ is_eagle: false }), null, null],
  ['15 is_eagle nil', map({ is_eagle: null }), null, null],
  [
    '16 token pairs',
    map({
      token_ids: [
        [1, 2],
        [2, 3],
      ],
    }),
    'token-pairs',
    null,
  ],
  ['17 flag false', map({ shared_cache_eligible: false }), 'flagged-ineligible', null],
  ['18 flag "yes"', map({ shared_cache_eligible: 'yes' }), 'flagged-ineligible', null],
  ['19 flag true, [["x"]]', map({ shared_cache_eligible: true, extra_keys: [['x']] }), 'extra-key-unknown', null],
  ['20 block_mm_infos [nil, nil]', map({ block_mm_infos: [null, null] }), null, null],
  ['21 block_mm_infos with an object', map({ block_mm_infos: [null, MM_OBJECT] }), 'multimodal', null],
  ['22 64 hex digits', map({ extra_keys: [[HEX_64]] }), 'extra-key-unknown', null],
  ['23 pair', map({ extra_keys: [[['id', 3]]] }), 'extra-key-not-text', null],
  ['24 binary S', map({ extra_keys: [[bin(S)]] }), 'extra-key-not-text', NS],
  ['25 32 random bytes', map({ extra_keys: [[RANDOM_32]] }), 'extra-key-not-text', null],
  ['26 S in the second block', map({ extra_keys: [null, [S]] }), 'namespace-misplaced', null],
  ['27 S twice', map({ extra_keys: [[S, S]] }), 'extra-key-repeated', NS],
  ['28 untagged salt', map({ extra_keys: [[NS]] }), 'extra-key-unknown', null],
  ['29 cache_salt and S agree', map({ cache_salt: NS, extra_keys: [[S]] }), null, NS],
  ['30 cache_salt and S disagree', map({ cache_salt: 'other', extra_keys: [[S]] }), 'namespace-mismatch', 'other'],
  ['31 cache_salt alone', map({ cache_salt: NS }), null, NS],
  ['32 tag with empty remainder', map({ extra_keys: [['dynamo-cache-salt:']] }), 'namespace-mismatch', null],
  ['33 [[1]]', map({ extra_keys: [[1]] }), 'extra-key-not-text', null],
  ['33 [[1.5]]', map({ extra_keys: [[1.5]] }), 'extra-key-not-text', null],
  ['33 [[true]]', map({ extra_keys: [[true]] }), 'extra-key-not-text', null],
  ['34 LoRA twice', map({ lora_name: L, extra_keys: [[L, L]] }), 'extra-key-repeated', null],
  ['35 positional, 5 elements', positional(), null, null],
  ['36 positional, slot 5 with name', positional(7, 'GPU', L), null, null],
  ['37 positional, slot 5 without name', positional(7, 'GPU', null), 'lora-name-missing', null],
  ['38 positional, [[S]]', positional(null, 'GPU', null, [[S]]), null, NS],
  ['39 positional, MM list in the tail', positional(null, 'GPU', null, null, [MM_OBJECT]), 'multimodal', null],
  ['40 positional, token pairs', ['BlockStored', [1], null, [[1, 2]], 1], 'token-pairs', null],
];

for (const [row, event, reason, namespace] of rows) {
  test(`row ${row}: ${reason === null ? 'eligible' : reason}`, () => {
    assert.equal(judged(event), [reason, namespace]);
  });
}

/** Slots of the array form behind its five first, and the fields that no slot has. */
const SLOTS = ['lora_id', 'medium', 'lora_name', 'extra_keys'];
const NAMED_ONLY = ['cache_salt', 'is_eagle', 'shared_cache_eligible'];

/** The same event in the other encoding; null where that can't say it. */
function otherForm(event: unknown): unknown {
  if (Array.isArray(event)) {
    const [type, block_hashes, parent_block_hash, token_ids, block_size, ...slots] = event as unknown[];
    const named = Object.fromEntries([...SLOTS, 'block_mm_infos'].map((name, i) => [name, slots[i] ?? null]));
    return { type, block_hashes, parent_block_hash, token_ids, block_size, ...named };
  }
  const fields = event as Record<string, unknown>;
  if (NAMED_ONLY.some((name) => name in fields)) return null;
  const required = ['type', 'block_hashes', 'parent_block_hash', 'token_ids', 'block_size'].map((name) => fields[name]);
  const infos = fields['block_mm_infos'] === undefined ? [] : [fields['block_mm_infos']];
  return [...required, ...SLOTS.map((name) => fields[name] ?? null), ...infos];
}

let twice = 0;
for (const [row, event, reason, namespace] of rows) {
  const other = otherForm(event);
  if (other === null) continue;
  twice++;
  const form = Array.isArray(other) ? 'array' : 'map';
  if (reason === 'lora-id-type') {
    test(`row ${row} as ${form}: not read, for there the slot is typed`, () => {
      const { rejected } = decodeWorkerBatch(encoder.encode([0, [other], 0]));
      assert.equal(
        rejected.map(({ code, lostRemoval }) => [code, lostRemoval]),
        [['field-type', false]],
      );
    });
  } else {
    test(`row ${row} as ${form}: ${reason === null ? 'eligible' : reason}`, () => {
      assert.equal(judged(other), [reason, namespace]);
    });
  }
}

test('the rows that both encodings can say stand in both', () => {
  assert.is(rows.filter(([, event]) => otherForm(event) === null).length, rows.length - twice);
  assert.ok(twice >= 30, `${twice} rows`);
});

test('the table has all 40 rows', () => {
  const numbers = new Set(rows.map(([row]) => Number.parseInt(row, 10)));
  assert.equal(
    [...numbers],
    Array.from({ length: 40 }, (_, i) => i + 1),
  );
});

// What the table leaves open.
const more: Row[] = [
  ['flag nil', map({ shared_cache_eligible: null }), null, null],
  ['flag 1', map({ shared_cache_eligible: 1 }), 'flagged-ineligible', null],
  ['lora_id negative', map({ lora_id: -1, lora_name: L }), 'lora-id-type', null],
  ['lora_id negative, of 64 bits', map({ lora_id: -(2n ** 40n), lora_name: L }), 'lora-id-type', null],
  ['lora_id of 64 bits', map({ lora_id: 2n ** 64n - 1n, lora_name: L, extra_keys: [[L]] }), null, null],
  ['lora_id 0, wide', map({ lora_id: 0n }), null, null],
  ['lora_id true', map({ lora_id: true }), 'lora-id-type', null],
  ['lora_id an extension', map({ lora_id: new ExtData(1, new Uint8Array(4)) }), 'lora-id-type', null],
  ['name of LoRA without the LoRA', map({ extra_keys: [[L]] }), 'extra-key-unknown', null],
  ['binary LoRA name', map({ lora_name: L, extra_keys: [[bin(L)]] }), 'extra-key-not-text', null],
  ['empty text', map({ extra_keys: [['']] }), 'extra-key-unknown', null],
  ['empty LoRA name twice', map({ lora_name: '', extra_keys: [['', '']] }), 'extra-key-unknown', null],
  ['nil among the keys', map({ extra_keys: [[null]] }), 'extra-key-not-text', null],
  ['a LoRA named like the tag', map({ lora_name: S, extra_keys: [[S], [S]] }), null, null],
  ['that LoRA and the tag', map({ lora_name: S, extra_keys: [[S, S], [S]] }), null, NS],
  ['that LoRA and the tag twice', map({ lora_name: S, extra_keys: [[S, S, S]] }), 'extra-key-repeated', NS],
  ['S in the first and the second block', map({ extra_keys: [[S], [S]] }), 'namespace-misplaced', NS],
  ['two namespaces', map({ extra_keys: [[S, 'dynamo-cache-salt:b']] }), 'namespace-mismatch', NS],
  ['S behind undecodable binary', map({ extra_keys: [[RANDOM_32, S]] }), 'extra-key-not-text', null],
  ['S behind other binary', map({ extra_keys: [[bin('x'), S]] }), 'extra-key-not-text', NS],
  ['no salt, said explicitly', map({ cache_salt: '', extra_keys: [[S]] }), 'namespace-mismatch', null],
  ['extra_keys no list', map({ extra_keys: S }), 'extra-keys-shape', null],
  ['extra_keys a list of texts', map({ extra_keys: [S] }), 'extra-keys-shape', null],
  ['extra_keys a list of maps', map({ extra_keys: [{}] }), 'extra-keys-shape', null],
  ['block_mm_infos no list', map({ block_mm_infos: {} }), 'multimodal', null],
  ['block_mm_infos empty', map({ block_mm_infos: [] }), null, null],
  ['positional, MM list of nils', positional(null, 'GPU', null, null, [null, null]), null, null],
];

for (const [row, event, reason, namespace] of more) {
  test(`beyond the table, ${row}: ${reason === null ? 'eligible' : reason}`, () => {
    assert.equal(judged(event), [reason, namespace]);
  });
}

test.run();
