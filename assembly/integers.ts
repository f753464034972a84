// MessagePack arrays of numbers, from a payload straight to flat memory: token ids (single or in pairs) and engine hashes (64-bit
// integers or 32-byte digests). An array's length in bytes is known only once it has been read, so each call goes from the position
// where the array starts to the position behind it. Rules: spec/kv-events.md 1.8.
//
// Behind the payload stand guard bytes that are no MessagePack. So a number is read whole before its end is checked, and a position
// that has passed the end fails at the next number or at the check behind the last one.
import { DIGESTS, HASH_CAP, LOWS, RESULT, TOKENS, TOKEN_CAP } from './wire-layout';

// RESULT, u32 each
const COUNT: usize = RESULT; //           numbers read
const FORM: usize = RESULT + 4; //        of tokens 1 = pairs; of hashes 1 = integers, 2 = digests, 0 = none
const FAULT: usize = RESULT + 8; //       why it failed
const FAULT_AT: usize = RESULT + 12; //   address of the element that did
const FAULT_INDEX: usize = RESULT + 16;
// Of an event's
const BLOCKS: usize = RESULT + 20; //      hashes read
const BLOCK_FORM: usize = RESULT + 24; //  FORM of them
/** FORM of the parent's hash; 0 = there is no parent. */
export const PARENT_FORM: usize = RESULT + 28;
const TOKEN_COUNT: usize = RESULT + 32;
const TOKEN_FORM: usize = RESULT + 36;

// Why it failed
const NO_LIST: u32 = 1;
const WRONG_TYPE: u32 = 2;
const TOO_MANY: u32 = 3;
const WRONG_WIDTH: u32 = 4;
const MIXED: u32 = 5;
const NO_PAIR: u32 = 6;

const INTEGERS: u32 = 1;
const WHOLE_DIGESTS: u32 = 2;
const DIGEST_BYTES: u32 = 32;
const NIL: u32 = 0xc0;

let end: usize = 0; // of the payload
/** Items of the array whose header was read last. */
export let items: u32 = 0;
let number: u64 = 0; // the integer read last, bit for bit

@inline function big16(from: usize): u32 { return <u32>bswap<u16>(load<u16>(from)); }
@inline function big32(from: usize): u32 { return bswap<u32>(load<u32>(from)); }

/** Reads the header of a list: the position behind it, 0 when something else starts here. */
export function listHeader(at: usize, payloadEnd: usize): usize {
  end = payloadEnd;
  return header(at);
}
function fail(why: u32, at: usize, index: u32): usize {
  store<u32>(FAULT, why);
  store<u32>(FAULT_AT, <u32>at);
  store<u32>(FAULT_INDEX, index);
  return 0;
}
/** Reads an array's header: the position behind it, 0 when something else starts here. Each item takes a byte at least. */
function header(at: usize): usize {
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

/** Reads the token ids at `at` to TOKENS[first …). Of pairs all first members, then the last second one. 0 = failed, see RESULT. */
export function tokens(at: usize, payloadEnd: usize, first: u32): usize {
  end = payloadEnd;
  const from = header(at);
  if (!from) return fail(NO_LIST, at, 0);
  const room = TOKEN_CAP - first;
  const count = items;
  if (count > room) return fail(TOO_MANY, at, count);
  store<u32>(FORM, 0);
  store<u32>(COUNT, count);
  if (!count) return from;
  const tag = <u32>load<u8>(from);
  if ((tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd) return pairs(from, count, first);
  let p = from;
  let to = TOKENS + (<usize>first << 2);
  const last = to + (<usize>count << 2);
  while (to < last) {
    // Most ids are written in 16 or 32 bits, in no order that a branch could be foreseen in. So the length is computed from the head, and
    // the heads that may come next are read before it is known which one does.
    let head = <u32>load<u8>(p);
    while (head - 0xcd <= 1) {
      const short = head - 0xce; // all ones for 16 bits, 0 for 32
      const after3 = <u32>load<u8>(p, 3);
      const after5 = <u32>load<u8>(p, 5);
      store<u32>(to, big32(p + 1) >> (short & 16));
      to += 4;
      p += 5 + (short << 1);
      head = after5 ^ ((after5 ^ after3) & short);
      if (to == last) return p <= end ? p : fail(WRONG_TYPE, end, count - 1);
    }
    const next = token(p);
    if (!next) return fail(WRONG_TYPE, p, count - <u32>((last - to) >> 2));
    store<u32>(to, <u32>number);
    to += 4;
    p = next;
  }
  return p <= end ? p : fail(WRONG_TYPE, end, count - 1);
}

function pairs(from: usize, count: u32, first: u32): usize {
  if (count + 1 > TOKEN_CAP - first) return fail(TOO_MANY, from, count + 1);
  let to = TOKENS + (<usize>first << 2);
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
  store<u32>(FORM, 1);
  store<u32>(COUNT, count + 1);
  return from <= end ? from : fail(WRONG_TYPE, end, count - 1);
}

/** Reads one hash at `at` to index `index` of LOWS (and DIGESTS): the position behind it, 0 = failed. `form` 0 takes either. */
function hashAt(at: usize, index: u32, form: u32): usize {
  const to = LOWS + (<usize>index << 3);
  const size = binary(at);
  if (size >= 0) {
    if (form == INTEGERS) return fail(MIXED, at, 0);
    if (size != DIGEST_BYTES) return fail(WRONG_WIDTH, at, <u32>size);
    const content = <usize>number;
    if (content + DIGEST_BYTES > end) return fail(WRONG_TYPE, at, 0);
    const digest = DIGESTS + (<usize>index << 5);
    v128.store(digest, v128.load(content));
    v128.store(digest, v128.load(content, 16), 16);
    store<u64>(to, bswap<u64>(load<u64>(content, 24)));
    store<u32>(FORM, WHOLE_DIGESTS);
    return content + DIGEST_BYTES;
  }
  const next = integer(at);
  if (!next) return fail(WRONG_TYPE, at, 0);
  if (form == WHOLE_DIGESTS) return fail(MIXED, at, 0);
  store<u64>(to, number);
  store<u32>(FORM, INTEGERS);
  return next;
}

/** Reads the engine hashes at `at` to LOWS[first …), all of one form. 0 = failed, see RESULT. */
export function hashes(at: usize, payloadEnd: usize, first: u32): usize {
  end = payloadEnd;
  let p = header(at);
  if (!p) return fail(NO_LIST, at, 0);
  const count = items;
  if (count > HASH_CAP - first) return fail(TOO_MANY, at, count);
  store<u32>(COUNT, count);
  store<u32>(FORM, 0);
  let form: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const next = hashAt(p, first + i, form);
    if (!next) {
      store<u32>(FAULT_INDEX, i);
      return 0;
    }
    form = load<u32>(FORM);
    p = next;
  }
  return p <= end ? p : fail(WRONG_TYPE, end, count - 1);
}

/** Reads a parent's hash, or nil. Low 64 bits and digest stand behind the others, at index HASH_CAP; PARENT_FORM says what they are. */
export function nilOrHash(at: usize, payloadEnd: usize): usize {
  end = payloadEnd;
  store<u32>(PARENT_FORM, 0);
  if (load<u8>(at) == NIL) return at + 1;
  const next = hashAt(at, HASH_CAP, 0);
  if (next) store<u32>(PARENT_FORM, load<u32>(FORM));
  return next <= end ? next : fail(WRONG_TYPE, at, 0);
}

/** Sets the results of `hashes` apart from those of the lists read after it. */
export function setBlocks(): void {
  store<u32>(BLOCKS, load<u32>(COUNT));
  store<u32>(BLOCK_FORM, load<u32>(FORM));
}
/** Likewise those of `tokens`. */
export function setTokens(): void {
  store<u32>(TOKEN_COUNT, load<u32>(COUNT));
  store<u32>(TOKEN_FORM, load<u32>(FORM));
}
