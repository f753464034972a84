// A whole decision the plain way: the prompt hashed block by block with a published XXH3 package, the workers' blocks in bit masks behind Maps, the
// store's in nested Maps, every worker priced by the field's formula (spec/kv-events.md 7.2, without decay and temperature), a lease in a Map.
import { NestedMapCore } from './nested-map.js';
import { PackageHasher } from './package-hasher.js';
import { BitMaskIndex } from './prefix-index.js';
import type { RivalOptions } from './rival.js';

export interface PlainDecision {
  readonly rank: number;
  readonly cost: number;
  readonly device: number;
  /** Blocks of the store past those. */
  readonly shared: number;
  readonly lease: number;
}

export class PlainRouter {
  readonly index: BitMaskIndex;
  readonly store: NestedMapCore;
  readonly #hasher: PackageHasher;
  readonly #blockSize: number;
  readonly #multiplier: number;
  readonly #active: Float64Array;
  readonly #leases = new Map<number, { readonly rank: number; readonly blocks: number }>();
  #made = 0;

  private constructor(hasher: PackageHasher, ranks: number, options: RivalOptions, multiplier: number) {
    this.#hasher = hasher;
    this.index = new BitMaskIndex(ranks);
    this.store = new NestedMapCore(options);
    this.#blockSize = options.blockSize;
    this.#multiplier = multiplier;
    this.#active = new Float64Array(ranks);
  }

  static async create(ranks: number, options: RivalOptions, multiplier: number): Promise<PlainRouter> {
    return new PlainRouter(await PackageHasher.create(), ranks, options, multiplier);
  }

  /** Where the prompt goes; `complete` the lease. */
  route(tokens: Uint32Array): PlainDecision {
    // The last token is always computed, so its block is nobody's credit.
    const locals = this.#hasher.hash(tokens.subarray(0, Math.max(0, tokens.length - 1)), this.#blockSize);
    const { device, disk } = this.index.lookup(locals);
    const stored = this.store.lookup(locals, tokens.length) / this.#blockSize;
    const blocks = Math.ceil(tokens.length / this.#blockSize);
    let best = { rank: -1, cost: Number.POSITIVE_INFINITY, device: 0, shared: 0 };
    for (let rank = 0; rank < device.length; rank++) {
      const own = device[rank]!;
      const shared = Math.max(0, stored - disk[rank]!);
      const prefill = Math.max(0, blocks - own - this.#multiplier * shared);
      const cost = prefill + this.#active[rank]! + blocks;
      if (cost < best.cost) best = { rank, cost, device: own, shared };
    }
    const lease = this.#made++;
    this.#leases.set(lease, { rank: best.rank, blocks });
    this.#active[best.rank]! += blocks;
    return { ...best, lease };
  }

  complete(lease: number): void {
    const known = this.#leases.get(lease);
    if (known === undefined) return;
    this.#leases.delete(lease);
    this.#active[known.rank]! -= known.blocks;
  }
}
