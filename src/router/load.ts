// Load of every worker rank, as the router knows it from its own open leases (design.md 7). A share is what one lease adds to its rank;
// only shares change a rank's sums, and always together with themselves, so a sum is the sum of its open shares: never negative, and
// exactly zero when all have ended. Sums stay below 2^53 (2^21 leases of 2^32 - 1 tokens), where whole numbers are exact.
import { ConfigError } from '../errors.js';

/** Most ranks that a table may be made for. */
export const MAX_LOAD_RANKS = 65_536;

/** What the open leases of a rank amount to. */
export interface RankLoad {
  /** Requests, in any phase. */
  readonly activeRequests: number;
  /** Prompt tokens that are still to be prefilled. */
  readonly prefillTokens: number;
  /** KV blocks of prompt and generated tokens. A block that two requests share counts for each. */
  readonly decodeBlocks: number;
}

interface Sums {
  activeRequests: number;
  prefillTokens: number;
  decodeBlocks: number;
  forgotten: boolean;
}

/**
 * Tokens that a rank must prefill: those of the prompt that it does not hold itself. Shared credit is not asked for: it enters the cost
 * only, since a restore may fail or be late (design.md 7).
 */
export function prefillTokensOf(promptTokens: number, localTokens: number): number {
  return Math.max(0, promptTokens - localTokens);
}

/** What one lease adds to its rank. Knows neither the lease nor the table, so that it keeps neither alive. */
export class LoadShare {
  readonly #sums: Sums;
  #prefillTokens: number;
  #decodeBlocks: number;
  #open = true;

  /** Made by `LoadTable.open`. */
  constructor(sums: Sums, prefillTokens: number, decodeBlocks: number) {
    this.#sums = sums;
    this.#prefillTokens = prefillTokens;
    this.#decodeBlocks = decodeBlocks;
    sums.activeRequests++;
    sums.prefillTokens += prefillTokens;
    sums.decodeBlocks += decodeBlocks;
  }

  /** Whether the rank was forgotten since: its index may stand for another one now. */
  get forgotten(): boolean {
    return this.#sums.forgotten;
  }

  /** Lowers the tokens that are still to be prefilled; more than before, or a closed share, changes nothing. */
  prefillLeft(tokens: number): void {
    if (!this.#open || tokens >= this.#prefillTokens) return;
    this.#sums.prefillTokens -= this.#prefillTokens - tokens;
    this.#prefillTokens = tokens;
  }

  /** Raises the blocks; fewer than before, or a closed share, changes nothing. */
  growTo(blocks: number): void {
    if (!this.#open || blocks <= this.#decodeBlocks) return;
    this.#sums.decodeBlocks += blocks - this.#decodeBlocks;
    this.#decodeBlocks = blocks;
  }

  /** Returns all of it to the rank, once. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#sums.activeRequests--;
    this.#sums.prefillTokens -= this.#prefillTokens;
    this.#sums.decodeBlocks -= this.#decodeBlocks;
  }
}

/** The load of all ranks, by the compact index that the router gave them. */
export class LoadTable {
  readonly #ranks: Sums[];

  /**
   * @param ranks most ranks: indexes are 0 … ranks − 1
   * @throws {ConfigError} `load-ranks`
   */
  constructor(ranks: number) {
    if (!Number.isInteger(ranks) || ranks < 1 || ranks > MAX_LOAD_RANKS) {
      throw new ConfigError('load-ranks', `ranks is ${ranks}; give a whole number from 1 to ${MAX_LOAD_RANKS}.`);
    }
    this.#ranks = Array.from({ length: ranks }, idle);
  }

  /** Number of ranks that it was made for. */
  get ranks(): number {
    return this.#ranks.length;
  }

  /** The rank's load; a live view until the rank is forgotten. `rank` must be an index of the table. */
  of(rank: number): RankLoad {
    return this.#ranks[rank]!;
  }

  /** Adds a request to the rank. `rank` must be an index of the table; both amounts whole numbers from 0. */
  open(rank: number, prefillTokens: number, decodeBlocks: number): LoadShare {
    return new LoadShare(this.#ranks[rank]!, prefillTokens, decodeBlocks);
  }

  /** The rank is gone or has restarted: no load. What its old shares still do no longer reaches the index. */
  forget(rank: number): void {
    this.#ranks[rank]!.forgotten = true;
    this.#ranks[rank] = idle();
  }

  /** Forgets every rank. */
  forgetAll(): void {
    for (let rank = 0; rank < this.#ranks.length; rank++) this.forget(rank);
  }
}

function idle(): Sums {
  return { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0, forgotten: false };
}
