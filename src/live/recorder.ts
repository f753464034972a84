// The recorder's decisions: what becomes a line, what is dropped, when a part ends and which one is deleted. Lines go out as steps for
// whoever has the files, and that one tells what has reached them; there is no file, socket or clock here.
//
// The disk may be slower than the streams. Lines that were handed out and have not landed are counted, and past a bound messages are dropped,
// until half of that is free again: few long holes are better than many short ones. A hole is said in a note, in its place in the stream.
import { readSequence, SEQUENCE_BYTES } from '../wire/frames.js';
import { MONITOR, NOTE, type RecordedSource } from './recording.js';
import {
  headerLine,
  keysLine,
  lineBytes,
  messageLine,
  messageLineBytes,
  monitorLine,
  noteLine,
  sameKeysLine,
  statusLine,
} from './recording-write.js';

/** What the files are to do, in this order. */
export type RecorderStep =
  | { readonly do: 'write'; readonly text: string; readonly bytes: number }
  /** The part so far gets this number, and a new one begins; `forget` is the number of the part to delete. */
  | { readonly do: 'rotate'; readonly part: number; readonly forget: number | null };

export interface RecorderOptions {
  readonly sources: readonly RecordedSource[];
  /** When it began, in milliseconds since 1970. All other times count from there. */
  readonly started: number;
  /** Bytes of lines in a part. */
  readonly rotateBytes: number;
  /** Parts that are kept, the one that is written among them. */
  readonly keep: number;
  /** Bytes of lines that may wait for the disk. Default 64 MiB. */
  readonly queueBytes?: number;
}

/** Counts of one source. */
export interface SourceSummary {
  messages: number;
  /** Bytes of its frames. */
  bytes: number;
  /** Connections lost, failed attempts to connect among them. */
  losses: number;
  /** Sequences that did not follow on the one before. */
  gaps: number;
  /** Messages that the disk was too slow for. */
  dropped: number;
}

export interface RecordingSummary {
  readonly messages: number;
  /** Bytes of all lines. */
  readonly bytes: number;
  readonly dropped: number;
  readonly parts: number;
  readonly deleted: number;
  readonly sources: Readonly<Record<string, SourceSummary>>;
}

/** 64 MiB: a second of a very busy pool, and a few of the largest messages. */
export const QUEUE_BYTES = 64 << 20;
/** What monitor lines and notes may take beyond, so that a hole's reason is seldom lost with it. */
const RESERVE_BYTES = 1 << 20;
/** Keys of one line: some 1.3 MB, so that no reader needs lines as long as a key list. */
export const KEYS_PER_LINE = 10_000;
const SEQUENCE_MASK = (1n << 64n) - 1n;

interface Source {
  readonly source: RecordedSource;
  readonly summary: SourceSummary;
  /** Sequence of its last message. */
  last: bigint | null;
  /** Messages, and bytes of their frames, that were dropped since its last line. */
  hole: { messages: number; bytes: number } | null;
  /** The last key list that was written whole: the part it is in, and what tells it from others. */
  list: { readonly part: number; readonly fingerprint: string } | null;
}

export class Recorder {
  readonly #options: RecorderOptions;
  readonly #emit: (step: RecorderStep) => void;
  readonly #sources: ReadonlyMap<string, Source>;
  readonly #queueBytes: number;
  #queued = 0;
  #dropping = false;
  #part = 1;
  #partBytes = 0;
  #headerBytes = 0;
  #bytes = 0;
  #deleted = 0;

  /** @param emit takes each step at once; it must not call back into the recorder */
  constructor(options: RecorderOptions, emit: (step: RecorderStep) => void) {
    this.#options = options;
    this.#emit = emit;
    this.#queueBytes = options.queueBytes ?? QUEUE_BYTES;
    this.#sources = new Map(
      options.sources.map((source) => [
        source.name,
        {
          source,
          summary: { messages: 0, bytes: 0, losses: 0, gaps: 0, dropped: 0 },
          last: null,
          hole: null,
          list: null,
        },
      ]),
    );
    this.#beginPart();
  }

  /** Bytes of lines that the files have not taken yet. */
  get queued(): number {
    return this.#queued;
  }

  /** The files have taken so many bytes of lines. */
  landed(bytes: number): void {
    this.#queued -= bytes;
    if (this.#queued <= this.#queueBytes / 2) this.#dropping = false;
  }

  /** A message came from a source, `t` milliseconds after the beginning. */
  message(t: number, name: string, frames: readonly Uint8Array[]): void {
    const source = this.#sources.get(name)!;
    const bytes = frames.reduce((sum, { length }) => sum + length, 0);
    this.#lookForGap(t, source, frames);
    if (!this.#hasRoom(messageLineBytes(name, frames))) {
      source.hole ??= { messages: 0, bytes: 0 };
      source.hole.messages++;
      source.hole.bytes += bytes;
      source.summary.dropped++;
      return;
    }
    this.#tellHole(t, source);
    source.summary.messages++;
    source.summary.bytes += bytes;
    this.#write(messageLine(t, name, source.source.kind, frames));
  }

  /** What the socket of a source told. */
  monitor(
    t: number,
    name: string,
    event: 'connected' | 'lost' | 'retry' | 'poll',
    more: Readonly<Record<string, string | number>> = {},
  ): void {
    if (event === MONITOR.lost) this.#sources.get(name)!.summary.losses++;
    this.#writeSmall(monitorLine(t, name, event, more));
  }

  /** The body of the master's status. */
  status(t: number, name: string, body: string): void {
    this.#writeSmall(statusLine(t, name, body));
  }

  /**
   * The master's key list.
   * @param fingerprint tells whether it is the same as another
   */
  keys(t: number, name: string, keys: readonly string[], fingerprint: string): void {
    const source = this.#sources.get(name)!;
    if (source.list?.part === this.#part && source.list.fingerprint === fingerprint) {
      this.#writeSmall(sameKeysLine(t, name, keys.length));
      return;
    }
    const part = this.#part;
    source.list = null;
    for (let at = 0; at === 0 || at < keys.length; at += KEYS_PER_LINE) {
      const line = keysLine(t, name, keys.length, at, keys.slice(at, at + KEYS_PER_LINE));
      if (!this.#hasRoom(lineBytes(line))) {
        this.note(t, name, NOTE.listDropped, { keys: keys.length });
        return;
      }
      this.#write(line);
    }
    // The part in which it began: once that is done, no later line may refer to it.
    source.list = { part, fingerprint };
  }

  /** Something that the recorder has to say of a source. */
  note(
    t: number,
    name: string,
    event: (typeof NOTE)[keyof typeof NOTE],
    more: Readonly<Record<string, unknown>>,
  ): void {
    this.#writeSmall(noteLine(t, name, event, more));
  }

  /** The last line. `why`: what ended the recording. */
  end(t: number, why: string): void {
    for (const source of this.#sources.values()) this.#tellHole(t, source);
    const { bytes: _, ...summary } = this.summary();
    this.#write(noteLine(t, null, NOTE.summary, { why, ...summary }));
  }

  summary(): RecordingSummary {
    const sources = Object.fromEntries([...this.#sources].map(([name, { summary }]) => [name, { ...summary }]));
    const sum = (field: 'messages' | 'dropped') =>
      Object.values(sources).reduce((total, source) => total + source[field], 0);
    return {
      messages: sum('messages'),
      bytes: this.#bytes,
      dropped: sum('dropped'),
      parts: this.#part,
      deleted: this.#deleted,
      sources,
    };
  }

  #lookForGap(t: number, source: Source, frames: readonly Uint8Array[]): void {
    const frame = frames[1];
    if (frame === undefined || frame.length !== SEQUENCE_BYTES) return;
    const { last } = source;
    const sequence = readSequence(frame);
    source.last = sequence;
    if (last === null || sequence === last || sequence === ((last + 1n) & SEQUENCE_MASK)) return;
    source.summary.gaps++;
    const between = { after: String(last), at: String(sequence) };
    this.#writeSmall(monitorLine(t, source.source.name, MONITOR.gap, between));
  }

  #hasRoom(bytes: number): boolean {
    if (this.#queued + bytes > this.#queueBytes) this.#dropping = true;
    return !this.#dropping;
  }

  #tellHole(t: number, source: Source): void {
    if (source.hole === null) return;
    this.#write(noteLine(t, source.source.name, NOTE.dropped, source.hole));
    source.hole = null;
  }

  /** A line that a hole in the messages does not swallow, unless the disk takes nothing at all. */
  #writeSmall(text: string): void {
    if (this.#queued + lineBytes(text) <= this.#queueBytes + RESERVE_BYTES) this.#write(text);
  }

  #write(text: string): void {
    const bytes = lineBytes(text);
    const { rotateBytes, keep } = this.#options;
    if (this.#partBytes + bytes > rotateBytes && this.#partBytes > this.#headerBytes) {
      const forget = this.#part - keep + 1;
      this.#emit({ do: 'rotate', part: this.#part, forget: forget > 0 ? forget : null });
      if (forget > 0) this.#deleted++;
      this.#part++;
      this.#beginPart();
    }
    this.#put(text, bytes);
  }

  #beginPart(): void {
    const header = headerLine(this.#options.started, this.#options.sources);
    this.#headerBytes = lineBytes(header);
    this.#partBytes = 0;
    this.#put(header, this.#headerBytes);
  }

  #put(text: string, bytes: number): void {
    this.#queued += bytes;
    this.#partBytes += bytes;
    this.#bytes += bytes;
    this.#emit({ do: 'write', text, bytes });
  }
}
