// Local block hashes: XXH3-64 of a block's tokens under a seed that carries LoRA name and cache namespace
// (spec/kv-events.md 2.1: 1337 + xxh3(lora, 0) + xxh3(namespace, 1), wrapping; empty text = absent).

import { ConfigError } from '../errors.js';
import { type HashSeed, sharedNumbers } from './numbers.js';

const BASE_SEED = 1337n;
const MASK = (1n << 64n) - 1n;
const SEEDS_KEPT = 1024;
const PLAIN_SEED: HashSeed = { low: 1337, high: 0 };
const NO_HASHES = new BigUint64Array(0);

/** What besides its tokens names a block. */
export interface HashScope {
  readonly loraName?: string | null | undefined;
  readonly cacheNamespace?: string | null | undefined;
}

/** Longest LoRA name or namespace, in UTF-16 units; what is longer is no name that an engine serves. */
const MAX_SCOPE_TEXT = 4096;

/** Half of a pair of UTF-16 units by itself. It has no UTF-8: whatever stands for it would be another name. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Whether one of the names can't be hashed: it is too long, or no well-formed text. */
export function badScope(loraName: string | null | undefined, cacheNamespace: string | null | undefined): boolean {
  return isBadName(loraName) || isBadName(cacheNamespace);
}

function isBadName(name: string | null | undefined): boolean {
  return name !== null && name !== undefined && (name.length > MAX_SCOPE_TEXT || LONE_SURROGATE.test(name));
}

/** Seeds by LoRA name and namespace; keeps the most recently used ones. */
class SeedTable {
  readonly #seeds = new Map<string, HashSeed>();
  #lora = '';
  #namespace = '';
  #last: HashSeed = PLAIN_SEED;

  of(lora: string, namespace: string): HashSeed {
    if (lora === this.#lora && namespace === this.#namespace) return this.#last;
    const key = `${lora.length}:${lora}${namespace}`;
    let seed = this.#seeds.get(key);
    if (seed === undefined) seed = computeSeed(lora, namespace);
    else this.#seeds.delete(key);
    this.#seeds.set(key, seed);
    if (this.#seeds.size > SEEDS_KEPT) {
      for (const oldest of this.#seeds.keys()) {
        this.#seeds.delete(oldest);
        break;
      }
    }
    [this.#lora, this.#namespace, this.#last] = [lora, namespace, seed];
    return seed;
  }
}

const seeds = new SeedTable();

/** The seed of a scope's local hashes. */
export function seedOf(loraName: string | null | undefined, cacheNamespace: string | null | undefined): HashSeed {
  return seeds.of(loraName ?? '', cacheNamespace ?? '');
}

function computeSeed(lora: string, namespace: string): HashSeed {
  const encoder = new TextEncoder();
  const numbers = sharedNumbers();
  let seed = BASE_SEED;
  if (lora !== '') seed += numbers.hash(encoder.encode(lora), { low: 0, high: 0 });
  if (namespace !== '') seed += numbers.hash(encoder.encode(namespace), { low: 1, high: 0 });
  seed &= MASK;
  return { low: Number(seed & 0xffffffffn) | 0, high: Number(seed >> 32n) | 0 };
}

/** Most blocks hashed by one call. */
const MAX_BLOCKS = 262_144;

/**
 * Local hashes of the whole blocks of `tokens` (u32 ids), `blockSize` tokens each; a tail is dropped.
 * @throws ConfigError `block-size` for what is no whole number from 1 to 65,536; `too-many-blocks` above 262,144; `bad-scope`.
 */
export function blockHashes(
  tokens: Uint32Array | readonly number[],
  blockSize: number,
  scope: HashScope = {},
): BigUint64Array {
  if (!Number.isInteger(blockSize) || blockSize < 1 || blockSize > 65_536) {
    throw new ConfigError(
      'block-size',
      `blockHashes: blockSize is ${blockSize}; give a whole number of tokens from 1 to 65536.`,
    );
  }
  if (badScope(scope.loraName, scope.cacheNamespace)) {
    throw new ConfigError(
      'bad-scope',
      `blockHashes: LoRA name and namespace must be well-formed text of at most ${MAX_SCOPE_TEXT} characters.`,
    );
  }
  const ids = tokens instanceof Uint32Array ? tokens : Uint32Array.from(tokens);
  if (ids.length >= (MAX_BLOCKS + 1) * blockSize) {
    throw new ConfigError(
      'too-many-blocks',
      `blockHashes: ${ids.length} tokens make more than ${MAX_BLOCKS} blocks of ${blockSize}; hash them in parts.`,
    );
  }
  const seed = seedOf(scope.loraName, scope.cacheNamespace);
  const numbers = sharedNumbers();
  const hashes = new BigUint64Array(Math.floor(ids.length / blockSize));
  const atOnce = Math.floor(numbers.tokenCap / blockSize);
  for (let first = 0; first < hashes.length; first += atOnce) {
    const blocks = Math.min(atOnce, hashes.length - first);
    numbers.load(ids.subarray(first * blockSize, (first + blocks) * blockSize), NO_HASHES, null);
    numbers.hashBlocks(0, blocks, blockSize, seed, 0);
    hashes.set(numbers.copyLocals(0, blocks), first);
  }
  return hashes;
}

/**
 * Sequence hashes of at most 262,144 local hashes: s[0] = h[0], s[i] = XXH3-64(le64(s[i−1]) ‖ le64(h[i]), 1337) (spec/kv-events.md 2.2).
 * @throws ConfigError `too-many-blocks`.
 */
export function sequenceHashes(locals: BigUint64Array): BigUint64Array {
  if (locals.length > MAX_BLOCKS) {
    throw new ConfigError('too-many-blocks', `sequenceHashes: ${locals.length} blocks; one call takes ${MAX_BLOCKS}.`);
  }
  return sharedNumbers().chainLocals(locals);
}
