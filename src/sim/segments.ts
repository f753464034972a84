// Runs of resident blocks, in lists by last touch: what the GPU caches and the store are made of. A segment is (key, first block, number of
// blocks, list); a key is a node of the block tree, or a node in a group. The segments of a key are chained by rising place and never
// overlap. Within a segment the deepest block is the coldest, for a touch always goes from the deepest block up; so taking
// blocks off the end of a list's coldest segment is exactly the LRU order of single blocks, at the price of segments.
//
// All of it stands in flat arrays; a segment is an index. Owners change `from`, `count` and `refs` of segments in place.
import { PagedTable } from './paged-table.js';

export const NONE = -1;
const FIRST_ROOM = 256;

export class Segments {
  key = new Int32Array(FIRST_ROOM);
  /** First block, counted in the key. */
  from = new Int32Array(FIRST_ROOM);
  count = new Int32Array(FIRST_ROOM);
  /** Which list it is in; −1 for none. */
  list = new Int32Array(FIRST_ROOM);
  /** Who holds it; for the owner. */
  refs = new Int32Array(FIRST_ROOM);
  /** The next one of its key. Of a free one: the next free one. */
  sibling = new Int32Array(FIRST_ROOM);
  /** Neighbours in the list. */
  colder = new Int32Array(FIRST_ROOM);
  hotter = new Int32Array(FIRST_ROOM);
  readonly #coldest: Int32Array;
  readonly #hottest: Int32Array;
  readonly #first = new PagedTable();
  #free = NONE;
  #used = 0;

  constructor(lists: number) {
    this.#coldest = new Int32Array(lists).fill(NONE);
    this.#hottest = new Int32Array(lists).fill(NONE);
  }

  /** The first segment of a key; −1 without one. */
  first(key: number): number {
    return this.#first.get(key);
  }

  /** Behind its last block. */
  end(segment: number): number {
    return this.from[segment]! + this.count[segment]!;
  }

  coldest(list: number): number {
    return this.#coldest[list]!;
  }

  hottest(list: number): number {
    return this.#hottest[list]!;
  }

  /** A new segment of a key behind `before` (−1: as the first), in no list. */
  insert(key: number, before: number, from: number, count: number): number {
    if (this.#free === NONE && this.#used === this.key.length) this.#grow();
    let segment = this.#free;
    if (segment === NONE) segment = this.#used++;
    else this.#free = this.sibling[segment]!;
    this.key[segment] = key;
    this.from[segment] = from;
    this.count[segment] = count;
    this.list[segment] = NONE;
    this.refs[segment] = 0;
    if (before === NONE) {
      this.sibling[segment] = this.#first.get(key);
      this.#first.set(key, segment);
    } else {
      this.sibling[segment] = this.sibling[before]!;
      this.sibling[before] = segment;
    }
    return segment;
  }

  /** Forgets a segment, which must be in no list. */
  remove(segment: number): void {
    const key = this.key[segment]!;
    const first = this.#first.get(key);
    const next = this.sibling[segment]!;
    if (first === segment) {
      if (next === NONE) this.#first.delete(key);
      else this.#first.set(key, next);
    } else {
      let before = first;
      while (this.sibling[before] !== segment) before = this.sibling[before]!;
      this.sibling[before] = next;
    }
    this.sibling[segment] = this.#free;
    this.#free = segment;
  }

  /** Cuts a segment in two before the key's block `at`, which must lie within; the new, deeper one is the next colder of the same list. */
  split(segment: number, at: number): number {
    const deeper = this.insert(this.key[segment]!, segment, at, this.end(segment) - at);
    this.count[segment] = at - this.from[segment]!;
    this.refs[deeper] = this.refs[segment]!;
    const list = this.list[segment]!;
    if (list !== NONE) this.#link(deeper, list, this.colder[segment]!, segment);
    return deeper;
  }

  pushHottest(segment: number, list: number): void {
    this.#link(segment, list, this.#hottest[list]!, NONE);
  }

  /** Takes a segment out of its list. */
  unlink(segment: number): void {
    const list = this.list[segment]!;
    const colder = this.colder[segment]!;
    const hotter = this.hotter[segment]!;
    if (colder === NONE) this.#coldest[list] = hotter;
    else this.hotter[colder] = hotter;
    if (hotter === NONE) this.#hottest[list] = colder;
    else this.colder[hotter] = colder;
    this.list[segment] = NONE;
  }

  clear(): void {
    this.#coldest.fill(NONE);
    this.#hottest.fill(NONE);
    this.#first.clear();
    this.#free = NONE;
    this.#used = 0;
  }

  #link(segment: number, list: number, colder: number, hotter: number): void {
    this.list[segment] = list;
    this.colder[segment] = colder;
    this.hotter[segment] = hotter;
    if (colder === NONE) this.#coldest[list] = segment;
    else this.hotter[colder] = segment;
    if (hotter === NONE) this.#hottest[list] = segment;
    else this.colder[hotter] = segment;
  }

  #grow(): void {
    const grown = (array: Int32Array) => {
      const larger = new Int32Array(array.length * 2);
      larger.set(array);
      return larger;
    };
    this.key = grown(this.key);
    this.from = grown(this.from);
    this.count = grown(this.count);
    this.list = grown(this.list);
    this.refs = grown(this.refs);
    this.sibling = grown(this.sibling);
    this.colder = grown(this.colder);
    this.hotter = grown(this.hotter);
  }
}
