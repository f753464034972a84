// The cryptography of CURVE: NaCl's boxes, made of X25519, XSalsa20 and Poly1305 from noble's audited packages, which run in any engine.
//
// A box's key is HSalsa20 of the shared point; XSalsa20 then takes HSalsa20 of that key with the first 16 bytes of the nonce, and the other
// 8 as the nonce of Salsa20. In traffic those 16 bytes are always the same, so that step is made once a connection and not once a frame,
// which more than halves the time of a small one.
import { poly1305 } from '@noble/ciphers/_poly1305.js';
import { hsalsa, salsa20, xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import { equalBytes } from '@noble/ciphers/utils.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { concat } from './codec.js';

export const KEY_BYTES = 32;
export const TAG_BYTES = 16;
/** Where the 24 bytes of a nonce come from: a text, and a number or random bytes. */
export const LONG_NONCE_BYTES = 16;
export const SHORT_NONCE_BYTES = 8;

const utf8 = new TextEncoder();
const SIGMA = words(utf8.encode('expand 32-byte k'));
const NO_NONCE = new Uint32Array(LONG_NONCE_BYTES / 4);

export interface KeyPair {
  readonly publicKey: Uint8Array;
  readonly secretKey: Uint8Array;
}

export function newKeyPair(): KeyPair {
  return x25519.keygen();
}

export function publicKeyOf(secretKey: Uint8Array): Uint8Array {
  return x25519.getPublicKey(secretKey);
}

/** The key of boxes between two parties; null when the other's key is one of the few that give no secret. */
export function boxKey(secretKey: Uint8Array, publicKey: Uint8Array): Uint8Array | null {
  try {
    return hashed(x25519.getSharedSecret(secretKey, publicKey), NO_NONCE);
  } catch {
    return null;
  }
}

/** A nonce: the text, and what is behind it. */
export function nonceOf(text: string, rest: Uint8Array): Uint8Array {
  return concat(utf8.encode(text), rest);
}

export function sealBox(key: Uint8Array, nonce: Uint8Array, plain: Uint8Array): Uint8Array {
  return xsalsa20poly1305(key, nonce).encrypt(plain);
}

/** Null when the box isn't of this key and nonce, or was changed. */
export function openBox(key: Uint8Array, nonce: Uint8Array, box: Uint8Array): Uint8Array | null {
  try {
    return xsalsa20poly1305(key, nonce).decrypt(box);
  } catch {
    return null;
  }
}

/** Poly1305's key is the beginning of the stream, so a box's plain text has room for it in front. */
const PAD_BYTES = 32;

/** The boxes of one direction, whose nonces all begin with one text. */
export class BoxStream {
  readonly #key: Uint8Array;

  /** `text` has 16 bytes. */
  constructor(key: Uint8Array, text: string) {
    this.#key = hashed(key, words(utf8.encode(text)));
  }

  /**
   * Seals `padded`, in place: 32 zeros, and the plain text. The box is behind them then; its tag comes back.
   * No nonce may come twice.
   */
  seal(nonce: Uint8Array, padded: Uint8Array): Uint8Array {
    salsa20(this.#key, nonce, padded, padded);
    return poly1305(padded.subarray(PAD_BYTES), padded.subarray(0, PAD_BYTES));
  }

  /** Opens `padded`: 32 zeros, and a box without its tag. What comes back is padded likewise; null as for `openBox`. */
  open(nonce: Uint8Array, padded: Uint8Array, tag: Uint8Array): Uint8Array | null {
    const plain = salsa20(this.#key, nonce, padded);
    const oneTimeKey = plain.subarray(0, PAD_BYTES);
    const genuine = equalBytes(tag, poly1305(padded.subarray(PAD_BYTES), oneTimeKey));
    oneTimeKey.fill(0);
    return genuine ? plain : null;
  }
}

/** HSalsa20. */
function hashed(key: Uint8Array, nonce: Uint32Array): Uint8Array {
  const hash = new Uint32Array(KEY_BYTES / 4);
  hsalsa(SIGMA, words(key), nonce, hash);
  return new Uint8Array(hash.buffer);
}

/** A copy, as words in the order of this machine; noble turns them where that isn't little endian. */
function words(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.slice().buffer);
}
