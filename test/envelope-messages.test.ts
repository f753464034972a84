// The rare messages of the plane: placement events, recovery questions and answers (spec/kv-events.md 4.1, 4.3), load reports. Names and defaults on the wire,
// other routers' forms, and what is refused.
import { decode, encode as pack } from '@msgpack/msgpack';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { WireError } from '../src/errors.js';
import {
  decodeLoadReport,
  decodePlacementEvent,
  decodeRecoveryAnswer,
  decodeRecoveryQuestion,
  encodeLoadReport,
  encodePlacementEvent,
  encodeRecoveryAnswer,
  encodeRecoveryQuestion,
  routerEventOf,
} from '../src/wire/envelope/index.js';
import { eventOf, MAX_64, storeOf } from './support/envelopes.js';

const encode = (value: unknown) => pack(value, { useBigInt64: true });

function failure(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    assert.instance(error, WireError);
    return (error as WireError).code;
  }
  return 'none';
}

// ---- placement events ----

const OWNER = { LocalWorker: { worker_id: 7, dp_rank: 2 } };
const PLACEMENT = { owner: OWNER, tier: 'device' };
const EVENT = { event_id: 3, data: { removed: { block_hashes: [5] } }, dp_rank: 2 };
const placement = (given: object = {}) =>
  decodePlacementEvent(encode({ placement: PLACEMENT, event: EVENT, ...given }));

test('a placement event: names on the wire', () => {
  const event = { eventId: 3n, dpRank: 2, data: storeOf([1n]) };
  const given = {
    owner: { kind: 'worker', workerId: 7n, dpRank: 2 },
    tier: 'disk',
    domain: 'worker',
    event,
    eligible: true,
    sessionId: 's',
  } as const;
  const seen = decode(encodePlacementEvent(given)) as Record<string, unknown>;
  assert.equal(Object.keys(seen), ['placement', 'event', 'session_id', 'sce']);
  assert.equal(seen['placement'], { owner: OWNER, tier: 'disk', residency_domain: 'worker' });
  const shared = { ...given, owner: { kind: 'shared' }, eligible: false, sessionId: null } as const;
  const bare = decode(encodePlacementEvent(shared)) as Record<string, Record<string, unknown>>;
  assert.equal(Object.keys(bare), ['placement', 'event']);
  assert.is(bare['placement']!['owner'], 'Shared');
  assert.is(encodePlacementEvent(given).length - encodePlacementEvent({ ...given, eligible: false }).length, 5);
});

test("a placement event: the domain is the worker's by default, the rank the owner's", () => {
  const read = placement({ event: { event_id: 3, data: 'cleared' } });
  assert.is(read.domain, 'worker');
  assert.is(read.event.dpRank, 2);
  assert.is(routerEventOf(read)!.domain, 'worker');
});

test("a shared owner's event is no worker's", () => {
  for (const owner of ['Shared', { Shared: null }]) {
    const read = placement({ placement: { ...PLACEMENT, owner } });
    assert.equal(read.owner, { kind: 'shared' });
    assert.is(routerEventOf(read), null);
  }
});

test("a placement event's eligibility follows the rules of the envelope", () => {
  const stored = { parent_hash: null, blocks: [{ block_hash: 1, tokens_hash: 2 }] };
  const of = (envelope: object, inside: object) =>
    placement({ event: { event_id: 3, data: { stored: { ...stored, ...inside } } }, ...envelope }).eligible;
  assert.is(of({}, {}), false);
  assert.is(of({ sce: true }, {}), true);
  assert.is(of({}, { shared_cache_eligible: true }), true);
  assert.is(of({ sce: false }, { shared_cache_eligible: true }), false);
  assert.is(of({ sce: 1 }, {}), false);
});

const REFUSED_PLACEMENTS: [given: object, code: string][] = [
  [{ placement: undefined }, 'field-type'],
  [{ placement: [OWNER, 'device'] }, 'positional'],
  [{ placement: { tier: 'device' } }, 'missing-field'],
  [{ placement: { owner: OWNER } }, 'missing-field'],
  [{ placement: { ...PLACEMENT, tier: 'GPU' } }, 'unknown-tier'],
  [{ placement: { ...PLACEMENT, residency_domain: null } }, 'residency-domain'],
  [{ placement: { ...PLACEMENT, residency_domain: 'cache_owner' } }, 'residency-domain'],
  [{ placement: { ...PLACEMENT, owner: 'LocalWorker' } }, 'field-type'],
  [{ placement: { ...PLACEMENT, owner: { LocalWorker: [7, 2] } } }, 'positional'],
  [{ placement: { ...PLACEMENT, owner: { LocalWorker: { worker_id: 7 } } } }, 'missing-field'],
  [{ placement: { ...PLACEMENT, owner: { Elsewhere: {} } } }, 'field-type'],
  [{ event: { ...EVENT, dp_rank: 1 } }, 'rank-conflict'],
  [{ event: null }, 'field-type'],
  [{ event: {} }, 'missing-field'],
];
for (const [given, code] of REFUSED_PLACEMENTS) {
  test(`refused: a placement event with ${JSON.stringify(given)}`, () =>
    assert.is(
      failure(() => placement(given)),
      code,
    ));
}

// ---- questions ----

const QUESTION = {
  workerId: 7n,
  dpRank: 1,
  startEventId: null,
  endEventId: null,
  supportsTreeDumpFailed: false,
  page: null,
};

test('a question: names on the wire, our own only where it is needed', () => {
  const names = ['worker_id', 'dp_rank', 'start_event_id', 'end_event_id', 'supports_tree_dump_failed', 'kind'];
  const seen = decode(encodeRecoveryQuestion(QUESTION)) as Record<string, unknown>;
  assert.equal(Object.keys(seen), names);
  assert.is(seen['kind'], 'recovery');
  assert.equal(Object.keys(decode(encodeRecoveryQuestion({ ...QUESTION, page: 'a' })) as object), [...names, 'page']);
});

test('a question by an older asker', () => {
  assert.equal(decodeRecoveryQuestion(encode({ worker_id: 7, dp_rank: 1 })), QUESTION);
  const range = { worker_id: MAX_64, dp_rank: 0, start_event_id: 2n ** 53n + 1n, end_event_id: MAX_64, x: [] };
  assert.equal(decodeRecoveryQuestion(encode(range)), {
    ...QUESTION,
    workerId: MAX_64,
    dpRank: 0,
    startEventId: 2n ** 53n + 1n,
    endEventId: MAX_64,
  });
});

const REFUSED_QUESTIONS: [given: unknown, code: string][] = [
  [[7, 1, null, null], 'positional'],
  [{ dp_rank: 1 }, 'missing-field'],
  [{ worker_id: 7 }, 'missing-field'],
  [{ worker_id: -7, dp_rank: 1 }, 'field-type'],
  [{ worker_id: 7, dp_rank: 1, start_event_id: 'x' }, 'field-type'],
  [{ worker_id: 7, dp_rank: 1, supports_tree_dump_failed: null }, 'field-type'],
  [{ worker_id: 7, dp_rank: 1, kind: 'status' }, 'not-supported'],
  [{ worker_id: 7, dp_rank: 1, kind: { status: { expected: {} } } }, 'not-supported'],
  [{ worker_id: 7, dp_rank: 1, page: 5 }, 'field-type'],
  [{ worker_id: 7, dp_rank: 1, page: 'x'.repeat(4097) }, 'field-type'],
];
for (const [given, code] of REFUSED_QUESTIONS) {
  test(`refused: the question ${JSON.stringify(given).slice(0, 80)}`, () => {
    assert.is(
      failure(() => decodeRecoveryQuestion(encode(given))),
      code,
    );
  });
}

// ---- answers ----

const EVENTS = [eventOf(storeOf([1n]), { eligible: true }), eventOf({ kind: 'cleared' }, { eventId: 2n })];

test('answers: names on the wire', () => {
  const names = (answer: Parameters<typeof encodeRecoveryAnswer>[0]) => {
    const seen = decode(encodeRecoveryAnswer(answer)) as Record<string, object>;
    const [[variant, held]] = Object.entries(seen) as [[string, object]];
    return `${variant}: ${typeof held === 'string' ? 'a text' : Object.keys(held).join(' ')}`;
  };
  const dump = { kind: 'tree-dump', events: EVENTS, lastEventId: 9n, resetScope: null, next: null } as const;
  assert.is(names({ kind: 'events', events: EVENTS, lastEventId: 2n }), 'Events: events last_event_id');
  assert.is(names(dump), 'TreeDump: events last_event_id');
  assert.is(names({ ...dump, resetScope: 'all', next: '1' }), 'TreeDump: events last_event_id reset_scope next');
  assert.is(names({ kind: 'tree-dump-failed', detail: 'why' }), 'TreeDumpFailed: last_event_id message');
  const tooNew = { kind: 'too-new', requestedStart: 9n, requestedEnd: null, newestAvailable: 2n } as const;
  assert.is(names(tooNew), 'TooNew: requested_start requested_end newest_available');
  assert.is(names({ kind: 'invalid-range', startId: 9n, endId: 2n }), 'InvalidRange: start_id end_id');
  assert.is(names({ kind: 'error', detail: 'why' }), 'Error: a text');
});

const OTHERS: [given: unknown, expected: object][] = [
  [
    { TreeDump: { events: [], last_event_id: 0 } },
    { kind: 'tree-dump', events: [], lastEventId: 0n, resetScope: null, next: null },
  ],
  [
    { TreeDump: { last_event_id: 1, reset_scope: { domain: 'worker' }, events: [] } },
    { kind: 'tree-dump', events: [], lastEventId: 1n, resetScope: 'domain:worker', next: null },
  ],
  ['TreeDumpFailed', { kind: 'tree-dump-failed', detail: '' }],
  [{ TreeDumpFailed: { last_event_id: 4, message: 'm' } }, { kind: 'tree-dump-failed', detail: 'm' }],
  [
    { TooNew: { requested_start: null, requested_end: null, newest_available: MAX_64 } },
    { kind: 'too-new', requestedStart: 0n, requestedEnd: null, newestAvailable: MAX_64 },
  ],
  [{ Error: 'x'.repeat(5000) }, { kind: 'error', detail: 'a text of 5000 bytes' }],
];
for (const [given, expected] of OTHERS) {
  test(`another's answer: ${JSON.stringify(given, (_, v) => (typeof v === 'bigint' ? `${v}` : v)).slice(0, 80)}`, () => {
    assert.equal(decodeRecoveryAnswer(encode(given)).answer, expected);
  });
}

test('a bad event in an answer is told, the others are there', () => {
  const good = { worker_id: 7, event: { event_id: 1, data: 'cleared' } };
  const { answer, rejected } = decodeRecoveryAnswer(encode({ Events: { events: [good, 5, good], last_event_id: 3 } }));
  assert.is(answer.kind === 'events' && answer.events.length, 2);
  assert.equal(
    rejected.map(({ index, code }) => [index, code]),
    [[1, 'field-type']],
  );
});

const REFUSED_ANSWERS: [given: unknown, code: string][] = [
  [null, 'unknown-data'],
  [[], 'unknown-data'],
  [{}, 'unknown-data'],
  ['Events', 'unknown-data'],
  [{ Elsewhere: {} }, 'unknown-data'],
  [{ Events: {}, TreeDump: {} }, 'unknown-data'],
  [{ Events: [] }, 'positional'],
  [{ Events: { events: [] } }, 'missing-field'],
  [{ Events: { last_event_id: 1 } }, 'missing-field'],
  [{ Events: { events: {}, last_event_id: 1 } }, 'field-type'],
  [{ TreeDump: { events: [], last_event_id: 1, reset_scope: { rank: 'x' } } }, 'not-supported'],
  [{ TooNew: { requested_start: 1 } }, 'missing-field'],
  [{ InvalidRange: { start_id: 1 } }, 'missing-field'],
  [{ Error: 5 }, 'field-type'],
  [{ Status: {} }, 'not-supported'],
  [{ StateAgentRecovery: {} }, 'not-supported'],
];
for (const [given, code] of REFUSED_ANSWERS) {
  test(`refused: the answer ${JSON.stringify(given)}`, () =>
    assert.is(
      failure(() => decodeRecoveryAnswer(encode(given))),
      code,
    ));
}

test("an error's words are cut, not refused", () => {
  const { answer } = decodeRecoveryAnswer(encodeRecoveryAnswer({ kind: 'error', detail: 'é'.repeat(100_000) }));
  assert.equal(answer, { kind: 'error', detail: 'é'.repeat(1024) });
});

// ---- load ----

const SHARE = { worker_id: 7, dp_rank: 0, active_requests: 1, prefill_tokens: 2.5, decode_blocks: 3 };
const REPORT = { router: 'r', sequence: 1, good_for: 3000, ranks: [SHARE] };

test('a load report: names on the wire', () => {
  const share = { workerId: 7n, dpRank: 0, activeRequests: 1, prefillTokens: 2.5, decodeBlocks: 3 };
  const report = { router: 'r', sequence: 1n, goodFor: 3000, ranks: [share] };
  assert.equal(decode(encodeLoadReport(report)), REPORT);
  assert.equal(decodeLoadReport(encode({ ...REPORT, x: 1 })), report);
});

const REFUSED_REPORTS: [given: unknown, code: string][] = [
  [[], 'positional'],
  [{ ...REPORT, router: 5 }, 'field-type'],
  [{ ...REPORT, router: 'x'.repeat(1025) }, 'field-type'],
  [{ ...REPORT, sequence: -1 }, 'field-type'],
  [{ ...REPORT, good_for: -1 }, 'field-type'],
  [{ ...REPORT, good_for: Number.NaN }, 'field-type'],
  [{ ...REPORT, ranks: {} }, 'field-type'],
  [{ ...REPORT, ranks: [5] }, 'too-many'],
  [{ ...REPORT, ranks: [SHARE, Array(30).fill(1)] }, 'positional'],
  [{ ...REPORT, ranks: [{ ...SHARE, worker_id: undefined }] }, 'field-type'],
  [{ ...REPORT, ranks: [{ ...SHARE, prefill_tokens: Number.POSITIVE_INFINITY }] }, 'field-type'],
  [{ ...REPORT, ranks: [{ ...SHARE, decode_blocks: MAX_64 }] }, 'field-type'],
  [{ ...REPORT, ranks: Array(16_385).fill(SHARE) }, 'too-many'],
  [{ router: 'r', sequence: 1, good_for: 1 }, 'missing-field'],
  [{ router: 'r', sequence: 1, ranks: [] }, 'missing-field'],
  [{ router: 'r', good_for: 1, ranks: [] }, 'missing-field'],
  [{ sequence: 1, good_for: 1, ranks: [] }, 'missing-field'],
];
for (const [index, [given, code]] of REFUSED_REPORTS.entries()) {
  test(`refused: load report ${index}, ${code}`, () =>
    assert.is(
      failure(() => decodeLoadReport(encode(given))),
      code,
    ));
}

test('a load that is no number is not written', () => {
  for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60]) {
    const share = { workerId: 7n, dpRank: 0, activeRequests: bad, prefillTokens: 0, decodeBlocks: 0 };
    const report = { router: 'r', sequence: 1n, goodFor: 1, ranks: [share] };
    assert.is(
      failure(() => encodeLoadReport(report)),
      'unwritable',
    );
  }
});

test.run();
