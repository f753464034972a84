// What the contract tests share: a valid descriptor wide enough that each rule can be broken in a place of its own, a way to
// catch a refusal, and the oracle case files.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Descriptor, GroupDescriptor, OracleCaseGeometry } from '../../src/contract/index.js';
import { PINNED_REVISION } from '../../src/contract/index.js';
import { ContractError } from '../../src/errors.js';

export type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;

const full = { kind: 'full_attention', spec: 'FullAttentionSpec', manager: 'FullAttentionManager' } as const;
const sliding = { kind: 'sliding_window', spec: 'SlidingWindowSpec', manager: 'SlidingWindowManager' } as const;
const mamba = { kind: 'mamba', spec: 'MambaSpec', manager: 'MambaManager', mamba_cache_mode: 'align' } as const;

const groups: readonly Partial<GroupDescriptor>[] = [
  { ...full, block_size: 16 },
  { ...full, block_size: 16 },
  { ...full, block_size: 32 },
  { ...full, block_size: 32 },
  { ...sliding, block_size: 16, sliding_window: 32 },
  { ...sliding, block_size: 16, sliding_window: 32 },
  { ...sliding, block_size: 32, sliding_window: 100 },
  { ...sliding, block_size: 8, sliding_window: 9 },
  { ...mamba, block_size: 32 },
  { ...mamba, block_size: 64 },
  { ...full, block_size: 64 },
  { ...full, block_size: 48 },
  { ...mamba, block_size: 24 },
  { ...mamba, block_size: 8 },
  { ...full, block_size: 16 },
];

/** A fresh valid descriptor: 15 store groups of every kind, two GPU groups that the store doesn't hold, hash span 8, b 16. */
export function validDescriptor(): Mutable<Descriptor> {
  return {
    schema_version: 1,
    adapter: 'vllm-1085b644',
    vllm_revision: PINNED_REVISION,
    hash: {
      algorithm: 'sha256',
      digest_encoding: 'hex',
      gpu_event_hash: 'low64',
      seed_policy: 'pythonhashseed-0',
      key_separator: '@',
    },
    input: { text_only: true, normalized_namespaces: true, lora: true },
    main_event_group: 1,
    main_event_block_size: 16,
    gpu_to_store_group: [null, ...groups.map((_, i) => i), null],
    coordinator: { lcm_block_size: 192, speculative: false, drop_blocks: false, partial_hash_hits: true },
    groups: groups.map((group, i) => ({
      group_id: i,
      hash_block_size: 8,
      key_prefixes: [1, 0].map((rank) => `pool@model@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:${i}`),
      ...group,
    })) as Mutable<GroupDescriptor>[],
  };
}

/** The smallest valid descriptor: one full-attention group of one rank. */
export function smallDescriptor(): Mutable<Descriptor> {
  const descriptor = validDescriptor();
  descriptor.main_event_group = 0;
  descriptor.gpu_to_store_group = [0];
  descriptor.coordinator.lcm_block_size = 16;
  descriptor.groups.length = 1;
  return descriptor;
}

/** The ContractError that `work` ends in; any other end is a failure of the test. */
export function refusalOf(work: () => unknown): ContractError {
  let result: unknown;
  try {
    result = work();
  } catch (error) {
    if (error instanceof ContractError) return error;
    throw error;
  }
  throw new Error(`expected a ContractError, got ${JSON.stringify(result)}`);
}

/** A case of a case file, as far as contracts are concerned. */
export interface StoredCase extends OracleCaseGeometry {
  readonly name: string;
  readonly family?: string;
  readonly lora_name?: string | null;
  readonly cache_salt?: string | null;
}

/** A case file from test/fixtures or the folder that MOONROUTE_DATA names; undefined where this checkout doesn't have it. */
export function caseFile(name: string): { readonly cases: readonly StoredCase[] } | undefined {
  const folders = ['test/fixtures', process.env['MOONROUTE_DATA'] ?? '../shared/data'];
  const candidates = folders.flatMap((folder) => [join(folder, `${name}.gz`), join(folder, name)]);
  const path = candidates.find((candidate) => existsSync(candidate));
  if (path === undefined) return undefined;
  const bytes = readFileSync(path);
  return JSON.parse((path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8'));
}
