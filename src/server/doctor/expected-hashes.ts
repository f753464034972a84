// The hash that vLLM gives a prompt's first block under a rule (spec/vllm-store.md 7): the digest of its last hash block, from the seed's digest on.
// Only engines that hash by one rule put objects into the store whose names the others can meet.
import type { HashRule } from '../../contract/descriptor.js';
import { UNSET_SEED } from '../../contract/hash-rule.js';
import { seedBytes, tailsOf } from '../../core/engine-hash.js';
import { Numbers } from '../../core/numbers.js';
import { DIGEST_BYTES, low64Of, MAX_HASH_BLOCK_TOKENS } from '../../wire/block-digests.js';
import type { FirstBlocks } from './evidence.js';

/** What contracts promise where hashes are learned. */
export const PROMISED_RULE: HashRule = { algorithm: 'sha256', seed: '0' };
const ALGORITHMS: readonly HashRule['algorithm'][] = ['sha256', 'sha256_cbor'];
/** Seeds that are worth a try: what engines are told, what they take when nothing was set, and what people set by hand. */
const LIKELY_SEEDS = [PROMISED_RULE.seed, UNSET_SEED, '1', '42', '123', '1234', '2024', '2025', '2026'];

/** Apart from the process's own, which has rules of its own. Made when it is needed. */
let numbers: Numbers | undefined;

/** The rule among those that are worth a try under which the block has its hash; null for none of them. */
export function ruleOf(block: FirstBlocks, hashBlockSize: number, promised: HashRule): HashRule | null {
  const seeds = [promised.seed, ...LIKELY_SEEDS];
  const rules = ALGORITHMS.flatMap((algorithm) => seeds.map((seed): HashRule => ({ algorithm, seed })));
  return rules.find((rule) => expectedHash(block, hashBlockSize, rule) === block.hashes[0]) ?? null;
}

/** Low 64 bits of the hash of the first of these blocks, without extra keys; null where its spans are none that can be hashed. */
export function expectedHash(
  { tokens, blockSize }: Pick<FirstBlocks, 'tokens' | 'blockSize'>,
  hashBlockSize: number,
  rule: HashRule = PROMISED_RULE,
): bigint | null {
  if (hashBlockSize > MAX_HASH_BLOCK_TOKENS || blockSize % hashBlockSize !== 0 || tokens.length < blockSize)
    return null;
  numbers ??= new Numbers();
  numbers.setHashRule(rule.algorithm, hashBlockSize, numbers.sha256(seedBytes(rule)));
  numbers.setTails(tailsOf(rule.algorithm, {}));
  let digest: Uint8Array | null = null;
  for (let at = 0; at < blockSize; at += hashBlockSize) {
    digest = numbers.engineDigests(digest, tokens, at, 1, hashBlockSize).slice(0, DIGEST_BYTES);
  }
  return digest === null ? null : low64Of(digest);
}
