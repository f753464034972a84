// Asks one worker's `/tokenize`, and the tokenizer here, for all samples.
import { MoonrouteError } from '../../errors.js';
import { ask, statusText } from '../registry-http.js';
import type { TokenizingEvidence } from './evidence.js';
import type { CollectParts, Tokenises } from './parts.js';
import { SAMPLES, type Sample } from './samples.js';

const ANSWER_MS = 2000;
const ANSWER_BYTES = 1 << 20;

/** @param model name that the worker serves; null for its default */
export async function tokenizing(
  url: string,
  model: string | null,
  local: Tokenises | null,
  parts: CollectParts,
): Promise<TokenizingEvidence[]> {
  const evidence: TokenizingEvidence[] = [];
  for (const sample of SAMPLES) {
    const kind = 'prompt' in sample.fields ? 'text' : 'chat';
    const theirs = await worded(() => askWorker(url, model, sample, parts));
    const ours = await worded(async () => (local === null ? null : tokensHere(sample, local)));
    evidence.push({
      sample: sample.name,
      kind,
      worker: theirs.tokens,
      workerFault: theirs.fault,
      local: ours.tokens,
      localFault: ours.fault,
    });
  }
  return evidence;
}

interface Worded {
  readonly tokens: readonly number[] | null;
  readonly fault: string | null;
}

async function worded(work: () => Promise<readonly number[] | null>): Promise<Worded> {
  try {
    return { tokens: await work(), fault: null };
  } catch (error) {
    return { tokens: null, fault: (error as Error).message };
  }
}

/** Null for what is not tokenised here. */
function tokensHere({ fields }: Sample, local: Tokenises): readonly number[] | null {
  if (local.shapeOf(fields) === null) return null;
  const tokens = local.tokenise(fields);
  if (tokens === null)
    throw new MoonrouteError('tokenizer-refuses', 'the local tokenizer or its template refuses the sample');
  return [...tokens];
}

async function askWorker(
  base: string,
  model: string | null,
  { fields }: Sample,
  { fetch, clock, signal }: CollectParts,
): Promise<readonly number[]> {
  const url = `${base}/tokenize`;
  const body = JSON.stringify(model === null ? fields : { model, ...fields });
  const answer = await ask({ fetch, clock }, { url, body, time: ANSWER_MS, bytes: ANSWER_BYTES, signal });
  if (answer.status !== 200) throw new MoonrouteError('http-status', statusText(url, answer.status));
  const { tokens } = JSON.parse(answer.text) as { readonly tokens?: unknown };
  if (Array.isArray(tokens) && tokens.every(Number.isSafeInteger)) return tokens as number[];
  throw new MoonrouteError('http-body', `${url} answers without tokens`);
}
