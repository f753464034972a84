// Residency: which digests have which objects in the store, and, written through at event time, which groups of an edge's child
// are complete. Lookups read only the result (DONE in slots.ts), never a record.
//
// A record is one cache line:
//   0  high, 24 bytes      24  low64
//   32 cpu mask   40 disk mask   48 unknown mask   (narrow: a bit a prefix; wide: u32 object count at 32, media in members.ts)
//   56 owner u32: slot of the edge | ORPHAN + newer neighbour | FREE + next free record      60 back u32: older neighbour
// A slot's LINK and a record's owner point at each other; a link whose record does not point back is stale (residency was cleared).
import {
  DIGEST_CAP, DIGEST_TABLE, EXTENTS, EXTENT_GEN, GROUPS, GROUP_MASKS, INDEX_MASK, MEMBER_CAP, PREFIX_GROUP, RECORDS, WIDE,
} from './layout';
import {
  addCount, AMBIGUITIES, AMBIGUITY_DROPS, cell, CLEARS, count, DIGESTS, DIGEST_EVICTIONS, DIGEST_SPREAD, EDGE_EVICTIONS, GENERATION, GROUP_COUNT, MEMBERS,
  ORPHAN_DIGESTS, ORPHAN_NEWEST, ORPHAN_OLDEST, PREFIX_COUNT, RECORD_FREE, RECORD_TOP, REFUSED_OBJECTS, REMOVED_OBJECTS, setCell,
  SKIPPED_AMBIGUOUS, STORED_OBJECTS,
} from './cells';
import { addAmbiguous, emptyAmbiguous, isAmbiguous } from './ambiguous';
import { CONFLICT, copyHigh, doneOf, flagsOf, highOf, KNOWN, linkOf, prevOf, sameHigh, setDone, setLink, setLinkIndex, externalOf } from './slots';
import { BY_DIGEST, findChild, findDigest, hashKey, insertEntry, lowOf, removeDigestEntry, scrubDigestTable } from './table';
import { mediaOf, objectsOf, scrubMembers, setMedia, setObjects } from './members';
import { dropEverything, removeEdge } from './edges';

export const CPU: u32 = 1;
export const DISK: u32 = 2;
export const UNKNOWN: u32 = 4;
export const ALL_MEDIA: u32 = 7;

const ORPHAN: u32 = 1 << 31;
const FREE: u32 = 1 << 30;
const OWNER_MASK: u32 = FREE - 1;
const DEPARTURES: u32 = 256; // wide: most edges and digests that may leave for one object

@inline export function recordOf(record: u32): usize { return RECORDS + (<usize>record << 6); }
@inline function ownerOf(record: u32): u32 { return load<u32>(recordOf(record), 56); }
@inline function setOwner(record: u32, owner: u32): void { store<u32>(recordOf(record), owner, 56); }
@inline function olderOf(record: u32): u32 { return load<u32>(recordOf(record), 60); }
@inline function setOlder(record: u32, older: u32): void { store<u32>(recordOf(record), older, 60); }
@inline function isOrphan(record: u32): bool { return (ownerOf(record) & ORPHAN) != 0; }
@inline function unionOf(record: u32): u64 {
  const at = recordOf(record);
  return load<u64>(at, 32) | load<u64>(at, 40) | load<u64>(at, 48);
}

/** The record linked with the edge in `slot`, 0 = none. */
@inline export function digestOf(slot: u32): u32 {
  const record = linkOf(slot) & INDEX_MASK;
  return record != 0 && record < cell(RECORD_TOP) && ownerOf(record) == slot ? record : 0;
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
function joinNewest(record: u32): void {
  const newest = cell(ORPHAN_NEWEST);
  setOwner(record, ORPHAN);
  setOlder(record, newest);
  if (newest) setOwner(newest, ORPHAN | record);
  else setCell(ORPHAN_OLDEST, record);
  setCell(ORPHAN_NEWEST, record);
  setCell(ORPHAN_DIGESTS, cell(ORPHAN_DIGESTS) + 1);
}
function joinOldest(record: u32): void {
  const oldest = cell(ORPHAN_OLDEST);
  setOwner(record, ORPHAN | oldest);
  setOlder(record, 0);
  if (oldest) setOlder(oldest, record);
  else setCell(ORPHAN_NEWEST, record);
  setCell(ORPHAN_OLDEST, record);
  setCell(ORPHAN_DIGESTS, cell(ORPHAN_DIGESTS) + 1);
}
function leaveOrphans(record: u32): void {
  const newer = ownerOf(record) & OWNER_MASK;
  const older = olderOf(record);
  if (newer) setOlder(newer, older);
  else setCell(ORPHAN_NEWEST, older);
  if (older) setOwner(older, ORPHAN | newer);
  else setCell(ORPHAN_OLDEST, newer);
  setCell(ORPHAN_DIGESTS, cell(ORPHAN_DIGESTS) - 1);
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
function completeAround(record: u32, group: u32, prefix: u32): bool {
  const first = load<u32>(GROUPS + (<usize>group << 3));
  const prefixes = load<u32>(GROUPS + (<usize>group << 3), 4);
  let at = prefix - first;
  for (let i: u32 = 1; i < prefixes; i++) {
    at = at + 1 == prefixes ? 0 : at + 1;
    if (!mediaOf(record, first + at)) return false;
  }
  return true;
}
function completeGroups(record: u32): u64 {
  let done: u64 = 0;
  for (let group: u32 = 0; group < cell(GROUP_COUNT); group++) if (groupComplete(record, group)) done |= (<u64>1) << group;
  return done;
}

// Links between edges and digests
/** An edge has come: links it with its child's digest, unless their first 24 bytes differ. */
export function attachDigest(slot: u32): void {
  const child = externalOf(slot);
  if (isAmbiguous(child)) return;
  const record = findDigest(hashKey(child), child);
  if (!record) return;
  if (linkOf(slot) & KNOWN) {
    if (!sameHigh(highOf(slot), recordOf(record))) {
      makeAmbiguous(child);
      return;
    }
  } else copyHigh(highOf(slot), recordOf(record));
  leaveOrphans(record);
  link(slot, record);
}
@inline function link(slot: u32, record: u32): void {
  setLink(slot, (linkOf(slot) & ~INDEX_MASK) | KNOWN | record);
  setOwner(record, slot);
  setOlder(record, 0);
  setDone(slot, completeGroups(record));
}
/** The edge leaves or is conflicted: its digest stays, as the oldest of those without an edge. */
export function detachDigest(slot: u32): void {
  const record = digestOf(slot);
  setDone(slot, 0);
  setLinkIndex(slot, 0);
  if (record) joinOldest(record);
}
/** A 32-byte event names the child of the edge in `slot`: keeps its first 24 bytes, or finds two digests under one low64. */
export function confirmHigh(slot: u32, high: usize): void {
  if (!(linkOf(slot) & KNOWN)) {
    copyHigh(highOf(slot), high);
    setLink(slot, linkOf(slot) | KNOWN);
  } else if (!sameHigh(highOf(slot), high) && !isAmbiguous(externalOf(slot))) makeAmbiguous(externalOf(slot));
}

// Comings and goings of digests
function dropDigest(record: u32): void {
  if (WIDE) {
    let left = objectsOf(record);
    setCell(MEMBERS, cell(MEMBERS) - left);
    for (let prefix: u32 = 0; left; prefix++) {
      if (mediaOf(record, prefix)) {
        setMedia(record, prefix, 0);
        left--;
      }
    }
  } else {
    const at = recordOf(record);
    setCell(MEMBERS, cell(MEMBERS) - <u32>(popcnt(load<u64>(at, 32)) + popcnt(load<u64>(at, 40)) + popcnt(load<u64>(at, 48))));
  }
  forgetDigest(record);
}
/** The record has no objects any more. */
function forgetDigest(record: u32): void {
  if (isOrphan(record)) leaveOrphans(record);
  else {
    const slot = ownerOf(record);
    setDone(slot, 0);
    setLinkIndex(slot, 0);
  }
  removeDigestEntry(hashKey(lowOf(record)), record);
  setOwner(record, FREE | cell(RECORD_FREE));
  setCell(RECORD_FREE, record);
  setCell(DIGESTS, cell(DIGESTS) - 1);
}
/** At the cap: the oldest digest without an edge, else the coldest edge's. Caps of edges and digests are equal, so with the table full and
 *  no digest without an edge, every edge has one, and the coldest edge is the LRU list's end. */
function evictDigest(): bool {
  const record = cell(ORPHAN_OLDEST) ? cell(ORPHAN_OLDEST) : digestOf(prevOf(0));
  if (!record) return false;
  dropForRoom(record);
  return true;
}
/** Wide: makes room for one object of `low`, which itself stays. Cold edges whose digest is not resident go too: they are the coldest evidence. */
function makeMemberRoom(low: u64): bool {
  for (let left = DEPARTURES; cell(MEMBERS) >= MEMBER_CAP; left--) {
    if (!left) return false;
    let record = cell(ORPHAN_OLDEST);
    if (record && lowOf(record) == low) record = ownerOf(record) & OWNER_MASK;
    if (!record) {
      let slot = prevOf(0);
      if (slot && externalOf(slot) == low) slot = prevOf(slot);
      if (!slot) return false;
      record = digestOf(slot);
      if (record) dropForRoom(record);
      removeEdge(slot);
      count(EDGE_EVICTIONS);
    } else dropForRoom(record);
  }
  return true;
}
@inline function dropForRoom(record: u32): void {
  dropDigest(record);
  count(DIGEST_EVICTIONS);
}
/** Two digests share `low`: nothing of it is kept, and nothing will be until the contract changes. */
function makeAmbiguous(low: u64): void {
  count(AMBIGUITIES);
  const record = findDigest(hashKey(low), low);
  if (record) dropDigest(record);
  if (addAmbiguous(low)) return;
  count(AMBIGUITY_DROPS);
  dropEverything();
  emptyAmbiguous();
  addAmbiguous(low);
}
function newRecord(low: u64, hash: u64, high: usize): u32 {
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
  insertEntry(BY_DIGEST, hash, record);
  setCell(DIGESTS, cell(DIGESTS) + 1);
  return record;
}

/** The digest's record, or 0 where there is none yet; ambiguity found here is acted on. Returns -1 when nothing may be done. */
@inline function identify(low: u64, hash: u64, high: usize): i32 {
  if (isAmbiguous(low)) {
    count(SKIPPED_AMBIGUOUS);
    return -1;
  }
  const record = findDigest(hash, low);
  if (record) {
    if (sameHigh(recordOf(record), high)) return <i32>record;
  } else {
    const slot = findChild(hash, low);
    if (!slot || !(linkOf(slot) & KNOWN) || sameHigh(highOf(slot), high)) return 0;
  }
  makeAmbiguous(low);
  return -1;
}
/** Creates the record of a digest that is not resident and links it with its edge; room must be there. */
function admitDigest(low: u64, hash: u64, high: usize): u32 {
  const record = newRecord(low, hash, high);
  const slot = findChild(hash, low);
  if (slot && !(flagsOf(slot) & CONFLICT)) {
    if (!(linkOf(slot) & KNOWN)) copyHigh(highOf(slot), high);
    setLink(slot, (linkOf(slot) & ~INDEX_MASK) | KNOWN | record);
    setOwner(record, slot);
    setOlder(record, 0);
  } else joinNewest(record);
  return record;
}

/** An object has been stored. `high`: address of the digest's first 24 bytes; `medium`: CPU, DISK or UNKNOWN. */
export function storeObject(high: usize, low: u64, prefix: u32, medium: u32): void {
  const hash = hashKey(low);
  const found = identify(low, hash, high);
  if (found < 0) return;
  let record = <u32>found;
  let room = record != 0 || cell(DIGESTS) < DIGEST_CAP || evictDigest();
  if (WIDE && room && cell(MEMBERS) >= MEMBER_CAP && !(record && mediaOf(record, prefix))) room = makeMemberRoom(low);
  if (!room) {
    count(REFUSED_OBJECTS);
    return;
  }
  if (!record) record = admitDigest(low, hash, high);
  else if (isOrphan(record) && cell(ORPHAN_NEWEST) != record) {
    leaveOrphans(record);
    joinNewest(record);
  }
  count(STORED_OBJECTS);
  const group = <u32>load<u8>(PREFIX_GROUP + <usize>prefix);
  if (WIDE) {
    const media = mediaOf(record, prefix);
    setMedia(record, prefix, media | medium);
    if (media) return;
    setObjects(record, objectsOf(record) + 1);
    setCell(MEMBERS, cell(MEMBERS) + 1);
    if (!isOrphan(record) && completeAround(record, group, prefix)) {
      const slot = ownerOf(record);
      setDone(slot, doneOf(slot) | ((<u64>1) << group));
    }
    return;
  }
  const at = recordOf(record) + (<usize>(medium >> 1) << 3); // 1, 2, 4 → 0, 1, 2
  const mask = load<u64>(at, 32);
  const bit = (<u64>1) << prefix;
  if (mask & bit) return;
  store<u64>(at, mask | bit, 32);
  setCell(MEMBERS, cell(MEMBERS) + 1);
  const groupMask = load<u64>(GROUP_MASKS + (<usize>group << 3));
  if ((unionOf(record) & groupMask) == groupMask && !isOrphan(record)) {
    const slot = ownerOf(record);
    setDone(slot, doneOf(slot) | ((<u64>1) << group));
  }
}

/** An object has gone from the given media. */
export function removeObject(high: usize, low: u64, prefix: u32, media: u32): void {
  const found = identify(low, hashKey(low), high);
  if (found <= 0) return;
  const record = <u32>found;
  count(REMOVED_OBJECTS);
  const group = <u32>load<u8>(PREFIX_GROUP + <usize>prefix);
  if (WIDE) {
    const old = mediaOf(record, prefix);
    if (!old) return;
    setMedia(record, prefix, old & ~media);
    if (old & ~media) return;
    setObjects(record, objectsOf(record) - 1);
    setCell(MEMBERS, cell(MEMBERS) - 1);
    if (!objectsOf(record)) {
      forgetDigest(record);
      return;
    }
  } else {
    const at = recordOf(record);
    const keep = ~((<u64>1) << prefix);
    const before = cell(MEMBERS);
    let gone: u32 = 0;
    for (let m: usize = 0; m < 3; m++) {
      if (!((media >> <u32>m) & 1)) continue;
      const mask = load<u64>(at + (m << 3), 32);
      if (mask & ~keep) {
        store<u64>(at + (m << 3), mask & keep, 32);
        gone++;
      }
    }
    if (!gone) return;
    setCell(MEMBERS, before - gone);
    const left = unionOf(record);
    if (!left) {
      forgetDigest(record);
      return;
    }
    if (left & ~keep) return;
  }
  if (isOrphan(record)) return;
  const slot = ownerOf(record);
  setDone(slot, doneOf(slot) & ~((<u64>1) << group));
}

/** All digests and objects go; edges and the ambiguous set stay. O(1), but for one call in 2^32. */
export function clearResidency(): void {
  const generation = cell(GENERATION) + 1;
  if (!generation) {
    scrubDigestTable();
    memory.fill(EXTENT_GEN, 0, EXTENTS * 4);
    if (WIDE) scrubMembers();
  }
  setCell(GENERATION, generation ? generation : 1);
  setCell(DIGESTS, 0);
  setCell(MEMBERS, 0);
  setCell(ORPHAN_DIGESTS, 0);
  setCell(ORPHAN_OLDEST, 0);
  setCell(ORPHAN_NEWEST, 0);
  setCell(RECORD_FREE, 0);
  setCell(RECORD_TOP, 1);
  setCell(DIGEST_SPREAD, 0);
  count(CLEARS);
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

/** The edge moved from one slot to another: its digest's record follows. */
export function adoptRecord(from: u32, to: u32): void {
  const record = digestOf(from);
  if (record) setOwner(record, to);
  setLinkIndex(from, 0);
}

/**
 * Part of a reconcile: places `objects` staged objects (see objects.ts; sorted by digest, whole digests only) as medium unknown, those whose
 * digest has an edge (`withEdge`) or the others. Nothing leaves for them: a digest that does not fit whole is left out. Returns objects placed.
 */
export function placeObjects(from: usize, objects: u32, withEdge: bool): u32 {
  let placed: u32 = 0;
  for (let i: u32 = 0; i < objects; ) {
    const first = from + <usize>i * 40;
    const low = load<u64>(first, 24);
    let run: u32 = 1;
    while (i + run < objects && load<u64>(first + <usize>run * 40, 24) == low && sameHigh(first + <usize>run * 40, first)) run++;
    const hash = hashKey(low);
    const slot = findChild(hash, low);
    const fits = (cell(DIGESTS) < DIGEST_CAP || findDigest(hash, low) != 0) && (!WIDE || cell(MEMBERS) + run <= MEMBER_CAP);
    if ((slot != 0 && !(flagsOf(slot) & CONFLICT)) == withEdge && fits) {
      for (let k: u32 = 0; k < run; k++) storeObject(first + <usize>k * 40, low, load<u16>(first + <usize>k * 40, 32), UNKNOWN);
      placed += run;
    }
    i += run;
  }
  return placed;
}
