// What vLLM workers say: messages of stored blocks as vLLM 0.26 writes them (events are maps) and as releases before June 2026 did (events
// are arrays), for sessions whose prompts grow event by event. Everything follows from the numbers of session and step, so any message
// can be made again. Fields and their order: spec/kv-events.md 1.4 and 1.5.
import { encode } from '@msgpack/msgpack';
import { randomLongs } from './method/random.js';
import { BLOCK } from './workload.js';

const SEED = 0x776f_726b_6572_7301n;
/** Between the random streams of sessions, of steps, and of tokens and hashes; odd, without meaning. */
const SESSION_STRIDE = 0x2545_f491_4f6c_dd1dn;
const STEP_STRIDE = 0x5851_f42d_4c95_7f2dn;
const HASH_STRIDE = 0x1405_7b7e_f767_814fn;
const MASK64 = 0xffff_ffff_ffff_ffffn;
/** Token ids below this one (a vocabulary of today): 57 % take five bytes on the wire, nearly all others three. */
const VOCABULARY = 151_936;
const TIMESTAMP = 1_789_095_808.88;

export type WorkerForm = 'map' | 'positional';

/** One message: an event for each session, of that session's blocks of that step. */
export interface WorkerBatchShape {
  readonly events: number;
  readonly blocksPerEvent: number;
  readonly form: WorkerForm;
  /** Which event of each session this is; the first one (0) has no parent. Default 0. */
  readonly step?: number;
  /** Number of the first session. Default 0. */
  readonly firstSession?: number;
}

/** The blocks that a session adds in one step. */
export interface SessionPart {
  readonly tokens: Uint32Array;
  /** External hashes, one a block. */
  readonly hashes: BigUint64Array;
}

/** What a session adds in a step. */
export function sessionPart(session: number, step: number, blocks: number): SessionPart {
  const seed = (SEED + BigInt(session) * SESSION_STRIDE + BigInt(step) * STEP_STRIDE) & MASK64;
  const random = randomLongs((blocks * BLOCK) / 2, seed);
  const tokens = new Uint32Array(random.buffer).map((half) => half % VOCABULARY);
  return { tokens, hashes: randomLongs(blocks, (seed + HASH_STRIDE) & MASK64) };
}

/** All that a session has added in its first `steps` steps. */
export function sessionChain(session: number, steps: number, blocksPerStep: number): SessionPart {
  const tokens = new Uint32Array(steps * blocksPerStep * BLOCK);
  const hashes = new BigUint64Array(steps * blocksPerStep);
  for (let step = 0; step < steps; step++) {
    const part = sessionPart(session, step, blocksPerStep);
    tokens.set(part.tokens, step * part.tokens.length);
    hashes.set(part.hashes, step * blocksPerStep);
  }
  return { tokens, hashes };
}

/** The payload of a message. */
export function workerBatch({
  events,
  blocksPerEvent,
  form,
  step = 0,
  firstSession = 0,
}: WorkerBatchShape): Uint8Array {
  const list = Array.from({ length: events }, (_, i) => {
    const event = storedEvent(firstSession + i, step, blocksPerEvent);
    return form === 'map' ? event : Object.values(event);
  });
  return encode([TIMESTAMP, list, 0], { useBigInt64: true });
}

/** Fields in the order of the array form: nine slots, and the two with a default that vLLM fills. */
function storedEvent(session: number, step: number, blocks: number): Record<string, unknown> {
  const { tokens, hashes } = sessionPart(session, step, blocks);
  const parent = step === 0 ? null : sessionPart(session, step - 1, blocks).hashes[blocks - 1]!;
  return {
    type: 'BlockStored',
    block_hashes: Array.from(hashes),
    parent_block_hash: parent,
    token_ids: Array.from(tokens),
    block_size: BLOCK,
    lora_id: null,
    medium: 'GPU',
    lora_name: null,
    extra_keys: Array.from(hashes, () => null),
    group_idx: 0,
    kv_cache_spec_kind: 'full_attention',
  };
}
