// The master's key list the plain way: its whole text split into lines, prefixes by digest in a Map of Sets.

const DIGEST = /^[0-9a-f]{64}$/;

/** Digest → ids of the prefixes under which it is listed. */
export function plainKeyList(bytes: Uint8Array, prefixIds: ReadonlyMap<string, number>): Map<string, Set<number>> {
  const digests = new Map<string, Set<number>>();
  for (const key of new TextDecoder().decode(bytes).split('\n')) {
    const at = key.lastIndexOf('@');
    const prefix = prefixIds.get(key.slice(0, at));
    const digest = key.slice(at + 1);
    if (prefix === undefined || !DIGEST.test(digest)) continue;
    const known = digests.get(digest);
    if (known === undefined) digests.set(digest, new Set([prefix]));
    else known.add(prefix);
  }
  return digests;
}
