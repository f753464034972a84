// Whether the hashes that a worker announces are ever found at the end of a key: only then can what it computed be restored, by itself or others.
import type { KeyEvidence, WorkerEvidence } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { contractsOf, requiredPrefixes } from '../required-prefixes.js';
import { count } from '../words.js';

/** Hashes of a worker that must have missed before it is no accident. */
const ENOUGH = 50;

export const hashesMeetStore: Check = {
  code: 'hashes-meet-store',
  title: "workers' hashes are found in the store",
  run: ({ workers, store }) => {
    const keys = store?.keys ?? null;
    if (keys === null) return workers.map(({ spec }) => skipped(spec.id, 'there is no key list'));
    const main = new Set(requiredPrefixes(contractsOf(workers)).main);
    const objects = keys.required.reduce((sum, { prefix, keys }) => sum + (main.has(prefix) ? keys : 0), 0);
    return workers.map((worker) => ofWorker(worker, keys, objects));
  },
};

function ofWorker({ spec, ranks, contract }: WorkerEvidence, { met }: KeyEvidence, objects: number): Verdict {
  if (contract.contract !== null && contract.contract.mainEventGroup === null)
    return skipped(spec.id, 'its contract has no main event group, whose hashes would stand at the end of keys');
  const hashes = new Set(ranks.flatMap(({ heard }) => heard.hashes));
  const found = [...hashes].filter((hash) => met.has(hash)).length;
  if (found > 0) return ok(spec.id, `${found} of ${count(hashes.size, 'hash', 'hashes')}`);
  if (objects === 0) return skipped(spec.id, 'the store holds nothing under the required prefixes');
  if (hashes.size < ENOUGH)
    return skipped(spec.id, `${count(hashes.size, 'hash', 'hashes')} heard, and ${ENOUGH} are needed to tell`);
  return failed(
    spec.id,
    `none of ${count(hashes.size, 'hash', 'hashes')} is among ${count(objects, 'key')} under the required prefixes`,
    'Either it hashes otherwise than those who fill the store (see hash-seed; the same PYTHONHASHSEED and hash algorithm on every worker), or it puts nothing there: look at its kv-transfer-config (kv_role kv_both, MooncakeStoreConnector) and at its log.',
  );
}
