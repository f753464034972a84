// Multimodal objects of a stored event and what they do to block hashes: spec/kv-events.md 1.12, 1.13, 2.1 and 2.3. Fields go
// through MessagePack, so that values have the types in which they arrive from a worker. Identifiers and pad values of the
// recorded vectors are checked in hash-vectors.test.ts, the bytes of their blocks here.
import { readFileSync } from 'node:fs';
import { decode, encode } from '@msgpack/msgpack';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { blockMmHashes, hashMmIdentifier, mmBlockBytes, padImages, padToken } from '../src/events/multimodal.js';
import { xxh3BigInt } from './support/xxh3-bigint.js';

const xxh3 = (bytes: Uint8Array) => xxh3BigInt(bytes, 0n);
const hashOf = (text: string) => xxh3(new TextEncoder().encode(text));
const HEX = '0123456789abcdef'.repeat(4);
const HEX_HASH = 0x0123456789abcdefn;
const MAX_U64 = 2n ** 64n - 1n;

const identifiers = suite('identifiers of multimodal objects');

const IDENTIFIERS: [why: string, identifier: string, hash: bigint | null][] = [
  ['the empty text names nothing', '', null],
  ['64 hex digits give their first 16', HEX, HEX_HASH],
  ['capital digits too', 'F'.repeat(64), MAX_U64],
  ['zeros behind the first 16 do not matter', `${'0'.repeat(15)}1${'0'.repeat(48)}`, 1n],
  ['63 digits are text', HEX.slice(1), hashOf(HEX.slice(1))],
  ['65 digits are text', `${HEX}0`, hashOf(`${HEX}0`)],
  ['64 letters are text', 'g'.repeat(64), hashOf('g'.repeat(64))],
  ['a digest with a line end is text', `${HEX}\n`, hashOf(`${HEX}\n`)],
  ['16 digits are text', HEX.slice(0, 16), hashOf(HEX.slice(0, 16))],
  ['text is hashed as UTF-8', '画像-1', hashOf('画像-1')],
];

for (const [why, identifier, hash] of IDENTIFIERS) {
  identifiers(why, () => assert.is(hashMmIdentifier(identifier, xxh3), hash));
}

identifiers('more than 1,048,576 UTF-16 units are no identifier, so that the core can hash what is one', () => {
  const lengths: number[] = [];
  const longest = '画'.repeat(1_048_576);
  const measure = (bytes: Uint8Array) => BigInt(lengths.push(bytes.length));
  assert.is(hashMmIdentifier(longest, measure), 1n);
  assert.is(hashMmIdentifier(`${longest}画`, measure), null);
  assert.equal(lengths, [3 * 1_048_576]);
});

identifiers.run();

const events = suite('multimodal hashes of blocks');

/** The hashes of an event's two blocks, after a trip over the wire. */
function hashesOf(fields: object): ReturnType<typeof blockMmHashes> {
  const { lora_name, extra_keys, block_mm_infos } = overTheWire(fields) as Record<string, unknown>;
  const loraName = (lora_name ?? null) as string | null;
  return blockMmHashes({ loraName, extraKeys: extra_keys, blockMmInfos: block_mm_infos }, 2, xxh3);
}

function overTheWire(value: unknown): unknown {
  return decode(encode(value, { useBigInt64: true }), { useBigInt64: true });
}

const infos = (...hashes: unknown[]) => ({ mm_objects: hashes.map((mm_hash) => ({ mm_hash, offsets: [] })) });

const ROWS: [why: string, fields: object, hashes: ReturnType<typeof blockMmHashes>][] = [
  ['nothing given', {}, null],
  ['both nil', { extra_keys: null, block_mm_infos: null }, null],
  ['blocks without extra keys', { extra_keys: [null, []] }, null],

  ['infos: a list of nils', { block_mm_infos: [null, null] }, null],
  ['infos: one object', { block_mm_infos: [infos(5), null] }, [[5n], null]],
  ['infos: objects keep their order and repeat', { block_mm_infos: [infos(9, 5, 9), infos(5)] }, [[9n, 5n, 9n], [5n]]],
  ['infos: 64 bits', { block_mm_infos: [infos(MAX_U64), infos(0)] }, [[MAX_U64], [0n]]],
  ['infos: negative numbers bit for bit', { block_mm_infos: [infos(-1, -(2n ** 63n))] }, [[MAX_U64, 2n ** 63n], null]],
  ['infos: no objects hash like text', { block_mm_infos: [infos(), infos(5)] }, [null, [5n]]],
  ['infos: a list shorter than the blocks says nothing of the rest', { block_mm_infos: [infos(5)] }, [[5n], null]],
  ['infos: what lies behind the blocks is not read', { block_mm_infos: [null, null, infos(5)] }, null],
  ['infos beat extra keys', { block_mm_infos: [infos(5)], extra_keys: [[['a', 0]], [['b', 0]]] }, [[5n], null]],
  ['infos of nils beat extra keys', { block_mm_infos: [null], extra_keys: [[['a', 0]]] }, null],
  ['infos: an empty list beats extra keys', { block_mm_infos: [], extra_keys: [[['a', 0]]] }, null],
  ['infos that are no list do not', { block_mm_infos: 7, extra_keys: [[['a', 0]]] }, [[hashOf('a')], null]],
  ['infos: blocks that are no map', { block_mm_infos: [7, infos(5)] }, [null, [5n]]],
  ['infos: objects that are no list', { block_mm_infos: [{ mm_objects: 7 }, infos(5)] }, [null, [5n]]],
  ['infos: an object that is no map', { block_mm_infos: [{ mm_objects: [7, null, { mm_hash: 5 }] }] }, [[5n], null]],
  ['infos: a hash that is no integer', { block_mm_infos: [infos('5', null, 5.5, 2 ** 40, true), {}] }, null],

  ['pairs of text and offset', { extra_keys: [[['a', 0]], [['b', 3]]] }, [[hashOf('a')], [hashOf('b')]]],
  ['a negative offset', { extra_keys: [[['a', -3]]] }, [[hashOf('a')], null]],
  ['an offset of 64 bits', { extra_keys: [[['a', MAX_U64]]] }, [[hashOf('a')], null]],
  ['a pair with a digest', { extra_keys: [[[HEX, 0]]] }, [[HEX_HASH], null]],
  ['a pair that reads like the LoRA', { lora_name: 'a', extra_keys: [['a', ['a', 0]]] }, [[hashOf('a')], null]],
  [
    'pairs keep their order and repeat',
    {
      extra_keys: [
        [
          ['b', 0],
          [HEX, 1],
          ['b', 2],
        ],
      ],
    },
    [[hashOf('b'), HEX_HASH, hashOf('b')], null],
  ],
  ['a pair with an empty identifier', { extra_keys: [[['', 0]]] }, null],
  ['pairs of other types', { extra_keys: [[['a', '0'], [1, 2], ['a', null], ['a', 0.5], ['a'], ['a', 0, 0]]] }, null],
  ['bare text that is a digest', { extra_keys: [[HEX]] }, [[HEX_HASH], null]],
  ['bare text that is none', { extra_keys: [['image-1', HEX.slice(1)]] }, null],
  ['a digest that is the LoRA, however often', { lora_name: HEX, extra_keys: [[HEX, HEX], [HEX]] }, null],
  ['a digest beside another LoRA', { lora_name: 'adapter', extra_keys: [['adapter', HEX]] }, [[HEX_HASH], null]],
  ['a tagged salt', { extra_keys: [[`dynamo-cache-salt:${HEX}`]] }, null],
  ['binary, numbers, booleans', { extra_keys: [[new Uint8Array(32), 1, -1n, 0.5, true]] }, null],
  ['extra keys that are no list', { extra_keys: HEX }, null],
  ['a block that is no list', { extra_keys: [HEX, [HEX]] }, [null, [HEX_HASH]]],
  ['extra keys behind the blocks', { extra_keys: [null, null, [HEX]] }, null],
];

for (const [why, fields, hashes] of ROWS) {
  events(why, () => assert.equal(hashesOf(fields), hashes));
}

events('an event without blocks has none', () => {
  assert.is(blockMmHashes({ loraName: null, extraKeys: [[HEX]], blockMmInfos: null }, 0, xxh3), null);
});

events.run();

const pads = suite('image pads');
const IMAGE = 151_655;
const [A, B] = [1n, 2n ** 63n + 2n];
const [a, b] = [1_000_001, 1_000_002];

const PADS: [why: string, tokens: number[], mmHashes: bigint[], padded: number[]][] = [
  ['a run', [7, IMAGE, IMAGE, 8], [A], [7, a, a, 8]],
  ['each run has an object', [IMAGE, 7, IMAGE, IMAGE], [A, B], [a, 7, b, b]],
  ['the last object serves later runs', [IMAGE, 7, IMAGE, 7, IMAGE], [A, B], [a, 7, b, 7, b]],
  ['neighbouring images are one run', [IMAGE, IMAGE, 7], [A, B], [a, a, 7]],
  ['more objects than runs', [7, IMAGE], [B, A], [7, b]],
  ['no image token', [7, 8], [A], [7, 8]],
  ['no object', [7, IMAGE], [], [7, IMAGE]],
  ['no token', [], [A], []],
];

for (const [why, tokens, mmHashes, padded] of PADS) {
  pads(why, () => {
    const ids = Uint32Array.from(tokens);
    padImages(ids, IMAGE, mmHashes);
    assert.equal([...ids], padded);
  });
}

pads('a pad token that is the image token does not end the run', () => {
  const ids = Uint32Array.of(a, a, 7, a);
  padImages(ids, a, [A, B]);
  assert.equal([...ids], [a, a, 7, b]);
});

pads('a pad token is 1,000,000 and the low 30 bits', () => {
  assert.is(padToken(0n), 1_000_000);
  assert.is(padToken(2n ** 30n - 1n), 1_074_741_823);
  assert.is(padToken(2n ** 30n), 1_000_000);
  assert.is(padToken(MAX_U64), 1_074_741_823);
});

pads.run();

const bytes = suite('bytes of blocks with multimodal hashes');
const hex = (tokens: number[], mmHashes: bigint[]) =>
  Buffer.from(mmBlockBytes(Uint32Array.from(tokens), mmHashes)).toString('hex');

bytes('tokens, then hashes in unsigned order, little endian', () => {
  assert.is(hex([1, 0xffffffff], []), '01000000ffffffff');
  assert.is(hex([1], [MAX_U64, 2n]), '010000000200000000000000ffffffffffffffff');
});

bytes('equal hashes are kept, and the caller’s list is left as it is', () => {
  const mmHashes = [3n, 2n, 3n];
  assert.is(hex([], mmHashes), '020000000000000003000000000000000300000000000000');
  assert.equal(mmHashes, [3n, 2n, 3n]);
});

bytes('a part of a larger array of tokens', () => {
  const tokens = Uint32Array.of(1, 2, 3).subarray(1);
  assert.equal([...mmBlockBytes(tokens, [])], [2, 0, 0, 0, 3, 0, 0, 0]);
});

interface Vector {
  name: string;
  tokens: number[];
  block_size: number;
  block_mm_hashes: (string[] | null)[] | null;
  block_bytes_hex: string[];
}
const { block_hash }: { block_hash: Vector[] } = JSON.parse(
  readFileSync('test/fixtures/block-hash-vectors.json', 'utf8'),
);
for (const { name, tokens, block_size, block_mm_hashes, block_bytes_hex } of block_hash) {
  if (block_mm_hashes === null) continue;
  bytes(`recorded vector ${name}`, () => {
    const block = (i: number) => tokens.slice(i * block_size, (i + 1) * block_size);
    const blocks = block_bytes_hex.map((_, i) => hex(block(i), (block_mm_hashes[i] ?? []).map(BigInt)));
    assert.equal(blocks, block_bytes_hex);
  });
}

bytes.run();
