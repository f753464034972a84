// The blocks of one rank's GPU, all groups together, as vLLM's block pool keeps them: a block in use is held by requests; a block that is not
// keeps its content until it is the one used longest ago and another block is wanted.

/** One block. Its content is known by group and digest once it is full. */
export interface Block {
  /** Group and digest as one text; null while nobody can find it. */
  key: string | null;
  group: number;
  digest: Uint8Array | null;
  /** Requests that hold it. */
  holders: number;
}

/** What was in a block that another content takes. */
export interface Evicted {
  readonly group: number;
  readonly digest: Uint8Array;
}

export class BlockPool {
  readonly capacity: number;
  readonly #byKey = new Map<string, Block>();
  /** Blocks that nobody holds, the one used longest ago first. */
  readonly #idle = new Set<Block>();
  /** Blocks that were never used. */
  #fresh: number;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#fresh = capacity;
  }

  /** Blocks that could be taken now. */
  get free(): number {
    return this.#fresh + this.#idle.size;
  }

  find(key: string): Block | undefined {
    return this.#byKey.get(key);
  }

  /** Every content that can be found. */
  contents(): Iterable<Block> {
    return this.#byKey.values();
  }

  /** Holds a block that has been found. */
  hold(block: Block): void {
    if (block.holders++ === 0) this.#idle.delete(block);
  }

  /** Takes a block for new content; null when none is free. What it held is told to `onEvicted`. */
  take(onEvicted: (evicted: Evicted) => void): Block | null {
    if (this.#fresh > 0) {
      this.#fresh--;
      return { key: null, group: 0, digest: null, holders: 1 };
    }
    const [oldest] = this.#idle;
    if (oldest === undefined) return null;
    this.#idle.delete(oldest);
    this.#forget(oldest, onEvicted);
    oldest.holders = 1;
    return oldest;
  }

  /** Makes a full block findable. False when another block has this content already: that one stays the one that is found. */
  name(block: Block, key: string, group: number, digest: Uint8Array): boolean {
    if (block.key !== null || this.#byKey.has(key)) return block.key === key;
    Object.assign(block, { key, group, digest });
    this.#byKey.set(key, block);
    return true;
  }

  /** Lets a block go. Those let go first are taken first. */
  release(block: Block): void {
    if (--block.holders > 0) return;
    this.#idle.add(block);
  }

  /** Forgets the contents that were used longest ago, at most `count`, of blocks that nobody holds. Returns how many. */
  evict(count: number, onEvicted: (evicted: Evicted) => void): number {
    let evicted = 0;
    for (const block of this.#idle) {
      if (evicted === count) break;
      if (block.key === null) continue;
      this.#forget(block, onEvicted);
      evicted++;
    }
    return evicted;
  }

  /** Forgets everything; false, and nothing happens, while a block is held. */
  clear(): boolean {
    if (this.free < this.capacity) return false;
    this.#byKey.clear();
    this.#idle.clear();
    this.#fresh = this.capacity;
    return true;
  }

  #forget(block: Block, onEvicted: (evicted: Evicted) => void): void {
    if (block.key === null) return;
    this.#byKey.delete(block.key);
    onEvicted({ group: block.group, digest: block.digest! });
    Object.assign(block, { key: null, digest: null });
  }
}
