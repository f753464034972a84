// Suites that are quick to make, and the counters of a report, for tests that compare engines.
import type { Report } from '../../src/bench/report-schema.js';

/** One of each kind: lookups, learning, objects, messages, hashing, index. */
export const FAST_SUITES = ['lookup-alone', 'learn', 'wire', 'vllm-arrays', 'hash', 'index-events'];

export function countersOf({ suites }: Report): Record<string, Record<string, number>> {
  return Object.fromEntries(
    suites.flatMap(({ name, rows }) => rows.map(({ size, counters }) => [`${name}/${size}`, counters])),
  );
}
