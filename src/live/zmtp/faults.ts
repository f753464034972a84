// What a peer can do wrong, as a closed list of codes. A fault ends its connection and nothing else: bytes behind it have no known meaning.
import { WireError } from '../../errors.js';

/** Every fault there is. */
export const ZMTP_FAULTS = [
  'greeting-signature', // the other side doesn't speak ZMTP, or a version before 2
  'greeting-version', // ZMTP 2
  'greeting-mechanism', // the peer's security mechanism is another one than ours
  'handshake-order', // something else where READY should be
  'socket-type', // e.g. a SUB that was connected to a ROUTER
  'frame-flags', // reserved bits, or a command with more frames
  'message-bytes', // a message above its bound
  'message-frames', // more frames than a message may have
  'command-bytes', // a command above its bound
  'command-shape', // a command that can't be read
  'peer-error', // the peer said ERROR
  'curve-refused', // the peer hung up on a command of CURVE's handshake, as on a wrong key
  'curve-box', // what the peer encrypted can't be opened: other keys than ours, or changed bytes
  'curve-nonce', // a number that isn't above the one before: sent again, or out of order
  'curve-message', // something unencrypted where it mustn't be, or a MESSAGE that is none
] as const;

export type ZmtpFaultCode = (typeof ZMTP_FAULTS)[number];

/** A peer's breach of the protocol. The message says what was seen. */
export class ZmtpFault extends WireError {
  declare readonly code: ZmtpFaultCode;

  constructor(code: ZmtpFaultCode, message: string) {
    super(code, message);
  }
}
