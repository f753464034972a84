// The numbers of CURVE's commands, 8 bytes big endian, one count each way for all kinds of commands. Ours rise by one from 1 and never come
// twice under one key: keys are of one connection, and 2^53 of them would take centuries. The peer's must rise, or something was sent again.

import { readLongLength } from './codec.js';
import { SHORT_NONCE_BYTES } from './curve-box.js';
import { ZmtpFault } from './faults.js';

export class OwnNonces {
  #last = 0;

  next(): Uint8Array {
    const nonce = new Uint8Array(SHORT_NONCE_BYTES);
    new DataView(nonce.buffer).setBigUint64(0, BigInt(++this.#last));
    return nonce;
  }
}

export class PeerNonces {
  #last = -1;

  /** Takes the nonce whose command was genuine. @throws {ZmtpFault} `curve-nonce`. */
  take(nonce: Uint8Array): void {
    const number = readLongLength(nonce, 0);
    if (number <= this.#last) {
      throw new ZmtpFault(
        'curve-nonce',
        `the peer numbered a command ${number} behind ${this.#last}; numbers must rise, so was it sent again?`,
      );
    }
    this.#last = number;
  }
}
