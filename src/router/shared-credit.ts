// How far the shared store could restore a request's prompt, and why not further: whether the router reads a shared cache at all, whether
// the request may be credited, what the cache proves, and what engines' own reports take back of it (design.md 6 and 7).
import type { Reason } from '../cache/reasons.js';
import type { SharedCache } from '../cache/shared-cache.js';
import type { CacheQuery } from '../cache/types.js';
import { judgeRequest } from '../events/request.js';
import type { Source } from '../events/worker-events.js';
import { whyBodyDisagrees } from './body-agreement.js';
import type { Feedback, PrefixMarks } from './feedback.js';
import type { Prompt, RouteRequest } from './prompt.js';
import type { SharedCacheReading } from './roles.js';
import type { WorkerTable } from './workers.js';
import type { ZeroReason } from './zero-credit.js';

/** What the store could restore of a prompt. */
export interface SharedHit {
  /** Blocks from the prompt's start. */
  readonly end: number;
  /** Why none; null where there are some. */
  readonly reason: ZeroReason | null;
  /** The store was not asked: no rank would have been credited, whatever it holds. */
  readonly refused: boolean;
  /** What ranks get of it that have yet to prove how they hash; null where none of them need to. */
  readonly unproven: { readonly end: number; readonly reason: ZeroReason | null; readonly proves: Proves } | null;
}

/** Whether a rank has proven it. */
export type Proves = (source: Source) => boolean;

/** What is asked about. */
export interface SharedQuestion {
  readonly request: RouteRequest;
  readonly prompt: Prompt;
  /** No worker lists the adapter that the request names. */
  readonly adapterUnknown: boolean;
  readonly now: number;
}

/** What the answer is made from. */
export interface SharedCreditParts {
  /** Null where `reading` says that there is none. */
  readonly cache: SharedCache | null;
  readonly reading: SharedCacheReading;
  readonly workers: WorkerTable;
  readonly feedback: Feedback;
  readonly blockSize: number;
  readonly speculative: boolean;
}

const NO_WORTH: ZeroReason = {
  code: 'multiplier-zero',
  text: 'shared blocks are worth nothing to this request; leave shared_cache_multiplier out, or set it above 0',
};
const UNPROVEN: ZeroReason = {
  code: 'not-proven',
  text: 'the request was not said to be text alone; set textOnly where that is proven',
};
const UNREADABLE_BODY: ZeroReason = {
  code: 'not-proven',
  text: 'the body could not be read without an error, so that nothing is proven of it; give the parsed request itself',
};
const UNHASHABLE: ZeroReason = {
  code: 'ineligible',
  text: 'the LoRA name or the cache namespace is too long, or no well-formed text',
};

/** Answers for one router. */
export class SharedCredit {
  readonly #parts: SharedCreditParts;
  /** Why the router has no shared cache; null when it has one. */
  readonly #notRead: ZeroReason | null;

  constructor(parts: SharedCreditParts) {
    this.#parts = parts;
    const { reading } = parts;
    this.#notRead = reading.reads ? null : { code: reading.code, text: reading.text };
  }

  /** What the store could restore. Touches what it walks in the cache, so that it stays longest. */
  look(question: SharedQuestion): SharedHit {
    const refused = this.#whyNot(question);
    if (refused !== null) return { end: 0, reason: refused, refused: true, unproven: null };
    const cache = this.#parts.cache!;
    const { prompt } = question;
    const scope = { loraName: prompt.loraName, cacheSalt: prompt.cacheSalt };
    if (prompt.tokens === null || cache.provenRanks(scope) !== 'some') {
      return { ...this.#lookFor(question, 'any-rank'), refused: false, unproven: null };
    }
    const proves: Proves = (source) => cache.isProven(source, scope);
    const unproven = { ...this.#lookFor(question, 'any-rank'), proves };
    return { ...this.#lookFor(question, 'proven-ranks'), refused: false, unproven };
  }

  /** What it could restore for some of the ranks. */
  #lookFor({ prompt, now }: SharedQuestion, credits: Credits): Pick<SharedHit, 'end' | 'reason'> {
    const { feedback } = this.#parts;
    const cache = this.#parts.cache!;
    const query = this.#query(prompt, credits);
    const blocks = this.#blocks(query);
    if (blocks === 0) return { end: 0, reason: firstReason(cache.explain(query).reasons) };
    const limit = feedback.limitFor(prompt.localHashes, blocks, now);
    if (limit >= blocks) return { end: blocks, reason: null };
    // Evidence decides again, on the part that may still be credited: its last restart point may lie before the limit.
    const end = limit > 0 ? this.#blocks(this.#query(prompt, credits, limit)) : 0;
    return { end, reason: end > 0 ? null : withheld(blocks, limit) };
  }

  /** The hit in the router's blocks. */
  #blocks(query: CacheQuery): number {
    return Math.floor(this.#parts.cache!.lookup(query).tokens / this.#parts.blockSize);
  }

  /** Every reason why the store's part is not longer, the decisive ones first: for ranks that have proven how they hash, if that matters. */
  explain(question: SharedQuestion, { end, unproven }: SharedHit): readonly (Reason | ZeroReason)[] {
    const refused = this.#whyNot(question);
    if (refused !== null) return [refused];
    const credits = unproven === null ? 'any-rank' : 'proven-ranks';
    const { hits, reasons } = this.#parts.cache!.explain(this.#query(question.prompt, credits));
    const blocks = Math.floor(hits.tokens / this.#parts.blockSize);
    return blocks > end ? [withheld(blocks, end), ...reasons] : reasons;
  }

  /** Marks by which a report of the engine is laid against what was credited. */
  marksOf({ localHashes }: Prompt, end: number): PrefixMarks {
    return this.#parts.feedback.marksOf(localHashes, end);
  }

  /** Why the cache is not even asked. */
  #whyNot({ request, prompt, adapterUnknown }: SharedQuestion): ZeroReason | null {
    if (this.#notRead !== null) return this.#notRead;
    if (request.sharedCacheMultiplier === 0) return NO_WORTH;
    if (adapterUnknown) return unknownAdapter(request.loraName);
    const against = request.body === undefined ? null : this.#judge(request.body, request);
    if (against !== null) return against;
    if (request.textOnly !== true) return UNPROVEN;
    return prompt.unhashable ? UNHASHABLE : null;
  }

  /** What speaks against crediting a request with this body; null when nothing does. A body is a client's, and may be anything. */
  #judge(body: object, { loraName, cacheSalt }: RouteRequest): ZeroReason | null {
    const { workers, speculative } = this.#parts;
    const isAdapter = (name: string) => workers.slots.some(({ worker }) => worker.adapters.has(name));
    try {
      const { reason, text } = judgeRequest(body, { speculative });
      if (reason !== null) return { code: reason, text: text! };
      const disagrees = whyBodyDisagrees(body, { loraName, cacheSalt, isAdapter });
      return disagrees === null ? null : { code: 'body-disagrees', text: disagrees };
    } catch {
      return UNREADABLE_BODY;
    }
  }

  /** The prompt, or its first `blocks` blocks as if one more token followed. */
  #query(prompt: Prompt, credits: Credits, blocks?: number): CacheQuery {
    const { blockSize } = this.#parts;
    const { loraName, cacheSalt } = prompt;
    const tokenCount = blocks === undefined ? prompt.tokenCount : blocks * blockSize + 1;
    const asked = { tokenCount, blockSize, eligible: true, loraName, cacheSalt, credits };
    if (prompt.tokens !== null && this.#parts.cache!.provenRanks({ loraName, cacheSalt }) !== 'none') {
      return { ...asked, tokens: prompt.tokens.subarray(0, tokenCount) };
    }
    return {
      ...asked,
      localHashes: blocks === undefined ? prompt.localHashes : prompt.localHashes.subarray(0, blocks),
    };
  }
}

type Credits = NonNullable<CacheQuery['credits']>;

function firstReason(reasons: readonly Reason[]): ZeroReason {
  const [{ code, text }] = reasons as [Reason];
  return { code, text };
}

function unknownAdapter(loraName: RouteRequest['loraName']): ZeroReason {
  return {
    code: 'unknown-adapter',
    text: `no worker that may serve the request lists the adapter ${JSON.stringify(loraName)}, so nothing says how its blocks are hashed; name it in a worker's adapters`,
  };
}

function withheld(blocks: number, limit: number): ZeroReason {
  return {
    code: 'withheld',
    text: `the store holds ${blocks} blocks of this prefix, but engines repeatedly found only ${limit} of them; more is not credited for a while`,
  };
}
