// A publisher beside simulated workers, over real sockets on the worker's side and a plane in memory: a reader's index is what the worker holds, through lost
// messages, restarts, refusals and late joins.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { indexedBlocks } from '../src/core/prefix-types.js';
import { SimulatedWorker, type WorkerOptions } from '../src/fleet/worker.js';
import { type PublisherOptions, type PublisherStatus, WorkerPublisher } from '../src/live/plane/publish/publisher.js';
import type { PlanePublisher } from '../src/live/plane/transport.js';
import {
  decodeRecoveryAnswer,
  EventBatchReader,
  encodeRecoveryQuestion,
  type RecoveryAnswer,
  type RouterEvent,
} from '../src/wire/envelope/index.js';
import { post, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { said } from './support/plane-drafts.js';
import { ReferencePrefixIndex } from './support/reference-prefix-index.js';

const TIERS = { device: 'device', host_pinned: 'host', disk: 'disk', external: 'disk' } as const;

/** Keeps what was published, and may refuse it. */
class MemoryPlane implements PlanePublisher {
  readonly url = 'memory';
  maxPayload = 1 << 20;
  readonly onNotice = null;
  readonly events: RouterEvent[] = [];
  messages = 0;
  refusing = false;
  #answer: ((question: Uint8Array) => Uint8Array | Promise<Uint8Array>) | null = null;
  readonly #reader = new EventBatchReader();

  async publish(rank: { dpRank: number }, payload: Uint8Array): Promise<boolean> {
    if (this.refusing) return false;
    const { events, rejected } = this.#reader.read(payload);
    assert.is(rejected.length, 0);
    for (const event of events) assert.is(event.dpRank, rank.dpRank, 'a message is of one rank');
    this.messages++;
    this.events.push(...events);
    return true;
  }

  async serve(answer: (question: Uint8Array) => Uint8Array | Promise<Uint8Array>): Promise<void> {
    this.#answer = answer;
  }

  async ask(question: Uint8Array): Promise<RecoveryAnswer> {
    return decodeRecoveryAnswer(await this.#answer!(question)).answer;
  }

  async close(): Promise<void> {}

  of(dpRank: number): RouterEvent[] {
    return this.events.filter((event) => event.dpRank === dpRank);
  }

  /** Blocks of a rank that a reader from the start would know. */
  blocks(dpRank = 0): Set<string> {
    return held(this.of(dpRank));
  }
}

/** Names of the blocks that a list of events leads to. */
function held(events: readonly RouterEvent[]): Set<string> {
  const index = new ReferencePrefixIndex({ ranks: 64 });
  for (const { data, tier } of events) {
    if (data.kind === 'cleared') index.clear(0);
    else if (data.kind === 'removed')
      index.removed(0, TIERS[tier], indexedBlocks(null, data.hashes, data.hashes).lows, 0, data.hashes.length);
    else index.stored(0, TIERS[tier], indexedBlocks(data.parent, data.hashes, data.locals));
  }
  return new Set(index.dump(0).flatMap(({ hashes }) => [...hashes].map((hash) => hash.toString(16).padStart(16, '0'))));
}

interface Scene {
  readonly worker: SimulatedWorker;
  readonly plane: MemoryPlane;
  readonly publisher: WorkerPublisher;
  ask(name: number, blocks: number, dpRank?: number): Promise<void>;
  status(dpRank?: number): PublisherStatus['ranks'][number];
  /** What readers know becomes what the worker holds. */
  agree(dpRank?: number): Promise<void>;
}

async function scene(
  options: WorkerOptions & { publish?: Partial<PublisherOptions>; withReplay?: boolean },
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const { publish, withReplay = true, ...workerOptions } = options;
  const worker = await SimulatedWorker.start({ gpuBlocks: 200, ...workerOptions });
  const plane = new MemoryPlane();
  const publisher = await WorkerPublisher.open(plane, {
    workerId: 7n,
    events: worker.eventsEndpoints,
    replay: withReplay ? worker.replayEndpoints : null,
    dpRanks: { start: 0, size: worker.dp },
    blockSize: 16,
    indexBytes: 2 << 20,
    trackedBlocks: 4096,
    ...publish,
  });
  const status = (dpRank = 0) => publisher.status().ranks[dpRank]!;
  const blocks = (dpRank: number) => new Set([...(worker.contents(dpRank)[0] ?? [])].map((digest) => digest.slice(48)));
  const same = (a: Set<string>, b: Set<string>): boolean => a.size === b.size && [...a].every((name) => b.has(name));
  try {
    await until('the connection', () => publisher.status().ranks.every(({ stream }) => stream.connected));
    await play({
      worker,
      plane,
      publisher,
      status,
      ask: async (name, count, dpRank = 0) => {
        const body = { prompt: tokensOf(name, count * 16 + 1), max_tokens: 1 };
        const headers = { 'x-data-parallel-rank': `${dpRank}` };
        const response = await post(`${worker.httpUrl}/v1/completions`, body, { headers });
        assert.ok(response.ok, await response.text());
        await worker.flushed();
      },
      agree: (dpRank = 0) =>
        until('what readers know to be what is held', async () => {
          await worker.flushed();
          return same(plane.blocks(dpRank), blocks(dpRank));
        }),
    });
    for (let dpRank = 0; dpRank < worker.dp; dpRank++) {
      const ids = plane.of(dpRank).map(({ eventId }) => eventId);
      if (status(dpRank).outbox.lostEvents === 0)
        assert.equal(
          ids,
          ids.map((_, i) => BigInt(i + 1)),
          'ids run from 1 without a gap',
        );
    }
  } finally {
    await publisher.close();
    await worker.kill();
  }
}

function question(startEventId: bigint | null, dpRank = 0, page: string | null = null): Uint8Array {
  return encodeRecoveryQuestion({
    workerId: 7n,
    dpRank,
    startEventId,
    endEventId: null,
    supportsTreeDumpFailed: true,
    page,
  });
}

if (zeromq !== null) {
  test('what the worker holds is what readers know, evictions included; the life begins and ends with a clear', async () => {
    let events: RouterEvent[] = [];
    await scene({ gpuBlocks: 60 }, async ({ ask, agree, plane, status }) => {
      events = plane.events;
      for (let name = 0; name < 12; name++) await ask(name % 7, 10 + name);
      await agree();
      assert.ok(plane.events.some(({ data }) => data.kind === 'removed'));
      assert.ok(plane.events.some(({ eligible }) => eligible));
      const { pipeline, indexer, outbox } = status();
      assert.is(indexer.lastEventId, pipeline.lastEventId);
      assert.is(outbox.messages, plane.messages);
    });
    assert.is(said(events[0]!), 'clear');
    assert.is(said(events.at(-1)!), 'clear');
    assert.is(held(events).size, 0);
  });

  test('messages lost on the way come from the worker’s replay', async () => {
    await scene({ gpuBlocks: 40 }, async ({ worker, ask, agree, status }) => {
      await ask(1, 10);
      await agree();
      worker.loseNext(3);
      for (let name = 2; name < 8; name++) await ask(name, 10);
      await agree();
      assert.ok(status().stream.counts.replayed > 0);
      assert.equal(status().stream.rebuilds, {});
    });
  });

  test('without a replay a gap clears the rank: a Cleared event goes out, nothing stale stays, and nothing is tracked of before', async () => {
    await scene({ gpuBlocks: 400, withReplay: false }, async ({ worker, ask, plane, status }) => {
      await ask(1, 10);
      await until('the first blocks', () => plane.blocks().size >= 10);
      worker.loseNext(1);
      await ask(2, 10);
      await ask(3, 10);
      await until('the clear', () => status().stream.rebuilds['gap'] === 1);
      await until('what came then', () => plane.events.at(-1)!.data.kind === 'stored');
      assert.is(plane.events.filter(({ data }) => data.kind === 'cleared').length, 2);
      const { entries } = status().indexer;
      assert.ok(plane.blocks().size === 10 && entries >= 10 && status().pipeline.dedup.tracked === 10);
    });
  });

  test('ranks have ids, messages and answers of their own', async () => {
    await scene({ dp: 2 }, async ({ ask, agree, plane }) => {
      await ask(1, 5, 0);
      await ask(2, 8, 1);
      await agree(0);
      await agree(1);
      const dump = await plane.ask(question(null, 1));
      assert.ok(dump.kind === 'tree-dump' && dump.events.every(({ dpRank }) => dpRank === 1));
      assert.is((await plane.ask(question(1n, 0))).kind, 'events');
      assert.is((await plane.ask(question(1n, 2))).kind, 'error');
      assert.is((await plane.ask(Uint8Array.of(0xc1))).kind, 'error');
    });
  });

  test('what a plane refuses for good is missed by id, and can be had by asking', async () => {
    await scene({}, async ({ ask, agree, plane, status, worker }) => {
      await ask(1, 10);
      await agree();
      const last = plane.events.at(-1)!.eventId;
      plane.refusing = true;
      await ask(2, 10);
      await until('a refusal', () => status().outbox.refusals > 0);
      await until('the end of it', () => status().outbox.lostEvents > 0);
      plane.refusing = false;
      await ask(3, 10);
      await until('the next', () => plane.events.at(-1)!.eventId > last);
      const missed = await plane.ask(question(last + 1n));
      assert.ok(missed.kind === 'events' && missed.events[0]!.eventId === last + 1n);
      const dump = await plane.ask(question(null));
      if (dump.kind !== 'tree-dump') throw new Error(dump.kind);
      assert.is(held(dump.events).size, [...(worker.contents(0)[0] ?? [])].length);
    });
  });

  test('with a batching timeout events wait for neighbours; closing sends what waits', async () => {
    let events: RouterEvent[] = [];
    await scene({ publish: { batchingTimeout: 10_000 } }, async ({ ask, plane, status }) => {
      events = plane.events;
      await ask(1, 10);
      await until('the message', () => status().pipeline.eventsIn > 1);
      assert.is(plane.blocks().size, 0);
    });
    assert.ok(events.some(({ data }) => data.kind === 'stored'));
  });
}

for (const [code, options] of [
  ['publish-worker', { workerId: -1n }],
  ['publish-worker', { workerId: 1n << 64n }],
  ['publish-block-size', { blockSize: 0 }],
  ['publish-ranks', { dpRanks: { start: 0, size: 0 } }],
  ['batching-timeout', { batchingTimeout: 15_001 }],
  ['publish-tracked', { trackedBlocks: 0 }],
  ['index-bytes', { indexBytes: 1 }],
  ['endpoint', { events: 'udp://127.0.0.1:1' }],
  ['endpoint', { replay: 'tcp://*:1' }],
  ['live-endpoints', { dpRanks: { start: 0, size: 3 }, events: ['tcp://127.0.0.1:1'] }],
] as const)
  test(`${code} is refused at start: ${Object.keys(options)}`, async () => {
    const plain = { workerId: 1n, events: 'tcp://127.0.0.1:5557', blockSize: 16 };
    try {
      await WorkerPublisher.open(new MemoryPlane(), { ...plain, ...options });
      assert.unreachable();
    } catch (error) {
      assert.is((error as { code: string }).code, code);
    }
  });

test.run();
