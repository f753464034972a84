// The order of the store's messages: what follows on what, and what a break means. A pure rule (design.md 5), apart from the cache
// so that it can be read and tested as a table.

/** How a message stands to the one before. */
export type SequenceStep = 'first' | 'next' | 'duplicate' | 'gap';

const MASK = (1n << 64n) - 1n;

/** Where `sequence` stands; `last` is that of the message before, null right after a (re)connect. Numbers wrap at 2^64. */
export function sequenceStep(last: bigint | null, sequence: bigint): SequenceStep {
  if (last === null) return 'first';
  if (sequence === last) return 'duplicate';
  return sequence === ((last + 1n) & MASK) ? 'next' : 'gap';
}
