// Slots: where edges live, learned and derived ones. Structure of arrays, index 1 and up; slot 0 is the LRU list's sentinel. A chain's edges are
// placed in neighbouring slots where possible, so that walking it is a scan of LOCAL and FLAGS (walk.ts). Free slots are found
// through bitmaps of extents of 16 slots with one summary level: constant worst case, and zeroed memory is a valid empty state.
import {
  BUSY, BUSY_WORDS, DONE, DONE_SHIFT, EXTENTS, EXTENT_GEN, EXTENT_USED, EXTENT_WORDS, EXTERNAL, FLAGS, FULL, FULL_WORDS, HIGH,
  INDEX_MASK, JUMP, LINK, LOCAL, NEXT, PARENT, PREV, SLOTS, SUMMARY_WORDS, WIDE,
} from './layout';
import { cell, EXTENT_CURSOR, GENERATION, setCell } from './cells';

// FLAGS, one byte a slot
export const LIVE: u32 = 1;
export const FOLLOWS: u32 = 2; // its parent's edge is in the slot before
export const CONFLICT: u32 = 4;
export const ROOT: u32 = 8; // it has no parent
export const DERIVED: u32 = 16; // computed from tokens (derive.ts), not learned from an event
export const LRU_FOLLOWS: u32 = 32; // the slot before is its hotter neighbour in the LRU list
/** What keeps an edge's key apart from those of other kinds: ROOT and DERIVED. */
export const KIND: u32 = ROOT | DERIVED;

// LINK: a digest record's index in the low bits, and
export const KNOWN: u32 = 1 << 31; // HIGH holds the first 24 bytes of the child's digest
export const ASSUMED: u32 = 1 << 30; // learned as unsalted though nothing proved its parent unsalted
export const SALTED: u32 = 1 << 29;

@inline export function localOf(slot: u32): u64 { return load<u64>(<usize>slot << 3, LOCAL); }
@inline export function externalOf(slot: u32): u64 { return load<u64>(<usize>slot << 3, EXTERNAL); }
@inline export function parentOf(slot: u32): u64 { return load<u64>(<usize>slot << 3, PARENT); }
@inline export function flagsOf(slot: u32): u32 { return <u32>load<u8>(<usize>slot, FLAGS); }
@inline export function setFlags(slot: u32, flags: u32): void { store<u8>(<usize>slot, <u8>flags, FLAGS); }
@inline export function kindOf(slot: u32): u32 { return flagsOf(slot) & KIND; }
@inline export function nextOf(slot: u32): u32 { return load<u32>(<usize>slot << 2, NEXT); }
@inline export function prevOf(slot: u32): u32 { return load<u32>(<usize>slot << 2, PREV); }
@inline export function linkOf(slot: u32): u32 { return load<u32>(<usize>slot << 2, LINK); }
@inline export function setLink(slot: u32, link: u32): void { store<u32>(<usize>slot << 2, link, LINK); }
@inline export function setLinkIndex(slot: u32, record: u32): void { setLink(slot, (linkOf(slot) & ~INDEX_MASK) | record); }
@inline export function setKey(slot: u32, local: u64, external: u64, parent: u64): void {
  store<u64>(<usize>slot << 3, local, LOCAL);
  store<u64>(<usize>slot << 3, external, EXTERNAL);
  store<u64>(<usize>slot << 3, parent, PARENT);
}
@inline export function highOf(slot: u32): usize { return HIGH + <usize>slot * 24; }
@inline export function copyHigh(to: usize, from: usize): void {
  v128.store(to, v128.load(from));
  store<u64>(to, load<u64>(from, 16), 16);
}
@inline export function sameHigh(a: usize, b: usize): bool {
  return ((load<u64>(a) ^ load<u64>(b)) | (load<u64>(a, 8) ^ load<u64>(b, 8)) | (load<u64>(a, 16) ^ load<u64>(b, 16))) == 0;
}
@inline export function jumpOf(slot: u32): u32 { return load<u32>(<usize>(slot >> 4) << 2, JUMP); }
@inline export function setJump(slot: u32, child: u32): void { store<u32>(<usize>(slot >> 4) << 2, child, JUMP); }

// DONE: one bit a group, set while the group's objects of the child's digest are all there. An extent whose generation is old
// holds nothing, whatever its bytes say: that is what makes clearing residency O(1).
@inline function currentExtent(slot: u32): bool { return load<u32>(<usize>(slot >> 4) << 2, EXTENT_GEN) == cell(GENERATION); }
@inline export function rawDone(slot: u32): u64 {
  return WIDE ? load<u64>(<usize>slot << DONE_SHIFT, DONE) : <u64>load<u8>(<usize>slot, DONE);
}
@inline export function doneOf(slot: u32): u64 { return currentExtent(slot) ? rawDone(slot) : 0; }
export function setDone(slot: u32, mask: u64): void {
  if (!currentExtent(slot)) {
    if (!mask) return;
    memory.fill(DONE + (<usize>(slot & ~15) << DONE_SHIFT), 0, <usize>16 << DONE_SHIFT);
    store<u32>(<usize>(slot >> 4) << 2, cell(GENERATION), EXTENT_GEN);
  }
  if (WIDE) store<u64>(<usize>slot << DONE_SHIFT, mask, DONE);
  else store<u8>(<usize>slot, <u8>mask, DONE);
}

// LRU list
/** Makes `b` the colder neighbour of `a`. */
@inline export function chain(a: u32, b: u32): void {
  store<u32>(<usize>a << 2, b, NEXT);
  store<u32>(<usize>b << 2, a, PREV);
  const flags = flagsOf(b);
  setFlags(b, b == a + 1 ? flags | LRU_FOLLOWS : flags & ~LRU_FOLLOWS);
}
/** Moves the LRU-contiguous stretch first … last to right behind `anchor` (0 = to the hot end). */
@inline export function moveBehind(anchor: u32, first: u32, last: u32): void {
  if (nextOf(anchor) == first) return;
  chain(prevOf(first), nextOf(last));
  const after = nextOf(anchor);
  chain(anchor, first);
  chain(last, after);
}
@inline export function insertBehind(anchor: u32, slot: u32): void {
  const after = nextOf(anchor);
  chain(anchor, slot);
  chain(slot, after);
}
@inline export function unchain(slot: u32): void {
  chain(prevOf(slot), nextOf(slot));
  setFlags(slot, flagsOf(slot) & ~LRU_FOLLOWS);
}

// Free space
@inline function usedOf(extent: u32): u32 { return <u32>load<u16>(<usize>extent << 1, EXTENT_USED); }
@inline function setBit(map: usize, words: usize, bit: u32): void {
  const at = <usize>(bit >> 6) << 3;
  const word = load<u64>(map + at) | ((<u64>1) << (bit & 63));
  store<u64>(map + at, word);
  if (word == ~(<u64>0)) {
    const up = <usize>(bit >> 12) << 3;
    store<u64>(words + up, load<u64>(words + up) | ((<u64>1) << ((bit >> 6) & 63)));
  }
}
@inline function clearBit(map: usize, words: usize, bit: u32): void {
  const at = <usize>(bit >> 6) << 3;
  store<u64>(map + at, load<u64>(map + at) & ~((<u64>1) << (bit & 63)));
  const up = <usize>(bit >> 12) << 3;
  store<u64>(words + up, load<u64>(words + up) & ~((<u64>1) << ((bit >> 6) & 63)));
}
/** First clear bit at or behind `from`, going round; -1 when every bit is set. */
function findClear(map: usize, words: usize, from: u32): i32 {
  const word = from >> 6;
  const rest = ~load<u64>(map + (<usize>word << 3)) & (~(<u64>0) << (from & 63));
  if (rest) return <i32>((word << 6) + <u32>ctz(rest));
  let up = word >> 6;
  let free = (word & 63) == 63 ? 0 : ~load<u64>(words + (<usize>up << 3)) & (~(<u64>0) << ((word & 63) + 1));
  for (let round: u32 = 0; round <= <u32>SUMMARY_WORDS; round++) {
    if (free) {
      const found = (up << 6) + <u32>ctz(free);
      return <i32>((found << 6) + <u32>ctz(~load<u64>(map + (<usize>found << 3))));
    }
    up = up + 1 == <u32>SUMMARY_WORDS ? 0 : up + 1;
    free = ~load<u64>(words + (<usize>up << 3));
  }
  return -1;
}
/** A wholly free extent, next fit; -1 when there is none. */
export function freeExtent(): i32 {
  const extent = findClear(BUSY, BUSY_WORDS, cell(EXTENT_CURSOR));
  if (extent != -1) setCell(EXTENT_CURSOR, <u32>extent + 1 < <u32>EXTENTS ? <u32>extent + 1 : 0);
  return extent;
}
/** True when `slot` may be taken as the successor of the slot before it: free, and not the start of an extent in use. */
@inline export function canFollow(slot: u32): bool {
  return slot < <u32>SLOTS && !(flagsOf(slot) & LIVE) && ((slot & 15) != 0 || !usedOf(slot >> 4));
}
/** A free slot for the child of the edge in `parent` (0 = none): behind it, else in a free extent, else anywhere. */
export function freeSlot(parent: u32): u32 {
  if (parent && canFollow(parent + 1)) return parent + 1;
  let extent = freeExtent();
  if (extent != -1) return <u32>extent << 4;
  extent = findClear(FULL, FULL_WORDS, cell(EXTENT_CURSOR));
  return (<u32>extent << 4) + <u32>ctz(~usedOf(<u32>extent));
}
export function takeSlot(slot: u32): void {
  const extent = slot >> 4;
  const before = usedOf(extent);
  const used = before | (1 << (slot & 15));
  store<u16>(<usize>extent << 1, <u16>used, EXTENT_USED);
  if (!before) setBit(BUSY, BUSY_WORDS, extent);
  if (used == 0xffff) setBit(FULL, FULL_WORDS, extent);
}
export function giveSlot(slot: u32): void {
  const extent = slot >> 4;
  const before = usedOf(extent);
  const used = before & ~(1 << (slot & 15));
  store<u16>(<usize>extent << 1, <u16>used, EXTENT_USED);
  if (before == 0xffff) clearBit(FULL, FULL_WORDS, extent);
  if (!used) clearBit(BUSY, BUSY_WORDS, extent);
}
/** Sets FOLLOWS of the slot behind `slot` when that holds a child of the edge in `slot`. */
@inline export function adoptFollower(slot: u32): void {
  const flags = flagsOf(slot + 1);
  const wanted = LIVE | (flagsOf(slot) & DERIVED);
  if ((flags & (LIVE | KIND | FOLLOWS)) == wanted && parentOf(slot + 1) == externalOf(slot)) setFlags(slot + 1, flags | FOLLOWS);
}
@inline export function loseFollower(slot: u32): void {
  const flags = flagsOf(slot + 1);
  if (flags & FOLLOWS) setFlags(slot + 1, flags & ~FOLLOWS);
}
/** Forgets every slot, the sentinel too; initSlots must follow. */
export function emptySlots(): void {
  memory.fill(FLAGS, 0, SLOTS);
  memory.fill(EXTENT_USED, 0, EXTENTS * 2);
  memory.fill(JUMP, 0, EXTENTS * 4);
  memory.fill(BUSY, 0, EXTENT_WORDS * 8);
  memory.fill(FULL, 0, EXTENT_WORDS * 8);
  memory.fill(BUSY_WORDS, 0, SUMMARY_WORDS * 8);
  memory.fill(FULL_WORDS, 0, SUMMARY_WORDS * 8);
}
/** Takes slot 0 for the sentinel of an empty list, and closes the bits behind the last extent. */
export function initSlots(): void {
  takeSlot(0);
  store<u32>(NEXT, 0);
  store<u32>(PREV, 0);
  setCell(EXTENT_CURSOR, 0);
  for (let extent = <u32>EXTENTS; extent < <u32>(EXTENT_WORDS * 64); extent++) {
    setBit(BUSY, BUSY_WORDS, extent);
    setBit(FULL, FULL_WORDS, extent);
  }
  for (let word = <u32>EXTENT_WORDS; word < <u32>(SUMMARY_WORDS * 64); word++) {
    const at = <usize>(word >> 6) << 3;
    store<u64>(BUSY_WORDS + at, load<u64>(BUSY_WORDS + at) | ((<u64>1) << (word & 63)));
    store<u64>(FULL_WORDS + at, load<u64>(FULL_WORDS + at) | ((<u64>1) << (word & 63)));
  }
}
