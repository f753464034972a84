// vLLM's block digests with everything that enters them: SHA-256 over what Python's pickle.dumps((parent digest, tuple of the tokens, extra keys
// or None), protocol=5) writes (spec/vllm-store.md 7). Extra keys are the LoRA's name in every block, and the cache salt in the first one.
import { DIGEST_BYTES, writeSha256 } from './sha256.js';

/** Most tokens of a hash block: with more, pickle's frame of 64 KiB would end within it, and another layout begin. */
export const MAX_HASH_BLOCK_TOKENS = 8192;
/** Most UTF-8 bytes of one extra key: a pickled text's length is one byte up to here. */
export const MAX_EXTRA_KEY_BYTES = 255;
/** Largest token id and one more: pickle writes ids above otherwise, and no vocabulary has them. */
export const TOKEN_ID_LIMIT = 2 ** 31;

/** What vLLM takes as the parent of a first block: the digest of its pickled seed, PYTHONHASHSEED, which is "0". */
const SEED = '0';
const HEAD_BYTES = 11;
/** Most bytes of a token. */
const TOKEN_BYTES = 5;
/** Opcodes around the parts, two extra keys with theirs included. */
const AROUND_BYTES = 64;

// Opcodes of pickle.
const MEMOIZE = 0x94;
const STOP = 0x2e;
const MARK = 0x28;
const TUPLE = 0x74;
const TUPLE_3 = 0x87;
/** Tuples of one to three elements have opcodes of their own. */
const SHORT_TUPLES = [0x85, 0x86, TUPLE_3];
const NONE = 0x4e;
const SHORT_BYTES = 0x43;
const SHORT_TEXT = 0x8c;
const INT_1 = 0x4b;
const INT_2 = 0x4d;
const INT_4 = 0x4a;

const utf8 = new TextEncoder();

/** Makes digests of hash blocks of one size. */
export class BlockDigests {
  readonly #blockSize: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #root = new Uint8Array(DIGEST_BYTES);
  #end = 0;

  /** @param blockSize tokens, at most `MAX_HASH_BLOCK_TOKENS` */
  constructor(blockSize: number) {
    this.#blockSize = blockSize;
    const parts = DIGEST_BYTES + blockSize * TOKEN_BYTES + 2 * MAX_EXTRA_KEY_BYTES;
    this.#bytes = new Uint8Array(HEAD_BYTES + parts + AROUND_BYTES);
    this.#view = new DataView(this.#bytes.buffer);
    this.#begin();
    this.#text(utf8.encode(SEED));
    this.#finish(this.#root, 0);
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
    extraKeys: readonly string[] = [],
  ): Uint8Array {
    this.#block(parent ?? this.#root, tokens, first, extraKeys);
    const digest = new Uint8Array(DIGEST_BYTES);
    this.#finish(digest, 0);
    return digest;
  }

  /**
   * Writes the digest of a block without extra keys to byte `at` of `digests`.
   * @param parentAt where the digest of the block before it stands there; −1 for none
   */
  write(digests: Uint8Array, at: number, parentAt: number, tokens: ArrayLike<number>, first: number): void {
    const parent = parentAt < 0 ? this.#root : digests.subarray(parentAt, parentAt + DIGEST_BYTES);
    this.#block(parent, tokens, first, []);
    this.#finish(digests, at);
  }

  #block(parent: Uint8Array, tokens: ArrayLike<number>, first: number, extraKeys: readonly string[]): void {
    this.#begin();
    this.#put(SHORT_BYTES, DIGEST_BYTES);
    this.#bytes.set(parent, this.#end);
    this.#end += DIGEST_BYTES;
    this.#put(MEMOIZE);
    this.#tuple(this.#blockSize, (i) => this.#int(tokens[first + i]!));
    if (extraKeys.length === 0) this.#put(NONE);
    else this.#tuple(extraKeys.length, (i) => this.#text(utf8.encode(extraKeys[i]!)));
    this.#put(TUPLE_3, MEMOIZE);
  }

  #begin(): void {
    this.#end = 0;
    this.#put(0x80, 5, 0x95, 0, 0, 0, 0, 0, 0, 0, 0);
  }

  #put(...bytes: number[]): void {
    for (const byte of bytes) this.#bytes[this.#end++] = byte;
  }

  #tuple(length: number, element: (i: number) => void): void {
    const short = SHORT_TUPLES[length - 1];
    if (short === undefined) this.#put(MARK);
    for (let i = 0; i < length; i++) element(i);
    this.#put(short ?? TUPLE, MEMOIZE);
  }

  #text(bytes: Uint8Array): void {
    this.#put(SHORT_TEXT, bytes.length);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
    this.#put(MEMOIZE);
  }

  #int(value: number): void {
    const at = this.#end;
    if (value < 0x100) {
      this.#bytes[at] = INT_1;
      this.#bytes[at + 1] = value;
      this.#end += 2;
    } else if (value < 0x1_0000) {
      this.#bytes[at] = INT_2;
      this.#view.setUint16(at + 1, value, true);
      this.#end += 3;
    } else {
      this.#bytes[at] = INT_4;
      this.#view.setInt32(at + 1, value, true);
      this.#end += 5;
    }
  }

  #finish(to: Uint8Array, at: number): void {
    this.#put(STOP);
    this.#view.setUint32(3, this.#end - HEAD_BYTES, true); // the frame's length has 64 bits, of which the upper ones stay 0
    writeSha256(this.#bytes.subarray(0, this.#end), to, at);
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
