// The requests that a simulated worker's HTTP takes, read and judged: OpenAI's completions and chat completions, vLLM's tokenize and detokenize.
// Nothing here is sent or received.
import { utf8Bytes } from '../../contract/descriptor.js';
import { MoonrouteError } from '../../errors.js';
import { MAX_EXTRA_KEY_BYTES } from '../../wire/block-digests.js';
import { type Answer, answerTo } from './answer.js';
import type { Lora } from './kv-events.js';
import { chatTokens, checkedTokens, refusal, textTokens } from './tokenizer.js';

/** What requests are judged by. */
export interface ApiTerms {
  readonly model: string;
  readonly adapters: readonly string[];
  readonly maxModelLength: number;
}

/** A request for an answer, as the engine needs it. */
export interface AnswerRequest {
  readonly kind: 'chat' | 'text';
  /** As it was named. */
  readonly model: string;
  readonly prompt: readonly number[];
  readonly answer: Answer;
  readonly lora: Lora | null;
  readonly cacheSalt: string | null;
  readonly stream: boolean;
  /** A last chunk with the usage, in a stream. */
  readonly includeUsage: boolean;
}

type Body = Readonly<Record<string, unknown>>;

/** OpenAI's own default for completions. */
const DEFAULT_COMPLETION_TOKENS = 16;

/** Reads the body of `/v1/chat/completions`. @throws MoonrouteError `bad-request`, `no-such-model` */
export function readChat(body: unknown, terms: ApiTerms): AnswerRequest {
  const fields = objectOf(body);
  const prompt = chatTokens(fields['messages'], fields['add_generation_prompt'] !== false, fields['tools']);
  const bound = fields['max_completion_tokens'] ?? fields['max_tokens'];
  return answerRequest('chat', fields, prompt, countOf(bound, 'max_tokens'), terms);
}

/** Reads the body of `/v1/completions`. @throws MoonrouteError `bad-request`, `no-such-model` */
export function readCompletion(body: unknown, terms: ApiTerms): AnswerRequest {
  const fields = objectOf(body);
  const bound = countOf(fields['max_tokens'], 'max_tokens') ?? DEFAULT_COMPLETION_TOKENS;
  return answerRequest('text', fields, promptTokens(fields), bound, terms);
}

/** Reads the body of `/tokenize`, in both of its forms. @throws MoonrouteError `bad-request` */
export function readTokenize(body: unknown): number[] {
  const fields = objectOf(body);
  if (fields['messages'] !== undefined)
    return chatTokens(fields['messages'], fields['add_generation_prompt'] !== false, fields['tools']);
  if (typeof fields['prompt'] !== 'string') throw refusal('give prompt, a text, or messages');
  return textTokens(fields['prompt'], fields['add_special_tokens'] !== false);
}

/** Reads the body of `/detokenize`. @throws MoonrouteError `bad-request` */
export function readDetokenize(body: unknown): number[] {
  const { tokens } = objectOf(body);
  if (!Array.isArray(tokens)) throw refusal('give tokens, a list');
  return checkedTokens(tokens);
}

function promptTokens(fields: Body): number[] {
  let { prompt } = fields;
  // A list with one prompt is that prompt.
  if (Array.isArray(prompt) && prompt.length === 1 && typeof prompt[0] !== 'number') prompt = prompt[0];
  if (typeof prompt === 'string') return textTokens(prompt, fields['add_special_tokens'] !== false);
  if (!Array.isArray(prompt) || prompt.length === 0) throw refusal('prompt must be a text or a list of token ids');
  if (typeof prompt[0] !== 'number') throw refusal('simulated workers take one prompt a request');
  return checkedTokens(prompt);
}

function answerRequest(
  kind: 'chat' | 'text',
  fields: Body,
  prompt: readonly number[],
  bound: number | null,
  terms: ApiTerms,
): AnswerRequest {
  const { model, lora } = modelOf(fields, terms);
  if ((countOf(fields['n'], 'n') ?? 1) !== 1) throw refusal('simulated workers give one answer a request; n must be 1');
  const room = terms.maxModelLength - prompt.length;
  if (room < 1)
    throw refusal(
      `the prompt has ${prompt.length} tokens and this model takes ${terms.maxModelLength}, one of them an answer's`,
    );
  if (bound !== null && bound > room && kind === 'text')
    throw refusal(`max_tokens is ${bound}, and after ${prompt.length} tokens there is room for ${room}`);
  const most = bound === null ? room : Math.min(bound, room);
  const options = typeof fields['stream_options'] === 'object' ? (fields['stream_options'] as Body | null) : null;
  return {
    kind,
    model,
    prompt,
    answer: answerTo(prompt, most, fields['ignore_eos'] === true && bound !== null),
    lora,
    cacheSalt: saltOf(fields),
    stream: fields['stream'] === true,
    includeUsage: options?.['include_usage'] === true,
  };
}

/** The base model, or an adapter of it. Without a name it is the base model. */
function modelOf(fields: Body, { model, adapters }: ApiTerms): { readonly model: string; readonly lora: Lora | null } {
  const asked = fields['model'] ?? model;
  if (asked === model) return { model, lora: null };
  const index = adapters.indexOf(asked as string);
  if (index < 0) {
    const names = [model, ...adapters].join(', ');
    throw new MoonrouteError('no-such-model', `the model ${JSON.stringify(asked)} does not exist; there is ${names}`);
  }
  return { model: asked as string, lora: { id: index + 1, name: asked as string } };
}

function saltOf(fields: Body): string | null {
  const salt = fields['cache_salt'] ?? null;
  if (salt === null) return null;
  if (typeof salt === 'string' && salt !== '' && utf8Bytes(salt) <= MAX_EXTRA_KEY_BYTES) return salt;
  throw refusal(`cache_salt must be a text of 1 to ${MAX_EXTRA_KEY_BYTES} bytes`);
}

function countOf(value: unknown, name: string): number | null {
  if (value === undefined || value === null) return null;
  if (Number.isInteger(value) && Number(value) >= 1) return Number(value);
  throw refusal(`${name} must be a whole number of 1 or more`);
}

function objectOf(body: unknown): Body {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Body;
  throw refusal('the body must be a JSON object');
}
