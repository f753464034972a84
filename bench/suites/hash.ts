// Local hashes of a prompt of 100,000 token ids, by the tokens of a block, beside a published XXH3 package called once a block.
import { Core } from '../../src/core/core.js';
import { blockHashes } from '../../src/core/local-hash.js';
import { changedLines } from '../counting.js';
import { Stream } from '../method/random.js';
import { PackageHasher } from '../rivals/package-hasher.js';
import type { Contest, TimedSuite } from '../suite.js';
import { planFor, TABLE_SEED } from '../workload.js';

const TOKENS = 100_000;
/** What the rival hashes in one run: so little that most runs fit between two collections of its texts. */
const PART = 8_192;
const VOCABULARY = 151_936;
const SEED = { low: 1337, high: 0 };

async function contests(): Promise<(size: number) => Contest> {
  const core = await Core.load('default');
  core.configure(planFor(4_096), TABLE_SEED);
  const stream = new Stream(TABLE_SEED);
  const tokens = Uint32Array.from({ length: TOKENS }, () => stream.below(VOCABULARY));
  const part = tokens.slice(0, PART);
  const rival = await PackageHasher.create();
  return (size) => ({
    a: { items: Math.floor(TOKENS / size), run: () => core.hashTokens(tokens, size, SEED) },
    b: { items: Math.floor(PART / size), run: () => rival.hash(part, size) },
    check() {
      const [ours, theirs] = [blockHashes(tokens, size), rival.hash(tokens, size)];
      if (ours.length !== theirs.length || ours.some((hash, i) => hash !== theirs[i]))
        throw new Error(`the contenders hash blocks of ${size} tokens differently`);
    },
    counters: () => ({ linesWritten: changedLines(core.exports.memory, () => core.hashTokens(tokens, size, SEED)) }),
  });
}

export const hashSuites: readonly TimedSuite[] = [
  {
    ...{
      kind: 'time',
      name: 'hash',
      title: 'local hashes of 100,000 token ids',
      unit: 'block',
      rival: 'hash-wasm (XXH3)',
    },
    ...{ sizeOf: 'tokens a block', sizes: [16, 32, 64, 128, 256, 512], quickSizes: [16, 512], make: contests },
  },
];
