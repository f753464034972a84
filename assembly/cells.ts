// The core's own state: u32 cells (what is) and u64 counters (what has happened), at fixed addresses. Kept in memory rather than
// in globals so that one view shows them all; src/core/stats.ts reads them by the same numbers.
import { CELLS, COUNTERS } from './layout';

export const EDGES: usize = 0; // live edges, conflicted ones included
export const CONFLICTED: usize = 1;
export const DIGESTS: usize = 2;
export const MEMBERS: usize = 3; // (object, medium) pairs in narrow builds, objects in wide ones
export const ORPHAN_DIGESTS: usize = 4; // digests without an edge
export const AMBIGUOUS: usize = 5; // size of the ambiguous set
export const GENERATION: usize = 6; // of residency; what carries an older one is empty
export const RECORD_TOP: usize = 7; // first record never used in this generation
export const RECORD_FREE: usize = 8; // head of the free records
export const ORPHAN_OLDEST: usize = 9;
export const ORPHAN_NEWEST: usize = 10;
export const EXTENT_CURSOR: usize = 11; // where the search for a free extent goes on
export const AMBIGUOUS_ZERO: usize = 12; // 1 when low64 zero is ambiguous (zero marks an empty entry)
export const WALKED: usize = 13; // blocks of the last walk if they lie scattered; 0 once anything else moved the LRU list
export const EXPLAINING: usize = 14; // 1 while an evaluation records what blocked it
export const EDGE_SPREAD: usize = 15; // longest displacement ever seen in EDGE_TABLE …
export const CHILD_SPREAD: usize = 16;
export const DIGEST_SPREAD: usize = 17;
export const GROUP_COUNT: usize = 18;
export const PREFIX_COUNT: usize = 19;
export const STOPPED: usize = 20; // why the last walk ended (walk.ts)
export const DROPS: usize = 21; // times that edges and residency went together
export const LONGEST_PREFIX: usize = 22; // bytes
export const DERIVED_EDGES: usize = 23; // of the live edges
export const LAST_WALKED: usize = 24; // slot of the last edge that the last walk passed, 0 = none
export const LAST_RUNS: usize = 25; // contiguous runs that the last touching walk was made of
export const TABLE_SEED: usize = 26; // u64: this instance's hash seed
export const WHOLE: usize = 28; // 1 while all that the store holds is known: told whole, and nothing of it forgotten since

export const LEARNED: usize = 0; // edges inserted
export const REPEATED: usize = 1; // events that named a block twice
export const REPLACED: usize = 2;
export const OUTRANKED: usize = 3;
export const FULL_EVENTS: usize = 4; // events cut short because they alone fill the cap
export const CONFLICTS: usize = 5;
export const CONFLICT_DROPS: usize = 6;
export const EDGE_EVICTIONS: usize = 7;
export const AMBIGUITIES: usize = 8;
export const AMBIGUITY_DROPS: usize = 9;
export const DIGEST_EVICTIONS: usize = 10;
export const CLEARS: usize = 11;
export const SKIPPED_AMBIGUOUS: usize = 12; // object events of ambiguous hashes
export const REFUSED_OBJECTS: usize = 13; // wide: no room within the budget
export const LOOKUPS: usize = 14;
export const WALKED_BLOCKS: usize = 15;
export const RUNS: usize = 16; // contiguous runs that the walks were made of
export const MOVED_SLOTS: usize = 17;
export const STORED_OBJECTS: usize = 18;
export const REMOVED_OBJECTS: usize = 19;
export const DERIVED_BLOCKS: usize = 20; // digests computed
export const COUNTER_COUNT: usize = 21;

@inline export function cell(index: usize): u32 { return load<u32>(CELLS + (index << 2)); }
@inline export function setCell(index: usize, value: u32): void { store<u32>(CELLS + (index << 2), value); }
@inline export function count(index: usize): void { addCount(index, 1); }
@inline export function addCount(index: usize, by: u64): void {
  store<u64>(COUNTERS + (index << 3), load<u64>(COUNTERS + (index << 3)) + by);
}
@inline export function tableSeed(): u64 { return load<u64>(CELLS + (TABLE_SEED << 2)); }
