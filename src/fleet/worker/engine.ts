// The engine of one data-parallel rank: a scheduler that works in steps, blocks on a GPU, prefix reuse, eviction, and a shared store to put
// objects into and to restore from. No clock, timer or socket: `step` says what one step did, and its owner how long that took. It knows the truth
// that routers guess: what of a prompt was on the GPU, in the store, or had to be computed (spec/vllm-store.md 4 to 8).
//
// Simpler than vLLM in these: blocks for the whole answer are taken when a request starts, so nothing is ever preempted; a state is kept at the
// last endpoint of a prompt, and none of its answer; objects are put for prompts, not for answers; of two blocks with the same content only the
// first is found, and said to be removed; all ranks put and restore at once.
import { MoonrouteError } from '../../errors.js';
import { BlockDigests } from '../../wire/block-digests.js';
import { type Block, BlockPool, type Evicted } from './block-pool.js';
import { alignedDown, firstOfTail, restorable } from './coordinator.js';
import { type EngineRequest, EngineRun, type PromptSources, type Retention } from './engine-run.js';
import type { Geometry, Group } from './geometry.js';
import type { KvEvent } from './kv-events.js';
import type { SharedStore } from './shared-store.js';

export interface EngineOptions {
  readonly geometry: Geometry;
  /** Blocks of the GPU, all groups together. */
  readonly gpuBlocks: number;
  /** Most tokens that a step computes. */
  readonly stepTokens: number;
  /** Most requests that run at once. */
  readonly maxRunning: number;
  /** Most requests that wait. */
  readonly maxWaiting: number;
  readonly store: SharedStore | null;
  readonly retention: Retention;
  /** Whether the store's connector announces what it puts, as medium `cpu`. */
  readonly connectorEvents: boolean;
}

/** One generated token. */
export interface Output {
  readonly run: number;
  readonly token: number;
  /** What the prompt's tokens came from; with every token the same. */
  readonly sources: PromptSources;
  readonly finished: boolean;
}

/** What one step did. */
export interface StepResult {
  readonly outputs: readonly Output[];
  /** In the order in which they happened. */
  readonly events: readonly KvEvent[];
  readonly prefillTokens: number;
  readonly decodeTokens: number;
  readonly restoredTokens: number;
  readonly restoredBytes: number;
}

/** Since the engine began. */
export interface EngineCounts {
  promptTokens: number;
  gpuTokens: number;
  storeTokens: number;
  generatedTokens: number;
  objectsPut: number;
  blocksEvicted: number;
  finished: number;
  aborted: number;
}

export class Engine {
  readonly counts: EngineCounts = {
    promptTokens: 0,
    gpuTokens: 0,
    storeTokens: 0,
    generatedTokens: 0,
    objectsPut: 0,
    blocksEvicted: 0,
    finished: 0,
    aborted: 0,
  };
  readonly #options: EngineOptions;
  readonly #geometry: Geometry;
  readonly #pool: BlockPool;
  readonly #maker: BlockDigests;
  readonly #waiting: EngineRun[] = [];
  readonly #running: EngineRun[] = [];
  #lastId = 0;
  #events: KvEvent[] = [];
  #restoredTokens = 0;
  #restoredBytes = 0;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#geometry = options.geometry;
    this.#pool = new BlockPool(options.gpuBlocks);
    this.#maker = new BlockDigests(options.geometry.hashBlockSize);
  }

  /** Requests that run. */
  get running(): number {
    return this.#running.length;
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether a step would do something. */
  get busy(): boolean {
    return this.#running.length + this.#waiting.length > 0;
  }

  /** Share of the blocks that requests hold. */
  get usage(): number {
    return 1 - this.#pool.free / this.#pool.capacity;
  }

  /** What the GPU holds now: for each group the digests of its findable blocks. */
  contents(): ReadonlySet<string>[] {
    const sets = this.#geometry.groups.map(() => new Set<string>());
    for (const { group, key } of this.#pool.contents()) sets[group]!.add(key!.slice(key!.indexOf(':') + 1));
    return sets;
  }

  /**
   * Takes a request in; it begins with one of the next steps. Returns its number.
   * @throws MoonrouteError `prompt-empty`, `prompt-too-long`, `engine-full`
   */
  submit(request: EngineRequest): number {
    if (request.prompt.length === 0) throw new MoonrouteError('prompt-empty', 'the prompt has no token; give one');
    const run = new EngineRun(this.#lastId + 1, request, this.#geometry, this.#maker, this.#options.retention);
    const blocks = this.#geometry.groups.reduce((sum, group) => sum + this.#mostBlocks(run, group), 0);
    if (blocks > this.#pool.capacity) {
      throw new MoonrouteError(
        'prompt-too-long',
        `${run.promptLength} prompt tokens and ${run.answer.length} more need ${blocks} blocks, and the GPU has ${this.#pool.capacity}. Send less, or give the worker more blocks`,
      );
    }
    if (this.#waiting.length >= this.#options.maxWaiting) {
      throw new MoonrouteError('engine-full', `${this.#waiting.length} requests wait, which is the most; try later`);
    }
    this.#lastId = run.id;
    this.#waiting.push(run);
    return run.id;
  }

  /** Stops a request; its blocks are free at once. False when it is not here any more. */
  abort(id: number): boolean {
    for (const list of [this.#waiting, this.#running]) {
      const at = list.findIndex((run) => run.id === id);
      if (at < 0) continue;
      const [run] = list.splice(at, 1);
      this.#release(run!);
      this.counts.aborted++;
      return true;
    }
    return false;
  }

  /** Does one step: a token for each request that decodes, and prefill with what is left of the step's tokens. */
  step(): StepResult {
    const outputs: Output[] = [];
    let budget = this.#options.stepTokens;
    let prefillTokens = 0;
    let decodeTokens = 0;
    const advance = (run: EngineRun): void => {
      const isPrefill = run.generated === 0;
      const tokens = Math.min(budget, run.tokens.length - run.computed);
      if (tokens <= 0) return;
      budget -= tokens;
      if (isPrefill) prefillTokens += tokens;
      else decodeTokens += tokens;
      const output = this.#compute(run, tokens);
      if (output !== null) outputs.push(output);
    };
    for (const run of [...this.#running]) advance(run);
    while (budget > 0 && this.#running.length < this.#options.maxRunning) {
      const next = this.#waiting[0];
      if (next === undefined || !this.#start(next)) break;
      this.#waiting.shift();
      this.#running.push(next);
      advance(next);
    }
    const result = {
      outputs,
      events: this.takeEvents(),
      prefillTokens,
      decodeTokens,
      restoredTokens: this.#restoredTokens,
      restoredBytes: this.#restoredBytes,
    };
    this.#restoredTokens = 0;
    this.#restoredBytes = 0;
    return result;
  }

  /** Forgets all blocks, as vLLM's reset_prefix_cache does; false while a request holds one. */
  clear(): boolean {
    if (!this.#pool.clear()) return false;
    this.#events.push({ kind: 'cleared' });
    return true;
  }

  /** Evicts the contents used longest ago, as other requests would. Returns how many blocks. */
  evict(blocks: number): number {
    return this.#pool.evict(blocks, this.#onEvicted);
  }

  /** Events since the last step. */
  takeEvents(): readonly KvEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  readonly #onEvicted = ({ group, digest }: Evicted): void => {
    this.counts.blocksEvicted++;
    this.#events.push({ kind: 'removed', group, digest });
  };

  // ---- a request begins ----

  /** Finds what is there of its prompt, and takes blocks for the rest; false when too few are free. */
  #start(run: EngineRun): boolean {
    const { groups } = this.#geometry;
    const gpuTokens = restorable(
      this.#geometry,
      run.promptLength,
      (group, tokens) => this.#pool.find(run.keyOf(group, tokens)) !== undefined,
    );
    const found = groups.map((group) => this.#blocksFound(run, group, gpuTokens));
    const idle = new Set(found.flatMap((blocks) => [...blocks.values()].filter(({ holders }) => holders === 0)));
    const places = groups.map((group) => this.#placesOf(run, group, gpuTokens));
    const wanted = places.reduce((sum, { size }) => sum + size, 0);
    if (wanted > this.#pool.free - idle.size) return false;
    for (const [index, blocks] of found.entries()) {
      for (const [place, block] of blocks) {
        this.#pool.hold(block);
        run.held[index]!.set(place, block);
      }
    }
    for (const [index, group] of places.entries())
      for (const place of group) run.held[index]!.set(place, this.#pool.take(this.#onEvicted)!);
    const storeTokens = this.#restore(run, gpuTokens);
    for (const { index } of groups) run.announced[index] = gpuTokens;
    run.computed = gpuTokens + storeTokens;
    run.sources = { gpuTokens, storeTokens };
    this.counts.promptTokens += run.promptLength;
    this.counts.gpuTokens += gpuTokens;
    this.counts.storeTokens += storeTokens;
    return true;
  }

  /** The blocks of a group that a restart at `hit` uses, by place. */
  #blocksFound(run: EngineRun, group: Group, hit: number): Map<number, Block> {
    const blocks = new Map<number, Block>();
    for (let end = firstOfTail(group, hit) + group.blockSize; end <= hit; end += group.blockSize)
      blocks.set(end / group.blockSize - 1, this.#pool.find(run.keyOf(group, end))!);
    return blocks;
  }

  /** Places for which blocks are taken when a request starts behind `hit` tokens: what is kept, and what the last tokens need. */
  #placesOf(run: EngineRun, group: Group, hit: number): Set<number> {
    const last = Math.ceil(run.finalLength / group.blockSize) - 1;
    const places = new Set<number>();
    if (group.kind === 'mamba') {
      if (run.endpoint > hit) places.add(run.endpoint / group.blockSize - 1);
      places.add(last);
      return places;
    }
    for (let place = hit / group.blockSize; place <= last; place++) if (run.keeps(group, place)) places.add(place);
    return places;
  }

  /** Blocks that a request may hold of a group: those taken, and the tail of an earlier endpoint. */
  #mostBlocks(run: EngineRun, group: Group): number {
    return this.#placesOf(run, group, 0).size + (group.kind === 'full_attention' ? 0 : group.needed);
  }

  /** Restores from the store what it holds beyond the GPU's own; returns tokens. */
  #restore(run: EngineRun, gpuTokens: number): number {
    const { store } = this.#options;
    if (store === null || run.promptLength < this.#geometry.alignment) return 0;
    const hit = restorable(this.#geometry, run.promptLength, (group, tokens) => {
      const hex = run.hexAt(tokens);
      return group.keyPrefixes.every((prefix) => store.has(`${prefix}@${hex}`));
    });
    const restored = Math.max(0, hit - gpuTokens);
    if (restored === 0) return 0;
    for (const group of this.#geometry.groups) {
      const from = Math.max(gpuTokens, firstOfTail(group, hit));
      this.#restoredBytes += ((hit - from) / group.blockSize) * group.keyPrefixes.length * group.bytesPerObject;
    }
    this.#restoredTokens += restored;
    return restored;
  }

  // ---- a request goes on ----

  /** Computes tokens of a request, and says what came of it. */
  #compute(run: EngineRun, tokens: number): Output | null {
    run.computed += tokens;
    for (const group of this.#geometry.groups) this.#announce(run, group);
    if (run.generated === 0) this.#putObjects(run);
    if (run.computed < run.tokens.length) return null;
    const token = run.answer[run.generated]!;
    run.tokens.push(token);
    this.counts.generatedTokens++;
    const finished = run.generated === run.answer.length;
    if (finished) {
      this.#running.splice(this.#running.indexOf(run), 1);
      this.#release(run);
      this.counts.finished++;
    }
    return { run: run.id, token, sources: run.sources!, finished };
  }

  /** Makes blocks that became full findable, and announces them. */
  #announce(run: EngineRun, group: Group): void {
    const { blockSize, index } = group;
    const from = run.announced[index]!;
    const to = alignedDown(run.computed, blockSize);
    if (to <= from) return;
    run.announced[index] = to;
    const digests: Uint8Array[] = [];
    const extraKeys: (readonly string[] | null)[] = [];
    for (let start = from; start < to; start += blockSize) {
      const place = start / blockSize;
      const block = run.held[index]!.get(place);
      if (block === undefined || !run.keeps(group, place)) continue;
      const end = start + blockSize;
      const digest = run.digestAt(end);
      this.#pool.name(block, run.keyOf(group, end), index, digest);
      digests.push(digest);
      const keys = run.extraKeysAt(start);
      extraKeys.push(keys.length === 0 ? null : keys);
    }
    if (digests.length === 0) return;
    this.#events.push({
      kind: 'stored',
      group: index,
      parent: from === 0 ? null : run.digestAt(from),
      digests,
      tokens: run.tokens.slice(from, to),
      blockSize,
      lora: run.lora,
      extraKeys,
    });
  }

  /** Puts the objects of full prompt blocks that the store does not have. */
  #putObjects(run: EngineRun): void {
    const { store } = this.#options;
    if (store === null) return;
    const { groups, alignment } = this.#geometry;
    const to = alignedDown(run.computed, alignment);
    for (const group of groups) {
      for (let start = run.put; start < to; start += group.blockSize) {
        const place = start / group.blockSize;
        if (!run.held[group.index]!.has(place) || !run.keeps(group, place)) continue;
        const end = start + group.blockSize;
        let put = 0;
        for (const prefix of group.keyPrefixes) {
          const key = `${prefix}@${run.hexAt(end)}`;
          if (!store.has(key) && store.put(key, group.bytesPerObject)) put++;
        }
        this.counts.objectsPut += put;
        if (put > 0 && this.#options.connectorEvents) this.#announcePut(run, group, start, end);
      }
    }
    run.put = Math.max(run.put, to);
  }

  /** Says what the connector says of a block that it has put: neither LoRA nor extra keys, whatever entered its hash. */
  #announcePut(run: EngineRun, { index, blockSize }: Group, start: number, end: number): void {
    this.#events.push({
      kind: 'put',
      group: index,
      parent: start === 0 ? null : run.digestAt(start),
      digests: [run.digestAt(end)],
      tokens: run.tokens.slice(start, end),
      blockSize,
    });
  }

  /** Lets a request's blocks go, the last ones first: they are the least likely to be wanted again. */
  #release(run: EngineRun): void {
    for (const held of run.held) {
      const blocks = [...held].sort(([a], [b]) => b - a);
      for (const [, block] of blocks) this.#pool.release(block);
      held.clear();
    }
  }
}
