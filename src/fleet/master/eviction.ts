// Whom the master evicts from memory (spec/mooncake-events.md 4, "Eviction, leases, pins"): the oldest lease first; soft pinned objects only
// when the others do not suffice; leased, hard pinned and just offloading ones never. Members of a group go together, and none of them
// while one is leased.
import type { StoredObject } from './stored-object.js';

/** Used share of memory above which the master evicts (`eviction_high_watermark_ratio`). */
export const HIGH_WATERMARK = 0.9;
/** Least share of the objects that one eviction takes (`eviction_ratio`). */
export const EVICTION_SHARE = 0.05;

/** At least `wanted` objects in the order in which they go; fewer where no more may go. More only to keep a group together. */
export function evictionVictims(objects: Iterable<StoredObject>, wanted: number, now: number): StoredObject[] {
  const held: StoredObject[] = [];
  const groups = new Map<string, StoredObject[]>();
  for (const object of objects) {
    if (object.memory.length === 0) continue;
    held.push(object);
    if (object.group === null) continue;
    const name = groupName(object);
    const members = groups.get(name);
    if (members === undefined) groups.set(name, [object]);
    else members.push(object);
  }
  const victims = new Set<StoredObject>();
  for (const pinnedToo of [false, true]) {
    const mayGo = (object: StoredObject) =>
      !object.writing && !object.offloading && !object.hardPinned && (pinnedToo || object.softPinUntil <= now);
    const candidates = held
      .filter((object) => object.leaseUntil <= now && mayGo(object))
      .sort((one, other) => one.leaseUntil - other.leaseUntil); // stable: among equals, who came first
    for (const candidate of candidates) {
      if (victims.size >= wanted) return [...victims];
      if (victims.has(candidate)) continue;
      const members = candidate.group === null ? [candidate] : groups.get(groupName(candidate))!;
      if (members.some(({ leaseUntil }) => leaseUntil > now)) continue;
      for (const member of members) if (mayGo(member)) victims.add(member);
    }
  }
  return [...victims];
}

function groupName({ tenant, group }: StoredObject): string {
  return `${tenant}\0${group}`;
}
