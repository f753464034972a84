// The player of recordings plays what the file says: every message with its sequence, the bodies of status and key list at their moments, a socket
// that goes and comes back, an HTTP port that refuses while the master is dead. Skipped, with a notice, without the zeromq package.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readSequence } from '../src/wire/frames.js';
import {
  RecordedMaster,
  type RecordingLine,
  recordedMessages,
  recordingLines,
  recordingNames,
} from './support/recorded-master.js';

const zeromq = await import('zeromq').catch(() => null);
/** Half a minute passes in a second. */
const SPEED = 30;

interface Played {
  readonly received: Uint8Array[][];
  readonly monitored: string[];
  readonly keys: [at: number, keys: string[]][];
  readonly statuses: string[];
}

async function play(name: string, perKeys?: (master: RecordedMaster) => Promise<void>): Promise<Played> {
  const played: Played = { received: [], monitored: [], keys: [], statuses: [] };
  const master: RecordedMaster = await RecordedMaster.start(name, {
    speed: SPEED,
    onKeys: async (keys, at) => {
      played.keys.push([at, [...keys]]);
      await perKeys?.(master);
    },
  });
  const subscriber = new zeromq!.Subscriber({ receiveHighWaterMark: 100_000, reconnectInterval: 10 });
  for (const event of ['disconnect', 'handshake'] as const)
    subscriber.events.on(event, () => played.monitored.push(event));
  subscriber.subscribe('');
  subscriber.connect(master.eventsEndpoint);
  const receiving = (async () => {
    for await (const frames of subscriber) played.received.push(frames);
  })();
  try {
    await master.play();
    const expected = recordedMessages(recordingLines(name)).length;
    for (const end = Date.now() + 5_000; played.received.length < expected && Date.now() < end; )
      await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(master.ended);
    assert.is(master.messages, expected);
  } finally {
    subscriber.close();
    await master.close();
    await receiving;
  }
  return played;
}

/** What each sample of the key list says. */
function sampledKeys(lines: readonly RecordingLine[]): [at: number, keys: readonly string[]][] {
  const samples: [number, readonly string[]][] = [];
  let keys: readonly string[] = [];
  for (const line of lines) {
    if (line.kind !== 'keys') continue;
    keys = line.keys ?? keys;
    samples.push([line.t, keys]);
  }
  return samples;
}

const text = async (url: string) => (await fetch(url)).text();

if (zeromq === null && !process.env['CI']) console.log('skipped: recorded-master (zeromq is not installed)');
else {
  if (zeromq === null) throw new Error('zeromq is not installed, and CI may not skip its tests');

  test('the four recordings are there', () => {
    assert.equal(recordingNames(), ['late-joiner', 'restart', 'silent-removals', 'steady']);
  });

  for (const name of recordingNames())
    test(`${name}: every message arrives as it was recorded, and every key list is shown at its time`, async () => {
      const lines = recordingLines(name);
      const expected = recordedMessages(lines);
      const { received, keys } = await play(name);
      assert.equal(
        received.map((frames) => frames.map((frame) => Buffer.from(frame).toString('hex'))),
        expected.map((frames) => frames.map((frame) => Buffer.from(frame).toString('hex'))),
      );
      assert.equal(keys, sampledKeys(lines));
    });

  test('silent-removals: HTTP gives the bodies as they stood', async () => {
    const lines = recordingLines('silent-removals');
    const bodies: [status: string, keys: string][] = [];
    await play('silent-removals', async ({ httpUrl }) => {
      bodies.push([await text(`${httpUrl}/kv_events/status`), await text(`${httpUrl}/get_all_keys`)]);
    });
    const statuses = lines.flatMap((line) => (line.kind === 'status' ? [line.body] : []));
    const keys = sampledKeys(lines).map(([, list]) => list.map((key) => `${key}\n`).join(''));
    assert.equal(
      bodies,
      keys.map((list, i) => [statuses[i]!, list]),
    );
  });

  test('restart: the socket goes and comes back, sequences begin again, HTTP refuses in between', async () => {
    const master = await RecordedMaster.start('restart', { speed: SPEED });
    const subscriber = new zeromq.Subscriber({ reconnectInterval: 10 });
    const monitored: string[] = [];
    for (const event of ['disconnect', 'handshake'] as const) subscriber.events.on(event, () => monitored.push(event));
    subscriber.subscribe('');
    subscriber.connect(master.eventsEndpoint);
    const sequences: bigint[] = [];
    const receiving = (async () => {
      for await (const frames of subscriber) sequences.push(readSequence(frames[1]!));
    })();
    const { httpUrl, eventsEndpoint } = master;
    assert.is((await fetch(`${httpUrl}/kv_events/status`)).status, 503);
    let refused = 0;
    const playing = master.play();
    try {
      while (!master.ended) {
        await fetch(`${httpUrl}/kv_events/status`).then(
          (response) => response.text(),
          () => refused++,
        );
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      await playing;
      for (const end = Date.now() + 5_000; sequences.length < 100 && Date.now() < end; )
        await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal(monitored, ['handshake', 'disconnect', 'handshake']);
      const upTo = (last: number) => Array.from({ length: last }, (_, i) => BigInt(i + 1));
      assert.equal(sequences, [...upTo(60), ...upTo(40)]);
      assert.ok(refused > 0);
      assert.is(master.httpUrl, httpUrl);
      assert.is(master.eventsEndpoint, eventsEndpoint);
      assert.is((await fetch(`${httpUrl}/query_key?key=x`)).status, 404);
    } finally {
      subscriber.close();
      await master.close();
      await receiving;
    }
  });

  test('a request between a message and the next sample is answered with that sample', async () => {
    const lines = recordingLines('steady');
    const first = lines.findIndex((line) => line.kind === 'zmq');
    const next = lines.slice(first).find((line) => line.kind === 'status');
    const master = await RecordedMaster.start('steady', { speed: 4, subscribers: 0 });
    const playing = master.play();
    try {
      while (master.messages === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      assert.ok(master.at < next!.t);
      const body = await text(`${master.httpUrl}/kv_events/status`);
      assert.ok(master.at >= next!.t);
      assert.is(body, next!.kind === 'status' && next!.body);
    } finally {
      await master.close();
      await playing;
    }
  });
  test.run();
}
