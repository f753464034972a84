// The client's side of CURVE's handshake (CurveZMQ, ZeroMQ RFC 26), and then its traffic. Each side has a long-term key pair (client C,
// server S) and makes a new one for each connection (C', S'), so that a key that is stolen later opens nothing of it.
//
//   HELLO     version 1.0 | 72 zeros | C' | nonce, 8 | Box[64 zeros](C'->S)               shows that the client knows S
//   WELCOME   nonce, 16 | Box[S', cookie](S->C')                                          shows that the server has S's secret key
//   INITIATE  cookie | nonce, 8 | Box[C, nonce, 16, Box[C', S](C->S'), metadata](C'->S')  shows that the client has C's
//   READY     nonce, 8 | Box[metadata](S'->C')
//
// Nobody who is asked with a wrong key says so: a libzmq hangs up. So that is read as what it most likely means.
import { randomBytes } from '@noble/ciphers/utils.js';
import { commandBody, concat, type RawCommand, shown } from './codec.js';
import {
  boxKey,
  KEY_BYTES,
  type KeyPair,
  LONG_NONCE_BYTES,
  newKeyPair,
  nonceOf,
  openBox,
  SHORT_NONCE_BYTES,
  sealBox,
  TAG_BYTES,
} from './curve-box.js';
import type { CurveKeys } from './curve-keys.js';
import { OwnNonces, PeerNonces } from './curve-nonces.js';
import { CurveTraffic, MESSAGE_EXTRA_BYTES } from './curve-traffic.js';
import { ZmtpFault } from './faults.js';
import type { MessageLimits, Unit } from './frame-reader.js';
import type { Mechanism, Shaken } from './mechanism.js';

const VERSION = [1, 0];
/** HELLO is longer than WELCOME, so that nobody can have a server send more than was sent to it. */
const HELLO_PADDING_BYTES = 72;
const HELLO_ZEROS_BYTES = 64;
const COOKIE_BYTES = 96;
const WELCOME_BYTES = LONG_NONCE_BYTES + TAG_BYTES + KEY_BYTES + COOKIE_BYTES;
const READY_LEAST_BYTES = SHORT_NONCE_BYTES + TAG_BYTES;

export class CurveMechanism implements Mechanism {
  readonly name = 'CURVE';
  readonly limits: MessageLimits;
  readonly #keys: CurveKeys;
  readonly #metadata: Uint8Array;
  readonly #messageLimits: MessageLimits;
  readonly #own = new OwnNonces();
  readonly #peer = new PeerNonces();
  /** The command that the peer owes. */
  #awaits: 'WELCOME' | 'READY' = 'WELCOME';
  /** C', from `start` on, and the keys of its boxes with S and S'. */
  #pair: KeyPair | null = null;
  #helloKey: Uint8Array | null = null;
  #key: Uint8Array | null = null;
  #traffic: CurveTraffic | null = null;

  constructor(keys: CurveKeys, metadata: Uint8Array, limits: MessageLimits) {
    this.#keys = keys;
    this.#metadata = metadata;
    this.#messageLimits = limits;
    this.limits = { ...limits, messageBytes: limits.messageBytes + MESSAGE_EXTRA_BYTES };
  }

  start(): Uint8Array {
    const pair = newKeyPair();
    this.#pair = pair;
    const nonce = this.#own.next();
    this.#helloKey = boxKey(pair.secretKey, this.#keys.serverKey)!;
    const box = sealBox(this.#helloKey, nonceOf('CurveZMQHELLO---', nonce), new Uint8Array(HELLO_ZEROS_BYTES));
    return commandBody('HELLO', VERSION, new Uint8Array(HELLO_PADDING_BYTES), pair.publicKey, nonce, box);
  }

  shake({ name, data }: RawCommand): Shaken {
    if (name !== this.#awaits) {
      throw new ZmtpFault('handshake-order', `the peer sent the command ${shown(name)} before its ${this.#awaits}`);
    }
    if (name === 'READY') return { kind: 'done', metadata: this.#ready(data) };
    this.#awaits = 'READY';
    return { kind: 'answer', body: this.#initiate(data) };
  }

  hungUp(): ZmtpFault {
    const means =
      this.#awaits === 'WELCOME'
        ? "HELLO, as one does whose public key isn't serverKey"
        : "INITIATE, as one does that doesn't let publicKey in, or where socket types differ";
    return new ZmtpFault('curve-refused', `the peer closed the connection on ${means}`);
  }

  sealMessage(frames: readonly Uint8Array[]): Uint8Array {
    return this.#traffic!.sealMessage(frames);
  }

  sealCommand(body: Uint8Array): Uint8Array {
    return this.#traffic!.sealCommand(body);
  }

  open(unit: Unit): Unit | null {
    return this.#traffic!.open(unit);
  }

  /** INITIATE's body, from WELCOME's data. */
  #initiate(welcome: Uint8Array): Uint8Array {
    if (welcome.length !== WELCOME_BYTES) {
      throw new ZmtpFault('command-shape', `WELCOME has ${welcome.length} bytes, expected ${WELCOME_BYTES}`);
    }
    const { publicKey, secretKey } = this.#pair!;
    const { serverKey, publicKey: clientKey } = this.#keys;
    const nonce = nonceOf('WELCOME-', welcome.subarray(0, LONG_NONCE_BYTES));
    const plain = openBox(this.#helloKey!, nonce, welcome.subarray(LONG_NONCE_BYTES));
    const passing = plain?.subarray(0, KEY_BYTES);
    // A server whose passing key is one of the few bad ones is no better than one that has no key.
    const vouchKey = passing && this.#keys.boxKey(passing);
    const key = passing && boxKey(secretKey, passing);
    if (!plain || !vouchKey || !key) {
      throw new ZmtpFault('curve-box', "WELCOME can't be opened with serverKey; the peer doesn't have that key");
    }
    this.#key = key;
    const vouchNonce = randomBytes(LONG_NONCE_BYTES);
    const vouch = sealBox(vouchKey, nonceOf('VOUCH---', vouchNonce), concat(publicKey, serverKey));
    const number = this.#own.next();
    const said = concat(clientKey, vouchNonce, vouch, this.#metadata);
    const box = sealBox(key, nonceOf('CurveZMQINITIATE', number), said);
    return commandBody('INITIATE', plain.subarray(KEY_BYTES), number, box);
  }

  /** The peer's metadata, from READY's data. */
  #ready(data: Uint8Array): Uint8Array {
    if (data.length < READY_LEAST_BYTES) {
      throw new ZmtpFault('command-shape', `READY has ${data.length} bytes, expected ${READY_LEAST_BYTES} or more`);
    }
    const nonce = data.subarray(0, SHORT_NONCE_BYTES);
    const metadata = openBox(this.#key!, nonceOf('CurveZMQREADY---', nonce), data.subarray(SHORT_NONCE_BYTES));
    if (metadata === null) {
      throw new ZmtpFault(
        'curve-box',
        "READY can't be opened with the keys of this connection; were its bytes changed?",
      );
    }
    this.#peer.take(nonce);
    this.#traffic = new CurveTraffic(this.#key!, this.#own, this.#peer, this.#messageLimits);
    return metadata;
  }
}
