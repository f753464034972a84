// The simulated master on real sockets: what subscribers see of puts, overflow, failed sends, restarts of every kind and failover. The subscriber is the
// zeromq package's own; without that package these tests are skipped, with a notice.
import { Decoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Subscriber } from 'zeromq';
import { SharedCache } from '../src/cache/shared-cache.js';
import { validateContract } from '../src/contract/validate.js';
import { SimulatedMaster, type SimulatedMasterOptions } from '../src/fleet/master.js';
import { readSequence } from '../src/wire/frames.js';
import { validDescriptor } from './support/descriptor.js';

const zeromq = await import('zeromq').catch(() => null);
const decoder = new Decoder({ useBigInt64: true });

interface SeenEvent {
  readonly id: number;
  readonly text: string;
}
interface SeenMessage {
  readonly sequence: number;
  readonly events: readonly SeenEvent[];
}

/** A subscriber that keeps what it sees, in order: messages, and losses of its connection. */
class Watcher {
  readonly #socket: Subscriber;
  readonly #receiving: Promise<void>;
  readonly seen: (SeenMessage | 'disconnect')[] = [];

  constructor(endpoint: string) {
    this.#socket = new zeromq!.Subscriber({ receiveHighWaterMark: 100_000, reconnectInterval: 10 });
    this.#socket.events.on('disconnect', () => this.seen.push('disconnect'));
    this.#socket.subscribe('');
    this.#socket.connect(endpoint);
    this.#receiving = this.#receive();
  }

  get messages(): SeenMessage[] {
    return this.seen.filter((one) => one !== 'disconnect');
  }
  /** Sequences, and a word where the connection was lost. */
  get story(): (number | string)[] {
    return this.seen.map((one) => (one === 'disconnect' ? one : one.sequence));
  }
  get events(): string[] {
    return this.messages.flatMap(({ events }) => events.map(({ text }) => text));
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    for (const end = Date.now() + 5_000; !holds(); ) {
      if (Date.now() > end) throw new Error(`waited 5 s for ${what}; saw ${JSON.stringify(this.seen)}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Waits for everything that the master has sent in this life; sequences alone don't tell lives apart, losses do. */
  async caughtUp(master: SimulatedMaster): Promise<void> {
    await master.flushed();
    const { lastSequence, lives } = master;
    await this.until(`message ${lastSequence} of life ${lives}`, () => {
      const last = this.seen.at(-1);
      const losses = this.seen.length - this.messages.length;
      return last !== undefined && last !== 'disconnect' && last.sequence === lastSequence && losses >= lives - 1;
    });
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.#receiving;
  }

  async #receive(): Promise<void> {
    for await (const frames of this.#socket) {
      const [, events] = decoder.decode(frames[2]!) as [unknown, Record<string, unknown>[]];
      this.seen.push({
        sequence: Number(readSequence(frames[1]!)),
        events: events.map((event) => ({
          id: Number(event['event_id']),
          text: `${event['event_type']} ${event['medium']} ${event['object_key']}`,
        })),
      });
    }
  }
}

async function watched(
  options: Partial<SimulatedMasterOptions>,
  work: (master: SimulatedMaster, watcher: Watcher) => Promise<void>,
): Promise<void> {
  const master = await SimulatedMaster.start({ generation: 'A', ...options });
  const watcher = new Watcher(master.eventsEndpoint);
  try {
    await master.subscribed();
    await work(master, watcher);
  } finally {
    await watcher.close();
    await master.close();
  }
}

async function rejected(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'none',
    (error: { code?: string }) => error.code ?? String(error),
  );
}

function thrown(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return 'none';
}

if (zeromq === null && !process.env['CI']) console.log('skipped: fleet-master (zeromq is not installed)');
else {
  if (zeromq === null) throw new Error('zeromq is not installed, and CI may not skip its tests');

  test('a lone put goes out at once; puts made in one go share a message', () =>
    watched({}, async (master, watcher) => {
      master.putEnd('a');
      await watcher.caughtUp(master);
      for (let i = 0; i < 70; i++) master.putEnd(`k${i}`);
      await watcher.caughtUp(master);
      assert.equal(
        watcher.messages.map(({ sequence, events }) => [sequence, events.length]),
        [
          [1, 1],
          [2, 64],
          [3, 6],
        ],
      );
      assert.equal(
        watcher.messages.flatMap(({ events }) => events.map(({ id }) => id)),
        Array.from({ length: 71 }, (_, i) => i + 1),
      );
    }));

  test('its messages feed a shared cache', async () => {
    const contract = validateContract(validDescriptor());
    const keys = contract.groups.flatMap(({ keyPrefixes }) =>
      keyPrefixes.map((prefix) => `${prefix}@${'ab'.repeat(32)}`),
    );
    for (const generation of ['A', 'B', 'C'] as const)
      await watched({ generation }, async (master) => {
        const cache = await SharedCache.create();
        cache.updateContract(contract, []);
        const subscriber = new zeromq.Subscriber();
        subscriber.subscribe('');
        subscriber.connect(master.eventsEndpoint);
        try {
          await master.subscribed(2);
          for (const key of keys) master.putEnd(key);
          assert.is(cache.applyStoreMessage(await subscriber.receive()).objects, keys.length);
          master.remove(keys[0]!);
          assert.is(cache.applyStoreMessage(await subscriber.receive()).fate, 'applied');
          const held = cache.census().reduce((sum, { objects }) => sum + objects, 0);
          assert.is(held, keys.length - 1);
        } finally {
          subscriber.close();
        }
      });
  });

  test('a late joiner sees the current sequence first', () =>
    watched({}, async (master, watcher) => {
      for (const key of ['a', 'b', 'c']) {
        master.putEnd(key);
        await watcher.caughtUp(master);
      }
      const late = new Watcher(master.eventsEndpoint);
      try {
        await master.subscribed(2);
        master.putEnd('d');
        await late.caughtUp(master);
        assert.equal(late.story, [4]);
      } finally {
        await late.close();
      }
    }));

  test('a burst overflows: the gap is as wide as the loss, and event ids show none', () =>
    watched({ queueCapacity: 4 }, async (master, watcher) => {
      master.putEnd('a');
      await watcher.caughtUp(master);
      assert.is(master.burst(10).length, 10);
      await watcher.caughtUp(master);
      assert.equal(watcher.story, [1, 8]);
      assert.equal(
        watcher.messages[1]!.events.map(({ id }) => id),
        [2, 3, 4, 5],
      );
      const { publishedBatches, droppedEvents } = master.counts!;
      assert.is(publishedBatches + droppedEvents, master.lastSequence);
      assert.is(master.truth().size, 11);
    }));

  test('a refused send is a gap that the status knows; a loss beyond the high water mark is one that it does not', () =>
    watched({}, async (master, watcher) => {
      const put = async (key: string) => {
        master.putEnd(key);
        await master.flushed();
      };
      await put('a');
      master.failNextSends(1);
      await put('b');
      await put('c');
      master.loseNextMessages(2);
      await put('d');
      await put('e');
      assert.is(master.lastSequence, 5);
      assert.equal([master.counts!.publishedBatches, master.counts!.droppedEvents], [4, 1]);
      await put('f');
      await watcher.caughtUp(master);
      assert.equal(watcher.story, [1, 3, 6]);
    }));

  test('a restart that keeps nothing: a disconnect, and sequence 1 again', () =>
    watched({}, async (master, watcher) => {
      const { eventsEndpoint, httpUrl } = master;
      for (const key of ['a', 'b']) {
        master.putEnd(key);
        await watcher.caughtUp(master);
      }
      await master.restart();
      assert.equal([...master.truth()], []);
      assert.is(master.lives, 2);
      await master.subscribed();
      master.putEnd('c');
      await watcher.caughtUp(master);
      assert.equal(watcher.story, [1, 2, 'disconnect', 1]);
      assert.is(watcher.messages.at(-1)!.events[0]!.id, 1);
      assert.is(master.eventsEndpoint, eventsEndpoint);
      assert.is(master.httpUrl, httpUrl);
    }));

  test('a restart from a snapshot announces nothing of what is back, nor of what is not', () =>
    watched({ generation: 'C' }, async (master, watcher) => {
      for (const key of ['s1', 's2', 's3']) master.putEnd(key);
      master.read('s1');
      master.read('s2');
      await watcher.caughtUp(master);
      await master.restart({ keep: 'snapshot', silentlyDrop: 'unleased' });
      assert.equal([...master.truth()], ['s1', 's2']);
      await master.subscribed();
      master.putEnd('s4');
      await watcher.caughtUp(master);
      assert.equal(watcher.events.slice(3), ['stored cpu s4']);
      assert.equal(watcher.story, [1, 'disconnect', 1]);
    }));

  test('a snapshot that was taken earlier is what comes back', () =>
    watched({}, async (master) => {
      master.putEnd('before');
      master.takeSnapshot();
      master.putEnd('after');
      await master.restart({ keep: 'snapshot' });
      assert.equal([...master.truth()], ['before']);
    }));

  for (const sizes of [
    [1, 1, 1],
    [3, 70, 1],
  ])
    test(`a restart that looks contiguous: numbers go on over puts of ${sizes.join(', ')}`, () =>
      watched({}, async (master, watcher) => {
        let put = 0;
        for (const size of sizes) {
          for (let i = 0; i < size; i++) master.putEnd(`life-1-${put++}`);
          await watcher.caughtUp(master);
        }
        const last = watcher.messages.at(-1)!;
        const fillers = await master.restartContiguously();
        assert.is(fillers.length, put);
        assert.equal([...master.truth()], fillers);
        await master.subscribed();
        master.putEnd('life-2');
        await watcher.caughtUp(master);
        const { sequence, events } = watcher.messages.at(-1)!;
        assert.is(sequence, last.sequence + 1);
        assert.is(events[0]!.id, last.events.at(-1)!.id + 1);
        // Only the monitor tells, and nothing of the second life before that was seen.
        assert.is(watcher.seen.at(-2), 'disconnect');
        assert.equal(watcher.events.slice(put), ['stored cpu life-2']);
      }));

  test('a life with drops can not be met, and is not ended for that', () =>
    watched({ queueCapacity: 2 }, async (master) => {
      master.burst(5);
      assert.is(await rejected(master.restartContiguously()), 'not-contiguous');
      assert.ok(master.serving);
    }));

  test('killed: both ports refuse, operations throw; a boot is a new life', () =>
    watched({}, async (master, watcher) => {
      await master.kill();
      await watcher.until('the disconnect', () => watcher.seen.includes('disconnect'));
      assert.not(master.serving);
      assert.is(await rejected(fetch(`${master.httpUrl}/health`)), String(new TypeError('fetch failed')));
      assert.is(
        thrown(() => master.putEnd('a')),
        'master-unavailable',
      );
      assert.is(await rejected(master.subscribed()), 'master-unavailable');
      assert.equal([...master.truth()], []);
      assert.not(master.has('a'));
      await master.boot();
      assert.is(master.putEnd('a'), 'stored');
    }));

  test('failover: the standby binds, starts at 1 and says nothing of what it has; the old leader answers 503', async () => {
    const leader = await SimulatedMaster.start({ generation: 'C', role: 'leader' });
    const standby = await SimulatedMaster.start({ generation: 'C', role: 'standby' });
    standby.observeLeader(leader);
    const onLeader = new Watcher(leader.eventsEndpoint);
    const onStandby = new Watcher(standby.eventsEndpoint);
    try {
      await leader.subscribed();
      assert.is(await rejected(standby.subscribed()), 'master-unavailable');
      assert.is(
        thrown(() => standby.putEnd('a')),
        'master-unavailable',
      );
      leader.putEnd('a');
      leader.putEnd('lost');
      await onLeader.caughtUp(leader);
      await SimulatedMaster.failover(leader, standby, { silentlyDrop: ['lost'] });
      assert.equal([leader.role, standby.role], ['standby', 'leader']);
      assert.equal([...standby.truth()], ['a']);
      await standby.subscribed();
      standby.putEnd('b');
      await onStandby.caughtUp(standby);
      assert.equal(onStandby.story, [1]);
      assert.equal(onStandby.events, ['stored cpu b']);
      assert.equal(onLeader.story, [1, 'disconnect']);
      assert.is((await fetch(`${leader.httpUrl}/kv_events/status`)).status, 503);
      assert.is((await fetch(`${standby.httpUrl}/kv_events/status`)).status, 200);
      assert.match(await (await fetch(`${leader.httpUrl}/leader`)).text(), '"view_version":2');
      await SimulatedMaster.failover(standby, leader);
      await leader.subscribed();
      assert.equal([...leader.truth()], ['a', 'b']);
    } finally {
      for (const one of [onLeader, onStandby, leader, standby]) await one.close();
    }
  });

  test('a leader that was killed is followed by its standby', async () => {
    const leader = await SimulatedMaster.start({ generation: 'C', role: 'leader' });
    const standby = await SimulatedMaster.start({ generation: 'C', role: 'standby' });
    try {
      leader.putEnd('a');
      await leader.kill();
      await SimulatedMaster.failover(leader, standby);
      assert.equal([...standby.truth()], ['a']);
      await leader.boot();
      assert.not(leader.serving);
      assert.is((await fetch(`${leader.httpUrl}/get_all_keys`)).status, 503);
    } finally {
      await leader.close();
      await standby.close();
    }
  });

  test('whoever waits for a subscription hears that the master has ended, or that none came', async () => {
    const master = await SimulatedMaster.start({ generation: 'A' });
    assert.is(await rejected(master.subscribed(1, 10)), 'no-subscription');
    const waiting = rejected(master.subscribed(1, 60_000));
    await master.close();
    assert.is(await waiting, 'no-subscription');
  });

  test('killed while it boots: nothing stays bound', async () => {
    const master = await SimulatedMaster.start({ generation: 'A' });
    await master.kill();
    const booting = rejected(master.boot());
    while (!master.serving) await new Promise((resolve) => setImmediate(resolve));
    await master.kill();
    assert.is(await booting, 'master-unavailable');
    assert.not(master.serving);
    await master.boot();
    assert.is(master.putEnd('a'), 'stored');
    await master.close();
  });

  const refused: readonly (readonly [string, Partial<SimulatedMasterOptions>, string])[] = [
    ['a port beyond all', { httpPort: 70_000 }, 'master-option'],
    ['a queue without room', { queueCapacity: 0 }, 'master-option'],
    ['half an object', { capacityObjects: 0.5 }, 'master-option'],
    ['no backend id', { backendId: '' }, 'master-option'],
  ];
  for (const [name, options, code] of refused)
    test(`refused at start: ${name}`, async () => {
      assert.is(await rejected(SimulatedMaster.start({ generation: 'A', ...options })), code);
    });

  test('a port that is taken is refused by name, and nothing stays open', async () => {
    const master = await SimulatedMaster.start({ generation: 'A' });
    const httpPort = Number(new URL(master.httpUrl).port);
    try {
      assert.is(await rejected(SimulatedMaster.start({ generation: 'A', httpPort })), 'bind-failed');
    } finally {
      await master.close();
    }
  });
  test.run();
}
