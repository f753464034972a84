// Objects of the store that come and go (each digest's six: three groups, TP 2): decoded, by how many digests they are spread over; and whole messages
// from their wire bytes, by how many objects a message has.
import { Core } from '../../src/core/core.js';
import { counted, probes } from '../counting.js';
import { shuffled } from '../method/random.js';
import { LinkedCore } from '../rivals/linked-core.js';
import { NestedMapCore } from '../rivals/nested-map.js';
import type { Contest, TimedSuite } from '../suite.js';
import {
  applyCore,
  applyRival,
  CAP,
  chainsAtCap,
  digestOf,
  digestWords,
  PREFIXES,
  planFor,
  rivalOptions,
  storeBatch,
  TABLE_SEED,
  teach,
} from '../workload.js';

const BLOCKS = 4_096;
const EVENT_BLOCKS = 512;
const DIGEST_SIZES = [512, 1_024, 2_048, 4_096, 8_192, 16_384];

type Work = 'stored' | 'removed' | 'mixed';

async function decodedContests(work: Work): Promise<(size: number) => Contest> {
  const core = await Core.load('default');
  core.configure(planFor(BLOCKS), TABLE_SEED);
  const rival = new NestedMapCore(rivalOptions(BLOCKS));
  const chains = chainsAtCap(BLOCKS, TABLE_SEED);
  teach(core, rival, chains, EVENT_BLOCKS);
  const most = DIGEST_SIZES.at(-1)!;
  // From all over the chains: a master's events follow no chain.
  const lows = [...shuffled(CAP, TABLE_SEED + 4n).subarray(0, most)].map(
    (at) => chains[Math.floor(at / BLOCKS)]!.children[at % BLOCKS]!,
  );
  const words = digestWords(lows);
  const texts = lows.map(digestOf);
  const ofCore = (from: number, to: number, removes: boolean) => applyCore(core, words, from, to, removes);
  const ofRival = (from: number, to: number, removes: boolean) => applyRival(rival, texts, from, to, removes);
  const side = (size: number, apply: typeof ofCore) => {
    const half = size / 2;
    if (work !== 'mixed')
      return {
        items: size * PREFIXES,
        prepare: () => apply(0, size, work === 'stored'),
        run: () => apply(0, size, work === 'removed'),
      };
    let first = true;
    const quarter = half / 2;
    return {
      items: size * PREFIXES,
      // One half comes while the other leaves, a part of each after the other.
      run() {
        const [comes, leaves] = first ? [0, half] : [half, 0];
        apply(comes, comes + quarter, false);
        apply(leaves, leaves + quarter, true);
        apply(comes + quarter, comes + half, false);
        apply(leaves + quarter, leaves + half, true);
        first = !first;
      },
    };
  };
  return (size) => {
    const a = side(size, ofCore);
    const b = side(size, ofRival);
    const empty = () => {
      ofCore(0, most, true);
      ofRival(0, most, true);
    };
    return {
      ...{ a, b },
      begin: empty,
      check() {
        empty();
        for (const contender of [a, b]) {
          contender.prepare?.();
          contender.run();
        }
        const [mine, other] = [core.stats().members, rival.counts().memberships];
        if (mine !== other) throw new Error(`the contenders disagree: ${mine} and ${other} objects`);
      },
      counters() {
        ofCore(0, most, true);
        a.prepare?.();
        return { ...counted(core, a.run), ...probes(core) };
      },
    };
  };
}

const OBJECT_SIZES = [12, 30, 60, 126, 252, 510];

async function wireContests(linked: boolean): Promise<(size: number) => Contest> {
  const core = await Core.load('default');
  core.configure(planFor(BLOCKS), TABLE_SEED);
  const options = rivalOptions(BLOCKS);
  const rival = linked ? new LinkedCore(options) : new NestedMapCore(options);
  const chains = chainsAtCap(BLOCKS, TABLE_SEED);
  teach(core, rival, chains.slice(0, 8), EVENT_BLOCKS);
  return (size) => {
    const lows = [...chains[0]!.children.subarray(0, size / PREFIXES)];
    const stored = storeBatch(lows);
    const removed = storeBatch(lows, 'removed');
    const ours = () => {
      core.applyPayload(stored);
      core.applyPayload(removed);
    };
    return {
      a: { items: 2 * size, run: ours },
      b: {
        items: 2 * size,
        run: () => {
          rival.applyBatch(stored);
          rival.applyBatch(removed);
        },
      },
      check() {
        core.applyPayload(stored);
        rival.applyBatch(stored);
        const [mine, other] = [core.digests, rival.counts().digests];
        core.applyPayload(removed);
        rival.applyBatch(removed);
        if (mine !== lows.length || other !== mine)
          throw new Error(`the contenders disagree: ${mine} and ${other} digests, expected ${lows.length}`);
      },
      counters: () => ({ ...counted(core, ours), wireBytes: stored.length + removed.length }),
    };
  };
}

const decoded = (work: Work, title: string): TimedSuite => ({
  ...{ kind: 'time', name: `apply-${work}`, title, unit: 'object', rival: 'nested Maps of the reference design' },
  ...{ sizeOf: 'digests', sizes: DIGEST_SIZES, quickSizes: [512], make: () => decodedContests(work) },
});

export const applySuites: readonly TimedSuite[] = [
  decoded('stored', 'decoded objects stored'),
  decoded('removed', 'decoded objects removed'),
  decoded('mixed', 'decoded objects, half stored while half are removed'),
  {
    ...{ kind: 'time', name: 'wire', title: 'store messages from wire bytes, stored and removed', unit: 'object' },
    ...{ rival: '@msgpack/msgpack + nested Maps', sizeOf: 'objects a message', sizes: OBJECT_SIZES },
    ...{ quickSizes: [126], aims: { 510: 15 }, make: () => wireContests(false) },
  },
  {
    ...{ kind: 'time', name: 'wire-linked', title: 'the same beside linked objects', unit: 'object' },
    ...{ rival: '@msgpack/msgpack + linked objects', sizeOf: 'objects a message', sizes: OBJECT_SIZES },
    ...{ quickSizes: [], make: () => wireContests(true) },
  },
];
