// Makes one build of the core from another: builds are one source with other constants, so that what differs is short. Patches are made by
// scripts/core-patch.mjs, which says how they are laid out.

const HEADER_BYTES = 4;
const NO_JUMP = 32_768;

/** The bytes that `patch` makes of `base`. */
export function patched(base: Uint8Array, patch: Uint8Array): Uint8Array<ArrayBuffer> {
  const two = (at: number) => (patch[at]! << 8) | patch[at + 1]!;
  const made = new Uint8Array(two(0) * 65_536 + two(2));
  let to = 0;
  let from = 0;
  for (let at = HEADER_BYTES; at < patch.length; at += 4) {
    const fresh = patch[at++]!;
    made.set(patch.subarray(at, at + fresh), to);
    at += fresh;
    to += fresh;
    from += two(at) - NO_JUMP;
    const take = two(at + 2);
    made.set(base.subarray(from, from + take), to);
    from += take;
    to += take;
  }
  return made;
}
