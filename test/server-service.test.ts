// The service in this process: when it is ready, what it says of settings that have no effect, and that nothing stays open where it can't start.
import { createServer } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { Fleet } from '../src/fleet/fleet.js';
import { type ConfigInput, checkConfig } from '../src/server/config.js';
import { startEmbedded, withFleet } from '../src/server/embedded.js';
import { createLog, readable } from '../src/server/log.js';
import { type RunningService, startService } from '../src/server/service.js';
import { post, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { HandWorker, json, silent } from './support/hand-worker.js';

/** A log that keeps its lines. */
function keptLog(level: 'debug' | 'silent' = 'debug') {
  const lines: string[] = [];
  const log = createLog(level, { write: (line: string) => lines.push(line) });
  return { log, lines, said: (text: string) => lines.some((line) => line.includes(text)) };
}

async function running<T>(
  config: ConfigInput,
  work: (running: RunningService, log: ReturnType<typeof keptLog>) => Promise<T>,
): Promise<T> {
  const kept = keptLog();
  const started = await startService(checkConfig({ listen: { port: 0 }, ...config }), { log: kept.log });
  try {
    return await work(started, kept);
  } finally {
    await started.close();
  }
}

test('not ready without a worker, nor with one that does not answer; it says why', () =>
  running({}, async ({ service, url }) => {
    assert.match(service.notReady()!, /no worker is registered: .*POST \/workers/);
    const response = await fetch(`${url}/readyz`);
    assert.is(response.status, 503);
    assert.match(await response.text(), 'no worker is registered');
    assert.is((await fetch(`${url}/healthz`)).status, 200);
    // Nothing listens there.
    await service.registry.add({
      id: 'gone',
      url: 'http://127.0.0.1:9',
      events: null,
      replay: null,
      topic: '',
      dpRanks: { start: 0, size: 1 },
      contract: null,
    });
    assert.is(service.notReady(), 'none of 1 workers answers its /health');
  }));

test('a store that the policy does not read is said, and its stream not opened', () =>
  running(
    {
      policy: 'round-robin',
      sharedCache: { type: 'mooncake-store', masters: [{ events: 'tcp://127.0.0.1:9', http: null }] },
    },
    async ({ service }, { said }) => {
      assert.ok(said('the shared cache is not read: the policy does not read the shared cache; use kv or ttft'));
      assert.is(service.live.status().store, null);
    },
  ));

test('a name that workers list as different things is asked of them alone, without shared credit; others never see it', async () => {
  const card = (id: string, root: string, parent: string | null = null) => ({ id, root, parent });
  const lists = [[card('sql', '/lora', 'm')], [card('sql', 'm')], []];
  const workers: HandWorker[] = [];
  for (const list of lists) {
    workers.push(
      await HandWorker.open({
        '/v1/models': json({ data: [card('m', 'm'), ...list] }),
        '/v1/completions': json({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } }),
      }),
    );
  }
  const configured = workers.map(({ url }, n) => ({ id: `w${n}`, url, contract: null }));
  try {
    await running({ policy: 'round-robin', workers: configured }, async ({ service, url }) => {
      const { textOnly, loraName } = await service.prompts.read(
        'completions',
        { model: 'sql', prompt: [1, 2, 3] },
        new AbortController().signal,
      );
      assert.equal([textOnly, loraName], [false, null]);
      const ask = async (model: string) => {
        const response = await post(`${url}/v1/completions`, { model, prompt: [1, 2, 3] });
        await response.arrayBuffer();
        return [response.status, response.headers.get('x-moonroute-worker')] as const;
      };
      const asked = new Set<string | null>();
      for (let i = 0; i < 8; i++) {
        const [status, worker] = await ask('sql');
        assert.is(status, 200);
        asked.add(worker);
      }
      assert.equal([...asked].sort(), ['w0', 'w1']);
      assert.is(workers[2]!.count('/v1/completions'), 0);
      assert.is((await ask('none'))[0], 404);
      for (let i = 0; i < 3; i++) await ask('m');
      assert.is(workers[2]!.count('/v1/completions'), 1);
    });
  } finally {
    for (const worker of workers) await worker.close();
  }
});

test('close abandons a reload at once, while requests under way still have their time', async () => {
  let answer: () => void = () => undefined;
  const worker = await HandWorker.open({
    '/v1/completions': (response) => {
      answer = () => json({ choices: [] })(response, '', undefined as never);
    },
  });
  const slow = await HandWorker.open({ '/health': silent });
  const { log } = keptLog('silent');
  const config = (workers: ConfigInput['workers']) => checkConfig({ listen: { port: 0 }, workers });
  const first = { id: 'a', url: worker.url, contract: null };
  const { service, url, reload, close } = await startService(config([first]), { log });
  try {
    const asked = post(`${url}/v1/completions`, { prompt: [1, 2, 3] });
    await until('the request', () => worker.count('/v1/completions') === 1);
    const reloading = reload(config([first, { id: 's', url: slow.url }])).catch((error) => error);
    await until('the reload', () => slow.count('/health') === 1);
    const closed = close();
    assert.is((await reloading).code, 'reload-abandoned');
    assert.is(service.active, 1);
    answer();
    answer = () => undefined;
    assert.is((await asked).status, 200);
    await closed;
  } finally {
    answer();
    await close();
    await worker.close();
    await slow.close();
  }
});

test('where it can’t listen it throws, and closes what it had opened', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.on('listening', resolve));
  const { port } = taken.address() as { port: number };
  const { log } = keptLog('silent');
  try {
    const config = checkConfig({
      listen: { port },
      workers: [{ id: 'a', url: 'http://127.0.0.1:9', events: 'tcp://127.0.0.1:9' }],
    });
    await startService(config, { log });
    assert.unreachable();
  } catch (error) {
    assert.instance(error, ConfigError);
    assert.match((error as Error).message, `127.0.0.1:${port}`);
  } finally {
    taken.close();
  }
});

test('a missing tokenizer is refused at start by name', async () => {
  const { log } = keptLog('silent');
  const config = checkConfig({ listen: { port: 0 }, tokenizer: { file: '/nowhere/tokenizer.json' } });
  try {
    await startService(config, { log });
    assert.unreachable();
  } catch (error) {
    assert.is((error as ConfigError).code, 'tokenizer-file');
    assert.match((error as Error).message, '/nowhere/tokenizer.json');
  }
});

test('the log: JSON lines, or lines for people on a terminal; secrets are cut', () => {
  const fields = {
    worker: 'a',
    authorization: 'Bearer x',
    auth: { clientKeys: ['x'] },
    prompt: 'hello',
    why: { n: 1 },
  };
  const { log, lines } = keptLog();
  log.warn(fields, 'some\u001b[2Jthing');
  const { time, ...line } = JSON.parse(lines[0]!);
  assert.equal(line, { level: 40, worker: 'a', auth: {}, why: { n: 1 }, msg: 'some\u001b[2Jthing' });
  assert.match(readable(lines[0]!), /^\d\d:\d\d:\d\d warn {2}some \[2Jthing worker=a auth=\{\} why=\{"n":1\}\n$/);
  const shown: string[] = [];
  createLog('info', { isTTY: true, write: (text) => shown.push(text) }).info({ url: 'http://a' }, 'listening');
  assert.match(shown[0]!, /^\d\d:\d\d:\d\d info {2}listening url=http:\/\/a\n$/);
  const none: string[] = [];
  createLog('silent', { write: (text) => none.push(text) }).error({}, 'x');
  assert.equal(none, []);
});

test('settings given for the embedded fleet stand beside its own', () => {
  const settings = {
    workers: [],
    sharedCache: { type: 'mooncake-store' as const, masters: [{ events: 'tcp://a:1', http: null }] },
  };
  assert.equal(withFleet({ policy: 'ttft', sharedCache: { multiplier: 0.2 } }, settings), {
    policy: 'ttft',
    workers: [],
    sharedCache: { multiplier: 0.2, ...settings.sharedCache },
  });
  assert.equal(withFleet({ sharedCache: { type: 'none' } }, settings)['sharedCache'], { type: 'none' });
});

if (zeromq !== null) {
  test('ready while a worker answers, and not any more when none does', async () => {
    const fleet = await Fleet.start({ workers: 1 });
    const [worker] = fleet.endpoints().workers;
    try {
      await running(
        { workers: [{ id: 'a', url: worker!.http, events: [...worker!.events] }] },
        async ({ service, url }) => {
          assert.is(service.notReady(), null);
          assert.is((await fetch(`${url}/readyz`)).status, 200);
          await fleet.close();
          await until('not ready', () => service.notReady() !== null);
          assert.is(service.notReady(), 'none of 1 workers answers its /health');
        },
      );
    } finally {
      await fleet.close();
    }
  });

  test('what the GPUs lost is credited from the store, at the embedded fleet', async () => {
    const { fleet, settings, close } = await startEmbedded();
    try {
      const document = withFleet({ listen: { port: 0 } }, settings) as ConfigInput;
      await running(document, async ({ service, url }) => {
        assert.equal(service.router.stats().contracts, { ranks: 4, admitted: 4, reason: null });
        const prompt = tokensOf(3, 200);
        const ask = async () => {
          const response = await post(`${url}/v1/completions`, { prompt, max_tokens: 2 });
          assert.is(response.status, 200);
          await response.text();
          return response.headers.get('x-moonroute-cached-tokens');
        };
        await ask();
        await until('the store to hold it', () => fleet.status().objects > 0);
        for (const worker of fleet.workers) worker.clear();
        await until('credit from the store', async () => {
          const cached = await ask();
          if (cached === 'device=0;host=0;disk=0;shared=192') return true;
          for (const worker of fleet.workers) worker.clear();
          return false;
        });
        assert.is(service.live.status().store?.connected, true);
      });
    } finally {
      await close();
    }
  });

  test('with CURVE keys a worker without encryption is not listened to, and that is said', async () => {
    const key = 'Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID';
    const secretKey = 'D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs';
    const fleet = await Fleet.start({ workers: 1 });
    const [worker] = fleet.endpoints().workers;
    const workers = [{ id: 'a', url: worker!.http, events: [...worker!.events] }];
    try {
      await running(
        { workers, curve: { serverKey: key, publicKey: key, secretKey } },
        async ({ service }, { said }) => {
          await until('the loss', () => said('CURVE'));
          const [stream] = service.live.status().workers;
          assert.is(stream?.connected, false);
          assert.not.ok(said(secretKey));
        },
      );
    } finally {
      await fleet.close();
    }
  });

  test('close waits for what is under way, and leaves no lease', async () => {
    const fleet = await Fleet.start({ workers: 1 });
    const [worker] = fleet.endpoints().workers;
    const { log } = keptLog('silent');
    try {
      const config = checkConfig({
        listen: { port: 0 },
        workers: [{ id: 'a', url: worker!.http, events: [...worker!.events] }],
      });
      const { service, url, close } = await startService(config, { log });
      const response = await post(`${url}/v1/completions`, { prompt: tokensOf(1, 40), max_tokens: 20, stream: true });
      assert.is(service.active, 1);
      const closed = close();
      assert.match(service.notReady()!, 'draining');
      assert.match(await response.text(), /\[DONE\]/);
      await closed;
      assert.is(service.active, 0);
      assert.is(service.router.stats().leases.open, 0);
    } finally {
      await fleet.close();
    }
  });
}

test.run();
