// Whether each worker has a contract that is good: without one it gets no shared credit. Where hashes are derived, somebody must prove, or vouch for,
// how engines hash.
import type { Contract } from '../../../contract/descriptor.js';
import type { DoctorTarget } from '../evidence.js';
import { type Check, failed, ok, skipped } from '../finding.js';
import { count, ruleText } from '../words.js';

export const contract: Check = {
  code: 'contract',
  title: 'each worker has a valid contract',
  run: ({ target, workers }) =>
    workers.map(({ spec, contract }) => {
      const agreed = contract.contract;
      if (agreed !== null) {
        if (!agreed.verified && !target.sharedCache.allowUnverifiedContract) {
          return failed(
            spec.id,
            'the contract was derived and no engine has vouched for it, so it gets no shared credit',
            'Load the worker extension and publish what it collects; or, once contract-derived calls its prefixes verified, set sharedCache.allowUnverifiedContract to true.',
          );
        }
        if (isUnprovable(agreed, target)) {
          return failed(
            spec.id,
            'the contract has no main event group, so no event can prove how the engine hashes, and no derived hash is credited',
            'If every engine is known to hash as its contract says, set sharedCache.trustSeed to true.',
          );
        }
        return ok(spec.id, contractText(agreed, target));
      }
      if (target.sharedCache.type === 'none') return skipped(spec.id, 'no shared cache is configured');
      if (contract.code === null) {
        return failed(
          spec.id,
          'no contract is configured, so it gets no shared credit',
          'Set contract to "endpoint" where the worker publishes /moonroute/descriptor, else to {"file": …}; moonroute contract check FILE says whether one is good.',
        );
      }
      return failed(
        spec.id,
        `${contract.code}: ${contract.fault}`,
        'Mend what the code names; moonroute contract check FILE says the same of a file.',
      );
    }),
};

function isUnprovable({ mainEventGroup }: Contract, { sharedCache }: DoctorTarget): boolean {
  return sharedCache.hashing !== 'learned' && !sharedCache.trustSeed && mainEventGroup === null;
}

function contractText(
  { groups, mainEventGroup, mainEventBlockSize, hashRule, verified }: Contract,
  target: DoctorTarget,
): string {
  const prefixes = groups.reduce((sum, { keyPrefixes }) => sum + keyPrefixes.length, 0);
  const blocks = mainEventGroup === null ? 'no main event group' : `blocks of ${mainEventBlockSize} tokens`;
  const rule = target.sharedCache.hashing === 'learned' ? '' : `, hashes of ${ruleText(hashRule)}`;
  const trust = verified ? '' : '; unverified: it was derived, and is credited because that is allowed';
  return `${count(groups.length, 'group')}, ${count(prefixes, 'key prefix', 'key prefixes')}, ${blocks}${rule}${trust}`;
}
