// Residency: which digests have which objects in the store, and, written through at event time, which groups of an edge's child
// are complete. Lookups read only the result (DONE in slots.ts), never a record (records.ts).
import { DIGEST_CAP, EXTENTS, EXTENT_GEN, GROUP_MASKS, INDEX_MASK, MEMBER_CAP, PREFIX_GROUP, WIDE } from './layout';
import {
  addCount, AMBIGUITIES, AMBIGUITY_DROPS, cell, CLEARS, count, DERIVED_EDGES, DIGESTS, DIGEST_EVICTIONS, DIGEST_SPREAD, EDGE_EVICTIONS, GENERATION, MEMBERS, ORPHAN_DIGESTS,
  ORPHAN_NEWEST, ORPHAN_OLDEST, RECORD_FREE, RECORD_TOP, REFUSED_OBJECTS, REMOVED_OBJECTS, setCell, SKIPPED_AMBIGUOUS, STORED_OBJECTS, WHOLE,
} from './cells';
import { addAmbiguous, emptyAmbiguous, isAmbiguous } from './ambiguous';
import { CONFLICT, copyHigh, DERIVED, doneOf, externalOf, flagsOf, highOf, KNOWN, linkOf, prevOf, sameHigh, setDone, setLink, setLinkIndex } from './slots';
import { findChild, findDigest, hashKey, lowOf, scrubDigestTable } from './table';
import { mediaOf, objectsOf, scrubMembers, setMedia, setObjects } from './members';
import {
  addOwner, completeAround, completeGroups, digestOf, dropOwner, freeRecord, isOrphan, joinNewest, leaveOrphans, newerOf, newRecord, otherOf, ownerOf, recordOf,
  setOther, setOwner, unionOf,
} from './records';
import { dropEverything, removeEdge } from './edges';
import { blockSizeOf, LEARNED_PLAN } from './plan';

export const CPU: u32 = 1;
export const DISK: u32 = 2;
export const UNKNOWN: u32 = 4;
export const ALL_MEDIA: u32 = 7;

const DEPARTURES: u32 = 256; // most edges that may leave for one object
const SPARED_ORPHANS: u32 = DIGEST_CAP / 2;

// Links between edges and digests
/** An edge has come, its child's hashKey given: links it with its child's digest, unless their first 24 bytes differ. */
export function attachDigest(slot: u32, hash: u64): void {
  const child = externalOf(slot);
  if (!cell(DIGESTS) || isAmbiguous(child)) return;
  const record = findDigest(hash, child);
  if (!record) return;
  if (linkOf(slot) & KNOWN) {
    if (!sameHigh(highOf(slot), recordOf(record))) {
      makeAmbiguous(child);
      return;
    }
  } else copyHigh(highOf(slot), recordOf(record));
  if (isOrphan(record)) leaveOrphans(record);
  link(slot, record);
  setDone(slot, completeGroups(record));
}
@inline function link(slot: u32, record: u32): void {
  setLink(slot, (linkOf(slot) & ~INDEX_MASK) | KNOWN | record);
  addOwner(record, slot);
}
/** The edge leaves or is conflicted: its digest stays, if no other edge has it as the oldest of those without an edge. */
export function detachDigest(slot: u32): void {
  const record = digestOf(slot);
  setDone(slot, 0);
  setLinkIndex(slot, 0);
  if (record) dropOwner(record, slot);
}
/** The edge moved from one slot to another: its digest's record follows. */
export function adoptRecord(from: u32, to: u32): void {
  const record = digestOf(from);
  if (record) {
    if (ownerOf(record) == from) setOwner(record, to);
    else setOther(record, to);
  }
  setLinkIndex(from, 0);
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
    unlink(ownerOf(record));
    if (otherOf(record)) unlink(otherOf(record));
  }
  freeRecord(record);
}
@inline function unlink(slot: u32): void {
  setDone(slot, 0);
  setLinkIndex(slot, 0);
}
/** At the cap: the oldest digest without an edge, else the coldest edge's. Caps of edges and digests are equal, so with the table full and
 *  no digest without an edge, every edge has one, and the coldest edge is the LRU list's end. */
function evictDigest(low: u64): bool {
  if (!blockSizeOf(LEARNED_PLAN) && cell(ORPHAN_DIGESTS) <= SPARED_ORPHANS && evictColdest(low)) return true;
  const record = cell(ORPHAN_OLDEST) ? cell(ORPHAN_OLDEST) : digestOf(prevOf(0));
  if (!record) return false;
  dropForRoom(record);
  return true;
}
/** Where edges are only derived: what was stored and not asked for since has none, though its prompt may come any moment. So such digests keep a half of
 *  the table, and the coldest edge's digest goes. Colder edges without one go too; false when a number of them had none. */
function evictColdest(low: u64): bool {
  let slot = prevOf(0);
  let needed = false; // by the edge of the digest being stored, whose parents are behind it here
  for (let left = DEPARTURES; left && slot; left--) {
    const hotter = prevOf(slot);
    const record = digestOf(slot);
    if (record) {
      dropForRoom(record);
      return true;
    }
    if (externalOf(slot) == low) needed = true;
    if (!needed) {
      removeEdge(slot);
      count(EDGE_EVICTIONS);
    }
    slot = hotter;
  }
  return false;
}
/** Wide: makes room for one object of `low`, which itself stays. Cold edges whose digest is not resident go too: they are the coldest evidence. */
function makeMemberRoom(low: u64): bool {
  for (let left = DEPARTURES; cell(MEMBERS) >= MEMBER_CAP; left--) {
    if (!left) return false;
    let record = cell(ORPHAN_OLDEST);
    if (record && lowOf(record) == low) record = newerOf(record);
    if (!record) {
      let slot = prevOf(0);
      while (slot && externalOf(slot) == low) slot = prevOf(slot); // at most two
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
  setCell(WHOLE, 0);
  count(DIGEST_EVICTIONS);
}
/** Two digests share `low`: nothing of it is kept, and nothing will be until the contract changes. */
function makeAmbiguous(low: u64): void {
  setCell(WHOLE, 0);
  count(AMBIGUITIES);
  const record = findDigest(hashKey(low), low);
  if (record) dropDigest(record);
  if (addAmbiguous(low)) return;
  count(AMBIGUITY_DROPS);
  dropEverything();
  emptyAmbiguous();
  addAmbiguous(low);
}
/** The digest's record, or 0 where there is none yet; ambiguity found here is acted on. Returns -1 when nothing may be done. */
@inline function identify(low: u64, hash: u64, high: usize): i32 {
  if (isAmbiguous(low)) {
    setCell(WHOLE, 0);
    count(SKIPPED_AMBIGUOUS);
    return -1;
  }
  const record = findDigest(hash, low);
  if (record) {
    if (sameHigh(recordOf(record), high)) return <i32>record;
  } else if (!contradicts(findChild(hash, low, 0), high) && !(cell(DERIVED_EDGES) && contradicts(findChild(hash, low, DERIVED), high))) return 0;
  makeAmbiguous(low);
  return -1;
}
/** The edge is known to lead to another digest than the one with these first 24 bytes. */
@inline function contradicts(slot: u32, high: usize): bool { return slot != 0 && (linkOf(slot) & KNOWN) != 0 && !sameHigh(highOf(slot), high); }
/** Creates the record of a digest that is not resident and links it with its edges; room must be there. */
function admitDigest(low: u64, hash: u64, high: usize): u32 {
  const record = newRecord(low, hash, high);
  const slot = findChild(hash, low, 0);
  if (slot && !(flagsOf(slot) & CONFLICT)) {
    if (!(linkOf(slot) & KNOWN)) copyHigh(highOf(slot), high);
    link(slot, record);
  }
  const derived = cell(DERIVED_EDGES) ? findChild(hash, low, DERIVED) : 0;
  if (derived) link(derived, record);
  if (!ownerOf(record)) joinNewest(record);
  return record;
}
/** The group is complete for the digest, which has an edge. */
@inline function markComplete(record: u32, group: u32): void {
  const slot = ownerOf(record);
  setDone(slot, doneOf(slot) | ((<u64>1) << group));
  const other = otherOf(record);
  if (other) setDone(other, doneOf(other) | ((<u64>1) << group));
}

/** An object has been stored. `high`: address of the digest's first 24 bytes; `medium`: CPU, DISK or UNKNOWN. */
export function storeObject(high: usize, low: u64, prefix: u32, medium: u32): void {
  if (WIDE) storeMember(high, low, prefix, medium);
  else storeBits(high, low, <u32>load<u8>(PREFIX_GROUP + <usize>prefix), (<u64>1) << prefix, medium);
}
/** So have those of several prefixes of one group, given as bits; narrow builds. */
export function storeBits(high: usize, low: u64, group: u32, bits: u64, medium: u32): void {
  const hash = hashKey(low);
  const found = identify(low, hash, high);
  if (found < 0) return;
  let record = <u32>found;
  if (!record && cell(DIGESTS) >= DIGEST_CAP && !evictDigest(low)) {
    setCell(WHOLE, 0);
    addCount(REFUSED_OBJECTS, popcnt(bits));
    return;
  }
  if (!record) record = admitDigest(low, hash, high);
  else renewOrphan(record);
  addCount(STORED_OBJECTS, popcnt(bits));
  const at = recordOf(record) + (<usize>(medium >> 1) << 3); // 1, 2, 4 → 0, 1, 2
  const mask = load<u64>(at, 32);
  const fresh = bits & ~mask;
  if (!fresh) return;
  store<u64>(at, mask | fresh, 32);
  setCell(MEMBERS, cell(MEMBERS) + <u32>popcnt(fresh));
  const groupMask = load<u64>(GROUP_MASKS + (<usize>group << 3));
  if ((unionOf(record) & groupMask) == groupMask && !isOrphan(record)) markComplete(record, group);
}
function storeMember(high: usize, low: u64, prefix: u32, medium: u32): void {
  const hash = hashKey(low);
  const found = identify(low, hash, high);
  if (found < 0) return;
  let record = <u32>found;
  let room = record != 0 || cell(DIGESTS) < DIGEST_CAP || evictDigest(low);
  if (room && cell(MEMBERS) >= MEMBER_CAP && !(record && mediaOf(record, prefix))) room = makeMemberRoom(low);
  if (!room) {
    setCell(WHOLE, 0);
    count(REFUSED_OBJECTS);
    return;
  }
  if (!record) record = admitDigest(low, hash, high);
  else renewOrphan(record);
  count(STORED_OBJECTS);
  const group = <u32>load<u8>(PREFIX_GROUP + <usize>prefix);
  const media = mediaOf(record, prefix);
  setMedia(record, prefix, media | medium);
  if (media) return;
  setObjects(record, objectsOf(record) + 1);
  setCell(MEMBERS, cell(MEMBERS) + 1);
  if (!isOrphan(record) && completeAround(record, group, prefix)) markComplete(record, group);
}
/** A digest without an edge becomes the newest of those. */
@inline function renewOrphan(record: u32): void {
  if (!isOrphan(record) || cell(ORPHAN_NEWEST) == record) return;
  leaveOrphans(record);
  joinNewest(record);
}

/** An object has gone from the given media. */
export function removeObject(high: usize, low: u64, prefix: u32, media: u32): void {
  if (WIDE) removeMember(high, low, prefix, media);
  else removeBits(high, low, <u32>load<u8>(PREFIX_GROUP + <usize>prefix), (<u64>1) << prefix, media);
}
/** So have those of several prefixes of one group, given as bits; narrow builds. */
export function removeBits(high: usize, low: u64, group: u32, bits: u64, media: u32): void {
  const found = identify(low, hashKey(low), high);
  if (found <= 0) return;
  const record = <u32>found;
  addCount(REMOVED_OBJECTS, popcnt(bits));
  const at = recordOf(record);
  let gone: u32 = 0;
  for (let m: usize = 0; m < 3; m++) {
    if (!((media >> <u32>m) & 1)) continue;
    const mask = load<u64>(at + (m << 3), 32);
    if (!(mask & bits)) continue;
    store<u64>(at + (m << 3), mask & ~bits, 32);
    gone += <u32>popcnt(mask & bits);
  }
  if (!gone) return;
  setCell(MEMBERS, cell(MEMBERS) - gone);
  const left = unionOf(record);
  if (!left) forgetDigest(record);
  else if ((left & bits) != bits) incomplete(record, group);
}
function removeMember(high: usize, low: u64, prefix: u32, media: u32): void {
  const found = identify(low, hashKey(low), high);
  if (found <= 0) return;
  const record = <u32>found;
  count(REMOVED_OBJECTS);
  const old = mediaOf(record, prefix);
  if (!old) return;
  setMedia(record, prefix, old & ~media);
  if (old & ~media) return;
  setObjects(record, objectsOf(record) - 1);
  setCell(MEMBERS, cell(MEMBERS) - 1);
  if (!objectsOf(record)) forgetDigest(record);
  else incomplete(record, <u32>load<u8>(PREFIX_GROUP + <usize>prefix));
}
/** The group lacks an object of the digest. */
function incomplete(record: u32, group: u32): void {
  if (isOrphan(record)) return;
  const slot = ownerOf(record);
  setDone(slot, doneOf(slot) & ~((<u64>1) << group));
  const other = otherOf(record);
  if (other) setDone(other, doneOf(other) & ~((<u64>1) << group));
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
  setCell(WHOLE, 0);
  count(CLEARS);
}
