// Engine digests of a prompt that nothing is known of: the core beside node:crypto, called once per block.
import { type CoreExports, globalOf } from '../src/core/builds.js';
import { Core } from '../src/core/core.js';
import { ALGORITHMS, RULE, seedBytes, tailsOf } from '../src/core/engine-hash.js';
import { pair, randomLongs } from './harness.js';
import { plainDigests, TunedDigests } from './rivals/engine-digests.js';
import { type Effort, type Row, ratioRow } from './suites.js';

const TOKENS = 100_000;
const VOCABULARY = 128_000n;
const DIGEST_BYTES = 32;
const RULE_TEXT = { algorithm: 'sha256', seed: '0' } as const;
const TUNED_AIM = 2;
const PLAIN_AIM = 6;

/** The core's digests of whole prompts, copied in and out, as many blocks a call as it takes. */
export class CoreDigests {
  readonly #exports: CoreExports;
  readonly #blockSize: number;
  readonly #memory: Uint8Array;
  readonly #input: Uint32Array;
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
    const seed = seedBytes(RULE_TEXT);
    this.#memory.set(seed, at('INPUT'));
    core.exports.sha256(seed.length);
    this.#root = this.#memory.slice(this.#result, this.#result + DIGEST_BYTES);
    const { first, rest } = tailsOf(RULE_TEXT.algorithm, {});
    const rule = new Uint32Array(buffer, at('HASH_RULE'), RULE.root);
    rule[RULE.algorithm] = ALGORITHMS[RULE_TEXT.algorithm];
    rule[RULE.blockTokens] = blockSize;
    rule[RULE.firstTailBytes] = first.length;
    rule[RULE.restTailBytes] = rest.length;
    this.#memory.set(first, at('TAIL_FIRST'));
    this.#memory.set(rest, at('TAIL_REST'));
  }

  digest(tokens: Uint32Array, out: Uint8Array): void {
    const size = this.#blockSize;
    const blocks = Math.floor(tokens.length / size);
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

/** Random ids of a vocabulary. */
export function randomIds(count: number, seed: bigint): Uint32Array {
  return Uint32Array.from(randomLongs(count, seed), (long) => Number(long % VOCABULARY));
}

export async function derivedSuite(effort: Effort): Promise<Row[]> {
  const core = await Core.load('default');
  const tokens = randomIds(TOKENS, 8n);
  const rows: Row[] = [];
  for (const blockSize of [16, 64]) {
    const blocks = Math.floor(TOKENS / blockSize);
    const ours = new CoreDigests(core, blockSize);
    const tuned = new TunedDigests(blockSize);
    const made = new Uint8Array(blocks * DIGEST_BYTES);
    const theirs = new Uint8Array(blocks * DIGEST_BYTES);
    const derive = () => ours.digest(tokens, made);
    const options = { turns: effort.turns, callsA: 4, warmA: 20 };
    const what = `${TOKENS / 1000},000 tokens to engine digests, ${blockSize} a block`;
    const aimed = blockSize === 16;
    const beside = pair(derive, () => tuned.digest(tokens, theirs), options);
    rows.push(ratioRow(`${what}, beside a reused buffer`, aimed ? TUNED_AIM : null, beside, 'copied in and out'));
    const plain = pair(derive, () => plainDigests(tokens, blockSize), options);
    rows.push(ratioRow(`${what}, beside Buffers joined`, aimed ? PLAIN_AIM : null, plain, ''));
  }
  return rows;
}
