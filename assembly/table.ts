// The fixed open-addressing index behind edges, child hashes and digests: linear probing, at most half full, deletion by
// backward shift, so there are no tombstones, no rehash and no growth, ever.
//
// An entry is 32 bits: 7 low bits of its home position | hash bits | index of what it names. The home bits let a deletion decide what
// may move without looking at any key, and tell neighbours with other homes apart while probing. They suffice while nothing stands
// 128 or more places from home; should that ever happen, deletions look the keys up again (`spread` remembers).
// The digest table's entries carry the residency generation in their upper half: an older one counts as empty.
import {
  CHILD_TABLE, DIGEST_TABLE, EDGE_TABLE, HASH_BITS, INDEX_BITS, INDEX_MASK, RECORDS, TABLE_BITS, TABLE_MASK,
} from './layout';
import { cell, CHILD_SPREAD, DIGEST_SPREAD, EDGE_SPREAD, GENERATION, setCell, tableSeed } from './cells';
import { DERIVED, externalOf, flagsOf, kindOf, localOf, parentOf } from './slots';

export const BY_EDGE: i32 = 0; // (parent, kind, local) → slot
export const BY_CHILD: i32 = 1; // external hash → slot, at most one of a learned edge and one of a derived one
export const BY_DIGEST: i32 = 2; // low64 → record

const HASH_MASK: u32 = (1 << HASH_BITS) - 1;
const NEAR: u32 = 128;

/** Finaliser of two multiply-xorshift rounds: every input bit reaches the home position. */
@inline function finish(x: u64): u64 {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}
@inline export function hashKey(key: u64): u64 { return finish(key ^ tableSeed()); }
@inline export function hashEdge(parent: u64, kind: u32, local: u64): u64 {
  return finish(((parent + <u64>kind) * 0x9e3779b97f4a7c15) ^ rotl(local * 0xc2b2ae3d27d4eb4f, 32) ^ tableSeed());
}
@inline export function homeOf(hash: u64): u32 { return <u32>(hash >> (64 - TABLE_BITS)); }
@inline function tagOf(hash: u64): u32 { return ((homeOf(hash) & (NEAR - 1)) << 25) | ((<u32>hash & HASH_MASK) << INDEX_BITS); }

@inline export function lowOf(record: u32): u64 { return load<u64>(RECORDS + (<usize>record << 6), 24); }

@inline export function entryAt(table: i32, place: u32): u32 {
  if (table == BY_DIGEST) {
    const entry = load<u64>(<usize>place << 3, DIGEST_TABLE);
    return <u32>(entry >> 32) == cell(GENERATION) ? <u32>entry : 0;
  }
  return table == BY_EDGE ? load<u32>(<usize>place << 2, EDGE_TABLE) : load<u32>(<usize>place << 2, CHILD_TABLE);
}
@inline function setEntry(table: i32, place: u32, entry: u32): void {
  if (table == BY_DIGEST) store<u64>(<usize>place << 3, (<u64>cell(GENERATION) << 32) | <u64>entry, DIGEST_TABLE);
  else if (table == BY_EDGE) store<u32>(<usize>place << 2, entry, EDGE_TABLE);
  else store<u32>(<usize>place << 2, entry, CHILD_TABLE);
}
@inline function spreadCell(table: i32): usize { return table == BY_DIGEST ? DIGEST_SPREAD : table == BY_EDGE ? EDGE_SPREAD : CHILD_SPREAD; }

/** The slot of edge (parent, local) of that kind, 0 = none. */
@inline export function findEdge(parent: u64, kind: u32, local: u64): u32 { return findHashedEdge(hashEdge(parent, kind, local), parent, kind, local); }
/** The same, given hashEdge of them. */
export function findHashedEdge(hash: u64, parent: u64, kind: u32, local: u64): u32 {
  const tag = tagOf(hash);
  let place = homeOf(hash);
  while (true) {
    const entry = entryAt(BY_EDGE, place);
    if (!entry) return 0;
    const slot = entry ^ tag;
    if (slot <= INDEX_MASK && localOf(slot) == local && parentOf(slot) == parent && kindOf(slot) == kind) return slot;
    place = (place + 1) & TABLE_MASK;
  }
}
/** The slot of the learned edge (`derived` 0) or the derived one (DERIVED) whose child is `external`, given hashKey(external); 0 = none. */
export function findChild(hash: u64, external: u64, derived: u32): u32 {
  const tag = tagOf(hash);
  let place = homeOf(hash);
  while (true) {
    const entry = entryAt(BY_CHILD, place);
    if (!entry) return 0;
    const slot = entry ^ tag;
    if (slot <= INDEX_MASK && externalOf(slot) == external && (flagsOf(slot) & DERIVED) == derived) return slot;
    place = (place + 1) & TABLE_MASK;
  }
}
/** The record of the resident digest with that low64, given hashKey(low); 0 = none. */
@inline export function findDigest(hash: u64, low: u64): u32 {
  const tag = tagOf(hash);
  let place = homeOf(hash);
  while (true) {
    const entry = entryAt(BY_DIGEST, place);
    if (!entry) return 0;
    const record = entry ^ tag;
    if (record <= INDEX_MASK && lowOf(record) == low) return record;
    place = (place + 1) & TABLE_MASK;
  }
}
@inline export function insertEntry(table: i32, hash: u64, index: u32): void {
  const home = homeOf(hash);
  let place = home;
  while (entryAt(table, place)) place = (place + 1) & TABLE_MASK;
  const spread = (place - home) & TABLE_MASK;
  if (spread > cell(spreadCell(table))) setCell(spreadCell(table), spread);
  setEntry(table, place, tagOf(hash) | index);
}
@inline function findEntry(table: i32, hash: u64, index: u32): u32 {
  const wanted = tagOf(hash) | index;
  let place = homeOf(hash);
  while (entryAt(table, place) != wanted) place = (place + 1) & TABLE_MASK;
  return place;
}
/** Lets the entry of `from` name `to`. */
@inline export function renameEntry(table: i32, hash: u64, from: u32, to: u32): void {
  setEntry(table, findEntry(table, hash, from), tagOf(hash) | to);
}
@inline function homeOfIndex(table: i32, index: u32): u32 {
  if (table == BY_DIGEST) return homeOf(hashKey(lowOf(index)));
  if (table == BY_CHILD) return homeOf(hashKey(externalOf(index)));
  return homeOf(hashEdge(parentOf(index), kindOf(index), localOf(index)));
}
/** Removes the entry; what stood behind it and may, moves up. The keys of all entries must still be readable. */
@inline function removeEntry(table: i32, hash: u64, index: u32): void {
  let hole = findEntry(table, hash, index);
  const near = cell(spreadCell(table)) < NEAR;
  let place = hole;
  while (true) {
    place = (place + 1) & TABLE_MASK;
    const entry = entryAt(table, place);
    if (!entry) break;
    const spread = near ? (place - (entry >>> 25)) & (NEAR - 1) : (place - homeOfIndex(table, entry & INDEX_MASK)) & TABLE_MASK;
    if (spread >= ((place - hole) & TABLE_MASK)) {
      setEntry(table, hole, entry);
      hole = place;
    }
  }
  setEntry(table, hole, 0);
}
export function removeEdgeEntry(hash: u64, slot: u32): void { removeEntry(BY_EDGE, hash, slot); }
export function removeChildEntry(hash: u64, slot: u32): void { removeEntry(BY_CHILD, hash, slot); }
export function removeDigestEntry(hash: u64, record: u32): void { removeEntry(BY_DIGEST, hash, record); }
/** Empties the two tables of edges (the digest table empties with the generation). */
export function emptyEdgeTables(): void {
  memory.fill(EDGE_TABLE, 0, <usize>4 << TABLE_BITS);
  memory.fill(CHILD_TABLE, 0, <usize>4 << TABLE_BITS);
  setCell(EDGE_SPREAD, 0);
  setCell(CHILD_SPREAD, 0);
}
/** The digest table's old entries must not look current again once the generation number starts over. */
export function scrubDigestTable(): void {
  memory.fill(DIGEST_TABLE, 0, <usize>8 << TABLE_BITS);
}
