// What the core takes before it does anything, and at its caps: bytes of linear memory beside the rival's heap (where the engine tells), and how long an
// instance takes to be made and given a contract.
import { type BuildName, decodeModule } from '../../src/core/builds.js';
import { Core } from '../../src/core/core.js';
import { wasmBase64 as defaultText } from '../../src/core/wasm/default.js';
import { wasmBase64 as largeText } from '../../src/core/wasm/large.js';
import { wasmBase64 as prefixesText } from '../../src/core/wasm/prefixes.js';
import { wasmBase64 as wideText } from '../../src/core/wasm/wide.js';
import { wasmBase64 as readerText } from '../../src/core/wasm/wire.js';
import { NestedMapCore } from '../rivals/nested-map.js';
import type { Contest, Suite } from '../suite.js';
import { applyRival, CAP, chainsAtCap, digestOf, planFor, rivalOptions, TABLE_SEED } from '../workload.js';

const BLOCKS = 4_096;
const FILLED_DIGESTS = 87_381;
const EVENT_BLOCKS = 512;
const TEXTS: Readonly<Record<string, string>> = {
  ...{ default: defaultText, wide: wideText, large: largeText, reader: readerText, index: prefixesText },
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
  const module = new WebAssembly.Module(decodeModule(defaultText));
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
      Object.fromEntries(Object.entries(TEXTS).map(([name, text]) => [`${name}Bytes`, decodeModule(text).length])),
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
