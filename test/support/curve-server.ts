// A CURVE server without sockets, for one connection: what it says is opened and sealed by noble's own boxes, apart from the code under
// test, and it says wrong things when told to. Written after RFC 26.
import { hsalsa, xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import { x25519 } from '@noble/curves/ed25519.js';

const ascii = (text: string) => Buffer.from(text, 'latin1');
const words = (bytes: Uint8Array) => new Uint32Array(Uint8Array.from(bytes).buffer);

/** The key of NaCl's box. */
export function sharedKey(secretKey: Uint8Array, publicKey: Uint8Array): Uint8Array {
  const key = new Uint32Array(8);
  const point = x25519.getSharedSecret(secretKey, publicKey);
  hsalsa(words(ascii('expand 32-byte k')), words(point), new Uint32Array(4), key);
  return new Uint8Array(key.buffer);
}

/** Eight bytes of a number. */
export function number(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

export const seal = (key: Uint8Array, nonce: Uint8Array, plain: Uint8Array) =>
  xsalsa20poly1305(key, Uint8Array.from(nonce)).encrypt(Uint8Array.from(plain));
export const open = (key: Uint8Array, nonce: Uint8Array, box: Uint8Array) =>
  xsalsa20poly1305(key, Uint8Array.from(nonce)).decrypt(Uint8Array.from(box));

/** A frame as the wire has it. */
export function frame(flags: number, body: Uint8Array): Buffer {
  if (body.length < 256) return Buffer.concat([Buffer.from([flags, body.length]), body]);
  return Buffer.concat([Buffer.from([flags | 2]), number(body.length), body]);
}

export const COMMAND = 4;
export const command = (name: string, ...data: Uint8Array[]) =>
  frame(COMMAND, Buffer.concat([Buffer.from([name.length]), ascii(name), ...data]));

export const GREETING = Buffer.concat([
  Buffer.from('ff00000000000000007f0301', 'hex'),
  ascii('CURVE'),
  Buffer.alloc(15 + 1 + 31),
]);
export const metadata = (socketType: string) =>
  Buffer.concat([
    Buffer.from([11]),
    ascii('Socket-Type'),
    Buffer.from([0, 0, 0, socketType.length]),
    ascii(socketType),
  ]);

export class CurveServer {
  readonly long = x25519.keygen();
  readonly passing = x25519.keygen();
  /** What the client said: its passing key, its own, and what it told of itself. */
  clientPassing: Uint8Array = new Uint8Array(0);
  clientKey: Uint8Array = new Uint8Array(0);
  clientMetadata = '';
  /** The numbers of everything that was opened. */
  readonly numbers: bigint[] = [];
  #key: Uint8Array = new Uint8Array(0);

  /** WELCOME, for the data of a HELLO. Another passing key, for mischief. */
  welcome(hello: Uint8Array, passing = this.passing.publicKey): Buffer {
    this.#is(hello.length === 194 && hello[0] === 1 && hello[1] === 0, 'HELLO of version 1.0');
    this.#is(
      hello.subarray(2, 74).every((byte) => byte === 0),
      'padding',
    );
    this.clientPassing = hello.slice(74, 106);
    const nonce = this.#nonce('CurveZMQHELLO---', hello.subarray(106, 114));
    const key = sharedKey(this.long.secretKey, this.clientPassing);
    this.#is(
      open(key, nonce, hello.subarray(114)).every((byte) => byte === 0),
      'HELLO’s box',
    );
    const random = Buffer.alloc(16, 7);
    const plain = Buffer.concat([passing, Buffer.alloc(96, 'cookie')]);
    return command('WELCOME', random, seal(key, Buffer.concat([ascii('WELCOME-'), random]), plain));
  }

  /** READY, for the data of an INITIATE. */
  ready(initiate: Uint8Array, socketType = 'PUB'): Buffer {
    this.#is(Buffer.from(initiate.subarray(0, 96)).equals(Buffer.alloc(96, 'cookie')), 'the cookie');
    this.#key = sharedKey(this.passing.secretKey, this.clientPassing);
    const nonce = this.#nonce('CurveZMQINITIATE', initiate.subarray(96, 104));
    const plain = open(this.#key, nonce, initiate.subarray(104));
    this.clientKey = plain.slice(0, 32);
    const vouchNonce = Buffer.concat([ascii('VOUCH---'), plain.subarray(32, 48)]);
    const vouch = open(sharedKey(this.passing.secretKey, this.clientKey), vouchNonce, plain.subarray(48, 128));
    const vouched = Buffer.concat([this.clientPassing, this.long.publicKey]);
    this.#is(Buffer.from(vouch).equals(vouched), 'the vouch');
    this.clientMetadata = Buffer.from(plain.subarray(128)).toString('latin1');
    return command('READY', number(1), this.seal('CurveZMQREADY---', 1, metadata(socketType)));
  }

  /** A box of this connection, sealed by the server. */
  seal(text: string, nonce: number | bigint, plain: Uint8Array): Uint8Array {
    return seal(this.#key, Buffer.concat([ascii(text), number(nonce)]), plain);
  }

  /** The body of a MESSAGE. */
  message(nonce: number | bigint, flags: number, body: Uint8Array): Buffer {
    const box = this.seal('CurveZMQMESSAGES', nonce, Buffer.concat([Buffer.from([flags]), body]));
    return Buffer.concat([Buffer.from([7]), ascii('MESSAGE'), number(nonce), box]);
  }

  /** Flags and body of a client's MESSAGE. */
  opened(body: Uint8Array): Uint8Array {
    this.#is(Buffer.from(body.subarray(0, 8)).toString('latin1') === '\x07MESSAGE', 'MESSAGE');
    return open(this.#key, this.#nonce('CurveZMQMESSAGEC', body.subarray(8, 16)), body.subarray(16));
  }

  #nonce(text: string, rest: Uint8Array): Buffer {
    this.numbers.push(Buffer.from(rest).readBigUInt64BE());
    return Buffer.concat([ascii(text), rest]);
  }

  #is(holds: boolean, what: string): void {
    if (!holds) throw new Error(`the client's ${what} is wrong`);
  }
}
