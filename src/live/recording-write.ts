// Writes the lines of recordings (recording.ts). Frames are base64: a third smaller than hex, and both Node and Deno make it natively.
import { Buffer } from 'node:buffer';
import { type MONITOR, type NOTE, RECORDING_VERSION, type RecordedSource, type SourceKind } from './recording.js';

/** Bytes of a message's line beside its frames and its source's name, at most. */
const MESSAGE_LINE_REST = 80;

/** The first line of a part. */
export function headerLine(started: number, sources: readonly RecordedSource[]): string {
  return line({ moonroute_recording: RECORDING_VERSION, started: new Date(started).toISOString(), sources });
}

/** A message. */
export function messageLine(t: number, from: string, kind: SourceKind, frames: readonly Uint8Array[]): string {
  // By hand: base64 needs no escapes, and JSON would look for them.
  const texts = frames.map((frame) => `"${base64(frame)}"`).join(',');
  return `{"t":${timeText(t)},"from":${JSON.stringify(from)},"kind":"${kind}","frames":[${texts}]}\n`;
}

/** Bytes that the line of a message will have at most, without making it. */
export function messageLineBytes(from: string, frames: readonly Uint8Array[]): number {
  return frames.reduce(
    (bytes, { length }) => bytes + 4 * Math.ceil(length / 3) + 3,
    MESSAGE_LINE_REST + 6 * from.length,
  );
}

/** What a socket told. */
export function monitorLine(
  t: number,
  from: string,
  event: (typeof MONITOR)[keyof typeof MONITOR],
  more: Readonly<Record<string, string | number>> = {},
): string {
  return line({ t: rounded(t), from, kind: 'monitor', event, ...more });
}

/** The body of the master's status. */
export function statusLine(t: number, from: string, body: string): string {
  return line({ t: rounded(t), from, kind: 'status', body });
}

/** A piece of the master's key list: from key `at` on, of `n`. */
export function keysLine(t: number, from: string, n: number, at: number, keys: readonly string[]): string {
  return line({ t: rounded(t), from, kind: 'keys', n, at, keys });
}

/** The master's key list is the one before. */
export function sameKeysLine(t: number, from: string, n: number): string {
  return line({ t: rounded(t), from, kind: 'keys', n, same: true });
}

/** What the recorder has to say. */
export function noteLine(
  t: number,
  from: string | null,
  event: (typeof NOTE)[keyof typeof NOTE],
  more: Readonly<Record<string, unknown>>,
): string {
  return line({ t: rounded(t), ...(from === null ? {} : { from }), kind: 'note', event, ...more });
}

/** Bytes of a line in UTF-8. */
export const lineBytes = (text: string): number => Buffer.byteLength(text);

const line = (value: object): string => `${JSON.stringify(value)}\n`;

/** To microseconds: clocks tell no more. */
const rounded = (t: number): number => Math.round(t * 1000) / 1000;
const timeText = (t: number): string => String(rounded(t));

const base64 = ({ buffer, byteOffset, length }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, length).toString('base64');
