// What workers' events prove about the hash rule of the contract in force: each is held against a derived digest, and what it says is kept by rank.
import type { Contract } from '../contract/descriptor.js';
import type { Core } from '../core/core.js';
import type { NormalisedEvent, NormalisedStored } from '../events/normaliser.js';
import { whyNotLearned } from '../events/stored-blocks.js';
import { publisherKey, type Source } from '../events/worker-events.js';
import { checkEvent, eventKinds } from './derived-check.js';
import { HashTrust } from './hash-trust.js';
import type { DerivationStats } from './types.js';

/** Events behind a parent that are held against derived digests, of a message, until one of them says something. */
const CHECKED_A_MESSAGE = 4;

/** How a contract's proofs begin. */
export interface HashProofOptions {
  readonly core: Core;
  readonly contract: Contract;
  /** The caller vouches for rule and seed. */
  readonly vouched: boolean;
  /** Publisher keys of the admitted ranks. */
  readonly admitted: ReadonlySet<string>;
}

/** Proofs under one contract. */
export class HashProofs {
  readonly trust: HashTrust;
  readonly #core: Core;
  readonly #contract: Contract;
  #agreed = 0;

  constructor({ core, contract, vouched, admitted }: HashProofOptions) {
    this.trust = new HashTrust(vouched, admitted);
    this.#core = core;
    this.#contract = contract;
  }

  /** Takes in an event that could teach, of an admitted rank. Whether it said anything; after a refutation nothing is asked any more. */
  observe({ workerId, dpRank }: Source, stored: NormalisedStored): boolean {
    const { trust } = this;
    if (trust.refuted !== null) return true;
    const said = checkEvent(this.#core, this.#contract, stored);
    if (said === null) return false;
    if ('fault' in said) trust.refute(`Of worker ${workerId}, rank ${dpRank}, ${said.fault}.`);
    else {
      trust.agree(publisherKey(workerId, dpRank), said.kinds);
      this.#agreed++;
    }
    return true;
  }

  /**
   * Takes in a message, of which one event that says something is enough, and one of each kind not proven yet. Those of new prompts nearly always do,
   * and stand behind those of all prompts that the engine was busy with before.
   */
  observeMessage(source: Source, events: readonly NormalisedEvent[]): void {
    const { trust } = this;
    const rank = publisherKey(source.workerId, source.dpRank);
    let said = false;
    let left = CHECKED_A_MESSAGE;
    for (const stored of events) {
      if (trust.refuted !== null) return;
      if (stored.kind !== 'stored' || (stored.event.hasParent && left === 0)) continue;
      if (said && trust.proves(rank, eventKinds(stored))) continue;
      if (whyNotLearned(stored, this.#contract) !== null) continue;
      if (this.observe(source, stored)) said = true;
      else if (stored.event.hasParent) left--;
    }
  }

  stats(): DerivationStats {
    const { provenRanks, refuted } = this.trust;
    return { provenRanks, agreed: this.#agreed, refuted };
  }
}
