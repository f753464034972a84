// A small pool for tests of the shared cache: a contract, prompts that a worker announces, and the master's messages about their
// objects. Everything reaches the cache as bytes that the real publishers send (spec/kv-events.md 1.5, spec/mooncake-events.md 3), so
// a test says what happened in the pool and never how it is encoded.
import { Encoder } from '@msgpack/msgpack';
import { SharedCache } from '../../src/cache/shared-cache.js';
import type {
  CacheQuery,
  DecodedObjects,
  Explanation,
  Learned,
  SharedCacheOptions,
  StoreMessageResult,
} from '../../src/cache/types.js';
import type { Contract, Descriptor, GroupKind } from '../../src/contract/descriptor.js';
import { descriptorFromCase } from '../../src/contract/from-case.js';
import { validateContract } from '../../src/contract/validate.js';
import type { Core, CoreExplanation, StoreOutcome } from '../../src/core/core.js';
import { seedOf } from '../../src/core/local-hash.js';
import { sharedNumbers } from '../../src/core/numbers.js';
import { planOf } from '../../src/core/plan.js';
import { EventNormaliser, type NormalisedStored } from '../../src/events/normaliser.js';
import type { Source } from '../../src/events/worker-events.js';
import { writeSequence } from '../../src/wire/frames.js';
import { decodeWorkerMessage } from '../../src/wire/vllm.js';
import { loadCore, type TestBuild } from './cores.js';
import { vllmDigests } from './engine-digests.js';

const encoder = new Encoder({ useBigInt64: true });

// ---- the master's messages ----

/** One event of a store batch, by the names on the wire; tests spread and spoil it. */
export type StoreEvent = Readonly<Record<string, unknown>>;

export interface StoreEventOptions {
  /** Wire generation: the newer one says `dp_rank` in each event. */
  readonly generation?: 'A' | 'C';
  readonly medium?: unknown;
  readonly tenant?: unknown;
}

const TIMESTAMP = 1_796_015_123_383n;

function envelope(
  event_type: string,
  type: string,
  { generation = 'A', medium = 'cpu', tenant = 'default' }: StoreEventOptions,
): StoreEvent {
  return {
    event_id: 1,
    timestamp: TIMESTAMP,
    event_type,
    type,
    model_name: null,
    block_size: null,
    additional_salt: null,
    lora_name: null,
    tenant_id: tenant,
    backend_id: 'test-master',
    medium,
    dp_rank: generation === 'A' ? null : 0,
  };
}

/** An object has been stored. */
export function stored(key: unknown, options: StoreEventOptions = {}): StoreEvent {
  return { ...envelope('stored', 'BlockStored', options), ...keyed(key), base_block_idx: null, parent_hash: null };
}

/** An object has gone. */
export function removed(key: unknown, options: StoreEventOptions = {}): StoreEvent {
  return { ...envelope('removed', 'BlockRemoved', options), ...keyed(key), base_block_idx: null };
}

/** Everything of a tenant has gone; only the newer generation says so. */
export function cleared(options: Omit<StoreEventOptions, 'medium'> = {}): StoreEvent {
  return envelope('cleared', 'AllBlocksCleared', { generation: 'C', ...options, medium: null });
}

const keyed = (key: unknown) => ({ group_id: null, object_key: key, seq_hashes: [], block_hashes: [] });

/** The event without one of its fields. */
export function without(event: StoreEvent, field: string): StoreEvent {
  return Object.fromEntries(Object.entries(event).filter(([name]) => name !== field));
}

/** A batch as payload bytes. */
export function storePayload(events: readonly unknown[]): Uint8Array {
  return encoder.encode([TIMESTAMP, events, 0]);
}

/** A message's three frames around any payload. */
export function framesOf(sequence: bigint | number, payload: Uint8Array): Uint8Array[] {
  return [new Uint8Array(0), writeSequence(BigInt(sequence)), payload];
}

/** A whole message. */
export function storeMessage(sequence: bigint | number, events: readonly unknown[]): Uint8Array[] {
  return framesOf(sequence, storePayload(events));
}

// ---- contracts ----

/** One store group; left out: full attention, the main block size, one rank. */
export interface GroupShape {
  readonly kind?: GroupKind;
  readonly blockSize?: number;
  readonly window?: number;
  /** Ranks that store a part each, hence key prefixes. */
  readonly ranks?: number;
}

export interface ContractShape {
  readonly groups?: readonly GroupShape[];
  /** Tokens of a main event block; 16 unless said. */
  readonly blockSize?: number;
  /** Tokens of a digest; the main event block unless said. */
  readonly hashBlockSize?: number;
  /** Tokens; the main event block unless said. */
  readonly lcm?: number;
  readonly partial?: boolean;
  readonly model?: string;
}

/** A validated contract of that shape. */
export function contractOf(shape: ContractShape = {}): Contract {
  return validateContract(descriptorOf(shape));
}

/** A descriptor of that shape; prefixes are spelled as vLLM's connector does. */
export function descriptorOf({
  groups = [{}],
  blockSize = 16,
  hashBlockSize = blockSize,
  lcm = blockSize,
  partial = false,
  model = 'model',
}: ContractShape = {}): Descriptor {
  return descriptorFromCase({
    hash_block_size: hashBlockSize,
    coordinator_alignment: lcm,
    partial_hash_hits: partial,
    main_event_block_size: blockSize,
    groups: groups.map((group, index) => ({
      group_id: index,
      kind: group.kind ?? 'full_attention',
      block_size: group.blockSize ?? blockSize,
      window: group.window ?? null,
      prefixes: Array.from({ length: group.ranks ?? 1 }, (_, rank) => prefixOf(index, rank, model)),
    })),
  });
}

/** The key prefix of a rank's part of a group. */
export function prefixOf(group: number, rank: number, model = 'model'): string {
  return `${model}@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:${group}`;
}

/** Another digest with the same low 64 bits. */
export function twinOf(digest: string): string {
  return `${'00'.repeat(24)}${digest.slice(48)}`;
}

// ---- prompts ----

/** A prompt of whole main event blocks and one token more, with the digests that vLLM gives them. */
export class Prompt {
  readonly tokens: Uint32Array;
  readonly blockSize: number;
  readonly hashBlockSize: number;
  readonly #digests: readonly string[];

  /** Prompts of different `name` share no block. */
  constructor(
    name: number,
    blocks: number,
    { mainEventBlockSize, hashBlockSize }: Pick<Contract, 'mainEventBlockSize' | 'hashBlockSize'>,
  ) {
    this.tokens = Uint32Array.from({ length: blocks * mainEventBlockSize + 1 }, (_, i) => name * 100_000 + i);
    this.blockSize = mainEventBlockSize;
    this.hashBlockSize = hashBlockSize;
    this.#digests = vllmDigests(this.tokens, hashBlockSize).map((digest) => digest.toString('hex'));
  }

  get blocks(): number {
    return Math.floor(this.tokens.length / this.blockSize);
  }

  /** The digest that covers the first `tokens` tokens, as hex. */
  digestAt(tokens: number): string {
    return this.#digests[tokens / this.hashBlockSize - 1]!;
  }

  /** The digest of main event block `block`, counted from 0. */
  digest(block: number): string {
    return this.digestAt((block + 1) * this.blockSize);
  }

  /** The keys of every object that the store holds when the whole prompt has been stored. */
  keys({ groups }: Pick<Contract, 'groups'>): string[] {
    const keys: string[] = [];
    for (const { blockSize, keyPrefixes } of groups)
      for (let end = blockSize; end < this.tokens.length; end += blockSize)
        for (const prefix of keyPrefixes) keys.push(`${prefix}@${this.digestAt(end)}`);
    return keys;
  }

  /** Digests of all main event blocks as decoded objects have them: eight words each, the first 24 bytes and then the low 64 bits. */
  get digestWords(): Uint32Array {
    const words = new Uint32Array(this.blocks * 8);
    const view = new DataView(words.buffer);
    for (let block = 0; block < this.blocks; block++) {
      const digest = Buffer.from(this.digest(block), 'hex');
      new Uint8Array(words.buffer, block * 32, 24).set(digest.subarray(0, 24));
      view.setBigUint64(block * 32 + 24, digest.readBigUInt64BE(24), true);
    }
    return words;
  }

  query(tokenCount = this.tokens.length): CacheQuery {
    return { tokens: this.tokens, tokenCount, blockSize: this.blockSize, eligible: true };
  }
}

/** Which blocks of a prompt an event announces, and what it says otherwise than usual (by the names on the wire). */
export interface Announcement {
  readonly first?: number;
  readonly end?: number;
  readonly hashes?: 'u64' | 'binary';
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** The worker's event, encoded, decoded again and normalised as the first of its publisher. */
export function announced(
  prompt: Prompt,
  { first = 0, end = prompt.blocks, hashes = 'u64', fields = {} }: Announcement = {},
): NormalisedStored {
  const { blockSize, tokens } = prompt;
  const hashOf = (block: number): unknown => {
    const digest = Buffer.from(prompt.digest(block), 'hex');
    return hashes === 'binary' ? new Uint8Array(digest) : digest.readBigUInt64BE(24);
  };
  const event = {
    type: 'BlockStored',
    block_hashes: Array.from({ length: end - first }, (_, i) => hashOf(first + i)),
    parent_block_hash: first === 0 ? null : hashOf(first - 1),
    token_ids: Array.from(tokens.subarray(first * blockSize, end * blockSize)),
    block_size: blockSize,
    lora_id: null,
    medium: 'GPU',
    lora_name: null,
    ...fields,
  };
  const { batch } = decodeWorkerMessage(framesOf(0, encoder.encode([1.5, [event], 0])));
  const read = batch.events[0];
  if (read?.type !== 'stored') throw new Error(`not read as a stored event: ${JSON.stringify(batch.rejected)}`);
  const normaliser = new EventNormaliser();
  const normalised = normaliser.normalise(normaliser.publisher(), read);
  if (normalised.kind !== 'stored') throw new Error(`not taken as stored: ${JSON.stringify(normalised)}`);
  return normalised;
}

// ---- the pool ----

/** The rank that teaches unless a test says otherwise. */
export const SOURCE: Source = { workerId: 'worker', dpRank: 0 };

/** A cache under a contract, and the one stream it listens to. */
export class Pool {
  /** Sequence of the last message sent by `send`; a test may set it to skip numbers. */
  sequence = 0n;

  private constructor(
    readonly cache: SharedCache,
    readonly contract: Contract,
  ) {}

  static async open(shape: ContractShape = {}, options: SharedCacheOptions = {}): Promise<Pool> {
    const cache = await SharedCache.create(options);
    const contract = contractOf(shape);
    cache.updateContract(contract, [SOURCE]);
    return new Pool(cache, contract);
  }

  prompt(name: number, blocks: number): Prompt {
    return new Prompt(name, blocks, this.contract);
  }

  /** A prompt that the worker has announced and of which every object has been stored. */
  filled(name: number, blocks: number): Prompt {
    const prompt = this.prompt(name, blocks);
    this.teach(prompt);
    this.send(prompt.keys(this.contract).map((key) => stored(key)));
    return prompt;
  }

  teach(prompt: Prompt, announcement: Announcement = {}, source: Source = SOURCE): Learned {
    return this.cache.observeStored(source, announced(prompt, announcement));
  }

  /** The next message of the stream. */
  send(events: readonly unknown[]): StoreMessageResult {
    this.sequence++;
    return this.cache.applyStoreMessage(storeMessage(this.sequence, events));
  }

  /** The next message, with any payload. */
  sendPayload(payload: Uint8Array): StoreMessageResult {
    this.sequence++;
    return this.cache.applyStoreMessage(framesOf(this.sequence, payload));
  }

  /** Objects of a prompt's blocks, decoded already, entered the store or left it. */
  sendDecoded(kind: DecodedObjects['kind'], prompt: Prompt, first = 0, end = prompt.blocks): void {
    const digests = prompt.digestWords;
    this.cache.applyObjects({ kind, medium: 'cpu', group: 0, digests, at: first, count: end - first });
  }

  /** Blocks credited. */
  hits(prompt: Prompt, tokenCount?: number): number {
    return this.cache.lookup(prompt.query(tokenCount)).blocks;
  }

  explain(prompt: Prompt, tokenCount?: number): Explanation {
    return this.cache.explain(prompt.query(tokenCount));
  }

  /** Resident objects of all groups. */
  get objects(): number {
    return this.cache.census().reduce((sum, { objects }) => sum + objects, 0);
  }

  /** How often residency was cleared for that cause. */
  clears(cause: string): number {
    return this.cache.stats().clears[cause] ?? 0;
  }
}

/** The same without the rules around the core, on a build whose caps a test can reach: `tiny` and `tiny-wide` hold 64 edges and digests. */
export class CorePool {
  private constructor(
    readonly core: Core,
    readonly contract: Contract,
  ) {
    core.configure(planOf(contract), 1n);
  }

  static async load(build: TestBuild, shape: ContractShape = {}): Promise<CorePool> {
    return new CorePool(await loadCore(build), contractOf(shape));
  }

  prompt(name: number, blocks = 1): Prompt {
    return new Prompt(name, blocks, this.contract);
  }

  /** Learns a prompt; returns how many blocks were learned or confirmed. */
  teach(prompt: Prompt, announcement: Announcement = {}): number {
    const { event } = announced(prompt, announcement);
    const numbers = event.place(sharedNumbers());
    numbers.hashBlocks(event.tokensAt, event.blockCount, prompt.blockSize, seedOf(null, null), event.hashesAt);
    return this.core.learnRead(numbers, [{ event }], 0, 1, false);
  }

  send(events: readonly unknown[]): StoreOutcome {
    return this.core.applyPayload(storePayload(events));
  }

  /** Stores every object of a prompt. */
  store(prompt: Prompt): StoreOutcome {
    return this.send(prompt.keys(this.contract).map((key) => stored(key)));
  }

  /** Blocks credited; touches the prompt's edges. */
  hits(prompt: Prompt): number {
    return this.core.lookup(this.#load(prompt), prompt.tokens.length);
  }

  /** The same without touching anything. */
  explain(prompt: Prompt): CoreExplanation {
    return this.core.explain(this.#load(prompt), prompt.tokens.length);
  }

  #load({ tokens, blockSize }: Prompt): number {
    return this.core.hashTokens(tokens, blockSize, seedOf(null, null));
  }
}
