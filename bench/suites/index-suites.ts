// The GPU prefix index by the number of workers: lookups of a prompt that all hold whole, and of one that each holds to another depth; and events that
// take a worker's blocks away and bring them back. The rival keeps bits in Maps; unlike the index it has no bound and no order of use.

import { PrefixIndex } from '../../src/core/prefix-index.js';
import { indexedBlocks, type PrefixDepths, type PrefixIndexLike } from '../../src/core/prefix-types.js';
import { randomLongs, shuffled } from '../method/random.js';
import { BitMaskIndex } from '../rivals/prefix-index.js';
import type { Contest, TimedSuite } from '../suite.js';
import { TABLE_SEED } from '../workload.js';

const BLOCKS = 2_048;
const WORKERS = [8, 16, 32, 64, 256, 512];
const EVENT_SIZES = [1, 4, 16, 64, 256, 1_024];
const EVENT_CHAIN = 16_384;
/** Blocks that leave and come back in one run. */
const BLOCKS_A_RUN = 4_096;
const EVENT_RANK = 5;
const HOLDERS = [0, 1, 2, EVENT_RANK];
const RANKS_OF_EVENTS = 64;
const RIVAL = 'bit masks in Maps';

type Stores = Pick<PrefixIndexLike, 'stored' | 'removed' | 'lookup'>;

interface Chain {
  readonly locals: BigUint64Array;
  readonly names: BigUint64Array;
}

const chainOf = (blocks: number): Chain => ({
  locals: randomLongs(blocks, TABLE_SEED),
  names: randomLongs(blocks, TABLE_SEED + 1n),
});

function store(index: Stores, rank: number, { locals, names }: Chain, first: number, blocks: number): void {
  const end = first + blocks;
  const parent = first === 0 ? null : names[first - 1]!;
  const event = indexedBlocks(parent, names.slice(first, end), locals.slice(first, end));
  const outcome = index.stored(rank, 'device', event);
  if (outcome !== 'stored') throw new Error(`rank ${rank}, block ${first}: ${outcome}`);
}

/** A ratio between contenders that answer differently would mean nothing. */
function checkAlike(ours: PrefixDepths, theirs: PrefixDepths): void {
  for (const tier of ['device', 'host', 'disk'] as const)
    for (const [rank, depth] of theirs[tier].entries())
      if (ours[tier][rank] !== depth)
        throw new Error(`the contenders disagree: ${tier} of rank ${rank} is ${ours[tier][rank]} and ${depth}`);
}

async function lookupContest(workers: number, depthOf: (rank: number) => number): Promise<Contest> {
  const chain = chainOf(BLOCKS);
  const index = await PrefixIndex.create({ ranks: workers, tableSeed: TABLE_SEED });
  const rival = new BitMaskIndex(workers);
  for (const contender of [index, rival])
    for (let rank = 0; rank < workers; rank++) store(contender, rank, chain, 0, depthOf(rank));
  return {
    a: { items: BLOCKS, run: () => index.lookup(chain.locals) },
    b: { items: BLOCKS, run: () => rival.lookup(chain.locals) },
    check: () => checkAlike(index.lookup(chain.locals), rival.lookup(chain.locals)),
    counters() {
      const { entries, sets, aliases, memoryBytes } = index.stats();
      return { entries, sets, aliases, memoryBytes };
    },
  };
}

async function eventContests(): Promise<(size: number) => Contest> {
  const chain = chainOf(EVENT_CHAIN);
  const index = await PrefixIndex.create({ ranks: RANKS_OF_EVENTS, tableSeed: TABLE_SEED });
  const rival = new BitMaskIndex(RANKS_OF_EVENTS);
  for (const contender of [index, rival]) for (const rank of HOLDERS) store(contender, rank, chain, 0, EVENT_CHAIN);
  return (size) => {
    const places = [...shuffled(EVENT_CHAIN / size, TABLE_SEED + 2n).subarray(0, BLOCKS_A_RUN / size)];
    // Back in the order of the prompt: a parent may have left with the event before.
    const events = places
      .sort((one, other) => one - other)
      .map((place) => {
        const first = place * size;
        const end = first + size;
        const parent = first === 0 ? null : chain.names[first - 1]!;
        return indexedBlocks(parent, chain.names.slice(first, end), chain.locals.slice(first, end));
      });
    const side = (contender: Stores) => ({
      items: 2 * BLOCKS_A_RUN,
      run() {
        for (const { lows, at, count } of events) contender.removed(EVENT_RANK, 'device', lows, at, count);
        for (const event of events) contender.stored(EVENT_RANK, 'device', event);
      },
    });
    const a = side(index);
    return {
      a,
      b: side(rival),
      check: () => checkAlike(index.lookup(chain.locals), rival.lookup(chain.locals)),
      counters() {
        a.run();
        const { entries, sets, aliases, evicted, unknownRemovals } = index.stats();
        return { entries, sets, aliases, evicted, unknownRemovals };
      },
    };
  };
}

/** Memory that 262,144 blocks just fill. */
const FILLED_BYTES = 18 << 20;
const NEW_BLOCKS_A_RUN = 1_024;

/** New prompts at the index's cap, where each block evicts the coldest. The rival has no cap; it starts anew when it holds as many. */
async function newContests(): Promise<(size: number) => Contest> {
  const index = await PrefixIndex.create({ bytes: FILLED_BYTES, tableSeed: TABLE_SEED });
  const { entryCap } = index.stats();
  const runs = Math.ceil((1.5 * entryCap) / NEW_BLOCKS_A_RUN);
  const chain = chainOf(runs * NEW_BLOCKS_A_RUN);
  let rival = new BitMaskIndex(RANKS_OF_EVENTS);
  let [atA, atB] = [0, 0];
  const learn = (to: Stores, run: number, size: number) => {
    for (let at = run * NEW_BLOCKS_A_RUN; at < (run + 1) * NEW_BLOCKS_A_RUN; at += size) {
      const event = indexedBlocks(null, chain.names.slice(at, at + size), chain.locals.slice(at, at + size));
      to.stored(EVENT_RANK, 'device', event);
    }
  };
  const ours = (size: number) => {
    learn(index, atA, size);
    atA = (atA + 1) % runs;
  };
  const filling = Math.ceil(entryCap / NEW_BLOCKS_A_RUN);
  for (let run = 0; run < filling; run++) ours(NEW_BLOCKS_A_RUN);
  return (size) => ({
    a: { items: NEW_BLOCKS_A_RUN, run: () => ours(size) },
    b: {
      items: NEW_BLOCKS_A_RUN,
      prepare() {
        if (rival.entries + NEW_BLOCKS_A_RUN > entryCap || atB === 0) rival = new BitMaskIndex(RANKS_OF_EVENTS);
      },
      run() {
        learn(rival, atB, size);
        atB = (atB + 1) % runs;
      },
    },
    check() {
      if (index.stats().entries !== entryCap) throw new Error(`the index holds ${index.stats().entries} blocks`);
    },
    counters() {
      const before = index.stats().evicted;
      ours(size);
      return { evicted: index.stats().evicted - before };
    },
  });
}

const lookup = (name: string, title: string, depthOf: (rank: number, workers: number) => number): TimedSuite => ({
  ...{ kind: 'time', name, title, unit: 'block', rival: RIVAL, sizeOf: 'workers', sizes: WORKERS },
  ...{ quickSizes: [8, 64, 512] },
  make: async () => (workers) => lookupContest(workers, (rank) => depthOf(rank, workers)),
});

export const indexSuites: readonly TimedSuite[] = [
  lookup('index-whole', 'GPU index, 2,048 blocks that all workers hold', () => BLOCKS),
  lookup('index-depths', 'GPU index, 2,048 blocks, each worker at a depth of its own', (rank, workers) =>
    Math.ceil(((rank + 1) * BLOCKS) / workers),
  ),
  {
    ...{ kind: 'time', name: 'index-events', title: "GPU index, a worker's blocks leave and come back", unit: 'block' },
    ...{ rival: RIVAL, sizeOf: 'blocks an event', sizes: EVENT_SIZES, quickSizes: [1, 64], make: eventContests },
  },
  {
    ...{ kind: 'time', name: 'index-new', title: 'GPU index, new blocks at its cap', unit: 'block', rival: RIVAL },
    ...{ sizeOf: 'blocks an event', sizes: EVENT_SIZES, quickSizes: [1, 256], make: newContests },
  },
];
