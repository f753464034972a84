// A contract descriptor from what is public of a model and from how its engine was started, for workers that can not load the extension (src/vllm). How vLLM
// groups layers, shards heads and names keys is followed by rule (spec/vllm-store.md 1 and 2), and nothing of it was seen: such a descriptor says so by its
// adapter, and is credited only where that is allowed.
import { ContractError } from '../errors.js';
import { type Descriptor, type GroupKind, HASH_CONTRACT, SCHEMA_VERSION, shown } from './descriptor.js';
import { FAMILY } from './from-case.js';
import { modelLayers } from './model-layers.js';
import { derivedAdapterOf, PINNED_REVISION } from './revisions.js';
import { validateContract } from './validate.js';

/** How the engine was started. */
export interface DeriveOptions {
  /** Its --model: a name or a path, of which the last part stands in keys. */
  readonly model: string;
  /** `cache_prefix` of its connector. Default none. */
  readonly cachePrefix?: string | undefined;
  /** Tensor-parallel ranks. Default 1. */
  readonly tp?: number | undefined;
  /** Pipeline-parallel ranks. Default 1. */
  readonly pp?: number | undefined;
  /** Tokens of a block. Default 16; of models with states there is none, for vLLM makes their blocks as large as a state. */
  readonly blockSize?: number | undefined;
  /** Tokens of a hash block (`prefix_match_unit`). Default those of a block. */
  readonly hashBlockSize?: number | undefined;
  /** The value of PYTHONHASHSEED. Default 0. */
  readonly hashSeed?: string | undefined;
}

const DEFAULT_BLOCK_SIZE = 16;
const MAX_BLOCK_SIZE = 1 << 20;
const MAX_RANKS = 1024;
/** Where the most frequent kind has fewer layers than this many times the rarest, groups are as large as the former. */
const BALANCED = 1.25;

/**
 * The descriptor of such an engine, unverified. Its vLLM is taken to be the pinned revision.
 * @param config the model's config.json, parsed
 * @throws ContractError of `modelLayers`; `derive-option` for an option out of range; `derive-block-size`, `derive-heads`; those of `validateContract`
 *   where digests are derived, for what follows from them
 */
export function deriveDescriptor(config: unknown, options: DeriveOptions): Descriptor {
  const { kinds, slidingWindow, kvHeads } = modelLayers(config);
  const { cachePrefix = '', hashSeed = '0' } = options;
  const tp = within('tp', options.tp ?? 1, MAX_RANKS);
  const pp = within('pp', options.pp ?? 1, MAX_RANKS);
  const model = keyName(options.model);
  if (tp % kvHeads !== 0 && kvHeads % tp !== 0) {
    throw refusal(
      'derive-heads',
      `${kvHeads} KV heads do not go into ${tp} tensor-parallel ranks`,
      'vLLM refuses that too',
    );
  }
  const groups = groupKinds(kinds);
  const states = groups.includes('mamba');
  if (states && options.blockSize === undefined) {
    throw refusal(
      'derive-block-size',
      'the model keeps states, and vLLM makes its blocks as large as one',
      'Give the block size that the engine logs at start ("attention block size")',
    );
  }
  const blockSize = within('blockSize', options.blockSize ?? DEFAULT_BLOCK_SIZE, MAX_BLOCK_SIZE);
  const hashBlockSize = within('hashBlockSize', options.hashBlockSize ?? blockSize, MAX_BLOCK_SIZE);
  if (groups.length === 1 && hashBlockSize !== blockSize) {
    throw refusal(
      'derive-block-size',
      `hash blocks have ${hashBlockSize} tokens and blocks ${blockSize}, and the model has one group`,
      'Such a model is hashed by whole blocks: leave the hash block size out',
    );
  }
  const head = cachePrefix === '' ? model : `${cachePrefix}@${model}`;
  const descriptor: Descriptor = {
    schema_version: SCHEMA_VERSION,
    adapter: derivedAdapterOf(PINNED_REVISION),
    vllm_revision: PINNED_REVISION,
    hash: { ...HASH_CONTRACT, seed_policy: `pythonhashseed-${hashSeed}` },
    input: { text_only: true, normalized_namespaces: true, lora: true },
    // Without full attention no group is the main one, which rule 12 finds: such a contract can only be derived from.
    main_event_group: Math.max(0, groups.indexOf('full_attention')),
    main_event_block_size: blockSize,
    gpu_to_store_group: groups.map((_, i) => i),
    coordinator: {
      lcm_block_size: blockSize,
      speculative: false,
      drop_blocks: false,
      partial_hash_hits: states && blockSize > hashBlockSize,
    },
    groups: groups.map((kind, group) => ({
      group_id: group,
      kind,
      spec: `${FAMILY[kind]}Spec`,
      manager: `${FAMILY[kind]}Manager`,
      block_size: blockSize,
      hash_block_size: hashBlockSize,
      key_prefixes: prefixesOf(head, group, shardsOf(kind, tp, kvHeads), pp),
      sliding_window: kind === 'sliding_window' ? slidingWindow : null,
      mamba_cache_mode: kind === 'mamba' ? 'align' : null,
    })),
  };
  validateContract(descriptor, { hashing: 'derived' });
  return descriptor;
}

/**
 * Groups of layers as vLLM makes them: layers of one kind, in the order in which kinds first occur, cut into groups of as many layers as the rarest kind has
 * (or, where kinds are nearly as frequent, the most frequent one).
 */
function groupKinds(layers: readonly GroupKind[]): GroupKind[] {
  const counts = new Map<GroupKind, number>();
  for (const kind of layers) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  if (counts.size === 1) return [layers[0]!];
  const [least, most] = [Math.min(...counts.values()), Math.max(...counts.values())];
  const size = most < least * BALANCED ? most : least;
  return [...counts].flatMap(([kind, count]) => new Array<GroupKind>(Math.ceil(count / size)).fill(kind));
}

/** Ranks that store something of their own: each with its heads, until ranks share heads; and each with its state. */
function shardsOf(kind: GroupKind, tp: number, kvHeads: number): number {
  return kind === 'mamba' ? tp : tp / Math.max(1, Math.floor(tp / kvHeads));
}

function prefixesOf(head: string, group: number, shards: number, pp: number): string[] {
  return Array.from({ length: shards * pp }, (_, i) => {
    const [shard, stage] = [Math.floor(i / pp), i % pp];
    return `${head}@tp_rank:${shard}@pcp0@dcp0@pp_rank:${stage}@group:${group}`;
  });
}

/** The part of --model that stands in keys. */
function keyName(model: unknown): string {
  const name = typeof model === 'string' ? (model.replace(/\/+$/, '').split('/').pop() ?? '') : '';
  if (name !== '') return name;
  throw refusal('derive-option', `model is ${shown(model)}`, "Give the engine's --model, a name or a path");
}

function within(name: string, value: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
  throw refusal('derive-option', `${name} is ${shown(value)}`, `Give a whole number from 1 to ${most}`);
}

function refusal(code: string, seen: string, advice: string): ContractError {
  return new ContractError(code, `no contract can be derived: ${seen}. ${advice}.`);
}
