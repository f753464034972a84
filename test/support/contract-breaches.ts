// The 28 contract rules of spec/kv-events.md 6.2 as a table numbered like the spec: ways to break each, with its code and message.
import {
  type Descriptor,
  MAX_GROUPS,
  MAX_PREFIX_BYTES,
  MAX_PREFIXES,
  MAX_SPAN,
  PINNED_REVISION,
} from '../../src/contract/index.js';
import type { Mutable } from './descriptor.js';

export type Breach = (d: Mutable<Descriptor>) => void;

export interface Row {
  readonly rule: number;
  readonly code: string;
  readonly message: string;
  readonly breaches: Readonly<Record<string, Breach>>;
}

export const otherRevision = '0123456789abcdef0123456789abcdef01234567';

// Each row breaks `validDescriptor` in a place of its own, so that any two breaches can be put into one descriptor.
export const rows: readonly Row[] = [
  {
    rule: 1,
    code: 'unsupported-schema',
    message: 'unsupported Mooncake Store schema',
    breaches: {
      'version 2': (d) => (d.schema_version = 2),
      'version 0': (d) => (d.schema_version = 0),
    },
  },
  {
    rule: 2,
    code: 'unsupported-adapter',
    message: 'unsupported Mooncake Store adapter',
    breaches: {
      'another revision': (d) => (d.adapter = 'vllm-01234567'),
      'the full id': (d) => (d.adapter = `vllm-${PINNED_REVISION}`),
      'another engine': (d) => (d.adapter = 'sglang-1085b644'),
    },
  },
  {
    rule: 3,
    code: 'unsupported-revision',
    message: 'unsupported vLLM revision',
    breaches: {
      unknown: (d) => (d.vllm_revision = otherRevision),
      shortened: (d) => (d.vllm_revision = '1085b644'),
      'upper case': (d) => (d.vllm_revision = d.vllm_revision.toUpperCase()),
    },
  },
  {
    rule: 4,
    code: 'unsupported-hash-contract',
    message: 'unsupported Mooncake Store hash contract',
    breaches: {
      algorithm: (d) => (d.hash.algorithm = 'sha256_cbor'),
      encoding: (d) => (d.hash.digest_encoding = 'base64'),
      'event hash': (d) => (d.hash.gpu_event_hash = 'sha256'),
      seed: (d) => (d.hash.seed_policy = 'random'),
      separator: (d) => (d.hash.key_separator = '/'),
    },
  },
  {
    rule: 5,
    code: 'unsupported-input-contract',
    message: 'unsupported Mooncake Store input contract',
    breaches: {
      'text only': (d) => (d.input.text_only = false),
      namespaces: (d) => (d.input.normalized_namespaces = false),
      lora: (d) => (d.input.lora = false),
    },
  },
  {
    rule: 6,
    code: 'zero-block-span',
    message: 'zero Mooncake Store block span',
    breaches: {
      'main events': (d) => (d.main_event_block_size = 0),
      coordinator: (d) => (d.coordinator.lcm_block_size = 0),
    },
  },
  {
    rule: 7,
    code: 'unsupported-speculation',
    message: 'unsupported speculative or block-drop semantics',
    breaches: {
      speculative: (d) => (d.coordinator.speculative = true),
      'drops blocks': (d) => (d.coordinator.drop_blocks = true),
    },
  },
  {
    rule: 8,
    code: 'unsupported-group-count',
    message: 'unsupported Mooncake Store group count',
    breaches: {
      none: (d) => (d.groups = []),
      '65': (d) => (d.groups = Array(MAX_GROUPS + 1).fill(d.groups[0])),
      '100,000': (d) => (d.groups = Array(100_000).fill(d.groups[0])),
    },
  },
  {
    rule: 9,
    code: 'unsupported-group-projection',
    message: 'unsupported GPU group projection',
    breaches: {
      none: (d) => (d.gpu_to_store_group = []),
      '65': (d) => (d.gpu_to_store_group = [...d.gpu_to_store_group, ...Array(MAX_GROUPS).fill(null)].slice(0, 65)),
    },
  },
  {
    rule: 10,
    code: 'incomplete-group-projection',
    message: 'GPU group projection is not ordered and complete',
    breaches: {
      reversed: (d) => d.gpu_to_store_group.reverse(),
      'one missing': (d) => d.gpu_to_store_group.splice(9, 1),
      'one null': (d) => (d.gpu_to_store_group[9] = null),
      'one twice': (d) => d.gpu_to_store_group.splice(9, 0, 8),
      'one too many': (d) => d.gpu_to_store_group.push(15),
    },
  },
  {
    rule: 11,
    code: 'main-group-not-projected',
    message: 'main event group is not projected',
    breaches: {
      'a null entry': (d) => (d.main_event_group = 0),
      'past the end': (d) => (d.main_event_group = 17),
      'far past the end': (d) => (d.main_event_group = Number.MAX_SAFE_INTEGER),
    },
  },
  {
    rule: 12,
    code: 'main-span-not-full-attention',
    message: 'main GPU event span does not identify a full-attention store group',
    breaches: {
      'a sliding window': (d) => (d.main_event_group = 5),
      mamba: (d) => (d.main_event_group = 13),
      'another span': (d) => (d.main_event_block_size = 8),
    },
  },
  {
    rule: 13,
    code: 'main-group-not-first',
    message: 'main event group is not the first full-attention group',
    breaches: { 'the second of the same span': (d) => (d.main_event_group = 2) },
  },
  {
    rule: 14,
    code: 'unobservable-hash-span',
    message: 'unobservable hash span',
    breaches: {
      'no divisor': (d) => (d.groups[0]!.hash_block_size = 5),
      coarser: (d) => (d.groups[0]!.hash_block_size = 32),
      zero: (d) => (d.groups[0]!.hash_block_size = 0),
    },
  },
  {
    rule: 15,
    code: 'unordered-groups',
    message: 'store groups are not ordered and contiguous',
    breaches: {
      repeated: (d) => (d.groups[13]!.group_id = 12),
      'from one': (d) => (d.groups = d.groups.map((group) => ({ ...group, group_id: group.group_id + 1 }))),
    },
  },
  {
    rule: 16,
    code: 'invalid-spans',
    message: 'invalid physical, hash, or coordinator spans',
    breaches: {
      'zero block': (d) => (d.groups[14]!.block_size = 0),
      'unequal hash spans': (d) => (d.groups[14]!.hash_block_size = 16),
      'zero hash span': (d) => (d.groups[14]!.hash_block_size = 0),
      'block no multiple of hash': (d) => (d.groups[14]!.block_size = 12),
      'lcm no multiple of block': (d) => (d.groups[14]!.block_size = 112),
    },
  },
  {
    rule: 17,
    code: 'unsupported-full-attention',
    message: 'unsupported full-attention semantics',
    breaches: {
      spec: (d) => (d.groups[2]!.spec = 'MLAAttentionSpec'),
      manager: (d) => (d.groups[2]!.manager = 'ChunkedLocalAttentionManager'),
      window: (d) => (d.groups[2]!.sliding_window = 32),
      mode: (d) => (d.groups[2]!.mamba_cache_mode = 'align'),
    },
  },
  {
    rule: 18,
    code: 'unobservable-full-attention',
    message: 'unobservable full-attention boundaries',
    breaches: {
      finer: (d) => (d.groups[3]!.block_size = 8),
      'no multiple': (d) => (d.groups[3]!.block_size = 24),
    },
  },
  {
    rule: 19,
    code: 'unsupported-sliding-window-semantics',
    message: 'unsupported sliding-window semantics',
    breaches: {
      spec: (d) => (d.groups[4]!.spec = 'SlidingWindowMLASpec'),
      manager: (d) => (d.groups[4]!.manager = 'FullAttentionManager'),
      mode: (d) => (d.groups[4]!.mamba_cache_mode = 'align'),
    },
  },
  {
    rule: 20,
    code: 'missing-sliding-window',
    message: 'missing sliding window',
    breaches: {
      null: (d) => (d.groups[5]!.sliding_window = null),
      absent: (d) => delete d.groups[5]!.sliding_window,
    },
  },
  {
    rule: 21,
    code: 'unsupported-sliding-window',
    message: 'unsupported sliding window',
    breaches: {
      one: (d) => (d.groups[6]!.sliding_window = 1),
      zero: (d) => (d.groups[6]!.sliding_window = 0),
      'past the span limit': (d) => (d.groups[6]!.sliding_window = MAX_SPAN + 1),
    },
  },
  {
    rule: 22,
    code: 'unobservable-sliding-window',
    message: 'unobservable interior sliding-window boundaries',
    breaches: {
      'two blocks': (d) => (d.groups[7]!.sliding_window = 10),
      'many blocks': (d) => (d.groups[7]!.sliding_window = 1000),
    },
  },
  {
    rule: 23,
    code: 'unsupported-mamba',
    message: 'unsupported Mamba semantics',
    breaches: {
      spec: (d) => (d.groups[8]!.spec = 'Mamba2Spec'),
      manager: (d) => (d.groups[8]!.manager = 'FullAttentionManager'),
      mode: (d) => (d.groups[8]!.mamba_cache_mode = 'all'),
      'null mode': (d) => (d.groups[8]!.mamba_cache_mode = null),
      'absent mode': (d) => delete d.groups[8]!.mamba_cache_mode,
      window: (d) => (d.groups[8]!.sliding_window = 32),
    },
  },
  {
    rule: 24,
    code: 'missing-prefixes',
    message: 'missing required object prefixes',
    breaches: { empty: (d) => (d.groups[9]!.key_prefixes = []) },
  },
  {
    rule: 25,
    code: 'invalid-prefix',
    message: 'invalid Mooncake Store object prefix',
    breaches: {
      empty: (d) => d.groups[10]!.key_prefixes.push(''),
      'ends in @': (d) => d.groups[10]!.key_prefixes.push('pool@model@'),
      '4,097 bytes': (d) => d.groups[10]!.key_prefixes.push('x'.repeat(MAX_PREFIX_BYTES + 1)),
      '2,049 characters of 2 bytes': (d) => d.groups[10]!.key_prefixes.push('é'.repeat(MAX_PREFIX_BYTES / 2 + 1)),
      'no UTF-8 form': (d) => d.groups[10]!.key_prefixes.push('pool@\ud800'),
      'a very long one': (d) => d.groups[10]!.key_prefixes.push('x'.repeat(50_000_000)),
    },
  },
  {
    rule: 26,
    code: 'too-many-prefixes',
    message: 'too many required object prefixes',
    breaches: {
      'one too many': (d) => fillPrefixes(d, 11, MAX_PREFIXES + 1),
      'one group alone': (d) => (d.groups[11]!.key_prefixes = Array(100_000).fill('pool@model')),
    },
  },
  {
    rule: 27,
    code: 'duplicate-prefix',
    message: 'duplicate required object prefix',
    breaches: {
      'in a group': (d) => d.groups[12]!.key_prefixes.push(d.groups[12]!.key_prefixes[0]!),
      'across groups': (d) => d.groups[12]!.key_prefixes.push(d.groups[0]!.key_prefixes[1]!),
    },
  },
  {
    rule: 28,
    code: 'alignment-overflow',
    message: 'Mooncake Store alignment overflow',
    breaches: {
      'past the span limit': (d) => (d.coordinator.lcm_block_size = 192 * 11_184_811),
      'past 2^32': (d) => (d.coordinator.lcm_block_size = 192 * 2 ** 40),
    },
  },
];

/** Gives group `at` so many prefixes that all groups together have `total`. */
export function fillPrefixes(d: Mutable<Descriptor>, at: number, total: number): void {
  const others = d.groups.reduce((sum, group, i) => sum + (i === at ? 0 : group.key_prefixes.length), 0);
  d.groups[at]!.key_prefixes = Array.from({ length: total - others }, (_, i) => `pool@filled:${i}`);
}
