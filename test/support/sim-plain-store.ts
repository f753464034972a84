// The shared store kept object by object, slowly: what Store must equal. An object is `group/node:place`; a tier is an array, the coldest
// object first.
import type { GroupModel, StoreModel } from '../../src/sim/index.js';

export class PlainStore {
  readonly #groups: readonly GroupModel[];
  readonly #caps: readonly [number, number];
  readonly #blockSize: number;
  readonly #each: number;
  readonly tiers: [string[], string[]] = [[], []];

  constructor({ dramBytes, ssdBytes }: StoreModel, groups: readonly GroupModel[], blockSize: number, each: number) {
    this.#groups = groups;
    this.#caps = [dramBytes, ssdBytes];
    this.#blockSize = blockSize;
    this.#each = each;
  }

  /** Every endpoint, tried from the last on. */
  reach(path: ArrayLike<number>, limit: number): number {
    for (let end = limit; end > 0; end--) {
      if (this.#groups.every((_, group) => this.#allows(group, path, end))) return end;
    }
    return 0;
  }

  get(path: ArrayLike<number>, end: number): void {
    for (const object of this.#namesOf(path, end, end)) {
      const tier = this.tiers.find((objects) => objects.includes(object))!;
      tier.splice(tier.indexOf(object), 1);
      tier.push(object);
    }
  }

  /** What happened, in order. */
  put(path: ArrayLike<number>, full: number, end: number): string[] {
    const said: string[] = [];
    for (const object of this.#namesOf(path, full, end)) {
      const tier = this.tiers.find((objects) => objects.includes(object));
      tier?.splice(tier.indexOf(object), 1);
      if (tier === undefined) said.push(`+cpu ${object}`);
      (tier ?? this.tiers[0]).push(object);
    }
    while (this.#bytes(0) > this.#caps[0]) {
      const object = this.tiers[0].shift()!;
      if (this.#caps[1] > 0) {
        this.tiers[1].push(object);
        said.push(`+disk ${object}`);
      }
      said.push(`-cpu ${object}`);
    }
    while (this.#bytes(1) > this.#caps[1]) said.push(`-disk ${this.tiers[1].shift()!}`);
    return said;
  }

  tierOf(group: number, path: ArrayLike<number>, block: number): 0 | 1 | null {
    const name = this.#name(group, path, block);
    if (this.tiers[0].includes(name)) return 0;
    return this.tiers[1].includes(name) ? 1 : null;
  }

  needed(group: number, end: number): number {
    const { kind, window } = this.#groups[group]!;
    if (kind === 'full_attention') return end;
    return Math.min(end, kind === 'mamba' ? 1 : Math.ceil((window! - 1) / this.#blockSize));
  }

  #allows(group: number, path: ArrayLike<number>, end: number): boolean {
    for (let block = end - this.needed(group, end); block < end; block++) {
      if (this.tierOf(group, path, block) === null) return false;
    }
    return true;
  }

  /** What belongs to a prompt, in the order of touch: node by node from the deepest, in it group by group, deepest block first. */
  #namesOf(path: ArrayLike<number>, full: number, end: number): string[] {
    const names: string[] = [];
    for (let node = path.length - 1; node >= 0; node--) {
      this.#groups.forEach(({ kind }, group) => {
        const stop = kind === 'full_attention' ? full : end;
        const first = stop - this.needed(group, stop);
        for (
          let block = Math.min(stop, (node + 1) * this.#each) - 1;
          block >= Math.max(first, node * this.#each);
          block--
        )
          names.push(this.#name(group, path, block));
      });
    }
    return names;
  }

  #bytes(tier: 0 | 1): number {
    return this.tiers[tier].reduce((sum, object) => sum + this.#groups[Number.parseInt(object, 10)]!.bytesPerBlock, 0);
  }

  #name(group: number, path: ArrayLike<number>, block: number): string {
    return `${group}/${path[Math.floor(block / this.#each)]}:${block % this.#each}`;
  }
}
