// What a command or a page has after its simulations: the traces as they were read, the runs, and capacity curves. This is also the
// document that `--json` prints, so names are stable.
import type { SweepPoint } from './sweep.js';
import type { TraceFormat, TraceWarning } from './traces/types.js';
import type { SimConfig, SimReport } from './types.js';

/** What was read of one trace, as far as it was read. */
export interface TraceFacts {
  /** A file's path, `standard input`, or `built-in workload` with what made it. */
  readonly name: string;
  /** Null for the built-in workload. */
  readonly format: TraceFormat | null;
  readonly gzip: boolean;
  /** Requests that the simulator was given. */
  readonly requests: number;
  /** Rows that gave none. */
  readonly skipped: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Tokens that one id stands for; null while no request had ids. */
  readonly idTokens: number | null;
  readonly distinctIds: number;
  /** Milliseconds of the trace's clock, from its first arrival to its last. */
  readonly span: number;
  readonly warnings: readonly TraceWarning[];
}

/** One simulation with what it was told. */
export interface SimRun {
  /** The trace's name. */
  readonly trace: string;
  readonly policy: string;
  /** Null outside a sweep. */
  readonly point: SweepPoint | null;
  /** Cut short: only the requests of the report were simulated. */
  readonly partial: boolean;
  readonly config: SimConfig;
  readonly report: SimReport;
}

/** How often one cache of some size would have hit. */
export interface CurvePart {
  /** Ids that the cache holds. */
  readonly capacity: number;
  readonly bytes: number;
  /** References to ids that hit. */
  readonly hits: number;
  /** Of all references, 0 … 1. */
  readonly share: number;
}

/** The capacity curve of one trace. */
export interface CurveReport {
  readonly trace: string;
  readonly idTokens: number;
  /** Bytes that one id costs the cache. */
  readonly bytesPerId: number;
  readonly references: number;
  readonly distinct: number;
  /** At round sizes, and last without a limit. */
  readonly points: readonly CurvePart[];
  /** Its corners, thinned: each is the least capacity with so many hits. */
  readonly corners: readonly CurvePart[];
  readonly partial: boolean;
}

/** All that was found. */
export interface SimResult {
  /** Whether something was cut short. */
  readonly partial: boolean;
  readonly traces: readonly TraceFacts[];
  readonly runs: readonly SimRun[];
  readonly curves: readonly CurveReport[];
}
