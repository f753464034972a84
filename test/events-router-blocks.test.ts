// From a stored event to router blocks (spec/kv-events.md 1.13, hashes 2.1 and 2.3): MessagePack through WorkerEvents and
// routerBlocks, held against the recorded vectors and, where they have no case, against the BigInt XXH3 of test/support.
import { readFileSync } from 'node:fs';
import { Encoder } from '@msgpack/msgpack';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type RouterBlockOptions, routerBlocks } from '../src/events/router-blocks.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { framesOf } from './support/messages.js';
import { xxh3BigInt } from './support/xxh3-bigint.js';

type Fields = Readonly<Record<string, unknown>>;

interface BlockVector {
  readonly name: string;
  readonly tokens: readonly number[];
  readonly block_size: number;
  readonly lora_name: string | null;
  readonly cache_namespace: string | null;
  readonly is_eagle: boolean;
  readonly block_mm_hashes: readonly (readonly string[] | null)[] | null;
  readonly tokens_hash: readonly string[];
}

const encoder = new Encoder({ useBigInt64: true });
const workers = new WorkerEvents();
let workersMade = 0;

interface Converted {
  readonly count: number;
  readonly hashes: readonly bigint[];
  readonly locals: readonly bigint[];
  readonly stopped: string | null;
}

/** The router blocks of the last of a new worker's events. */
function convert(events: readonly unknown[], options: RouterBlockOptions): Converted {
  const payload = encoder.encode([0, events, 0]);
  const read = workers.read(`worker-${workersMade++}`, framesOf(0, payload));
  assert.equal(read.rejected, []);
  const last = read.events.at(-1);
  if (last?.kind !== 'stored') throw new Error(`read as ${last?.kind}`);
  const { count, hashes, locals, stopped } = routerBlocks(last, options);
  return { count, hashes: [...hashes], locals: [...locals], stopped };
}

const B = 4;
const range = (length: number, first = 1) => Array.from({ length }, (_, i) => first + i);

/** A stored event of blocks 1001, 1002, … of four tokens each; `fields` may say otherwise. */
const storedBlocks = (blocks: number, fields: Fields = {}): Fields => ({
  type: 'BlockStored',
  block_hashes: range(blocks, 1001),
  parent_block_hash: null,
  token_ids: range(blocks * B),
  block_size: B,
  ...fields,
});
const blocksOf = (event: Fields, options: Partial<RouterBlockOptions> = {}) =>
  convert([event], { blockSize: B, ...options });

const utf8 = (text: string) => new TextEncoder().encode(text);

/** The local hash of one window by the rule of 2.1: `objects` are hashes of images, whose order does not matter. */
function localHash(
  tokens: readonly number[],
  scope: { lora?: string; namespace?: string } = {},
  objects: bigint[] = [],
) {
  let seed = 1337n;
  if (scope.lora) seed += xxh3BigInt(utf8(scope.lora), 0n);
  if (scope.namespace) seed += xxh3BigInt(utf8(scope.namespace), 1n);
  const bytes = new Uint8Array(4 * tokens.length + 8 * objects.length);
  const view = new DataView(bytes.buffer);
  tokens.forEach((token, i) => {
    view.setUint32(4 * i, token, true);
  });
  objects
    .sort((a, b) => (a < b ? -1 : 1))
    .forEach((object, i) => {
      view.setBigUint64(4 * tokens.length + 8 * i, object, true);
    });
  return xxh3BigInt(bytes, BigInt.asUintN(64, seed));
}

const recorded = suite('recorded vectors as events');

const { block_hash: vectors }: { block_hash: BlockVector[] } = JSON.parse(
  readFileSync('test/fixtures/block-hash-vectors.json', 'utf8'),
);

/** The token list as the wire has it: one by one, or for Eagle in pairs with the next one. */
const tokensOf = ({ tokens, is_eagle }: BlockVector) =>
  is_eagle ? tokens.slice(1).map((next, i) => [tokens[i], next]) : tokens;

const infosOf = ({ block_mm_hashes }: BlockVector) =>
  block_mm_hashes?.map((hashes) =>
    hashes === null ? null : { mm_objects: hashes.map((hash) => ({ mm_hash: BigInt(hash), offsets: [] })) },
  ) ?? null;

/** The two encodings. The array form has no slot for a salt and takes it from the extra keys. */
const FORMS: Readonly<Record<string, (vector: BlockVector, blocks: number) => unknown>> = {
  map: (vector, blocks) => ({
    type: 'BlockStored',
    block_hashes: range(blocks, 1001),
    parent_block_hash: null,
    token_ids: tokensOf(vector),
    block_size: vector.block_size,
    lora_name: vector.lora_name,
    cache_salt: vector.cache_namespace,
    block_mm_infos: infosOf(vector),
  }),
  array: (vector, blocks) => {
    const { block_size, lora_name, cache_namespace } = vector;
    const salt = cache_namespace ? [`dynamo-cache-salt:${cache_namespace}`] : [];
    const extraKeys = range(blocks).map((block) => [...(lora_name ? [lora_name] : []), ...(block === 1 ? salt : [])]);
    const slots = [range(blocks, 1001), null, tokensOf(vector), block_size, null, 'GPU', lora_name, extraKeys];
    return ['BlockStored', ...slots, infosOf(vector)];
  },
};

for (const [form, eventOf] of Object.entries(FORMS)) {
  for (const vector of vectors) {
    if (vector.block_size === 0) continue;
    recorded(`${vector.name} (${form})`, () => {
      const options = { blockSize: vector.block_size };
      const blocks = vector.tokens_hash.length;
      const whole = convert([eventOf(vector, blocks)], options);
      assert.equal(whole.locals.map(String), vector.tokens_hash);
      assert.equal(whole.hashes, range(blocks, 1001).map(BigInt));
      assert.is(whole.stopped, null);
      // A block more than there are tokens for: the tail of the tokens makes none.
      assert.equal(convert([eventOf(vector, blocks + 1)], options), { ...whole, stopped: 'tokens-missing' });
    });
  }
}

recorded('all but the one of block size 0, which no router has: such an event has another size', () => {
  const left = vectors.filter(({ block_size }) => block_size === 0);
  assert.equal(
    left.map(({ name }) => name),
    ['block_size_zero'],
  );
  assert.equal(convert([FORMS['map']!(left[0]!, 1)], { blockSize: 1 }).stopped, 'foreign-block-size');
});

recorded.run();

const stops = suite('which blocks are taken');

const MAX_U64 = 2n ** 64n - 1n;
const digest = (high: number, low: number) => Uint8Array.from({ length: 32 }, (_, i) => (i === 31 ? low : high));

/** Events that name a block twice. */
const SELF_REFERENCES: readonly (readonly [why: string, hashes: readonly unknown[], parent: unknown])[] = [
  ['twice in a row', [1, 2, 2, 3], null],
  ['first and last', [1, 2, 3, 1], null],
  ['nothing else', [1, 1], null],
  ['the first is the parent', [9, 1, 2], 9],
  ['the last is the parent', [1, 2, 9], 9],
  ['a single block is its own parent', [9], 9],
  ['zero is a hash like others', [0], 0],
  ['the same bits, signed and unsigned', [-1, MAX_U64], null],
  ['the parent signed', [1, MAX_U64], -1],
  ['digests', [digest(1, 1), digest(1, 2), digest(1, 1)], null],
  ['a digest that is the parent', [digest(1, 1)], digest(1, 1)],
  ['digests with the same low 64 bits, which is all that an index knows', [digest(0, 1), withHead(digest(0, 1))], null],
];

/** Another digest with the same low 64 bits. */
function withHead(bytes: Uint8Array): Uint8Array {
  return bytes.map((byte, i) => (i === 0 ? byte ^ 0xff : byte));
}

for (const [why, block_hashes, parent_block_hash] of SELF_REFERENCES) {
  stops(`none of an event that names a block twice: ${why}`, () => {
    const event = storedBlocks(block_hashes.length, { block_hashes, parent_block_hash });
    assert.equal(blocksOf(event), { count: 0, hashes: [], locals: [], stopped: 'self-reference' });
  });
}

stops('none, wherever in a long event the second one stands', () => {
  const count = 300;
  for (const [from, to] of [
    [0, 299],
    [0, 1],
    [298, 299],
    [127, 128],
    [63, 256],
    [150, 151],
  ] as const) {
    const block_hashes = range(count, 1001);
    block_hashes[to] = block_hashes[from]!;
    assert.is(blocksOf(storedBlocks(count, { block_hashes })).stopped, 'self-reference', `${from} and ${to}`);
  }
  for (const at of [0, 1, 127, 128, 299]) {
    assert.is(
      blocksOf(storedBlocks(count, { parent_block_hash: 1001 + at })).stopped,
      'self-reference',
      `parent, ${at}`,
    );
  }
});

stops('hashes that share only a half are different', () => {
  const halves = [1n, 1n << 32n, (1n << 32n) | 1n, 2n, 2n << 32n, 0n];
  const { count, stopped } = blocksOf(storedBlocks(6, { block_hashes: halves, parent_block_hash: 3n }));
  assert.equal([count, stopped], [6, null]);
  assert.is(blocksOf(storedBlocks(1, { block_hashes: [0] })).stopped, null, 'no parent is no hash');
});

stops('an event may say again what another one said', () => {
  assert.is(convert([storedBlocks(2), storedBlocks(2)], { blockSize: B }).count, 2);
});

stops('none of another block size', () => {
  for (const [block_size, tokens] of [
    [8, 16],
    [2, 4],
    [3, 6],
    [0, 0],
    [5, 10],
  ] as const) {
    const event = storedBlocks(2, { block_size, token_ids: range(tokens) });
    const nothing = { count: 0, hashes: [], locals: [], stopped: 'foreign-block-size' };
    assert.equal(blocksOf(event), nothing, `${block_size}`);
  }
  assert.is(blocksOf(storedBlocks(2), { blockSize: 8 }).stopped, 'foreign-block-size');
});

stops('self-reference is seen before the block size', () => {
  assert.is(blocksOf(storedBlocks(2, { block_hashes: [1, 1], block_size: 8 })).stopped, 'self-reference');
});

stops('an event without blocks is whole, whatever its size: the placeholder of a STORAGE store', () => {
  const whole = { count: 0, hashes: [], locals: [], stopped: null };
  for (const block_size of [0, 4, 8]) {
    assert.equal(blocksOf(storedBlocks(0, { block_size, medium: 'STORAGE' })), whole, `${block_size}`);
  }
  assert.equal(blocksOf(storedBlocks(0, { token_ids: range(8) })), whole, 'tokens without hashes');
});

/** How many blocks an event of `blocks` hashes gives by its tokens; pairs hold one token more than there are. */
const COUNTS: readonly (readonly [blocks: number, tokens: number, count: number])[] = [
  [3, 12, 3],
  [3, 11, 2],
  [3, 9, 2],
  [3, 8, 2],
  [3, 7, 1],
  [3, 4, 1],
  [3, 3, 0],
  [3, 0, 0],
  [3, 13, 3],
  [3, 40, 3],
  [1, 4, 1],
];

for (const [blocks, tokens, count] of COUNTS) {
  stops(`${count} of ${blocks} blocks with ${tokens} tokens`, () => {
    const plain = blocksOf(storedBlocks(blocks, { token_ids: range(tokens) }));
    assert.equal(plain, {
      count,
      hashes: range(count, 1001).map(BigInt),
      locals: range(count, 0).map((block) => localHash(range(B, 1 + block * B))),
      stopped: count < blocks ? 'tokens-missing' : null,
    });
  });

  stops(`${count} of ${blocks} Eagle blocks with ${tokens} pairs`, () => {
    const pairs = range(tokens).map((token) => [token, token + 1]);
    const eagle = blocksOf(storedBlocks(blocks, { token_ids: pairs }));
    assert.equal(eagle, {
      count,
      hashes: range(count, 1001).map(BigInt),
      locals: range(count, 0).map((block) => localHash(range(B + 1, 1 + block * B))),
      stopped: count < blocks ? 'tokens-missing' : null,
    });
  });
}

stops('the flag is_eagle alone changes no hash', () => {
  assert.equal(blocksOf(storedBlocks(2, { is_eagle: true })), blocksOf(storedBlocks(2)));
});

stops('each event of a message has its own blocks', () => {
  const [first, second] = [storedBlocks(2), storedBlocks(3, { block_hashes: [7, 8, 9], token_ids: range(12, 500) })];
  const converted = convert([first, second], { blockSize: B });
  assert.equal(converted.hashes, [7n, 8n, 9n]);
  assert.equal(
    converted.locals,
    [500, 504, 508].map((token) => localHash(range(B, token))),
  );
});

stops('block sizes on every path of XXH3', () => {
  for (const blockSize of [1, 2, 3, 5, 16, 31, 32, 60, 61, 64, 257, 1024]) {
    const token_ids = range(blockSize * 2, 4_000_000_000);
    const { locals } = convert([storedBlocks(2, { token_ids, block_size: blockSize })], { blockSize });
    const expected = [0, blockSize].map((at) => localHash(token_ids.slice(at, at + blockSize)));
    assert.equal(locals, expected, `${blockSize}`);
  }
});

stops.run();

const seeds = suite('LoRA and namespace');

const TAG = 'dynamo-cache-salt:tenant-a';

/** Ways in which an event names its scope. */
const SCOPES: readonly (readonly [why: string, fields: Fields, scope: { lora?: string; namespace?: string }])[] = [
  ['neither', {}, {}],
  ['an empty LoRA name and an empty salt', { lora_name: '', cache_salt: '' }, {}],
  ['a LoRA', { lora_name: 'adapter-a' }, { lora: 'adapter-a' }],
  ['the number of a LoRA alone', { lora_id: 7 }, {}],
  ['a salt', { cache_salt: 'tenant-a' }, { namespace: 'tenant-a' }],
  ['a tagged salt', { extra_keys: [[TAG], null] }, { namespace: 'tenant-a' }],
  ['a tagged salt as binary', { extra_keys: [[utf8(TAG)], null] }, { namespace: 'tenant-a' }],
  ['a raw salt', { extra_keys: [['tenant-a'], null] }, {}],
  ['both', { lora_name: 'adapter-a', cache_salt: 'tenant-a' }, { lora: 'adapter-a', namespace: 'tenant-a' }],
  [
    'both the other way',
    { lora_name: 'tenant-a', cache_salt: 'adapter-a' },
    { lora: 'tenant-a', namespace: 'adapter-a' },
  ],
  ['a salt in the host tier', { cache_salt: 'tenant-a', medium: 'CPU' }, { namespace: 'tenant-a' }],
  ['a salt in the disk tier', { cache_salt: 'tenant-a', medium: 'DISK' }, { namespace: 'tenant-a' }],
  ['a salt in an event that may not teach', { cache_salt: 'テナント', is_eagle: true }, { namespace: 'テナント' }],
  [
    'long names',
    { lora_name: 'l'.repeat(5000), cache_salt: 'n'.repeat(5000) },
    { lora: 'l'.repeat(5000), namespace: 'n'.repeat(5000) },
  ],
];

for (const [why, fields, scope] of SCOPES) {
  seeds(`${why}`, () => {
    const expected = [localHash([1, 2, 3, 4], scope), localHash([5, 6, 7, 8], scope)];
    assert.equal(blocksOf(storedBlocks(2, fields)).locals, expected);
    const pairs = range(8).map((token) => [token, token + 1]);
    const windows = [localHash([1, 2, 3, 4, 5], scope), localHash([5, 6, 7, 8, 9], scope)];
    assert.equal(blocksOf(storedBlocks(2, { ...fields, token_ids: pairs })).locals, windows, 'Eagle');
  });
}

seeds('an inherited namespace is hashed like an own one', () => {
  const child = storedBlocks(1, { parent_block_hash: 7, lora_name: 'adapter-a' });
  const root = storedBlocks(1, { block_hashes: [7], cache_salt: 'tenant-a' });
  const [local] = convert([root, child], { blockSize: B }).locals;
  assert.is(local, localHash([1, 2, 3, 4], { lora: 'adapter-a', namespace: 'tenant-a' }));
});

seeds('a contradictory block is hashed under the namespace that its event names', () => {
  const [first, second] = ['tenant-a', 'tenant-b'].map((cache_salt) => storedBlocks(1, { cache_salt }));
  const [local] = convert([first, second], { blockSize: B }).locals;
  assert.is(local, localHash([1, 2, 3, 4], { namespace: 'tenant-b' }));
});

seeds.run();

const images = suite('multimodal blocks');

const IMG = 99;
const [HASH_A, HASH_B] = [81985529216486895n, 18364758544493064720n];
const [PAD_A, PAD_B] = [163254319, 912487504]; // recorded: mm_pad_value
const infos = (...hashes: unknown[]) => ({ mm_objects: hashes.map((mm_hash) => ({ mm_hash, offsets: [] })) });

/** Two blocks: tokens, objects of each, and the tokens that are hashed when the image token is known. */
const PADS: readonly (readonly [
  why: string,
  tokens: readonly number[],
  objects: readonly (bigint[] | null)[],
  padded: readonly number[],
])[] = [
  ['a run', [1, IMG, IMG, 2, 5, 6, 7, 8], [[HASH_A], null], [1, PAD_A, PAD_A, 2, 5, 6, 7, 8]],
  [
    'a block that is all image',
    [IMG, IMG, IMG, IMG, 5, 6, 7, 8],
    [[HASH_A], null],
    [PAD_A, PAD_A, PAD_A, PAD_A, 5, 6, 7, 8],
  ],
  [
    'two runs, two objects in their order',
    [IMG, 1, IMG, IMG, 5, 6, 7, 8],
    [[HASH_B, HASH_A], null],
    [PAD_B, 1, PAD_A, PAD_A, 5, 6, 7, 8],
  ],
  [
    'more runs than objects: the last one serves',
    [IMG, 1, IMG, 2, IMG, 6, 7, 8],
    [[HASH_A], [HASH_B]],
    [PAD_A, 1, PAD_A, 2, PAD_B, 6, 7, 8],
  ],
  ['more objects than runs', [IMG, 1, 2, 3, 5, 6, 7, 8], [[HASH_A, HASH_B], null], [PAD_A, 1, 2, 3, 5, 6, 7, 8]],
  [
    'a run over the border is one in each block',
    [1, 2, IMG, IMG, IMG, IMG, 7, IMG],
    [[HASH_A], [HASH_A, HASH_B]],
    [1, 2, PAD_A, PAD_A, PAD_A, PAD_A, 7, PAD_B],
  ],
  ['image tokens without objects stay', [IMG, 1, 2, IMG, 5, IMG, 7, 8], [null, null], [IMG, 1, 2, IMG, 5, IMG, 7, 8]],
  [
    'only the block with objects is changed',
    [IMG, 1, 2, 3, IMG, 6, 7, 8],
    [null, [HASH_A]],
    [IMG, 1, 2, 3, PAD_A, 6, 7, 8],
  ],
  [
    'objects without image tokens leave plain text',
    [1, 2, 3, 4, 5, 6, 7, 8],
    [[HASH_A], [HASH_B]],
    [1, 2, 3, 4, 5, 6, 7, 8],
  ],
  ['a list shorter than the blocks', [IMG, 1, 2, 3, IMG, 6, 7, 8], [[HASH_A]], [PAD_A, 1, 2, 3, IMG, 6, 7, 8]],
  ['an empty list of objects', [IMG, 1, 2, 3, 5, 6, 7, 8], [[], [HASH_A]], [IMG, 1, 2, 3, 5, 6, 7, 8]],
];

const inBlocks = (tokens: readonly number[]) => [tokens.slice(0, B), tokens.slice(B)];
const eventOf = (token_ids: readonly number[], objects: readonly (bigint[] | null)[], fields: Fields = {}) => {
  const block_mm_infos = objects.map((hashes) => (hashes === null ? null : infos(...hashes)));
  return storedBlocks(2, { token_ids, block_mm_infos, ...fields });
};

for (const [why, tokens, objects, padded] of PADS) {
  images(`with the image token: ${why}`, () => {
    const { locals } = blocksOf(eventOf(tokens, objects), { imageTokenId: IMG });
    assert.equal(
      locals,
      inBlocks(padded).map((block) => localHash(block)),
    );
  });

  images(`without it, the objects are hashed behind the tokens: ${why}`, () => {
    const expected = inBlocks(tokens).map((block, i) => localHash(block, {}, [...(objects[i] ?? [])]));
    for (const options of [{}, { imageTokenId: null }]) {
      assert.equal(blocksOf(eventOf(tokens, objects), options).locals, expected);
    }
  });
}

images('an image token that is another one, or 0', () => {
  const tokens = [0, 1, IMG, 2, 0, 0, 7, 8];
  const objects = [[HASH_A], [HASH_B]];
  const padded = [PAD_A, 1, IMG, 2, PAD_B, PAD_B, 7, 8];
  assert.equal(
    blocksOf(eventOf(tokens, objects), { imageTokenId: 0 }).locals,
    inBlocks(padded).map((block) => localHash(block)),
  );
  assert.equal(
    blocksOf(eventOf(tokens, objects), { imageTokenId: 77 }).locals,
    inBlocks(tokens).map((block) => localHash(block)),
  );
});

images('under a LoRA and a namespace', () => {
  const tokens = [IMG, 2, 3, 4, 5, 6, 7, 8];
  const scope = { lora: 'adapter-a', namespace: 'tenant-a' };
  const event = eventOf(tokens, [[HASH_A], null], { lora_name: 'adapter-a', cache_salt: 'tenant-a' });
  const second = localHash([5, 6, 7, 8], scope);
  assert.equal(blocksOf(event).locals, [localHash([IMG, 2, 3, 4], scope, [HASH_A]), second]);
  assert.equal(blocksOf(event, { imageTokenId: IMG }).locals, [localHash([PAD_A, 2, 3, 4], scope), second]);
});

images('of Eagle blocks the whole window is hashed', () => {
  const token_ids = range(8).map((token) => [token, token + 1]);
  const { locals } = blocksOf(storedBlocks(2, { token_ids, block_mm_infos: [null, infos(HASH_A)] }));
  assert.equal(locals, [localHash([1, 2, 3, 4, 5]), localHash([5, 6, 7, 8, 9], {}, [HASH_A])]);
});

images('signed hashes are those of their bits', () => {
  const signed = BigInt.asIntN(64, HASH_B);
  const { locals } = blocksOf(storedBlocks(1, { block_mm_infos: [infos(signed)] }));
  assert.equal(locals, [localHash([1, 2, 3, 4], {}, [HASH_B])]);
});

images('an identifier with its offset, and a digest, name an object among the extra keys', () => {
  const named = xxh3BigInt(utf8('image-1'), 0n);
  const hex = '0123456789abcdef'.padEnd(64, '0');
  const extra_keys = [[['image-1', 0]], [hex]];
  const { locals } = blocksOf(storedBlocks(2, { extra_keys }));
  assert.equal(locals, [localHash([1, 2, 3, 4], {}, [named]), localHash([5, 6, 7, 8], {}, [0x0123456789abcdefn])]);
  const said = blocksOf(storedBlocks(2, { extra_keys, block_mm_infos: [infos(HASH_A), null] }));
  assert.equal(said.locals, [localHash([1, 2, 3, 4], {}, [HASH_A]), localHash([5, 6, 7, 8])], 'infos count alone');
});

images('an image in a block that is not taken does not matter', () => {
  const event = eventOf([1, 2, 3, 4, IMG, 6], [null, [HASH_A]]);
  const taken = { count: 1, hashes: [1001n], locals: [localHash([1, 2, 3, 4])], stopped: 'tokens-missing' };
  for (const options of [{}, { imageTokenId: IMG }]) assert.equal(blocksOf(event, options), taken);
});

images('hashing images leaves the tokens of the message as they were', () => {
  const payload = encoder.encode([
    0,
    [eventOf([IMG, IMG, 3, 4, 5, 6, 7, IMG], [[HASH_A], [HASH_B]]), storedBlocks(1)],
    0,
  ]);
  const { events } = workers.read('worker', framesOf(0, payload));
  const [first, second] = events;
  if (first?.kind !== 'stored' || second?.kind !== 'stored') throw new Error('not read as sent');
  const plain = routerBlocks(first, { blockSize: B }).locals;
  const padded = routerBlocks(first, { blockSize: B, imageTokenId: IMG }).locals;
  assert.equal([...first.event.tokenIds], [IMG, IMG, 3, 4, 5, 6, 7, IMG]);
  assert.equal([...routerBlocks(second, { blockSize: B }).locals], [localHash([1, 2, 3, 4])]);
  assert.equal(routerBlocks(first, { blockSize: B }).locals, plain, 'asked again');
  assert.equal(routerBlocks(first, { blockSize: B, imageTokenId: IMG }).locals, padded, 'asked again');
});

images.run();
