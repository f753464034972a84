// Publishing on an event plane: what one worker's rank says, from its events to the bytes of messages, de-duplicated, coalesced, numbered and batched; beside
// each event numbered and sent by itself. The stream is a full GPU's: prompts grow by so many blocks a step, and each block that comes in evicts another,
// which vLLM announces one by one.
import { type Draft, numbered } from '../../src/live/plane/publish/draft.js';
import { RankPipeline } from '../../src/live/plane/publish/rank-pipeline.js';
import { EventBatchReader, encodeEvents } from '../../src/wire/envelope/index.js';
import type { RouterEvent } from '../../src/wire/envelope/types.js';
import { randomLongs } from '../method/random.js';
import type { Contest, TimedSuite } from '../suite.js';

const SIZES = [1, 2, 4, 8, 16, 32];
/** Prompts that grow in one step of the engine, each with one event. */
const SESSIONS = 8;
/** Steps of the engine, each one native batch; after the last one the first comes again. */
const STEPS = 16;
/** Steps after which a block is evicted. */
const KEPT_STEPS = 8;
/** Blocks of a prompt on its way in are announced in events of so many steps. */
const CHUNKS = 2;
const TRACKED = 65_536;
const SEED = 0x706c_616e_6521_0001n;
const WORKER = 7n;

/** All native batches, of which a block's store and removal stand so far apart that the stream can go round and round. */
function nativeBatches(blocks: number): Draft[][] {
  const count = SESSIONS * CHUNKS * blocks;
  const steps = Array.from({ length: STEPS }, (_, step) => ({
    hashes: randomLongs(count, SEED + BigInt(step)),
    locals: randomLongs(count, SEED + BigInt(STEPS + step)),
  }));
  return steps.map(({ hashes, locals }, step) => {
    const drafts: Draft[] = [];
    const gone = steps[(step + STEPS - KEPT_STEPS) % STEPS]!.hashes;
    for (let chunk = 0; chunk < SESSIONS * CHUNKS; chunk++) {
      const from = chunk * blocks;
      for (let at = from; at < from + blocks; at++) {
        drafts.push(draft({ kind: 'removed', hashes: gone.subarray(at, at + 1) }, false));
      }
    }
    for (let chunk = 0; chunk < SESSIONS * CHUNKS; chunk++) {
      const from = chunk * blocks;
      const parent = chunk % CHUNKS === 0 ? null : hashes[from - 1]!;
      const part = { hashes: hashes.slice(from, from + blocks), locals: locals.slice(from, from + blocks) };
      drafts.push(draft({ kind: 'stored', parent, startPosition: null, ...part, mm: null }, true));
    }
    return drafts;
  });
}

function draft(data: Draft['data'], eligible: boolean): Draft {
  return {
    workerId: WORKER,
    dpRank: 0,
    tier: 'device',
    domain: null,
    data,
    eligible,
    contradicts: false,
    sessionId: null,
    stateSource: null,
  };
}

/** Coalesced: once around the stream. */
function coalesced(
  pipeline: RankPipeline,
  batches: readonly (readonly Draft[])[],
  send: (bytes: Uint8Array) => void,
): void {
  for (const drafts of batches) {
    pipeline.batch(drafts, 0);
    for (let events = pipeline.queue.take(); events.length > 0; events = pipeline.queue.take())
      send(encodeEvents(events));
  }
}

/** Plainly: each event by itself. */
function unbatched(lastId: bigint, batches: readonly (readonly Draft[])[], send: (bytes: Uint8Array) => void): bigint {
  let eventId = lastId;
  for (const drafts of batches) for (const event of drafts) send(encodeEvents([numbered(event, ++eventId)]));
  return eventId;
}

/** Messages and bytes. */
class Sent {
  messages = 0;
  bytes = 0;
  readonly send = (bytes: Uint8Array): void => {
    this.messages++;
    this.bytes += bytes.length;
  };
}

/** What a reader of the messages holds. */
class Reader {
  readonly held = new Set<bigint>();
  readonly #reader = new EventBatchReader();
  readonly send = (bytes: Uint8Array): void => {
    for (const { data } of this.#reader.read(bytes).events as readonly RouterEvent[]) {
      if (data.kind === 'stored') for (const hash of data.hashes) this.held.add(hash);
      else if (data.kind === 'removed') for (const hash of data.hashes) this.held.delete(hash);
    }
  };
}

function contest(blocks: number): Contest {
  const batches = nativeBatches(blocks);
  const items = 2 * STEPS * SESSIONS * CHUNKS * blocks;
  const pipeline = new RankPipeline({ trackedBlocks: TRACKED });
  let lastId = 0n;
  const sent = new Sent();
  return {
    a: { items, run: () => coalesced(pipeline, batches, sent.send) },
    b: {
      items,
      run: () => {
        lastId = unbatched(lastId, batches, sent.send);
      },
    },
    check() {
      const [ours, plain] = [new Reader(), new Reader()];
      coalesced(pipeline, batches, ours.send);
      unbatched(lastId, batches, plain.send);
      const same = ours.held.size === plain.held.size && [...plain.held].every((hash) => ours.held.has(hash));
      if (!same || ours.held.size !== SESSIONS * CHUNKS * blocks * KEPT_STEPS)
        throw new Error(`${ours.held.size} blocks are held coalesced, ${plain.held.size} unbatched`);
    },
    counters() {
      const [ours, plain] = [new Sent(), new Sent()];
      coalesced(new RankPipeline({ trackedBlocks: TRACKED }), batches, ours.send);
      unbatched(0n, batches, plain.send);
      return {
        messages: ours.messages,
        wireBytes: ours.bytes,
        unbatchedMessages: plain.messages,
        unbatchedBytes: plain.bytes,
      };
    },
  };
}

export const planeSuites: readonly TimedSuite[] = [
  {
    ...{ kind: 'time', name: 'plane-publish', title: 'publishing on an event plane, coalesced', unit: 'block' },
    ...{ rival: 'each event by itself', sizeOf: 'blocks an event', sizes: SIZES, quickSizes: [1, 32] },
    aims: { 1: 1.2, 32: 2 },
    make: async () => contest,
  },
];
