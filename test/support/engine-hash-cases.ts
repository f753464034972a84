// Digests that Python made, and a core that is asked for the same.
import { readFileSync } from 'node:fs';
import type { HashRule } from '../../src/contract/descriptor.js';
import { globalOf } from '../../src/core/builds.js';
import type { Core } from '../../src/core/core.js';
import { ALGORITHMS, type ExtraKeys, RULE, seedBytes, tailsOf } from '../../src/core/engine-hash.js';

const DIGEST_BYTES = 32;

type Repeated = readonly [text: string, times: number];
interface Progression {
  readonly start: number;
  readonly step: number;
  readonly mod: number;
  readonly count: number;
}
interface StoredCase {
  readonly name: string;
  readonly seed: string;
  readonly root: string;
  readonly blockSize: number;
  readonly tokens: readonly number[] | Progression;
  readonly loraName: string | Repeated | null;
  readonly salt: string | Repeated | null;
  readonly digests: readonly string[];
}

/** A chain of blocks and the digests that it has. */
export interface DigestCase {
  readonly name: string;
  readonly rule: HashRule;
  readonly root: string;
  readonly blockSize: number;
  readonly tokens: Uint32Array;
  readonly extraKeys: ExtraKeys;
  readonly digests: readonly string[];
}

/** Cases of test/fixtures/engine-hash-NAME.json. */
export function digestCases(name: string, algorithm: HashRule['algorithm']): DigestCase[] {
  const file = readFileSync(`test/fixtures/engine-hash-${name}.json`, 'utf8');
  const { cases } = JSON.parse(file) as { cases: StoredCase[] };
  return cases.map(({ seed, tokens, loraName, salt, ...rest }) => ({
    ...rest,
    rule: { algorithm, seed },
    tokens: 'count' in tokens ? tokensOf(tokens) : Uint32Array.from(tokens),
    extraKeys: { loraName: textOf(loraName), rawSalt: textOf(salt) },
  }));
}

export function tokensOf({ start, step, mod, count }: Progression): Uint32Array {
  return Uint32Array.from({ length: count }, (_, i) => (start + step * i) % mod);
}

function textOf(text: string | Repeated | null): string | null {
  return typeof text === 'string' || text === null ? text : text[0].repeat(text[1]);
}

export const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** Where the core keeps what hashing needs, and its calls. */
export class HashingCore {
  readonly memory: Uint8Array;
  readonly #core: Core;
  readonly #words: Uint32Array;

  constructor(core: Core) {
    this.#core = core;
    this.memory = new Uint8Array(core.exports.memory.buffer);
    this.#words = new Uint32Array(core.exports.memory.buffer);
  }

  at(name: string): number {
    return globalOf(this.#core.exports, name);
  }

  /** SHA-256 of a message. */
  sha256(message: Uint8Array): Uint8Array {
    this.memory.set(message, this.at('INPUT'));
    this.#core.exports.sha256(message.length);
    return this.memory.slice(this.at('RESULT'), this.at('RESULT') + DIGEST_BYTES);
  }

  /** Takes a rule and extra keys; returns the root. */
  take(rule: HashRule, blockSize: number, extraKeys: ExtraKeys): Uint8Array {
    const root = this.sha256(seedBytes(rule));
    const { first, rest } = tailsOf(rule.algorithm, extraKeys);
    const words = this.#words.subarray(this.at('HASH_RULE') / 4);
    words[RULE.algorithm] = ALGORITHMS[rule.algorithm];
    words[RULE.blockTokens] = blockSize;
    words[RULE.firstTailBytes] = first.length;
    words[RULE.restTailBytes] = rest.length;
    this.memory.set(root, this.at('HASH_RULE') + RULE.root * 4);
    this.memory.set(first, this.at('TAIL_FIRST'));
    this.memory.set(rest, this.at('TAIL_REST'));
    return root;
  }

  /** Digests of the whole blocks of `tokens` behind a digest; null: they start a chain. */
  digests(tokens: Uint32Array, blockSize: number, parent: Uint8Array | null): Uint8Array {
    const blocks = tokens.length / blockSize;
    const root = this.at('HASH_RULE') + RULE.root * 4;
    this.#words.set(tokens, this.at('INPUT') / 4);
    this.memory.set(parent ?? this.memory.slice(root, root + DIGEST_BYTES), this.at('RESULT'));
    this.#core.exports.digestBlocks(blocks, parent === null ? 1 : 0);
    return this.memory.slice(this.at('DIGESTS_OUT'), this.at('DIGESTS_OUT') + blocks * DIGEST_BYTES);
  }
}

/** Digests as hexadecimal text, one by one. */
export function hexes(digests: Uint8Array): string[] {
  return Array.from({ length: digests.length / DIGEST_BYTES }, (_, i) =>
    hex(digests.subarray(i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES)),
  );
}
