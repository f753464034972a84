// Whether each worker has a contract that is good: without one it gets no shared credit.
import { type Check, failed, ok, skipped } from '../finding.js';
import { count } from '../words.js';

export const contract: Check = {
  code: 'contract',
  title: 'each worker has a valid contract',
  run: ({ target, workers }) =>
    workers.map(({ spec, contract }) => {
      const agreed = contract.contract;
      if (agreed !== null) {
        const prefixes = agreed.groups.reduce((sum, { keyPrefixes }) => sum + keyPrefixes.length, 0);
        return ok(
          spec.id,
          `${count(agreed.groups.length, 'group')}, ${count(prefixes, 'key prefix', 'key prefixes')}, blocks of ${agreed.mainEventBlockSize} tokens`,
        );
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
