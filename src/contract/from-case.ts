// The descriptor that a worker of an oracle case's geometry would publish. The case files (data/README.md) say what vLLM's
// coordinator was built with, which is all that a descriptor says beyond fixed facts; so a case runs through the same
// validation as a live worker, and whether it is supported is decided before its expected hit is read.
import { type Descriptor, type GroupKind, HASH_CONTRACT, SCHEMA_VERSION } from './descriptor.js';
import { adapterOf, PINNED_REVISION } from './revisions.js';

/** One store group of an oracle case. Spans are in tokens; prefixes without the final `@`. */
export interface OracleCaseGroup {
  readonly group_id: number;
  readonly kind: GroupKind;
  readonly block_size: number;
  readonly window: number | null;
  readonly prefixes: readonly string[];
}

/** The fields of an oracle case that its contract follows from. */
export interface OracleCaseGeometry {
  readonly hash_block_size: number;
  /** The coordinator's span: the LCM of the group block sizes. */
  readonly coordinator_alignment: number;
  readonly partial_hash_hits: boolean;
  /** Block size of the first full-attention group; null if the case has none. */
  readonly main_event_block_size: number | null;
  readonly groups: readonly OracleCaseGroup[];
}

/** Spec and manager names share their first word, which follows from the kind. */
export const FAMILY: Readonly<Record<GroupKind, string>> = {
  full_attention: 'FullAttention',
  sliding_window: 'SlidingWindow',
  mamba: 'Mamba',
};

/**
 * The descriptor of an oracle case, not yet validated. Every store group is its own GPU group. Without a full-attention group
 * it names group 0 and the hash span as the main event source, which breaks rule 12: such a case can only be derived.
 */
export function descriptorFromCase(oracleCase: OracleCaseGeometry): Descriptor {
  const { groups, hash_block_size } = oracleCase;
  return {
    schema_version: SCHEMA_VERSION,
    adapter: adapterOf(PINNED_REVISION),
    vllm_revision: PINNED_REVISION,
    hash: HASH_CONTRACT,
    input: { text_only: true, normalized_namespaces: true, lora: true },
    main_event_group: Math.max(
      0,
      groups.findIndex(({ kind }) => kind === 'full_attention'),
    ),
    main_event_block_size: oracleCase.main_event_block_size ?? hash_block_size,
    gpu_to_store_group: groups.map((_, i) => i),
    coordinator: {
      lcm_block_size: oracleCase.coordinator_alignment,
      speculative: false,
      drop_blocks: false,
      partial_hash_hits: oracleCase.partial_hash_hits,
    },
    groups: groups.map((group) => ({
      group_id: group.group_id,
      kind: group.kind,
      spec: `${FAMILY[group.kind]}Spec`,
      manager: `${FAMILY[group.kind]}Manager`,
      block_size: group.block_size,
      hash_block_size,
      key_prefixes: [...group.prefixes],
      sliding_window: group.window,
      mamba_cache_mode: group.kind === 'mamba' ? 'align' : null,
    })),
  };
}
