// The capacity curve: how many block references one LRU cache would serve, for every capacity at once, in one pass over the requests.
// Rule: a request hits its longest resident prefix, then its ids are touched deepest first, and the coldest are dropped down to the cap.
//
// Why one pass is enough. Keep all ids ever seen in the order of their last touch, hottest first (Mattson's stack, 1970). A request moves
// its k distinct ids to the front. An id at position p > C that is not among them ends no higher than p: k ids came in above it and at most
// k left from there. So the cache of capacity C always holds exactly the first C of the stack, also after a request longer than C and with
// ids that repeat within one. Block i is therefore a hit at C when the deepest position of blocks 0 … i, before the touch, is ≤ C: that
// running maximum goes into a histogram, and the curve is its running total.
//
// Positions. Each touch takes the next slot of a time line; an id's position is the number of live slots from its own to the end. Live
// slots are bits, counted by a Fenwick tree over 32-bit words. A full time line is packed, which costs O(1) a touch in the mean. Memory:
// per distinct id 4 bytes for its slot, 8 for its histogram place and about 1 for bits and tree, times ≤ 2 for growth by doubling.
import { ConfigError } from '../errors.js';

const WORD_BITS = 32;
/** Slots of a new time line; a power of two. */
const FIRST_SLOTS = 1024;
/** 2²⁶ ids: less than 2 GB of tables. */
const DEFAULT_MAX_IDS = 0x400_0000;
/** Corners that `points` gives unless asked for more or fewer. */
const DEFAULT_POINTS = 1000;

/** Bounds of a capacity curve. */
export interface CurveOptions {
  /** Ids must be below this; default 2²⁶. */
  readonly maxIds?: number;
}

/** One point of a capacity curve. */
export interface CurvePoint {
  /** Blocks that the cache holds. */
  readonly capacity: number;
  /** Block references that are hits at this capacity. */
  readonly hits: number;
}

/** Hits of an LRU cache at every size at once, over the block ids that it is fed, by their reuse distances. */
export class CapacityCurve {
  readonly #maxIds: number;
  /** By id: its slot + 1, or 0 before its first touch. */
  #slotOf = new Uint32Array(FIRST_SLOTS);
  /** One bit a slot: set while the slot is some id's last touch. */
  #live = new Uint32Array(FIRST_SLOTS / WORD_BITS);
  /** Fenwick tree over the number of live bits a word; place 0 is unused. */
  #tree = new Int32Array(FIRST_SLOTS / WORD_BITS + 1);
  #slots = FIRST_SLOTS;
  #nextSlot = 0;
  /** By depth: references that are hits from that capacity on. */
  #hitsFrom = new Float64Array(FIRST_SLOTS);
  #distinct = 0;
  #references = 0;

  constructor({ maxIds = DEFAULT_MAX_IDS }: CurveOptions = {}) {
    if (!Number.isInteger(maxIds) || maxIds < 1 || maxIds > 0x4000_0000)
      throw new ConfigError('curve-max-ids', `maxIds is ${maxIds}; give a whole number from 1 to 2^30`);
    this.#maxIds = maxIds;
  }

  /** Block references so far. */
  get references(): number {
    return this.#references;
  }

  /** Different ids so far: from this capacity on the curve is flat. */
  get distinct(): number {
    return this.#distinct;
  }

  /**
   * Takes the ids of one request, first block first.
   * @param ids compact numbers from 0 (memory goes by the greatest one); an id may repeat
   */
  add(ids: ArrayLike<number>): void {
    let greatest = -1;
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      if (id >>> 0 !== id || id >= this.#maxIds)
        throw new ConfigError(
          'curve-id',
          `block ${i} has the id ${id}; ids are compact whole numbers below maxIds, ${this.#maxIds}`,
        );
      if (id > greatest) greatest = id;
    }
    this.#makeRoom(greatest, ids.length);
    this.#countHits(ids);
    this.#touch(ids);
    this.#references += ids.length;
  }

  /** Block references that hit in a cache of `capacity` blocks (≥ 0; Infinity for one without a cap). */
  hitsAt(capacity: number): number {
    if (!(capacity >= 0)) throw new ConfigError('curve-capacity', `capacity is ${capacity}; give blocks, 0 or more`);
    const last = Math.min(Math.floor(capacity), this.#distinct);
    let hits = 0;
    for (let depth = 1; depth <= last; depth++) hits += this.#hitsFrom[depth]!;
    return hits;
  }

  /**
   * Corners of the curve, by rising capacity: each gives the least capacity that has so many hits. Where the curve has more than `most`
   * corners, those nearest above equal steps of hits; the last corner is always among them, and none is given while nothing hit.
   */
  points(most = DEFAULT_POINTS): CurvePoint[] {
    if (!Number.isInteger(most) || most < 1)
      throw new ConfigError('curve-points', `${most} points asked for; give a whole number of 1 or more`);
    let corners = 0;
    for (let depth = 1; depth <= this.#distinct; depth++) if (this.#hitsFrom[depth]! > 0) corners++;
    const step = corners > most ? this.hitsAt(Number.POSITIVE_INFINITY) / most : 0;
    const points: CurvePoint[] = [];
    let hits = 0;
    let due = step;
    let last: CurvePoint | null = null;
    for (let capacity = 1; capacity <= this.#distinct; capacity++) {
      if (this.#hitsFrom[capacity] === 0) continue;
      hits += this.#hitsFrom[capacity]!;
      last = { capacity, hits };
      if (hits < due) continue;
      points.push(last);
      while (step > 0 && due <= hits) due += step;
    }
    // The last step may be missed by a rounding; the end of the curve is never left out.
    if (last !== null && points.at(-1) !== last) {
      if (points.length === most) points.pop();
      points.push(last);
    }
    return points;
  }

  /** Counts each block of the longest seen prefix at the deepest stack position so far. */
  #countHits(ids: ArrayLike<number>): void {
    let coldest = this.#nextSlot + 1; // slot + 1 of the coldest block so far
    let depth = 0;
    for (let i = 0; i < ids.length; i++) {
      const slot = this.#slotOf[ids[i]!]!;
      if (slot === 0) return;
      if (slot < coldest) {
        // A prefix that was last touched whole lies in neighbouring slots, so its blocks need no count.
        depth = slot === coldest - 1 ? depth + 1 : this.#distinct - this.#liveBelow(slot - 1);
        coldest = slot;
      }
      this.#hitsFrom[depth]!++;
    }
  }

  /** Gives each id a new slot, deepest block first; there is room for all. */
  #touch(ids: ArrayLike<number>): void {
    // Neighbouring slots share a word, so the tree is told once a word, not once a slot. Nothing asks it in between.
    let leftWord = 0;
    let left = 0;
    let takenWord = 0;
    let taken = 0;
    for (let i = ids.length - 1; i >= 0; i--) {
      const id = ids[i]!;
      const old = this.#slotOf[id]!;
      if (old === 0) this.#distinct++;
      else {
        const word = (old - 1) >>> 5;
        this.#live[word]! &= ~(1 << ((old - 1) & 31));
        if (word !== leftWord) {
          this.#addToTree(leftWord, -left);
          leftWord = word;
          left = 0;
        }
        left++;
      }
      const word = this.#nextSlot >>> 5;
      this.#live[word]! |= 1 << (this.#nextSlot & 31);
      if (word !== takenWord) {
        this.#addToTree(takenWord, taken);
        takenWord = word;
        taken = 0;
      }
      taken++;
      this.#slotOf[id] = ++this.#nextSlot;
    }
    this.#addToTree(leftWord, -left);
    this.#addToTree(takenWord, taken);
  }

  #addToTree(word: number, change: number): void {
    if (change === 0) return;
    for (let place = word + 1; place < this.#tree.length; place += place & -place) this.#tree[place]! += change;
  }

  /** Live slots before `slot`. */
  #liveBelow(slot: number): number {
    let sum = bitsIn(this.#live[slot >>> 5]! & ((1 << (slot & 31)) - 1));
    for (let place = slot >>> 5; place > 0; place &= place - 1) sum += this.#tree[place]!;
    return sum;
  }

  /** Makes all tables fit a request of `length` ids up to `greatest`. */
  #makeRoom(greatest: number, length: number): void {
    if (greatest >= this.#slotOf.length) {
      const grown = new Uint32Array(powerAbove(greatest));
      grown.set(this.#slotOf);
      this.#slotOf = grown;
    }
    const most = this.#distinct + length; // as many ids as there can be after this request
    if (most >= this.#hitsFrom.length) {
      const grown = new Float64Array(powerAbove(most));
      grown.set(this.#hitsFrom);
      this.#hitsFrom = grown;
    }
    if (this.#nextSlot + length > this.#slots) this.#pack(2 * most);
  }

  /** Moves the live slots together at the start of the time line, in order, and makes it at least `least` slots long. */
  #pack(least: number): void {
    const before = new Uint32Array(this.#live.length); // live slots before each word
    for (let word = 1; word < before.length; word++) before[word] = before[word - 1]! + bitsIn(this.#live[word - 1]!);
    for (let id = 0; id < this.#slotOf.length; id++) {
      if (this.#slotOf[id] === 0) continue;
      const slot = this.#slotOf[id]! - 1;
      this.#slotOf[id] = before[slot >>> 5]! + bitsIn(this.#live[slot >>> 5]! & ((1 << (slot & 31)) - 1)) + 1;
    }
    if (least > this.#slots) this.#slots = powerAbove(least);
    const words = this.#slots / WORD_BITS;
    this.#live = new Uint32Array(words);
    this.#tree = new Int32Array(words + 1);
    this.#nextSlot = this.#distinct;
    for (let word = 0; word < words; word++) {
      const live = Math.max(0, Math.min(WORD_BITS, this.#distinct - word * WORD_BITS));
      this.#live[word] = live === WORD_BITS ? 0xffff_ffff : (1 << live) - 1;
      this.#tree[word + 1]! += live;
      const parent = word + 1 + ((word + 1) & -(word + 1));
      if (parent <= words) this.#tree[parent]! += this.#tree[word + 1]!;
    }
  }
}

/** The least power of two above `count`. */
function powerAbove(count: number): number {
  let power = FIRST_SLOTS;
  while (power <= count) power *= 2;
  return power;
}

/** The number of set bits in a 32-bit word. */
function bitsIn(word: number): number {
  let bits = word - ((word >>> 1) & 0x5555_5555);
  bits = (bits & 0x3333_3333) + ((bits >>> 2) & 0x3333_3333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}
