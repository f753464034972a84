// Whether texts become the same tokens here and on every worker. One token that differs, and the prompt shares nothing with what engines hash.
import type { Check } from '../finding.js';
import { tokenizingVerdicts } from './tokenizing.js';

export const tokenizer: Check = {
  code: 'tokenizer',
  title: 'texts become the same tokens here and there',
  run: (evidence) =>
    tokenizingVerdicts(evidence, {
      kind: 'text',
      without: evidence.target.tokenizer === null ? 'nothing is tokenised here' : null,
      fixLocal:
        "Set tokenizer.file to the tokenizer.json that the worker runs with (vLLM's --tokenizer, and its revision), or tokenizer to null so that workers are asked.",
      fixWorkers: 'Start all workers with the same model, tokenizer and revision.',
    }),
};
