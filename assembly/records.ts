// Records: resident digests, one cache line each, and the order of those without an edge.
//
//   0  high, 24 bytes      24  low64
//   32 cpu mask   40 disk mask   48 unknown mask   (narrow: a bit a prefix; wide: u32 object count at 32, media in members.ts)
//   56 owner u32: slot of an edge | ORPHAN + newer neighbour | FREE + next free record
//   60 back u32: slot of the other edge (a digest may be a learned edge's child and a derived one's), 0 = none | older neighbour of an orphan
// A slot's LINK and a record's owners point at each other; a link whose record does not point back is stale (residency was cleared).
import { GROUPS, GROUP_MASKS, INDEX_MASK, PREFIX_GROUP, RECORDS, WIDE } from './layout';
import {
  cell, DIGESTS, GROUP_COUNT, ORPHAN_DIGESTS, ORPHAN_NEWEST, ORPHAN_OLDEST, PREFIX_COUNT, RECORD_FREE, RECORD_TOP, setCell,
} from './cells';
import { copyHigh, linkOf } from './slots';
import { BY_DIGEST, hashKey, insertEntry, lowOf, removeDigestEntry } from './table';
import { mediaOf } from './members';

const ORPHAN: u32 = 1 << 31;
const FREE: u32 = 1 << 30;
const OWNER_MASK: u32 = FREE - 1;

@inline export function recordOf(record: u32): usize { return RECORDS + (<usize>record << 6); }
@inline export function ownerOf(record: u32): u32 { return load<u32>(recordOf(record), 56); }
@inline export function setOwner(record: u32, owner: u32): void { store<u32>(recordOf(record), owner, 56); }
@inline export function olderOf(record: u32): u32 { return load<u32>(recordOf(record), 60); }
@inline export function setOlder(record: u32, older: u32): void { store<u32>(recordOf(record), older, 60); }
/** Of a digest without an edge: the next newer one, 0 = none. */
@inline export function newerOf(record: u32): u32 { return ownerOf(record) & OWNER_MASK; }
@inline export function isOrphan(record: u32): bool { return (ownerOf(record) & ORPHAN) != 0; }
@inline export function unionOf(record: u32): u64 {
  const at = recordOf(record);
  return load<u64>(at, 32) | load<u64>(at, 40) | load<u64>(at, 48);
}

/** The second edge whose child the digest is, 0 = none; of a record with an owner. */
@inline export function otherOf(record: u32): u32 { return load<u32>(recordOf(record), 60); }
@inline export function setOther(record: u32, slot: u32): void { store<u32>(recordOf(record), slot, 60); }

/** The record linked with the edge in `slot`, 0 = none. */
@inline export function digestOf(slot: u32): u32 {
  const record = linkOf(slot) & INDEX_MASK;
  if (!record || record >= cell(RECORD_TOP)) return 0;
  const owner = ownerOf(record);
  return owner == slot || (!(owner & (ORPHAN | FREE)) && otherOf(record) == slot) ? record : 0;
}
/** The edge in `slot` joins the digest's owners; a new record has none, an orphan must have left its list. */
@inline export function addOwner(record: u32, slot: u32): void {
  if (ownerOf(record)) setOther(record, slot);
  else setOwner(record, slot);
}
/** It leaves them; without any the digest becomes the oldest of those without an edge. */
export function dropOwner(record: u32, slot: u32): void {
  if (ownerOf(record) == slot) setOwner(record, otherOf(record));
  setOther(record, 0);
  if (!ownerOf(record)) joinOldest(record);
}
@inline export function recordInUse(record: u32): bool { return isOrphan(record) || !(ownerOf(record) & FREE); }
/** Media in which the object (record's digest, prefix) is resident; 0 = not. */
@inline export function mediaHeld(record: u32, prefix: u32): u32 {
  if (WIDE) return mediaOf(record, prefix);
  const at = recordOf(record);
  return (
    (<u32>(load<u64>(at, 32) >> prefix) & 1) | ((<u32>(load<u64>(at, 40) >> prefix) & 1) << 1) | ((<u32>(load<u64>(at, 48) >> prefix) & 1) << 2)
  );
}

// Digests without an edge, oldest to newest
export function joinNewest(record: u32): void {
  const newest = cell(ORPHAN_NEWEST);
  setOwner(record, ORPHAN);
  setOlder(record, newest);
  if (newest) setOwner(newest, ORPHAN | record);
  else setCell(ORPHAN_OLDEST, record);
  setCell(ORPHAN_NEWEST, record);
  setCell(ORPHAN_DIGESTS, cell(ORPHAN_DIGESTS) + 1);
}
export function joinOldest(record: u32): void {
  const oldest = cell(ORPHAN_OLDEST);
  setOwner(record, ORPHAN | oldest);
  setOlder(record, 0);
  if (oldest) setOlder(oldest, record);
  else setCell(ORPHAN_NEWEST, record);
  setCell(ORPHAN_OLDEST, record);
  setCell(ORPHAN_DIGESTS, cell(ORPHAN_DIGESTS) + 1);
}
export function leaveOrphans(record: u32): void {
  const newer = ownerOf(record) & OWNER_MASK;
  const older = olderOf(record);
  if (newer) setOlder(newer, older);
  else setCell(ORPHAN_NEWEST, older);
  if (older) setOwner(older, ORPHAN | newer);
  else setCell(ORPHAN_OLDEST, newer);
  setCell(ORPHAN_DIGESTS, cell(ORPHAN_DIGESTS) - 1);
  setOwner(record, 0);
  setOther(record, 0);
}

// Completeness
export function groupComplete(record: u32, group: u32): bool {
  if (!WIDE) {
    const mask = load<u64>(GROUP_MASKS + (<usize>group << 3));
    return (unionOf(record) & mask) == mask;
  }
  const first = load<u32>(GROUPS + (<usize>group << 3));
  const prefixes = load<u32>(GROUPS + (<usize>group << 3), 4);
  for (let i: u32 = 0; i < prefixes; i++) if (!mediaOf(record, first + i)) return false;
  return true;
}
/** Wide: like groupComplete, but starting behind the prefix just stored, where the next gap is when objects arrive in order. */
export function completeAround(record: u32, group: u32, prefix: u32): bool {
  const first = load<u32>(GROUPS + (<usize>group << 3));
  const prefixes = load<u32>(GROUPS + (<usize>group << 3), 4);
  let at = prefix - first;
  for (let i: u32 = 1; i < prefixes; i++) {
    at = at + 1 == prefixes ? 0 : at + 1;
    if (!mediaOf(record, first + at)) return false;
  }
  return true;
}
export function completeGroups(record: u32): u64 {
  let done: u64 = 0;
  for (let group: u32 = 0; group < cell(GROUP_COUNT); group++) if (groupComplete(record, group)) done |= (<u64>1) << group;
  return done;
}

// Coming and going
export function newRecord(low: u64, hash: u64, high: usize): u32 {
  let record = cell(RECORD_FREE);
  if (record) setCell(RECORD_FREE, ownerOf(record) & OWNER_MASK);
  else {
    record = cell(RECORD_TOP);
    setCell(RECORD_TOP, record + 1);
  }
  const at = recordOf(record);
  copyHigh(at, high);
  store<u64>(at, low, 24);
  store<u64>(at, 0, 32);
  store<u64>(at, 0, 40);
  store<u64>(at, 0, 48);
  store<u64>(at, 0, 56);
  insertEntry(BY_DIGEST, hash, record);
  setCell(DIGESTS, cell(DIGESTS) + 1);
  return record;
}

/** Gives the record back; it has no objects any more, and no edge links to it. */
export function freeRecord(record: u32): void {
  removeDigestEntry(hashKey(lowOf(record)), record);
  setOwner(record, FREE | cell(RECORD_FREE));
  setCell(RECORD_FREE, record);
  setCell(DIGESTS, cell(DIGESTS) - 1);
}

/** For `explain`: ids of the group's prefixes that are not resident for the child of the edge in `slot`, as u16 at `out`; returns how many. */
export function missingPrefixes(slot: u32, group: u32, out: usize): u32 {
  const record = digestOf(slot);
  let missing: u32 = 0;
  for (let prefix: u32 = 0; prefix < cell(PREFIX_COUNT); prefix++) {
    if (<u32>load<u8>(PREFIX_GROUP + <usize>prefix) != group) continue;
    const resident = record != 0 && mediaHeld(record, prefix) != 0;
    if (!resident) {
      store<u16>(out + (<usize>missing << 1), <u16>prefix);
      missing++;
    }
  }
  return missing;
}
