// One worker's GPU blocks, as vLLM's block pool keeps them: a running request holds its blocks, and what it gives back goes to the hot end
// of the queue, the deepest block first. Resident blocks of a prompt always form a prefix: whoever holds a block holds all before it,
// and an ancestor is never colder than what hangs on it. So the blocks of a node are resident from its first one on, without holes.
//
// Blocks that are no one's to share (a prompt's partial tail, generated tokens, prompt blocks not computed yet) are counted only: nothing
// could ever hit them, and they are free as soon as their request ends.
import { NONE, Segments } from './segments.js';

/** Told of runs of blocks that entered or left: `count` blocks of a node from its block `from` on. */
export type BlockRun = (node: number, from: number, count: number) => void;

const IDLE = 0;

export class GpuCache {
  readonly blocks: number;
  readonly #each: () => number;
  readonly #segments = new Segments(1);
  #resident = 0;
  /** Resident blocks that nobody holds. */
  #idle = 0;
  /** Blocks that are counted only. */
  #own = 0;

  /**
   * @param blocks how many there are
   * @param blocksPerNode asked when the first request has told
   */
  constructor(blocks: number, blocksPerNode: () => number) {
    this.blocks = blocks;
    this.#each = blocksPerNode;
  }

  /** Shareable blocks that it holds. */
  get resident(): number {
    return this.#resident;
  }

  /** Blocks of the path that are resident from its start, at most `limit`. */
  match(path: Int32Array, limit: number): number {
    const each = this.#each();
    let hit = 0;
    for (let i = 0; hit < limit; i++) {
      const here = this.#residentOf(path[i]!);
      hit += here;
      if (here < each) break;
    }
    return Math.min(hit, limit);
  }

  /**
   * Admits a request: holds the first `hit` blocks of its path and reserves `more` blocks besides. The coldest blocks leave for them.
   * @returns false, and nothing has changed, where there is no room
   */
  admit(path: Int32Array, hit: number, more: number, left: BlockRun): boolean {
    const free = this.blocks - this.#resident - this.#own;
    if (more > free) {
      const short = more - free;
      if (short > this.#idle - this.#idleOf(path, hit)) return false;
      this.#hold(path, 0, hit);
      this.#evict(short, left);
    } else this.#hold(path, 0, hit);
    this.#own += more;
    return true;
  }

  /**
   * Blocks `from` … `to` of a path are computed or restored, out of those that were reserved: they can be shared now, and are held. Those
   * that another request has brought meanwhile are held in place of one's own, which are free.
   */
  share(path: Int32Array, from: number, to: number, entered: BlockRun): void {
    const each = this.#each();
    this.#own -= to - from;
    for (let at = from; at < to; ) {
      const i = Math.floor(at / each);
      const begin = at - i * each;
      const end = Math.min(each, to - i * each);
      this.#shareOf(path[i]!, begin, end, entered);
      at = i * each + end;
    }
  }

  /** Gives back the first `held` blocks of a path, deepest first, and `own` blocks that are counted only. */
  release(path: Int32Array, held: number, own: number): void {
    const each = this.#each();
    this.#own -= own;
    for (let i = Math.ceil(held / each) - 1; i >= 0; i--) {
      this.#releaseOf(this.#segments.first(path[i]!), Math.min(each, held - i * each));
    }
  }

  /** Everything is gone, with all holds. */
  clear(): void {
    this.#segments.clear();
    this.#resident = 0;
    this.#idle = 0;
    this.#own = 0;
  }

  #residentOf(node: number): number {
    const { sibling, count } = this.#segments;
    let blocks = 0;
    for (let segment = this.#segments.first(node); segment !== NONE; segment = sibling[segment]!)
      blocks += count[segment]!;
    return blocks;
  }

  /** Blocks of a path's first `hit` ones that nobody holds. */
  #idleOf(path: Int32Array, hit: number): number {
    const { sibling, count, refs, from } = this.#segments;
    const each = this.#each();
    let idle = 0;
    for (let i = 0; i * each < hit; i++) {
      const end = hit - i * each;
      for (let segment = this.#segments.first(path[i]!); segment !== NONE; segment = sibling[segment]!) {
        if (from[segment]! >= end) break;
        if (refs[segment] === 0) idle += Math.min(count[segment]!, end - from[segment]!);
      }
    }
    return idle;
  }

  #hold(path: Int32Array, begin: number, end: number): void {
    const each = this.#each();
    for (let at = begin; at < end; ) {
      const i = Math.floor(at / each);
      const stop = Math.min(each, end - i * each);
      this.#holdOf(path[i]!, at - i * each, stop);
      at = i * each + stop;
    }
  }

  /** Holds resident blocks `begin` … `end` of a node; returns the last segment among them. */
  #holdOf(node: number, begin: number, end: number): number {
    const segments = this.#segments;
    let last = NONE;
    for (let segment = segments.first(node); segment !== NONE; segment = segments.sibling[segment]!) {
      if (segments.from[segment]! >= end) break;
      if (segments.end(segment) <= begin) {
        last = segment;
        continue;
      }
      if (segments.from[segment]! < begin) {
        segments.split(segment, begin);
        last = segment;
        continue;
      }
      if (segments.end(segment) > end) segments.split(segment, end);
      if (segments.refs[segment]!++ === 0) {
        this.#idle -= segments.count[segment]!;
        segments.unlink(segment);
      }
      last = segment;
    }
    return last;
  }

  #shareOf(node: number, begin: number, end: number, entered: BlockRun): void {
    const segments = this.#segments;
    const last = this.#holdOf(node, begin, end);
    const resident = last === NONE ? 0 : segments.end(last);
    if (resident >= end) return;
    const count = end - resident;
    // The request holds all before as well, so a single holder is this one: the run grows.
    if (last !== NONE && segments.refs[last] === 1) segments.count[last]! += count;
    else {
      const segment = segments.insert(node, last, resident, count);
      segments.refs[segment] = 1;
    }
    this.#resident += count;
    entered(node, resident, count);
  }

  /** Gives back a node's blocks up to `end`, from the deepest on. */
  #releaseOf(segment: number, end: number): void {
    const segments = this.#segments;
    if (segment === NONE || segments.from[segment]! >= end) return;
    this.#releaseOf(segments.sibling[segment]!, end);
    if (--segments.refs[segment]! > 0) return;
    this.#idle += segments.count[segment]!;
    segments.pushHottest(segment, IDLE);
  }

  #evict(blocks: number, left: BlockRun): void {
    const segments = this.#segments;
    this.#resident -= blocks;
    this.#idle -= blocks;
    for (let short = blocks; short > 0; ) {
      const segment = segments.coldest(IDLE);
      const count = Math.min(short, segments.count[segment]!);
      short -= count;
      segments.count[segment]! -= count;
      left(segments.key[segment]!, segments.end(segment), count);
      if (segments.count[segment] === 0) {
        segments.unlink(segment);
        segments.remove(segment);
      }
    }
  }
}
