// The proxy over real sockets: what passes is passed unchanged, who answered is said, and whoever fails or leaves is dealt with.
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { exchangeOf } from '../src/server/http/exchange.js';
import { httpPartsOf } from '../src/server/http/parts.js';
import { proxy } from '../src/server/http/proxy.js';
import { complete, post, tokensOf, until, zeromq } from './support/fleet-worker.js';
import { FAST, MODEL, type Served, withServed } from './support/server-pool.js';

const BLOCK = 16;

/** A worker by hand: answers /v1/models and /health, and what the test wants for completions. */
async function handWorker(
  answer: (request: IncomingMessage, body: Buffer, response: ServerResponse) => void,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      if (request.url === '/v1/models') {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ object: 'list', data: [{ id: MODEL, object: 'model', parent: null }] }));
      } else if (request.method === 'GET') response.writeHead(request.url === '/health' ? 200 : 404).end();
      else answer(request, Buffer.concat(parts), response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** What came back, as it was sent. */
interface Raw {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly aborted: boolean;
}

function rawPost(url: string, path: string, body: string, headers: readonly string[] = []): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const own = [
      'host',
      '127.0.0.1',
      'content-type',
      'application/json',
      'content-length',
      `${Buffer.byteLength(body)}`,
    ];
    const request = httpRequest(
      { host: hostname, port, path, method: 'POST', headers: [...own, ...headers] as never },
      (response) => {
        const parts: Buffer[] = [];
        const end = (aborted: boolean) =>
          resolve({
            status: response.statusCode!,
            statusText: response.statusMessage!,
            headers: response.rawHeaders,
            body: Buffer.concat(parts),
            aborted,
          });
        response.on('data', (part) => parts.push(part));
        response.on('end', () => end(false));
        response.on('error', () => end(true));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** Serves workers by hand. */
async function withHand(
  answers: readonly Parameters<typeof handWorker>[0][],
  work: (served: Served) => Promise<void>,
  config: Parameters<typeof withServed>[0]['config'] = {},
): Promise<void> {
  const workers = await Promise.all(answers.map(handWorker));
  try {
    const named = workers.map(({ url }, i) => ({ id: `hand-${i}`, url, contract: null }));
    await withServed({ fleet: { workers: 1 }, workers: named, shared: false, config }, work);
  } finally {
    for (const worker of workers) await worker.close();
  }
}

const ASK = JSON.stringify({ model: MODEL, prompt: [1, 2, 3] });

/** An answer's head as Node would not write it. */
function said(status: string, headers: string): (response: ServerResponse) => void {
  return (response) => void response.socket!.write(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n`);
}

if (zeromq !== null) {
  test('a prompt goes where it is, with what is credited in the headers', () =>
    withServed({}, async (served) => {
      const prompt = tokensOf(1, 5 * BLOCK + 3);
      const first = await post(`${served.url}/v1/completions`, { model: MODEL, prompt, max_tokens: 4 });
      assert.is(first.status, 200);
      assert.is(first.headers.get('x-moonroute-cached-tokens'), 'device=0;host=0;disk=0;shared=0');
      assert.ok(first.headers.get('x-moonroute-reason'));
      assert.match(first.headers.get('x-moonroute-request-id')!, /^mr-/);
      const worker = first.headers.get('x-moonroute-worker');
      const { moonroute } = (await first.json()) as { moonroute: { worker: string } };
      assert.is(moonroute.worker, worker);
      await until('the events', () => served.router.dump(worker!).length > 0);
      const second = await post(`${served.url}/v1/completions`, { model: MODEL, prompt, max_tokens: 4 });
      assert.is(second.headers.get('x-moonroute-worker'), worker);
      assert.match(second.headers.get('x-moonroute-cached-tokens')!, /^device=80;/);
      await second.text();
      const [one, two] = await served.settled(2);
      assert.is(one!.cachedTokens, 0);
      assert.is(two!.cachedTokens, 80);
      assert.is(two!.predictedTokens, 80);
      assert.is(two!.promptTokens, prompt.length);
      assert.is(two!.generatedTokens, 4);
      assert.is(two!.outcome, 'completed');
      assert.is(two!.status, 200);
      assert.is(two!.worker.id, worker);
      assert.ok(two!.firstByteTime !== null && two!.firstByteTime <= two!.totalTime && two!.decisionTime > 0);
      assert.equal(
        served.prompts.reports.map(({ promptTokens }) => promptTokens),
        [prompt.length, prompt.length],
      );
    }));

  test('what only the store holds is credited as shared', () =>
    withServed({}, async (served) => {
      const prompt = tokensOf(2, 4 * BLOCK + 1);
      const first = await post(`${served.url}/v1/completions`, { model: MODEL, prompt, max_tokens: 1 });
      await first.text();
      const worker = served.fleet.workers.find(({ id }) => id === first.headers.get('x-moonroute-worker'))!;
      await until('the events', () => served.router.dump(worker.id).length > 0);
      worker.evict(1000);
      await until('the store and the eviction', () => {
        const { blocks, lease } = served.router.route({ tokens: Uint32Array.from(prompt), textOnly: true });
        lease.cancel(0);
        return blocks.shared === 4 && blocks.device === 0;
      });
      const second = await post(`${served.url}/v1/completions`, { model: MODEL, prompt, max_tokens: 1 });
      assert.is(second.headers.get('x-moonroute-cached-tokens'), 'device=0;host=0;disk=0;shared=64');
      assert.is(second.headers.get('x-moonroute-reason'), null);
      await second.text();
      const [, two] = await served.settled(2);
      assert.is(two!.cachedTokens, 64);
    }));

  test('streams: chunks as they come, the usage read where the client asked for it, and otherwise unknown', () =>
    withServed({}, async (served) => {
      for (const stream_options of [{ include_usage: true }, undefined]) {
        const body = { model: MODEL, prompt: tokensOf(3, 40), max_tokens: 7, stream: true, stream_options };
        const text = await (await post(`${served.url}/v1/completions`, body)).text();
        assert.match(text, /data: \[DONE\]\n\n$/);
        assert.is(text.includes('"usage"'), stream_options !== undefined);
      }
      const [asked, unasked] = await served.settled(2);
      assert.is(asked!.cachedTokens, 0);
      assert.is(unasked!.cachedTokens, null);
      assert.is(asked!.generatedTokens, 7);
      assert.is(unasked!.generatedTokens, 7);
      assert.is(unasked!.outcome, 'completed');
      assert.is(served.prompts.reports.length, 1);
    }));

  test('a client that goes: the worker is told, the lease is cancelled', () =>
    withServed({ fleet: { workers: 2, worker: { latency: { timeScale: 1 } } } }, async (served) => {
      const leaving = new AbortController();
      const body = { model: MODEL, prompt: tokensOf(4, 40), max_tokens: 5000, ignore_eos: true, stream: true };
      const response = await post(`${served.url}/v1/completions`, body, { signal: leaving.signal });
      const reader = response.body!.getReader();
      await reader.read();
      const running = () =>
        served.fleet.workers.flatMap((worker) => worker.status().ranks).reduce((sum, rank) => sum + rank.running, 0);
      assert.is(running(), 1);
      leaving.abort();
      await until('the worker to hear of it', () => running() === 0);
      const [ended] = await served.settled(1);
      assert.is(ended!.outcome, 'cancelled');
      assert.is(served.router.stats().leases.cancelled, 1);
      assert.is(served.service.active, 0);
    }));

  test('a client that goes before the first byte: likewise', () =>
    withServed({}, async (served) => {
      for (const worker of served.fleet.workers) worker.failNext({ kind: 'hang' });
      const leaving = new AbortController();
      const asked = post(`${served.url}/v1/completions`, { model: MODEL, prompt: [1] }, { signal: leaving.signal });
      await until('it to be sent', () => served.router.stats().leases.open === 1);
      leaving.abort();
      await asked.catch(() => undefined);
      const [ended] = await served.settled(1);
      assert.is(ended!.outcome, 'cancelled');
      assert.is(ended!.status, 0);
    }));

  for (const kind of ['unavailable', 'no-first-byte'] as const) {
    test(`a worker that fails before the first byte (${kind}) is replaced once by the runner-up`, () =>
      withServed({}, async (served) => {
        const prompt = tokensOf(5, 40);
        // Whoever is asked first fails.
        const [one, two] = served.fleet.workers;
        one!.failNext({ kind });
        two!.failNext({ kind });
        const both = await post(`${served.url}/v1/completions`, { model: MODEL, prompt, max_tokens: 2 });
        assert.is(both.status, kind === 'unavailable' ? 503 : 502);
        if (kind === 'unavailable') assert.match(await both.text(), /simulated fault/);
        else assert.is(((await both.json()) as { error: { code: string } }).error.code, 'worker-unreachable');
        const [failed] = await served.settled(1);
        assert.is(failed!.outcome, 'failed');
        assert.is(failed!.retried, true);
        assert.is(served.router.stats().leases.failed, 2);
        one!.failNext({ kind });
        let answered = 0;
        for (let i = 0; i < 4; i++) {
          const response = await post(`${served.url}/v1/completions`, {
            model: MODEL,
            prompt: tokensOf(6 + i, 40),
            max_tokens: 2,
          });
          assert.is(response.status, 200);
          const { moonroute } = (await response.json()) as { moonroute: { worker: string } };
          assert.is(moonroute.worker, response.headers.get('x-moonroute-worker'));
          answered++;
        }
        const ended = await served.settled(1 + answered);
        assert.is(ended.filter(({ retried, outcome }) => retried && outcome === 'completed').length, 1);
        assert.is(served.router.stats().leases.failed, 3);
      }));
  }

  test('a dead worker is passed over, and with nobody left it is 502', () =>
    withServed({}, async (served) => {
      const [one, two] = served.fleet.workers;
      await one!.kill();
      for (let i = 0; i < 3; i++) await complete(served.url, tokensOf(20 + i, 20), { model: MODEL });
      await two!.kill();
      const response = await post(`${served.url}/v1/completions`, { model: MODEL, prompt: [1] });
      // 503 once the registry has noticed.
      assert.ok([502, 503].includes(response.status), String(response.status));
      await served.settled(4);
    }));

  test('a worker that dies in the middle: the connection breaks, the lease fails, nobody else is asked', () =>
    withServed({}, async (served) => {
      for (const stream of [true, false]) {
        for (const worker of served.fleet.workers) {
          worker.heal();
          worker.failNext({ kind: 'mid-stream' });
        }
        const raw = await rawPost(
          served.url,
          '/v1/completions',
          JSON.stringify({ model: MODEL, prompt: tokensOf(7, 40), max_tokens: 9, stream }),
        );
        assert.is(raw.status, 200);
        assert.ok(raw.aborted);
        assert.ok(raw.body.length > 0);
      }
      const ended = await served.settled(2);
      for (const { outcome, status, retried } of ended)
        assert.equal([outcome, status, retried], ['failed', 200, false]);
      assert.is(served.router.stats().leases.failed, 2);
    }));

  test('bytes, status and headers pass unchanged; connection headers and keys stay behind', async () => {
    const seen: { headers: readonly string[]; body: string; url: string }[] = [];
    const payload = Buffer.from([0, 255, 10, 13, 10, 0xe2, 0x82, 0xac, 1, 2, 3]);
    await withHand(
      [
        (request, body, response) => {
          seen.push({ headers: request.rawHeaders, body: body.toString(), url: request.url! });
          response.writeHead(299, 'Quite Fine', [
            ...['Content-Type', 'application/octet-stream', 'X-Twice', 'a', 'X-Twice', 'b', 'SET-cookie', 'c=1'],
            ...['set-cookie', 'd=2', 'Connection', 'keep-alive, X-Hop', 'X-Hop', '1', 'Keep-Alive', 'timeout=5'],
            ...['x-moonroute-worker', 'forged', 'Date', 'Mon, 01 Jan 2024 00:00:00 GMT'],
          ] as never);
          response.write(payload.subarray(0, 3));
          setTimeout(() => response.end(payload.subarray(3)), 5);
        },
      ],
      async (served) => {
        const body = `{ "model":"${MODEL}",\n "prompt": [1,2,3], "unknown_field": {"é": 1.50, "n": 1e2},"max_tokens" : 3 }`;
        const raw = await rawPost(served.url, '/v1/completions?beta=1&x=%20', body, [
          ...[
            'Authorization',
            'Bearer secret',
            'X-Own',
            '1',
            'x-own',
            '2',
            'Proxy-Authorization',
            'p',
            'TE',
            'trailers',
          ],
          ...['Connection', 'close, x-drop', 'X-Drop', '1', 'X-data-parallel-rank', '7', 'OpenAI-Organization', 'o'],
        ]);
        assert.is(raw.status, 299);
        assert.is(raw.statusText, 'Quite Fine');
        assert.equal(raw.body, payload);
        const pairs = (list: readonly string[]) =>
          list.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${list[i + 1]}`] : []));
        const back = pairs(raw.headers).filter((line) => !/^(x-moonroute|connection|keep-alive|transfer)/i.test(line));
        assert.equal(back, [
          ...[
            'Content-Type: application/octet-stream',
            'X-Twice: a',
            'X-Twice: b',
            'SET-cookie: c=1',
            'set-cookie: d=2',
          ],
          'Date: Mon, 01 Jan 2024 00:00:00 GMT',
        ]);
        assert.ok(pairs(raw.headers).includes('x-moonroute-worker: hand-0'));
        assert.not.match(pairs(raw.headers).join('\n'), /forged|X-Hop/);
        assert.is(seen.length, 1);
        assert.is(seen[0]!.body, body);
        assert.is(seen[0]!.url, '/v1/completions?beta=1&x=%20');
        const went = pairs(seen[0]!.headers);
        assert.equal(
          went.filter((line) => !/^(host|connection):/i.test(line)),
          [
            'content-type: application/json',
            'X-Own: 1',
            'x-own: 2',
            'OpenAI-Organization: o',
            `content-length: ${Buffer.byteLength(body)}`,
          ],
        );
        assert.match(went[0]!, /^host: 127\.0\.0\.1:\d+$/);
      },
    );
  });

  test('refusals of a worker pass through, and are nobody’s failure', () =>
    withHand(
      [
        (_, __, response) => {
          response.writeHead(422, { 'content-type': 'application/json', 'x-why': 'because' });
          response.end('{"error":{"message":"no","code":422}}');
        },
      ],
      async (served) => {
        const raw = await rawPost(served.url, '/v1/completions', ASK);
        assert.is(raw.status, 422);
        assert.is(raw.body.toString(), '{"error":{"message":"no","code":422}}');
        const [ended] = await served.settled(1);
        assert.is(ended!.outcome, 'refused');
        assert.is(served.router.stats().leases.cancelled, 1);
      },
    ));

  test('what a worker is passed over for: that it fails, and neither what it answers nor how long it takes', async () => {
    for (const [name, answer, status, code, failed] of [
      ['500', (response) => response.writeHead(500).end('{}'), 500, null, 0],
      ['501', (response) => response.writeHead(501).end('{}'), 501, null, 0],
      ['503', (response) => response.writeHead(503).end('{}'), 503, null, 1],
      ['no answer in time', () => undefined, 504, 'request-timeout', 0],
      ['no end in time', (response) => response.writeHead(200).write('a'), 200, null, 0],
      ['death', (response) => response.socket!.destroy(), 502, 'worker-unreachable', 1],
      ['another protocol', said('101 Switching Protocols', 'upgrade: x\r\nconnection: upgrade'), 502, null, 1],
      ['another protocol unnamed', said('101 Switching Protocols', 'x: y'), 502, null, 1],
      ['a status that is none', said('999 What', 'content-length: 0'), 502, null, 1],
      ['a status too small', said('099 What', 'content-length: 0'), 502, null, 1],
    ] as [string, (response: ServerResponse) => unknown, number, string | null, number][]) {
      await withHand(
        [(_, __, response) => void answer(response)],
        async (served) => {
          const started = performance.now();
          const raw = await rawPost(served.url, '/v1/completions', ASK);
          assert.is(raw.status, status, name);
          assert.is(raw.aborted, name === 'no end in time', name);
          if (code !== null) assert.ok(raw.body.toString().includes(code), name);
          const isSlow = name.includes('in time');
          assert.ok(performance.now() - started < 1000 || isSlow, name);
          const [ended] = await served.settled(1);
          assert.is(ended!.outcome, 'failed', name);
          const { leases } = served.router.stats();
          assert.equal([leases.failed, leases.cancelled], [failed, 1 - failed], name);
        },
        { limits: { requestTime: name.includes('in time') ? 200 : 5000 } },
      );
    }
  });

  test('a kept connection that the worker closed meanwhile: once more on a fresh one, unless something came back', async () => {
    for (const [partly, statuses, asked, failed] of [
      ['', [200, 200], 3, 0],
      ['HTTP/1.1 200 OK\r\nx-half: ', [200, 502], 2, 1],
    ] as const) {
      const used = new WeakSet<object>();
      const bodies: string[] = [];
      await withHand(
        [
          ({ socket }, body, response) => {
            bodies.push(body.toString());
            if (!used.has(socket)) {
              used.add(socket);
              return void response.end('{}');
            }
            if (partly === '') socket.destroy();
            else socket.end(partly);
          },
        ],
        async (served) => {
          for (const status of statuses) assert.is((await rawPost(served.url, '/v1/completions', ASK)).status, status);
          assert.equal(bodies, Array(asked).fill(ASK));
          await served.settled(2);
          assert.is(served.router.stats().leases.failed, failed);
          assert.equal(served.ended[1]!.retried, false);
        },
      );
    }
  });

  test('while a worker takes its time, of a body only the bytes are kept, not what they were parsed to', () =>
    withHand([() => undefined], async (served) => {
      const { prompts } = served;
      const parsed: WeakRef<object>[] = [];
      const read = prompts.read.bind(prompts);
      prompts.read = (kind, fields) => {
        parsed.push(new WeakRef(fields));
        return read(kind, fields);
      };
      const leaving = new AbortController();
      const asked = post(`${served.url}/v1/completions`, { model: MODEL, prompt: [1] }, { signal: leaving.signal });
      await until('it to be sent', () => served.router.stats().leases.open === 1);
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc') as () => void;
      await until('the fields to be gone', () => {
        collect();
        return parsed[0]!.deref() === undefined;
      });
      assert.is(served.service.active, 1);
      leaving.abort();
      await asked.catch(() => undefined);
      await served.settled(1);
    }));

  test('a model that only some list is asked of them alone, also by the runner-up', async () => {
    const counts = [0, 0, 0];
    const counted = (i: number): Parameters<typeof handWorker>[0] => {
      return (_, __, response) => {
        counts[i]!++;
        response.writeHead(503).end('{}');
      };
    };
    await withHand([counted(0), counted(1), counted(2)], async (served) => {
      const { registry } = served;
      registry.listedBy = (model) => (model === 'disputed' ? ['hand-1', 'hand-2'] : null);
      assert.is(registry.knows('disputed'), null);
      for (let i = 0; i < 3; i++) {
        const body = JSON.stringify({ model: 'disputed', prompt: [i] });
        assert.is((await rawPost(served.url, '/v1/completions', body)).status, 503);
      }
      assert.equal([counts[0], counts[1]! + counts[2]!], [0, 6]);
      const route = async (more: object) => {
        const body = { completions: { model: 'disputed', prompt: [1] }, ...more };
        const { status, body: said } = await rawPost(served.url, '/route', JSON.stringify(body));
        return status === 200 ? (JSON.parse(said.toString()) as { worker: { id: string } }).worker.id : status;
      };
      assert.is(await route({ allowed: ['hand-0', 'hand-2'] }), 'hand-2');
      assert.is(await route({ allowed: ['hand-0'] }), 503);
    });
  });

  test('an answer without a body, and one that is compressed, pass', async () => {
    let count = 0;
    await withHand(
      [
        (_, __, response) => {
          if (count++ === 0) response.writeHead(204).end();
          else
            response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('not gzip');
        },
      ],
      async (served) => {
        const none = await rawPost(served.url, '/v1/completions', ASK);
        assert.equal([none.status, none.body.length], [204, 0]);
        const packed = await rawPost(served.url, '/v1/completions', ASK, ['accept-encoding', 'gzip']);
        assert.equal([packed.status, packed.body.toString()], [200, 'not gzip']);
        const [, ended] = await served.settled(2);
        assert.is(ended!.cachedTokens, null);
      },
    );
  });

  test('a salt reaches the worker with its prefix, and nothing else of the body changes; raw salts stay as they are', async () => {
    for (const mode of ['prefixed', 'raw'] as const) {
      const seen: string[] = [];
      await withHand(
        [
          (_, body, response) => {
            seen.push(body.toString());
            response.end('{}');
          },
        ],
        async (served) => {
          const around = (salt: string) =>
            `{"model":"${MODEL}", "prompt":[1],\t"cache_salt" : ${salt} , "x":{"cache_salt":"in"}}`;
          for (const [given, sent] of [
            ['"tenant \\u00e9\\"a"', '"dynamo-cache-salt:tenant é\\"a"'],
            ['""', '""'],
            ['null', 'null'],
            ['7', '7'],
          ] as const) {
            await rawPost(served.url, '/v1/completions', around(given));
            assert.is(seen.pop(), around(mode === 'raw' ? given : sent));
          }
        },
        { salt: { mode } },
      );
    }
  });

  test('the rank is said to workers with several, and to nobody else', () =>
    withServed(
      { fleet: { workers: [{ dp: 3 }], worker: { latency: FAST } }, config: { policy: 'round-robin' } },
      async (served) => {
        const ranks = new Set<string>();
        for (let i = 0; i < 6; i++) {
          const response = await post(
            `${served.url}/v1/completions`,
            { model: MODEL, prompt: tokensOf(30 + i, 20), max_tokens: 1 },
            { headers: { 'x-data-parallel-rank': '9' } },
          );
          const { moonroute } = (await response.json()) as { moonroute: { dp_rank: number } };
          assert.is(String(moonroute.dp_rank), response.headers.get('x-moonroute-dp-rank'));
          ranks.add(String(moonroute.dp_rank));
        }
        assert.equal([...ranks].sort(), ['0', '1', '2']);
      },
    ));

  test('a worker that never answers is given up after requestTime', () =>
    withServed({ config: { limits: { requestTime: 150 } } }, async (served) => {
      for (const worker of served.fleet.workers) worker.failNext({ kind: 'hang' });
      const response = await post(`${served.url}/v1/completions`, { model: MODEL, prompt: [1] });
      assert.is(response.status, 504);
      assert.is(((await response.json()) as { error: { code: string } }).error.code, 'request-timeout');
      const [ended] = await served.settled(1);
      assert.is(ended!.outcome, 'failed');
    }));

  test('a prompt that could not be tokenised is routed by load, and says so', () =>
    withServed({}, async (served) => {
      const response = await post(`${served.url}/v1/chat/completions`, { model: MODEL, messages: [] });
      assert.ok(response.headers.get('x-moonroute-worker'));
      assert.is(response.headers.get('x-moonroute-reason'), 'tokenize-failed');
      await response.text();
      const [ended] = await served.settled(1);
      assert.equal([ended!.source, ended!.notProven], ['none', 'tokenize-failed']);
    }));

  test('a slow reader holds back the worker, not the memory', async () => {
    const size = 64 << 20;
    let written = 0;
    await withHand(
      [
        (_, __, response) => {
          response.writeHead(200, { 'content-type': 'application/octet-stream' });
          const chunk = Buffer.alloc(65_536);
          const more = () => {
            while (written < size) {
              written += chunk.length;
              if (!response.write(chunk)) return void response.once('drain', more);
            }
            response.end();
          };
          more();
        },
      ],
      async (served) => {
        const { hostname, port } = new URL(served.url);
        const response = await new Promise<IncomingMessage>((resolve) => {
          const headers = { 'content-type': 'application/json' };
          httpRequest({ host: hostname, port, path: '/v1/completions', method: 'POST', headers }, resolve).end(ASK);
        });
        let last = -1;
        await until('the worker to be held', async () => {
          const before = last;
          last = written;
          await new Promise((resolve) => setTimeout(resolve, 100));
          return before === written;
        });
        assert.ok(written < size / 2, `${written} bytes`);
        let read = 0;
        for await (const chunk of response) read += (chunk as Buffer).length;
        assert.is(read, size);
        await served.settled(1);
      },
    );
  });

  test('a client that does not read is given up after requestTime, and that is not its worker’s fault', () =>
    withHand(
      [
        (_, __, response) => {
          const chunk = Buffer.alloc(65_536);
          const more = () => {
            while (response.write(chunk));
            response.once('drain', more);
          };
          more();
        },
      ],
      async (served) => {
        const { hostname, port } = new URL(served.url);
        const headers = { 'content-type': 'application/json' };
        const request = httpRequest({ host: hostname, port, path: '/v1/completions', method: 'POST', headers });
        request.on('response', (response) => response.on('error', () => undefined)).on('error', () => undefined);
        request.end(ASK);
        const [ended] = await served.settled(1);
        request.destroy();
        assert.is(ended!.outcome, 'cancelled');
        assert.is(served.router.stats().leases.failed, 0);
      },
      { limits: { requestTime: 400 } },
    ));

  test('what bodies take of the budget comes back, however the request ends; without any left it is 503', () =>
    withServed({ config: { limits: { bodyBytes: 100_000, requestTime: 2000 } } }, async (served) => {
      const parts = httpPartsOf(served.service);
      const { budget } = parts;
      const full = budget.left;
      const headers = { 'content-type': 'application/json', host: 'localhost' };
      const ask = (body: string) =>
        proxy(
          'completions',
          exchangeOf(new Request('http://x/v1/completions', { method: 'POST', body, headers }), {}),
          parts,
        );
      const good = JSON.stringify({ model: MODEL, prompt: [1, 2], max_tokens: 2 });
      const [one, two] = served.fleet.workers;
      for (const [name, status, body, before] of [
        ['served', 200, good, () => {}],
        ['no JSON', 400, '{', () => {}],
        ['too much', 413, ' '.repeat(200_000), () => {}],
        ['unknown model', 404, '{"model":"x"}', () => {}],
        ['no worker', 503, good, () => [one, two].map((worker) => worker!.failNext({ kind: 'unavailable' }))],
        // On kept connections each is asked twice.
        ['no answer', 502, good, () => [one, two].map((worker) => worker!.failNext({ kind: 'no-first-byte' }, 2))],
      ] as const) {
        before();
        const response = await ask(body);
        assert.is(response.status, status, name);
        assert.is(budget.left, full, name);
        await response.text();
      }
      budget.take(full - 10);
      const busy = await ask(good);
      assert.equal([busy.status, busy.headers.get('retry-after')], [503, '1']);
      assert.is(budget.left, 10);
    }));

  test('closing the server: idle connections end at once, answers under way a moment later', () =>
    withServed({ fleet: { workers: 1, worker: { latency: { timeScale: 1 } } } }, async (served) => {
      const agent = new Agent({ keepAlive: true });
      const { hostname, port } = new URL(served.url);
      const get = () =>
        new Promise<void>((resolve, reject) => {
          const request = httpRequest({ agent, host: hostname, port, path: '/healthz' }, (response) => {
            response.resume().on('end', resolve);
          });
          request.on('error', reject).end();
        });
      await get();
      const long = { model: MODEL, prompt: tokensOf(8, 20), max_tokens: 1000, ignore_eos: true, stream: true };
      const response = await post(`${served.url}/v1/completions`, long);
      const started = performance.now();
      await served.listening.close();
      assert.ok(performance.now() - started < 3000);
      assert.is(
        await response.text().then(
          () => 'whole',
          () => 'broken',
        ),
        'broken',
      );
      assert.is(
        await get().then(
          () => 'answered',
          () => 'refused',
        ),
        'refused',
      );
      agent.destroy();
      const [ended] = await served.settled(1);
      assert.is(ended!.outcome, 'cancelled');
    }));

  test('when draining, new requests are refused and those under way go on', () =>
    withServed({ fleet: { workers: 1, worker: { latency: { timeScale: 1 } } } }, async (served) => {
      const body = { model: MODEL, prompt: tokensOf(8, 20), max_tokens: 10, ignore_eos: true, stream: true };
      const response = await post(`${served.url}/v1/completions`, body);
      const drained = served.service.drain(10_000);
      assert.is((await post(`${served.url}/v1/completions`, body)).status, 503);
      assert.is((await fetch(`${served.url}/readyz`)).status, 503);
      assert.match(await response.text(), /\[DONE\]/);
      await drained;
      assert.is(served.service.active, 0);
    }));

  test.run();
}
