// Part of a reconcile: places the objects that the master's key list names, without knowing their medium, and without pushing anything out.
// Staged, 44 bytes: high (24), low64 (8), mask u64, page u32. Bit b of the mask: the digest's object under prefix 64 × page + b. A digest's
// pages stand together; narrow builds have page 0 only (src/core/digest-records.ts).
import {
  CHILD_TABLE, DIGEST_CAP, DIGEST_TABLE, DONE, DONE_SHIFT, EXTENT_GEN, GROUP_MASKS, INDEX_MASK, MEMBER_CAP, MEMBER_MASK, MEMBER_TABLE, RECORDS, RESULT,
  WIDE,
} from './layout';
import { cell, DERIVED_EDGES, DIGESTS, GROUP_COUNT, MEMBERS, setCell, WALKED } from './cells';
import { CONFLICT, DERIVED, externalOf, flagsOf, highOf, linkOf, rawDone, sameHigh } from './slots';
import { findChild, findDigest, hashKey, homeOf } from './table';
import { storeBits, storeObject, UNKNOWN } from './residency';

const RECORD_BYTES: usize = 44;
const AHEAD: u32 = 32; // records read ahead of

// Which digests are placed; 2 = those without an edge
const ALL: u32 = 0; // where all of them fit
const WITH_EDGE: u32 = 1;

@inline function maskAt(at: usize): u64 { return load<u64>(at, 32); }

/** Places those of `records` staged records that are asked for, as medium unknown. Nothing leaves for them: a digest that does not fit whole is left out. */
export function placeDigests(from: usize, records: u32, which: u32): void {
  setCell(WALKED, 0);
  let ready: u32 = 0; // records that have been read ahead of
  for (let i: u32 = 0; i < records; ) {
    if (i >= ready) {
      ready = min(records, i + AHEAD);
      readAhead(from + <usize>i * RECORD_BYTES, ready - i);
    }
    const at = from + <usize>i * RECORD_BYTES;
    const low = load<u64>(at, 24);
    let pages: u32 = 1;
    if (WIDE) while (i + pages < records && sameDigest(at + <usize>pages * RECORD_BYTES, at)) pages++;
    if (which == ALL || (hasEdge(low) == (which == WITH_EDGE) && fits(at, low, pages))) {
      if (WIDE) placePages(at, low, pages);
      else placeBits(at, low);
    }
    i += pages;
  }
}
/**
 * Reads what is probably needed of `records` records, so that their waits for half a dozen cache lines each overlap: 1.5 times as fast where nothing
 * else has touched those lines lately, as before a reconcile. RESULT takes the sum, so that it is read.
 */
function readAhead(from: usize, records: u32): void {
  let sum: u64 = 0;
  for (let i: u32 = 0; i < records; i++) {
    const home = homeOf(hashKey(load<u64>(from + <usize>i * RECORD_BYTES, 24)));
    const slot = load<u32>(<usize>home << 2, CHILD_TABLE) & INDEX_MASK; // what stands at the home position is mostly what is looked for
    sum += load<u64>(<usize>home << 3, DIGEST_TABLE) + externalOf(slot) + <u64>linkOf(slot) + <u64>flagsOf(slot) + load<u64>(highOf(slot));
    sum += rawDone(slot) + <u64>load<u32>(<usize>(slot >> 4) << 2, EXTENT_GEN);
  }
  store<u64>(RESULT, sum);
}
@inline function sameDigest(a: usize, b: usize): bool { return load<u64>(a, 24) == load<u64>(b, 24) && sameHigh(a, b); }
function hasEdge(low: u64): bool {
  const slot = findChild(hashKey(low), low, 0);
  return (slot != 0 && !(flagsOf(slot) & CONFLICT)) || (cell(DERIVED_EDGES) != 0 && findChild(hashKey(low), low, DERIVED) != 0);
}
function fits(at: usize, low: u64, pages: u32): bool {
  if (cell(DIGESTS) >= DIGEST_CAP && !findDigest(hashKey(low), low)) return false;
  if (!WIDE) return true;
  let objects: u32 = 0;
  for (let k: u32 = 0; k < pages; k++) objects += <u32>popcnt(maskAt(at + <usize>k * RECORD_BYTES));
  return cell(MEMBERS) + objects <= MEMBER_CAP;
}
@inline function placeBits(at: usize, low: u64): void {
  const bits = maskAt(at);
  for (let group: u32 = 0; group < cell(GROUP_COUNT); group++) {
    const mine = bits & load<u64>(GROUP_MASKS + (<usize>group << 3));
    if (mine) storeBits(at, low, group, mine, UNKNOWN);
  }
}
@inline function placePages(at: usize, low: u64, pages: u32): void {
  for (let k: u32 = 0; k < pages; k++) {
    const page = at + <usize>k * RECORD_BYTES;
    const first = load<u32>(page, 40) << 6;
    for (let bits = maskAt(page); bits; bits &= bits - 1) storeObject(at, low, first + <u32>ctz(bits), UNKNOWN);
  }
}

/**
 * Rewrites, as it is, memory that placing these records will write: the `first`-th and following of a list. Memory never written before is not there
 * yet, and to have the system bring it costs several times the placing; so it is asked for in parts, before the one step that must be short.
 */
export function warmRecords(from: usize, records: u32, first: u32): void {
  for (let i: u32 = 0; i < records; i++) {
    const hash = hashKey(load<u64>(from + <usize>i * RECORD_BYTES, 24));
    const home = homeOf(hash);
    rewrite(DIGEST_TABLE + (<usize>home << 3));
    if (WIDE) rewrite(MEMBER_TABLE + (<usize>(<u32>hash & MEMBER_MASK) << 3));
    if (first + i <= DIGEST_CAP) rewrite(RECORDS + (<usize>(first + i) << 6));
    const slot = load<u32>(<usize>home << 2, CHILD_TABLE) & INDEX_MASK; // as above
    rewrite(highOf(slot));
    rewrite(DONE + (<usize>slot << DONE_SHIFT));
  }
}
@inline function rewrite(at: usize): void { store<u8>(at, load<u8>(at)); }
