// Local block hashes with a published XXH3 package (hash-wasm), the plain way: one hasher, kept, asked once a block for its digest as text.
import type { IHasher } from 'hash-wasm';
import { localHashers } from './worker-messages.js';

export class PackageHasher {
  readonly #hasher: IHasher;

  private constructor(hasher: IHasher) {
    this.#hasher = hasher;
  }

  static async create(): Promise<PackageHasher> {
    return new PackageHasher((await localHashers()).get('')!);
  }

  /** Hashes of all whole blocks. */
  hash(tokens: Uint32Array, blockSize: number): BigUint64Array {
    const bytes = new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength);
    const blockBytes = blockSize * 4;
    const hashes = new BigUint64Array(Math.floor(tokens.length / blockSize));
    for (let i = 0; i < hashes.length; i++) {
      const block = bytes.subarray(i * blockBytes, (i + 1) * blockBytes);
      hashes[i] = BigInt(`0x${this.#hasher.init().update(block).digest()}`);
    }
    return hashes;
  }
}
