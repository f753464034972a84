// Our sockets against peers that libzmq would never be: raw TCP servers that cut, stall, break off, break the rules or read nothing.
// live-zmtp-deno.test.ts runs this file in Deno too.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  commandBody,
  encodeCommand,
  encodeGreeting,
  encodeMessage,
  encodeMetadata,
  pingBody,
  pongBody,
  subscription,
} from '../src/live/zmtp/codec.js';
import {
  type SocketEvent,
  type SocketHandlers,
  type SocketOptions,
  ZmtpDealer,
  ZmtpSubscriber,
} from '../src/live/zmtp/socket.js';

const bytes = (...values: number[]) => new Uint8Array(values);
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex');
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 5_000; !holds(); ) {
    if (Date.now() > end) throw new Error(`waited 5 s for ${what}`);
    await pause(2);
  }
}

/** All that a client says, in one list: `connected`, `lost CAUSE`, `retry MS` and messages as hexadecimal text. */
class Log implements SocketHandlers {
  readonly said: string[] = [];
  readonly details: string[] = [];
  hook: (said: string) => void = () => {};

  onMessage(frames: Uint8Array[]): void {
    this.#say(frames.map(hex).join('|'));
  }
  onEvent(event: SocketEvent): void {
    if (event.kind === 'lost') this.details.push(event.detail);
    this.#say(event.kind === 'lost' ? `lost ${event.cause}` : event.kind === 'retry' ? 'retry' : 'connected');
  }
  count(said: string): number {
    return this.said.filter((one) => one === said).length;
  }
  #say(said: string): void {
    this.said.push(said);
    this.hook(said);
  }
}

/** A peer: a server that does something with each connection, and keeps what it is sent. */
class Peer {
  readonly sockets: Socket[] = [];
  readonly received: Buffer[] = [];
  readonly #server: Server;
  #meet: (socket: Socket, nth: number) => void;

  constructor(meet: (socket: Socket, nth: number) => void) {
    this.#meet = meet;
    this.#server = createServer((socket) => {
      const nth = this.sockets.push(socket) - 1;
      this.received[nth] = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        this.received[nth] = Buffer.concat([this.received[nth]!, chunk]);
      });
      socket.on('error', () => {});
      socket.setNoDelay(true);
      this.#meet(socket, nth);
    });
  }
  async listen(port = 0): Promise<this> {
    await new Promise<void>((done) => this.#server.listen(port, '127.0.0.1', done));
    return this;
  }
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }
  get endpoint(): string {
    return `tcp://127.0.0.1:${this.port}`;
  }
  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }
}

const encodeReady = (type: string) => encodeCommand(commandBody('READY', encodeMetadata(type)));
const HELLO = Buffer.concat([encodeGreeting('NULL'), encodeReady('PUB')]);
const CLIENT_HELLO = Buffer.concat([encodeGreeting('NULL'), encodeReady('SUB'), encodeMessage([subscription('kv')])]);
const QUICK: SocketOptions = { reconnectMs: 2, reconnectMaxMs: 20 };

/** Runs something with a peer and a subscriber, and closes both. */
async function meet(
  answer: (socket: Socket, nth: number) => void,
  run: (scene: { peer: Peer; log: Log; sub: ZmtpSubscriber }) => Promise<void>,
  options: SocketOptions = {},
): Promise<void> {
  const peer = await new Peer(answer).listen();
  const log = new Log();
  const sub = new ZmtpSubscriber(peer.endpoint, 'kv', log, { ...QUICK, ...options });
  try {
    sub.open();
    await run({ peer, log, sub });
  } finally {
    sub.close();
    await peer.close();
  }
}

test('a peer that sends byte by byte, and what it is sent', async () => {
  const stream = Buffer.concat([HELLO, encodeMessage([bytes(1), bytes(), bytes(2, 3)]), encodeMessage([bytes(4)])]);
  const slowly = async (socket: Socket) => {
    for (const byte of stream) {
      socket.write(bytes(byte));
      await new Promise((done) => setImmediate(done));
    }
  };
  await meet(slowly, async ({ peer, log, sub }) => {
    assert.is(sub.connected, false);
    await until('both messages', () => log.said.length === 3);
    assert.equal(log.said, ['connected', '01||0203', '04']);
    assert.is(sub.connected, true);
    await until('what it is sent', () => peer.received[0]!.length >= CLIENT_HELLO.length);
    assert.is(hex(peer.received[0]!), hex(CLIENT_HELLO));
  });
});

test('a loss comes once, behind the last message, whether the peer ends or resets', async () => {
  const burst = Buffer.concat(Array.from({ length: 3 }, (_, i) => encodeMessage([bytes(i)])));
  const answer = (socket: Socket, nth: number) => {
    socket.write(HELLO);
    if (nth === 0) socket.end(burst);
    if (nth === 1) socket.write(burst, () => setTimeout(() => socket.resetAndDestroy(), 30));
  };
  await meet(answer, async ({ log }) => {
    await until('the third connection', () => log.count('connected') === 3);
    const life = ['connected', '00', '01', '02', 'lost disconnect', 'retry'];
    assert.equal(log.said, [...life, ...life, 'connected']);
    assert.match(log.details[0]!, /closed the connection$/);
    assert.match(log.details[1]!, /ECONNRESET/);
  });
});

test('a peer that goes half way is lost at once, though it reads on', async () => {
  const answer = (socket: Socket, nth: number) => {
    socket.allowHalfOpen = true;
    socket.write(HELLO);
    if (nth === 0) socket.end();
  };
  await meet(answer, async ({ log }) => {
    await until('the second connection', () => log.count('connected') === 2);
    assert.equal(log.said.slice(0, 3), ['connected', 'lost disconnect', 'retry']);
  });
});

test('a half-open peer: pings, then lost by heartbeat, and another attempt', async () => {
  const started = Date.now();
  await meet(
    (socket) => socket.write(HELLO),
    async ({ peer, log }) => {
      await until('the loss', () => log.count('lost heartbeat') === 1);
      assert.ok(Date.now() - started >= 150);
      await until('another connection', () => log.count('connected') === 2);
      assert.equal(log.said.slice(0, 4), ['connected', 'lost heartbeat', 'retry', 'connected']);
      const pings = hex(peer.received[0]!.subarray(CLIENT_HELLO.length));
      assert.match(pings, new RegExp(`^(${hex(encodeCommand(pingBody()))}){2,4}$`));
    },
    { heartbeatMs: 40, heartbeatTimeoutMs: 150 },
  );
});

test('a peer that goes silent after a pause is lost too, and no sooner than one that was never paused', async () => {
  await meet(
    (socket) => socket.write(HELLO),
    async ({ log, sub }) => {
      await until('the handshake', () => log.said.length > 0);
      sub.pause();
      await pause(200);
      const resumed = Date.now();
      sub.resume();
      await until('the loss', () => log.count('lost heartbeat') === 1);
      assert.ok(Date.now() - resumed >= 120);
    },
    { heartbeatMs: 40, heartbeatTimeoutMs: 120 },
  );
});

test('any byte is a sign of life, even of a message that never ends', async () => {
  const drip = (socket: Socket) => {
    socket.write(HELLO);
    socket.write(bytes(2, 0, 0, 0, 0, 0, 1, 0, 0));
    const timer = setInterval(() => socket.write(bytes(0)), 20);
    socket.on('close', () => clearInterval(timer));
  };
  await meet(
    drip,
    async ({ log }) => {
      await until('the handshake', () => log.said.length > 0);
      await pause(400);
      assert.equal(log.said, ['connected']);
    },
    { heartbeatMs: 50, heartbeatTimeoutMs: 120 },
  );
});

test('a peer of ZMTP 3.0 is never pinged, and not lost for silence', async () => {
  const old = Buffer.from(HELLO);
  old[11] = 0;
  await meet(
    (socket) => socket.write(old),
    async ({ peer, log }) => {
      await until('the handshake', () => log.said.length > 0);
      await pause(200);
      assert.equal(log.said, ['connected']);
      assert.is(hex(peer.received[0]!), hex(CLIENT_HELLO));
    },
    { heartbeatMs: 20, heartbeatTimeoutMs: 60 },
  );
});

test('a PING is answered with its context', async () => {
  const context = new Uint8Array(16).fill(7);
  const ping = Buffer.from([0x04, 23, 4, 0x50, 0x49, 0x4e, 0x47, 0, 9, ...context]);
  await meet(
    (socket) => socket.write(Buffer.concat([HELLO, ping])),
    async ({ peer }) => {
      const all = hex(Buffer.concat([CLIENT_HELLO, encodeCommand(pongBody(context))]));
      await until('the PONG', () => hex(peer.received[0] ?? bytes()) === all);
    },
  );
});

test('a peer that accepts and never greets is timed out', async () => {
  await meet(
    () => {},
    async ({ log }) => {
      await until('the second attempt', () => log.count('lost timeout') === 2);
      assert.equal(log.said, ['lost timeout', 'retry', 'lost timeout', 'retry']);
      assert.match(log.details[0]!, /no handshake within 40 ms/);
    },
    { connectTimeoutMs: 40 },
  );
});

test('a peer that closes in the handshake', async () => {
  await meet(
    (socket) => socket.end(encodeGreeting('NULL')),
    async ({ log }) => {
      await until('a loss', () => log.said.length >= 2);
      assert.equal(log.said.slice(0, 2), ['lost disconnect', 'retry']);
      assert.match(log.details[0]!, /before the handshake was done/);
    },
  );
});

test('a breach of the protocol: what was good is given out, the connection closed, and another one made', async () => {
  const answer = (socket: Socket, nth: number) => {
    if (nth === 0)
      socket.write(Buffer.concat([HELLO, encodeMessage([bytes(1)]), bytes(0xff), encodeMessage([bytes(2)])]));
    else if (nth === 1) socket.write('SSH-2.0-OpenSSH_9.2\r\n');
    else if (nth === 2) socket.write(Buffer.concat([encodeGreeting('NULL'), encodeReady('ROUTER')]));
    else socket.write(HELLO);
  };
  await meet(answer, async ({ peer, log }) => {
    await until('the good connection', () => log.count('connected') === 2);
    const broken = ['lost protocol', 'retry'];
    assert.equal(log.said, ['connected', '01', ...broken, ...broken, ...broken, 'connected']);
    assert.equal(
      log.details.map((detail) => detail.split(':')[0]),
      ['frame-flags', 'greeting-signature', 'socket-type'],
    );
    await until('their ends', () => peer.sockets.slice(0, 3).every((socket) => socket.closed));
  });
});

test('nobody listens: refused, with growing waits, until somebody does', async () => {
  const first = await new Peer(() => {}).listen();
  const { port, endpoint } = first;
  await first.close();
  const waits: number[] = [];
  const log = new Log();
  const sub = new ZmtpSubscriber(
    endpoint,
    '',
    {
      onMessage: (frames) => log.onMessage(frames),
      onEvent: (event) => {
        if (event.kind === 'retry') waits.push(event.inMs);
        log.onEvent(event);
      },
    },
    { reconnectMs: 8, reconnectMaxMs: 50, random: () => 0.5 },
  );
  const started = performance.now();
  let peer: Peer | undefined;
  try {
    sub.open();
    await until('five attempts', () => waits.length === 5);
    assert.equal(waits, [6, 12, 24, 38, 38]);
    assert.ok(performance.now() - started >= 6 + 12 + 24 + 38 - 4, 'they were waited for');
    assert.match(log.details[0]!, /ECONNREFUSED/);
    assert.equal(log.said.slice(0, 4), ['lost refused', 'retry', 'lost refused', 'retry']);
    peer = await new Peer((socket) => socket.write(HELLO)).listen(port);
    await until('a connection', () => log.count('connected') === 1);
    assert.is(log.said.at(-1), 'connected');
  } finally {
    sub.close();
    await peer?.close();
  }
});

test('a connection that lasted 5 s starts the waits over, a handshake alone does not', async () => {
  const peer = await new Peer((socket, nth) => (nth < 3 ? socket.end(HELLO) : socket.write(HELLO))).listen();
  const waits: number[] = [];
  let connections = 0;
  const onEvent = (event: SocketEvent) => {
    if (event.kind === 'retry') waits.push(event.inMs);
    if (event.kind === 'connected') connections++;
  };
  const options = { reconnectMs: 4, reconnectMaxMs: 1_000, random: () => 0 };
  const sub = new ZmtpSubscriber(peer.endpoint, '', { onMessage: () => {}, onEvent }, options);
  const { now } = performance;
  try {
    sub.open();
    await until('the fourth connection', () => connections === 4);
    performance.now = () => now.call(performance) + 5_000;
    peer.sockets[3]!.end();
    await until('the fifth connection', () => connections === 5);
    assert.equal(waits, [2, 4, 8, 2]);
  } finally {
    performance.now = now;
    sub.close();
    await peer.close();
  }
});

test('a name with two addresses, a name with none, and a missing socket file', async () => {
  const first = await new Peer(() => {}).listen();
  const { port } = first;
  await first.close();
  const table: [endpoint: string, said: string][] = [
    [`tcp://localhost:${port}`, 'lost refused'],
    ['tcp://no-such-host.invalid:5557', 'lost unreachable'],
    ['ipc:///no/such/socket', 'lost refused'],
  ];
  for (const [endpoint, said] of table) {
    const log = new Log();
    const sub = new ZmtpSubscriber(endpoint, '', log);
    sub.open();
    await until(`the loss of ${endpoint}`, () => log.said.length === 2);
    sub.close();
    assert.equal(log.said, [said, 'retry']);
    assert.ok(log.details[0]!.length > 0);
  }
});

test('pause stops in the middle of a chunk, resume goes on from there', async () => {
  const burst = Buffer.concat(Array.from({ length: 10 }, (_, i) => encodeMessage([bytes(i)])));
  await meet(
    (socket) => socket.write(Buffer.concat([HELLO, burst])),
    async ({ peer, log, sub }) => {
      log.hook = (said) => {
        if (said === '03' || said === '07') sub.pause();
      };
      await until('the fourth message', () => log.said.length === 5);
      await pause(30);
      assert.equal(log.said, ['connected', '00', '01', '02', '03']);
      sub.resume();
      assert.is(log.said.length, 5, 'not within resume itself');
      await until('the eighth message', () => log.said.length === 9);
      await pause(10);
      sub.resume();
      await until('the last message', () => log.said.length === 11);
      assert.is(log.said.at(-1), '09');
      peer.sockets[0]!.write(encodeMessage([bytes(10)]));
      await until('a later message', () => log.said.at(-1) === '0a');
    },
  );
});

test('paused before it is opened: connected is told, messages wait', async () => {
  const peer = await new Peer((socket) => {
    setTimeout(() => socket.write(Buffer.concat([HELLO, encodeMessage([bytes(1)])])), 20);
  }).listen();
  const log = new Log();
  const sub = new ZmtpSubscriber(peer.endpoint, 'kv', log, QUICK);
  try {
    sub.pause();
    sub.open();
    sub.open();
    await until('the handshake', () => log.said.length > 0);
    await pause(20);
    assert.equal(log.said, ['connected']);
    sub.resume();
    await until('the message', () => log.said.length === 2);
    assert.is(log.said[1], '01');
    assert.is(peer.sockets.length, 1, 'opened twice, connected once');
  } finally {
    sub.close();
    await peer.close();
  }
});

for (const when of ['before', 'after']) {
  test(`paused for long, from ${when} the handshake on: no loss, pings tell the peer, and what it sends waits with it`, async () => {
    const big = encodeMessage([new Uint8Array(1 << 20)]);
    const greet = async (socket: Socket) => {
      if (when === 'before') await pause(20);
      socket.write(HELLO);
    };
    await meet(
      greet,
      async ({ peer, log, sub }) => {
        if (when === 'before') sub.pause();
        await until('the handshake', () => log.said.length > 0);
        if (when === 'after') sub.pause();
        for (let i = 0; i < 64; i++) peer.sockets[0]!.write(big);
        await pause(500);
        assert.equal(log.said, ['connected']);
        assert.ok(peer.sockets[0]!.writableLength > 32 << 20, 'most of it was never read');
        const pings = hex(peer.received[0]!.subarray(CLIENT_HELLO.length));
        assert.match(pings, new RegExp(`^(${hex(encodeCommand(pingBody()))}){4,}$`));
        sub.resume();
        await until('all messages', () => log.said.length === 65);
      },
      { heartbeatMs: 40, heartbeatTimeoutMs: 150 },
    );
  });
}

test('a connection that ends while paused is told of after resume, behind its messages', async () => {
  const burst = Buffer.concat(Array.from({ length: 4 }, (_, i) => encodeMessage([bytes(i)])));
  const answer = (socket: Socket, nth: number) => {
    socket.write(HELLO);
    if (nth === 0) socket.end(burst);
  };
  await meet(answer, async ({ peer, log, sub }) => {
    log.hook = (said) => {
      if (said === '01') sub.pause();
    };
    await until('the pause', () => log.said.length === 3);
    await until('the end', () => peer.sockets[0]!.closed);
    await pause(30);
    assert.equal(log.said, ['connected', '00', '01']);
    log.hook = () => {};
    sub.resume();
    await until('another connection', () => log.count('connected') === 2);
    assert.equal(log.said, ['connected', '00', '01', '02', '03', 'lost disconnect', 'retry', 'connected']);
  });
});

test('nothing is called after close, from whichever handler', async () => {
  const burst = Buffer.concat(Array.from({ length: 4 }, (_, i) => encodeMessage([bytes(i)])));
  for (const last of ['connected', '01', 'lost disconnect', 'retry']) {
    await meet(
      (socket) => socket.end(Buffer.concat([HELLO, burst])),
      async ({ peer, log, sub }) => {
        log.hook = (said) => {
          if (said === last) sub.close();
        };
        await until(last, () => log.said.includes(last));
        await pause(30);
        assert.is(log.said.at(-1), last);
        assert.is(sub.connected, false);
        assert.is(peer.sockets.length, 1, 'no other attempt');
      },
    );
  }
});

test('a handler that throws loses its own message only', async () => {
  const burst = Buffer.concat(Array.from({ length: 3 }, (_, i) => encodeMessage([bytes(i)])));
  const thrown: string[] = [];
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => thrown.push(error.message));
  try {
    await meet(
      (socket) => socket.write(Buffer.concat([HELLO, burst])),
      async ({ log }) => {
        log.hook = (said) => {
          if (said === '01') throw new Error('of the user');
        };
        await until('the rest', () => log.said.length === 4);
        await until('the error', () => thrown.length === 1);
        assert.equal(log.said, ['connected', '00', '01', '02']);
        assert.equal(thrown, ['of the user']);
      },
    );
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  }
});

test('a dealer sends only when connected, and a peer that reads nothing costs bounded memory', async () => {
  const peer = await new Peer((socket) => {
    socket.allowHalfOpen = true;
    socket.pause();
    socket.write(Buffer.concat([encodeGreeting('NULL'), encodeReady('ROUTER')]));
  }).listen();
  const log = new Log();
  const dealer = new ZmtpDealer(peer.endpoint, log, QUICK);
  try {
    assert.is(dealer.send([bytes(1)]), false);
    dealer.open();
    assert.is(dealer.send([bytes(1)]), false);
    await until('the handshake', () => dealer.connected);
    assert.is(dealer.send([]), false);
    let sent = 0;
    const chunk = [new Uint8Array(1 << 16)];
    const before = process.memoryUsage().arrayBuffers;
    for (let quiet = 0; quiet < 10; await pause(2)) {
      quiet++;
      while (dealer.send(chunk)) {
        sent++;
        quiet = 0;
      }
    }
    assert.ok(sent > 16, `${sent} messages went out`);
    assert.ok(process.memoryUsage().arrayBuffers - before < 16 << 20);
    peer.sockets[0]!.resume();
    await until('room', () => dealer.send(chunk));
    // Nor does the end of such a peer go unseen, since what it didn't read is not waited for.
    peer.sockets[0]!.pause();
    while (dealer.send(chunk)) await pause(0);
    peer.sockets[0]!.end();
    await until('the loss', () => log.said.includes('lost disconnect'));
  } finally {
    dealer.close();
    await peer.close();
  }
});

test('a socket file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'moonroute-zmtp-'));
  const path = join(folder, 'events.sock');
  const server = createServer((socket) => {
    socket.on('error', () => {}).resume();
    socket.write(Buffer.concat([HELLO, encodeMessage([bytes(1)])]));
  });
  await new Promise<void>((done) => server.listen(path, done));
  const log = new Log();
  const sub = new ZmtpSubscriber(`ipc://${path}`, '', log, QUICK);
  try {
    sub.open();
    await until('the message', () => log.said.length === 2);
    assert.equal(log.said, ['connected', '01']);
  } finally {
    sub.close();
    await new Promise((done) => server.close(done));
    rmSync(folder, { recursive: true });
  }
});

test('closed clients keep no process alive: connected, connecting, waiting', () => {
  const module = pathToFileURL(resolve('build/js/src/live/zmtp/socket.js')).href;
  const codec = pathToFileURL(resolve('build/js/src/live/zmtp/codec.js')).href;
  const script = `
    import { Buffer } from 'node:buffer';
    import { createServer } from 'node:net';
    import { ZmtpSubscriber } from '${module}';
    import { commandBody, encodeCommand, encodeGreeting, encodeMetadata } from '${codec}';
    const hello = Buffer.concat([encodeGreeting('NULL'), encodeCommand(commandBody('READY', encodeMetadata('PUB')))]);
    const server = createServer((socket) => socket.on('error', () => {}).write(hello));
    const silent = createServer((socket) => socket.on('error', () => {}));
    const port = (one) => new Promise((done) => one.listen(0, '127.0.0.1', () => done(one.address().port)));
    const subs = [];
    const long = 60_000;
    const options = { reconnectMs: long, reconnectMaxMs: long, heartbeatMs: long, heartbeatTimeoutMs: long, connectTimeoutMs: long };
    const start = (at, when) => new Promise((done) => {
      const onEvent = (event) => { if (event.kind === when) done(); };
      const sub = new ZmtpSubscriber('tcp://127.0.0.1:' + at, '', { onMessage() {}, onEvent }, options);
      subs.push(sub);
      sub.open();
      if (when === 'nothing') setTimeout(done, 50);
    });
    await start(await port(server), 'connected');
    await start(await port(silent), 'nothing');
    await start(1, 'retry');
    for (const sub of subs) sub.close();
    server.close();
    silent.close();
    console.log('closed');
  `;
  // Inside the project, or Deno doesn't find the packages that it imports.
  const folder = mkdtempSync(resolve('build', 'closed-'));
  try {
    const file = join(folder, 'closed.mjs');
    writeFileSync(file, script);
    const said = execFileSync(process.execPath, [file], { encoding: 'utf8', timeout: 10_000 });
    assert.is(said, 'closed\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.run();
