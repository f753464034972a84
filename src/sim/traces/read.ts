// Reads a trace as a stream: bytes, lines, rows, requests in order of arrival. Memory goes by the longest line, the reordering window and
// the ids, never by the file. Whatever is odd is counted in the report; no row is lost without being counted.
import { ConfigError } from '../../errors.js';
import { ArrivalOrder } from './arrival-order.js';
import { type TraceSource, unpacked } from './bytes.js';
import type { CsvColumns, TimeUnit } from './csv.js';
import { TraceIds } from './ids.js';
import { type Line, Lines } from './lines.js';
import { Requests } from './requests.js';
import { TraceTally } from './tally.js';
import { TRACE_FORMATS, type TraceFormat, type TraceReport, type TraceRequest } from './types.js';

/** How a trace is read. All is optional. */
export interface TraceOptions {
  /** Forces a format; by default the first row tells. */
  readonly format?: TraceFormat;
  /** Tokens of one id, where they are not the format's own (512 and 16); of a recording, the block size that counts, by default the first. */
  readonly idTokens?: number;
  /** Header names of a CSV's columns, where they are not among the known ones. */
  readonly columns?: CsvColumns;
  /** Unit of a CSV's numeric times; default milliseconds, unless the header says seconds. */
  readonly timeUnit?: TimeUnit;
  /** Rows held back to put late ones in their place; default 1,024, 0 for none. */
  readonly reorderRows?: number;
  /** Default 24 MiB. */
  readonly maxLineBytes?: number;
  /** Numbers ids across the files of one trace; by default each file has its own. */
  readonly ids?: TraceIds;
}

/** Requests in order of arrival; may be iterated once. The report grows meanwhile and is complete at the end. */
export interface Trace extends AsyncIterable<TraceRequest> {
  readonly report: TraceReport;
}

const DEFAULT_REORDER_ROWS = 1024;
const MAX_REORDER_ROWS = 0x10_0000;
/** A worker's message of 16 MiB, the most that is read, is a recording's line of 22 MB. */
const DEFAULT_MAX_LINE_BYTES = 0x180_0000;
const MOST_LINE_BYTES = 0x1000_0000;

/**
 * Reads a trace from its bytes, packed with gzip or not.
 * @throws ConfigError at once for options that can't be; while iterating, MoonrouteError `trace-format`, `trace-line-length`,
 * `trace-gzip` or `trace-ids`, and whatever the source throws
 */
export function readTrace(source: TraceSource, options: TraceOptions = {}): Trace {
  check(options);
  const ids = options.ids ?? new TraceIds();
  const tally = new TraceTally(ids);
  const requests = requestsOf(source, options, ids, tally);
  return { report: tally, [Symbol.asyncIterator]: () => requests };
}

async function* requestsOf(
  source: TraceSource,
  options: TraceOptions,
  ids: TraceIds,
  tally: TraceTally,
): AsyncGenerator<TraceRequest, void, undefined> {
  const lines = new Lines(options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES);
  const requests = new Requests(options, ids, tally);
  const order = new ArrivalOrder(options.reorderRows ?? DEFAULT_REORDER_ROWS, tally);
  // Only chunks are waited for: a promise a line would take longer than the line.
  function* requestsIn(some: Iterable<Line>): Generator<TraceRequest> {
    for (const line of some) {
      for (let request = requests.read(line); request !== null; request = requests.next()) {
        order.put(request);
        while (order.full) yield order.take();
      }
    }
  }
  const bytes = unpacked(source, () => {
    tally.gzip = true;
  });
  for await (const chunk of bytes) for (const request of requestsIn(lines.split(chunk))) yield request;
  for (const request of requestsIn(lines.end())) yield request;
  requests.end();
  for (let request = requests.next(); request !== null; request = requests.next()) {
    order.put(request);
    while (order.full) yield order.take();
  }
  while (order.size > 0) yield order.take();
}

function check({ format, idTokens, timeUnit, reorderRows, maxLineBytes }: TraceOptions): void {
  const refuse = (name: string, value: unknown, wanted: string): never => {
    throw new ConfigError('trace-option', `${name} is ${value}; give ${wanted}`);
  };
  const within = (name: string, value: number | undefined, least: number, most: number): void => {
    if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
    refuse(name, value, `a whole number from ${least} to ${most}`);
  };
  if (format !== undefined && !TRACE_FORMATS.includes(format)) refuse('format', format, TRACE_FORMATS.join(', '));
  if (timeUnit !== undefined && timeUnit !== 'ms' && timeUnit !== 's') refuse('timeUnit', timeUnit, "'ms' or 's'");
  within('idTokens', idTokens, 1, 65_536);
  within('reorderRows', reorderRows, 0, MAX_REORDER_ROWS);
  within('maxLineBytes', maxLineBytes, 1, MOST_LINE_BYTES);
}
