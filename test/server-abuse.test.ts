// Ten kinds of abuse over raw sockets, each answered with the right status, at a bounded cost, and with nothing left behind: afterwards a good request
// is served as if nothing had been.
import { connect, type Socket } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { listen } from '../src/server/app.js';
import { complete, post, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { configOf, MODEL, type Served, type ServedOptions, withServed } from './support/server-pool.js';

/** Longest time that a refusal may take, in milliseconds, on a machine that is busy with other things. */
const SOON = 1500;
const MiB = 1 << 20;

/** A connection by hand, with all that came back. */
class Raw {
  readonly socket: Socket;
  received = '';
  closed = false;
  /** Bytes that were taken off our hands. */
  sent = 0;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect(Number(port), hostname);
    this.socket.on('data', (bytes) => {
      this.received += bytes.toString('latin1');
    });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.closed = true;
    });
  }

  get status(): number {
    return Number(/^HTTP\/1\.1 (\d+)/.exec(this.received)?.[1] ?? 0);
  }

  write(data: string | Buffer): void {
    this.socket.write(data, () => {
      this.sent += data.length;
    });
  }

  async answered(): Promise<number> {
    await until('an answer', () => this.status !== 0 || this.closed);
    return this.status;
  }
}

const head = (more: string, path = '/v1/completions') =>
  `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n${more}\r\n`;

/** Runs an abuse, and then a good request: nothing must be left of the first. */
async function abused(options: ServedOptions, work: (served: Served) => Promise<void>): Promise<void> {
  await withServed(options, async (served) => {
    const before = performance.now();
    await work(served);
    await until('nothing to be under way', () => served.service.active === 0);
    assert.is(served.router.stats().leases.open, 0);
    assert.ok(performance.now() - before < 12_000);
    const { usage } = await complete(served.url, tokensOf(9, 20), { model: MODEL });
    assert.is(usage.prompt_tokens, 20);
    assert.not.match(served.logged.join('\n'), /error: /);
  });
}

async function refusal(response: Response): Promise<[number, string | null]> {
  const { error } = (await response.json()) as {
    error: { code: string; message: string; type: string; param: unknown };
  };
  assert.type(error.message, 'string');
  assert.type(error.type, 'string');
  assert.ok('param' in error);
  return [response.status, error.code];
}

if (zeromq !== null) {
  test('1. a huge body: 413, at once where it says its size, and else when it has come too far', () =>
    abused({ config: { limits: { bodyBytes: MiB } } }, async (served) => {
      const declared = new Raw(served.url);
      const started = performance.now();
      declared.write(head(`content-length: ${1 << 30}\r\n`));
      assert.is(await declared.answered(), 413);
      assert.ok(performance.now() - started < SOON);
      const chunked = new Raw(served.url);
      chunked.write(head('transfer-encoding: chunked\r\n'));
      const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 0x20), Buffer.from('\r\n')]);
      for (let i = 0; i < 64; i++) chunked.write(chunk);
      assert.is(await chunked.answered(), 413);
      // Whoever goes on is cut off.
      const sending = setInterval(() => chunked.write(chunk), 5);
      await until('the connection to end', () => chunked.closed);
      clearInterval(sending);
      await until('the other too', () => {
        declared.write(' ');
        return declared.closed;
      });
      assert.equal(
        served.ended.map(({ status, outcome }) => [status, outcome]),
        [
          [413, 'refused'],
          [413, 'refused'],
        ],
      );
      assert.is(served.faults.filter((code) => code === 'body-too-large').length, 2);
    }));

  test('2. a slow body: 408 after bodyTime, and the connection ends', () =>
    abused({ config: { limits: { bodyTime: 200 } } }, async (served) => {
      const slow = new Raw(served.url);
      slow.write(head('content-length: 1000\r\n'));
      const dripping = setInterval(() => slow.write(' '), 20);
      try {
        const started = performance.now();
        assert.is(await slow.answered(), 408);
        assert.ok(performance.now() - started >= 190);
        assert.match(slow.received, /body-timeout/);
        await until('the connection to end', () => slow.closed);
      } finally {
        clearInterval(dripping);
      }
    }));

  test('2b. slow headers: 408 after headerTime', () =>
    abused({ config: { limits: { headerTime: 200 } } }, async (served) => {
      const slow = new Raw(served.url);
      slow.write('POST /v1/completions HTTP/1.1\r\n');
      const dripping = setInterval(() => slow.write('a'), 20);
      try {
        assert.is(await slow.answered(), 408);
        await until('the connection to end', () => slow.closed);
      } finally {
        clearInterval(dripping);
      }
    }));

  test('3. bad JSON: 400, in OpenAI’s words, and never with a part of it', () =>
    abused({}, async (served) => {
      const send = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
        fetch(`${served.url}/v1/chat/completions`, {
          method: 'POST',
          body: body as BodyInit,
          headers: { 'content-type': 'application/json', ...headers },
        });
      for (const [body, code] of [
        ['', 'invalid-json'],
        ['{"secret": tr', 'invalid-json'],
        ['[1]', 'invalid-json'],
        ['"secret"', 'invalid-json'],
        ['null', 'invalid-json'],
        ['{"a":NaN}', 'invalid-json'],
        [Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), 'invalid-json'],
        ['\ufeff{}', 'invalid-json'],
        [`{"a":${'['.repeat(200)}${']'.repeat(200)}}`, 'invalid-json'],
        [`{"a":${'['.repeat(4_000_000)}`, 'invalid-json'],
        ['{"model":"secret","model":"secret"}', 'duplicate-field'],
        ['{"model":"secret","mod\\u0065l":"secret"}', 'duplicate-field'],
        ['{"messages":[{"role":"user","content":"a","content":"b"}]}', 'duplicate-field'],
        ['{"model":7}', 'invalid-model'],
      ] as const) {
        const response = await send(body);
        const text = await response.clone().text();
        assert.equal(await refusal(response), [400, code], String(body).slice(0, 60));
        assert.not.match(text, /secret/);
      }
      assert.equal(await refusal(await send('a=b', { 'content-type': 'text/plain' })), [415, 'not-json']);
      assert.equal(await refusal(await send('{}', { 'content-encoding': 'gzip' })), [415, 'encoded-body']);
      assert.not.match(served.logged.join(), /secret/);
    }));

  test('4. more tokens than are allowed: 400; as many as that are served', () =>
    abused({ config: { limits: { promptTokens: 1000 } } }, async (served) => {
      const ask = (prompt: number[]) => post(`${served.url}/v1/completions`, { model: MODEL, prompt, max_tokens: 1 });
      assert.equal(await refusal(await ask(tokensOf(0, 1001))), [400, 'prompt-too-long']);
      const million = Array.from({ length: 1_000_001 }, (_, i) => i);
      const started = performance.now();
      assert.equal(await refusal(await ask(million)), [400, 'prompt-too-long']);
      assert.ok(performance.now() - started < SOON);
      assert.equal(await refusal(await post(`${served.url}/route`, { tokens: million })), [400, 'prompt-too-long']);
      assert.is((await ask(tokensOf(0, 1000))).status, 200);
      assert.equal(
        served.ended.map(({ status }) => status),
        [400, 400, 400, 200],
      );
    }));

  test('5. header bombs: 431, whether of one header or of many', () =>
    abused({}, async (served) => {
      for (const bomb of [`x: ${'a'.repeat(20_000)}\r\n`, 'x-y: z\r\n'.repeat(3000), `${'a'.repeat(20_000)}: 1\r\n`]) {
        const raw = new Raw(served.url);
        raw.write(head(bomb));
        assert.is(await raw.answered(), 431);
        raw.socket.destroy();
      }
      const garbage = new Raw(served.url);
      garbage.write('\x00\x01garbage\r\n\r\n');
      assert.is(await garbage.answered(), 400);
      const smuggled = new Raw(served.url);
      smuggled.write(`${head('content-length: 5\r\ntransfer-encoding: chunked\r\n')}0\r\n\r\n`);
      assert.is(await smuggled.answered(), 400);
    }));

  test('6. a hundred streams, all aborted: no lease, no work at the workers', () =>
    abused({ fleet: { workers: 2, worker: { latency: { timeScale: 1 } } } }, async (served) => {
      const body = JSON.stringify({
        model: MODEL,
        prompt: tokensOf(1, 20),
        max_tokens: 1000,
        ignore_eos: true,
        stream: true,
      });
      const raws = Array.from({ length: 100 }, () => new Raw(served.url));
      for (const raw of raws) raw.write(head(`content-length: ${body.length}\r\n`) + body);
      await until('all to be streamed', () => raws.every(({ received }) => received.includes('data: ')));
      for (const { socket } of raws) socket.resetAndDestroy();
      const ended = await served.settled(100);
      assert.ok(ended.every(({ outcome }) => outcome === 'cancelled'));
      const running = () =>
        served.fleet.workers
          .flatMap((worker) => worker.status().ranks)
          .reduce((sum, rank) => sum + rank.running + rank.waiting, 0);
      await until('the workers to rest', () => running() === 0);
    }));

  test('7. an unknown model: 404, and no worker hears of it', () =>
    abused({}, async (served) => {
      for (const path of ['/v1/completions', '/v1/chat/completions']) {
        const response = await post(served.url + path, { model: 'secret', prompt: [1], messages: [] });
        assert.equal(await refusal(response), [404, 'model_not_found']);
      }
      assert.is(served.router.stats().leases.opened, 0);
      assert.ok(served.ended.every(({ model }) => model === ''));
    }));

  test('8. dead workers: 502 or 503, soon, and again served when they are back', () =>
    abused({}, async (served) => {
      for (const worker of served.fleet.workers) await worker.kill();
      for (let i = 0; i < 20; i++) {
        const started = performance.now();
        const response = await post(`${served.url}/v1/completions`, { model: MODEL, prompt: [1] });
        const [status, code] = await refusal(response);
        assert.ok(['502 worker-unreachable', '503 no-workers'].includes(`${status} ${code}`), `${status} ${code}`);
        assert.ok(performance.now() - started < SOON);
      }
      await until('the registry to notice', () => served.registry.list().every(({ healthy }) => !healthy));
      for (const worker of served.fleet.workers) await worker.revive();
      await until('the registry to notice again', () => served.registry.list().every(({ healthy }) => healthy));
    }));

  test('9. key guessing: 401 for each, before the body is looked at', () =>
    withServed({ config: { auth: { clientKeys: ['k'.repeat(40)], adminKeys: ['a'.repeat(40)] } } }, async (served) => {
      const started = performance.now();
      for (let i = 0; i < 200; i++) {
        const response = await post(
          `${served.url}${i % 2 === 0 ? '/v1/completions' : '/workers'}`,
          { model: MODEL, prompt: [1] },
          { headers: { authorization: `Bearer ${'k'.repeat(39)}${String.fromCharCode(33 + (i % 90))}` } },
        );
        // The guess that is right is one of a client.
        const right = 33 + (i % 90) === 'k'.charCodeAt(0);
        const [status] = right ? [response.status] : await refusal(response);
        if (right) await response.text();
        assert.is(status, right ? (i % 2 === 0 ? 200 : 403) : 401);
      }
      assert.ok(performance.now() - started < 10 * SOON);
      const unread = new Raw(served.url);
      unread.write(head('content-length: 1000000\r\n'));
      assert.is(await unread.answered(), 401);
      unread.socket.destroy();
      assert.not.match(served.logged.join('\n') + JSON.stringify(served.ended), /kkk|aaa/);
      assert.ok(served.faults.includes('invalid_api_key'));
    }));

  test('10. registration of a foreign address: 403, and nobody is asked', () =>
    abused({}, async (served) => {
      for (const url of [
        'http://203.0.113.7:80',
        'http://169.254.169.254',
        'http://[fd00::1]:80',
        'http://10.1.2.3:8000',
      ]) {
        const response = await post(`${served.url}/workers`, { id: 'foreign', url });
        assert.equal(await refusal(response), [403, 'worker-address'], url);
      }
      const { url } = served.registry.get('worker-0')!;
      const events = await post(`${served.url}/workers`, { id: 'foreign', url, events: 'tcp://203.0.113.7:5557' });
      assert.equal(await refusal(events), [403, 'worker-address']);
      assert.is(served.registry.get('foreign'), null);
      // A page of somebody else's in a browser of this machine: neither by a form, nor by a name that leads here.
      const form = await fetch(`${served.url}/workers`, {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'text/plain' },
      });
      assert.equal(await refusal(form), [415, 'not-json']);
      const rebound = new Raw(served.url);
      rebound.write('DELETE /workers/worker-0 HTTP/1.1\r\nhost: evil.example\r\n\r\n');
      assert.is(await rebound.answered(), 403);
      rebound.socket.destroy();
      assert.is(served.registry.list().length, 2);
    }));

  test('11. pipelining: one request under way on a connection, and its client is seen to go', () =>
    abused({ fleet: { workers: 1, worker: { latency: { timeScale: 1 } } } }, async (served) => {
      const body = JSON.stringify({
        model: MODEL,
        prompt: tokensOf(1, 20),
        max_tokens: 1000,
        ignore_eos: true,
        stream: true,
      });
      const request = `${head(`content-length: ${body.length}\r\n`)}${body}`;
      const few = new Raw(served.url);
      few.write(request.repeat(10));
      await until('the first to be streamed', () => few.received.includes('data: '));
      assert.is(served.service.active, 1);
      assert.is(served.router.stats().leases.opened, 1);
      few.socket.destroy();
      assert.is((await served.settled(1))[0]!.outcome, 'cancelled');
      const many = new Raw(served.url);
      many.write(request.repeat(1000));
      await until('it to be cut off', () => many.closed);
      assert.is((await served.settled(2))[1]!.outcome, 'cancelled');
      assert.is(served.router.stats().leases.opened, 2);
    }));

  test('11b. what was pipelined behind a request is not served: its answer is whole, and then the connection ends', () =>
    abused({}, async (served) => {
      const body = JSON.stringify({ model: MODEL, prompt: tokensOf(1, 20), max_tokens: 3, stream: true });
      const raw = new Raw(served.url);
      raw.write(`${head(`content-length: ${body.length}\r\n`)}${body}`.repeat(2));
      await until('the connection to end', () => raw.closed);
      assert.is(raw.received.split('HTTP/1.1 200').length, 2);
      assert.match(raw.received, /\[DONE\]/);
      assert.is(raw.received.endsWith('0\r\n\r\n'), true);
      assert.is(served.router.stats().leases.opened, 1);
    }));

  test('11c. garbage behind a request: nothing of its refusal gets into the answer under way', () =>
    abused({ fleet: { workers: 1, worker: { latency: { timeScale: 1 } } } }, async (served) => {
      const asked = { model: MODEL, prompt: tokensOf(1, 20), max_tokens: 1000, ignore_eos: true, stream: true };
      const body = JSON.stringify(asked);
      const raw = new Raw(served.url);
      raw.write(`${head(`content-length: ${body.length}\r\n`)}${body}`);
      await until('it to be streamed', () => raw.received.includes('data: '));
      raw.write('\x00\x01garbage\r\n\r\n');
      await until('the connection to end', () => raw.closed);
      assert.not.match(raw.received, /400 Bad Request/);
      assert.is((await served.settled(1))[0]!.outcome, 'cancelled');
    }));

  test('12. bodies of millions of values: 400, and nobody waits', () =>
    abused({}, async (served) => {
      const deep = `{"prompt":[1],"metadata":[${`${'['.repeat(100)}${']'.repeat(100)},`.repeat(50_000)}0]}`;
      const started = performance.now();
      for (let i = 0; i < 3; i++) {
        const response = await fetch(`${served.url}/v1/completions`, {
          method: 'POST',
          body: deep,
          headers: { 'content-type': 'application/json' },
        });
        assert.equal(await refusal(response), [400, 'too-many-values']);
      }
      assert.ok(performance.now() - started < SOON);
    }));

  test('connections above the limit are refused', () =>
    withServed({ config: { limits: { connections: 5 } } }, async (served) => {
      const raws = Array.from({ length: 12 }, () => new Raw(served.url));
      await until('seven to be cut', () => raws.filter(({ closed }) => closed).length === 7);
      for (const { socket } of raws) socket.destroy();
      await until('the others to be gone', () => raws.every(({ closed }) => closed));
      assert.match(served.logged.join(), /limits\.connections/);
      await until('room', async () => {
        try {
          return (await fetch(`${served.url}/healthz`)).ok;
        } catch {
          return false;
        }
      });
    }));
}

test('nobody is served on an address of others without keys', async () => {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  try {
    await listen({} as never, configOf({ listen: { host: '0.0.0.0', port: 0 } }), log);
    assert.unreachable();
  } catch (error) {
    assert.is((error as { code: string }).code, 'open-to-all');
  }
});

test.run();
