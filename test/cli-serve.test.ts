// `moonroute serve` as a person or a supervisor meets it: first lines, refusals, what it routes to when nothing is configured, and its signals.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SimulatedWorker } from '../src/fleet/worker.js';
import { CONFIG_FILE, CONFIG_SETTINGS } from '../src/server/config-settings.js';
import { post, tokensOf, until, zeromq } from './support/fleet-worker.js';

/** The command, run by each runtime. */
const script = (args: readonly string[]) => `import { serveCommand } from './build/js/src/cli/serve.js';
await serveCommand().parseAsync(${JSON.stringify(args)}, { from: 'user' });`;
const RUNTIMES = {
  node: [process.execPath, '--input-type=module', '-e'],
  deno: ['node_modules/.bin/deno', 'eval', '--no-lock'],
} as const;
const folder = mkdtempSync(join(tmpdir(), 'moonroute-serve-'));
test.after(() => rmSync(folder, { recursive: true }));

/** A server in a process of its own. */
class Served {
  stdout = '';
  stderr = '';
  readonly #child: ChildProcess;
  readonly status: Promise<number | null>;

  constructor(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    runtime: keyof typeof RUNTIMES = 'node',
  ) {
    const [command, ...options] = RUNTIMES[runtime];
    const child = spawn(command, [...options, script(args)], { env: { PATH: process.env['PATH'], ...env } });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.#child = child;
    this.status = new Promise((resolve) => child.on('close', resolve));
  }

  /** Its address, once it listens. */
  async url(): Promise<string> {
    await until('the server to listen', () => {
      if (this.#child.exitCode !== null) throw new Error(this.stderr);
      return this.logged('listening').length > 0;
    });
    return this.logged('listening')[0]!['url'] as string;
  }

  /** Lines of the log with that text. */
  logged(text: string): Record<string, unknown>[] {
    const lines = this.stderr.split('\n').filter((line) => line.startsWith('{'));
    return lines
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg === text);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

/** Runs a server until `work` has ended. Its exit code and output. */
async function serve<T>(
  args: readonly string[],
  work: (served: Served) => Promise<T>,
  env: Readonly<Record<string, string>> = {},
  runtime: keyof typeof RUNTIMES = 'node',
): Promise<T> {
  const served = new Served(args, env, runtime);
  try {
    return await work(served);
  } finally {
    served.kill('SIGKILL');
    await served.status;
  }
}

function file(name: string, document: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof document === 'string' ? document : JSON.stringify(document));
  return path;
}

test('--help has every setting with its variable, the signals, and examples', () =>
  serve(['--help'], async (served) => {
    assert.is(await served.status, 0);
    const words = served.stdout.replace(/\s+/g, ' ');
    for (const { flag, env, help } of [CONFIG_FILE, ...CONFIG_SETTINGS]) {
      assert.ok(words.includes(`${flag} ${help} (env: ${env}`), flag);
    }
    for (const text of ['SIGTERM, SIGINT', 'SIGHUP', 'moonroute serve --config moonroute.json --print-config']) {
      assert.ok(words.includes(text), text);
    }
  }));

test('--print-config shows what is in force, without secrets, and starts nothing', () => {
  const config = file('print.json', {
    policy: 'ttft',
    listen: { port: 1 },
    auth: { clientKeys: ['a-secret'], adminKeys: [{ env: 'ADMIN' }] },
  });
  const env = { ADMIN: 'b-secret', MOONROUTE_PORT: '2', MOONROUTE_LOG_LEVEL: 'warn' };
  return serve(
    ['--config', config, '--port', '3', '--print-config'],
    async (served) => {
      assert.equal([await served.status, served.stderr], [0, '']);
      const printed = JSON.parse(served.stdout);
      assert.equal([printed.policy, printed.listen.port, printed.log.level], ['ttft', 3, 'warn']);
      assert.equal(printed.auth, { clientKeys: ['(hidden)'], adminKeys: ['(hidden)'] });
      assert.not.match(served.stdout, 'secret');
    },
    env,
  );
});

const refusals = [
  [
    ['--shared-cache-type', 'mooncake-store', '--master', 'tcp://10.0.0.9:5557', '--trust-seed'],
    {},
    'sharedCache.trustSeed is true, and sharedCache.hashing is "learned"',
  ],
  [
    [],
    { MOONROUTE_HASHING: 'guessed' },
    'sharedCache.hashing is "guessed" (from MOONROUTE_HASHING); give one of learned',
  ],
  [['--port', '70000'], {}, 'listen.port is 70000 (from --port); give a whole number'],
  [[], { MOONROUTE_POLICY: 'best' }, 'policy is "best" (from MOONROUTE_POLICY); give one of kv'],
  [['--shared-cache-type', 'hicache'], {}, 'shared_cache_type=hicache is not supported'],
  [
    ['--worker', 'a=http://127.0.0.1:9'],
    { DYN_SHARED_CACHE_TYPE: 'mooncake-store', DYN_MOONCAKE_KV_EVENTS_ENDPOINT: ' ' },
    'mooncake-store requires DYN_MOONCAKE_KV_EVENTS_ENDPOINT',
  ],
  [['--host', '0.0.0.0'], {}, "listen.host is '0.0.0.0' and auth.clientKeys is empty"],
  [['--config', '/nowhere.json'], {}, "the configuration file /nowhere.json can't be read"],
] as const;
for (const [args, env, text] of refusals) {
  test(`refused: ${[...args, ...Object.keys(env)].join(' ')}`, () =>
    serve(
      args,
      async (served) => {
        assert.is(await served.status, 1);
        assert.is(served.stdout, '');
        assert.ok(served.stderr.includes(text), served.stderr);
      },
      env,
    ));
}

test('a port that is taken ends it with 1', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.on('listening', resolve));
  const { port } = taken.address() as { port: number };
  try {
    await serve(['--worker', 'a=http://127.0.0.1:9', '--port', String(port)], async (served) => {
      assert.is(await served.status, 1);
      assert.match(served.stderr, `can't listen on 127.0.0.1:${port}`);
    });
  } finally {
    taken.close();
  }
});

/** Workers that take connections and never answer. */
async function withSilent(count: number, work: (workers: readonly object[]) => Promise<void>): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.on('listening', resolve));
  const { port } = server.address() as { port: number };
  try {
    await work(Array.from({ length: count }, (_, n) => ({ id: `silent-${n}`, url: `http://127.0.0.1:${port}` })));
  } finally {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
}

/** Well below what 400 workers take that are asked one after the other, 32 at a time, until each is late. */
const AT_ONCE = 6000;

test('SIGTERM while a reload waits for workers: the reload is abandoned, and it ends at once', () =>
  withSilent(400, async (silent) => {
    // Its ranks make room for the others.
    const first = { id: 'first', url: 'http://127.0.0.1:9', dpRanks: { start: 0, size: 512 } };
    const document = { listen: { port: 0 }, workers: [first], limits: { drainTime: 500 } };
    const config = file('abandoned.json', document);
    await serve(['--config', config], async (served) => {
      await served.url();
      file('abandoned.json', { ...document, workers: [first, ...silent] });
      served.kill('SIGHUP');
      served.kill('SIGHUP');
      await until('one more to be added', () => served.logged('worker added').length > 1);
      const began = performance.now();
      served.kill('SIGTERM');
      assert.is(await served.status, 0);
      const took = performance.now() - began;
      assert.ok(took < AT_ONCE, `${took} ms`);
      assert.is(served.logged('the reload is abandoned: the server ends').length, 1);
      assert.is(served.logged('workers could not all be reloaded').length, 0);
    });
  }));

test('SIGTERM while it waits for workers at its start ends it with 0', () =>
  withSilent(400, async (silent) => {
    await serve(['--config', file('starting.json', { listen: { port: 0 }, workers: silent })], async (served) => {
      await until('the first to be late', () => served.logged('worker added').length > 0);
      const began = performance.now();
      served.kill('SIGTERM');
      assert.is(await served.status, 0);
      const took = performance.now() - began;
      assert.ok(took < AT_ONCE, `${took} ms`);
      assert.is(served.logged('listening').length, 0);
    });
  }));

test('SIGHUP with more ranks than there is room for changes nothing, and says what to do', () => {
  const worker = (id: string, size: number) => ({ id, url: 'http://127.0.0.1:9', dpRanks: { start: 0, size } });
  const document = { listen: { port: 0 }, workers: [worker('a', 1)] };
  const config = file('full.json', document);
  return serve(['--config', config], async (served) => {
    const url = await served.url();
    file('full.json', { ...document, workers: [worker('b', 1), worker('c', 64)] });
    served.kill('SIGHUP');
    const text = 'not reloaded: nothing has changed';
    await until(text, () => served.logged(text).length > 0);
    assert.match(served.logged(text)[0]!['error'] as string, /65 worker ranks, .* room for 64.* or restart with them/);
    const { workers } = (await (await fetch(`${url}/workers`)).json()) as { workers: { id: string }[] };
    assert.equal(
      workers.map(({ id }) => id),
      ['a'],
    );
  });
});

if (zeromq !== null) {
  test('nothing configured: simulated workers and a store, a request to try, and credit when it comes again', () =>
    serve(['--port', '0'], async (served) => {
      const url = await served.url();
      await until('the first lines', () => served.stdout.includes('/metrics'));
      assert.match(served.stdout, /4 SIMULATED workers and a simulated Mooncake store/);
      for (const text of [url, `${url}/ (workers`, `${url}/metrics`]) assert.ok(served.stdout.includes(text), text);
      const [, asked, body] = / curl -si (\S+) .* -d '(.+)'\n/.exec(served.stdout)!;
      assert.is(asked, `${url}/v1/completions`);
      const ask = async () => {
        const response = await post(asked!, JSON.parse(body!));
        const { usage } = (await response.json()) as { usage: { prompt_tokens: number } };
        assert.is(response.status, 200);
        assert.ok(usage.prompt_tokens > 100);
        return response.headers;
      };
      const first = await ask();
      assert.match(first.get('x-moonroute-cached-tokens')!, /device=0;.*shared=0/);
      await until('credit', async () => {
        const { headers } = { headers: await ask() };
        const cached = headers.get('x-moonroute-cached-tokens')!;
        return cached.includes('device=128') && headers.get('x-moonroute-worker') === first.get('x-moonroute-worker');
      });
      for (const [path, text] of [
        ['/readyz', /ready/],
        ['/metrics', /moonroute_/],
        ['/', /<html/i],
      ] as const) {
        const response = await fetch(url + path);
        assert.is(response.status, 200, path);
        assert.match(await response.text(), text);
      }
      served.kill('SIGINT');
      assert.is(await served.status, 0);
    }));

  test('--hashing derived with nothing configured: the simulated engines prove how they hash, and the log says so', () =>
    serve(['--port', '0', '--hashing', 'derived'], async (served) => {
      const url = await served.url();
      const state = async () => {
        const { derivation } = (await (await fetch(`${url}/status`)).json()) as { derivation: { state: string } };
        return derivation.state;
      };
      assert.is(await state(), 'unproven');
      let name = 0;
      await until('all ranks to have proven it', async () => {
        const asked = Array.from({ length: 8 }, () =>
          post(`${url}/v1/completions`, { prompt: tokensOf(++name, 64), max_tokens: 1 }),
        );
        for (const response of await Promise.all(asked)) await response.arrayBuffer();
        return (await state()) === 'proven';
      });
      const text = 'derived hashes: Events of 4 of 4 ranks have agreed.';
      await until(text, () => served.logged(text).length === 1);
      served.kill('SIGTERM');
      assert.is(await served.status, 0);
    }));

  /** A stream of a request that is under way. */
  async function streaming(url: string, tokens: number): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const body = { prompt: tokensOf(7, 40), max_tokens: tokens, stream: true };
    const response = await post(`${url}/v1/completions`, body);
    assert.is(response.status, 200);
    const reader = response.body!.getReader();
    assert.not.ok((await reader.read()).done);
    return reader;
  }

  async function rest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += new TextDecoder().decode(value);
    }
  }

  /** A worker of this process, and a configuration that names it. */
  async function withWorkers(
    count: number,
    work: (workers: readonly SimulatedWorker[]) => Promise<void>,
  ): Promise<void> {
    const workers: SimulatedWorker[] = [];
    try {
      for (let n = 0; n < count; n++) workers.push(await SimulatedWorker.start({ id: `worker-${n}` }));
      await work(workers);
    } finally {
      for (const worker of workers) await worker.close();
    }
  }

  const named = (worker: SimulatedWorker) => ({
    id: worker.id,
    url: worker.httpUrl,
    events: worker.eventsEndpoints[0],
    replay: worker.replayEndpoints[0],
  });

  test('SIGTERM: not ready, nobody is let in, a stream under way ends whole, exit 0', () =>
    withWorkers(1, async ([worker]) => {
      const { id, url: http, events, replay } = named(worker!);
      const option = `${id}=${http},events=${events},replay=${replay}`;
      await serve(['--port', '0', '--worker', option], async (served) => {
        const url = await served.url();
        const reader = await streaming(url, 60);
        served.kill('SIGTERM');
        await until('readyz', async () => (await fetch(`${url}/readyz`)).status === 503);
        const refused = await post(`${url}/v1/completions`, { prompt: [1, 2, 3] });
        assert.is(refused.status, 503);
        assert.match(await rest(reader), /\[DONE\]/);
        assert.is(await served.status, 0);
      });
    }));

  test('in Deno: the same command serves, says which limits have no effect, drains and ends with 0', () =>
    withWorkers(1, async ([worker]) => {
      const config = file('deno.json', { listen: { port: 0 }, workers: [named(worker!)] });
      const work = async (served: Served) => {
        const url = await served.url();
        const text = 'these limits have no effect in Deno: run it in Node, or behind a proxy that bounds connections';
        assert.is(served.logged(text)[0]!['limits.connections'], 10_000);
        const reader = await streaming(url, 40);
        served.kill('SIGTERM');
        assert.match(await rest(reader), /\[DONE\]/);
        assert.is(await served.status, 0);
      };
      await serve(['--config', config], work, {}, 'deno');
    }));

  test('the time to drain is bounded: what is left is cut, exit 0', () =>
    withWorkers(1, async ([worker]) => {
      const config = file('drain.json', { listen: { port: 0 }, workers: [named(worker!)], limits: { drainTime: 100 } });
      await serve(['--config', config], async (served) => {
        const reader = await streaming(await served.url(), 2000);
        served.kill('SIGTERM');
        const cut = await rest(reader).catch((error: Error) => error);
        assert.instance(cut, Error);
        assert.is(await served.status, 0);
        assert.is(served.logged('requests are cut: the time to drain is over').length, 1);
      });
    }));

  test('a second signal ends it at once with 1', () =>
    withWorkers(1, async ([worker]) => {
      await serve(['--port', '0', '--worker', `a=${worker!.httpUrl}`], async (served) => {
        await streaming(await served.url(), 2000);
        served.kill('SIGTERM');
        await until('the drain', () => served.logged('draining').length > 0);
        served.kill('SIGINT');
        assert.is(await served.status, 1);
      });
    }));

  test('SIGHUP: workers of the file are added and removed; a faulty file changes nothing; other settings need a restart', () =>
    withWorkers(3, async (workers) => {
      const [first, second, third] = workers.map(named);
      const write = (document: unknown) => file('reload.json', document);
      const config = write({ listen: { port: 0 }, workers: [first, second] });
      await serve(['--config', config], async (served) => {
        const url = await served.url();
        const ids = async () => {
          const { workers } = (await (await fetch(`${url}/workers`)).json()) as { workers: { id: string }[] };
          return workers.map(({ id }) => id).sort();
        };
        const reload = async (document: unknown, text: string) => {
          const before = served.logged(text).length;
          write(document);
          served.kill('SIGHUP');
          await until(text, () => served.logged(text).length > before);
          return served.logged(text).at(-1)!;
        };
        assert.equal(await ids(), ['worker-0', 'worker-1']);
        const done = await reload({ listen: { port: 0 }, workers: [second, third] }, 'workers reloaded');
        assert.equal([done['added'], done['removed'], done['changed']], [1, 1, 0]);
        assert.equal(await ids(), ['worker-1', 'worker-2']);

        for (const [faulty, words] of [
          ['{', /is not JSON/],
          [{ workers: [first, first] }, /workers\.1\.id is "worker-0", which another worker has/],
          [{ worker: [first] }, /unknown setting "worker"/],
        ] as const) {
          const fault = await reload(faulty, 'not reloaded: nothing has changed');
          assert.match(fault['error'] as string, words);
          assert.equal(await ids(), ['worker-1', 'worker-2']);
        }

        const needed = 'these settings differ from those in force, and need a restart';
        const { settings } = await reload({ listen: { port: 0 }, policy: 'ttft', workers: [second] }, needed);
        assert.equal(settings, ['policy']);
        assert.equal(await ids(), ['worker-1']);
        assert.is((await post(`${url}/v1/completions`, { prompt: [1, 2, 3] })).status, 200);
      });
    }));

  test('--json: one line for machines', () =>
    withWorkers(1, async ([worker]) => {
      await serve(['--port', '0', '--json', '--worker', `a=${worker!.httpUrl}`], async (served) => {
        const url = await served.url();
        await until('the line', () => served.stdout.includes('\n'));
        assert.equal(JSON.parse(served.stdout), { url, simulated: false, workers: ['a'] });
      });
    }));
}

test.run();
