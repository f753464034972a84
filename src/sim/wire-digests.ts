// vLLM's block digests (spec/vllm-store.md 7): SHA-256 over what Python's pickle.dumps((parent digest, tuple of the tokens, None), protocol=5)
// writes. One buffer holds those bytes, of which only parent and tokens change from block to block.
import { DIGEST_BYTES, writeSha256 } from './wire-sha256.js';

/** Most tokens of a block: with more, pickle's frame of 64 KiB would end within it, and another layout begin. */
export const MAX_DIGEST_TOKENS = 8192;
/** What vLLM takes as the parent of a first block: the digest of its pickled seed, PYTHONHASHSEED, which is "0". */
const SEED = '0';

const FRAME_AT = 11;
const PARENT_AT = FRAME_AT + 2;
const TOKENS_AT = PARENT_AT + DIGEST_BYTES + 1;
/** Most bytes of a token, and of what stands before and behind them all. */
const TOKEN_BYTES = 5;
const AROUND_BYTES = 8;

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

/** Makes the digests of blocks of one size. */
export class BlockDigests {
  readonly #blockSize: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #root = new Uint8Array(DIGEST_BYTES);

  /** @param blockSize tokens, at most `MAX_DIGEST_TOKENS` */
  constructor(blockSize: number) {
    this.#blockSize = blockSize;
    this.#bytes = new Uint8Array(TOKENS_AT + blockSize * TOKEN_BYTES + AROUND_BYTES);
    this.#view = new DataView(this.#bytes.buffer);
    const seed = new TextEncoder().encode(SEED);
    this.#bytes.set([0x80, 5, 0x95]);
    this.#bytes.set([SHORT_TEXT, seed.length, ...seed, MEMOIZE], FRAME_AT);
    this.#write(FRAME_AT + 3 + seed.length, this.#root, 0);
    this.#bytes.set([SHORT_BYTES, DIGEST_BYTES], FRAME_AT);
    this.#bytes[TOKENS_AT - 1] = MEMOIZE;
  }

  /**
   * Writes the digest of a block to byte `at` of `digests`.
   * @param parentAt where the digest of the block before it stands there; −1 for none
   * @param tokens its token ids from index `first` on, each below 2³¹
   */
  write(digests: Uint8Array, at: number, parentAt: number, tokens: Uint32Array, first: number): void {
    const bytes = this.#bytes;
    bytes.set(parentAt < 0 ? this.#root : digests.subarray(parentAt, parentAt + DIGEST_BYTES), PARENT_AT);
    const short = SHORT_TUPLES[this.#blockSize - 1];
    let end = TOKENS_AT;
    if (short === undefined) bytes[end++] = MARK;
    for (let i = first; i < first + this.#blockSize; i++) end = this.#writeInt(tokens[i]!, end);
    bytes[end++] = short ?? TUPLE;
    bytes[end++] = MEMOIZE;
    bytes[end++] = NONE;
    bytes[end++] = TUPLE_3;
    bytes[end++] = MEMOIZE;
    this.#write(end, digests, at);
  }

  #writeInt(value: number, at: number): number {
    if (value < 0x100) {
      this.#bytes[at] = INT_1;
      this.#bytes[at + 1] = value;
      return at + 2;
    }
    if (value < 0x1_0000) {
      this.#bytes[at] = INT_2;
      this.#view.setUint16(at + 1, value, true);
      return at + 3;
    }
    this.#bytes[at] = INT_4;
    this.#view.setInt32(at + 1, value, true);
    return at + 5;
  }

  /** Ends the pickle at byte `end`, and digests it. */
  #write(end: number, to: Uint8Array, at: number): void {
    this.#bytes[end] = STOP;
    this.#view.setUint32(3, end + 1 - FRAME_AT, true); // the frame's length has 64 bits, of which the upper ones stay 0
    writeSha256(this.#bytes.subarray(0, end + 1), to, at);
  }
}
