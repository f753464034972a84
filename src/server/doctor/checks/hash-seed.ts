// Whether engines hash alike: the hash of a prompt's first block follows from its tokens, by the algorithm and the seed that the contract names. With
// another seed a worker's blocks have names in the store that no other worker ever asks for.
import type { HashRule } from '../../../contract/descriptor.js';
import { UNSET_SEED } from '../../../contract/hash-rule.js';
import type { FirstBlocks, WorkerEvidence } from '../evidence.js';
import { expectedHash, PROMISED_RULE, ruleOf } from '../expected-hashes.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { count, listText, ruleText } from '../words.js';

export const hashSeed: Check = {
  code: 'hash-seed',
  title: 'engines hash alike, as their contracts say',
  run: ({ target, workers }) =>
    workers.map((worker) =>
      target.sharedCache.type === 'none'
        ? skipped(worker.spec.id, 'no shared cache is configured')
        : ofWorker(worker, workers, target.sharedCache.hashing !== 'learned'),
    ),
};

function ofWorker(worker: WorkerEvidence, workers: readonly WorkerEvidence[], derives: boolean): Verdict {
  const { spec, contract } = worker;
  const rule = contract.contract?.hashRule ?? PROMISED_RULE;
  const spanOf = ({ blockSize }: FirstBlocks) => contract.contract?.hashBlockSize ?? blockSize;
  const blocks = firstBlocks(worker);
  if (blocks.length === 0) return skipped(spec.id, 'no first block of a plain prompt was heard');
  const judged = blocks
    .map((block) => ({ block, expected: expectedHash(block, spanOf(block), rule) }))
    .filter(({ expected }) => expected !== null);
  if (judged.length === 0) return skipped(spec.id, `what ${ruleText(rule)} give can't be told of such blocks here`);
  const wrong = judged.filter(({ block, expected }) => expected !== block.hashes[0]);
  if (wrong.length === 0) return ok(spec.id, `${count(judged.length, 'first block')} hashed as ${ruleText(rule)} give`);
  const [{ block }] = wrong as [(typeof wrong)[number]];
  const used = ruleOf(block, spanOf(block), rule);
  const others = workers.filter((other) => other !== worker && disagree(blocks, firstBlocks(other)));
  const told = [
    `${wrong.length} of ${count(judged.length, 'first block')} with hashes that ${ruleText(rule)} do not give`,
    ...(used === null ? [] : [`they are those of ${ruleText(used)}`]),
    ...(others.length === 0
      ? []
      : [`the same tokens have other hashes at ${listText(others.map(({ spec }) => spec.id))}`]),
  ];
  return failed(spec.id, `hash seed mismatch: ${told.join('; ')}`, fixOf(rule, derives));
}

function fixOf({ algorithm, seed }: HashRule, derives: boolean): string {
  const environment =
    seed === UNSET_SEED
      ? 'without PYTHONHASHSEED in its environment'
      : `with PYTHONHASHSEED=${seed} in its environment`;
  const start = `Start every worker ${environment} and --prefix-caching-hash-algo ${algorithm}`;
  return derives ? `${start}, or publish a contract that names what all of them hash with.` : `${start}.`;
}

function firstBlocks({ ranks }: WorkerEvidence): FirstBlocks[] {
  return ranks.flatMap(({ heard }) => heard.firstBlocks);
}

/** Whether the same tokens have another hash there. */
function disagree(ours: readonly FirstBlocks[], theirs: readonly FirstBlocks[]): boolean {
  const named = new Map(ours.map((block) => [nameOf(block), block.hashes[0]]));
  return theirs.some((block) => {
    const hash = named.get(nameOf(block));
    return hash !== undefined && hash !== block.hashes[0];
  });
}

function nameOf({ tokens, blockSize }: FirstBlocks): string {
  return `${blockSize}:${tokens.subarray(0, blockSize).join()}`;
}
