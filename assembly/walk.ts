// The prefix walk: follows a request's local hashes from the root through edges, learned or derived ones, and leaves the completeness of each block
// passed in PATH_DONE for evaluate.ts.
//
// A chain learned together lies in neighbouring slots, so most of the walk compares REQUEST with LOCAL, 16 blocks a turn, and one
// flag byte a block says "live, follows its parent, follows it in the LRU list too". Only where a run ends is an edge looked
// up: first where the extent's jump hint says, then in the table. Either way the edge found is verified by its key.
import { DONE, DONE_SHIFT, EXTENT_GEN, FLAGS, INPUT, LOCAL, PATH_DONE, REQUEST, WIDE } from './layout';
import { cell, EXPLAINING, GENERATION, LAST_RUNS, LAST_WALKED, setCell, STOPPED, WALKED } from './cells';
import {
  CONFLICT, DERIVED, externalOf, flagsOf, FOLLOWS, jumpOf, KIND, LIVE, localOf, LRU_FOLLOWS, moveBehind, nextOf, parentOf, ROOT, setJump,
} from './slots';
import { findEdge } from './table';

// Why a walk ended (STOPPED)
export const AT_END: u32 = 0;
export const AT_MISSING: u32 = 1;
export const AT_CONFLICT: u32 = 2;

/** Runs this long on average are not worth moving together (compact.ts). */
export const LONG_RUN: u32 = 256;

/** A byte in each of eight lanes. */
const LANES: u64 = 0x0101010101010101;
const RUN_MASK: u64 = LANES * <u64>(0xff & ~LRU_FOLLOWS);
const LRU_SHIFT: u64 = 5; // of LRU_FOLLOWS

// 128 bytes of LOCAL (16 blocks) against the request
@inline function differs(a: usize, b: usize): v128 {
  return v128.or(
    v128.or(v128.xor(v128.load(a, LOCAL), v128.load(b, REQUEST)), v128.xor(v128.load(a, LOCAL + 16), v128.load(b, REQUEST + 16))),
    v128.or(v128.xor(v128.load(a, LOCAL + 32), v128.load(b, REQUEST + 32)), v128.xor(v128.load(a, LOCAL + 48), v128.load(b, REQUEST + 48))),
  );
}
@inline function equalPair(a: usize, b: usize, offset: usize): i32 {
  return i64x2.bitmask(i64x2.eq(v128.load(a + offset, LOCAL), v128.load(b + offset, REQUEST)));
}

/** Copies the completeness of `length` neighbouring slots behind the `done` blocks already there. */
function takeDone(slot: u32, length: u32, done: u32): void {
  const to = PATH_DONE + (<usize>done << DONE_SHIFT);
  const from = DONE + (<usize>slot << DONE_SHIFT);
  const first = slot >> 4;
  const last = (slot + length - 1) >> 4;
  const generation = cell(GENERATION);
  const wanted = i32x4.splat(generation);
  let old = false;
  let extent = first;
  while (extent + 4 <= last + 1) {
    if (v128.any_true(v128.xor(v128.load(<usize>extent << 2, EXTENT_GEN), wanted))) {
      old = true;
      break;
    }
    extent += 4;
  }
  while (!old && extent <= last) {
    if (load<u32>(<usize>extent << 2, EXTENT_GEN) != generation) old = true;
    extent++;
  }
  if (!old) {
    const bytes = <usize>length << DONE_SHIFT;
    if (bytes >= 512) memory.copy(to, from, bytes);
    else for (let at: usize = 0; at < bytes; at += 16) v128.store(to + at, v128.load(from + at)); // may run over: PATH_DONE has slack
    return;
  }
  for (let i: u32 = 0; i < length; i++) {
    const current = load<u32>(<usize>((slot + i) >> 4) << 2, EXTENT_GEN) == generation;
    if (WIDE) store<u64>(to + (<usize>i << 3), current ? load<u64>(from + (<usize>i << 3)) : 0);
    else store<u8>(to + <usize>i, current ? load<u8>(from + <usize>i) : 0);
  }
}

/**
 * Walks at most `blocks` blocks of REQUEST; returns how many edges were found. With `touch` they end hottest-first in path order.
 * Without, nothing changes. While explaining, the slots passed are listed as u32 at INPUT.
 */
export function walk(blocks: u32, touch: bool, derived: bool): u32 {
  const kind = derived ? DERIVED : 0;
  // Flags of a block inside a run; LRU_FOLLOWS may be missing where a unit of the LRU list ends.
  const inRunFlags = LIVE | FOLLOWS | kind;
  const allInUnit = LANES * <u64>(inRunFlags | LRU_FOLLOWS);
  const runFlags = i64x2.splat(<i64>(LANES * <u64>inRunFlags));
  const unitFlags = i64x2.splat(<i64>allInUnit);
  let done: u32 = 0; // blocks passed
  let parent: u64 = 0;
  let anchor: u32 = 0; // end of what was already moved to the hot end
  let unitFirst: u32 = 0; // the LRU-contiguous stretch not moved yet
  let unitLast: u32 = 0;
  let runs: u32 = 0;
  let stopped = AT_END;
  while (done < blocks) {
    const local = load<u64>(<usize>done << 3, REQUEST);
    let slot: u32 = 0;
    if (done) {
      const hint = jumpOf(unitLast);
      if ((flagsOf(hint) & (LIVE | KIND)) == (LIVE | kind) && localOf(hint) == local && parentOf(hint) == parent) slot = hint;
      else {
        slot = findEdge(parent, kind, local);
        if (slot) setJump(unitLast, slot);
      }
    } else slot = findEdge(0, ROOT | kind, local);
    if (!slot) {
      stopped = AT_MISSING;
      break;
    }
    if (flagsOf(slot) & CONFLICT) {
      stopped = AT_CONFLICT;
      break;
    }
    if (!unitFirst) unitFirst = slot;
    else if (nextOf(unitLast) != slot) {
      if (touch) moveBehind(anchor, unitFirst, unitLast);
      anchor = unitLast;
      unitFirst = slot;
    }
    let at = slot + 1;
    let next = done + 1;
    while (next < blocks) {
      // Up to 8 blocks, ending at a cache line of LOCAL
      const flags = load<u64>(<usize>at, FLAGS);
      if ((<u32>flags & 0xff & ~LRU_FOLLOWS) != inRunFlags) break;
      const a = <usize>at << 3;
      const b = <usize>next << 3;
      const same = equalPair(a, b, 0) | (equalPair(a, b, 16) << 2) | (equalPair(a, b, 32) << 4) | (equalPair(a, b, 48) << 6);
      const inRun = i8x16.bitmask(i8x16.eq(i64x2.splat(<i64>(flags & RUN_MASK)), runFlags));
      let passed = min<u32>(<u32>ctz(~(same & (inRun & 0xff))), blocks - next);
      if (!passed) break;
      const whole = passed == 8;
      if (whole) passed = 8 - (at & 7);
      let ends = ~(flags >> LRU_SHIFT) & LANES; // LRU_FOLLOWS missing
      if (passed < 8) ends &= ((<u64>1) << (passed << 3)) - 1;
      while (ends) {
        const start = at + (<u32>ctz(ends) >> 3);
        if (touch) moveBehind(anchor, unitFirst, start - 1);
        anchor = start - 1;
        unitFirst = start;
        ends &= ends - 1;
      }
      at += passed;
      next += passed;
      if (!whole) break;
      // 16 blocks a turn while nothing differs
      if (load<u64>(<usize>at, FLAGS + 8) != allInUnit) continue;
      let x = <usize>at << 3;
      let y = <usize>next << 3;
      let f = <usize>at;
      const limit = <usize>blocks << 3;
      while (y + 128 <= limit) {
        if (v128.any_true(v128.or(v128.or(differs(x, y), differs(x + 64, y + 64)), v128.xor(v128.load(f, FLAGS), unitFlags)))) break;
        x += 128;
        y += 128;
        f += 16;
      }
      at = <u32>f;
      next = <u32>(y >> 3);
    }
    takeDone(slot, at - slot, done);
    if (cell(EXPLAINING)) for (let s = slot; s < at; s++) store<u32>(INPUT + (<usize>(done + s - slot) << 2), s);
    runs++;
    unitLast = at - 1;
    parent = externalOf(unitLast);
    done = next;
  }
  if (touch) {
    if (unitFirst) moveBehind(anchor, unitFirst, unitLast);
    setCell(WALKED, runs > 1 && done < runs * LONG_RUN ? done : 0);
    setCell(LAST_RUNS, runs);
  }
  setCell(STOPPED, stopped);
  setCell(LAST_WALKED, unitLast);
  return done;
}
