// Every encoding of a simulated worker's events is read by this project's own reader to the same blocks, and by the router to the same index.
import { decode } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import {
  BatchEncoder,
  DEFAULT_ENCODING,
  type Encoding,
  EVENT_FORMS,
  type EventForm,
  encodingText,
  HASH_FORMS,
  parseEncoding,
} from '../src/fleet/worker/encoding.js';
import { Engine } from '../src/fleet/worker/engine.js';
import { geometryOf } from '../src/fleet/worker/geometry.js';
import type { BlocksStored, KvEvent } from '../src/fleet/worker/kv-events.js';
import { Router } from '../src/router/router.js';
import { low64Of } from '../src/wire/block-digests.js';
import { writeSequence } from '../src/wire/frames.js';
import { decodeWorkerBatch } from '../src/wire/vllm.js';
import { tokensOf } from './support/fleet-worker.js';

const BLOCK = 16;
const WINDOW = 2 * BLOCK + 1;
const SECONDS = 1_789_095_808;
const geometry = geometryOf({
  model: 'm',
  cachePrefix: '',
  blockSize: BLOCK,
  tp: 1,
  groups: [{ kind: 'full_attention' }, { kind: 'sliding_window', window: WINDOW }],
});

/** Batches of an engine that stores, evicts and clears. */
function batches(): (readonly KvEvent[])[] {
  const engine = new Engine({
    geometry,
    gpuBlocks: 20,
    stepTokens: 1000,
    maxRunning: 4,
    maxWaiting: 4,
    store: { has: () => false, put: () => true },
    retention: 0,
    connectorEvents: true,
  });
  const all: (readonly KvEvent[])[] = [];
  const serve = (name: number, lora: string | null) => {
    engine.submit({
      prompt: tokensOf(name, 5 * BLOCK),
      answer: [1],
      lora: lora === null ? null : { id: 1, name: lora },
      cacheSalt: lora === null ? null : 'dynamo-cache-salt:t',
    });
    while (engine.busy) all.push(engine.step().events);
  };
  serve(1, null);
  engine.clear();
  all.push(engine.takeEvents());
  serve(2, null);
  serve(3, 'adapter-a');
  serve(4, null); // evicts
  return all.filter((events) => events.length > 0);
}

const sent = batches();
const encodings: Encoding[] = EVENT_FORMS.flatMap((form) =>
  HASH_FORMS.flatMap((hashes) =>
    [true, false].flatMap((rank) => (['array', 'map'] as const).map((batch) => ({ form, hashes, rank, batch }))),
  ),
);

/** Elements of stored and of removed events, spec/kv-events.md 1.7; null for maps. */
const ELEMENTS: Readonly<Record<EventForm, readonly [stored: number, removed: number] | null>> = {
  map: null,
  'array-5': [5, 2],
  'array-6': [6, 2],
  'array-7': [7, 3],
  'array-8': [8, 3],
  'array-9': [9, 3],
  'array-group': [10, 4],
  'array-kind': [10, 4],
  'array-group-kind': [11, 5],
  'array-group-kind-window': [12, 6],
  'array-images': [13, 6],
  'array-suffix': [14, 6],
  'array-fixed-4': [13, 7],
  'array-fixed-5': [14, 8],
};
/** Forms that tell groups apart. */
const tellsGroups = (form: EventForm) => form === 'map' || ELEMENTS[form]![0] > 9;
const tellsMedium = (form: EventForm) => form === 'map' || ELEMENTS[form]![0] > 6;
const tellsIndex = (form: EventForm) => tellsGroups(form) && form !== 'array-kind';

/** Whether an event can be said in a form: the main group's, or any where groups are told; in the store only where media are. */
function hasPlace(event: KvEvent, form: EventForm): boolean {
  if (event.kind === 'cleared') return true;
  return (event.group === 0 || tellsGroups(form)) && (event.kind !== 'put' || tellsMedium(form));
}

test('what is tested holds stores, removals and clears, a LoRA, both groups', () => {
  const events = sent.flat();
  assert.equal(new Set(events.map(({ kind }) => kind)), new Set(['stored', 'put', 'removed', 'cleared']));
  assert.ok(events.some((event) => event.kind === 'stored' && event.lora !== null));
  assert.ok(events.some((event) => event.kind === 'removed' && event.group === 1));
  assert.is(encodings.length, 14 * 3 * 2 * 2);
});

for (const form of EVENT_FORMS) {
  test(`${form}: read to the same blocks, whatever the hashes, the rank and the batch`, () => {
    for (const encoding of encodings.filter((one) => one.form === form)) {
      const encoder = new BatchEncoder(encoding, geometry);
      for (const events of sent) {
        const payload = encoder.encode(events, 0, SECONDS);
        const expected = events.filter((event) => hasPlace(event, form));
        if (payload === null) {
          assert.is(expected.length, 0);
          continue;
        }
        const read = decodeWorkerBatch(payload);
        assert.equal([read.rejected, read.dpRank, Math.floor(read.timestamp!)], [[], 0, SECONDS]);
        assert.is(read.events.length, expected.length);
        for (const [i, event] of expected.entries()) compare(encodingText(encoding), read.events[i]!, event, encoding);
      }
    }
  });
}

function compare(
  name: string,
  read: ReturnType<typeof decodeWorkerBatch>['events'][number],
  event: KvEvent,
  { form, hashes }: Encoding,
): void {
  assert.is(read.type, event.kind === 'put' ? 'stored' : event.kind, name);
  if (read.type === 'cleared' || read.type === 'ignored' || event.kind === 'cleared') return;
  const digests = event.kind === 'removed' ? [event.digest] : event.digests;
  assert.equal([...read.blockHashes.low64], digests.map(low64Of), name);
  assert.equal(
    read.blockHashes.digests && Buffer.from(read.blockHashes.digests),
    hashes === 'bytes' ? Buffer.concat(digests) : null,
  );
  const index = tellsIndex(form) ? event.group : null;
  if (read.type === 'removed') {
    assert.is(read.groupIdx, index, name);
    return;
  }
  const stored = event.kind === 'put' ? { ...event, lora: null, extraKeys: [] } : (event as BlocksStored);
  const elements = ELEMENTS[form]?.[0] ?? 99;
  const { shape } = read;
  assert.equal(Array.from(read.tokenIds), stored.tokens, name);
  assert.is(read.parentBlockHash?.low64 ?? null, stored.parent && low64Of(stored.parent), name);
  assert.equal(
    [shape.blockSize, shape.groupIdx, shape.specKind],
    [BLOCK, index, tellsGroups(form) && form !== 'array-group' ? geometry.groups[stored.group]!.kind : null],
    name,
  );
  assert.is(Number(shape.loraId ?? 0), elements > 5 && stored.lora ? 1 : 0, name);
  assert.is(shape.medium, elements <= 6 ? null : event.kind === 'put' ? 'cpu' : 'GPU', name);
  assert.is(shape.loraName, elements > 7 && stored.lora ? 'adapter-a' : null, name);
  if (elements > 8 && event.kind === 'stored' && !shape.nilKeys) assert.equal(read.extraKeys, stored.extraKeys, name);
  const tellsWindow = tellsGroups(form) && !['array-group', 'array-kind', 'array-group-kind'].includes(form);
  assert.is(shape.slidingWindow, tellsWindow && stored.group === 1 ? WINDOW : null, name);
}

test('events have the number of elements of their time', () => {
  for (const form of EVENT_FORMS) {
    const lengths = ELEMENTS[form];
    const encoder = new BatchEncoder({ ...DEFAULT_ENCODING, form }, geometry);
    for (const events of sent) {
      const [, written] = decode(encoder.encode(events, 0, SECONDS)!, { useBigInt64: true }) as [number, unknown[]];
      for (const event of written) {
        if (lengths === null) assert.is(Array.isArray(event), false);
        else if ((event as unknown[])[0] === 'BlockStored') assert.is((event as unknown[]).length, lengths[0], form);
        else if ((event as unknown[])[0] === 'BlockRemoved') assert.is((event as unknown[]).length, lengths[1], form);
        else assert.equal(event, ['AllBlocksCleared']);
      }
    }
  }
});

test('a router keeps the same blocks of every encoding that says what the blocks need', async () => {
  const router = await Router.create({ policy: 'kv', blockSize: BLOCK });
  let expected: unknown;
  for (const encoding of encodings) {
    // Encodings of five elements up to nine do not tell the LoRA, or its salt, which a router then can't know.
    const elements = ELEMENTS[encoding.form]?.[0] ?? 99;
    if (elements < 9) continue;
    const id = encodingText(encoding);
    router.addWorker({ id, adapters: ['adapter-a'] });
    const encoder = new BatchEncoder(encoding, geometry);
    let sequence = 0n;
    for (const events of sent) {
      const payload = encoder.encode(events, 0, SECONDS);
      if (payload === null) continue;
      const { fate } = router.onWorkerMessage(id, [new Uint8Array(0), writeSequence(sequence++), payload]);
      assert.is(fate, 'applied', id);
    }
    const dump = router.dump(id);
    expected ??= dump;
    assert.equal(dump, expected, id);
    router.removeWorker(id);
  }
  assert.ok(JSON.stringify(expected, (_, v) => (typeof v === 'bigint' ? String(v) : v)).length > 300);
});

test('signed hashes are negative where the unsigned ones are large', () => {
  const seen = { u64: 0, i64: 0 };
  for (const hashes of ['u64', 'i64'] as const) {
    const encoder = new BatchEncoder({ ...DEFAULT_ENCODING, hashes }, geometry);
    for (const events of sent) {
      const [, written] = decode(encoder.encode(events, 0, 1)!, { useBigInt64: true }) as [
        number,
        { block_hashes?: bigint[] }[],
      ];
      for (const hash of written.flatMap(({ block_hashes = [] }) => block_hashes)) {
        if (BigInt(hash) < 0n) seen[hashes]++;
      }
    }
  }
  assert.is(seen.u64, 0);
  assert.ok(seen.i64 > 0);
});

test('encodings are written and read as text', () => {
  for (const encoding of encodings) assert.equal(parseEncoding(encodingText(encoding)), encoding);
  assert.equal(parseEncoding('array-9:i64:no-rank'), { form: 'array-9', hashes: 'i64', rank: false, batch: 'array' });
  assert.throws(
    () => parseEncoding('array-10'),
    (error: unknown) => error instanceof ConfigError && error.code === 'encoding' && /array-9/.test(error.message),
  );
});

test.run();
