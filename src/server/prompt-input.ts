// What a request asks to be tokenised: ids that the client gave, one text, or a chat. Anything else has no tokens, and a reason.
import { Buffer } from 'node:buffer';
import { isAbsent } from '../wire/values.js';
import type { PromptKind } from './types.js';

/** A text or a chat, as vLLM's `/tokenize` takes it: what the client gave and nothing else, so that vLLM's own defaults hold. */
export type TokenizeFields =
  | { readonly prompt: string; readonly add_special_tokens?: unknown }
  | {
      readonly messages: readonly unknown[];
      readonly add_generation_prompt?: unknown;
      readonly continue_final_message?: unknown;
      readonly add_special_tokens?: unknown;
      readonly tools?: unknown;
      readonly chat_template_kwargs?: unknown;
    };

export type PromptInput =
  | { readonly kind: 'ids'; readonly tokens: Uint32Array }
  | {
      readonly kind: 'ask';
      readonly fields: TokenizeFields;
      /**
       * What a chat's template may do more with than write messages: tools, a choice among them or a format, of which `/tokenize` is not told all,
       * and arguments of the client's own. Each such combination is trusted by itself.
       */
      readonly variant: string;
    }
  | {
      readonly kind: 'none';
      readonly code: 'several-prompts' | 'bad-prompt' | 'prompt-too-long';
      readonly text: string;
      readonly tokenCount: number;
    };

type Body = Readonly<Record<string, unknown>>;
type None = Extract<PromptInput, { kind: 'none' }>;

/** Of a chat, what `/tokenize` takes besides its messages. */
const CHAT_FIELDS = [
  'add_generation_prompt',
  'continue_final_message',
  'add_special_tokens',
  'tools',
  'chat_template_kwargs',
];
const MAX_ID = 0xffff_ffff;
/** UTF-8 bytes of a token of text on average, as far as one can say without a tokenizer. */
const BYTES_PER_TOKEN = 4;
/** What is looked at of a list of prompts, to estimate it. */
const MAX_PROMPTS = 10_000;

/** Reads a request's prompt. Ids above `most` are not copied. */
export function promptInput(kind: PromptKind, body: Body, most: number): PromptInput {
  return kind === 'chat' ? chatInput(body) : completionInput(body, most);
}

/** About how many tokens a text has. */
export function estimatedTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** The refusal of a prompt that is longer than the limit. */
export function tooLong(tokenCount: number, most: number): None {
  const text = `the prompt has ${tokenCount} tokens, and the limit is ${most}`;
  return { kind: 'none', code: 'prompt-too-long', text, tokenCount };
}

function completionInput(body: Body, most: number): PromptInput {
  let { prompt } = body;
  // A list with one prompt is that prompt.
  if (Array.isArray(prompt) && prompt.length === 1 && typeof prompt[0] !== 'number') prompt = prompt[0] as unknown;
  if (typeof prompt === 'string') {
    return { kind: 'ask', fields: { prompt, ...given(body, ['add_special_tokens']) }, variant: 'text' };
  }
  if (!Array.isArray(prompt) || prompt.length === 0) return bad('prompt must be a text or a list of token ids');
  if (typeof prompt[0] === 'number') return idsInput(prompt, most);
  const tokenCount = prompt.slice(0, MAX_PROMPTS).reduce<number>((sum, each) => sum + countOf(each), 0);
  return {
    kind: 'none',
    code: 'several-prompts',
    text: 'requests with several prompts are routed by load',
    tokenCount,
  };
}

function idsInput(ids: readonly unknown[], most: number): PromptInput {
  if (ids.length > most) return tooLong(ids.length, most);
  const tokens = new Uint32Array(ids.length);
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i];
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) > MAX_ID) {
      return bad(`prompt[${i}] is no token id`, ids.length);
    }
    tokens[i] = id as number;
  }
  return { kind: 'ids', tokens };
}

function chatInput(body: Body): PromptInput {
  const { messages, tools, tool_choice: choice, response_format: format } = body;
  if (!Array.isArray(messages) || messages.length === 0) return bad('messages must be a list of one or more');
  const hasTools = !isAbsent(tools);
  const variant = ['chat'];
  if (hasTools) variant.push('tools');
  if (hasTools && !isAbsent(choice) && choice !== 'auto') variant.push('choice');
  if (!isAbsent(format)) variant.push('format');
  if (!isAbsent(body['chat_template_kwargs'])) variant.push('arguments');
  return { kind: 'ask', fields: { messages, ...given(body, CHAT_FIELDS) }, variant: variant.join(' ') };
}

/** Those of the fields that are there. */
function given(body: Body, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(fields.filter((field) => !isAbsent(body[field])).map((field) => [field, body[field]]));
}

function countOf(prompt: unknown): number {
  if (typeof prompt === 'string') return estimatedTokens(prompt);
  return Array.isArray(prompt) ? prompt.length : 0;
}

function bad(text: string, tokenCount = 0): None {
  return { kind: 'none', code: 'bad-prompt', text, tokenCount };
}
