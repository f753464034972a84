// Objects that are known without their messages' bytes, as a simulation has them: digests at INPUT, each with a run of prefixes.
import { INPUT, PREFIX_GROUP, WIDE } from './layout';
import { setCell, WALKED } from './cells';
import { removeBits, removeObject, storeBits, storeObject } from './residency';

const DIGEST_BYTES: usize = 32;

/**
 * Applies objects of `digests` digests at INPUT (24 high bytes, then the low 64 bits as a number), each under the prefixes `first` … `end` − 1, which are of
 * one group: stored in a medium, or removed from `media`.
 */
export function applyDigests(digests: u32, first: u32, end: u32, removes: bool, media: u32): void {
  setCell(WALKED, 0);
  const group = <u32>load<u8>(PREFIX_GROUP + <usize>first);
  const bits = WIDE || first >= end ? 0 : (<u64>-1 >> <u64>(64 - (end - first))) << <u64>first;
  for (let i: u32 = 0; i < digests; i++) {
    const at = INPUT + <usize>i * DIGEST_BYTES;
    const low = load<u64>(at, 24);
    if (!WIDE) {
      if (removes) removeBits(at, low, group, bits, media);
      else storeBits(at, low, group, bits, media);
      continue;
    }
    for (let prefix = first; prefix < end; prefix++) {
      if (removes) removeObject(at, low, prefix, media);
      else storeObject(at, low, prefix, media);
    }
  }
}
