// Learned hash edges: (parent external hash or root, local hash) → child external hash, with exact LRU, from the workers' stored events.
// The rules are in README.md, "Learned edges"; the names of the steps below are its words.
import { CONFLICT_CAP, EDGE_CAP, EVENT_BLOCKS, INDEX_MASK, INPUT, REQUEST } from './layout';
import {
  cell, CONFLICTED, CONFLICTS, CONFLICT_DROPS, count, DERIVED_EDGES, DROPS, EDGES, EDGE_EVICTIONS, FULL_EVENTS, LEARNED, OUTRANKED,
  REPEATED, REPLACED, setCell, WALKED,
} from './cells';
import {
  adoptFollower, ASSUMED, CONFLICT, DERIVED, emptySlots, externalOf, flagsOf, FOLLOWS, freeSlot, giveSlot, highOf, initSlots,
  insertBehind, kindOf, KNOWN, linkOf, LIVE, localOf, loseFollower, moveBehind, parentOf, prevOf, ROOT, SALTED, setDone, setFlags,
  setJump, setKey, setLink, takeSlot, unchain,
} from './slots';
import {
  BY_CHILD, BY_DIGEST, BY_EDGE, emptyEdgeTables, entryAt, findChild, findHashedEdge, hashEdge, hashKey, homeOf, insertEntry, removeChildEntry, removeEdgeEntry,
} from './table';
import { childAt, repeats } from './distinct';
import { ownerOf } from './records';
import { attachDigest, clearResidency, confirmHigh, detachDigest } from './residency';

// Stored events as the host lays them out: at INPUT a header each (the parent's external hash, 8 bytes, little endian; u32 blocks; u32
// whether there is a parent), behind the headers the children of all events, either 8 bytes each (little endian) or whole 32-byte digests.
// REQUEST holds the blocks' local hashes.
const HEADER: usize = 16;
/** Scratch of `repeats`: the upper half of REQUEST, behind the most blocks that events learned together may have. */
const SEEN: usize = REQUEST + <usize>EVENT_BLOCKS * 16;

/** Removes an edge that is not conflicted from everything that knows it. */
export function removeEdge(slot: u32): void {
  const derived = flagsOf(slot) & DERIVED;
  unchain(slot);
  detachDigest(slot);
  removeEdgeEntry(hashEdge(parentOf(slot), kindOf(slot), localOf(slot)), slot);
  removeChildEntry(hashKey(externalOf(slot)), slot);
  setFlags(slot, 0);
  loseFollower(slot);
  giveSlot(slot);
  setCell(EDGES, cell(EDGES) - 1);
  if (derived) setCell(DERIVED_EDGES, cell(DERIVED_EDGES) - 1);
}
/** The edge contradicts what was learned before: it leads nowhere any more, and stays so that it is not learned again. */
function conflict(slot: u32): void {
  count(CONFLICTS);
  unchain(slot);
  detachDigest(slot);
  setFlags(slot, flagsOf(slot) | CONFLICT);
  setCell(CONFLICTED, cell(CONFLICTED) + 1);
  if (cell(CONFLICTED) <= CONFLICT_CAP) return;
  count(CONFLICT_DROPS);
  dropEverything();
}
/** All edges and all residency go together, so that no pairing of the two survives. */
export function dropEverything(): void {
  clearResidency();
  // Without edges the tables are empty as they are: fresh memory is not touched for nothing.
  if (cell(EDGES)) {
    emptyEdgeTables();
    emptySlots();
  }
  initSlots();
  setCell(EDGES, 0);
  setCell(DERIVED_EDGES, 0);
  setCell(CONFLICTED, 0);
  setCell(WALKED, 0);
  setCell(DROPS, cell(DROPS) + 1);
}

/** Blocks whose table lines are read ahead together: so many stay in the first-level cache. */
const AHEAD: u32 = 64;

/** Reads the table lines that inserting blocks `from` … will need, so that their cache misses overlap instead of queueing. */
function touchLines(children: usize, locals: usize, from: u32, blocks: u32, parent: u64, kind: u32, digests: bool): void {
  let sum: u32 = 0;
  for (let i = from; i < blocks; i++) {
    const child = childAt(children, i, digests);
    const home = homeOf(hashKey(child));
    sum ^= entryAt(BY_CHILD, home) ^ entryAt(BY_DIGEST, home);
    sum ^= entryAt(BY_EDGE, homeOf(hashEdge(parent, kind, load<u64>(locals + (<usize>i << 3)))));
    parent = child;
    kind = 0;
  }
  const room = EDGE_CAP - cell(EDGES);
  if (blocks - from > room) {
    let victim = prevOf(0);
    for (let left = blocks - from - room; left && victim; left--) {
      sum ^= entryAt(BY_CHILD, homeOf(hashKey(externalOf(victim)))) ^ ownerOf(linkOf(victim) & INDEX_MASK);
      sum ^= entryAt(BY_EDGE, homeOf(hashEdge(parentOf(victim), kindOf(victim), localOf(victim))));
      victim = prevOf(victim);
    }
  }
  store<u32>(SEEN, sum); // keeps the reads alive
}

/**
 * Learns stored events from INPUT and REQUEST, in order. `digests`: children are whole digests. Returns how many blocks were learned or
 * confirmed; the rest taught nothing.
 */
export function learn(events: u32, salted: bool, digests: bool): u32 {
  setCell(WALKED, 0);
  let children = INPUT + <usize>events * HEADER;
  let locals = REQUEST;
  let left = EVENT_BLOCKS;
  let learned: u32 = 0;
  for (let header = INPUT; events; events--, header += HEADER) {
    const blocks = load<u32>(header, 8);
    if (blocks > left) break;
    left -= blocks;
    learned += learnOne(load<u32>(header, 12) != 0, load<u64>(header), children, locals, blocks, salted, digests);
    children += <usize>blocks << (digests ? 5 : 3);
    locals += <usize>blocks << 3;
  }
  return learned;
}

function learnOne(hasParent: bool, parent: u64, children: usize, locals: usize, blocks: u32, salted: bool, digests: bool): u32 {
  if (repeats(children, digests, blocks, hasParent, parent, SEEN)) {
    count(REPEATED);
    return 0;
  }
  if (!hasParent) parent = 0;
  let kind = hasParent ? 0 : ROOT;
  let parentSlot: u32 = hasParent ? findChild(hashKey(parent), parent, 0) : 0;
  const assumed = hasParent && !salted && (!parentSlot || (linkOf(parentSlot) & (ASSUMED | SALTED)) != 0);
  const marks: u32 = (assumed ? ASSUMED : 0) | (salted ? SALTED : 0);
  let anchor: u32 = 0;
  let touched: u32 = 0;
  for (let i: u32 = 0; i < blocks; i++) {
    const local = load<u64>(locals + (<usize>i << 3));
    const child = childAt(children, i, digests);
    const drops = cell(DROPS);
    let slot: u32;
    let place: u64 = 0; // hash of the edge
    if (parentSlot && (flagsOf(parentSlot + 1) & (LIVE | FOLLOWS)) == (LIVE | FOLLOWS) && localOf(parentSlot + 1) == local) slot = parentSlot + 1;
    else {
      place = hashEdge(parent, kind, local);
      slot = findHashedEdge(place, parent, kind, local);
    }
    if (slot) {
      if (flagsOf(slot) & CONFLICT) return i;
      moveBehind(anchor, slot, slot);
      anchor = slot;
      if (externalOf(slot) != child) {
        conflict(slot);
        return i;
      }
      const link = linkOf(slot);
      if (link & ASSUMED && !assumed) setLink(slot, (link & ~(ASSUMED | SALTED)) | marks);
      if (digests) confirmHigh(slot, children + (<usize>i << 5));
    } else {
      if (i >= touched) {
        touched = min(blocks, i + AHEAD);
        touchLines(children, locals, i, touched, parent, kind, digests);
      }
      const hash = hashKey(child);
      let carried: u32 = 0; // a replaced edge whose known digest passes on
      const other = findChild(hash, child, 0);
      if (other) {
        if (flagsOf(other) & CONFLICT) return i;
        const assumedOther = (linkOf(other) & ASSUMED) != 0;
        if (assumedOther && !assumed) {
          if (linkOf(other) & KNOWN) carried = other;
          removeEdge(other);
          count(REPLACED);
        } else {
          if (assumed && !assumedOther) count(OUTRANKED);
          else conflict(other);
          return i;
        }
      }
      if (cell(EDGES) >= EDGE_CAP) {
        const victim = prevOf(0);
        if (victim == anchor) {
          count(FULL_EVENTS);
          return i;
        }
        if (victim == parentSlot) parentSlot = 0;
        removeEdge(victim);
        count(EDGE_EVICTIONS);
      }
      slot = insertEdge(parent, kind, local, child, place, hash, parentSlot, marks);
      count(LEARNED);
      insertBehind(anchor, slot);
      anchor = slot;
      if (carried) confirmHigh(slot, highOf(carried));
      if (digests) confirmHigh(slot, children + (<usize>i << 5));
      if (cell(DROPS) == drops) attachDigest(slot, hash);
    }
    if (cell(DROPS) != drops) {
      anchor = 0;
      slot = 0;
    }
    parent = child;
    kind = 0;
    parentSlot = slot;
  }
  return blocks;
}

/** Puts a new edge of that kind into slots and tables, given hashEdge and hashKey(child); its place in the LRU list is the caller's to give. */
export function insertEdge(parent: u64, kind: u32, local: u64, child: u64, place: u64, hash: u64, parentSlot: u32, marks: u32): u32 {
  const slot = freeSlot(parentSlot);
  takeSlot(slot);
  setCell(EDGES, cell(EDGES) + 1);
  setKey(slot, local, child, parent);
  setLink(slot, marks);
  let flags: u32 = LIVE | kind;
  if (parentSlot && parentSlot == slot - 1) flags |= FOLLOWS;
  else if (parentSlot) setJump(parentSlot, slot);
  setFlags(slot, flags);
  setDone(slot, 0);
  adoptFollower(slot);
  insertEntry(BY_EDGE, place, slot);
  insertEntry(BY_CHILD, hash, slot);
  return slot;
}

/** The children of one event, laid out as for `learn`, were announced in contradictory ways: edges to them lead nowhere any more. */
export function distrust(digests: bool): void {
  setCell(WALKED, 0);
  const blocks = min(load<u32>(INPUT, 8), EVENT_BLOCKS);
  for (let i: u32 = 0; i < blocks; i++) {
    const child = childAt(INPUT + HEADER, i, digests);
    const slot = findChild(hashKey(child), child, 0);
    if (slot && !(flagsOf(slot) & CONFLICT)) conflict(slot);
  }
}
