// The registry over real sockets: what workers say of themselves reaches router and streams, what they do wrong costs bounded time and nobody else,
// and who is configured, registered, drained or gone stays told apart. Rounds are moved on by hand.
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { MoonrouteError } from '../src/errors.js';
import { SimulatedWorker } from '../src/fleet/worker.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import type { RouterOptions } from '../src/router/router-options.js';
import { createRegistry, MAX_WORKERS, type RegistryOptions } from '../src/server/registry.js';
import type { WorkerRegistry, WorkerSpec } from '../src/server/types.js';
import { smallDescriptor } from './support/descriptor.js';
import { until, zeromq } from './support/fleet-worker.js';
import { HandClock } from './support/hand-clock.js';
import { HandWorker, json, silent } from './support/hand-worker.js';

const ROUND_MS = 2000;
const REFRESH_MS = 10_000;

/** A clock that knows how many workers wait for their next round. */
class RoundClock extends HandClock {
  waiting = 0;

  override after(ms: number, run: () => void): () => void {
    if (ms !== ROUND_MS) return super.after(ms, run);
    let waits = true;
    const end = (): void => {
      if (waits) this.waiting--;
      waits = false;
    };
    this.waiting++;
    const stop = super.after(ms, () => {
      end();
      run();
    });
    return () => {
      end();
      stop();
    };
  }
}

/** A registry with everything around it. */
class Bench {
  readonly #closers: (() => unknown)[] = [];

  private constructor(
    readonly router: Router,
    readonly live: LiveStreams,
    readonly registry: WorkerRegistry,
    readonly clock: RoundClock,
    readonly lines: string[],
  ) {}

  static async open(options: Partial<RegistryOptions> = {}, routerOptions: RouterOptions = {}): Promise<Bench> {
    const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' }, ...routerOptions });
    const live = LiveStreams.open(router);
    const clock = new RoundClock();
    const lines: string[] = [];
    const line = (_: object, text: string) => void lines.push(text);
    const log = { debug: line, info: line, warn: line, error: line };
    const config = { model: null, registration: { networks: null } };
    const registry = createRegistry({ router, live, config, log, clock, ...options });
    return new Bench(router, live, registry, clock, lines);
  }

  async hand(routes: Parameters<typeof HandWorker.open>[0] = {}): Promise<HandWorker> {
    const worker = await HandWorker.open(routes);
    this.#closers.push(() => worker.close());
    return worker;
  }

  closes(what: () => unknown): void {
    this.#closers.push(what);
  }

  /** Moves on, round by round, and waits for what the last one brings. */
  async round(what: string, holds: () => boolean, ms = ROUND_MS): Promise<void> {
    for (let past = 0; past < ms; past += ROUND_MS) {
      await until('the end of the last round', () => this.clock.waiting === this.registry.list().length);
      this.clock.advance(ROUND_MS);
    }
    await until(what, holds);
  }

  drains(id: string): boolean {
    return this.router.workers().find((worker) => worker.id === id)!.draining;
  }

  async close(): Promise<void> {
    await this.registry.close();
    this.live.close();
    this.router.dispose();
    for (const close of this.#closers) await close();
  }
}

function behaves(name: string, work: (bench: Bench) => Promise<void>, options: Partial<RegistryOptions> = {}): void {
  test(name, async () => {
    const bench = await Bench.open(options);
    try {
      await work(bench);
    } finally {
      await bench.close();
    }
  });
}

function spec(id: string, url: string, fields: Partial<WorkerSpec> = {}): WorkerSpec {
  const plain = { events: null, replay: null, topic: '', dpRanks: { start: 0, size: 1 }, contract: null };
  return { id, url, ...plain, ...fields };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'none',
    (error) => (error as MoonrouteError).code,
  );
}

// ---- simulated workers ----

if (zeromq !== null) {
  behaves('a simulated worker: contract, adapters and streams are in use when add resolves', async (bench) => {
    const worker = await SimulatedWorker.start({ id: 'w', model: 'm', adapters: ['sql', 'chat'], dp: 2 });
    bench.closes(() => worker.close());
    const { registry, router, live } = bench;
    const view = await registry.add(
      spec('w', worker.httpUrl, {
        events: worker.eventsEndpoints[0]!,
        replay: worker.replayEndpoints[0]!,
        dpRanks: { start: 0, size: 2 },
        contract: 'endpoint',
      }),
      true,
    );
    assert.equal(
      [view.healthy, view.configured, view.adapters, view.models, view.contractFault],
      [true, true, ['sql', 'chat'], ['m'], null],
    );
    assert.equal(
      ['m', 'sql', 'chat', 'x'].map((name) => registry.knows(name)),
      ['model', 'adapter', 'adapter', null],
    );
    assert.equal(
      router
        .workers()
        .map(({ id, draining, adapters, ranks }) => [id, draining, adapters, ranks.map((r) => r.admission)]),
      [['w', false, ['sql', 'chat'], ['admitted', 'admitted']]],
    );
    assert.is(live.status().workers.length, 2);
    assert.is(registry.remove('w'), true);
    assert.equal([router.workers(), live.status().workers, registry.list()], [[], [], []]);
    assert.is(registry.remove('w'), false);
  });

  behaves('a worker that dies is drained, and comes back when it lives again', async (bench) => {
    const worker = await SimulatedWorker.start({ id: 'w', model: 'm' });
    bench.closes(() => worker.close());
    const { registry } = bench;
    await registry.add(spec('w', worker.httpUrl, { events: worker.eventsEndpoints, contract: 'endpoint' }));
    assert.is(bench.drains('w'), false);
    await worker.kill();
    await bench.round('draining', () => bench.drains('w'));
    assert.is(registry.get('w')!.healthy, false);
    await worker.revive();
    await bench.round('the way back', () => !bench.drains('w'));
    assert.is(registry.get('w')!.healthy, true);
    assert.is(registry.get('w')!.contractFault, null);
  });
}

// ---- health ----

behaves('a worker that is not there is added, drained, and taken in when it comes', async (bench) => {
  const worker = await bench.hand({ '/health': json({}, 503) });
  const view = await bench.registry.add(spec('w', worker.url));
  assert.is(view.healthy, false);
  assert.is(bench.drains('w'), true);
  assert.is(worker.count('/v1/models'), 0, 'one that does not answer is not asked more');
  worker.routes['/health'] = json({});
  await bench.round('health', () => bench.registry.get('w')!.healthy);
  await until('models', () => bench.registry.knows('hand') === 'model');
  assert.is(bench.drains('w'), false);
});

behaves('one late answer is forgiven, two are not; and no round begins before the last one ends', async (bench) => {
  const worker = await bench.hand();
  await bench.registry.add(spec('w', worker.url));
  worker.routes['/health'] = silent;
  for (let failures = 1; failures <= 2; failures++) {
    const before = worker.count('/health');
    await bench.round('a question', () => worker.count('/health') === before + 1);
    bench.clock.advance(1499); // almost late
    assert.is(bench.registry.get('w')!.healthy, true);
    assert.is(worker.count('/health'), before + 1);
    bench.clock.advance(1);
  }
  await until('draining', () => bench.drains('w'));
  assert.match(bench.lines.join('\n'), /does not answer: .*no whole answer after 1500 ms/);
});

behaves('a connection that ends as it is used is no failure; two are', async (bench) => {
  const worker = await bench.hand();
  await bench.registry.add(spec('w', worker.url));
  const breaks = (times: number): void => {
    let left = times;
    worker.routes['/health'] = (response) => (left-- > 0 ? void response.destroy() : response.end());
  };
  for (let i = 0; i < 3; i++) {
    breaks(1);
    const before = worker.count('/health');
    await bench.round('two questions', () => worker.count('/health') === before + 2);
  }
  assert.is(bench.registry.get('w')!.healthy, true);
  breaks(10);
  await bench.round('draining', () => bench.drains('w'), 2 * ROUND_MS);
});

behaves('health that redirects is none, and nobody follows', async (bench) => {
  const other = await bench.hand();
  const worker = await bench.hand({
    '/health': (response) => response.writeHead(302, { location: `${other.url}/health` }).end(),
  });
  assert.is((await bench.registry.add(spec('w', worker.url))).healthy, false);
  assert.is(other.seen.length, 0);
});

behaves('what somebody drains stays drained, whatever the worker does', async (bench) => {
  const worker = await bench.hand();
  const { registry } = bench;
  await registry.add(spec('w', worker.url));
  assert.is(registry.setDraining('w', true), true);
  assert.is(registry.setDraining('x', true), false);
  worker.routes['/health'] = json({}, 500);
  await bench.round('failures', () => registry.get('w')!.healthy === false, 2 * ROUND_MS);
  worker.routes['/health'] = json({});
  await bench.round('an answer', () => registry.get('w')!.healthy === true);
  assert.is(bench.drains('w'), true);
  worker.routes['/v1/models'] = json({ data: [{ id: 'hand' }, { id: 'sql', parent: 'hand' }] });
  await bench.round('an adapter', () => registry.knows('sql') === 'adapter', REFRESH_MS);
  assert.is(bench.drains('w'), true);
  await registry.add(spec('w', worker.url, { topic: 'other' }));
  assert.is(bench.drains('w'), true);
  registry.setDraining('w', false);
  assert.is(bench.drains('w'), false);
});

behaves('a worker that comes back is asked at once what it serves now', async (bench) => {
  const worker = await bench.hand();
  const { registry } = bench;
  await registry.add(spec('w', worker.url));
  worker.routes['/health'] = json({}, 500);
  await bench.round('failures', () => registry.get('w')!.healthy === false, 2 * ROUND_MS);
  worker.routes['/health'] = json({});
  worker.routes['/v1/models'] = json({ data: [{ id: 'hand' }, { id: 'sql', parent: 'hand' }] });
  await bench.round('an adapter', () => registry.knows('sql') === 'adapter');
});

// ---- models ----

behaves('adapters that come and go reach the router, and streams stay', async (bench) => {
  const worker = await bench.hand();
  const { registry, router } = bench;
  await registry.add(spec('w', worker.url));
  assert.equal(router.workers()[0]!.adapters, []);
  worker.routes['/v1/models'] = json({ data: [{ id: 'hand' }, { id: 'sql', parent: 'hand' }] });
  await bench.round('an adapter', () => router.workers()[0]!.adapters.length === 1, REFRESH_MS);
  assert.is(registry.knows('sql'), 'adapter');
  worker.routes['/v1/models'] = json({ data: [{ id: 'hand' }] });
  await bench.round('none', () => router.workers()[0]!.adapters.length === 0, REFRESH_MS);
  assert.is(registry.knows('sql'), null);
});

behaves('bad lists change nothing', async (bench) => {
  const worker = await bench.hand();
  const { registry } = bench;
  await registry.add(spec('w', worker.url));
  const bad = [
    json({ data: 7 }),
    json({}, 500),
    json({ data: [{ id: 'x'.repeat(2 << 20) }] }),
    (response: { end(text: string): void }) => response.end('<html>'),
  ];
  for (const handler of bad) {
    worker.routes['/v1/models'] = handler as never;
    const before = worker.count('/v1/models');
    await bench.round('a question', () => worker.count('/v1/models') > before, REFRESH_MS);
  }
  const before = worker.count('/health');
  await bench.round('the next round', () => worker.count('/health') > before);
  assert.equal(registry.get('w')!.models, ['hand']);
});

behaves('a worker of another model gets no requests', async (bench) => {
  const first = await bench.hand();
  const other = await bench.hand({ '/v1/models': json({ data: [{ id: 'else', root: 'else' }] }) });
  await bench.registry.add(spec('a', first.url));
  const view = await bench.registry.add(spec('b', other.url));
  assert.is(view.healthy, false);
  assert.equal([bench.drains('a'), bench.drains('b')], [false, true]);
  assert.equal([bench.registry.knows('hand'), bench.registry.knows('else')], ['model', null]);
  assert.match(bench.lines.join('\n'), /does not list the model hand/);
  // With the last one that serves it the model has gone, and the other's is served.
  bench.registry.remove('a');
  assert.is(bench.registry.knows('else'), 'model');
  assert.is(bench.drains('b'), false);
});

const card = (id: string, root: string, parent: string | null = null) => ({ id, root, parent });

behaves(
  'a name that is an adapter here and the model there is neither, and is said with who lists it',
  async (bench) => {
    const model = card('hand', 'hand');
    const list = (...data: unknown[]) => ({ '/v1/models': json({ data: [model, ...data] }) });
    const one = await bench.hand(list(card('sql', '/lora', 'hand'), card('chat', '/chat', 'hand')));
    const two = await bench.hand(list(card('sql', 'hand')));
    const three = await bench.hand(list());
    const { registry } = bench;
    const say = (name: string) => [registry.knows(name), registry.listedBy(name)];
    await registry.add(spec('w1', one.url));
    await registry.add(spec('w3', three.url));
    assert.equal(say('sql'), ['adapter', null], 'the router keeps adapters to those that have them');
    assert.is(bench.lines.filter((line) => /workers disagree/.test(line)).length, 0);
    await registry.add(spec('w2', two.url));
    assert.equal(['hand', 'chat', 'none', 'sql'].map(say), [
      ['model', null],
      ['adapter', null],
      [null, null],
      [null, ['w1', 'w2']],
    ]);
    registry.remove('w3');
    assert.is(bench.lines.filter((line) => /workers disagree/.test(line)).length, 1, 'it is said once');
    registry.remove('w1');
    assert.equal(say('sql'), ['model', null]);
    await registry.add(spec('w3', three.url));
    assert.equal(say('sql'), ['model', ['w2']], 'a further name of the model that not all have');
  },
);

behaves(
  'the configured model stands, whatever workers list first',
  async (bench) => {
    assert.is(bench.registry.knows('hand'), 'model');
    const worker = await bench.hand({
      '/v1/models': json({
        data: [
          { id: 'alias', root: 'r' },
          { id: 'hand', root: 'r' },
        ],
      }),
    });
    await bench.registry.add(spec('w', worker.url));
    assert.equal([bench.registry.knows('hand'), bench.registry.knows('alias')], ['model', 'model']);
  },
  { config: { model: 'hand', registration: { networks: null } } },
);

// ---- contracts ----

behaves('a descriptor that comes late, changes, and is taken back', async (bench) => {
  const worker = await bench.hand({ '/moonroute/descriptor': json({}, 503) });
  const { registry, router } = bench;
  const admission = () => router.workers()[0]!.ranks[0]!.admission;
  const events = 'tcp://127.0.0.1:9';
  const view = await registry.add(spec('w', worker.url, { contract: 'endpoint', events }));
  assert.match(view.contractFault!, /descriptor answers with status 503/);
  worker.routes['/moonroute/descriptor'] = json(smallDescriptor());
  await bench.round('a contract', () => admission() === 'admitted');
  assert.is(registry.get('w')!.contractFault, null);
  // The same again is no news: streams would begin anew.
  const { generation } = router;
  const asked = worker.count('/moonroute/descriptor');
  await bench.round('a question', () => worker.count('/moonroute/descriptor') > asked, REFRESH_MS);
  await bench.round('the next round', () => true);
  assert.is(bench.lines.filter((line) => /publishes another contract/.test(line)).length, 1);
  // Another one.
  const other = smallDescriptor();
  other.groups[0]!.key_prefixes[0] = other.groups[0]!.key_prefixes[0]!.replace('pool', 'else');
  worker.routes['/moonroute/descriptor'] = json(other);
  await bench.round('another', () => router.generation > generation, REFRESH_MS);
  // None any more.
  worker.routes['/moonroute/descriptor'] = json({}, 404);
  await bench.round('none', () => admission() === 'no-contract', REFRESH_MS);
  assert.match(registry.get('w')!.contractFault!, /publishes no contract: .*status 404/);
  // One that can't be trusted.
  worker.routes['/moonroute/descriptor'] = json({ schema_version: 99 });
  await bench.round('an invalid one', () => admission() === 'contract-invalid');
  assert.match(registry.get('w')!.contractFault!, /99/);
});

const BAD_DESCRIPTORS: Readonly<Record<string, readonly [Parameters<typeof HandWorker.open>[0], RegExp]>> = {
  '404': [{}, /publishes no contract/],
  'no JSON': [{ '/moonroute/descriptor': (response) => response.end('{') }, /no JSON/],
  'too large': [{ '/moonroute/descriptor': json('x'.repeat(5 << 20)) }, /more than 4194304 bytes/],
  'cut short': [
    {
      '/moonroute/descriptor': (response) => {
        response.writeHead(200, { 'content-length': 100 }).write('{');
        setTimeout(() => response.destroy(), 5);
      },
    },
    /descriptor: /,
  ],
};

for (const [what, [routes, fault]] of Object.entries(BAD_DESCRIPTORS)) {
  behaves(`a bad descriptor: ${what}`, async (bench) => {
    const worker = await bench.hand(routes);
    const view = await bench.registry.add(spec('w', worker.url, { contract: 'endpoint' }));
    assert.match(view.contractFault!, fault);
    assert.is(view.healthy, true);
  });
}

behaves('a known descriptor outlasts failures of its endpoint', async (bench) => {
  const worker = await bench.hand({ '/moonroute/descriptor': json(smallDescriptor()) });
  await bench.registry.add(spec('w', worker.url, { contract: 'endpoint' }));
  worker.routes['/moonroute/descriptor'] = json({}, 500);
  await bench.round('a question', () => worker.count('/moonroute/descriptor') === 2, REFRESH_MS);
  const before = worker.count('/health');
  await bench.round('the next round', () => worker.count('/health') > before);
  assert.is(bench.registry.get('w')!.contractFault, null);
});

behaves('contracts inline, by file, and none', async (bench) => {
  const worker = await bench.hand();
  const file = join(tmpdir(), `moonroute-contract-${process.pid}.json`);
  bench.closes(() => rmSync(file));
  writeFileSync(file, JSON.stringify(smallDescriptor()));
  const { registry } = bench;
  const fault = async (contract: WorkerSpec['contract']) =>
    (await registry.add(spec('w', worker.url, { contract }), true)).contractFault;
  assert.is(await fault({ inline: smallDescriptor() }), null);
  assert.is(await fault({ file }), null);
  assert.match((await fault(null))!, /no contract was given/);
  assert.is(await codeOf(fault({ file: `${file}.gone` })), 'worker-spec');
  assert.is(await codeOf(registry.add(spec('w', worker.url, { contract: { file } }))), 'worker-spec');
  assert.is(worker.count('/moonroute/descriptor'), 0);
  // A reload looks at the file again.
  const configured = [spec('w', worker.url, { contract: { file } })];
  assert.equal(await registry.reload(configured), { added: 0, removed: 0, changed: 1 });
  assert.equal(await registry.reload(configured), { added: 0, removed: 0, changed: 0 });
  writeFileSync(file, JSON.stringify({ schema_version: 7 }));
  assert.equal(await registry.reload(configured), { added: 0, removed: 0, changed: 1 });
  assert.match(registry.get('w')!.contractFault!, /7/);
});

// ---- adding, removing, reloading ----

behaves('the same worker again changes nothing; another of its name replaces it', async (bench) => {
  const worker = await bench.hand();
  const other = await bench.hand();
  const { registry } = bench;
  await registry.add(spec('w', worker.url));
  await registry.add(spec('w', worker.url));
  assert.is(worker.count('/health'), 1);
  assert.is((await registry.add(spec('w', other.url))).url, other.url);
  assert.is(registry.list().length, 1);
  const before = other.count('/health');
  await bench.round('a round', () => other.count('/health') > before);
  assert.is(worker.count('/health'), 1, 'the one before is watched no more');
});

behaves('a worker with events that is replaced by one without loses its streams', async (bench) => {
  const worker = await bench.hand();
  await bench.registry.add(spec('w', worker.url, { events: 'tcp://127.0.0.1:9' }));
  assert.is(bench.live.status().workers.length, 1);
  await bench.registry.add(spec('w', worker.url));
  assert.is(bench.live.status().workers.length, 0);
  assert.is(bench.router.workers().length, 1);
});

behaves('a worker that is removed while it is being added does not come', async (bench) => {
  const worker = await bench.hand({ '/health': silent });
  const adding = codeOf(bench.registry.add(spec('w', worker.url)));
  await until('a question', () => worker.count('/health') === 1);
  assert.is(bench.registry.remove('w'), true);
  bench.clock.advance(ROUND_MS);
  assert.is(await adding, 'worker-overtaken');
  assert.equal([bench.registry.list(), bench.router.workers()], [[], []]);
});

behaves('of two that are added under one name at once, the later stays', async (bench) => {
  const slow = await bench.hand({ '/health': silent });
  const quick = await bench.hand();
  const first = codeOf(bench.registry.add(spec('w', slow.url)));
  await until('a question', () => slow.count('/health') === 1);
  assert.is((await bench.registry.add(spec('w', quick.url))).url, quick.url);
  bench.clock.advance(ROUND_MS);
  assert.is(await first, 'worker-overtaken');
  assert.is(bench.registry.get('w')!.url, quick.url);
});

behaves('reload makes the configured workers those given; registered ones stay', async (bench) => {
  const workers = await Promise.all([1, 2, 3].map(() => bench.hand()));
  const [a, b, c] = workers.map(({ url }) => url) as [string, string, string];
  const { registry } = bench;
  const ids = () => registry.list().map(({ id, configured }) => `${id}${configured ? '' : ' registered'}`);
  assert.equal(await registry.reload([spec('a', a), spec('b', b)]), { added: 2, removed: 0, changed: 0 });
  await registry.add(spec('r', c));
  assert.equal(await registry.reload([spec('b', c), spec('c', a)]), { added: 1, removed: 1, changed: 1 });
  assert.equal(ids().sort(), ['b', 'c', 'r registered']);
  // One that was registered becomes configured.
  assert.equal(await registry.reload([spec('b', c), spec('c', a), spec('r', c)]), { added: 0, removed: 0, changed: 0 });
  assert.equal(await registry.reload([]), { added: 0, removed: 3, changed: 0 });
  assert.equal(ids(), []);
});

behaves('a bad reload changes nothing', async (bench) => {
  const worker = await bench.hand();
  const { registry } = bench;
  await registry.reload([spec('a', worker.url)]);
  const good = spec('b', worker.url);
  const bad = [
    [good, spec('c', 'https://x')],
    [good, good],
    [good, spec('c', worker.url, { contract: { file: '/nowhere/descriptor.json' } })],
  ];
  for (const specs of bad) assert.is(await codeOf(registry.reload(specs)), 'worker-spec');
  assert.equal(
    registry.list().map(({ id }) => id),
    ['a'],
  );
});

behaves('a reload that does not fit changes nothing, asks nobody, and says what to do', async (bench) => {
  const worker = await bench.hand();
  const other = await bench.hand();
  const { registry, router } = bench;
  const ranks = (id: string, size: number, url = worker.url) => spec(id, url, { dpRanks: { start: 0, size } });
  await registry.reload([ranks('a', 20), ranks('b', 20)]);
  await registry.add(ranks('r', 20)); // 60 of 64
  const before = JSON.stringify([registry.list(), router.workers().map(({ id }) => id)]);
  // a leaves and b shrinks, and still there is one too many with what was registered.
  const error = await registry.reload([ranks('b', 10, other.url), ranks('c', 35, other.url)]).catch((error) => error);
  assert.is(error.code, 'router-full');
  assert.match(error.message, /there would be 65 worker ranks, and this router has room for 64\. Remove .* or restart/);
  assert.is(await codeOf(registry.add(ranks('s', 5, other.url))), 'router-full');
  assert.match(
    (await registry.add(ranks('s', 1024)).catch((error) => error)).message,
    /or split the pool, for no router/,
  );
  assert.is(JSON.stringify([registry.list(), router.workers().map(({ id }) => id)]), before);
  assert.is(other.seen.length, 0);
});

behaves('a reload that fits goes through, whoever has to make room first', async (bench) => {
  const worker = await bench.hand();
  const { registry, router } = bench;
  const ranks = (id: string, size: number) => spec(id, worker.url, { dpRanks: { start: 0, size } });
  await registry.reload([ranks('a', 1), ranks('b', 31), ranks('c', 32)]);
  const done = await registry.reload([ranks('a', 62), ranks('b', 1), ranks('c', 1)]);
  assert.equal(done, { added: 0, removed: 0, changed: 3 });
  assert.equal(new Map(router.workers().map(({ id, ranks }) => [id, ranks.length])).get('a'), 62);
});

behaves('while a reload goes on nobody else is given the room of those whose turn has not come', async (bench) => {
  const worker = await bench.hand();
  const slow = await bench.hand({ '/health': silent });
  const { registry } = bench;
  const first = Array.from({ length: 32 }, (_, i) => spec(`s${i}`, slow.url)); // as many as are added at once
  const reload = registry.reload([...first, spec('last', worker.url, { dpRanks: { start: 0, size: 32 } })]);
  await until('all questions', () => slow.count('/health') === first.length);
  assert.is(await codeOf(registry.add(spec('r', worker.url))), 'router-full');
  bench.clock.advance(ROUND_MS);
  assert.equal(await reload, { added: 33, removed: 0, changed: 0 });
});

behaves('a reload that is abandoned waits for nobody, and adds nobody any more', async (bench) => {
  const quick = await bench.hand();
  const slow = await bench.hand({ '/health': silent });
  const { registry } = bench;
  await registry.reload([spec('a', quick.url)]);
  const many = Array.from({ length: 60 }, (_, i) => spec(`s${i}`, slow.url));
  const ending = new AbortController();
  const first = codeOf(registry.reload([spec('a', quick.url), ...many], ending.signal));
  const second = codeOf(registry.reload([], ending.signal));
  await until('questions', () => slow.count('/health') > 0);
  const lines = bench.lines.length;
  ending.abort();
  // The clock of the questions stands still: their own time does not end them.
  assert.equal(await Promise.all([first, second]), ['reload-abandoned', 'reload-abandoned']);
  assert.equal(
    registry.list().map(({ id }) => id),
    ['a'],
  );
  assert.equal(bench.lines.slice(lines), [], 'sixty lines of the log say nothing');
  // As it does where the registry itself is closed.
  const third = codeOf(registry.reload(many));
  await until('questions', () => slow.count('/health') > 32);
  await registry.close();
  assert.is(await third, 'reload-abandoned');
});

behaves("the router's refusal is passed on, and nothing stays", async (bench) => {
  const worker = await bench.hand();
  const { registry } = bench;
  await registry.add(spec('w', worker.url));
  const many = spec('x', worker.url, { dpRanks: { start: 0, size: 1024 } });
  assert.is(await codeOf(registry.add(many)), 'router-full');
  assert.equal(
    registry.list().map(({ id }) => id),
    ['w'],
  );
  const before = worker.count('/health');
  await bench.round('a round', () => worker.count('/health') > before);
  assert.is(worker.count('/health'), before + 1, 'only one is watched');
});

test('no more workers than the bound', async () => {
  const answer = async () => new Response('{"data":[{"id":"m"}]}');
  const bench = await Bench.open({ fetch: answer }, { index: { ranks: 1024 } });
  try {
    const url = 'http://127.0.0.1:9';
    await bench.registry.reload(Array.from({ length: MAX_WORKERS }, (_, i) => spec(`w${i}`, url)));
    assert.is(await codeOf(bench.registry.add(spec('more', url))), 'too-many-workers');
    assert.is(await codeOf(bench.registry.add(spec('w7', `${url}9`))), 'none');
    bench.registry.remove('w0');
    assert.is(await codeOf(bench.registry.add(spec('more', url))), 'none');
  } finally {
    await bench.close();
  }
});

behaves('after close nobody is asked, and nobody comes in', async (bench) => {
  const worker = await bench.hand();
  const { registry } = bench;
  await registry.add(spec('w', worker.url));
  await registry.close();
  const before = worker.seen.length;
  bench.clock.advance(60_000);
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(worker.seen.length, before);
  assert.is(await codeOf(registry.add(spec('x', worker.url))), 'registry-closed');
});

// ---- registration from outside ----

behaves(
  'a foreign address is refused before anything is sent there; a name is its address from then on',
  async (bench) => {
    const worker = await bench.hand();
    const { registry } = bench;
    assert.is(await codeOf(registry.add(spec('w', `http://elsewhere:${worker.port}`))), 'worker-address');
    assert.is(await codeOf(registry.add(spec('w', 'http://169.254.169.254'))), 'worker-address');
    assert.is(await codeOf(registry.add(spec('w', worker.url, { events: 'tcp://elsewhere:1' }))), 'worker-address');
    assert.is(worker.seen.length, 0);
    const view = await registry.add(spec('w', `http://here:${worker.port}`));
    assert.is(view.url, worker.url);
    addresses = ['10.9.9.9']; // the name leads elsewhere now
    await bench.round('a round', () => worker.count('/health') === 2);
    assert.is(registry.get('w')!.healthy, true);
    // Configured ones are the operator's own.
    addresses = ['8.8.8.8'];
    assert.is(
      (await registry.add(spec('v', `http://localhost:${worker.port}`), true)).url,
      `http://localhost:${worker.port}`,
    );
  },
  { resolve: async (host) => (host === 'here' ? addresses : ['8.8.8.8']) },
);
let addresses = ['127.0.0.1'];

test.run();
