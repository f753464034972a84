// One simulated engine: a queue, requests that run together, chunked prefill, steps. In a step every request that decodes makes a token, and
// prompts are computed from the front of the line, up to the chunk. Where only decoding is left, steps are alike until something changes,
// so they are taken as one plan; a newcomer that may start cuts it short at the end of the step that runs.
//
// A request starts when it is the first in line, the batch has a place and the cache has room for all of it, its output included: so
// nothing is ever preempted. It then finds what the cache holds, asks the store for what goes on from there, waits for that, and has
// the rest computed.
import type { BlockTree } from './blocks.js';
import type { EventHeap } from './event-heap.js';
import { STEP } from './event-kinds.js';
import type { RouterFeed } from './feed.js';
import { GpuCache } from './gpu-cache.js';
import type { SimObserver } from './observed/observer.js';
import { DECODING, ENDED, FETCHING, PREFILLING, type SimRequest } from './sim-request.js';
import type { FetchPlan, Store } from './store.js';
import type { SimConfig } from './types.js';

/** What a worker works with, and whom it tells. */
export interface WorkerParts {
  readonly config: SimConfig;
  readonly tree: BlockTree;
  readonly store: Store;
  readonly feed: RouterFeed;
  readonly heap: EventHeap;
  readonly observer: SimObserver | undefined;
  /** A request's worker looked for its prompt: `localEnd` blocks in its cache, `storeEnd` in the store. */
  looked(request: SimRequest, localEnd: number, storeEnd: number): void;
  /** A restore begins. */
  fetch(worker: number, request: SimRequest, bytes: FetchPlan['bytes'], now: number): void;
  ended(worker: number, request: SimRequest): void;
}

const SECOND = 1000;
/** Places at the head of the queue that are emptied at once. */
const QUEUE_SLACK = 1024;

export class SimWorker {
  readonly cache: GpuCache;
  readonly #number: number;
  readonly #parts: WorkerParts;
  #queue: SimRequest[] = [];
  #head = 0;
  #running: SimRequest[] = [];
  /** The first in line found no room: nothing changes until blocks are shared or a request ends. */
  #blocked = false;
  // The plan that runs: so many steps of one length.
  #planned = false;
  #epoch = 0;
  #begun = 0;
  #step = 0;
  #steps = 0;
  /** Milliseconds that it computed. */
  busy = 0;
  /** What enters the cache now came from the store. */
  #restored = false;
  readonly #entered: (node: number, from: number, count: number) => void;
  readonly #left: (node: number, from: number, count: number) => void;

  constructor(number: number, parts: WorkerParts) {
    this.#number = number;
    this.#parts = parts;
    const { config, tree, feed, observer } = parts;
    this.cache = new GpuCache(config.workers.gpuBlocks, () => tree.blocksPerNode);
    this.#entered = (node, from, count) => {
      feed.stored(number, node, from, count);
      observer?.workerEntered(number, this.#restored, node, from, count);
    };
    this.#left = (node, from, count) => {
      feed.removed(number, node, from, count);
      observer?.workerEvicted(number, node, from, count);
    };
  }

  /** A request joins the line. */
  enqueue(request: SimRequest, now: number): void {
    this.#queue.push(request);
    if (!this.#planned) this.#plan(now);
    else if (this.#mayAdmit()) this.#cut(now);
  }

  /** A plan ends; one that was cut or dropped meanwhile has another epoch. */
  stepped(epoch: number, now: number): void {
    if (!this.#planned || epoch !== this.#epoch) return;
    this.#planned = false;
    this.busy += now - this.#begun;
    this.#parts.observer?.computed(this.#number, this.#begun);
    const running = this.#running;
    let kept = 0;
    for (const request of running) {
      if (request.state === DECODING) this.#decoded(request, now);
      else if (request.chunk > 0) this.#prefilled(request, now);
      if (request.state !== ENDED) running[kept++] = request;
    }
    running.length = kept;
    this.#plan(now);
  }

  /** What a request waited for has come from the store. */
  fetched(request: SimRequest, now: number): void {
    request.state = PREFILLING;
    this.#restored = true;
    this.#share(request, request.hitBlocks);
    this.#restored = false;
    this.#parts.observer?.fetched(request, this.#number);
    request.done = request.hitBlocks * this.#parts.config.blockSize;
    this.#parts.feed.sendOfWorker(this.#number, now);
    if (this.#planned) this.#cut(now);
    else this.#plan(now);
  }

  /** It starts anew, empty. Returns the requests that it had, those that ran first. */
  restart(now: number): SimRequest[] {
    if (this.#planned) {
      this.busy += now - this.#begun;
      this.#parts.observer?.computed(this.#number, this.#begun);
    }
    const lost = [...this.#running, ...this.#queue.slice(this.#head)];
    this.#queue = [];
    this.#head = 0;
    this.#running = [];
    this.#blocked = false;
    this.#planned = false;
    this.#epoch++;
    this.cache.clear();
    return lost;
  }

  /** Tells leases of the tokens made so far, where they take another block: nothing else of them counts to the router. */
  report(now: number): void {
    const { blockSize } = this.#parts.config;
    const passed = this.#planned && this.#step > 0 ? Math.floor((now - this.#begun) / this.#step) : 0;
    const made = Math.max(0, Math.min(this.#steps - 1, passed));
    for (const request of this.#running) {
      if (request.state !== DECODING) continue;
      const tokens = request.generated + made;
      const { inputTokens, reported } = request;
      if (Math.ceil((inputTokens + tokens) / blockSize) === Math.ceil((inputTokens + reported) / blockSize)) continue;
      request.reported = tokens;
      request.lease!.progress(tokens, now);
    }
  }

  #mayAdmit(): boolean {
    const waiting = this.#queue.length > this.#head;
    return waiting && !this.#blocked && this.#running.length < this.#parts.config.workers.batch;
  }

  /** Admits who may start, and plans the next steps. */
  #plan(now: number): void {
    while (this.#mayAdmit() && this.#admit(this.#queue[this.#head]!, now)) this.#head++;
    if (this.#head === this.#queue.length || this.#head >= QUEUE_SLACK) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    const { prefillTokensPerSecond, chunkTokens, decodeStep, decodeStepPerRequest } = this.#parts.config.workers;
    let chunk = 0;
    let decoding = 0;
    let fewest = Number.POSITIVE_INFINITY;
    for (const request of this.#running) {
      if (request.state === DECODING) {
        decoding++;
        fewest = Math.min(fewest, request.outputTokens - request.generated);
      } else if (request.state === PREFILLING) {
        request.chunk = Math.min(chunkTokens - chunk, request.inputTokens - request.done);
        chunk += request.chunk;
      }
    }
    if (chunk === 0 && decoding === 0) return;
    const decode = decoding === 0 ? 0 : decodeStep + decodeStepPerRequest * (decoding - 1);
    this.#planned = true;
    this.#begun = now;
    this.#step = (chunk * SECOND) / prefillTokensPerSecond + decode;
    this.#steps = chunk > 0 ? 1 : fewest;
    this.#schedule(now);
  }

  /** Ends the plan with the step that runs. */
  #cut(now: number): void {
    if (this.#steps === 1 || this.#step === 0) return;
    const steps = Math.max(1, Math.ceil((now - this.#begun) / this.#step));
    if (steps >= this.#steps) return;
    this.#steps = steps;
    this.#schedule(now);
  }

  #schedule(now: number): void {
    const ends = this.#begun + this.#step * this.#steps;
    this.#parts.heap.put(Math.max(now, ends), STEP, this.#number, ++this.#epoch);
  }

  /** Starts a request; false where there is no room. */
  #admit(request: SimRequest, now: number): boolean {
    const { config, store, feed, observer } = this.#parts;
    const { path, usableBlocks } = request;
    const hit = this.cache.match(path, usableBlocks);
    const more = request.blocksNeeded(config.blockSize) - hit;
    if (!this.cache.admit(path, hit, more, this.#left)) {
      this.#blocked = true;
      return false;
    }
    feed.sendOfWorker(this.#number, now);
    this.#running.push(request);
    request.gpuBlocks = hit;
    request.held = hit;
    request.own = more;
    request.done = hit * config.blockSize;
    request.state = PREFILLING;
    request.lease!.admitted(now);
    const storeEnd = store.reach(path, usableBlocks);
    this.#parts.looked(request, hit, storeEnd);
    if (storeEnd <= hit) {
      observer?.began(request, this.#number, hit, storeEnd);
      return true;
    }
    const { blocks, bytes } = store.get(path, hit, storeEnd);
    request.dramBlocks = blocks.dram;
    request.ssdBlocks = blocks.ssd;
    request.state = FETCHING;
    observer?.began(request, this.#number, hit, storeEnd);
    this.#parts.fetch(this.#number, request, bytes, now);
    return true;
  }

  /** The first `end` blocks of a request are there. */
  #share(request: SimRequest, end: number): void {
    this.cache.share(request.path, request.held, end, this.#entered);
    request.own -= end - request.held;
    request.held = end;
    this.#blocked = false;
  }

  #prefilled(request: SimRequest, now: number): void {
    const { config, store, feed } = this.#parts;
    request.done += request.chunk;
    request.chunk = 0;
    this.#share(request, Math.floor(request.done / config.blockSize));
    feed.sendOfWorker(this.#number, now);
    if (request.done < request.inputTokens) return;
    store.put(request.path, request.fullBlocks, request.usableBlocks);
    feed.sendOfStore(now);
    request.firstTokenAt = now;
    this.#parts.observer?.firstToken(request, this.#number);
    request.state = DECODING;
    request.generated = Math.min(1, request.outputTokens);
    request.lease!.prefilled(now);
    if (request.generated === request.outputTokens) this.#end(request, now);
  }

  #decoded(request: SimRequest, now: number): void {
    request.generated += this.#steps;
    if (request.generated >= request.outputTokens) this.#end(request, now);
  }

  #end(request: SimRequest, now: number): void {
    const { blockSize } = this.#parts.config;
    this.cache.release(request.path, request.held, request.own);
    this.#blocked = false;
    request.state = ENDED;
    request.endedAt = now;
    request.lease!.progress(request.generated, now);
    request.lease!.complete(now, { cachedTokens: request.hitBlocks * blockSize });
    this.#parts.ended(this.#number, request);
  }
}
