// Worker messages from payload bytes to learned edges, beside the plain reader (rivals/worker-messages.ts) over a rival's Maps; and a
// request from token ids to its answer. Both contenders are checked to have learned the same, before and after each measurement.
import { SharedCache } from '../src/cache/shared-cache.js';
import type { CacheQuery } from '../src/cache/types.js';
import type { Contract } from '../src/contract/descriptor.js';
import { descriptorFromCase } from '../src/contract/from-case.js';
import { validateContract } from '../src/contract/validate.js';
import { blockHashes } from '../src/core/local-hash.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { writeSequence } from '../src/wire/frames.js';
import { type Pairing, pair, Sample, timed } from './harness.js';
import type { Rival, RivalOptions } from './rivals/rival.js';
import { localHashers, WorkerMessageRival } from './rivals/worker-messages.js';
import { type Effort, type RivalMaker, type Row, ratioRow } from './suites.js';
import {
  type SessionPart,
  sessionChain,
  type WorkerBatchShape,
  type WorkerForm,
  workerBatch,
} from './worker-workload.js';
import { BLOCK, CAP, rivalOptions, storeBatch } from './workload.js';

const SEED = 0x6d6f6f6e_726f7574n;
const WORKER = 'w0';
const EVENTS = 64;
/** Of rivalOptions: half of it is the sliding window. */
const PROMPT_BLOCKS = 4_096;
/** Digests in one store message; each stands under six prefixes. */
const STORE_DIGESTS = 64;

/** A message shape, and what the project aims at beside the reference rival. */
interface Measured {
  readonly blocks: number;
  readonly form: WorkerForm;
  readonly aim: number | null;
}

const MEASURED: readonly Measured[] = [
  { blocks: 32, form: 'map', aim: 10 },
  { blocks: 32, form: 'positional', aim: 10 },
  { blocks: 8, form: 'map', aim: null },
  { blocks: 8, form: 'positional', aim: null },
  { blocks: 1, form: 'map', aim: 4 },
  { blocks: 1, form: 'positional', aim: 7 },
];

// Blocks that a contender applies in one turn: a few milliseconds of work for either.
const CORE_TURN_BLOCKS = 65_536;
const RIVAL_TURN_BLOCKS = 8_192;
/** Messages before the first one counts: enough for the compiler. */
const WARM_UP = 60;

/** The project's own way: frames in, learned edges out. */
class Ours {
  readonly cache: SharedCache;
  readonly #contract: Contract;
  readonly #workers = new WorkerEvents();
  readonly #frames: [Uint8Array, Uint8Array, Uint8Array];
  readonly #sequence: DataView;
  #next = 0n;
  #storeSequence = 0n;

  private constructor(cache: SharedCache, contract: Contract) {
    this.cache = cache;
    this.#contract = contract;
    const sequence = writeSequence(0n);
    this.#sequence = new DataView(sequence.buffer);
    this.#frames = [new Uint8Array(0), sequence, new Uint8Array(0)];
  }

  static async create({ blockSize, groups, prefixes }: RivalOptions): Promise<Ours> {
    const cache = await SharedCache.create({ tableSeed: SEED });
    const descriptor = descriptorFromCase({
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
    });
    const ours = new Ours(cache, validateContract(descriptor));
    ours.reset();
    return ours;
  }

  /** Forgets everything. */
  reset(): void {
    this.cache.updateContract(null);
    this.cache.updateContract(this.#contract, [{ workerId: WORKER, dpRank: 0 }]);
    this.#storeSequence = 0n;
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

  get edges(): number {
    return this.cache.stats().core!.edges;
  }
}

/** Both, filled alike. */
interface Contenders {
  readonly ours: Ours;
  readonly core: Rival;
  readonly reader: WorkerMessageRival;
}

async function contenders(rival: RivalMaker): Promise<Contenders> {
  const options = rivalOptions(PROMPT_BLOCKS);
  const core = rival.make(options);
  return {
    ours: await Ours.create(options),
    core,
    reader: new WorkerMessageRival(core, await localHashers(), rival.style),
  };
}

/** Messages of 64 events whose edges are known: what vLLM announces again, and what a second rank announces. */
export async function workerSuite(rival: RivalMaker, effort: Effort, aims: boolean): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { blocks, form, aim } of MEASURED) {
    const both = await contenders(rival);
    const shape: WorkerBatchShape = { events: EVENTS, blocksPerEvent: blocks, form };
    const payload = workerBatch({ ...shape, step: 1 });
    for (const message of [workerBatch(shape), payload]) applyBoth(both, message);
    const probe = sessionChain(EVENTS - 1, 2, blocks);
    store(both, probe.hashes);
    const check = () => checkAgree(both, probe, 2 * EVENTS * blocks);
    check();
    const result = pair(
      () => both.ours.apply(payload),
      () => both.reader.apply(payload),
      {
        turns: effort.turns,
        callsA: CORE_TURN_BLOCKS / (EVENTS * blocks),
        callsB: RIVAL_TURN_BLOCKS / (EVENTS * blocks),
        warmA: WARM_UP,
        warmB: WARM_UP,
      },
    );
    check();
    const suite = `worker messages of ${EVENTS} events × ${blocks} blocks (${form === 'map' ? 'maps' : 'arrays'})`;
    rows.push(ratioRow(suite, aims ? aim : null, result, `${rates(result)}, edges known`));
  }
  return rows;
}

/** The same while every block is new and every edge evicts the coldest: prompts of 256 blocks, a message for each 32. */
export async function newWorkerSuite(rival: RivalMaker, effort: Effort): Promise<Row[]> {
  const blocks = 32;
  const steps = 8;
  const calls = 2;
  const perMessage = EVENTS * blocks;
  const warm = CAP / perMessage + steps;
  const prompts = Math.ceil((warm + effort.turns * calls) / steps);
  const shape: WorkerBatchShape = { events: EVENTS, blocksPerEvent: blocks, form: 'map' };
  const payloads = Array.from({ length: prompts * steps }, (_, i) =>
    workerBatch({ ...shape, step: i % steps, firstSession: Math.floor(i / steps) * EVENTS }),
  );
  const both = await contenders(rival);
  let atA = 0;
  let atB = 0;
  const result = pair(
    () => both.ours.apply(payloads[atA++]!),
    () => both.reader.apply(payloads[atB++]!),
    { turns: effort.turns, callsA: calls, callsB: calls, warmA: warm, warmB: warm },
  );
  for (const payload of payloads.slice(atA)) applyBoth(both, payload);
  const probe = sessionChain(prompts * EVENTS - 1, steps, blocks);
  store(both, probe.hashes);
  checkAgree(both, probe, CAP);
  const suite = `worker messages of ${EVENTS} events × ${blocks} blocks (maps), all new, at the cap`;
  return [ratioRow(suite, null, result, rates(result))];
}

const REQUEST_TOKENS = 100_000;
const REQUEST_AIM_MS = 0.08;
/** Blocks of one event of the request's prefill. */
const PREFILL_BLOCKS = 625;
const WARM_LOOKUPS = 500;
const LOOKUPS_A_TURN = 100;

/** A request of 100,000 token ids to its answer, by how much of its prompt is known and resident. */
export async function requestSuite(effort: Effort): Promise<Row[]> {
  const blocks = REQUEST_TOKENS / BLOCK;
  const events = blocks / PREFILL_BLOCKS;
  const ours = await Ours.create(rivalOptions(blocks));
  for (let step = 0; step < events; step++)
    ours.apply(workerBatch({ events: 1, blocksPerEvent: PREFILL_BLOCKS, form: 'map', step }));
  const { tokens, hashes } = sessionChain(0, events, PREFILL_BLOCKS);
  for (const payload of storePayloads(hashes)) ours.applyStore(payload);
  const half = REQUEST_TOKENS / 2;
  // The last token is always computed, so of a prompt of whole blocks the last block is not credited.
  return [
    requestRow(ours, effort, 'the whole prompt known', tokens, REQUEST_TOKENS - BLOCK, REQUEST_AIM_MS),
    requestRow(ours, effort, 'known up to its half', changedAt(tokens, half), half, null),
    requestRow(ours, effort, 'unknown from its first block', changedAt(tokens, 0), 0, null),
  ];
}

function requestRow(
  { cache }: Ours,
  effort: Effort,
  what: string,
  tokens: Uint32Array,
  expected: number,
  aim: number | null,
): Row {
  const query: CacheQuery = { tokens, tokenCount: tokens.length, blockSize: BLOCK, eligible: true };
  const hit = cache.lookup(query).tokens;
  if (hit !== expected) throw new Error(`a request, ${what}: ${hit} tokens credited, expected ${expected}`);
  timed(() => cache.lookup(query), WARM_LOOKUPS);
  const sample = new Sample(
    Array.from({ length: effort.turns * LOOKUPS_A_TURN }, () => timed(() => cache.lookup(query))),
  );
  return {
    suite: `a request of ${REQUEST_TOKENS.toLocaleString('en')} token ids to its answer, ${what}`,
    core: sample,
    rival: null,
    ratio: null,
    aim: aim === null ? null : `p50 ≤ ${aim * 1000} µs`,
    met: aim === null ? null : sample.median <= aim,
    note: `p99 ${(sample.at(0.99) * 1000).toFixed(1)} µs, ${expected.toLocaleString('en')} tokens credited`,
  };
}

/** The prompt with another token there. */
function changedAt(tokens: Uint32Array, index: number): Uint32Array {
  const changed = tokens.slice();
  changed[index] = tokens[index]! ^ 1;
  return changed;
}

function applyBoth({ ours, reader }: Contenders, payload: Uint8Array): void {
  ours.apply(payload);
  reader.apply(payload);
}

/** Stores the objects of those digests at both. */
function store({ ours, core }: Contenders, hashes: BigUint64Array): void {
  for (const payload of storePayloads(hashes)) {
    ours.applyStore(payload);
    core.applyBatch(payload);
  }
}

function storePayloads(hashes: BigUint64Array): Uint8Array[] {
  return Array.from({ length: Math.ceil(hashes.length / STORE_DIGESTS) }, (_, i) =>
    storeBatch([...hashes.subarray(i * STORE_DIGESTS, (i + 1) * STORE_DIGESTS)]),
  );
}

/** A ratio between contenders that learned differently would mean nothing. The probe's objects are stored, and one token follows it. */
function checkAgree({ ours, core }: Contenders, { tokens, hashes }: SessionPart, edges: number): void {
  const fills = [ours.edges, core.counts().edges];
  if (fills.some((fill) => fill !== edges))
    throw new Error(`the contenders disagree: ${fills.join(' and ')} edges, expected ${edges}`);
  const prompt = new Uint32Array(tokens.length + 1);
  prompt.set(tokens);
  const query: CacheQuery = { tokens: prompt, tokenCount: prompt.length, blockSize: BLOCK, eligible: true };
  const hits = [ours.cache.lookup(query).tokens, core.lookup(blockHashes(tokens, BLOCK), prompt.length)];
  if (hits.some((hit) => hit !== hashes.length * BLOCK))
    throw new Error(`the contenders disagree: ${hits.join(' and ')} tokens, expected ${hashes.length * BLOCK}`);
}

function rates({ a, b }: Pairing): string {
  return `${(EVENTS / a.median).toFixed(0)} against ${(EVENTS / b.median).toFixed(0)} k events/s`;
}
