// vLLM's block digests by its default rule (spec/vllm-store.md 7), for what simulates engines or judges them. Made by the reader's module.
import { seedBytes, tailOf } from '../core/engine-hash.js';
import { sharedNumbers } from '../core/numbers.js';

export const DIGEST_BYTES = 32;
/** Most tokens of a hash block: with more, pickle's frame of 64 KiB could end within it, short extra keys or none provided. */
export const MAX_HASH_BLOCK_TOKENS = 8192;
/** Most UTF-8 bytes of one extra key. */
export const MAX_EXTRA_KEY_BYTES = 255;
/** Largest token id and one more: no vocabulary has others. */
export const TOKEN_ID_LIMIT = 2 ** 31;

/** What vLLM's chains start from where nothing else is said: PYTHONHASHSEED is "0". */
const SEED = '0';
const NO_KEYS: readonly string[] = [];

/** Whose rule the shared module has, and for which extra keys. */
let current: BlockDigests | null = null;
let currentKeys = '';

/** Makes digests of hash blocks of one size. */
export class BlockDigests {
  readonly #blockSize: number;
  readonly #root: Uint8Array;
  readonly #numbers = sharedNumbers();
  readonly #atOnce: number;

  /** @param blockSize tokens, at most `MAX_HASH_BLOCK_TOKENS` */
  constructor(blockSize: number, seed = SEED) {
    this.#blockSize = blockSize;
    this.#root = this.#numbers.sha256(seedBytes({ algorithm: 'sha256', seed }));
    this.#atOnce = this.#numbers.digestsAtOnce(blockSize);
  }

  /**
   * The digest of one block.
   * @param parent the digest of the block before; null for none
   * @param tokens its token ids from index `first` on, each below `TOKEN_ID_LIMIT`
   * @param extraKeys texts in vLLM's order, at most two, each at most `MAX_EXTRA_KEY_BYTES` long
   */
  digest(
    parent: Uint8Array | null,
    tokens: ArrayLike<number>,
    first: number,
    extraKeys: readonly string[] = NO_KEYS,
  ): Uint8Array {
    this.#take(extraKeys);
    return this.#numbers.engineDigests(parent, tokens, first, 1, this.#blockSize).slice();
  }

  /**
   * Writes the digests of `blocks` blocks without extra keys, each the parent of the next, to byte `at` of `digests`.
   * @param parentAt where the digest of the block before them stands there; −1 for none
   */
  write(digests: Uint8Array, at: number, parentAt: number, tokens: ArrayLike<number>, first: number, blocks = 1): void {
    this.#take(NO_KEYS);
    for (let done = 0; done < blocks; done += this.#atOnce) {
      const count = Math.min(this.#atOnce, blocks - done);
      const parent = parentAt < 0 ? null : digests.subarray(parentAt, parentAt + DIGEST_BYTES);
      const from = first + done * this.#blockSize;
      digests.set(this.#numbers.engineDigests(parent, tokens, from, count, this.#blockSize), at);
      at += count * DIGEST_BYTES;
      parentAt = at - DIGEST_BYTES;
    }
  }

  /** Makes the shared module's rule this one's. */
  #take(extraKeys: readonly string[]): void {
    const keys = extraKeys.length === 0 ? '' : JSON.stringify(extraKeys);
    if (current === this && currentKeys === keys) return;
    const tail = tailOf('sha256', extraKeys);
    this.#numbers.setHashRule('sha256', this.#blockSize, this.#root);
    this.#numbers.setTails({ first: tail, rest: tail });
    current = this;
    currentKeys = keys;
  }
}

const HEX_DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** A digest as object keys have it: 64 lowercase hexadecimal digits. */
export function hexOf(digest: Uint8Array): string {
  let hex = '';
  for (const byte of digest) hex += HEX_DIGITS[byte]!;
  return hex;
}

/** A digest's last 8 bytes as one big-endian number, which is what events carry. */
export function low64Of(digest: Uint8Array): bigint {
  return new DataView(digest.buffer, digest.byteOffset, digest.length).getBigUint64(digest.length - 8);
}
