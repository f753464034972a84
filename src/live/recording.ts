// What a recording is: JSON lines, one thing that was seen a line, with its time. docs/recording.md describes the format for people and
// says why it is so. Here are the names that whoever writes and whoever reads it share; nothing here knows files or sockets.

/** Version of the format, in a recording's first line. */
export const RECORDING_VERSION = 1;

/** What a source publishes: KV events of a worker's engine, or of the store's master. */
export type SourceKind = 'worker' | 'store';

/** One publisher that is recorded. Names are unique within a recording. */
export interface RecordedSource {
  readonly name: string;
  readonly kind: SourceKind;
  readonly endpoint: string;
}

/** The first line of a recording, and of each part of one. */
export interface RecordedHeader {
  readonly type: 'header';
  /** When the recording began, in milliseconds since 1970. The times of all its parts count from there. */
  readonly started: number;
  readonly sources: readonly RecordedSource[];
}

interface RecordedAt {
  /** Milliseconds since the recording began; null in a capture, which has no times. */
  readonly t: number | null;
  /** The source's name; null where the line names none. */
  readonly from: string | null;
}

/** A message as it came. */
export interface RecordedMessage extends RecordedAt {
  readonly type: 'message';
  /** Null where the line does not say. */
  readonly kind: SourceKind | null;
  readonly frames: Uint8Array[];
}

/** What the socket told: a connection, its loss, a gap in the sequence. */
export interface RecordedMonitor extends RecordedAt {
  readonly type: 'monitor';
  readonly event: string;
  /** Messages may have been missed here. A gap does not say so: the sequences do. */
  readonly breaks: boolean;
}

/** The body of the master's `/kv_events/status`. */
export interface RecordedStatus extends RecordedAt {
  readonly type: 'status';
  readonly body: string;
}

/** The master's key list, or a piece of one: keys `at` … `at + keys.length` of `n`. */
export interface RecordedKeys extends RecordedAt {
  readonly type: 'keys';
  readonly n: number;
  readonly at: number;
  /** Null: the same as the list before. */
  readonly keys: readonly string[] | null;
}

/** What the recorder has to say: messages that it dropped, errors of the master's HTTP, its summary. */
export interface RecordedNote extends RecordedAt {
  readonly type: 'note';
  readonly event: string;
  readonly breaks: boolean;
}

/** A line. */
export type Recorded =
  | RecordedHeader
  | RecordedMessage
  | RecordedMonitor
  | RecordedStatus
  | RecordedKeys
  | RecordedNote;

/** What a monitor line tells of a socket. */
export const MONITOR = {
  connected: 'connected',
  lost: 'lost',
  retry: 'retry',
  /** A sequence did not follow on the one before. */
  gap: 'gap',
  /** The master is about to be asked for its status and keys: what comes from here on is newer than the answer may be. */
  poll: 'poll',
} as const;

/** What a note tells. */
export const NOTE = {
  /** The disk was too slow: so many messages of a source are missing here. */
  dropped: 'dropped',
  httpError: 'http-error',
  /** The disk was too slow for a key list. */
  listDropped: 'list-dropped',
  /** The last line of a recording that was ended and not broken off. */
  summary: 'summary',
} as const;

/** Events of a socket after which no message follows on the one before: ours, and those of ZeroMQ's own monitor. */
export const BREAKS: ReadonlySet<string> = new Set([
  MONITOR.connected,
  MONITOR.lost,
  'disconnect',
  'handshake',
  'connect:retry',
  'close',
]);

/** Whether a JSON object is a line of a recording. Traces and captures have neither field. */
export const looksRecorded = (row: Readonly<Record<string, unknown>>): boolean =>
  'moonroute_recording' in row || (typeof row['kind'] === 'string' && ('t' in row || 'from' in row));
