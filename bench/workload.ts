// What is measured: the model geometry of the suites (three groups, TP 2), chains of blocks, and both contenders filled alike.
import { encode } from '@msgpack/msgpack';
import type { Core } from '../src/core/core.js';
import type { Plan } from '../src/core/plan.js';
import { randomLongs } from './harness.js';
import type { Rival, RivalOptions } from './rivals/rival.js';

export const BLOCK = 16;
export const CAP = 262_144;
/** (object, medium) pairs at the reference design's cap; as many are filled here. */
const MEMBERSHIPS = 524_286;
const GROUPS = 3;
const RANKS = 2;

/** One chain, as a worker would announce it. */
export interface Chain {
  readonly locals: BigUint64Array;
  readonly children: BigUint64Array;
}

const prefixes = Array.from({ length: GROUPS * RANKS }, (_, i) => ({
  group: Math.floor(i / RANKS),
  text: `prod@Llama-3.1-70B-Instruct@tp_rank:${i % RANKS}@pcp0@dcp0@pp_rank:0@group:${Math.floor(i / RANKS)}`,
}));

/** Full attention, a window of half the chain, mamba; all spans 16 (the study's benchmark geometry). */
export function planFor(blocks: number): Plan {
  return {
    groups: GROUPS,
    learned: {
      blockSize: BLOCK,
      step: 1,
      partial: false,
      endMask: 4n,
      fullUnits: [{ mask: 1n, span: 1, extra: 0 }],
      windowUnits: [{ mask: 2n, span: 1, extra: blocks / 2 }],
    },
    derived: null,
    prefixes,
  };
}

/** The same geometry for a rival. */
export function rivalOptions(blocks: number): RivalOptions {
  return {
    blockSize: BLOCK,
    groups: [
      { kind: 'full_attention', window: null },
      { kind: 'sliding_window', window: (blocks / 2) * BLOCK + 1 },
      { kind: 'mamba', window: null },
    ],
    prefixes,
  };
}

/** Chains of `blocks` blocks that fill the edge cap. */
export function chainsAtCap(blocks: number, seed: bigint): Chain[] {
  return Array.from({ length: CAP / blocks }, (_, i) => ({
    locals: randomLongs(blocks, seed + BigInt(2 * i) * 0x1000n),
    children: randomLongs(blocks, seed + BigInt(2 * i + 1) * 0x1000n),
  }));
}

/** 64 hex digits of a digest whose last 64 bits are `low`. */
export function digestOf(low: bigint): string {
  const part = (salt: bigint) =>
    ((low * 0x9e3779b97f4a7c15n + salt) & 0xffff_ffff_ffff_ffffn).toString(16).padStart(16, '0');
  return part(1n) + part(2n) + part(3n) + low.toString(16).padStart(16, '0');
}

/** A store batch as the master writes it (wire generation A), for the digests' objects under every prefix. */
export function storeBatch(lows: readonly bigint[], kind: 'stored' | 'removed' = 'stored'): Uint8Array {
  let eventId = 0;
  const timestamp = 1_796_015_123_383n;
  const events = lows.flatMap((low) =>
    prefixes.map(({ text }) => ({
      event_id: ++eventId,
      timestamp,
      event_type: kind,
      type: kind === 'stored' ? 'BlockStored' : 'BlockRemoved',
      model_name: null,
      block_size: null,
      additional_salt: null,
      lora_name: null,
      tenant_id: 'default',
      backend_id: 'mooncake-master-1',
      group_id: null,
      medium: 'cpu',
      dp_rank: null,
      object_key: `${text}@${digestOf(low)}`,
      seq_hashes: [],
      block_hashes: [],
      base_block_idx: kind === 'stored' ? 0 : null,
      ...(kind === 'stored' ? { parent_hash: null, token_ids: null, parent_block_hash: null } : {}),
    })),
  );
  return encode([timestamp, events, 0], { useBigInt64: true });
}

/** Teaches both contenders the chains in order, `eventBlocks` blocks an event. */
export function teach(core: Core, rival: Rival | null, chains: readonly Chain[], eventBlocks: number): void {
  for (const chain of chains)
    for (let first = 0; first < chain.locals.length; first += eventBlocks)
      teachPart(core, rival, chain, first, eventBlocks);
}

/** Teaches one stretch of a chain. */
export function teachPart(
  core: Core,
  rival: Rival | null,
  { locals, children }: Chain,
  first: number,
  blocks: number,
): void {
  const parent = first === 0 ? null : children[first - 1]!;
  const part = { locals: locals.subarray(first, first + blocks), children: children.subarray(first, first + blocks) };
  core.loadLocals(part.locals);
  core.learn({ parent, lows: part.children, digests: null, salted: false });
  rival?.learn({ parent, salted: false, ...part });
}

/** Stores objects of the chains' digests, wire bytes and all, up to the reference design's cap of memberships. */
export function fillStore(core: Core, rival: Rival | null, chains: readonly Chain[]): void {
  const room = Math.floor(MEMBERSHIPS / prefixes.length);
  const lows = chains.flatMap(({ children }) => [...children]).slice(0, room);
  for (let first = 0; first < lows.length; first += 64) {
    const payload = storeBatch(lows.slice(first, first + 64));
    core.applyPayload(payload);
    rival?.applyBatch(payload);
  }
}
