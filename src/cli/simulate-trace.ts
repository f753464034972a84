// Traces as the command opens them: files, pipes and standard input, or the built-in workload. A trace is read once for each run, always
// as a stream; what can be read once only is kept in memory where several runs need it.
import { createReadStream, type Stats, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { ConfigError, MoonrouteError } from '../errors.js';
import { readTrace, type TraceOptions } from '../sim/traces/read.js';
import type { TraceReport, TraceRequest } from '../sim/traces/types.js';
import { builtInWorkload, type WorkloadOptions } from '../sim/workload.js';

/** Bytes of a pipe that are kept for further runs. */
const MAX_KEPT_BYTES = 256 << 20;

/** A trace while it is read. */
export interface OpenTrace {
  readonly requests: AsyncIterable<TraceRequest> | Iterable<TraceRequest>;
  /** What the reader found so far; null for the built-in workload. */
  readonly report: TraceReport | null;
  /** Part of it that was read, 0 … 1; null where its end is not known. */
  readonly part: () => number | null;
  /** Ends a read that waits for more. */
  readonly close: () => void;
}

/** A trace that can be read as often as `passes` said. */
export interface TraceInput {
  readonly name: string;
  readonly open: () => Promise<OpenTrace>;
}

/**
 * A trace by its path; `-` is standard input.
 * @throws ConfigError `trace-unreadable`, at once where it can be known
 */
export function traceInput(path: string, options: TraceOptions, passes: number): TraceInput {
  const name = path === '-' ? 'standard input' : path;
  const stats = path === '-' ? null : statsOf(path);
  const again = stats?.isFile() === true;
  let kept: Promise<Uint8Array[]> | null = null;
  return {
    name,
    open: async () => {
      const stream: Readable | null =
        kept !== null ? null : path === '-' ? process.stdin : createReadStream(path, { highWaterMark: 1 << 18 });
      if (!again && passes > 1) kept ??= keep(stream!, name);
      const size = again ? stats.size : null;
      let read = 0;
      const chunks = async function* (): AsyncGenerator<Uint8Array> {
        try {
          for await (const chunk of kept === null ? stream! : await kept) {
            read += chunk.length;
            yield chunk;
          }
        } catch (error) {
          throw error instanceof MoonrouteError ? error : unreadable(name, error);
        }
      };
      const trace = readTrace(chunks(), options);
      return {
        requests: namingErrors(trace, name),
        report: trace.report,
        part: () => (size === null || size === 0 ? null : read / size),
        close: () => stream?.destroy(),
      };
    },
  };
}

/** The built-in workload. */
export function workloadInput(options: WorkloadOptions): TraceInput {
  const requests = options.requests;
  const name = `built-in workload, seed ${options.seed ?? 1}`;
  return {
    name,
    open: async () => {
      let given = 0;
      const counted = function* (): Generator<TraceRequest> {
        for (const request of builtInWorkload(options)) {
          given++;
          yield request;
        }
      };
      return {
        requests: counted(),
        report: null,
        part: () => (requests === undefined || requests === 0 ? null : given / requests),
        close: () => undefined,
      };
    },
  };
}

function statsOf(path: string): Stats {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (error) {
    throw unreadable(path, error);
  }
  if (stats.isDirectory())
    throw new ConfigError('trace-unreadable', `cannot read ${path}: it is a folder; name a file`);
  return stats;
}

async function keep(stream: Readable, name: string): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_KEPT_BYTES)
      throw new ConfigError(
        'trace-once',
        `${name} can be read once only, and is too large to keep for several runs; save it to a file, or ask for one policy and no sweep`,
      );
  }
  return chunks;
}

async function* namingErrors(requests: AsyncIterable<TraceRequest>, name: string): AsyncGenerator<TraceRequest> {
  try {
    yield* requests;
  } catch (error) {
    if (!(error instanceof MoonrouteError) || error.message.includes(name)) throw error;
    throw new MoonrouteError(error.code, `${name}: ${error.message}`, { cause: error });
  }
}

const unreadable = (path: string, error: unknown): ConfigError =>
  new ConfigError('trace-unreadable', `cannot read ${path}: ${(error as Error).message}`);
