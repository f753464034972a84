// A simulated worker's KV event sockets: what a subscriber hears, what a replay gives in both layouts, and the faults that routers must survive.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { portOf } from '../src/fleet/sockets.js';
import { EVENT_FORMS, parseEncoding } from '../src/fleet/worker/encoding.js';
import { SimulatedWorker, type WorkerOptions } from '../src/fleet/worker.js';
import { Router } from '../src/router/router.js';
import { END_SEQUENCE, ReplayCursor, type ReplayReply } from '../src/wire/replay.js';
import { decodeWorkerBatch, decodeWorkerMessage } from '../src/wire/vllm.js';
import { complete, Listener, replayFrom, tokensOf, until, zeromq } from './support/fleet-worker.js';

const BLOCK = 16;

async function withWorker(options: WorkerOptions, work: (worker: SimulatedWorker) => Promise<void>): Promise<void> {
  const worker = await SimulatedWorker.start({ latency: { timeScale: 0 }, ...options });
  try {
    await work(worker);
  } finally {
    await worker.close();
  }
}

/** A listener that hears already: until it does, clears of an empty cache are published. */
async function listening(worker: SimulatedWorker, dpRank = 0): Promise<Listener> {
  const listener = new Listener(worker.eventsEndpoints[dpRank]!);
  await until('the subscription', () => {
    if (listener.messages.length === 0) worker.clear(dpRank);
    return listener.messages.length > 0;
  });
  await worker.flushed();
  const { nextSequence } = worker.status().ranks[dpRank]!;
  await until('the clears', () => listener.sequences.at(-1) === Number(nextSequence) - 1);
  return listener;
}

/** The tokens of prompts that replies or messages announce. */
const batchesOf = (replies: readonly ReplayReply[]) =>
  replies.flatMap((reply) => (reply.kind === 'batch' ? [{ ...reply, batch: decodeWorkerBatch(reply.payload) }] : []));

if (zeromq !== null) {
  test('a subscriber hears each step that changed blocks, numbered without gaps', () =>
    withWorker({ topic: 'kv-events' }, async (worker) => {
      const listener = await listening(worker);
      try {
        const before = listener.messages.length;
        await complete(worker.httpUrl, tokensOf(1, 3 * BLOCK), { max_tokens: 20, ignore_eos: true });
        worker.evict(1);
        await until('three messages', () => listener.messages.length === before + 3);
        const messages = listener.messages.map((frames) => decodeWorkerMessage(frames));
        const first = Number(messages[0]!.sequence);
        assert.equal(
          messages.map(({ sequence }) => Number(sequence)),
          messages.map((_, i) => first + i),
        );
        assert.equal(new Set(messages.map(({ topic }) => topic)), new Set(['kv-events']));
        assert.equal(
          messages.slice(before).map(({ batch }) => batch.events.map(({ type }) => type)),
          [['stored'], ['stored'], ['removed']],
        );
        const [stored] = messages[before]!.batch.events;
        assert.equal(stored!.type === 'stored' && Array.from(stored!.tokenIds), tokensOf(1, 3 * BLOCK));
      } finally {
        await listener.close();
      }
    }));

  for (const layout of ['with-topic', 'without-topic'] as const) {
    test(`replay ${layout}: batches from the one asked for, then the end marker`, () =>
      withWorker({ replayLayout: layout, topic: 'kv-events' }, async (worker) => {
        for (let name = 1; name <= 4; name++) await complete(worker.httpUrl, tokensOf(name, 2 * BLOCK));
        const [endpoint] = worker.replayEndpoints;
        const { replies, frames } = await replayFrom(endpoint!, 1n);
        const cursor = new ReplayCursor(1n);
        assert.equal(
          replies.map((reply) => cursor.take(reply).kind),
          ['apply', 'apply', 'apply', 'end'],
        );
        assert.equal([cursor.ended, cursor.unrecoverable, cursor.next], [true, false, 4n]);
        assert.ok(frames.every(({ length }) => length === (layout === 'with-topic' ? 4 : 3)));
        assert.equal(
          batchesOf(replies).map(({ sequence, batch }) => [sequence, batch.events.length]),
          [
            [1n, 1],
            [2n, 1],
            [3n, 1],
          ],
        );
        const beyond = await replayFrom(endpoint!, END_SEQUENCE - 1n);
        assert.equal(
          beyond.replies.map(({ kind }) => kind),
          ['end'],
        );
        assert.equal([worker.status().ranks[0]!.replays, worker.status().ranks[0]!.replayedBatches], [2, 3]);
      }));
  }

  test('a buffer that is too small shows as evicted; a lost message can be asked for, one that was never sent can’t', () =>
    withWorker({ bufferSteps: 3 }, async (worker) => {
      const listener = await listening(worker);
      try {
        const ask = (name: number) => complete(worker.httpUrl, tokensOf(name, BLOCK), { max_tokens: 1 });
        const heard = listener.messages.length;
        const first = Number(worker.status().ranks[0]!.nextSequence);
        worker.loseNext(1);
        worker.loseNext(1, 'send');
        for (let name = 1; name <= 4; name++) await ask(name);
        await until('what was not lost', () => listener.messages.length === heard + 2);
        assert.equal(listener.sequences.slice(heard), [first + 2, first + 3]);
        const { replies } = await replayFrom(worker.replayEndpoints[0]!, BigInt(first));
        const cursor = new ReplayCursor(BigInt(first));
        for (const reply of replies) cursor.take(reply);
        assert.equal(cursor.missing, [{ from: BigInt(first + 1), to: BigInt(first + 2), cause: 'hole' }]);
        worker.resizeReplayBuffer(1);
        const late = new ReplayCursor(BigInt(first));
        for (const reply of (await replayFrom(worker.replayEndpoints[0]!, BigInt(first))).replies) late.take(reply);
        assert.equal(
          late.missing.map(({ cause }) => cause),
          ['evicted'],
        );
        assert.is(worker.status().ranks[0]!.lost, 2);
      } finally {
        await listener.close();
      }
    }));

  test('a replay that is silent, one that is slow, and one that is not there', () =>
    withWorker({}, async (worker) => {
      for (let name = 1; name <= 3; name++) await complete(worker.httpUrl, tokensOf(name, BLOCK));
      const [endpoint] = worker.replayEndpoints;
      worker.setReplay('silent');
      assert.equal(await replayFrom(endpoint!, 0n, 100), { replies: [], frames: [], ended: false });
      worker.setReplay({ slowMs: 20 });
      const began = performance.now();
      assert.is((await replayFrom(endpoint!, 0n)).replies.length, 4);
      assert.ok(performance.now() - began > 70);
      worker.setReplay('none');
      for (const bad of [[new Uint8Array(8)], [Buffer.from('x'), new Uint8Array(8)], ['', '', '']]) {
        const before = worker.status().ranks[0]!.badReplayRequests;
        await until('the bad request', async () => {
          assert.is((await replayFrom(endpoint!, 0n, 50, bad)).replies.length, 0);
          return worker.status().ranks[0]!.badReplayRequests > before;
        });
      }
      assert.is((await replayFrom(endpoint!, 0n)).ended, true);
      await withWorker({ replayPort: null }, async ({ replayEndpoints }) => assert.equal(replayEndpoints, []));
    }));

  test('a slow replay does not hold up the end of its worker', () =>
    withWorker({}, async (worker) => {
      await complete(worker.httpUrl, tokensOf(1, BLOCK));
      worker.setReplay({ slowMs: 60_000 });
      const asking = replayFrom(worker.replayEndpoints[0]!, 0n, 1_000);
      await until('the request', () => worker.status().ranks[0]!.replays === 1);
      const began = performance.now();
      await worker.close();
      assert.ok(performance.now() - began < 5_000);
      assert.is((await asking).ended, false);
    }));

  test('a worker that restarts has the same ports, sequences from 0, and nothing cached', () =>
    withWorker({ dp: 2 }, async (worker) => {
      const prompt = tokensOf(1, 4 * BLOCK);
      await complete(worker.httpUrl, prompt);
      const { httpUrl, eventsEndpoints, replayEndpoints } = worker;
      const listener = await listening(worker, 1);
      try {
        const heard = listener.messages.length;
        await worker.kill();
        assert.is(await fetch(`${httpUrl}/health`).catch(() => null), null);
        assert.equal([worker.alive, worker.status().ranks], [false, []]);
        await worker.revive();
        assert.equal(
          [worker.httpUrl, worker.eventsEndpoints, worker.replayEndpoints],
          [httpUrl, eventsEndpoints, replayEndpoints],
        );
        assert.is(worker.status().lives, 2);
        assert.is((await complete(worker.httpUrl, prompt)).usage.prompt_tokens_details.cached_tokens, 0);
        await until('the reconnect', () => {
          worker.clear(1);
          return listener.messages.length > heard;
        });
        const { replies } = await replayFrom(replayEndpoints[1]!, 0n);
        assert.is(batchesOf(replies)[0]!.sequence, 0n);
      } finally {
        await listener.close();
      }
    }));

  test('ranks have ports in a row, streams of their own, and their number in each batch', () =>
    withWorker({ dp: 3 }, async (worker) => {
      for (const endpoints of [worker.eventsEndpoints, worker.replayEndpoints]) {
        const ports = endpoints.map(portOf);
        assert.equal(
          ports,
          [0, 1, 2].map((rank) => ports[0]! + rank),
        );
      }
      for (const rank of [0, 1, 2]) {
        assert.is(worker.clear(rank), true);
        const { replies } = await replayFrom(worker.replayEndpoints[rank]!, 0n);
        assert.equal(
          batchesOf(replies).map(({ sequence, batch }) => [sequence, batch.dpRank]),
          [[0n, rank]],
        );
      }
    }));

  test('a port that is taken is an error that says so, and nothing stays open', () =>
    withWorker({}, async (worker) => {
      const taken = portOf(worker.eventsEndpoints[0]!);
      for (const options of [
        { eventsPort: taken },
        { replayPort: taken },
        { httpPort: Number(new URL(worker.httpUrl).port) },
      ]) {
        const error = await SimulatedWorker.start(options).then(
          async (started) => started.close(),
          (reason: unknown) => reason,
        );
        assert.ok(error instanceof ConfigError && error.code === 'bind-failed');
      }
    }));

  test('every encoding over a real socket leads a router to the same blocks', async () => {
    const router = await Router.create({ policy: 'kv', blockSize: BLOCK });
    const dumps: string[] = [];
    for (const form of EVENT_FORMS) {
      for (const hashes of ['u64', 'i64', 'bytes'] as const) {
        const id = `${form}:${hashes}`;
        router.addWorker({ id });
        await withWorker({ encoding: parseEncoding(id), gpuBlocks: 12 }, async (worker) => {
          for (let name = 1; name <= 4; name++) await complete(worker.httpUrl, tokensOf(name, 3 * BLOCK));
          const { frames } = await replayFrom(worker.replayEndpoints[0]!, 0n);
          for (const [, topic, sequence, payload] of frames.slice(0, -1))
            assert.is(router.onWorkerMessage(id, [topic!, sequence!, payload!]).fate, 'applied', id);
          dumps.push(
            JSON.stringify(router.dump(id), (_, value) => (typeof value === 'bigint' ? String(value) : value)),
          );
          const held = worker.contents()[0]!.size;
          assert.is(
            router.dump(id).reduce((sum, { hashes }) => sum + hashes.length, 0),
            held,
            id,
          );
        });
        router.removeWorker(id);
      }
    }
    assert.is(new Set(dumps).size, 1);
  });
}

test.run();
