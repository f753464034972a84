// Whether a run is worse than its base. Times are no evidence: what counts are ratios and counters. A ratio fails only when its whole interval
// lies below the base's whole interval by more than the threshold; a counter fails when it grew at all. A base of several runs has
// the interval that holds all of theirs, so what the machine does to a ratio from one process to the next is in it.
import type { BenchComparison, BenchFinding } from '../../src/bench/bundle.js';
import type { Baseline, Report } from '../../src/bench/report-schema.js';

/** The base that one or more reports make. */
export function baselineOf(reports: readonly Report[]): Baseline {
  const [first] = reports;
  if (first === undefined) throw new RangeError('a baseline needs a report');
  const rows: Baseline['rows'] = {};
  for (const { suites } of reports)
    for (const { name, rows: sizes } of suites)
      for (const { size, ratio, counters } of sizes) {
        const key = `${name}/${size}`;
        const before = rows[key]?.ratio ?? null;
        const now = ratio === null ? null : { median: ratio.median, low: ratio.low, high: ratio.high };
        rows[key] = { ratio: widest(before, now), counters };
      }
  const medians = new Map<string, number[]>();
  for (const { suites } of reports)
    for (const { name, rows: sizes } of suites)
      for (const { size, ratio } of sizes)
        if (ratio !== null) medians.set(`${name}/${size}`, [...(medians.get(`${name}/${size}`) ?? []), ratio.median]);
  for (const [key, values] of medians) {
    const sorted = values.sort((x, y) => x - y);
    rows[key]!.ratio!.median = sorted[sorted.length >> 1]!;
  }
  const { workload, environment } = first;
  return {
    format: 'moonroute-bench-baseline',
    version: 1,
    workload,
    engineFamily: environment.engineFamily,
    runs: reports.length,
    rows,
  };
}

type Ratio = Baseline['rows'][string]['ratio'];

function widest(one: Ratio, other: Ratio): Ratio {
  if (one === null || other === null) return one ?? other;
  return { median: one.median, low: Math.min(one.low, other.low), high: Math.max(one.high, other.high) };
}

/** @param threshold percent */
export function compare(report: Report, base: Baseline, threshold: number): BenchComparison {
  const failures: BenchFinding[] = [];
  const notes: string[] = [];
  let comparedRatios = 0;
  let comparedCounters = 0;
  const { engineFamily } = report.environment;
  const sameEngine = engineFamily === base.engineFamily;
  if (!sameEngine)
    notes.push(
      `ratios are not compared: the base was made with ${base.engineFamily}, this run with ${engineFamily}; counters are`,
    );
  for (const suite of report.suites)
    for (const { size, ratio, counters } of suite.rows) {
      const row = `${suite.name}/${size}`;
      const known = base.rows[row];
      if (known === undefined) {
        notes.push(`${row} is not in the base`);
        continue;
      }
      if (ratio !== null && known.ratio !== null && sameEngine) {
        comparedRatios++;
        const worseBy = 100 * (1 - ratio.high / known.ratio.low);
        if (worseBy > threshold)
          failures.push({
            ...{ row, suite: suite.name, kind: 'ratio', what: 'ratio' },
            ...{ base: known.ratio.low, now: ratio.high, worseBy },
          });
        else if (ratio.low > known.ratio.high * (1 + threshold / 100))
          notes.push(`${row} is better: ${factor(ratio.median)} × against ${factor(known.ratio.median)} ×`);
      }
      // Counts of 0 are left out of reports: what is not there is 0.
      for (const what of new Set([...Object.keys(known.counters), ...Object.keys(counters)])) {
        const value = known.counters[what] ?? 0;
        const now = counters[what] ?? 0;
        comparedCounters++;
        if (now > value)
          failures.push({
            ...{ row, suite: suite.name, kind: 'counter', what },
            ...{ base: value, now, worseBy: value === 0 ? 100 : 100 * (now / value - 1) },
          });
        else if (now < value) notes.push(`${row}: ${what} fell from ${value} to ${now}`);
      }
    }
  return { failures, notes, comparedRatios, comparedCounters };
}

/** A failure and what to do about it. */
export function shownFinding({ row, suite, kind, what, base, now, worseBy }: BenchFinding): string {
  if (kind === 'counter')
    return `${row}: ${what} grew from ${base} to ${now} (${worseBy.toFixed(1)} %). Counters are the same on every machine: the code does more than it did.`;
  return (
    `${row}: at best ${factor(now)} × its rival, the base at worst ${factor(base)} ×: ${worseBy.toFixed(0)} % slower. ` +
    `Look closer with: moonroute bench ${suite}`
  );
}

/** A ratio as a person reads it. */
export function factor(ratio: number): string {
  return ratio >= 100 ? ratio.toFixed(0) : ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2);
}
