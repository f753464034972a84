// A small pool around a router, for its tests: workers that announce prompts and a master that stores their objects, all as the bytes that
// the real publishers send. A test says what happened in the pool and never how it is encoded.
import { Encoder } from '@msgpack/msgpack';
import type { Contract } from '../../src/contract/descriptor.js';
import type { Source } from '../../src/events/worker-events.js';
import type { Decision } from '../../src/router/decision.js';
import type { WorkerMessageResult } from '../../src/router/gpu-events.js';
import type { RouteRequest } from '../../src/router/prompt.js';
import { Router, type RouterStoreResult } from '../../src/router/router.js';
import type { RouterOptions } from '../../src/router/router-options.js';
import type { WorkerInfo } from '../../src/router/worker-info.js';
import { type ContractShape, contractOf, framesOf, Prompt, removed, stored, storeMessage } from './messages.js';

type WorkerId = Source['workerId'];

const encoder = new Encoder({ useBigInt64: true });

/** Which blocks an event is about, and what it says otherwise than usual. */
export interface GpuEvent {
  readonly first?: number;
  readonly end?: number;
  /** As on the wire; the device unless said. */
  readonly medium?: string;
  readonly dpRank?: number;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** The events of a message, by the names on the wire. */
export type RawEvent = Readonly<Record<string, unknown>>;

/** A worker's message. */
export function workerMessage(events: readonly unknown[], dpRank = 0, sequence = 0): Uint8Array[] {
  return framesOf(sequence, encoder.encode([1.5, events, dpRank]));
}

/** Block `block`'s engine hash. */
export function hashOf(prompt: Prompt, block: number): bigint {
  return Buffer.from(prompt.digest(block), 'hex').readBigUInt64BE(24);
}

const hashesOf = (prompt: Prompt, first: number, end: number): bigint[] =>
  Array.from({ length: end - first }, (_, i) => hashOf(prompt, first + i));

/** Blocks of a prompt entered a cache. */
export function blockStored(prompt: Prompt, { first = 0, end = prompt.blocks, medium = 'GPU', fields }: GpuEvent = {}) {
  const { blockSize, tokens } = prompt;
  return {
    type: 'BlockStored',
    block_hashes: hashesOf(prompt, first, end),
    parent_block_hash: first === 0 ? null : hashOf(prompt, first - 1),
    token_ids: Array.from(tokens.subarray(first * blockSize, end * blockSize)),
    block_size: blockSize,
    lora_id: null,
    medium,
    lora_name: null,
    ...fields,
  } satisfies RawEvent;
}

/** Blocks of a prompt left a cache. */
export function blockRemoved(
  prompt: Prompt,
  { first = 0, end = prompt.blocks, medium = 'GPU', fields }: GpuEvent = {},
) {
  return { type: 'BlockRemoved', block_hashes: hashesOf(prompt, first, end), medium, ...fields } satisfies RawEvent;
}

/** Settings under which the shared cache is read. */
export const SHARED: RouterOptions = { settings: { sharedCacheType: 'mooncake-store' } };

/** An index that is quickly made. */
const SMALL_INDEX = { bytes: 4 << 20 };

/** A router, and what happens around it. */
export class RouterPool {
  #sequence = 0;

  private constructor(
    readonly router: Router,
    /** The contract that workers have unless a test says otherwise. */
    readonly contract: Contract,
  ) {}

  static async open(options: RouterOptions = {}, shape: ContractShape = {}): Promise<RouterPool> {
    return new RouterPool(await Router.create({ index: SMALL_INDEX, ...options }), contractOf(shape));
  }

  /** A pool whose router reads the shared cache, with workers `0 … count − 1` under the same contract. */
  static async shared(count: number, options: RouterOptions = {}, shape: ContractShape = {}): Promise<RouterPool> {
    const settings = { ...SHARED.settings, ...options.settings };
    const pool = await RouterPool.open({ ...options, settings }, shape);
    for (let id = 0; id < count; id++) pool.add(id);
    return pool;
  }

  /** Adds a worker with the pool's contract. */
  add(id: WorkerId, info: Partial<WorkerInfo> = {}): void {
    this.router.addWorker({ id, contract: this.contract, ...info });
  }

  /** A prompt of so many whole blocks and one token. Prompts of different names share no block. */
  prompt(name: number, blocks: number): Prompt {
    return new Prompt(name, blocks, this.contract);
  }

  /** A worker announces blocks of a prompt. */
  announce(id: WorkerId, prompt: Prompt, event: GpuEvent = {}): WorkerMessageResult {
    return this.router.onWorkerMessage(id, workerMessage([blockStored(prompt, event)], event.dpRank));
  }

  /** A worker loses blocks of a prompt. */
  evict(id: WorkerId, prompt: Prompt, event: GpuEvent = {}): WorkerMessageResult {
    return this.router.onWorkerMessage(id, workerMessage([blockRemoved(prompt, event)], event.dpRank));
  }

  /** A worker loses everything. */
  clear(id: WorkerId, dpRank = 0): WorkerMessageResult {
    return this.router.onWorkerMessage(id, workerMessage([{ type: 'AllBlocksCleared' }], dpRank));
  }

  /** The master stores the objects of a prompt's first `blocks` blocks. */
  store(prompt: Prompt, blocks = prompt.blocks): RouterStoreResult {
    return this.#send(this.#keys(prompt, blocks).map((key) => stored(key)));
  }

  /** The master loses them from block `first` on. */
  unstore(prompt: Prompt, first = 0): RouterStoreResult {
    return this.#send(
      this.#keys(prompt, prompt.blocks)
        .slice(first)
        .map((key) => removed(key)),
    );
  }

  /** A worker announces a prompt and loses it; the store keeps it: what only the store holds. */
  offload(id: WorkerId, prompt: Prompt): void {
    this.announce(id, prompt);
    this.store(prompt);
    this.evict(id, prompt);
  }

  route(prompt: Prompt, request: RouteRequest = {}): Decision {
    return this.router.route({ tokens: prompt.tokens, textOnly: true, ...request });
  }

  #send(events: readonly unknown[]): RouterStoreResult {
    this.#sequence++;
    return this.router.onStoreMessage(storeMessage(this.#sequence, events));
  }

  #keys(prompt: Prompt, blocks: number): string[] {
    return prompt.keys(this.contract).slice(0, blocks * this.contract.groups[0]!.keyPrefixes.length);
  }
}
