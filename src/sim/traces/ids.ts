// A trace's block ids, any integers or texts, as compact numbers 0 … in order of first appearance. Published traces mostly number their
// ids that way already, and such a trace costs no memory at all. Other integers cost 9 to 15 bytes each (13 to 19 past 32 bits) in an
// open-addressing table of typed arrays, so that a file of 1 GB needs less than that; a Map would need far more, and ends at 2²⁴. Texts do
// go to a Map, and are bounded by it. The parts of a trace that is split into files share one table.
import { ConfigError, MoonrouteError } from '../../errors.js';

/** An id as a row gives it: a safe integer, a greater one of 64 bits, or a text. Integers are taken modulo 2⁶⁴. */
export type TraceId = number | bigint | string;

const TWO_32 = 0x1_0000_0000;
/** 2²⁶ ids: less than 1 GB of 32-bit integers. */
const DEFAULT_MAX_IDS = 0x400_0000;
/** Texts cost most, and a Map's own limit is twice this. */
const MAX_TEXTS = 0x80_0000;
const FIRST_SLOTS = 1024;
const PAGE = 0x1_0000;

/** Compact numbers 0 … for the block ids of a trace, in order of first appearance. Give one to all files of a trace that is split. */
export class TraceIds {
  readonly #maxIds: number;
  #count = 0;
  /** Ids 0 … identity − 1 came in that order, and are their own numbers. */
  #identity = 0;
  /** Integers that are not: their numbers are identity … identity + keys − 1. */
  #keys = 0;
  /** Their low and high halves, in pages that never move; a page of high halves that are all 0 is null. */
  readonly #low: Uint32Array[] = [];
  readonly #high: (Int32Array | null)[] = [];
  /** Open addressing over the keys: place + 1, or 0. At most 3/4 full. */
  #slots = new Uint32Array(0);
  /** Texts; and, so that numbers of keys have no holes, integers that are new after the first text. */
  readonly #texts = new Map<string, number>();

  /** @param maxIds different ids that it takes; default 2²⁶ */
  constructor(maxIds: number = DEFAULT_MAX_IDS) {
    if (!Number.isInteger(maxIds) || maxIds < 1 || maxIds > 0x4000_0000)
      throw new ConfigError('trace-option', `maxIds is ${maxIds}; give a whole number from 1 to 2^30`);
    this.#maxIds = maxIds;
  }

  /** Different ids so far; their numbers are 0 … count − 1. */
  get count(): number {
    return this.#count;
  }

  /** @throws MoonrouteError `trace-ids` when there are more different ids than there is room for */
  numberOf(id: TraceId): number {
    if (typeof id === 'string') return this.#numberOfText(`"${id}`);
    if (typeof id === 'bigint')
      return this.#numberOfInteger(Number(BigInt.asUintN(32, id)), Number(BigInt.asIntN(32, id >> 32n)));
    if (id >= 0 && id < this.#identity) return id;
    if (id === this.#count && this.#count === this.#identity) {
      this.#next();
      return this.#identity++;
    }
    return this.#numberOfInteger(id >>> 0, Math.floor(id / TWO_32));
  }

  #numberOfText(text: string): number {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size === MAX_TEXTS)
      throw new MoonrouteError(
        'trace-ids',
        `the trace has more than ${MAX_TEXTS} different ids that are texts; write them as whole numbers of up to 64 bits`,
      );
    const number = this.#next();
    this.#texts.set(text, number);
    return number;
  }

  #numberOfInteger(low: number, high: number): number {
    if (4 * (this.#keys + 1) > 3 * this.#slots.length) this.#grow();
    const mask = this.#slots.length - 1;
    let slot = hashOf(low, high) & mask;
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const place = this.#slots[slot]! - 1;
      if (this.#lowOf(place) === low && this.#highOf(place) === high) return this.#identity + place;
    }
    if (this.#texts.size > 0) return this.#numberOfText(`${low} ${high}`);
    const number = this.#next();
    const place = this.#keys++;
    this.#slots[slot] = place + 1;
    const page = Math.floor(place / PAGE);
    if (page === this.#low.length) {
      this.#low.push(new Uint32Array(PAGE));
      this.#high.push(null);
    }
    this.#low[page]![place % PAGE] = low;
    if (high !== 0) {
      this.#high[page] ??= new Int32Array(PAGE);
      this.#high[page]![place % PAGE] = high;
    }
    return number;
  }

  #next(): number {
    if (this.#count === this.#maxIds)
      throw new MoonrouteError(
        'trace-ids',
        `the trace has more than ${this.#maxIds} different ids; raise maxIds, or read less of it`,
      );
    return this.#count++;
  }

  #lowOf(place: number): number {
    return this.#low[(place / PAGE) | 0]![place % PAGE]!;
  }

  #highOf(place: number): number {
    return this.#high[(place / PAGE) | 0]?.[place % PAGE] ?? 0;
  }

  /** Doubles the slots. They are made anew from the keys, so that old and new ones are never held together. */
  #grow(): void {
    const size = Math.max(FIRST_SLOTS, 2 * this.#slots.length);
    this.#slots = new Uint32Array(0);
    this.#slots = new Uint32Array(size);
    for (let place = 0; place < this.#keys; place++) {
      let slot = hashOf(this.#lowOf(place), this.#highOf(place)) & (size - 1);
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (size - 1);
      this.#slots[slot] = place + 1;
    }
  }
}

function hashOf(low: number, high: number): number {
  let mixed = Math.imul(low, 0x9e37_79b1) ^ Math.imul(high, 0x85eb_ca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b_3c6d);
  return mixed ^ (mixed >>> 16);
}
