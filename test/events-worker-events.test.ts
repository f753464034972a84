// WorkerEvents as a whole: what a message gives, what is counted, whom it remembers and for how long, and what a shared cache makes of
// its events (spec/kv-events.md 1.8 to 1.11, design.md 5).
import { Encoder } from '@msgpack/msgpack';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import type { Learned } from '../src/cache/types.js';
import { MoonrouteError, WireError } from '../src/errors.js';
import { routerBlocks } from '../src/events/router-blocks.js';
import { type Source, WorkerEvents, type WorkerMessage } from '../src/events/worker-events.js';
import { contractOf, framesOf, stored as objectStored, Prompt, storeMessage } from './support/messages.js';
import { Random } from './support/random.js';

type Fields = Readonly<Record<string, unknown>>;

const encoder = new Encoder({ useBigInt64: true });

const stored = (fields: Fields = {}): Fields => ({
  type: 'BlockStored',
  block_hashes: [1000],
  parent_block_hash: null,
  token_ids: [1, 2, 3, 4],
  block_size: 4,
  ...fields,
});
const removed = (fields: Fields = {}): Fields => ({ type: 'BlockRemoved', block_hashes: [1000], ...fields });
const cleared = (fields: Fields = {}): Fields => ({ type: 'AllBlocksCleared', ...fields });

const messageOf = (events: readonly unknown[], rank: unknown = 0) => framesOf(0, encoder.encode([0, events, rank]));

/** What becomes of one event: its kind, or the label under which it was dropped. */
function verdict(workers: WorkerEvents, workerId: Source['workerId'], event: unknown, rank = 0): string {
  const [said] = workers.read(workerId, messageOf([event], rank)).events;
  return said!.kind === 'dropped' ? said!.reason : said!.kind;
}

/** Teaches a worker's rank something that only its publisher's memory can tell afterwards: a group of main attention, and a namespace. */
function teach(workers: WorkerEvents, workerId: Source['workerId'], rank = 0): void {
  const group = { group_idx: 3, kv_cache_spec_kind: 'full_attention' };
  workers.read(workerId, messageOf([stored({ block_hashes: [1], cache_salt: 'tenant-a', ...group })], rank));
}

/** Whether what `teach` taught is still known. Asking is hearing of the worker. */
function knows(workers: WorkerEvents, workerId: Source['workerId'], rank = 0): boolean {
  const child = stored({ block_hashes: [2], parent_block_hash: 1 });
  const { events } = workers.read(workerId, messageOf([stored({ group_idx: 3 }), child], rank));
  const [inGroup, inherits] = events;
  const groupKnown = inGroup!.kind === 'stored';
  assert.is(inherits!.kind === 'stored' && inherits!.namespace === 'tenant-a', groupKnown, 'both or neither');
  return groupKnown;
}

const counters = suite('counters');

counters('start at nothing', () => {
  assert.equal(new WorkerEvents().stats(), {
    messages: 0,
    unreadable: {},
    stored: 0,
    removed: 0,
    cleared: 0,
    rejected: {},
    dropped: {},
    ineligible: {},
    publishers: 0,
    publishersForgotten: 0,
    namespaces: { hashes: 0, namespaces: 0, ambiguous: 0, aged: 0 },
  });
});

counters('every group of counts', () => {
  const workers = new WorkerEvents();
  workers.read(
    'worker-a',
    messageOf([
      stored(),
      stored({ block_hashes: [1, 2], cache_salt: 'tenant-a' }),
      stored({ block_hashes: [3], cache_salt: 'tenant-b', medium: 'CPU' }),
      stored({ block_hashes: [2], cache_salt: 'tenant-b' }),
      stored({ block_hashes: [4], is_eagle: true }),
      stored({ block_hashes: [5], is_eagle: true, medium: 'DISK' }),
      stored({ parent_block_hash: 2 }),
      removed(),
      removed({ medium: 'STORAGE' }),
      removed({ medium: 'cpu' }),
      stored({ medium: 'cpu' }),
      stored({ block_size: 'four' }),
      stored({ block_size: null }),
      removed({ block_hashes: null }),
      { type: 'Ignored' },
      cleared({ ownership: 'kvcr' }),
      7,
    ]),
  );
  workers.read('worker-a', messageOf([cleared()], 1));
  assert.throws(() => workers.read('worker-a', []));
  assert.equal(workers.stats(), {
    messages: 3,
    unreadable: { 'frame-count': 1 },
    stored: 6,
    removed: 2,
    cleared: 1,
    rejected: { 'field-type': 1, 'field-missing': 2, 'not-an-event': 1 },
    dropped: { ambiguous_cache_namespace: 1, unknown_medium: 2, ignored_event: 1, unsupported_ownership: 1 },
    ineligible: { 'ambiguous-namespace': 1, speculative: 2 },
    publishers: 2,
    publishersForgotten: 0,
    namespaces: { hashes: 2, namespaces: 2, ambiguous: 1, aged: 0 },
  });
});

counters('a snapshot does not change afterwards', () => {
  const workers = new WorkerEvents();
  const before = workers.stats();
  workers.read('worker-a', messageOf([stored(), removed({ medium: 'cpu' })]));
  assert.equal(before, new WorkerEvents().stats());
});

/** They would make a difference if they were read. */
const EVENTS = [cleared(), stored({ block_hashes: [9], cache_salt: 'tenant-b' })];
/** Messages that can't be read, by the error's code. */
const UNREADABLE: Readonly<Record<string, readonly Uint8Array[]>> = {
  'frame-count': messageOf(EVENTS).slice(1),
  'sequence-width': messageOf(EVENTS).map((frame, i) => (i === 1 ? frame.subarray(1) : frame)),
  'topic-too-long': messageOf(EVENTS).map((frame, i) => (i === 0 ? new Uint8Array(1025) : frame)),
  'payload-too-large': framesOf(0, new Uint8Array(16 * 1024 * 1024 + 1)),
  'payload-malformed': framesOf(0, encoder.encode([0, EVENTS, 0]).slice(0, -1)),
  'batch-shape': framesOf(0, encoder.encode([0, EVENTS, 0, 0])),
  'batch-rank': messageOf(EVENTS, 'first'),
  'too-many-events': framesOf(0, encoder.encode([0, new Array(65_537).fill(null), 0])),
};

for (const [code, frames] of Object.entries(UNREADABLE)) {
  counters(`an unreadable message is counted, thrown on and without effect: ${code}`, () => {
    const workers = new WorkerEvents();
    teach(workers, 'worker-a');
    const before = workers.stats();
    for (const workerId of ['worker-a', 'worker-b']) {
      assert.throws(
        () => workers.read(workerId, frames),
        (error: unknown) => error instanceof WireError && error.code === code,
      );
    }
    assert.equal(workers.stats(), { ...before, messages: 3, unreadable: { [code]: 2 } });
    assert.ok(knows(workers, 'worker-a'));
  });
}

counters('names of counts are ours: nothing that a publisher writes becomes one', () => {
  const workers = new WorkerEvents();
  const random = new Random(7);
  for (let round = 0; round < 200; round++) {
    const text = () => random.hex(8);
    workers.read(
      text(),
      messageOf([
        stored({ ownership: text() }),
        stored({ locality: text() }),
        stored({ medium: text() }),
        stored({ kv_cache_spec_kind: text() }),
        stored({ extra_keys: [[text()]] }),
        stored({ block_size: text() }),
        { type: text() },
        { [text()]: text() },
        text(),
      ]),
    );
  }
  const { rejected, dropped, ineligible, publishers } = workers.stats();
  assert.equal(rejected, { 'field-type': 200, 'tag-unknown': 200, 'tag-missing': 200, 'not-an-event': 200 });
  assert.equal(dropped, { unknown_ownership: 200, non_local_locality: 200, unknown_medium: 200, unknown_kind: 200 });
  assert.equal(ineligible, { 'extra-key-unknown': 200 });
  assert.is(publishers, 200);
});

counters('namespaces are remembered up to the limits', () => {
  const workers = new WorkerEvents({ hashes: 8, namespaces: 2, ambiguous: 1 });
  for (let hash = 0; hash < 100; hash++) {
    workers.read('worker-a', messageOf([stored({ block_hashes: [hash], cache_salt: `tenant-${hash % 5}` })]));
  }
  const { hashes, namespaces, aged } = workers.stats().namespaces;
  assert.ok(hashes <= 16 && namespaces <= 4, `${hashes} hashes, ${namespaces} namespaces`);
  assert.is(hashes + aged, 100);
});

counters.run();

const messages = suite('messages');

messages('a message says its sequence, source and time', () => {
  const workers = new WorkerEvents();
  const { sequence, source, timestamp } = workers.read(
    'worker-a',
    framesOf(2n ** 64n - 2n, encoder.encode([1.5, [], 3])),
  );
  assert.is(sequence, 2n ** 64n - 2n);
  assert.equal(source, { workerId: 'worker-a', dpRank: 3 });
  assert.is(timestamp, 1.5);
});

messages('a source is the worker as the caller names it, and the rank that the batch names', () => {
  const workers = new WorkerEvents();
  const sourceOf = (workerId: Source['workerId'], batch: unknown) =>
    workers.read(workerId, framesOf(0, encoder.encode(batch))).source;
  const large = 2n ** 63n + 1n;
  assert.equal(sourceOf('7', [0, []]), { workerId: '7', dpRank: 0 }, 'no rank');
  assert.equal(sourceOf(7, [0, [], null]), { workerId: 7, dpRank: 0 }, 'nil');
  assert.equal(sourceOf(large, [0, [], 1]), { workerId: large, dpRank: 1 });
  assert.equal(sourceOf('7', [0, [], -1]), { workerId: '7', dpRank: 0xffff_ffff }, 'negative: its 32 bits, unsigned');
  assert.equal(sourceOf('7', { events: [], data_parallel_rank: 2 }), { workerId: '7', dpRank: 2 }, 'a map');
});

messages('good events stand in order, bad ones apart with their places', () => {
  const workers = new WorkerEvents();
  const batch = [stored(), 7, cleared(), stored({ medium: 'cpu' }), { type: 'What' }, removed()];
  const { events, rejected } = workers.read('worker-a', messageOf(batch));
  assert.equal(
    events.map(({ kind }) => kind),
    ['stored', 'cleared', 'dropped', 'removed'],
  );
  assert.equal(
    rejected.map(({ index, code }) => [index, code]),
    [
      [1, 'not-an-event'],
      [4, 'tag-unknown'],
    ],
  );
});

/** Whether somebody who mirrors the worker may now hold blocks that have gone. */
const LOST: readonly (readonly [why: string, events: readonly unknown[], lost: boolean])[] = [
  ['nothing', [], false],
  ['all read', [removed(), cleared()], false],
  ['dropped events are read', [removed({ medium: 'cpu' }), cleared({ ownership: 'kvcr' })], false],
  ['a bad store', [stored({ block_hashes: 7 })], false],
  ['a bad removal', [removed({ block_hashes: ['x'] })], true],
  ['a bad clear', [cleared({ ownership: 7 })], true],
  ['a bad removal among others', [stored(), removed({ block_hashes: null }), stored({ block_size: 'x' })], true],
  ['an event that nobody knows', [{ type: 'BlockMoved' }], false],
  ['an event without a type', [{ block_hashes: [1] }], true],
  ['no event', [null], true],
  ['a list that does not start with a type', [[removed()]], true],
];

for (const [why, events, lost] of LOST) {
  messages(`${lost ? 'a removal may be lost' : 'no removal is lost'}: ${why}`, () => {
    assert.is(new WorkerEvents().read('worker-a', messageOf(events)).lostRemoval, lost);
  });
}

messages('a lost removal is a matter of its message alone', () => {
  const workers = new WorkerEvents();
  assert.ok(workers.read('worker-a', messageOf([7])).lostRemoval);
  assert.not(workers.read('worker-a', messageOf([stored()])).lostRemoval);
});

/** A message of a stored and a removed event, and all ways to their numbers. */
function numbersOf({ events }: WorkerMessage): (() => unknown)[] {
  const [arrived, left] = events;
  if (arrived?.kind !== 'stored' || left?.kind !== 'removed') throw new Error('not read as sent');
  return [
    () => arrived.event.blockHashes.low64,
    () => arrived.event.tokenIds,
    () => routerBlocks(arrived, { blockSize: 4 }).locals,
    () => left.event.blockHashes.low64,
  ];
}
const BOTH = [stored({ block_hashes: [1, 2], token_ids: [1, 2, 3, 4, 5, 6, 7, 8] }), removed({ block_hashes: [3] })];

messages('events are good until the next message is read, whoever sent it, and stale afterwards', () => {
  const workers = new WorkerEvents();
  const others = new WorkerEvents();
  const numbers = numbersOf(workers.read('worker-a', messageOf(BOTH)));
  const read = numbers.map((number) => number());
  assert.equal(read.slice(0, 2), [BigUint64Array.of(1n, 2n), Uint32Array.of(1, 2, 3, 4, 5, 6, 7, 8)]);
  assert.equal(read[3], BigUint64Array.of(3n));
  others.read('worker-a', messageOf(BOTH));
  assert.equal(
    numbers.map((number) => number()),
    read,
    'another reader is another matter',
  );

  workers.read('worker-b', messageOf([]));
  for (const number of numbers) {
    assert.throws(number, (error: unknown) => error instanceof MoonrouteError && error.code === 'stale-event');
  }
});

messages('what was copied out stays', () => {
  const workers = new WorkerEvents();
  const copies = numbersOf(workers.read('worker-a', messageOf(BOTH))).map((number) => number());
  const before = structuredClone(copies);
  workers.read('worker-a', messageOf([stored({ block_hashes: [8, 9], token_ids: [9, 9, 9, 9, 9, 9, 9, 9] })]));
  assert.equal(copies, before);
});

messages('a stale event does not teach', async () => {
  const cache = await SharedCache.create();
  cache.updateContract(contractOf({ blockSize: 4 }), [{ workerId: 'worker-a', dpRank: 0 }]);
  const workers = new WorkerEvents();
  const { source, events } = workers.read('worker-a', messageOf([stored()]));
  workers.read('worker-a', messageOf([]));
  const [event] = events;
  assert.ok(event?.kind === 'stored');
  assert.throws(
    () => cache.observeStored(source, event),
    (error: unknown) => error instanceof MoonrouteError && error.code === 'stale-event',
  );
  assert.is(cache.stats().core!.edges, 0);
});

messages('frames may be reused once they have been read', () => {
  const frames = messageOf(BOTH);
  const numbers = numbersOf(new WorkerEvents().read('worker-a', frames));
  for (const frame of frames) frame.fill(0xff);
  assert.equal(numbers[0]!(), BigUint64Array.of(1n, 2n));
});

messages.run();

const publishers = suite('publishers');

publishers('each rank of each worker is one of its own', () => {
  const workers = new WorkerEvents();
  teach(workers, 'worker-a', 0);
  assert.not(knows(workers, 'worker-a', 1));
  assert.not(knows(workers, 'worker-b', 0));
  assert.ok(knows(workers, 'worker-a', 0));
  workers.read('worker-a', messageOf([cleared()], 1));
  assert.ok(knows(workers, 'worker-a', 0), "another rank's clear");
  assert.is(workers.stats().publishers, 3);
});

publishers('names that read alike stay apart', () => {
  const workers = new WorkerEvents();
  const ids = [7, '7', 'n7', 's7', '7/0', '', '7/'];
  for (const [taught, id] of ids.entries()) {
    assert.not(knows(workers, id), `${typeof id} '${id}'`);
    teach(workers, id);
    assert.is(workers.stats().publishers, taught + 1);
  }
});

publishers('a number and the bigint of its value are the same worker', () => {
  const workers = new WorkerEvents();
  teach(workers, 7);
  assert.ok(knows(workers, 7n));
  assert.is(workers.stats().publishers, 1);
});

publishers('beyond the cap the one not heard of for longest is forgotten, and counted', () => {
  const workers = new WorkerEvents({ publishers: 3 });
  for (const id of ['a', 'b', 'c']) teach(workers, id);
  workers.read('a', messageOf([])); // heard of, though it said nothing
  assert.is(workers.stats().publishersForgotten, 0);
  teach(workers, 'd');
  assert.is(workers.stats().publishers, 3);
  assert.is(workers.stats().publishersForgotten, 1);
  assert.equal(
    ['a', 'c', 'd'].map((id) => knows(workers, id)),
    [true, true, true],
  );
  assert.not(knows(workers, 'b'));
  assert.is(workers.stats().publishersForgotten, 2, 'b came back in place of a');
  assert.not(knows(workers, 'a'));
});

publishers('ranks count one by one', () => {
  const workers = new WorkerEvents({ publishers: 2 });
  for (const rank of [0, 1, 2]) teach(workers, 'worker-a', rank);
  assert.equal(
    [1, 2].map((rank) => knows(workers, 'worker-a', rank)),
    [true, true],
  );
  assert.not(knows(workers, 'worker-a', 0));
});

publishers('by default 4,096 are remembered', () => {
  const workers = new WorkerEvents();
  for (let id = 0; id <= 4096; id++) workers.read(id, messageOf([]));
  assert.is(workers.stats().publishers, 4096);
  assert.is(workers.stats().publishersForgotten, 1);
});

publishers('an unreadable message is not heard', () => {
  const workers = new WorkerEvents({ publishers: 2 });
  for (const id of ['a', 'b']) teach(workers, id);
  assert.throws(() => workers.read('a', UNREADABLE['batch-rank']!));
  workers.read('c', messageOf([]));
  assert.ok(knows(workers, 'b'));
  assert.not(knows(workers, 'a'));
});

publishers('forget: all ranks of the worker and nobody else', () => {
  const workers = new WorkerEvents();
  for (const rank of [0, 1, 5]) teach(workers, 'worker-a', rank);
  teach(workers, 'worker-b');
  workers.forget('worker-a');
  workers.forget('worker-c');
  assert.is(workers.stats().publishers, 1);
  assert.is(workers.stats().publishersForgotten, 0, 'that counts those for whom there was no room');
  assert.equal(
    [0, 1, 5].map((rank) => knows(workers, 'worker-a', rank)),
    [false, false, false],
  );
  assert.ok(knows(workers, 'worker-b'));
});

publishers('forget: 7 and the text 7 are different workers', () => {
  const workers = new WorkerEvents();
  for (const id of [7, '7']) teach(workers, id);
  workers.forget('7');
  assert.ok(knows(workers, 7));
  assert.not(knows(workers, '7'));
  teach(workers, '7');
  workers.forget(7);
  assert.not(knows(workers, 7));
  assert.ok(knows(workers, '7'));
});

publishers('forget: a number and the bigint of its value are the same worker', () => {
  const workers = new WorkerEvents();
  teach(workers, 7);
  workers.forget(7n);
  assert.not(knows(workers, 7));
});

publishers('forget ends contradictions too', () => {
  const workers = new WorkerEvents();
  for (const cache_salt of ['tenant-a', 'tenant-b']) verdict(workers, 'worker-a', stored({ cache_salt }));
  const child = stored({ block_hashes: [1], parent_block_hash: 1000 });
  assert.is(verdict(workers, 'worker-a', child), 'ambiguous_cache_namespace');
  workers.forget('worker-a');
  assert.is(verdict(workers, 'worker-a', child), 'stored');
});

publishers.run();

const learning = suite('with a shared cache');

const RANK: Source = { workerId: 'worker-a', dpRank: 0 };
const SECOND: Source = { workerId: 'worker-a', dpRank: 1 };

/** Workers whose stored events a cache observes, and one prompt whose objects are all stored. */
class Fleet {
  readonly workers = new WorkerEvents();
  readonly prompt: Prompt;

  private constructor(
    readonly cache: SharedCache,
    blocks: number,
  ) {
    const contract = contractOf();
    cache.updateContract(contract, [RANK, SECOND]);
    this.prompt = new Prompt(1, blocks, contract);
    cache.applyStoreMessage(
      storeMessage(
        1,
        this.prompt.keys(contract).map((key) => objectStored(key)),
      ),
    );
  }

  static async open(blocks: number): Promise<Fleet> {
    return new Fleet(await SharedCache.create(), blocks);
  }

  /** An event of the prompt's blocks `first` … `end` − 1. */
  event(first: number, end: number, fields: Fields = {}): Fields {
    const hash = (block: number) => Buffer.from(this.prompt.digest(block), 'hex').readBigUInt64BE(24);
    return stored({
      block_hashes: Array.from({ length: end - first }, (_, i) => hash(first + i)),
      parent_block_hash: first === 0 ? null : hash(first - 1),
      token_ids: [...this.prompt.tokens.subarray(first * 16, end * 16)],
      block_size: 16,
      ...fields,
    });
  }

  /** A worker's message; what each of its stored events taught. */
  say(events: readonly Fields[], { workerId, dpRank }: Source = RANK): Learned[] {
    const message = this.workers.read(workerId, messageOf(events, dpRank));
    assert.equal(message.rejected, []);
    const taught: Learned[] = [];
    for (const event of message.events) {
      if (event.kind === 'stored') taught.push(this.cache.observeStored(message.source, event));
    }
    return taught;
  }

  /** Blocks credited to the prompt in each of the namespaces. */
  hits(...namespaces: readonly (string | null)[]): number[] {
    return namespaces.map((cacheSalt) => this.cache.lookup({ ...this.prompt.query(), cacheSalt }).blocks);
  }
}

const learned = (blocks: number): Learned => ({ blocks, refused: null });
const REFUSED: Learned = { blocks: 0, refused: 'ambiguous-namespace' };

learning('a hash of two namespaces ends the credit in both, for good and whoever says it again', async () => {
  const fleet = await Fleet.open(2);
  const inA = fleet.event(0, 2, { cache_salt: 'tenant-a' });
  const inB = fleet.event(0, 2, { cache_salt: 'tenant-b' });
  assert.equal(fleet.say([inA]), [learned(2)]);
  assert.equal(fleet.hits('tenant-a', 'tenant-b', null), [2, 0, 0]);

  assert.equal(fleet.say([inB]), [REFUSED]);
  assert.equal(fleet.hits('tenant-a', 'tenant-b', null), [0, 0, 0]);
  assert.is(fleet.workers.stats().namespaces.ambiguous, 2);
  assert.equal(fleet.workers.stats().ineligible, { 'ambiguous-namespace': 1 });
  assert.equal(fleet.cache.stats().refusals, { 'ambiguous-namespace': 1 });
  assert.is(fleet.cache.stats().core!.conflicts, 2);
  assert.is(fleet.cache.stats().core!.conflicted, 2);

  assert.equal(fleet.say([inA, inB]), [REFUSED, REFUSED]);
  assert.equal(fleet.say([inA], SECOND), [learned(0)], 'a rank that knows of no contradiction');
  assert.equal(fleet.hits('tenant-a', 'tenant-b', null), [0, 0, 0]);
  assert.is(fleet.cache.stats().core!.conflicts, 2, 'a contradiction counts once');
});

learning('in one message too', async () => {
  const fleet = await Fleet.open(2);
  const [inA, inB] = ['tenant-a', 'tenant-b'].map((cache_salt) => fleet.event(0, 2, { cache_salt }));
  assert.equal(fleet.say([inA!, inB!]), [learned(2), REFUSED]);
  assert.equal(fleet.hits('tenant-a', 'tenant-b'), [0, 0]);
});

learning('ranks that contradict each other end the credit as well', async () => {
  const fleet = await Fleet.open(2);
  assert.equal(fleet.say([fleet.event(0, 2, { cache_salt: 'tenant-a' })]), [learned(2)]);
  assert.equal(fleet.say([fleet.event(0, 2, { cache_salt: 'tenant-b' })], SECOND), [learned(0)]);
  assert.equal(fleet.hits('tenant-a', 'tenant-b'), [0, 0]);
});

learning('a hash that is told salted after unsalted ends the credit in both', async () => {
  const fleet = await Fleet.open(2);
  assert.equal(fleet.say([fleet.event(0, 2)]), [learned(2)]);
  assert.equal(fleet.say([fleet.event(0, 2, { cache_salt: 'tenant-a' })]), [learned(0)]);
  assert.equal(fleet.hits('tenant-a', null), [0, 0]);
});

learning('a tagged hash that is stored unsalted ends the credit', async () => {
  const fleet = await Fleet.open(2);
  fleet.say([fleet.event(0, 2, { cache_salt: 'tenant-a' })]);
  assert.equal(fleet.say([fleet.event(0, 2)]), [REFUSED]);
  assert.equal(fleet.hits('tenant-a', null), [0, 0]);
});

learning('the offload of a tagged block, announced without its salt, does not', async () => {
  const fleet = await Fleet.open(2);
  fleet.say([fleet.event(0, 2, { cache_salt: 'tenant-a' })]);
  assert.equal(fleet.say([fleet.event(0, 2, { medium: 'CPU' })]), [{ blocks: 0, refused: 'not-device-tier' }]);
  assert.equal(fleet.hits('tenant-a', null), [2, 0]);
  assert.equal(fleet.say([fleet.event(0, 2, { cache_salt: 'tenant-a' })]), [learned(2)]);
});

learning('what stands before the contradiction keeps its credit', async () => {
  const fleet = await Fleet.open(3);
  fleet.say([fleet.event(0, 3, { cache_salt: 'tenant-a' })]);
  assert.equal(fleet.hits('tenant-a'), [3]);
  assert.equal(fleet.say([fleet.event(2, 3, { cache_salt: 'tenant-b' })]), [REFUSED]);
  assert.equal(fleet.hits('tenant-a', 'tenant-b'), [2, 0]);
});

learning('a child of a contradictory block is not learned', async () => {
  const fleet = await Fleet.open(2);
  for (const cache_salt of ['tenant-a', 'tenant-b']) fleet.say([fleet.event(0, 1, { cache_salt })]);
  assert.equal(fleet.say([fleet.event(1, 2)]), [], 'dropped');
  assert.equal(fleet.say([fleet.event(1, 2, { cache_salt: 'tenant-a' })]), [REFUSED]);
  assert.is(fleet.cache.stats().core!.edges, 1);
});

learning('an event with an unknown parent is learned, and connects when the parent comes', async () => {
  const fleet = await Fleet.open(4);
  assert.equal(fleet.say([fleet.event(3, 4)]), [learned(1)]);
  assert.equal(fleet.say([fleet.event(1, 3)]), [learned(2)]);
  assert.equal(fleet.hits(null), [0]);
  assert.equal(fleet.say([fleet.event(0, 1)]), [learned(1)]);
  assert.equal(fleet.hits(null), [4]);
  assert.equal(fleet.say([fleet.event(0, 4)]), [learned(4)], 'told again in order, nothing contradicts');
});

learning('learned as unsalted under an unknown parent, then told with its namespace: no contradiction', async () => {
  const fleet = await Fleet.open(2);
  assert.equal(fleet.say([fleet.event(1, 2)]), [learned(1)], 'the salted root was missed');
  assert.equal(fleet.say([fleet.event(0, 1, { cache_salt: 'tenant-a' })]), [learned(1)]);
  assert.equal(fleet.hits('tenant-a', null), [1, 0], 'the child is known under unsalted tokens');
  assert.equal(fleet.say([fleet.event(1, 2)]), [learned(1)], 'it inherits now');
  assert.equal(fleet.hits('tenant-a', null), [2, 0]);
  assert.is(fleet.cache.stats().core!.conflicts, 0);
  assert.is(fleet.cache.stats().core!.replaced, 1);
});

learning('a removal takes nothing of what was learned, since the store may still hold it', async () => {
  const fleet = await Fleet.open(2);
  const event = fleet.event(0, 2, { cache_salt: 'tenant-a' });
  fleet.say([event, removed({ block_hashes: event['block_hashes'] }), cleared()]);
  assert.equal(fleet.hits('tenant-a'), [2]);
});

learning('a source that is not admitted teaches nothing', async () => {
  const fleet = await Fleet.open(2);
  const strangers: Source[] = [
    { workerId: 'worker-a', dpRank: 2 },
    { workerId: 'worker-b', dpRank: 0 },
    { workerId: 'worker-a/0', dpRank: 0 },
  ];
  for (const stranger of strangers) {
    assert.equal(fleet.say([fleet.event(0, 2)], stranger), [{ blocks: 0, refused: 'source-not-admitted' }]);
  }
  assert.equal(fleet.hits(null), [0]);
  assert.is(fleet.cache.stats().core!.edges, 0);
  assert.equal(fleet.cache.stats().refusals, { 'source-not-admitted': 3 });
  assert.equal(fleet.say([fleet.event(0, 2)]), [learned(2)]);
});

learning('a contradiction of a source that is not admitted takes nothing away', async () => {
  const fleet = await Fleet.open(2);
  const stranger: Source = { workerId: 'worker-b', dpRank: 0 };
  fleet.say([fleet.event(0, 2, { cache_salt: 'tenant-a' })]);
  for (const cache_salt of ['tenant-b', 'tenant-c']) fleet.say([fleet.event(0, 2, { cache_salt })], stranger);
  assert.equal(fleet.hits('tenant-a'), [2]);
});

learning('a group of main attention that is not the contract’s passes the gates and teaches nothing', async () => {
  const fleet = await Fleet.open(2);
  const inGroup = (group_idx: number) => fleet.event(0, 2, { group_idx, kv_cache_spec_kind: 'full_attention' });
  assert.equal(fleet.say([inGroup(1)]), [{ blocks: 0, refused: 'not-main-group' }]);
  assert.is(fleet.workers.stats().stored, 1);
  assert.equal(fleet.workers.stats().dropped, {});
  assert.is(fleet.cache.stats().core!.edges, 0);
  assert.equal(fleet.hits(null), [0]);
  assert.equal(fleet.say([inGroup(0)]), [learned(2)]);
  assert.equal(fleet.hits(null), [2]);
});

learning('a cache never sees what the gates stopped', async () => {
  const fleet = await Fleet.open(2);
  for (const fields of [{ medium: 'cpu' }, { locality: 'REMOTE' }, { kv_cache_spec_kind: 'mamba' }, { group_idx: 1 }]) {
    assert.equal(fleet.say([fleet.event(0, 2, fields)]), []);
  }
  assert.is(fleet.workers.stats().stored, 0);
});

learning.run();
