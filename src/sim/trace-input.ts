// Traces as a command or a page opens them: bytes from anywhere, or the built-in workload. A trace is read once for each run, always as a stream.
import { ConfigError, MoonrouteError } from '../errors.js';
import { chunksOf, type TraceSource } from './traces/bytes.js';
import { readTrace, type TraceOptions } from './traces/read.js';
import type { TraceReport, TraceRequest } from './traces/types.js';
import { builtInWorkload, type WorkloadOptions } from './workload.js';

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

/** A trace that can be read as often as is needed. */
export interface TraceInput {
  readonly name: string;
  readonly open: () => Promise<OpenTrace>;
}

/** Where the bytes of a trace come from. */
export interface TraceBytes {
  readonly name: string;
  readonly source: TraceSource;
  /** Bytes that there are; null where that is not known. */
  readonly size: number | null;
  readonly close: () => void;
}

/** Begins to read a trace; what its reader refuses names it. */
export function openBytes({ name, source, size, close }: TraceBytes, options: TraceOptions): OpenTrace {
  let read = 0;
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of chunksOf(source)) {
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
    close,
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

async function* namingErrors(requests: AsyncIterable<TraceRequest>, name: string): AsyncGenerator<TraceRequest> {
  try {
    yield* requests;
  } catch (error) {
    if (!(error instanceof MoonrouteError) || error.message.includes(name)) throw error;
    throw new MoonrouteError(error.code, `${name}: ${error.message}`, { cause: error });
  }
}

export const unreadable = (path: string, error: unknown): ConfigError =>
  new ConfigError('trace-unreadable', `cannot read ${path}: ${(error as Error).message}`);
