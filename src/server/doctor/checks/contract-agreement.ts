// Whether all contracts are the same: workers of another one than most get no shared credit.
import { type Check, failed, ok, skipped } from '../finding.js';
import { count, listText, STORE } from '../words.js';

export const contractAgreement: Check = {
  code: 'contract-agreement',
  title: 'all contracts agree',
  run: ({ workers }) => {
    const camps = new Map<string, string[]>();
    for (const { spec, contract } of workers) {
      if (contract.contract === null) continue;
      const { fingerprint } = contract.contract;
      camps.set(fingerprint, [...(camps.get(fingerprint) ?? []), spec.id]);
    }
    const [first, ...others] = [...camps.values()].sort((a, b) => b.length - a.length);
    if (first === undefined) return [skipped(STORE, 'there is no contract')];
    if (others.length === 0) return [ok(STORE, `${count(first.length, 'worker')} with one contract`)];
    const seen = `${camps.size} contracts: ${[first, ...others].map((ids) => listText(ids)).join(' / ')}`;
    return [
      failed(
        STORE,
        seen,
        'Start all workers with the same model, block size, parallel ranks and cache prefix. During a rollout this passes by itself.',
      ),
    ];
  },
};
