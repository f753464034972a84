// How vLLM names its blocks, the part that is text: the seed from which a chain starts, and what follows the tokens of a block, extra keys and all.
// Tokens themselves are serialised where they are hashed (assembly/engine-hash.ts). The bytes are those of Python's pickle.dumps with protocol 5
// (`sha256`) or of cbor2.dumps in canonical form (`sha256_cbor`); spec/vllm-store.md 7.

import type { HashRule } from '../contract/descriptor.js';

/** What besides tokens goes into digests. Empty text counts as absent. */
export interface ExtraKeys {
  /** In every block. */
  readonly loraName?: string | null;
  /** In the first block only, from where it reaches the others through the chain. */
  readonly rawSalt?: string | null;
}

/** What follows the tokens of a chain's first block, and of the others. */
export interface Tails {
  readonly first: Uint8Array;
  readonly rest: Uint8Array;
}

/** Most bytes of a tail (assembly/layout.ts): a LoRA name and a salt of 4,096 characters, of three bytes each. */
export const MAX_TAIL_BYTES = 24_640;
/**
 * Most tokens of a hash block. With more, of which each can take 7 bytes, and the longest tail, pickle's frame of 64 KiB could end within it, and
 * another layout begin.
 */
export const MAX_HASH_BLOCK_TOKENS = 5_836;

/** Numbers of the algorithms in assembly/engine-hash.ts. */
export const ALGORITHMS: Readonly<Record<HashRule['algorithm'], number>> = { sha256: 1, sha256_cbor: 2 };
/** Words of its rule. */
export const RULE = { algorithm: 0, blockTokens: 1, firstTailBytes: 2, restTailBytes: 3, root: 4 } as const;

// Opcodes of pickle.
const PROTOCOL_5_FRAME = [0x80, 5, 0x95];
const MEMOIZE = 0x94;
const STOP = 0x2e;
const TUPLE_1 = 0x85;
const TUPLE_2 = 0x86;
const TUPLE_3 = 0x87;
const PICKLED_NONE = 0x4e;
const SHORT_TEXT = 0x8c;
const TEXT = 0x58;
const SHORT_TEXT_BYTES = 0xff;
// Major types of CBOR, and its null.
const CBOR_TEXT = 0x60;
const CBOR_ARRAY = 0x80;
const CBOR_NULL = 0xf6;
const CBOR_INLINE = 24;

const utf8 = new TextEncoder();

/** The serialised text of the seed, whose SHA-256 is the root of every chain. */
export function seedBytes({ algorithm, seed }: HashRule): Uint8Array {
  if (algorithm === 'sha256_cbor') return Uint8Array.from(cborText(seed));
  const body = [...pickledText(seed), STOP];
  return Uint8Array.from([...PROTOCOL_5_FRAME, ...littleEndian(body.length, 8), ...body]);
}

/** What follows the tokens of a chain's blocks in their serialised form. */
export function tailsOf(algorithm: HashRule['algorithm'], { loraName, rawSalt }: ExtraKeys): Tails {
  return { first: tailOf(algorithm, [loraName, rawSalt]), rest: tailOf(algorithm, [loraName]) };
}

/**
 * What follows the tokens of a block with these extra keys, at most two.
 * @throws RangeError above `MAX_TAIL_BYTES`.
 */
export function tailOf(
  algorithm: HashRule['algorithm'],
  extraKeys: readonly (string | null | undefined)[],
): Uint8Array {
  const texts = extraKeys.filter((key): key is string => typeof key === 'string' && key !== '');
  const tail = algorithm === 'sha256_cbor' ? cborTail(texts) : pickledTail(texts);
  if (tail.length > MAX_TAIL_BYTES) {
    throw new RangeError(`extra keys of a block come to ${tail.length} bytes; at most ${MAX_TAIL_BYTES} are hashed`);
  }
  return Uint8Array.from(tail);
}

function pickledTail(texts: readonly string[]): number[] {
  const end = [TUPLE_3, MEMOIZE, STOP];
  if (texts.length === 0) return [PICKLED_NONE, ...end];
  // Equal texts are objects of their own in the engine, so that the second is no reference to the first.
  return [...texts.flatMap(pickledText), texts.length === 1 ? TUPLE_1 : TUPLE_2, MEMOIZE, ...end];
}

function pickledText(text: string): number[] {
  const bytes = utf8.encode(text);
  const { length } = bytes;
  const head = length <= SHORT_TEXT_BYTES ? [SHORT_TEXT, length] : [TEXT, ...littleEndian(length, 4)];
  return [...head, ...bytes, MEMOIZE];
}

function littleEndian(value: number, bytes: number): number[] {
  return Array.from({ length: bytes }, (_, i) => (i < 4 ? (value >>> (8 * i)) & 0xff : 0));
}

function cborTail(texts: readonly string[]): number[] {
  return texts.length === 0 ? [CBOR_NULL] : [CBOR_ARRAY | texts.length, ...texts.flatMap(cborText)];
}

/** A text; its length in as few bytes as can be. */
function cborText(text: string): number[] {
  const bytes = utf8.encode(text);
  const { length } = bytes;
  if (length < CBOR_INLINE) return [CBOR_TEXT | length, ...bytes];
  const size = length <= 0xff ? 1 : length <= 0xffff ? 2 : 4;
  const head = CBOR_TEXT | (CBOR_INLINE + Math.log2(size));
  return [head, ...littleEndian(length, size).reverse(), ...bytes];
}
