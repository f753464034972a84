// The tokenizer in this process: the model's tokenizer.json, and its chat template. It does not do everything that vLLM does to a request, and says
// so: chats with tools, calls, parts or unfinished messages are the workers' own to tokenise.
import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Template } from '@huggingface/jinja';
import { Tokenizer } from '@huggingface/tokenizers';
import { ConfigError } from '../errors.js';
import { isAbsent, isMap } from '../wire/values.js';
import type { TokenizeFields } from './prompt-input.js';

/**
 * Longest text that is tokenised here, in UTF-16 units. It takes some 15 ms, in which nothing else has a turn; longer ones go to a worker, which
 * does not keep us waiting.
 */
export const MAX_LOCAL_TEXT = 16_384;
/**
 * Longest run without a change from text to white space or back. Tokenizers take text apart there, and what one of them does within a piece grows
 * faster than the piece.
 */
export const MAX_LOCAL_RUN = 512;
/** Longest text for a tokenizer that takes nothing apart: it takes as long. */
export const MAX_LOCAL_WHOLE = 2048;
/** What is white space here and not in Python or Rust, or the other way round: templates trim it, and tokenizers take text apart at it. */
const DISPUTED_SPACE = ['\u001c', '\u001d', '\u001e', '\u001f', '\u0085', '\ufeff'];
/** Messages, and template arguments: templates loop over them. */
const MAX_LOCAL_MESSAGES = 256;
const MAX_ARGUMENTS = 16;
const MAX_ARGUMENT = 256;
/** Names that a template is given anyway. vLLM sorts out which wins. */
const RESERVED: ReadonlySet<string> = new Set([
  'messages',
  'tools',
  'documents',
  'chat_template',
  'add_generation_prompt',
  'continue_final_message',
  'tokenize',
]);
const MAX_FILE_BYTES = 256 << 20;
/** Special tokens that templates may name. */
const TOKEN_NAMES = ['bos_token', 'eos_token', 'pad_token', 'unk_token', 'sep_token', 'cls_token', 'mask_token'];

type Chat = Extract<TokenizeFields, { messages: unknown }>;

/** A message that every template is given alike. */
interface PlainMessage {
  readonly role: string;
  readonly content: string;
}

export class LocalTokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #template: Template | null;
  readonly #specialTokens: Readonly<Record<string, string>>;
  /** Longest text. */
  readonly #most: number;

  private constructor(
    tokenizer: Tokenizer,
    template: Template | null,
    specialTokens: Readonly<Record<string, string>>,
    most: number,
  ) {
    this.#tokenizer = tokenizer;
    this.#template = template;
    this.#specialTokens = specialTokens;
    this.#most = most;
  }

  /**
   * Reads the model's files. `chatTemplate` is the template itself or a tokenizer_config.json that has one; special tokens are those of that file,
   * or of the one beside the tokenizer.
   * @throws ConfigError `tokenizer-file`, `tokenizer-chat-template`
   */
  static load({ file, chatTemplate }: { readonly file: string; readonly chatTemplate: string | null }): LocalTokenizer {
    const fix = 'give the tokenizer.json of the model (tokenizer.file)';
    const json = objectIn('tokenizer-file', file, readText('tokenizer-file', file, fix), fix);
    const given = chatTemplate === null ? null : templateIn(chatTemplate);
    const config = given?.config ?? configBeside(file);
    let tokenizer: Tokenizer;
    try {
      tokenizer = new Tokenizer(json, config);
    } catch (error) {
      throw new ConfigError('tokenizer-file', `${file} can't be used: ${(error as Error).message}; ${fix}.`);
    }
    const most = takesApart(json['pre_tokenizer']) ? MAX_LOCAL_TEXT : MAX_LOCAL_WHOLE;
    return new LocalTokenizer(tokenizer, given?.template ?? null, specialTokensOf(config), most);
  }

  /** What prompts like this one have in common, for trust is given to shapes; null for those that are not for here. */
  shapeOf(fields: TokenizeFields): string | null {
    const special = flag(fields.add_special_tokens, !('messages' in fields));
    if (special === null) return null;
    if ('prompt' in fields) return isForHere(fields.prompt, this.#most) ? `text special=${special}` : null;
    const { chat_template_kwargs: kwargs, tools } = fields;
    const generation = flag(fields.add_generation_prompt, true);
    const goesOn = flag(fields.continue_final_message, false);
    if (this.#template === null || generation === null || goesOn !== false || !isAbsent(tools)) return null;
    if (!isAbsent(kwargs) && !arePlainArguments(kwargs)) return null;
    const messages = fields.messages.length > MAX_LOCAL_MESSAGES ? null : plainMessages(fields.messages);
    if (messages === null) return null;
    const length = messages.reduce((sum, { role, content }) => sum + role.length + content.length, 0);
    // A template may put them one right behind the other.
    if (length > this.#most) return null;
    if (!isForHere(messages.map(({ role, content }) => role + content).join(''), this.#most)) return null;
    const systems = messages.filter(({ role }) => role === 'system').length;
    const turns = messages.length - systems > 1 ? 'several' : 'one';
    const more = `systems=${Math.min(systems, 2)} turns=${turns} arguments=${isMap(kwargs)}`;
    return `chat special=${special} generation=${generation} ${more}`;
  }

  /** Tokens of a prompt that has a shape; null where the template refuses it. */
  tokenise(fields: TokenizeFields): Uint32Array | null {
    // vLLM's own defaults: texts begin with what the tokenizer puts there, chats with what the template writes.
    const add_special_tokens = flag(fields.add_special_tokens, !('messages' in fields)) ?? false;
    try {
      const text = 'prompt' in fields ? fields.prompt : this.#rendered(fields);
      return Uint32Array.from(this.#tokenizer.encode(text, { add_special_tokens }).ids);
    } catch {
      return null;
    }
  }

  #rendered({ messages, add_generation_prompt, chat_template_kwargs }: Chat): string {
    return this.#template!.render({
      ...this.#specialTokens,
      ...(isMap(chat_template_kwargs) ? chat_template_kwargs : {}),
      messages: plainMessages(messages)!,
      add_generation_prompt: flag(add_generation_prompt, true),
    });
  }
}

/** Whether it is tokenised here fast, and as at a worker. */
function isForHere(text: string, most: number): boolean {
  if (text.length > most || hasDisputedSpace(text)) return false;
  for (const [run] of text.matchAll(/\s+|\S+/g)) if (run.length > MAX_LOCAL_RUN) return false;
  return true;
}

/** Whether a tokenizer looks at pieces of a text, not at the whole of it at once. */
function takesApart(preTokenizer: unknown): boolean {
  return isMap(preTokenizer) && !(preTokenizer['type'] === 'Metaspace' && preTokenizer['split'] === false);
}

function hasDisputedSpace(text: string): boolean {
  return DISPUTED_SPACE.some((space) => text.includes(space));
}

/** A flag of a request; null for what may or may not be taken for one. */
function flag(value: unknown, fallback: boolean): boolean | null {
  if (isAbsent(value)) return fallback;
  return typeof value === 'boolean' ? value : null;
}

/** Few short values under names of their own: no way to another prompt, or to a long one. */
function arePlainArguments(kwargs: unknown): boolean {
  if (!isMap(kwargs)) return false;
  const entries = Object.entries(kwargs);
  const isPlain = (value: unknown): boolean =>
    value === null ||
    typeof value === 'boolean' ||
    (typeof value === 'string' && value.length <= MAX_ARGUMENT && !hasDisputedSpace(value));
  return entries.length <= MAX_ARGUMENTS && entries.every(([name, value]) => !RESERVED.has(name) && isPlain(value));
}

/** The messages, where each is a role with a text and nothing else. */
function plainMessages(messages: readonly unknown[]): PlainMessage[] | null {
  const plain: PlainMessage[] = [];
  for (const message of messages) {
    if (!isMap(message)) return null;
    const { role, content } = message;
    if (typeof role !== 'string' || typeof content !== 'string') return null;
    const hasMore = Object.keys(message).some((key) => key !== 'role' && key !== 'content' && !isAbsent(message[key]));
    if (hasMore) return null;
    plain.push({ role, content });
  }
  return plain;
}

interface TemplateFile {
  readonly template: Template;
  /** The tokenizer_config.json that it stands in; null where it is a file of its own. */
  readonly config: Record<string, unknown> | null;
}

function templateIn(file: string): TemplateFile {
  const fix = 'give a chat template, or a tokenizer_config.json that has one (tokenizer.chatTemplate)';
  const code = 'tokenizer-chat-template';
  const text = readText(code, file, fix);
  const config = file.endsWith('.json') ? objectIn(code, file, text, fix) : null;
  const source = config === null ? text : defaultTemplate(config['chat_template']);
  if (source === null) throw new ConfigError(code, `${file} has no chat_template; ${fix}.`);
  try {
    return { template: new Template(source), config };
  } catch (error) {
    throw new ConfigError(code, `the chat template in ${file} can't be read: ${(error as Error).message}; ${fix}.`);
  }
}

/** Of several named ones, the default. */
function defaultTemplate(given: unknown): string | null {
  const found = Array.isArray(given)
    ? given.find((each) => isMap(each) && each['name'] === 'default')?.template
    : given;
  return typeof found === 'string' ? found : null;
}

function configBeside(file: string): Record<string, unknown> {
  const beside = join(dirname(file), 'tokenizer_config.json');
  if (statSync(beside, { throwIfNoEntry: false }) === undefined) return {};
  const fix = 'mend or remove it';
  return objectIn('tokenizer-file', beside, readText('tokenizer-file', beside, fix), fix);
}

function specialTokensOf(config: Readonly<Record<string, unknown>>): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const name of TOKEN_NAMES) {
    const token = config[name];
    const content = isMap(token) ? token['content'] : token;
    if (typeof content === 'string') tokens[name] = content;
  }
  return tokens;
}

function readText(code: string, file: string, fix: string): string {
  try {
    const { size } = statSync(file);
    if (size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(code, `${file} can't be read: ${(error as Error).message}; ${fix}.`);
  }
}

function objectIn(code: string, file: string, text: string, fix: string): Record<string, unknown> {
  let json: unknown = null;
  try {
    json = JSON.parse(text);
  } catch {
    // said below
  }
  if (isMap(json)) return json;
  throw new ConfigError(code, `${file} holds no JSON object; ${fix}.`);
}
