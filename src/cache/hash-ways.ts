// By which hashes a query can be answered: derived from its tokens, or learned from events; and what speaks against each.
import type { ExtraKeys } from '../core/engine-hash.js';
import type { Plan } from '../core/plan.js';
import { CACHE_SALT_PREFIX } from '../events/namespace.js';
import type { HashProofs } from './hash-proofs.js';
import { kindsOf } from './hash-trust.js';
import { type Reason, reason } from './reasons.js';
import type { CacheQuery } from './types.js';

/** What besides its tokens a query's hashes cover. */
export type QueryScope = Pick<CacheQuery, 'loraName' | 'cacheSalt' | 'rawSalt'>;

/** Of a contract that was validated for derived hashes, in a cache that learns. */
export const UNFIT = reason(
  'contract-unfit',
  'The contract was validated for derived hashes, and its events can teach nothing. Make the cache with hashing derived or both.',
);
const NOT_DERIVING = reason('not-derived', 'Hashes are not derived here.');
const TOKENS_MISSING = reason('tokens-missing', 'Hashes are derived from token ids, and only local hashes were given.');
const UNPROVEN = reason(
  'hashes-unproven',
  'Not every admitted rank has published an event yet that agrees with derived hashes, so nothing proves that they hash as their contract says.',
);
const RAW_SALT = reason('ineligible', 'A raw cache salt is no namespace: no event proves what it was hashed with.');
const REFUTED_TEXT =
  'So the engines do not hash as their contract says, and derived hashes are not credited until the contract changes. Check PYTHONHASHSEED, the hash algorithm and the hash block size of every engine.';

/** Why derived hashes can't answer; null when they can. */
export function whyNotByDerived(query: CacheQuery, proofs: HashProofs | null): Reason | null {
  if (proofs === null) return NOT_DERIVING;
  const { trust } = proofs;
  if (trust.refuted !== null) return reason('hashes-refuted', `${trust.refuted} ${REFUTED_TEXT}`);
  if (query.credits !== 'proven-ranks' && !trust.proveAll(scopeKinds(query))) return UNPROVEN;
  return query.tokens === undefined || query.localHashes !== undefined ? TOKENS_MISSING : null;
}

/** Why learned ones can't. */
export function whyNotByLearned({ blockSize, rawSalt }: CacheQuery, { learned }: Plan): Reason | null {
  if (learned === null) return UNFIT;
  if (rawSalt) return RAW_SALT;
  if (blockSize === learned.blockSize) return null;
  return reason(
    'block-size',
    `The query's blocks have ${blockSize} tokens, the contract's main event blocks ${learned.blockSize}.`,
  );
}

/** The engine's extra keys for it. */
export function extraKeysOf({ loraName, cacheSalt, rawSalt }: QueryScope): ExtraKeys {
  return { loraName: loraName ?? null, rawSalt: cacheSalt ? CACHE_SALT_PREFIX + cacheSalt : (rawSalt ?? null) };
}

/** What a rank must have proven to be credited for it. */
export function scopeKinds({ loraName, cacheSalt, rawSalt }: QueryScope): number {
  return kindsOf(loraName, cacheSalt || rawSalt);
}
