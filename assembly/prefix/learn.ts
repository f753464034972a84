// What events do to the index: blocks enter and leave tiers of a rank.
import {
  add, eligible, KEY, keyOf, LOCALS, markAliased, mix, nameOf, NAMES, parentOf, PROVENANCE, putSet, REFUSED_BY_ALIASES, REFUSED_BY_SETS,
  RENAMED, rootKey, setEligible, setOf, UNKNOWN_PARENTS, UNKNOWN_REMOVALS,
} from './layout';
import * as aliases from './aliases';
import { beginTidying, create, dropIfEmpty, evictForSet, makeNameRoom, pin, tidy } from './entries';
import { heatLike, heatPath, isHot, splice } from './order';
import * as sets from './sets';
import { findKey, findName, found, hashName, touchKey, touchName } from './table';

export const STORED: u32 = 0;
export const UNKNOWN_PARENT: u32 = 1;
export const NO_ROOM: u32 = 2;
const EVERYWHERE: u32 = 7;
/** Entries looked through with each call, beside one a block, while some may be held by nobody. */
const TIDIED_A_CALL: u32 = 256;

/** The block that the rank holds under a name, 0 = none. */
function named(rank: u32, name: u64): u32 {
  if (aliases.any()) {
    const place = aliases.find(rank, name);
    if (place != aliases.NOWHERE) {
      const entry = aliases.entryAt(place);
      if (sets.holds(setOf(entry), rank) && sets.namesItself(setOf(entry), rank)) return entry;
      aliases.removeBehind(place);
    }
  }
  const hash = hashName(name);
  let entry = findName(hash, name, 0);
  while (entry && !callsByFirst(entry, rank)) entry = findName(hash, name, found + 1);
  return entry;
}
/** Whether the rank holds the block, under the name that it was first announced by. */
function callsByFirst(entry: u32, rank: u32): bool {
  const set = setOf(entry);
  return sets.holds(set, rank) && !sets.namesItself(set, rank);
}
/** The rank, which calls the block `name`, no longer has it in `tiers`. */
function leave(entry: u32, rank: u32, tiers: u32, name: u64): void {
  let before = setOf(entry);
  const own = sets.namesItself(before, rank);
  let after = sets.parted(before, rank, tiers);
  if (after == sets.FULL && evictForSet()) {
    before = setOf(entry);
    if (!sets.holds(before, rank)) return; // it went itself
    after = sets.parted(before, rank, tiers);
  }
  if (after == sets.FULL) {
    // No room for the set without the rank: better nobody than one too many.
    after = 0;
    aliases.leaveBehind(sets.ownNames(before));
    add(REFUSED_BY_SETS, 1);
  } else if (own && !sets.holds(after, rank)) {
    const place = aliases.find(rank, name);
    if (place != aliases.NOWHERE) aliases.removeAt(place);
  }
  putSet(entry, after);
  sets.release(before);
  dropIfEmpty(entry);
}

// What stands before the blocks of a stored event: nothing, the last block of the call before, or else a block that the rank has a name for.
const ROOT: u32 = 0;
const LAST: u32 = 2;
let last: u32 = 0;

/** Blocks of LOCALS and NAMES entered a tier of the rank. */
export function stored(rank: u32, tier: u32, blocks: u32, behind: u32, parentName: u64, itsEligible: bool): u32 {
  let parent: u32 = 0;
  let key = rootKey();
  if (behind != ROOT) {
    parent = behind == LAST ? last : named(rank, parentName);
    if (!parent) {
      add(UNKNOWN_PARENTS, 1);
      return UNKNOWN_PARENT;
    }
    key = keyOf(parent);
    if (!isHot(parent)) heatPath(parent);
  }
  tidy(TIDIED_A_CALL + blocks);
  let ahead = key;
  for (let i: u32 = 0; i < blocks; i++) {
    ahead = mix(ahead, load<u64>(LOCALS + (<usize>i << 3)));
    touchKey(ahead);
    touchName(load<u64>(NAMES + (<usize>i << 3)));
  }
  let outcome = STORED;
  for (let i: u32 = 0; i < blocks && outcome == STORED; i++) {
    const name = load<u64>(NAMES + (<usize>i << 3));
    key = mix(key, load<u64>(LOCALS + (<usize>i << 3)));
    pin(0, parent);
    // What is offloaded is announced without its salt: a block that the rank has already is that one, whatever the local hash says.
    let entry: u32 = tier == sets.DEVICE ? 0 : named(rank, name);
    if (entry) key = keyOf(entry);
    else entry = load<u64>(KEY + (<usize>(parent + 1) << 3)) == key ? parent + 1 : findKey(key);
    if (!entry) entry = create(key, name, parent);
    else if (!isHot(entry) && parentOf(entry) == parent) {
      splice(entry, entry, parent);
      heatLike(entry, parent);
    }
    if (!entry) {
      outcome = NO_ROOM;
      break;
    }
    pin(entry, parent);
    outcome = enter(entry, rank, tier, name, itsEligible);
    pin(0, 0);
    if (outcome != STORED) dropIfEmpty(entry);
    parent = entry;
  }
  pin(0, 0);
  last = parent;
  return outcome;
}
function enter(entry: u32, rank: u32, tier: u32, name: u64, itsEligible: bool): u32 {
  const other = named(rank, name);
  if (other && other != entry) {
    leave(other, rank, EVERYWHERE, name);
    add(RENAMED, 1);
  }
  const own = !sets.holds(setOf(entry), rank) && nameOf(entry) != name;
  if (own && !makeNameRoom()) {
    add(REFUSED_BY_ALIASES, 1);
    return NO_ROOM;
  }
  if (!join(entry, rank, tier, own, itsEligible)) {
    add(REFUSED_BY_SETS, 1);
    return NO_ROOM;
  }
  if (!own) return STORED;
  // Last, for a name counts only while its block is held under it.
  markAliased(entry);
  if (aliases.insert(rank, name, entry)) return STORED;
  leave(entry, rank, EVERYWHERE, name);
  add(REFUSED_BY_ALIASES, 1);
  return NO_ROOM;
}
function join(entry: u32, rank: u32, tier: u32, own: bool, itsEligible: bool): bool {
  let after = sets.joined(setOf(entry), rank, tier, own);
  if (after == sets.FULL && evictForSet()) after = sets.joined(setOf(entry), rank, tier, own);
  if (after == sets.FULL) return false;
  const before = setOf(entry);
  if (PROVENANCE) setEligible(entry, itsEligible && (sets.isEmpty(before) || eligible(entry)));
  putSet(entry, after);
  sets.release(before);
  return true;
}

/** Blocks of NAMES left a tier of the rank; how many of them it had there. */
export function removed(rank: u32, tier: u32, blocks: u32): u32 {
  let known: u32 = 0;
  tidy(TIDIED_A_CALL + blocks);
  for (let i: u32 = 0; i < blocks; i++) touchName(load<u64>(NAMES + (<usize>i << 3)));
  for (let i: u32 = 0; i < blocks; i++) {
    const name = load<u64>(NAMES + (<usize>i << 3));
    const entry = named(rank, name);
    if (!entry || !sets.hasIn(setOf(entry), rank, tier)) {
      add(UNKNOWN_REMOVALS, 1);
      continue;
    }
    leave(entry, rank, 1 << tier, name);
    known++;
  }
  return known;
}

/** Everything of the rank goes: one pass over the sets and one over names. Entries that nobody holds any more are found little by little. */
export function forget(rank: u32): void {
  if (sets.forget(rank)) beginTidying();
  if (aliases.any()) aliases.forget(rank);
}
