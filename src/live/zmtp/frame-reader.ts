// Turns chunks of a ZMTP stream, cut anywhere, into messages and commands. A message becomes views of one ArrayBuffer that nobody else has.
//
// A message that lies in one chunk is measured first and then copied once, with the headers between its frames: one allocation and one
// copy, whatever its number of frames. Any other goes frame by frame into a store of its own, which is never larger than what the headers
// seen so far announce, or twice what is there, and never above the bound. The quick way decides nothing: what it doesn't like goes the
// slow way, which alone knows the faults.
//
// A command may stand between the frames of a message: libzmq puts its PING there when its timer fires in between.
import { COMMAND, LONG, LONG_HEADER_BYTES, MORE, readLongLength, SHORT_HEADER_BYTES } from './codec.js';
import { ZmtpFault } from './faults.js';

/** What a message may be. */
export interface MessageLimits {
  /** Bytes of all frames together. */
  readonly messageBytes: number;
  readonly frames: number;
}

/** What the stream brought. */
export type Unit =
  | { readonly kind: 'message'; readonly frames: Uint8Array[] }
  | { readonly kind: 'command'; readonly body: Uint8Array };

/** Largest command: a READY has some hundred bytes, unless its peer sends metadata of its own. */
export const MAX_COMMAND_BYTES = 8_192;

const EMPTY = new Uint8Array(0);
const MESSAGE_FLAGS = MORE | LONG;

/** Reads one stream. After a fault it must not be used again. */
export class FrameReader {
  readonly #limits: MessageLimits;
  /** The chunk being read, how far it is read, and those behind it. */
  #chunk: Uint8Array = EMPTY;
  #at = 0;
  readonly #waiting: Uint8Array[] = [];
  /** The header being read. */
  readonly #header = new Uint8Array(LONG_HEADER_BYTES);
  #headerBytes = 0;
  /** The body being read: where it goes, and what is missing. */
  #target: Uint8Array | null = null;
  #targetAt = 0;
  #missing = 0;
  #flags = 0;
  /** The message being read: its bytes, where they end, and where each whole frame ends. */
  #store: Uint8Array = EMPTY;
  #stored = 0;
  #ends: number[] = [];
  /** Where the frames of the message being measured begin and end, in pairs. */
  readonly #bounds: number[] = [];

  constructor(limits: MessageLimits) {
    this.#limits = limits;
  }

  /** Hands over the next chunk, which must not change until it is read. */
  feed(chunk: Uint8Array): void {
    if (chunk.length > 0) this.#waiting.push(chunk);
  }

  /**
   * The next message or command, null when the chunks are used up.
   * @throws {ZmtpFault} `frame-flags`, `message-bytes`, `message-frames` or `command-bytes`.
   */
  next(): Unit | null {
    for (;;) {
      if (this.#at === this.#chunk.length && !this.#turn()) return null;
      const between = this.#headerBytes === 0 && this.#target === null && this.#ends.length === 0;
      const unit = (between ? this.#measured() : null) ?? this.#stepwise();
      if (unit !== null) return unit;
    }
  }

  /** Turns to the next chunk, if there is one. */
  #turn(): boolean {
    const chunk = this.#waiting.shift();
    this.#chunk = chunk ?? EMPTY;
    this.#at = 0;
    return chunk !== undefined;
  }

  /** A message that lies whole in this chunk, and breaks no rule; else null, and nothing has been read. */
  #measured(): Unit | null {
    const chunk = this.#chunk;
    const bounds = this.#bounds;
    let at = this.#at;
    let bytes = 0;
    let count = 0;
    for (let more = true; more; count++) {
      if (at + SHORT_HEADER_BYTES > chunk.length) return null;
      const flags = chunk[at]!;
      if (flags > MESSAGE_FLAGS || count === this.#limits.frames) return null;
      let length = chunk[at + 1]!;
      let start = at + SHORT_HEADER_BYTES;
      if ((flags & LONG) !== 0) {
        start = at + LONG_HEADER_BYTES;
        if (start > chunk.length) return null;
        length = readLongLength(chunk, at + 1);
      }
      at = start + length;
      bytes += length;
      if (at > chunk.length || bytes > this.#limits.messageBytes) return null;
      bounds[2 * count] = start;
      bounds[2 * count + 1] = at;
      more = (flags & MORE) !== 0;
    }
    this.#at = at;
    const first = bounds[0]!;
    const buffer = chunk.buffer.slice(chunk.byteOffset + first, chunk.byteOffset + at);
    const frames: Uint8Array[] = [];
    for (let i = 0; i < 2 * count; i += 2) {
      frames.push(new Uint8Array(buffer, bounds[i]! - first, bounds[i + 1]! - bounds[i]!));
    }
    return { kind: 'message', frames };
  }

  /** Reads on, frame by frame, to the end of a message or command, or of the chunk. */
  #stepwise(): Unit | null {
    while (this.#at < this.#chunk.length) {
      if (this.#target === null) {
        if (!this.#readHeader()) return null;
        this.#startBody();
      }
      this.#readBody();
      if (this.#missing > 0) return null;
      const unit = this.#endBody();
      if (unit !== null) return unit;
    }
    return null;
  }

  /** Collects the bytes of a header; false when the chunk ends in it. */
  #readHeader(): boolean {
    const header = this.#header;
    while (this.#at < this.#chunk.length) {
      header[this.#headerBytes++] = this.#chunk[this.#at++]!;
      const flags = header[0]!;
      if (this.#headerBytes === 1) checkFlags(flags);
      const size = (flags & LONG) === 0 ? SHORT_HEADER_BYTES : LONG_HEADER_BYTES;
      if (this.#headerBytes < size) continue;
      this.#headerBytes = 0;
      this.#flags = flags;
      this.#missing = (flags & LONG) === 0 ? header[1]! : readLongLength(header, 1);
      return true;
    }
    return false;
  }

  /** Makes room for the body whose header was read, if it is within the bounds. */
  #startBody(): void {
    const length = this.#missing;
    if ((this.#flags & COMMAND) !== 0) {
      checkCommand(length);
      this.#target = new Uint8Array(length);
      this.#targetAt = 0;
      return;
    }
    const size = this.#stored + length;
    checkMessage(this.#ends.length + 1, size, this.#limits);
    this.#reserve(size);
    this.#target = this.#store;
    this.#targetAt = this.#stored;
    this.#stored = size;
  }

  /** Room for `size` bytes of the message: exactly that for its last frame, else also for some that may follow. */
  #reserve(size: number): void {
    if (size <= this.#store.length) return;
    const more = (this.#flags & MORE) !== 0;
    const room = more ? Math.max(size, Math.min(2 * this.#store.length, this.#limits.messageBytes)) : size;
    const store = new Uint8Array(room);
    store.set(this.#store.subarray(0, this.#stored));
    this.#store = store;
  }

  #readBody(): void {
    const take = Math.min(this.#missing, this.#chunk.length - this.#at);
    if (take === 0) return;
    this.#target!.set(this.#chunk.subarray(this.#at, this.#at + take), this.#targetAt);
    this.#targetAt += take;
    this.#at += take;
    this.#missing -= take;
  }

  /** A body is whole: a command, or the last frame of a message, or one before it. */
  #endBody(): Unit | null {
    const target = this.#target!;
    this.#target = null;
    if ((this.#flags & COMMAND) !== 0) return { kind: 'command', body: target };
    this.#ends.push(this.#stored);
    if ((this.#flags & MORE) !== 0) return null;
    const buffer = this.#store.buffer;
    const frames = this.#ends.map((end, i) => {
      const start = this.#ends[i - 1] ?? 0;
      return new Uint8Array(buffer, start, end - start);
    });
    this.#store = EMPTY;
    this.#stored = 0;
    this.#ends = [];
    return { kind: 'message', frames };
  }
}

/** Whether a message may have so many frames and bytes. @throws {ZmtpFault} `message-frames` or `message-bytes`. */
export function checkMessage(frames: number, bytes: number, limits: MessageLimits): void {
  if (frames > limits.frames) {
    throw new ZmtpFault(
      'message-frames',
      `a message has more than ${limits.frames} frames; the option maxFrames bounds them`,
    );
  }
  if (bytes > limits.messageBytes) {
    throw new ZmtpFault(
      'message-bytes',
      `a message has ${bytes} bytes or more, at most ${limits.messageBytes} are taken; the option maxMessageBytes bounds them`,
    );
  }
}

/** Whether a command may have so many bytes. @throws {ZmtpFault} `command-bytes`. */
export function checkCommand(bytes: number): void {
  if (bytes <= MAX_COMMAND_BYTES) return;
  throw new ZmtpFault('command-bytes', `a command has ${bytes} bytes, at most ${MAX_COMMAND_BYTES} are taken`);
}

function checkFlags(flags: number): void {
  const allowed = (flags & COMMAND) === 0 ? MESSAGE_FLAGS : COMMAND | LONG;
  if ((flags & ~allowed) === 0) return;
  throw new ZmtpFault(
    'frame-flags',
    `a frame has flags 0x${flags.toString(16).padStart(2, '0')}, expected 0 to 3 for messages and 4 or 6 for commands`,
  );
}
