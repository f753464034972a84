// What the trace tests share: files made of lines, read to the end, and the published traces where this checkout has them.
import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { readTrace, type TraceOptions } from '../../src/sim/traces/read.js';
import type { TraceReport, TraceRequest } from '../../src/sim/traces/types.js';

const TRACES = join(process.env['MOONROUTE_DATA'] ?? '../shared/data', 'traces');

export const bytesOf = (...lines: readonly string[]): Uint8Array => new TextEncoder().encode(lines.join('\n'));

/** Bytes in chunks of `size`. */
export function* chunked(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

export interface ReadTrace {
  readonly requests: TraceRequest[];
  readonly report: TraceReport;
}

/** Reads a trace made of these lines to its end, and checks that no row was lost. */
export const readLines = (lines: readonly string[], options?: TraceOptions): Promise<ReadTrace> =>
  readAll([bytesOf(...lines)], options);

export async function readAll(source: Parameters<typeof readTrace>[0], options?: TraceOptions): Promise<ReadTrace> {
  const trace = readTrace(source, options);
  const requests: TraceRequest[] = [];
  for await (const request of trace) requests.push(request);
  const { report } = trace;
  const skipped = report.warnings.filter((w) => w.skipped).reduce((sum, w) => sum + w.count, 0);
  if (report.rows !== requests.length + skipped || report.requests !== requests.length || report.skipped !== skipped)
    throw new Error(`${report.rows} rows gave ${requests.length} requests and ${skipped} skips`);
  return { requests, report };
}

/** Counts of warnings by code. */
export const countsOf = (report: TraceReport): Record<string, number> =>
  Object.fromEntries(report.warnings.map(({ code, count }) => [code, count]));

/** The bytes of a published trace, which is read in place; null, with a notice, where this checkout does not have it. */
export function publishedTrace(name: string): AsyncIterable<Uint8Array> | null {
  const file = join(TRACES, name);
  if (existsSync(file)) return createReadStream(file);
  console.log(`notice: ${file} is not there; what needs this published trace is skipped`);
  return null;
}
