// Numbers by number, for keys that come in runs: prompts are paths of nodes that were numbered one after the other. Keys stand in pages, so that those of
// a run lie side by side in memory, and the page that was used last is found without looking for it.
import { IdTable } from './id-table.js';

const NONE = -1;
const PAGE_BITS = 6;
const PAGE = 1 << PAGE_BITS;
const FIRST_PAGES = 4;

export class PagedTable {
  /** By page number: its place. */
  readonly #places = new IdTable();
  /** Page after page by place. */
  #values = new Int32Array(FIRST_PAGES * PAGE).fill(NONE);
  /** By place: how many values its page has. Of a free one: the next free one. */
  #counts = new Int32Array(FIRST_PAGES);
  #free = NONE;
  #used = 0;
  #size = 0;
  // The page that was used last, and where it begins; −1 for one that is nowhere.
  #page = NONE;
  #begin = NONE;

  get size(): number {
    return this.#size;
  }

  /** The value; −1 without one. */
  get(key: number): number {
    const begin = this.#beginOf(key >>> PAGE_BITS);
    return begin === NONE ? NONE : this.#values[begin + (key & (PAGE - 1))]!;
  }

  /** @param value 0 or more */
  set(key: number, value: number): void {
    let begin = this.#beginOf(key >>> PAGE_BITS);
    if (begin === NONE) begin = this.#add(key >>> PAGE_BITS);
    const at = begin + (key & (PAGE - 1));
    if (this.#values[at] === NONE) {
      this.#counts[begin >>> PAGE_BITS]!++;
      this.#size++;
    }
    this.#values[at] = value;
  }

  delete(key: number): void {
    const begin = this.#beginOf(key >>> PAGE_BITS);
    if (begin === NONE) return;
    const at = begin + (key & (PAGE - 1));
    if (this.#values[at] === NONE) return;
    this.#values[at] = NONE;
    this.#size--;
    const place = begin >>> PAGE_BITS;
    if (--this.#counts[place]! > 0) return;
    this.#places.delete(key >>> PAGE_BITS);
    this.#counts[place] = this.#free;
    this.#free = place;
    this.#begin = NONE;
  }

  clear(): void {
    this.#places.clear();
    this.#values.fill(NONE);
    this.#counts.fill(0);
    this.#free = NONE;
    this.#used = 0;
    this.#size = 0;
    this.#page = NONE;
  }

  #beginOf(page: number): number {
    if (page === this.#page) return this.#begin;
    const place = this.#places.get(page);
    this.#page = page;
    this.#begin = place === NONE ? NONE : place << PAGE_BITS;
    return this.#begin;
  }

  #add(page: number): number {
    let place = this.#free;
    if (place === NONE) {
      place = this.#used++;
      if (place === this.#counts.length) this.#grow();
    } else this.#free = this.#counts[place]!;
    this.#counts[place] = 0;
    this.#places.set(page, place);
    this.#page = page;
    this.#begin = place << PAGE_BITS;
    return this.#begin;
  }

  #grow(): void {
    const counts = new Int32Array(this.#counts.length * 2);
    counts.set(this.#counts);
    const values = new Int32Array(this.#values.length * 2).fill(NONE);
    values.set(this.#values);
    this.#counts = counts;
    this.#values = values;
  }
}
