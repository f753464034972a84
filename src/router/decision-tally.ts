// What a router's decisions come to: sums that show how much of what could be reused is, and how often each reason stood in the way.
import type { Decision } from './decision.js';

/** Counts since the router was made. Blocks are sums over all decisions. */
export interface DecisionStats {
  readonly decisions: number;
  readonly requestBlocks: number;
  /** Blocks that the chosen ranks could have without computing them … */
  readonly achievedBlocks: number;
  /** … and the most that any candidate could have. */
  readonly bestReachableBlocks: number;
  /** Blocks of the store that decisions counted on. */
  readonly sharedBlocks: number;
  /** Decisions without shared credit, by reason. */
  readonly zeroCredit: Readonly<Record<string, number>>;
  /** Requests that no worker could serve. */
  readonly noWorkers: number;
  /** Decisions among resting ranks, since all rested. */
  readonly allResting: number;
  /** Candidates that the caller's policy failed to price … */
  readonly policyFaults: number;
  /** … by how: it `threw`, gave `no-price` (no finite number, and not Infinity), or a `promise`, for which no decision waits. */
  readonly policyFaultsBy: Readonly<Record<string, number>>;
  /** Calls that a policy, or `isPending`, made while it was asked and that would have changed what was being decided on: all refused. */
  readonly reentries: number;
  /** Decisions by load, since the policy priced nobody. */
  readonly fallbacks: number;
}

type Sum = Exclude<keyof DecisionStats, 'zeroCredit' | 'policyFaults' | 'policyFaultsBy'>;

/** Counts decisions. */
export class DecisionTally {
  readonly #sums: Record<Sum, number> = {
    decisions: 0,
    requestBlocks: 0,
    achievedBlocks: 0,
    bestReachableBlocks: 0,
    sharedBlocks: 0,
    noWorkers: 0,
    allResting: 0,
    fallbacks: 0,
    reentries: 0,
  };
  readonly #zeroCredit = new Map<string, number>();

  /** A decision was made; `allResting` when every candidate rested. */
  count({ blocks, achieved, bestReachable, fallback, sharedReason }: Decision, allResting: boolean): void {
    const sums = this.#sums;
    sums.decisions++;
    sums.requestBlocks += blocks.request;
    sums.achievedBlocks += achieved;
    sums.bestReachableBlocks += bestReachable;
    sums.sharedBlocks += blocks.shared;
    if (allResting) sums.allResting++;
    if (fallback) sums.fallbacks++;
    if (sharedReason === null) return;
    this.#zeroCredit.set(sharedReason.code, (this.#zeroCredit.get(sharedReason.code) ?? 0) + 1);
  }

  /** A request could not be served. */
  countNoWorkers(): void {
    this.#sums.noWorkers++;
  }

  /** A call was refused, for it came while a decision was being made. */
  countReentry(): void {
    this.#sums.reentries++;
  }

  /** @param faults of the policy, by kind */
  stats(faults: Readonly<Record<string, number>>): DecisionStats {
    const policyFaults = Object.values(faults).reduce((sum, count) => sum + count, 0);
    return {
      ...this.#sums,
      zeroCredit: Object.fromEntries(this.#zeroCredit),
      policyFaults,
      policyFaultsBy: { ...faults },
    };
  }
}
