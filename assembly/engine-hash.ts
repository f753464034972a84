// vLLM's block digests, made from tokens: SHA-256 over what Python writes for (parent's digest, tuple of the tokens, extra keys or None), by
// pickle.dumps with protocol 5 or by cbor2.dumps in canonical form. Every digest covers its parent's, so that the chain is serial; but only a
// message's first chunk holds the parent. The messages of several blocks are written beforehand, and the schedules of all other chunks made four
// at a time (sha256.ts).
import { HASH_CHUNKS, HASH_MESSAGES, HASH_MESSAGES_BYTES, HASH_RULE, HASH_SCHEDULES, HASH_WORDS, TAIL_FIRST, TAIL_REST } from './layout';
import { begin, CHUNK, compress, compressScheduled, DIGEST, scheduleFour, state, swapped, WORD } from './sha256';

const CBOR: u32 = 2;
/** Most blocks written beforehand: their bytes stay in the first-level cache. */
const BATCH: usize = 32;
/** Where CBOR has the parent's digest (pickle at 13), and what is before a message's tokens at most. */
const CBOR_PARENT: usize = 3;
const HEAD: usize = 48;
/** Most bytes of a token; of what follows all of them; and of a message's padding, with what a wide store writes behind it. */
const TOKEN: usize = 7;
const AROUND: usize = 2;
const PADDING: usize = 128;
/** Bytes of pickle's frame header, which its length does not count. */
const FRAME_AT: usize = 11;

// Which byte of the parent's words goes to each byte of the first chunk's: in the first four words, in the next four (from either half), in the third.
const PICKLE_PLACES = memory.data<u8>([
  255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 255,
  5, 6, 7, 0, 9, 10, 11, 4, 13, 14, 15, 8, 255, 255, 255, 12,
  255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 255,
  5, 6, 7, 0, 9, 10, 11, 4, 13, 14, 15, 8, 255, 255, 255, 12,
], 16);
const CBOR_PLACES = memory.data<u8>([
  3, 255, 255, 255, 7, 0, 1, 2, 11, 4, 5, 6, 15, 8, 9, 10,
  255, 12, 13, 14, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
  3, 255, 255, 255, 7, 0, 1, 2, 11, 4, 5, 6, 15, 8, 9, 10,
  255, 12, 13, 14, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
], 16);

/** A message's head up to the first token, the parent's place in it empty; returns its end. */
@inline function pickleHead(at: usize, tokens: u32): usize {
  v128.store(at, i64x2(0x950580, 0x2043000000)); // protocol, frame of a length to come, bytes of 32
  v128.store(at, i64x2.splat(0), 16);
  v128.store(at, i64x2(0, 0x2894_0000000000), 32); // memoize, mark
  return at + (tokens < 4 ? 46 : 47);
}
@inline function cborHead(at: usize, tokens: u32): usize {
  v128.store(at, i64x2(0x205883, 0)); // array of 3, bytes of 32
  v128.store(at, i64x2.splat(0), 16);
  v128.store(at, i64x2.splat(0), 32);
  return length(at + CBOR_PARENT + DIGEST, 0x80, tokens);
}
/** A head of CBOR: its major type and a number in as few bytes as can be. */
@inline function length(to: usize, type: u32, value: u32): usize {
  if (value < 24) { store<u8>(to, type | value); return to + 1; }
  const wide: u32 = (value > 0xff ? 1 : 0) + (value > 0xffff ? 1 : 0);
  store<u64>(to, <u64>(type | 24 + wide) | <u64>bswap<u32>(value << (32 - (8 << wide))) << 8);
  return to + 1 + (1 << wide);
}
@inline function pickleToken(to: usize, token: u32): usize {
  if (<i32>token < 0) { store<u64>(to, 0x058a | <u64>token << 16); return to + 7; } // LONG1 of five bytes
  const wide: u32 = (token > 0xff ? 8 : 0) + (token > 0xffff ? 8 : 0);
  store<u64>(to, <u64>(0x4a4d4b >> wide & 0xff) | <u64>token << 8); // BININT1, BININT2, BININT
  return to + (0x050302 >> wide & 0xff);
}

/** Writes the message of one block, padded; returns its end, a multiple of a chunk behind `at`. */
@inline function message(at: usize, tokens: usize, count: u32, cbor: bool, tail: usize, tailBytes: usize): usize {
  let to: usize;
  const end = tokens + (<usize>count << 2);
  if (cbor) {
    to = cborHead(at, count);
    for (; tokens < end; tokens += 4) to = length(to, 0, load<u32>(tokens));
  } else {
    to = pickleHead(at, count);
    for (; tokens < end; tokens += 4) to = pickleToken(to, load<u32>(tokens));
    store<u16>(to, 0x9400 | (count < 4 ? 0x84 + count : 0x74)); // tuple, memoize
    to += AROUND;
  }
  for (let i: usize = 0; i < tailBytes; i += 16) v128.store(to + i, v128.load(tail + i));
  to += tailBytes;
  const bytes = to - at;
  if (!cbor) store<u32>(at, <u32>(bytes - FRAME_AT), 3);
  const none = i64x2.splat(0);
  v128.store(to, i64x2(0x80, 0));
  v128.store(to, none, 16); v128.store(to, none, 32); v128.store(to, none, 48); v128.store(to, none, 64);
  const next = at + (bytes + 9 + 63 & ~63);
  store<u64>(next - 8, bswap<u64>(<u64>bytes << 3));
  return next;
}

/**
 * Digests of `blocks` blocks of tokens (u32 each) behind the block whose digest is at `parent`, 32 bytes each at `out`. `first`: the first of them
 * is its chain's first block; then `parent` is the root and extra keys of a first block count.
 */
export function digestBlocks(tokens: usize, blocks: u32, first: bool, parent: usize, out: usize): void {
  const cbor = load<u32>(HASH_RULE) == CBOR;
  const count = load<u32>(HASH_RULE, 4);
  let tail: usize = first ? TAIL_FIRST : TAIL_REST, tailBytes: usize = first ? load<u32>(HASH_RULE, 8) : load<u32>(HASH_RULE, 12);
  // The parent's words, and where their bytes go in the first chunk's
  let low = swapped(v128.load(parent)), high = swapped(v128.load(parent, 16));
  const places = cbor ? CBOR_PLACES : PICKLE_PLACES;
  const in0 = v128.load(places), in1 = v128.load(places, 16), in2 = v128.load(places, 32), in3 = v128.load(places, 48);
  const most = HEAD + <usize>count * TOKEN + AROUND + max<usize>(tailBytes, load<u32>(HASH_RULE, 12)) + PADDING;
  const batch = max<usize>(1, min<usize>(BATCH, HASH_MESSAGES_BYTES / most));
  while (blocks > 0) {
    // Messages, and a list of their chunks but the first ones
    let at: usize = HASH_MESSAGES, list: usize = HASH_CHUNKS;
    const now = min<u32>(blocks, <u32>batch);
    for (let i: u32 = 0; i < now; i++) {
      const end = message(at, tokens, count, cbor, tail, tailBytes);
      for (at += CHUNK; at < end; at += CHUNK, list += 4) store<u32>(list, <u32>at);
      tokens += <usize>count << 2;
      tail = TAIL_REST;
      tailBytes = load<u32>(HASH_RULE, 12);
    }
    // No chunk but a first one stands there, so that these end the list and are only seen in lanes that nobody uses.
    v128.store(list, i32x4.splat(<i32>HASH_MESSAGES));
    // Digests
    at = HASH_MESSAGES, list = HASH_CHUNKS;
    let schedule: usize = HASH_SCHEDULES + WORD;
    for (let i: u32 = 0; i < now; i++) {
      begin();
      v128.store(HASH_WORDS, v128.or(swapped(v128.load(at)), i8x16.swizzle(low, in0)));
      v128.store(HASH_WORDS, v128.or(swapped(v128.load(at, 16)), v128.or(i8x16.swizzle(low, in1), i8x16.swizzle(high, in2))), 16);
      v128.store(HASH_WORDS, v128.or(swapped(v128.load(at, 32)), i8x16.swizzle(high, in3)), 32);
      v128.store(HASH_WORDS, swapped(v128.load(at, 48)), 48);
      compress();
      for (at += CHUNK; load<u32>(list) == <u32>at; at += CHUNK, list += 4, schedule += 4) {
        if (schedule == HASH_SCHEDULES + WORD) {
          scheduleFour(load<u32>(list), load<u32>(list, 4), load<u32>(list, 8), load<u32>(list, 12));
          schedule = HASH_SCHEDULES;
        }
        compressScheduled(schedule);
      }
      low = state(0);
      high = state(16);
      v128.store(out, swapped(low));
      v128.store(out, swapped(high), 16);
      out += DIGEST;
    }
    blocks -= now;
  }
}
