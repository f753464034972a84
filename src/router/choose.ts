// From costs to a choice (design.md 7: "softmax temperature, seeded"). Temperature 0 takes the least cost; ties go to the fewest active
// requests, then to a seeded draw, so that idle workers share cold prompts and several routers with seeds of their own don't all send
// theirs to the same one. Above 0 a candidate's chance is exp(-cost / temperature) over the sum of all.
import { expOfNegative } from './exp.js';

/** Who was chosen, and who would have been had that one not been there. Indices are positions in the costs. */
export interface Choice {
  readonly index: number;
  /** The least cost of the others (then fewest active requests, then lowest index); null for a single candidate. */
  readonly runnerUp: number | null;
  readonly runnerUpCost: number | null;
}

const NONE = -1;

/**
 * Makes choices. The same seed and the same calls make the same choices, in every JavaScript engine.
 */
export class Chooser {
  #state: number;

  /** @param seed any integer; its low 32 bits count */
  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /**
   * Picks one candidate; null when none is eligible.
   * @param costs one a candidate, in any unit; one that is no finite number makes its candidate ineligible
   * @param activeRequests one a candidate, for ties
   * @param temperature in the unit of the costs, finite, 0 or more
   */
  choose(costs: ArrayLike<number>, activeRequests: ArrayLike<number>, temperature: number): Choice | null {
    const best = leastOf(costs, activeRequests, NONE);
    if (best === NONE) return null;
    const index =
      temperature > 0 ? this.#sample(costs, costs[best]!, temperature) : this.#among(costs, activeRequests, best);
    const runnerUp = leastOf(costs, activeRequests, index);
    if (runnerUp === NONE) return { index, runnerUp: null, runnerUpCost: null };
    return { index, runnerUp, runnerUpCost: costs[runnerUp]! };
  }

  /** One of the candidates that tie with `best` in cost and active requests, each as likely. `best` is the first of them. */
  #among(costs: ArrayLike<number>, activeRequests: ArrayLike<number>, best: number): number {
    const ties = (i: number): boolean => costs[i] === costs[best] && activeRequests[i] === activeRequests[best];
    let count = 0;
    for (let i = best; i < costs.length; i++) if (ties(i)) count++;
    if (count === 1) return best;
    let left = Math.floor(this.#random() * count);
    let index = best;
    while (left > 0) if (ties(++index)) left--;
    return index;
  }

  /** A candidate by its chance. The least cost has weight 1, so the sum neither overflows nor is 0. */
  #sample(costs: ArrayLike<number>, least: number, temperature: number): number {
    let sum = 0;
    for (let i = 0; i < costs.length; i++) sum += weightOf(costs[i]!, least, temperature);
    const point = this.#random() * sum;
    let reached = 0;
    let index = 0;
    // The sum is made in the same order, so that it is reached exactly: some candidate always lies past the point.
    for (; index < costs.length; index++) {
      reached += weightOf(costs[index]!, least, temperature);
      if (point < reached) break;
    }
    return index;
  }

  /** A number in [0, 1), of 32 bits: splitmix32, the finaliser of MurmurHash3 over a Weyl sequence. */
  #random(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 0x1_0000_0000;
  }
}

/** The candidate other than `except` with the least cost, then the fewest active requests, then the lowest index. */
function leastOf(costs: ArrayLike<number>, activeRequests: ArrayLike<number>, except: number): number {
  let best = NONE;
  for (let i = 0; i < costs.length; i++) {
    if (i === except || !Number.isFinite(costs[i])) continue;
    const better =
      best === NONE ||
      costs[i]! < costs[best]! ||
      (costs[i] === costs[best] && activeRequests[i]! < activeRequests[best]!);
    if (better) best = i;
  }
  return best;
}

/** The weight of a cost beside the least one: in [0, 1], 0 for an ineligible candidate. */
function weightOf(cost: number, least: number, temperature: number): number {
  return Number.isFinite(cost) ? expOfNegative((least - cost) / temperature) : 0;
}
