// Models by the geometry of their KV cache, for those who have no numbers of their own. Each says what its bytes are made of: layers ×
// KV heads × head size × 2 (key and value) × 2 bytes (16 bit), all ranks together.
import { ConfigError } from '../../errors.js';
import type { GroupModel } from '../types.js';

interface ModelPreset {
  readonly says: string;
  readonly groups: (blockSize: number) => readonly GroupModel[];
}

/** Key and value, 16 bit each. */
const BYTES_PER_NUMBER = 2 * 2;

const attentionBytes = (layers: number, heads: number, headSize: number, tokens: number): number =>
  layers * heads * headSize * BYTES_PER_NUMBER * tokens;

export const MODEL_PRESETS: Readonly<Record<string, ModelPreset>> = {
  full: {
    says: '80 full-attention layers of 8 KV heads of 128 (Llama 70B): 5.24 MB a 16-token block',
    groups: (blockSize) => [
      { kind: 'full_attention', window: null, bytesPerBlock: attentionBytes(80, 8, 128, blockSize) },
    ],
  },
  sliding: {
    says: '10 full-attention layers and 52 with a window of 1,024 tokens, 16 KV heads of 128 (Gemma 3 27B): 1.31 + 6.82 MB a 16-token block',
    groups: (blockSize) => [
      { kind: 'full_attention', window: null, bytesPerBlock: attentionBytes(10, 16, 128, blockSize) },
      { kind: 'sliding_window', window: 1024, bytesPerBlock: attentionBytes(52, 16, 128, blockSize) },
    ],
  },
  mamba: {
    says: '12 full-attention layers of 2 KV heads of 256, and 36 layers with a state of 32 × 128 × 128 (Qwen3-Next 80B, without its small convolution state): 0.39 MB a 16-token block, 37.7 MB a state',
    groups: (blockSize) => [
      { kind: 'full_attention', window: null, bytesPerBlock: attentionBytes(12, 2, 256, blockSize) },
      { kind: 'mamba', window: null, bytesPerBlock: 36 * 32 * 128 * 128 * 2 },
    ],
  },
};

/** The groups of a preset. @throws ConfigError `model-preset` */
export function presetGroups(name: string, blockSize: number): readonly GroupModel[] {
  const preset = Object.hasOwn(MODEL_PRESETS, name) ? MODEL_PRESETS[name] : undefined;
  if (preset === undefined)
    throw new ConfigError(
      'model-preset',
      `--model ${name} is not known; take ${Object.keys(MODEL_PRESETS).join(', ')}, or describe your own with --groups FILE`,
    );
  return preset.groups(blockSize);
}
