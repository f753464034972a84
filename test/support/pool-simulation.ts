// A discrete simulation of a pool behind a router, with a clock moved by hand: requests arrive at random times, workers prefill one prompt
// after the other and decode any number at once, and announce what enters and leaves their caches as real bytes. Engines here are simple
// on purpose: what is under test is how a router spreads load and keeps prefixes together.
import type { Lease } from '../../src/router/leases.js';
import { Router } from '../../src/router/router.js';
import type { RouterOptions } from '../../src/router/router-options.js';
import { Random } from './random.js';
import { workerMessage } from './router-pool.js';

const BLOCK = 16;
/** Own hashes and tokens of a prompt begin above those of all prefixes. */
const OWN = 10_000_000;

/** What comes, and what the workers can do. Times are milliseconds. */
export interface Scenario {
  readonly workers: number;
  readonly requests: number;
  /** Mean time between arrivals. */
  readonly interval: number;
  /** Chances that a request begins with prefix 0, 1, …; the rest of the requests have nothing in common. */
  readonly popularity: readonly number[];
  /** Blocks of a prompt, and of a prefix. */
  readonly blocks: number;
  readonly prefixBlocks: number;
  /** Prefixes that a worker keeps, the least recently used one going first. */
  readonly prefixesKept: number;
  readonly prefillTokensPerSecond: number;
  readonly decodeTime: number;
  /** Request from which on `stuck` never ends what it is given, and `failing` refuses at once. */
  readonly troubleFrom?: number;
  readonly stuck?: number;
  readonly failing?: number;
}

/** What was seen, over all requests or since the trouble. */
export interface Outcome {
  /** Blocks found in the cache of the worker that served, of all blocks served. */
  readonly hitRate: number;
  /** Time average of active prefill and decode blocks, by worker. */
  readonly load: readonly number[];
  /** Requests given to each worker. */
  readonly given: readonly number[];
}

/** Events in order of time, then of their making. */
class Agenda {
  readonly #events: { readonly at: number; readonly run: () => void }[] = [];
  now = 0;

  add(at: number, run: () => void): void {
    let place = this.#events.length;
    while (place > 0 && this.#events[place - 1]!.at > at) place--;
    this.#events.splice(place, 0, { at, run });
  }

  /** Runs until nothing is left; `between` is told how long nothing changed. */
  run(between: (time: number) => void): void {
    for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
      between(next.at - this.now);
      this.now = next.at;
      next.run();
    }
  }
}

/** A worker: when its prefill is free, and the prefixes that it will have cached by then, the least recently used one first. */
interface Engine {
  freeAt: number;
  readonly prefixes: Set<number>;
}

/** Runs a scenario under a router of these options. */
export async function simulate(scenario: Scenario, options: RouterOptions, seed = 1): Promise<Outcome> {
  const { workers, requests, interval, blocks, prefixBlocks, prefillTokensPerSecond, decodeTime } = scenario;
  const { troubleFrom = 0, stuck = null, failing = null } = scenario;
  const router = await Router.create({ index: { bytes: 16 << 20 }, ...options });
  const engines = Array.from({ length: workers }, (): Engine => ({ freeAt: 0, prefixes: new Set() }));
  engines.forEach((_, id) => {
    router.addWorker({ id });
  });
  const random = new Random(seed);
  const agenda = new Agenda();
  const load = engines.map(() => 0);
  const given = engines.map(() => 0);
  const served = { blocks: 0, found: 0 };
  /** Held, so that they count as open and not as abandoned. */
  const stuckLeases: Lease[] = [];

  const arrive = (request: number): void => {
    const prefix = pickPrefix(random, scenario.popularity);
    const tokens = tokensOf(scenario, request, prefix);
    const { now } = agenda;
    const { worker, lease } = router.route({ tokens, now });
    const at = worker.id as number;
    const inTrouble = request >= troubleFrom;
    if (inTrouble) given[at]!++;
    if (inTrouble && at === failing) {
      agenda.add(now + 1, () => lease.fail(agenda.now));
      return;
    }
    if (inTrouble && at === stuck) {
      stuckLeases.push(lease);
      return;
    }
    const engine = engines[at]!;
    const admittedAt = Math.max(now, engine.freeAt);
    // It finds what it has cached by then: the prompts before it in the queue are done.
    const found = prefix !== null && engine.prefixes.has(prefix) ? prefixBlocks : 0;
    const evicted = prefix === null ? null : use(engine, prefix, scenario.prefixesKept);
    engine.freeAt = admittedAt + ((tokens.length - found * BLOCK) / prefillTokensPerSecond) * 1000;
    if (inTrouble) {
      served.blocks += blocks;
      served.found += found;
    }
    agenda.add(admittedAt, () => lease.admitted(agenda.now));
    agenda.add(engine.freeAt, () => {
      lease.prefilled(agenda.now);
      const events = [stored(scenario, request, prefix, tokens, found)];
      router.onWorkerMessage(at, workerMessage(evicted === null ? events : [removed(scenario, evicted), ...events]));
    });
    agenda.add(engine.freeAt + decodeTime, () => lease.complete(agenda.now, { cachedTokens: found * BLOCK }));
  };

  let arrivesAt = 0;
  for (let request = 0; request < requests; request++) {
    arrivesAt += -Math.log(1 - random.uint32() / 2 ** 32) * interval;
    agenda.add(arrivesAt, () => arrive(request));
  }
  agenda.run((passed) => {
    if (agenda.now > arrivesAt) return;
    router.workers().forEach(({ ranks }, at) => {
      const { prefillTokens, decodeBlocks } = ranks[0]!.load;
      load[at]! += (passed * (prefillTokens / BLOCK + decodeBlocks)) / arrivesAt;
    });
  });
  router.dispose();
  return { hitRate: served.found / served.blocks, load, given };
}

/** The greatest of some numbers, over their mean. */
export function maxOverMean(numbers: readonly number[]): number {
  return (Math.max(...numbers) * numbers.length) / numbers.reduce((sum, one) => sum + one, 0);
}

function pickPrefix(random: Random, popularity: readonly number[]): number | null {
  let point = random.uint32() / 2 ** 32;
  const prefix = popularity.findIndex((chance) => {
    point -= chance;
    return point < 0;
  });
  return prefix < 0 ? null : prefix;
}

/** The worker uses a prefix; which one leaves its cache for it, if any. */
function use({ prefixes }: Engine, prefix: number, kept: number): number | null {
  prefixes.delete(prefix);
  prefixes.add(prefix);
  if (prefixes.size <= kept) return null;
  const [oldest] = prefixes;
  prefixes.delete(oldest!);
  return oldest!;
}

/** A name for block `block` of a request's prompt, the same for blocks of the same prefix. */
function nameOf({ blocks, prefixBlocks }: Scenario, request: number, prefix: number | null, block: number): number {
  return prefix !== null && block < prefixBlocks ? prefix * prefixBlocks + block : OWN + request * blocks + block;
}

function tokensOf(scenario: Scenario, request: number, prefix: number | null): Uint32Array {
  return Uint32Array.from(
    { length: scenario.blocks * BLOCK + 1 },
    (_, i) => nameOf(scenario, request, prefix, Math.floor(i / BLOCK)) * BLOCK + (i % BLOCK),
  );
}

/** The blocks that a prompt added to a worker's cache. */
function stored(scenario: Scenario, request: number, prefix: number | null, tokens: Uint32Array, found: number) {
  const hashOf = (block: number) => BigInt(nameOf(scenario, request, prefix, block) + 1);
  return {
    type: 'BlockStored',
    block_hashes: Array.from({ length: scenario.blocks - found }, (_, i) => hashOf(found + i)),
    parent_block_hash: found === 0 ? null : hashOf(found - 1),
    token_ids: Array.from(tokens.subarray(found * BLOCK, scenario.blocks * BLOCK)),
    block_size: BLOCK,
    medium: 'GPU',
  };
}

/** The blocks of a prefix left a worker's cache. */
function removed(scenario: Scenario, prefix: number) {
  const hashOf = (block: number) => BigInt(nameOf(scenario, 0, prefix, block) + 1);
  return {
    type: 'BlockRemoved',
    block_hashes: Array.from({ length: scenario.prefixBlocks }, (_, i) => hashOf(i)),
    medium: 'GPU',
  };
}
