// The core's engine digests of whole prompts, as many blocks a call as it takes: what deriving costs without the edges that it keeps.
import { type CoreExports, globalOf } from '../src/core/builds.js';
import type { Core } from '../src/core/core.js';
import { ALGORITHMS, RULE, seedBytes, tailsOf } from '../src/core/engine-hash.js';

export const DIGEST_BYTES = 32;
export const HASH_RULE = { algorithm: 'sha256', seed: '0' } as const;

/** Digests of blocks of one size, without extra keys. */
export class CoreDigests {
  readonly #exports: CoreExports;
  readonly #blockSize: number;
  readonly #memory: Uint8Array;
  readonly #input: Uint32Array;
  readonly #rule: Uint32Array;
  readonly #root: Uint8Array;
  readonly #result: number;
  readonly #out: number;
  readonly #atOnce: number;

  constructor(core: Core, blockSize: number) {
    this.#exports = core.exports;
    this.#blockSize = blockSize;
    const { buffer } = core.exports.memory;
    const at = (name: string) => globalOf(core.exports, name);
    this.#memory = new Uint8Array(buffer);
    this.#input = new Uint32Array(buffer, at('INPUT'), at('INPUT_BYTES') / 4);
    this.#result = at('RESULT');
    this.#out = at('DIGESTS_OUT');
    this.#atOnce = Math.min(at('DIGESTS_OUT_BLOCKS'), Math.floor(this.#input.length / blockSize));
    const seed = seedBytes(HASH_RULE);
    this.#memory.set(seed, at('INPUT'));
    core.exports.sha256(seed.length);
    this.#root = this.#memory.slice(this.#result, this.#result + DIGEST_BYTES);
    const { first, rest } = tailsOf(HASH_RULE.algorithm, {});
    const rule = new Uint32Array(buffer, at('HASH_RULE'), RULE.root);
    this.#rule = rule;
    rule[RULE.algorithm] = ALGORITHMS[HASH_RULE.algorithm];
    rule[RULE.firstTailBytes] = first.length;
    rule[RULE.restTailBytes] = rest.length;
    this.#memory.set(first, at('TAIL_FIRST'));
    this.#memory.set(rest, at('TAIL_REST'));
  }

  digest(tokens: Uint32Array, out: Uint8Array): void {
    const size = this.#blockSize;
    const blocks = Math.floor(tokens.length / size);
    this.#rule[RULE.blockTokens] = size; // others of the same core have other sizes
    this.#memory.set(this.#root, this.#result);
    for (let done = 0; done < blocks; done += this.#atOnce) {
      const count = Math.min(this.#atOnce, blocks - done);
      this.#input.set(tokens.subarray(done * size, (done + count) * size));
      this.#exports.digestBlocks(count, done === 0 ? 1 : 0);
      const end = this.#out + count * DIGEST_BYTES;
      out.set(this.#memory.subarray(this.#out, end), done * DIGEST_BYTES);
      this.#memory.copyWithin(this.#result, end - DIGEST_BYTES, end);
    }
  }
}
