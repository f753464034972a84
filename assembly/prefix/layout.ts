// The GPU prefix index's memory on one page. Its size is the host's choice (a byte budget), so bases and caps are computed once, when
// the index is configured, and never change; hot loops copy them into locals. An entry is one block of content, named by the chain of
// local hashes before it. Entry 0 is the sentinel: parent of every first block, and both ends of the list of coldness.
//
//   region      stride   entries        what
//   KEY         8        CAP + 2        internal mix of the chain of local hashes up to the block; 0 = free
//   NAME        8        CAP + 1        external hash under which the block was first announced
//   LINKS       12       CAP + 2        all that changes of a block, in one place, of 3, 3, 3, 2 and 1 bytes:
//     next, prev                        list of coldness, hottest first; of free entries, the list of those (order.ts, entries.ts)
//     parent                            the block before; bit 23: announced as eligible only
//     set                               who holds it: an interned set (sets.ts); 0 = nobody
//     kids                              blocks right behind it, 127 meaning "more"; bit 7: some rank has a name of its own for it
//   ERA         1        CAP + 1        when it was last hot, coarsely (order.ts)
//   KEY_TABLE   4        11/8 CAP       mix → entry (table.ts)
//   NAME_TABLE  4        11/8 CAP       first external hash → entry
//                        = 40 bytes an entry
//   ALIASES     13       ALIAS_PLACES   (rank, external hash) → entry, where a rank has a name of its own (aliases.ts)
//                        = 17 bytes a pair of block and rank that is known; those left behind may fill it to 15/16
//   SETS        32 × WORDS   SET_CAP    each set's ranks on device, host and disk, and those with a name of their own; one bit a rank
//   SET_HASH, SET_REFS, SET_TIERS, SET_TABLE   13 a set at most

/** Blocks in one call; longer events and prompts come in parts. */
export const PART_BLOCKS: u32 = 4096;
export const RANK_CAP: u32 = 1024;
/** Indices are 23 bits: the parent's three bytes have a flag besides, and their largest value marks free entries. */
const MOST_ENTRIES: usize = (1 << 23) - 2;
/** 16 bits, and the largest value is no set. */
const MOST_SETS: usize = 65534;
/** Part of the budget that sets may take at most: 1 / 8; of the rest, aliases take a quarter. */
const SETS_SHARE: usize = 8;
const ALIAS_SHARE: usize = 4;
export const ALIAS_BYTES: usize = 13;
/** Bytes of a set for each word of ranks. */
export const SET_STRIDE: usize = 32;
/** Places behind a table's last home, so that probing never wraps. */
export const PAD: u32 = 128;
export const ALIAS_PAD: u32 = 1024;
const LINE: usize = 63;
const GUARD: usize = 64;

// [0, 0x10000) belongs to the compiler's static data and to these small areas.
export const CELLS: usize = 0x4000; // u32 each, for `stats` (cells below)
export const ALIVE: usize = 0x4400; // ranks that a walk still follows on device, host and disk: 3 × 128 bytes
export const ACTIVE: usize = 0x4600; // u8: pairs of words in which some bit of them is set
export const SCRATCH: usize = 0x4800; // a set being made
export const ENDS: usize = 0x5000; // u32 per rank: where device, host and disk ended; 3 × 4,096 bytes
export const LOCALS: usize = 0x10000; // the part's local hashes, and what a dump returns
export const NAMES: usize = LOCALS + <usize>PART_BLOCKS * 8;
const TABLES: usize = NAMES + <usize>PART_BLOCKS * 8 + GUARD;

export let CAP: u32 = 0;
export let WORDS: u32 = 0; // 64-bit words of a set of ranks
export let KEY: usize = 0;
export let NAME: usize = 0;
export let LINKS: usize = 0;
export let ERA: usize = 0;
export let KEY_TABLE: usize = 0;
export let NAME_TABLE: usize = 0;
export let TABLE_PLACES: u32 = 0;
export let INDEX_BITS: u32 = 0;
export let ALIASES: usize = 0;
export let ALIAS_PLACES: u32 = 0;
export let ALIAS_CAP: u32 = 0;
/** Records with those left behind. */
export let ALIAS_LIMIT: u32 = 0;
export let SET_CAP: u32 = 0;
export let SETS: usize = 0;
export let SET_HASH: usize = 0;
export let SET_REFS: usize = 0;
export let SET_TIERS: usize = 0;
export let SET_TABLE: usize = 0;
export let SET_MASK: u32 = 0;
export let SEED: u64 = 0;
export let PROVENANCE: bool = false;
let at: usize = 0;

@inline function take(bytes: usize): usize {
  const from = at;
  at = (at + bytes + GUARD + LINE) & ~LINE;
  return from;
}

/** Lays the memory out, once. `words` × 64 ranks. */
export function lay(words: u32, seed: u64, provenance: bool): void {
  const budget = (<usize>memory.size() << 16) - TABLES - 4096;
  WORDS = words;
  SEED = seed;
  PROVENANCE = provenance;
  at = TABLES;
  let sets = budget / SETS_SHARE / (SET_STRIDE * words + 13);
  if (sets > MOST_SETS) sets = MOST_SETS;
  SET_CAP = <u32>sets;
  let places: u32 = 1;
  while (places < SET_CAP * 2) places <<= 1;
  SET_MASK = places - 1;
  SETS = take((sets + 1) * SET_STRIDE * words);
  SET_HASH = take((sets + 1) * 4);
  SET_REFS = take((sets + 1) * 4);
  SET_TIERS = take(sets + 1);
  SET_TABLE = take(<usize>places * 2);
  const rest = budget + TABLES - at;
  const aliasPlaces = rest / ALIAS_SHARE / ALIAS_BYTES;
  ALIAS_PLACES = <u32>aliasPlaces - ALIAS_PAD;
  ALIAS_CAP = <u32>(<u64>ALIAS_PLACES * 49 / 64);
  ALIAS_LIMIT = <u32>(<u64>ALIAS_PLACES * 15 / 16);
  ALIASES = take(aliasPlaces * ALIAS_BYTES);
  let entries = (budget + TABLES - at - 16 * (GUARD + LINE) - 8 * <usize>PAD) / 40;
  if (entries > MOST_ENTRIES) entries = MOST_ENTRIES;
  CAP = <u32>entries;
  INDEX_BITS = 32 - clz(CAP);
  TABLE_PLACES = <u32>(<u64>CAP * 11 / 8);
  KEY = take((entries + 2) * 8);
  NAME = take((entries + 2) * 8);
  LINKS = take((entries + 2) * LINK_BYTES);
  ERA = take(entries + 2);
  KEY_TABLE = take((<usize>TABLE_PLACES + PAD) * 4);
  NAME_TABLE = take((<usize>TABLE_PLACES + PAD) * 4);
}

// Cells
export const ENTRIES: usize = 0;
export const ALIAS_COUNT: usize = 1;
export const SET_COUNT: usize = 2;
export const EVICTED: usize = 3;
export const UNKNOWN_PARENTS: usize = 4;
export const REFUSED_BY_SETS: usize = 5;
export const REFUSED_BY_ALIASES: usize = 6;
export const RENAMED: usize = 7;
export const UNKNOWN_REMOVALS: usize = 8;
export const EVICTED_BY_ALIASES: usize = 9;
export const EVICTED_BY_SETS: usize = 10;
@inline export function cell(index: usize): u32 { return load<u32>(CELLS + (index << 2)); }
@inline export function add(index: usize, by: i32): void { store<u32>(CELLS + (index << 2), cell(index) + by); }

export const LINK_BYTES: usize = 12;
export const PREV_AT: usize = 3;
const PARENT_AT: usize = 6;
export const SET_AT: usize = 9;
const KIDS_AT: usize = 11;
/** The LINKS of an entry. */
@inline export function linksOf(entry: u32): usize { return LINKS + <usize>entry * LINK_BYTES; }

const FLAG: u32 = 1 << 23;
const INDEX: u32 = FLAG - 1;

@inline function three(at: usize): u32 { return load<u32>(at) & 0xffffff; }
@inline function setThree(at: usize, value: u32): void {
  store<u16>(at, <u16>value);
  store<u8>(at, <u8>(value >> 16), 2);
}
@inline export function keyOf(entry: u32): u64 { return load<u64>(KEY + (<usize>entry << 3)); }
@inline export function setKey(entry: u32, key: u64): void { store<u64>(KEY + (<usize>entry << 3), key); }
@inline export function nameOf(entry: u32): u64 { return load<u64>(NAME + (<usize>entry << 3)); }
@inline export function setName(entry: u32, name: u64): void { store<u64>(NAME + (<usize>entry << 3), name); }
@inline export function nextOf(entry: u32): u32 { return three(linksOf(entry)); }
@inline export function setNext(entry: u32, next: u32): void { setThree(linksOf(entry), next); }
@inline export function prevOf(entry: u32): u32 { return three(linksOf(entry) + PREV_AT); }
@inline export function setPrev(entry: u32, prev: u32): void { setThree(linksOf(entry) + PREV_AT, prev); }
@inline export function parentOf(entry: u32): u32 { return three(linksOf(entry) + PARENT_AT) & INDEX; }
/** Also says that it was announced as eligible. */
@inline export function setParent(entry: u32, parent: u32): void { setThree(linksOf(entry) + PARENT_AT, parent | FLAG); }
@inline export function eligible(entry: u32): bool { return (three(linksOf(entry) + PARENT_AT) & FLAG) != 0; }
@inline export function setEligible(entry: u32, yes: bool): void { setThree(linksOf(entry) + PARENT_AT, parentOf(entry) | (yes ? FLAG : 0)); }
@inline export function isFree(entry: u32): bool { return parentOf(entry) == INDEX; }
@inline export function markFree(entry: u32): void { setThree(linksOf(entry) + PARENT_AT, INDEX); }
@inline export function setOf(entry: u32): u32 { return <u32>load<u16>(linksOf(entry) + SET_AT); }
@inline export function putSet(entry: u32, set: u32): void { store<u16>(linksOf(entry) + SET_AT, <u16>set); }
@inline export function eraOf(entry: u32): u32 { return <u32>load<u8>(ERA + <usize>entry); }
@inline export function setEra(entry: u32, era: u32): void { store<u8>(ERA + <usize>entry, <u8>era); }

// KIDS: a count that stays where it is once it has reached MANY, and a flag.
const MANY: u32 = 127;
const ALIASED: u32 = 128;
@inline export function kidsOf(entry: u32): u32 { return <u32>load<u8>(linksOf(entry) + KIDS_AT) & MANY; }
@inline export function addKid(entry: u32): void {
  if (kidsOf(entry) < MANY) store<u8>(linksOf(entry) + KIDS_AT, load<u8>(linksOf(entry) + KIDS_AT) + 1);
}
@inline export function dropKid(entry: u32): void {
  const kids = kidsOf(entry);
  if (kids && kids < MANY) store<u8>(linksOf(entry) + KIDS_AT, load<u8>(linksOf(entry) + KIDS_AT) - 1);
}
@inline export function childless(entry: u32): void { store<u8>(linksOf(entry) + KIDS_AT, 0); }
@inline export function aliased(entry: u32): bool { return (<u32>load<u8>(linksOf(entry) + KIDS_AT) & ALIASED) != 0; }
@inline export function markAliased(entry: u32): void { store<u8>(linksOf(entry) + KIDS_AT, load<u8>(linksOf(entry) + KIDS_AT) | <u8>ALIASED); }

/** The name of the block that follows a block named `key` and has local hash `local`. For one `local` it is one-to-one: see `localBetween`. */
@inline export function mix(key: u64, local: u64): u64 { return rotl((key ^ local) * MULTIPLIER, 32); }
const MULTIPLIER: u64 = 0x9e3779b97f4a7c15;
const INVERSE: u64 = 0xf1de83e19937733d;
/** The local hash that leads from one block to the next. */
@inline export function localBetween(key: u64, next: u64): u64 { return (rotl(next, 32) * INVERSE) ^ key; }
/** The name of what stands before a prompt's first block. */
@inline export function rootKey(): u64 { return SEED * MULTIPLIER; }
