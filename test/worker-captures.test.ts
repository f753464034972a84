// Streams of workers in every encoding of vLLM's history and in SGLang's variant (spec/vllm-store.md 8): each capture, read message
// by message, must give the events, router blocks and lessons that its expectation states. scripts/make-worker-captures.mjs writes
// both and takes no word of the product for it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Decoder } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { WireError } from '../src/errors.js';
import { routerBlocks } from '../src/events/router-blocks.js';
import { WorkerEvents } from '../src/events/worker-events.js';
import { readCapture } from '../src/oracle/capture.js';
import { contractOf } from './support/messages.js';

const FOLDER = 'test/fixtures/worker-captures';
const WORKER = 'worker-a';

type Expected =
  | {
      readonly kind: 'stored';
      readonly tier: string;
      readonly group: number | null;
      readonly namespace: string | null;
      readonly ineligible: string | null;
      readonly parent: string | null;
      /** External and local hash of each router block. */
      readonly blocks: readonly (readonly [external: string, local: string])[];
      readonly stopped: string | null;
    }
  | { readonly kind: 'removed'; readonly tier: string; readonly hashes: readonly string[] }
  | { readonly kind: 'cleared' }
  | { readonly kind: 'dropped'; readonly reason: string };

/** What a message gives, or the code of the error that it is as a whole. */
type ExpectedMessage =
  | {
      readonly dpRank: number;
      readonly events: readonly Expected[];
      readonly rejected: readonly { readonly index: number; readonly code: string; readonly lostRemoval: boolean }[];
    }
  | { readonly unreadable: string };

interface Expectation {
  readonly blockSize: number;
  readonly about: string;
  /** Rows and rules of vllm-store.md 8 that the capture shows. */
  readonly covers: readonly string[];
  /** Blocks that a shared cache learns or confirms whose contract is plain full attention. */
  readonly learns: number;
  readonly messages: readonly ExpectedMessage[];
}

const captures = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.jsonl'))
  .sort()
  .map((file) => {
    const path = join(FOLDER, file);
    const expected: Expectation = JSON.parse(readFileSync(path.replace('.jsonl', '.expected.json'), 'utf8'));
    return { name: file.slice(0, -'.jsonl'.length), messages: readCapture(readFileSync(path, 'utf8'), path), expected };
  });

const cache = await SharedCache.create();

for (const { name, messages, expected } of captures) {
  test(`${name}: ${expected.about}`, () => {
    assert.is(messages.length, expected.messages.length);
    cache.updateContract(null); // forgets the capture before
    const ranks = new Set(expected.messages.flatMap((message) => ('dpRank' in message ? message.dpRank : [])));
    cache.updateContract(
      contractOf({ blockSize: expected.blockSize }),
      Array.from(ranks, (dpRank) => ({ workerId: WORKER, dpRank })),
    );
    const workers = new WorkerEvents();
    let learned = 0;
    expected.messages.forEach((wanted, number) => {
      learned += playMessage(workers, messages[number]!, wanted, number, expected.blockSize);
    });
    assert.is(learned, expected.learns, 'blocks learned');
  });
}

/** Reads one message and holds all it gives against `wanted`; returns how many blocks the cache learned. */
function playMessage(
  workers: WorkerEvents,
  frames: readonly Uint8Array[],
  wanted: ExpectedMessage,
  number: number,
  blockSize: number,
): number {
  const place = `message ${number}`;
  if ('unreadable' in wanted) {
    assert.throws(
      () => workers.read(WORKER, frames),
      (error: unknown) => error instanceof WireError && error.code === wanted.unreadable,
      `${place}: not refused as ${wanted.unreadable}`,
    );
    return 0;
  }
  const message = workers.read(WORKER, frames);
  assert.is(message.sequence, BigInt(number), place);
  assert.equal(message.source, { workerId: WORKER, dpRank: wanted.dpRank }, place);
  const rejected = message.rejected.map(({ index, code, lostRemoval }) => ({ index, code, lostRemoval }));
  assert.equal(rejected, wanted.rejected, `${place}: rejected events`);
  assert.is(
    message.lostRemoval,
    wanted.rejected.some(({ lostRemoval }) => lostRemoval),
    `${place}: lostRemoval`,
  );
  assert.is(message.events.length, wanted.events.length, `${place}: number of events`);
  let learned = 0;
  message.events.forEach((event, index) => {
    assert.equal(shown(event, blockSize), wanted.events[index], `${place}, event ${index}`);
    if (event.kind === 'stored') learned += cache.observeStored(message.source, event).blocks;
  });
  return learned;
}

type Read = ReturnType<WorkerEvents['read']>['events'][number];

/** An event as an expectation says it. */
function shown(event: Read, blockSize: number): Expected {
  switch (event.kind) {
    case 'stored': {
      const { count, hashes, locals, stopped } = routerBlocks(event, { blockSize, imageTokenId: null });
      const parent = event.event.parentBlockHash?.low64;
      return {
        kind: 'stored',
        tier: event.tier,
        group: event.event.groupIdx,
        namespace: event.namespace,
        ineligible: event.ineligible,
        parent: parent === undefined ? null : String(parent),
        blocks: Array.from({ length: count }, (_, i) => [String(hashes[i]), String(locals[i])] as const),
        stopped,
      };
    }
    case 'removed':
      return { kind: 'removed', tier: event.tier, hashes: Array.from(event.event.blockHashes.low64, String) };
    case 'cleared':
      return { kind: 'cleared' };
    case 'dropped':
      return { kind: 'dropped', reason: event.reason };
  }
}

// ---- the captures themselves, without the product ----

/** An event of either encoding: its tag, and its value by slot or by name. */
interface Raw {
  readonly tag: unknown;
  readonly slots: readonly unknown[] | null;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface RawBatch {
  readonly elements: number | null;
  readonly rank: unknown;
  readonly events: readonly Raw[];
}

const decoder = new Decoder({ useBigInt64: true });

function rawBatch(payload: Uint8Array): RawBatch {
  const batch = decoder.decode(payload) as unknown[] | { events: unknown[]; data_parallel_rank?: unknown };
  const events = Array.isArray(batch) ? (batch[1] as unknown[]) : batch.events;
  return {
    elements: Array.isArray(batch) ? batch.length : null,
    rank: Array.isArray(batch) ? batch[2] : batch.data_parallel_rank,
    events: events.map((event) => {
      if (Array.isArray(event)) return { tag: event[0], slots: event, fields: {} };
      const fields = Object(event) as Record<string, unknown>;
      return { tag: fields['type'], slots: null, fields };
    }),
  };
}

const storedWith = (elements: number, fits: (slots: readonly unknown[]) => boolean) => (batch: RawBatch) =>
  batch.events.some(({ tag, slots }) => tag === 'BlockStored' && slots?.length === elements && fits(slots));
const isList = Array.isArray;

/** Rows of the history table: what a batch of that version looks like and none of an earlier one does. */
const HISTORY: Readonly<Record<string, (batch: RawBatch) => boolean>> = {
  '#16750': (batch) => batch.elements === 2 && storedWith(6, (slots) => isList(slots[1]) && isList(slots[3]))(batch),
  '#18925': (batch) => batch.elements === 3 && typeof batch.rank === 'number' && batch.rank > 0,
  '#19737 / #23673': storedWith(7, (slots) => slots[6] === 'GPU'),
  '#27577': storedWith(8, (slots) => slots[7] === 'adapter-a'),
  '#33304': storedWith(9, (slots) => isList(slots[8]) && slots[8].length === (slots[1] as unknown[]).length),
  '#37688': storedWith(10, (slots) => slots[9] === 0),
  '#40984': storedWith(12, (slots) => slots[10] === 'sliding_window' && slots[11] === 64),
  '#42892': (batch) => batch.events.some(({ tag, slots }) => tag === 'BlockStored' && slots === null),
  '#48281': (batch) => batch.events.some(({ fields }) => fields['locality'] === 'REMOTE'),
};

/** The rules below the table, in its order. */
const RULES = [
  'kinds',
  'gpu-medium',
  'connector',
  'offload-media',
  'integer-hashes',
  'byte-hashes',
  'full-blocks',
  'sparse',
  'partial-tail',
  'one-removal-a-hash',
  'cleared',
  'reuse',
  'group-and-hash',
  'loaded',
];

/** Why a router leaves an event out: spec/kv-events.md 1.9. */
const REASONS = [
  'ignored_event',
  'non_local_locality',
  'unknown_medium',
  'unsupported_ownership',
  'unknown_ownership',
  'ambiguous_cache_namespace',
  'non_main_attention_kind',
  'unknown_kind',
  'non_main_attention_group',
  'unlearned_group_idx',
];

test('there are 20 captures, numbered without a gap, each of which says what it covers', () => {
  const numbers = captures.map(({ name }) => Number(name.slice(0, 2)));
  assert.equal(
    numbers,
    Array.from({ length: 20 }, (_, i) => i + 1),
  );
  for (const { name, expected } of captures) assert.ok(expected.covers.length > 0, name);
});

for (const [row, isOfThatVersion] of Object.entries(HISTORY)) {
  test(`history row ${row} is in a capture that says so, as it was on the wire`, () => {
    const named = captures.filter(({ expected }) => expected.covers.includes(row));
    assert.ok(named.some(({ messages }) => messages.some((frames) => isOfThatVersion(rawBatch(frames[2]!)))));
  });
}

test('every rule below the history table is covered, and nothing is named that is neither rule nor row', () => {
  const covered = new Set(captures.flatMap(({ expected }) => expected.covers));
  assert.equal([...covered].sort(), [...Object.keys(HISTORY), ...RULES].sort());
});

test('every reason for leaving an event out occurs, and no other', () => {
  const events = captures.flatMap(({ expected }) =>
    expected.messages.flatMap((message) => ('events' in message ? message.events : [])),
  );
  const reasons = new Set(events.flatMap((event) => (event.kind === 'dropped' ? [event.reason] : [])));
  assert.equal([...reasons].sort(), [...REASONS].sort());
});

test('hashes on the wire are of every width: above 2^63 unsigned, signed, and 32 bytes', () => {
  const hashes = captures.flatMap(({ messages }) =>
    messages.flatMap((frames) =>
      rawBatch(frames[2]!).events.flatMap(({ slots, fields }) => slots?.[1] ?? fields['block_hashes'] ?? []),
    ),
  );
  assert.ok(hashes.some((hash) => typeof hash === 'bigint' && hash >= 1n << 63n));
  assert.ok(hashes.some((hash) => typeof hash === 'bigint' && hash < 0n));
  assert.ok(hashes.some((hash) => hash instanceof Uint8Array && hash.length === 32));
});

test('each event of a message is expected once, as read or as rejected', () => {
  for (const { name, messages, expected } of captures) {
    messages.forEach((frames, number) => {
      const wanted = expected.messages[number]!;
      if ('unreadable' in wanted) return;
      const said = wanted.events.length + wanted.rejected.length;
      assert.is(rawBatch(frames[2]!).events.length, said, `${name}, message ${number}`);
    });
  }
});

test.run();
