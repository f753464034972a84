// XXH3-64 with a seed, for inputs of every length. The algorithm is Yann Collet's (https://github.com/Cyan4973/xxHash,
// BSD-2-Clause); block and sequence hashes are made of it as spec/kv-events.md 2.1 and 2.2 say.
//
// XXH3 rests on one step: multiply two 64-bit words to 128 bits and XOR the two halves, a "fold". WebAssembly has no
// such multiply, so a fold takes four products of 32-bit halves. One SIMD instruction (extmul) makes two such products,
// lane by lane. So two folds are made side by side: the low halves of their words go into the lower lanes, the high
// halves into the upper ones, and four extmuls make all eight products. Which two go together is free, since folds are
// only added up. The processor's scalar units would be idle meanwhile, so the common block sizes (64 and 128 bytes)
// leave every fourth fold to them (measured: 12 % less time than lanes alone).
//
// Nothing outside [input, input + length) is read, nothing is allocated; the only state is the seeded secret.

import { HASH_SECRET } from './layout';

// @ts-ignore: decorator
@inline const PRIME32_1: u64 = 0x9E3779B1;
// @ts-ignore: decorator
@inline const PRIME32_2: u64 = 0x85EBCA77;
// @ts-ignore: decorator
@inline const PRIME32_3: u64 = 0xC2B2AE3D;
// @ts-ignore: decorator
@inline const PRIME64_1: u64 = 0x9E3779B185EBCA87;
// @ts-ignore: decorator
@inline const PRIME64_2: u64 = 0xC2B2AE3D27D4EB4F;
// @ts-ignore: decorator
@inline const PRIME64_3: u64 = 0x165667B19E3779F9;
// @ts-ignore: decorator
@inline const PRIME64_4: u64 = 0x85EBCA77C2B2AE63;
// @ts-ignore: decorator
@inline const PRIME64_5: u64 = 0x27D4EB2F165667C5;
// @ts-ignore: decorator
@inline const PRIME_MX1: u64 = 0x165667919E3779F9;
// @ts-ignore: decorator
@inline const PRIME_MX2: u64 = 0x9FB21C651E98DF25;

/** Seed of every sequence hash. */
// @ts-ignore: decorator
@inline const CHAIN_SEED: u64 = 1337;

/** Bytes of a chunk: the two words of one fold. */
// @ts-ignore: decorator
@inline const CHUNK: usize = 16;
/** Bytes of a stripe: eight words, each with an accumulator of its own. */
// @ts-ignore: decorator
@inline const STRIPE: usize = 64;

// The longest input, in bytes, of each path.
// @ts-ignore: decorator
@inline const MAX_TWO_ENDED: usize = 128;
// @ts-ignore: decorator
@inline const MAX_CHUNKED: usize = 240;

/** XXH3's default secret: 192 bytes. */
const SECRET: usize = memory.data<u8>([
  0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
  0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
  0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
  0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
  0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
  0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
  0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
  0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
  0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
  0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
  0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
  0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
], 16);

/** Bytes of the secret. */
// @ts-ignore: decorator
@inline const SECRET_SIZE: usize = 192;

// Where in the secret each path begins to read, in bytes.
// @ts-ignore: decorator
@inline const AT_4_TO_8: usize = 8;
// @ts-ignore: decorator
@inline const AT_9_TO_16: usize = 24;
// @ts-ignore: decorator
@inline const AT_EMPTY: usize = 56;
// @ts-ignore: decorator
@inline const AT_NINTH_CHUNK: usize = 3;
// @ts-ignore: decorator
@inline const AT_LAST_CHUNK: usize = 119;
// @ts-ignore: decorator
@inline const AT_SCRAMBLE: usize = 128;
// @ts-ignore: decorator
@inline const AT_LAST_STRIPE: usize = 121;
// @ts-ignore: decorator
@inline const AT_MERGE: usize = 11;

/** XXH3-64 of the `length` bytes at `input`. */
export function xxh3(input: usize, length: usize, seed: u64): u64 {
  if (length > 16) {
    seedSecret(seed);
    if (length <= MAX_TWO_ENDED) return hash17To128(input, length);
    return length <= MAX_CHUNKED ? hash129To240(input, length, seed) : hashStripes(input, length);
  }
  if (length > 8) return hash9To16(load<u64>(input), load<u64>(input + length - 8), length, seed);
  if (length > 3) return hash4To8(input, length, seed);
  if (length > 0) return hash1To3(input, length, seed);
  return avalancheShort(seed ^ load<u64>(SECRET + AT_EMPTY) ^ load<u64>(SECRET + AT_EMPTY + 8));
}

/** Hashes `blocks` consecutive blocks of `blockBytes` bytes and writes a u64 for each to `out`. */
export function xxh3Blocks(input: usize, blocks: u32, blockBytes: u32, seed: u64, out: usize): void {
  const length: usize = blockBytes, end = out + (<usize>blocks << 3);
  if (length > 16) seedSecret(seed);
  if (length > MAX_CHUNKED) {
    for (; out < end; input += length, out += 8) store<u64>(out, hashStripes(input, length));
  } else if (length == 128) {
    for (; out < end; input += 128, out += 8) store<u64>(out, hashBlock128(input));
  } else {
    if (length == 64) for (; out + 8 < end; input += 128, out += 16) hashTwoBlocks64(input, out);
    for (; out < end; input += length, out += 8) store<u64>(out, xxh3(input, length, seed));
  }
}

/** Sequence hashes of `count` local hashes: s[0] = h[0], s[i] = XXH3 of s[i-1] and h[i]. `out` may be `locals`. */
export function xxh3Chain(locals: usize, count: u32, out: usize): void {
  const end = locals + (<usize>count << 3);
  let sequence: u64 = 0;
  for (let at = locals; at < end; at += 8, out += 8) {
    const local = load<u64>(at);
    sequence = at == locals ? local : hash9To16(sequence, local, 16, CHAIN_SEED);
    store<u64>(out, sequence);
  }
}

/**
 * Makes the seeded secret (the seed is added to and subtracted from the default one's words in turn) at HASH_SECRET,
 * unless it is there: its first two words tell for which seed it was made, and memory that is still zero fits no seed.
 */
function seedSecret(seed: u64): void {
  const seeds = seedLanes(seed);
  if (i64x2.all_true(i64x2.eq(v128.load(HASH_SECRET), i64x2.add(v128.load(SECRET), seeds)))) return;
  for (let at: usize = 0; at < SECRET_SIZE; at += 16) {
    v128.store(HASH_SECRET + at, i64x2.add(v128.load(SECRET + at), seeds));
  }
}

// ---- up to 16 bytes: one or two words, the plain secret ----

function hash1To3(input: usize, length: usize, seed: u64): u64 {
  const first = <u32>load<u8>(input);
  const middle = <u32>load<u8>(input + (length >> 1));
  const last = <u32>load<u8>(input + length - 1);
  const key = <u64>(load<u32>(SECRET) ^ load<u32>(SECRET + 4)) + seed;
  return avalancheShort(<u64>(middle << 24 | first << 16 | <u32>length << 8 | last) ^ key);
}

function hash4To8(input: usize, length: usize, seed: u64): u64 {
  const word = <u64>load<u32>(input) << 32 | <u64>load<u32>(input + length - 4);
  const key = load<u64>(SECRET + AT_4_TO_8) ^ load<u64>(SECRET + AT_4_TO_8 + 8);
  let hash = word ^ (key - (seed ^ <u64>bswap(<u32>seed) << 32));
  hash ^= rotl(hash, 49) ^ rotl(hash, 24);
  hash *= PRIME_MX2;
  hash ^= (hash >> 35) + <u64>length;
  hash *= PRIME_MX2;
  return hash ^ hash >> 28;
}

function hash9To16(first: u64, last: u64, length: usize, seed: u64): u64 {
  const low = first ^ ((load<u64>(SECRET + AT_9_TO_16) ^ load<u64>(SECRET + AT_9_TO_16 + 8)) + seed);
  const high = last ^ ((load<u64>(SECRET + AT_9_TO_16 + 16) ^ load<u64>(SECRET + AT_9_TO_16 + 24)) - seed);
  return avalanche(<u64>length + bswap(low) + high + fold(low, high));
}

// ---- 17 to 128 bytes: chunks from both ends towards the middle, where they may overlap ----

function hash17To128(input: usize, length: usize): u64 {
  let front = input, back = input + length - CHUNK, key = HASH_SECRET;
  let sums = i64x2(<u64>length * PRIME64_1, 0);
  do {
    sums = i64x2.add(sums, foldTwo(keyed(front, key), keyed(back, key + CHUNK)));
    front += CHUNK;
    back -= CHUNK;
    key += 2 * CHUNK;
  } while (key < HASH_SECRET + length);
  return avalanche(sumLanes(sums));
}

/** Two 64-byte blocks (16 tokens, the most common size): a lane a block, the folds under the last key in scalars. */
// @ts-ignore: decorator
@inline
function hashTwoBlocks64(input: usize, out: usize): void {
  const key0 = v128.load(HASH_SECRET), key1 = v128.load(HASH_SECRET + 16), key2 = v128.load(HASH_SECRET + 32);
  let sums = i64x2.splat(64 * PRIME64_1);
  sums = i64x2.add(sums, foldTwo(v128.xor(v128.load(input), key0), v128.xor(v128.load(input, 64), key0)));
  sums = i64x2.add(sums, foldTwo(v128.xor(v128.load(input, 48), key1), v128.xor(v128.load(input, 64 + 48), key1)));
  sums = i64x2.add(sums, foldTwo(v128.xor(v128.load(input, 16), key2), v128.xor(v128.load(input, 64 + 16), key2)));
  const fold0 = foldChunk(input + 32, HASH_SECRET + 48), fold1 = foldChunk(input + 64 + 32, HASH_SECRET + 48);
  store<u64>(out, avalanche(i64x2.extract_lane(sums, 0) + fold0));
  store<u64>(out, avalanche(i64x2.extract_lane(sums, 1) + fold1), 8);
}

/** One 128-byte block (32 tokens): six chunks in lanes, the middle two in scalars. */
// @ts-ignore: decorator
@inline
function hashBlock128(input: usize): u64 {
  const outer = foldTwo(keyed(input, HASH_SECRET), keyed(input + 112, HASH_SECRET + 16));
  const next = foldTwo(keyed(input + 16, HASH_SECRET + 32), keyed(input + 96, HASH_SECRET + 48));
  const inner = foldTwo(keyed(input + 32, HASH_SECRET + 64), keyed(input + 80, HASH_SECRET + 80));
  const middle = foldChunk(input + 48, HASH_SECRET + 96) + foldChunk(input + 64, HASH_SECRET + 112);
  return avalanche(128 * PRIME64_1 + middle + sumLanes(i64x2.add(i64x2.add(outer, next), inner)));
}

// ---- 129 to 240 bytes: chunks in order ----

function hash129To240(input: usize, length: usize, seed: u64): u64 {
  const ninth = input + 8 * CHUNK, last = input + length - CHUNK;
  let chunk = input, key = HASH_SECRET;
  let sums = i64x2(<u64>length * PRIME64_1, 0);
  for (; chunk < ninth; chunk += 2 * CHUNK, key += 2 * CHUNK) {
    sums = i64x2.add(sums, foldTwo(keyed(chunk, key), keyed(chunk + CHUNK, key + CHUNK)));
  }
  const head = avalanche(sumLanes(sums));

  // The whole chunks that follow, then the last 16 bytes once more. Their keys straddle the secret's words, so the seed
  // is added here. An odd chunk goes with the last one; where there is none, zeros do, whose fold is 0.
  const seeds = seedLanes(seed);
  sums = i64x2(head, 0);
  key = SECRET + AT_NINTH_CHUNK;
  for (; chunk + CHUNK <= last; chunk += 2 * CHUNK, key += 2 * CHUNK) {
    sums = i64x2.add(sums, foldTwo(keyedBy(chunk, key, seeds), keyedBy(chunk + CHUNK, key + CHUNK, seeds)));
  }
  const odd = chunk <= last ? keyedBy(chunk, key, seeds) : i64x2.splat(0);
  return avalanche(sumLanes(i64x2.add(sums, foldTwo(odd, keyedBy(last, SECRET + AT_LAST_CHUNK, seeds)))));
}

// ---- more than 240 bytes: stripes ----

/**
 * Each accumulator adds up the product of its keyed word's two halves, and its neighbour's word as it stands. The words
 * are added up apart and go to their neighbours only when the accumulators are scrambled or merged.
 */
function hashStripes(input: usize, length: usize): u64 {
  const last = input + length - STRIPE;
  let products0 = i64x2(PRIME32_3, PRIME64_1), products1 = i64x2(PRIME64_2, PRIME64_3);
  let products2 = i64x2(PRIME64_4, PRIME32_2), products3 = i64x2(PRIME64_5, PRIME32_1);
  let words0 = i64x2.splat(0), words1 = i64x2.splat(0), words2 = i64x2.splat(0), words3 = i64x2.splat(0);

  for (let stripe = input, key = HASH_SECRET; ;) {
    const word0 = v128.load(stripe), word1 = v128.load(stripe, 16);
    const word2 = v128.load(stripe, 32), word3 = v128.load(stripe, 48);
    words0 = i64x2.add(words0, word0);
    words1 = i64x2.add(words1, word1);
    words2 = i64x2.add(words2, word2);
    words3 = i64x2.add(words3, word3);
    const keyed0 = v128.xor(word0, v128.load(key)), keyed1 = v128.xor(word1, v128.load(key, 16));
    const keyed2 = v128.xor(word2, v128.load(key, 32)), keyed3 = v128.xor(word3, v128.load(key, 48));
    const lows01 = lowHalves(keyed0, keyed1), highs01 = highHalves(keyed0, keyed1);
    const lows23 = lowHalves(keyed2, keyed3), highs23 = highHalves(keyed2, keyed3);
    products0 = i64x2.add(products0, i64x2.extmul_low_i32x4_u(lows01, highs01));
    products1 = i64x2.add(products1, i64x2.extmul_high_i32x4_u(lows01, highs01));
    products2 = i64x2.add(products2, i64x2.extmul_low_i32x4_u(lows23, highs23));
    products3 = i64x2.add(products3, i64x2.extmul_high_i32x4_u(lows23, highs23));
    if (stripe == last) break;

    stripe += STRIPE;
    key += 8;
    if (key == HASH_SECRET + AT_SCRAMBLE) {
      key = HASH_SECRET;
      products0 = scramble(withNeighbours(products0, words0), HASH_SECRET + AT_SCRAMBLE);
      products1 = scramble(withNeighbours(products1, words1), HASH_SECRET + AT_SCRAMBLE + 16);
      products2 = scramble(withNeighbours(products2, words2), HASH_SECRET + AT_SCRAMBLE + 32);
      products3 = scramble(withNeighbours(products3, words3), HASH_SECRET + AT_SCRAMBLE + 48);
      words0 = words1 = words2 = words3 = i64x2.splat(0);
    }
    if (stripe >= last) {
      // The last 64 bytes, which may have been read in part already.
      stripe = last;
      key = HASH_SECRET + AT_LAST_STRIPE;
    }
  }

  const merge: usize = HASH_SECRET + AT_MERGE;
  const merged0 = v128.xor(withNeighbours(products0, words0), v128.load(merge));
  const merged1 = v128.xor(withNeighbours(products1, words1), v128.load(merge, 16));
  const merged2 = v128.xor(withNeighbours(products2, words2), v128.load(merge, 32));
  const merged3 = v128.xor(withNeighbours(products3, words3), v128.load(merge, 48));
  const sums = i64x2.add(foldTwo(merged0, merged1), foldTwo(merged2, merged3));
  return avalanche(<u64>length * PRIME64_1 + sumLanes(sums));
}

/** The low 32 bits of each of four words. */
// @ts-ignore: decorator
@inline
function lowHalves(x: v128, y: v128): v128 {
  return v128.shuffle<i32>(x, y, 0, 2, 4, 6);
}

/** The high 32 bits of each of four words. */
// @ts-ignore: decorator
@inline
function highHalves(x: v128, y: v128): v128 {
  return v128.shuffle<i32>(x, y, 1, 3, 5, 7);
}

/** Adds each lane's neighbour in `words` to it. */
// @ts-ignore: decorator
@inline
function withNeighbours(products: v128, words: v128): v128 {
  return i64x2.add(products, v128.shuffle<i64>(words, words, 1, 0));
}

// @ts-ignore: decorator
@inline
function scramble(sums: v128, key: usize): v128 {
  return i64x2.mul(v128.xor(v128.xor(sums, i64x2.shr_u(sums, 47)), v128.load(key)), i64x2.splat(PRIME32_1));
}

// ---- the steps they share ----

/** What the seed adds to two neighbouring words of the secret. */
// @ts-ignore: decorator
@inline
function seedLanes(seed: u64): v128 {
  return i64x2(seed, 0 - seed);
}

/** The chunk at `input`, XORed with the (seeded) secret at `key`. */
// @ts-ignore: decorator
@inline
function keyed(input: usize, key: usize): v128 {
  return v128.xor(v128.load(input), v128.load(key));
}

/** The same with the plain secret, seeded here. */
// @ts-ignore: decorator
@inline
function keyedBy(input: usize, key: usize, seeds: v128): v128 {
  return v128.xor(v128.load(input), i64x2.add(v128.load(key), seeds));
}

/** Folds one chunk with scalars. */
// @ts-ignore: decorator
@inline
function foldChunk(input: usize, key: usize): u64 {
  return fold(load<u64>(input) ^ load<u64>(key), load<u64>(input, 8) ^ load<u64>(key, 8));
}

/** `a` times `b` to 128 bits, its upper half XOR its lower half. */
// @ts-ignore: decorator
@inline
function fold(a: u64, b: u64): u64 {
  const aLow = a & 0xFFFFFFFF, aHigh = a >> 32, bLow = b & 0xFFFFFFFF, bHigh = b >> 32;
  const middle = aHigh * bLow + (aLow * bLow >> 32); // neither sum can pass 2^64 - 1
  const cross = aLow * bHigh + (middle & 0xFFFFFFFF);
  const upper = aHigh * bHigh + (middle >> 32) + (cross >> 32);
  return upper ^ a * b;
}

/** Two folds at once: lane 0 of the result is that of `x`'s two words, lane 1 that of `y`'s. */
// @ts-ignore: decorator
@inline
function foldTwo(x: v128, y: v128): v128 {
  const a = v128.shuffle<i32>(x, y, 0, 4, 1, 5); // the first words: both low halves, then both high halves
  const b = v128.shuffle<i32>(x, y, 2, 6, 3, 7); // the second words likewise
  const bTurned = v128.shuffle<i32>(b, b, 2, 3, 0, 1);
  const lowLow = i64x2.extmul_low_i32x4_u(a, b), highHigh = i64x2.extmul_high_i32x4_u(a, b);
  const lowHigh = i64x2.extmul_low_i32x4_u(a, bTurned), highLow = i64x2.extmul_high_i32x4_u(a, bTurned);
  const middle = i64x2.add(highLow, i64x2.shr_u(lowLow, 32)); // from here on as in fold
  const cross = i64x2.add(lowHigh, v128.and(middle, i64x2.splat(0xFFFFFFFF)));
  const upper = i64x2.add(i64x2.add(highHigh, i64x2.shr_u(middle, 32)), i64x2.shr_u(cross, 32));
  const lower = v128.shuffle<i32>(lowLow, i64x2.shl(cross, 32), 0, 5, 2, 7); // a blend: low halves, then high halves
  return v128.xor(upper, lower);
}

// @ts-ignore: decorator
@inline
function sumLanes(sums: v128): u64 {
  return i64x2.extract_lane(sums, 0) + i64x2.extract_lane(sums, 1);
}

// @ts-ignore: decorator
@inline
function avalanche(hash: u64): u64 {
  hash ^= hash >> 37;
  hash *= PRIME_MX1;
  return hash ^ hash >> 32;
}

/** The finish of inputs up to 3 bytes. */
// @ts-ignore: decorator
@inline
function avalancheShort(hash: u64): u64 {
  hash ^= hash >> 33;
  hash *= PRIME64_2;
  hash ^= hash >> 29;
  hash *= PRIME64_3;
  return hash ^ hash >> 32;
}
