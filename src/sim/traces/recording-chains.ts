// From blocks that entered GPU caches to the requests that they were computed for. An engine's hash names a block and all before it, so that
// the chain of parents is a prompt; and it announces a block once it is full, so that blocks of a prompt come in one go, or in chunks, and
// those of the output come one by one. Three times tell these apart, which are chosen, not known:
//
//   grows the end of a request's chain      | by one block                  | by several
//   within SAME_STEP_MS of its last block   | the prompt's next chunk       | the prompt's next chunk
//   within CHUNK_GAP_MS                     | its output                    | the prompt's next chunk, unless output was seen
//   within DECODE_GAP_MS                    | its output                    | another request: the conversation's next turn
//   later                                   | another request               | another request
//
// What begins anywhere else is another request. A chain is known by its hashes alone, whichever worker announced it; but only the worker's
// rank that runs a request makes it grow. Requests come out in order of arrival, each when it has been idle or lost its worker.
import type { TraceIds } from './ids.js';

/** One step of an engine, in which nothing is decoded twice. */
export const SAME_STEP_MS = 5;
/** A chunk of prefill takes less: 8,192 tokens at 10,000 a second are 820 ms. */
export const CHUNK_GAP_MS = 1000;
/** A block of 256 tokens is decoded in less, at 100 ms a token. */
export const DECODE_GAP_MS = 30_000;
/** Requests that wait for their end or for their turn, some 16 MB. */
export const MAX_WAITING = 0x1_0000;
/** Blocks of a prompt: 2 million tokens in blocks of 16. Also the end of a chain that runs in a circle, which no engine makes. */
const MAX_PROMPT_BLOCKS = 0x2_0000;
const FIRST_ROOM = 4096;
/** What stands for the parent of a block: nothing is known of it; it has none; or the parent's number plus `PARENT`. */
const UNKNOWN = 0;
const ROOT = 1;
const PARENT = 2;

/** A stored event, its hashes as numbers of the trace. */
export interface StoredRun {
  /** Worker and rank. */
  readonly publisher: string;
  readonly worker: string;
  readonly at: number;
  readonly line: number;
  /** The block before the first; null at a prompt's start. */
  readonly parent: number | null;
  readonly blocks: readonly number[];
}

/** A request as its blocks show it. */
export interface RebuiltRequest {
  readonly at: number;
  readonly line: number;
  /** Numbers of the prompt's blocks from its root, or from the first block that is known. */
  readonly prompt: Uint32Array;
  /** Whether there were blocks before those. */
  readonly rootUnknown: boolean;
  /** It began with a single block behind others that were cached. */
  readonly oneBlock: boolean;
  readonly outputBlocks: number;
  /** It was ended for want of room. */
  readonly cutShort: boolean;
}

interface Waiting {
  readonly worker: string;
  readonly publisher: string;
  readonly at: number;
  readonly line: number;
  readonly oneBlock: boolean;
  /** Last block of the prompt. */
  promptEnd: number;
  /** Last block of all. */
  end: number;
  outputBlocks: number;
  lastAt: number;
  ended: boolean;
}

export class RecordingChains {
  readonly #ids: TraceIds;
  readonly #maxWaiting: number;
  /** By block. */
  #parents = new Uint32Array(FIRST_ROOM);
  /** In order of arrival. */
  readonly #waiting = new Set<Waiting>();
  /** Those that may grow, by publisher and last block. */
  readonly #growing = new Map<string, Waiting>();
  /** The same by publisher. */
  readonly #running = new Map<string, Set<Waiting>>();
  #now = Number.NEGATIVE_INFINITY;

  /** @param ids numbers the hashes, and bounds how many there are */
  constructor(ids: TraceIds, maxWaiting: number = MAX_WAITING) {
    this.#ids = ids;
    this.#maxWaiting = maxWaiting;
  }

  stored(run: StoredRun): void {
    const { publisher, at, parent, blocks } = run;
    const end = blocks.at(-1);
    if (end === undefined) return;
    this.advance(at);
    this.#link(parent, blocks);
    const before = parent === null ? undefined : this.#growing.get(placeOf(publisher, parent));
    const part = before === undefined ? null : partOf(before, at, blocks.length);
    if (before === undefined || part === null) {
      this.#begin(run, end);
      return;
    }
    this.#growing.delete(placeOf(publisher, before.end));
    before.end = end;
    before.lastAt = at;
    if (part === 'output') before.outputBlocks++;
    else before.promptEnd = end;
    this.#follow(before);
  }

  /** Time passes. */
  advance(at: number): void {
    if (at > this.#now) this.#now = at;
  }

  /** Messages of a worker are missing: what it runs can't be followed. With a publisher, of that rank alone. */
  lost(worker: string, publisher: string | null = null): void {
    if (publisher !== null) this.#endAll(this.#running.get(publisher));
    else
      for (const running of this.#running.values()) {
        const [first] = running;
        if (first?.worker === worker) this.#endAll(running);
      }
  }

  /** There are no more events. */
  end(): void {
    this.#endAll(this.#waiting);
  }

  /** The next request in order of arrival that is over; null for none. */
  take(): RebuiltRequest | null {
    for (const request of this.#waiting) {
      const over = request.ended || this.#now - request.lastAt > DECODE_GAP_MS;
      const cutShort = !over && this.#waiting.size > this.#maxWaiting;
      if (!over && !cutShort) return null;
      this.#end(request);
      this.#waiting.delete(request);
      const { at, line, oneBlock, outputBlocks, promptEnd } = request;
      return { at, line, oneBlock, outputBlocks, cutShort, ...this.#chain(promptEnd) };
    }
    return null;
  }

  #begin({ worker, publisher, at, line, parent, blocks }: StoredRun, end: number): void {
    const oneBlock = parent !== null && blocks.length === 1;
    const request = { worker, publisher, at, line, oneBlock, promptEnd: end, end };
    const begun: Waiting = { ...request, outputBlocks: 0, lastAt: at, ended: false };
    this.#waiting.add(begun);
    const running = this.#running.get(publisher);
    if (running === undefined) this.#running.set(publisher, new Set([begun]));
    else running.add(begun);
    this.#follow(begun);
  }

  /** Of two requests with one end, only the later one is followed. */
  #follow(request: Waiting): void {
    const place = placeOf(request.publisher, request.end);
    const other = this.#growing.get(place);
    if (other !== undefined) this.#end(other);
    this.#growing.set(place, request);
  }

  #end(request: Waiting): void {
    if (request.ended) return;
    request.ended = true;
    const { publisher } = request;
    this.#growing.delete(placeOf(publisher, request.end));
    const running = this.#running.get(publisher)!;
    running.delete(request);
    if (running.size === 0) this.#running.delete(publisher);
  }

  #endAll(requests: Iterable<Waiting> = []): void {
    for (const request of requests) this.#end(request);
  }

  /** The first word on a block's parent stands, unless that was only that there is such a block. */
  #link(parent: number | null, blocks: readonly number[]): void {
    let before = parent === null ? ROOT : parent + PARENT;
    if (this.#ids.count > this.#parents.length) this.#grow(this.#ids.count);
    for (const block of blocks) {
      if (this.#parents[block] === UNKNOWN && before !== block + PARENT) this.#parents[block] = before;
      before = block + PARENT;
    }
  }

  #chain(end: number): { readonly prompt: Uint32Array; readonly rootUnknown: boolean } {
    const chain = [end];
    let before = this.#parents[end]!;
    while (before >= PARENT && chain.length < MAX_PROMPT_BLOCKS) {
      chain.push(before - PARENT);
      before = this.#parents[before - PARENT]!;
    }
    return { prompt: Uint32Array.from(chain.reverse()), rootUnknown: before !== ROOT };
  }

  #grow(count: number): void {
    const grown = new Uint32Array(Math.max(count, 2 * this.#parents.length));
    grown.set(this.#parents);
    this.#parents = grown;
  }
}

/** What more blocks at a request's end are to it; null where they are not its own. */
function partOf({ lastAt, outputBlocks }: Waiting, at: number, blocks: number): 'prompt' | 'output' | null {
  const gap = at - lastAt;
  if (outputBlocks === 0 && gap <= (blocks === 1 ? SAME_STEP_MS : CHUNK_GAP_MS)) return 'prompt';
  return blocks === 1 && gap <= DECODE_GAP_MS ? 'output' : null;
}

const placeOf = (publisher: string, block: number): string => `${publisher} ${block}`;
