// What a policy is to the router: something that prices candidates, the least price winning, and can say of what a price is made. The
// choice itself (temperature, ties, runner-up) is choose.ts's, the same for all.
import type { Candidates } from './candidates.js';
import type { CostTerms } from './cost.js';
import type { TtftTerms } from './ttft.js';

/** What is the same for all candidates of a request. */
export interface PricedRequest {
  readonly tokenCount: number;
  /** Blocks of the prompt, its last part counting as one. */
  readonly blocks: number;
  /** Tokens of a block. */
  readonly blockSize: number;
  /** Blocks of the prompt and of what it is expected to generate. */
  readonly decodeBlocks: number;
  /** Worth of a shared block in the cost. */
  readonly sharedCacheMultiplier: number;
  readonly loraName: string | null;
  /** Milliseconds. */
  readonly now: number;
}

/** Every term of a candidate's price, by the kind of policy that made it. */
export type PolicyTerms = ({ readonly kind: 'cost' } & CostTerms) | ({ readonly kind: 'time' } & TtftTerms);

/** Prices candidates. */
export interface Policy {
  readonly name: string;
  /** 0 takes the least price; above, see choose.ts. In the unit of the prices. */
  readonly temperature: number;
  /** Of equal prices the one with the fewest active requests wins; without, each is as likely. */
  readonly tiesByLoad: boolean;
  /** Fills in `candidates.costs`. One that is no finite number makes its candidate ineligible. */
  price(candidates: Candidates, request: PricedRequest): void;
  /** The terms of a price that was just made; null where there are none. */
  termsOf(candidates: Candidates, at: number, request: PricedRequest): PolicyTerms | null;
  /** That rank was chosen. */
  chosen?(rank: number): void;
  /** That rank is gone: its number stands for another one from now on. */
  forget?(rank: number): void;
  /** Candidates that it failed to price, by how. */
  readonly faults?: Readonly<Record<string, number>>;
}
