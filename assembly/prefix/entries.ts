// Entries as they come and go. A new one is taken right behind its parent's where that is free, so that a walk mostly finds the next block
// in the next entry. At the cap the coldest leaf makes room. An entry that some rank had named itself rests until no such name can be
// left (aliases.ts); that none has to wait for it, some entries are kept free once there are such names.
import {
  add, addKid, ALIAS_PAD, ALIAS_PLACES, aliased, CAP, childless, dropKid, ENTRIES, EVICTED, isFree, kidsOf, markFree, nextOf, parentOf, prevOf,
  putSet, setKey, setName, setNext, setOf, setParent, setPrev,
} from './layout';
import * as aliases from './aliases';
import { age, heatLike, link, unlink } from './order';
import { isEmpty, release } from './sets';
import { insertKey, insertName, removeKey, removeName } from './table';

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

// After a rank was cleared, entries that nobody holds any more are looked for a few at a time.
let tidyAt: u32 = 1;
let tidyEnd: u32 = 0;
/** Some sets have lost their last rank: all entries are to be looked through. */
export function beginTidying(): void {
  tidyAt = 1;
  tidyEnd = top;
}
/** Looks through so many of them. */
export function tidy(entries: u32): void {
  for (; entries && tidyAt <= tidyEnd; entries--, tidyAt++) {
    const set = setOf(tidyAt);
    if (!set || !isEmpty(set)) continue;
    putSet(tidyAt, 0);
    release(set);
    dropIfEmpty(tidyAt);
  }
}

/** A new entry behind `parent`, held by nobody yet; 0 when there is no room. */
export function create(key: u64, name: u64, parent: u32): u32 {
  const reserve = aliases.any() ? CAP >> 4 : 0;
  if (freeCount + (CAP - top) <= reserve) evict();
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
  settle((ALIAS_PLACES + ALIAS_PAD) / (CAP >> 5) + 1);
}
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
  const parent = parentOf(entry);
  drop(entry);
  add(EVICTED, 1);
  dropIfEmpty(parent);
  return true;
}
