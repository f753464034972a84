// One connection as ZMTP sees it: the order of greeting, handshake and traffic, from bytes that came to what is to be done. It has no
// socket and no clock. What it answers by itself, such as PONG to a PING, comes out as a step like the rest. How the handshake goes and what
// traffic is wrapped in is the mechanism's.
import {
  checkGreeting,
  encodeCommand,
  encodeGreeting,
  GREETING_BYTES,
  GREETING_FIRST_BYTES,
  knowsPing,
  pingBody,
  pongBody,
  type RawCommand,
  readContext,
  readReason,
  readSocketType,
  splitCommand,
} from './codec.js';
import { ZmtpFault } from './faults.js';
import { FrameReader, type Unit } from './frame-reader.js';
import type { Mechanism } from './mechanism.js';

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
  /** A message that is sent when the handshake is done, or null. */
  readonly first: readonly Uint8Array[] | null;
}

/** What an ERROR means that repeats the verdict of the peer's ZAP handler (RFC 27). */
const VERDICTS: ReadonlyMap<string, string> = new Map([
  ['300', ', which is: not now'],
  ['400', ", which is: it doesn't let this client in; under CURVE, it doesn't know publicKey"],
  ['500', ', which is: its own check of clients failed'],
]);

const READY_STEP: SessionStep = { kind: 'ready' };

/** Follows one connection. After a fault it must not be used again. */
export class Session {
  readonly #role: SessionRole;
  readonly #mechanism: Mechanism;
  readonly #reader: FrameReader;
  readonly #greeting = new Uint8Array(GREETING_BYTES);
  #greetingBytes = 0;
  #ready = false;
  /** Steps that were decided and not yet given out. Never more than four. */
  readonly #due: SessionStep[] = [];

  constructor(role: SessionRole, mechanism: Mechanism) {
    this.#role = role;
    this.#mechanism = mechanism;
    this.#reader = new FrameReader(mechanism.limits);
  }

  /** What is to be sent as soon as the transport is connected. */
  opening(): Uint8Array {
    return encodeGreeting(this.#mechanism.name).subarray(0, GREETING_FIRST_BYTES);
  }

  /** Whether the peer knows PING. Known when the handshake is done. */
  get pings(): boolean {
    return knowsPing(this.#greeting);
  }

  /** A message to be sent now, as the wire has it. Only when the handshake is done. */
  message(frames: readonly Uint8Array[]): Uint8Array {
    return this.#mechanism.sealMessage(frames);
  }

  /** A PING, likewise. */
  ping(): Uint8Array {
    return this.#mechanism.sealCommand(pingBody());
  }

  /** What the peer did wrong that has closed the connection in the handshake; null when that says nothing. */
  hungUp(): ZmtpFault | null {
    return this.#greetingBytes < GREETING_BYTES || this.#ready ? null : this.#mechanism.hungUp();
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
    checkGreeting(this.#greeting, this.#greetingBytes, this.#mechanism.name);
    if (this.#greetingBytes < GREETING_BYTES) return;
    const rest = encodeGreeting(this.#mechanism.name).subarray(GREETING_FIRST_BYTES);
    this.#due.push({ kind: 'send', bytes: rest });
    this.#due.push({ kind: 'send', bytes: encodeCommand(this.#mechanism.start()) });
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
      if (!this.#ready) {
        this.#shake(unit);
        continue;
      }
      const opened = this.#mechanism.open(unit);
      if (opened?.kind === 'message') return opened;
      if (opened?.kind === 'command') this.#command(splitCommand(opened.body));
    }
  }

  /** Commands in traffic. Others than these are PONG, or of a later version of the protocol. */
  #command({ name, data }: RawCommand): void {
    if (name === 'ERROR') throw refusal(data);
    if (name === 'READY') throw new ZmtpFault('handshake-order', 'the peer sent a second READY');
    if (name !== 'PING') return;
    this.#due.push({ kind: 'send', bytes: this.#mechanism.sealCommand(pongBody(readContext(data))) });
  }

  #shake(unit: Unit): void {
    if (unit.kind === 'message') {
      throw new ZmtpFault('handshake-order', 'the peer sent a message before its READY');
    }
    const command = splitCommand(unit.body);
    if (command.name === 'ERROR') throw refusal(command.data);
    const shaken = this.#mechanism.shake(command);
    if (shaken.kind === 'answer') this.#due.push({ kind: 'send', bytes: encodeCommand(shaken.body) });
    else this.#meet(readSocketType(shaken.metadata));
  }

  /** The handshake is done, if it is the right peer. */
  #meet(socketType: string | null): void {
    const { socketType: own, peerTypes, first } = this.#role;
    if (socketType === null || !peerTypes.includes(socketType)) {
      throw new ZmtpFault(
        'socket-type',
        `the peer's socket is of type ${JSON.stringify(socketType)}, a ${own} needs ${peerTypes.join(' or ')}; is it the right port?`,
      );
    }
    this.#ready = true;
    if (first !== null) this.#due.push({ kind: 'send', bytes: this.message(first) });
    this.#due.push(READY_STEP);
  }
}

function refusal(data: Uint8Array): ZmtpFault {
  const reason = readReason(data);
  return new ZmtpFault('peer-error', `the peer refused the connection: "${reason}"${VERDICTS.get(reason) ?? ''}`);
}
