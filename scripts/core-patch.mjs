// How the builds of the core that are no default are carried: as what differs from the default one. They are one source with other constants, so a patch
// has a fifth of a build's bytes. src/core/module-patch.ts applies it.

/** Bytes worth a jump, and worth taking where no jump is needed; how much longer a far match must be. */
const LEAST_MATCH = 8;
const LEAST_NEAR = 5;
const FAR = 4;
/** Of one sequence in the base that are tried. */
const MOST_PLACES = 256;
/** Of new bytes in a step; of a jump either way. */
const MOST_FRESH = 255;
const MOST_JUMP = 32_768;

/**
 * The length of `wanted` in four bytes, then steps: how many new bytes, those, how far to jump in `base` (plus `MOST_JUMP`), how many bytes to take
 * from there (two bytes each, the high one first). What is taken is found at the place that is expected, or else wherever most of it is.
 */
export function patchOf(base, wanted) {
  const places = new Map();
  const keyOf = (bytes, at) => bytes.toString('latin1', at, at + LEAST_MATCH);
  for (let at = 0; at + LEAST_MATCH <= base.length; at++) {
    const known = places.get(keyOf(base, at));
    if (known === undefined) places.set(keyOf(base, at), [at]);
    else if (known.length < MOST_PLACES) known.push(at);
  }
  const matchAt = (i, j) => {
    let length = 0;
    while (j + length < wanted.length && i + length < base.length && base[i + length] === wanted[j + length]) length++;
    return length;
  };
  const header = Buffer.alloc(4);
  header.writeUInt32BE(wanted.length);
  const steps = [...header];
  const fresh = [];
  let expected = 0;
  const step = (place, take) => {
    const jump = place - expected + MOST_JUMP;
    steps.push(fresh.length, ...fresh, jump >> 8, jump & 255, take >> 8, take & 255);
    expected = place + take;
    fresh.length = 0;
  };
  for (let j = 0; j < wanted.length; ) {
    // Past the new bytes the base goes on as far as it did, most often.
    const ahead = expected + fresh.length;
    let [place, take] = [ahead, matchAt(ahead, j)];
    for (const at of places.get(keyOf(wanted, j)) ?? []) {
      const length = matchAt(at, j);
      if (length > take + FAR && Math.abs(at - expected) < MOST_JUMP) [place, take] = [at, length];
    }
    if (take >= (place === ahead ? LEAST_NEAR : LEAST_MATCH)) {
      step(place, take);
      j += take;
    } else {
      fresh.push(wanted[j++]);
      if (fresh.length === MOST_FRESH) step(expected, 0);
    }
  }
  if (fresh.length > 0) step(expected, 0);
  return Buffer.from(steps);
}
