// MessagePack arrays of numbers, from a payload straight to flat memory: token ids (single or in pairs) and engine hashes (64-bit
// integers or 32-byte digests); an event's row says where they stand. An array's length in bytes is known only once it has been read, so each call goes from the position
// where the array starts to the position behind it. Rules: spec/kv-events.md 1.8.
//
// Behind the payload stand guard bytes that are no MessagePack. So a number is read whole before its end is checked, and a position
// that has passed the end fails at the next number or at the check behind the last one.
import {
  BLOCKS, HASHES_AT, HASH_FORM, INTEGERS, PAIRS, PARENT, PARENT_AT, PARENT_FORM, TOKENS_AT, TOKEN_COUNT, WHOLE_DIGESTS,
} from './rows';
import { DIGESTS, HASH_CAP, LOWS, PAYLOAD, RESULT, TOKENS, TOKEN_CAP } from './wire-layout';

// RESULT of a call that failed, u32 each
const FAULT: usize = RESULT; //           why
const FAULT_AT: usize = RESULT + 4; //    position of the element that did
const FAULT_INDEX: usize = RESULT + 8;

// Why it failed
const NO_LIST: u32 = 1;
const WRONG_TYPE: u32 = 2;
const TOO_MANY: u32 = 3;
const WRONG_WIDTH: u32 = 4;
const MIXED: u32 = 5;
const NO_PAIR: u32 = 6;

const DIGEST_BYTES: u32 = 32;
const NIL: u32 = 0xc0;

let end: usize = 0; // of the payload
/** Tokens and hashes read so far. */
export let tokensUsed: u32 = 0;
export let hashesUsed: u32 = 0;
/** Items of the array whose header was read last. */
export let items: u32 = 0;
let number: u64 = 0; // the integer read last, bit for bit

@inline function big16(from: usize): u32 { return <u32>bswap<u16>(load<u16>(from)); }
@inline function big32(from: usize): u32 { return bswap<u32>(load<u32>(from)); }

/** Starts on a payload that ends there. */
export function start(payloadEnd: usize): void {
  end = payloadEnd;
  useUpTo(0, 0);
}
/** Gives back what was read behind these counts. */
export function useUpTo(tokens: u32, hashes: u32): void {
  tokensUsed = tokens;
  hashesUsed = hashes;
}
function fail(why: u32, at: usize, index: u32): usize {
  store<u32>(FAULT, why);
  store<u32>(FAULT_AT, <u32>(at - PAYLOAD));
  store<u32>(FAULT_INDEX, index);
  return 0;
}
/** Reads an array's header: the position behind it, 0 when something else starts here. Each item takes a byte at least. */
@inline export function header(at: usize): usize {
  const tag = <u32>load<u8>(at);
  let from = at + 1;
  if ((tag & 0xf0) == 0x90) items = tag & 15;
  else if (tag == 0xdc) {
    items = big16(at + 1);
    from = at + 3;
  } else if (tag == 0xdd) {
    items = big32(at + 1);
    from = at + 5;
  } else return 0;
  return from <= end && items <= <u32>(end - from) ? from : 0;
}
/** Reads an integer of any width into `number`: the position behind it, 0 when something else starts here. */
function integer(at: usize): usize {
  const tag = <u32>load<u8>(at);
  if (tag < 0x80) {
    number = <u64>tag;
    return at + 1;
  }
  if (tag >= 0xe0) {
    number = <u64><i64><i8>tag;
    return at + 1;
  }
  switch (tag) {
    case 0xcc: number = <u64>load<u8>(at, 1); return at + 2;
    case 0xcd: number = <u64>big16(at + 1); return at + 3;
    case 0xce: number = <u64>big32(at + 1); return at + 5;
    case 0xcf: number = bswap<u64>(load<u64>(at, 1)); return at + 9;
    case 0xd0: number = <u64><i64>load<i8>(at, 1); return at + 2;
    case 0xd1: number = <u64><i64><i16>big16(at + 1); return at + 3;
    case 0xd2: number = <u64><i64><i32>big32(at + 1); return at + 5;
    case 0xd3: number = bswap<u64>(load<u64>(at, 1)); return at + 9; // a negative one is too large for a token, and kept bit for bit for a hash
    default: return 0;
  }
}
/** Bytes of the binary that starts here, -1 when something else does. Sets `number` to where its content starts. */
function binary(at: usize): i64 {
  const tag = <u32>load<u8>(at);
  if (tag == 0xc4) {
    number = <u64>(at + 2);
    return <i64>load<u8>(at, 1);
  }
  if (tag == 0xc5) {
    number = <u64>(at + 3);
    return <i64>big16(at + 1);
  }
  if (tag == 0xc6) {
    number = <u64>(at + 5);
    return <i64>big32(at + 1);
  }
  return -1;
}
/** One token id into `number`; 0 when no unsigned 32-bit integer starts here. */
@inline function token(at: usize): usize {
  const next = integer(at);
  return number >> 32 ? 0 : next;
}

/** Reads the token ids at `at` behind those read before. Of pairs all first members, then the last second one. 0 = failed, see RESULT. */
export function tokens(at: usize, row: usize): usize {
  const from = header(at);
  if (!from) return fail(NO_LIST, at, 0);
  const tag = <u32>load<u8>(from);
  const paired = items != 0 && ((tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd);
  const count = paired ? items + 1 : items;
  if (count > TOKEN_CAP - tokensUsed) return fail(TOO_MANY, at, count);
  const to = TOKENS + (<usize>tokensUsed << 2);
  const next = paired ? pairs(from, items, to) : singles(from, to, to + (<usize>count << 2));
  if (next > end) return fail(WRONG_TYPE, end, count - 1);
  if (!next) return 0;
  store<u32>(row, tokensUsed, TOKENS_AT);
  store<u32>(row, count, TOKEN_COUNT);
  store<u32>(row, paired ? 1 : 0, PAIRS);
  tokensUsed += count;
  return next;
}

function singles(p: usize, to: usize, last: usize): usize {
  const first = to;
  while (to < last) {
    // Most ids are written in 16 or 32 bits, in no order that a branch could be foreseen in. So the length is computed from the head, and
    // the heads that may come next are read before it is known which one does. Bytes are put in order afterwards, four ids at a time.
    let head = <u32>load<u8>(p);
    while (head - 0xcd <= 1) {
      const short = head - 0xce; // all ones for 16 bits, 0 for 32
      const after3 = <u32>load<u8>(p, 3);
      const after5 = <u32>load<u8>(p, 5);
      store<u32>(to, load<u32>(p, 1) << (short & 16));
      to += 4;
      p += 5 + (short << 1);
      head = after5 ^ ((after5 ^ after3) & short);
      if (to == last) {
        swapBytes(first, last);
        return p;
      }
    }
    const next = token(p);
    if (!next) return fail(WRONG_TYPE, p, <u32>((to - first) >> 2));
    store<u32>(to, bswap<u32>(<u32>number));
    to += 4;
    p = next;
  }
  swapBytes(first, last);
  return p;
}

/** Turns big-endian words into words. */
@inline function swapBytes(from: usize, to: usize): void {
  for (; from + 16 <= to; from += 16) {
    const words = v128.load(from);
    v128.store(from, v128.shuffle<i8>(words, words, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
  }
  for (; from < to; from += 4) store<u32>(from, bswap<u32>(load<u32>(from)));
}

function pairs(from: usize, count: u32, to: usize): usize {
  for (let i: u32 = 0; i < count; i++) {
    const inner = header(from);
    if (!inner || items != 2) return fail(NO_PAIR, from, i);
    let next = token(inner);
    if (!next) return fail(WRONG_TYPE, inner, i);
    store<u32>(to, <u32>number);
    const second = next;
    next = token(second);
    if (!next) return fail(WRONG_TYPE, second, i);
    store<u32>(to, <u32>number, 4);
    to += 4;
    from = next;
  }
  return from;
}

/** Reads the engine hashes at `at`, all of one form, behind those read before. 0 = failed, see RESULT. */
export function hashes(at: usize, row: usize): usize {
  let p = header(at);
  if (!p) return fail(NO_LIST, at, 0);
  const count = items;
  if (count > HASH_CAP - hashesUsed) return fail(TOO_MANY, at, count);
  let form: u32 = 0;
  let to = LOWS + (<usize>hashesUsed << 3);
  let digest = DIGESTS + (<usize>hashesUsed << 5);
  // Integers are mostly written in 64 bits: those are copied as they are, and their bytes put in order afterwards.
  let wide: u32 = 0;
  for (; wide < count; wide++) {
    const tag = <u32>load<u8>(p);
    if (tag != 0xcf && tag != 0xd3) break;
    store<u64>(to, load<u64>(p, 1));
    p += 9;
    to += 8;
  }
  if (wide) {
    swapLongs(to - (<usize>wide << 3), to);
    form = INTEGERS;
    digest += <usize>wide << 5;
  }
  for (let i = wide; i < count; i++) {
    const size = binary(p);
    if (size >= 0) {
      if (form == INTEGERS) return fail(MIXED, p, i);
      if (size != DIGEST_BYTES) return fail(WRONG_WIDTH, p, i);
      const content = <usize>number;
      if (content + DIGEST_BYTES > end) return fail(WRONG_TYPE, p, i);
      v128.store(digest, v128.load(content));
      v128.store(digest, v128.load(content, 16), 16);
      store<u64>(to, bswap<u64>(load<u64>(content, 24)));
      form = WHOLE_DIGESTS;
      p = content + DIGEST_BYTES;
    } else {
      const next = integer(p);
      if (!next) return fail(WRONG_TYPE, p, i);
      if (form == WHOLE_DIGESTS) return fail(MIXED, p, i);
      store<u64>(to, number);
      form = INTEGERS;
      p = next;
    }
    to += 8;
    digest += 32;
  }
  if (p > end) return fail(WRONG_TYPE, end, count - 1);
  store<u32>(row, hashesUsed, HASHES_AT);
  store<u32>(row, count, BLOCKS);
  store<u32>(row, form, HASH_FORM);
  hashesUsed += count;
  return p;
}

/** Turns big-endian 64-bit words into words. */
@inline function swapLongs(from: usize, to: usize): void {
  for (; from + 16 <= to; from += 16) {
    const words = v128.load(from);
    v128.store(from, v128.shuffle<i8>(words, words, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
  }
  if (from < to) store<u64>(from, bswap<u64>(load<u64>(from)));
}

/** Reads a parent's hash, or nil, at `at`. 0 = failed, see RESULT. */
@inline export function parent(at: usize, row: usize): usize {
  const tag = <u32>load<u8>(at);
  if (tag == 0xcf || tag == 0xd3) {
    if (at + 9 > end) return fail(WRONG_TYPE, at, 0);
    store<u64>(row, bswap<u64>(load<u64>(at, 1)), PARENT);
    store<u32>(row, INTEGERS, PARENT_FORM);
    return at + 9;
  }
  store<u32>(row, 0, PARENT_FORM);
  if (tag == NIL) return at + 1;
  const size = binary(at);
  let next: usize;
  if (size >= 0) {
    if (size != DIGEST_BYTES) return fail(WRONG_WIDTH, at, 0);
    const content = <usize>number;
    next = content + DIGEST_BYTES;
    if (next > end) return fail(WRONG_TYPE, at, 0);
    store<u32>(row, <u32>(content - PAYLOAD), PARENT_AT);
    number = bswap<u64>(load<u64>(content, 24));
  } else {
    next = integer(at);
    if (!next || next > end) return fail(WRONG_TYPE, at, 0);
  }
  store<u64>(row, number, PARENT);
  store<u32>(row, size >= 0 ? WHOLE_DIGESTS : INTEGERS, PARENT_FORM);
  return next;
}
