// The prefixes under which the store must hold objects, of all contracts that are good.
import type { Contract } from '../../contract/descriptor.js';
import type { WorkerEvidence } from './evidence.js';
import { headOf } from './scope-tally.js';

export interface RequiredPrefixes {
  readonly all: readonly string[];
  /** Those of main groups; of contracts without one, none. */
  readonly main: readonly string[];
  /** Cache prefix and model of contracts that no engine has vouched for. */
  readonly heads: readonly string[];
}

export function requiredPrefixes(contracts: readonly Contract[]): RequiredPrefixes {
  const all = new Set<string>();
  const main = new Set<string>();
  const heads = new Set<string>();
  for (const { groups, gpuToStoreGroup, mainEventGroup, verified } of contracts) {
    const teaching = mainEventGroup === null ? null : gpuToStoreGroup[mainEventGroup];
    for (const { groupId, keyPrefixes } of groups) {
      for (const prefix of keyPrefixes) {
        all.add(prefix);
        if (groupId === teaching) main.add(prefix);
        const head = verified ? null : headOf(prefix);
        if (head !== null) heads.add(head);
      }
    }
  }
  return { all: [...all], main: [...main], heads: [...heads] };
}

/** Contracts that are good. */
export function contractsOf(workers: readonly WorkerEvidence[]): Contract[] {
  return workers.map(({ contract }) => contract.contract).filter((contract) => contract !== null);
}
