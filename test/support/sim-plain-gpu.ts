// GPU blocks kept one by one, slowly: what GpuCache must equal. A block is `node:place`; the queue is an array, the coldest block first.

interface Block {
  readonly node: number;
  readonly place: number;
  refs: number;
}

export class PlainGpu {
  readonly #blocks: number;
  readonly #each: number;
  readonly #resident = new Map<string, Block>();
  readonly #queue: Block[] = [];
  #own = 0;

  constructor(blocks: number, each: number) {
    this.#blocks = blocks;
    this.#each = each;
  }

  get resident(): number {
    return this.#resident.size;
  }

  match(path: ArrayLike<number>, limit: number): number {
    let hit = 0;
    while (hit < limit && this.#resident.has(this.#key(path, hit))) hit++;
    return hit;
  }

  /** The blocks that left, in order; null where there is no room. */
  admit(path: ArrayLike<number>, hit: number, more: number): string[] | null {
    const held = Array.from({ length: hit }, (_, i) => this.#resident.get(this.#key(path, i))!);
    const short = more - (this.#blocks - this.#resident.size - this.#own);
    if (short > this.#queue.filter((block) => !held.includes(block)).length) return null;
    for (const block of held) this.#hold(block);
    this.#own += more;
    const left: string[] = [];
    for (let i = 0; i < short; i++) {
      const { node, place } = this.#queue.shift()!;
      this.#resident.delete(`${node}:${place}`);
      left.push(`${node}:${place}`);
    }
    return left;
  }

  /** The blocks that entered. */
  share(path: ArrayLike<number>, from: number, to: number): string[] {
    const entered: string[] = [];
    this.#own -= to - from;
    for (let i = from; i < to; i++) {
      const key = this.#key(path, i);
      const known = this.#resident.get(key);
      if (known !== undefined) {
        this.#hold(known);
        continue;
      }
      this.#resident.set(key, { node: path[Math.floor(i / this.#each)]!, place: i % this.#each, refs: 1 });
      entered.push(key);
    }
    return entered;
  }

  release(path: ArrayLike<number>, held: number, own: number): void {
    this.#own -= own;
    for (let i = held - 1; i >= 0; i--) {
      const block = this.#resident.get(this.#key(path, i))!;
      if (--block.refs === 0) this.#queue.push(block);
    }
  }

  #hold(block: Block): void {
    if (block.refs++ === 0) this.#queue.splice(this.#queue.indexOf(block), 1);
  }

  #key(path: ArrayLike<number>, block: number): string {
    return `${path[Math.floor(block / this.#each)]}:${block % this.#each}`;
  }
}
