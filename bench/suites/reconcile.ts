// A reconcile from the wire bytes of the master's key list, cut as a network cuts them, to residency, by how many keys there are; beside the plain way:
// the whole text split, a Map of Sets. That the plain way is one long step, which every decision waits for, is not counted against it.
import { KeyList } from '../../src/cache/key-list.js';
import { KeyPrefixes } from '../../src/cache/key-prefixes.js';
import { Core } from '../../src/core/core.js';
import type { Plan } from '../../src/core/plan.js';
import { counted } from '../counting.js';
import { shuffled } from '../method/random.js';
import { plainKeyList } from '../rivals/key-list.js';
import type { Contest, TimedSuite } from '../suite.js';
import { CAP, chainsAtCap, digestOf, planFor, TABLE_SEED, teach } from '../workload.js';

const BLOCKS = 4_096;
const EVENT_BLOCKS = 512;
const RANKS = 2;
const SIZES = [3_124, 6_250, 12_500, 25_000, 50_000, 100_000];
const CHUNK_BYTES = 65_536;

/** One group of full attention. */
function planOfOneGroup(): Plan {
  const prefixes = Array.from({ length: RANKS }, (_, rank) => ({
    group: 0,
    text: `prod@Llama-3.1-70B-Instruct@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:0`,
  }));
  const plan = planFor(BLOCKS);
  return { ...plan, groups: 1, prefixes, learned: { ...plan.learned!, endMask: 0n, windowUnits: [] } };
}

/** In the order of hash maps: none. */
function listBytes(lows: readonly bigint[], { prefixes }: Plan): Uint8Array {
  const keys = lows.flatMap((low) => prefixes.map(({ text }) => `${text}@${digestOf(low)}`));
  const order = shuffled(keys.length, TABLE_SEED + 1n);
  return new TextEncoder().encode(`${[...order].map((at) => keys[at]).join('\n')}\n`);
}

async function contests(): Promise<(size: number) => Contest> {
  const plan = planOfOneGroup();
  const core = await Core.load('default');
  core.configure(plan, TABLE_SEED);
  const chains = chainsAtCap(BLOCKS, TABLE_SEED);
  teach(core, null, chains, EVENT_BLOCKS);
  const prefixIds = new Map(plan.prefixes.map(({ text }, id) => [text, id]));
  const order = shuffled(CAP, TABLE_SEED + 2n);
  return (size) => {
    const lows = [...order.subarray(0, size / RANKS)].map(
      (at) => chains[Math.floor(at / BLOCKS)]!.children[at % BLOCKS]!,
    );
    const bytes = listBytes(lows, plan);
    const reconcile = () => {
      const list = new KeyList({
        prefixes: new KeyPrefixes(plan.prefixes.map(({ text }) => text)),
        digestCap: core.digestCap,
        warm: (words, first, end) => core.warm(words, first, end),
      });
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) list.add(bytes.subarray(at, at + CHUNK_BYTES));
      list.end();
      while (!list.prepareSome());
      return core.replaceResidency(list.prepare());
    };
    return {
      a: { items: size, run: reconcile },
      b: { items: size, run: () => plainKeyList(bytes, prefixIds) },
      check() {
        const [ours, theirs] = [reconcile(), plainKeyList(bytes, prefixIds)];
        if (ours !== size || theirs.size !== core.digests)
          throw new Error(`${ours} of ${size} keys resident, ${core.digests} and ${theirs.size} digests`);
      },
      counters: () => ({ ...counted(core, reconcile), wireBytes: bytes.length }),
    };
  };
}

export const reconcileSuites: readonly TimedSuite[] = [
  {
    ...{ kind: 'time', name: 'reconcile', title: "reconcile from the bytes of the master's key list", unit: 'key' },
    ...{ rival: 'text split, Map of Sets', sizeOf: 'keys', sizes: SIZES, quickSizes: [3_124], make: contests },
  },
];
