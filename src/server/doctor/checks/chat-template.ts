// Whether chats become the same tokens here and on every worker: tokenizer and chat template together.
import type { Check } from '../finding.js';
import { tokenizingVerdicts } from './tokenizing.js';

export const chatTemplate: Check = {
  code: 'chat-template',
  title: 'chats become the same tokens here and there',
  run: (evidence) =>
    tokenizingVerdicts(evidence, {
      kind: 'chat',
      without: evidence.target.tokenizer?.chatTemplate == null ? 'no chat template is configured here' : null,
      fixLocal:
        "Set tokenizer.chatTemplate to the template that the worker runs with (vLLM's --chat-template, else that of its tokenizer_config.json), or to null so that workers render chats.",
      fixWorkers: 'Start all workers with the same --chat-template.',
    }),
};
