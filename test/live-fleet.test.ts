// A whole simulated pool on real sockets: what a decision counts on is held against what the chosen worker's engine then restores. Never more,
// as long as everything that was said has been heard; and where events can show it, just as much.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Fleet, type FleetOptions } from '../src/fleet/fleet.js';
import type { GroupOptions } from '../src/fleet/worker/geometry.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import { complete, until, zeromq } from './support/fleet-worker.js';
import { Random } from './support/random.js';

const BLOCK = 16;
const REQUESTS = 120;

const MODELS: Readonly<Record<string, readonly GroupOptions[]>> = {
  full: [{ kind: 'full_attention' }],
  sliding: [{ kind: 'full_attention' }, { kind: 'sliding_window', window: 48 }],
  mamba: [{ kind: 'full_attention' }, { kind: 'mamba' }],
  'sliding and mamba': [{ kind: 'full_attention' }, { kind: 'sliding_window', window: 48 }, { kind: 'mamba' }],
  'coarse sliding': [{ kind: 'full_attention' }, { kind: 'sliding_window', window: 64, blockSize: 32 }],
};

interface Tally {
  requests: number;
  /** Decisions that counted on blocks of the store. */
  shared: number;
  equal: number;
  under: number;
  over: string[];
}

/** Prompts that share beginnings: a system prompt, a conversation, a turn. */
function promptOf(random: Random): number[] {
  const system = random.int(3);
  const chat = random.int(6);
  const turns = 1 + random.int(4);
  const tokens: number[] = [];
  const add = (name: number, count: number): void => {
    for (let i = 0; i < count; i++) tokens.push(name * 1000 + i);
  };
  add(system, 5 * BLOCK + 3);
  for (let turn = 0; turn < turns; turn++) add(100 + 10 * chat + turn, 3 * BLOCK + 5);
  return tokens;
}

async function run(options: FleetOptions, hybrid: boolean, seed: number): Promise<Tally> {
  const random = new Random(seed);
  const tally: Tally = { requests: 0, shared: 0, equal: 0, under: 0, over: [] };
  const fleet = await Fleet.start(options);
  const master = fleet.masters[0]!;
  const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' }, index: { bytes: 4 << 20 } });
  const live = LiveStreams.open(router, {
    workers: fleet.workers.map((worker) => ({
      id: worker.id,
      dpRanks: { start: 0, size: worker.dp },
      descriptor: worker.descriptor,
      events: worker.eventsEndpoints,
      replay: worker.replayEndpoints,
    })),
    store: { masters: [{ events: master.eventsEndpoint, http: master.httpUrl }], keeper: { pollEvery: 200 } },
  });
  const heard = async (): Promise<void> => {
    await master.flushed();
    for (const worker of fleet.workers) await worker.flushed();
    await until('everything to be heard', () => {
      const { workers, store } = live.status();
      const next = fleet.workers.flatMap((worker) =>
        worker.status().ranks.map(({ nextSequence }) => BigInt(nextSequence)),
      );
      return (
        store!.lastSequence === BigInt(master.lastSequence) &&
        workers.every(({ lastSequence, replay }, i) => replay !== 'running' && (lastSequence ?? -1n) + 1n === next[i])
      );
    });
  };
  try {
    await until('the first reconcile', () => live.status().store!.reconciled > 0);
    for (let request = 0; request < REQUESTS; request++) {
      const prompt = promptOf(random);
      await heard();
      const { worker: chosen, blocks, lease } = router.route({ tokens: Uint32Array.from(prompt), textOnly: true });
      const worker = fleet.workers.find(({ id }) => id === chosen.id)!;
      const { usage, moonroute } = await complete(worker.httpUrl, prompt, { max_tokens: 1 });
      lease.complete(performance.now(), {});
      const counted = (blocks.device + blocks.shared) * BLOCK;
      const restored = moonroute.gpu_tokens + moonroute.store_tokens;
      assert.is(usage.prompt_tokens_details.cached_tokens, restored);
      if (blocks.shared > 0) tally.shared++;
      // The GPU index follows the main group alone, as the field's routers do: of other models it is a hint and no promise. The store's part is one.
      if (blocks.shared > 0 || !hybrid) {
        tally.requests++;
        if (counted > restored) tally.over.push(`request ${request}: ${counted} counted on, ${restored} restored`);
        else if (counted === restored) tally.equal++;
        else tally.under++;
      }
      // The GPU forgets much faster than the store.
      if (random.int(2) === 0) worker.evict(30);
      if (random.int(12) === 0) {
        const keys = [...master.truth()];
        for (let i = 0; i < 6 && keys.length > 0; i++) master.remove(random.pick(keys), { force: true });
      }
    }
  } finally {
    await live.close();
    router.dispose();
    await fleet.close();
  }
  return tally;
}

if (zeromq !== null) {
  for (const generation of ['A', 'C'] as const) {
    for (const [model, groups] of Object.entries(MODELS)) {
      test(`generation ${generation}, model ${model}: never more is counted on than the engine restores`, async () => {
        const worker = { tp: 2, groups, latency: { timeScale: 0 }, gpuBlocks: 300 };
        const tally = await run({ workers: 3, worker, master: { generation } }, groups.length > 1, 17);
        console.log(`  ${generation} ${model}: ${JSON.stringify({ ...tally, over: tally.over.length })}`);
        assert.equal(tally.over, []);
        assert.ok(tally.shared >= 10, `${tally.shared} requests counted on the store`);
        assert.ok(tally.equal >= 0.6 * tally.requests, `${tally.equal} of ${tally.requests} equal`);
      });
    }
  }
  test.run();
}
