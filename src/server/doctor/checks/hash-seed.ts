// Whether engines hash alike: the hash of a prompt's first block follows from its tokens, if vLLM runs with sha256 and PYTHONHASHSEED=0 as its
// contract says. With another seed its blocks have names in the store that no other worker ever asks for.
import type { FirstBlocks, WorkerEvidence } from '../evidence.js';
import { expectedHash, PROMISED_SEED, seedOf, UNSET_SEED } from '../expected-hashes.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { count, listText } from '../words.js';

export const hashSeed: Check = {
  code: 'hash-seed',
  title: 'engines hash alike, with PYTHONHASHSEED=0',
  run: ({ target, workers }) =>
    workers.map((worker) =>
      target.sharedCache.type === 'none'
        ? skipped(worker.spec.id, 'no shared cache is configured')
        : ofWorker(worker, workers),
    ),
};

function ofWorker(worker: WorkerEvidence, workers: readonly WorkerEvidence[]): Verdict {
  const { spec, contract } = worker;
  const span = contract.contract?.hashBlockSize ?? null;
  const blocks = firstBlocks(worker);
  if (blocks.length === 0) return skipped(spec.id, 'no first block of a plain prompt was heard');
  const judged = blocks.map((block) => ({
    block,
    expected: expectedHash(block.tokens, block.blockSize, span ?? block.blockSize),
  }));
  const wrong = judged.filter(({ block, expected }) => expected !== null && expected !== block.hashes[0]);
  if (wrong.length === 0) return ok(spec.id, `${count(blocks.length, 'first block')} hashed as sha256 and seed 0 give`);
  const [{ block }] = wrong as [(typeof wrong)[number]];
  const seed = seedOf(block.hashes[0]!, block.tokens, block.blockSize, span ?? block.blockSize);
  const others = workers.filter((other) => other !== worker && disagree(blocks, firstBlocks(other)));
  const told = [
    `${wrong.length} of ${count(blocks.length, 'first block')} with hashes that sha256 and PYTHONHASHSEED=0 do not give`,
    ...(seed === null
      ? []
      : [
          seed === UNSET_SEED
            ? 'they are those of an unset PYTHONHASHSEED'
            : `they are those of PYTHONHASHSEED=${seed}`,
        ]),
    ...(others.length === 0
      ? []
      : [`the same tokens have other hashes at ${listText(others.map(({ spec }) => spec.id))}`]),
  ];
  return failed(
    spec.id,
    `hash seed mismatch: ${told.join('; ')}`,
    `Start every worker with PYTHONHASHSEED=${PROMISED_SEED} in its environment and --prefix-caching-hash-algo sha256.`,
  );
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
