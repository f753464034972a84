// A simulation worked out again, slowly and plainly, to hold the engine's report against: one object a block, one list of events that is
// sorted before each, one step after another. It is written from src/sim/types.ts, the first comments of the simulator's files and
// spec/vllm-store.md 4 to 6, and shares no code with the engine. The router's decisions are taken as given, in their order; all that
// follows from them is derived: times, blocks by tier, bytes, and what the router's credit was worth.
//
// Events of one time keep the order in which they were entered, as the engine's do; but times that are equal by chance alone may differ in
// their last bits here and there, so workloads for it arrive at odd times.
import type { Decision } from '../../src/router/decision.js';
import { Router } from '../../src/router/router.js';
import type { GroupModel, Percentiles, SimConfig, SimReport, TraceRequest } from '../../src/sim/index.js';

/** What a simulation's router decided. */
export interface GivenDecision {
  readonly now: number;
  readonly worker: number;
  /** Blocks that it believed on the worker, and shared ones that it credited past them. */
  readonly local: number;
  readonly shared: number;
  /** Why nothing was credited. */
  readonly reason: string | null;
}

/** What can be derived; the rest of a report is about the router itself. */
export type DerivedReport = Omit<SimReport, 'router' | 'policy'>;

/** Runs `work`, and keeps what any router decided meanwhile. */
export async function withDecisions<T>(work: () => Promise<T>): Promise<{ result: T; decisions: GivenDecision[] }> {
  const decisions: GivenDecision[] = [];
  const { route } = Router.prototype;
  Router.prototype.route = function (this: Router, request): Decision {
    const decision = route.call(this, request);
    const { worker, blocks, sharedReason } = decision;
    decisions.push({
      now: request.now ?? Number.NaN,
      worker: worker.id as number,
      local: blocks.device + blocks.host + blocks.disk,
      shared: blocks.shared,
      reason: sharedReason?.code ?? null,
    });
    return decision;
  };
  try {
    return { result: await work(), decisions };
  } finally {
    Router.prototype.route = route;
  }
}

/** The report that must come out. Throws where a decision comes at another time than a request. */
export function deriveReport(
  config: SimConfig,
  requests: readonly TraceRequest[],
  decisions: readonly GivenDecision[],
): DerivedReport {
  return new PlainSimulation(config, requests, decisions).report();
}

type State = 'waiting' | 'fetching' | 'prefilling' | 'decoding' | 'ended';
type Tier = 'dram' | 'ssd';
type PerTier = Record<Tier, number>;

/** A request on its way. */
interface Run {
  readonly trace: TraceRequest;
  /** Names of its full blocks. */
  readonly blocks: readonly string[];
  /** How many of them stand before the last token. */
  readonly usable: number;
  at: number;
  decision: GivenDecision | null;
  /** The session's next request, which waits for this one. */
  follower: Run | null;
  state: State;
  gpu: number;
  dram: number;
  ssd: number;
  /** Prompt tokens that are there. */
  done: number;
  chunk: number;
  /** Its first blocks, which it holds, and room for others. */
  held: number;
  room: number;
  generated: number;
  firstTokenAt: number;
  endedAt: number;
}

interface Event {
  readonly time: number;
  readonly order: number;
  readonly act: (now: number) => void;
}

/** Bytes on their way to a worker. */
interface Movement {
  readonly run: Run;
  readonly worker: number;
  readonly ssdBytes: number;
  readonly bytes: number;
  part: Tier;
  left: number;
  rate: number;
}

const SECOND = 1000;
/** Milliseconds by which two sums of the same times may differ. */
const SAME_TIME = 1e-6;
/** Part of a bandwidth that is nothing. */
const NOTHING = 1e-12;

class PlainSimulation {
  readonly #config: SimConfig;
  readonly #decisions: GivenDecision[];
  readonly #names = new BlockNames();
  readonly #store: PlainStore;
  readonly #workers: PlainWorker[];
  readonly #links: PlainLinks;
  readonly #sessions = new Map<string, Run>();
  readonly #events: Event[] = [];
  #entered = 0;
  readonly #seen = new Set<string>();
  readonly #arrivals: number[] = [];
  readonly #ended: Run[] = [];
  #refused = 0;
  #reachable = 0;
  #ceiling = 0;
  readonly #credit = { credited: 0, right: 0, short: 0, stale: 0, shortBlocks: 0, staleBlocks: 0 };
  readonly #zero: Record<string, number> = {};

  constructor(config: SimConfig, requests: readonly TraceRequest[], decisions: readonly GivenDecision[]) {
    this.#config = config;
    this.#decisions = [...decisions];
    const each = (requests[0]?.idTokens ?? config.blockSize) / config.blockSize;
    this.#store = new PlainStore(config, each);
    const when = (time: number, act: (now: number) => void) => this.#when(time, act);
    this.#links = new PlainLinks(config, when, ({ run, worker }, now) => this.#workers[worker]!.fetched(run, now));
    this.#workers = Array.from({ length: config.workers.count }, (_, number) => {
      const parts = { number, config, store: this.#store, links: this.#links, when };
      return new PlainWorker({
        ...parts,
        looked: (run, local, stored) => this.#looked(run, local, stored),
        ended: (run, now) => this.#end(run, now),
      });
    });
    for (const { at, worker } of config.restarts) when(at / config.speedup, (now) => this.#restart(worker, now));
    let due = Number.NEGATIVE_INFINITY;
    for (const request of requests) {
      due = Math.max(due, request.at / config.speedup); // a late row comes as it comes
      when(due, (now) => this.#due(request, now));
    }
    while (this.#events.length > 0) {
      this.#events.sort((a, b) => a.time - b.time || a.order - b.order);
      const { time, act } = this.#events.shift()!;
      act(time);
    }
    if (this.#decisions.length > 0) throw new Error(`${this.#decisions.length} decisions were for nothing`);
  }

  report(): DerivedReport {
    const { blockSize } = this.#config;
    const ended = this.#ended;
    const sum = (of: (run: Run) => number) => ended.reduce((total, run) => total + of(run), 0);
    const hits = (run: Run) => run.gpu + run.dram + run.ssd;
    const busy = this.#workers.map((worker) => worker.busy);
    const mean = busy.reduce((total, time) => total + time, 0) / busy.length;
    return {
      requests: this.#arrivals.length,
      completed: ended.length,
      refused: this.#refused,
      tokens: {
        prompt: sum(({ trace }) => trace.inputTokens),
        cached: sum((run) => hits(run) * blockSize),
        computed: sum((run) => run.trace.inputTokens - hits(run) * blockSize),
        generated: sum(({ generated }) => generated),
      },
      blocks: {
        full: sum(({ blocks }) => blocks.length),
        gpu: sum(({ gpu }) => gpu),
        dram: sum(({ dram }) => dram),
        ssd: sum(({ ssd }) => ssd),
        computed: sum((run) => run.blocks.length - hits(run)),
      },
      reachableBlocks: this.#reachable,
      ceilingBlocks: this.#ceiling,
      ttft: percentilesOf(ended.map(({ at, firstTokenAt }) => firstTokenAt - at)),
      latency: percentilesOf(ended.map(({ at, endedAt }) => endedAt - at)),
      duration: ended.length === 0 ? 0 : Math.max(...ended.map(({ endedAt }) => endedAt)) - Math.min(...this.#arrivals),
      imbalance: mean > 0 ? Math.max(...busy) / mean : 1,
      perWorker: this.#workers.map((worker) => ({
        requests: worker.served.length,
        busy: worker.busy,
        hitBlocks: worker.served.reduce((total, { gpu }) => total + gpu, 0),
      })),
      store: {
        fetchedBytes: this.#links.fetchedBytes,
        peakFetch: Math.max(0, ...this.#links.bySecond.values()),
        putBytes: this.#store.putBytes,
        dramPeakBytes: this.#store.peak.dram,
        ssdPeakBytes: this.#store.peak.ssd,
        evictedBlocks: this.#store.evicted,
      },
      credit: { ...this.#credit, zero: this.#zero },
    };
  }

  #when(time: number, act: (now: number) => void): void {
    this.#events.push({ time, order: this.#entered++, act });
  }

  /** A row's own time: a session's request may have to wait for the one before. */
  #due(trace: TraceRequest, now: number): void {
    const run: Run = {
      trace,
      blocks: this.#names.of(trace, this.#config.blockSize),
      usable: Math.floor((trace.inputTokens - 1) / this.#config.blockSize),
      ...{ at: now, decision: null, follower: null, state: 'waiting' },
      ...{ gpu: 0, dram: 0, ssd: 0, done: 0, chunk: 0, held: 0, room: 0 },
      ...{ generated: 0, firstTokenAt: 0, endedAt: 0 },
    };
    const { sessionId, delay } = trace;
    const previous = sessionId === null ? undefined : this.#sessions.get(sessionId);
    if (sessionId !== null) this.#sessions.set(sessionId, run);
    if (previous === undefined || delay === null) this.#arrive(run, now);
    else if (previous.state === 'ended') this.#follow(run, previous, now);
    else previous.follower = run;
  }

  /** It comes `delay` after the end of the one before, and not before its own time. */
  #follow(run: Run, previous: Run, now: number): void {
    const at = Math.max(run.at, previous.endedAt + run.trace.delay! / this.#config.speedup);
    if (at > now) this.#when(at, (then) => this.#arrive(run, then));
    else this.#arrive(run, now);
  }

  #arrive(run: Run, now: number): void {
    run.at = now;
    this.#arrivals.push(now);
    if (roomOf(run, this.#config) > this.#config.workers.gpuBlocks) {
      this.#refused++;
      this.#close(run, now);
      return;
    }
    const unknown = run.blocks.findIndex((name) => !this.#seen.has(name));
    this.#ceiling += Math.min(run.usable, unknown < 0 ? run.blocks.length : unknown);
    for (const name of run.blocks) this.#seen.add(name);
    this.#reachable += Math.max(
      this.#store.reach(run.blocks, run.usable),
      ...this.#workers.map((worker) => worker.resident(run)),
    );
    this.#route(run, now);
  }

  #route(run: Run, now: number): void {
    const decision = this.#decisions.shift();
    if (decision === undefined || !isClose(decision.now, now))
      throw new Error(`request ${run.trace.index} is decided at ${decision?.now}, and must be at ${now}`);
    run.decision = decision;
    if (decision.reason !== null) this.#zero[decision.reason] = (this.#zero[decision.reason] ?? 0) + 1;
    this.#workers[decision.worker]!.enqueue(run, now);
  }

  #looked({ decision }: Run, local: number, stored: number): void {
    const { local: believed, shared } = decision!;
    const credit = this.#credit;
    const end = believed + shared;
    if (shared === 0) {
      // Without credit: what the worker has itself, or was believed to have, was not the store's to give.
      const missed = stored - Math.max(believed, local);
      if (missed <= 0) return;
      credit.short++;
      credit.shortBlocks += missed;
      return;
    }
    credit.credited++;
    if (stored === end) credit.right++;
    else if (stored > end) {
      credit.short++;
      credit.shortBlocks += stored - end;
    } else {
      credit.stale++;
      credit.staleBlocks += end - stored;
    }
  }

  #end(run: Run, now: number): void {
    this.#ended.push(run);
    this.#close(run, now);
  }

  #close(run: Run, now: number): void {
    run.state = 'ended';
    run.endedAt = now;
    const { follower } = run;
    if (follower !== null) this.#when(now, (then) => this.#follow(follower, run, then));
  }

  #restart(worker: number | null, now: number): void {
    if (worker === null) {
      this.#store.clear();
      return;
    }
    this.#links.drop(worker, now);
    const lost = this.#workers[worker]!.restart(now);
    for (const run of lost) Object.assign(run, { state: 'waiting', gpu: 0, dram: 0, ssd: 0, done: 0, chunk: 0 });
    for (const run of lost) Object.assign(run, { held: 0, room: 0, generated: 0 });
    for (const run of lost) this.#route(run, now);
  }
}

/** Names of blocks: one place behind one chain of ids has one name, whoever asks. */
class BlockNames {
  readonly #chains = new Map<string, number>();

  of({ index, inputTokens, hashIds, idTokens }: TraceRequest, blockSize: number): string[] {
    const names: string[] = [];
    let chain = 0;
    for (let start = 0; start < inputTokens; start += idTokens) {
      // What no id names is nobody else's.
      const id = hashIds?.[start / idTokens] ?? `only ${index}`;
      chain = this.#number(`${chain} ${id}`);
      const end = Math.min(inputTokens, start + idTokens);
      for (let place = 0; start + (place + 1) * blockSize <= end; place++) names.push(`${chain}:${place}`);
    }
    return names;
  }

  #number(chain: string): number {
    const known = this.#chains.get(chain) ?? this.#chains.size + 1;
    this.#chains.set(chain, known);
    return known;
  }
}

interface WorkerParts {
  readonly number: number;
  readonly config: SimConfig;
  readonly store: PlainStore;
  readonly links: PlainLinks;
  when(time: number, act: (now: number) => void): void;
  looked(run: Run, local: number, stored: number): void;
  ended(run: Run, now: number): void;
}

/** One worker. Every step is planned anew, and who may start is asked before each. */
class PlainWorker {
  readonly #parts: WorkerParts;
  #queue: Run[] = [];
  #running: Run[] = [];
  /** Resident blocks; `order` is that of going idle. */
  readonly #blocks = new Map<string, { holders: number; order: number }>();
  #idled = 0;
  #life = 0;
  #stepBegan: number | null = null;
  busy = 0;
  readonly served: Run[] = [];

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  /** Blocks of a prompt that it has, from the start on. */
  resident({ blocks, usable }: Run): number {
    const missing = blocks.findIndex((name) => !this.#blocks.has(name));
    return Math.min(usable, missing < 0 ? blocks.length : missing);
  }

  enqueue(run: Run, now: number): void {
    this.#queue.push(run);
    this.#step(now);
  }

  fetched(run: Run, now: number): void {
    run.state = 'prefilling';
    run.done = (run.gpu + run.dram + run.ssd) * this.#parts.config.blockSize;
    this.#share(run);
    this.#step(now);
  }

  restart(now: number): Run[] {
    if (this.#stepBegan !== null) this.busy += now - this.#stepBegan;
    this.#stepBegan = null;
    this.#life++;
    this.#blocks.clear();
    const lost = [...this.#running, ...this.#queue];
    this.#running = [];
    this.#queue = [];
    return lost;
  }

  /** Begins a step, unless one runs or there is nothing to do. */
  #step(now: number): void {
    if (this.#stepBegan !== null) return;
    const { workers } = this.#parts.config;
    while (this.#queue.length > 0 && this.#running.length < workers.batch && this.#starts(this.#queue[0]!, now))
      this.#queue.shift();
    let free = workers.chunkTokens;
    for (const run of this.#running) {
      run.chunk = run.state === 'prefilling' ? Math.min(free, run.trace.inputTokens - run.done) : 0;
      free -= run.chunk;
    }
    const decoding = this.#running.filter(({ state }) => state === 'decoding');
    const tokens = workers.chunkTokens - free;
    if (tokens === 0 && decoding.length === 0) return;
    let length = (tokens / workers.prefillTokensPerSecond) * SECOND;
    if (decoding.length > 0) length += workers.decodeStep + (decoding.length - 1) * workers.decodeStepPerRequest;
    const life = this.#life;
    this.#stepBegan = now;
    this.#parts.when(now + length, (then) => {
      if (life === this.#life) this.#stepped(decoding, then);
    });
  }

  #stepped(decoding: readonly Run[], now: number): void {
    this.busy += now - this.#stepBegan!;
    this.#stepBegan = null;
    for (const run of [...this.#running]) {
      if (decoding.includes(run)) {
        run.generated++;
        this.#endIfDone(run, now);
      } else if (run.chunk > 0) {
        run.done += run.chunk;
        this.#share(run);
        if (run.done === run.trace.inputTokens) this.#prefilled(run, now);
      }
    }
    this.#step(now);
  }

  #prefilled(run: Run, now: number): void {
    this.#parts.store.put(run.blocks, run.usable);
    run.firstTokenAt = now;
    run.state = 'decoding';
    run.generated = Math.min(1, run.trace.outputTokens);
    this.#endIfDone(run, now);
  }

  #endIfDone(run: Run, now: number): void {
    if (run.generated < run.trace.outputTokens) return;
    for (const name of run.blocks.slice(0, run.held).reverse()) {
      const block = this.#blocks.get(name)!;
      block.holders--;
      block.order = this.#idled++;
    }
    this.#running = this.#running.filter((other) => other !== run);
    this.served.push(run);
    this.#parts.ended(run, now);
  }

  /** Starts a request where all of it has room, coldest idle blocks leaving for it. */
  #starts(run: Run, now: number): boolean {
    const { number, config, store, links } = this.#parts;
    const hit = this.resident(run);
    const held = new Set(run.blocks.slice(0, hit));
    const idle = [...this.#blocks].filter(([name, { holders }]) => holders === 0 && !held.has(name));
    const more = roomOf(run, config) - hit;
    const reserved = this.#running.reduce((sum, { room }) => sum + room, 0);
    const short = more - (config.workers.gpuBlocks - this.#blocks.size - reserved);
    if (short > idle.length) return false;
    idle.sort(([, a], [, b]) => a.order - b.order);
    for (const [name] of idle.slice(0, Math.max(0, short))) this.#blocks.delete(name);
    for (const name of held) this.#blocks.get(name)!.holders++;
    const stored = store.reach(run.blocks, run.usable);
    this.#running.push(run);
    Object.assign(run, { state: 'prefilling', gpu: hit, held: hit, room: more, done: hit * config.blockSize });
    this.#parts.looked(run, hit, stored);
    if (stored <= hit) return true;
    const { blocks, bytes } = store.get(run.blocks, hit, stored);
    Object.assign(run, { state: 'fetching', ...blocks });
    const life = this.#life;
    this.#parts.when(now + config.store.latency, (then) => {
      if (life === this.#life) links.begin({ run, worker: number, bytes }, then);
    });
    return true;
  }

  /** Its full blocks up to what is done are there; what another has brought is held instead of one's own. */
  #share(run: Run): void {
    const end = Math.floor(run.done / this.#parts.config.blockSize);
    for (const name of run.blocks.slice(run.held, end)) {
      const block = this.#blocks.get(name) ?? { holders: 0, order: 0 };
      block.holders++;
      this.#blocks.set(name, block);
      run.room--;
    }
    run.held = Math.max(run.held, end);
  }
}

interface StoredObject {
  readonly bytes: number;
  tier: Tier;
  /** Order of the last touch. */
  touched: number;
}

/** The store, object by object. */
class PlainStore {
  readonly #config: SimConfig;
  /** Blocks of an id: the touches of several groups go id by id. */
  readonly #each: number;
  readonly #objects = new Map<string, StoredObject>();
  #touches = 0;
  putBytes = 0;
  evicted = 0;
  readonly peak: PerTier = { dram: 0, ssd: 0 };

  constructor(config: SimConfig, each: number) {
    this.#config = config;
    this.#each = each;
  }

  get #exists(): boolean {
    const { dramBytes, ssdBytes } = this.#config.store;
    return dramBytes + ssdBytes > 0;
  }

  /** The largest endpoint that all groups allow, tried one by one. */
  reach(blocks: readonly string[], limit: number): number {
    const { groups } = this.#config;
    for (let end = limit; end > 0; end--) {
      const allowed = groups.every((group, place) =>
        blocks.slice(this.#firstOf(group, end), end).every((name) => this.#objects.has(`${place} ${name}`)),
      );
      if (allowed) return end;
    }
    return 0;
  }

  /** What restoring blocks `from` … `end` takes: of a window, and of a state, only what the endpoint needs. */
  get(blocks: readonly string[], from: number, end: number): { blocks: PerTier; bytes: PerTier } {
    const { groups } = this.#config;
    const main = groups.findIndex(({ kind }) => kind === 'full_attention');
    const prompt: PerTier = { dram: 0, ssd: 0 };
    const bytes: PerTier = { dram: 0, ssd: 0 };
    groups.forEach((group, place) => {
      for (const name of blocks.slice(Math.max(from, this.#firstOf(group, end)), end)) {
        const { tier } = this.#objects.get(`${place} ${name}`)!;
        bytes[tier] += group.bytesPerBlock;
        if (place === main) prompt[tier]++;
      }
    });
    for (const [, key] of this.#named(blocks, end, end)) this.#objects.get(key)!.touched = this.#touches++;
    return { blocks: prompt, bytes };
  }

  /** A computed prompt: every full block of full attention, and what the last usable endpoint needs of the others. */
  put(blocks: readonly string[], usable: number): void {
    if (!this.#exists) return;
    for (const [group, key] of this.#named(blocks, blocks.length, usable)) {
      const known = this.#objects.get(key);
      if (known === undefined) this.putBytes += group.bytesPerBlock;
      const object: StoredObject = known ?? { bytes: group.bytesPerBlock, tier: 'dram', touched: 0 };
      object.touched = this.#touches++;
      this.#objects.set(key, object);
    }
    const { dramBytes, ssdBytes } = this.#config.store;
    this.#shrink('dram', dramBytes, (key, object) => {
      if (ssdBytes === 0) this.#drop(key);
      else Object.assign(object, { tier: 'ssd', touched: this.#touches++ });
    });
    this.#shrink('ssd', ssdBytes, (key) => this.#drop(key));
    for (const tier of ['dram', 'ssd'] as const) this.peak[tier] = Math.max(this.peak[tier], this.#bytesOf(tier));
  }

  clear(): void {
    this.#objects.clear();
  }

  #drop(key: string): void {
    this.#objects.delete(key);
    this.evicted++;
  }

  /** Lets the coldest of a tier go until it is within its size. */
  #shrink(tier: Tier, most: number, leave: (key: string, object: StoredObject) => void): void {
    let bytes = this.#bytesOf(tier);
    if (bytes <= most) return;
    const coldest = [...this.#objects].filter(([, object]) => object.tier === tier);
    coldest.sort(([, a], [, b]) => a.touched - b.touched);
    for (const [key, object] of coldest) {
      if (bytes <= most) break;
      bytes -= object.bytes;
      leave(key, object);
    }
  }

  #bytesOf(tier: Tier): number {
    return [...this.#objects.values()].reduce((sum, object) => sum + (object.tier === tier ? object.bytes : 0), 0);
  }

  /** The first block that an endpoint needs of a group. A window counts the query token. */
  #firstOf({ kind, window }: GroupModel, end: number): number {
    if (kind === 'full_attention') return 0;
    return Math.max(0, end - (kind === 'mamba' ? 1 : Math.ceil((window! - 1) / this.#config.blockSize)));
  }

  /** Objects of a prompt, in the order of touching: id by id from the last, in it group by group, the deepest block first. */
  #named(blocks: readonly string[], full: number, end: number): [GroupModel, string][] {
    const named: [GroupModel, string][] = [];
    for (let start = Math.floor(blocks.length / this.#each) * this.#each; start >= 0; start -= this.#each) {
      this.#config.groups.forEach((group, place) => {
        const stop = group.kind === 'full_attention' ? full : end;
        const first = this.#firstOf(group, stop);
        for (let at = Math.min(stop, start + this.#each) - 1; at >= Math.max(first, start); at--)
          named.push([group, `${place} ${blocks[at]}`]);
      });
    }
    return named;
  }
}

/** All that moves from the store, by water filling: every rate grows alike, and stops where a bandwidth is used up. */
class PlainLinks {
  readonly #config: SimConfig;
  readonly #when: (time: number, act: (now: number) => void) => void;
  readonly #arrived: (movement: Movement, now: number) => void;
  #movements: Movement[] = [];
  #latest = 0;
  #version = 0;
  fetchedBytes = 0;
  readonly bySecond = new Map<number, number>();

  constructor(
    config: SimConfig,
    when: (time: number, act: (now: number) => void) => void,
    arrived: (movement: Movement, now: number) => void,
  ) {
    this.#config = config;
    this.#when = when;
    this.#arrived = arrived;
  }

  begin({ run, worker, bytes }: { run: Run; worker: number; bytes: PerTier }, now: number): void {
    this.#advance(now);
    const part = bytes.dram > 0 ? 'dram' : 'ssd';
    const all = bytes.dram + bytes.ssd;
    this.#movements.push({ run, worker, ssdBytes: bytes.ssd, bytes: all, part, left: bytes[part], rate: 0 });
    this.#divide(now);
  }

  drop(worker: number, now: number): void {
    this.#advance(now);
    this.#movements = this.#movements.filter((movement) => movement.worker !== worker);
    this.#divide(now);
  }

  #advance(now: number): void {
    let from = this.#latest;
    while (from < now) {
      const second = Math.floor(from / SECOND);
      const to = Math.min(now, (second + 1) * SECOND);
      let moved = this.bySecond.get(second) ?? 0;
      for (const { rate } of this.#movements) moved += rate * (to - from);
      this.bySecond.set(second, moved);
      from = to;
    }
    for (const movement of this.#movements) movement.left -= movement.rate * (now - this.#latest);
    this.#latest = now;
  }

  #divide(now: number): void {
    const { linkBytesPerSecond, totalBytesPerSecond, ssdBytesPerSecond } = this.#config.store;
    const workers = new Set(this.#movements.map(({ worker }) => worker));
    const limits: { most: number; of: Movement[] }[] = [
      { most: totalBytesPerSecond, of: this.#movements },
      { most: ssdBytesPerSecond, of: this.#movements.filter(({ part }) => part === 'ssd') },
      ...[...workers].map((number) => ({
        most: linkBytesPerSecond,
        of: this.#movements.filter(({ worker }) => worker === number),
      })),
    ];
    for (const movement of this.#movements) movement.rate = 0;
    const growing = new Set(this.#movements);
    while (growing.size > 0) {
      const rooms = limits.map(({ most, of }) => {
        const used = of.reduce((sum, { rate }) => sum + rate, 0);
        return { of, left: most / SECOND - used, most, growing: of.filter((movement) => growing.has(movement)).length };
      });
      const grows = Math.min(...rooms.filter((room) => room.growing > 0).map((room) => room.left / room.growing));
      for (const movement of growing) movement.rate += grows;
      for (const room of rooms) {
        if (room.growing === 0 || room.left - grows * room.growing > (room.most / SECOND) * NOTHING) continue;
        for (const movement of room.of) growing.delete(movement);
      }
    }
    const version = ++this.#version;
    const next = Math.min(...this.#movements.map(({ left, rate }) => left / rate));
    if (next === Number.POSITIVE_INFINITY) return;
    this.#when(now + Math.max(0, next), (then) => {
      if (version === this.#version) this.#partsEnd(then);
    });
  }

  #partsEnd(now: number): void {
    this.#advance(now);
    const through = this.#movements.filter(({ left, rate }) => left <= rate * SAME_TIME);
    const arrived = through.filter(({ part, ssdBytes }) => part === 'ssd' || ssdBytes === 0);
    for (const movement of through) {
      movement.part = 'ssd';
      movement.left = movement.ssdBytes;
    }
    this.#movements = this.#movements.filter((movement) => !arrived.includes(movement));
    this.#divide(now);
    for (const movement of arrived) {
      this.fetchedBytes += movement.bytes;
      this.#arrived(movement, now);
    }
  }
}

/** GPU blocks of a request and its output, whose last token is never read again. */
function roomOf({ trace }: Run, { blockSize }: SimConfig): number {
  return Math.ceil((trace.inputTokens + Math.max(0, trace.outputTokens - 1)) / blockSize);
}

/** By nearest rank. */
function percentilesOf(values: readonly number[]): Percentiles {
  if (values.length === 0) return { p50: null, p90: null, p99: null, mean: null };
  const sorted = [...values].sort((a, b) => a - b);
  // The least value that at least so many percent of all are not above.
  const at = (percent: number) => sorted.find((_, i) => (i + 1) * 100 >= percent * sorted.length)!;
  return { p50: at(50), p90: at(90), p99: at(99), mean: values.reduce((sum, value) => sum + value, 0) / values.length };
}

function isClose(a: number, b: number): boolean {
  return Math.abs(a - b) <= SAME_TIME * Math.max(1, Math.abs(a), Math.abs(b));
}
