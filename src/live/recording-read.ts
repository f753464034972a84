// Reads the lines of recordings: this project's own, those that were made with ZeroMQ's monitor (kind `zmq`, frames in hex), and captures,
// which are messages alone ({seq, topic, payload}). All three are told apart line by line, so files may be joined. No state, no Node.
import { MoonrouteError } from '../errors.js';
import { writeSequence } from '../wire/frames.js';
import { BREAKS, NOTE, RECORDING_VERSION, type Recorded, type RecordedSource, type SourceKind } from './recording.js';
import { bytesOfBase64, bytesOfHex } from './recording-bytes.js';

type Row = Readonly<Record<string, unknown>>;

const DECIMAL = /^\d{1,20}$/;
/** Characters of a wrong value that an error quotes. */
const QUOTED = 60;

/**
 * What a line says; null for kinds of lines that this version does not know, which it may ignore.
 * @param place file and line, for errors
 * @throws MoonrouteError `recording-line`, of a capture `capture-line`: what the line lacks; `recording-version` for a newer format
 */
export function readRecordedLine(text: string, place: string): Recorded | null {
  const row = rowOf(text, place);
  if ('moonroute_recording' in row) return headerOf(row, place);
  if (!('kind' in row)) return captureOf(row, place);
  const at = { t: timeOf(row, place), from: textOrNull(row, 'from', place) };
  switch (row['kind']) {
    case 'worker':
    case 'store':
      return { type: 'message', ...at, kind: row['kind'], frames: framesOf(row, bytesOfBase64, 'base64', place) };
    case 'zmq':
      return { type: 'message', ...at, kind: null, frames: framesOf(row, bytesOfHex, 'lowercase hex', place) };
    case 'monitor': {
      const event = textOf(row, 'event', place);
      return { type: 'monitor', ...at, event, breaks: BREAKS.has(event) };
    }
    case 'status':
      return { type: 'status', ...at, body: textOf(row, 'body', place) };
    case 'keys':
      return { type: 'keys', ...at, ...keysOf(row, place) };
    case 'note': {
      const event = textOf(row, 'event', place);
      return { type: 'note', ...at, event, breaks: event === NOTE.dropped };
    }
    case 'http-error':
      return { type: 'note', ...at, event: NOTE.httpError, breaks: false };
    default:
      return null;
  }
}

function rowOf(text: string, place: string): Row {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new MoonrouteError(
      'capture-line',
      `${place}: not JSON (${(error as Error).message}); a recording or capture has one JSON object a line.`,
    );
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Row;
  throw bad(place, `a line is a JSON object, got ${shown(value)}`);
}

function headerOf(row: Row, place: string): Recorded {
  const version = row['moonroute_recording'];
  if (version !== RECORDING_VERSION)
    throw new MoonrouteError(
      'recording-version',
      `${place}: the recording has version ${shown(version)}, this moonroute reads ${RECORDING_VERSION}; take a newer one.`,
    );
  const started = Date.parse(textOf(row, 'started', place));
  if (Number.isNaN(started)) throw bad(place, `"started" must be an ISO time, got ${shown(row['started'])}`);
  const sources = row['sources'];
  if (!Array.isArray(sources)) throw bad(place, `"sources" must be a list, got ${shown(sources)}`);
  return { type: 'header', started, sources: sources.map((source: unknown) => sourceOf(source, place)) };
}

function sourceOf(source: unknown, place: string): RecordedSource {
  const { name, kind, endpoint } = (source ?? {}) as Row;
  if (typeof name !== 'string' || typeof endpoint !== 'string' || !isKind(kind))
    throw bad(place, `a source has a name, a kind (worker or store) and an endpoint, got ${shown(source)}`);
  return { name, kind, endpoint };
}

const isKind = (kind: unknown): kind is SourceKind => kind === 'worker' || kind === 'store';

/** A line of a capture: a message without a time, its source told by its content alone. */
function captureOf({ seq, topic, payload }: Row, place: string): Recorded {
  if (typeof seq !== 'string' || !DECIMAL.test(seq) || BigInt(seq) >= 1n << 64n)
    throw new MoonrouteError('capture-line', `${place}: "seq" must be a decimal u64 as text, got ${shown(seq)}.`);
  const topicBytes = typeof topic === 'string' ? bytesOfHex(topic) : null;
  const payloadBytes = typeof payload === 'string' ? bytesOfHex(payload) : null;
  if (topicBytes === null || payloadBytes === null)
    throw new MoonrouteError('capture-line', `${place}: "topic" and "payload" must be lowercase hex texts.`);
  const frames = [topicBytes, writeSequence(BigInt(seq)), payloadBytes];
  return { type: 'message', t: null, from: null, kind: null, frames };
}

function timeOf(row: Row, place: string): number {
  const t = row['t'];
  if (typeof t !== 'number' || !Number.isFinite(t) || t < 0)
    throw bad(place, `"t" must be milliseconds since the recording began, got ${shown(t)}`);
  return t;
}

function textOf(row: Row, name: string, place: string): string {
  const text = row[name];
  if (typeof text !== 'string') throw bad(place, `"${name}" must be a text, got ${shown(text)}`);
  return text;
}

const textOrNull = (row: Row, name: string, place: string): string | null =>
  row[name] === undefined ? null : textOf(row, name, place);

function framesOf(row: Row, read: (text: string) => Uint8Array | null, encoding: string, place: string): Uint8Array[] {
  const texts = row['frames'];
  if (!Array.isArray(texts)) throw bad(place, `"frames" must be a list, got ${shown(texts)}`);
  return texts.map((text: unknown, i) => {
    const bytes = typeof text === 'string' ? read(text) : null;
    if (bytes === null) throw bad(place, `frame ${i} must be a text in ${encoding}, got ${shown(text)}`);
    return bytes;
  });
}

function keysOf(row: Row, place: string): { n: number; at: number; keys: readonly string[] | null } {
  const { n, keys, at = 0 } = row;
  const count = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
  if (!count(n) || !count(at)) throw bad(place, `"n" and "at" must be counts, got ${shown(n)} and ${shown(at)}`);
  if (row['same'] === true) return { n, at: 0, keys: null };
  if (!Array.isArray(keys) || !keys.every((key) => typeof key === 'string') || at + keys.length > n)
    throw bad(place, `"keys" must be a list of at most ${n - at} texts, got ${shown(keys)}`);
  return { n, at, keys };
}

const bad = (place: string, what: string): MoonrouteError => new MoonrouteError('recording-line', `${place}: ${what}.`);

/** A value, short enough for an error. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text;
}
