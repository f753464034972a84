// What a security mechanism does for one connection: its part of the handshake, and whatever it wraps around traffic. NULL does next to
// nothing and is here; CURVE is in curve-mechanism.ts.
import { commandBody, encodeCommand, encodeMessage, type MechanismName, type RawCommand, shown } from './codec.js';
import { ZmtpFault } from './faults.js';
import type { MessageLimits, Unit } from './frame-reader.js';

/** Where a command of the handshake leads: to an answer, or to its end, with what the peer says of itself. */
export type Shaken =
  | { readonly kind: 'answer'; readonly body: Uint8Array }
  | { readonly kind: 'done'; readonly metadata: Uint8Array };

/** Serves one connection. Numbers what it seals, so that things are sent in the order in which they were sealed. */
export interface Mechanism {
  readonly name: MechanismName;
  /** What a frame of the stream may have for a message to be within its limits. */
  readonly limits: MessageLimits;
  /** The body of the first command, when the greetings agree. */
  start(): Uint8Array;
  /** Takes the peer's next command, ERROR apart. @throws {ZmtpFault} */
  shake(command: RawCommand): Shaken;
  /** What a peer means that hangs up now, in the handshake; null when nobody can say. */
  hungUp(): ZmtpFault | null;
  /** A message, or a command's body, as the wire has it. Both only after the handshake. */
  sealMessage(frames: readonly Uint8Array[]): Uint8Array;
  sealCommand(body: Uint8Array): Uint8Array;
  /** What a unit of the stream is; null when it is part of a message that goes on. @throws {ZmtpFault} */
  open(unit: Unit): Unit | null;
}

/** No security: a READY each, and then plain frames. */
export class NullMechanism implements Mechanism {
  readonly name = 'NULL';
  readonly limits: MessageLimits;
  readonly #metadata: Uint8Array;

  constructor(metadata: Uint8Array, limits: MessageLimits) {
    this.#metadata = metadata;
    this.limits = limits;
  }

  start(): Uint8Array {
    return commandBody('READY', this.#metadata);
  }

  shake({ name, data }: RawCommand): Shaken {
    if (name === 'READY') return { kind: 'done', metadata: data };
    throw new ZmtpFault('handshake-order', `the peer sent the command ${shown(name)} before its READY`);
  }

  hungUp(): null {
    return null;
  }

  sealMessage(frames: readonly Uint8Array[]): Uint8Array {
    return encodeMessage(frames);
  }

  sealCommand(body: Uint8Array): Uint8Array {
    return encodeCommand(body);
  }

  open(unit: Unit): Unit {
    return unit;
  }
}
