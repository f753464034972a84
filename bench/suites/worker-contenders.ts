// Both ways from a vLLM message's bytes to learned edges: the project's own, through a shared cache, and the plain reader over a rival's Maps.
import { SharedCache } from '../../src/cache/shared-cache.js';
import type { CacheQuery } from '../../src/cache/types.js';
import type { Contract } from '../../src/contract/descriptor.js';
import { descriptorFromCase } from '../../src/contract/from-case.js';
import { validateContract } from '../../src/contract/validate.js';
import { blockHashes } from '../../src/core/local-hash.js';
import type { CoreStats } from '../../src/core/stats.js';
import { WorkerEvents } from '../../src/events/worker-events.js';
import { writeSequence } from '../../src/wire/frames.js';
import { NestedMapCore } from '../rivals/nested-map.js';
import type { Rival, RivalOptions } from '../rivals/rival.js';
import { localHashers, WorkerMessageRival } from '../rivals/worker-messages.js';
import type { SessionPart } from '../worker-workload.js';
import { BLOCK, rivalOptions, storeBatch, TABLE_SEED } from '../workload.js';

const WORKER = 'w0';
/** Digests in one store message; each stands under six prefixes. */
const STORE_DIGESTS = 64;

/** The contract of a geometry. */
export function contractOf({ blockSize, groups, prefixes }: RivalOptions): Contract {
  return validateContract(
    descriptorFromCase({
      hash_block_size: blockSize,
      coordinator_alignment: blockSize,
      partial_hash_hits: false,
      main_event_block_size: blockSize,
      groups: groups.map(({ kind, window }, index) => ({
        group_id: index,
        kind,
        block_size: blockSize,
        window,
        prefixes: prefixes.flatMap(({ text, group }) => (group === index ? text : [])),
      })),
    }),
  );
}

/** Frames in, learned edges out. */
export class Ours {
  readonly cache: SharedCache;
  readonly #workers = new WorkerEvents();
  readonly #frames: [Uint8Array, Uint8Array, Uint8Array];
  readonly #sequence: DataView;
  #next = 0n;
  #storeSequence = 0n;

  private constructor(cache: SharedCache) {
    this.cache = cache;
    const sequence = writeSequence(0n);
    this.#sequence = new DataView(sequence.buffer);
    this.#frames = [new Uint8Array(0), sequence, new Uint8Array(0)];
  }

  static async create(options: RivalOptions): Promise<Ours> {
    const ours = new Ours(await SharedCache.create({ tableSeed: TABLE_SEED }));
    ours.cache.updateContract(contractOf(options), [{ workerId: WORKER, dpRank: 0 }]);
    return ours;
  }

  /** Applies one worker message under the next sequence number, as if it had just come. */
  apply(payload: Uint8Array): void {
    this.#sequence.setBigUint64(0, this.#next++);
    this.#frames[2] = payload;
    this.cache.observeMessage(this.#workers.read(WORKER, this.#frames));
  }

  applyStore(payload: Uint8Array): void {
    this.cache.applyStoreMessage([new Uint8Array(0), writeSequence(this.#storeSequence++), payload]);
  }

  get core(): CoreStats {
    return this.cache.stats().core!;
  }
}

/** Both, with the same geometry. */
export interface Contenders {
  readonly ours: Ours;
  readonly core: Rival;
  readonly reader: WorkerMessageRival;
}

export async function contenders(promptBlocks: number): Promise<Contenders> {
  const options = rivalOptions(promptBlocks);
  const core = new NestedMapCore(options);
  return {
    ours: await Ours.create(options),
    core,
    reader: new WorkerMessageRival(core, await localHashers(), 'plain'),
  };
}

export function applyBoth({ ours, reader }: Contenders, payload: Uint8Array): void {
  ours.apply(payload);
  reader.apply(payload);
}

/** Store messages of all objects of the digests. */
export function storePayloads(hashes: BigUint64Array): Uint8Array[] {
  return Array.from({ length: Math.ceil(hashes.length / STORE_DIGESTS) }, (_, i) =>
    storeBatch([...hashes.subarray(i * STORE_DIGESTS, (i + 1) * STORE_DIGESTS)]),
  );
}

/** A ratio between contenders that learned differently would mean nothing. Stores the probe's objects; one token follows it. */
export function checkAgree({ ours, core }: Contenders, { tokens, hashes }: SessionPart): void {
  for (const payload of storePayloads(hashes)) {
    ours.applyStore(payload);
    core.applyBatch(payload);
  }
  const fills = [ours.core.edges, core.counts().edges];
  if (fills[0] !== fills[1]) throw new Error(`the contenders disagree: ${fills.join(' and ')} edges`);
  const prompt = new Uint32Array(tokens.length + 1);
  prompt.set(tokens);
  const query: CacheQuery = { tokens: prompt, tokenCount: prompt.length, blockSize: BLOCK, eligible: true };
  const hits = [ours.cache.lookup(query).tokens, core.lookup(blockHashes(tokens, BLOCK), prompt.length)];
  if (hits.some((hit) => hit !== hashes.length * BLOCK))
    throw new Error(`the contenders disagree: ${hits.join(' and ')} tokens, expected ${hashes.length * BLOCK}`);
}
