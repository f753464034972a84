// Recordings through the real path: what a loss takes away, which key lists count and which don't, sources merged by time; then the timelines
// of a running master, of which the last key list tells what must be resident.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Pace, speedOf } from '../src/cli/replay-pace.js';
import { openFiles } from '../src/cli/replay-read.js';
import type { StoreReport, WorkerReport } from '../src/cli/replay-report.js';
import { ReplaySession } from '../src/cli/replay-session.js';
import type { Contract } from '../src/contract/descriptor.js';
import { descriptorFromCase } from '../src/contract/from-case.js';
import { validateContract } from '../src/contract/validate.js';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import {
  headerLine,
  keysLine,
  messageLine,
  monitorLine,
  noteLine,
  sameKeysLine,
  statusLine,
} from '../src/live/recording-write.js';
import { blockStored, workerMessage } from '../src/sim/wire-worker-messages.js';
import { removed, stored, storeMessage } from './support/messages.js';

const folder = mkdtempSync(join(tmpdir(), 'moonroute-replay-'));
test.after(() => rmSync(folder, { recursive: true }));
let files = 0;

const PREFIXES = [0, 1].map((rank) => `pool-a@Qwen3-32B@tp_rank:${rank}@pcp0@dcp0@pp_rank:0@group:0`);
const CONTRACT: Contract = validateContract(
  descriptorFromCase({
    hash_block_size: 16,
    coordinator_alignment: 16,
    partial_hash_hits: false,
    main_event_block_size: 16,
    groups: [{ group_id: 0, kind: 'full_attention', block_size: 16, window: null, prefixes: PREFIXES }],
  }),
);

const STARTED = Date.UTC(2026, 10, 30);
const HEADER = headerLine(STARTED, [
  { name: 'w0', kind: 'worker', endpoint: 'tcp://127.0.0.1:1' },
  { name: 'store', kind: 'store', endpoint: 'tcp://127.0.0.1:2' },
]);

const digest = (block: number): string => block.toString(16).padStart(64, '0');
/** Both ranks' objects of a block. */
const keysOf = (...blocks: number[]): string[] =>
  blocks.flatMap((block) => PREFIXES.map((prefix) => `${prefix}@${digest(block)}`));
const put = (t: number, sequence: number, ...blocks: number[]): string =>
  messageLine(
    t,
    'store',
    'store',
    storeMessage(
      sequence,
      keysOf(...blocks).map((key) => stored(key)),
    ),
  );
const drop = (t: number, sequence: number, ...blocks: number[]): string =>
  messageLine(
    t,
    'store',
    'store',
    storeMessage(
      sequence,
      keysOf(...blocks).map((key) => removed(key)),
    ),
  );
const poll = (t: number): string => monitorLine(t, 'store', 'poll');
const status = (t: number, sequence: number): string =>
  statusLine(t, 'store', JSON.stringify({ enabled: true, published_batches: sequence, dropped_events: 0 }));
const list = (t: number, ...blocks: number[]): string => {
  const keys = keysOf(...blocks);
  return keysLine(t, 'store', keys.length, 0, keys);
};
const lost = (t: number, from = 'store'): string => monitorLine(t, from, 'lost', { cause: 'closed', detail: '' });
const connected = (t: number, from = 'store'): string => monitorLine(t, from, 'connected');

function file(text: string | Uint8Array, name = `recording-${files}.jsonl`): string {
  const path = join(mkdtempSync(join(folder, `${files++}-`)), name);
  writeFileSync(path, text);
  return path;
}

async function replayed(
  paths: readonly string[],
  contract: Contract | null = CONTRACT,
  speed = Number.POSITIVE_INFINITY,
) {
  const session = await ReplaySession.open(contract, undefined);
  for (const group of await openFiles(paths)) await session.replay(group, new Pace(speed));
  const store = session.reports.find((report): report is StoreReport => report.publisher === 'store');
  const worker = session.reports.find((report): report is WorkerReport => report.publisher === 'worker');
  const { clears } = session.cache.stats();
  return { session, store, worker, complete: session.cache.census()[0]?.complete, clears };
}

interface Row {
  readonly name: string;
  readonly lines: readonly string[];
  /** Digests that are complete at the end. */
  readonly complete: number;
  readonly accepted?: number;
  readonly refused?: Record<string, number>;
  readonly losses?: number;
}

const rows: readonly Row[] = [
  { name: 'messages alone', lines: [put(1, 1, 1, 2), put(2, 2, 3), drop(3, 3, 2)], complete: 2 },
  { name: 'a loss takes all', lines: [put(1, 1, 1, 2), lost(2), connected(3), put(4, 2, 3)], complete: 1, losses: 1 },
  {
    name: 'dropped messages are a loss',
    lines: [put(1, 1, 1, 2), noteLine(2, 'store', 'dropped', { messages: 1, bytes: 9 }), put(4, 3, 3)],
    complete: 1,
    losses: 1,
  },
  {
    name: 'a connection anew is one, also where its loss was not told',
    lines: [put(1, 1, 1, 2), connected(3), put(4, 2, 3)],
    complete: 1,
    losses: 1,
  },
  {
    name: 'connecting at first, or again and again, is no loss',
    lines: [lost(0), connected(0), lost(0), connected(0), put(1, 1, 1, 2)],
    complete: 2,
  },
  {
    name: 'a key list with a quiet stream counts when the status has not moved',
    lines: [put(1, 1, 1), poll(2), status(3, 1), list(4, 5, 6, 7), status(5, 1)],
    complete: 3,
    accepted: 1,
  },
  {
    name: 'and not before that is known',
    lines: [put(1, 1, 1), poll(2), status(3, 1), list(4, 5, 6, 7)],
    complete: 1,
  },
  {
    name: 'nor when it has moved and nothing was received',
    lines: [put(1, 1, 1), poll(2), status(3, 1), list(4, 5, 6, 7), status(5, 2)],
    complete: 1,
    refused: { 'status-moved': 1 },
  },
  {
    name: 'what was received behind the counters is applied again on top',
    lines: [put(1, 1, 1), poll(2), put(2, 2, 8), status(3, 2), drop(4, 3, 6), put(4, 4, 9), list(4, 5, 6, 7)],
    complete: 3, // 5, 7 and 9; 8 was stored before the list was read, which no longer has it
    accepted: 1,
  },
  {
    name: 'a list may be settled by the next message',
    lines: [put(1, 1, 1), poll(2), status(3, 1), list(4, 5, 6, 7), put(5, 2, 9)],
    complete: 4,
    accepted: 1,
  },
  {
    name: 'a slow joiner missed something',
    lines: [poll(0), status(1, 5), put(2, 7, 1), list(3, 1, 2, 3)],
    complete: 1,
    refused: { 'slow-joiner': 1 },
  },
  {
    name: 'a loss between question and list voids it',
    lines: [put(1, 1, 1), poll(2), status(3, 1), lost(3), connected(3), list(4, 5, 6), status(5, 1)],
    complete: 0,
    refused: { lost: 1 },
    losses: 1,
  },
  {
    name: 'a gap voids it',
    lines: [put(1, 1, 1), poll(2), status(3, 1), put(3, 9, 4), list(4, 5, 6), put(5, 10, 7)],
    complete: 2,
    refused: { gap: 1 },
  },
  {
    name: 'the same list again counts again; what was removed in silence goes',
    lines: [
      ...[poll(0), status(1, 0), list(2, 1, 2), status(3, 0)],
      ...[put(4, 1, 3), poll(5), status(6, 1), sameKeysLine(7, 'store', 4), status(8, 1)],
    ],
    complete: 2,
    accepted: 2,
  },
  {
    name: 'a list in pieces counts when it is whole',
    lines: [
      ...[poll(0), status(1, 0), keysLine(2, 'store', 6, 0, keysOf(1, 2)), keysLine(2, 'store', 6, 4, keysOf(3))],
      status(3, 0),
    ],
    complete: 3,
    accepted: 1,
  },
  {
    name: 'a list that lacks a piece does not',
    lines: [
      ...[poll(0), status(1, 0), keysLine(2, 'store', 6, 0, keysOf(1)), keysLine(2, 'store', 6, 4, keysOf(3))],
      // As many keys as there should be, but not the same ones.
      ...[keysLine(2, 'store', 6, 4, keysOf(4)), status(3, 0)],
    ],
    complete: 0,
  },
  {
    name: 'without poll lines the status opens the window',
    lines: [status(1, 0), list(2, 1, 2), status(3, 0), list(4, 1), put(5, 1, 7)],
    complete: 2,
    accepted: 2,
  },
];
for (const { name, lines, complete, accepted = 0, refused = {}, losses = 0 } of rows) {
  test(name, async () => {
    const got = await replayed([file([HEADER, ...lines].join(''))]);
    assert.equal(
      { complete: got.complete, ...got.store!.reconciles, losses: got.store!.losses },
      { complete, accepted, refused, losses },
    );
  });
}

const learned = (t: number, from: string, sequence: number, parent: bigint | null, ...hashes: bigint[]): string => {
  const tokens = Uint32Array.from({ length: hashes.length * 16 }, (_, i) => i);
  return messageLine(t, from, 'worker', workerMessage(sequence, [blockStored(parent, hashes, tokens, 0)]));
};

test('workers teach; their losses begin another life, in which sequences may begin anew', async () => {
  const lines = [
    ...[HEADER, connected(0, 'w0'), learned(1, 'w0', 0, null, 1n, 2n), learned(2, 'w0', 1, 2n, 3n)],
    ...[lost(3, 'w0'), connected(4, 'w0'), learned(5, 'w0', 0, 3n, 4n), learned(6, 'w0', 5, 4n, 5n)],
  ];
  const { worker, session } = await replayed([file(lines.join(''))]);
  assert.equal([worker!.messages, worker!.losses, worker!.gaps, worker!.learned?.blocks], [4, 1, 1, 5]);
  assert.is(session.cache.stats().core!.edges, 5);
});

test('what was learned of a worker is forgotten with its life: which groups are which, for one', async () => {
  const of = (t: number, sequence: number, group: number, kind: string | null) => {
    const { kv_cache_spec_kind, ...event } = blockStored(null, [BigInt(t)], new Uint32Array(16), group);
    const kinds = kind === null ? {} : { kv_cache_spec_kind };
    return messageLine(t, 'w0', 'worker', workerMessage(sequence, [{ ...event, ...kinds }]));
  };
  const before = [HEADER, of(1, 0, 2, 'full_attention'), of(2, 1, 2, null)];
  const dropped = async (lines: string[]) => (await replayed([file(lines.join(''))])).worker!.counts.dropped;
  assert.equal(await dropped([...before, of(4, 2, 2, null)]), {});
  assert.equal(await dropped([...before, lost(3, 'w0'), of(4, 2, 2, null)]), { unlearned_group_idx: 1 });
});

test("without a contract a recording's workers are read, and its master's messages are counted", async () => {
  const { store, worker } = await replayed(
    [file([HEADER, learned(1, 'w0', 0, null, 1n), put(2, 1, 1)].join(''))],
    null,
  );
  assert.equal(store!.fates, { 'no-contract': 1 });
  assert.equal(store!.notable, []);
  assert.is(worker!.counts.stored, 1);
});

test('recordings that stand together are one timeline, by their own beginnings; a source is one by its name', async () => {
  const later = headerLine(STARTED + 1000, [{ name: 'store', kind: 'store', endpoint: 'tcp://127.0.0.1:2' }]);
  const one = file([HEADER, put(0, 1, 1), put(1500, 3, 3)].join(''));
  const two = file([later, put(100, 2, 2), put(900, 4, 4)].join(''), 'other.jsonl');
  for (const order of [
    [one, two],
    [two, one],
  ]) {
    const { store, complete, session } = await replayed(order);
    assert.equal([store!.fates, complete, session.reports.length], [{ applied: 4 }, 4, 1]);
  }
});

test('captures have no times: each is a connection of its own, in the order given', async () => {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
  const capture = (sequence: number, block: number) => {
    const payload = storeMessage(
      sequence,
      keysOf(block).map((key) => stored(key)),
    )[2]!;
    return file(`${JSON.stringify({ seq: String(sequence), topic: '', payload: hex(payload) })}\n`);
  };
  const { complete, clears, session } = await replayed([capture(1, 1), capture(2, 2)]);
  assert.equal([complete, clears['reconnect'], session.reports.length], [1, 1, 2]);
});

test('packed recordings are read; one without its end is read as far as it goes', async () => {
  const text = [HEADER, ...Array.from({ length: 2000 }, (_, i) => put(i, i + 1, i + 1))].join('');
  const packed = gzipSync(text);
  const whole = await replayed([file(packed, 'whole.jsonl.gz')]);
  assert.equal([whole.complete, whole.session.cut], [2000, []]);
  const cut = await replayed([file(packed.subarray(0, packed.length - 2000), 'cut.jsonl.gz')]);
  assert.ok(cut.complete! > 500 && cut.complete! < 2000, `${cut.complete}`);
  assert.is(cut.session.cut.length, 1);
  const torn = await replayed([file(text.slice(0, -30))]);
  assert.equal([torn.complete, torn.session.cut[0]!.why], [1999, 'line 2001 has no end']);
});

test('a bad line in the midst is an error that names file and line', async () => {
  const path = file([HEADER, put(1, 1, 1), '{"t":2,"kind":"store","frames":["?"]}\n', put(3, 2, 1)].join(''));
  const error = await replayed([path]).then(
    () => null,
    (error: MoonrouteError) => error,
  );
  assert.instance(error, MoonrouteError);
  assert.is(error!.code, 'recording-line');
  assert.match(error!.message, `${path}:3: frame 0`);
});

test('files that are none, and too many of them, are refused', async () => {
  const codeOf = (paths: string[]) =>
    openFiles(paths).then(
      () => null,
      (error: MoonrouteError) => error.code,
    );
  assert.is(await codeOf([join(folder, 'nowhere.jsonl')]), 'file-unreadable');
  assert.is(await codeOf([folder]), 'file-unreadable');
  assert.is(await codeOf([file('hello\n')]), 'capture-line');
  assert.is(await codeOf(Array.from({ length: 257 }, () => 'x')), 'too-many-files');
});

test('speeds', () => {
  assert.equal(['max', 'original', '2x', '0.5x'].map(speedOf), [Number.POSITIVE_INFINITY, 1, 2, 0.5]);
  for (const text of ['fast', '0x', '-1x', '2', 'x', '1e9x'])
    assert.throws(
      () => speedOf(text),
      (error: unknown) => error instanceof ConfigError,
    );
});

test('a pace keeps the times between what is seen, whatever was slow before', async () => {
  let now = 1000;
  const sleeps: number[] = [];
  const sleep = async (ms: number) => {
    sleeps.push(ms);
    now += ms;
  };
  const pace = new Pace(2, () => now, sleep);
  for (const at of [500, 500, 700, null, 800, 1500]) {
    await pace.until(at);
    if (at === 700) now += 80; // work that took longer than there was time for
  }
  assert.equal(sleeps, [100, 320]);
  assert.is(now, 1000 + (1500 - 500) / 2);
  assert.is(new Pace(Number.POSITIVE_INFINITY).until(1e9), null);
});

test('a recording replayed at a factor takes its time', async () => {
  const path = file([HEADER, put(0, 1, 1), put(600, 2, 2)].join(''));
  const began = performance.now();
  await replayed([path], CONTRACT, 4);
  const took = performance.now() - began;
  assert.ok(took >= 145, `${took} ms`);
});

// ---- a running master's timelines ----

const RECORDINGS = 'test/fixtures/mooncake-recordings';

for (const name of ['steady', 'silent-removals', 'late-joiner', 'restart']) {
  test(`what is resident after the timeline ${name} is what its last key list says`, async () => {
    const path = join(RECORDINGS, `${name}.jsonl.gz`);
    let keys: string[] = [];
    for (const line of gunzipSync(readFileSync(path)).toString().trim().split('\n')) {
      const row = JSON.parse(line);
      if (row.kind === 'keys' && row.same !== true) keys = row.keys;
    }
    const ranks = new Map<string, number>();
    for (const key of keys) {
      const digest = key.slice(key.lastIndexOf('@') + 1);
      ranks.set(digest, (ranks.get(digest) ?? 0) + 1);
    }
    const { store, session, complete } = await replayed([path]);
    const census = session.cache.census()[0]!;
    assert.equal([census.objects, complete], [keys.length, [...ranks.values()].filter((count) => count === 2).length]);
    assert.ok(store!.reconciles.accepted > 10, JSON.stringify(store!.reconciles));
    assert.is(store!.losses, name === 'restart' ? 1 : 0);
  });
}

test.run();
