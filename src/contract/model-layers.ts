// Which kinds of layers a model has, from its public configuration (config.json of a checkpoint): full attention, sliding windows, or states (mamba and
// linear attention). Each model family says it in fields of its own, so only families that were looked at are read; all else is refused, for a layer that
// is taken for another makes a contract of objects that nobody stores.
import { ContractError } from '../errors.js';
import { type GroupKind, shown } from './descriptor.js';

/** A model's layers that keep something of a prompt. */
export interface ModelLayers {
  /** In the model's order; layers without a cache (plain MLPs) left out. */
  readonly kinds: readonly GroupKind[];
  /** Tokens of the windows, the query token included; null where no layer has one. */
  readonly slidingWindow: number | null;
  /** KV heads of all ranks together. */
  readonly kvHeads: number;
}

/** Most layers of a model: several times those of the deepest. */
export const MAX_LAYERS = 4096;

type Config = Readonly<Record<string, unknown>>;
type ReadKinds = (config: Config) => GroupKind[];

/** What layers are called in `layer_types` and `layers_block_type`; null for those that keep nothing. */
const LAYER_WORDS: Readonly<Record<string, GroupKind | null>> = {
  full_attention: 'full_attention',
  attention: 'full_attention',
  sliding_attention: 'sliding_window',
  linear_attention: 'mamba',
  mamba: 'mamba',
  mlp: null,
  moe: null,
};

/** What the letters of `hybrid_override_pattern` mean. */
const LAYER_LETTERS: Readonly<Record<string, GroupKind | null>> = {
  '*': 'full_attention',
  M: 'mamba',
  '-': null,
  E: null,
};

/** Of each family that is read, where its configuration says what its layers are, and what it means where it does not. */
const FAMILIES: Readonly<Record<string, ReadKinds>> = {
  llama: full,
  gemma: full,
  granite: full,
  mistral: listed(windowed),
  mixtral: listed(windowed),
  qwen2: listed(perhapsWindowed),
  qwen2_moe: listed(perhapsWindowed),
  qwen3: listed(perhapsWindowed),
  qwen3_moe: listed(perhapsWindowed),
  gemma2: listed(every('sliding_window', () => 2)),
  gemma3_text: listed(every('sliding_window', (config) => wholeOf(config, 'sliding_window_pattern', 6))),
  cohere2: listed(every('sliding_window', (config) => wholeOf(config, 'sliding_window_pattern', 4))),
  gpt_oss: listed(every('sliding_window', () => 2)),
  qwen3_next: listed(every('mamba', (config) => wholeOf(config, 'full_attention_interval', 4))),
  jamba: listed(periodic),
  bamba: listed(indexed),
  granitemoehybrid: listed(unsaid),
  nemotron_h: listed(lettered),
};

/** Families whose configurations are read, by their `model_type`. */
export const MODEL_TYPES: readonly string[] = Object.keys(FAMILIES);

/**
 * A model's layers.
 * @param config the parsed config.json, of any shape
 * @throws ContractError `model-config`, `model-multimodal`, `model-encoder`, `model-latent`, `model-shared-layers`, `model-type`, `model-field`,
 *   `model-layers`
 */
export function modelLayers(config: unknown): ModelLayers {
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw refusal('model-config', `it is ${shown(config)}`, "Give the checkpoint's config.json, a JSON object");
  }
  const fields = config as Config;
  refuseUnread(fields);
  const type = fields['model_type'];
  const read = typeof type === 'string' && Object.hasOwn(FAMILIES, type) ? FAMILIES[type] : undefined;
  if (read === undefined) {
    throw refusal(
      'model-type',
      `model_type is ${shown(type)}, read are ${MODEL_TYPES.join(', ')}`,
      'Load the worker extension instead (src/vllm), which asks the engine itself',
    );
  }
  const kinds = read(fields);
  if (kinds.length === 0) {
    throw refusal('model-layers', 'no layer keeps anything of a prompt', 'Serve it without shared-store hints');
  }
  const window = kinds.includes('sliding_window') ? wholeOf(fields, 'sliding_window') : null;
  if (window === 1) {
    throw refusal('model-field', 'sliding_window is 1', 'A window counts the query token, so it is 2 or more');
  }
  const heads = wholeOf(fields, 'num_attention_heads');
  return { kinds, slidingWindow: window, kvHeads: wholeOf(fields, 'num_key_value_heads', heads) };
}

/** Models whose objects no contract covers, whatever their family. */
function refuseUnread(config: Config): void {
  const has = (name: string) => config[name] !== undefined && config[name] !== null && config[name] !== false;
  const parts = ['vision_config', 'audio_config', 'text_config', 'thinker_config'].filter(has);
  if (parts.length > 0) {
    throw refusal(
      'model-multimodal',
      `it has ${parts.join(' and ')}`,
      'Hashes of such models cover more than text: serve it without shared-store hints',
    );
  }
  if (has('is_encoder_decoder')) {
    throw refusal('model-encoder', 'is_encoder_decoder is set', 'Serve it without shared-store hints');
  }
  if (has('kv_lora_rank')) {
    throw refusal(
      'model-latent',
      `kv_lora_rank is ${shown(config['kv_lora_rank'])}`,
      'No contract covers latent attention (MLA): serve it without shared-store hints',
    );
  }
  if (has('num_kv_shared_layers') && config['num_kv_shared_layers'] !== 0) {
    throw refusal(
      'model-shared-layers',
      `num_kv_shared_layers is ${shown(config['num_kv_shared_layers'])}`,
      'Which layers share a cache is not read here: load the worker extension instead (src/vllm)',
    );
  }
}

// ---- how families say it ----

/** By a list of words, where there is one; else by the family's own way. */
function listed(otherwise: ReadKinds): ReadKinds {
  return (config) => {
    const name = ['layer_types', 'layers_block_type'].find((name) => (config[name] ?? null) !== null);
    if (name === undefined) return otherwise(config);
    const words = config[name];
    const layers = layerCount(config);
    if (!Array.isArray(words) || words.length !== layers) {
      throw refusal('model-layers', `${name} is ${shown(words)}`, `It must name each of ${layers} layers`);
    }
    return kept(words, LAYER_WORDS, name);
  };
}

function full(config: Config): GroupKind[] {
  if ((config['layer_types'] ?? null) !== null) return listed(full)(config);
  if ((config['sliding_window'] ?? null) !== null) return unsaid(config);
  return filled(config, () => 'full_attention');
}

/** A window, where there is one, is that of every layer. */
function windowed(config: Config): GroupKind[] {
  const kind = (config['sliding_window'] ?? null) === null ? 'full_attention' : 'sliding_window';
  return filled(config, () => kind);
}

/** A window that is written down and, without `use_sliding_window`, not used. */
function perhapsWindowed(config: Config): GroupKind[] {
  return config['use_sliding_window'] === true ? unsaid(config) : filled(config, () => 'full_attention');
}

/** Every so many layers one of full attention, the last of its period. */
function every(other: GroupKind, periodOf: (config: Config) => number): ReadKinds {
  return (config) => {
    const period = periodOf(config);
    return filled(config, (i) => ((i + 1) % period === 0 ? 'full_attention' : other));
  };
}

function periodic(config: Config): GroupKind[] {
  const period = wholeOf(config, 'attn_layer_period');
  const offset = wholeOf(config, 'attn_layer_offset', undefined, 0);
  return filled(config, (i) => (i % period === offset ? 'full_attention' : 'mamba'));
}

function indexed(config: Config): GroupKind[] {
  const at = config['attn_layer_indices'];
  const layers = layerCount(config);
  if (!Array.isArray(at) || !at.every((i) => Number.isInteger(i) && i >= 0 && i < layers)) {
    throw refusal('model-layers', `attn_layer_indices is ${shown(at)}`, `It must list some of ${layers} layers`);
  }
  return filled(config, (i) => (at.includes(i) ? 'full_attention' : 'mamba'));
}

function lettered(config: Config): GroupKind[] {
  const pattern = config['hybrid_override_pattern'];
  const layers = layerCount(config);
  if (typeof pattern !== 'string' || pattern.length !== layers) {
    throw refusal(
      'model-layers',
      `hybrid_override_pattern is ${shown(pattern)}`,
      `It must have a letter for each of ${layers} layers`,
    );
  }
  return kept([...pattern], LAYER_LETTERS, 'hybrid_override_pattern');
}

function unsaid(config: Config): GroupKind[] {
  throw refusal(
    'model-layers',
    `layer_types is missing in a ${config['model_type']} whose layers differ or may differ`,
    'Give a config.json that has it, as newer versions of transformers write it',
  );
}

// ---- fields ----

function kept(words: readonly unknown[], known: Readonly<Record<string, GroupKind | null>>, name: string): GroupKind[] {
  const kinds = words.map((word, i) => {
    const kind = typeof word === 'string' && Object.hasOwn(known, word) ? known[word] : undefined;
    if (kind !== undefined) return kind;
    throw refusal(
      'model-layers',
      `${name}[${i}] is ${shown(word)}`,
      `Known are ${Object.keys(known).join(', ')}: serve it without shared-store hints`,
    );
  });
  return kinds.filter((kind) => kind !== null);
}

function filled(config: Config, kindOf: (layer: number) => GroupKind): GroupKind[] {
  return Array.from({ length: layerCount(config) }, (_, i) => kindOf(i));
}

function layerCount(config: Config): number {
  const layers = wholeOf(config, 'num_hidden_layers');
  if (layers <= MAX_LAYERS) return layers;
  throw refusal('model-field', `num_hidden_layers is ${layers}`, `It must be at most ${MAX_LAYERS}`);
}

/** A field that is a whole number. Null is taken as missing, as transformers does. */
function wholeOf(config: Config, name: string, otherwise?: number, least = 1): number {
  const value = config[name] ?? otherwise;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
  throw refusal('model-field', `${name} is ${shown(value)}`, `It must be a whole number, ${least} or more`);
}

function refusal(code: string, seen: string, advice: string): ContractError {
  return new ContractError(code, `no contract can be derived from this model's configuration: ${seen}. ${advice}.`);
}
