// A line of the reports that need sockets, processes or files (whole.ts, proxy.ts); what can run anywhere is a suite (suite.ts).
import type { Sample } from './method/sample.js';

/** Times in milliseconds. Aims are stated and judged, but a missed aim is a report, not a failure: machines differ. */
export interface Row {
  readonly suite: string;
  readonly core: Sample;
  readonly aim: string | null;
  readonly met: boolean | null;
  readonly note: string;
}

/** How long to measure. */
export interface Effort {
  readonly turns: number;
  /** Short runs leave out what takes minutes. */
  readonly short: boolean;
}

export const FULL: Effort = { turns: 15, short: false };
export const QUICK: Effort = { turns: 5, short: true };

/** Milliseconds as a person reads them. */
export function shownTime(ms: number): string {
  return ms < 1 ? `${(ms * 1000).toFixed(2)} µs` : `${ms.toFixed(2)} ms`;
}
