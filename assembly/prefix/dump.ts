// What a rank holds, written out in parts. Entries come in the order of the list, parents before children. Rows of 32 bytes in LOCALS.
import { ALIAS_PAD, ALIAS_PLACES, eligible, keyOf, localBetween, LOCALS, nameOf, nextOf, parentOf, PROVENANCE, rootKey, setOf } from './layout';
import { entryAt, nameAt, rankAt } from './aliases';
import { DEVICE, DISK, hasIn, holds, HOST } from './sets';

const ROW_BYTES: usize = 32;
const MOST_ROWS: u32 = 1024;
let written: u32 = 0;
export function rows(): u32 { return written; }

/**
 * The rank's entries from `from` on (0 = the first): rows of entry u32, parent u32, first external hash u64, local hash u64, tiers u32 as bits,
 * eligible u32. Returns the entry to go on with, 0 at the end.
 */
export function entriesOf(rank: u32, from: u32): u32 {
  written = 0;
  let entry = from ? from : nextOf(0);
  for (; entry && written < MOST_ROWS; entry = nextOf(entry)) {
    const set = setOf(entry);
    if (!holds(set, rank)) continue;
    const row = LOCALS + <usize>(written++) * ROW_BYTES;
    const parent = parentOf(entry);
    store<u32>(row, entry);
    store<u32>(row, parent, 4);
    store<u64>(row, nameOf(entry), 8);
    store<u64>(row, localBetween(parent ? keyOf(parent) : rootKey(), keyOf(entry)), 16);
    store<u32>(row, u32(hasIn(set, rank, DEVICE)) | (u32(hasIn(set, rank, HOST)) << 1) | (u32(hasIn(set, rank, DISK)) << 2), 24);
    store<u32>(row, u32(PROVENANCE && eligible(entry)), 28);
  }
  return entry;
}
/** The rank's own names from place `from` on: rows of entry u32, -, external hash u64. Returns the place to go on with, 0 at the end. */
export function namesOf(rank: u32, from: u32): u32 {
  written = 0;
  let place = from;
  for (; place < ALIAS_PLACES + ALIAS_PAD && written < MOST_ROWS; place++) {
    const entry = entryAt(place);
    if (!entry || rankAt(place) != rank || !holds(setOf(entry), rank)) continue;
    const row = LOCALS + <usize>(written++) * ROW_BYTES;
    store<u32>(row, entry);
    store<u64>(row, nameAt(place), 8);
  }
  return place < ALIAS_PLACES + ALIAS_PAD ? place : 0;
}
