// Names that a rank has for blocks which were first announced under another: (rank, external hash) → entry. A record holds its own key, so
// that it can be told, moved and removed without a look elsewhere: 8 bytes external hash, 3 entry (0 = empty), 2 rank. Linear probing that
// never wraps, deletion by backward shift.
//
// A record counts only while its rank holds the block under that name. Those of evicted blocks are left behind and found by a sweep: a cursor that
// runs down the places, a few whenever an entry goes or a name comes. As records only ever move down, none can slip past it, and entries that some
// rank had named itself are used again only when a whole pass has gone by (entries.ts).
import { add, ALIAS_BYTES, ALIAS_CAP, ALIAS_COUNT, ALIAS_LIMIT, ALIAS_PAD, ALIAS_PLACES, ALIASES, cell, eraOf, setOf } from './layout';
import { namesItself } from './sets';
import { hashName } from './table';

export const NOWHERE: u32 = 0xffffffff;
/** Places of a sample. */
const SAMPLE: u32 = 64;

let cursor: u32 = 0; // places below are still to be swept in this pass
let before: u32 = 0; // records left behind before this pass began, as far as they have not been found
let since: u32 = 0; // and since
let hand: u32 = 0; // where the next sample begins

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
/** Whether there are as many names as there may be, those left behind not counted. */
export function isFull(): bool { return known() >= ALIAS_CAP; }
/** Records that count, as far as is known. */
export function known(): u32 {
  const all = cell(ALIAS_COUNT);
  const behind = before + since;
  return all > behind ? all - behind : 0;
}
/** Whether those left behind take the room. */
export function isChoked(): bool { return cell(ALIAS_COUNT) >= ALIAS_LIMIT; }
/** So many records are left behind from now on. */
export function leaveBehind(records: u32): void { since += records; }
/** One that was left behind was found. */
function foundBehind(): void {
  if (before) before--;
  else if (since) since--;
}

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
export function beginPass(): void {
  cursor = ALIAS_PLACES + ALIAS_PAD;
  before += since;
  since = 0;
}
/** Sweeps so many places; true when the pass is over. */
export function sweep(places: u32): bool {
  for (; places && cursor; places--) {
    const place = --cursor;
    const entry = entryAt(place);
    if (!entry || counts(entry, rankAt(place))) continue;
    // What moves here stood above and was seen, unless it has been left behind since.
    removeAt(place);
    foundBehind();
  }
  if (cursor) return false;
  before = 0;
  return true;
}
@inline function counts(entry: u32, rank: u32): bool {
  const set = setOf(entry);
  return set != 0 && namesItself(set, rank);
}
/** Takes out a record found to be left behind. */
export function removeBehind(place: u32): void {
  removeAt(place);
  foundBehind();
}
/** Of a few records in a row, the entry that has not been hot for longest; 0 when none of them counts. */
export function sampled(era: u32): u32 {
  let coldest: u32 = 0;
  let age: u32 = 0;
  for (let left = SAMPLE; left; left--, hand++) {
    if (hand >= ALIAS_PLACES + ALIAS_PAD) hand = 0;
    const entry = entryAt(hand);
    if (!entry || !counts(entry, rankAt(hand))) continue;
    const its = ((era - eraOf(entry)) & 255) + 1;
    if (its <= age) continue;
    age = its;
    coldest = entry;
  }
  return coldest;
}
/** Takes out all records of a rank. */
export function forget(rank: u32): void {
  for (let place = ALIAS_PLACES + ALIAS_PAD; place--; ) if (entryAt(place) && rankAt(place) == rank) removeAt(place);
}
