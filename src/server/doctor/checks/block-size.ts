// Whether events, contract and configuration speak of the same blocks. Where they differ nothing is ever learned, without a word.
import type { Contract } from '../../../contract/descriptor.js';
import type { WorkerEvidence } from '../evidence.js';
import { type Check, failed, ok, skipped, type Verdict } from '../finding.js';
import { addTallies, tallyText } from '../words.js';

export const blockSize: Check = {
  code: 'block-size',
  title: 'events, contract and configuration have the same block size',
  run: ({ target, workers }) => workers.map((worker) => ofWorker(worker, target.blockSize)),
};

function ofWorker(worker: WorkerEvidence, configured: number): Verdict {
  const { spec, ranks, contract } = worker;
  const seen = addTallies(ranks.map(({ heard }) => heard.blockSizes));
  const sizes = Object.keys(seen);
  // Without a main group no event is laid out in blocks of that size.
  const agreed = contract.contract?.mainEventGroup != null ? contract.contract.mainEventBlockSize : null;
  if (agreed !== null && agreed !== configured) {
    return failed(
      spec.id,
      `the contract's main event block has ${agreed} tokens, blockSize in the configuration is ${configured}`,
      `Set blockSize to ${agreed}.`,
    );
  }
  if (sizes.length === 0) {
    if (agreed !== null) return ok(spec.id, `contract and configuration say ${configured} tokens; no event was heard`);
    const lacks = contract.contract === null ? 'there is no contract' : 'the contract has no main event group';
    return skipped(spec.id, `no event was heard, and ${lacks}`);
  }
  const others = sizes.filter((size) => size !== String(configured));
  if (others.length === 0) return ok(spec.id, `${configured} tokens`);
  return failed(
    spec.id,
    `events have blocks of ${others.join(', ')} tokens (${tallyText(seen)}-token events), blockSize in the configuration is ${configured}`,
    fixOf(others, contract.contract),
  );
}

function fixOf(others: readonly string[], contract: Contract | null): string {
  const start =
    others.length === 1 ? `Set blockSize to ${others[0]}` : 'Set blockSize to that of the main attention group';
  const rest = contract === null ? '' : '; the contract must say the same (main_event_block_size), so publish it again';
  return `${start}, or start vLLM with the --block-size that is configured${rest}.`;
}
