// What the fields of an OpenAI request mean for its prompt, as vLLM takes them. A field is either known to leave the prompt alone, or modelled here, or
// it costs the proof: what nobody has looked at proves nothing. Absent and null mean the same.

/** Fields that say how to generate, how to answer, or who asks. */
const HARMLESS = [
  // what is generated
  'model',
  'max_tokens',
  'max_completion_tokens',
  'min_tokens',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'n',
  'best_of',
  'stop',
  'stop_token_ids',
  'include_stop_str_in_output',
  'ignore_eos',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'length_penalty',
  'logit_bias',
  'allowed_token_ids',
  'bad_words',
  'use_beam_search',
  'early_stopping',
  'structured_outputs',
  'guided_json',
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'guided_decoding_backend',
  'guided_whitespace_pattern',
  'structural_tag',
  'parallel_tool_calls',
  'thinking_token_budget',
  'repetition_detection',
  'watermarking',
  'kv_transfer_params',
  'vllm_xargs',
  // how it is answered
  'stream',
  'stream_options',
  'logprobs',
  'top_logprobs',
  'logprob_token_ids',
  'echo',
  'skip_special_tokens',
  'spaces_between_special_tokens',
  'return_tokens_as_token_ids',
  'return_token_ids',
  'include_reasoning',
  'return_prompt_text',
  'stream_interval',
  // who asks
  'user',
  'metadata',
  'store',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'priority',
  'request_id',
  'session_id',
] as const;

/** Fields that make the prompt and are modelled: as tokenised, or as the namespace. */
const MODELLED = {
  completions: ['prompt', 'add_special_tokens', 'response_format', 'cache_salt'],
  chat: [
    'messages',
    'tools',
    'tool_choice', //     by the variant, see prompt-input.ts
    'response_format', // likewise
    'add_generation_prompt',
    'continue_final_message',
    'add_special_tokens',
    'chat_template_kwargs',
    'cache_salt',
  ],
} as const;

/** Fields that change the prompt, or whether the engine reads its cache, in ways that are not modelled. Named for the sake of whoever reads why. */
const CHANGING = [
  'chat_template', //          another template than the worker's
  'documents', //              goes into the template
  'reasoning_effort', //       goes into the template, and /tokenize does not take it
  'truncate_prompt_tokens', // cuts the prompt
  'truncation_side',
  'suffix',
  'prompt_logprobs', //        the engine computes the whole prompt, and reads no cache
  'functions',
  'function_call',
] as const;

/** Fields of a message that templates are given as they are. */
const MESSAGE_FIELDS = [
  'role',
  'content',
  'name',
  'tool_calls',
  'tool_call_id',
  'reasoning',
  'reasoning_content',
  'refusal',
  'annotations',
] as const;

export type FieldMeaning = 'known' | 'changing' | 'unknown';

const meanings = {
  completions: meaningsOf(MODELLED.completions),
  chat: meaningsOf(MODELLED.chat),
};
const messageFields: ReadonlySet<string> = new Set(MESSAGE_FIELDS);

/** What a field of a request is. */
export function meaningOf(kind: 'chat' | 'completions', field: string): FieldMeaning {
  return meanings[kind].get(field) ?? 'unknown';
}

/** Whether a message may have the field. */
export function isMessageField(field: string): boolean {
  return messageFields.has(field);
}

function meaningsOf(modelled: readonly string[]): ReadonlyMap<string, FieldMeaning> {
  const known = [...HARMLESS, ...modelled].map((field) => [field, 'known'] as const);
  return new Map<string, FieldMeaning>([...known, ...CHANGING.map((field) => [field, 'changing'] as const)]);
}
