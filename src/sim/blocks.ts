// The blocks of all prompts. A trace names spans of many blocks by ids, and an id names all that comes before it too; so spans are the
// nodes of a tree, and a block is (node, place in the node). An id under another parent than before becomes another node: no real hash
// chain has two parents. Blocks without ids, and what a prompt has past its ids, get nodes of their own.
//
// The numbers that engines would make by hashing tokens are made by mixing the block's own number, once, when its node is new. The mix is a
// bijection of 32 bits in each half, so that no two blocks ever share a hash. They stand in flat arrays, block after block, so
// that a run of nodes that follow each other is handed on as one range.
import { MoonrouteError } from '../errors.js';
import type { TraceRequest } from './traces/types.js';

/** 2²⁷ blocks: 2 GB of numbers. */
export const MAX_BLOCKS = 0x800_0000;
/** Words of a digest. */
export const DIGEST_WORDS = 8;
const FIRST_NODES = 1024;
const NONE = -1;
/** Ids are below this (traces/ids.ts), so that node and id make one safe integer. */
const ID_LIMIT = 0x4000_0000;

/** Where the ids of different requests disagree about their span, nothing could be shared truthfully. */
function otherSpan(seen: number, before: number): MoonrouteError {
  return new MoonrouteError(
    'sim-id-tokens',
    `a request has ids of ${seen} tokens, earlier ones had ${before}. Simulate traces of different ids one by one.`,
  );
}

export class BlockTree {
  /** Tokens of a block. */
  readonly blockSize: number;
  readonly #maxNodes: number;
  /** Blocks of a node; 0 until the first request tells. */
  blocksPerNode = 0;
  #idTokens = 0;
  #nodes = 0;
  #parents = new Int32Array(FIRST_NODES);
  /** Local and external hashes, as pairs of words, the low one first. */
  #locals = new Uint32Array(0);
  #lows = new Uint32Array(0);
  /** By id: its first node, or −1. */
  #nodeOfId = new Int32Array(FIRST_NODES).fill(NONE);
  /** Further nodes of an id, by (parent, id). */
  readonly #twins = new Map<number, number>();

  /** @param maxNodes more are refused; at most 2³¹ */
  constructor(blockSize: number, maxNodes: number) {
    this.blockSize = blockSize;
    this.#maxNodes = maxNodes;
  }

  /** Nodes so far: they are numbered from 0. */
  get nodes(): number {
    return this.#nodes;
  }

  /** By block, two words each. Valid until the next request. */
  get locals(): Uint32Array {
    return this.#locals;
  }

  /** External hashes, likewise. */
  get lows(): Uint32Array {
    return this.#lows;
  }

  /** The node before; −1 at a prompt's start. */
  parentOf(node: number): number {
    return this.#parents[node]!;
  }

  /**
   * The nodes of a request's full blocks, new ones made.
   * @throws MoonrouteError `sim-id-tokens` for ids that are no whole blocks or of another size than before, `sim-blocks` past 2²⁷ blocks
   */
  pathOf({ inputTokens, hashIds, idTokens }: TraceRequest): Int32Array {
    if (idTokens !== this.#idTokens) this.#setIdTokens(idTokens);
    const full = Math.floor(inputTokens / this.blockSize);
    const path = new Int32Array(Math.ceil(full / this.blocksPerNode));
    const named = Math.min(path.length, hashIds?.length ?? 0);
    let parent = NONE;
    for (let i = 0; i < path.length; i++) {
      parent = i < named ? this.#nodeOf(hashIds![i]!, parent) : this.#add(parent);
      path[i] = parent;
    }
    return path;
  }

  /** Writes local hashes of a prompt's first `blocks` blocks, as pairs of words. */
  writeLocals(path: Int32Array, blocks: number, to: Uint32Array): void {
    const each = this.blocksPerNode;
    for (let i = 0, done = 0; done < blocks; ) {
      const first = path[i]!;
      let run = 1;
      while (i + run < path.length && path[i + run] === first + run) run++;
      const count = Math.min(run * each, blocks - done);
      to.set(this.#locals.subarray(first * each * 2, (first * each + count) * 2), done * 2);
      done += count;
      i += run;
    }
  }

  /** Writes digests of `count` blocks from block number `first` on. */
  writeDigests(first: number, count: number, to: Uint32Array, at: number): void {
    for (let block = first, word = at * DIGEST_WORDS; block < first + count; block++, word += DIGEST_WORDS) {
      const low = this.#lows[block * 2]!;
      const high = this.#lows[block * 2 + 1]!;
      to[word] = low ^ 0x243f6a88;
      to[word + 1] = high ^ 0x85a308d3;
      to[word + 2] = low ^ 0x13198a2e;
      to[word + 3] = high ^ 0x03707344;
      to[word + 4] = low ^ 0xa4093822;
      to[word + 5] = high ^ 0x299f31d0;
      to[word + 6] = low;
      to[word + 7] = high;
    }
  }

  #setIdTokens(idTokens: number): void {
    if (this.#idTokens !== 0) throw otherSpan(idTokens, this.#idTokens);
    if (idTokens % this.blockSize !== 0) {
      throw new MoonrouteError(
        'sim-id-tokens',
        `the trace's ids have ${idTokens} tokens, which is no whole number of blocks of ${this.blockSize}. Use a blockSize that divides ${idTokens}.`,
      );
    }
    this.#idTokens = idTokens;
    this.blocksPerNode = idTokens / this.blockSize;
    this.#locals = new Uint32Array(FIRST_NODES * this.blocksPerNode * 2);
    this.#lows = new Uint32Array(FIRST_NODES * this.blocksPerNode * 2);
  }

  #nodeOf(id: number, parent: number): number {
    if (id >= this.#nodeOfId.length) {
      const grown = new Int32Array(Math.max(id + 1, this.#nodeOfId.length * 2)).fill(NONE);
      grown.set(this.#nodeOfId);
      this.#nodeOfId = grown;
    }
    const first = this.#nodeOfId[id]!;
    if (first !== NONE && this.#parents[first] === parent) return first;
    if (first === NONE) {
      const node = this.#add(parent);
      this.#nodeOfId[id] = node;
      return node;
    }
    const key = (parent + 1) * ID_LIMIT + id;
    let node = this.#twins.get(key);
    if (node === undefined) {
      node = this.#add(parent);
      this.#twins.set(key, node);
    }
    return node;
  }

  #add(parent: number): number {
    const each = this.blocksPerNode;
    const node = this.#nodes;
    const first = node * each;
    if (first + each > MAX_BLOCKS || node >= this.#maxNodes) {
      throw new MoonrouteError(
        'sim-blocks',
        `the trace has more than ${first} different blocks of ${this.blockSize} tokens, which is all there is room for. Simulate a part of it, or use a larger blockSize.`,
      );
    }
    if (node === this.#parents.length) this.#grow();
    this.#nodes++;
    this.#parents[node] = parent;
    for (let block = first; block < first + each; block++) {
      this.#locals[block * 2] = mix(block, 0x9e3779b9);
      this.#locals[block * 2 + 1] = mix(block, 0x3c6ef372);
      this.#lows[block * 2] = mix(block, 0xdaa66d2b);
      this.#lows[block * 2 + 1] = mix(block, 0x78dde6e4);
    }
    return node;
  }

  #grow(): void {
    const nodes = this.#parents.length * 2;
    const parents = new Int32Array(nodes);
    parents.set(this.#parents);
    this.#parents = parents;
    const words = nodes * this.blocksPerNode * 2;
    const locals = new Uint32Array(words);
    locals.set(this.#locals);
    this.#locals = locals;
    const lows = new Uint32Array(words);
    lows.set(this.#lows);
    this.#lows = lows;
  }
}

/** The finaliser of MurmurHash3, from another start for each word: a bijection of 32 bits. */
function mix(block: number, salt: number): number {
  let mixed = (block + salt) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
