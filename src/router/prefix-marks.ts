// Marks by which prefixes are recognised, without keeping or passing over a prompt: a mark is a position in blocks and a fingerprint of a
// sample of the local hashes before it. Marks stand at multiples of a power of two, so that prompts which share a prefix share marks
// though their ends differ. Two prefixes that a sample takes for one must not matter much to whoever uses them (feedback.ts).

/** Most marks of one prefix. */
const MARKS_OF_PREFIX = 16;

/** Marks of a prefix of so many blocks. */
export function markCount(blocks: number): number {
  return Math.ceil(blocks / strideOf(blocks));
}

/** Blocks before mark `i` of a prefix: a multiple of the stride, but the last stands at the end. */
export function markPosition(i: number, blocks: number): number {
  return Math.min((i + 1) * strideOf(blocks), blocks);
}

/** Local hashes as pairs of words, the low one first, so that no BigInt is made. */
export function hashWords({ buffer, byteOffset, length }: BigUint64Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length * 2);
}

/**
 * The fingerprint of the first `position` blocks (1 or more): of their number, and of the hashes at position − 1, position / 2,
 * position / 4 … 0. Local hashes are random bits already, so it is enough to make their order count. Made as two words, of which the
 * result holds 53 bits: a whole number.
 */
export function fingerprint(words: Uint32Array, position: number): number {
  let low = position;
  let high = 0;
  for (let block = position - 1, next = position >>> 1; ; block = next, next >>>= 1) {
    low = Math.imul(low ^ words[2 * block]!, 0x85ebca6b);
    high = Math.imul(high ^ words[2 * block + 1]! ^ (low >>> 15), 0xc2b2ae35);
    low ^= high >>> 13;
    if (block === 0) break;
  }
  return (low >>> 0) + (high & 0x1f_ffff) * 0x1_0000_0000;
}

/** Blocks from mark to mark: the least power of two that leaves one mark for the end. */
function strideOf(blocks: number): number {
  let stride = 1;
  while (blocks > stride * MARKS_OF_PREFIX) stride *= 2;
  return stride;
}
