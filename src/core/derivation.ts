// Derived edges from the host's side: lays out a prompt's tokens and the extra keys of its request, and has the core compute the engine's digests of
// what it does not know yet (assembly/derive.ts). One of a core, for as long as its contract is in force.

import type { HashRule } from '../contract/descriptor.js';
import { type CoreExports, globalOf } from './builds.js';
import { ALGORITHMS, type ExtraKeys, RULE, seedBytes, type Tails, tailsOf } from './engine-hash.js';
import { type HashSeed, sharedNumbers } from './numbers.js';

/** Hash blocks whose keys are made before the first look whether they are known. */
const FIRST_PART = 128;
/** Requests' extra keys of which the serialised form is kept. */
const TAILS_KEPT = 256;
const DIGEST_BYTES = 32;

/** What a request's extra keys come to: what follows the tokens, and the seeds of the keys under which blocks are known, in the first block and the others. */
interface Keys extends Tails {
  readonly firstSeed: HashSeed;
  readonly restSeed: HashSeed;
}

/** Derives the digests of prompts. */
export class Derivation {
  readonly #exports: CoreExports;
  readonly #rule: HashRule;
  readonly #blockSize: number;
  readonly #keySeed: HashSeed;
  readonly #requestBlocks: number;
  readonly #input: Uint32Array;
  readonly #ruleWords: Uint32Array;
  readonly #result: Uint8Array;
  readonly #tailAreas: Tails;
  readonly #known = new Map<string, Keys>();
  #taken: Keys | null = null;

  /**
   * Puts the rule into the core, which must have been configured with a plan for derived edges. `keySeed` keeps those who write prompts from making
   * blocks that share a key.
   */
  constructor(exports: CoreExports, rule: HashRule, blockSize: number, keySeed: bigint) {
    this.#exports = exports;
    this.#rule = rule;
    this.#blockSize = blockSize;
    this.#keySeed = halves(keySeed);
    const at = (name: string) => globalOf(exports, name);
    const { buffer } = exports.memory;
    this.#requestBlocks = at('REQUEST_BLOCKS');
    this.#input = new Uint32Array(buffer, at('INPUT'), at('INPUT_BYTES') / 4);
    this.#result = new Uint8Array(buffer, at('RESULT'), DIGEST_BYTES);
    this.#ruleWords = new Uint32Array(buffer, at('HASH_RULE'), RULE.root);
    this.#tailAreas = {
      first: new Uint8Array(buffer, at('TAIL_FIRST'), at('TAIL_BYTES')),
      rest: new Uint8Array(buffer, at('TAIL_REST'), at('TAIL_BYTES')),
    };
    this.#ruleWords[RULE.algorithm] = ALGORITHMS[rule.algorithm];
    this.#ruleWords[RULE.blockTokens] = blockSize;
    const seed = seedBytes(rule);
    new Uint8Array(buffer, at('INPUT'), seed.length).set(seed);
    exports.sha256(seed.length);
    new Uint8Array(buffer, at('HASH_RULE') + RULE.root * 4, DIGEST_BYTES).set(this.#result);
  }

  /**
   * Hit, in hash blocks, of a prompt of `tokenCount` tokens that starts with `tokens`: hashed and derived in growing parts, and only as far as its
   * objects are there.
   */
  lookup(tokens: Uint32Array, tokenCount: number, extraKeys: ExtraKeys): number {
    return this.#exports.lookupDerived(this.prepare(tokens, extraKeys), tokenCount);
  }

  /** Derives the prompt as far as it may count; returns its blocks whose keys stand in the request area now. */
  prepare(tokens: Uint32Array, extraKeys: ExtraKeys): number {
    const size = this.#blockSize;
    const { firstSeed, restSeed } = this.#take(extraKeys);
    const blocks = Math.min(Math.floor(tokens.length / size), this.#requestBlocks);
    const atOnce = Math.floor(this.#input.length / size);
    let keyed = 0;
    while (keyed < blocks) {
      const first = keyed;
      keyed += Math.min(Math.max(first, FIRST_PART), blocks - first, atOnce);
      this.#input.set(tokens.subarray(first * size, keyed * size));
      this.#exports.hashBlocks(keyed - first, size * 4, restSeed.low, restSeed.high, first);
      if (first === 0) this.#exports.hashBlocks(1, size * 4, firstSeed.low, firstSeed.high, 0);
      if (!this.#exports.derive(first, keyed)) break;
    }
    return keyed;
  }

  /**
   * The digest of the last of a run of whole hash blocks, `tokens`, behind the derived digest with that low64, or at a chain's start (`null`). Null when
   * no such digest is known, or the run is longer than the input area (a million tokens). The 32 bytes are good until the next call.
   */
  digestBehind(
    parent: { readonly low: number; readonly high: number } | null,
    tokens: Uint32Array,
    extraKeys: ExtraKeys,
  ): Uint8Array | null {
    if (tokens.length > this.#input.length) return null;
    this.#take(extraKeys);
    this.#input.set(tokens);
    const blocks = tokens.length / this.#blockSize;
    const known = this.#exports.digestBehind(blocks, parent === null ? 0 : 1, parent?.low ?? 0, parent?.high ?? 0);
    return known === 0 ? null : this.#result;
  }

  /** Puts the extra keys into the core. */
  #take({ loraName, rawSalt }: ExtraKeys): Keys {
    const lora = loraName ?? '';
    const name = `${lora.length}:${lora}${rawSalt ?? ''}`;
    const tails = this.#known.get(name) ?? this.#make({ loraName: lora, rawSalt: rawSalt ?? '' });
    if (tails === this.#taken) return tails;
    this.#known.delete(name);
    this.#known.set(name, tails);
    if (this.#known.size > TAILS_KEPT) this.#known.delete(this.#known.keys().next().value!);
    this.#tailAreas.first.set(tails.first);
    this.#tailAreas.rest.set(tails.rest);
    this.#ruleWords[RULE.firstTailBytes] = tails.first.length;
    this.#ruleWords[RULE.restTailBytes] = tails.rest.length;
    this.#taken = tails;
    return tails;
  }

  #make(extraKeys: ExtraKeys): Keys {
    const { first, rest } = tailsOf(this.#rule.algorithm, extraKeys);
    const numbers = sharedNumbers();
    const seedOf = (tail: Uint8Array) => halves(numbers.hash(tail, this.#keySeed));
    return { first, rest, firstSeed: seedOf(first), restSeed: seedOf(rest) };
  }
}

function halves(value: bigint): HashSeed {
  return { low: Number(value & 0xffff_ffffn), high: Number(value >> 32n) };
}
