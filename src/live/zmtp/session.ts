// One connection as ZMTP sees it: the order of greeting, handshake and traffic, from bytes that came to what is to be done. It has no
// socket and no clock. What it answers by itself, READY to a greeting and PONG to a PING, comes out as a step like the rest.
import {
  type Command,
  checkGreeting,
  encodeGreeting,
  encodePong,
  encodeReady,
  GREETING_BYTES,
  GREETING_FIRST_BYTES,
  knowsPing,
  readCommand,
} from './codec.js';
import { ZmtpFault } from './faults.js';
import { FrameReader, type MessageLimits } from './frame-reader.js';

/** What to do next. */
export type SessionStep =
  | { readonly kind: 'send'; readonly bytes: Uint8Array }
  /** The handshake is done; what was to be sent first has been a step before. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'message'; readonly frames: Uint8Array[] };

/** The client's side of a connection. */
export interface SessionRole {
  readonly socketType: 'SUB' | 'DEALER';
  /** Types of peers that this one may talk to (RFC 28 and 29). */
  readonly peerTypes: readonly string[];
  /** Sent when the handshake is done, or null. */
  readonly first: Uint8Array | null;
}

const READY_STEP: SessionStep = { kind: 'ready' };

/** Follows one connection. After a fault it must not be used again. */
export class Session {
  readonly #role: SessionRole;
  readonly #reader: FrameReader;
  readonly #greeting = new Uint8Array(GREETING_BYTES);
  #greetingBytes = 0;
  #ready = false;
  /** Steps that were decided and not yet given out. Never more than four. */
  readonly #due: SessionStep[] = [];

  constructor(role: SessionRole, limits: MessageLimits) {
    this.#role = role;
    this.#reader = new FrameReader(limits);
  }

  /** What is to be sent as soon as the transport is connected. */
  opening(): Uint8Array {
    return encodeGreeting().subarray(0, GREETING_FIRST_BYTES);
  }

  /** Whether the peer knows PING. Known when the handshake is done. */
  get pings(): boolean {
    return knowsPing(this.#greeting);
  }

  /**
   * Takes the next bytes of the stream, which must not change any more.
   * @throws {ZmtpFault} what is wrong with the greeting.
   */
  feed(chunk: Uint8Array): void {
    const take = Math.min(chunk.length, GREETING_BYTES - this.#greetingBytes);
    if (take === 0) {
      this.#reader.feed(chunk);
      return;
    }
    this.#greet(chunk.subarray(0, take));
    this.#reader.feed(chunk.subarray(take));
  }

  #greet(bytes: Uint8Array): void {
    this.#greeting.set(bytes, this.#greetingBytes);
    this.#greetingBytes += bytes.length;
    checkGreeting(this.#greeting, this.#greetingBytes);
    if (this.#greetingBytes < GREETING_BYTES) return;
    this.#due.push({ kind: 'send', bytes: encodeGreeting().subarray(GREETING_FIRST_BYTES) });
    this.#due.push({ kind: 'send', bytes: encodeReady(this.#role.socketType) });
  }

  /**
   * The next step, null when more bytes are needed.
   * @throws {ZmtpFault} when the peer breaks the protocol.
   */
  next(): SessionStep | null {
    for (;;) {
      const due = this.#due.shift();
      if (due !== undefined) return due;
      const unit = this.#reader.next();
      if (unit === null) return null;
      if (unit.kind === 'command') this.#command(readCommand(unit.body));
      else if (this.#ready) return unit;
      else throw new ZmtpFault('handshake-order', 'the peer sent a message before its READY');
    }
  }

  /** In traffic, commands other than these are PONG, or of a later version of the protocol. */
  #command(command: Command): void {
    if (command.name === 'ERROR') {
      throw new ZmtpFault('peer-error', `the peer refused the connection: "${command.reason}"`);
    }
    if (!this.#ready) this.#shake(command);
    else if (command.name === 'READY') throw new ZmtpFault('handshake-order', 'the peer sent a second READY');
    else if (command.name === 'PING') this.#due.push({ kind: 'send', bytes: encodePong(command.context) });
  }

  #shake(command: Command): void {
    if (command.name !== 'READY') {
      const said = command.name === 'other' ? command.said : command.name;
      throw new ZmtpFault('handshake-order', `the peer sent the command ${said} before its READY`);
    }
    const { socketType, peerTypes, first } = this.#role;
    if (command.socketType === null || !peerTypes.includes(command.socketType)) {
      throw new ZmtpFault(
        'socket-type',
        `the peer's socket is of type ${JSON.stringify(command.socketType)}, a ${socketType} needs ${peerTypes.join(' or ')}; is it the right port?`,
      );
    }
    this.#ready = true;
    if (first !== null) this.#due.push({ kind: 'send', bytes: first });
    this.#due.push(READY_STEP);
  }
}
