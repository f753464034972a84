// A trace of one's own: the file, and its name, size and hash by which a link asks for it again. The file stays in this browser.
import { bytesText } from '../../sim/report-format.js';
import { Sha256 } from './sha256.js';

/** What a link says of a trace. */
export interface TraceName {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** In hex, of its first `HASHED_BYTES`; null while it is worked out. */
  readonly sha256: string | null;
}

/** A larger file is known by this beginning and its size: hashing goes on beside the page's drawing, and should end within a second or two. */
const HASHED_BYTES = 64 << 20;
/** Short enough to be hashed between two frames. */
const SLICE_BYTES = 256 << 10;

/** SHA-256 of the file, or of its beginning. */
export async function hashOfFile(file: File): Promise<string> {
  const hash = new Sha256();
  const end = Math.min(file.size, HASHED_BYTES);
  for (let from = 0; from < end; from += SLICE_BYTES)
    hash.add(new Uint8Array(await file.slice(from, Math.min(end, from + SLICE_BYTES)).arrayBuffer()));
  return hash.end();
}

/** Null is the built-in workload. A hash that is not known yet says nothing. */
export const sameTrace = (a: TraceName | null, b: TraceName | null): boolean =>
  a === b || (a?.size === b?.size && (a?.sha256 ?? b?.sha256) === (b?.sha256 ?? a?.sha256) && a?.name === b?.name);

/** `trace.jsonl, 1.2 MB`. */
export const traceText = ({ name, size }: TraceName): string =>
  `${name}${Number.isFinite(size) ? `, ${bytesText(size)}` : ''}`;

/** Which of two traces is meant is told by size and hash; names may change. Null where it is the one that was asked for. */
export function otherThan(wanted: TraceName, given: TraceName): string | null {
  if (Number.isFinite(wanted.size) && wanted.size !== given.size)
    return `The link was made with ${traceText(wanted)}; ${given.name} has ${bytesText(given.size)}. It is another file, so the numbers will differ.`;
  if (wanted.sha256 === null || given.sha256 === null || wanted.sha256 === given.sha256) return null;
  return `The link was made with ${traceText(wanted)} (SHA-256 ${wanted.sha256.slice(0, 12)}…); ${given.name} is as long, but has other content (${given.sha256.slice(0, 12)}…), so the numbers will differ.`;
}
