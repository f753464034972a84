// What learning costs a block, by the blocks of an event: with room left, and at the cap, where each new edge evicts the coldest. And lookups in a cache
// that has lived: 48 sessions that grow and end at the cap, prompts looked up before they are learned, single decode blocks in between.
import { Core } from '../../src/core/core.js';
import { counted, probes } from '../counting.js';
import { randomLongs, Stream } from '../method/random.js';
import { NestedMapCore } from '../rivals/nested-map.js';
import type { Contest, TimedSuite } from '../suite.js';
import { BLOCK, CAP, type Chain, planFor, rivalOptions, TABLE_SEED, teachPart } from '../workload.js';

const RIVAL = 'nested Maps of the reference design';
const EVENT_SIZES = [1, 4, 16, 64, 256, 1_024];
/** Blocks of one run, in events of the size that is measured. */
const BLOCKS_A_RUN = 1_024;
/** Below the cap both start anew after so many blocks. */
const ROOM = 16_384;
/** At the cap, blocks come again when they have long been evicted. */
const RING = 2 * CAP;

async function freshCore(): Promise<Core> {
  const core = await Core.load('default');
  core.configure(planFor(4_096), TABLE_SEED);
  return core;
}

const chainOf = (blocks: number, seed: bigint): Chain => ({
  locals: randomLongs(blocks, seed),
  children: randomLongs(blocks, seed + 1n),
});

/** One contender's way through the blocks. */
class Learner {
  at = 0;
  readonly #chain: Chain;
  readonly #learn: (locals: BigUint64Array, children: BigUint64Array) => void;

  constructor(chain: Chain, learn: (locals: BigUint64Array, children: BigUint64Array) => void) {
    this.#chain = chain;
    this.#learn = learn;
  }

  learn(blocks: number, eventBlocks: number): void {
    const { locals, children } = this.#chain;
    const end = this.at + blocks;
    for (let first = this.at; first < end; first += eventBlocks)
      this.#learn(locals.subarray(first, first + eventBlocks), children.subarray(first, first + eventBlocks));
    this.at = end === locals.length ? 0 : end;
  }
}

function learnInto(core: Core) {
  return (locals: BigUint64Array, lows: BigUint64Array) => {
    core.loadLocals(locals);
    core.learn({ parent: null, lows, digests: null, salted: false });
  };
}

async function learnContests(): Promise<(size: number) => Contest> {
  const core = await freshCore();
  let rival = new NestedMapCore(rivalOptions(4_096));
  const chain = chainOf(ROOM, TABLE_SEED);
  const ours = new Learner(chain, learnInto(core));
  const theirs = new Learner(chain, (locals, children) =>
    rival.learn({ parent: null, salted: false, locals, children }),
  );
  const emptyCore = () => {
    ours.at = 0;
    core.configure(planFor(4_096), TABLE_SEED);
  };
  const empty = () => {
    emptyCore();
    theirs.at = 0;
    rival = new NestedMapCore(rivalOptions(4_096));
  };
  return (size) => ({
    a: {
      items: BLOCKS_A_RUN,
      prepare: () => {
        if (ours.at === 0) emptyCore();
      },
      run: () => ours.learn(BLOCKS_A_RUN, size),
    },
    b: {
      items: BLOCKS_A_RUN,
      prepare: () => {
        if (theirs.at === 0) rival = new NestedMapCore(rivalOptions(4_096));
      },
      run: () => theirs.learn(BLOCKS_A_RUN, size),
    },
    begin: empty,
    check() {
      empty();
      ours.learn(BLOCKS_A_RUN, size);
      theirs.learn(BLOCKS_A_RUN, size);
      checkEdges(core.stats().edges, rival.counts().edges, BLOCKS_A_RUN);
    },
    counters() {
      emptyCore();
      return { ...counted(core, () => ours.learn(BLOCKS_A_RUN, size)), ...probes(core) };
    },
  });
}

async function evictContests(): Promise<(size: number) => Contest> {
  const core = await freshCore();
  const rival = new NestedMapCore(rivalOptions(4_096));
  const chain = chainOf(RING, TABLE_SEED);
  const ours = new Learner(chain, learnInto(core));
  const theirs = new Learner(chain, (locals, children) =>
    rival.learn({ parent: null, salted: false, locals, children }),
  );
  for (const learner of [ours, theirs])
    for (let learned = 0; learned < CAP; learned += BLOCKS_A_RUN) learner.learn(BLOCKS_A_RUN, 1_024);
  return (size) => ({
    a: { items: BLOCKS_A_RUN, run: () => ours.learn(BLOCKS_A_RUN, size) },
    b: { items: BLOCKS_A_RUN, run: () => theirs.learn(BLOCKS_A_RUN, size) },
    check: () => checkEdges(core.stats().edges, rival.counts().edges, CAP),
    counters: () => counted(core, () => ours.learn(BLOCKS_A_RUN, size)),
  });
}

function checkEdges(ours: number, theirs: number, expected: number): void {
  if (ours !== expected || theirs !== expected)
    throw new Error(`the contenders disagree: core ${ours}, rival ${theirs}, expected ${expected} edges`);
}

const SESSIONS = 48;
const LONGEST = 4_096;
const CHURNED = 400_000;
/** Every so many turns the rival looks up as well: enough to keep living sessions warm. */
const RIVAL_LOOKUPS = 16;
const COMPACT_BUDGET = 1_024;
/** Lookups that are measured: sessions with at least so many blocks. */
const LEAST = 1_024;
const MEASURED = 2;

async function churnContests(): Promise<(size: number) => Contest> {
  const core = await freshCore();
  const rival = new NestedMapCore(rivalOptions(4_096));
  const random = new Stream(TABLE_SEED + 9n);
  let made = 0n;
  const session = () => ({ chain: chainOf(LONGEST, TABLE_SEED + ++made * 131n), length: 0 });
  const sessions = Array.from({ length: SESSIONS }, session);
  let learned = 0;
  const grow = (index: number, blocks: number) => {
    if (sessions[index]!.length + blocks > LONGEST) sessions[index] = session();
    const one = sessions[index]!;
    teachPart(core, rival, one.chain, one.length, blocks);
    one.length += blocks;
    learned += blocks;
  };
  const fill = counted(core, () => {
    for (let turn = 0; learned < CAP + CHURNED; turn++) {
      const index = random.below(SESSIONS);
      const { chain, length } = sessions[index]!;
      if (length > 0) {
        core.loadLocals(chain.locals.subarray(0, length));
        core.lookup(length, length * BLOCK + 1);
        core.compact(COMPACT_BUDGET);
        if (turn % RIVAL_LOOKUPS === 0) rival.lookup(chain.locals.subarray(0, length), length * BLOCK + 1);
      }
      grow(index, 1 + random.below(512));
      for (let i = random.below(64); i > 0; i--) grow(random.below(SESSIONS), 1);
    }
  });
  const prompts = sessions
    .filter(({ length }) => length >= LEAST)
    .slice(0, MEASURED)
    .map(({ chain, length }) => chain.locals.slice(0, length));
  const blocks = prompts.reduce((sum, { length }) => sum + length, 0);
  const ours = () => {
    for (const prompt of prompts) core.lookup(core.loadLocals(prompt), prompt.length * BLOCK + 1);
  };
  const theirs = () => {
    for (const prompt of prompts) rival.lookup(prompt, prompt.length * BLOCK + 1);
  };
  return () => ({
    a: { items: blocks, run: ours },
    b: { items: blocks, run: theirs },
    check() {
      const before = core.stats();
      ours();
      const walked = core.stats().walkedBlocks - before.walkedBlocks;
      if (prompts.length !== MEASURED || walked !== blocks)
        throw new Error(`${walked} of ${blocks} blocks of ${prompts.length} sessions are known`);
    },
    counters() {
      const { linesWritten, ...lived } = fill;
      return Object.fromEntries([
        ...Object.entries(lived).map(([name, value]) => [`churn.${name}`, value]),
        ...Object.entries(counted(core, ours)),
      ]);
    },
  });
}

export const learnSuites: readonly TimedSuite[] = [
  {
    ...{ kind: 'time', name: 'learn', title: 'learn new blocks below the cap', unit: 'block', rival: RIVAL },
    ...{ sizeOf: 'blocks an event', sizes: EVENT_SIZES, quickSizes: [1, 1_024], make: learnContests },
  },
  {
    ...{ kind: 'time', name: 'evict', title: 'learn at the cap, each block evicts one', unit: 'block', rival: RIVAL },
    ...{ sizeOf: 'blocks an event', sizes: EVENT_SIZES, quickSizes: [1, 1_024], make: evictContests },
  },
  {
    ...{ kind: 'time', name: 'churn', title: 'lookups in steady churn at the cap', unit: 'block', rival: RIVAL },
    ...{ sizeOf: 'sessions', sizes: [SESSIONS], quickSizes: [SESSIONS], make: churnContests },
  },
];
