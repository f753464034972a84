// Leases and the load that they make, without the collector: phases, ends, bounds, what an observer is told, and a long random run held
// against a list of the open leases (design.md 7). What the collector does to leases is in router-leases-gc.test.ts.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import type { PrefixMarks } from '../src/router/feedback.js';
import {
  type LeaseObservation,
  type LeaseOptions,
  type LeaseRequest,
  MAX_OPEN_LEASES,
} from '../src/router/lease-types.js';
import { type Lease, LeaseTable } from '../src/router/leases.js';
import { LoadTable, MAX_LOAD_RANKS, prefillTokensOf } from '../src/router/load.js';
import { Random } from './support/random.js';

const IDLE = { activeRequests: 0, prefillTokens: 0, decodeBlocks: 0 };
const REQUEST: LeaseRequest = { rank: 1, promptTokens: 100, localTokens: 32, blockSize: 16 };
const PREFIX: PrefixMarks = { blocks: 5, fingerprints: Float64Array.of(1, 2, 3, 4, 5), generation: 0 };

/** A table of four ranks, with everything that its observer hears. */
function open(options: LeaseOptions = {}) {
  const load = new LoadTable(4);
  const heard: LeaseObservation[] = [];
  const leases = new LeaseTable(load, { observer: { leaseEnded: (seen) => heard.push(seen) }, ...options });
  const on = (rank: number) => {
    const { activeRequests, prefillTokens, decodeBlocks } = load.of(rank);
    return { activeRequests, prefillTokens, decodeBlocks };
  };
  return { load, leases, heard, on };
}

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    assert.instance(error, MoonrouteError);
    return (error as MoonrouteError).code;
  }
  return 'none';
}

test('an open lease adds a request, its prompt less the local overlap, and its blocks rounded up', () => {
  const { leases, on } = open();
  leases.open(REQUEST, 0);
  assert.equal(on(1), { activeRequests: 1, prefillTokens: 68, decodeBlocks: 7 });
  for (const rank of [0, 2, 3]) assert.equal(on(rank), IDLE);
});

test('shared credit does not lower the prefill load', () => {
  const { leases, on } = open();
  leases.open({ ...REQUEST, sharedTokens: 64 }, 0);
  assert.is(on(1).prefillTokens, 68);
});

test('a closed share changes nothing more', () => {
  const { load, on } = open();
  const share = load.open(2, 40, 3);
  const other = load.open(2, 10, 1);
  share.close();
  share.close();
  share.growTo(9);
  share.prefillLeft(1);
  assert.equal(on(2), { activeRequests: 1, prefillTokens: 10, decodeBlocks: 1 });
  other.close();
  assert.equal(on(2), IDLE);
});

test('more local overlap than prompt leaves nothing to prefill', () => {
  assert.is(prefillTokensOf(100, 112), 0);
  const { leases, on } = open();
  leases.open({ ...REQUEST, localTokens: 112 }, 0);
  assert.is(on(1).prefillTokens, 0);
});

test('where prefill is not tracked a request has blocks only', () => {
  const { leases, on } = open();
  leases.open({ ...REQUEST, tracksPrefill: false }, 0).prefillProgress(50);
  assert.equal(on(1), { activeRequests: 1, prefillTokens: 0, decodeBlocks: 7 });
});

test('chunked prefill lowers the tokens to be prefilled and never raises them', () => {
  const { leases, on } = open();
  const lease = leases.open(REQUEST, 0);
  const left = (tokens: number) => {
    lease.prefillProgress(tokens);
    return on(1).prefillTokens;
  };
  assert.is(left(16), 68, 'within the overlap');
  assert.is(left(64), 36);
  assert.is(left(48), 36, 'an older report');
  assert.is(left(64), 36, 'the same report');
  assert.is(left(200), 0);
});

test('prefilled takes all prefill tokens, and generated tokens grow the blocks', () => {
  const { leases, on } = open();
  const lease = leases.open(REQUEST, 0);
  lease.prefilled(5);
  assert.equal(on(1), { activeRequests: 1, prefillTokens: 0, decodeBlocks: 7 });
  lease.progress(12, 6);
  assert.is(on(1).decodeBlocks, 7);
  lease.progress(13, 7);
  assert.is(on(1).decodeBlocks, 8);
  lease.progress(1, 8);
  assert.is(on(1).decodeBlocks, 8, 'an older report');
});

test('the first generated token says that the prompt is prefilled', () => {
  const { leases, on, heard } = open();
  const lease = leases.open(REQUEST, 0);
  lease.progress(0, 3);
  assert.is(on(1).prefillTokens, 68);
  lease.progress(1, 4);
  assert.is(on(1).prefillTokens, 0);
  lease.complete(9);
  assert.is(heard[0]!.timeToFirstToken, 4);
});

const ENDS = [
  { end: 'complete', outcome: 'completed' },
  { end: 'fail', outcome: 'failed' },
  { end: 'cancel', outcome: 'cancelled' },
] as const;

for (const { end, outcome } of ENDS) {
  test(`${end} returns all load, and ends after it change nothing`, () => {
    const { leases, on, heard } = open();
    const lease = leases.open(REQUEST, 0);
    lease.progress(500, 1);
    lease[end](2);
    assert.equal(on(1), IDLE);
    const counts = leases.stats();
    lease.complete(3);
    lease.fail(4);
    lease.cancel(5);
    assert.equal(leases.stats(), counts);
    const { open: left, opened, completed, failed, cancelled, late } = counts;
    assert.equal(
      { left, opened, completed, failed, cancelled, late },
      { left: 0, opened: 1, completed: 0, failed: 0, cancelled: 0, late: 0, [outcome]: 1 },
    );
    assert.is(lease.outcome, outcome);
    assert.equal(
      heard.map((seen) => [seen.outcome, seen.endedAt, seen.generatedTokens]),
      [[outcome, 2, 500]],
    );
  });
}

for (const end of ['fail', 'cancel'] as const) {
  test(`${end} says nothing of cached tokens, and names the prefix all the same`, () => {
    const { leases, heard } = open();
    leases.open({ ...REQUEST, sharedTokens: 48, prefix: PREFIX }, 0)[end](7);
    const { cachedTokens, prefix, endedAt, totalTime } = heard[0]!;
    assert.equal([cachedTokens, endedAt, totalTime], [null, 7, 7]);
    assert.is(prefix, PREFIX);
  });
}

test('a lease without a prefix has none', () => {
  const { leases, heard } = open();
  leases.open(REQUEST, 0).complete(1);
  assert.is(heard[0]!.prefix, null);
});

test('an end is reported with the time that it came with, whatever it is', () => {
  const { leases, heard } = open();
  leases.open(REQUEST, 10).complete(3);
  leases.open(REQUEST, 10).cancel(Number.NaN);
  assert.equal(
    heard.map(({ endedAt, totalTime }) => [endedAt, totalTime]),
    [
      [3, null],
      [Number.NaN, null],
    ],
  );
});

test('progress after the end is ignored and counted', () => {
  const { leases, on } = open();
  const lease = leases.open(REQUEST, 0);
  let calls = 0;
  const count = () => calls++;
  lease.attach({ admitted: count, prefilled: count, progress: count });
  lease.complete(1);
  lease.admitted(2);
  lease.prefillProgress(50);
  lease.prefilled(3);
  lease.progress(7, 4);
  assert.equal(on(1), IDLE);
  assert.is(leases.stats().late, 4);
  assert.is(calls, 0);
});

test('the observer is told what was seen', () => {
  const { leases, heard } = open();
  const lease = leases.open({ ...REQUEST, sharedTokens: 48, prefix: PREFIX }, 1000);
  lease.admitted(1020);
  lease.admitted(1500);
  lease.prefilled(1120);
  lease.progress(40, 1900);
  lease.complete(2000, { cachedTokens: 80 });
  assert.equal(heard, [
    {
      outcome: 'completed',
      rank: 1,
      promptTokens: 100,
      localTokens: 32,
      sharedTokens: 48,
      prefix: PREFIX,
      endedAt: 2000,
      queueTime: 20,
      prefillTime: 100,
      timeToFirstToken: 120,
      totalTime: 1000,
      generatedTokens: 40,
      cachedTokens: 80,
    },
  ]);
});

test('a time is unknown where a report is missing, the clock went backwards, or gave no number', () => {
  const timesOf = (act: (lease: Lease) => void, openedAt = 10) => {
    const { leases, heard } = open();
    act(leases.open(REQUEST, openedAt));
    const { queueTime, prefillTime, timeToFirstToken, totalTime } = heard[0]!;
    return [queueTime, prefillTime, timeToFirstToken, totalTime];
  };
  const whole = (lease: Lease) => {
    lease.admitted(12);
    lease.prefilled(15);
    lease.complete(20);
  };
  assert.equal(timesOf(whole), [2, 3, 5, 10]);
  assert.equal(timesOf(whole, 13), [null, 3, 2, 7]);
  assert.equal(timesOf(whole, Number.NaN), [null, 3, null, null]);
  assert.equal(
    timesOf((lease) => lease.fail(11)),
    [null, null, null, 1],
  );
  assert.equal(
    timesOf((lease) => {
      lease.prefilled(15);
      lease.admitted(16); // too late to mean anything
      lease.complete(20);
    }),
    [null, null, 5, 10],
  );
});

for (const cachedTokens of [-1, 1.5, Number.NaN, 101, '7' as unknown as number]) {
  test(`cached tokens ${JSON.stringify(cachedTokens)} of a prompt of 100 are not believed`, () => {
    const { leases, heard } = open();
    leases.open(REQUEST, 0).complete(1, { cachedTokens });
    assert.is(heard[0]!.cachedTokens, null);
    assert.is(leases.stats().malformed, 1);
  });
}

test('cached tokens that were not reported are unknown, and no fault', () => {
  const { leases, heard } = open();
  leases.open(REQUEST, 0).complete(1, { cachedTokens: null });
  leases.open(REQUEST, 0).complete(1, null);
  leases.open(REQUEST, 0).complete(1);
  leases.open(REQUEST, 0).complete(1, { cachedTokens: 0 });
  assert.equal(
    heard.map(({ cachedTokens }) => cachedTokens),
    [null, null, null, 0],
  );
  assert.is(leases.stats().malformed, 0);
});

test('reported tokens that can not be meant are ignored and counted', () => {
  const { leases, on } = open();
  const lease = leases.open(REQUEST, 0);
  const before = on(1);
  const reports = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32];
  for (const tokens of reports) {
    lease.progress(tokens, 1);
    lease.prefillProgress(tokens);
  }
  assert.equal(on(1), before);
  assert.is(leases.stats().malformed, 2 * reports.length);
});

test('handlers hear of each event once, in order', () => {
  const { leases } = open();
  const lease = leases.open(REQUEST, 0);
  const calls: unknown[] = [];
  lease.attach({
    admitted: (now) => calls.push(['admitted', now]),
    prefilled: (now) => calls.push(['prefilled', now]),
    progress: (tokens, now) => calls.push(['progress', tokens, now]),
    ended: ({ outcome }) => calls.push(['ended', outcome]),
  });
  lease.attach({ ended: ({ totalTime }) => calls.push(['second', totalTime]) });
  lease.admitted(1);
  lease.admitted(2);
  lease.progress(1, 3);
  lease.prefilled(4);
  lease.progress(1, 5);
  lease.fail(6);
  lease.complete(7);
  assert.equal(calls, [
    ['admitted', 1],
    ['prefilled', 3],
    ['progress', 1, 3],
    ['ended', 'failed'],
    ['second', 6],
  ]);
});

test('a handler may end its lease, and nothing is heard after the end', () => {
  const { leases, on } = open();
  const lease = leases.open(REQUEST, 0);
  const calls: string[] = [];
  lease.attach({
    prefilled: (now) => lease.complete(now),
    progress: () => calls.push('progress'),
    ended: () => calls.push('ended'),
  });
  lease.progress(1, 1);
  assert.equal(calls, ['ended']);
  assert.equal(on(1), IDLE);
});

test('what a handler throws reaches the reporter after all were called and the load was returned', () => {
  const { leases, on, heard } = open();
  const lease = leases.open(REQUEST, 0);
  const calls: string[] = [];
  lease.attach({
    ended() {
      throw new Error('first');
    },
  });
  lease.attach({ ended: () => calls.push('second') });
  assert.throws(() => lease.complete(1), 'first');
  assert.equal(calls, ['second']);
  assert.equal(on(1), IDLE);
  assert.is(heard.length, 1);
  assert.is(leases.stats().completed, 1);
});

test('what the observer throws is counted and goes no further', () => {
  const observer = {
    leaseEnded(): void {
      throw new Error('observer');
    },
  };
  const { leases, on } = open({ observer });
  leases.open(REQUEST, 0).complete(1);
  assert.is(leases.stats().observerFaults, 1);
  assert.equal(on(1), IDLE);
});

test('beyond maxOpen a lease adds no load, is counted, and works for its caller', () => {
  const { leases, on, heard } = open({ maxOpen: 2 });
  const tracked = [leases.open(REQUEST, 0), leases.open(REQUEST, 0)];
  const load = on(1);
  const beyond = leases.open(REQUEST, 0);
  let ended = 0;
  beyond.attach({ ended: () => ended++ });
  beyond.progress(100, 1);
  assert.equal(on(1), load);
  beyond.complete(2);
  assert.is(ended, 1);
  assert.is(heard.length, 0);
  tracked[0]!.complete(3);
  leases.open(REQUEST, 4);
  const { open: now, opened, completed, untracked } = leases.stats();
  assert.equal([now, opened, completed, untracked], [2, 3, 1, 1]);
});

for (const maxOpen of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, MAX_OPEN_LEASES + 1]) {
  test(`maxOpen ${maxOpen} is refused by name`, () => {
    assert.is(
      codeOf(() => new LeaseTable(new LoadTable(1), { maxOpen })),
      'max-open-leases',
    );
  });
}

for (const ranks of [0, -1, 1.5, Number.NaN, MAX_LOAD_RANKS + 1]) {
  test(`a load table of ${ranks} ranks is refused by name`, () => {
    assert.throws(
      () => new LoadTable(ranks),
      (error: unknown) => error instanceof ConfigError && error.code === 'load-ranks',
    );
  });
}

const badRequests: readonly Partial<LeaseRequest>[] = [
  { rank: -1 },
  { rank: 4 },
  { rank: 0.5 },
  { promptTokens: -1 },
  { promptTokens: Number.NaN },
  { promptTokens: 2 ** 32 },
  { localTokens: -16 },
  { localTokens: Number.NaN },
  { sharedTokens: 0.5 },
  { blockSize: 0 },
  { blockSize: Number.NaN },
];
for (const part of badRequests) {
  const [[name, value]] = Object.entries(part) as [[string, number]];
  test(`a request with ${name} ${value} is refused and changes nothing`, () => {
    const { leases, on } = open();
    assert.is(
      codeOf(() => leases.open({ ...REQUEST, ...part }, 0)),
      'lease-request',
    );
    assert.equal([0, 1, 2, 3].map(on), [IDLE, IDLE, IDLE, IDLE]);
    assert.is(leases.stats().opened, 0);
  });
}

test("a forgotten rank's leases change neither the load nor the learning of the rank that takes its index", () => {
  const { load, leases, on, heard } = open();
  const old = leases.open(REQUEST, 0);
  load.forget(1);
  assert.equal(on(1), IDLE);
  const young = leases.open(REQUEST, 1);
  const before = on(1);
  old.progress(1000, 2);
  old.complete(3);
  assert.equal(on(1), before);
  assert.is(heard.length, 0);
  young.complete(4);
  assert.equal(on(1), IDLE);
  const { open: left, completed, orphaned } = leases.stats();
  assert.equal([left, completed, orphaned], [0, 2, 1]);
});

test('after dispose there is no load, leases change nothing, and handlers are still called', () => {
  const { leases, on, heard } = open();
  const lease = leases.open(REQUEST, 0);
  const calls: unknown[] = [];
  lease.attach({ progress: (tokens) => calls.push(tokens), ended: ({ outcome }) => calls.push(outcome) });
  leases.dispose();
  const counts = leases.stats();
  lease.progress(3, 1);
  lease.complete(2);
  lease.progress(4, 3);
  assert.equal(on(1), IDLE);
  assert.equal(leases.stats(), counts);
  assert.equal(heard, []);
  assert.equal(calls, [3, 'completed']);
  leases.open(REQUEST, 4).complete(5);
  assert.equal(on(1), IDLE);
  assert.is(leases.stats().untracked, 1);
});

test('where the engine has no weak references, leases work without noticing those that are dropped', () => {
  const { WeakRef: Weak, FinalizationRegistry: Registry } = globalThis;
  Object.assign(globalThis, { WeakRef: undefined, FinalizationRegistry: undefined });
  try {
    const { leases, on, heard } = open();
    assert.is(leases.stats().detectsAbandoned, false);
    const lease = leases.open(REQUEST, 0);
    lease.progress(1, 1);
    assert.equal(on(1), { activeRequests: 1, prefillTokens: 0, decodeBlocks: 7 });
    lease.complete(2);
    lease.progress(2, 3);
    assert.equal(on(1), IDLE);
    assert.is(heard.length, 1);
    assert.is(leases.stats().late, 1);
    const left = leases.open(REQUEST, 4);
    leases.dispose();
    left.complete(5);
    assert.is(heard.length, 1);
  } finally {
    Object.assign(globalThis, { WeakRef: Weak, FinalizationRegistry: Registry });
  }
});

/** What the brute force knows of an open lease: every report, and no sum. */
interface Known {
  readonly lease: Lease;
  readonly request: LeaseRequest;
  rank: number | null;
  ready: number;
  generated: number;
}

function bruteForce(known: readonly Known[], rank: number) {
  const here = known.filter((one) => one.rank === rank);
  const total = (amount: (one: Known) => number) => here.reduce((sum, one) => sum + amount(one), 0);
  return {
    activeRequests: here.length,
    prefillTokens: total(({ request: { promptTokens, tracksPrefill }, ready, generated }) =>
      generated > 0 || tracksPrefill === false ? 0 : Math.max(0, promptTokens - ready),
    ),
    decodeBlocks: total(({ request: { promptTokens, blockSize }, generated }) =>
      Math.ceil((promptTokens + generated) / blockSize),
    ),
  };
}

for (const seed of [1, 2]) {
  test(`load is the sum over the open leases, through 30,000 random operations (seed ${seed})`, () => {
    const random = new Random(seed);
    const maxOpen = 150;
    const { load, leases, on } = open({ maxOpen });
    let known: Known[] = [];
    const ended: Lease[] = [];
    let counted = { opened: 0, completed: 0, failed: 0, cancelled: 0, untracked: 0, late: 0 };
    const bump = (what: keyof typeof counted) => {
      counted = { ...counted, [what]: counted[what] + 1 };
    };

    const begin = (): void => {
      const blockSize = random.pick([1, 16, 64]);
      const promptTokens = random.chance(0.01) ? 0xffff_ffff : random.int(5000);
      const request: LeaseRequest = {
        rank: random.int(4),
        promptTokens,
        localTokens: random.int(6000),
        sharedTokens: random.int(6000),
        blockSize,
        tracksPrefill: random.chance(0.9),
      };
      const lease = leases.open(request, 0);
      if (known.length >= maxOpen) bump('untracked');
      else {
        bump('opened');
        known.push({ lease, request, rank: request.rank, ready: request.localTokens, generated: 0 });
      }
    };
    const finish = ({ end, outcome }: (typeof ENDS)[number]): void => {
      const at = random.int(known.length);
      const { lease } = known[at]!;
      lease[end](1);
      known.splice(at, 1);
      ended.push(lease);
      bump(outcome);
    };

    let operations = 0;
    for (; operations < 30_000; operations++) {
      const act = random.int(100);
      const one = known.length > 0 ? random.pick(known) : null;
      if (act < 25 || one === null) begin();
      else if (act < 46) finish(random.pick(ENDS));
      else if (act < 62) {
        const tokens = random.int(6000);
        one.lease.prefillProgress(tokens);
        one.ready = Math.max(one.ready, tokens);
      } else if (act < 70) {
        one.lease.prefilled(1);
        one.ready = Number.MAX_SAFE_INTEGER;
      } else if (act < 95) {
        const tokens = random.int(3000);
        one.lease.progress(tokens, 1);
        one.generated = Math.max(one.generated, tokens);
      } else if (act < 99) {
        if (ended.length === 0) continue;
        const late = random.pick(ended);
        late.complete(2);
        late.progress(random.int(3000), 2);
        bump('late');
      } else if (random.chance(0.1)) {
        const rank = random.int(4);
        load.forget(rank);
        for (const other of known) if (other.rank === rank) other.rank = null;
      }
      const rank = random.int(4);
      assert.equal(on(rank), bruteForce(known, rank), `operation ${operations}, rank ${rank}`);
    }
    const { open: left, opened, completed, failed, cancelled, untracked, late } = leases.stats();
    assert.equal({ opened, completed, failed, cancelled, untracked, late }, counted);
    assert.is(left, known.length);
    assert.is(opened, left + completed + failed + cancelled);
    for (const { lease } of known) lease.fail(3);
    known = [];
    assert.equal([0, 1, 2, 3].map(on), [IDLE, IDLE, IDLE, IDLE]);
    assert.is(leases.stats().open, 0);
  });
}

test.run();
