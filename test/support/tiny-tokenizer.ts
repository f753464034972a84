// A tiny real tokenizer.json, byte-level BPE with our own vocabulary: a token for each byte, the special tokens of simulated workers, and merges
// where a test asks for them. Without merges it agrees with a simulated worker's `/tokenize`, token for token.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOKENIZER_INFO } from '../../src/fleet/worker/tokenizer.js';

const SPECIAL = [
  '<begin>',
  '<end>',
  ...['system', 'user', 'assistant', 'tool', 'developer'].map((role) => `<role:${role}>`),
];
const FIRST_SPECIAL = 256;
const FIRST_MERGE = 1000;

/** Printable stand-ins of all bytes, as byte-level BPE has them: printable Latin-1 as it is, the others from U+0100 on. */
function byteLetters(): string[] {
  const isPlain = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPlain(byte) ? byte : next++));
}

/** @param merges pairs of pieces, of plain letters, the first first */
export function tinyTokenizer(merges: readonly (readonly [string, string])[] = []): object {
  const vocab = Object.fromEntries([
    ...byteLetters().map((letter, byte) => [letter, byte]),
    ...merges.map(([a, b], i) => [a + b, FIRST_MERGE + i]),
  ]);
  const begin = { id: '<begin>', ids: [FIRST_SPECIAL], tokens: ['<begin>'] };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content, i) => ({
      id: FIRST_SPECIAL + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: {
      type: 'TemplateProcessing',
      single: [{ SpecialToken: { id: '<begin>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
      pair: [],
      special_tokens: { '<begin>': begin },
    },
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab,
      merges,
    },
  };
}

/** A folder with a model's files. */
export class TokenizerFiles {
  readonly folder = mkdtempSync(join(tmpdir(), 'moonroute-tokenizer-'));

  constructor(tokenizer: object = tinyTokenizer(), template: string = TOKENIZER_INFO.chat_template) {
    writeFileSync(this.file, JSON.stringify(tokenizer));
    writeFileSync(this.config, JSON.stringify({ chat_template: template, bos_token: { content: '<begin>' } }));
    writeFileSync(this.template, template);
  }

  get file(): string {
    return join(this.folder, 'tokenizer.json');
  }
  /** The tokenizer_config.json. */
  get config(): string {
    return join(this.folder, 'tokenizer_config.json');
  }
  /** The chat template alone. */
  get template(): string {
    return join(this.folder, 'chat_template.jinja');
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}
