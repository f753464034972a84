// Who holds a block, interned: the ranks that have it on their device, host and disk, and those of them that call it by a name of their
// own (aliases.ts) and not by its first; one bit a rank each. Blocks of a chain mostly share
// one, so an entry carries two bytes whatever the size of the fleet, and a walk looks at ranks only where the set changes. Sets are counted
// by their entries and go with the last; there are at most SET_CAP. Equal sets have one number, but for those that `forget` leaves until
// their entries are looked through.
import {
  add, SCRATCH, SET_CAP, SET_COUNT, SET_HASH, SET_MASK, SET_REFS, SET_STRIDE, SET_TABLE, SET_TIERS, SETS, WORDS,
} from './layout';

export const DEVICE: u32 = 0;
export const HOST: u32 = 1;
export const DISK: u32 = 2;
const OWN: u32 = 3;
/** Of SET_TIERS: somebody holds the block on host or disk. */
export const LOWER: u32 = 6;
export const FULL: u32 = 0xffff; // no set: SET_CAP is reached
// Of SET_TIERS, beside the tiers:
const FREE: u8 = 128; // the number is not in use
const UNLISTED: u8 = 64; // not in the table: empty, or the twin of one that is (`forget`)
const TIERS: u32 = 7;

let top: u32 = 0; // sets ever used
let free: u32 = 0; // first of the free ones, which are linked by SET_REFS
// The last transition, since the blocks of an event mostly come from and go to the same sets.
let memoFrom: u32 = FULL;
let memoOp: u32 = 0;
let memoTo: u32 = 0;

@inline function recordBytes(): usize { return <usize>WORDS * SET_STRIDE; }
@inline export function recordOf(set: u32): usize { return SETS + <usize>set * recordBytes(); }
@inline function hashOf(set: u32): u32 { return load<u32>(SET_HASH + (<usize>set << 2)); }
@inline export function refsOf(set: u32): u32 { return load<u32>(SET_REFS + (<usize>set << 2)); }
@inline function setRefs(set: u32, refs: u32): void { store<u32>(SET_REFS + (<usize>set << 2), refs); }
/** Which tiers of the set have somebody, bit by bit. */
@inline export function tiersOf(set: u32): u32 { return <u32>load<u8>(SET_TIERS + <usize>set) & TIERS; }
@inline export function isListed(set: u32): bool { return !(load<u8>(SET_TIERS + <usize>set) & UNLISTED); }
@inline function slot(place: u32): usize { return SET_TABLE + (<usize>place << 1); }

/** What a bit adds to a set's hash. */
@inline function hashPart(rank: u32, plane: u32): u32 {
  let x = (<u64>(rank * 4 + plane) + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9;
  return <u32>(x >> 32);
}
@inline function bitAt(record: usize, rank: u32, plane: u32): usize { return record + (<usize>(plane * WORDS + (rank >> 6)) << 3); }
@inline export function hasIn(set: u32, rank: u32, plane: u32): bool {
  return ((load<u64>(bitAt(recordOf(set), rank, plane)) >> <u64>(rank & 63)) & 1) != 0;
}
/** Whether nobody has the block: 0, or a set that has lost its last rank (`forget`). */
@inline export function isEmpty(set: u32): bool { return !set || !tiersOf(set); }
/** Whether the rank has the block in some tier. */
export function holds(set: u32, rank: u32): bool {
  if (!set) return false;
  const tiers = tiersOf(set);
  return hasIn(set, rank, DEVICE) || ((tiers & LOWER) != 0 && (hasIn(set, rank, HOST) || hasIn(set, rank, DISK)));
}

/** Whether the rank has a name of its own for the block, which it holds. */
@inline export function namesItself(set: u32, rank: u32): bool { return hasIn(set, rank, OWN); }

/** How many ranks have a name of their own for the block. */
export function ownNames(set: u32): u32 {
  if (!set) return 0;
  let names: u64 = 0;
  const from = recordOf(set) + (<usize>(OWN * WORDS) << 3);
  for (let word: u32 = 0; word < WORDS; word++) names += popcnt(load<u64>(from + (<usize>word << 3)));
  return <u32>names;
}

/**
 * The same set with the rank in the tier, and under a name of its own if it comes with one; its entry counted. FULL when it would be one set
 * too many.
 */
export function joined(set: u32, rank: u32, tier: u32, own: bool): u32 {
  if (set && hasIn(set, rank, tier)) return counted(set);
  return transition(set, rank, (1 << tier) | (u32(own) << OWN), true);
}
/** The same set without the rank in the tiers (bits); its entry counted. 0 when nobody is left. */
export function parted(set: u32, rank: u32, tiers: u32): u32 { return transition(set, rank, tiers, false); }
@inline function counted(set: u32): u32 {
  setRefs(set, refsOf(set) + 1);
  return set;
}

/** The set with the rank in or out of `planes` (bits of tiers, and OWN). */
function transition(set: u32, rank: u32, planes: u32, joins: bool): u32 {
  const op = (rank << 5) | (planes << 1) | u32(joins);
  if (set == memoFrom && op == memoOp) return memoTo ? counted(memoTo) : 0;
  let hash: u32 = 0;
  if (set) {
    copy(SCRATCH, recordOf(set));
    hash = hashOf(set);
  } else clear(SCRATCH);
  for (let plane: u32 = 0; plane <= OWN; plane++) if ((planes >> plane) & 1) hash ^= put(rank, plane, joins);
  if (!joins && !inScratch(rank, DEVICE) && !inScratch(rank, HOST) && !inScratch(rank, DISK)) hash ^= put(rank, OWN, false);
  const to = intern(hash);
  if (to != FULL) {
    memoFrom = set;
    memoOp = op;
    memoTo = to;
  }
  return to;
}
@inline function inScratch(rank: u32, plane: u32): bool { return ((load<u64>(bitAt(SCRATCH, rank, plane)) >> <u64>(rank & 63)) & 1) != 0; }
/** Puts a bit of SCRATCH in or out; what that adds to the hash. */
function put(rank: u32, plane: u32, bit: bool): u32 {
  if (inScratch(rank, plane) == bit) return 0;
  const at = bitAt(SCRATCH, rank, plane);
  store<u64>(at, load<u64>(at) ^ (<u64>1 << <u64>(rank & 63)));
  return hashPart(rank, plane);
}
/** One entry less has the set. */
export function release(set: u32): void {
  if (!set) return;
  const refs = refsOf(set) - 1;
  setRefs(set, refs);
  if (refs) return;
  if (isListed(set)) unlist(set);
  store<u8>(SET_TIERS + <usize>set, FREE);
  setRefs(set, free);
  free = set;
  add(SET_COUNT, -1);
  memoFrom = FULL;
}

@inline function copy(to: usize, from: usize): void {
  const end = to + recordBytes();
  for (; to < end; to += 8, from += 8) store<u64>(to, load<u64>(from));
}
@inline function clear(at: usize): void {
  const end = at + recordBytes();
  for (; at < end; at += 8) store<u64>(at, 0);
}
function same(a: usize, b: usize): bool {
  const end = a + recordBytes();
  for (; a < end; a += 8, b += 8) if (load<u64>(a) != load<u64>(b)) return false;
  return true;
}
/** Which tiers of a record have somebody. */
function tiersIn(record: usize): u32 {
  let tiers: u32 = 0;
  for (let tier: u32 = 0; tier < 3; tier++) {
    let any: u64 = 0;
    for (let word: u32 = 0; word < WORDS; word++) any |= load<u64>(record + (<usize>(tier * WORDS + word) << 3));
    if (any) tiers |= 1 << tier;
  }
  return tiers;
}

/** The number of the set in SCRATCH, with one entry more. */
function intern(hash: u32): u32 {
  const tiers = tiersIn(SCRATCH);
  if (!tiers) return 0;
  let place = hash & SET_MASK;
  while (true) {
    const set = <u32>load<u16>(slot(place));
    if (!set) break;
    if (hashOf(set) == hash && same(recordOf(set), SCRATCH)) return counted(set);
    place = (place + 1) & SET_MASK;
  }
  let set = free;
  if (set) free = refsOf(set);
  else if (top < SET_CAP) set = ++top;
  else return FULL;
  copy(recordOf(set), SCRATCH);
  store<u32>(SET_HASH + (<usize>set << 2), hash);
  store<u8>(SET_TIERS + <usize>set, <u8>tiers);
  setRefs(set, 1);
  store<u16>(slot(place), <u16>set);
  add(SET_COUNT, 1);
  return set;
}
/** Takes a set out of the table; what stands behind it and may, moves up. */
function unlist(set: u32): void {
  let hole = hashOf(set) & SET_MASK;
  while (<u32>load<u16>(slot(hole)) != set) hole = (hole + 1) & SET_MASK;
  for (let place = (hole + 1) & SET_MASK; ; place = (place + 1) & SET_MASK) {
    const other = <u32>load<u16>(slot(place));
    if (!other) break;
    if (((place - hashOf(other)) & SET_MASK) < ((place - hole) & SET_MASK)) continue;
    store<u16>(slot(hole), <u16>other);
    hole = place;
  }
  store<u16>(slot(hole), 0);
}

/**
 * Takes a rank out of every set. Those that lose their last one, and those that become equal to another, stay as they are but unlisted, until their
 * entries are looked through (`current`); true when there are any.
 */
export function forget(rank: u32): bool {
  memoFrom = FULL;
  memory.fill(SET_TABLE, 0, (<usize>SET_MASK + 1) << 1);
  let unlisted = false;
  for (let set: u32 = 1; set <= top; set++) {
    if (load<u8>(SET_TIERS + <usize>set) == FREE) continue;
    const record = recordOf(set);
    let hash = hashOf(set);
    for (let plane: u32 = 0; plane <= OWN; plane++) {
      if (!hasIn(set, rank, plane)) continue;
      const at = bitAt(record, rank, plane);
      store<u64>(at, load<u64>(at) ^ (<u64>1 << <u64>(rank & 63)));
      hash ^= hashPart(rank, plane);
    }
    store<u32>(SET_HASH + (<usize>set << 2), hash);
    const tiers = tiersIn(record);
    const listed = tiers != 0 && list(set, hash);
    store<u8>(SET_TIERS + <usize>set, listed ? <u8>tiers : <u8>tiers | UNLISTED);
    if (!listed) unlisted = true;
  }
  return unlisted;
}
/** Puts a set into the table; false where an equal one is there already. */
function list(set: u32, hash: u32): bool {
  let place = hash & SET_MASK;
  while (true) {
    const other = <u32>load<u16>(slot(place));
    if (!other) break;
    if (hashOf(other) == hash && same(recordOf(other), recordOf(set))) return false;
    place = (place + 1) & SET_MASK;
  }
  store<u16>(slot(place), <u16>set);
  return true;
}
/** The listed set that is equal to an unlisted one, its entry counted: 0 for an empty one, FULL where there is no room to list it. */
export function current(set: u32): u32 {
  if (!tiersOf(set)) return 0;
  copy(SCRATCH, recordOf(set));
  return intern(hashOf(set));
}
