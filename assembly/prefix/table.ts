// The index's two tables, from a block's key and from its first external hash to its entry. Unlike the core's table (../table.ts) they
// are 8/11 full at the cap, since memory is counted by the entry here; so entries stand in the order of their homes (Robin Hood), which
// ends a search for what is absent as early as one for what is there, and keeps every entry close to its home.
//
// A place is 32 bits: 7 low bits of the home | hash bits | entry; 0 = empty. The home bits make insertion and deletion work without a look
// at any key. Homes are not masked but scaled, so that the number of places need not be a power of two; nothing wraps.
import { INDEX_BITS, KEY_TABLE, keyOf, NAME_TABLE, nameOf, PAD, SEED, TABLE_PLACES } from './layout';

const HOME_BITS: u32 = 7;
const NEAR: u32 = (1 << HOME_BITS) - 1;
const HOME_SHIFT: u32 = 32 - HOME_BITS;

@inline export function hashKey(key: u64): u64 { return key * 0xd6e8feb86659fd93; }
/** External hashes are the engines' choice: two rounds under a secret seed spread any. */
@inline export function hashName(name: u64): u64 {
  let x = (name ^ SEED) * 0xd6e8feb86659fd93;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}
@inline function homeOf(hash: u64): u32 { return <u32>(((hash >> 32) * <u64>TABLE_PLACES) >> 32); }
/** What a place holds for that hash, without the entry. */
@inline function tagOf(hash: u64, home: u32): u32 {
  const bits = INDEX_BITS;
  return (home << HOME_SHIFT) | (((<u32>hash >>> 3) << bits) & ~(NEAR << HOME_SHIFT));
}
@inline function placeAt(table: usize, place: u32): u32 { return load<u32>(table + (<usize>place << 2)); }
/** How far from its home an entry stands. */
@inline function away(place: u32, held: u32): u32 { return (place - (held >>> HOME_SHIFT)) & NEAR; }

/** The entry of a key, 0 = none. */
export function findKey(key: u64): u32 {
  const hash = hashKey(key);
  const table = KEY_TABLE;
  const mask: u32 = (1 << INDEX_BITS) - 1;
  let place = homeOf(hash);
  const tag = tagOf(hash, place);
  let far: u32 = 0;
  while (true) {
    const held = placeAt(table, place);
    if (!held) return 0;
    const entry = held ^ tag;
    if (entry <= mask) {
      if (keyOf(entry) == key) return entry;
    } else if (away(place, held) < far) return 0;
    far++;
    place++;
  }
}
/** How far from its home `findName` found what it returned. */
export let found: u32 = 0;
/** An entry first announced as `name`, given its hash; 0 = none. Different blocks may have one name: the search begins `from` places behind the home. */
export function findName(hash: u64, name: u64, from: u32): u32 {
  const table = NAME_TABLE;
  const mask: u32 = (1 << INDEX_BITS) - 1;
  const home = homeOf(hash);
  const tag = tagOf(hash, home);
  let place = home + from;
  let far = from;
  while (true) {
    const held = placeAt(table, place);
    if (!held) return 0;
    const entry = held ^ tag;
    if (entry <= mask) {
      if (nameOf(entry) == name) {
        found = far;
        return entry;
      }
    } else if (away(place, held) < far) return 0;
    far++;
    place++;
  }
}
/** Puts an entry in; false where no place is left for it near its home, which leaves the table as it was. */
function insert(table: usize, hash: u64, entry: u32): bool {
  const home = homeOf(hash);
  let place = home;
  let held = placeAt(table, place);
  for (let far: u32 = 0; held && away(place, held) >= far; far++) {
    if (far == NEAR) return false;
    held = placeAt(table, ++place);
  }
  // Everything from here to the next empty place moves one on; none may get too far from its home.
  let empty = place;
  while (held) {
    if (away(empty, held) == NEAR) return false;
    held = placeAt(table, ++empty);
  }
  if (empty >= TABLE_PLACES + PAD - 1) return false;
  for (; empty > place; empty--) store<u32>(table + (<usize>empty << 2), placeAt(table, empty - 1));
  store<u32>(table + (<usize>place << 2), tagOf(hash, home) | entry);
  return true;
}
/** Takes an entry out, which must be there. */
function remove(table: usize, hash: u64, entry: u32): void {
  let place = homeOf(hash);
  const wanted = tagOf(hash, place) | entry;
  while (placeAt(table, place) != wanted) place++;
  while (true) {
    const held = placeAt(table, place + 1);
    if (!held || !away(place + 1, held)) break;
    store<u32>(table + (<usize>place << 2), held);
    place++;
  }
  store<u32>(table + (<usize>place << 2), 0);
}
export function insertKey(entry: u32): bool { return insert(KEY_TABLE, hashKey(keyOf(entry)), entry); }
export function removeKey(entry: u32): void { remove(KEY_TABLE, hashKey(keyOf(entry)), entry); }
export function insertName(entry: u32): bool { return insert(NAME_TABLE, hashName(nameOf(entry)), entry); }
export function removeName(entry: u32): void { remove(NAME_TABLE, hashName(nameOf(entry)), entry); }
/** What `touch` read, so that reading it has an effect. */
export let touched: u32 = 0;
/** Asks the memory for the places of a key and of a name; done for many at once, they come at the same time. */
@inline export function touchKey(key: u64): void { touched ^= placeAt(KEY_TABLE, homeOf(hashKey(key))); }
@inline export function touchName(name: u64): void { touched ^= placeAt(NAME_TABLE, homeOf(hashName(name))); }
