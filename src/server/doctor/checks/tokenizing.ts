// What the checks of tokenizer and chat template share: whether all workers, and the tokenizer here if there is one, make the same tokens.
import type { Evidence, TokenizingEvidence, WorkerEvidence } from '../evidence.js';
import { failed, ok, skipped, type Verdict } from '../finding.js';
import { count } from '../words.js';

export interface TokenizingWords {
  readonly kind: TokenizingEvidence['kind'];
  /** Why nothing is compared with here; null when something is. */
  readonly without: string | null;
  readonly fixLocal: string;
  readonly fixWorkers: string;
}

export function tokenizingVerdicts({ workers }: Evidence, words: TokenizingWords): Verdict[] {
  return workers.map((worker) => ofWorker(worker, workers, words));
}

function ofWorker(worker: WorkerEvidence, workers: readonly WorkerEvidence[], words: TokenizingWords): Verdict {
  const { id } = worker.spec;
  const samples = worker.tokenizing.filter(({ kind }) => kind === words.kind);
  const answered = samples.filter((sample) => sample.worker !== null);
  if (answered.length === 0) {
    const [first] = samples;
    if (first === undefined || worker.httpFault !== null) return skipped(id, 'its HTTP does not answer');
    // A model without a template has no chats.
    const others = worker.tokenizing.some((sample) => sample.kind !== words.kind && sample.worker !== null);
    if (words.kind === 'chat' && others) return skipped(id, `the worker renders no chats: ${first.workerFault}`);
    return failed(
      id,
      `/tokenize does not answer: ${first.workerFault}`,
      'Texts are tokenised there unless a local tokenizer has agreed with it: serve it (vLLM has it by default), or send prompts as token ids.',
    );
  }
  const here = answered.find(({ worker, local }) => local !== null && !same(worker!, local));
  if (here !== undefined)
    return failed(
      id,
      `the local one and the worker's /tokenize differ: ${apart(here.sample, here.local!, here.worker!)}`,
      words.fixLocal,
    );
  const broken = answered.find(({ localFault }) => localFault !== null);
  if (broken !== undefined) return failed(id, `the local one fails: ${broken.localFault}`, words.fixLocal);
  for (const other of workers.slice(0, workers.indexOf(worker))) {
    for (const { sample, worker: ours } of answered) {
      const theirs = other.tokenizing.find((one) => one.kind === words.kind && one.sample === sample)?.worker;
      if (theirs == null || same(ours!, theirs)) continue;
      return failed(
        id,
        `its /tokenize and that of ${other.spec.id} differ: ${apart(sample, theirs, ours!)}`,
        words.fixWorkers,
      );
    }
  }
  const compared = answered.filter(({ local }) => local !== null).length;
  const asked = count(answered.length, 'sample');
  return ok(
    id,
    compared > 0
      ? `${asked}, the same tokens here and there`
      : `${asked}, as every worker; ${words.without ?? 'not compared here'}`,
  );
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((token, i) => token === b[i]);
}

/** Samples are the doctor's own, so they may be shown. */
function apart(sample: string, expected: readonly number[], got: readonly number[]): string {
  const at = expected.findIndex((token, i) => token !== got[i]);
  const place = at < 0 ? Math.min(expected.length, got.length) : at;
  return `sample "${sample}", ${expected.length} and ${got.length} tokens, first apart at ${place} (${expected[place] ?? 'end'} and ${got[place] ?? 'end'})`;
}
