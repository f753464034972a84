// Objects of wide builds: a table of (digest, prefix) → media, because a thousand prefixes do not fit a record's masks. An entry
// holds its own key, so its home is computed from it; its upper half is the residency generation, an older one counts as empty.
// A digest's objects are found by probing its prefixes; RECORDS' object count says when all are found.
import { MEMBER_BITS, MEMBER_MASK, MEMBER_TABLE, RECORDS } from './layout';
import { cell, GENERATION, tableSeed } from './cells';

const KEY_SHIFT: u32 = 3; // media: cpu 1, disk 2, unknown 4
const PREFIX_SHIFT: u32 = 13;

@inline export function objectsOf(record: u32): u32 { return load<u32>(RECORDS + (<usize>record << 6), 32); }
@inline export function setObjects(record: u32, objects: u32): void { store<u32>(RECORDS + (<usize>record << 6), objects, 32); }

@inline function keyOf(record: u32, prefix: u32): u32 { return ((record - 1) << PREFIX_SHIFT) | (prefix << KEY_SHIFT); }
@inline function homeOfKey(key: u32): u32 {
  let x = (<u64>key ^ (tableSeed() >> 3)) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  return <u32>(x >> (64 - MEMBER_BITS));
}
@inline function entryAt(place: u32): u32 {
  const entry = load<u64>(<usize>place << 3, MEMBER_TABLE);
  return <u32>(entry >> 32) == cell(GENERATION) ? <u32>entry : 0;
}
@inline function setEntry(place: u32, entry: u32): void {
  store<u64>(<usize>place << 3, (<u64>cell(GENERATION) << 32) | <u64>entry, MEMBER_TABLE);
}
/** Media of the object, 0 = not resident. */
export function mediaOf(record: u32, prefix: u32): u32 {
  const key = keyOf(record, prefix);
  let place = homeOfKey(key);
  while (true) {
    const entry = entryAt(place);
    if (!entry) return 0;
    if ((entry & ~7) == key) return entry & 7;
    place = (place + 1) & MEMBER_MASK;
  }
}
/** Sets the object's media; 0 removes it. The caller keeps the counts. */
export function setMedia(record: u32, prefix: u32, media: u32): void {
  const key = keyOf(record, prefix);
  let place = homeOfKey(key);
  while (true) {
    const entry = entryAt(place);
    if (!entry || (entry & ~7) == key) break;
    place = (place + 1) & MEMBER_MASK;
  }
  if (media) {
    setEntry(place, key | media);
    return;
  }
  if (!entryAt(place)) return;
  let hole = place;
  while (true) {
    place = (place + 1) & MEMBER_MASK;
    const entry = entryAt(place);
    if (!entry) break;
    if (((place - homeOfKey(entry & ~7)) & MEMBER_MASK) >= ((place - hole) & MEMBER_MASK)) {
      setEntry(hole, entry);
      hole = place;
    }
  }
  setEntry(hole, 0);
}
export function scrubMembers(): void { memory.fill(MEMBER_TABLE, 0, <usize>8 << MEMBER_BITS); }
