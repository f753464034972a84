// Whether an event names a block twice, or its own parent among its blocks: a chain of blocks cannot, so such an event proves nothing.
import { EVENT_BLOCKS } from './layout';
import { hashKey } from './table';

/** One child hash: the low 64 bits of its digest, or the hash itself. */
@inline export function childAt(children: usize, index: u32, digests: bool): u64 {
  return digests ? bswap<u64>(load<u64>(children + (<usize>index << 5), 24)) : load<u64>(children + (<usize>index << 3));
}

/** True when a child appears twice, or equals `parent`. `seen` has room for 4 × `blocks` hashes. */
export function repeats(children: usize, digests: bool, blocks: u32, hasParent: bool, parent: u64, seen: usize): bool {
  if (blocks < 2) return hasParent && blocks == 1 && childAt(children, 0, digests) == parent;
  let mask: u32 = 1;
  while (mask < blocks * 2) mask <<= 1;
  if (mask <= EVENT_BLOCKS) mask <<= 1; // the fewer meet, the better: short probes are foreseen
  memory.fill(seen, 0, <usize>mask << 3);
  mask--;
  let zero = false; // zero marks an empty place
  for (let i: i32 = hasParent ? -1 : 0; i < <i32>blocks; i++) {
    const child = i < 0 ? parent : childAt(children, <u32>i, digests);
    if (!child) {
      if (zero) return true;
      zero = true;
      continue;
    }
    let place = <u32>(hashKey(child) >> 40) & mask;
    while (true) {
      const found = load<u64>(seen + (<usize>place << 3));
      if (found == child) return true;
      if (!found) break;
      place = (place + 1) & mask;
    }
    store<u64>(seen + (<usize>place << 3), child);
  }
  return false;
}
