// The digest of an object key: 64 lowercase hex digits to the words of a record (core/digest-records.ts).
import { LOW } from '../core/digest-records.js';

export const DIGEST_DIGITS = 64;
const WORD_DIGITS = 8;
/** More than any value of four bits: what is no lowercase hex digit. */
const WRONG = 0x100;

/** Values of the digits by character code. */
const VALUES = new Uint16Array(256).fill(WRONG);
for (let value = 0; value < 16; value++) VALUES[value.toString(16).charCodeAt(0)] = value;

/** Reads the digits at `from` into eight words at `to`; false, and anything written, where one is no lowercase hex digit. */
export function readDigest(bytes: Uint8Array, from: number, words: Uint32Array, to: number): boolean {
  let wrong = 0;
  for (let word = 0; word < LOW; word++) {
    const at = from + word * WORD_DIGITS;
    const first = pair(bytes, at);
    const second = pair(bytes, at + 2);
    const third = pair(bytes, at + 4);
    const fourth = pair(bytes, at + 6);
    wrong |= first | second | third | fourth;
    words[to + word] = first | (second << 8) | (third << 16) | (fourth << 24); // in the order of the bytes
  }
  for (let word = 0; word < 2; word++) {
    const at = from + DIGEST_DIGITS - (word + 1) * WORD_DIGITS;
    const first = pair(bytes, at);
    const second = pair(bytes, at + 2);
    const third = pair(bytes, at + 4);
    const fourth = pair(bytes, at + 6);
    wrong |= first | second | third | fourth;
    words[to + LOW + word] = (first << 24) | (second << 16) | (third << 8) | fourth; // a number, the low word first
  }
  return wrong < WRONG;
}
/** The byte that two digits say; `WRONG` or more where one is none. */
function pair(bytes: Uint8Array, at: number): number {
  return (VALUES[bytes[at]!]! << 4) | VALUES[bytes[at + 1]!]!;
}
