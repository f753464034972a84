// Traffic under CURVE. Each frame, of a message or of a command such as PING, is sealed into a MESSAGE of its own; that travels as a frame
// that is no command and has no more behind it, for the true flags are sealed too. So says libzmq 4.3.5; RFC 26 writes of a command, which is
// taken as well.
//
//   MESSAGE   7, "MESSAGE" | nonce, 8 | tag, 16 | box: flags, body
//   flags     1: more frames of this message, 2: a command
import { concat, encodeMessage } from './codec.js';
import { BoxStream } from './curve-box.js';
import type { OwnNonces, PeerNonces } from './curve-nonces.js';
import { ZmtpFault } from './faults.js';
import { checkCommand, checkMessage, type MessageLimits, type Unit } from './frame-reader.js';

const NAME = new TextEncoder().encode('\x07MESSAGE');
const NONCE_AT = 8;
const TAG_AT = 16;
const BOX_AT = 32;
const BODY_AT = 33;
const MORE = 0x01;
const COMMAND = 0x02;

/** What a MESSAGE has beside the body of its frame. */
export const MESSAGE_EXTRA_BYTES = BODY_AT;

export class CurveTraffic {
  readonly #sent: BoxStream;
  readonly #received: BoxStream;
  readonly #own: OwnNonces;
  readonly #peer: PeerNonces;
  readonly #limits: MessageLimits;
  /** The message being read: its frames, and the bytes of all of them. */
  #frames: Uint8Array[] = [];
  #bytes = 0;

  /** `key` is that of the boxes of this connection. */
  constructor(key: Uint8Array, own: OwnNonces, peer: PeerNonces, limits: MessageLimits) {
    this.#sent = new BoxStream(key, 'CurveZMQMESSAGEC');
    this.#received = new BoxStream(key, 'CurveZMQMESSAGES');
    this.#own = own;
    this.#peer = peer;
    this.#limits = limits;
  }

  sealMessage(frames: readonly Uint8Array[]): Uint8Array {
    return concat(...frames.map((frame, i) => this.#seal(i < frames.length - 1 ? MORE : 0, frame)));
  }

  sealCommand(body: Uint8Array): Uint8Array {
    return this.#seal(COMMAND, body);
  }

  /** Null when it is a frame before the last of its message. @throws {ZmtpFault} */
  open(unit: Unit): Unit | null {
    if (unit.kind === 'message' && unit.frames.length > 1) throw unsealed(`a message of ${unit.frames.length} frames`);
    const sealed = unit.kind === 'message' ? unit.frames[0]! : unit.body;
    const plain = this.#open(sealed);
    const flags = plain[BOX_AT]!;
    const body = plain.subarray(BODY_AT);
    if (flags === COMMAND) {
      checkCommand(body.length);
      return { kind: 'command', body };
    }
    if ((flags & ~MORE) !== 0) {
      throw new ZmtpFault(
        'curve-message',
        `a MESSAGE has flags 0x${flags.toString(16).padStart(2, '0')}, expected 0, 1 or 2`,
      );
    }
    return this.#add(body, flags === MORE);
  }

  /** Seals a frame; as the wire has it. */
  #seal(flags: number, body: Uint8Array): Uint8Array {
    const message = new Uint8Array(BODY_AT + body.length);
    message[BOX_AT] = flags;
    message.set(body, BODY_AT);
    const nonce = this.#own.next();
    const tag = this.#sent.seal(nonce, message);
    message.set(NAME);
    message.set(nonce, NONCE_AT);
    message.set(tag, TAG_AT);
    return encodeMessage([message]);
  }

  /** Opens a MESSAGE, whose bytes are used up: what is in front of its box makes room for the key of the tag. */
  #open(message: Uint8Array): Uint8Array {
    if (message.length < BODY_AT || NAME.some((byte, i) => byte !== message[i])) {
      throw unsealed(`a frame of ${message.length} bytes that is no MESSAGE`);
    }
    const nonce = message.slice(NONCE_AT, TAG_AT);
    const tag = message.slice(TAG_AT, BOX_AT);
    message.fill(0, 0, BOX_AT);
    const plain = this.#received.open(nonce, message, tag);
    if (plain === null) {
      throw new ZmtpFault(
        'curve-box',
        `a MESSAGE of ${message.length} bytes can't be opened with the keys of this connection; were its bytes changed?`,
      );
    }
    this.#peer.take(nonce);
    return plain;
  }

  #add(body: Uint8Array, more: boolean): Unit | null {
    checkMessage(this.#frames.length + 1, this.#bytes + body.length, this.#limits);
    this.#frames.push(body);
    this.#bytes += body.length;
    if (more) return null;
    const frames = this.#frames.length === 1 ? this.#frames : inOneBuffer(this.#frames, this.#bytes);
    this.#frames = [];
    this.#bytes = 0;
    return { kind: 'message', frames };
  }
}

function inOneBuffer(frames: readonly Uint8Array[], size: number): Uint8Array[] {
  const buffer = new ArrayBuffer(size);
  let at = 0;
  return frames.map((frame) => {
    const copy = new Uint8Array(buffer, at, frame.length);
    copy.set(frame);
    at += frame.length;
    return copy;
  });
}

function unsealed(seen: string): ZmtpFault {
  return new ZmtpFault('curve-message', `the peer sent ${seen}; under CURVE everything is sealed into MESSAGE`);
}
