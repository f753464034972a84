// What a simulated engine's KV cache is made of: its groups, their spans, the object keys of its ranks, and the contract descriptor that
// follows. GPU groups and store groups are the same here. Rules: spec/vllm-store.md 1, 2 and 5, spec/kv-events.md 6.
import type { Descriptor, GroupKind } from '../../contract/descriptor.js';
import { descriptorFromCase } from '../../contract/from-case.js';
import { ConfigError } from '../../errors.js';
import { MAX_HASH_BLOCK_TOKENS } from '../../wire/block-digests.js';

/** One KV-cache group, as it is asked for. */
export interface GroupOptions {
  readonly kind: GroupKind;
  /** Tokens; default the worker's block size. */
  readonly blockSize?: number;
  /** Of a sliding window, the query's token included. */
  readonly window?: number | null;
  /** KV heads of all ranks together: fewer than ranks, and ranks share their objects. Default as many as ranks. */
  readonly kvHeads?: number;
  /** Bytes of one block, all ranks together. */
  readonly bytesPerBlock?: number;
}

export interface GeometryOptions {
  /** Its last path component stands in object keys. */
  readonly model: string;
  /** What object keys begin with; empty for none. */
  readonly cachePrefix: string;
  /** Tokens of a block. */
  readonly blockSize: number;
  /** Tensor-parallel ranks. */
  readonly tp: number;
  readonly groups: readonly GroupOptions[];
}

/** One group as the engine uses it. */
export interface Group {
  readonly index: number;
  readonly kind: GroupKind;
  readonly blockSize: number;
  readonly window: number | null;
  /** Consecutive blocks that must be there before an endpoint: those of a window; 1 for a state. Full attention needs all. */
  readonly needed: number;
  /** Of every object that one block is in the store, without the last `@`. */
  readonly keyPrefixes: readonly string[];
  readonly bytesPerObject: number;
}

/** The KV-cache groups of a simulated model, and where its prompts can restart. */
export interface Geometry {
  readonly model: string;
  /** Tokens of a digest. */
  readonly hashBlockSize: number;
  /** Tokens between endpoints. */
  readonly alignment: number;
  readonly groups: readonly Group[];
  /** The first full-attention group, whose events teach. */
  readonly mainGroup: number;
  /** What the engine publishes about all this. */
  readonly descriptor: Descriptor;
}

/** Bytes of a block where nothing was said: of 16 tokens, 80 layers of 8 KV heads of 128, key and value of 16 bits. */
const DEFAULT_BYTES_PER_BLOCK = 5_242_880;

/**
 * The geometry that these options mean. An engine may have one whose contract routers refuse, as real ones may.
 * @throws ConfigError `worker-model`, `worker-groups`
 */
export function geometryOf(options: GeometryOptions): Geometry {
  const { blockSize, tp, groups: asked } = options;
  const model = modelInKeys(options.model);
  if (!asked.some(({ kind }) => kind === 'full_attention'))
    throw new ConfigError('worker-groups', 'no KV-cache group is full attention; give one, whose events teach');
  const blocks = asked.map((group) => group.blockSize ?? blockSize);
  const hashBlockSize = blocks.reduce(greatestDivisor);
  const alignment = blocks.reduce((all, block) => (all / greatestDivisor(all, block)) * block);
  checkSpans(asked, blocks, hashBlockSize);
  const groups = asked.map((group, index): Group => {
    const block = blocks[index]!;
    const ranks = group.kind === 'mamba' ? tp : tp / Math.max(1, Math.floor(tp / (group.kvHeads ?? tp)));
    const keyPrefixes = Array.from({ length: Math.ceil(ranks) }, (_, rank) => {
      const start = options.cachePrefix === '' ? '' : `${options.cachePrefix}@`;
      return `${start}${model}@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:${index}`;
    });
    return {
      index,
      kind: group.kind,
      blockSize: block,
      window: group.window ?? null,
      needed: group.kind === 'sliding_window' ? Math.ceil(((group.window ?? 0) - 1) / block) : 1,
      keyPrefixes,
      bytesPerObject: Math.ceil((group.bytesPerBlock ?? DEFAULT_BYTES_PER_BLOCK) / keyPrefixes.length),
    };
  });
  const mainGroup = groups.findIndex(({ kind }) => kind === 'full_attention');
  const descriptor = descriptorFromCase({
    hash_block_size: hashBlockSize,
    coordinator_alignment: alignment,
    partial_hash_hits: false,
    main_event_block_size: groups[mainGroup]?.blockSize ?? null,
    groups: groups.map((group) => ({
      group_id: group.index,
      kind: group.kind,
      block_size: group.blockSize,
      window: group.window,
      prefixes: group.keyPrefixes,
    })),
  });
  return { model, hashBlockSize, alignment, groups, mainGroup, descriptor };
}

/** The last path component, as the connector takes it. */
function modelInKeys(model: string): string {
  const last = model.replace(/\/+$/, '').split('/').at(-1)!;
  if (last === '') throw new ConfigError('worker-model', `a worker's model is ${JSON.stringify(model)}; name one`);
  return last;
}

function checkSpans(groups: readonly GroupOptions[], blocks: readonly number[], hashBlockSize: number): void {
  for (const [i, block] of blocks.entries()) {
    if (!Number.isInteger(block) || block < 1 || block > MAX_HASH_BLOCK_TOKENS) {
      throw new ConfigError(
        'worker-groups',
        `group ${i} has blocks of ${block} tokens; give 1 to ${MAX_HASH_BLOCK_TOKENS}`,
      );
    }
    const { kind, window = null } = groups[i]!;
    if ((kind === 'sliding_window') !== (window !== null) || (window ?? 2) < 2) {
      throw new ConfigError(
        'worker-groups',
        `group ${i} is ${kind} with a window of ${window}; give sliding windows, and no other, 2 or more tokens`,
      );
    }
    if (kind === 'mamba' && block !== hashBlockSize) {
      throw new ConfigError(
        'worker-groups',
        `group ${i} is mamba with blocks of ${block} tokens over digests of ${hashBlockSize}: such engines restart within blocks, which is not simulated. Give all groups multiples of ${block}`,
      );
    }
  }
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}
