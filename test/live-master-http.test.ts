// The master's HTTP over real sockets: what it says, and what happens when it is down, slow, cut short, huge, a standby, or talks nonsense.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createRawServer } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../src/live/clock.js';
import { MASTER_HTTP_LIMITS, MasterHttp, MasterHttpError, readStatus } from '../src/live/master-http.js';

const NEVER = new AbortController().signal;
const STATUS =
  '{"enabled":true,"published_batches":7,"published_events":9,"dropped_events":3,"skipped_unparsed_keys":9}';

async function withServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    assert.instance(error, MasterHttpError);
    return (error as MasterHttpError).code;
  }
  return 'nothing was thrown';
}

const client = (url: string, limits: Partial<typeof MASTER_HTTP_LIMITS> = {}): MasterHttp =>
  new MasterHttp(`${url}/`, systemClock, { ...MASTER_HTTP_LIMITS, ...limits });

// ---- what it says ----

for (const [name, text, expected] of [
  ['generation A', STATUS, { state: 'serving', sequence: 10n, generation: 'A' }],
  [
    'generation B',
    STATUS.replace('}', ',"invalid_event_hashes":0}'),
    { state: 'serving', sequence: 10n, generation: 'B' },
  ],
  [
    'generation C',
    STATUS.replace('skipped_unparsed_keys', 'skipped_keyless_events'),
    { state: 'serving', sequence: 10n, generation: 'C' },
  ],
  ['events off', STATUS.replace('true', 'false'), { state: 'events-off' }],
] as const) {
  test(`status: ${name}`, () => assert.equal(readStatus(text, 'here'), expected));
}

for (const text of [
  '',
  'null',
  '[]',
  '7',
  '{"enabled":true}',
  STATUS.replace('7', '-1'),
  STATUS.replace('7', '"7"'),
  STATUS.slice(1),
  '<html>',
]) {
  test(`status: '${text}' is a fault that shows it`, () => {
    assert.throws(
      () => readStatus(text, 'here'),
      (error: Error) =>
        error instanceof MasterHttpError && error.code === 'http-body' && error.message.includes(text.slice(0, 60)),
    );
  });
}

test('keys arrive whole, part by part; a standby answers 503; nothing else is ever asked for', async () => {
  const asked: string[] = [];
  const list = Array.from({ length: 50_000 }, (_, i) => `key-${i}`).join('\n');
  await withServer(
    (request, response) => {
      asked.push(request.url!);
      if (request.url === '/get_all_keys') response.end(list);
      else if (request.url === '/metrics')
        response.end('# HELP x\nmaster_key_count_total 9\nmaster_key_count 42\nother 7\n');
      else response.writeHead(503).end('service plane is not active');
    },
    async (url) => {
      const parts: Uint8Array[] = [];
      await client(url).keys((part) => parts.push(part), NEVER);
      assert.ok(parts.length > 1);
      assert.is(Buffer.concat(parts).toString(), list);
      assert.is(await client(url).keyCount(NEVER), 42);
      assert.equal(await client(url).status(NEVER), { state: 'standby' });
    },
  );
  assert.equal(asked, ['/get_all_keys', '/metrics', '/kv_events/status']);
});

test('metrics without the count, or none at all, say nothing', async () => {
  await withServer(
    (_, response) => response.end('other 7\n'),
    async (url) => assert.is(await client(url).keyCount(NEVER), null),
  );
});

// ---- what goes wrong ----

const FAULTS: Record<string, readonly [(request: IncomingMessage, response: ServerResponse) => void, string]> = {
  'no answer at all': [() => {}, 'http-slow'],
  'headers, and then nothing': [
    (_, response) => response.writeHead(200, { 'content-length': 1000 }).flushHeaders(),
    'http-slow',
  ],
  'a drop now and then, without an end': [
    (_, response) => {
      const drip = setInterval(() => response.write('x\n'), 20);
      response.on('close', () => clearInterval(drip));
    },
    'http-slow',
  ],
  'a body cut short': [
    (_, response) => {
      response.writeHead(200, { 'content-length': 1000 }).write('half');
      setTimeout(() => response.destroy(), 20);
    },
    'http-truncated',
  ],
  'chunks cut short': [
    (_, response) => {
      response.write('half');
      setTimeout(() => response.destroy(), 20);
    },
    'http-truncated',
  ],
  'an endless body': [
    (_, response) => {
      const block = Buffer.alloc(65_536, 'k');
      const pour = (): void => {
        while (!response.destroyed && response.write(block));
        if (!response.destroyed) response.once('drain', pour);
      };
      pour();
    },
    'http-too-large',
  ],
  'a fault of its own': [(_, response) => response.writeHead(500).end('oh'), 'http-status'],
  'somewhere else': [(_, response) => response.writeHead(302, { location: '/elsewhere' }).end(), 'http-unreachable'],
};

for (const [name, [answer, code]] of Object.entries(FAULTS)) {
  test(`key list: ${name}: ${code}`, async () => {
    await withServer(answer, async (url) => {
      const http = client(url, { silence: 150, listTime: 400, listBytes: 1 << 20 });
      assert.is(await codeOf(http.keys(() => {}, NEVER)), code);
    });
  });
}

test('key list of a standby', async () => {
  await withServer(
    (_, response) => response.writeHead(503).end(),
    async (url) => assert.is(await codeOf(client(url).keys(() => {}, NEVER)), 'http-standby'),
  );
});

test('nobody there, and somebody who speaks another protocol', async () => {
  const raw = createRawServer((socket) => socket.on('error', () => {}).write('SSH-2.0\r\n', () => socket.destroy()));
  await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
  const { port } = raw.address() as AddressInfo;
  assert.is(await codeOf(client(`http://127.0.0.1:${port}`).status(NEVER)), 'http-unreachable');
  await new Promise((resolve) => raw.close(resolve));
  assert.is(await codeOf(client(`http://127.0.0.1:${port}`).status(NEVER)), 'http-unreachable');
});

test('an exchange that is given up ends at once', async () => {
  await withServer(
    () => {},
    async (url) => {
      const controller = new AbortController();
      const asked = codeOf(client(url).status(controller.signal));
      controller.abort();
      assert.is(await asked, 'http-slow');
      assert.is(await codeOf(client(url).status(controller.signal)), 'http-slow');
    },
  );
});

test('what the receiver of the list throws ends it', async () => {
  await withServer(
    (_, response) => response.end('a\nb\n'),
    async (url) => {
      const refuse = (): never => {
        throw new MasterHttpError('enough', 'enough');
      };
      assert.is(await codeOf(client(url).keys(refuse, NEVER)), 'enough');
    },
  );
});

test.run();
