// Entries as they come and go. A new one is taken right behind its parent's where that is free, so that a walk mostly finds the next block
// in the next entry. At the cap the coldest leaf makes room. An entry that some rank had named itself rests until no such name can be
// left (aliases.ts); that none has to wait for it, some entries are kept free once there are such names.
import {
  add, addKid, ALIAS_PAD, ALIAS_PLACES, aliased, CAP, childless, dropKid, ENTRIES, EVICTED, EVICTED_BY_ALIASES, EVICTED_BY_SETS, isFree, kidsOf, markFree, nextOf, parentOf, prevOf,
  putSet, setKey, setName, setNext, setOf, setParent, setPrev,
} from './layout';
import * as aliases from './aliases';
import { age, era, heatLike, link, unlink } from './order';
import { current, FULL, isEmpty, isListed, ownNames, refsOf, release } from './sets';
import { insertKey, insertName, removeKey, removeName } from './table';

/** Entries looked through for such as nobody holds before one that somebody holds is evicted. */
const TIDIED_FIRST: u32 = 256;
/** Cold blocks looked at for one whose set goes with it. */
const LOOKED_AT: u32 = 64;
/** Places swept, and leaves that may go, for one new name at the cap of names. */
const SWEPT_A_NAME: u32 = 64;
const LEAVES_A_NAME: u32 = 8;
/** Entries in a row that are followed to a leaf. */
const ROW: u32 = 4096;
/** Places swept at once where names that were left behind take all room. */
const SWEPT_WHEN_CHOKED: u32 = 4096;

let top: u32 = 0; // entries ever used
let free: u32 = 0; // first of the free entries, which form a ring of their own
let freeCount: u32 = 0;
let resting: u32 = 0; // freed before this pass over the names began; linked by NEXT
let waiting: u32 = 0; // freed since
/** Not to be evicted or dropped now: blocks that an event is at work on. */
let pinned: u32 = 0;
let pinnedParent: u32 = 0;

export function pin(entry: u32, parent: u32): void {
  pinned = entry;
  pinnedParent = parent;
}

// After a rank was cleared, entries are looked through a few at a time: those that nobody holds any more go, and those whose set has become equal to
// another take that. The cursor goes round, so that clears in a row cannot keep it from getting anywhere.
let tidyAt: u32 = 1;
let tidyLeft: u32 = 0;
/** Some sets are unlisted: all entries are to be looked through. */
export function beginTidying(): void { tidyLeft = top; }
/** Looks through so many of them. */
export function tidy(entries: u32): void {
  for (; entries && tidyLeft; entries--, tidyLeft--, tidyAt++) {
    if (tidyAt > top) tidyAt = 1;
    const set = setOf(tidyAt);
    if (!set || isListed(set)) continue;
    const listed = current(set);
    if (listed == FULL) continue;
    putSet(tidyAt, listed);
    release(set);
    dropIfEmpty(tidyAt);
  }
}

/** A new entry behind `parent`, held by nobody yet; 0 when there is no room. */
export function create(key: u64, name: u64, parent: u32): u32 {
  const reserve = aliases.any() ? CAP >> 4 : 0;
  if (freeCount + (CAP - top) <= reserve) {
    tidy(TIDIED_FIRST);
    if (freeCount + (CAP - top) <= reserve) evict();
  }
  while (!freeCount && top == CAP && (resting | waiting)) settle(ALIAS_PLACES + ALIAS_PAD);
  const entry = take(parent + 1);
  if (!entry) return 0;
  setKey(entry, key);
  setName(entry, name);
  setParent(entry, parent);
  childless(entry);
  putSet(entry, 0);
  if (!insertKey(entry)) return giveBack(entry);
  if (!insertName(entry)) {
    removeKey(entry);
    return giveBack(entry);
  }
  if (parent) addKid(parent);
  link(entry, parent);
  heatLike(entry, parent);
  age();
  add(ENTRIES, 1);
  return entry;
}
function take(wanted: u32): u32 {
  if (wanted <= top && isFree(wanted)) return takeFree(wanted);
  if (wanted == top + 1 && top < CAP) return ++top;
  if (freeCount) return takeFree(free);
  return top < CAP ? ++top : 0;
}
function takeFree(entry: u32): u32 {
  const before = prevOf(entry);
  const after = nextOf(entry);
  setNext(before, after);
  setPrev(after, before);
  if (free == entry) free = after == entry ? 0 : after;
  freeCount--;
  return entry;
}
function giveBack(entry: u32): u32 {
  setKey(entry, 0);
  markFree(entry);
  if (free) {
    const last = prevOf(free);
    setNext(last, entry);
    setPrev(entry, last);
    setNext(entry, free);
    setPrev(free, entry);
  } else {
    setNext(entry, entry);
    setPrev(entry, entry);
  }
  free = entry;
  freeCount++;
  return 0;
}

/** Drops an entry that nobody holds any more, and every block before it that was kept only for it. One with blocks behind it stays. */
export function dropIfEmpty(entry: u32): void {
  while (entry && isEmpty(setOf(entry)) && !kidsOf(entry) && entry != pinned && entry != pinnedParent) {
    const parent = parentOf(entry);
    drop(entry);
    entry = parent;
  }
}
function drop(entry: u32): void {
  const set = setOf(entry);
  if (aliased(entry)) aliases.leaveBehind(ownNames(set));
  putSet(entry, 0);
  release(set);
  unlink(entry);
  removeKey(entry);
  removeName(entry);
  dropKid(parentOf(entry));
  add(ENTRIES, -1);
  if (!aliased(entry)) {
    giveBack(entry);
    return;
  }
  setKey(entry, 0);
  setParent(entry, 0);
  childless(entry);
  setNext(entry, waiting);
  waiting = entry;
  settle(sweptADrop());
}
/** So many places that a whole pass goes by with a 32nd of the entries. */
@inline function sweptADrop(): u32 { return (ALIAS_PLACES + ALIAS_PAD) / (CAP >> 5) + 1; }
/** Sweeps on; what rested through a whole pass is free. */
function settle(places: u32): void {
  if (!resting) {
    resting = waiting;
    waiting = 0;
    aliases.beginPass();
  }
  if (!aliases.sweep(places)) return;
  while (resting) {
    const next = nextOf(resting);
    giveBack(resting);
    resting = next;
  }
}
/** The coldest leaf goes, whoever holds it. False when there is none that may. */
export function evict(): bool {
  const entry = prevOf(0);
  if (!entry || entry == pinned || entry == pinnedParent) return false;
  evictLeaf(entry);
  return true;
}
function evictLeaf(entry: u32): void {
  const parent = parentOf(entry);
  drop(entry);
  add(EVICTED, 1);
  dropIfEmpty(parent);
}
/** Makes room for a set: of the coldest blocks a leaf goes whose set no other block has. False when there is none. */
export function evictForSet(): bool {
  tidy(TIDIED_FIRST);
  let entry = prevOf(0);
  for (let left = LOOKED_AT; entry && left; left--, entry = prevOf(entry)) {
    const set = setOf(entry);
    if (!set || kidsOf(entry) || refsOf(set) != 1 || entry == pinned || entry == pinnedParent) continue;
    evictLeaf(entry);
    add(EVICTED_BY_SETS, 1);
    return true;
  }
  return false;
}
/** Makes room for a name: sweeps those left behind, and at the cap leaves of cold blocks that have names go. False when there is none. */
export function makeNameRoom(): bool {
  if (!aliases.isFull() && !aliases.isChoked()) return true;
  settle(SWEPT_A_NAME);
  for (let left = LEAVES_A_NAME; left && aliases.isFull(); left--) {
    const leaf = lastInRow(aliases.sampled(era));
    if (!leaf || kidsOf(leaf) || leaf == pinned || leaf == pinnedParent) continue;
    evictLeaf(leaf);
    add(EVICTED_BY_ALIASES, 1);
  }
  if (aliases.isChoked()) settle(SWEPT_WHEN_CHOKED);
  return !aliases.isFull() && !aliases.isChoked();
}
/** The last of the entries in a row that continue the chain: mostly its leaf. */
function lastInRow(entry: u32): u32 {
  if (entry) for (let left = ROW; left && entry < top && parentOf(entry + 1) == entry; left--) entry++;
  return entry;
}
