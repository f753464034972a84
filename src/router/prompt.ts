// What a caller asks a router, and the prompt in it as the rooms below see it: its full blocks' local hashes, made once and used for both
// lookups. The engine computes at least the last token itself, so only blocks that end before it count, on a worker as in the store
// (spec/kv-events.md 5.7): a prompt of whole blocks never counts as fully held, and a lease always has a token to prefill.
import { shown } from '../contract/descriptor.js';
import { badScope, blockHashes, seedOf } from '../core/local-hash.js';
import { sharedNumbers } from '../core/numbers.js';
import { MoonrouteError } from '../errors.js';
import type { Source } from '../events/worker-events.js';

/** A request that wants a worker. Numbers and names that can't be meant are refused (`route-request`). */
export interface RouteRequest {
  /**
   * Token ids of the prompt, whole numbers from 0 to 2^32 − 1. They, or local hashes, must be given. A Uint32Array is read in place, a list of
   * numbers is checked and copied; other arrays, such as an Int32Array, and ids as BigInt are refused.
   */
  readonly tokens?: Uint32Array | readonly number[] | undefined;
  /**
   * Local hashes of the prompt's full blocks in the router's block size, instead of tokens and together with `tokenCount`: for multimodal prompts,
   * or where they are known already. They are believed: under `textOnly` they must cover tokens, LoRA name and salt, and nothing else.
   */
  readonly localHashes?: BigUint64Array | undefined;
  /** Tokens of the whole prompt, where `localHashes` stand for them. */
  readonly tokenCount?: number | undefined;
  /** The caller has proven that the prompt is text alone; without it no shared credit is given. Default false. */
  readonly textOnly?: boolean | undefined;
  /**
   * The request's own object, judged by `judgeRequest` as well: then both must say that it is text alone. Where it has a `cache_salt`, a
   * `lora_name`, or a `model` that is an adapter's name, they must be those given here.
   */
  readonly body?: object | undefined;
  readonly loraName?: string | null | undefined;
  /** The cache namespace: the user's salt without `dynamo-cache-salt:`. */
  readonly cacheSalt?: string | null | undefined;
  /** Worth of a shared block for this request, 0 … 1, in place of the setting. At 0 the shared cache is not asked, whatever the policy. */
  readonly sharedCacheMultiplier?: number | null | undefined;
  /** Only these workers may serve it. Default all. */
  readonly allowed?: Iterable<Source['workerId']> | null | undefined;
  /** Tokens that it is expected to generate: counted among the blocks that decoding will hold. Default 0. */
  readonly expectedOutputTokens?: number | null | undefined;
  /**
   * Milliseconds, of the same clock as what is reported to leases. Default: the time that the router was told last, by a request or at the end
   * of a lease; 0 at first. So rests and withholdings work for a caller who gives times in reports alone, but last until the next such report
   * past their end, and times from the decision on (queue, first token, total) are measured from that default.
   */
  readonly now?: number | null | undefined;
  /** Have the decision show every candidate with every term, and say why credit ends where it does. Slower. */
  readonly explain?: boolean | undefined;
}

/** The prompt of a request. */
export interface Prompt {
  readonly tokenCount: number;
  /** Its blocks, the last part counting as one: at least 1. */
  readonly blocks: number;
  /** Of each full block before the last token. */
  readonly localHashes: BigUint64Array;
  /** All of it; null where only local hashes were given, or windows reach into the next block. */
  readonly tokens: Uint32Array | null;
  readonly loraName: string | null;
  readonly cacheSalt: string | null;
  /** Its LoRA name or salt can't be hashed (`badScope`), so that no block of it is known. */
  readonly unhashable: boolean;
}

/** How prompts are cut into blocks. */
export interface PromptOptions {
  /** Tokens of a block. */
  readonly blockSize: number;
  /** The model is speculative (Eagle): a block's hash covers one token of the next block too (spec/kv-events.md 2.1). */
  readonly speculative: boolean;
}

/** Most blocks of a prompt that are looked at; of a longer one the first so many. */
export const MAX_PROMPT_BLOCKS = 262_144;
const MAX_UINT32 = 0xffff_ffff;
const NO_HASHES = new BigUint64Array(0);

/**
 * The prompt of a request.
 * @throws MoonrouteError `route-request` when it is given in no usable form
 */
export function promptOf(request: RouteRequest, options: PromptOptions): Prompt {
  if (typeof request !== 'object' || request === null) throw refused(`it is ${shown(request)}, expected an object`);
  const { loraName, cacheSalt, localHashes } = request;
  refuseNoName('loraName', loraName);
  refuseNoName('cacheSalt', cacheSalt);
  const tokenCount = tokenCountOf(request);
  const full = tokenCount > 0 ? Math.floor((tokenCount - 1) / options.blockSize) : 0;
  const usable = Math.min(full, MAX_PROMPT_BLOCKS);
  const blocks = Math.max(1, Math.ceil(tokenCount / options.blockSize));
  const unhashable = badScope(loraName, cacheSalt);
  const shape = { tokenCount, blocks, unhashable, loraName: loraName ?? null, cacheSalt: cacheSalt ?? null };
  if (unhashable) return { ...shape, localHashes: NO_HASHES, tokens: null };
  if (localHashes !== undefined) return { ...shape, localHashes: localHashes.subarray(0, usable), tokens: null };
  const tokens = request.tokens!;
  const ids = tokens instanceof Uint32Array ? tokens : checkedIds(tokens, (usable + 1) * options.blockSize);
  const hashes = options.speculative
    ? windowHashes(ids, usable, options.blockSize, request)
    : blockHashes(ids.subarray(0, usable * options.blockSize), options.blockSize, {
        loraName,
        cacheNamespace: cacheSalt,
      });
  return { ...shape, localHashes: hashes, tokens: options.speculative ? null : ids };
}

/** The first `most` of the ids. All of them are checked: one that was cut to 32 bits would be another token. */
function checkedIds(tokens: readonly number[], most: number): Uint32Array {
  const ids = new Uint32Array(Math.min(tokens.length, most));
  for (let i = 0; i < tokens.length; i++) {
    const id = tokens[i]!;
    ids[i] = isUint32(id) ? id : refuseId(id, i);
  }
  return ids;
}

function refuseId(id: unknown, at: number): never {
  const seen = typeof id === 'bigint' ? 'a BigInt' : shown(id);
  throw refused(`tokens[${at}] is ${seen}, expected a whole number from 0 to ${MAX_UINT32}`);
}

function isUint32(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_UINT32;
}

/** Local hashes of blocks whose windows reach one token into the next block. `ids` holds that token of the last one. */
function windowHashes(
  ids: Uint32Array,
  blocks: number,
  blockSize: number,
  { loraName, cacheSalt }: RouteRequest,
): BigUint64Array {
  const numbers = sharedNumbers();
  const seed = seedOf(loraName, cacheSalt);
  const hashes = new BigUint64Array(blocks);
  const atOnce = Math.floor((numbers.tokenCap - 1) / blockSize);
  for (let first = 0; first < blocks; first += atOnce) {
    const part = Math.min(atOnce, blocks - first);
    numbers.load(ids.subarray(first * blockSize, (first + part) * blockSize + 1), NO_HASHES, null);
    numbers.hashWindows(0, part, blockSize, seed, 0);
    hashes.set(numbers.copyLocals(0, part), first);
  }
  return hashes;
}

function tokenCountOf({ tokens, localHashes, tokenCount }: RouteRequest): number {
  if (localHashes === undefined) {
    if (tokens instanceof Uint32Array || Array.isArray(tokens)) return tokens.length;
    throw refused(
      'tokens must be a Uint32Array or a list of numbers (no other array), or localHashes must be given with tokenCount',
    );
  }
  if (tokens !== undefined) throw refused('give either tokens or localHashes, not both');
  if (!(localHashes instanceof BigUint64Array)) throw refused('localHashes must be a BigUint64Array');
  return wholeNumber('tokenCount', tokenCount);
}

/**
 * A count of a request.
 * @throws MoonrouteError `route-request` for what is no whole number below 2^32
 */
export function wholeNumber(name: keyof RouteRequest, value: unknown): number {
  if (isUint32(value)) return value;
  throw refused(`${name} is ${shown(value)}, expected a whole number below 2^32`);
}

function refuseNoName(name: keyof RouteRequest, value: unknown): void {
  if (value === undefined || value === null || typeof value === 'string') return;
  throw refused(`${name} is a ${typeof value}, expected a text or null`);
}

/** The error for a request that can't be meant. */
export function refused(why: string): MoonrouteError {
  return new MoonrouteError('route-request', `the request can't be routed: ${why}.`);
}
