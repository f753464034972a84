// Names that a rank has for blocks which were first announced under another: (rank, external hash) → entry. A record holds its own key, so
// that it can be told, moved and removed without a look elsewhere: 8 bytes external hash, 3 entry (0 = empty), 2 rank. Linear probing that
// never wraps, deletion by backward shift.
//
// A record counts only while its rank holds the block. Those of evicted blocks are left behind and found by a sweep: a cursor that runs
// down the places, a few whenever an entry goes. As records only ever move down, none can slip past it, and entries that some rank had
// named itself are used again only when a whole pass has gone by (entries.ts).
import { add, ALIAS_BYTES, ALIAS_CAP, ALIAS_COUNT, ALIAS_PAD, ALIAS_PLACES, ALIASES, cell, eraOf, setOf } from './layout';
import { holds } from './sets';
import { hashName } from './table';

export const NOWHERE: u32 = 0xffffffff;
/** Places that one search for a record to give up looks at. */
const VICTIM_PLACES: u32 = 32;

let cursor: u32 = 0; // places below are still to be swept in this pass
let hand: u32 = 0; // where the next search for a victim begins

@inline export function at(place: u32): usize { return ALIASES + <usize>place * ALIAS_BYTES; }
@inline export function nameAt(place: u32): u64 { return load<u64>(at(place)); }
@inline export function entryAt(place: u32): u32 { return load<u32>(at(place), 8) & 0xffffff; }
@inline export function rankAt(place: u32): u32 { return <u32>load<u16>(at(place), 11); }
@inline function put(place: u32, name: u64, entry: u32, rank: u32): void {
  const to = at(place);
  store<u64>(to, name);
  store<u16>(to, <u16>entry, 8);
  store<u8>(to, <u8>(entry >> 16), 10);
  store<u16>(to, <u16>rank, 11);
}
@inline function homeOf(name: u64, rank: u32): u32 {
  return <u32>((((hashName(name) ^ (<u64>(rank + 1) * 0x9e3779b97f4a7c15)) >> 32) * <u64>ALIAS_PLACES) >> 32);
}
@inline export function any(): bool { return cell(ALIAS_COUNT) != 0; }
@inline export function isFull(): bool { return cell(ALIAS_COUNT) >= ALIAS_CAP; }

/** Where the record of (rank, name) stands, NOWHERE when there is none. */
export function find(rank: u32, name: u64): u32 {
  let place = homeOf(name, rank);
  while (entryAt(place)) {
    if (nameAt(place) == name && rankAt(place) == rank) return place;
    place++;
  }
  return NOWHERE;
}
/** Puts in a record that is not there; false where no place is left. */
export function insert(rank: u32, name: u64, entry: u32): bool {
  let place = homeOf(name, rank);
  while (entryAt(place)) place++;
  if (place >= ALIAS_PLACES + ALIAS_PAD - 1) return false;
  put(place, name, entry, rank);
  add(ALIAS_COUNT, 1);
  return true;
}
export function removeAt(hole: u32): void {
  for (let place = hole + 1; entryAt(place); place++) {
    if (homeOf(nameAt(place), rankAt(place)) > hole) continue;
    put(hole, nameAt(place), entryAt(place), rankAt(place));
    hole = place;
  }
  put(hole, 0, 0, 0);
  add(ALIAS_COUNT, -1);
}

/** Begins another pass. */
export function beginPass(): void { cursor = ALIAS_PLACES + ALIAS_PAD; }
/** Sweeps so many places; true when the pass is over. */
export function sweep(places: u32): bool {
  for (; places && cursor; places--) {
    const place = --cursor;
    const entry = entryAt(place);
    if (entry && !holds(setOf(entry), rankAt(place))) {
      removeAt(place);
      // What moved here stood above and had been seen, unless it is another left behind since.
    }
  }
  return !cursor;
}
/** Takes out all records of a rank. */
export function forget(rank: u32): void {
  for (let place = ALIAS_PLACES + ALIAS_PAD; place--; ) if (entryAt(place) && rankAt(place) == rank) removeAt(place);
}
/** The place of the record to give up next: of some in a row the one whose block has not been hot for longest. There must be one. */
export function victim(era: u32): u32 {
  let coldest = NOWHERE;
  let age: u32 = 0;
  for (let left = VICTIM_PLACES; left || coldest == NOWHERE; hand++) {
    if (hand >= ALIAS_PLACES + ALIAS_PAD) hand = 0;
    if (left) left--;
    const entry = entryAt(hand);
    if (!entry) continue;
    const its = ((era - eraOf(entry)) & 255) + 1;
    if (its <= age) continue;
    age = its;
    coldest = hand;
  }
  return coldest;
}
