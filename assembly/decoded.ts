// Objects that are known without their messages' bytes, as a simulation has them: digests at INPUT, each with a run of prefixes.
import { INPUT } from './layout';
import { setCell, WALKED } from './cells';
import { removeObject, storeObject } from './residency';

const DIGEST_BYTES: usize = 32;

/**
 * Applies objects of `digests` digests at INPUT (24 high bytes, then the low 64 bits as a number), each under the prefixes `first` … `end` − 1: stored in
 * a medium, or removed from `media`.
 */
export function applyDigests(digests: u32, first: u32, end: u32, removes: bool, media: u32): void {
  setCell(WALKED, 0);
  for (let i: u32 = 0; i < digests; i++) {
    const at = INPUT + <usize>i * DIGEST_BYTES;
    const low = load<u64>(at, 24);
    for (let prefix = first; prefix < end; prefix++) {
      if (removes) removeObject(at, low, prefix, media);
      else storeObject(at, low, prefix, media);
    }
  }
}
