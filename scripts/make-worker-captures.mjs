// Writes test/fixtures/worker-captures: 20 short KV event streams in the encodings of vLLM's history and SGLang's variant
// (spec/vllm-store.md 8, kv-events.md 1), and beside each what a reader must make of it. Every event stands here with its
// expectation, which is stated or computed by the tests' plain helpers and never by the product. Run by hand after a build:
// `node scripts/make-worker-captures.mjs`; the outputs are committed.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Encoder } from '@msgpack/msgpack';
import { hicachePages, vllmDigests } from '../build/js/test/support/engine-digests.js';
import { xxh3BigInt } from '../build/js/test/support/xxh3-bigint.js';

const folder = join(dirname(fileURLToPath(import.meta.url)), '../test/fixtures/worker-captures');
/** Tokens of one router block. */
const BLOCK = 16;
const SALT = 'dynamo-cache-salt:';
const IMAGE_TOKEN = 151_655;

// ---- engine hashes ----

const sha256 = (bytes) => createHash('sha256').update(bytes).digest();

function int32(value) {
  const out = Buffer.alloc(4);
  out.writeInt32LE(value);
  return out;
}

/** The payload of Python's pickle, protocol 5, for what vLLM hashes: arrays are tuples. */
function pickled(value) {
  if (value === null) return Buffer.from('N');
  if (typeof value === 'number') {
    if (value >= 0 && value < 0x100) return Buffer.of(0x4b, value);
    if (value >= 0 && value < 0x10000) return Buffer.of(0x4d, value & 0xff, value >> 8);
    return Buffer.concat([Buffer.from('J'), int32(value)]);
  }
  if (typeof value === 'string') {
    return Buffer.concat([Buffer.of(0x8c, Buffer.byteLength(value)), Buffer.from(value), Buffer.of(0x94)]);
  }
  if (value instanceof Uint8Array) return Buffer.concat([Buffer.of(0x43, value.length), value, Buffer.of(0x94)]);
  const items = value.map(pickled);
  if (value.length <= 3) return Buffer.concat([...items, Buffer.of(0x84 + value.length, 0x94)]);
  return Buffer.concat([Buffer.from('('), ...items, Buffer.from('t'), Buffer.of(0x94)]);
}

function pickleDigest(value) {
  const payload = Buffer.concat([pickled(value), Buffer.from('.')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(payload.length));
  return sha256(Buffer.concat([Buffer.of(0x80, 5, 0x95), length, payload]));
}

/** vLLM's digests (vllm-store.md 7, seed "0"), with any extra keys: `extras[span]` is a list or null. */
function digestChain(tokens, span, extras = []) {
  const digests = [];
  let parent = pickleDigest('0');
  for (let start = 0; start + span <= tokens.length; start += span) {
    const keys = extras[start / span] ?? null;
    parent = pickleDigest([parent, tokens.slice(start, start + span), keys]);
    digests.push(parent);
  }
  return digests;
}

/** Token ids without a pattern, the same for the same seed. */
function tokensOf(seed, count) {
  return Array.from({ length: count }, (_, i) => Math.imul(seed * 7919 + i + 1, 0x9e3779b1) >>> 15);
}

assert.deepEqual(
  digestChain(tokensOf(1, 48), BLOCK, [['adapter-a', 'salt'], ['adapter-a'], ['adapter-a']]),
  vllmDigests(tokensOf(1, 48), BLOCK, { loraName: 'adapter-a', cacheSalt: 'salt' }),
);

// ---- hashes of the router ----

const utf8 = (text) => new TextEncoder().encode(text);

/** spec/kv-events.md 2.1. */
function localHash(tokens, { lora, namespace, mm } = {}) {
  const bytes = Buffer.alloc(tokens.length * 4 + (mm?.length ?? 0) * 8);
  tokens.forEach((token, i) => {
    bytes.writeUInt32LE(token, i * 4);
  });
  const sorted = [...(mm ?? [])].sort((a, b) => (a < b ? -1 : 1));
  sorted.forEach((hash, i) => {
    bytes.writeBigUInt64LE(hash, tokens.length * 4 + i * 8);
  });
  let seed = 1337n;
  if (lora) seed += xxh3BigInt(utf8(lora), 0n);
  if (namespace) seed += xxh3BigInt(utf8(namespace), 1n);
  return xxh3BigInt(bytes, BigInt.asUintN(64, seed));
}

/** An image's hash from its identifier: 16 digits of a 64-digit hash, else XXH3 of its name (spec/kv-events.md 1.12). */
function mmHash(identifier) {
  return /^[0-9a-f]{64}$/.test(identifier) ? BigInt(`0x${identifier.slice(0, 16)}`) : xxh3BigInt(utf8(identifier), 0n);
}

// ---- prompts ----

/** What an engine holds of a prompt: tokens, and a hash for the end of each `span` tokens. */
class Prompt {
  constructor(tokens, { span = BLOCK, extras = [], lows, form = 'u64', scope = {} } = {}) {
    this.tokens = tokens;
    this.digests = lows ? null : digestChain(tokens, span, extras);
    this.lows = lows ?? this.digests.map((digest) => digest.readBigUInt64BE(24));
    this.step = BLOCK / span;
    this.form = form;
    this.scope = scope;
  }

  /** Hash of the tokens up to the end of a block, the low 64 bits; null before the first block. */
  low(block) {
    return block < 0 ? null : this.lows[(block + 1) * this.step - 1];
  }

  /** The same as it stands on the wire. */
  wire(block, form = this.form) {
    if (block < 0) return null;
    if (form === 'bin') return new Uint8Array(this.digests[(block + 1) * this.step - 1]);
    return form === 'i64' ? BigInt.asIntN(64, this.low(block)) : this.low(block);
  }

  hashes(first, end, form = this.form) {
    return Array.from({ length: end - first }, (_, i) => this.wire(first + i, form));
  }

  slice(first, end) {
    return this.tokens.slice(first * BLOCK, end * BLOCK);
  }

  /** Pairs of neighbours: Eagle's tokens. */
  pairs(first, count) {
    return Array.from({ length: count }, (_, i) => this.tokens.slice(first * BLOCK + i, first * BLOCK + i + 2));
  }
}

/** A prompt of plain text. */
const plain = (seed, blocks, options) => new Prompt(tokensOf(seed, blocks * BLOCK), options);

/** A prompt under a LoRA adapter, a salt, or both, as its engine hashes it. */
function scoped(seed, blocks, { lora, salt, namespace = null }) {
  const extras = Array.from({ length: blocks }, (_, block) => {
    const keys = [lora, block === 0 ? salt : null].filter((key) => key != null);
    return keys.length > 0 ? keys : null;
  });
  return plain(seed, blocks, { extras, scope: { lora, namespace } });
}

// ---- events on the wire ----

/** A stored event as an array: `rest` is everything from lora_id on. */
function array(prompt, first, end, ...rest) {
  return ['BlockStored', prompt.hashes(first, end), prompt.wire(first - 1), prompt.slice(first, end), BLOCK, ...rest];
}

/** A stored event as a map. A field given as undefined is left out. */
function map(prompt, first, end, fields = {}) {
  const event = {
    type: 'BlockStored',
    block_hashes: prompt.hashes(first, end),
    parent_block_hash: prompt.wire(first - 1),
    token_ids: prompt.slice(first, end),
    block_size: BLOCK,
    lora_id: null,
    medium: 'GPU',
    lora_name: null,
    ...fields,
  };
  return Object.fromEntries(Object.entries(event).filter(([, value]) => value !== undefined));
}

const removedArray = (hashes, ...rest) => ['BlockRemoved', hashes, ...rest];
const removedMap = (hashes, fields = {}) => ({ type: 'BlockRemoved', block_hashes: hashes, medium: 'GPU', ...fields });

// ---- expectations ----

/**
 * A stored event: by default on the device, of no group, eligible, with every block it announces. `size` hashes that many
 * tokens for a block (Eagle one more); `mm` holds the images' hashes of each block.
 */
function stored(prompt, first, end, options = {}) {
  const { tier = 'device', group = null, ineligible = null, stopped = null, size = BLOCK, mm = [] } = options;
  const { namespace = prompt.scope.namespace ?? null, lora = prompt.scope.lora } = options;
  const { parent = prompt.low(first - 1), count = end - first } = options;
  const blocks = Array.from({ length: count }, (_, i) => {
    const start = (first + i) * BLOCK;
    const local = localHash(prompt.tokens.slice(start, start + size), { lora, namespace, mm: mm[i] });
    return [String(prompt.low(first + i)), String(local)];
  });
  const parentText = parent === null ? null : String(parent);
  return { kind: 'stored', tier, group, namespace, ineligible, parent: parentText, blocks, stopped };
}

/** A stored event that gives no router block. */
const unindexed = (prompt, first, stopped, options = {}) => stored(prompt, first, first, { stopped, ...options });

const removed = (hashes, tier = 'device') => ({
  kind: 'removed',
  tier,
  hashes: hashes.map((hash) => String(BigInt.asUintN(64, hash))),
});
const cleared = { kind: 'cleared' };
const dropped = (reason) => ({ kind: 'dropped', reason });
/** An event that can't be read. */
const rejected = (code, lostRemoval = false) => ({ code, lostRemoval });

// ---- files ----

const encoder = new Encoder({ useBigInt64: true });
let clock = 1_744_900_000.25;

/** A batch of [event on the wire, expectation]. `rank` is as on the wire, left out when undefined. */
function batch(pairs, { rank, form = 'array', unreadable } = {}) {
  clock += 0.5;
  const events = pairs.map(([event]) => event);
  const whole = rank === undefined ? { ts: clock, events } : { ts: clock, events, data_parallel_rank: rank };
  const payload = encoder.encode(form === 'map' ? whole : Object.values(whole));
  if (unreadable) return { payload, expected: { unreadable } };
  const expected = { dpRank: rank ?? 0, events: [], rejected: [] };
  pairs.forEach(([, said], index) => {
    if ('code' in said) expected.rejected.push({ index, ...said });
    else expected.events.push(said);
  });
  return { payload, expected };
}

/** One expectation a line, so that a change shows what it changed. */
function pretty({ about, covers, learns, messages }) {
  const lines = (items) =>
    items.length === 0 ? '[]' : `[\n      ${items.map((item) => JSON.stringify(item)).join(',\n      ')}\n    ]`;
  const texts = messages.map(({ unreadable, dpRank, events, rejected: bad }) =>
    unreadable
      ? `    { "unreadable": ${JSON.stringify(unreadable)} }`
      : `    { "dpRank": ${dpRank}, "events": ${lines(events)}, "rejected": ${lines(bad)} }`,
  );
  return `{
  "blockSize": ${BLOCK},
  "about": ${JSON.stringify(about)},
  "covers": ${JSON.stringify(covers)},
  "learns": ${learns},
  "messages": [
${texts.join(',\n')}
  ]
}
`;
}

mkdirSync(folder, { recursive: true });
for (const file of readdirSync(folder)) rmSync(join(folder, file));

/**
 * Writes one capture. `covers` names rows and rules of vllm-store.md 8; `learns` counts the blocks that a shared cache learns
 * or confirms, by hand.
 */
function capture(name, { about, covers, learns, topic = '' }, messages) {
  const lines = messages.map(({ payload }, sequence) =>
    JSON.stringify({
      seq: String(sequence),
      topic: Buffer.from(topic).toString('hex'),
      payload: Buffer.from(payload).toString('hex'),
    }),
  );
  writeFileSync(join(folder, `${name}.jsonl`), `${lines.join('\n')}\n`);
  const expected = { about, covers, learns, messages: messages.map((message) => message.expected) };
  writeFileSync(join(folder, `${name}.expected.json`), pretty(expected));
}

// ---- vLLM's history, row by row ----

{
  const p = plain(1, 3);
  const adapted = scoped(2, 2, { lora: 'adapter-a' });
  capture(
    '01-arrays',
    {
      about: 'vLLM of April 2025: arrays of six elements in batches of two; an adapter is known by number alone',
      covers: ['#16750', 'one-removal-a-hash', 'cleared'],
      learns: 3,
    },
    [
      batch([
        [array(p, 0, 2, null), stored(p, 0, 2)],
        [array(p, 2, 3, null), stored(p, 2, 3)],
      ]),
      // The name that is in the digests is not on the wire.
      batch([[array(adapted, 0, 2, 7), stored(adapted, 0, 2, { lora: null, ineligible: 'lora-name-missing' })]]),
      batch([
        [removedArray([p.wire(2)]), removed([p.low(2)])],
        [removedArray([p.wire(1)]), removed([p.low(1)])],
      ]),
      batch([[['AllBlocksCleared'], cleared]]),
    ],
  );
}

{
  const p = plain(3, 2);
  capture(
    '02-ranks',
    {
      about:
        'June 2025: the batch says its data-parallel rank; nil and missing are rank 0, and a rank speaks for itself alone',
      covers: ['#18925', 'one-removal-a-hash'],
      learns: 4,
    },
    [
      batch([[array(p, 0, 2, null), stored(p, 0, 2)]], { rank: 1 }),
      batch([[array(p, 0, 1, null), stored(p, 0, 1)]], { rank: null }),
      batch([[array(p, 1, 2, null), stored(p, 1, 2)]]),
      batch([[removedArray([p.wire(1)]), removed([p.low(1)])]], { rank: 1 }),
      batch([[removedArray([p.wire(1)]), removed([p.low(1)])]], { rank: 0 }),
    ],
  );
}

{
  const p = plain(6, 4);
  assert.ok(p.lows.some((low) => low >= 1n << 63n) && p.lows.some((low) => low < 1n << 63n));
  const signed = new Prompt(p.tokens, { form: 'i64' });
  capture(
    '03-integer-hashes',
    {
      about:
        'September 2025: hashes above 2^63 arrive unsigned or signed and are the same hashes; medium GPU, nil or empty',
      covers: ['#19737 / #23673', 'integer-hashes', 'gpu-medium'],
      learns: 10,
    },
    [
      batch([[array(p, 0, 4, null, 'GPU'), stored(p, 0, 4)]], { rank: 0 }),
      batch([[array(signed, 0, 4, null, 'GPU'), stored(p, 0, 4)]], { rank: 0 }),
      batch(
        [
          [array(signed, 2, 3, null, null), stored(p, 2, 3)],
          [array(p, 3, 4, null, ''), stored(p, 3, 4)],
        ],
        { rank: 0 },
      ),
      batch(
        [3, 2].map((block) => [removedArray([signed.wire(block)], 'GPU'), removed([p.low(block)])]),
        { rank: 0 },
      ),
      batch([[removedArray([p.wire(1)], 'GPU'), removed([p.low(1)])]], { rank: 0 }),
    ],
  );
}

{
  const p = plain(7, 4, { form: 'bin' });
  capture(
    '04-byte-hashes',
    {
      about: 'September 2025 with byte hashes: 32 bytes of which the last eight are the integer',
      covers: ['#19737 / #23673', 'byte-hashes', 'gpu-medium'],
      learns: 5,
    },
    [
      batch([[array(p, 0, 3, null, 'GPU'), stored(p, 0, 3)]], { rank: 0 }),
      batch([[array(p, 3, 4, null, 'GPU'), stored(p, 3, 4)]], { rank: 0 }),
      // After a restart with VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=1 the same blocks have the same names.
      batch([[removedArray([p.wire(3)], 'GPU'), removed([p.low(3)])]], { rank: 0 }),
      batch(
        [
          [
            ['BlockStored', p.hashes(3, 4, 'u64'), p.wire(2, 'u64'), p.slice(3, 4), BLOCK, null, 'GPU'],
            stored(p, 3, 4),
          ],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const a = scoped(8, 3, { lora: 'adapter-a' });
  const b = new Prompt(a.tokens, { extras: Array(3).fill(['adapter-b']), scope: { lora: 'adapter-b' } });
  const none = new Prompt(a.tokens);
  capture(
    '05-lora-name',
    {
      about: 'December 2025: an eighth element names the adapter, so the same tokens are different blocks under each',
      covers: ['#27577'],
      learns: 9,
      topic: 'kv-events',
    },
    [
      batch([[array(a, 0, 2, 1, 'GPU', 'adapter-a'), stored(a, 0, 2)]], { rank: 0 }),
      batch([[array(b, 0, 3, 2, 'GPU', 'adapter-b'), stored(b, 0, 3)]], { rank: 0 }),
      batch([[array(none, 0, 3, null, 'GPU', null), stored(none, 0, 3)]], { rank: 0 }),
      batch(
        [
          [array(a, 2, 3, 1, 'GPU', 'adapter-a'), stored(a, 2, 3)],
          [array(b, 0, 1, 2, 'GPU', ''), stored(b, 0, 1, { lora: null, ineligible: 'lora-name-missing' })],
        ],
        { rank: 0 },
      ),
      batch([[removedArray([b.wire(2)], 'GPU'), removed([b.low(2)])]], { rank: 0 }),
    ],
  );
}

{
  const tag = `${SALT}tenant-a`;
  const both = scoped(9, 4, { lora: 'adapter-a', salt: tag, namespace: 'tenant-a' });
  const salted = scoped(10, 4, { salt: tag, namespace: 'tenant-a' });
  capture(
    '06-extra-keys',
    {
      about:
        'February 2026: extra keys with adapter and tagged salt; later blocks inherit the namespace until their parent leaves',
      covers: ['#33304'],
      learns: 8,
      topic: 'kv-events',
    },
    [
      batch(
        [
          [array(both, 0, 2, 1, 'GPU', 'adapter-a', [['adapter-a', tag], ['adapter-a']]), stored(both, 0, 2)],
          [array(both, 2, 4, 1, 'GPU', 'adapter-a', [['adapter-a'], ['adapter-a']]), stored(both, 2, 4)],
        ],
        { rank: 0 },
      ),
      batch([[array(salted, 0, 2, null, 'GPU', null, [[tag], null]), stored(salted, 0, 2)]], { rank: 0 }),
      batch([[array(salted, 2, 3, null, 'GPU', null, [null]), stored(salted, 2, 3)]], { rank: 0 }),
      batch([[removedArray([salted.wire(2)], 'GPU'), removed([salted.low(2)])]], { rank: 0 }),
      // Nothing is known of its parent any more, so it counts as unsalted: no request in a namespace will be matched to it.
      batch([[array(salted, 3, 4, null, 'GPU', null, [null]), stored(salted, 3, 4, { namespace: null })]], { rank: 0 }),
    ],
  );
}

{
  const raw = scoped(11, 3, { salt: 'user-4711' });
  const tag = `${SALT}tenant-b`;
  const binary = scoped(12, 3, { salt: Buffer.from(tag), namespace: 'tenant-b' });
  capture(
    '07-raw-salt',
    {
      about: 'A salt without the tag is no namespace, and one in binary is; neither may teach, both are indexed',
      covers: ['#33304'],
      learns: 2,
      topic: 'kv-events',
    },
    [
      batch(
        [
          [
            array(raw, 0, 2, null, 'GPU', null, [['user-4711'], null]),
            stored(raw, 0, 2, { ineligible: 'extra-key-unknown' }),
          ],
        ],
        { rank: 0 },
      ),
      // Taken for unsalted. Harmless: its parent's hash is salted, and no walk of unsalted blocks comes by it.
      batch([[array(raw, 2, 3, null, 'GPU', null, [null]), stored(raw, 2, 3)]], { rank: 0 }),
      batch(
        [
          [
            array(binary, 0, 2, null, 'GPU', null, [[utf8(tag)], null]),
            stored(binary, 0, 2, { ineligible: 'extra-key-not-text' }),
          ],
          [array(binary, 2, 3, null, 'GPU', null, [null]), stored(binary, 2, 3)],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const p = plain(13, 6);
  const full = (first, end) => array(p, first, end, null, 'GPU', null, Array(end - first).fill(null), 0);
  // The window has passed over the first four blocks: the tokens are there, their hashes are not.
  const window = ['BlockStored', p.hashes(4, 6), null, p.slice(0, 6), BLOCK, null, 'GPU', null, [null, null], 1];
  const masked = ['BlockStored', [], null, p.slice(0, 4), BLOCK, null, 'GPU', null, [], 1];
  capture(
    '08-group-index',
    {
      about:
        'April 2026: a group index without its kind; only group 0 can be the main one, and the sparse group 1 is left out',
      covers: ['#37688', 'sparse', 'group-and-hash', 'one-removal-a-hash'],
      learns: 6,
      topic: 'kv-events',
    },
    [
      batch(
        [
          [full(0, 4), stored(p, 0, 4, { group: 0 })],
          [masked, dropped('unlearned_group_idx')],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [full(4, 6), stored(p, 4, 6, { group: 0 })],
          [window, dropped('unlearned_group_idx')],
        ],
        { rank: 0 },
      ),
      // Both groups have the block under one hash; it leaves the window first.
      batch([[removedArray([p.wire(4)], 'GPU', 1), dropped('unlearned_group_idx')]], { rank: 0 }),
      batch([[removedArray([p.wire(5)], 'GPU', 0), removed([p.low(5)])]], { rank: 0 }),
    ],
  );
}

{
  const p = plain(14, 6);
  const other = plain(15, 2);
  const of = (prompt, first, end, ...tail) =>
    array(prompt, first, end, null, 'GPU', null, Array(end - first).fill(null), ...tail);
  const window = ['BlockStored', p.hashes(3, 4), null, p.slice(0, 4), BLOCK, null, 'GPU', null, [null], 1];
  capture(
    '09-group-kinds',
    {
      about: 'May 2026: stored events teach the kinds of a rank’s groups, by which its removals are judged',
      covers: ['#40984', 'kinds', 'sparse', 'group-and-hash', 'one-removal-a-hash'],
      learns: 6,
      topic: 'kv-events',
    },
    [
      batch(
        [
          [of(p, 0, 4, 0, 'full_attention'), stored(p, 0, 4, { group: 0 })],
          [[...window, 'sliding_window', 64], dropped('non_main_attention_kind')],
          // A second group of full attention is indexed too; the contract's main group alone teaches.
          [of(p, 0, 2, 2, 'full_attention'), stored(p, 0, 2, { group: 2 })],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [removedArray([p.wire(3)], 'GPU', 1), dropped('non_main_attention_group')],
          [removedArray([p.wire(3)], 'GPU', 0), removed([p.low(3)])],
          [removedArray([p.wire(1)], 'GPU', 2), removed([p.low(1)])],
          [removedArray([p.wire(1)], 'GPU', 3), dropped('unlearned_group_idx')],
        ],
        { rank: 0 },
      ),
      // What rank 0 taught holds for rank 0.
      batch(
        [
          [removedArray([p.wire(3)], 'GPU', 1), dropped('unlearned_group_idx')],
          [removedArray([p.wire(1)], 'GPU', 2), dropped('unlearned_group_idx')],
        ],
        { rank: 1 },
      ),
      // On rank 2 group 0 is not the main one.
      batch(
        [
          [of(other, 0, 2, 0, 'mamba'), dropped('non_main_attention_kind')],
          [removedArray([other.wire(0)], 'GPU', 0), dropped('non_main_attention_group')],
          [of(other, 0, 2, 1, 'mla_attention'), stored(other, 0, 2, { group: 1 })],
          [removedArray([other.wire(1)], 'GPU', 1), removed([other.low(1)])],
        ],
        { rank: 2 },
      ),
      // Without a kind an event goes by what its group was learned to be.
      batch(
        [
          [window, dropped('non_main_attention_group')],
          [of(p, 2, 3, 2), stored(p, 2, 3, { group: 2 })],
          [of(p, 4, 6, 0), stored(p, 4, 6, { group: 0 })],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const main = ['full_attention', 'mla_attention', 'sink_full_attention'];
  const others = [
    'sliding_window',
    'sliding_window_mla',
    'mamba',
    'chunked_local_attention',
    'encoder_only_attention',
    'cross_attention',
  ];
  const of = (prompt, ...tail) => array(prompt, 0, 1, null, 'GPU', null, [null], ...tail);
  const p = plain(16, 1);
  const suffixed = plain(17, 1);
  capture(
    '10-kinds-alone',
    {
      about:
        'A kind without a group is judged by itself: three are main attention, six are not, others are unknown; odd tails too',
      covers: ['kinds'],
      learns: 4,
      topic: 'kv-events',
    },
    [
      batch(
        main.map((kind, i) => {
          const prompt = plain(20 + i, 1);
          return [of(prompt, kind), stored(prompt, 0, 1)];
        }),
        { rank: 0 },
      ),
      batch(
        others.map((kind) => [of(p, kind), dropped('non_main_attention_kind')]),
        { rank: 0 },
      ),
      batch(
        ['unknown', 'FULL_ATTENTION'].map((kind) => [of(p, kind), dropped('unknown_kind')]),
        { rank: 0 },
      ),
      // A kind that no version knew is learned as no main one.
      batch(
        [
          [of(p, 4, 'retention'), dropped('unknown_kind')],
          [removedArray([p.wire(0)], 'GPU', 4), dropped('non_main_attention_group')],
          [removedArray([p.wire(0)], 'GPU'), removed([p.low(0)])],
        ],
        { rank: 0 },
      ),
      // Group, kind and window found by their types behind a nil, with something unknown after them.
      batch(
        [
          [of(suffixed, null, 0, 'full_attention', 4096, { future: 1 }), stored(suffixed, 0, 1, { group: 0 })],
          [of(p, null, 1, 'sliding_window', 64, 'suffix'), dropped('non_main_attention_kind')],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const p = plain(24, 4);
  const bytes = plain(25, 3, { form: 'bin' });
  const salted = scoped(26, 2, { lora: 'adapter-a', salt: `${SALT}tenant-a`, namespace: 'tenant-a' });
  const backwards = (event) => Object.fromEntries(Object.entries(event).reverse());
  const shuffled = ({ type, token_ids, ...rest }) => ({ token_ids, ...backwards(rest), type });
  const main = { group_idx: 0, kv_cache_spec_kind: 'full_attention' };
  capture(
    '11-maps',
    {
      about: 'June 2026: events are maps; defaults are left out, keys come in any order, unknown ones are passed over',
      covers: ['#42892', '#40984', '#37688', '#33304', 'byte-hashes', 'one-removal-a-hash', 'cleared'],
      learns: 10,
      topic: 'kv-events',
    },
    [
      batch([[map(p, 0, 2, { extra_keys: [null, null], ...main }), stored(p, 0, 2, { group: 0 })]], { rank: 0 }),
      batch(
        [
          [shuffled(map(p, 2, 3, main)), stored(p, 2, 3, { group: 0 })],
          [
            backwards(map(p, 3, 4, { session_id: 's-1', future: { deep: [1, { type: 'BlockRemoved' }] }, ...main })),
            stored(p, 3, 4, { group: 0 }),
          ],
        ],
        { rank: 0 },
      ),
      // Nothing but what is required.
      batch([
        [
          map(bytes, 0, 3, {
            parent_block_hash: undefined,
            lora_id: undefined,
            medium: undefined,
            lora_name: undefined,
          }),
          stored(bytes, 0, 3),
        ],
      ]),
      batch(
        [
          // A salt of its own makes extra keys needless, and the flag may be said aloud.
          [
            map(salted, 0, 1, {
              lora_id: 1,
              lora_name: 'adapter-a',
              cache_salt: 'tenant-a',
              shared_cache_eligible: true,
              is_eagle: false,
            }),
            stored(salted, 0, 1),
          ],
          [
            map(salted, 0, 2, {
              lora_id: 1,
              lora_name: 'adapter-a',
              cache_salt: 'tenant-a',
              extra_keys: [['adapter-a', `${SALT}tenant-a`], ['adapter-a']],
              block_mm_infos: [null, null],
            }),
            stored(salted, 0, 2),
          ],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [removedMap([p.wire(3)], { group_idx: 0 }), removed([p.low(3)])],
          [backwards(removedMap([bytes.wire(2)], { medium: undefined })), removed([bytes.low(2)])],
          [{ type: 'AllBlocksCleared' }, cleared],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const p = plain(27, 2);
  const salted = scoped(28, 2, { salt: `${SALT}tenant-a`, namespace: 'tenant-a' });
  const tag = `${SALT}tenant-a`;
  const no = (fields, ineligible) => [map(p, 0, 2, fields), stored(p, 0, 2, { ineligible })];
  const tagged = (fields, ineligible, namespace = 'tenant-a') => [
    map(salted, 0, 2, fields),
    stored(salted, 0, 2, { ineligible, namespace }),
  ];
  capture(
    '12-map-batch',
    {
      about:
        'A batch that is a map itself; provenance of a surprising kind keeps an event from teaching, not from being indexed',
      covers: ['#42892'],
      learns: 2,
      topic: 'kv-events',
    },
    [
      batch([[map(p, 0, 2), stored(p, 0, 2)]], { rank: 1, form: 'map' }),
      batch(
        [
          no({ shared_cache_eligible: false }, 'flagged-ineligible'),
          no({ shared_cache_eligible: 'yes' }, 'flagged-ineligible'),
          no({ is_eagle: 1 }, 'speculative'),
          no({ lora_id: '7' }, 'lora-id-type'),
          no({ lora_id: 7 }, 'lora-name-missing'),
          no({ extra_keys: 'none' }, 'extra-keys-shape'),
          no({ extra_keys: [[1], [1.5]] }, 'extra-key-not-text'),
          no({ extra_keys: [null, [tag]] }, 'namespace-misplaced'),
          no({ extra_keys: [[SALT], null] }, 'namespace-mismatch'),
        ],
        { rank: 1, form: 'map' },
      ),
      batch([[removedMap([p.wire(1)]), removed([p.low(1)])]], { form: 'map' }),
      batch(
        [
          tagged({ extra_keys: [[tag, tag], null] }, 'extra-key-repeated'),
          tagged({ cache_salt: 'tenant-a', extra_keys: [[tag], ['user-4711']] }, 'extra-key-unknown'),
        ],
        { rank: null, form: 'map' },
      ),
      batch([tagged({ cache_salt: 'tenant-c', extra_keys: [[tag], null] }, 'namespace-mismatch', 'tenant-c')], {
        rank: 2,
        form: 'map',
      }),
    ],
  );
}

{
  const p = plain(29, 3);
  const of = (first, end, locality) =>
    map(p, first, end, { group_idx: 0, kv_cache_spec_kind: 'full_attention', ...locality });
  const array12 = (locality) => array(p, 2, 3, null, 'GPU', null, [null], 0, 'full_attention', null, locality);
  capture(
    '13-locality',
    {
      about: 'July 2026: blocks that are not said to be local are nobody’s here, whatever their tier',
      covers: ['#48281'],
      learns: 4,
      topic: 'kv-events',
    },
    [
      batch(
        [
          [of(0, 2, { locality: 'LOCAL' }), stored(p, 0, 2, { group: 0 })],
          [of(2, 3, { locality: 'REMOTE' }), dropped('non_local_locality')],
          [of(2, 3, { locality: 'NEARBY' }), dropped('non_local_locality')],
          [of(2, 3, { locality: 'local' }), dropped('non_local_locality')],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [of(2, 3, { locality: null }), stored(p, 2, 3, { group: 0 })],
          [of(2, 3, { locality: 'REMOTE', medium: 'STORAGE' }), dropped('non_local_locality')],
          // Locality is looked at before the medium.
          [of(2, 3, { locality: 'REMOTE', medium: 'cpu' }), dropped('non_local_locality')],
          [removedMap([p.wire(1)], { locality: 'REMOTE' }), dropped('non_local_locality')],
          [removedMap([p.wire(2)], { locality: 'LOCAL' }), removed([p.low(2)])],
        ],
        { rank: 0 },
      ),
      // The same in the array form, whose tail goes by position once it is this long.
      batch(
        [
          [array12('LOCAL'), stored(p, 2, 3, { group: 0 })],
          [array12('REMOTE'), dropped('non_local_locality')],
          [removedArray([p.wire(2)], 'GPU', 0, null, null, 'REMOTE'), dropped('non_local_locality')],
          [removedArray([p.wire(2)], 'GPU', 0, null, null, 'LOCAL'), removed([p.low(2)])],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const p = plain(30, 3);
  const salted = scoped(31, 3, { salt: `${SALT}tenant-a`, namespace: 'tenant-a' });
  const main = { group_idx: 0, kv_cache_spec_kind: 'full_attention' };
  // What the Mooncake store connector says of a chunk it has put: no extra keys, nothing of an adapter, the store's group.
  const put = (block) => map(p, block, block + 1, { medium: 'cpu', group_idx: 0 });
  // What offloading says: hashes without tokens.
  const offloaded = (medium, block_size) =>
    map(p, 0, 2, { parent_block_hash: null, token_ids: [], medium, block_size });
  const elsewhere = (medium) => map(p, 0, 1, { medium });
  capture(
    '14-tiers',
    {
      about:
        'Tiers of connectors: lower-case cpu is none, CPU and STORAGE are, and blocks that come back are ordinary stores',
      covers: ['connector', 'offload-media', 'gpu-medium', 'loaded', 'one-removal-a-hash'],
      learns: 8,
      topic: 'kv-events',
    },
    [
      batch([[map(p, 0, 3, { extra_keys: [null, null, null], ...main }), stored(p, 0, 3, { group: 0 })]], { rank: 0 }),
      batch(
        [0, 1, 2].map((block) => [put(block), dropped('unknown_medium')]),
        { rank: 0 },
      ),
      batch([[removedMap([p.wire(2)], { medium: 'cpu' }), dropped('unknown_medium')]], { rank: 0 }),
      batch(
        [
          [offloaded('CPU', BLOCK), unindexed(p, 0, 'tokens-missing', { tier: 'host_pinned' })],
          [offloaded('STORAGE', 0), unindexed(p, 0, 'foreign-block-size', { tier: 'disk' })],
          [map(p, 0, 2, { medium: 'CPU', ...main }), stored(p, 0, 2, { tier: 'host_pinned', group: 0 })],
          // The host tier is held to the main group, the disk is not.
          [
            map(p, 0, 1, { medium: 'CPU', group_idx: 1, kv_cache_spec_kind: 'sliding_window' }),
            dropped('non_main_attention_kind'),
          ],
          [
            map(p, 0, 1, { medium: 'STORAGE', group_idx: 2, kv_cache_spec_kind: 'mamba' }),
            stored(p, 0, 1, { tier: 'disk', group: 2 }),
          ],
          [removedMap([p.wire(0)], { group_idx: 2 }), dropped('unlearned_group_idx')],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [elsewhere('CPU_TIER1'), stored(p, 0, 1, { tier: 'host_pinned' })],
          [elsewhere('NVME'), stored(p, 0, 1, { tier: 'disk' })],
          [elsewhere('SHARED'), stored(p, 0, 1, { tier: 'external' })],
          [elsewhere('DEVICE'), stored(p, 0, 1)],
          [removedMap([p.wire(1)], { medium: 'CPU' }), removed([p.low(1)], 'host_pinned')],
          [removedMap([p.wire(1)], { medium: 'STORAGE' }), removed([p.low(1)], 'disk')],
          [removedMap([p.wire(1)], { medium: 'EXTERNAL' }), removed([p.low(1)], 'external')],
        ],
        { rank: 0 },
      ),
      // Evicted, then loaded from the store: nothing on the wire tells it from a computed block.
      batch([[removedMap([p.wire(2)], { group_idx: 0 }), removed([p.low(2)])]], { rank: 0 }),
      batch([[map(p, 2, 3, { extra_keys: [null], ...main }), stored(p, 2, 3, { group: 0 })]], { rank: 0 }),
      // The disk keeps out of namespaces: it neither inherits one nor lets one be forgotten.
      batch(
        [
          [map(salted, 0, 1, { extra_keys: [[`${SALT}tenant-a`]] }), stored(salted, 0, 1)],
          [map(salted, 1, 2, { medium: 'STORAGE' }), stored(salted, 1, 2, { tier: 'disk', namespace: null })],
          [map(salted, 0, 1, { medium: 'STORAGE' }), stored(salted, 0, 1, { tier: 'disk', namespace: null })],
          [removedMap([salted.wire(0)], { medium: 'STORAGE' }), removed([salted.low(0)], 'disk')],
          [map(salted, 1, 3, { extra_keys: [null, null] }), stored(salted, 1, 3)],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const tag = `${SALT}tenant-a`;
  const p = scoped(32, 3, { salt: tag, namespace: 'tenant-a' });
  const torn = scoped(33, 2, { salt: tag, namespace: 'tenant-a' });
  const bared = scoped(34, 2, { salt: tag, namespace: 'tenant-a' });
  const of = (prompt, first, end, salt = null) =>
    map(prompt, first, end, {
      extra_keys: Array.from({ length: end - first }, (_, i) => (first + i === 0 && salt ? [salt] : null)),
      group_idx: 0,
      kv_cache_spec_kind: 'full_attention',
    });
  const group = 0;
  const ineligible = 'ambiguous-namespace';
  capture(
    '15-namespaces',
    {
      about:
        'Namespaces end with a clear of their rank; a hash under two of them is ambiguous, and so are its children',
      covers: ['cleared', 'reuse', 'one-removal-a-hash'],
      learns: 15,
      topic: 'kv-events',
    },
    [
      batch([[of(p, 0, 2, tag), stored(p, 0, 2, { group })]], { rank: 0 }),
      batch([[of(p, 0, 2, tag), stored(p, 0, 2, { group })]], { rank: 1 }),
      batch([[{ type: 'AllBlocksCleared' }, cleared]], { rank: 0 }),
      batch([[of(p, 2, 3), stored(p, 2, 3, { group, namespace: null })]], { rank: 0 }),
      batch([[of(p, 2, 3), stored(p, 2, 3, { group })]], { rank: 1 }),
      // Reuse of a prefix is reported from the root again (kv_cache_report_mode "full"), and changes nothing.
      batch([[of(p, 0, 3, tag), stored(p, 0, 3, { group })]], { rank: 0 }),
      batch([[of(p, 0, 3, tag), stored(p, 0, 3, { group })]], { rank: 0 }),
      // One hash under two namespaces; then under one and none.
      batch(
        [
          [of(torn, 0, 1, tag), stored(torn, 0, 1, { group })],
          [of(torn, 0, 1, `${SALT}tenant-b`), stored(torn, 0, 1, { group, namespace: 'tenant-b', ineligible })],
          [of(torn, 1, 2), dropped('ambiguous_cache_namespace')],
          // With a salt of its own it is indexed; an ambiguous parent teaches nothing all the same.
          [
            map(torn, 1, 2, { cache_salt: 'tenant-a', group_idx: 0, kv_cache_spec_kind: 'full_attention' }),
            stored(torn, 1, 2, { group, ineligible }),
          ],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [of(bared, 0, 1, tag), stored(bared, 0, 1, { group })],
          [of(bared, 0, 1), stored(bared, 0, 1, { group, namespace: null, ineligible })],
          [of(bared, 1, 2), dropped('ambiguous_cache_namespace')],
        ],
        { rank: 0 },
      ),
      // A removal does not settle it, a clear does.
      batch(
        [
          [removedMap([torn.wire(0)], { group_idx: 0 }), removed([torn.low(0)])],
          [of(torn, 1, 2), dropped('ambiguous_cache_namespace')],
          [{ type: 'AllBlocksCleared' }, cleared],
          [of(torn, 1, 2), stored(torn, 1, 2, { group, namespace: null })],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  // Attention blocks of 16 tokens over hash spans of 4, as a fine-grained mamba layout makes them.
  const SPAN = 4;
  const p = new Prompt(tokensOf(35, 48), { span: SPAN });
  const at = (tokens) => p.lows[tokens / SPAN - 1];
  const main = { group_idx: 0, kv_cache_spec_kind: 'full_attention' };
  const tail = map(p, 2, 3, {
    block_hashes: [at(40)],
    parent_block_hash: at(36), // never announced
    token_ids: p.tokens.slice(36, 40),
    block_size: SPAN,
    extra_keys: [null],
    ...main,
  });
  const q = plain(36, 3);
  const group = 0;
  capture(
    '16-partial-tail',
    {
      about:
        'A partial tail is of a foreign size until it is promoted; a block without its tokens ends the event, a loop voids it',
      covers: ['partial-tail', 'full-blocks'],
      learns: 3,
      topic: 'kv-events',
    },
    [
      batch([[map(p, 0, 2, { extra_keys: [null, null], ...main }), stored(p, 0, 2, { group })]], { rank: 0 }),
      batch([[tail, unindexed(p, 2, 'foreign-block-size', { group, parent: at(36) })]], { rank: 0 }),
      batch(
        [
          [removedMap([at(40)], { group_idx: 0 }), removed([at(40)])],
          [map(p, 2, 3, { extra_keys: [null], ...main }), stored(p, 2, 3, { group })],
        ],
        { rank: 0 },
      ),
      batch(
        [
          // Blocks of 32 tokens: another engine's layout.
          [
            map(q, 0, 2, { block_hashes: q.hashes(1, 2), block_size: 32, ...main }),
            unindexed(q, 0, 'foreign-block-size', { group }),
          ],
          [
            map(q, 0, 2, { token_ids: q.tokens.slice(0, 20), ...main }),
            stored(q, 0, 2, { group, count: 1, stopped: 'tokens-missing' }),
          ],
          [map(q, 0, 2, { block_hashes: [], ...main }), unindexed(q, 0, null, { group })],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [
            map(q, 1, 2, { parent_block_hash: q.wire(1), ...main }),
            unindexed(q, 1, 'self-reference', { group, parent: q.low(1) }),
          ],
          [
            map(q, 0, 3, { block_hashes: [q.wire(0), q.wire(1), q.wire(0)], ...main }),
            unindexed(q, 0, 'self-reference', { group }),
          ],
        ],
        { rank: 0 },
      ),
    ],
  );
}

// ---- what may be indexed and never teach ----

{
  const cat = sha256('cat').toString('hex');
  const adapter = sha256('adapter').toString('hex');
  const tag = `${SALT}tenant-a`;
  // An image of 18 tokens from the fourth on, so that it reaches into the second block.
  const withImage = (seed) => tokensOf(seed, 32).map((token, i) => (i >= 3 && i < 21 ? IMAGE_TOKEN : token));
  const image = (seed, identifier) => {
    const extras = [[[identifier, 3]], [[identifier, -13]]];
    return { extras, prompt: new Prompt(withImage(seed), { extras }) };
  };
  const hex = image(37, cat);
  const named = image(38, 'video-7');
  const text = new Prompt(withImage(39), { extras: [[cat], null] });
  const salted = new Prompt(withImage(40), {
    extras: [[[cat, 3], tag], [[cat, -13]]],
    scope: { namespace: 'tenant-a' },
  });
  const lora = scoped(41, 2, { lora: adapter });
  const infos = [
    {
      mm_objects: [
        { mm_hash: 0xfedcba9876543210n, offsets: [[3, 9]] },
        { mm_hash: 0x42n, offsets: [[9, 16]] },
      ],
    },
    {
      mm_objects: [
        { mm_hash: 0x42n, offsets: [[0, 5]] },
        { mm_hash: 0x42n, offsets: [[0, 5]] },
      ],
    },
  ];
  const infoHashes = [
    [0xfedcba9876543210n, 0x42n],
    [0x42n, 0x42n],
  ];
  const twice = (identifier) => [[mmHash(identifier)], [mmHash(identifier)]];
  capture(
    '17-multimodal',
    {
      about: 'Images as pairs of identifier and offset, as a bare 64-digit text, and as explicit infos, which win',
      covers: ['#33304'],
      learns: 4,
      topic: 'kv-events',
    },
    [
      batch(
        [
          [
            array(hex.prompt, 0, 2, null, 'GPU', null, hex.extras, 0, 'full_attention'),
            stored(hex.prompt, 0, 2, { group: 0, mm: twice(cat), ineligible: 'extra-key-not-text' }),
          ],
          [
            array(named.prompt, 0, 2, null, 'GPU', null, named.extras, 0, 'full_attention'),
            stored(named.prompt, 0, 2, { group: 0, mm: twice('video-7'), ineligible: 'extra-key-not-text' }),
          ],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [
            array(text, 0, 2, null, 'GPU', null, [[cat], null]),
            stored(text, 0, 2, { mm: [[mmHash(cat)]], ineligible: 'extra-key-unknown' }),
          ],
          // 64 digits that are the adapter's name are no image.
          [array(lora, 0, 2, 1, 'GPU', adapter, [[adapter], [adapter]]), stored(lora, 0, 2)],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [
            array(hex.prompt, 0, 2, null, 'GPU', null, null, infos, 0, 'full_attention', 4096),
            stored(hex.prompt, 0, 2, { group: 0, mm: infoHashes, ineligible: 'multimodal' }),
          ],
          [
            map(hex.prompt, 0, 2, { extra_keys: hex.extras, block_mm_infos: [null, infos[0]] }),
            stored(hex.prompt, 0, 2, { mm: [null, infoHashes[0]], ineligible: 'multimodal' }),
          ],
          [map(lora, 0, 2, { lora_id: 1, lora_name: adapter, block_mm_infos: [null, null] }), stored(lora, 0, 2)],
        ],
        { rank: 0 },
      ),
      // The namespace holds for blocks with an image all the same.
      batch(
        [
          [
            map(salted, 0, 2, { extra_keys: [[[cat, 3], tag], [[cat, -13]]] }),
            stored(salted, 0, 2, { mm: twice(cat), ineligible: 'extra-key-not-text' }),
          ],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const tokens = tokensOf(42, 49);
  const lows = hicachePages(tokens, BLOCK, true).map((page) => BigInt(`0x${page.slice(0, 16)}`));
  const p = new Prompt(tokens, { lows, form: 'i64' });
  const size = BLOCK + 1;
  const pairs = (first, end, count = (end - first) * BLOCK) => [
    'BlockStored',
    p.hashes(first, end),
    p.wire(first - 1),
    p.pairs(first, count),
    BLOCK,
    null,
    'GPU',
  ];
  const ineligible = 'token-pairs';
  const flagged = plain(43, 2);

  const embeds = [sha256('embeds 0'), sha256('embeds 1')];
  assert.throws(() => new TextDecoder('utf-8', { fatal: true }).decode(embeds[0]));
  const tag = `${SALT}tenant-a`;
  const zeros = Array(32).fill(0);
  const keys = embeds.map((embed) => [embed]);
  const saltFirst = [[tag, embeds[0]], [embeds[1]]];
  const saltLast = [[embeds[0], tag], [embeds[1]]];
  const onWire = (extras) =>
    extras.map((items) => items.map((item) => (typeof item === 'string' ? item : new Uint8Array(item))));
  const embedded = (extras, namespace) => {
    const prompt = new Prompt(zeros, { extras, scope: { namespace } });
    return [
      map(prompt, 0, 2, { extra_keys: onWire(extras), group_idx: 0, kv_cache_spec_kind: 'full_attention' }),
      stored(prompt, 0, 2, { group: 0, ineligible: 'extra-key-not-text' }),
    ];
  };
  capture(
    '18-eagle-and-embeds',
    {
      about:
        'Token pairs of Eagle are hashed one token further; the flag alone changes no hash; prompt embeddings never teach',
      covers: ['#33304'],
      learns: 0,
      topic: 'kv-events',
    },
    [
      batch([[pairs(0, 2), stored(p, 0, 2, { size, ineligible })]], { rank: 0 }),
      batch(
        [
          [pairs(2, 3), stored(p, 2, 3, { size, ineligible })],
          [pairs(0, 2, 31), stored(p, 0, 2, { size, ineligible, count: 1, stopped: 'tokens-missing' })],
        ],
        { rank: 0 },
      ),
      batch([[map(flagged, 0, 2, { is_eagle: true }), stored(flagged, 0, 2, { ineligible: 'speculative' })]], {
        rank: 0,
      }),
      batch([embedded(keys, null), embedded(saltFirst, 'tenant-a')], { rank: 0 }),
      // Bytes that are no text end the search for a salt.
      batch([embedded(saltLast, null)], { rank: 1 }),
    ],
  );
}

{
  const sglang = (seed, blocks, scope) => {
    const tokens = tokensOf(seed, blocks * BLOCK);
    const lows = hicachePages(tokens, BLOCK).map((page) => BigInt(`0x${page.slice(0, 16)}`));
    return new Prompt(tokens, { lows, form: 'i64', scope });
  };
  const p = sglang(44, 3);
  const salted = sglang(45, 4, { namespace: 'tenant-a' });
  const unsalted = sglang(46, 1);
  const keyed = sglang(47, 2, { namespace: 'tenant-b' });
  const owned = sglang(48, 2);
  const tag = `${SALT}tenant-b`;
  const fixed = (ownership, locality = 'LOCAL') =>
    array(owned, 0, 2, null, 'GPU', null, null, 0, 'full_attention', null, locality, ownership);
  capture(
    '19-sglang',
    {
      about:
        'SGLang: signed page hashes, five or six elements, a map with the salt in slot 7; owners other than the engine; ignored events',
      covers: ['cleared', 'one-removal-a-hash'],
      learns: 12,
    },
    [
      batch(
        [
          [array(p, 0, 1), stored(p, 0, 1)],
          [array(p, 1, 2), stored(p, 1, 2)],
          [array(p, 2, 3, null), stored(p, 2, 3)],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [array(salted, 0, 1, null, 'GPU', { cache_salt: 'tenant-a' }), stored(salted, 0, 1)],
          [array(salted, 1, 2, null, 'GPU', { cache_salt: 'tenant-a' }), stored(salted, 1, 2)],
          [array(salted, 2, 3, null, 'GPU'), stored(salted, 2, 3)],
          // Nil is a statement, an empty map is none.
          [
            array(unsalted, 0, 1, null, 'GPU', { cache_salt: null }, [[tag]]),
            stored(unsalted, 0, 1, { ineligible: 'namespace-mismatch' }),
          ],
          [array(keyed, 0, 2, null, 'GPU', {}, [[tag], null]), stored(keyed, 0, 2)],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [fixed('kvcr'), dropped('unsupported_ownership')],
          [fixed('another-pool'), dropped('unknown_ownership')],
          // Ownership is looked at before locality.
          [fixed('kvcr', 'REMOTE'), dropped('unsupported_ownership')],
          [removedArray([owned.wire(0)], 'GPU', null, null, null, null, 'another-pool'), dropped('unknown_ownership')],
          [
            { type: 'BlockRemoved', block_hashes: owned.hashes(0, 1), ownership: 'kvcr' },
            dropped('unsupported_ownership'),
          ],
          [fixed(null), stored(owned, 0, 2, { group: 0 })],
        ],
        { rank: 0 },
      ),
      // A clear of what another system owns clears nothing here.
      batch(
        [
          [['AllBlocksCleared', 'kvcr'], dropped('unsupported_ownership')],
          [['AllBlocksCleared', 'another-pool'], dropped('unknown_ownership')],
          [['Ignored'], dropped('ignored_event')],
          [{ type: 'Ignored', block_hashes: 7 }, dropped('ignored_event')],
          [array(salted, 3, 4, null, 'GPU'), stored(salted, 3, 4)],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [removedArray([p.wire(2)]), removed([p.low(2)])],
          [['AllBlocksCleared'], cleared],
          [array(p, 0, 1, null, 'GPU'), stored(p, 0, 1)],
        ],
        { rank: 0 },
      ),
    ],
  );
}

{
  const p = plain(49, 3);
  const main = { group_idx: 0, kv_cache_spec_kind: 'full_attention' };
  const good = (first, end) => [map(p, first, end, main), stored(p, first, end, { group: 0 })];
  const ids = p.slice(1, 2);
  capture(
    '20-faults',
    {
      about:
        'A bad event loses itself alone, a lost removal is told, and a batch of an unreadable rank is refused whole',
      covers: ['one-removal-a-hash'],
      learns: 5,
      topic: 'kv-events',
    },
    [
      batch(
        [
          good(0, 1),
          [map(p, 1, 2, { token_ids: [...ids.slice(0, 7), 'seven', ...ids.slice(8)] }), rejected('field-type')],
          good(1, 2),
          [removedMap(['no hash'], { group_idx: 0 }), rejected('hash-type', true)],
          [removedMap([p.wire(1)], { group_idx: 0 }), removed([p.low(1)])],
        ],
        { rank: 0 },
      ),
      batch(
        [
          [['BlockMoved', p.hashes(0, 1), 'GPU'], rejected('tag-unknown')],
          [{ type: 'BlockMoved', block_hashes: p.hashes(0, 1) }, rejected('tag-unknown')],
          [{ block_hashes: p.hashes(0, 1) }, rejected('tag-missing', true)],
          [7, rejected('not-an-event', true)],
          good(1, 2),
        ],
        { rank: 0 },
      ),
      batch([good(2, 3)], { rank: '0', unreadable: 'batch-rank' }),
      batch(
        [
          [array(p, 0, 1, 'one', 'GPU'), rejected('field-type')],
          [['BlockStored', p.hashes(0, 1), null, p.slice(0, 1)], rejected('field-missing')],
          [map(p, 0, 1, { block_hashes: [new Uint8Array(16)] }), rejected('hash-width')],
          [map(p, 0, 2, { block_hashes: [p.wire(0), p.wire(1, 'bin')] }), rejected('hash-mixed')],
          [map(p, 1, 2, { parent_block_hash: p.wire(0, 'bin') }), rejected('hash-mixed')],
          [map(p, 1, 2, { block_size: -16 }), rejected('field-type')],
          good(0, 1),
        ],
        { rank: 0 },
      ),
      batch(
        [
          [['BlockRemoved'], rejected('field-missing', true)],
          [removedArray([p.wire(2)], 7), rejected('field-type', true)],
          [['AllBlocksCleared', 1], rejected('field-type', true)],
          good(2, 3),
        ],
        { rank: 0 },
      ),
    ],
  );
}
