// Traces as the command opens them: files, pipes and standard input. What can be read once only is kept in memory where several runs need it.
import { createReadStream, type Stats, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { ConfigError } from '../errors.js';
import { openBytes, type TraceInput, unreadable } from '../sim/trace-input.js';
import type { TraceOptions } from '../sim/traces/read.js';

/** Bytes of a pipe that are kept for further runs. */
const MAX_KEPT_BYTES = 256 << 20;

/**
 * A trace by its path; `-` is standard input. It can be read as often as `passes` says.
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
      const chunks = async function* (): AsyncGenerator<Uint8Array> {
        yield* kept === null ? stream! : await kept;
      };
      return openBytes(
        { name, source: chunks(), size: again ? stats.size : null, close: () => stream?.destroy() },
        options,
      );
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
