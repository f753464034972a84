// One small completion, so that events flow on an idle pool: a prompt of some blocks that nobody has cached, and one token of answer.
import { ask, statusText } from '../registry-http.js';
import type { WorkerSpec } from '../types.js';
import type { CollectParts } from './parts.js';

/** A cold worker compiles before it answers. */
const ANSWER_MS = 20_000;
const ANSWER_BYTES = 1 << 20;
const DETAIL_CHARS = 160;
/** Blocks that the prompt fills at least: a word has a token or more. */
const BLOCKS = 3;
const MOST_WORDS = 4096;
const WORDS = ['moon', 'tide', 'route', 'cache', 'block', 'prefix', 'store', 'light'];

/** The prompt: the same for every worker, so that their hashes can be compared, and new in every run. */
export function smallPrompt(blockSize: number, nonce: string): string {
  const words = Math.min(MOST_WORDS, BLOCKS * blockSize);
  return `moonroute doctor ${nonce}: ${Array.from({ length: words }, (_, i) => WORDS[i % WORDS.length]).join(' ')}`;
}

/** Sends it to one rank. Why it failed; null when it was answered. */
export async function complete(
  { url, dpRanks }: WorkerSpec,
  model: string | null,
  dpRank: number,
  prompt: string,
  { fetch, clock, signal }: CollectParts,
): Promise<string | null> {
  const place = `${url}/v1/completions`;
  const body = JSON.stringify({ ...(model === null ? {} : { model }), prompt, max_tokens: 1, temperature: 0 });
  const toRank: typeof fetch = (input, init) =>
    fetch(input, {
      ...init,
      headers: { ...(init?.headers as Record<string, string>), 'x-data-parallel-rank': String(dpRank) },
    });
  try {
    const parts = { fetch: dpRanks.size > 1 ? toRank : fetch, clock };
    const { status, text } = await ask(parts, { url: place, body, time: ANSWER_MS, bytes: ANSWER_BYTES, signal });
    return status === 200 ? null : `${statusText(place, status)}: ${text.slice(0, DETAIL_CHARS)}`;
  } catch (error) {
    return (error as Error).message;
  }
}
