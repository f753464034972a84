// How a contract says that its engine makes digests, and which ways of it can be gone again from tokens alone (spec/vllm-store.md 7). Learned
// edges are taken from events, so they hold to the one way that adapters have published so far; derived digests follow from the rule and the seed.
import { type Descriptor, HASH_CONTRACT, type HashRule, shown } from './descriptor.js';

type HashContract = Descriptor['hash'];

/** Longest value of PYTHONHASHSEED, in characters; Python itself takes ten digits at most. */
export const MAX_SEED_CHARS = 64;

/** What the engine hashes where PYTHONHASHSEED is not set, and the seed policy of that name. */
export const UNSET_SEED = 'vllm-none-hash';

/** First day on which the text above is what it hashes (vllm#51875); before, the seed was random in every process. */
export const UNSET_SEED_DATE = '2026-08-18';

const ALGORITHMS: readonly string[] = ['sha256', 'sha256_cbor'] satisfies HashRule['algorithm'][];

/** The variable's exact text, in printable ASCII. */
const SET_SEED = new RegExp(`^pythonhashseed-([\\x20-\\x7e]{1,${MAX_SEED_CHARS}})$`);

/** What keeps edges from being learned under a hash contract, if anything. */
export function learnedHashFault(hash: HashContract): string | undefined {
  return firstOther(hash, Object.keys(HASH_CONTRACT) as (keyof HashContract)[]);
}

/** What keeps digests from being derived under a hash contract, if anything. `date`: day of the vLLM revision, YYYY-MM-DD. */
export function derivedHashFault(hash: HashContract, date: string): string | undefined {
  const { algorithm, seed_policy } = hash;
  if (!ALGORITHMS.includes(algorithm)) {
    return `hash.algorithm is ${shown(algorithm)}, supported are ${ALGORITHMS.join(' and ')}`;
  }
  if (seedOf(seed_policy) === null) {
    return `hash.seed_policy is ${shown(seed_policy)}, supported are pythonhashseed-TEXT (of 1 to ${MAX_SEED_CHARS} printable ASCII characters) and ${UNSET_SEED}`;
  }
  if (seed_policy === UNSET_SEED && date < UNSET_SEED_DATE) {
    return `hash.seed_policy is ${shown(seed_policy)} with a vLLM revision of ${date}, whose seed is random where PYTHONHASHSEED is not set (until ${UNSET_SEED_DATE}, vllm#51875)`;
  }
  return firstOther(hash, ['digest_encoding', 'gpu_event_hash', 'key_separator']);
}

/** The hash rule of a hash contract that has neither fault, or only the first. */
export function hashRuleOf({ algorithm, seed_policy }: HashContract): HashRule {
  return Object.freeze({ algorithm: algorithm as HashRule['algorithm'], seed: seedOf(seed_policy)! });
}

/** The text that the engine hashes first; null where a policy does not tell it. */
function seedOf(policy: string): string | null {
  return policy === UNSET_SEED ? UNSET_SEED : (SET_SEED.exec(policy)?.[1] ?? null);
}

function firstOther(hash: HashContract, names: readonly (keyof HashContract)[]): string | undefined {
  const name = names.find((name) => hash[name] !== HASH_CONTRACT[name]);
  return name && `hash.${name} is ${shown(hash[name])}, supported is ${shown(HASH_CONTRACT[name])}`;
}
