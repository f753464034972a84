// What a suite is: one question about the core, asked at several sizes, of the core (A) and of a rival written in the plain good way (B), with the
// counts that are the same on every machine. A suite makes all that it needs from fixed seeds, and nothing in it depends on time.
import type { Side } from './method/pairing.js';

/** Costs that are the same on every machine: less is better. */
export type Counters = Readonly<Record<string, number>>;

/** One size of a suite. */
export interface Contest {
  readonly a: Side;
  /** Null where there is nobody to compare with. */
  readonly b: Side | null;
  /** Throws where the contenders answer differently: a ratio between them would mean nothing. */
  check?(): void;
  /** Does the work once, and counts. Asked once, of all sizes in order, before anything is timed. */
  counters(): Counters;
  /** Comes before the turns. */
  begin?(): void;
}

/** Sizes in bytes that are read off once, not timed. */
export interface Weighing {
  readonly a: number;
  readonly b: number | null;
  counters(): Counters;
}

/** What an engine offers beside the language. */
export interface Engine {
  /** Bytes in use on the JavaScript heap after a collection; null where nobody tells. */
  heapBytes(): number | null;
}

interface Named {
  /** In lower case with hyphens; commands and baselines use it. */
  readonly name: string;
  readonly title: string;
  /** What the rival is; null where there is none. */
  readonly rival: string | null;
  /** What one item is, of which times are given. */
  readonly unit: string;
  /** What sizes count. */
  readonly sizeOf: string;
  /** Ascending. */
  readonly sizes: readonly number[];
  /** What a short run times; it counts at all sizes. */
  readonly quickSizes: readonly number[];
  /** Ratios that the project aims at, by size. */
  readonly aims?: Readonly<Record<number, number>>;
}

export interface TimedSuite extends Named {
  readonly kind: 'time';
  /** Everything that the sizes share, then a contest for each. */
  make(): Promise<(size: number) => Contest | Promise<Contest>>;
}

export interface WeighedSuite extends Named {
  readonly kind: 'bytes';
  weigh(engine: Engine, size: number): Promise<Weighing>;
}

export type Suite = TimedSuite | WeighedSuite;
