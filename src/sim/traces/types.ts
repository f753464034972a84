// What a trace becomes: one request a row, and a report of everything that the file did not say plainly.

/** Formats that the reader knows. */
export const TRACE_FORMATS = ['fast25', 'qwen-bailian', 'csv', 'recording'] as const;

/**
 * `fast25`: JSONL of Mooncake's FAST'25 release, ids of 512 tokens, with the extensions session_id and delay;
 * `qwen-bailian`: JSONL of Alibaba's usage traces, ids of 16 tokens; `csv`: arrival and lengths only; `recording`: what `moonroute record`
 * writes, from whose workers' events requests are rebuilt.
 */
export type TraceFormat = (typeof TRACE_FORMATS)[number];

/** A request of a trace, whatever format it was read from. */
export interface TraceRequest {
  /** Place in the order of arrival, from 0. */
  readonly index: number;
  /** Arrival in milliseconds on the trace's own clock; may have a fraction. */
  readonly at: number;
  /** Tokens of the whole prompt, ≥ 1. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The prompt's blocks as compact numbers, 0 … in order of first appearance in the file; an id names all that comes before it too. */
  readonly hashIds: Uint32Array | null;
  /** Tokens that one id stands for. */
  readonly idTokens: number;
  /** Leading ids that stand for a whole block: never the partial tail, which earns no credit. 0 without ids. */
  readonly fullIds: number;
  readonly sessionId: string | null;
  /** Milliseconds after the end of the session's previous request; null where only `at` counts. */
  readonly delay: number | null;
  /** Line of the file, from 1: of a recording, where its first blocks were stored; 0 for a request that was not read from one. */
  readonly line: number;
}

/** Why a row gave no request. */
export type TraceSkip = 'blank-row' | 'malformed-row' | 'missing-field' | 'bad-value';

/** What was odd about rows that did. */
export type TraceOddity =
  | 'no-output-length'
  | 'no-hash-ids'
  | 'bad-hash-ids'
  | 'block-count'
  | 'partial-tail'
  | 'two-parents'
  | 'parent-not-checked'
  | 'delay-without-session'
  | 'placed-by-delay'
  | 'unknown-parent-chat'
  | 'equal-timestamps'
  | 'unsorted-row'
  | 'out-of-order'
  | RecordingOddity;

/** What was odd about a recording, or what its events can't show. */
export type RecordingOddity =
  | 'recording-estimate'
  | 'recording-one-block'
  | 'recording-unknown-root'
  | 'recording-no-output'
  | 'recording-other-block-size'
  | 'recording-other-group'
  | 'recording-other-tier'
  | 'recording-dropped-event'
  | 'recording-bad-event'
  | 'recording-unreadable'
  | 'recording-loss'
  | 'recording-cut-short'
  | 'recording-no-worker';

/** What was odd in a trace, how often, and what was made of it. */
export interface TraceWarning {
  readonly code: TraceSkip | TraceOddity;
  /** Rows; for `two-parents` and `parent-not-checked`, ids in rows; of a recording, what the text counts. */
  readonly count: number;
  readonly firstLine: number;
  /** Whether these rows were left out. */
  readonly skipped: boolean;
  /** What it means and what was done, for people. */
  readonly text: string;
  /** The beginning of the first few rows, where seeing them helps. */
  readonly quotes: readonly string[];
}

/** Grows while the trace is read, and is complete when it ends: rows = requests + skipped. */
export interface TraceReport {
  /** Null until a row has shown it. */
  readonly format: TraceFormat | null;
  readonly gzip: boolean;
  /** Lines of the file but a CSV's header; of a recording, requests rebuilt and lines that could not be read. */
  readonly rows: number;
  readonly requests: number;
  /** Rows that gave no request, each counted by one warning with `skipped`. */
  readonly skipped: number;
  /** Different ids in this file and all that share its `ids`. */
  readonly distinctIds: number;
  /** In order of first appearance. */
  readonly warnings: readonly TraceWarning[];
}
