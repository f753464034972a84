// A fleet end to end: workers and a master on real sockets, a router that hears them all, and requests sent where it says. What it credits is held
// against what the engines found, prompt by prompt.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { Fleet, type FleetOptions } from '../src/fleet/fleet.js';
import { portOf } from '../src/fleet/sockets.js';
import type { GroupOptions } from '../src/fleet/worker/geometry.js';
import { Router } from '../src/router/router.js';
import { readSequence } from '../src/wire/frames.js';
import { complete, Listener, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { Random } from './support/random.js';

const BLOCK = 16;
const FULL: GroupOptions = { kind: 'full_attention' };
const WINDOW: GroupOptions = { kind: 'sliding_window', window: 2 * BLOCK + 1 };
const STATE: GroupOptions = { kind: 'mamba' };

/** More than a lease of the store lasts, so that what was looked up may be evicted again. */
const PAST_LEASES_MS = 11_000;
/** The store's clock, ahead of the real one. */
let aheadMs = 0;
const now = () => Date.now() + aheadMs;

/** A fleet with a router that hears it. */
class Watched {
  readonly fleet: Fleet;
  readonly router: Router;
  readonly #listeners = new Map<string, Listener>();
  #store: Listener | null = null;
  #requests = 0;

  private constructor(fleet: Fleet, router: Router) {
    this.fleet = fleet;
    this.router = router;
  }

  static async start(options: FleetOptions): Promise<Watched> {
    const fleet = await Fleet.start({ ...options, worker: { latency: { timeScale: 0 }, ...options.worker } });
    const router = await Router.create({
      policy: 'kv',
      blockSize: BLOCK,
      settings: { sharedCacheType: 'mooncake-store' },
    });
    const watched = new Watched(fleet, router);
    for (const worker of fleet.workers) {
      const descriptor: unknown = await (await fetch(`${worker.httpUrl}/moonroute/descriptor`)).json();
      router.addWorker({ id: worker.id, descriptor, adapters: worker.adapters });
      const hear = (frames: Uint8Array[]) => void router.onWorkerMessage(worker.id, frames);
      watched.#listeners.set(worker.id, new Listener(worker.eventsEndpoints[0]!, hear));
    }
    watched.#store = new Listener(fleet.master!.eventsEndpoint, (frames) => void router.onStoreMessage(frames));
    await fleet.master!.subscribed();
    for (const worker of fleet.workers) {
      await until('a subscription', () => {
        if (watched.#listeners.get(worker.id)!.messages.length === 0) worker.clear();
        return watched.#listeners.get(worker.id)!.messages.length > 0;
      });
    }
    await watched.caughtUp();
    return watched;
  }

  /** Resolves when the router has heard everything. */
  async caughtUp(): Promise<void> {
    const last = ({ messages }: Listener) => (messages.length === 0 ? 0 : Number(readSequence(messages.at(-1)![1]!)));
    for (const worker of this.fleet.workers) {
      await worker.flushed();
      await until('a worker’s messages', () => {
        const { nextSequence } = worker.status().ranks[0]!;
        return last(this.#listeners.get(worker.id)!) === Number(nextSequence) - 1;
      });
    }
    const master = this.fleet.master!;
    await master.flushed();
    await until('the store’s messages', () => last(this.#store!) === master.lastSequence);
  }

  /** Routes a prompt, sends it there, and returns what was credited and what was found, in tokens. */
  async serve(tokens: readonly number[], model?: string) {
    await this.caughtUp();
    const at = ++this.#requests;
    const { worker, blocks, lease } = this.router.route({
      tokens: Uint32Array.from(tokens),
      textOnly: true,
      ...(model === undefined ? {} : { loraName: model }),
      now: at,
    });
    const { httpUrl } = this.fleet.workers.find(({ id }) => id === worker.id)!;
    const { usage, moonroute } = await complete(httpUrl, tokens, model === undefined ? {} : { model });
    lease.complete(at, {});
    return {
      worker: worker.id,
      credited: { gpu: blocks.device * BLOCK, store: blocks.shared * BLOCK },
      found: { gpu: moonroute.gpu_tokens, store: moonroute.store_tokens },
      cached: usage.prompt_tokens_details.cached_tokens,
    };
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners.values()) await listener.close();
    await this.#store?.close();
    await this.fleet.close();
    this.router.dispose();
  }
}

async function watched(options: FleetOptions, work: (pool: Watched) => Promise<void>): Promise<void> {
  const pool = await Watched.start(options);
  try {
    await work(pool);
  } finally {
    await pool.close();
  }
}

if (zeromq !== null) {
  for (const generation of ['A', 'B', 'C'] as const) {
    test(`generation ${generation}: what the router credits, GPU and store, is what the engines find`, () =>
      watched(
        { workers: 2, worker: { tp: 2, gpuBlocks: 40, adapters: ['adapter-a'] }, master: { generation, now } },
        async (pool) => {
          const random = new Random(11);
          const sums = { gpu: 0, store: 0, evicted: 0 };
          for (let turn = 0; turn < 60; turn++) {
            const shared = tokensOf(random.int(4), BLOCK * random.between(1, 8));
            const prompt = [...shared, ...tokensOf(10 + turn, random.int(40))];
            const model = random.int(4) === 0 ? 'adapter-a' : undefined;
            const { credited, found, cached } = await pool.serve(prompt, model);
            assert.equal(credited, found, `turn ${turn}`);
            assert.is(cached, found.gpu + found.store);
            sums.gpu += found.gpu;
            sums.store += found.store;
            if (turn % 7 === 0) pool.fleet.workers[random.int(2)]!.evict(random.int(20));
            aheadMs += PAST_LEASES_MS;
            if (turn % 5 === 0) sums.evicted += pool.fleet.master!.evict(random.between(1, 10)).length;
            const [key] = pool.fleet.master!.truth();
            if (turn % 13 === 0 && key !== undefined) pool.fleet.master!.remove(key, { force: true });
          }
          assert.ok(sums.gpu > 0 && sums.store > 0 && sums.evicted > 20, JSON.stringify(sums));
        },
      ));
  }

  for (const [what, groups] of [
    ['a window', [FULL, WINDOW]],
    ['states', [FULL, STATE]],
    ['both', [FULL, WINDOW, STATE]],
  ] as const) {
    test(`with ${what}: what only the store holds is credited exactly`, () =>
      watched({ workers: 2, worker: { groups, tp: 2, connectorEvents: true }, master: { now } }, async (pool) => {
        const random = new Random(5);
        let restored = 0;
        let evicted = 0;
        for (let turn = 0; turn < 30; turn++) {
          for (const worker of pool.fleet.workers) worker.clear();
          const shared = tokensOf(random.int(3), BLOCK * random.between(2, 8) + 1);
          const { credited, found } = await pool.serve([...shared, ...tokensOf(10 + turn, random.int(20))]);
          assert.equal(credited, found, `turn ${turn}`);
          restored += found.store;
          aheadMs += PAST_LEASES_MS;
          if (turn % 5 === 0) evicted += pool.fleet.master!.evict(random.int(6)).length;
        }
        assert.ok(restored > 0 && evicted > 5, `${restored} tokens restored, ${evicted} objects evicted`);
      }));
  }

  test('a silent removal is credited until the keys are asked for; nobody asks for single ones', () =>
    watched({ workers: 2, master: { generation: 'A' } }, async (pool) => {
      const prompt = tokensOf(1, 4 * BLOCK + 1);
      await pool.serve(prompt);
      for (const worker of pool.fleet.workers) worker.clear();
      const master = pool.fleet.master!;
      assert.ok(master.batchRemove(master.truth(), { force: true }) > 0);
      await pool.caughtUp();
      const wrong = pool.router.route({ tokens: Uint32Array.from(prompt), textOnly: true, now: 1 });
      assert.is(wrong.blocks.shared, 4);
      const token = pool.router.beginReconcile();
      const keys = (await (await fetch(`${master.httpUrl}/get_all_keys`)).text())
        .split('\n')
        .filter((key) => key !== '');
      const s0 = BigInt(master.lastSequence);
      assert.is(pool.router.reconcile(token, keys, { s0, firstSequence: null }).accepted, true);
      const { credited, found } = await pool.serve(prompt);
      assert.equal([credited.store, found.store], [0, 0]);
      assert.is(master.queryKeyUses, 0);
    }));

  test('the standby takes over, and workers find what the leader held', async () => {
    const fleet = await Fleet.start({ workers: 2, standby: true, worker: { latency: { timeScale: 0 } } });
    try {
      const [leader, standby] = fleet.masters;
      const prompt = tokensOf(1, 4 * BLOCK + 1);
      await complete(fleet.workers[0]!.httpUrl, prompt);
      assert.equal(
        fleet.endpoints().masters.map(({ role }) => role),
        ['leader', 'standby'],
      );
      await fleet.failover();
      assert.is(fleet.master, standby!);
      assert.is((await complete(fleet.workers[1]!.httpUrl, prompt)).moonroute.store_tokens, 4 * BLOCK);
      await fleet.failover();
      assert.is(fleet.master, leader!);
      // While nobody serves, nothing is restored and requests go on.
      await leader!.kill();
      fleet.workers[1]!.evict(100);
      assert.is((await complete(fleet.workers[1]!.httpUrl, prompt)).moonroute.store_tokens, 0);
      assert.is(fleet.status().published, null);
    } finally {
      await fleet.close();
    }
  });

  test('things happen by themselves, and the fleet serves on', async () => {
    const happened: string[] = [];
    const fleet = await Fleet.start({
      workers: 2,
      standby: true,
      worker: { dp: 2, latency: { timeScale: 0 } },
      churn: {
        'gpu-evict': 20,
        'gpu-clear': 20,
        'store-evict': 20,
        'store-remove': 10,
        'store-batch-remove': 20,
        'store-clear': 40,
        'lose-message': 10,
        'worker-restart': 100,
        'master-restart': 100,
        failover: 100,
      },
      onChurn: (kind, what) => {
        happened.push(kind);
        assert.not.match(what, /failed/);
      },
    });
    try {
      let served = 0;
      let name = 0;
      await until('each kind of thing to happen, and some answers', async () => {
        const worker = fleet.workers[name % 2]!;
        // A worker that is restarting refuses, as any that is down.
        if ((await complete(worker.httpUrl, tokensOf(++name % 9, 80)).catch(() => null)) !== null) served++;
        return new Set(happened).size === 10 && served > 10;
      });
      assert.equal(Object.keys(fleet.status().churn).sort(), [...new Set(happened)].sort());
    } finally {
      await fleet.close();
    }
  });

  test('ports in a row from the one that is given', async () => {
    // A fleet that has just ended shows ports that are free.
    const probe = await Fleet.start({ workers: 1 });
    const base = portOf(probe.workers[0]!.eventsEndpoints[0]!) - (portOf(probe.workers[0]!.eventsEndpoints[0]!) % 16);
    await probe.close();
    const fleet = await Fleet.start({ workers: 2, worker: { dp: 2 }, basePort: base }).catch((error: unknown) => error);
    if (!(fleet instanceof Fleet)) {
      assert.ok(fleet instanceof ConfigError && fleet.code === 'bind-failed', 'another process has one of these ports');
      return;
    }
    try {
      const { workers, masters } = fleet.endpoints();
      const port = (url: string) => Number(new URL(url).port) - base;
      assert.equal(
        masters.map(({ events, http }) => [port(events), port(http)]),
        [[0, 1]],
      );
      assert.equal(
        workers.map(({ http, events, replay }) => [http, ...events, ...replay].map(port)),
        [
          [4, 5, 6, 7, 8],
          [9, 10, 11, 12, 13],
        ],
      );
    } finally {
      await fleet.close();
    }
  });

  for (const [code, options] of [
    ['fleet-workers', { workers: 0 }],
    ['fleet-workers', { workers: 65 }],
    ['churn', { churn: { failover: 1000 } }],
    ['churn', { churn: { 'gpu-evict': 0 } }],
    ['churn', { churn: { fire: 1000 } as never }],
    ['worker-option', { worker: { tp: 0 } }],
    ['master-option', { master: { queueCapacity: 0 } }],
  ] as const satisfies readonly (readonly [string, FleetOptions])[]) {
    test(`${code}: ${JSON.stringify(options)} is refused`, async () => {
      const error = await Fleet.start(options).then(
        (fleet) => fleet.close(),
        (reason: unknown) => reason,
      );
      assert.ok(error instanceof ConfigError && error.code === code, String(error));
    });
  }
}

test.run();
