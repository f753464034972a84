// A simulation's report made by hand, with numbers that are easy to check, for the tests of what is shown of it.
import { checkSimConfig, type SimConfigInput } from '../../src/sim/config.js';
import type { SimRun, TraceFacts } from '../../src/sim/report-types.js';
import type { SweepPoint } from '../../src/sim/sweep.js';
import type { SimReport } from '../../src/sim/types.js';

export function reportOf(changes: Partial<SimReport> = {}): SimReport {
  return {
    policy: 'kv',
    requests: 100,
    completed: 100,
    refused: 0,
    tokens: { prompt: 17_000, cached: 8000, computed: 9000, generated: 2000 },
    blocks: { full: 1000, gpu: 300, dram: 150, ssd: 50, computed: 500 },
    reachableBlocks: 550,
    ceilingBlocks: 600,
    ttft: { p50: 200, p90: 1500, p99: 90_000, mean: 400 },
    latency: { p50: 2000, p90: 4000, p99: 8000, mean: 2500 },
    duration: 10_000,
    imbalance: 1.25,
    perWorker: [
      { requests: 60, busy: 5000, hitBlocks: 300 },
      { requests: 40, busy: 3000, hitBlocks: 200 },
    ],
    store: {
      fetchedBytes: 1e9,
      peakFetch: 4e8,
      putBytes: 2e9,
      dramPeakBytes: 5e8,
      ssdPeakBytes: 0,
      evictedBlocks: 7,
    },
    credit: {
      credited: 40,
      right: 30,
      short: 4,
      stale: 6,
      shortBlocks: 8,
      staleBlocks: 12,
      zero: { 'held-locally': 20, 'edge-unknown': 40 },
    },
    router: {
      indexEvictions: 1,
      edgeEvictions: 2,
      digestEvictions: 3,
      clears: 0,
      messages: 1000,
      lostMessages: 0,
    },
    ...changes,
  };
}

export function runOf(
  changes: Partial<SimRun> = {},
  config: SimConfigInput = {},
  report: Partial<SimReport> = {},
): SimRun {
  const policy = changes.policy ?? 'kv';
  return {
    trace: 'a.jsonl',
    policy,
    point: null,
    partial: false,
    config: checkSimConfig(config),
    report: reportOf({ policy, ...report }),
    ...changes,
  };
}

/** Runs of a sweep over the store, for each policy at each of `values`. */
export const sweepOfStore = (policies: readonly string[], values: readonly number[]): SimRun[] =>
  values.flatMap((value) => {
    const point: SweepPoint = { axis: 'store', value };
    return policies.map((policy) => runOf({ policy, point }, { store: { dramBytes: value } }));
  });

export const factsOf = (changes: Partial<TraceFacts> = {}): TraceFacts => ({
  name: 'a.jsonl',
  format: 'fast25',
  gzip: false,
  requests: 100,
  skipped: 0,
  promptTokens: 17_000,
  outputTokens: 2000,
  idTokens: 512,
  distinctIds: 50,
  span: 9000,
  warnings: [],
  ...changes,
});
