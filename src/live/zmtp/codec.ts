// The bytes of ZMTP 3.1 (ZeroMQ RFC 37) that a client writes and reads: greeting, commands, whole messages. All pure. Streams of frames are
// read by frame-reader.ts, the order of things is kept by session.ts, and what CURVE adds is in the files of that name.
//
//   greeting  ff, 8 bytes of padding, 7f | major, minor | mechanism, 20 bytes, zeros behind it | as-server | 31 zeros
//   frame     flags | length: 1 byte, or 8 big endian with LONG | body
//   command   a frame with COMMAND, its body: length of the name, name, data
//   READY     properties: length of the name, name, length of the value in 4 bytes big endian, value
//   ERROR     length of the reason, reason
//   PING      2 bytes, tenths of a second after which the receiver may give up on the sender | context, up to 16 bytes
//   PONG      the context
import { ZmtpFault } from './faults.js';

/** Flags of a frame. The other bits are reserved and must be zero. */
export const MORE = 0x01;
export const LONG = 0x02;
export const COMMAND = 0x04;

/** Bytes of a frame before its body. */
export const SHORT_HEADER_BYTES = 2;
export const LONG_HEADER_BYTES = 9;
const LONGEST_SHORT_BODY = 0xff;

export const GREETING_BYTES = 64;
const SIGNATURE_FIRST = 0xff;
const SIGNATURE_LAST = 0x7f;
const SIGNATURE_LAST_AT = 9;
/** Peers before ZMTP 2 have an even byte here, the flags of their first frame. */
const SIGNATURE_LAST_BIT = 0x01;
const MAJOR_AT = 10;
const MINOR_AT = 11;
const MAJOR = 3;
const MINOR = 1;
const MECHANISM_AT = 12;
const MECHANISM_END = 32;
/** The security mechanisms that are spoken here. */
export type MechanismName = 'NULL' | 'CURVE';

/** Longest context of a PING, which its PONG brings back. */
const MAX_CONTEXT_BYTES = 16;
const TTL_BYTES = 2;
const VALUE_LENGTH_BYTES = 4;
/** How much of a peer's text a fault repeats. */
const TEXT_SHOWN = 80;

const SUBSCRIBE = 0x01;

const utf8 = new TextEncoder();
const latin1 = new TextDecoder('latin1');

/**
 * How much of the greeting goes out before the peer's is read: signature and major version. A libzmq that reads another mechanism than its
 * own closes before it has sent its own, so the rest waits: else a log could say only that the peer has gone.
 */
export const GREETING_FIRST_BYTES = 11;

/** What a client says first. */
export function encodeGreeting(mechanism: MechanismName): Uint8Array {
  const greeting = new Uint8Array(GREETING_BYTES);
  greeting[0] = SIGNATURE_FIRST;
  greeting[SIGNATURE_LAST_AT] = SIGNATURE_LAST;
  greeting[MAJOR_AT] = MAJOR;
  greeting[MINOR_AT] = MINOR;
  greeting.set(utf8.encode(mechanism), MECHANISM_AT);
  return greeting;
}

/**
 * Looks at the first `have` bytes of a peer's greeting, so that a peer that isn't understood is refused by its first byte, and an old one,
 * which would wait for us, by its version.
 * @throws {ZmtpFault} `greeting-signature`, `greeting-version` or `greeting-mechanism`.
 */
export function checkGreeting(greeting: Uint8Array, have: number, own: MechanismName): void {
  if (have === 0) return;
  const badEnd = have > SIGNATURE_LAST_AT && (greeting[SIGNATURE_LAST_AT]! & SIGNATURE_LAST_BIT) === 0;
  if (greeting[0] !== SIGNATURE_FIRST || badEnd) {
    const seen = Array.from(greeting.subarray(0, Math.min(have, MAJOR_AT)), (byte) =>
      byte.toString(16).padStart(2, '0'),
    );
    throw new ZmtpFault(
      'greeting-signature',
      `the peer begins with ${seen.join(' ')}, expected a greeting of ZMTP 3 (ff … 7f); is this the port of a ZeroMQ socket?`,
    );
  }
  // Higher versions must be taken for ours; the peer steps down.
  if (have > MAJOR_AT && greeting[MAJOR_AT]! < MAJOR) {
    throw new ZmtpFault(
      'greeting-version',
      `the peer's greeting has version byte ${greeting[MAJOR_AT]}, so it is older than ZMTP 3; it needs ZeroMQ 4 or newer`,
    );
  }
  if (have < MECHANISM_END) return;
  const mechanism = text(greeting.subarray(MECHANISM_AT, MECHANISM_END)).replace(/\0+$/, '');
  if (mechanism === own) return;
  const fix =
    own === 'CURVE'
      ? 'it would get and send everything in the clear: set its keys, or none here'
      : 'NULL and, with the option curve, CURVE are spoken here';
  throw new ZmtpFault(
    'greeting-mechanism',
    `the peer's security mechanism is "${shown(mechanism)}", this side's is ${own}; ${fix}`,
  );
}

/** Whether the peer of a whole greeting knows PING, which ZMTP 3.0 doesn't. */
export function knowsPing(greeting: Uint8Array): boolean {
  return greeting[MAJOR_AT]! > MAJOR || greeting[MINOR_AT]! >= MINOR;
}

/** A message as the wire has it. */
export function encodeMessage(frames: readonly Uint8Array[]): Uint8Array {
  let size = 0;
  for (const frame of frames) size += headerBytes(frame.length) + frame.length;
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const [i, frame] of frames.entries()) at = putFrame(bytes, at, i < frames.length - 1 ? MORE : 0, frame);
  return bytes;
}

/** The frame of a subscription in its form of ZMTP 3.0, a message, which peers of 3.1 take as well as the command. */
export function subscription(topic: string): Uint8Array {
  return concat([SUBSCRIBE], utf8.encode(topic));
}

/** A command as the wire has it, from its body. */
export function encodeCommand(body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(headerBytes(body.length) + body.length);
  putFrame(bytes, 0, COMMAND, body);
  return bytes;
}

/** The body of a command. */
export function commandBody(name: string, ...data: readonly ArrayLike<number>[]): Uint8Array {
  return concat([name.length], utf8.encode(name), ...data);
}

/** What a socket says of itself in READY, or in CURVE's INITIATE. */
export function encodeMetadata(socketType: string): Uint8Array {
  const name = utf8.encode('Socket-Type');
  const value = utf8.encode(socketType);
  return concat([name.length], name, [0, 0, 0, value.length], value);
}

/**
 * The body of a PING. Its time to live is none: it would have the peer hang up if we are silent for so long, and we are silent by right,
 * since we ping only when the peer has been.
 */
export function pingBody(): Uint8Array {
  return commandBody('PING', new Uint8Array(TTL_BYTES));
}

export function pongBody(context: Uint8Array): Uint8Array {
  return commandBody('PONG', context);
}

/** A command of the handshake, or any: its data are for its name to read. */
export interface RawCommand {
  readonly name: string;
  readonly data: Uint8Array;
}

/**
 * Takes the body of a command apart.
 * @throws {ZmtpFault} `command-shape`.
 */
export function splitCommand(body: Uint8Array): RawCommand {
  const end = 1 + (body[0] ?? 0);
  if (body.length === 0 || end === 1 || end > body.length) {
    throw new ZmtpFault('command-shape', `a command of ${body.length} bytes has no name, or ends inside it`);
  }
  return { name: text(body.subarray(1, end)), data: body.subarray(end) };
}

/**
 * The value of `Socket-Type` in what a peer says of itself, null without one. Names of properties are compared without case; of two with one
 * name the first counts.
 * @throws {ZmtpFault} `command-shape`.
 */
export function readSocketType(data: Uint8Array): string | null {
  let found: string | null = null;
  let at = 0;
  while (at < data.length) {
    const nameEnd = at + 1 + data[at]!;
    const valueAt = nameEnd + VALUE_LENGTH_BYTES;
    if (valueAt > data.length) throw badProperties(data);
    const valueEnd = valueAt + readUint32(data, nameEnd);
    if (valueEnd > data.length) throw badProperties(data);
    const name = text(data.subarray(at + 1, nameEnd)).toLowerCase();
    if (name === 'socket-type') found ??= shown(text(data.subarray(valueAt, valueEnd)));
    at = valueEnd;
  }
  return found;
}

function badProperties(data: Uint8Array): ZmtpFault {
  return new ZmtpFault(
    'command-shape',
    `READY has ${data.length} bytes of properties, the last of which ends behind them`,
  );
}

/** Of an ERROR. @throws {ZmtpFault} `command-shape`. */
export function readReason(data: Uint8Array): string {
  const end = 1 + (data[0] ?? 0);
  if (data.length === 0 || end > data.length) {
    throw new ZmtpFault('command-shape', `ERROR has ${data.length} bytes, and its reason ends behind them`);
  }
  return shown(text(data.subarray(1, end)));
}

/** Of a PING. @throws {ZmtpFault} `command-shape`. */
export function readContext(data: Uint8Array): Uint8Array {
  if (data.length < TTL_BYTES || data.length > TTL_BYTES + MAX_CONTEXT_BYTES) {
    throw new ZmtpFault(
      'command-shape',
      `PING has ${data.length} bytes, expected ${TTL_BYTES} and a context of at most ${MAX_CONTEXT_BYTES}`,
    );
  }
  return data.subarray(TTL_BYTES);
}

/** The length of a long frame whose 8 bytes start at `at`. Above 2^53 it is inexact, and far above every bound. */
export function readLongLength(bytes: Uint8Array, at: number): number {
  return readUint32(bytes, at) * 2 ** 32 + readUint32(bytes, at + 4);
}

function readUint32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

function headerBytes(length: number): number {
  return length > LONGEST_SHORT_BODY ? LONG_HEADER_BYTES : SHORT_HEADER_BYTES;
}

/** Writes a frame at `at`; where the next one goes. */
function putFrame(bytes: Uint8Array, at: number, flags: number, body: Uint8Array): number {
  const start = at + headerBytes(body.length);
  if (body.length > LONGEST_SHORT_BODY) {
    bytes[at] = flags | LONG;
    new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(at + 1, BigInt(body.length));
  } else {
    bytes[at] = flags;
    bytes[at + 1] = body.length;
  }
  bytes.set(body, start);
  return start + body.length;
}

/** All parts in one array. */
export function concat(...parts: readonly ArrayLike<number>[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function text(bytes: Uint8Array): string {
  return latin1.decode(bytes);
}

/** A peer's text for a log: short, and without what would break its line. */
export function shown(said: string): string {
  const clean = said.slice(0, TEXT_SHOWN).replace(/[^\x20-\x7e]/g, '?');
  return said.length > TEXT_SHOWN ? `${clean}…` : clean;
}
