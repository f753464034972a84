// Recordings and captures as one timeline, read as streams: what is held is a line of each file. Recordings that are read together are put
// in the order of time, each line after those of other files that were seen before it.
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { ConfigError, MoonrouteError } from '../errors.js';
import type { Recorded, RecordedHeader } from '../live/recording.js';
import { readRecordedLine } from '../live/recording-read.js';
import { unpacked } from '../sim/traces/bytes.js';
import { type Line, Lines } from '../sim/traces/lines.js';

/** Longest line: a message of 16 MiB has 22 MB, and older recordings have a key list in one line. */
const MAX_LINE_BYTES = 128 << 20;
const READ_BYTES = 1 << 18;
/** Files that are read together. */
export const MAX_FILES = 256;

/** Something that was seen, and where it stands. */
export interface ReplayEntry {
  readonly recorded: Exclude<Recorded, RecordedHeader>;
  readonly file: ReplayFile;
  readonly line: number;
  /** Milliseconds since the first recording began; null in a capture. */
  readonly at: number | null;
}

interface ReadLine {
  readonly recorded: Recorded;
  readonly line: number;
}

/** A file of which the first line has been read. */
export class ReplayFile {
  readonly path: string;
  /** What sources without a name are called. */
  readonly name: string;
  /** Why its last line is missing; null where it is not. */
  cutShort: string | null = null;
  /** Lines read. */
  lines = 0;
  readonly #lines: AsyncGenerator<ReadLine>;
  #first: ReadLine | null = null;

  private constructor(path: string) {
    this.path = path;
    this.name = basename(path).replace(/\..*$/, '');
    this.#lines = this.#read();
  }

  /** @throws ConfigError `file-unreadable`; MoonrouteError for a first line that is none */
  static async open(path: string): Promise<ReplayFile> {
    const file = new ReplayFile(path);
    const first = await file.#lines.next();
    if (!first.done) file.#first = first.value;
    return file;
  }

  /** The header that it begins with; null where it has none. */
  get header(): RecordedHeader | null {
    return this.#first?.recorded.type === 'header' ? this.#first.recorded : null;
  }

  /** Whether it has times: a capture has not. */
  get timed(): boolean {
    return this.#first !== null && (this.#first.recorded.type === 'header' || this.#first.recorded.t !== null);
  }

  /** All that was seen, in the order of the file; may be iterated once. `began`: when the first recording did. */
  async *entries(began: number | null): AsyncGenerator<ReplayEntry> {
    let offset = 0;
    const entry = ({ recorded, line }: ReadLine): ReplayEntry | null => {
      if (recorded.type === 'header') {
        offset = recorded.started - (began ?? recorded.started);
        return null;
      }
      return { recorded, file: this, line, at: recorded.t === null ? null : offset + recorded.t };
    };
    const first = this.#first === null ? null : entry(this.#first);
    if (first !== null) yield first;
    for await (const read of this.#lines) {
      const next = entry(read);
      if (next !== null) yield next;
    }
  }

  async *#read(): AsyncGenerator<ReadLine> {
    const lines = new Lines(MAX_LINE_BYTES);
    try {
      for await (const chunk of unpacked(this.#chunks(), () => undefined)) yield* this.#those(lines.split(chunk));
    } catch (error) {
      // A recorder that was killed leaves a packed file without its end.
      if (!(error instanceof MoonrouteError) || error.code !== 'trace-gzip' || this.lines === 0)
        throw this.#named(error);
      this.cutShort = `packed bytes end, or are damaged, behind line ${this.lines}`;
    }
    for (const last of lines.end()) {
      try {
        yield* this.#those([last]);
      } catch (error) {
        if (!(error instanceof MoonrouteError) || this.lines < 2) throw error;
        this.cutShort = `line ${last.number} has no end`;
      }
    }
  }

  *#those(lines: Iterable<Line>): Generator<ReadLine> {
    for (const { text, number } of lines) {
      this.lines = number;
      if (text.trim() === '') continue;
      const recorded = readRecordedLine(text, `${this.path}:${number}`);
      if (recorded !== null) yield { recorded, line: number };
    }
  }

  async *#chunks(): AsyncGenerator<Uint8Array> {
    try {
      yield* createReadStream(this.path, { highWaterMark: READ_BYTES });
    } catch (error) {
      throw new ConfigError('file-unreadable', `cannot read ${this.path}: ${(error as Error).message}`);
    }
  }

  #named(error: unknown): unknown {
    if (!(error instanceof MoonrouteError) || error.message.includes(this.path)) return error;
    return new MoonrouteError(error.code, `${this.path}: ${error.message}`, { cause: error });
  }
}

/**
 * Opens files, and says which are read together: recordings that stand next to each other. A capture has no times and is read by itself.
 * @throws ConfigError `too-many-files`, `file-unreadable`
 */
export async function openFiles(paths: readonly string[]): Promise<ReplayFile[][]> {
  if (paths.length > MAX_FILES)
    throw new ConfigError('too-many-files', `${paths.length} files are given; at most ${MAX_FILES} are read at once`);
  const groups: ReplayFile[][] = [];
  for (const path of paths) {
    const file = await ReplayFile.open(path);
    const last = groups.at(-1);
    if (file.timed && last?.[0]?.timed === true) last.push(file);
    else groups.push([file]);
  }
  return groups;
}

/** The entries of files in the order of time; of one time, in the order of the files. */
export async function* timeline(files: readonly ReplayFile[]): AsyncGenerator<ReplayEntry> {
  const starts = files.flatMap(({ header }) => (header === null ? [] : [header.started]));
  const began = starts.length === 0 ? null : Math.min(...starts);
  const readers = files.map((file) => file.entries(began));
  const heads: (ReplayEntry | null)[] = [];
  for (const reader of readers) heads.push(await headOf(reader));
  for (;;) {
    let earliest = -1;
    for (const [place, head] of heads.entries())
      if (head !== null && (earliest < 0 || (head.at ?? 0) < (heads[earliest]!.at ?? 0))) earliest = place;
    if (earliest < 0) return;
    yield heads[earliest]!;
    heads[earliest] = await headOf(readers[earliest]!);
  }
}

async function headOf(reader: AsyncGenerator<ReplayEntry>): Promise<ReplayEntry | null> {
  const { done, value } = await reader.next();
  return done ? null : value;
}
