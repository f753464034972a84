// The parts that the engine is made of, each against a plain one: the heap of events, the table of numbers, the queue of messages, the tree
// of blocks, shared bandwidth, percentiles, the ceiling.
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MoonrouteError } from '../src/errors.js';
import { BlockTree } from '../src/sim/blocks.js';
import { Ceiling } from '../src/sim/ceiling.js';
import { EventHeap } from '../src/sim/event-heap.js';
import { Fetches } from '../src/sim/fetches.js';
import { IdTable } from '../src/sim/id-table.js';
import { checkSimConfig, type StoreModel } from '../src/sim/index.js';
import { MessageQueue } from '../src/sim/message-queue.js';
import { PagedTable } from '../src/sim/paged-table.js';
import { Samples } from '../src/sim/samples.js';
import { ids, requestsOf } from './support/sim-requests.js';

test('events come by time, those of one time in the order of entry', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.integer({ min: 0, max: 20 })), { maxLength: 600 }), (steps) => {
      const heap = new EventHeap();
      const plain: { time: number; order: number }[] = [];
      steps.forEach((time, order) => {
        if (time !== null) {
          heap.put(time, order % 7, order, order + 1, order + 2);
          plain.push({ time, order });
          return;
        }
        plain.sort((a, b) => a.time - b.time || a.order - b.order);
        const expected = plain.shift();
        assert.is(heap.take(), expected !== undefined);
        if (expected === undefined) return;
        const { order: was } = expected;
        assert.equal([heap.time, heap.kind, heap.a, heap.b, heap.c], [expected.time, was % 7, was, was + 1, was + 2]);
      });
      assert.is(heap.size, plain.length);
    }),
  );
});

for (const Table of [IdTable, PagedTable]) {
  test(`a table of numbers equals a Map: ${Table.name}`, () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 200 }), fc.option(fc.nat())), { maxLength: 1000 }),
        (steps) => {
          const table = new Table();
          const plain = new Map<number, number>();
          for (const [key, value] of steps) {
            if (value === null) {
              table.delete(key);
              plain.delete(key);
            } else {
              table.set(key, value);
              plain.set(key, value);
            }
            assert.is(table.size, plain.size);
          }
          for (let key = 0; key <= 200; key++) assert.is(table.get(key), plain.get(key) ?? -1);
          if (steps.length % 2 === 0) table.clear();
          else for (const key of plain.keys()) table.delete(key);
          assert.is(table.size, 0);
          for (let key = 0; key <= 200; key++) assert.is(table.get(key), -1);
        },
      ),
    );
  });
}

test('messages come out as they went in, and their room is used again', () => {
  const queue = new MessageQueue();
  let written = 0;
  let read = 0;
  for (let round = 0; round < 5000; round++) {
    const runs = 1 + (round % 5);
    for (let run = 0; run < runs; run++) queue.add(1, written, run, runs);
    assert.is(queue.end(round % 3 === 0, round % 6 === 0), written);
    written++;
    while (read < written - (round % 100)) {
      assert.is(queue.firstSequence, read);
      assert.is(queue.firstIsLost, read % 3 === 0);
      const expected = Array.from({ length: 1 + (read % 5) }, (_, run) => [1, read, run, 1 + (read % 5)]).flat();
      assert.equal([...queue.words.subarray(queue.begin, queue.stop)], read % 6 === 0 ? [] : expected);
      queue.shift();
      read++;
    }
  }
  assert.ok(queue.words.length < 8192, `${queue.words.length} words`);
});

test('an id is one node, under another parent another one; blocks without ids are their own', () => {
  const tree = new BlockTree(16, 1000);
  const [first, again, other, tail, none, nothing] = requestsOf(64, [
    { ids: [5, 6] },
    { ids: [5, 6, 7] },
    { ids: [6, 7] },
    { ids: [5, 8], input: 64 + 20 },
    { ids: null, input: 100 },
    { ids: [9], input: 15 },
  ]).map((request) => [...tree.pathOf(request)]);
  assert.equal(
    [first, again, other],
    [
      [0, 1],
      [0, 1, 2],
      [3, 4],
    ],
  );
  assert.equal([tail, none, nothing], [[0, 5], [6, 7], []]);
  assert.is(tree.parentOf(0), -1);
  assert.is(tree.parentOf(4), 3);
});

test('no two blocks have a hash in common, and a digest ends with the external one', () => {
  const tree = new BlockTree(16, 10_000);
  const [path] = requestsOf(64, [{ ids: ids(0, 2000) }]).map((request) => tree.pathOf(request));
  const count = path!.length * 4;
  const names = (words: Uint32Array) =>
    new Set(Array.from({ length: count }, (_, i) => `${words[i * 2]} ${words[i * 2 + 1]}`));
  assert.is(names(tree.lows).size, count);
  assert.is(names(tree.locals).size, count);
  const digests = new Uint32Array(16);
  tree.writeDigests(6, 1, digests, 1);
  assert.equal([...digests.subarray(14)], [...tree.lows.subarray(12, 14)]);
  const locals = new Uint32Array(count * 2);
  tree.writeLocals(path!, count - 3, locals);
  assert.equal([...locals.subarray(0, count * 2 - 6)], [...tree.locals.subarray(0, count * 2 - 6)]);
  assert.equal([...locals.subarray(count * 2 - 6)], [0, 0, 0, 0, 0, 0]);
});

test('ids of two sizes, ids that are no whole blocks, and too many blocks are refused by name', () => {
  const codeOf = (work: () => unknown): string => {
    try {
      work();
    } catch (error) {
      if (error instanceof MoonrouteError) return error.code;
      throw error;
    }
    return 'none';
  };
  const tree = new BlockTree(16, 2);
  tree.pathOf(requestsOf(64, [{ ids: [0, 1] }])[0]!);
  assert.is(
    codeOf(() => tree.pathOf(requestsOf(32, [{ ids: [0] }])[0]!)),
    'sim-id-tokens',
  );
  assert.is(
    codeOf(() => tree.pathOf(requestsOf(64, [{ ids: [2] }])[0]!)),
    'sim-blocks',
  );
  assert.is(
    codeOf(() => new BlockTree(16, 9).pathOf(requestsOf(40, [{ ids: [0] }])[0]!)),
    'sim-id-tokens',
  );
});

test('the ceiling counts what was seen behind the same prefix, up to the last token but one', () => {
  const ceiling = new Ceiling();
  const hits = (path: number[], full: number, limit: number) => ceiling.hitsOf(Int32Array.from(path), full, limit, 4);
  assert.is(hits([0, 1], 6, 6), 0);
  assert.is(hits([0, 1], 8, 7), 6);
  assert.is(hits([0, 1], 8, 7), 7);
  assert.is(hits([0, 2], 8, 8), 4);
  assert.is(hits([3, 1], 8, 8), 0);
});

test('percentiles are nearest ranks of an exact sort', () => {
  const samples = new Samples();
  assert.equal(samples.percentiles(), { p50: null, p90: null, p99: null, mean: null });
  for (let i = 0; i < 2000; i++) samples.add((i * 7919) % 2000);
  assert.equal(samples.percentiles(), { p50: 999, p90: 1799, p99: 1979, mean: 999.5 });
});

/** Bytes a millisecond of a link, of all links, of the SSDs. */
function fetchesOf(link: number, total: number, ssd: number, workers = 3): Fetches<string> {
  const bandwidths = {
    linkBytesPerSecond: link * 1000,
    totalBytesPerSecond: total * 1000,
    ssdBytesPerSecond: ssd * 1000,
  } satisfies Partial<StoreModel>;
  return new Fetches(checkSimConfig({ store: bandwidths }).store, workers);
}

/** When each fetch arrives. */
function arrivals(
  fetches: Fetches<string>,
  begins: readonly [at: number, worker: number, dram: number, ssd: number][],
) {
  const times: Record<string, number> = {};
  const until = (time: number) => {
    while (fetches.next <= time) {
      const now = fetches.next;
      for (const { owner } of fetches.arrived(now)) times[owner] = now;
    }
  };
  begins.forEach(([at, worker, dramBytes, ssdBytes], i) => {
    until(at);
    fetches.begin({ owner: `${i}`, worker, dramBytes, ssdBytes }, at);
  });
  until(Number.MAX_VALUE);
  return times;
}

test('one fetch has its link, or all there is', () => {
  assert.equal(arrivals(fetchesOf(10, 100, 5), [[0, 0, 200, 0]]), { 0: 20 });
  assert.equal(arrivals(fetchesOf(10, 4, 5), [[0, 0, 200, 0]]), { 0: 50 });
});

test('two on one link halve it, and the rest of the longer one goes at full speed', () => {
  // 0–10: 5 each, 50 moved of both; the second, of 100, ends its last 50 at 10 a millisecond.
  assert.equal(
    arrivals(fetchesOf(10, 100, 5), [
      [0, 0, 50, 0],
      [0, 0, 100, 0],
    ]),
    { 0: 10, 1: 15 },
  );
  // The second begins at 4, when 40 of 60 are moved: 20 left at 5 until 8.
  assert.equal(
    arrivals(fetchesOf(10, 100, 5), [
      [0, 0, 60, 0],
      [4, 0, 40, 0],
    ]),
    { 0: 8, 1: 10 },
  );
});

test('what the total leaves is shared by those whose links allow it', () => {
  // Links of 10, total 16: two on worker 0 have 5 each, the one on worker 1 what is left of 16, but at most 10: 16 / 3 is more than 5.
  assert.equal(
    arrivals(fetchesOf(10, 16, 5), [
      [0, 0, 50, 0],
      [0, 0, 50, 0],
      [0, 1, 60, 0],
    ]),
    { 0: 10, 1: 10, 2: 10 },
  );
  // Total 12: a third of it is less than any link allows.
  assert.equal(
    arrivals(fetchesOf(10, 12, 5), [
      [0, 0, 40, 0],
      [0, 1, 40, 0],
      [0, 2, 40, 0],
    ]),
    { 0: 10, 1: 10, 2: 10 },
  );
});

test('the part from SSD follows, at the bandwidth of the SSDs too', () => {
  assert.equal(arrivals(fetchesOf(10, 100, 5), [[0, 0, 100, 50]]), { 0: 20 });
  assert.equal(
    arrivals(fetchesOf(10, 100, 5), [
      [0, 0, 0, 50],
      [0, 1, 0, 50],
      [0, 2, 100, 0],
    ]),
    { 0: 20, 1: 20, 2: 10 },
  );
});

test('fetched bytes, and the busiest whole second', () => {
  const fetches = fetchesOf(10, 100, 5);
  arrivals(fetches, [
    [500, 0, 20_000, 0],
    [1500, 1, 2000, 0],
  ]);
  assert.is(fetches.fetchedBytes, 22_000);
  // Second 1: all of the first link, and 200 ms of the second.
  assert.is(fetches.peakBytes, 12_000);
});

test('the fetches of a worker that is gone move no more', () => {
  const fetches = fetchesOf(10, 10, 5);
  fetches.begin({ owner: 'a', worker: 0, dramBytes: 100, ssdBytes: 0 }, 0);
  fetches.begin({ owner: 'b', worker: 1, dramBytes: 100, ssdBytes: 0 }, 0);
  fetches.drop(0, 10);
  assert.is(fetches.next, 15);
  assert.equal(
    fetches.arrived(15).map(({ owner }) => owner),
    ['b'],
  );
  assert.is(fetches.next, Number.POSITIVE_INFINITY);
  assert.is(fetches.fetchedBytes, 100);
});

test.run();
