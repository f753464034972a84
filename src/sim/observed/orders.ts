// Requests in the orders that a list of them is read in: those worth a look first. Equal ones by their place in the trace, and what has not come so far
// last.
import type { RequestRows } from './request-rows.js';
import type { RequestOrder } from './types.js';

/** Less stands first. */
type Key = (rows: RequestRows, place: number) => number;

const KEYS: Readonly<Record<RequestOrder, Key>> = {
  arrival: ({ at }, i) => at[i]!,
  slowest: ({ at, firstTokenAt }, i) => at[i]! - firstTokenAt[i]!,
  'most-computed': ({ full, gpu, dram, ssd, begunAt }, i) => begunAt[i]! * 0 + gpu[i]! + dram[i]! + ssd[i]! - full[i]!,
  'most-fetched': ({ dram, ssd, begunAt }, i) => begunAt[i]! * 0 - dram[i]! - ssd[i]!,
  'credit-error': ({ creditError, begunAt }, i) => begunAt[i]! * 0 - Math.abs(creditError[i]!),
  'closest-call': ({ cost, runnerUpCost }, i) => runnerUpCost[i]! - cost[i]!,
};

export class RequestOrders {
  readonly #rows: RequestRows;
  /** Changes with the rows. */
  #version = -1;
  readonly #made = new Map<RequestOrder, Int32Array>();

  constructor(rows: RequestRows) {
    this.#rows = rows;
  }

  /** All requests in that order; `version` changes with the rows. Valid until the next call. */
  of(order: RequestOrder, version: number): Int32Array {
    if (version !== this.#version) this.#made.clear();
    this.#version = version;
    let made = this.#made.get(order);
    if (made === undefined) {
      made = this.#sorted(KEYS[order]);
      this.#made.set(order, made);
    }
    return made;
  }

  #sorted(key: Key): Int32Array {
    const rows = this.#rows;
    const places = new Int32Array(rows.count);
    const keys = new Float64Array(rows.count);
    for (let i = 0; i < rows.count; i++) {
      const value = key(rows, i);
      places[i] = i;
      keys[i] = Number.isNaN(value) ? Number.POSITIVE_INFINITY : value;
    }
    // Two infinities have no difference.
    return places.sort((a, b) => (keys[a] === keys[b] ? a - b : keys[a]! - keys[b]!));
  }
}
