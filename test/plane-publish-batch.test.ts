// Numbers and messages: ids without a gap from 1, messages within their caps, and events that no message could carry.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BatchQueue, MOST_WAITING_BLOCKS, MOST_WAITING_EVENTS } from '../src/live/plane/publish/batch.js';
import { blocksOf, bytesAtMost, type Draft } from '../src/live/plane/publish/draft.js';
import { RankPipeline } from '../src/live/plane/publish/rank-pipeline.js';
import { BATCH_CAPS, splitDraft } from '../src/live/plane/publish/split.js';
import { encodeEvents } from '../src/wire/envelope/index.js';
import type { RouterEvent } from '../src/wire/envelope/types.js';
import { cleared, localOf, removed, run, said, stored } from './support/plane-drafts.js';

function numbered(drafts: readonly Draft[]): RouterEvent[] {
  return drafts.map((draft, i) => ({ ...draft, eventId: BigInt(i + 1) }));
}

function batches(queue: BatchQueue): RouterEvent[][] {
  const all: RouterEvent[][] = [];
  for (let batch = queue.take(); batch.length > 0; batch = queue.take()) all.push(batch);
  return all;
}

test('ids run from 1 without a gap: what is merged or dropped takes none', () => {
  const pipeline = new RankPipeline();
  pipeline.batch([stored(null, [1, 2]), stored(2, [3]), stored(null, [1])], 0);
  pipeline.batch([removed([1]), removed([9]), removed([3])], 0);
  pipeline.batch([removed([1]), cleared(), stored(null, [4])], 0);
  const events = batches(pipeline.queue).flat();
  assert.equal(events.map(said), ['+>1,2,3', '+>1', '-9,3', '-1', 'clear', '+>4']);
  assert.equal(
    events.map(({ eventId }) => eventId),
    [1n, 2n, 3n, 4n, 5n, 6n],
  );
  const { eventsIn, eventsOut, merged, deduplicated, blocksOut, lastEventId } = pipeline.stats();
  assert.equal([eventsIn, eventsOut, merged, deduplicated, blocksOut], [9, 6, 2, 1, 8]);
  assert.is(lastEventId, 6n);
});

test('a message has at most 128 events', () => {
  const queue = new BatchQueue();
  for (const event of numbered(Array.from({ length: 300 }, (_, i) => removed([i])))) queue.push(event);
  assert.equal(
    batches(queue).map((batch) => batch.length),
    [128, 128, 44],
  );
  assert.is(queue.events + queue.blocks, 0);
});

test('a message has at most 8,192 blocks', () => {
  const queue = new BatchQueue();
  const sizes = [4000, 4192, 1, 8192, 8191, 2];
  for (const event of numbered(sizes.map((size) => removed(run(1, size))))) queue.push(event);
  assert.equal(
    batches(queue).map((batch) => batch.map(({ data }) => blocksOf(data))),
    [[4000, 4192], [1], [8192], [8191], [2]],
  );
});

test('a message has at most so many bytes as the transport carries', () => {
  const bytes = 2000;
  const queue = new BatchQueue(() => ({ ...BATCH_CAPS, bytes }));
  for (const event of numbered(Array.from({ length: 40 }, (_, i) => stored(null, [i])))) queue.push(event);
  const all = batches(queue);
  assert.ok(all.length > 1 && all.flat().length === 40);
  for (const batch of all) assert.ok(encodeEvents(batch).length <= bytes);
});

test('a store above the caps is cut into chained ones', () => {
  const pieces = splitDraft(stored(5, run(100, 20_000), { eligible: true, sessionId: 's' }, 7));
  assert.equal(
    pieces.map(({ data }) => blocksOf(data)),
    [8192, 8192, 3616],
  );
  let parent = 5n;
  let start = 7;
  for (const { data, eligible, sessionId } of pieces) {
    if (data.kind !== 'stored') throw new Error('no store');
    assert.is(data.parent, parent);
    assert.is(data.startPosition, start);
    assert.equal(data.locals, data.hashes.map(localOf));
    assert.ok(eligible && sessionId === 's');
    parent = data.hashes.at(-1)!;
    start += data.hashes.length;
  }
  assert.is(parent, 20_099n);
});

test('a removal above the caps is cut', () => {
  const pieces = splitDraft(removed(run(1, 8193)));
  assert.equal(
    pieces.map(({ data }) => blocksOf(data)),
    [8192, 1],
  );
});

test('a store whose multimodal information is too long is cut until it fits; what never fits loses it', () => {
  const mm = [null, 'x'.repeat(500), 'y'.repeat(5000), null];
  const plain = stored(null, [1, 2, 3, 4]);
  const long = { ...plain, data: { ...plain.data, mm } as Draft['data'] };
  const pieces = splitDraft(long, { blocks: 100, bytes: 4000 });
  for (const piece of pieces) assert.ok(bytesAtMost(piece) <= 4000);
  assert.equal(
    pieces.flatMap(({ data }) => (data.kind === 'stored' ? (data.mm ?? Array.from(data.hashes, () => null)) : [])),
    [null, 'x'.repeat(500), null, null],
  );
  assert.equal(pieces.map(said).at(-1)!.startsWith('+3>4') || pieces.map(said).at(-1)!.startsWith('+2>3,4'), true);
});

test('the bound of an event’s bytes holds', () => {
  const wide = { workerId: 2n ** 64n - 1n, dpRank: 2 ** 32 - 1, tier: 'host_pinned', domain: 'cache_owner' } as const;
  const hashes = run(2 ** 53 - 100, 90);
  const mm = {
    mm_objects: [{ mm_hash: 2n ** 63n, offsets: [[1, 2]] }],
    text: 'ü'.repeat(50),
    bytes: new Uint8Array(99),
  };
  const withMm = stored(
    1,
    hashes,
    { ...wide, eligible: false, sessionId: 'ü'.repeat(80), stateSource: { a: [1, -5, 2.5] } },
    99,
  );
  for (const draft of [
    stored(2 ** 53 - 1, hashes, { ...wide, eligible: true }, 2 ** 31),
    removed(hashes, wide),
    cleared(wide),
    { ...withMm, data: { ...withMm.data, mm: hashes.map(() => mm) } as Draft['data'] },
  ]) {
    const bytes = encodeEvents([{ ...draft, eventId: 2n ** 64n - 1n }]).length;
    assert.ok(bytes <= bytesAtMost(draft), `${bytes} bytes, bound ${bytesAtMost(draft)}`);
  }
});

test('what waits is bounded: the oldest events go, and are counted', () => {
  const queue = new BatchQueue();
  const many = removed([1]);
  for (let id = 1; id <= MOST_WAITING_EVENTS + 5; id++) queue.push({ ...many, eventId: BigInt(id) });
  assert.is(queue.events, MOST_WAITING_EVENTS);
  assert.is(queue.dropped, 5);
  assert.is(queue.take()[0]!.eventId, 6n);
  const wide = new BatchQueue();
  const blocks = removed(run(1, 8192));
  for (let id = 1; id <= 200; id++) wide.push({ ...blocks, eventId: BigInt(id) });
  assert.is(wide.blocks, MOST_WAITING_BLOCKS);
  assert.is(wide.dropped, 200 - MOST_WAITING_BLOCKS / 8192);
});

test.run();
