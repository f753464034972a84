// What the console's page is told, and how it words it: sums by the second, bounded rows, warnings, and why a request went where it went.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { LiveStreams } from '../src/live/live-streams.js';
import { Router } from '../src/router/router.js';
import { createConsole, REQUESTS_KEPT } from '../src/server/console.js';
import type { RankData, WorkerData } from '../src/server/console-data.js';
import { SECONDS_KEPT, SecondSeries } from '../src/server/console-series.js';
import { warningsOf } from '../src/server/console-warnings.js';
import type { RegisteredWorker } from '../src/server/types.js';
import { buckets, lastSeconds } from '../src/web/console/buckets.js';
import { amount, duration, milliseconds, quantile, share } from '../src/web/console/format.js';
import { choiceWords, creditWords, termRows } from '../src/web/console/why.js';
import { endedRequest, noPrompts } from './support/ended-request.js';

// ---- seconds ----

test('seconds in which nothing ended are zeros, and those older than ten minutes are gone', () => {
  const series = new SecondSeries();
  series.add(1_000_000, { requests: 1, blocks: 10, device: 4 });
  series.add(1_000_999, { requests: 1, blocks: 10, shared: 2 });
  series.add(1_003_000, { requests: 1 });
  const view = series.view(1_005_500);
  assert.is(view.requests.length, SECONDS_KEPT);
  assert.is(view.from + SECONDS_KEPT - 1, 1005);
  assert.equal(view.requests.slice(-6), [2, 0, 0, 1, 0, 0]);
  assert.equal(view.blocks.slice(-6), [20, 0, 0, 0, 0, 0]);
  assert.is(series.totals(1_005_500).device, 4);
  assert.is(series.totals(1_000_000 + 1000 * SECONDS_KEPT).requests, 1, 'the first second has left');
  assert.is(series.totals(9_000_000_000).requests, 0);
});

test('a clock that is set back neither throws nor counts twice', () => {
  const series = new SecondSeries();
  series.add(2_000_000, { requests: 1 });
  series.add(1_999_000, { requests: 1 });
  series.add(1_000, { requests: 1 });
  assert.is(series.totals(1_999_000).requests, 2);
  assert.is(series.view(1_000).from, 2000 - SECONDS_KEPT + 1);
});

test('bars begin at multiples of their width, and hold every second once', () => {
  const series = new SecondSeries();
  for (let second = 0; second < 700; second++) series.add(1000 * (50_000 + second), { requests: 1 });
  const view = series.view(1000 * 50_699);
  for (const width of [5, 10, 20, 30, 60]) {
    const bars = buckets(view, width);
    assert.ok(bars.every(({ from }) => from % width === 0));
    assert.ok(bars.slice(0, -1).every(({ seconds, sums }) => seconds === width && sums.requests === width));
    assert.is(bars.at(-1)!.from + bars.at(-1)!.seconds, 50_700);
  }
  assert.is(lastSeconds(view, 11).sums.requests, 11);
  assert.is(lastSeconds(view).sums.requests, SECONDS_KEPT);
});

// ---- what is kept ----

const registered = (id: string): RegisteredWorker => ({
  id,
  url: 'http://name:secret@10.0.0.1:8000',
  events: null,
  replay: null,
  topic: '',
  dpRanks: { start: 0, size: 1 },
  contract: null,
  configured: true,
  healthy: true,
  adapters: [],
  models: ['the-model'],
  contractFault: null,
});

async function withConsole(
  workers: readonly RegisteredWorker[],
  work: (made: ReturnType<typeof createConsole>, clock: { now: number }) => void,
): Promise<void> {
  const router = await Router.create({ index: { bytes: 1 << 20 } });
  const live = LiveStreams.open(router);
  for (const { id } of workers.slice(0, 20)) live.addWorker({ id, events: 'tcp://127.0.0.1:1' });
  const clock = { now: 5_000_000 };
  const registry = { list: () => workers };
  try {
    work(createConsole({ router, live, registry, prompts: { stats: noPrompts }, now: () => clock.now }), clock);
  } finally {
    live.close();
    router.dispose();
  }
}

test('the last requests are kept, and a page is told only those that it does not know', () =>
  withConsole([registered('w0')], (made) => {
    for (let i = 1; i <= 3 * REQUESTS_KEPT; i++) made.observer.ended(endedRequest({ id: `r${i}` }));
    const all = made.json().requests;
    assert.is(all.length, REQUESTS_KEPT);
    assert.equal([all[0]!.number, all.at(-1)!.number], [2 * REQUESTS_KEPT + 1, 3 * REQUESTS_KEPT]);
    assert.equal(
      made.json(3 * REQUESTS_KEPT - 2).requests.map(({ id }) => id),
      ['r599', 'r600'],
    );
    assert.equal(made.json(3 * REQUESTS_KEPT).requests, []);
  }));

test('refused requests are counted, and neither listed nor summed: a flood of them hides nothing', () =>
  withConsole([registered('w0')], (made, clock) => {
    const none = { device: 0, host: 0, disk: 0, shared: 0, request: 0 };
    for (let i = 0; i < 40; i++) made.observer.ended(endedRequest({ outcome: i % 2 ? 'failed' : 'completed' }));
    const before = made.json();
    for (const status of [401, 404, 400, 503]) {
      for (let i = 0; i < REQUESTS_KEPT; i++) {
        const worker = { id: '', dpRank: 0 };
        made.observer.ended(endedRequest({ outcome: 'refused', status, worker, model: '', blocks: none }));
      }
    }
    const after = made.json();
    assert.is(after.refused, 4 * REQUESTS_KEPT);
    assert.equal({ ...after, refused: 0 }, before);
    assert.ok(after.warnings.some(({ code }) => code === 'failures'));
    clock.now += 1000;
    made.observer.ended(endedRequest({}));
    assert.equal(
      made.json(40).requests.map(({ number }) => number),
      [41],
      'numbers have no holes',
    );
  }));

test('the answer is JSON, bounded, and without secrets', () =>
  withConsole(
    Array.from({ length: 1024 }, (_, i) => registered(`w${i}`)),
    (made) => {
      for (let i = 0; i < 300; i++) {
        made.observer.ended(endedRequest({ id: 'i'.repeat(100_000), model: 'm'.repeat(100_000) }));
        made.observer.fault(`fault of ${'x'.repeat(1000)} ${i}`);
      }
      const text = JSON.stringify(made.json());
      assert.ok(text.length < 600_000, `${text.length}`);
      assert.not.match(text, /secret/);
      const data = JSON.parse(text);
      assert.equal([data.workers.length, data.workersLeftOut, data.model], [256, 768, 'the-model']);
      assert.equal(data.faults, { other: 300 });
      assert.equal(data.workers[0].ranks[0].stream.lastSequence, null);
    },
  ));

test('sums count what was routed, and compare predictions of the same requests', () =>
  withConsole([registered('w0')], (made, clock) => {
    const none = { device: 0, host: 0, disk: 0, shared: 0, request: 0 };
    made.observer.ended(endedRequest({ predictedTokens: 48, cachedTokens: 32 }));
    made.observer.ended(endedRequest({ predictedTokens: 48, cachedTokens: null }));
    made.observer.ended(endedRequest({ outcome: 'failed', status: 502 }));
    made.observer.ended(endedRequest({ outcome: 'cancelled', status: 0, blocks: none }));
    clock.now += 400;
    const { sums } = lastSeconds(made.json().seconds);
    assert.equal(
      [sums.requests, sums.failed, sums.blocks, sums.device, sums.shared, sums.predicted, sums.reported],
      [4, 1, 18, 6, 3, 48, 32],
    );
  }));

// ---- warnings ----

const rank = (fields: Partial<RankData> = {}): RankData => ({
  dpRank: 0,
  admission: 'admitted',
  admissionText: null,
  load: { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 },
  resting: false,
  stream: null,
  ...fields,
});
const worker = (fields: Partial<WorkerData> = {}): WorkerData => ({
  id: 'w0',
  url: 'http://h',
  healthy: true,
  adapters: [],
  models: [],
  contractFault: null,
  draining: false,
  ranks: [rank()],
  ...fields,
});
const stream = {
  endpoint: 'tcp://h:1',
  connected: true,
  replay: 'none',
  lastSequence: '4',
  counts: { applied: 0, replayed: 0, duplicates: 0, gaps: 0, replays: 0, replayFailures: 0, restarts: 0 },
  rebuilds: {},
  losses: {},
  queued: 0,
  pauses: 0,
} as const;
const quiet = new SecondSeries().totals(0);
const well = {
  workers: [worker()],
  store: null,
  contracts: { ranks: 1, admitted: 1, reason: null },
  shares: true,
  derivation: {
    state: 'proven',
    text: 'Events of 1 of 1 rank have agreed.',
    provenRanks: 1,
    ranks: 1,
    unprovable: false,
  },
  prompts: noPrompts(),
} as const satisfies Parameters<typeof warningsOf>[0];
const down = { ...stream, connected: false, losses: { refused: 4, timeout: 1 } };

const WARNINGS: readonly [string, Partial<Parameters<typeof warningsOf>[0]>, Partial<typeof quiet>, RegExp | null][] = [
  ['all is well', {}, {}, null],
  ['nobody is there', { workers: [] }, {}, /^no-workers: .*POST \/workers/],
  ['one does not answer', { workers: [worker({ healthy: false }), worker()] }, {}, /^unhealthy: Worker w0 does not/],
  ['nobody can serve', { workers: [worker({ draining: true })] }, {}, /^none-healthy/],
  ['no contract', { contracts: { ranks: 1, admitted: 0, reason: 'because.' as never } }, {}, /^no-contract: .*because/],
  [
    'another contract',
    { workers: [worker({ ranks: [rank(), rank({ dpRank: 1, admission: 'contract-disagrees' })] })] },
    {},
    /^not-admitted: Worker w0 rank 1 .*contract-disagrees/,
  ],
  [
    'a contract that can’t be used',
    { workers: [worker({ contractFault: 'block size 8' })] },
    {},
    /^contract-fault: .*block size 8/,
  ],
  ['no contract needed', { workers: [worker({ contractFault: 'none' })], shares: false }, {}, null],
  [
    'no events',
    { workers: [worker({ ranks: [rank({ stream: down })] })] },
    {},
    /^stream-down: .*tcp:\/\/h:1 .*\(refused, 4 times\)/,
  ],
  [
    'missed messages without a replay socket',
    { workers: [worker({ ranks: [rank({ stream: { ...stream, rebuilds: { gap: 2 } } })] })] },
    {},
    /^no-replay: .*2 times/,
  ],
  ['a rank rests', { workers: [worker({ ranks: [rank({ resting: true })] })] }, {}, /^resting/],
  [
    'the store has something to say',
    { store: { warnings: ['The master is a standby.'] } as never },
    {},
    /^store: The master/,
  ],
  [
    'the tokenizer disagrees',
    { prompts: { ...noPrompts(), local: { state: 'disagrees', detail: '3 tokens of 4' } } },
    {},
    /^tokenizer: .*3 tokens of 4/,
  ],
  [
    'an engine hashes otherwise than its contract says',
    { derivation: { ...well.derivation, state: 'refuted', text: 'Of worker w0, rank 0, a block hash is 1.' } },
    {},
    /^hashes-refuted: Of worker w0/,
  ],
  [
    'no event can prove how engines hash',
    { derivation: { ...well.derivation, state: 'unproven', unprovable: true, text: 'Set sharedCache.trustSeed.' } },
    {},
    /^hashes-unprovable: Set sharedCache.trustSeed/,
  ],
  ['a rank has yet to prove how it hashes', { derivation: { ...well.derivation, state: 'proving' } }, {}, null],
  ['routing loses', {}, { requests: 50, achieved: 60, reachable: 100 }, /^routing-lost: .*60 %/],
  ['too few requests to tell', {}, { requests: 5, achieved: 0, reachable: 100 }, null],
  ['engines restore less', {}, { requests: 50, predicted: 1000, reported: 500 }, /^predicted-too-much: .*50 %/],
  ['many fail', {}, { requests: 50, failed: 20 }, /^failures: 40 %/],
];
for (const [name, facts, recent, expected] of WARNINGS) {
  test(`warnings: ${name}`, () => {
    const found = warningsOf({ ...well, ...facts }, { ...quiet, ...recent }).map(
      ({ code, text }) => `${code}: ${text}`,
    );
    if (expected === null) assert.equal(found, []);
    else assert.ok(found.length === 1 && expected.test(found[0]!), `${found}`);
  });
}

test('warnings are few, even when everything is wrong', () => {
  const workers = Array.from({ length: 100 }, (_, i) => worker({ id: `w${i}`, healthy: false }));
  const found = warningsOf({ ...well, workers }, quiet);
  assert.is(found.length, 20);
  assert.match(found.at(-1)!.text, /^And 82 more/);
});

// ---- why ----

const runnerUp = (cost: number) => ({ worker: { id: 'w1', dpRank: 2 }, rank: 1, cost });
const CHOICES: readonly [Partial<Parameters<typeof endedRequest>[0] & object>['decision'] & object, string][] = [
  [{}, 'The only candidate.'],
  [{ policy: 'mine', fallback: true }, 'mine priced nobody, so the least loaded one was taken.'],
  [{ policy: 'round-robin', runnerUp: runnerUp(1) }, 'Its turn came; w1 rank 2 is next.'],
  [{ policy: 'random', runnerUp: runnerUp(0) }, 'Drawn at random.'],
  [
    { policy: 'least-loaded', cost: 3, runnerUp: runnerUp(9.25) },
    'Cheapest at 3 blocks; next w1 rank 2 at 9.25 blocks.',
  ],
  [{ policy: 'ttft', cost: 17.25, runnerUp: runnerUp(2000) }, 'Soonest at 17.3\u202fms; next w1 rank 2 at 2.0\u202fs.'],
  [{ policy: 'least-loaded', cost: 4, runnerUp: runnerUp(4) }, 'As cheap as w1 rank 2 at 4 blocks.'],
  [
    { policy: 'least-loaded', cost: 4, runnerUp: runnerUp(3) },
    'Drawn by temperature at 4 blocks; w1 rank 2 was at 3 blocks.',
  ],
];
for (const [decision, words] of CHOICES) {
  test(`why: ${words}`, () => assert.is(choiceWords(endedRequest({ decision })), words));
}

test('no credit has its reason in words, and unknown codes stand as they are', () => {
  const words = (fields: Parameters<typeof endedRequest>[0]) => creditWords(endedRequest(fields));
  assert.is(words({}), null);
  assert.is(words({ sharedReason: 'not-learned' }), 'No shared credit: no worker has announced the next block yet.');
  assert.is(
    words({ sharedReason: 'not-proven', notProven: 'raw-salt' }),
    'No shared credit: nobody has proven that the prompt is text alone (raw-salt).',
  );
  assert.is(words({ sharedReason: 'new-code' }), 'No shared credit: new-code.');
  assert.is(
    words({ source: 'none', notProven: 'tokenize-failed' }),
    'Not tokenised (tokenize-failed), so routed by load.',
  );
});

test('terms of a real decision add up to its cost', async () => {
  const router = await Router.create({ index: { bytes: 1 << 20 } });
  router.addWorker({ id: 'w0' });
  router.addWorker({ id: 'w1' });
  const { lease, ...decision } = router.route({ tokens: Array.from({ length: 100 }, (_, i) => i) });
  const rows = new Map(termRows(endedRequest({ decision, blocks: decision.blocks })));
  lease.cancel(0);
  router.dispose();
  assert.is(rows.get('Policy'), 'kv');
  assert.is(rows.get('Prompt'), '7 blocks');
  const number = (name: string) => Number.parseFloat(rows.get(name)!);
  assert.is(number('Prefill') + number('Decode load') + number('Active requests'), number('Cost'));
});

test('numbers are as people read them', () => {
  assert.equal([share(1, 3), share(3, 3), share(0, 3), share(1, 0)], ['33.3\u202f%', '100\u202f%', '0\u202f%', '–']);
  assert.equal([amount(12345), amount(2.34567), amount(0)], ['12\u202f345', '2.35', '0']);
  assert.equal(
    [milliseconds(0.0523), milliseconds(12.345), milliseconds(2500)],
    ['52\u202fµs', '12.3\u202fms', '2.5\u202fs'],
  );
  assert.equal(
    [duration(75_000), duration(600_000), duration(3_900_000)],
    ['1\u202fmin 15\u202fs', '10\u202fmin', '1\u202fh 5\u202fmin'],
  );
  assert.equal([quantile([3, 1, 2], 0.5), quantile([], 0.5), quantile([1, 2], 0.99)], [2, null, 2]);
});

test.run();
