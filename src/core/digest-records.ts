// Digests with their objects as a reconcile hands them to the core (assembly/reconcile.ts): what is listed is already grouped, so that
// staging is one copy and placing asks the tables once a digest.

/**
 * Words of a record: 0–5 the digest's first 24 bytes, 6–7 its low 64 bits (the low word first), 8–9 a bit for each object, 10 the page. Bit b
 * stands for the object under prefix `PAGE_PREFIXES` × page + b.
 */
export const RECORD_WORDS = 11;
export const LOW = 6;
export const MASK = 8;
export const PAGE = 10;
export const PAGE_PREFIXES = 64;

/** Records of digests, each (digest, page) once, the pages of a digest together. */
export interface DigestRecords {
  readonly words: Uint32Array;
  /** Records in `words`, from its start. */
  readonly count: number;
  /** Different digests among them, and objects. */
  readonly digests: number;
  readonly objects: number;
}

/** Whether records `i` and `j` are of one digest. */
export function sameDigest(words: Uint32Array, i: number, j: number): boolean {
  const a = i * RECORD_WORDS;
  const b = j * RECORD_WORDS;
  for (let word = 0; word < MASK; word++) if (words[a + word] !== words[b + word]) return false;
  return true;
}
