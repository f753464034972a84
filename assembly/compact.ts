// Compaction on touch: moves the edges of the path just walked into neighbouring slots, so that the next walk of it is a scan. Only a
// place changes, never what is known: LRU order, links and tables follow. Meant to run off the request path, within a budget.
import { addCount, cell, MOVED_SLOTS, setCell, WALKED } from './cells';
import {
  adoptFollower, canFollow, chain, CONFLICT, copyHigh, DERIVED, doneOf, externalOf, flagsOf, FOLLOWS, freeExtent, giveSlot, highOf, KIND, kindOf, linkOf, LIVE,
  localOf, loseFollower, nextOf, parentOf, prevOf, ROOT, setDone, setFlags, setKey, setLink, takeSlot,
} from './slots';
import { BY_CHILD, BY_EDGE, hashEdge, hashKey, renameEntry } from './table';
import { adoptRecord } from './residency';
import { LONG_RUN } from './walk';

function moveEdge(from: u32, to: u32): void {
  takeSlot(to);
  const local = localOf(from);
  const external = externalOf(from);
  const parent = parentOf(from);
  const kind = kindOf(from);
  setKey(to, local, external, parent);
  copyHigh(highOf(to), highOf(from));
  setLink(to, linkOf(from));
  adoptRecord(from, to);
  setDone(to, doneOf(from));
  setDone(from, 0);
  renameEntry(BY_EDGE, hashEdge(parent, kind, local), from, to);
  renameEntry(BY_CHILD, hashKey(external), from, to);
  const follows = !(kind & ROOT) && (flagsOf(to - 1) & (LIVE | DERIVED)) == (LIVE | kind) && externalOf(to - 1) == parent;
  setFlags(to, (flagsOf(from) & (LIVE | CONFLICT | KIND)) | (follows ? FOLLOWS : 0));
  const hotter = prevOf(from);
  const colder = nextOf(from);
  setFlags(from, 0);
  loseFollower(from);
  chain(hotter, to);
  chain(to, colder);
  adoptFollower(to);
  giveSlot(from);
}

/** Moves at most `budget` edges of the last walked path; returns how many. Does nothing when the path lies well, or the LRU list has moved on. */
export function compact(budget: u32): u32 {
  let left = cell(WALKED); // the path is the hot end of the LRU list
  let slot = nextOf(0);
  let to: u32 = 0;
  let moved: u32 = 0;
  while (left && moved < budget) {
    let last = slot; // the run that starts here
    let length: u32 = 1;
    while (length < left && nextOf(last) == last + 1 && flagsOf(last + 1) & FOLLOWS) {
      last++;
      length++;
    }
    left -= length;
    const after = nextOf(last);
    if (length >= LONG_RUN) to = 0;
    else {
      for (let from = slot; from <= last && moved < budget; from++) {
        if (to && canFollow(to + 1)) to++;
        else {
          const extent = freeExtent();
          if (extent < 0) {
            finish(moved);
            return moved;
          }
          to = <u32>extent << 4;
        }
        moveEdge(from, to);
        moved++;
      }
    }
    slot = after;
  }
  finish(moved);
  return moved;
}
@inline function finish(moved: u32): void {
  setCell(WALKED, 0);
  addCount(MOVED_SLOTS, moved);
}
