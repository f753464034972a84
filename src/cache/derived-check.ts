// Holds a worker's stored event against what its contract says: the digest of the event's first block is derived behind the parent that the event names,
// and must be the one that the event gives. Only events that could teach are looked at: of others nothing says what the engine hashed.
import type { Contract } from '../contract/descriptor.js';
import type { Core } from '../core/core.js';
import { sharedNumbers } from '../core/numbers.js';
import { CACHE_SALT_PREFIX } from '../events/namespace.js';
import type { NormalisedStored } from '../events/normaliser.js';
import { kindsOf } from './hash-trust.js';

/** What an event says about the hash rule: nothing (its parent was not derived), that it holds for hashes of these kinds, or that it does not. */
export type Agreement = { readonly kinds: number } | { readonly fault: string } | null;

/** What an event could prove: its salt is in a chain's first block only, and from there on in the parent. */
export function eventKinds({ event, namespace }: NormalisedStored): number {
  return kindsOf(event.loraName, event.hasParent ? null : namespace);
}

/** Judges an event that `whyNotLearned` has nothing against. */
export function checkEvent(
  core: Core,
  { mainEventBlockSize, hashRule }: Contract,
  stored: NormalisedStored,
): Agreement {
  const { event, namespace } = stored;
  // A namespace said outright, not as the engine's extra key, does not tell what the engine hashed.
  if (event.cacheSalt !== null) return null;
  const numbers = event.place(sharedNumbers());
  const { hasParent, parentLow, parentHigh, loraName, tokensAt, hashesAt } = event;
  const salt = hasParent || namespace === null ? null : CACHE_SALT_PREFIX + namespace;
  const digest = core.digestBehind(
    hasParent ? { low: parentLow, high: parentHigh } : null,
    numbers.tokens.subarray(tokensAt, tokensAt + mainEventBlockSize),
    { loraName, rawSalt: salt },
  );
  if (digest === null) return null;
  const words = new DataView(digest.buffer, digest.byteOffset, digest.length);
  const agrees =
    words.getUint32(28) === numbers.lows[hashesAt * 2]! &&
    words.getUint32(24) === numbers.lows[hashesAt * 2 + 1]! &&
    (!event.wholeDigests || digest.every((byte, i) => byte === numbers.digests[hashesAt * 32 + i]));
  if (agrees) return { kinds: eventKinds(stored) };
  const said = hexOf(numbers.lows[hashesAt * 2 + 1]!) + hexOf(numbers.lows[hashesAt * 2]!);
  const derived = hexOf(words.getUint32(24)) + hexOf(words.getUint32(28));
  return {
    fault: `a block hash is ${said} where ${hashRule.algorithm} with seed ${JSON.stringify(hashRule.seed)} gives ${derived}`,
  };
}

function hexOf(word: number): string {
  return word.toString(16).padStart(8, '0');
}
