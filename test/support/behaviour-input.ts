// What the behaviour suite (test/runtimes/behaviours.js) is given in every JavaScript engine, as plain JSON: oracle cases, and a small pool for each
// build of the core, whose messages are bytes that real publishers send.
import type { Descriptor } from '../../src/contract/index.js';
import { validateContract } from '../../src/contract/index.js';
import { type ContractShape, descriptorOf, Prompt, removed, stored, storeMessage } from './messages.js';
import { type PreparedCase, preparedCases } from './prepared-cases.js';
import { blockRemoved, blockStored, workerMessage } from './router-pool.js';

/** A pool for one build; frames are base64. */
export interface BehaviourPool {
  readonly build: string;
  /** Of `limits`. */
  readonly edges: number;
  readonly descriptor: Descriptor;
  readonly tokens: number[];
  readonly blockSize: number;
  /** The worker announces the prompt, and loses it again. */
  readonly announced: string[];
  readonly evicted: string[];
  /** The master stores all objects of the prompt, and then removes the last one. */
  readonly stored: string[];
  readonly removed: string[];
}

export interface BehaviourInput {
  readonly cases: PreparedCase[];
  readonly pools: BehaviourPool[];
}

const BLOCKS = 6;
/** Every so many oracle cases. */
const CASE_STEP = 8;
const MIXED: ContractShape = { groups: [{ ranks: 2 }, { kind: 'sliding_window', window: 32 }, { kind: 'mamba' }] };
const MANY: ContractShape = { groups: Array.from({ length: 9 }, (_, i) => (i === 0 ? { ranks: 70 } : {})) };

const base64 = (frames: readonly Uint8Array[]) => frames.map((frame) => Buffer.from(frame).toString('base64'));

function poolOf(build: string, edges: number, shape: ContractShape): BehaviourPool {
  const descriptor = descriptorOf(shape);
  const contract = validateContract(descriptor);
  const prompt = new Prompt(1, BLOCKS, contract);
  const keys = prompt.keys(contract);
  return {
    ...{ build, edges, descriptor, tokens: [...prompt.tokens], blockSize: prompt.blockSize },
    announced: base64(workerMessage([blockStored(prompt)])),
    evicted: base64(workerMessage([blockRemoved(prompt)], 0, 1)),
    stored: base64(
      storeMessage(
        1,
        keys.map((key) => stored(key)),
      ),
    ),
    removed: base64(storeMessage(2, [removed(keys.at(-1))])),
  };
}

export function behaviourInput(): BehaviourInput {
  return {
    cases: preparedCases(CASE_STEP),
    pools: [poolOf('default', 262_144, MIXED), poolOf('wide', 262_144, MANY), poolOf('large', 300_000, MIXED)],
  };
}
