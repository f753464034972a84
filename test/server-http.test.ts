// Everything of the HTTP app that is no completion: decisions and their leases, explanations, workers, health, status, keys and doors.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { blockHashes } from '../src/core/local-hash.js';
import type { ConfigError } from '../src/errors.js';
import { Router } from '../src/router/router.js';
import { createApp, refuseOpen } from '../src/server/app.js';
import { Keys } from '../src/server/http/auth.js';
import type { ApiError } from '../src/server/http/errors.js';
import { RouteLeases } from '../src/server/http/route-leases.js';
import type { EndedRequest } from '../src/server/types.js';
import { complete, post, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { configOf, MODEL, type Served, withServed } from './support/server-pool.js';

const BLOCK = 16;
// biome-ignore lint/suspicious/noExplicitAny: whatever JSON says is looked at field by field
type Json = Record<string, any>;

const ask = async (served: Served, path: string, body?: unknown, init: RequestInit = {}): Promise<[number, Json]> => {
  const response =
    body === undefined ? await fetch(served.url + path, init) : await post(served.url + path, body, init);
  return [response.status, (await response.json()) as Json];
};
const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

if (zeromq !== null) {
  test('POST /route: a decision of tokens, of hashes, of bodies; its lease is gone at once', () =>
    withServed({}, async (served) => {
      const tokens = tokensOf(1, 4 * BLOCK + 1);
      await complete(served.url, tokens, { model: MODEL });
      const [{ worker }] = (await served.settled(1)) as [EndedRequest];
      await until('the events', () => served.router.dump(worker.id).length > 0);
      const local_hashes = [...blockHashes(Uint32Array.from(tokens), BLOCK)].map(String);
      for (const body of [
        { tokens },
        { local_hashes, token_count: tokens.length },
        { completions: { model: MODEL, prompt: tokens } },
      ]) {
        const [status, said] = await ask(served, '/route', body);
        assert.is(status, 200, JSON.stringify(said));
        assert.equal(said['worker'], { id: worker.id, dp_rank: 0 });
        assert.equal(said['blocks'], { device: 4, host: 0, disk: 0, shared: 0, request: 5 });
        assert.is(said['predicted_tokens'], 64);
        assert.is(said['lease'], 'none');
        assert.is(said['url'], served.registry.get(worker.id)!.url);
        assert.is(said['candidates'], undefined);
        assert.is(said['block_size'], BLOCK);
      }
      const [, chat] = await ask(served, '/route', {
        chat: { model: MODEL, messages: [{ role: 'user', content: 'hi' }] },
      });
      assert.is(chat['prompt'].source, 'local');
      const ended = await served.settled(5);
      for (const { kind, outcome, status } of ended.slice(1))
        assert.equal([kind, outcome, status], ['route', 'completed', 200]);
      assert.is(served.service.active, 0);
    }));

  test('POST /route: provenance is believed where the configuration says so, and refused elsewhere', async () => {
    const body = { tokens: tokensOf(1, 40), text_only: true };
    await withServed({}, async (served) => {
      const [status, { error }] = await ask(served, '/route', body);
      assert.equal([status, error.code], [403, 'provenance-not-allowed']);
      const [, said] = await ask(served, '/route', { tokens: body.tokens });
      assert.is(said['shared_reason'].code, 'not-proven');
      assert.is(said['prompt'].text_only, false);
    });
    await withServed({ config: { provenance: { route: true } } }, async (served) => {
      const [, said] = await ask(served, '/route', body);
      assert.is(said['prompt'].text_only, true);
      assert.is.not(said['shared_reason'].code, 'not-proven');
      const [status] = await ask(served, '/route', { completions: { prompt: [1] }, text_only: true });
      assert.is(status, 403);
    });
  });

  test('POST /route with a lease: reports change the load until it ends', () =>
    withServed({}, async (served) => {
      const load = () =>
        served.router
          .workers()
          .flatMap(({ ranks }) => ranks)
          .reduce((sum, { load }) => sum + load.activeRequests, 0);
      for (const end of ['complete', 'fail', 'cancel']) {
        const [, { lease }] = await ask(served, '/route', { tokens: tokensOf(2, 40), lease: 'open' });
        assert.match(lease, /^mr-/);
        assert.is(load(), 1);
        assert.equal(await ask(served, `/route/${lease}/admitted`, {}), [200, {}]);
        await ask(served, `/route/${lease}/progress`, { generated_tokens: 3 });
        await ask(served, `/route/${lease}/${end}`, { cached_tokens: 16, generated_tokens: 5 });
        assert.is(load(), 0);
        const [status, { error }] = await ask(served, `/route/${lease}/${end}`, {});
        assert.equal([status, error.code], [404, 'unknown-lease']);
        const last = served.ended.at(-1)!;
        assert.is(last.outcome, { complete: 'completed', fail: 'failed', cancel: 'cancelled' }[end]);
        assert.is(last.generatedTokens, 5);
        if (end === 'complete') assert.is(last.cachedTokens, 16);
      }
      assert.is((await ask(served, '/route/x/nonsense', {}))[0], 404);
      const { completed, failed, cancelled } = served.router.stats().leases;
      assert.equal([completed, failed, cancelled], [1, 1, 1]);
    }));

  test('a lease is its opener’s: nobody guesses its name, or ends it; and no client has a worker passed over', () =>
    withServed(
      { fleet: { workers: 1 }, config: { auth: { clientKeys: ['one', 'two'], adminKeys: ['admin'] } } },
      async (served) => {
        const open = async (): Promise<Json> =>
          (await ask(served, '/route', { tokens: [1], lease: 'open' }, bearer('one')))[1];
        const report = async (lease: string, what: string, key: string) =>
          (await ask(served, `/route/${lease}/${what}`, {}, bearer(key)))[0];
        const first = await open();
        assert.match(first['lease'], /^mr-[0-9a-f]{32}$/);
        assert.is.not(first['lease'], first['request_id']);
        assert.is(await report(first['request_id'], 'fail', 'one'), 404);
        assert.is(await report(first['lease'], 'cancel', 'two'), 404);
        assert.is(await report(first['lease'], 'cancel', 'three'), 401);
        assert.is(await report(first['lease'], 'complete', 'one'), 200);
        for (let i = 0; i < 5; i++) assert.is(await report((await open())['lease'], 'fail', 'one'), 200);
        const leases = () => served.router.stats().leases;
        assert.equal([leases().failed, leases().cancelled, leases().open], [0, 5, 0]);
        // Who may remove a worker may also say that it failed.
        assert.is(await report((await open())['lease'], 'fail', 'admin'), 200);
        assert.is(leases().failed, 1);
      },
    ));

  test('a lease that is not heard of expires', () =>
    withServed({ config: { limits: { requestTime: 100 } } }, async (served) => {
      await ask(served, '/route', { tokens: [1], lease: 'open' });
      assert.is(served.router.stats().leases.open, 1);
      const [, status] = await ask(served, '/status');
      assert.is(status['route_leases'], 1);
      await until('it to expire', () => served.router.stats().leases.open === 0);
      assert.is(served.ended.at(-1)!.outcome, 'cancelled');
    }));

  test('POST /route refuses by name what can not be meant', () =>
    withServed({}, async (served) => {
      for (const [body, code, param] of [
        [{}, 'route-request', null],
        [{ tokens: [1], local_hashes: [] }, 'route-request', null],
        [{ tokens: [1, -1] }, 'route-request', 'tokens'],
        [{ tokens: [1.5] }, 'route-request', 'tokens'],
        [{ tokens: 'abc' }, 'invalid-request', 'tokens'],
        [{ local_hashes: ['1'] }, 'route-request', null],
        [{ local_hashes: ['18446744073709551616'], token_count: 20 }, 'route-request', 'local_hashes'],
        [{ local_hashes: ['0x1'], token_count: 20 }, 'route-request', 'local_hashes'],
        [{ tokens: [1], what: 1 }, 'invalid-request', null],
        [{ tokens: [1], shared_cache_multiplier: 2 }, 'invalid-request', 'shared_cache_multiplier'],
        [{ tokens: [1], lease: 'maybe' }, 'invalid-request', 'lease'],
      ] as const) {
        const [status, { error }] = await ask(served, '/route', body);
        assert.equal([status, error.code, error.param], [400, code, param], JSON.stringify(body));
      }
      const [status, { error }] = await ask(served, '/route', { tokens: [1], allowed: ['nobody'] });
      assert.equal([status, error.code], [503, 'no-workers']);
      assert.ok(served.ended.every(({ outcome, worker }) => outcome === 'refused' && worker.id === ''));
    }));

  test('POST /explain shows every candidate and every reason', () =>
    withServed({}, async (served) => {
      const [status, said] = await ask(served, '/explain', { tokens: tokensOf(3, 40) });
      assert.is(status, 200);
      assert.equal(
        said['candidates'].map(({ worker }: Json) => worker.id),
        ['worker-0', 'worker-1'],
      );
      const [candidate] = said['candidates'];
      assert.ok('active_requests' in candidate.load && candidate.zero.device.code === 'not-held');
      assert.ok(Array.isArray(said['reasons']) && said['reasons'].length > 0);
      assert.is(served.router.stats().leases.open, 0);
    }));

  test('workers: listed, registered, drained, removed; a foreign address is refused', () =>
    withServed({}, async (served) => {
      const [, { workers }] = await ask(served, '/workers');
      assert.equal(
        workers.map(({ id, healthy, draining, configured }: Json) => [id, healthy, draining, configured]),
        [
          ['worker-0', true, false, true],
          ['worker-1', true, false, true],
        ],
      );
      const { url } = served.registry.get('worker-1')!;
      const [created, added] = await ask(served, '/workers', { id: 'more', url, contract: null });
      assert.equal([created, added['id'], added['configured']], [201, 'more', false]);
      assert.is((await ask(served, '/workers', { id: 'more', url, contract: null }))[0], 200);
      assert.is((await ask(served, '/workers/more/drain', {}))[0], 200);
      const draining = () => served.router.workers().find(({ id }) => id === 'more')!.draining;
      assert.is(draining(), true);
      await ask(served, '/workers/more/drain', undefined, { method: 'DELETE' });
      assert.is(draining(), false);
      assert.is((await ask(served, '/workers/more', undefined, { method: 'DELETE' }))[0], 200);
      assert.is((await ask(served, '/workers/more', undefined, { method: 'DELETE' }))[0], 404);
      for (const [spec, status, code] of [
        [{ id: 'evil', url: 'http://203.0.113.9:80' }, 403, 'worker-address'],
        [{ id: 'evil', url: 'http://169.254.169.254' }, 403, 'worker-address'],
        [{ id: 'evil' }, 400, 'worker-spec'],
        [{ id: 'evil', url, contract: { file: '/etc/passwd' } }, 400, 'worker-spec'],
        [{ id: 'evil', url, events: 'ipc:///tmp/x' }, 400, 'worker-spec'],
        [{ id: 'worker-0', url }, 409, 'worker-configured'],
      ] as const) {
        const [was, { error }] = await ask(served, '/workers', spec);
        assert.equal([was, error.code], [status, code], JSON.stringify(spec));
      }
      assert.is(served.registry.list().length, 2);
    }));

  test('health, readiness, status, models, and nothing else', () =>
    withServed({}, async (served) => {
      assert.is((await ask(served, '/healthz'))[0], 200);
      assert.equal(await ask(served, '/readyz'), [200, { ready: true }]);
      const [, status] = await ask(served, '/status');
      for (const part of ['router', 'live', 'registry', 'prompts', 'workers']) assert.ok(part in status, part);
      assert.is(status['active_requests'], 0);
      const [, { data }] = await ask(served, '/v1/models');
      assert.equal(
        data.map(({ id }: Json) => id),
        [MODEL],
      );
      assert.is((await ask(served, '/v1/models/nobody'))[0], 404);
      assert.is((await ask(served, '/nothing'))[0], 404);
      assert.is((await ask(served, '/metrics'))[0], 404); // given no metrics
      for (const worker of served.fleet.workers) await worker.kill();
      await until('the registry to notice', () => served.registry.list().every(({ healthy }) => !healthy));
      assert.equal(await ask(served, '/readyz'), [503, { ready: false, reason: 'no worker' }]);
      assert.is((await ask(served, '/healthz'))[0], 200);
    }));

  test('keys open their own doors', () =>
    withServed(
      { config: { auth: { clientKeys: ['client-1', 'client-2'], adminKeys: ['admin-1'] } } },
      async (served) => {
        const body = { model: MODEL, prompt: [1], max_tokens: 1 };
        for (const [path, sent, door] of [
          ['/v1/completions', body, 'client'],
          ['/v1/models', undefined, 'client'],
          ['/route', { tokens: [1] }, 'client'],
          ['/explain', { tokens: [1] }, 'admin'],
          ['/workers', undefined, 'admin'],
          ['/status', undefined, 'admin'],
        ] as const) {
          const status = async (key: string | null) =>
            (await ask(served, path, sent, key === null ? {} : bearer(key)))[0];
          assert.is(await status(null), 401, path);
          assert.is(await status('client-3'), 401, path);
          assert.is(await status('client-2'), door === 'client' ? 200 : 403, path);
          assert.is(await status('admin-1'), door === 'admin' ? 200 : 403, path);
        }
        const response = await post(`${served.url}/v1/completions`, body);
        assert.match(response.headers.get('www-authenticate')!, /^Bearer/);
        await response.text();
        assert.is((await ask(served, '/healthz'))[0], 200);
      },
    ));
}

test('who may ask without keys: everybody here, but not by a name', () => {
  const keys = (clientKeys: string[], adminKeys: string[]) => new Keys({ clientKeys, adminKeys });
  const status = (work: () => void): number => {
    try {
      work();
      return 200;
    } catch (error) {
      return (error as ApiError).status;
    }
  };
  const open = keys([], []);
  for (const door of ['client', 'admin', 'either'] as const) {
    for (const host of ['127.0.0.1:80', 'localhost', 'LOCALHOST:1', '[::1]:80'])
      assert.is(
        status(() => open.check(door, null, host)),
        200,
        host,
      );
    for (const host of ['evil.example', 'evil.example:80', '127.0.0.1.evil.example', '', null])
      assert.is(
        status(() => open.check(door, null, host)),
        403,
        String(host),
      );
  }
  const clients = keys(['a'], []);
  assert.is(
    status(() => clients.check('admin', 'Bearer a', '127.0.0.1')),
    403,
  );
  assert.is(
    status(() => clients.check('admin', null, '127.0.0.1')),
    401,
  );
  assert.is(
    status(() => clients.check('client', 'bearer  a ', null)),
    200,
  );
  const admins = keys([], ['b']);
  assert.is(
    status(() => admins.check('client', null, null)),
    200,
  );
  for (const header of [null, '', 'b', 'Basic b', 'Bearer', 'Bearer c', `Bearer ${'b'.repeat(2000)}`, 'Bearer b b']) {
    assert.is(
      status(() => admins.check('admin', header, '127.0.0.1')),
      401,
      String(header),
    );
  }
});

test('without keys only loopback is served', () => {
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1', '[::1]'])
    refuseOpen(configOf({ listen: { host } }));
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'router.example', '127.evil.example']) {
    assert.throws(
      () => refuseOpen(configOf({ listen: { host } })),
      (error: ConfigError) => error.code === 'open-to-all' && error.message.includes(host),
    );
    refuseOpen(configOf({ listen: { host }, auth: { clientKeys: ['k'] } }));
  }
});

test('kept leases are bounded', async () => {
  const router = await Router.create({ index: { bytes: 4 << 20 } });
  router.addWorker({ id: 'a' });
  const leases = new RouteLeases(60_000);
  const owner = { id: 'a', isAdmin: false };
  const ids: string[] = [];
  for (let i = 0; i < 65_536; i++) {
    leases.refuseFull();
    ids.push(leases.keep(router.route({ tokens: [1], now: 0 }).lease, owner));
  }
  assert.throws(() => leases.refuseFull(), /65536 leases are open/);
  for (const id of ids) leases.report(id, 'cancel', { generated: 0, cached: null }, owner);
  assert.is(leases.size, 0);
  router.dispose();
});

test('metrics and console are shown, with nothing of others on the page, and guarded where keys are', async () => {
  const parts = {
    metrics: { text: async () => 'moonroute_up 1\n', contentType: 'text/plain; version=0.0.4' },
    console: {
      page: () => ({ body: '<p>', type: 'text/html' }),
      json: (after?: number) => ({ after }),
      asset: (name: string) => (name === 'console.js' ? { body: '1', type: 'text/javascript' } : null),
    },
  };
  const service = { observers: [], log: { debug() {}, info() {}, warn() {}, error() {} } };
  const app = (config: Parameters<typeof configOf>[0]) =>
    createApp({ ...service, config: configOf(config) } as never, parts);
  const open = app({});
  const local = { headers: { host: 'localhost' } };
  const page = await open.request('/', local);
  assert.is(await page.text(), '<p>');
  assert.match(page.headers.get('content-security-policy')!, /default-src 'none'; script-src 'self'/);
  assert.is(page.headers.get('x-content-type-options'), 'nosniff');
  assert.is(await (await open.request('/console/console.js', local)).text(), '1');
  assert.is((await open.request('/console/other.js', local)).status, 404);
  assert.equal(await (await open.request('/console/data.json?after=7', local)).json(), { after: 7 });
  const metrics = await open.request('/metrics', local);
  assert.equal(
    [await metrics.text(), metrics.headers.get('content-type')],
    ['moonroute_up 1\n', 'text/plain; version=0.0.4'],
  );
  const keyed = app({ auth: { adminKeys: ['admin'], clientKeys: ['client'] } });
  for (const path of ['/metrics', '/console/data.json']) {
    assert.is((await keyed.request(path)).status, 401);
    assert.is((await keyed.request(path, bearer('client'))).status, 403);
    assert.is((await keyed.request(path, bearer('admin'))).status, 200);
  }
  assert.is((await keyed.request('/')).status, 200);
});

test('what goes wrong in a part is 500 and tells the log alone', async () => {
  const lines: string[] = [];
  const say = (fields: object, text: string) => void lines.push(`${text} ${JSON.stringify(fields)}`);
  const app = createApp({
    config: configOf(),
    observers: [],
    log: { debug: say, info: say, warn: say, error: say },
    registry: { list: () => [] },
    router: {
      workers: () => {
        throw new Error('a secret');
      },
    },
  } as never);
  const response = await app.request('/workers', { headers: { host: 'localhost' } });
  assert.is(response.status, 500);
  assert.not.match(await response.text(), /secret/);
  assert.match(lines.join(), /secret/);
});

test.run();
