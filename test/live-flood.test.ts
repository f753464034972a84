// Publishers that flood, lie about lengths, or say nothing: they cost bounded memory and their own connection, and nothing else.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { INBOX_BYTES, INBOX_ITEMS } from '../src/live/inbox.js';
import { LiveStreams } from '../src/live/live-streams.js';
import { until, zeromq } from './support/fleet-worker.js';
import { RouterPool } from './support/router-pool.js';

const MIB = 1 << 20;
/** Bytes that a flood sends: many times what may wait. */
const FLOOD_BYTES = 512 * MIB;
const MESSAGE_BYTES = 32_768;

/** A publisher in a process of its own that sends as fast as it is taken, for ever. */
async function flooder(): Promise<{ child: ChildProcess; endpoint: string }> {
  const script = `
    import { Publisher } from 'zeromq';
    const socket = new Publisher({ linger: 0, noDrop: true, sendHighWaterMark: 100 });
    await socket.bind('tcp://127.0.0.1:*');
    console.log(socket.lastEndpoint);
    const payload = Buffer.alloc(${MESSAGE_BYTES}, 0xc1);
    for (let sequence = 0n; ; sequence++) {
      const frame = Buffer.alloc(8);
      frame.writeBigUInt64BE(sequence);
      // Where all buffers are full, no message is dropped: it is sent again.
      for (;;) {
        try {
          await socket.send(['', frame, payload]);
          break;
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      }
      if (sequence % 64n === 0n) await new Promise((resolve) => setImmediate(resolve));
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [endpoint] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string];
  return { child, endpoint };
}

/** A server that does with each connection what it is told. */
async function rawServer(onConnection: (socket: Socket) => void): Promise<{ server: Server; endpoint: string }> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.resume(); // its end is seen only where somebody reads
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, endpoint: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function greeting(): Buffer {
  const bytes = Buffer.alloc(64);
  bytes[0] = 0xff;
  bytes[9] = 0x7f;
  bytes[10] = 3;
  bytes[11] = 1;
  bytes.write('NULL', 12);
  return bytes;
}
const READY = Buffer.from([
  4,
  25,
  5,
  ...Buffer.from('READY'),
  11,
  ...Buffer.from('Socket-Type'),
  0,
  0,
  0,
  3,
  ...Buffer.from('PUB'),
]);

if (zeromq !== null) {
  for (const kind of ['worker', 'store'] as const) {
    test(`a ${kind} stream flooded with ${FLOOD_BYTES / MIB} MiB, while decisions go on: what waits stays bounded`, async () => {
      const { child, endpoint } = await flooder();
      const pool = await RouterPool.shared(1);
      const live = LiveStreams.open(
        pool.router,
        kind === 'worker'
          ? { workers: [{ id: 0, contract: pool.contract, events: endpoint }] }
          : { store: { masters: [{ events: endpoint, http: null }] } },
      );
      try {
        const seen = (): number => {
          const { gpuEvents, cache } = pool.router.stats();
          const counts = Object.values(kind === 'worker' ? gpuEvents.messages : cache!.messages);
          return counts.reduce((sum, count) => sum + count, 0);
        };
        await until('the flood', () => seen() > 0);
        const before = process.memoryUsage().rss;
        let most = 0;
        let queued = 0;
        let decisions = 0;
        // Slow work between turns: the flood is faster than what is taken from it.
        await until('the flood to be seen through', () => {
          for (const end = performance.now() + 8; performance.now() < end; decisions++) {
            pool.route(pool.prompt(1, 2)).lease.cancel(0);
          }
          const { workers, store } = live.status();
          queued = Math.max(queued, kind === 'worker' ? workers[0]!.queued : store!.queued);
          most = Math.max(most, process.memoryUsage().rss - before);
          return seen() * MESSAGE_BYTES > FLOOD_BYTES;
        });
        assert.ok(queued <= INBOX_ITEMS + 64, `${queued} items waited`);
        assert.ok(queued * MESSAGE_BYTES <= INBOX_BYTES + MIB, `${queued} items of ${MESSAGE_BYTES} bytes waited`);
        assert.ok(most < 4 * INBOX_BYTES, `${Math.round(most / MIB)} MiB more than before`);
        assert.ok(decisions > 100);
      } finally {
        await live.close();
        child.kill('SIGKILL');
      }
    });
  }

  const MALICE: Record<string, (socket: Socket) => void> = {
    'a frame that claims 2^60 bytes': (socket) => {
      socket.write(greeting());
      socket.write(READY);
      socket.write(Buffer.from([2, 0x10, 0, 0, 0, 0, 0, 0, 0]));
    },
    'a message of endlessly many frames': (socket) => {
      socket.write(greeting());
      socket.write(READY);
      const frames = Buffer.from(Array.from({ length: 1000 }, () => [1, 1, 7]).flat());
      const pour = (): void => {
        while (!socket.destroyed && socket.write(frames));
        if (!socket.destroyed) socket.once('drain', pour);
      };
      pour();
    },
    'another protocol': (socket) => socket.end('HTTP/1.1 400 Bad Request\\r\\n\\r\\n'),
    'random bytes without end': (socket) => {
      const bytes = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919) & 255));
      const pour = (): void => {
        while (!socket.destroyed && socket.write(bytes));
        if (!socket.destroyed) socket.once('drain', pour);
      };
      pour();
    },
  };
  for (const [name, attack] of Object.entries(MALICE)) {
    test(`a publisher with ${name}: its connection is lost and tried again, with growing delays`, async () => {
      let connections = 0;
      const sockets = new Set<Socket>();
      const { server, endpoint } = await rawServer((socket) => {
        connections++;
        sockets.add(socket);
        attack(socket);
      });
      const pool = await RouterPool.shared(1);
      const lines: string[] = [];
      const live = LiveStreams.open(pool.router, {
        workers: [{ id: 0, contract: pool.contract, events: endpoint }],
        store: { masters: [{ events: endpoint, http: null }] },
        log: (_, text) => lines.push(text),
      });
      try {
        await until('some attempts', () => connections >= 6);
        const before = process.memoryUsage().rss;
        await until('two more', () => connections >= 8);
        assert.ok(process.memoryUsage().rss - before < 64 * MIB);
        const { workers, store } = live.status();
        assert.is(workers[0]!.queued + store!.queued, 0);
        assert.ok(lines.length <= connections + 4, `${lines.length} lines for ${connections} connections`);
        assert.ok(pool.route(pool.prompt(1, 1)).lease !== null);
      } finally {
        await live.close();
        for (const socket of sockets) socket.destroy();
        await new Promise((resolve) => server.close(resolve));
      }
    });
  }

  test('a publisher that accepts and says nothing: no connection, no messages, no growing pile of sockets', async () => {
    const open = new Set<Socket>();
    const { server, endpoint } = await rawServer((socket) => {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
    });
    const pool = await RouterPool.shared(1);
    const live = LiveStreams.open(pool.router, { store: { masters: [{ events: endpoint, http: null }] } });
    try {
      await until('a connection', () => open.size === 1);
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.is(open.size, 1);
      assert.not(live.status().store!.connected);
    } finally {
      await live.close();
      await until('the socket to be closed', () => open.size === 0);
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test('after close nothing is left: no socket, no timer, no request', async () => {
    const { server, endpoint } = await rawServer(() => {});
    const { port } = server.address() as AddressInfo;
    const pool = await RouterPool.shared(1);
    const before = process.getActiveResourcesInfo().length;
    for (let round = 0; round < 3; round++) {
      const live = LiveStreams.open(pool.router, {
        workers: [{ id: 0, contract: pool.contract, events: endpoint, replay: endpoint }],
        store: { masters: [{ events: endpoint, http: `http://127.0.0.1:${port}` }] },
      });
      await new Promise((resolve) => setTimeout(resolve, 150));
      await live.close();
    }
    await until('everything to be gone', () => process.getActiveResourcesInfo().length <= before);
    server.close();
  });

  test.run();
}
