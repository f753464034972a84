// Workers' streams over real sockets, against simulated workers that lose messages, restart and forget: what the router believes a rank to hold is
// held against what it holds. Nothing is ever believed that is not there, and nothing that the replay could bring is missing.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SimulatedWorker, type WorkerOptions } from '../src/fleet/worker.js';
import { LiveStreams } from '../src/live/live-streams.js';
import type { WorkerStreamLimits, WorkerStreamStatus } from '../src/live/worker-stream.js';
import { Router } from '../src/router/router.js';
import { complete, post, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { Random } from './support/random.js';
import { TcpGate } from './support/tcp-gate.js';

interface Scene {
  readonly worker: SimulatedWorker;
  readonly router: Router;
  readonly live: LiveStreams;
  readonly gate: TcpGate;
  /** Sends a prompt of so many blocks. */
  ask(name: number, blocks: number, dpRank?: number): Promise<void>;
  status(dpRank?: number): WorkerStreamStatus;
  /** Waits until everything that the worker has said is heard. */
  heard(dpRank?: number): Promise<void>;
  /** Blocks believed, and blocks held. */
  beliefs(dpRank?: number): { believed: Set<string>; held: Set<string> };
  /** They are the same, soon. */
  agree(dpRank?: number): Promise<void>;
  /** Nothing is believed that is not held. */
  noneStale(dpRank?: number): void;
}

interface SceneOptions extends WorkerOptions {
  readonly limits?: Partial<WorkerStreamLimits>;
  readonly withReplay?: boolean;
  readonly before?: (worker: SimulatedWorker) => Promise<void>;
}

async function scene(options: SceneOptions, play: (scene: Scene) => Promise<void>): Promise<void> {
  const { limits, withReplay = true, before, ...workerOptions } = options;
  const worker = await SimulatedWorker.start({ gpuBlocks: 400, ...workerOptions });
  await before?.(worker);
  const router = await Router.create({ index: { bytes: 4 << 20 } });
  const gate = await TcpGate.open(worker.eventsEndpoints[0]!);
  const dpRanks = { start: 0, size: worker.dp };
  const live = LiveStreams.open(router, {
    workers: [
      {
        id: worker.id,
        dpRanks,
        events: [gate.endpoint, ...worker.eventsEndpoints.slice(1)],
        replay: withReplay ? worker.replayEndpoints : null,
      },
    ],
    ...(limits === undefined ? {} : { limits }),
  });
  const status = (dpRank = 0): WorkerStreamStatus => live.status().workers[dpRank]!;
  const beliefs = (dpRank = 0) => {
    const believed = new Set<string>();
    for (const { hashes } of router.dump(worker.id, dpRank))
      for (const hash of hashes) believed.add(hash.toString(16).padStart(16, '0'));
    const held = new Set([...(worker.contents(dpRank)[0] ?? [])].map((digest) => digest.slice(48)));
    return { believed, held };
  };
  const same = ({ believed, held }: ReturnType<Scene['beliefs']>): boolean =>
    believed.size === held.size && [...held].every((hash) => believed.has(hash));
  const parts: Scene = {
    worker,
    router,
    live,
    gate,
    ask: async (name, blocks, dpRank = 0) => {
      const body = { prompt: tokensOf(name, blocks * 16 + 1), max_tokens: 1 };
      const headers = { 'x-data-parallel-rank': `${dpRank}` };
      const response = await post(`${worker.httpUrl}/v1/completions`, body, { headers });
      assert.ok(response.ok, await response.text());
      await worker.flushed();
    },
    status,
    heard: async (dpRank = 0) => {
      await worker.flushed();
      const last = BigInt(worker.status().ranks[dpRank]!.nextSequence) - 1n;
      await until(
        `sequence ${last}`,
        () => status(dpRank).replay !== 'running' && (status(dpRank).lastSequence ?? -1n) >= last,
      );
    },
    beliefs,
    agree: (dpRank = 0) => until('beliefs and blocks to agree', () => same(beliefs(dpRank))),
    noneStale: (dpRank = 0) => {
      const { believed, held } = beliefs(dpRank);
      for (const hash of believed) assert.ok(held.has(hash), `${hash} is not there`);
    },
  };
  try {
    await until('the connection', () => live.status().workers.every(({ connected }) => connected));
    await play(parts);
  } finally {
    await live.close();
    router.dispose();
    await gate.close();
    await worker.kill();
  }
}

const replayed = ({ counts }: WorkerStreamStatus): number => counts.replayed;

if (zeromq !== null) {
  for (const replayLayout of ['with-topic', 'without-topic'] as const) {
    test(`started late: the replay (${replayLayout}) brings what was said before`, async () => {
      const before = async (worker: SimulatedWorker): Promise<void> => {
        for (let i = 0; i < 5; i++) await complete(worker.httpUrl, tokensOf(i, 8 * 16 + 1));
      };
      await scene({ replayLayout, before }, async ({ agree, beliefs, status, ask }) => {
        await agree();
        assert.ok(beliefs().held.size >= 40);
        assert.ok(replayed(status()) >= 5);
        await ask(9, 4);
        await agree();
        assert.equal(status().rebuilds, {});
      });
    });

    test(`messages lost on the way come from the replay (${replayLayout}), in their order`, async () => {
      await scene({ replayLayout, gpuBlocks: 40 }, async ({ worker, ask, heard, agree, status }) => {
        await ask(1, 10);
        await heard();
        worker.loseNext(3);
        // Evictions are among the lost ones: without them the first prompt's blocks would be believed for ever.
        for (let name = 2; name < 8; name++) await ask(name, 10);
        await heard();
        await agree();
        assert.ok(status().counts.gaps >= 1);
        assert.equal(status().rebuilds, {});
      });
    });
  }

  test('a message that the worker could not even send costs the rank its index part, and no stale block stays', async () => {
    await scene({ gpuBlocks: 40 }, async ({ worker, ask, heard, noneStale, status }) => {
      await ask(1, 10);
      await heard();
      worker.loseNext(1, 'send');
      for (let name = 2; name < 6; name++) await ask(name, 10);
      await heard();
      noneStale();
      assert.equal(status().rebuilds, { hole: 1 });
    });
  });

  test('a gap longer than the buffer costs the index part', async () => {
    await scene({ gpuBlocks: 40, bufferSteps: 2 }, async ({ worker, ask, heard, noneStale, status }) => {
      await ask(1, 10);
      await heard();
      worker.loseNext(8);
      for (let name = 2; name < 12; name++) await ask(name, 10);
      await heard();
      noneStale();
      assert.equal(status().rebuilds, { evicted: 1 });
    });
  });

  test('a connection that breaks while the worker lives on: it is recognised, and only what was missed is applied', async () => {
    await scene({}, async ({ ask, heard, agree, gate, status }) => {
      await ask(1, 6);
      await heard();
      const { applied } = status().counts;
      gate.cut();
      await until('the loss', () => Object.keys(status().losses).length > 0);
      await ask(2, 6);
      await agree();
      assert.equal(status().rebuilds, {});
      assert.is(status().counts.restarts, 0);
      assert.ok(status().counts.applied > applied);
    });
  });

  test('a restart: everything of the last life goes, though the next one has come just as far', async () => {
    await scene({}, async ({ worker, ask, heard, agree, beliefs, status }) => {
      await ask(1, 6);
      await heard();
      const first = beliefs().held;
      const { lastSequence } = status();
      await worker.kill();
      await worker.revive();
      while (BigInt(worker.status().ranks[0]!.nextSequence) <= lastSequence!) await ask(2, 6);
      await agree();
      assert.ok([...beliefs().believed].every((hash) => !first.has(hash)));
      await until('the restart to be counted', () => status().counts.restarts === 1);
    });
  });

  for (const [name, fault] of [
    ['does not answer', 'silent'],
    ['answers slowly', { slowMs: 30 }],
  ] as const) {
    test(`a replay socket that ${name}`, async () => {
      const limits = { replayAnswer: 250, replayAttempts: 2 };
      await scene({ limits, gpuBlocks: 60 }, async ({ worker, ask, heard, noneStale, agree, status }) => {
        await ask(1, 6);
        await heard();
        worker.setReplay(fault);
        worker.loseNext(2);
        for (let i = 2; i < 9; i++) await ask(i, 6);
        await heard();
        noneStale();
        if (fault === 'silent') assert.equal(status().rebuilds, { unanswered: 1 });
        else {
          await agree();
          assert.equal(status().rebuilds, {});
        }
      });
    });
  }

  test('no replay socket: every gap and every reconnection costs the index part', async () => {
    await scene(
      { replayPort: null, withReplay: false, gpuBlocks: 40 },
      async ({ worker, ask, heard, noneStale, gate, status }) => {
        await ask(1, 6);
        await heard();
        worker.loseNext(1);
        await ask(2, 6);
        await ask(3, 6);
        await heard();
        noneStale();
        assert.equal(status().rebuilds, { gap: 1 });
        gate.cut();
        await until('the loss', () => Object.keys(status().losses).length > 0);
        await until('the connection', () => status().connected);
        await ask(4, 6);
        await heard();
        noneStale();
        assert.equal(status().rebuilds, { gap: 1, reconnected: 1 });
      },
    );
  });

  test('a replay endpoint where nobody listens is given up, and live messages go on', async () => {
    const limits = { replayAnswer: 200, replayAttempts: 2 };
    await scene({ replayPort: null, withReplay: false }, async ({ worker, router }) => {
      const live = LiveStreams.open(router, {
        workers: [{ id: 'again', events: worker.eventsEndpoints[0]!, replay: 'tcp://127.0.0.1:9' }],
        limits,
      });
      try {
        await until('the replay to be given up', () => live.status().workers[0]!.counts.replayFailures === 1);
        assert.is(live.status().workers[0]!.replay, 'idle');
      } finally {
        await live.close();
      }
    });
  });

  test('a connection that stays down: nothing is believed any more, until it is back', async () => {
    await scene({ limits: { staleAfter: 300 } }, async ({ ask, heard, agree, beliefs, gate, status }) => {
      await ask(1, 6);
      await heard();
      await agree();
      gate.shut();
      await until('the beliefs to end', () => beliefs().believed.size === 0);
      assert.is(status().rebuilds['stale'], 1);
      gate.reopen();
      await agree();
      assert.ok(beliefs().believed.size >= 6);
    });
  });

  test('data-parallel ranks have streams of their own: what one loses costs the other nothing', async () => {
    await scene({ dp: 2, gpuBlocks: 60 }, async ({ worker, ask, heard, agree, noneStale, status }) => {
      await ask(1, 6, 0);
      await ask(2, 6, 1);
      await Promise.all([heard(0), heard(1)]);
      await Promise.all([agree(0), agree(1)]);
      worker.loseNext(1, 'send', 1);
      for (let i = 3; i < 6; i++) await ask(i, 6, 1);
      await heard(1);
      noneStale(1);
      await agree(0);
      assert.equal([status(0).rebuilds, status(1).rebuilds], [{}, { hole: 1 }]);
    });
  });

  test('random faults, seeded: at every quiet moment nothing stale is believed', async () => {
    const random = new Random(7);
    let whole = 0;
    let lossy = 0;
    await scene({ gpuBlocks: 80, bufferSteps: 30 }, async ({ worker, ask, heard, beliefs, gate }) => {
      for (let round = 0; round < 25; round++) {
        for (let i = 0; i < 6; i++) {
          const dice = random.int(12);
          if (dice === 0) {
            worker.loseNext(2, random.int(3) === 0 ? 'send' : 'network');
            lossy += 2;
          } else if (dice === 1) gate.cut();
          else if (dice === 2) worker.clear();
          else if (dice === 3) {
            await worker.kill();
            await worker.revive();
          } else await ask(random.int(12), 1 + random.int(12));
        }
        // As many new prompts as messages may still be on order to be lost, and one that is not.
        for (let i = 0; i <= lossy; i++) await ask(100 + 20 * round + i, 1);
        lossy = 0;
        // A number that was reached may be that of the last life; what is believed then goes a moment later.
        await heard();
        await until('stale blocks to go', () => {
          const { believed, held } = beliefs();
          return [...believed].every((hash) => held.has(hash));
        });
        const { believed, held } = beliefs();
        if (believed.size === held.size) whole++;
      }
    });
    assert.ok(whole >= 5, `${whole} of 25 whole`);
  });

  test.run();
}
