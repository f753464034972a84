// The GPU prefix index the way one writes it in JavaScript: blocks in Maps keyed by local hash, one Map behind every block, so that a walk
// computes no key; names in one Map a rank. Who holds a block is said by a Set of ranks for each tier (MapOfSetsIndex), or by bits (BitMaskIndex).
// A lookup narrows the ranks that are still in as it walks, and writes a rank's depth down when it drops out. Neither is bounded and neither
// keeps an order of use, which spares them work that the core does.
import type {
  IndexedBlocks,
  IndexTier,
  PrefixDepths,
  PrefixIndexLike,
  StoreOutcome,
} from '../../src/core/prefix-types.js';

/** What is measured of an index. */
export type PrefixRival = Pick<PrefixIndexLike, 'ranks' | 'stored' | 'removed' | 'clear' | 'lookup'> & {
  readonly entries: number;
};

/** One content, held by whoever `holders` says. */
interface Block<Holders> {
  readonly local: bigint;
  readonly parent: Block<Holders> | null;
  readonly holders: Holders;
  children: Map<bigint, Block<Holders>> | null;
}

const TIERS = { device: 0, host: 1, disk: 2 } as const;
type Tier = (typeof TIERS)[IndexTier];

abstract class LinkedMaps<Holders> implements PrefixRival {
  readonly ranks: number;
  entries = 0;
  protected readonly roots = new Map<bigint, Block<Holders>>();
  protected readonly depths: { device: Uint32Array; host: Uint32Array; disk: Uint32Array; deepest: number };
  /** By rank: external hash → block. */
  readonly #names: Map<bigint, Block<Holders>>[];

  constructor(ranks: number) {
    this.ranks = ranks;
    this.#names = Array.from({ length: ranks }, () => new Map());
    const zeros = () => new Uint32Array(ranks);
    this.depths = { device: zeros(), host: zeros(), disk: zeros(), deepest: 0 };
  }

  protected abstract nobody(): Holders;
  protected abstract join(holders: Holders, rank: number, tier: Tier): void;
  /** Whether the rank was there. */
  protected abstract leave(holders: Holders, rank: number, tier: Tier): boolean;
  protected abstract holds(holders: Holders, rank: number): boolean;
  protected abstract isNobody(holders: Holders): boolean;
  abstract lookup(locals: BigUint64Array): PrefixDepths;

  stored(rank: number, tier: IndexTier, blocks: IndexedBlocks): StoreOutcome {
    const names = this.#names[rank]!;
    let parent: Block<Holders> | null = null;
    if (blocks.hasParent) {
      parent = names.get(whole(blocks.parentLow, blocks.parentHigh)) ?? null;
      if (parent === null) return 'unknown-parent';
    }
    const { locals, lows, at, count } = blocks;
    for (let i = 2 * at; i < 2 * (at + count); i += 2) {
      const local = whole(locals[i]!, locals[i + 1]!);
      const name = whole(lows[i]!, lows[i + 1]!);
      // What is offloaded is the block that the rank calls so, whatever its content is said to be.
      const offloaded = tier === 'device' ? undefined : names.get(name);
      const block = offloaded ?? this.#behind(parent, local);
      const before = names.get(name);
      const isNew = !this.holds(block.holders, rank);
      this.join(block.holders, rank, TIERS[tier]);
      if (before !== undefined && before !== block) {
        names.delete(name);
        this.#lose(rank, before);
      }
      if (isNew) names.set(name, block);
      parent = block;
    }
    return 'stored';
  }

  #behind(parent: Block<Holders> | null, local: bigint): Block<Holders> {
    let level: Map<bigint, Block<Holders>> | null = parent === null ? this.roots : parent.children;
    if (level === null) {
      level = new Map();
      parent!.children = level;
    }
    let block = level.get(local);
    if (block === undefined) {
      block = { local, parent, holders: this.nobody(), children: null };
      level.set(local, block);
      this.entries++;
    }
    return block;
  }

  removed(rank: number, tier: IndexTier, lows: Uint32Array, at: number, count: number): number {
    const names = this.#names[rank]!;
    let known = 0;
    for (let i = 2 * at; i < 2 * (at + count); i += 2) {
      const name = whole(lows[i]!, lows[i + 1]!);
      const block = names.get(name);
      if (block === undefined || !this.leave(block.holders, rank, TIERS[tier])) continue;
      known++;
      if (this.holds(block.holders, rank)) continue;
      names.delete(name);
      this.#prune(block);
    }
    return known;
  }

  clear(rank: number): void {
    const blocks = this.#names[rank]!;
    this.#names[rank] = new Map();
    for (const block of blocks.values()) this.#lose(rank, block);
  }

  #lose(rank: number, block: Block<Holders>): void {
    for (const tier of [0, 1, 2] as const) this.leave(block.holders, rank, tier);
    this.#prune(block);
  }

  /** Forgets the block if nobody holds it and nothing is known behind it; then its parent likewise. */
  #prune(block: Block<Holders>): void {
    let at: Block<Holders> | null = block;
    while (at !== null && (at.children === null || at.children.size === 0) && this.isNobody(at.holders)) {
      (at.parent === null ? this.roots : at.parent.children!).delete(at.local);
      this.entries--;
      at = at.parent;
    }
  }
}

function whole(low: number, high: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

type Sets = readonly [device: Set<number>, host: Set<number>, disk: Set<number>];

/** A Set of ranks for each tier of each block. */
export class MapOfSetsIndex extends LinkedMaps<Sets> {
  protected nobody(): Sets {
    return [new Set(), new Set(), new Set()];
  }
  protected join(holders: Sets, rank: number, tier: Tier): void {
    holders[tier].add(rank);
  }
  protected leave(holders: Sets, rank: number, tier: Tier): boolean {
    return holders[tier].delete(rank);
  }
  protected holds([device, host, disk]: Sets, rank: number): boolean {
    return device.has(rank) || host.has(rank) || disk.has(rank);
  }
  protected isNobody([device, host, disk]: Sets): boolean {
    return device.size === 0 && host.size === 0 && disk.size === 0;
  }

  lookup(locals: BigUint64Array): PrefixDepths {
    const { device, host, disk } = this.depths;
    device.fill(0);
    host.fill(0);
    disk.fill(0);
    let onDevice: number[] = [];
    let onHost: number[] = [];
    let onDisk: number[] = [];
    let level: Map<bigint, Block<Sets>> | null = this.roots;
    let depth = 0;
    for (; depth < locals.length && level !== null; depth++) {
      const block: Block<Sets> | undefined = level.get(locals[depth]!);
      if (block === undefined) break;
      const [hasDevice, hasHost, hasDisk] = block.holders;
      if (depth === 0) {
        onDevice = [...hasDevice];
        onHost = [...hasHost].filter((rank) => !hasDevice.has(rank));
        onDisk = [...hasDisk].filter((rank) => !hasDevice.has(rank) && !hasHost.has(rank));
      } else {
        let left = 0;
        for (const rank of onDisk) {
          if (hasDisk.has(rank)) onDisk[left++] = rank;
          else disk[rank] = depth;
        }
        onDisk.length = left;
        left = 0;
        for (const rank of onHost) {
          if (hasHost.has(rank)) onHost[left++] = rank;
          else {
            host[rank] = depth;
            if (hasDisk.has(rank)) onDisk.push(rank);
            else disk[rank] = depth;
          }
        }
        onHost.length = left;
        left = 0;
        for (const rank of onDevice) {
          if (hasDevice.has(rank)) onDevice[left++] = rank;
          else {
            device[rank] = depth;
            if (hasHost.has(rank)) onHost.push(rank);
            else {
              host[rank] = depth;
              if (hasDisk.has(rank)) onDisk.push(rank);
              else disk[rank] = depth;
            }
          }
        }
        onDevice.length = left;
      }
      if (onDevice.length + onHost.length + onDisk.length === 0) break;
      level = block.children;
    }
    for (const rank of onDevice) device[rank] = host[rank] = disk[rank] = depth;
    for (const rank of onHost) host[rank] = disk[rank] = depth;
    for (const rank of onDisk) disk[rank] = depth;
    this.depths.deepest = depth;
    return this.depths;
  }
}

/** A bit a rank for each tier of each block, in one array of words: those of the device, of the host, of the disk. */
export class BitMaskIndex extends LinkedMaps<Uint32Array> {
  readonly #words: number;
  readonly #alive: Uint32Array;

  constructor(ranks: number) {
    super(ranks);
    this.#words = Math.ceil(ranks / 32);
    this.#alive = this.nobody();
  }

  protected nobody(): Uint32Array {
    return new Uint32Array(this.#words * 3);
  }
  protected join(holders: Uint32Array, rank: number, tier: Tier): void {
    holders[tier * this.#words + (rank >>> 5)]! |= 1 << (rank & 31);
  }
  protected leave(holders: Uint32Array, rank: number, tier: Tier): boolean {
    const at = tier * this.#words + (rank >>> 5);
    const bit = 1 << (rank & 31);
    if ((holders[at]! & bit) === 0) return false;
    holders[at]! &= ~bit;
    return true;
  }
  protected holds(holders: Uint32Array, rank: number): boolean {
    const words = this.#words;
    const at = rank >>> 5;
    return (((holders[at]! | holders[at + words]! | holders[at + 2 * words]!) >>> (rank & 31)) & 1) !== 0;
  }
  protected isNobody(holders: Uint32Array): boolean {
    for (let i = 0; i < holders.length; i++) if (holders[i] !== 0) return false;
    return true;
  }

  lookup(locals: BigUint64Array): PrefixDepths {
    const { device, host, disk } = this.depths;
    device.fill(0);
    host.fill(0);
    disk.fill(0);
    const words = this.#words;
    const alive = this.#alive;
    let level: Map<bigint, Block<Uint32Array>> | null = this.roots;
    let lower = false; // some rank is past its device
    let depth = 0;
    for (; depth < locals.length && level !== null; depth++) {
      const block: Block<Uint32Array> | undefined = level.get(locals[depth]!);
      if (block === undefined) break;
      const holders = block.holders;
      let left = 0;
      let below = 0;
      if (depth === 0) {
        for (let word = 0; word < words; word++) {
          const onDevice = holders[word]!;
          const onHost = holders[words + word]! & ~onDevice;
          const onDisk = holders[2 * words + word]! & ~(onDevice | onHost);
          alive[word] = onDevice;
          alive[words + word] = onHost;
          alive[2 * words + word] = onDisk;
          left |= onDevice;
          below |= onHost | onDisk;
        }
      } else {
        for (let word = 0; word < words; word++) {
          const before = alive[word]!;
          const onDevice = before & holders[word]!;
          left |= onDevice;
          if (onDevice >>> 0 === before && !lower) continue;
          const fromDevice = before & ~onDevice;
          const onHostBefore = alive[words + word]! | fromDevice;
          const onHost = onHostBefore & holders[words + word]!;
          const fromHost = onHostBefore & ~onHost;
          const onDiskBefore = alive[2 * words + word]! | fromHost;
          const onDisk = onDiskBefore & holders[2 * words + word]!;
          alive[word] = onDevice;
          alive[words + word] = onHost;
          alive[2 * words + word] = onDisk;
          below |= onHost | onDisk;
          mark(device, word, fromDevice, depth);
          mark(host, word, fromHost, depth);
          mark(disk, word, onDiskBefore & ~onDisk, depth);
        }
      }
      lower = below !== 0;
      if ((left | below) === 0) break;
      level = block.children;
    }
    if (depth > 0)
      for (let word = 0; word < words; word++) {
        mark(device, word, alive[word]!, depth);
        mark(host, word, alive[word]! | alive[words + word]!, depth);
        mark(disk, word, alive[word]! | alive[words + word]! | alive[2 * words + word]!, depth);
      }
    this.depths.deepest = depth;
    return this.depths;
  }
}

/** Writes a depth down for the ranks whose bits are set. */
function mark(depths: Uint32Array, word: number, bits: number, depth: number): void {
  for (let left = bits; left !== 0; left &= left - 1) depths[32 * word + 31 - Math.clz32(left & -left)] = depth;
}
