// The simulated shared store: what vLLM puts there, what it could restore from it, and what leaves for want of room. An object here is a
// block of a group with all its ranks, for these come and go together. What is put and what restores follows spec/vllm-store.md 4 to 6
// in non-partial mode, every group having blocks of one size:
// - full attention: every full block of the prompt; an endpoint needs all before it;
// - sliding window: the window before the last block end at or before prompt − 1; an endpoint needs the window's blocks before it, and near
//   the prompt's start all before it;
// - mamba: one state, at that same block end; an endpoint needs the state at it.
//
// Memory and SSD are one list each, by last touch. A get and a put touch all that they name, the deepest block first, so that a prefix
// outlives what hangs on it. Memory spills its coldest blocks to the hot end of the SSD, where they stay: a get does not bring
// them back. An object that is anywhere is not put again.
import { NONE, Segments } from './segments.js';
import type { GroupModel, StoreModel } from './types.js';

/** Where an object is. */
export const DRAM = 0;
export const SSD = 1;

/** Told of runs of objects: `count` blocks of a node from its block `from` on. */
export interface StoreWatcher {
  entered(tier: number, group: number, node: number, from: number, count: number): void;
  left(tier: number, group: number, node: number, from: number, count: number): void;
}

/** Blocks, or bytes, by tier. */
export interface ByTier {
  dram: number;
  ssd: number;
}

/** What a restore takes. */
export interface FetchPlan {
  /** Prompt blocks by where the full-attention blocks come from. */
  readonly blocks: ByTier;
  readonly bytes: ByTier;
}

export class Store {
  readonly #groups: readonly GroupModel[];
  /** By group: blocks before an endpoint that must be there; 0 for all. */
  readonly #needed: readonly number[];
  readonly #caps: readonly [dram: number, ssd: number];
  readonly #each: () => number;
  readonly #watcher: StoreWatcher;
  readonly #segments = new Segments(2);
  readonly #used: [dram: number, ssd: number] = [0, 0];
  /** Segments of one key, while they are looked at. */
  readonly #pieces: number[] = [];
  readonly #main: number;
  putBytes = 0;
  dramPeak = 0;
  ssdPeak = 0;
  /** Blocks that are gone for want of room. */
  evictedBlocks = 0;

  /** @param blocksPerNode asked when the first request has told */
  constructor(
    { dramBytes, ssdBytes }: StoreModel,
    groups: readonly GroupModel[],
    blockSize: number,
    blocksPerNode: () => number,
    watcher: StoreWatcher,
  ) {
    this.#groups = groups;
    this.#needed = groups.map(({ kind, window }) => neededBlocks(kind, window, blockSize));
    this.#caps = [dramBytes, ssdBytes];
    this.#each = blocksPerNode;
    this.#watcher = watcher;
    this.#main = groups.findIndex(({ kind }) => kind === 'full_attention');
  }

  /** Whether it can hold anything. */
  get exists(): boolean {
    return this.#caps[DRAM] + this.#caps[SSD] > 0;
  }

  get usedBytes(): ByTier {
    return { dram: this.#used[DRAM], ssd: this.#used[SSD] };
  }

  /** Blocks from the prompt's start that could be restored: the largest endpoint, at most `limit`, that every group allows. */
  reach(path: Int32Array, limit: number): number {
    if (!this.exists) return 0;
    let end = limit;
    for (let group = 0; group < this.#groups.length; group++) {
      if (this.#needed[group] === 0) end = this.#run(group, path, end);
    }
    for (let before = -1; before !== end; ) {
      before = end;
      for (let group = 0; group < this.#groups.length && end > 0; group++) {
        if (this.#needed[group]! > 0) end = this.#lastEnd(group, path, end, this.#needed[group]!);
      }
    }
    return end;
  }

  /** Gets what restores blocks `from` … `end` of a path, `end` being what `reach` said: touches it, and says what is fetched. */
  get(path: Int32Array, from: number, end: number): FetchPlan {
    const blocks: ByTier = { dram: 0, ssd: 0 };
    const bytes: ByTier = { dram: 0, ssd: 0 };
    this.#groups.forEach(({ bytesPerBlock }, group) => {
      const needed = this.#needed[group]!;
      const fetched = this.#count(group, path, needed === 0 ? from : Math.max(from, end - needed), end);
      bytes.dram += fetched.dram * bytesPerBlock;
      bytes.ssd += fetched.ssd * bytesPerBlock;
      if (group === this.#main) Object.assign(blocks, fetched);
    });
    this.#touch(path, 0, end, end, false);
    return { blocks, bytes };
  }

  /** Puts a prompt of `full` full blocks, whose last block end at or before its last token but one is `end`; what it displaces leaves. */
  put(path: Int32Array, full: number, end: number): void {
    if (!this.exists) return;
    this.#touch(path, 0, full, end, true);
    this.#spill();
  }

  /** Every run of objects, coldest first, by tier. */
  forEach(visit: (group: number, node: number, from: number, count: number) => void): void {
    const segments = this.#segments;
    const groups = this.#groups.length;
    for (const tier of [SSD, DRAM]) {
      for (let segment = segments.coldest(tier); segment !== NONE; segment = segments.hotter[segment]!) {
        const key = segments.key[segment]!;
        visit(key % groups, Math.floor(key / groups), segments.from[segment]!, segments.count[segment]!);
      }
    }
  }

  /** It starts anew, empty. */
  clear(): void {
    this.#segments.clear();
    this.#used[DRAM] = 0;
    this.#used[SSD] = 0;
  }

  #keyOf(group: number, node: number): number {
    return node * this.#groups.length + group;
  }

  /** Blocks of a group in a row from the prompt's start, at most `limit`. */
  #run(group: number, path: Int32Array, limit: number): number {
    const { from, sibling } = this.#segments;
    const each = this.#each();
    let run = 0;
    for (let i = 0; run < limit; i++) {
      let reached = 0;
      let segment = this.#segments.first(this.#keyOf(group, path[i]!));
      while (segment !== NONE && from[segment] === reached) {
        reached = this.#segments.end(segment);
        segment = sibling[segment]!;
      }
      run += reached;
      if (reached < each) break;
    }
    return Math.min(run, limit);
  }

  /** The largest endpoint, at most `bound`, with `needed` blocks in a row before it, or all blocks from the start; from right to left. */
  #lastEnd(group: number, path: Int32Array, bound: number, needed: number): number {
    const segments = this.#segments;
    const each = this.#each();
    const pieces = this.#pieces;
    let begin = -1; // of the run being looked at, which ends at `end`
    let end = -1;
    for (let i = Math.ceil(bound / each) - 1; i >= 0; i--) {
      let count = 0;
      let segment = segments.first(this.#keyOf(group, path[i]!));
      for (; segment !== NONE; segment = segments.sibling[segment]!) pieces[count++] = segment;
      while (count > 0) {
        const piece = pieces[--count]!;
        const from = i * each + segments.from[piece]!;
        const to = Math.min(bound, i * each + segments.end(piece));
        if (from >= to) continue;
        if (to !== begin) end = to;
        begin = from;
        if (end - begin >= needed || begin === 0) return end;
      }
    }
    return 0;
  }

  /** Blocks of a group in `from` … `end` of a path, by tier. */
  #count(group: number, path: Int32Array, from: number, end: number): ByTier {
    const segments = this.#segments;
    const each = this.#each();
    const blocks: ByTier = { dram: 0, ssd: 0 };
    for (let i = Math.floor(from / each); i * each < end; i++) {
      let segment = segments.first(this.#keyOf(group, path[i]!));
      for (; segment !== NONE; segment = segments.sibling[segment]!) {
        const first = Math.max(from, i * each + segments.from[segment]!);
        const last = Math.min(end, i * each + segments.end(segment));
        if (first >= last) continue;
        if (segments.list[segment] === DRAM) blocks.dram += last - first;
        else blocks.ssd += last - first;
      }
    }
    return blocks;
  }

  /**
   * Touches what belongs to a prompt, deepest first: full-attention blocks up to `full`, windows and states up to `end`. With `puts`, what is
   * missing is put into memory.
   */
  #touch(path: Int32Array, from: number, full: number, end: number, puts: boolean): void {
    const each = this.#each();
    for (let i = Math.ceil(Math.max(full, end) / each) - 1; i >= 0; i--) {
      const start = i * each;
      for (let group = 0; group < this.#groups.length; group++) {
        const needed = this.#needed[group]!;
        const first = needed === 0 ? from : Math.max(0, end - needed);
        const begin = Math.max(0, first - start);
        const stop = Math.min(each, (needed === 0 ? full : end) - start);
        if (begin < stop) this.#touchRun(group, path[i]!, begin, stop, puts);
      }
    }
  }

  /** The same for blocks `begin` … `stop` of one node and group. Neighbours that end in one tier become one segment. */
  #touchRun(group: number, node: number, begin: number, stop: number, puts: boolean): void {
    const segments = this.#segments;
    const key = this.#keyOf(group, node);
    const first = segments.first(key);
    if (first === NONE) {
      if (puts) this.#put(group, node, NONE, NONE, begin, stop);
      return;
    }
    const pieces = this.#pieces;
    let count = 0;
    let before = NONE; // the last segment that ends at or before `begin`
    for (let segment = first; segment !== NONE; segment = segments.sibling[segment]!) {
      if (segments.from[segment]! >= stop) break;
      if (segments.end(segment) <= begin) before = segment;
      else if (segments.from[segment]! < begin) {
        segments.split(segment, begin);
        before = segment;
      } else {
        if (segments.end(segment) > stop) segments.split(segment, stop);
        pieces[count++] = segment;
      }
    }
    let last = NONE; // the piece touched last: the next deeper one
    let reached = stop;
    while (count > 0 || reached > begin) {
      const piece = count > 0 ? pieces[--count]! : NONE;
      const end = piece === NONE ? begin : segments.end(piece);
      if (end < reached && puts) last = this.#put(group, node, last, piece === NONE ? before : piece, end, reached);
      if (piece === NONE) break;
      reached = segments.from[piece]!;
      last = this.#heat(piece, last);
    }
  }

  /** Makes a segment the hottest of its list; one with its deeper neighbour, where that was touched just before and is in the same list. */
  #heat(piece: number, deeper: number): number {
    const segments = this.#segments;
    const tier = segments.list[piece]!;
    segments.unlink(piece);
    if (deeper !== NONE && segments.list[deeper] === tier && segments.from[deeper] === segments.end(piece)) {
      segments.from[deeper] = segments.from[piece]!;
      segments.count[deeper]! += segments.count[piece]!;
      segments.remove(piece);
      return deeper;
    }
    segments.pushHottest(piece, tier);
    return piece;
  }

  /** Puts blocks `from` … `to` that are nowhere into memory; `before` is the segment before them. */
  #put(group: number, node: number, deeper: number, before: number, from: number, to: number): number {
    const segments = this.#segments;
    const bytes = (to - from) * this.#groups[group]!.bytesPerBlock;
    this.#used[DRAM] += bytes;
    this.putBytes += bytes;
    this.#watcher.entered(DRAM, group, node, from, to - from);
    if (deeper !== NONE && segments.list[deeper] === DRAM && segments.from[deeper] === to) {
      segments.from[deeper] = from;
      segments.count[deeper]! += to - from;
      return deeper;
    }
    const segment = segments.insert(this.#keyOf(group, node), before, from, to - from);
    segments.pushHottest(segment, DRAM);
    return segment;
  }

  /** Memory down to its size, to the SSD where there is one, and that to its own. */
  #spill(): void {
    while (this.#used[DRAM] > this.#caps[DRAM]) this.#spillColdest();
    while (this.#used[SSD] > this.#caps[SSD]) this.#dropColdest(SSD);
    this.dramPeak = Math.max(this.dramPeak, this.#used[DRAM]);
    this.ssdPeak = Math.max(this.ssdPeak, this.#used[SSD]);
  }

  #spillColdest(): void {
    const segments = this.#segments;
    if (this.#caps[SSD] === 0) {
      this.#dropColdest(DRAM);
      return;
    }
    const segment = segments.coldest(DRAM);
    const key = segments.key[segment]!;
    const count = this.#cutColdest(DRAM, segment);
    const from = segments.end(segment);
    const { group, node } = this.#placeOf(key);
    this.#used[SSD] += count * this.#groups[group]!.bytesPerBlock;
    this.#watcher.entered(SSD, group, node, from, count);
    this.#watcher.left(DRAM, group, node, from, count);
    const hottest = segments.hottest(SSD);
    const grows = hottest !== NONE && segments.key[hottest] === key && segments.from[hottest] === from + count;
    if (grows) {
      segments.from[hottest] = from;
      segments.count[hottest]! += count;
    } else {
      segments.pushHottest(segments.insert(key, segment, from, count), SSD);
    }
    this.#forgetEmpty(segment);
  }

  #dropColdest(tier: number): void {
    const segments = this.#segments;
    const segment = segments.coldest(tier);
    const count = this.#cutColdest(tier, segment);
    const { group, node } = this.#placeOf(segments.key[segment]!);
    this.evictedBlocks += count;
    this.#watcher.left(tier, group, node, segments.end(segment), count);
    this.#forgetEmpty(segment);
  }

  /** Takes as many blocks off the end of a tier's coldest segment as must leave; returns how many. */
  #cutColdest(tier: number, segment: number): number {
    const segments = this.#segments;
    const { group } = this.#placeOf(segments.key[segment]!);
    const { bytesPerBlock } = this.#groups[group]!;
    const over = Math.ceil((this.#used[tier]! - this.#caps[tier]!) / bytesPerBlock);
    const count = Math.min(over, segments.count[segment]!);
    segments.count[segment]! -= count;
    this.#used[tier]! -= count * bytesPerBlock;
    return count;
  }

  #forgetEmpty(segment: number): void {
    if (this.#segments.count[segment] !== 0) return;
    this.#segments.unlink(segment);
    this.#segments.remove(segment);
  }

  #placeOf(key: number): { readonly group: number; readonly node: number } {
    const groups = this.#groups.length;
    return { group: key % groups, node: Math.floor(key / groups) };
  }
}

/** Blocks before an endpoint that a group needs; 0 for all. */
function neededBlocks(kind: GroupModel['kind'], window: number | null, blockSize: number): number {
  if (kind === 'full_attention') return 0;
  // The window counts the query token (spec/vllm-store.md 5).
  return kind === 'mamba' ? 1 : Math.ceil((window! - 1) / blockSize);
}
