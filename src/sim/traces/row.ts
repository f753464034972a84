// What the formats have in common: a row as read, before its ids are numbered, and how numbers in it are judged.
import type { TraceId } from './ids.js';

export interface Row {
  readonly line: number;
  readonly at: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** As the file has them; or as numbers of the trace's `TraceIds` already. */
  readonly ids: readonly TraceId[] | Uint32Array | null;
  readonly sessionId: string | null;
  readonly delay: number | null;
}

/** Reads one row of a known format; null when it was skipped, which it has then counted. */
export type RowReader = (text: string, line: number) => Row | null;

/** Rebuilds requests from lines of which none is one by itself; what a line completed is there to be taken, in order of arrival. */
export interface RowRebuilder {
  /** Tokens an id stands for. */
  readonly idTokens: number;
  add(text: string, line: number): void;
  /** There are no more lines. */
  end(): void;
  /** The next row that is complete; null for none. */
  take(): Row | null;
}

/** More tokens than any prompt; lengths up to here are safe in 32 bits. */
const MAX_TOKENS = 0x7fff_ffff;

/** What a row that does not say how much was generated counts as. */
export const UNKNOWN_OUTPUT_TOKENS = 1;

export const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

export const isTokens = (value: unknown, least: number): value is number =>
  Number.isInteger(value) && (value as number) >= least && (value as number) <= MAX_TOKENS;
