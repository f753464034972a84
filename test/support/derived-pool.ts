// A pool for tests of derived hashes: engines that hash with any seed, adapter and salt (node:crypto), a store that any of them filled, and a cache
// that is told a contract. Everything reaches the cache as the bytes that real publishers send.
import { Encoder } from '@msgpack/msgpack';
import { SharedCache } from '../../src/cache/shared-cache.js';
import type { CacheQuery, Explanation, Learned, SharedCacheOptions } from '../../src/cache/types.js';
import { type Contract, type Descriptor, HASH_CONTRACT } from '../../src/contract/descriptor.js';
import { descriptorFromCase } from '../../src/contract/from-case.js';
import { validateContract } from '../../src/contract/validate.js';
import { CACHE_SALT_PREFIX } from '../../src/events/namespace.js';
import type { Source, WorkerMessage } from '../../src/events/worker-events.js';
import { WorkerEvents } from '../../src/events/worker-events.js';
import { vllmDigests } from './engine-digests.js';
import { type ContractShape, framesOf, prefixOf, SOURCE, stored, storeMessage } from './messages.js';

const encoder = new Encoder({ useBigInt64: true });
export const BLOCK = 16;

/** A contract's shape, and how it says that its engines hash. */
export interface DerivedShape extends ContractShape {
  readonly seedPolicy?: string;
  /** Events of no group are known to be dense: rule 11 is broken. */
  readonly noMainGroup?: boolean;
}

/** The descriptor of that shape. */
export function derivedDescriptor(shape: DerivedShape = {}): Descriptor {
  const { groups = [{}], blockSize = BLOCK, hashBlockSize = blockSize, lcm = blockSize, partial = false } = shape;
  const descriptor = descriptorFromCase({
    hash_block_size: hashBlockSize,
    coordinator_alignment: lcm,
    partial_hash_hits: partial,
    main_event_block_size: blockSize,
    groups: groups.map((group, index) => ({
      group_id: index,
      kind: group.kind ?? 'full_attention',
      block_size: group.blockSize ?? blockSize,
      window: group.window ?? null,
      prefixes: Array.from({ length: group.ranks ?? 1 }, (_, rank) => prefixOf(index, rank)),
    })),
  });
  return {
    ...descriptor,
    main_event_group: shape.noMainGroup ? groups.length : descriptor.main_event_group,
    hash: { ...HASH_CONTRACT, seed_policy: shape.seedPolicy ?? HASH_CONTRACT.seed_policy },
  };
}

export function derivedContractOf(shape: DerivedShape = {}): Contract {
  return validateContract(derivedDescriptor(shape), { hashing: 'derived' });
}

/** What a prompt's engine hashes besides its tokens. */
export interface Scope {
  readonly loraName?: string | null;
  readonly namespace?: string | null;
  readonly rawSalt?: string | null;
  /** PYTHONHASHSEED of the engine; 0 unless said. */
  readonly seed?: string;
}

/** How its event differs from a plain one. */
export interface Announcement {
  readonly first?: number;
  readonly end?: number;
  readonly hashes?: 'u64' | 'binary';
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** A prompt of whole main event blocks and one token, as an engine hashes it. */
export class Hashed {
  readonly tokens: Uint32Array;
  readonly digests: readonly string[];

  /** Prompts of different `name` share no block; `tokens` are given where they are to. */
  constructor(
    name: number,
    readonly blocks: number,
    readonly scope: Scope = {},
    readonly contract: Pick<Contract, 'mainEventBlockSize' | 'hashBlockSize'> = {
      mainEventBlockSize: BLOCK,
      hashBlockSize: BLOCK,
    },
  ) {
    const { loraName = null, namespace, rawSalt = null, seed = '0' } = scope;
    this.tokens = Uint32Array.from({ length: blocks * contract.mainEventBlockSize + 1 }, (_, i) => name * 100_000 + i);
    const cacheSalt = namespace ? CACHE_SALT_PREFIX + namespace : rawSalt;
    this.digests = vllmDigests(this.tokens, contract.hashBlockSize, { seed, loraName, cacheSalt }).map((digest) =>
      digest.toString('hex'),
    );
  }

  /** The digest of the first `end` main event blocks. */
  digest(end: number): string {
    const { mainEventBlockSize, hashBlockSize } = this.contract;
    return this.digests[(end * mainEventBlockSize) / hashBlockSize - 1]!;
  }

  /** Keys of all its objects. */
  keys({ groups, hashBlockSize }: Pick<Contract, 'groups' | 'hashBlockSize'>): string[] {
    return groups.flatMap(({ blockSize, keyPrefixes }) =>
      Array.from({ length: Math.floor((this.tokens.length - 1) / blockSize) }, (_, i) => (i + 1) * blockSize).flatMap(
        (end) => keyPrefixes.map((prefix) => `${prefix}@${this.digests[end / hashBlockSize - 1]}`),
      ),
    );
  }

  query(change: Partial<CacheQuery> = {}): CacheQuery {
    const { loraName = null, namespace = null, rawSalt = null } = this.scope;
    const blockSize = this.contract.mainEventBlockSize;
    const scope = { loraName, cacheSalt: namespace, rawSalt };
    return { tokens: this.tokens, tokenCount: this.tokens.length, blockSize, eligible: true, ...scope, ...change };
  }

  /** The worker's event, by the names on the wire. */
  event({ first = 0, end = this.blocks, hashes = 'u64', fields = {} }: Announcement = {}): Record<string, unknown> {
    const { loraName = null, namespace, rawSalt } = this.scope;
    const size = this.contract.mainEventBlockSize;
    const hashOf = (at: number): unknown => {
      const digest = Buffer.from(this.digest(at), 'hex');
      return hashes === 'binary' ? new Uint8Array(digest) : digest.readBigUInt64BE(24);
    };
    const salt = namespace ? CACHE_SALT_PREFIX + namespace : rawSalt;
    const keysOf = (block: number) => {
      const keys = [...(loraName ? [loraName] : []), ...(salt && block === 0 ? [salt] : [])];
      return keys.length > 0 ? keys : null;
    };
    return {
      type: 'BlockStored',
      block_hashes: Array.from({ length: end - first }, (_, i) => hashOf(first + i + 1)),
      parent_block_hash: first === 0 ? null : hashOf(first),
      token_ids: Array.from(this.tokens.subarray(first * size, end * size)),
      block_size: size,
      lora_id: loraName ? 1 : null,
      medium: 'GPU',
      lora_name: loraName,
      extra_keys: Array.from({ length: end - first }, (_, i) => keysOf(first + i)),
      ...fields,
    };
  }
}

/** A worker's message, frames of its rank. */
export function workerFrames(events: readonly unknown[], dpRank = 0): Uint8Array[] {
  return framesOf(0, encoder.encode([1.5, events, dpRank]));
}

/** A cache that derives, under a contract. */
export class DerivedPool {
  readonly #events = new WorkerEvents();
  #sequence = 0n;

  private constructor(
    readonly cache: SharedCache,
    readonly contract: Contract,
  ) {}

  static async open(
    options: SharedCacheOptions = {},
    shape: DerivedShape = {},
    sources: readonly Source[] = [SOURCE],
  ): Promise<DerivedPool> {
    const cache = await SharedCache.create({ hashing: 'derived', ...options });
    const contract = derivedContractOf(shape);
    cache.updateContract(contract, sources);
    return new DerivedPool(cache, contract);
  }

  prompt(name: number, blocks: number, scope: Scope = {}): Hashed {
    return new Hashed(name, blocks, scope, this.contract);
  }

  /** An engine has stored all objects of the prompt. */
  store(prompt: Hashed, keys = prompt.keys(this.contract)): void {
    this.send(keys.map((key) => stored(key)));
  }

  send(events: readonly unknown[]): void {
    this.#sequence++;
    this.cache.applyStoreMessage(storeMessage(this.#sequence, events));
  }

  /** A worker's message as it is read. */
  read(events: readonly unknown[], source: Source = SOURCE): WorkerMessage {
    return this.#events.read(source.workerId, workerFrames(events, source.dpRank));
  }

  /** A worker announces blocks of a prompt. */
  teach(prompt: Hashed, announcement: Announcement = {}, source: Source = SOURCE): Learned {
    const message = this.read([prompt.event(announcement)], source);
    const [event] = message.events;
    if (event?.kind !== 'stored') throw new Error(`not read as a stored event: ${JSON.stringify(message.rejected)}`);
    return this.cache.observeStored(source, event);
  }

  /** The same as a whole message. */
  tell(events: readonly unknown[], source: Source = SOURCE): number {
    return this.cache.observeMessage(this.read(events, source));
  }

  /** Blocks credited. */
  hits(prompt: Hashed, change: Partial<CacheQuery> = {}): number {
    return this.cache.lookup(prompt.query(change)).blocks;
  }

  explain(prompt: Hashed, change: Partial<CacheQuery> = {}): Explanation {
    return this.cache.explain(prompt.query(change));
  }

  /** Codes of the reasons. */
  codes(prompt: Hashed, change: Partial<CacheQuery> = {}): string[] {
    return this.explain(prompt, change).reasons.map(({ code }) => code);
  }
}
