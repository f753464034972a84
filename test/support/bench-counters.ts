// Suites that are quick to make, and the counters of a report, for tests that compare engines.
import type { Report } from '../../src/bench/report-schema.js';

/** One of each kind: lookups, learning, objects, messages, hashing, index. */
export const FAST_SUITES = ['lookup-alone', 'learn', 'wire', 'vllm-arrays', 'hash', 'index-events'];
/** Of those, what a browser has done soon, beside other tests too. */
export const PAGE_SUITES = ['learn', 'vllm-arrays', 'hash'];

export function countersOf({ suites }: Report): Record<string, Record<string, number>> {
  return Object.fromEntries(
    suites.flatMap(({ name, rows }) => rows.map(({ size, counters }) => [`${name}/${size}`, counters])),
  );
}
