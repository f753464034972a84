// Derived hashes of a prompt of 100,000 token ids: the engine's digests, beside node:crypto called once a block; the whole answer when nothing of the
// prompt is known but its objects; and the answer when it is known, beside learned edges.
import { Core } from '../../src/core/core.js';
import { seedOf } from '../../src/core/local-hash.js';
import type { Plan } from '../../src/core/plan.js';
import { CoreDigests, DIGEST_BYTES, HASH_RULE } from '../core-digests.js';
import { changedLines, counted } from '../counting.js';
import { Stream } from '../method/random.js';
import { type CreateHash, plainDigests, TunedDigests } from '../rivals/engine-digests.js';
import type { Contest, TimedSuite } from '../suite.js';
import { BLOCK, planFor, TABLE_SEED } from '../workload.js';

const TOKENS = 100_000;
const VOCABULARY = 128_000;
const SIZES = [16, 32, 64, 128, 256, 512];
const PROMPTS = [64, 256, 512, 1_024, 2_048, 6_144]; // blocks
const RANKS = 2;
const DIGEST_WORDS = DIGEST_BYTES / 4;

/** Null in a browser. */
async function nodeHash(): Promise<CreateHash | null> {
  try {
    return (await import('node:crypto')).createHash;
  } catch {
    return null;
  }
}

function randomIds(count: number): Uint32Array {
  const stream = new Stream(TABLE_SEED);
  return Uint32Array.from({ length: count }, () => stream.below(VOCABULARY));
}

/** Digests of the tokens' blocks. */
function digestsOf(core: Core, tokens: Uint32Array, blockSize: number): Uint8Array {
  const made = new Uint8Array(Math.floor(tokens.length / blockSize) * DIGEST_BYTES);
  new CoreDigests(core, blockSize).digest(tokens, made);
  return made;
}

/** `rival`: digests of the same tokens. */
async function digestContests(
  rivalOf: (createHash: CreateHash, blockSize: number) => (tokens: Uint32Array, out: Uint8Array) => void,
): Promise<(size: number) => Contest> {
  const createHash = await nodeHash();
  const core = await Core.load('default');
  const tokens = randomIds(TOKENS);
  return (size) => {
    const items = Math.floor(TOKENS / size);
    const ours = new CoreDigests(core, size);
    const rival = createHash === null ? null : rivalOf(createHash, size);
    const made = new Uint8Array(items * DIGEST_BYTES);
    const theirs = new Uint8Array(items * DIGEST_BYTES);
    return {
      a: { items, run: () => ours.digest(tokens, made) },
      b: rival === null ? null : { items, run: () => rival(tokens, theirs) },
      check() {
        ours.digest(tokens, made);
        rival?.(tokens, theirs);
        if (rival !== null && made.some((byte, i) => byte !== theirs[i]))
          throw new Error(`the contenders make other digests of blocks of ${size} tokens`);
      },
      counters: () => ({ linesWritten: changedLines(core.exports.memory, () => ours.digest(tokens, made)) }),
    };
  };
}

const tuned = (createHash: CreateHash, blockSize: number) => {
  const rival = new TunedDigests(createHash, blockSize);
  return (tokens: Uint32Array, out: Uint8Array) => rival.digest(tokens, out);
};
const plain = (createHash: CreateHash, blockSize: number) => (tokens: Uint32Array, out: Uint8Array) => {
  for (const [i, digest] of plainDigests(createHash, tokens, blockSize).entries()) out.set(digest, i * DIGEST_BYTES);
};

/** One group of full attention, hash blocks as long as main event blocks. */
function planOf(way: 'learned' | 'derived'): Plan {
  const { learned } = planFor(1);
  const evaluation = { ...learned!, endMask: 0n, windowUnits: [] };
  const prefixes = Array.from({ length: RANKS }, (_, rank) => ({ group: 0, text: `p@m@tp_rank:${rank}@group:0` }));
  return { groups: 1, learned: null, derived: null, prefixes, [way]: evaluation };
}

/** Eight words a digest, as cores take them from a simulation. */
function recordsOf(digests: Uint8Array): Uint32Array {
  const words = new Uint32Array(digests.length / 4);
  const view = new DataView(digests.buffer);
  for (let at = 0; at < digests.length; at += DIGEST_BYTES) {
    for (let word = 0; word < DIGEST_WORDS - 2; word++) words[at / 4 + word] = view.getUint32(at + word * 4, true);
    words[at / 4 + 6] = view.getUint32(at + 28);
    words[at / 4 + 7] = view.getUint32(at + 24);
  }
  return words;
}

/** A core that keeps the prompt's objects and has derived nothing yet. */
class DerivingCore {
  readonly #core: Core;
  readonly #records: Uint32Array;

  constructor(core: Core, digests: Uint8Array) {
    this.#core = core;
    this.#records = recordsOf(digests);
  }

  forget(): void {
    this.#core.configure(planOf('derived'), TABLE_SEED, HASH_RULE);
    const count = this.#records.length / DIGEST_WORDS;
    this.#core.applyObjects({
      ...{ removes: false, media: 1, first: 0, end: RANKS },
      ...{ digests: this.#records, at: 0, count },
    });
  }

  lookup(tokens: Uint32Array): number {
    return this.#core.lookupDerived(tokens, tokens.length, {});
  }
}

async function coldContests(): Promise<(size: number) => Contest> {
  const createHash = await nodeHash();
  const core = await Core.load('default');
  const all = randomIds(Math.max(...PROMPTS) * BLOCK + 1);
  return (blocks) => {
    const tokens = all.slice(0, blocks * BLOCK + 1);
    const deriving = new DerivingCore(core, digestsOf(core, tokens, BLOCK));
    const out = new Uint8Array(blocks * DIGEST_BYTES);
    const rival = createHash === null ? null : tuned(createHash, BLOCK);
    return {
      a: { items: blocks, prepare: () => deriving.forget(), run: () => deriving.lookup(tokens) },
      b: rival === null ? null : { items: blocks, run: () => rival(tokens, out) },
      check() {
        deriving.forget();
        const hit = deriving.lookup(tokens);
        if (hit !== blocks) throw new Error(`${hit} of ${blocks} blocks are credited`);
      },
      counters() {
        deriving.forget();
        return counted(core, () => deriving.lookup(tokens));
      },
    };
  };
}

async function warmContests(): Promise<(size: number) => Contest> {
  const [core, learning] = await Promise.all([Core.load('default'), Core.load('default')]);
  const all = randomIds(Math.max(...PROMPTS) * BLOCK + 1);
  const digests = digestsOf(core, all, BLOCK);
  const records = recordsOf(digests);
  const deriving = new DerivingCore(core, digests);
  deriving.forget();
  deriving.lookup(all);
  learning.configure(planOf('learned'), TABLE_SEED);
  const seed = seedOf(null, null);
  const count = learning.hashTokens(all, BLOCK, seed);
  const lows = BigUint64Array.from(
    { length: count },
    (_, i) => BigInt(records[i * 8 + 6]!) | (BigInt(records[i * 8 + 7]!) << 32n),
  );
  learning.learn({ parent: null, lows, digests: null, salted: false });
  learning.applyObjects({ removes: false, media: 1, first: 0, end: RANKS, digests: records, at: 0, count });
  return (blocks) => {
    const tokens = all.slice(0, blocks * BLOCK + 1);
    const ours = () => deriving.lookup(tokens);
    const theirs = () => learning.lookupTokens(tokens, tokens.length, BLOCK, seed);
    return {
      a: { items: blocks, run: ours },
      b: { items: blocks, run: theirs },
      check() {
        if (ours() !== blocks || theirs() !== blocks) throw new Error('not the whole prompt is credited');
      },
      counters: () => counted(core, ours),
    };
  };
}

const DIGESTS = { kind: 'time', unit: 'block', sizeOf: 'tokens a block' } as const;
const PROMPT = { kind: 'time', unit: 'block', sizeOf: 'blocks', sizes: PROMPTS } as const;

export const derivedSuites: readonly TimedSuite[] = [
  {
    ...DIGESTS,
    ...{ name: 'digests', title: 'engine digests of 100,000 token ids', rival: 'node:crypto a block, one buffer' },
    ...{ sizes: SIZES, quickSizes: [16], aims: { 16: 2 }, make: () => digestContests(tuned) },
  },
  {
    ...DIGESTS,
    ...{ name: 'digests-plain', title: 'the same', rival: 'node:crypto a block, Buffers joined' },
    ...{ sizes: [16], quickSizes: [16], aims: { 16: 6 }, make: () => digestContests(plain) },
  },
  {
    ...PROMPT,
    ...{ name: 'derive-cold', title: 'a prompt of which nothing is derived yet', rival: 'node:crypto, digests alone' },
    ...{ quickSizes: [6_144], aims: { 6144: 2 }, make: coldContests },
  },
  {
    ...PROMPT,
    ...{ name: 'derive-warm', title: 'a prompt that is derived already', rival: 'the same prompt, learned' },
    ...{ quickSizes: [6_144], make: warmContests },
  },
];
