// The hashes that vLLM gives a prompt's first blocks under a seed: SHA-256 over Python's pickle, from the seed's digest on (spec/vllm-store.md 7).
// Only such engines put objects into the store whose names other engines can meet.
import { BlockDigests, low64Of, MAX_HASH_BLOCK_TOKENS } from '../../wire/block-digests.js';
import { DIGEST_BYTES, writeSha256 } from '../../wire/sha256.js';

/** The seed that contracts promise. */
export const PROMISED_SEED = '0';
/** What vLLM takes where PYTHONHASHSEED is not set, since August 2026; before it was random in every process. */
export const UNSET_SEED = 'vllm-none-hash';
/** Seeds that people set by hand. */
const LIKELY_SEEDS = ['1', '42', '123', '1234', '2024', '2025', '2026'];

/** The one among the seeds that are worth a try under which these tokens have this hash; null for none of them. */
export function seedOf(hash: bigint, tokens: Uint32Array, blockSize: number, hashBlockSize: number): string | null {
  const seeds = [PROMISED_SEED, UNSET_SEED, ...LIKELY_SEEDS];
  return seeds.find((seed) => expectedHash(tokens, blockSize, hashBlockSize, seed) === hash) ?? null;
}

/** Low 64 bits of the first block's hash; null where its spans are none that can be hashed. */
export function expectedHash(
  tokens: Uint32Array,
  blockSize: number,
  hashBlockSize: number,
  seed: string = PROMISED_SEED,
): bigint | null {
  if (hashBlockSize > MAX_HASH_BLOCK_TOKENS || blockSize % hashBlockSize !== 0 || tokens.length < blockSize)
    return null;
  const digests = new BlockDigests(hashBlockSize);
  let digest: Uint8Array | null = seedDigest(seed);
  for (let at = 0; at < blockSize; at += hashBlockSize) digest = digests.digest(digest, tokens, at);
  return low64Of(digest);
}

/** SHA-256 over pickle.dumps(seed, protocol=5): a frame with one short text. */
function seedDigest(seed: string): Uint8Array {
  const text = new TextEncoder().encode(seed);
  const body = [0x8c, text.length, ...text, 0x94, 0x2e];
  const frame = [0x80, 5, 0x95, body.length, 0, 0, 0, 0, 0, 0, 0];
  const digest = new Uint8Array(DIGEST_BYTES);
  writeSha256(Uint8Array.from([...frame, ...body]), digest);
  return digest;
}
