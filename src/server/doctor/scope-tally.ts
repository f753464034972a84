// Which prefixes the store's keys have under the model and cache prefix of a contract that was derived: whether an engine stores as such a contract says
// follows from them, once there are enough keys. Bounded whatever the store holds.
import { DIGEST_DIGITS } from '../../cache/key-digest.js';
import { MAX_PREFIXES } from '../../contract/descriptor.js';
import type { PrefixScope } from './evidence.js';
import { keyParts } from './key-parts.js';

/** Different digests over which the prefixes seen say that there are no others: windows and states are put at few places of a prompt. */
export const DIGESTS_ENOUGH = 1000;
/** Prefixes of a scope that are kept: one more than any contract has would do to tell them apart. */
const PREFIXES_KEPT = 2 * MAX_PREFIXES;
/** Prefixes of which is remembered whose they are. */
const PREFIXES_KNOWN = 8192;
const DIGEST = new RegExp(`^[0-9a-f]{${DIGEST_DIGITS}}$`);

/** Cache prefix and model of a connector's prefix, as they stand in keys; null for others. */
export function headOf(prefix: string): string | null {
  const parts = keyParts(prefix);
  if (parts === null) return null;
  const { model, 'cache prefix': cachePrefix } = parts;
  return cachePrefix === '' ? model : `${cachePrefix}@${model}`;
}

interface Scope {
  readonly digests: Set<string>;
  readonly prefixes: Set<string>;
}

export class ScopeTally {
  readonly #scopes: ReadonlyMap<string, Scope>;
  readonly #known = new Map<string, Scope | null>();

  /** @param heads those of derived contracts */
  constructor(heads: readonly string[]) {
    this.#scopes = new Map(heads.map((head) => [head, { digests: new Set(), prefixes: new Set() }]));
  }

  add(prefix: string, digest: string): void {
    if (this.#scopes.size === 0) return;
    const scope = this.#scopeOf(prefix);
    if (scope === null || !DIGEST.test(digest)) return;
    if (scope.digests.size < DIGESTS_ENOUGH) scope.digests.add(digest);
    if (scope.prefixes.size < PREFIXES_KEPT) scope.prefixes.add(prefix);
  }

  result(): PrefixScope[] {
    return [...this.#scopes].map(([head, { digests, prefixes }]) => ({
      head,
      digests: digests.size,
      prefixes: [...prefixes].sort(),
    }));
  }

  #scopeOf(prefix: string): Scope | null {
    const known = this.#known.get(prefix);
    if (known !== undefined) return known;
    const scope = this.#scopes.get(headOf(prefix) ?? '') ?? null;
    if (this.#known.size < PREFIXES_KNOWN) this.#known.set(prefix, scope);
    return scope;
  }
}
