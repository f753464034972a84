// What the page and its worker say to each other.
import type { BenchProgress } from '../../src/bench/bundle.js';
import type { Report } from '../../src/bench/report-schema.js';

export interface Ask {
  readonly mode: 'quick' | 'full';
  /** Null for all. */
  readonly suites: readonly string[] | null;
  readonly machine: string;
  readonly processors: number;
}

export type Answer =
  | { readonly kind: 'progress'; readonly progress: BenchProgress }
  | { readonly kind: 'report'; readonly report: Report }
  | { readonly kind: 'failed'; readonly text: string };
