// What is ZMQ's own in a plane's transport: load between routers, dropped batches that are seen, ranks that move, strangers on the sockets.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  openPlanePublisher,
  openPlaneSubscriber,
  type PlaneSubscriberOptions,
} from '../src/live/plane/transport/index.js';
import type { PlaneNotice, PlanePublisher } from '../src/live/plane/transport.js';
import { ZmtpDealer } from '../src/live/zmtp/socket.js';
import { until, zeromq } from './support/fleet-worker.js';

const RANK = { workerId: 1n, dpRank: 0 };
type Subscriber = Awaited<ReturnType<typeof openPlaneSubscriber>>;

const closers: (() => Promise<void> | void)[] = [];
test.after.each(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function publisher(url = 'tcp://127.0.0.1:0', ranks = [RANK]): Promise<PlanePublisher> {
  const opened = await openPlanePublisher(url, { model: 'm', ranks });
  closers.push(() => opened.close());
  return opened;
}

async function listen(
  urls: readonly string[],
  options: Partial<PlaneSubscriberOptions> = {},
): Promise<{ subscriber: Subscriber; notices: PlaneNotice[]; payloads: Uint8Array[]; loads: string[] }> {
  const subscriber = await openPlaneSubscriber(urls, { model: 'm', ...options });
  closers.push(() => subscriber.close());
  const [notices, payloads, loads]: [PlaneNotice[], Uint8Array[], string[]] = [[], [], []];
  await subscriber.open({
    onMessage: ({ payload }) => void payloads.push(payload),
    onNotice: (notice) => notices.push(notice),
    onLoad: (report) => loads.push(new TextDecoder().decode(report)),
  });
  await until('the connections', () => notices.filter(({ kind }) => kind === 'connected').length >= urls.length);
  return { subscriber, notices, payloads, loads };
}

if (zeromq === null) test.skip('all of it');
else {
  const { Publisher, Router } = zeromq;

  test('ports that the system chose are in the URL', async () => {
    const one = await publisher();
    assert.match(one.url, /^tcp:\/\/127\.0\.0\.1:\d+(\?recover=\d+)?$/);
    await one.serve(() => Uint8Array.of(5));
    const { subscriber } = await listen([one.url]);
    assert.equal([...(await subscriber.ask(RANK, Uint8Array.of(1), 5000))], [5]);
  });

  test('a port that is taken is told of, and nothing stays open', async () => {
    const one = await publisher();
    const [, port] = /:(\d+)/.exec(one.url.slice(6))!;
    const taken = `tcp://127.0.0.1:0?recover=${port}`;
    assert.is(await publisher(taken).then(String, (error) => error.code), 'bind-failed');
  });

  test("routers hear each other's load over sockets of their own", async () => {
    const one = await publisher();
    const a = await listen([one.url], { loadBind: 'tcp://127.0.0.1:0' });
    const b = await listen([one.url], { loadBind: 'tcp://127.0.0.1:0', loadPeers: [a.subscriber.loadUrl!] });
    // a knows nothing of b; a third knows both.
    const c = await listen([one.url], { loadPeers: [a.subscriber.loadUrl!, b.subscriber.loadUrl!] });
    await until('all reports', () => {
      a.subscriber.publishLoad(new TextEncoder().encode('of a'));
      b.subscriber.publishLoad(new TextEncoder().encode('of b'));
      c.subscriber.publishLoad(new TextEncoder().encode('of c')); // has no socket for it
      return new Set(c.loads).size === 2 && b.loads.length > 0;
    });
    assert.equal([...new Set(b.loads)], ['of a']);
    assert.equal([...new Set(c.loads)].sort(), ['of a', 'of b']);
    assert.equal(a.loads, []);
    // The last word of a router that goes.
    a.subscriber.publishLoad(new TextEncoder().encode('bye'));
    await a.subscriber.close();
    await until('the good-bye', () => b.loads.at(-1) === 'bye' && c.loads.includes('bye'));
  });

  test('batches that the socket dropped are a gap', async () => {
    const socket = new Publisher({ linger: 0 });
    const replies = new Router({ linger: 0 });
    closers.push(
      () => socket.close(),
      () => replies.close(),
    );
    await socket.bind('tcp://127.0.0.1:*');
    await replies.bind('tcp://127.0.0.1:*');
    const recover = replies.lastEndpoint!.split(':').at(-1);
    const { notices, payloads } = await listen([`${socket.lastEndpoint}?recover=${recover}`]);
    const send = (counter: number, ...rest: Uint8Array[]) => {
      const frame = new Uint8Array(8);
      new DataView(frame.buffer).setBigUint64(0, BigInt(counter));
      return socket.send(['moonroute.m.1.0', frame, ...(rest.length > 0 ? rest : [Uint8Array.of(counter)])]);
    };
    const told = (kind: string) => notices.filter((notice) => notice.kind === kind).length;
    for (const counter of [5, 6, 9]) await send(counter);
    await until('the batches', () => payloads.length === 3);
    assert.is(told('gap'), 1);
    for (const counter of [1, 2]) await send(counter); // a publisher that began anew
    await until('the new life', () => payloads.length === 5);
    assert.is(told('gap'), 1);
    // What is no batch is told of, and costs nothing else.
    await send(3, Uint8Array.of(1), Uint8Array.of(2));
    await socket.send(['moonroute.m.1', new Uint8Array(8), new Uint8Array(1)]);
    await socket.send(['moonroute.m.1.0', new Uint8Array(7), new Uint8Array(1)]);
    await send(3, new Uint8Array((8 << 20) + 1));
    await send(3);
    await until('the next batch', () => payloads.length === 6);
    assert.is(told('trouble'), 4);
    assert.equal(
      payloads.map(([first]) => first),
      [5, 6, 9, 1, 2, 3],
    );
  });

  test('a rank that has moved to another publisher is asked there', async () => {
    const one = await publisher('tcp://127.0.0.1:0');
    await one.serve(() => Uint8Array.of(1));
    const two = await publisher('tcp://127.0.0.1:0', []);
    const listener = await listen([one.url, two.url]);
    const { subscriber } = listener;
    await one.publish(RANK, Uint8Array.of(0));
    await until('its batch', () => listener.payloads.length === 1);
    assert.equal([...(await subscriber.ask(RANK, Uint8Array.of(0), 5000))], [1]);
    await one.close();
    await two.close();
    const [three, four] = [await publisher(one.url, []), await publisher(two.url)];
    await three.serve(() => Uint8Array.of(3));
    await four.serve(() => Uint8Array.of(4));
    assert.equal([...(await subscriber.ask(RANK, Uint8Array.of(0), 5000))], [4]);
  });

  test('a question that comes before the publisher is there waits for it', async () => {
    const one = await publisher();
    const { subscriber } = await listen([one.url]);
    await one.close();
    const asked = subscriber.ask(RANK, Uint8Array.of(8), 5000);
    const two = await publisher(one.url);
    await two.serve((question) => question);
    assert.equal([...(await asked)], [8]);
  });

  test('strangers on the recovery socket get nothing, and harm nothing', async () => {
    const one = await publisher();
    await one.serve(() => Uint8Array.of(1));
    const { subscriber } = await listen([one.url]);
    const port = /recover=(\d+)/.exec(one.url)?.[1] ?? Number(/:(\d+)$/.exec(one.url)![1]) + 1;
    let connected = false;
    const answers: Uint8Array[][] = [];
    const stranger = new ZmtpDealer(`tcp://127.0.0.1:${port}`, {
      onMessage: (frames) => answers.push(frames),
      onEvent: ({ kind }) => {
        connected ||= kind === 'connected';
      },
    });
    closers.push(() => stranger.close());
    stranger.open();
    await until('the stranger', () => connected);
    const bytes = (text: string) => new TextEncoder().encode(text);
    for (const frames of [
      [bytes('')],
      [bytes(''), bytes('id'), bytes('1.0'), bytes('?')],
      [bytes(''), new Uint8Array(8), bytes('x.y'), bytes('?')],
      [bytes('x'), new Uint8Array(8), bytes('1.0'), bytes('?')],
      [bytes(''), new Uint8Array(8), bytes('1.0'), bytes('?'), bytes('more')],
    ]) {
      assert.ok(stranger.send(frames));
    }
    assert.equal([...(await subscriber.ask(RANK, Uint8Array.of(0), 5000))], [1]);
    assert.equal(answers, []);
    // Longer than any question: the connection is cut.
    stranger.send([bytes(''), new Uint8Array(8), bytes('1.0'), new Uint8Array(100_000)]);
    assert.equal([...(await subscriber.ask(RANK, Uint8Array.of(0), 5000))], [1]);
    assert.equal(answers, []);
  });
}

test.run();
