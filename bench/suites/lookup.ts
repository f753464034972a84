// Lookups of a prompt whose blocks are known and resident (three groups, TP 2), by how many there are: with nothing else in memory, at the caps, with
// cold caches, and by how the prompt's edges lie: in one piece, in runs of 16 between 63 other sessions, the same after compaction, and
// learned in an order without any.
import { Core } from '../../src/core/core.js';
import { counted, probes } from '../counting.js';
import { randomLongs, shuffled } from '../method/random.js';
import { LinkedCore } from '../rivals/linked-core.js';
import { NestedMapCore } from '../rivals/nested-map.js';
import type { Rival, StoreTarget } from '../rivals/rival.js';
import type { Contest, TimedSuite } from '../suite.js';
import {
  BLOCK,
  CAP,
  type Chain,
  chainsAtCap,
  fillStore,
  planFor,
  rivalOptions,
  TABLE_SEED,
  teach,
  teachPart,
} from '../workload.js';

const LONGEST = 16_384;
const SIZES = [512, 1_024, 2_048, 4_096, 8_192, 16_384];
const EVENT_BLOCKS = 512;
const RUN = 16;
const SESSIONS = 64;
/** More than any cache of today's machines holds for one core. */
const COLD_BYTES = 1 << 26;
const LINE_WORDS = 16;

type MapRival = Rival & StoreTarget;

interface Contenders {
  readonly core: Core;
  readonly rival: MapRival;
}

async function contenders(make: () => MapRival): Promise<Contenders> {
  const core = await Core.load('default');
  core.configure(planFor(LONGEST), TABLE_SEED);
  return { core, rival: make() };
}

/** Looks the first blocks of the chain up. */
function lookups({ core, rival }: Contenders, { locals }: Chain, size: number, prepare?: () => void): Contest {
  const tokens = size * BLOCK + 1;
  const part = locals.slice(0, size);
  return {
    a: { run: () => core.lookup(size, tokens), items: size, ...(prepare && { prepare }) },
    b: { run: () => rival.lookup(part, tokens), items: size, ...(prepare && { prepare }) },
    check() {
      const ours = core.lookup(core.loadLocals(part), tokens) * BLOCK;
      const theirs = rival.lookup(part, tokens);
      if (ours !== size * BLOCK || theirs !== ours)
        throw new Error(`the contenders disagree: core ${ours}, rival ${theirs}, expected ${size * BLOCK} tokens`);
    },
    counters() {
      core.loadLocals(part);
      return { ...counted(core, () => core.lookup(size, tokens)), ...probes(core) };
    },
    begin: () => core.loadLocals(part),
  };
}

/** Reads one word of every line of a memory that no cache holds. */
function flusher(): () => void {
  const memory = new Uint32Array(COLD_BYTES / 4);
  let sum = 0;
  return () => {
    for (let at = 0; at < memory.length; at += LINE_WORDS) {
      sum += memory[at]!;
      memory[at] = sum;
    }
  };
}

/** Chains at the caps, each in one piece; the one that is looked up is not the last. */
function inOnePiece(both: Contenders): Chain {
  const chains = chainsAtCap(LONGEST, TABLE_SEED);
  teach(both.core, both.rival, chains, EVENT_BLOCKS);
  fillStore(both.core, both.rival, chains);
  return chains[1]!;
}

/** The long chain learned in short runs between those of the other sessions, to which it belongs like any other. */
function interleaved(both: Contenders): Chain {
  const others = Math.floor((CAP - LONGEST) / (SESSIONS - 1) / RUN) * RUN;
  const chain = (length: number, i: number): Chain => ({
    locals: randomLongs(length, TABLE_SEED + BigInt(i) * 77n),
    children: randomLongs(length, TABLE_SEED + BigInt(i) * 77n + 5n),
  });
  const chains = Array.from({ length: SESSIONS }, (_, i) => chain(i === 0 ? LONGEST : others, i));
  // Each turn gives every session one run; the long one gets as many as it takes to end with the others.
  const share = Math.ceil(LONGEST / others);
  const at = chains.map(() => 0);
  for (let left = true; left; ) {
    left = false;
    for (let round = 0; round < share; round++)
      for (const [i, one] of chains.entries()) {
        if ((i > 0 && round > 0) || at[i]! >= one.locals.length) continue;
        teachPart(both.core, both.rival, one, at[i]!, RUN);
        at[i]! += RUN;
        left = true;
      }
  }
  fillStore(both.core, both.rival, chains);
  return chains[0]!;
}

/** Every block of every chain in an event of its own, in no order. */
function inRandomOrder(both: Contenders): Chain {
  const chains = chainsAtCap(LONGEST, TABLE_SEED);
  for (const at of shuffled(CAP, TABLE_SEED + 3n))
    teachPart(both.core, both.rival, chains[Math.floor(at / LONGEST)]!, at % LONGEST, 1);
  fillStore(both.core, both.rival, chains);
  return chains[1]!;
}

function compacted(both: Contenders): Chain {
  const chain = interleaved(both);
  both.core.loadLocals(chain.locals);
  while (both.core.lookup(LONGEST, LONGEST * BLOCK + 1) && both.core.compact(1_024) > 0);
  return chain;
}

const RIVALS = {
  nested: 'nested Maps of the reference design',
  linked: 'linked objects, the fastest plain JavaScript we know',
  scan: "a loop that compares the prompt's hashes and nothing else",
} as const;

interface Kind {
  readonly name: string;
  readonly title: string;
  readonly fill: (both: Contenders) => Chain;
  readonly quickSizes: readonly number[];
  readonly aims?: Readonly<Record<number, number>>;
  readonly cold?: boolean;
  /** Default the nested Maps of the reference design. */
  readonly rival?: keyof typeof RIVALS;
}

const KINDS: readonly Kind[] = [
  {
    name: 'lookup-alone',
    title: 'lookup, nothing else stored',
    fill(both) {
      const [chain] = chainsAtCap(LONGEST, TABLE_SEED);
      teach(both.core, both.rival, [chain!], EVENT_BLOCKS);
      fillStore(both.core, both.rival, [chain!]);
      return chain!;
    },
    quickSizes: [512, 4_096],
  },
  {
    name: 'lookup-caps',
    title: 'lookup at the caps',
    fill: inOnePiece,
    quickSizes: [512, 4_096],
    aims: { 16384: 1_500 },
  },
  { name: 'lookup-cold', title: 'lookup at the caps, caches cold', fill: inOnePiece, quickSizes: [1_024], cold: true },
  {
    name: 'lookup-interleaved',
    title: 'lookup at the caps, 64 interleaved sessions in runs of 16 blocks',
    fill: interleaved,
    quickSizes: [512],
    aims: { 16384: 250 },
  },
  { name: 'lookup-compacted', title: 'the same after compaction', fill: compacted, quickSizes: [512] },
  {
    name: 'lookup-random',
    title: 'lookup at the caps, learned in random order',
    fill: inRandomOrder,
    quickSizes: [512],
  },
  {
    name: 'lookup-linked',
    title: 'lookup at the caps beside linked objects',
    fill: inOnePiece,
    quickSizes: [],
    rival: 'linked',
  },
  {
    name: 'lookup-scan',
    title: 'lookup at the caps beside a bare comparison of as many hashes',
    fill: inOnePiece,
    quickSizes: [4_096, 16_384],
    rival: 'scan',
  },
];

/** The least that any lookup does. Its time hangs on the same caches as the core's, so of all ratios this one varies least. */
function scan(locals: BigUint64Array): Contest['b'] {
  const prompt = new Int32Array(locals.slice().buffer);
  const known = prompt.slice();
  let same = 0;
  return {
    items: locals.length,
    run() {
      let at = 0;
      while (at < prompt.length && prompt[at] === known[at]) at++;
      same += at;
      if (same === 0) throw new Error('the hashes differ');
    },
  };
}

export const lookupSuites: readonly TimedSuite[] = KINDS.map(
  ({ name, title, fill, quickSizes, aims, cold, rival = 'nested' }): TimedSuite => ({
    ...{ kind: 'time', name, title, unit: 'block', sizeOf: 'blocks', sizes: SIZES, quickSizes, rival: RIVALS[rival] },
    ...(aims && { aims }),
    async make() {
      const options = rivalOptions(LONGEST);
      const both = await contenders(() => (rival === 'linked' ? new LinkedCore(options) : new NestedMapCore(options)));
      const chain = fill(both);
      const prepare = cold ? flusher() : undefined;
      return (size: number) => {
        const contest = lookups(both, chain, size, prepare);
        return rival === 'scan' ? { ...contest, b: scan(chain.locals.slice(0, size)) } : contest;
      };
    },
  }),
);
