// The shape of a stored event is everything in it but its numbers: names, media, kinds, in the order and encoding of its publisher. Events
// of one worker mostly share one or a few. A shape that the host has read once is kept here as a list of steps, and events of that shape are
// recognised, and their numbers read, without the host. What matches byte for byte means the same, so nothing is guessed.
//
// A shape: u32 count of steps, then a u32 for each (what, or a literal's length << 8); u32 tokens a block at BLOCK_SIZE; the literals' bytes
// from LITERALS on. Shapes are tried latest first. Where one fails, the next goes on behind the last long list that both have in common, since
// most differ only there.
import { hashes, hashesUsed, header, items, parent, tokens, tokensUsed, useUpTo } from './integers';
import { good, open, position, skip } from './msgpack';
import {
  BEHIND, BLOCKS, DENSE, HASH_FORM, KEYED, LAID, NIL_KEYS, PAIRS, PARENT as PARENT_LOW, PARENT_FORM, ROW_BYTES, SHAPE, TOKEN_COUNT,
} from './rows';
import { EVENT_TOKENS, PAYLOAD, RESULT, SHAPES, SHAPE_BYTES, SHAPE_CAP, SHAPE_ORDER } from './wire-layout';

const LITERAL: u32 = 0;
const HASHES: u32 = 1;
const PARENT: u32 = 2;
const TOKENS: u32 = 3;
const NILS: u32 = 4; // a list of nothing but nil
const ANY: u32 = 5; // a value that nobody reads
const BLOCK_SIZE: usize = 64;
const LITERALS: usize = 68;

let known: u32 = 0; // shapes kept; their places stand in SHAPE_ORDER, the latest first
let end: usize = 0; // of the payload
// Behind the last long list that an attempt has read: the step, the position, and the numbers used
let resumeStep: usize = 0;
let resumeAt: usize = 0;
let resumeTokens: u32 = 0;
let resumeHashes: u32 = 0;

@inline function shapeAt(place: u32): usize { return SHAPES + <usize>place * SHAPE_BYTES; }
@inline function placeAt(index: u32): u32 { return <u32>load<u8>(SHAPE_ORDER + <usize>index); }
/** Moves the shape at `index` of the order to its front. */
function toFront(index: u32, place: u32): void {
  memory.copy(SHAPE_ORDER + 1, SHAPE_ORDER, <usize>index);
  store<u8>(SHAPE_ORDER, <u8>place);
}
/** The place for a new shape: a free one, else that of the shape not seen for longest. */
export function freePlace(): u32 { return known < SHAPE_CAP ? known : placeAt(known - 1); }
/** The shape at `freePlace` has been written. */
export function addShape(): void {
  const place = freePlace();
  if (known < SHAPE_CAP) known++;
  toFront(known - 1, place);
}

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

/** Steps at the start of two shapes that are the same. */
function common(a: usize, b: usize): usize {
  const most = min(load<u32>(a), load<u32>(b));
  let literal: usize = LITERALS;
  let step: usize = 0;
  for (; step < <usize>most; step++) {
    const said = load<u32>(a + (step << 2), 4);
    if (said != load<u32>(b + (step << 2), 4)) break;
    if ((said & 0xff) != LITERAL) continue;
    const length = <usize>(said >> 8);
    if (!same(a + literal, b + literal, length)) break;
    literal += length;
  }
  return step;
}

/** The next attempt on this event may go on here, where `step` comes next. */
@inline function resumable(step: usize, at: usize): void {
  resumeStep = step;
  resumeAt = at;
  resumeTokens = tokensUsed;
  resumeHashes = hashesUsed;
}

/** Goes through the shape's steps from `first` on, which is 0 or `resumeStep`: the position behind the event, 0 = another shape. */
function attempt(shape: usize, row: usize, at: usize, first: usize): usize {
  const steps = <usize>load<u32>(shape);
  let literal = shape + LITERALS;
  let parents = false;
  let keys = false;
  for (let step: usize = 0; step < first; step++) {
    const said = load<u32>(shape + (step << 2), 4);
    if ((said & 0xff) == LITERAL) literal += <usize>(said >> 8);
    else if (said == PARENT) parents = true;
    else if (said == NILS) keys = true;
  }
  if (!parents) {
    store<u32>(row, 0, PARENT_FORM);
    store<u64>(row, 0, PARENT_LOW);
  }
  if (!keys) store<u32>(row, 0, NIL_KEYS);
  let p = at;
  for (let step = first; step < steps; step++) {
    const said = load<u32>(shape + (step << 2), 4);
    switch (said & 0xff) {
      case LITERAL: {
        const length = <usize>(said >> 8);
        if (length > end - p || !same(p, literal, length)) return 0;
        p += length;
        literal += length;
        break;
      }
      case HASHES:
        p = hashes(p, row);
        if (p) resumable(step + 1, p);
        break;
      case PARENT: p = parent(p, row); break;
      case TOKENS:
        p = tokens(p, row);
        if (p) resumable(step + 1, p);
        break;
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
  return fits(shape, row) ? p : 0;
}
/** Says how the event's numbers are laid out; false when they are none that an event may have, whatever its shape. */
@inline function fits(shape: usize, row: usize): bool {
  const count = load<u32>(row, TOKEN_COUNT);
  if (count > EVENT_TOKENS) return false;
  const blocks = load<u32>(row, BLOCKS);
  const dense = blocks && count && !load<u32>(row, PAIRS) && <u64>count == <u64>blocks * load<u32>(shape, BLOCK_SIZE);
  store<u32>(row, (dense ? DENSE : 0) | (load<u32>(row, NIL_KEYS) == blocks ? KEYED : 0), LAID);
  const parentForm = load<u32>(row, PARENT_FORM);
  return !parentForm || !blocks || parentForm == load<u32>(row, HASH_FORM);
}

/** Reads the event at `at` into `row` if it has a known shape: the position behind it, 0 when it has none or something is amiss. */
function one(at: usize, row: usize): usize {
  const tokensBefore = tokensUsed;
  const hashesBefore = hashesUsed;
  resumable(0, at);
  let before: usize = 0;
  for (let index: u32 = 0; index < known; index++) {
    const place = placeAt(index);
    const shape = shapeAt(place);
    if (before && common(before, shape) < resumeStep) {
      useUpTo(tokensBefore, hashesBefore);
      resumable(0, at);
    }
    useUpTo(resumeTokens, resumeHashes);
    const next = attempt(shape, row, resumeAt, resumeStep);
    if (next) {
      if (index) toFront(index, place);
      store<u32>(row, place, SHAPE);
      return next;
    }
    before = shape;
  }
  useUpTo(tokensBefore, hashesBefore);
  return 0;
}

/** Whether the event in `row` stands right behind the one in the row before, in the same shape and with hashes of the same form. */
@inline function isBehind(row: usize): bool {
  const before = row - ROW_BYTES;
  return (load<u32>(row, LAID) & load<u32>(before, LAID) & DENSE) != 0 && load<u32>(row, SHAPE) == load<u32>(before, SHAPE)
    && load<u32>(row, HASH_FORM) == load<u32>(before, HASH_FORM);
}

/** Reads events as long as they have known shapes, at most `most`, into rows from `row` on. Returns how many; RESULT: the position behind them. */
export function shaped(at: usize, payloadEnd: usize, row: usize, most: u32): u32 {
  end = payloadEnd;
  let read: u32 = 0;
  while (read < most) {
    const next = one(at, row);
    if (!next) break;
    if (read && isBehind(row)) store<u32>(row, load<u32>(row, LAID) | BEHIND, LAID);
    at = next;
    row += ROW_BYTES;
    read++;
  }
  store<u32>(RESULT, <u32>(at - PAYLOAD));
  return read;
}
