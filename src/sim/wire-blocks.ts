// What real engines and requests would have for the blocks of the tree: token ids, digests chained over them, and the hashes that the router
// makes of tokens. A block's tokens follow from its number alone, the first one being that number, so that no two blocks have the same.
// Digests and local hashes are made once a node, when it is first asked for, with those of all before it.
import { blockHashes } from '../core/local-hash.js';
import { BlockDigests, DIGEST_BYTES } from '../wire/block-digests.js';
import type { BlockTree } from './blocks.js';

const FIRST_NODES = 256;
/** Most blocks whose numbers are made at once. */
const RUN_BLOCKS = 65_536;
const HEX_DIGITS = new TextEncoder().encode('0123456789abcdef');
/** Where the low 64 bits of a digest begin: its bytes are one big-endian number. */
const LOW_AT = DIGEST_BYTES - 8;

export class WireBlocks {
  readonly #tree: BlockTree;
  readonly #maker: BlockDigests;
  #digests = new Uint8Array(0);
  #view = new DataView(this.#digests.buffer);
  /** Pairs of words by block, the low one first. */
  #locals = new Uint32Array(0);
  /** By node: 1 where its numbers are made. */
  #made = new Uint8Array(0);
  readonly #unmade: number[] = [];

  constructor(tree: BlockTree) {
    this.#tree = tree;
    this.#maker = new BlockDigests(tree.blockSize);
  }

  /** The block before; −1 at a prompt's start. */
  before(block: number): number {
    const each = this.#tree.blocksPerNode;
    const node = Math.floor(block / each);
    if (block > node * each) return block - 1;
    const parent = this.#tree.parentOf(node);
    return parent < 0 ? -1 : parent * each + each - 1;
  }

  /** Token ids of `count` blocks from block number `first` on. */
  tokens(first: number, count: number): Uint32Array {
    const { blockSize } = this.#tree;
    const tokens = new Uint32Array(count * blockSize);
    for (let block = first, at = 0; block < first + count; block++) {
      tokens[at++] = block;
      for (let place = 1; place < blockSize; place++) tokens[at++] = mixed(block, place);
    }
    return tokens;
  }

  /** The low 64 bits of a block's digest, as engines announce it. */
  low64(block: number): bigint {
    this.#make(Math.floor(block / this.#tree.blocksPerNode));
    return this.#view.getBigUint64(block * DIGEST_BYTES + LOW_AT);
  }

  /** Writes the digest of a block as object keys have it, in 64 hexadecimal digits, to byte `at`. */
  writeHex(block: number, to: Uint8Array, at: number): void {
    this.#make(Math.floor(block / this.#tree.blocksPerNode));
    for (let i = 0, from = block * DIGEST_BYTES; i < DIGEST_BYTES * 2; i += 2, from++) {
      const byte = this.#digests[from]!;
      to[at + i] = HEX_DIGITS[byte >> 4]!;
      to[at + i + 1] = HEX_DIGITS[byte & 15]!;
    }
  }

  /** Writes local hashes of a prompt's first `blocks` blocks, as pairs of words. */
  writeLocals(path: Int32Array, blocks: number, to: Uint32Array): void {
    const each = this.#tree.blocksPerNode;
    for (let i = 0, done = 0; done < blocks; i++, done += each) {
      const node = path[i]!;
      this.#make(node);
      const first = node * each;
      const count = Math.min(each, blocks - done);
      to.set(this.#locals.subarray(first * 2, (first + count) * 2), done * 2);
    }
  }

  /** Makes the numbers of a node, and of those before it. */
  #make(node: number): void {
    if (this.#made[node] === 1) return;
    if (node >= this.#made.length) this.#grow(node);
    const unmade = this.#unmade;
    const most = RUN_BLOCKS / this.#tree.blocksPerNode;
    for (let at = node; at >= 0 && this.#made[at] === 0; at = this.#tree.parentOf(at)) unmade.push(at);
    while (unmade.length > 0) {
      const first = unmade.pop()!;
      let nodes = 1;
      for (; nodes < most && unmade.at(-1) === first + nodes; nodes++) unmade.pop();
      this.#makeRun(first, nodes);
    }
  }

  /** Makes nodes that follow one another in number and in the chain. */
  #makeRun(node: number, nodes: number): void {
    const { blocksPerNode: each, blockSize } = this.#tree;
    const first = node * each;
    const blocks = nodes * each;
    const tokens = this.tokens(first, blocks);
    const before = this.before(first);
    const parentAt = before < 0 ? -1 : before * DIGEST_BYTES;
    this.#maker.write(this.#digests, first * DIGEST_BYTES, parentAt, tokens, 0, blocks);
    const hashes = blockHashes(tokens, blockSize);
    this.#locals.set(new Uint32Array(hashes.buffer, hashes.byteOffset, blocks * 2), first * 2);
    this.#made.fill(1, node, node + nodes);
  }

  #grow(node: number): void {
    const nodes = Math.max(FIRST_NODES, node + 1, this.#made.length * 2);
    const blocks = nodes * this.#tree.blocksPerNode;
    const digests = new Uint8Array(blocks * DIGEST_BYTES);
    digests.set(this.#digests);
    this.#digests = digests;
    this.#view = new DataView(digests.buffer);
    const locals = new Uint32Array(blocks * 2);
    locals.set(this.#locals);
    this.#locals = locals;
    const made = new Uint8Array(nodes);
    made.set(this.#made);
    this.#made = made;
  }
}

/** A token id below 2¹⁶. */
function mixed(block: number, place: number): number {
  const mixed = Math.imul(block ^ Math.imul(place, 0x9e3779b9), 0x85ebca6b);
  return (mixed ^ (mixed >>> 15)) >>> 16;
}
