// Texts and chats that every worker's `/tokenize`, and the tokenizer here, are asked for: what tokenizers differ about most.
import type { TokenizeFields } from '../prompt-input.js';

export interface Sample {
  /** How it is called in findings. */
  readonly name: string;
  readonly fields: TokenizeFields;
}

const text = (prompt: string): TokenizeFields => ({ prompt, add_special_tokens: true });
const chat = (...messages: readonly { readonly role: string; readonly content: string }[]): TokenizeFields => ({
  messages,
  add_generation_prompt: true,
  continue_final_message: false,
  add_special_tokens: false,
});

export const SAMPLES: readonly Sample[] = [
  { name: 'a sentence', fields: text('The quick brown fox jumps over the lazy dog.') },
  { name: 'spaces and lines', fields: text('  two before, one after \n\n\tand a tab') },
  { name: 'numbers and code', fields: text('for (let i = 0; i < 1234567; i++) { total += 3.14159 * i; }') },
  { name: 'other scripts', fields: text('Grüße, 月の道, луна, 🌙') },
  { name: 'one question', fields: chat({ role: 'user', content: 'Where is the moon tonight?' }) },
  {
    name: 'a conversation',
    fields: chat(
      { role: 'system', content: 'You answer in one word.' },
      { role: 'user', content: 'Is it full?' },
      { role: 'assistant', content: 'Nearly.' },
      { role: 'user', content: '  And tomorrow?\n' },
    ),
  },
];
