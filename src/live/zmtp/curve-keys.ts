// The three keys of a CURVE client, checked. They stay inside: an object of this kind may be printed or logged, and no error repeats a key.
import { ConfigError } from '../../errors.js';
import { boxKey, KEY_BYTES, publicKeyOf } from './curve-box.js';
import { decodeZ85 } from './z85.js';

/** Keys as 40 characters of Z85 or 32 bytes. */
export interface CurveOptions {
  /** The public key that the server must have. */
  readonly serverKey: string | Uint8Array;
  /** This client's own pair. The server may let in some clients only. */
  readonly publicKey: string | Uint8Array;
  readonly secretKey: string | Uint8Array;
}

/** Checked keys of CURVE: the server's public one and the client's own pair. */
export class CurveKeys {
  readonly #serverKey: Uint8Array;
  readonly #publicKey: Uint8Array;
  readonly #secretKey: Uint8Array;

  /** @throws {ConfigError} `curve-keys`, which names the key. */
  constructor(options: CurveOptions) {
    this.#serverKey = keyOf('serverKey', options.serverKey);
    this.#publicKey = keyOf('publicKey', options.publicKey);
    this.#secretKey = keyOf('secretKey', options.secretKey);
    if (!publicKeyOf(this.#secretKey).every((byte, i) => byte === this.#publicKey[i])) {
      throw new ConfigError('curve-keys', 'curve: publicKey does not belong to secretKey; give both of one pair');
    }
    if (boxKey(this.#secretKey, this.#serverKey) === null) {
      throw new ConfigError('curve-keys', "curve: serverKey is no public key that has a secret one; give the server's");
    }
  }

  /** Checks them once, where many clients share them. */
  static of(options: CurveOptions | CurveKeys): CurveKeys {
    return options instanceof CurveKeys ? options : new CurveKeys(options);
  }

  get serverKey(): Uint8Array {
    return this.#serverKey;
  }

  get publicKey(): Uint8Array {
    return this.#publicKey;
  }

  /** The key of boxes between this client's long-term key and `peer`. */
  boxKey(peer: Uint8Array): Uint8Array | null {
    return boxKey(this.#secretKey, peer);
  }
}

function keyOf(name: string, given: string | Uint8Array): Uint8Array {
  const key = typeof given === 'string' ? decodeZ85(given) : given;
  if (key instanceof Uint8Array && key.length === KEY_BYTES) return Uint8Array.from(key);
  const seen =
    typeof given === 'string'
      ? `a text of ${given.length} characters`
      : given instanceof Uint8Array
        ? `${given.length} bytes`
        : typeof given;
  throw new ConfigError('curve-keys', `curve: ${name} is ${seen}, expected 40 characters of Z85 or ${KEY_BYTES} bytes`);
}
