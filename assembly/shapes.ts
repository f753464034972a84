// The shape of a stored event is everything in it but its numbers: names, media, kinds, in the order and encoding of its publisher. Events
// of one worker mostly share one. A shape that the host has read once is kept here as a list of what comes next, and an event of the same
// shape is recognised, and its numbers read, in one call. What matches byte for byte means the same, so nothing is guessed.
//
// A shape: u32 count of steps, then a u32 for each (what, or a literal's length << 8); u32 tokens a block at BLOCK_SIZE; the literals' bytes
// from LITERALS on.
import { hashes, hashesUsed, header, items, parent, tokens, tokensUsed, useUpTo } from './integers';
import { good, open, position, skip } from './msgpack';
import { BEHIND, BLOCKS, DENSE, HASH_FORM, KEYED, LAID, NIL_KEYS, PAIRS, PARENT as PARENT_LOW, PARENT_FORM, ROW_BYTES, TOKEN_COUNT } from './rows';
import { EVENT_TOKENS, PAYLOAD, RESULT, SHAPES, SHAPE_BYTES } from './wire-layout';

const LITERAL: u32 = 0;
const HASHES: u32 = 1;
const PARENT: u32 = 2;
const TOKENS: u32 = 3;
const NILS: u32 = 4; // a list of nothing but nil
const ANY: u32 = 5; // a value that nobody reads
const BLOCK_SIZE: usize = 64;
const LITERALS: usize = 68;

/** True when `length` bytes at `a` and `b` are equal; both may be read a vector further. */
@inline function same(a: usize, b: usize, length: usize): bool {
  let i: usize = 0;
  for (; i + 16 <= length; i += 16) {
    if (v128.any_true(v128.xor(v128.load(a + i), v128.load(b + i)))) return false;
  }
  const equal = <u32>i8x16.bitmask(i8x16.eq(v128.load(a + i), v128.load(b + i)));
  const wanted = ((<u32>1) << <u32>(length - i)) - 1;
  return (equal & wanted) == wanted;
}
/** The position behind a list of nothing but nil, 0 when something else starts here. */
@inline function nils(at: usize, row: usize): usize {
  let p = header(at);
  if (!p) return 0;
  const count = items;
  const last = p + count;
  store<u32>(row, count, NIL_KEYS);
  const nil = i8x16.splat(-64); // 0xc0
  for (; p + 16 <= last; p += 16) if (!i8x16.all_true(i8x16.eq(v128.load(p), nil))) return 0;
  for (; p < last; p++) if (load<u8>(p) != 0xc0) return 0;
  return last;
}

/** Reads the event at `at` into `row` if it has the shape: the position behind it, 0 when it has another or something is amiss. */
function one(at: usize, end: usize, shape: u32, row: usize): usize {
  const base = SHAPES + <usize>shape * SHAPE_BYTES;
  const steps = load<u32>(base);
  let literal = base + LITERALS;
  let p = at;
  store<u32>(row, 0, PARENT_FORM);
  store<u64>(row, 0, PARENT_LOW);
  for (let step: usize = 1; step <= steps; step++) {
    const said = load<u32>(base + (step << 2));
    switch (said & 0xff) {
      case LITERAL: {
        const length = <usize>(said >> 8);
        if (length > end - p || !same(p, literal, length)) return 0;
        p += length;
        literal += length;
        break;
      }
      case HASHES: p = hashes(p, row); break;
      case PARENT: p = parent(p, row); break;
      case TOKENS: p = tokens(p, row); break;
      case NILS: p = nils(p, row); break;
      case ANY:
        open(p, <u32>(end - p));
        skip();
        p = good() ? position() : 0;
        break;
      default: return 0;
    }
    if (!p || p > end) return 0;
  }
  if (load<u32>(row, TOKEN_COUNT) > EVENT_TOKENS) return 0;
  const blocks = load<u32>(row, BLOCKS);
  const dense = blocks && !load<u32>(row, PAIRS) && <u64>load<u32>(row, TOKEN_COUNT) == <u64>blocks * load<u32>(base, BLOCK_SIZE);
  store<u32>(row, (dense ? DENSE : 0) | (load<u32>(row, NIL_KEYS) == blocks ? KEYED : 0), LAID);
  const parentForm = load<u32>(row, PARENT_FORM);
  return !parentForm || !blocks || parentForm == load<u32>(row, HASH_FORM) ? p : 0;
}

/** Reads events as long as they have the shape, at most `most`, into rows from `row` on. Returns how many; RESULT: the position behind them. */
export function shaped(at: usize, end: usize, shape: u32, row: usize, most: u32): u32 {
  let read: u32 = 0;
  while (read < most) {
    const tokensBefore = tokensUsed;
    const hashesBefore = hashesUsed;
    const next = one(at, end, shape, row);
    if (!next) {
      useUpTo(tokensBefore, hashesBefore);
      break;
    }
    if (read && load<u32>(row, LAID) & load<u32>(row - ROW_BYTES, LAID) & DENSE) store<u32>(row, load<u32>(row, LAID) | BEHIND, LAID);
    at = next;
    row += ROW_BYTES;
    read++;
  }
  store<u32>(RESULT, <u32>(at - PAYLOAD));
  return read;
}
