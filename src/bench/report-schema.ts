// What `moonroute bench --json` prints and what a baseline file holds (docs/bench.md). The bench bundle makes them; the command reads them
// back for --compare.
import { z } from 'zod';

/** Of the files' shapes. */
export const REPORT_VERSION = 1;

const count = z.number().int().nonnegative();
const positive = z.number().positive();

/** A median, and where it lies with a confidence of 95 %. */
const interval = z.strictObject({ median: positive, low: positive, high: positive });

/** Nanoseconds an item (or bytes): the median of all turns, and the spread. */
const spread = z.strictObject({ median: positive, p10: positive, p90: positive });

const counters = z.record(z.string(), z.number().nonnegative());

const growth = z.strictObject({
  /** `time`, or the name of a counter. */
  of: z.string(),
  exponent: z.number(),
  /** How much of the spread the fitted line explains, 0 … 1. */
  fit: z.number(),
});

const row = z.strictObject({
  size: count,
  /** Null where a short run only counted. */
  turns: count.nullable(),
  a: spread.nullable(),
  b: spread.nullable(),
  /** The rival's time (or bytes) over the core's: above 1 where the core is better. */
  ratio: interval.extend({ p10: positive, p90: positive }).nullable(),
  aim: z.strictObject({ atLeast: positive, met: z.boolean() }).nullable(),
  counters,
});

const suite = z.strictObject({
  name: z.string(),
  title: z.string(),
  measures: z.enum(['time', 'bytes']),
  unit: z.string(),
  sizeOf: z.string(),
  rival: z.string().nullable(),
  rows: z.array(row),
  growth: z.array(growth),
});

const environment = z.strictObject({
  engine: z.string(),
  /** Name and major version: ratios are compared between the same ones only. */
  engineFamily: z.string(),
  machine: z.string(),
  processors: count,
  package: z.string(),
  commit: z.string(),
  date: z.string(),
  /** Smallest step of the clock, in milliseconds. */
  clockStep: positive,
});

export const ReportSchema = z.strictObject({
  format: z.literal('moonroute-bench'),
  version: z.literal(REPORT_VERSION),
  /** Changes when the suites' work does: counters and ratios of different ones have nothing to do with each other. */
  workload: count,
  mode: z.enum(['quick', 'full']),
  environment,
  rivals: z.record(z.string(), z.string()),
  method: z.strictObject({ confidence: positive, resamples: count, slowDown: z.string().nullable() }),
  seconds: positive,
  suites: z.array(suite),
});

export const BaselineSchema = z.strictObject({
  format: z.literal('moonroute-bench-baseline'),
  version: z.literal(REPORT_VERSION),
  workload: count,
  engineFamily: z.string(),
  /** Of how many runs it is made. */
  runs: count,
  /** By `suite/size`. */
  rows: z.record(z.string(), z.strictObject({ ratio: interval.nullable(), counters })),
});

export type Report = z.infer<typeof ReportSchema>;
export type ReportSuite = z.infer<typeof suite>;
export type ReportRow = z.infer<typeof row>;
export type Environment = z.infer<typeof environment>;
export type Baseline = z.infer<typeof BaselineSchema>;
