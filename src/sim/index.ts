// The simulator: traces, the built-in workload, capacity curves and the engine (design.md 4).
export { checkSimConfig, type SimConfigInput } from './config.js';
export { CapacityCurve, type CurveOptions, type CurvePoint } from './curve.js';
export { curvesCsv, runsCsv } from './report-csv.js';
export { curveReport, curveText } from './report-curve.js';
export { reportHtml } from './report-html.js';
export { policyTable, sweepTable } from './report-table.js';
export type * from './report-types.js';
export { type SimOptions, simulate } from './simulate.js';
export type { TraceSource } from './traces/bytes.js';
export type { CsvColumns, TimeUnit } from './traces/csv.js';
export { TraceIds } from './traces/ids.js';
export { readTrace, type Trace, type TraceOptions } from './traces/read.js';
export * from './traces/types.js';
export type * from './types.js';
export { builtInWorkload, type WorkloadMix, type WorkloadOptions } from './workload.js';
