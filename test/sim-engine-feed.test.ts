// What the router hears: whatever is late, lost or begins anew, the router that has heard all there is to hear knows what is there.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { IndexedBlocks } from '../src/core/prefix-types.js';
import type { DecodedObjects } from '../src/index.js';
import type { Router } from '../src/router/router.js';
import { BlockTree } from '../src/sim/blocks.js';
import { EventHeap } from '../src/sim/event-heap.js';
import { ANEW, MESSAGE, RECONCILE } from '../src/sim/event-kinds.js';
import { RouterFeed } from '../src/sim/feed.js';
import { checkSimConfig, type EventModel } from '../src/sim/index.js';
import { DRAM, SSD, Store } from '../src/sim/store.js';
import { ids, requestsOf } from './support/sim-requests.js';

const WORKERS = 2;
const EACH = 4;
/** Ends a part of a test: after all that has the same time. */
const STOP = 99;
const wordsAt = (words: Uint32Array, at: number): string => `${words[at]} ${words[at + 1]}`;

/** A router that only remembers. */
class Listener {
  readonly held = Array.from({ length: WORKERS }, () => new Set<string>());
  readonly objects = new Map<string, Set<string>>();
  readonly said: string[] = [];

  takeStored(id: number, _rank: number, _tier: string, blocks: IndexedBlocks): void {
    const held = this.held[id]!;
    assert.ok(blocks.eligible);
    if (blocks.hasParent) assert.ok(held.has(`${blocks.parentLow} ${blocks.parentHigh}`), 'its parent is known');
    for (let i = blocks.at; i < blocks.at + blocks.count; i++) held.add(wordsAt(blocks.lows, i * 2));
    this.said.push(`stored ${id} ${blocks.count}`);
  }

  takeRemoved(id: number, _rank: number, _tier: string, lows: Uint32Array, at: number, count: number): void {
    for (let i = at; i < at + count; i++) assert.ok(this.held[id]!.delete(wordsAt(lows, i * 2)), 'it was known');
    this.said.push(`removed ${id} ${count}`);
  }

  takeObjects({ kind, medium, group, digests, at, count }: DecodedObjects): void {
    for (let i = at; i < at + count; i++) {
      const name = `${group}/${wordsAt(digests, i * 8 + 6)}`;
      const media = this.objects.get(name) ?? new Set();
      if (kind === 'stored') media.add(medium);
      else media.delete(medium);
      if (media.size > 0) this.objects.set(name, media);
      else this.objects.delete(name);
    }
    this.said.push(`${kind} ${medium} ${group} ${count}`);
  }

  storeStreamLost(cause: string): void {
    this.objects.clear();
    this.said.push(`lost ${cause}`);
  }

  workerStreamLost(id: number): void {
    this.held[id]!.clear();
    this.said.push(`lost ${id}`);
  }
}

function stage(events: Partial<EventModel>, seed = 1, sizes = { dramBytes: 60, ssdBytes: 40 }) {
  const group = { kind: 'full_attention', window: null, bytesPerBlock: 10 } as const;
  const state = { kind: 'mamba', window: null, bytesPerBlock: 5 } as const;
  const groups = [group, state];
  const config = checkSimConfig({ workers: { count: WORKERS }, events, seed, groups, store: sizes });
  const tree = new BlockTree(16, 1000);
  // A chain of 30 nodes.
  tree.pathOf(requestsOf(16 * EACH, [{ ids: ids(0, 30) }])[0]!);
  const heap = new EventHeap();
  const listener = new Listener();
  const feed = new RouterFeed({ config, router: listener as unknown as Router, tree, heap });
  const store = new Store(config.store, groups, 16, () => EACH, feed);
  let now = 0;
  const until = (time: number) => {
    heap.put(time, STOP);
    while (heap.take() && heap.kind !== STOP) {
      const { kind, a, b, c, time: at } = heap;
      now = at;
      if (kind === MESSAGE) feed.arrive(a, b, c, at);
      else if (kind === ANEW) feed.notice(a, b, at);
      else if (kind === RECONCILE) feed.reconcile(store);
    }
    now = Math.max(now, time);
  };
  const path = (nodes: number) => Int32Array.from(ids(0, nodes));
  const nameOf = (node: number, place: number) => wordsAt(tree.lows, (node * EACH + place) * 2);
  return { tree, heap, listener, feed, store, until, path, nameOf, now: () => now };
}

test('neighbours go to the router in one piece', () => {
  const { feed, listener, until } = stage({ delay: 0 });
  for (let node = 0; node < 3; node++) feed.stored(0, node, 0, EACH);
  feed.stored(0, 3, 0, 2);
  feed.sendOfWorker(0, 0);
  feed.removed(0, 3, 0, 2);
  feed.removed(0, 2, 0, EACH);
  feed.removed(0, 1, 2, 2);
  feed.sendOfWorker(0, 0);
  until(0);
  assert.equal(listener.said, ['stored 0 14', 'removed 0 8']);
});

test('a message takes its delay', () => {
  const { feed, listener, until } = stage({ delay: 7 });
  feed.stored(1, 0, 0, EACH);
  feed.sendOfWorker(1, 10);
  until(16);
  assert.equal(listener.said, []);
  until(17);
  assert.equal(listener.said, ['stored 1 4']);
});

test('what a worker was not heard to say is replayed, in order, when it is missed', () => {
  const { feed, listener, until, heap } = stage({ delay: 1 });
  feed.stored(0, 0, 0, EACH);
  feed.sendOfWorker(0, 0);
  heap.take(); // lost
  feed.stored(0, 1, 0, EACH);
  feed.sendOfWorker(0, 10);
  until(20);
  assert.equal(listener.said, ['stored 0 4', 'stored 0 4']);
});

test("a gap in the store's stream costs all evidence; the late message is dropped, and a reconcile mends it", () => {
  const { feed, listener, store, until, path, heap } = stage({ delay: 1, reconcileAfter: 100 });
  store.put(path(1), 2, 2);
  feed.sendOfStore(0);
  heap.take();
  const { kind, a, b, c } = heap; // overtaken
  store.put(path(1), 3, 3);
  feed.sendOfStore(10);
  heap.put(30, kind, a, b, c);
  until(50);
  assert.equal(listener.said, ['lost gap', 'stored cpu 0 1', 'stored cpu 1 1']);
  assert.is(listener.objects.size, 2);
  until(111);
  // Three blocks of full attention, states at 2 and 3.
  assert.is(listener.objects.size, 5);
  assert.equal(
    listener.said.slice(3).filter((text) => text.startsWith('lost')),
    ['lost reconcile'],
  );
});

test('what is lost longer ago than the replay buffer reaches is lost for good', () => {
  const { feed, listener, until } = stage({ delay: 0, loss: 1 });
  for (let i = 0; i < 10_002; i++) {
    feed.stored(0, 0, 0, EACH);
    feed.removed(0, 0, 0, EACH);
    feed.sendOfWorker(0, i);
  }
  assert.is(feed.lostMessages, 10_002);
  feed.arrive(0, 0, 10_001, 20_000);
  assert.is(listener.said[0], 'lost 0');
  assert.is(listener.said.length, 1 + 2 * 10_000);
  until(0);
});

const steps = fc.array(
  fc.record({
    what: fc.constantFrom('grow', 'grow', 'shrink', 'put', 'put', 'get', 'restart-worker', 'restart-store', 'wait'),
    worker: fc.integer({ min: 0, max: WORKERS - 1 }),
    blocks: fc.integer({ min: 1, max: 12 }),
    wait: fc.integer({ min: 0, max: 40 }),
  }),
  { maxLength: 60 },
);

test('in the end the router knows what is there', () => {
  fc.assert(
    fc.property(
      steps,
      fc.nat(),
      fc.integer({ min: 0, max: 60 }),
      fc.double({ min: 0, max: 0.6, noNaN: true }),
      (operations, seed, jitter, loss) => {
        const { feed, listener, store, until, path, nameOf, now } = stage(
          { delay: 3, jitter, loss, reconcileAfter: 20 },
          seed,
        );
        /** Blocks of the chain that each worker holds, from its start. */
        const held = [0, 0];
        const change = (worker: number, to: number) => {
          const from = held[worker]!;
          const last = Math.max(from, to);
          for (let block = Math.min(from, to); block < last; ) {
            const place = block % EACH;
            const count = Math.min(EACH - place, last - block);
            if (to > from) feed.stored(worker, Math.floor(block / EACH), place, count);
            else feed.removed(worker, Math.floor(block / EACH), place, count);
            block += count;
          }
          held[worker] = to;
          feed.sendOfWorker(worker, now());
        };
        for (const { what, worker, blocks, wait } of operations) {
          if (what === 'grow') change(worker, held[worker]! + blocks > 100 ? 0 : held[worker]! + blocks);
          else if (what === 'shrink') change(worker, Math.max(0, held[worker]! - blocks));
          else if (what === 'put') store.put(path(Math.ceil(blocks / EACH)), blocks, blocks);
          else if (what === 'get') {
            const reach = store.reach(path(3), blocks);
            if (reach > 0) store.get(path(3), 0, reach);
          } else if (what === 'restart-worker') {
            held[worker] = 0;
            feed.restart(worker, now());
          } else if (what === 'restart-store') {
            store.clear();
            feed.restart(null, now());
          }
          feed.sendOfStore(now());
          until(now() + wait);
        }
        until(now() + 1000);
        // What was lost last is missed only when something else arrives.
        for (let worker = 0; worker < WORKERS; worker++) {
          for (let lost = -1; lost !== feed.lostMessages; ) {
            lost = feed.lostMessages;
            change(worker, held[worker]! > 0 ? 0 : 1);
            until(now() + 100);
          }
        }
        for (let worker = 0; worker < WORKERS; worker++) {
          const names = Array.from({ length: held[worker]! }, (_, b) => nameOf(Math.floor(b / EACH), b % EACH));
          assert.equal([...listener.held[worker]!].sort(), names.sort());
        }
        feed.reconcile(store);
        const truth: string[] = [];
        store.forEach((group, node, from, count) => {
          for (let place = from; place < from + count; place++) truth.push(`${group}/${nameOf(node, place)}`);
        });
        assert.equal([...listener.objects.keys()].sort(), truth.sort());
      },
    ),
    { numRuns: 150 },
  );
});

test('without loss and overtaking the router knows every object and its medium', () => {
  fc.assert(
    fc.property(steps, (operations) => {
      const { feed, listener, store, until, path, nameOf, now } = stage({ delay: 3 });
      for (const { blocks, wait } of operations) {
        store.put(path(Math.ceil(blocks / EACH)), blocks, blocks);
        feed.sendOfStore(now());
        until(now() + wait);
      }
      until(now() + 10);
      assert.equal(
        listener.said.filter((text) => text.startsWith('lost')),
        [],
      );
      const truth = new Map<string, string>();
      const used = store.usedBytes;
      let bytes = 0;
      store.forEach((group, node, from, count) => {
        for (let place = from; place < from + count; place++) {
          // SSD first, then memory (Store.forEach).
          const tier = bytes < used.ssd ? SSD : DRAM;
          bytes += group === 0 ? 10 : 5;
          truth.set(`${group}/${nameOf(node, place)}`, tier === SSD ? 'disk' : 'cpu');
        }
      });
      assert.equal(
        [...listener.objects].map(([name, media]) => `${name} ${[...media]}`).sort(),
        [...truth].map(([name, medium]) => `${name} ${medium}`).sort(),
      );
    }),
    { numRuns: 150 },
  );
});

test.run();
