// Requests for the simulator's tests, written shortly.
import type { TraceRequest } from '../../src/sim/index.js';

export interface ShortRequest {
  readonly at?: number;
  /** Ids of its blocks; null for none. Default none. */
  readonly ids?: readonly number[] | null;
  /** Default all of its ids whole. */
  readonly input?: number;
  /** Default 1. */
  readonly output?: number;
  readonly session?: string;
  readonly delay?: number;
}

/** Requests in order; an id has `idTokens` tokens. */
export function requestsOf(idTokens: number, rows: readonly ShortRequest[]): TraceRequest[] {
  return rows.map(({ at = 0, ids = null, input, output = 1, session = null, delay = null }, index) => {
    const inputTokens = input ?? (ids?.length ?? 0) * idTokens;
    return {
      index,
      at,
      inputTokens,
      outputTokens: output,
      hashIds: ids === null ? null : Uint32Array.from(ids),
      idTokens,
      fullIds: Math.min(ids?.length ?? 0, Math.floor(inputTokens / idTokens)),
      sessionId: session,
      delay,
      line: 0,
    };
  });
}

/** Ids `from` … `to` − 1. */
export const ids = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
