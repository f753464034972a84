// What is measured: the model geometry of the suites (three groups, TP 2), chains of blocks, and both contenders filled alike.
import { encode } from '@msgpack/msgpack';
import type { Core } from '../src/core/core.js';
import type { Plan } from '../src/core/plan.js';
import { randomLongs } from './method/random.js';
import type { Rival, RivalOptions, StoreTarget } from './rivals/rival.js';

export const BLOCK = 16;
export const CAP = 262_144;
/** Of hash tables and workloads: with another one, counters are others. */
export const TABLE_SEED = 0x6d6f6f6e_726f7574n;
/** (object, medium) pairs at the reference design's cap; as many are filled here. */
const MEMBERSHIPS = 524_286;
const GROUPS = 3;
const RANKS = 2;
/** Objects of a digest. */
export const PREFIXES = GROUPS * RANKS;

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

/** Digests as the core takes them: eight words each. */
export function digestWords(lows: readonly bigint[]): Uint32Array {
  const words = new Uint32Array(lows.length * 8);
  const bytes = new DataView(words.buffer);
  lows.forEach((low, i) => {
    const text = digestOf(low);
    for (let part = 0; part < 3; part++)
      bytes.setBigUint64(i * 32 + part * 8, BigInt(`0x${text.slice(part * 16, part * 16 + 16)}`));
    bytes.setBigUint64(i * 32 + 24, low, true);
  });
  return words;
}

/** Stores, or removes, all objects of the digests `from` … `to` in the core. */
export function applyCore(core: Core, digests: Uint32Array, from: number, to: number, removes = false): void {
  // A run of prefixes lies in one group.
  for (let first = 0; first < PREFIXES; first += RANKS)
    core.applyObjects({ removes, media: 1, first, end: first + RANKS, digests, at: from, count: to - from });
}

/** The same of a rival. */
export function applyRival(
  rival: StoreTarget,
  texts: readonly string[],
  from: number,
  to: number,
  removes = false,
): void {
  for (let i = from; i < to; i++)
    for (let prefix = 0; prefix < prefixes.length; prefix++) {
      if (removes) rival.removed(texts[i]!, prefix, 1);
      else rival.stored(texts[i]!, prefix, 1);
    }
}

/** Stores objects of the chains' digests up to the reference design's cap of memberships. */
export function fillStore(core: Core, rival: StoreTarget | null, chains: readonly Chain[]): void {
  const room = Math.floor(MEMBERSHIPS / prefixes.length);
  const lows = chains.flatMap(({ children }) => [...children]).slice(0, room);
  applyCore(core, digestWords(lows), 0, lows.length);
  if (rival !== null) applyRival(rival, lows.map(digestOf), 0, lows.length);
}
