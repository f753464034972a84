// A simulated pool on real sockets whose store is mostly filled by workers that the router knows nothing of, with evictions and removals: what is counted
// on by derived hashes is held against what the chosen worker's engine then restores. Never more, and hardly ever less.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Hashing } from '../src/contract/descriptor.js';
import { Fleet } from '../src/fleet/fleet.js';
import type { GroupOptions } from '../src/fleet/worker/geometry.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import { complete, until, zeromq } from './support/fleet-worker.js';
import { Random } from './support/random.js';

const BLOCK = 16;
const REQUESTS = 80;
/** Of the fleet's workers, those that the router routes to. */
const LISTED = 2;

const MODELS: Readonly<Record<string, readonly GroupOptions[]>> = {
  full: [{ kind: 'full_attention' }],
  sliding: [{ kind: 'full_attention' }, { kind: 'sliding_window', window: 48 }],
  mamba: [{ kind: 'full_attention' }, { kind: 'mamba' }],
  'coarse sliding': [{ kind: 'full_attention' }, { kind: 'sliding_window', window: 64, blockSize: 32 }],
  'coarse full attention': [{ kind: 'full_attention', blockSize: 32 }, { kind: 'full_attention' }],
};

interface Tally {
  /** Decisions that counted on blocks of the store. */
  shared: number;
  equal: number;
  over: string[];
  under: string[];
}

/** Prompts that share beginnings: a system prompt, a conversation, a turn. */
function promptOf(random: Random): number[] {
  const tokens: number[] = [];
  const add = (name: number, count: number): void => {
    for (let i = 0; i < count; i++) tokens.push(name * 1000 + i);
  };
  add(random.int(3), 5 * BLOCK + 3);
  const chat = random.int(6);
  for (let turn = 0; turn < 1 + random.int(4); turn++) add(100 + 10 * chat + turn, 3 * BLOCK + 5);
  return tokens;
}

async function run(hashing: Hashing, groups: readonly GroupOptions[], seed: number): Promise<Tally> {
  const random = new Random(seed);
  const tally: Tally = { shared: 0, equal: 0, over: [], under: [] };
  const fleet = await Fleet.start({
    workers: LISTED + 1,
    worker: { tp: 2, groups, latency: { timeScale: 0 }, gpuBlocks: 300 },
  });
  const master = fleet.masters[0]!;
  const listed = fleet.workers.slice(0, LISTED);
  const stranger = fleet.workers[LISTED]!;
  const settings = { sharedCacheType: 'mooncake-store' } as const;
  const blockSize = groups[0]!.blockSize ?? BLOCK;
  const router = await Router.create({ settings, blockSize, index: { bytes: 4 << 20 }, cache: { hashing } });
  const live = LiveStreams.open(router, {
    workers: listed.map((worker) => ({
      id: worker.id,
      descriptor: worker.descriptor,
      events: worker.eventsEndpoints,
      replay: worker.replayEndpoints,
    })),
    store: { masters: [{ events: master.eventsEndpoint, http: master.httpUrl }], keeper: { pollEvery: 200 } },
  });
  const heard = async (): Promise<void> => {
    await master.flushed();
    for (const worker of listed) await worker.flushed();
    await until('everything to be heard', () => {
      const { workers, store } = live.status();
      const next = listed.map((worker) => BigInt(worker.status().ranks[0]!.nextSequence));
      return (
        store!.lastSequence === BigInt(master.lastSequence) &&
        workers.every(({ lastSequence, replay }, i) => replay !== 'running' && (lastSequence ?? -1n) + 1n === next[i])
      );
    });
  };
  try {
    await until('the first reconcile', () => live.status().store!.reconciled > 0);
    for (const worker of listed) await complete(worker.httpUrl, promptOf(random));
    await heard();
    assert.is(router.stats().cache!.derivation!.provenRanks, LISTED);
    for (let request = 0; request < REQUESTS; request++) {
      await complete(stranger.httpUrl, promptOf(random), { max_tokens: 1 });
      const prompt = promptOf(random);
      await heard();
      const {
        worker: chosen,
        blocks,
        lease,
        sharedReason,
      } = router.route({
        tokens: Uint32Array.from(prompt),
        textOnly: true,
      });
      const worker = listed.find(({ id }) => id === chosen.id)!;
      const { moonroute } = await complete(worker.httpUrl, prompt, { max_tokens: 1 });
      lease.complete(performance.now(), {});
      if (blocks.shared > 0) {
        const counted = (blocks.device + blocks.shared) * blockSize;
        const restored = moonroute.gpu_tokens + moonroute.store_tokens;
        const what = `request ${request}: ${counted} of ${prompt.length} counted on, ${restored} restored, ${sharedReason?.code}`;
        tally.shared++;
        if (counted > restored) tally.over.push(what);
        // Of a restart point inside a block of the router's, the whole blocks are counted on.
        else if (restored - counted < blockSize) tally.equal++;
        else tally.under.push(what);
      }
      for (const one of fleet.workers) if (random.int(2) === 0) one.evict(60);
      if (random.int(8) === 0) {
        const keys = [...master.truth()];
        for (let i = 0; i < 6 && keys.length > 0; i++) master.remove(random.pick(keys), { force: true });
      }
    }
    assert.is(router.stats().cache!.derivation!.refuted, null);
  } finally {
    await live.close();
    router.dispose();
    await fleet.close();
  }
  return tally;
}

if (zeromq !== null) {
  for (const hashing of ['derived', 'both'] as const) {
    for (const [model, groups] of Object.entries(MODELS)) {
      test(`${hashing}, model ${model}: never more is counted on than the engine restores`, async () => {
        const tally = await run(hashing, groups, 23);
        console.log(`  ${hashing} ${model}: ${tally.shared} counted on the store, ${tally.equal} equal`);
        assert.equal(tally.over, []);
        assert.equal(tally.under, []);
        assert.ok(tally.shared >= REQUESTS / 4, `${tally.shared} requests counted on the store`);
      });
    }
  }
}

test.run();
