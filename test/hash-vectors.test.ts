// Hashes: recorded vectors (spec/kv-events.md 2.5), the core against a plain BigInt XXH3, and the engine digests that
// simulated publishers use against Python's own pickle and hashlib.

import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { hashMmIdentifier, padToken } from '../src/events/multimodal.js';
import { hicachePages, vllmDigests } from './support/engine-digests.js';
import { hasher } from './support/hasher.js';
import { xxh3BigInt } from './support/xxh3-bigint.js';

interface BlockVector {
  name: string;
  tokens: number[];
  block_size: number;
  lora_name: string | null;
  cache_namespace: string | null;
  is_eagle: boolean;
  block_mm_hashes: (string[] | null)[] | null;
  seed: string;
  block_bytes_hex: string[];
  tokens_hash: string[];
  sequence_hash: string[];
}

interface DigestVector {
  pythonhashseed: string;
  tokens: string;
  block_size: number;
  blocks: { end_token: number; digest: string; low64_be: string }[];
}

interface Vectors {
  raw_xxh3: { utf8: string; seed: string; hash: string }[];
  block_hash: BlockVector[];
  mm_pad_value: { mm_hash: string; pad: number }[];
  mm_identifier: { id: string; mm_hash: string | null }[];
  vllm_sha256_digest: DigestVector[];
  sglang_hicache_page_hash: { tokens: number[]; page_size: number; is_eagle: boolean; pages: string[] }[];
}

const vectors: Vectors = JSON.parse(readFileSync('test/fixtures/block-hash-vectors.json', 'utf8'));

const BASE_SEED = 1337n;
const MAX_U64 = 2n ** 64n - 1n;
const SEEDS = [0n, 1n, BASE_SEED, MAX_U64, 0x9d3f_62b1_c8e4_a705n];

const core = hasher();
const utf8 = (text: string) => new TextEncoder().encode(text);

/** Bytes without a pattern, the same in every run (xorshift32). */
function noise(length: number): Uint8Array {
  let state = 0x2545f491;
  return Uint8Array.from({ length }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state;
  });
}

const recorded = suite('recorded vectors');

for (const { utf8: input, seed, hash } of vectors.raw_xxh3) {
  recorded(`XXH3 of ${JSON.stringify(input)} with seed ${seed}`, () => {
    assert.is(core.hash(utf8(input), BigInt(seed)), BigInt(hash));
    assert.is(xxh3BigInt(utf8(input), BigInt(seed)), BigInt(hash), 'the BigInt version');
  });
}

/** The seed of block hashes: spec/kv-events.md 2.1. */
function blockSeed(loraName: string | null, namespace: string | null): bigint {
  const lora = loraName ? core.hash(utf8(loraName), 0n) : 0n;
  const salt = namespace ? core.hash(utf8(namespace), 1n) : 0n;
  return BigInt.asUintN(64, BASE_SEED + lora + salt);
}

/** The bytes that are hashed for each block: its tokens (Eagle: and the next one), then its multimodal hashes, sorted. */
function blockBytes({ tokens, block_size, is_eagle, block_mm_hashes }: BlockVector): Uint8Array[] {
  const ahead = is_eagle ? 1 : 0;
  const blocks: Uint8Array[] = [];
  if (block_size === 0) return blocks;
  for (let at = 0; at + block_size + ahead <= tokens.length; at += block_size) {
    const ids = Uint32Array.from(tokens.slice(at, at + block_size + ahead));
    const objects = BigUint64Array.from((block_mm_hashes?.[blocks.length] ?? []).map(BigInt)).sort();
    blocks.push(Buffer.concat([new Uint8Array(ids.buffer), new Uint8Array(objects.buffer)]));
  }
  return blocks;
}

for (const vector of vectors.block_hash) {
  recorded(`block and sequence hashes: ${vector.name}`, () => {
    const seed = blockSeed(vector.lora_name, vector.cache_namespace);
    assert.is(seed, BigInt(vector.seed), 'seed');

    const blocks = blockBytes(vector);
    assert.equal(
      blocks.map((bytes) => Buffer.from(bytes).toString('hex')),
      vector.block_bytes_hex,
      'bytes of each block',
    );
    const locals = BigUint64Array.from(blocks, (bytes) => core.hash(bytes, seed));
    assert.equal([...locals].map(String), vector.tokens_hash, 'local hashes');
    assert.equal([...core.chain(locals)].map(String), vector.sequence_hash, 'sequence hashes');

    const plain = !vector.is_eagle && vector.block_mm_hashes === null && vector.block_size > 0;
    if (plain)
      assert.equal(core.hashBlocks(Uint32Array.from(vector.tokens), vector.block_size, seed), locals, 'at once');
  });
}

for (const { mm_hash, pad } of vectors.mm_pad_value) {
  recorded(`image pad token of ${mm_hash}`, () => {
    assert.is(padToken(BigInt(mm_hash)), pad);
  });
}

for (const { id, mm_hash } of vectors.mm_identifier) {
  recorded(`multimodal identifier ${JSON.stringify(id)}`, () => {
    const hash = hashMmIdentifier(id, (bytes) => core.hash(bytes, 0n));
    assert.is(hash, mm_hash === null ? null : BigInt(mm_hash));
  });
}

for (const vector of vectors.vllm_sha256_digest) {
  recorded(`vLLM digests in spans of ${vector.block_size}`, () => {
    const [from, to] = vector.tokens.split('..').map(Number) as [number, number];
    const tokens = Array.from({ length: to - from }, (_, i) => from + i);
    const digests = vllmDigests(tokens, vector.block_size, { seed: vector.pythonhashseed });
    const blocks = digests.map((digest, i) => ({
      end_token: (i + 1) * vector.block_size,
      digest: digest.toString('hex'),
      low64_be: String(digest.readBigUInt64BE(24)),
    }));
    assert.equal(blocks, vector.blocks);
  });
}

for (const { tokens, page_size, is_eagle, pages } of vectors.sglang_hicache_page_hash) {
  recorded(`HiCache pages of ${page_size} tokens${is_eagle ? ', Eagle' : ''}`, () => {
    assert.equal(hicachePages(tokens, page_size, is_eagle), pages);
  });
}

recorded.run();

const core64 = suite('XXH3-64 in the core');
const LONGEST = 5000;
const bytes = noise(3 * LONGEST);

for (const seed of SEEDS) {
  core64(`equals the BigInt version at every length to 1,100 bytes, seed ${seed}`, () => {
    for (let length = 0; length <= 1100; length++) {
      const input = bytes.subarray(length, 2 * length);
      assert.is(core.hash(input, seed), xxh3BigInt(input, seed), `${length} bytes`);
    }
  });

  core64(`equals it where rounds of 1,024 bytes end, seed ${seed}`, () => {
    for (const length of [1984, 2047, 2048, 2049, 2112, 3071, 3072, 3073, 4095, 4096, 4097, LONGEST]) {
      const input = bytes.subarray(0, length);
      assert.is(core.hash(input, seed), xxh3BigInt(input, seed), `${length} bytes`);
    }
  });
}

core64('hashes neighbouring runs of every length to 1,100 bytes, aligned or not', () => {
  for (let length = 1; length <= 1100; length++) {
    const runs = bytes.subarray(0, 3 * length);
    const expected = [0, 1, 2].map((i) => xxh3BigInt(runs.subarray(i * length, (i + 1) * length), BASE_SEED));
    assert.equal([...core.hashRuns(runs, length, BASE_SEED)], expected, `${length} bytes`);
  }
});

for (const blockSize of [4, 8, 16, 32, 48, 64, 128, 256, 512]) {
  core64(`hashes 0 to 9 blocks of ${blockSize} tokens`, () => {
    const tokens = new Uint32Array(noise(4 * 9 * blockSize).buffer);
    for (const seed of SEEDS) {
      const expected = Array.from({ length: 9 }, (_, i) => {
        return xxh3BigInt(new Uint8Array(tokens.buffer, 4 * i * blockSize, 4 * blockSize), seed);
      });
      for (let blocks = 0; blocks <= 9; blocks++) {
        const whole = tokens.subarray(0, blocks * blockSize);
        assert.equal([...core.hashBlocks(whole, blockSize, seed)], expected.slice(0, blocks), `${blocks} blocks`);
      }
    }
  });
}

core64('does not depend on what lies behind the input', () => {
  for (let length = 0; length <= 300; length++) {
    const input = bytes.subarray(0, length);
    core.hash(new Uint8Array(length + 128).fill(0xff), 0n);
    const first = core.hash(input, BASE_SEED);
    core.hash(new Uint8Array(length + 128), 0n);
    assert.is(core.hash(input, BASE_SEED), first, `${length} bytes`);
  }
});

core64('makes the seeded secret for the very first seed, even one that turns the first words to 0', () => {
  const input = bytes.subarray(0, 300);
  const firstWord = 0xbe4b_a423_396c_feb8n;
  const secondWord = 0x1cad_21f7_2c81_017cn;
  for (const seed of [0n, BigInt.asUintN(64, -firstWord), secondWord]) {
    assert.is(hasher().hash(input, seed), xxh3BigInt(input, seed), `seed ${seed}`);
  }
});

core64('makes it anew when the seed changes between two calls', () => {
  for (const length of [64, 128, 192, 256]) {
    const runs = bytes.subarray(0, 2 * length);
    for (const seed of [...SEEDS, ...SEEDS.toReversed()]) {
      const expected = [xxh3BigInt(runs.subarray(0, length), seed), xxh3BigInt(runs.subarray(length), seed)];
      assert.equal([...core.hashRuns(runs, length, seed)], expected, `${length} bytes, seed ${seed}`);
    }
  }
});

core64('chains local hashes with the fixed seed', () => {
  const locals = new BigUint64Array(noise(8 * 100).buffer);
  for (const count of [0, 1, 2, 3, 100]) {
    const expected: bigint[] = [];
    for (const local of locals.subarray(0, count)) {
      const pair = new Uint8Array(BigUint64Array.of(expected.at(-1) ?? 0n, local).buffer);
      expected.push(expected.length === 0 ? local : xxh3BigInt(pair, BASE_SEED));
    }
    assert.equal([...core.chain(locals.subarray(0, count))], expected, `${count} hashes`);
  }
});

core64.run();

// The last digest of each row, from Python 3.11:
//   parent = sha256(pickle.dumps(seed, 5)).digest(), then for every span
//   parent = sha256(pickle.dumps((parent, tuple(span), tuple(extra_keys) or None), 5)).digest()
const digests = suite('vLLM digests equal those of Python');
const EVERY_WIDTH = [0, 255, 256, 65_535, 65_536, 2_147_483_647, 2_147_483_648, 4_294_967_295];
const PYTHON = [
  [1, {}, 'f2cc4d49ead722b986aff9ce08ea8b4f2ff5578e1a17cbcd4a03c626dd839946'],
  [2, {}, '7accb5dedc22421de61fedbc218e6e063315e41e074e4432d7a56d8f29c2f160'],
  [3, {}, '3f1308329e707198d702885b6b4ea6ec792267e8273e2d475bf0c1d93e2f820f'],
  [4, {}, 'c00ee54d8a046196884d2d9109c4e99516fd6ac0289c7223937d4f32d3987e11'],
  [8, {}, 'a3e77b9feaa5a247f1f1059fec9bd41f3d533265466e1b573ca4a48063b5ba2c'],
  [4, { seed: 'vllm-none-hash' }, 'df9f279ce50d842b02ec3c6469ec8fdd21555db9e7dc3decb3a59dbb175bd0a6'],
  [4, { loraName: 'adapter-a' }, '170c77da64e4ef644d789d59030412e9f8877a682b849eef8f2003cc40d28f1d'],
  [4, { cacheSalt: 'salt' }, 'a43be17bd7331e6497215815a189ef3a8537efa3c0bff1ea3ce358a8ef795e2b'],
  [4, { loraName: 'same', cacheSalt: 'same' }, 'bd291dc0236255a004bcfcb93af86377ea419fd937de3de8b38fcc3e55360692'],
  [1, { loraName: 'アダプタ', cacheSalt: 'salt' }, 'a4127d0dcd91479f4eb59b0a0ef96a288b45af4bf5aab307d14911c113ca4c05'],
  [
    4,
    { loraName: 'n'.repeat(255), cacheSalt: 'm'.repeat(256) },
    'a93e93718b15bfcfe5a89da11c0b295100bf458d4cff8fe4b495bae0ead45e5b',
  ],
] as const;

for (const [span, options, last] of PYTHON) {
  digests(`spans of ${span}, ${JSON.stringify(options).slice(0, 60)}`, () => {
    assert.is(vllmDigests(EVERY_WIDTH, span, options).at(-1)!.toString('hex'), last);
  });
}

digests('empty text is the same as none', () => {
  const options = { loraName: '', cacheSalt: null };
  assert.equal(vllmDigests(EVERY_WIDTH, 4, options), vllmDigests(EVERY_WIDTH, 4));
});

digests('a tail shorter than a span or page has none, nor has a span of 0', () => {
  assert.is(vllmDigests(EVERY_WIDTH, 3).length, 2);
  assert.is(vllmDigests(EVERY_WIDTH, 9).length, 0);
  assert.is(vllmDigests(EVERY_WIDTH, 0).length, 0);
  assert.is(hicachePages([1, 2, 3, 4], 4).length, 1);
  assert.is(hicachePages([1, 2, 3, 4], 4, true).length, 0, 'four tokens are three Eagle pairs');
  assert.is(hicachePages([], 4, true).length, 0);
});

digests.run();
