// The GPU prefix index beside its rivals (rivals/prefix-index.ts): warm lookups of a long prompt by how its blocks are spread over ranks, events
// and removals in a filled index, clears, and what a block costs in memory. All contenders are checked to answer alike before they are timed.
import { PrefixIndex } from '../src/core/prefix-index.js';
import { indexedBlocks, type PrefixDepths, type PrefixIndexLike } from '../src/core/prefix-types.js';
import { pair, randomLongs, Sample, timed } from './harness.js';
import { BitMaskIndex, MapOfSetsIndex, type PrefixRival } from './rivals/prefix-index.js';
import { type Effort, type Row, ratioRow } from './suites.js';

const SEED = 0x70726566_69786573n;
const MIB = 1 << 20;
/** Blocks of the prompt that is looked up. */
const BLOCKS = 16_384;
/** Blocks known in a filled index. */
const FILLED = 262_144;
const LOOKUPS_A_TURN = 16;
const WARM_LOOKUPS = 200;

/** What an event needs; rivals have it as well as the index. */
type Stores = Pick<PrefixIndexLike, 'stored' | 'removed'>;

/** A chain of blocks with the names that most ranks use. */
interface Chain {
  readonly locals: BigUint64Array;
  readonly names: BigUint64Array;
}

function chainOf(number: number, blocks: number): Chain {
  const seed = SEED + BigInt(number) * 0x10_0001n;
  return { locals: randomLongs(blocks, seed), names: randomLongs(blocks, seed + 0x8000n) };
}

function store(index: Stores, rank: number, { locals, names }: Chain, first: number, blocks: number): void {
  const end = first + blocks;
  const parent = first === 0 ? null : names[first - 1]!;
  const outcome = index.stored(
    rank,
    'device',
    indexedBlocks(parent, names.subarray(first, end), locals.subarray(first, end)),
  );
  if (outcome !== 'stored') throw new Error(`rank ${rank}, block ${first}: ${outcome}`);
}

// ---- lookups ----

/** How the prompt's blocks are spread over ranks, made from what the step before left. */
interface Step {
  readonly name: string;
  /** Aim in nanoseconds a block. */
  readonly aim: number;
  readonly change: (index: Stores, chain: Chain, ranks: number) => void;
}

const everywhere = (index: Stores, chain: Chain, ranks: number) => {
  for (let rank = 0; rank < ranks; rank++) store(index, rank, chain, 0, BLOCKS);
};
const graded = (index: Stores, chain: Chain, ranks: number) => {
  for (let rank = 0; rank < ranks; rank++) {
    const depth = Math.ceil(((rank + 1) * BLOCKS) / ranks);
    remove(index, rank, chain.names.slice(depth).reverse());
  }
};
const withHoles = (index: Stores, chain: Chain, ranks: number) => {
  for (const [rank, holes] of holesOf(ranks))
    remove(
      index,
      rank,
      BigUint64Array.from(holes, (i) => chain.names[i]!),
    );
};
const withoutHoles = (index: Stores, chain: Chain, ranks: number) => {
  for (const [rank, holes] of holesOf(ranks))
    for (const hole of [...holes].sort((a, b) => a - b)) store(index, rank, chain, hole, 1);
};

/** By rank, the blocks it misses: each with probability 1 / 2,000, but rank 7 has them all. */
function holesOf(ranks: number): Map<number, Set<number>> {
  const holes = new Map<number, Set<number>>();
  for (const drawn of randomLongs(Math.round((ranks * BLOCKS) / 2_000), SEED + 3n)) {
    const rank = Number(drawn % BigInt(ranks));
    if (rank === 7) continue;
    const missed = holes.get(rank) ?? new Set();
    holes.set(rank, missed.add(Number((drawn >> 32n) % BigInt(BLOCKS))));
  }
  return holes;
}

function remove(index: Stores, rank: number, names: BigUint64Array): void {
  const held = index.removed(rank, 'device', new Uint32Array(names.buffer), 0, names.length);
  if (held !== names.length) throw new Error(`rank ${rank} lost ${held} blocks, not ${names.length}`);
}

const FLEETS: readonly { readonly ranks: number; readonly steps: readonly Step[] }[] = [
  {
    ranks: 64,
    steps: [
      { name: '64 ranks, all hold all', aim: 8, change: everywhere },
      { name: '64 ranks at 64 depths', aim: 8, change: graded },
    ],
  },
  {
    ranks: 1_024,
    steps: [
      { name: '1,024 ranks, all hold all', aim: 10, change: everywhere },
      { name: '1,024 ranks with random holes', aim: 20, change: withHoles },
      {
        name: '1,024 ranks at 1,024 depths',
        aim: 10,
        change: (...args) => {
          withoutHoles(...args);
          graded(...args);
        },
      },
    ],
  },
];

const RIVALS = [
  { name: 'Map of Sets', make: (ranks: number): PrefixRival => new MapOfSetsIndex(ranks), atLeast: 20 },
  { name: 'bit masks', make: (ranks: number): PrefixRival => new BitMaskIndex(ranks), atLeast: 10 },
] as const;

/** Warm lookups of 16,384 blocks, alone and beside both rivals. */
export async function prefixLookupSuite(effort: Effort): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { ranks, steps } of FLEETS) {
    rows.push(...(await lookupsAlone(ranks, steps, effort)));
    // One rival at a time: 1,024 ranks' blocks take them gigabytes.
    if (ranks <= effort.rivalRanks)
      for (const rival of RIVALS) rows.push(...(await lookupsBeside(rival, ranks, steps, effort)));
  }
  return rows;
}

async function lookupsAlone(ranks: number, steps: readonly Step[], effort: Effort): Promise<Row[]> {
  const chain = chainOf(0, BLOCKS);
  const index = await PrefixIndex.create({ ranks, tableSeed: SEED });
  return steps.map(({ name, aim, change }) => {
    change(index, chain, ranks);
    const lookup = () => index.lookup(chain.locals);
    timed(lookup, WARM_LOOKUPS);
    const core = new Sample(Array.from({ length: effort.turns }, () => timed(lookup, LOOKUPS_A_TURN)));
    const own = core.median / BLOCKS;
    return {
      suite: `GPU index, ${BLOCKS} blocks, ${name}`,
      core,
      rival: null,
      ratio: null,
      aim: `≤ ${aim} ns/block`,
      met: own * 1e6 <= aim,
      note: `${nanoseconds(own)} a block, ${index.stats().sets} sets`,
    };
  });
}

async function lookupsBeside(
  { name: rivalName, make, atLeast }: (typeof RIVALS)[number],
  ranks: number,
  steps: readonly Step[],
  effort: Effort,
): Promise<Row[]> {
  const chain = chainOf(0, BLOCKS);
  const index = await PrefixIndex.create({ ranks, tableSeed: SEED });
  const rival = make(ranks);
  return steps.map(({ name, change }) => {
    for (const contender of [index, rival]) change(contender, chain, ranks);
    checkAlike(index.lookup(chain.locals), rival.lookup(chain.locals));
    const result = pair(
      () => index.lookup(chain.locals),
      () => rival.lookup(chain.locals),
      { turns: effort.turns, callsA: LOOKUPS_A_TURN },
    );
    const [own, other] = [result.a.median / BLOCKS, result.b.median / BLOCKS];
    const note = `${nanoseconds(own)} against ${nanoseconds(other)} a block`;
    return ratioRow(`GPU index, ${BLOCKS} blocks, ${name}, beside ${rivalName}`, atLeast, result, note);
  });
}

/** A ratio between contenders that answer differently would mean nothing. */
function checkAlike(ours: PrefixDepths, theirs: PrefixDepths): void {
  for (const tier of ['device', 'host', 'disk'] as const)
    for (const [rank, depth] of theirs[tier].entries())
      if (ours[tier][rank] !== depth)
        throw new Error(`the contenders disagree: ${tier} of rank ${rank} is ${ours[tier][rank]} and ${depth}`);
}

// ---- events in a filled index ----

/** Blocks of one event or removal. */
const EVENT_BLOCKS = 64;
const AIM_REMOVAL_NS = 250;
const EVENTS_A_ROUND = 256;
/** Rounds before the first one counts: enough for the compiler. */
const WARM_ROUNDS = 40;
/** Memory for an index that 262,144 blocks, and as many names as have room beside them, just fill. */
const FILLED_BYTES = 18 * MIB;
const CHAINS = FILLED / BLOCKS;

/** Who else holds the blocks that a rank stores and removes, and how the rank names them. */
interface Holding {
  readonly name: string;
  readonly others: readonly number[];
  readonly ownNames: boolean;
}

const RANK = 5;
const HOLDINGS: readonly Holding[] = [
  { name: 'blocks that nobody else holds', others: [], ownNames: false },
  { name: 'blocks that others hold', others: [0, 1, 2], ownNames: false },
  { name: 'blocks that others hold under other names', others: [0, 1, 2], ownNames: true },
];

/** One rank's blocks leave and come back, 64 in an event and one by one, in random order: of one warm prompt, and over an index of 262,144 blocks. */
export async function prefixEventSuite(effort: Effort): Promise<Row[]> {
  const rows: Row[] = [];
  for (const prompts of [1, CHAINS]) {
    const chains = Array.from({ length: prompts }, (_, i) => chainOf(i + 1, BLOCKS));
    for (const holding of HOLDINGS) rows.push(...(await eventsOf(chains, holding, effort)));
  }
  return rows;
}

async function eventsOf(chains: readonly Chain[], { name, others, ownNames }: Holding, effort: Effort): Promise<Row[]> {
  const index = await PrefixIndex.create({ bytes: FILLED_BYTES, tableSeed: SEED });
  const { entryCap, aliasCap } = index.stats();
  if (entryCap < FILLED) throw new Error(`room for ${entryCap} blocks, not ${FILLED}`);
  for (const rank of others) for (const chain of chains) store(index, rank, chain, 0, BLOCKS);
  const own = ownNames ? chains.map((chain, i) => ({ ...chain, names: chainOf(i + 501, BLOCKS).names })) : chains;
  // Where names have room for fewer blocks than there are, the rank holds fewer.
  const held = ownNames ? own.slice(0, Math.floor(aliasCap / BLOCKS)) : own;
  for (const chain of held) store(index, RANK, chain, 0, BLOCKS);
  return [EVENT_BLOCKS, 1].flatMap((blocks) => eventRows(index, held, name, blocks, effort));
}

function eventRows(index: PrefixIndex, chains: readonly Chain[], name: string, blocks: number, effort: Effort): Row[] {
  const stored: number[] = [];
  const removed: number[] = [];
  const rounds = WARM_ROUNDS + effort.turns * 4;
  const picks = randomLongs(rounds * EVENTS_A_ROUND, SEED + 77n);
  for (let round = 0; round < rounds; round++) {
    // Anywhere in any chain, each once. The names of all events stand in one array, as they do where messages are read.
    const events = new Map<string, { chain: Chain; first: number }>();
    for (const pick of picks.subarray(round * EVENTS_A_ROUND, (round + 1) * EVENTS_A_ROUND)) {
      const chain = chains[Number(pick % BigInt(chains.length))]!;
      const first = Number((pick >> 32n) % BigInt(BLOCKS / blocks)) * blocks;
      events.set(`${chain.names[0]} ${first}`, { chain, first });
    }
    const names = new BigUint64Array(events.size * blocks);
    [...events.values()].forEach(({ chain, first }, i) => {
      names.set(chain.names.slice(first, first + blocks).reverse(), i * blocks);
    });
    const lows = new Uint32Array(names.buffer);
    let known = 0;
    const removal = timed(() => {
      for (let at = 0; at < names.length; at += blocks) known += index.removed(RANK, 'device', lows, at, blocks);
    });
    if (known !== events.size * blocks) throw new Error(`${known} blocks removed, not ${events.size * blocks}`);
    // A parent may have left with the event before it: stored from the start of chains onwards.
    const back = [...events.values()]
      .sort((a, b) => a.first - b.first)
      .map(({ chain, first }) => {
        const end = first + blocks;
        const parent = first === 0 ? null : chain.names[first - 1]!;
        return indexedBlocks(parent, chain.names.slice(first, end), chain.locals.slice(first, end));
      });
    const storing = timed(() => {
      for (const event of back) if (index.stored(RANK, 'device', event) !== 'stored') known = 0;
    });
    if (known === 0) throw new Error('a block did not come back');
    if (round < WARM_ROUNDS) continue;
    removed.push(removal / known);
    stored.push(storing / known);
  }
  const size = blocks === 1 ? 'one by one' : `${blocks} at once`;
  const row = (what: string, values: number[], aim: number | null): Row => {
    const core = new Sample(values);
    return {
      suite: `GPU index of ${chains.length * BLOCKS} blocks, ${what} a block, ${size}: ${name}`,
      core,
      rival: null,
      ratio: null,
      aim: aim === null ? null : `≤ ${aim} ns`,
      met: aim === null ? null : core.median * 1e6 <= aim,
      note: `p90 ${nanoseconds(core.at(0.9))}`,
    };
  };
  // The aim is for warm blocks; in a large index a single removal waits for memory.
  return [row('removing', removed, chains.length === 1 ? AIM_REMOVAL_NS : null), row('storing', stored, null)];
}

/** New blocks at the cap, each of which evicts the coldest; beside the rivals, which have no cap. */
export async function prefixNewSuite(effort: Effort): Promise<Row[]> {
  const index = await PrefixIndex.create({ bytes: FILLED_BYTES, tableSeed: SEED });
  let made = 1_000;
  const warm = Math.ceil(index.stats().entryCap / BLOCKS) + 1;
  const events = (count: number) => Array.from({ length: count }, () => chainOf(made++, 512));
  for (let i = 0; i < warm; i++) store(index, RANK, chainOf(made++, BLOCKS), 0, BLOCKS);
  const rival = new BitMaskIndex(64);
  for (let i = 0; i < warm; i++) store(rival, RANK, chainOf(made++, BLOCKS), 0, BLOCKS);
  const [ours, theirs] = [events(effort.turns * 4), events(effort.turns * 4)];
  const times = ours.map((chain, i) => [
    timed(() => store(index, RANK, chain, 0, 512)) / 512,
    timed(() => store(rival, RANK, theirs[i]!, 0, 512)) / 512,
  ]);
  const a = new Sample(times.map(([x]) => x!));
  const b = new Sample(times.map(([, y]) => y!));
  const ratio = new Sample(times.map(([x, y]) => y! / x!));
  return [ratioRow('GPU index at its cap, a new block in events of 512, beside bit masks', null, { a, b, ratio }, '')];
}

// ---- clears ----

/** Everything of one rank goes from a full index. */
export async function prefixClearSuite(effort: Effort): Promise<Row[]> {
  const rows: Row[] = [];
  const chains = Array.from({ length: CHAINS }, (_, i) => chainOf(i + 1, BLOCKS));
  for (const { name, others, ownNames } of HOLDINGS) {
    const index = await PrefixIndex.create({ bytes: FILLED_BYTES, tableSeed: SEED });
    for (const rank of others) for (const chain of chains) store(index, rank, chain, 0, BLOCKS);
    const own = chains
      .slice(0, ownNames ? Math.floor(index.stats().aliasCap / BLOCKS) : CHAINS)
      .map((chain, i) => (ownNames ? { ...chain, names: chainOf(i + 501, BLOCKS).names } : chain));
    const times = Array.from({ length: effort.turns }, () => {
      for (const chain of own) store(index, RANK, chain, 0, BLOCKS);
      const time = timed(() => index.clear(RANK));
      index.tidy();
      return time;
    });
    const held = own.length * BLOCKS;
    rows.push({
      suite: `GPU index, a rank of ${held} blocks cleared: ${name}`,
      core: new Sample(times),
      rival: null,
      ratio: null,
      aim: null,
      met: null,
      note: `${nanoseconds(new Sample(times).median / held)} a block`,
    });
  }
  return rows;
}

// ---- memory ----

/** What an index of some size has room for. */
export interface PrefixSize {
  readonly ranks: number;
  readonly memoryBytes: number;
  readonly entryCap: number;
  readonly aliasCap: number;
  readonly setCap: number;
  /** All memory over its blocks, and over its names: each as if the other part were for nothing. */
  readonly bytesAnEntry: number;
  readonly bytesAnAlias: number;
}

/** Sizes of the smallest, the default and a large index, for few ranks and for many. */
export async function prefixSizes(): Promise<PrefixSize[]> {
  const sizes: PrefixSize[] = [];
  for (const bytes of [MIB, 64 * MIB, 512 * MIB]) {
    for (const ranks of [64, 1_024]) {
      const { memoryBytes, entryCap, aliasCap, setCap } = (await PrefixIndex.create({ bytes, ranks })).stats();
      const [bytesAnEntry, bytesAnAlias] = [memoryBytes / entryCap, memoryBytes / aliasCap];
      sizes.push({ ranks, memoryBytes, entryCap, aliasCap, setCap, bytesAnEntry, bytesAnAlias });
    }
  }
  return sizes;
}

/** The same, a line each. */
export function shownPrefixSize({
  ranks,
  memoryBytes,
  entryCap,
  aliasCap,
  setCap,
  bytesAnEntry,
  bytesAnAlias,
}: PrefixSize) {
  const counts = [entryCap, aliasCap, setCap].map((count) => count.toLocaleString('en'));
  return (
    `GPU index of ${(memoryBytes / MIB).toFixed(0)} MiB, ${ranks} ranks: room for ${counts[0]} blocks (${bytesAnEntry.toFixed(1)} bytes of all ` +
    `memory each), ${counts[1]} names (${bytesAnAlias.toFixed(1)}) and ${counts[2]} sets`
  );
}

function nanoseconds(ms: number): string {
  const ns = ms * 1e6;
  return `${ns.toFixed(ns < 100 ? 1 : 0)} ns`;
}
