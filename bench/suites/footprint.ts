// What the core takes before it does anything, and at its caps: bytes of linear memory beside the rival's heap (where the engine tells), and how long an
// instance takes to be made and given a contract.
import type { BuildName } from '../../src/core/builds.js';
import { Core } from '../../src/core/core.js';
import { compiledModule, type ModuleName, moduleBytes } from '../../src/core/modules.js';
import { NestedMapCore } from '../rivals/nested-map.js';
import type { Contest, Suite } from '../suite.js';
import { applyRival, CAP, chainsAtCap, digestOf, planFor, rivalOptions, TABLE_SEED } from '../workload.js';

const BLOCKS = 4_096;
const FILLED_DIGESTS = 87_381;
const EVENT_BLOCKS = 512;
const MODULES: Readonly<Record<string, ModuleName>> = {
  ...{ default: 'default', wide: 'wide', large: 'large', reader: 'wire', index: 'prefixes' },
};

/** The rival filled to the caps. */
function filledRival(): NestedMapCore {
  const rival = new NestedMapCore(rivalOptions(BLOCKS));
  const chains = chainsAtCap(BLOCKS, TABLE_SEED);
  for (const { locals, children } of chains)
    for (let first = 0; first < BLOCKS; first += EVENT_BLOCKS) {
      const end = first + EVENT_BLOCKS;
      const parent = first === 0 ? null : children[first - 1]!;
      const part = { locals: locals.subarray(first, end), children: children.subarray(first, end) };
      rival.learn({ parent, salted: false, ...part });
    }
  const texts = chains
    .flatMap(({ children }) => [...children])
    .slice(0, FILLED_DIGESTS)
    .map(digestOf);
  applyRival(rival, texts, 0, texts.length);
  return rival;
}

function startUp(): Contest {
  const module = compiledModule('default');
  const plan = planFor(BLOCKS);
  return {
    a: {
      items: 1,
      run: () => {
        Core.fromModule('default', module).configure(plan, TABLE_SEED);
      },
    },
    b: null,
    counters: () =>
      Object.fromEntries(Object.entries(MODULES).map(([name, module]) => [`${name}Bytes`, moduleBytes(module).length])),
  };
}

export const footprintSuites: readonly Suite[] = [
  {
    ...{ kind: 'bytes', name: 'memory', title: 'memory at the caps', unit: 'byte', sizeOf: 'edges' },
    ...{ rival: 'nested Maps of the reference design', sizes: [CAP], quickSizes: [CAP] },
    async weigh(engine) {
      const before = engine.heapBytes();
      const rival = filledRival();
      const after = engine.heapBytes();
      const { edges } = rival.counts();
      if (edges !== CAP) throw new Error(`the rival holds ${edges} edges, not ${CAP}`);
      const bytes: Record<string, number> = {};
      for (const build of ['default', 'wide', 'large'] satisfies BuildName[])
        bytes[`${build}Memory`] = (await Core.load(build)).stats().memoryBytes;
      return {
        a: bytes['defaultMemory']!,
        b: before === null || after === null ? null : after - before,
        counters: () => bytes,
      };
    },
  },
  {
    ...{ kind: 'time', name: 'start-up', title: 'an instance made and given a contract', unit: 'start', rival: null },
    ...{ sizeOf: 'instances', sizes: [1], quickSizes: [1] },
    make: async () => startUp,
  },
];
