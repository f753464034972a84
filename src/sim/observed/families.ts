// Prompts that begin alike: a family is all that hangs on one first node of the block tree, be it a system prompt or a session. Nodes are numbered as
// they are made, and those that are new with one request are of its family; so ranges of numbers are all that has to be kept.
import { grown } from './columns.js';

/** Families, and ranges of nodes, that are told apart: 2¹⁹ of them are 4 MB, 2²⁰ of these 8 MB. */
export const MAX_FAMILIES = 0x8_0000;
export const MAX_RANGES = 0x10_0000;
const FIRST_ROOM = 1024;
/** Of prompts without a full block. */
export const NO_FAMILY = -1;

export class Families {
  count = 0;
  /** By family: the first request, and how many had it. */
  firstRequest = new Int32Array(FIRST_ROOM);
  requests = new Int32Array(FIRST_ROOM);
  /** Some could not be told apart any more. */
  full = false;
  #starts = new Int32Array(FIRST_ROOM);
  #families = new Int32Array(FIRST_ROOM);
  #ranges = 0;
  /** Range that was asked for last: neighbours are asked for together. */
  #last = 0;

  get bytes(): number {
    return (this.firstRequest.length + this.#starts.length) * 8;
  }

  /** The family of a request whose prompt begins with node `root`; nodes from `firstNode` on up to `endNode` are new with it. */
  read(place: number, root: number | undefined, firstNode: number, endNode: number): number {
    if (root === undefined) return NO_FAMILY;
    const family = root >= firstNode ? this.#found(place) : this.of(root);
    if (endNode > firstNode) this.#addRange(firstNode, family);
    if (family !== NO_FAMILY) this.requests[family]!++;
    return family;
  }

  /** The family of a node. */
  of(node: number): number {
    const starts = this.#starts;
    let low = this.#last;
    if (starts[low]! <= node && (low + 1 === this.#ranges || starts[low + 1]! > node)) return this.#families[low]!;
    low = 0;
    for (let high = this.#ranges - 1; low < high; ) {
      const middle = (low + high + 1) >>> 1;
      if (starts[middle]! <= node) low = middle;
      else high = middle - 1;
    }
    this.#last = low;
    return this.#families[low]!;
  }

  #found(place: number): number {
    if (this.count === MAX_FAMILIES) {
      this.full = true;
      return NO_FAMILY;
    }
    if (this.count === this.firstRequest.length) {
      this.firstRequest = grown(this.firstRequest, this.count * 2);
      this.requests = grown(this.requests, this.count * 2);
    }
    this.firstRequest[this.count] = place;
    return this.count++;
  }

  #addRange(firstNode: number, family: number): void {
    if (this.#ranges > 0 && this.#families[this.#ranges - 1] === family) return;
    if (this.#ranges === MAX_RANGES) {
      this.full = true;
      return;
    }
    if (this.#ranges === this.#starts.length) {
      this.#starts = grown(this.#starts, this.#ranges * 2);
      this.#families = grown(this.#families, this.#ranges * 2);
    }
    this.#starts[this.#ranges] = firstNode;
    this.#families[this.#ranges++] = family;
  }
}
