// Local block hashes: XXH3-64 of a block's tokens under a seed that carries LoRA name and cache namespace
// (spec/kv-events.md 2.1: 1337 + xxh3(lora, 0) + xxh3(namespace, 1), wrapping; empty text = absent).

import { ConfigError } from '../errors.js';
import { loadDefaultNow } from './builds.js';
import { Core, type HashSeed, ZERO_SEED } from './core.js';

const BASE_SEED = 1337n;
const MASK = (1n << 64n) - 1n;
const SEEDS_KEPT = 1024;

/** What besides its tokens names a block. */
export interface HashScope {
  readonly loraName?: string | null | undefined;
  readonly cacheNamespace?: string | null | undefined;
}

/** Longest LoRA name or namespace, in UTF-16 units; what is longer is no name that an engine serves. */
const MAX_SCOPE_TEXT = 4096;

/** Whether one of the names is too long to be hashed. */
export function scopeTooLong(loraName: string | null | undefined, cacheNamespace: string | null | undefined): boolean {
  return (loraName?.length ?? 0) > MAX_SCOPE_TEXT || (cacheNamespace?.length ?? 0) > MAX_SCOPE_TEXT;
}

/** Seeds by LoRA name and namespace; keeps the most recently used ones. */
export class SeedTable {
  readonly #core: Core;
  readonly #seeds = new Map<string, HashSeed>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** The seed of a scope. */
  of({ loraName, cacheNamespace }: HashScope): HashSeed {
    const key = `${loraName?.length ?? 0}:${loraName ?? ''}${cacheNamespace ?? ''}`;
    let seed = this.#seeds.get(key);
    if (seed === undefined) seed = this.#compute(loraName, cacheNamespace);
    else this.#seeds.delete(key);
    this.#seeds.set(key, seed);
    if (this.#seeds.size > SEEDS_KEPT) {
      for (const oldest of this.#seeds.keys()) {
        this.#seeds.delete(oldest);
        break;
      }
    }
    return seed;
  }

  #compute(loraName: string | null | undefined, cacheNamespace: string | null | undefined): HashSeed {
    const encoder = new TextEncoder();
    let seed = BASE_SEED;
    if (loraName) seed += this.#core.hash(encoder.encode(loraName), ZERO_SEED);
    if (cacheNamespace) seed += this.#core.hash(encoder.encode(cacheNamespace), { low: 1, high: 0 });
    seed &= MASK;
    return { low: Number(seed & 0xffffffffn) | 0, high: Number(seed >> 32n) | 0 };
  }
}

let shared: { core: Core; seeds: SeedTable } | undefined;

/** The process's hasher: an instance of the core that does nothing else. */
function hasher(): { core: Core; seeds: SeedTable } {
  if (shared === undefined) {
    const core = Core.fromModule('default', loadDefaultNow());
    shared = { core, seeds: new SeedTable(core) };
  }
  return shared;
}

/**
 * Local hashes of the whole blocks of `tokens` (u32 ids), `blockSize` tokens each; a tail is dropped.
 * @throws ConfigError `block-size` for what is no whole number from 1 to 65,536; `too-many-blocks` above 262,144; `scope-too-long`.
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
  if (scopeTooLong(scope.loraName, scope.cacheNamespace)) {
    throw new ConfigError(
      'scope-too-long',
      `blockHashes: LoRA name and namespace may have ${MAX_SCOPE_TEXT} characters.`,
    );
  }
  const { core, seeds } = hasher();
  const ids = tokens instanceof Uint32Array ? tokens : Uint32Array.from(tokens);
  if (ids.length >= (core.requestBlocks + 1) * blockSize) {
    throw new ConfigError(
      'too-many-blocks',
      `blockHashes: ${ids.length} tokens make more than ${core.requestBlocks} blocks of ${blockSize}; hash them in parts.`,
    );
  }
  return core.readLocals(core.hashTokens(ids, blockSize, seeds.of(scope)));
}

/** Sequence hashes of local hashes: s[0] = h[0], s[i] = XXH3-64(le64(s[i−1]) ‖ le64(h[i]), 1337) (spec/kv-events.md 2.2). */
export function sequenceHashes(locals: BigUint64Array): BigUint64Array {
  const { core } = hasher();
  return core.chain(core.loadLocals(locals));
}
