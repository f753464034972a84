// The simulated tokenizer: a token for each byte of UTF-8, and a few that stand for no text. Its chat template is as plain. Both say that they are
// simulated; what matters is that the same text has the same tokens, and that a chat's next turn begins with its last one.
import { MoonrouteError } from '../../errors.js';
import { TOKEN_ID_LIMIT } from '../../wire/block-digests.js';

const BYTES = 256;
/** Tokens that stand for no text. */
const BEGIN = BYTES;
const END_OF_TURN = BYTES + 1;
/** One for each role that a message may have. */
const ROLES = ['system', 'user', 'assistant', 'tool', 'developer'];
const FIRST_ROLE = BYTES + 2;

/** What `/tokenizer_info` says. */
export const TOKENIZER_INFO = {
  tokenizer_class: 'moonroute simulated bytes',
  chat_template:
    '{# simulated by moonroute fleet, of no real model: one token a byte #}<begin>{% for m in messages %}<role:{{ m.role }}>{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<role:assistant>{% endif %}',
  vocab_size: FIRST_ROLE + ROLES.length,
} as const;

const utf8 = new TextEncoder();
const decoder = new TextDecoder();

/** Tokens of a text; `begin` puts a token for the start before them. */
export function textTokens(text: string, begin: boolean): number[] {
  const bytes = Array.from(utf8.encode(text));
  return begin ? [BEGIN, ...bytes] : bytes;
}

/** The text of tokens; those that stand for none are left out. */
export function tokensText(tokens: ArrayLike<number>): string {
  return decoder.decode(Uint8Array.from(Array.from(tokens).filter((token) => token < BYTES)));
}

/** Tokens of a chat. @throws MoonrouteError `bad-request` for what the template does not know */
export function chatTokens(messages: unknown, addGenerationPrompt: boolean, tools: unknown): number[] {
  if (!Array.isArray(messages) || messages.length === 0) throw refusal('messages must be a list of one or more');
  const tokens = [BEGIN];
  if (Array.isArray(tools) && tools.length > 0) {
    tokens.push(roleToken('system'), ...utf8.encode(JSON.stringify(tools)), END_OF_TURN);
  }
  for (const message of messages as readonly Record<string, unknown>[]) {
    tokens.push(roleToken(message?.['role']));
    for (const byte of utf8.encode(contentText(message['content']))) tokens.push(byte);
    tokens.push(END_OF_TURN);
  }
  if (addGenerationPrompt) tokens.push(roleToken('assistant'));
  return tokens;
}

/** A prompt given as token ids. @throws MoonrouteError `bad-request` */
export function checkedTokens(tokens: readonly unknown[]): number[] {
  const wrong = tokens.find(
    (token) => !Number.isInteger(token) || Number(token) < 0 || Number(token) >= TOKEN_ID_LIMIT,
  );
  if (wrong === undefined) return tokens as number[];
  throw refusal(`a token id is ${JSON.stringify(wrong)}; give whole numbers from 0 to ${TOKEN_ID_LIMIT - 1}`);
}

function roleToken(role: unknown): number {
  const index = ROLES.indexOf(role as string);
  if (index < 0)
    throw refusal(`a message's role is ${JSON.stringify(role)}; the simulated template knows ${ROLES.join(', ')}`);
  return FIRST_ROLE + index;
}

function contentText(content: unknown): string {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  const parts = Array.isArray(content) ? (content as readonly Record<string, unknown>[]) : null;
  if (parts?.every((part) => part?.['type'] === 'text' && typeof part['text'] === 'string'))
    return parts.map((part) => part['text']).join('');
  throw refusal('a message has content that is no text; simulated workers read text only');
}

/** What an API answers with status 400. */
export function refusal(text: string): MoonrouteError {
  return new MoonrouteError('bad-request', text);
}
