// How far what the store holds bears out a contract that was derived and that no engine has vouched for. Keys show which ranks and groups store; what
// kinds the groups are, how far windows reach and where hits may end no key shows.
import type { Contract } from '../../../contract/descriptor.js';
import type { Evidence, StoreEvidence } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { DIGESTS_ENOUGH, headOf } from '../scope-tally.js';
import { count, listText } from '../words.js';

const REST = 'kinds, windows and the partial flag stay unverified';

export const contractDerived: Check = {
  code: 'contract-derived',
  title: 'derived contracts have the prefixes that the store holds',
  run: ({ workers, store }: Evidence) => {
    const camps = new Map<string, { readonly contract: Contract; readonly ids: string[] }>();
    for (const { spec, contract } of workers) {
      if (contract.contract === null || contract.contract.verified) continue;
      const { fingerprint } = contract.contract;
      const camp = camps.get(fingerprint) ?? { contract: contract.contract, ids: [] };
      camp.ids.push(spec.id);
      camps.set(fingerprint, camp);
    }
    return [...camps.values()].map(({ contract, ids }) => ofContract(listText(ids), contract, store));
  },
};

function ofContract(subject: string, { groups }: Contract, store: StoreEvidence | null): Verdict {
  const required = groups.flatMap(({ keyPrefixes }) => keyPrefixes);
  const heads = new Set(required.map(headOf));
  const [head] = heads;
  if (heads.size !== 1 || head == null)
    return skipped(subject, `its prefixes are not those of one model and cache prefix, so nothing is verified`);
  if (store?.keys == null)
    return skipped(subject, `${store?.keysFault ?? 'there is no key list'}; nothing is verified`);
  const scope = store.keys.scopes.find((one) => one.head === head);
  const digests = scope?.digests ?? 0;
  if (digests < DIGESTS_ENOUGH) {
    const needed = DIGESTS_ENOUGH.toLocaleString('en-GB');
    return skipped(
      subject,
      `prefixes are not verified: ${count(digests, 'digest')} under ${head}, and ${needed} are needed; ${REST}`,
    );
  }
  const seen = new Set(scope!.prefixes);
  const unseen = required.filter((prefix) => !seen.has(prefix));
  const more = scope!.prefixes.filter((prefix) => !required.includes(prefix));
  if (unseen.length + more.length === 0) {
    const over = `over ${DIGESTS_ENOUGH.toLocaleString('en-GB')} digests or more`;
    return ok(
      subject,
      `prefixes are verified: the store holds exactly the ${count(seen.size, 'prefix', 'prefixes')} of the contract under ${head}, ${over}; ${REST}`,
    );
  }
  const parts = [
    ...(unseen.length > 0
      ? [`${count(unseen.length, 'prefix', 'prefixes')} without a key: ${listText(unseen, 2)}`]
      : []),
    ...(more.length > 0
      ? [`${count(more.length, 'prefix', 'prefixes')} that it does not name: ${listText(more, 2)}`]
      : []),
  ];
  return failed(
    subject,
    `the store contradicts it under ${head}: ${parts.join('; ')}`,
    'Derive it again (moonroute contract derive) with the parallel sizes, the cache prefix and the config.json of the engine that runs, or load the worker extension. Do not allow it as it is.',
  );
}
