// What one cache without limit would hit: every block that any earlier prompt had at the same place behind the same prefix.

const FIRST_NODES = 1024;

export class Ceiling {
  /** By node: how many of its blocks were seen, from the first one on. */
  #seen = new Int32Array(FIRST_NODES);

  /** Blocks of the path seen before, from its start, at most `limit`; then all its `full` blocks are. */
  hitsOf(path: Int32Array, full: number, limit: number, blocksPerNode: number): number {
    let hits = 0;
    let whole = true;
    for (let i = 0; i < path.length; i++) {
      const node = path[i]!;
      const here = Math.min(blocksPerNode, full - i * blocksPerNode);
      if (node >= this.#seen.length) this.#grow(node);
      const seen = this.#seen[node]!;
      if (whole) hits += Math.min(seen, here);
      whole &&= seen >= blocksPerNode;
      this.#seen[node] = Math.max(seen, here);
    }
    return Math.min(hits, limit);
  }

  #grow(node: number): void {
    const grown = new Int32Array(Math.max(node + 1, this.#seen.length * 2));
    grown.set(this.#seen);
    this.#seen = grown;
  }
}
