// Random contracts, prompts and events for holding the core against its model: what an honest fleet would say, with contradictions mixed in as often
// as a test asks.
import type { Contract, ContractGroup, GroupKind } from '../../src/contract/descriptor.js';
import type { ExtraKeys } from '../../src/core/engine-hash.js';
import { vllmDigests } from './engine-digests.js';
import type { ModelEvent } from './model.js';
import type { Random } from './random.js';

/** A random geometry that a contract could have from whose events edges are learned. */
export function randomContract(random: Random, wide: boolean): Contract {
  const hash = random.pick([1, 2, 4]);
  const main = hash * random.pick([1, 1, 2, 4]);
  const kinds: GroupKind[] = ['full_attention'];
  const extra = random.pick([0, 1, 2, wide ? 11 : 3]);
  for (let i = 0; i < extra; i++) kinds.push(random.pick(['full_attention', 'sliding_window', 'mamba'] as const));
  const groups: ContractGroup[] = withPrefixes(random, wide, kinds, (kind, groupId) => {
    let blockSize = main;
    let slidingWindow: number | null = null;
    if (kind === 'full_attention' && groupId > 0) blockSize = main * random.pick([1, 1, 2, 3]);
    if (kind === 'mamba') blockSize = hash * random.pick([1, 2, 4, 8]);
    if (kind === 'sliding_window') {
      blockSize = main * random.pick([1, 1, 2]);
      slidingWindow = randomWindow(random, blockSize);
      if (random.chance(0.3)) [blockSize, slidingWindow] = [hash, 2]; // needs its last block only: may be finer than main
    }
    return { blockSize, slidingWindow };
  });
  const partial = groups.some((group) => group.kind === 'mamba' && group.blockSize > hash);
  return contractOf(groups, main, hash, partial, true);
}

/** One from whose events nothing can be learned, of groups of any kind and size. */
export function randomDerivedContract(random: Random, wide: boolean): Contract {
  const hash = random.pick([1, 2, 4, 16]);
  const count = random.pick([1, 2, 3, wide ? 12 : 4]);
  const kinds = Array.from({ length: count }, () =>
    random.pick(['full_attention', 'full_attention', 'sliding_window', 'mamba'] as const),
  );
  const groups = withPrefixes(random, wide, kinds, (kind) => {
    const blockSize = hash * random.pick([1, 1, 2, 3, 4]);
    return { blockSize, slidingWindow: kind === 'sliding_window' ? randomWindow(random, blockSize) : null };
  });
  return contractOf(groups, hash * random.pick([1, 2, 3]), hash, random.chance(0.4), false);
}

function randomWindow(random: Random, blockSize: number): number {
  const wanted = random.pick([2, blockSize, blockSize + 1, 2 * blockSize + 1, 3 * blockSize, 5 * blockSize + 3]);
  return Math.max(2, wanted);
}

function withPrefixes(
  random: Random,
  wide: boolean,
  kinds: readonly GroupKind[],
  shapeOf: (kind: GroupKind, groupId: number) => Pick<ContractGroup, 'blockSize' | 'slidingWindow'>,
): ContractGroup[] {
  const ranks = wide ? random.pick([1, 3, 12]) : random.pick([1, 1, 2, 3]);
  return kinds.map((kind, groupId) => {
    const keyPrefixes = Array.from({ length: ranks }, (_, rank) => `p@m@tp_rank:${rank}@group:${groupId}`).sort();
    return { groupId, kind, ...shapeOf(kind, groupId), keyPrefixes };
  });
}

function contractOf(
  groups: ContractGroup[],
  mainEventBlockSize: number,
  hashBlockSize: number,
  partialHashHits: boolean,
  learnable: boolean,
): Contract {
  const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
  const sizes = [learnable ? mainEventBlockSize : hashBlockSize, ...groups.map((group) => group.blockSize)];
  return {
    revision: '',
    adapter: '',
    verified: true,
    mainEventBlockSize,
    hashBlockSize,
    lcmBlockSize: sizes.reduce((a, b) => (a / gcd(a, b)) * b, 1),
    partialHashHits,
    gpuToStoreGroup: groups.map((_, i) => i),
    mainEventGroup: learnable ? 0 : null,
    hashRule: { algorithm: 'sha256', seed: '0' },
    learnable,
    groups,
    fingerprint: '',
  };
}

/** A block as it is known: by its key behind its parent, and by its digest. */
export interface Block {
  readonly local: bigint;
  /** The digest's low 64 bits. */
  readonly child: bigint;
  readonly high: string;
}

export interface Prompt {
  /** Of main event blocks. */
  readonly blocks: readonly Block[];
  /** Of hash blocks; none where nothing is derived. */
  readonly spans: readonly Block[];
  readonly tokens: Uint32Array;
  readonly extraKeys: ExtraKeys;
}

/** Prompts that share beginnings, with hashes drawn at random. */
export function randomPrompts(random: Random): Prompt[] {
  const block = (): Block => ({ local: random.bigint64(), child: random.bigint64(), high: random.hex(24) });
  const rest = { spans: [], tokens: new Uint32Array(0), extraKeys: {} };
  return forest(random, block).map((blocks) => ({ blocks, ...rest }));
}

/**
 * Prompts that share beginnings, with the digests that the engine gives them. `alike`: where main event blocks are hash blocks, a block has one key
 * as a learned edge and as a derived one, so that nothing but their kinds tells them apart.
 */
export function randomTokenPrompts(random: Random, contract: Contract, alike: boolean): Prompt[] {
  const { mainEventBlockSize: main, hashBlockSize, hashRule } = contract;
  const token = (): number => random.int(random.pick([4, 256, 65_536, 2 ** 31, 2 ** 32]));
  const spansAMain = Math.max(1, main / hashBlockSize);
  const spanTokens = () => Array.from({ length: spansAMain * hashBlockSize }, token);
  const keys = new Map<string, bigint>();
  const keyOf = (what: string): bigint => {
    const key = keys.get(what) ?? random.bigint64();
    keys.set(what, key);
    return key;
  };
  const extras: ExtraKeys[] = [{}, {}, { loraName: 'lora-a' }, { rawSalt: 'salt-a' }, { loraName: 'b', rawSalt: 'c' }];
  return forest(random, spanTokens).flatMap((stem) =>
    (random.chance(0.2) ? [random.pick(extras), {}] : [random.pick(extras)]).map((extraKeys) => {
      const tokens = Uint32Array.from(stem.flat());
      const { loraName = null, rawSalt = null } = extraKeys;
      const digests = vllmDigests(tokens, hashBlockSize, { seed: hashRule.seed, loraName, cacheSalt: rawSalt });
      const blockOf = (digest: Buffer, kind: string): Block => ({
        local: keyOf(`${kind} ${digest.toString('hex')}`),
        child: digest.readBigUInt64BE(24),
        high: digest.toString('hex', 0, 24),
      });
      const spans = digests.map((digest) => blockOf(digest, 'span'));
      const ends = digests.filter((_, i) => (i + 1) % spansAMain === 0);
      return { spans, blocks: ends.map((digest) => blockOf(digest, alike ? 'span' : 'main')), tokens, extraKeys };
    }),
  );
}

function forest<T>(random: Random, node: () => T): T[][] {
  const chains: T[][] = [];
  const roots = random.pick([1, 2, 5]);
  for (let root = 0; root < roots; root++) {
    let stem = Array.from({ length: random.between(1, 24) }, node);
    chains.push(stem);
    for (let branch = 0; branch < 3; branch++) {
      stem = [...stem.slice(0, random.int(stem.length)), ...Array.from({ length: random.between(1, 12) }, node)];
      chains.push(stem);
    }
  }
  return chains;
}

/** An event about some of the prompt's blocks; `evil` is how often something contradicts. */
export function randomEvent(
  random: Random,
  { blocks: chain }: Prompt,
  prompts: readonly Prompt[],
  evil: number,
): ModelEvent {
  const from = random.chance(0.5) ? 0 : random.int(chain.length);
  const to = random.between(from + 1, chain.length);
  const withDigests = random.chance(0.3);
  const blocks = chain
    .slice(from, to)
    .map(({ local, child, high }) => ({ local, child, high: withDigests ? high : undefined }));
  const twist = () => random.int(blocks.length);
  let parent = from === 0 ? null : chain[from - 1]!.child;
  if (random.chance(evil)) blocks[twist()]!.child = random.bigint64(); // the same tokens, another child
  if (random.chance(evil)) blocks[twist()]!.local = random.bigint64(); // the same child, other tokens
  if (random.chance(evil) && withDigests) blocks[twist()]!.high = random.hex(24); // two digests under one low64
  // a child of elsewhere, or repeated
  if (random.chance(evil)) blocks[twist()]!.child = random.pick(random.pick(prompts).blocks).child;
  if (random.chance(evil)) blocks[twist()]!.child = 0n;
  if (random.chance(evil)) parent = random.bigint64();
  if (random.chance(evil)) {
    // longer than the cap
    const blocksOfOne = Array.from({ length: 80 }, () => ({
      local: random.bigint64(),
      child: random.bigint64(),
      high: undefined,
    }));
    return { parent: null, salted: false, blocks: blocksOfOne };
  }
  return { parent, salted: random.chance(0.1), blocks };
}

/** A beginning of the prompt, at times with a block that nobody knows, and how many tokens there are. */
export function randomQuery(
  random: Random,
  { blocks }: Prompt,
  blockSize: number,
): { locals: bigint[]; tokens: number } {
  const locals = blocks.slice(0, random.between(1, blocks.length)).map(({ local }) => local);
  if (random.chance(0.1)) locals.push(random.bigint64());
  return { locals, tokens: randomCount(random, locals.length * blockSize, blockSize) };
}

/** A count of tokens about `tokens`. */
export function randomCount(random: Random, tokens: number, blockSize: number): number {
  return Math.max(1, tokens + random.pick([0, 0, 1, -1, blockSize - 1, -blockSize]));
}
