// The event plane of `moonroute serve`: what its configuration may say, workers that come over it, and what status and metrics show.
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, type MoonrouteError } from '../src/errors.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { PlaneStreams } from '../src/live/plane/route/plane-streams.js';
import { Router } from '../src/router/router.js';
import { type ConfigPlace, checkConfig } from '../src/server/config.js';
import { printedConfig } from '../src/server/config-print.js';
import { planeAnswers } from '../src/server/doctor/checks/plane-answers.js';
import { askPlane } from '../src/server/doctor/plane-ask.js';
import { createLog } from '../src/server/log.js';
import { createMetrics } from '../src/server/metrics.js';
import { planeIdOf } from '../src/server/plane.js';
import { createRegistry } from '../src/server/registry.js';
import { startService } from '../src/server/service.js';
import type { PromptStats, WorkerSpec } from '../src/server/types.js';
import { FakePlane, FakePublisher } from './support/fake-plane.js';
import { HandWorker } from './support/hand-worker.js';
import { metricsPage } from './support/metrics-page.js';
import { storedData } from './support/plane-events.js';

const NATS = { url: 'nats://10.0.0.9:4222' };
const WORKER = { id: 'a', url: 'http://10.0.0.5:8000' };
const plane = (more: object = {}, workers: readonly object[] = []) => ({
  model: 'm',
  eventPlane: { ...NATS, ...more },
  workers,
});
const load = (more: object) => plane({ load: more });
const worker = (more: object) => plane({}, [{ ...WORKER, ...more }]);

function refusal(given: unknown, place?: ConfigPlace): ConfigError {
  try {
    checkConfig(given, place);
  } catch (error) {
    assert.instance(error, ConfigError);
    return error as ConfigError;
  }
  throw new Error(`expected a ConfigError for ${JSON.stringify(given)}`);
}

test('defaults', () => {
  assert.equal(checkConfig(plane()).eventPlane, {
    url: 'nats://10.0.0.9:4222',
    name: null,
    tls: null,
    retention: { maxAge: 600_000, maxBytes: 2 ** 30, maxMessages: 1_000_000 },
    load: { share: true, every: 50, atLeast: 1000, goodFor: 3000, bind: null, peers: [] },
  });
  assert.equal(checkConfig(worker({ plane: { workerId: 7 } })).workers[0]!.plane, { workerId: 7 });
});

// A document, the code, and what the text must hold.
const REFUSALS: readonly (readonly [unknown, string, RegExp])[] = [
  [{ eventPlane: {} }, 'event-plane-url', /^eventPlane\.url is missing; give nats:/],
  [plane({ url: 'http://a:1' }), 'event-plane-url', /eventPlane\.url is "http:\/\/a:1"; give nats:/],
  [plane({ url: [] }), 'event-plane-url', /give/],
  [plane({ urls: 'x' }), 'unknown-setting', /"eventPlane\.urls"; .* Is eventPlane\.url meant\?/],
  [plane({ name: 'a b' }), 'event-plane-name', /eventPlane\.name is "a b"; give a name without spaces/],
  [plane({ retention: { maxAge: 1 } }), 'event-plane-retention-max-age', /from 100 to/],
  [plane({ retention: { maxBytes: 1 } }), 'event-plane-retention-max-bytes', /from 1048576/],
  [plane({ retention: { maxMessages: 0 } }), 'event-plane-retention-max-messages', /from 1 to/],
  [load({ goodFor: 60_001 }), 'event-plane-load-good-for', /from 1 to 60000/],
  [load({ every: 0 }), 'event-plane-load-every', /from 1 to/],
  [load({ every: 2000 }), 'plane-load-times', /every 2000, atLeast 1000, goodFor 3000; give them in rising order/],
  [load({ goodFor: 1000 }), 'plane-load-times', /goodFor above atLeast/],
  [load({ peers: ['tcp://a:1'] }), 'plane-load-sockets', /eventPlane\.load\.peers is given, and the plane is NATS/],
  [load({ bind: 'tcp://a:1' }), 'plane-load-sockets', /eventPlane\.load\.bind is given/],
  [{ ...plane(), model: null }, 'plane-without-model', /eventPlane is given, and model is null/],
  [plane({ url: ['tcp://a:1', 'nats://b:2'] }), 'plane-url', /^eventPlane\.url is .*NATS and of ZMQ/],
  [plane({ url: 'tcp://a:99999' }), 'plane-url', /^eventPlane\.url is "tcp:\/\/a:99999"/],
  [
    { workers: [{ ...WORKER, plane: {} }] },
    'plane-without-event-plane',
    /workers\.0\.plane is given, and eventPlane is null/,
  ],
  [worker({ plane: {}, events: 'tcp://a:1' }), 'plane-and-events', /workers\.0\.events is "tcp:\/\/a:1"/],
  [
    worker({ plane: {} }),
    'plane-worker-id',
    /workers\.0\.plane\.workerId is null, and the worker's id "a" is no number/,
  ],
  [worker({ plane: { workerId: '18446744073709551616' } }), 'plane-worker-id', /0 to 2\^64 - 1/],
  [
    worker({ plane: { workerId: -1 } }),
    'workers-plane-worker-id',
    /workers\.0\.plane\.workerId is -1; give a whole number/,
  ],
  [worker({ plane: { workerId: '07' } }), 'workers-plane-worker-id', /is "07"/],
  [worker({ plane: { id: 7 } }), 'unknown-setting', /workers\.0\.plane\.id/],
  [
    plane({}, [
      { ...WORKER, id: '7', plane: {} },
      { ...WORKER, plane: { workerId: 7 } },
    ]),
    'plane-worker-id-twice',
    /workers\.1\.plane\.workerId is 7, which workers\.0 has/,
  ],
];

for (const [given, code, words] of REFUSALS) {
  test(`${JSON.stringify(given)}: ${code}`, () => {
    const error = refusal(given);
    assert.is(error.code, code, error.message);
    assert.match(error.message, words);
  });
}

test('who signs in at the plane is a secret: it may come from the environment, and is never shown', () => {
  const url = 'nats://user:verysecret@10.0.0.9:4222';
  const place = { env: { PLANE_URL: url } };
  const config = checkConfig(plane({ url: { env: 'PLANE_URL' } }), place);
  assert.is(config.eventPlane!.url, url);
  assert.not.match(JSON.stringify(printedConfig(config)), /verysecret/);
  assert.is(refusal(plane({ url: { env: 'NONE' } })).code, 'config-secret');
  for (const wrong of [
    plane({ url: `${url} x` }),
    plane({ url: [url, 'tcp://a:1'] }),
    { ...plane({ url }), model: null },
  ]) {
    assert.not.match(refusal(wrong).message, /verysecret/);
  }
});

test('files of tls:// are relative to the configuration', () => {
  const given = plane({ url: 'tls://a', tls: { caFile: 'ca.pem' } });
  const { tls } = checkConfig(given, { folder: '/etc/moonroute' }).eventPlane!;
  assert.equal(tls, { caFile: '/etc/moonroute/ca.pem', certFile: null, keyFile: null });
});

test('a worker’s number: what is given, else its id', () => {
  const rows: [WorkerSpec['plane'], string, bigint | null][] = [
    [undefined, '7', null],
    [null, '7', null],
    [{ workerId: null }, '7', 7n],
    [{ workerId: null }, 'a', null],
    [{ workerId: 9 }, '7', 9n],
    [{ workerId: '18446744073709551615' }, 'a', 2n ** 64n - 1n],
  ];
  for (const [given, id, expected] of rows)
    assert.is(planeIdOf({ id, ...(given === undefined ? {} : { plane: given }) }), expected);
});

const silent = createLog('silent');
const BASE = { events: null, replay: null, topic: '', dpRanks: { start: 0, size: 1 }, contract: null };
const noPrompts = (): PromptStats => ({
  bySource: { ids: 0, local: 0, worker: 0, none: 0 },
  notProven: {},
  local: { state: 'none', detail: null },
  cache: { entries: 0, hits: 0, misses: 0 },
});

test('registered workers come over the plane, move between it and streams, and leave; metrics say how they stand', async () => {
  const fake = new FakePlane();
  const publisher = await FakePublisher.start(fake, 7n);
  publisher.emit(storedData(null, [1, 2]));
  const router = await Router.create({ index: { bytes: 4 << 20 } });
  const live = LiveStreams.open(router);
  const streams = PlaneStreams.open(router, { subscriber: fake.subscriber(), load: { name: 'me' } });
  const config = { model: null, registration: { networks: ['127.0.0.0/8'] } };
  const registry = createRegistry({ router, live, plane: streams, config, log: silent });
  const { url, close } = await HandWorker.open({}).then((hand) => ({ url: hand.url, close: () => hand.close() }));
  const settle = async () => {
    for (let i = 0; i < 10; i++) await setImmediate();
  };
  const refused = async (spec: WorkerSpec, words: RegExp) => {
    try {
      await registry.add(spec);
    } catch (error) {
      assert.is((error as MoonrouteError).code, 'worker-spec');
      assert.match((error as MoonrouteError).message, words);
      return;
    }
    throw new Error('not refused');
  };
  try {
    await registry.add({ ...BASE, id: 'w', url, plane: { workerId: 7 } });
    await settle();
    assert.is(router.dump('w').length, 1);
    await refused({ ...BASE, id: 'x', url, plane: { workerId: '7' } }, /that of worker w/);
    await refused({ ...BASE, id: 'x', url, plane: { workerId: null } }, /give \{workerId\}/);
    await refused({ ...BASE, id: 'x', url, plane: { workerId: 8 }, events: 'tcp://127.0.0.1:9' }, /plane .* not both/);
    const page = metricsPage(
      await createMetrics({ router, live, plane: streams, registry, prompts: { stats: noPrompts } }).text(),
    );
    const own = { worker: 'w', dp_rank: '0' };
    assert.is(page.sum('moonroute_plane_connected'), 1);
    assert.is(page.sum('moonroute_plane_rank_warm', own), 1);
    assert.is(page.sum('moonroute_plane_rank_lag_events', own), 0);
    assert.is(page.sum('moonroute_plane_recoveries_total', { ...own, cause: 'start' }), 1);
    assert.is(page.sum('moonroute_plane_recovery_attempts_total', { ...own, outcome: 'dump' }), 1);
    assert.is(page.sum('moonroute_plane_events_total', { outcome: 'applied' }), 1);
    assert.is(page.sum('moonroute_foreign_routers'), 0);
    assert.is(page.sum('moonroute_load_reports_total', { outcome: 'own' }), 1);
    assert.is(page.find('moonroute_rank_foreign_active_requests', own).length, 1);
    await registry.add({ ...BASE, id: 'w', url, events: 'tcp://127.0.0.1:9' });
    assert.is(streams.status().ranks.length, 0);
    assert.is(live.status().workers.length, 1);
    assert.equal(router.dump('w'), []);
    await registry.add({ ...BASE, id: 'w', url, plane: { workerId: 7 } });
    await settle();
    assert.is(live.status().workers.length, 0);
    assert.is(router.dump('w').length, 1);
    assert.ok(registry.remove('w'));
    assert.equal(router.workers(), []);
    assert.is(streams.status().ranks.length, 0);
  } finally {
    await registry.close();
    await streams.close();
    await live.close();
    await close();
  }
});

test('without a plane nothing of one is shown, and a worker that asks for it is refused', async () => {
  const router = await Router.create({ index: { bytes: 1 << 20 } });
  const live = LiveStreams.open(router);
  const registry = createRegistry({
    router,
    live,
    config: { model: null, registration: { networks: null } },
    log: silent,
  });
  const page = metricsPage(await createMetrics({ router, live, registry, prompts: { stats: noPrompts } }).text());
  assert.equal(
    page.samples.filter(({ name, value }) => /plane|load_report|foreign_router/.test(name) && value !== 0),
    [],
  );
  try {
    await registry.add({ ...BASE, id: 'w', url: 'http://127.0.0.1:9', plane: { workerId: 7 } }, true);
    assert.unreachable();
  } catch (error) {
    assert.match((error as Error).message, /this router has no event plane; configure eventPlane and restart/);
  }
  await registry.close();
  await live.close();
});

test('the doctor asks every rank of the plane', async () => {
  const fake = new FakePlane();
  const publisher = await FakePublisher.start(fake, 7n, 1);
  publisher.emit(storedData(null, [1]));
  const workers: WorkerSpec[] = [
    { ...BASE, id: 'w', url: 'http://127.0.0.1:9', plane: { workerId: 7 }, dpRanks: { start: 0, size: 2 } },
    { ...BASE, id: 'x', url: 'http://127.0.0.1:9', plane: { workerId: 8 } },
    { ...BASE, id: 'elsewhere', url: 'http://127.0.0.1:9' },
  ];
  const found = await askPlane(fake.subscriber(), workers);
  assert.equal(found, [
    { subject: 'w rank 0', planeId: '7', lastEventId: null, fault: 'no answer' },
    { subject: 'w rank 1', planeId: '7', lastEventId: 1n, fault: null },
    { subject: 'x', planeId: '8', lastEventId: null, fault: 'no answer' },
  ]);
  const verdicts = [...planeAnswers.run({ plane: found } as never)].map(({ status }) => status);
  assert.equal(verdicts, ['failed', 'ok', 'failed']);
  assert.equal(
    [...planeAnswers.run({} as never)].map(({ status }) => status),
    ['skipped'],
  );
});

test('a plane that is not there costs hints alone: the service starts, and says so', async () => {
  const config = checkConfig({
    listen: { port: 0 },
    model: 'm',
    eventPlane: { url: 'tcp://127.0.0.1:9' },
    workers: [{ id: '7', url: 'http://127.0.0.1:9', plane: {}, contract: null }],
  });
  const running = await startService(config, { log: silent });
  try {
    const status = await (await fetch(`${running.url}/status`)).json();
    assert.is(status.plane.ranks[0].planeId, '7');
    assert.is(status.plane.ranks[0].warm, false);
    assert.match(status.plane.load.router, /-[0-9a-f]{12}$/);
    assert.equal(status.router.foreignLoad.routers, 0);
    const { workers } = await (await fetch(`${running.url}/workers`)).json();
    assert.equal(workers[0].plane, { workerId: null });
  } finally {
    await running.close();
  }
});

test.run();
