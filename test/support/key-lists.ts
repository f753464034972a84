// Key lists for tests: what the master's list comes to, from keys as text or from its bytes.
import { KeyList } from '../../src/cache/key-list.js';
import { KeyPrefixes } from '../../src/cache/key-prefixes.js';
import type { Contract } from '../../src/contract/descriptor.js';
import type { Core } from '../../src/core/core.js';
import type { DigestRecords } from '../../src/core/digest-records.js';
import { planOf } from '../../src/core/plan.js';
import type { Random } from './random.js';

/** An empty list for a contract and a core, as `SharedCache.beginKeyList` makes it. */
export function keyListFor({
  contract,
  core,
}: {
  contract: Contract;
  core: Pick<Core, 'digestCap' | 'warm'>;
}): KeyList {
  const prefixes = new KeyPrefixes(planOf(contract).prefixes.map(({ text }) => text));
  return new KeyList({
    prefixes,
    digestCap: core.digestCap,
    warm: (words, first, end) => core.warm(words, first, end),
  });
}

/** No core, but room for so many digests. */
export function roomFor(digestCap: number): Pick<Core, 'digestCap' | 'warm'> {
  return { digestCap, warm: () => {} };
}

/** What a reconcile would place. */
export function listed(pool: { contract: Contract; core: Core }, keys: readonly string[]): DigestRecords {
  const list = keyListFor(pool);
  for (const key of keys) list.addKey(key);
  return list.prepare();
}

/** The bytes cut into chunks of 0 … `most` bytes. */
export function* chunked(bytes: Uint8Array, random: Random, most: number): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; ) {
    const to = from + random.int(most + 1);
    yield bytes.slice(from, to); // a copy with an end, so that nothing is read behind it
    from = to;
  }
}
