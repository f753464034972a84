// The contract that a simulated pool of workers would publish: from the groups and ranks of a configuration, through the same validation
// as a live one.
import type { Contract } from '../contract/descriptor.js';
import { descriptorFromCase } from '../contract/from-case.js';
import { validateContract } from '../contract/validate.js';
import type { SimConfig } from './types.js';

/** All groups have blocks of one size, so that endpoints are block ends and no partial hit is ever offered. */
export function poolContract({
  groups,
  ranks,
  blockSize,
}: Pick<SimConfig, 'groups' | 'ranks' | 'blockSize'>): Contract {
  return validateContract(
    descriptorFromCase({
      hash_block_size: blockSize,
      coordinator_alignment: blockSize,
      partial_hash_hits: false,
      main_event_block_size: blockSize,
      groups: groups.map(({ kind, window }, group) => ({
        group_id: group,
        kind,
        block_size: blockSize,
        window,
        prefixes: Array.from(
          { length: ranks },
          (_, rank) => `sim@model@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:${group}`,
        ),
      })),
    }),
  );
}
