// Opening and closing streams: all or nothing, nothing believed that nobody watches, nothing opened by accident.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MoonrouteError } from '../src/errors.js';
import { SimulatedWorker } from '../src/fleet/worker.js';
import { type LiveOptions, LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import { complete, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { RouterPool } from './support/router-pool.js';

const EVENTS = 'tcp://127.0.0.1:9';

async function codeOf(pool: RouterPool, options: LiveOptions): Promise<string> {
  try {
    await LiveStreams.open(pool.router, options).close();
  } catch (error) {
    if (error instanceof MoonrouteError) return error.code;
    throw error;
  }
  return 'opened';
}

const REFUSED: Record<string, readonly [string, (pool: RouterPool) => LiveOptions]> = {
  'events that are no endpoint': ['endpoint', () => ({ workers: [{ id: 1, events: 'http://host:1' }] })],
  'a replay that is no endpoint': ['endpoint', () => ({ workers: [{ id: 1, events: EVENTS, replay: 'tcp://*:5' }] })],
  'events of the only master': [
    'endpoint',
    () => ({ workers: [{ id: 1, events: EVENTS }], store: { masters: [{ events: 'x', http: null }] } }),
  ],
  'events of the second master': [
    'endpoint',
    () => ({
      store: {
        masters: [
          { events: EVENTS, http: 'http://127.0.0.1:9' },
          { events: 'tcp://host', http: 'http://127.0.0.1:9' },
        ],
      },
    }),
  ],
  'several masters without HTTP': [
    'live-masters',
    () => ({
      store: {
        masters: [
          { events: EVENTS, http: null },
          { events: EVENTS, http: null },
        ],
      },
    }),
  ],
  'no master': ['live-masters', () => ({ store: { masters: [] } })],
  'HTTP that is none': ['live-masters', () => ({ store: { masters: [{ events: EVENTS, http: 'host:9003' }] } })],
  'too few endpoints for its ranks': [
    'live-endpoints',
    () => ({ workers: [{ id: 1, events: [EVENTS], dpRanks: { start: 0, size: 2 } }] }),
  ],
  'no ports for its ranks': [
    'live-endpoints',
    () => ({ workers: [{ id: 1, events: 'tcp://h:65535', dpRanks: { start: 0, size: 2 } }] }),
  ],
  'two workers of one name': [
    'live-workers',
    () => ({
      workers: [
        { id: 1, events: EVENTS },
        { id: 1n, events: EVENTS },
      ],
    }),
  ],
  'a worker that the router refuses': [
    'worker-draining',
    () => ({
      workers: [
        { id: 'a', events: EVENTS },
        { id: 'b', events: EVENTS, draining: 'no' as unknown as boolean },
      ],
    }),
  ],
  'an evidence age that is no time': [
    'live-times',
    () => ({ store: { masters: [{ events: EVENTS, http: null }], keeper: { maxEvidenceAge: Number.NaN } } }),
  ],
  'a time that is no timer': ['live-times', () => ({ limits: { staleAfter: Number.POSITIVE_INFINITY } })],
  'reconciles more seldom than evidence ages': [
    'live-times',
    () => ({
      store: { masters: [{ events: EVENTS, http: null }], keeper: { maxEvidenceAge: 1000, reconcileEvery: 1000 } },
    }),
  ],
};
for (const [name, [code, options]] of Object.entries(REFUSED)) {
  test(`refused as ${code}: ${name}; no worker came, none went, nothing is open`, async () => {
    const pool = await RouterPool.open();
    pool.add('before');
    const resources = process.getActiveResourcesInfo().length;
    assert.is(await codeOf(pool, options(pool)), code);
    assert.equal(
      pool.router.workers().map(({ id }) => id),
      ['before'],
    );
    assert.ok(process.getActiveResourcesInfo().length <= resources);
  });
}

test('a worker that was there before stays when opening fails', async () => {
  const pool = await RouterPool.open();
  pool.add('a');
  const draining = 'no' as unknown as boolean;
  assert.is(
    await codeOf(pool, {
      workers: [
        { id: 'a', events: EVENTS },
        { id: 'b', events: EVENTS, draining },
      ],
    }),
    'worker-draining',
  );
  assert.equal(
    pool.router.workers().map(({ id }) => id),
    ['a'],
  );
});

test('closed streams take no workers', async () => {
  const pool = await RouterPool.open();
  const live = LiveStreams.open(pool.router, {});
  await live.close();
  assert.throws(
    () => live.addWorker({ id: 1, events: EVENTS }),
    (error: MoonrouteError) => error.code === 'live-closed',
  );
  assert.equal(pool.router.workers(), []);
});

test('a worker that is added begins from empty: nobody watched what was known of it', async () => {
  const pool = await RouterPool.open();
  pool.add('a');
  pool.announce('a', pool.prompt(1, 3));
  assert.is(pool.router.dump('a').length, 1);
  const live = LiveStreams.open(pool.router, { workers: [{ id: 'a', events: EVENTS, contract: pool.contract }] });
  assert.is(pool.router.dump('a').length, 0);
  await live.close();
});

if (zeromq !== null) {
  test('closed and opened again over a restart of the worker: nothing of its last life is believed', async () => {
    const worker = await SimulatedWorker.start({ latency: { timeScale: 0 } });
    const router = await Router.create({ index: { bytes: 4 << 20 } });
    const options = (): LiveOptions => ({
      workers: [{ id: worker.id, events: worker.eventsEndpoints, replay: worker.replayEndpoints }],
    });
    try {
      const first = LiveStreams.open(router, options());
      await complete(worker.httpUrl, tokensOf(1, 129), { max_tokens: 1 });
      await until('its blocks', () => router.dump(worker.id).length > 0);
      await first.close();
      assert.is(router.dump(worker.id).length, 0, 'nobody watches it');
      await worker.kill();
      await worker.revive();
      const second = LiveStreams.open(router, options());
      await until('the connection', () => second.status().workers[0]!.connected);
      await until('the replay', () => second.status().workers[0]!.replay === 'idle');
      assert.is(router.dump(worker.id).length, 0);
      await second.close();
    } finally {
      router.dispose();
      await worker.kill();
    }
  });

  test("a replay socket that is another worker's: what it brought goes, and it is given up", async () => {
    const worker = await SimulatedWorker.start({ latency: { timeScale: 0 } });
    const other = await SimulatedWorker.start({ latency: { timeScale: 0 } });
    const router = await Router.create({ index: { bytes: 4 << 20 } });
    for (let i = 0; i < 40; i++) await complete(other.httpUrl, tokensOf(50 + i, 65), { max_tokens: 1 });
    const live = LiveStreams.open(router, {
      workers: [{ id: 'w', events: worker.eventsEndpoints, replay: other.replayEndpoints }],
    });
    try {
      await until('the connection', () => live.status().workers[0]!.connected);
      let asked = 0;
      await until('the replay to be given up', async () => {
        await complete(worker.httpUrl, tokensOf(100 + asked++, 65), { max_tokens: 1 });
        await new Promise((resolve) => setTimeout(resolve, 50));
        return (live.status().workers[0]!.rebuilds['mismatch'] ?? 0) >= 3;
      });
      await complete(worker.httpUrl, tokensOf(999, 65), { max_tokens: 1 });
      await until('what came since, and nothing else', () => {
        const held = new Set([...worker.contents()[0]!].map((digest) => BigInt(`0x${digest.slice(48)}`)));
        const believed = router.dump('w').flatMap(({ hashes }) => [...hashes]);
        return believed.length > 0 && believed.every((hash) => held.has(hash));
      });
    } finally {
      await live.close();
      router.dispose();
      await worker.kill();
      await other.kill();
    }
  });
}

test.run();
