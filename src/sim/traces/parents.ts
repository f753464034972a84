// Whether ids name whole prefixes, as the formats promise: then each id stands after one and the same id in every row. The first parent of
// an id is kept and later ones are compared with it. State is bounded: ids numbered past the bound are not checked, and counted.

/** 2²² ids, 16 MB; ids come in order of appearance, so it is the first ones of a trace that are checked. */
export const CHECKED_IDS = 0x40_0000;
const FIRST_SIZE = 4096;

const UNSEEN = 0;
const ROOT = 1;
/** What is kept for a parent is its number plus this. */
const PARENT = 2;

export class ParentCheck {
  #first = new Uint32Array(FIRST_SIZE);

  /** Looks at the ids of one row; gives how many stand under another parent than at first, and how many were not checked. */
  check(ids: Uint32Array): { readonly conflicts: number; readonly unchecked: number } {
    let conflicts = 0;
    let unchecked = 0;
    let parent = ROOT;
    for (const id of ids) {
      if (id >= CHECKED_IDS) unchecked++;
      else {
        if (id >= this.#first.length) this.#grow(id);
        if (this.#first[id] === UNSEEN) this.#first[id] = parent;
        else if (this.#first[id] !== parent) conflicts++;
      }
      parent = id + PARENT;
    }
    return { conflicts, unchecked };
  }

  #grow(id: number): void {
    let size = this.#first.length;
    while (size <= id) size *= 2;
    const grown = new Uint32Array(size);
    grown.set(this.#first);
    this.#first = grown;
  }
}
