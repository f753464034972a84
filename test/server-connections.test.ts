// Connections of clients who do not read, or have nothing to say: none is kept for longer than its time, and none that waits for its answer is cut.
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Connections } from '../src/server/http/connections.js';
import { until } from './support/fleet-worker.js';

const STALL_MS = 100;
const LARGE = Buffer.alloc(32 << 20);
const PART = 1 << 20;

async function served(handle: RequestListener, work: (open: (text: string) => Socket) => Promise<void>): Promise<void> {
  const connections = new Connections(STALL_MS);
  const server = createServer({ keepAliveTimeout: STALL_MS }, connections.oneAtATime(handle));
  connections.bound(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sockets: Socket[] = [];
  try {
    await work((text) => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(text);
      sockets.push(socket);
      return socket;
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

test('a client that does not read is cut off, whatever it asked for', async () => {
  let closed = 0;
  await served(
    (_, outgoing) => {
      outgoing.on('close', () => closed++);
      outgoing.end(LARGE);
    },
    async (open) => {
      for (let i = 0; i < 5; i++) open(GET.repeat(3)).pause();
      await until('all to be cut off', () => closed === 5);
    },
  );
});

test('a client that reads slowly is not', async () => {
  let finished = false;
  await served(
    (_, outgoing) => {
      outgoing.on('finish', () => {
        finished = true;
      });
      outgoing.end(LARGE);
    },
    async (open) => {
      const socket = open(GET);
      let read = 0;
      socket.on('data', (bytes: Buffer) => {
        read += bytes.length;
        if (Math.floor(read / PART) === Math.floor((read - bytes.length) / PART)) return;
        socket.pause();
        setTimeout(() => socket.resume(), STALL_MS / 4);
      });
      await until('all to be read', () => read > LARGE.length);
      assert.ok(finished);
    },
  );
});

test('a client whose answer takes its time is not cut off; idle, it is, and so is one that never asks', async () => {
  await served(
    (_, outgoing) => void setTimeout(() => outgoing.end('late'), 5 * STALL_MS),
    async (open) => {
      let received = '';
      let ended = 0;
      open(GET)
        .on('data', (bytes) => {
          received += bytes;
        })
        .on('close', () => ended++);
      await until('the answer', () => received.includes('late'));
      open('')
        .on('close', () => ended++)
        .resume();
      await until('both to end', () => ended === 2);
    },
  );
});

test.run();
