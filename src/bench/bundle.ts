// The bench bundle as the command sees it. The bundle stands in a folder of its own (build/bench), since its rivals are no dependencies of the package.
import type { Baseline, Environment, Report } from './report-schema.js';

export interface SuiteInfo {
  readonly name: string;
  readonly title: string;
  readonly rival: string | null;
  readonly sizeOf: string;
  readonly sizes: readonly number[];
  /** What a short run times. */
  readonly quickSizes: readonly number[];
}

export interface BenchProgress {
  readonly suite: string;
  readonly size: number | null;
  readonly done: number;
  readonly all: number;
}

export interface BenchRun {
  readonly mode: 'quick' | 'full';
  readonly environment: Environment;
  readonly engine: { heapBytes(): number | null };
  readonly slowDown?: { readonly suite: string; readonly factor: number } | undefined;
  readonly progress?: (progress: BenchProgress) => void;
}

/** What is said of one number. */
export interface BenchFinding {
  /** `suite/size`. */
  readonly row: string;
  readonly suite: string;
  readonly kind: 'ratio' | 'counter';
  /** The counter's name; `ratio` of a ratio. */
  readonly what: string;
  readonly base: number;
  readonly now: number;
  /** Percent by which it is worse, beyond all spread for a ratio. */
  readonly worseBy: number;
}

/** A run beside its base. */
export interface BenchComparison {
  readonly failures: readonly BenchFinding[];
  /** What got better, or could not be compared. */
  readonly notes: readonly string[];
  readonly comparedRatios: number;
  readonly comparedCounters: number;
}

/** What the built bundle offers to the command. */
export interface BenchBundle {
  readonly suites: readonly SuiteInfo[];
  /** Raised when the suites' work changes: earlier figures are then no base. */
  readonly workload: number;
  /** @param names null for all that the mode runs */
  run(names: readonly string[] | null, options: BenchRun): Promise<Report>;
  /** Smallest step of the clock, in milliseconds. */
  clockStep(): number;
  baselineOf(reports: readonly Report[]): Baseline;
  /** @param threshold percent */
  compare(report: Report, base: Baseline, threshold: number): BenchComparison;
  shownFinding(finding: BenchFinding): string;
  tableOf(report: Report): string;
  markdownOf(report: Report): string;
  actionOf(report: Report): readonly { readonly name: string; readonly unit: string; readonly value: number }[];
}
