// Requests rebuilt from recorded KV events, held against the requests that an engine was given: what it announces is made here by the rules of
// a real one (chunked prefill, cached prefixes, a block once it is full), so the truth is known.
import { gzipSync } from 'node:zlib';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { headerLine, messageLine, monitorLine, noteLine } from '../src/live/recording-write.js';
import { TraceIds } from '../src/sim/traces/ids.js';
import {
  CHUNK_GAP_MS,
  DECODE_GAP_MS,
  type RebuiltRequest,
  RecordingChains,
  SAME_STEP_MS,
} from '../src/sim/traces/recording-chains.js';
import { blockRemoved, blockStored, workerMessage } from '../src/sim/wire-worker-messages.js';
import { Random } from './support/random.js';
import { bytesOf, countsOf, readAll, readLines } from './support/traces.js';

const BLOCK = 16;
const STARTED = Date.UTC(2026, 10, 30);
const HEADER = headerLine(STARTED, [{ name: 'w0', kind: 'worker', endpoint: 'tcp://127.0.0.1:1' }]).trimEnd();

type Stored = readonly [t: number, parent: bigint | null, hashes: readonly bigint[], more?: object];

/** A recording's lines of one worker: a message for each event. */
function recorded(events: readonly Stored[], from = 'w0', first = 0): string[] {
  return events.map(([t, parent, hashes, more = {}], i) => {
    const tokens = new Uint32Array(hashes.length * BLOCK);
    const event = { ...blockStored(parent, hashes, tokens, 0), ...more };
    return messageLine(t, from, 'worker', workerMessage(first + i, [event])).trimEnd();
  });
}

const range = (first: number, count: number): bigint[] => Array.from({ length: count }, (_, i) => BigInt(first + i));

/** Prompt blocks, output tokens and arrivals of what was rebuilt. */
const seen = async (lines: readonly string[]) => {
  const { requests, report } = await readLines(lines);
  return {
    report,
    counts: countsOf(report),
    prompts: requests.map(({ hashIds }) => hashIds!.length),
    outputs: requests.map(({ outputTokens }) => outputTokens),
    at: requests.map(({ at }) => at),
    requests,
  };
};

interface Row {
  readonly name: string;
  readonly events: readonly Stored[];
  /** Blocks of each prompt, and tokens of each output. */
  readonly prompts: readonly number[];
  readonly outputs: readonly number[];
  readonly warned?: readonly string[];
}

const rows: readonly Row[] = [
  { name: 'one event is one prompt', events: [[0, null, range(1, 5)]], prompts: [5], outputs: [1] },
  {
    name: 'chunks that follow each other are one prompt',
    events: [
      [0, null, range(1, 4)],
      [CHUNK_GAP_MS, 4n, range(5, 4)],
      [CHUNK_GAP_MS + SAME_STEP_MS, 8n, range(9, 1)],
    ],
    prompts: [9],
    outputs: [1],
  },
  {
    name: 'one block after the other is the output',
    events: [
      [0, null, range(1, 4)],
      [320, 4n, [5n]],
      [640, 5n, [6n]],
      [640 + DECODE_GAP_MS, 6n, [7n]],
    ],
    prompts: [4],
    outputs: [48],
  },
  {
    name: 'several blocks behind an output are the next turn, whose prompt has all before it',
    events: [
      [0, null, range(1, 4)],
      [320, 4n, [5n]],
      [900, 5n, range(6, 3)],
    ],
    prompts: [4, 8],
    outputs: [16, 1],
  },
  {
    name: 'what comes late at the end of a prompt is the next turn',
    events: [
      [0, null, range(1, 4)],
      [CHUNK_GAP_MS + 1, 4n, range(5, 3)],
    ],
    prompts: [4, 7],
    outputs: [1, 1],
  },
  {
    name: 'a branch shares the blocks before it',
    events: [
      [0, null, range(1, 6)],
      [10, 3n, range(100, 2)],
    ],
    prompts: [6, 5],
    outputs: [1, 1],
  },
  {
    name: 'one new block behind a cached prompt',
    events: [
      [0, null, range(1, 6)],
      [10, 3n, [100n]],
    ],
    prompts: [6, 4],
    outputs: [1, 1],
    warned: ['recording-one-block'],
  },
  {
    name: 'blocks that are stored again are a prompt again',
    events: [
      [0, null, range(1, 6)],
      [50_000, null, range(1, 6)],
    ],
    prompts: [6, 6],
    outputs: [1, 1],
  },
  {
    name: 'a chain that began before the recording begins with the block that is known of it',
    events: [
      [0, 900n, range(1, 3)],
      [10, 900n, range(50, 2)],
    ],
    prompts: [4, 3],
    outputs: [1, 1],
    warned: ['recording-unknown-root'],
  },
  {
    name: 'other groups, tiers and block sizes show no prompt',
    events: [
      [0, null, range(1, 3)],
      [1, null, range(20, 3), { kv_cache_spec_kind: 'mamba' }],
      [2, null, range(30, 3), { medium: 'CPU' }],
      [3, null, range(40, 3), { block_size: 8 }],
      [4, null, range(60, 3), { medium: 'TAPE' }],
    ],
    prompts: [3],
    outputs: [1],
    warned: ['recording-other-group', 'recording-other-tier', 'recording-other-block-size', 'recording-dropped-event'],
  },
];

for (const { name, events, prompts, outputs, warned = [] } of rows) {
  test(name, async () => {
    const got = await seen([HEADER, ...recorded(events)]);
    assert.is(got.report.format, 'recording');
    assert.equal(got.prompts, prompts);
    assert.equal(got.outputs, outputs);
    assert.is(got.counts['recording-estimate'], prompts.length);
    const always = ['recording-estimate', 'recording-no-output'];
    assert.equal(
      Object.keys(got.counts).filter((code) => !always.includes(code)),
      warned,
    );
  });
}

test('ids name whole prefixes: they are shared exactly where chains are, also between workers', async () => {
  const one = recorded([[0, null, range(1, 4)]]);
  const two = recorded([[5, null, [1n, 2n, 8n, 9n]]], 'w1');
  const { requests, report } = await readLines([HEADER, ...one, ...two]);
  assert.equal(
    requests.map(({ hashIds }) => [...hashIds!]),
    [
      [0, 1, 2, 3],
      [0, 1, 4, 5],
    ],
  );
  assert.equal([requests[0]!.idTokens, requests[0]!.inputTokens, requests[0]!.fullIds], [BLOCK, 4 * BLOCK, 4]);
  assert.is(report.distinctIds, 6);
});

test('only the worker that runs a request makes it grow', async () => {
  const lines = [
    HEADER,
    ...recorded([[0, null, range(1, 4)]]),
    ...recorded([[100, 4n, [5n]]], 'w1'),
    ...recorded([[200, 4n, [5n]]], 'w0', 1),
  ];
  const { prompts, outputs } = await seen(lines);
  assert.equal(
    [prompts, outputs],
    [
      [4, 5],
      [16, 1],
    ],
  );
});

test('a loss, a gap and a clear end what runs; what is missed is counted once', async () => {
  const begin = recorded([[0, null, range(1, 4)]]);
  const grow = recorded([[100, 4n, [5n]]], 'w0', 1);
  const late = recorded([[100, 4n, [5n]]], 'w0', 7);
  const lost = [monitorLine(50, 'w0', 'lost'), monitorLine(60, 'w0', 'connected')].map((line) => line.trimEnd());
  const hole = [noteLine(50, 'w0', 'dropped', { messages: 1 }).trimEnd()];
  const cleared = [
    messageLine(50, 'w0', 'worker', workerMessage(1, [{ type: 'AllBlocksCleared' }])).trimEnd(),
    ...recorded([[100, 4n, [5n]]], 'w0', 2),
  ];
  const outputOf = async (...lines: string[]) => {
    const { outputs, counts } = await seen([HEADER, monitorLine(0, 'w0', 'connected').trimEnd(), ...lines]);
    return [outputs[0], counts['recording-loss'] ?? 0];
  };
  assert.equal(await outputOf(...begin, ...grow), [16, 0]);
  assert.equal(await outputOf(...begin, ...lost, ...grow), [1, 1]);
  assert.equal(await outputOf(...begin, ...hole, ...grow), [1, 1]);
  assert.equal(await outputOf(...begin, ...late), [1, 1]);
  assert.equal(await outputOf(...begin, ...cleared), [1, 0]);
  assert.equal(await outputOf(...begin, ...begin, ...grow), [16, 0]); // a duplicate says nothing
});

test('lines that can not be read are skipped, messages that can not be read are counted', async () => {
  const bad = workerMessage(3, [{ type: 'BlockStored' }, blockRemoved(1n, 0)]);
  const lines = [
    HEADER,
    '{"t":1,"from":"w0","kind":"worker","frames":["!"]}',
    '{"t":',
    ...recorded([[2, null, range(1, 2)]]),
    messageLine(3, 'w0', 'worker', bad).trimEnd(),
    messageLine(4, 'w0', 'worker', [new Uint8Array(0)]).trimEnd(),
    '{"t":5,"kind":"of the future"}',
  ];
  const { report, counts } = await seen(lines);
  assert.equal([report.rows, report.requests, report.skipped], [3, 1, 2]);
  assert.equal([counts['malformed-row'], counts['recording-bad-event'], counts['recording-unreadable']], [2, 1, 1]);
});

test('a recording of a master alone holds no request, and says why', async () => {
  const lines = [
    '{"t":42,"kind":"monitor","event":"connect"}',
    '{"t":43,"kind":"zmq","frames":["","0000000000000001","920090"]}',
  ];
  const { report, counts } = await seen(lines);
  assert.equal([report.format, report.requests, counts['recording-no-worker']], ['recording', 0, 1]);
});

test('parts that are joined are one recording, packed or not', async () => {
  const lines = [HEADER, ...recorded([[0, null, range(1, 4)]]), HEADER, ...recorded([[320, 4n, [5n]]], 'w0', 1)];
  const packed = await readAll([new Uint8Array(gzipSync(bytesOf(...lines)))]);
  assert.equal(
    packed.requests.map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens]),
    [[64, 16]],
  );
  assert.is(packed.report.gzip, true);
  // A recording that began two seconds later.
  const later = headerLine(STARTED + 2000, []).trimEnd();
  const { at } = await seen([...lines.slice(0, 2), later, ...recorded([[5, null, range(9, 1)]], 'w1')]);
  assert.equal(at, [0, 2005]);
});

test('a block size of choice counts', async () => {
  const events: Stored[] = [
    [0, null, range(1, 3)],
    [1, null, range(40, 2), { block_size: 32 }],
  ];
  const { requests } = await readLines([HEADER, ...recorded(events)], { idTokens: 32 });
  assert.equal(
    requests.map(({ inputTokens, idTokens }) => [inputTokens, idTokens]),
    [[64, 32]],
  );
});

// ---- chains alone ----

/** Chains of one worker, and all that is there to be taken. */
function chainsOf(maxWaiting?: number) {
  const ids = new TraceIds();
  const chains = new RecordingChains(ids, maxWaiting);
  const store = (at: number, parent: bigint | null, ...hashes: bigint[]) =>
    chains.stored({
      ...{ publisher: 'w0/0', worker: 'w0', at, line: 1 },
      parent: parent === null ? null : ids.numberOf(parent),
      blocks: hashes.map((hash) => ids.numberOf(hash)),
    });
  const taken = (): RebuiltRequest[] => {
    const all: RebuiltRequest[] = [];
    for (let next = chains.take(); next !== null; next = chains.take()) all.push(next);
    return all;
  };
  return { chains, store, taken };
}

test('requests come in order of arrival, when they are idle', () => {
  const { store, chains, taken } = chainsOf();
  store(0, null, 1n, 2n);
  store(10, null, 11n, 12n);
  store(DECODE_GAP_MS, 2n, 3n);
  assert.equal(taken(), []); // the second is idle in a moment, but the first goes on
  chains.advance(2 * DECODE_GAP_MS + 1);
  assert.equal(
    taken().map(({ at, outputBlocks }) => [at, outputBlocks]),
    [
      [0, 1],
      [10, 0],
    ],
  );
});

test('of too many that run, the first ends early and is marked', () => {
  const { store, chains, taken } = chainsOf(2);
  for (const first of [10n, 20n, 30n, 40n]) store(Number(first), null, first, first + 1n);
  assert.equal(
    taken().map(({ at, cutShort }) => [at, cutShort]),
    [
      [10, true],
      [20, true],
    ],
  );
  chains.end();
  assert.equal(
    taken().map(({ at, cutShort }) => [at, cutShort]),
    [
      [30, false],
      [40, false],
    ],
  );
});

test('a chain that runs in a circle, which no engine makes, has an end', () => {
  const { store, chains, taken } = chainsOf();
  store(0, 2n, 1n);
  store(0, 1n, 2n);
  store(0, 5n, 5n);
  chains.end();
  for (const { prompt, rootUnknown } of taken()) {
    assert.ok(prompt.length <= 131_072);
    assert.is(rootUnknown, true);
  }
});

test('a root that is learned later counts for what comes then', () => {
  const { store, chains, taken } = chainsOf();
  store(0, 3n, 4n, 5n);
  store(1, null, 1n, 2n, 3n);
  store(2 * CHUNK_GAP_MS, 3n, 6n, 7n);
  chains.end();
  assert.equal(
    taken().map(({ prompt, rootUnknown }) => [prompt.length, rootUnknown]),
    [
      [5, false],
      [3, false],
      [5, false],
    ],
  );
});

test('the first word on what stands before a block holds', () => {
  const { store, chains, taken } = chainsOf();
  store(0, null, 1n, 2n, 3n);
  store(1, null, 9n, 3n);
  chains.end();
  assert.equal(
    taken().map(({ prompt }) => [...prompt]),
    [
      [0, 1, 2],
      [0, 1, 2],
    ],
  );
});

// ---- an engine of which the truth is known ----

interface Given {
  readonly at: number;
  readonly worker: number;
  /** Names of the prompt's full blocks: a name stands for all before it. */
  readonly prompt: readonly bigint[];
  readonly tail: number;
  readonly output: number;
}

const STEP_MS = 25;
const CHUNK_BLOCKS = 32;

/** What each request's worker announces, by time. Caches are without a limit, so that nothing is stored twice. */
function announced(given: readonly Given[]): { readonly lines: string[]; readonly silent: Set<number> } {
  const caches = [new Set<bigint>(), new Set<bigint>()];
  const events: { at: number; worker: number; parent: bigint | null; hashes: readonly bigint[] }[] = [];
  const silent = new Set<number>();
  let made = 1n << 40n;
  for (const [place, { at, worker, prompt, tail, output }] of given.entries()) {
    const cache = caches[worker]!;
    let done = 0;
    while (done < prompt.length && cache.has(prompt[done]!)) done++;
    let now = at;
    let any = false;
    let last = done === 0 ? null : prompt[done - 1]!;
    for (; done < prompt.length; done += CHUNK_BLOCKS, now += STEP_MS) {
      const hashes = prompt.slice(done, done + CHUNK_BLOCKS);
      events.push({ at: now, worker, parent: last, hashes });
      for (const hash of hashes) cache.add(hash);
      last = hashes.at(-1)!;
      any = true;
    }
    // The keys and values of the last token are never made.
    for (let token = 1; token < output; token++) {
      now += STEP_MS;
      if ((tail + token) % BLOCK !== 0) continue;
      const hash = made++;
      events.push({ at: now, worker, parent: last, hashes: [hash] });
      last = hash;
      any = true;
    }
    if (!any) silent.add(place);
  }
  events.sort((a, b) => a.at - b.at);
  const sequences = [0, 0];
  const lines = events.map(({ at, worker, parent, hashes }) => {
    const event = blockStored(parent, hashes, new Uint32Array(hashes.length * BLOCK), 0);
    return messageLine(at, `w${worker}`, 'worker', workerMessage(sequences[worker]!++, [event])).trimEnd();
  });
  return { lines, silent };
}

for (const seed of [1, 2, 3]) {
  test(`rebuilt requests are those that were given: seed ${seed}`, async () => {
    const random = new Random(seed);
    let name = 1n;
    const fresh = (count: number): bigint[] => Array.from({ length: count }, () => name++);
    const systems = [fresh(40), fresh(7), fresh(90)];
    const given: Given[] = [];
    for (let i = 0, at = 0; i < 300; i++) {
      at += 1 + random.int(400);
      // Every tenth asks what was asked before, so that its worker may make no event of its prompt.
      const old = given[random.int(Math.max(1, given.length))];
      const prompt =
        i % 10 === 9 && old !== undefined ? old.prompt : [...systems[random.int(3)]!, ...fresh(2 + random.int(80))];
      given.push({ at, worker: random.int(2), prompt, tail: random.int(BLOCK), output: 1 + random.int(200) });
    }
    const { lines, silent } = announced(given);
    const { requests, report } = await readLines([HEADER, ...lines]);
    // A prompt that was all cached shows as its output at most: those are left out of the comparison.
    const caches = [new Set<bigint>(), new Set<bigint>()];
    const shown = given.filter(({ worker, prompt }) => {
      const isNew = prompt.some((hash) => !caches[worker]!.has(hash));
      for (const hash of prompt) caches[worker]!.add(hash);
      return isNew;
    });
    const rebuilt = requests.filter(({ at }) => shown.some((one) => one.at === at));
    assert.is(rebuilt.length, shown.length);
    assert.ok(requests.length <= given.length - silent.size, `${requests.length} of ${given.length}`);
    const numbers = new Map<bigint, number>();
    let exact = 0;
    for (const [i, { at, worker, prompt, tail, output }] of shown.entries()) {
      const request = rebuilt[i]!;
      const ids = request.hashIds!;
      assert.is(request.at, at);
      // A last chunk of one block looks like output.
      assert.ok(ids.length === prompt.length || ids.length === prompt.length - 1, `${ids.length} of ${prompt.length}`);
      // The same block has the same id in every prompt, and no other has it.
      for (const [place, id] of ids.entries()) {
        assert.is(numbers.get(prompt[place]!) ?? id, id);
        numbers.set(prompt[place]!, id);
      }
      assert.is(request.inputTokens, ids.length * BLOCK);
      // What was asked again, with all cached, had its first block of output taken for more of this one's.
      if (given.some((other) => other.at > at && other.worker === worker && other.prompt === prompt)) continue;
      const blocks = Math.floor((tail + output - 1) / BLOCK) + prompt.length - ids.length;
      assert.is(request.outputTokens, Math.max(1, blocks * BLOCK));
      if (ids.length < prompt.length) continue;
      exact++;
      assert.ok(Math.abs(request.outputTokens - output) <= BLOCK, `${request.outputTokens} for ${output}`);
    }
    assert.ok(exact > 0.8 * shown.length, `${exact} of ${shown.length}`);
    assert.is(new Set(numbers.values()).size, numbers.size);
    assert.is(countsOf(report)['recording-loss'], undefined);
    assert.is(countsOf(report)['recording-unknown-root'], undefined);
    const times = requests.map(({ at }) => at);
    assert.equal(
      times,
      times.toSorted((a, b) => a - b),
    );
  });
}

test.run();
