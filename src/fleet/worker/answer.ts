// What a simulated engine generates: a text that follows from the prompt alone, so that every worker answers alike and a repeated request gets the
// same answer.
import { SeededRandom } from '../../sim/random.js';

/** Tokens of an answer that ends by itself. */
const SHORTEST = 24;
const LONGEST = 96;
const WORDS = [
  'moon',
  'tide',
  'route',
  'cache',
  'block',
  'prefix',
  'store',
  'light',
  'shore',
  'wave',
  'night',
  'orbit',
];
const SPACE = 0x20;
const letters = WORDS.map((word) => Array.from(new TextEncoder().encode(word)));

export interface Answer {
  readonly tokens: readonly number[];
  /** `length` when the request's bound ended it. */
  readonly finishReason: 'stop' | 'length';
}

/**
 * The answer to a prompt.
 * @param maxTokens the request's bound, 1 or more; null for none
 * @param ignoreEnd goes on up to the bound
 */
export function answerTo(prompt: ArrayLike<number>, maxTokens: number | null, ignoreEnd: boolean): Answer {
  const random = new SeededRandom(seedOf(prompt));
  const natural = random.between(SHORTEST, LONGEST);
  const length = maxTokens === null ? natural : ignoreEnd ? maxTokens : Math.min(natural, maxTokens);
  const tokens: number[] = [];
  while (tokens.length < length) tokens.push(...letters[random.int(letters.length)]!, SPACE);
  tokens.length = length;
  return { tokens, finishReason: length === maxTokens ? 'length' : 'stop' };
}

function seedOf(prompt: ArrayLike<number>): number {
  let hash = prompt.length;
  for (let i = 0; i < prompt.length; i++) hash = Math.imul(hash ^ prompt[i]!, 0x9e3779b1) ^ (hash >>> 15);
  return hash;
}
