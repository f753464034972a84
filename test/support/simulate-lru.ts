// The plain LRU of the known answers, written as the rule reads, to check the one-pass capacity curve against: a request hits its longest
// resident prefix, then its ids are touched deepest first and the coldest dropped down to the cap.

/** Block references that hit in one cache of `capacity` blocks. */
export function simulateLru(requests: Iterable<ArrayLike<number>>, capacity: number): number {
  const resident = new Set<number>(); // in the order of the last touch, coldest first
  let hits = 0;
  for (const ids of requests) {
    let prefix = 0;
    while (prefix < ids.length && resident.has(ids[prefix]!)) prefix++;
    hits += prefix;
    for (let i = ids.length - 1; i >= 0; i--) {
      resident.delete(ids[i]!);
      resident.add(ids[i]!);
    }
    for (const coldest of resident) {
      if (resident.size <= capacity) break;
      resident.delete(coldest);
    }
  }
  return hits;
}
