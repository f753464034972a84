// Which blocks are cold. One list of all blocks, hottest first, in which a parent always stands before its children: so the last is always
// a leaf, and eviction needs no search. A lookup moves the blocks it walked to the front as they are, parents first; a new block is put right
// behind its parent. Blocks of a chain are mostly neighbours in the list and are moved together, in one splice.
//
// An event that extends a chain says that the chain is in use. Moving its whole path for each block that a decoding request adds would cost
// more than it tells, so that happens only when the path has not been hot lately: in this era or the one before. An era is as long as it takes to make
// an eighth of the cap of new blocks, or to make four caps of blocks hot: so a new block costs at most a few such moves, however long paths are.
import { CAP, ERA, eraOf, nextOf, parentOf, prevOf, setEra, setNext, setPrev } from './layout';

export let era: u32 = 0;
/** What a new block counts in an era, where one made hot counts 1. */
const NEW: u32 = 32;
const ERA_CAPS: u32 = 4;
let spent: u32 = 0; // of this era

function spend(by: u32): void {
  spent += by;
  if (spent <= CAP * ERA_CAPS) return;
  spent = 0;
  era = (era + 1) & 255;
}
/** The block is hot now. */
function heat(entry: u32): void {
  if (eraOf(entry) == era) return;
  setEra(entry, era);
  spend(1);
}
/** So are these entries in a row, if any. */
export function heatRow(from: u32, to: u32): void {
  if (from > to) return;
  spend(to - from + 1);
  if (eraOf(from) != era || eraOf(to) != era) memory.fill(ERA + from, <u8>era, to - from + 1);
}
/** A block put right behind `parent` is as hot as that. */
export function heatLike(entry: u32, parent: u32): void { setEra(entry, parent ? eraOf(parent) : era); }
/** There is a new block. */
export function age(): void { spend(NEW); }
@inline export function isHot(entry: u32): bool { return ((era - eraOf(entry)) & 255) < 2; }

/** Moves the neighbours `first` … `last` right behind `anchor`, which is none of them. */
export function splice(first: u32, last: u32, anchor: u32): void {
  const before = prevOf(first);
  if (before == anchor) return;
  const after = nextOf(last);
  setNext(before, after);
  setPrev(after, before);
  const next = nextOf(anchor);
  setNext(anchor, first);
  setPrev(first, anchor);
  setNext(last, next);
  setPrev(next, last);
}
/** Puts a block that is in no list right behind `anchor`. */
export function link(entry: u32, anchor: u32): void {
  const next = nextOf(anchor);
  setNext(anchor, entry);
  setPrev(entry, anchor);
  setNext(entry, next);
  setPrev(next, entry);
}
export function unlink(entry: u32): void {
  const before = prevOf(entry);
  const after = nextOf(entry);
  setNext(before, after);
  setPrev(after, before);
}
/** Moves a block and all before it to the front, and heats them. */
export function heatPath(last: u32): void {
  while (last) {
    let first = last;
    heat(first);
    let parent = parentOf(first);
    while (parent && prevOf(first) == parent) {
      first = parent;
      heat(first);
      parent = parentOf(first);
    }
    splice(first, last, 0);
    last = parent;
  }
}
