// Part of a reconcile: places the objects that the master's key list names, without knowing their medium, and without pushing anything out.
import { DIGEST_CAP, MEMBER_CAP, WIDE } from './layout';
import { cell, DIGESTS, MEMBERS } from './cells';
import { CONFLICT, flagsOf, sameHigh } from './slots';
import { findChild, findDigest, hashKey } from './table';
import { storeObject, UNKNOWN } from './residency';

/**
 * Places `objects` staged objects (see objects.ts; sorted by digest, whole digests only) as medium unknown, those whose
 * digest has an edge (`withEdge`) or the others. Nothing leaves for them: a digest that does not fit whole is left out.
 */
export function placeObjects(from: usize, objects: u32, withEdge: bool): void {
  for (let i: u32 = 0; i < objects; ) {
    const first = from + <usize>i * 40;
    const low = load<u64>(first, 24);
    let run: u32 = 1;
    while (i + run < objects && load<u64>(first + <usize>run * 40, 24) == low && sameHigh(first + <usize>run * 40, first)) run++;
    const hash = hashKey(low);
    const slot = findChild(hash, low);
    const fits = (cell(DIGESTS) < DIGEST_CAP || findDigest(hash, low) != 0) && (!WIDE || cell(MEMBERS) + run <= MEMBER_CAP);
    if ((slot != 0 && !(flagsOf(slot) & CONFLICT)) == withEdge && fits) {
      for (let k: u32 = 0; k < run; k++) storeObject(first + <usize>k * 40, low, load<u16>(first + <usize>k * 40, 32), UNKNOWN);
    }
    i += run;
  }
}
