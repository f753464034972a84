// Whether a request's prompt is proven to be text alone (design.md 7): the engine will hash its tokens, the adapter's name and the salt, and nothing
// else. Proven here or not at all: the request was parsed by this process, each of its fields is known, every part of it is text, and its model is
// known. Pure; never shows a request's content.
import { utf8Bytes } from '../contract/descriptor.js';
import { judgeRequest, OPAQUE_FIELDS, proveTextOnly } from '../events/request.js';
import { isAbsent, isMap } from '../wire/values.js';
import { isMessageField, meaningOf } from './prompt-fields.js';
import type { PromptKind, WorkerRegistry } from './types.js';

/** Why a prompt is not proven. */
export type NotProvenCode =
  | 'opaque-input' //   a field whose content the hashes cover and the router can't see
  | 'multimodal' //     a message has a part that is no text
  | 'prompt-changed' // a field changes the prompt in a way that is not modelled
  | 'unknown-field' //  a field that nobody has looked at
  | 'unknown-model' //  neither the model nor an adapter that a worker lists
  | 'raw-salt' //       the salt is forwarded as it is, and no namespace then
  | 'bad-salt'; //      it is no usable text

export interface Provenance {
  /** Null when it is proven. */
  readonly reason: { readonly code: NotProvenCode; readonly text: string } | null;
  /** The adapter that it asks for. */
  readonly loraName: string | null;
  /** The namespace of its blocks. */
  readonly cacheSalt: string | null;
}

export interface ProvenanceRules {
  readonly registry: Pick<WorkerRegistry, 'knows'>;
  readonly saltMode: 'prefixed' | 'raw';
}

/** What makes the prompt as true or false. Readers differ in what else they take for either. */
const FLAGS = ['add_generation_prompt', 'continue_final_message', 'add_special_tokens'] as const;
/** Longest salt that can be a namespace. */
const MAX_SALT_BYTES = 4096;
/** Longest name of a field that is repeated to people. */
const MAX_SHOWN = 64;

type Body = Readonly<Record<string, unknown>>;
type Reason = NonNullable<Provenance['reason']>;

/** Judges a parsed request. The proof is recorded on `body` itself. */
export function provenanceOf(kind: PromptKind, body: Body, { registry, saltMode }: ProvenanceRules): Provenance {
  const { model, cache_salt: salt } = body;
  const known = isAbsent(model) ? 'model' : typeof model === 'string' ? registry.knows(model) : null;
  const loraName = known === 'adapter' ? (model as string) : null;
  const hasSalt = !isAbsent(salt);
  const usable = typeof salt === 'string' && salt !== '' && utf8Bytes(salt) <= MAX_SALT_BYTES;
  const cacheSalt = usable && saltMode === 'prefixed' ? salt : null;
  const reason =
    fieldReason(kind, body) ??
    (kind === 'chat' ? messagesReason(body['messages']) : null) ??
    (known === null
      ? no('unknown-model', 'no worker lists the model that is asked for, or workers differ in what it is')
      : null) ??
    (hasSalt && saltMode === 'raw'
      ? no('raw-salt', 'salts are forwarded as they are, and such prompts get no shared credit')
      : null) ??
    (hasSalt && !usable ? no('bad-salt', `cache_salt must be a text of 1 to ${MAX_SALT_BYTES} bytes`) : null) ??
    proofOf(body);
  return { reason, loraName, cacheSalt };
}

/** Records the proof, and has it judged by the same rule as any request. */
function proofOf(body: Body): Reason | null {
  proveTextOnly(body);
  const { eligible, text } = judgeRequest(body);
  return eligible ? null : no('opaque-input', text!);
}

function fieldReason(kind: PromptKind, body: Body): Reason | null {
  let unknown: string | null = null;
  let changing: string | null = null;
  for (const field in body) {
    if (isAbsent(body[field])) continue;
    if ((OPAQUE_FIELDS as readonly string[]).includes(field)) return no('opaque-input', judgeRequest(body).text!);
    const meaning = meaningOf(kind, field);
    if (meaning === 'changing') changing ??= field;
    else if (meaning === 'unknown') unknown ??= field;
  }
  if (changing !== null)
    return no('prompt-changed', `${changing} changes the prompt, or how it is computed, in a way that is not modelled`);
  if (unknown !== null)
    return no('unknown-field', `what ${JSON.stringify(unknown.slice(0, MAX_SHOWN))} does to the prompt is not known`);
  const strange = FLAGS.find((flag) => !isAbsent(body[flag]) && typeof body[flag] !== 'boolean');
  if (strange !== undefined) return no('prompt-changed', `${strange} is neither true nor false`);
  // The engine gives the logprobs of an echoed prompt by computing all of it; in a chat even if nobody asked for them.
  if (mayBeOn(body['echo']) && (kind === 'chat' || !isAbsent(body['logprobs']))) {
    return no('prompt-changed', 'echo has the engine compute the whole prompt');
  }
  if (mayBeOn(body['use_beam_search']) && !isAbsent(body['cache_salt'])) {
    return no('prompt-changed', 'with use_beam_search the engine leaves the salt out of its hashes');
  }
  // vLLM leaves the tools out of the prompt then, or not, as it was started.
  if (body['tool_choice'] === 'none' && !isAbsent(body['tools'])) {
    return no(
      'prompt-changed',
      "with tool_choice 'none' it depends on the worker whether the tools stand in the prompt",
    );
  }
  return null;
}

/** Whether the engine may take a flag for true: it does so with more than `true`. */
function mayBeOn(flag: unknown): boolean {
  return !isAbsent(flag) && flag !== false;
}

function messagesReason(messages: unknown): Reason | null {
  if (!Array.isArray(messages)) return null; // not tokenised
  for (const message of messages as readonly unknown[]) {
    if (!isMap(message)) continue;
    for (const field in message) {
      if (!isAbsent(message[field]) && !isMessageField(field)) {
        return no(
          'unknown-field',
          `what a message's ${JSON.stringify(field.slice(0, MAX_SHOWN))} does to the prompt is not known`,
        );
      }
    }
    const { content } = message;
    if (isAbsent(content) || typeof content === 'string') continue;
    if (!(Array.isArray(content) && content.every(isText))) {
      return no('multimodal', 'a message has a part that is not text alone');
    }
  }
  return null;
}

/** A text, or a part that says it is one and has nothing else. */
function isText(part: unknown): boolean {
  if (typeof part === 'string') return true;
  return isMap(part) && part['type'] === 'text' && typeof part['text'] === 'string' && Object.keys(part).length === 2;
}

function no(code: NotProvenCode, text: string): Reason {
  return { code, text };
}
