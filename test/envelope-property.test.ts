// Any event comes back as it went, in MessagePack, in JSON and across; an independent MessagePack reader and writer agree. MOONROUTE_SEED=n repeats.
import { decode, encode } from '@msgpack/msgpack';
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  decodeEventsJson,
  decodeLoadReport,
  decodePlacementEvent,
  decodeRecoveryAnswer,
  decodeRecoveryQuestion,
  EventBatchReader,
  encodeEvents,
  encodeEventsJson,
  encodeLoadReport,
  encodePlacementEvent,
  encodeRecoveryAnswer,
  encodeRecoveryQuestion,
  jsonOf,
  msgpackOf,
  type RecoveryAnswer,
  type RouterEvent,
  routerEventOf,
} from '../src/wire/envelope/index.js';
import { placementEvent, plain, routerEvent, text, uint32, uint64 } from './support/envelopes.js';

const seed = Number(process.env['MOONROUTE_SEED'] ?? Date.now() % 2 ** 31);
console.log(`envelope-property: seed ${seed}`);
const RUNS = { seed, numRuns: 400 };
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record<T>(model, { noNullPrototype: true });

const reader = new EventBatchReader();
const events = fc.array(routerEvent, { maxLength: 6 });

function same(batch: ReturnType<EventBatchReader['read']>, expected: readonly RouterEvent[]): void {
  assert.equal(batch.rejected, []);
  // Deeper than uvu's own comparison: -0 is no 0, and typed arrays are told apart.
  assert.ok(fc.stringify(batch.events) === fc.stringify(expected.map(ordered)), fc.stringify([batch.events, expected]));
}

/** Names in the reader's order. */
function ordered(event: RouterEvent): RouterEvent {
  const { workerId, dpRank, tier, domain, eventId, data, eligible, contradicts, sessionId, stateSource } = event;
  const held =
    data.kind === 'stored'
      ? {
          kind: data.kind,
          parent: data.parent,
          startPosition: data.startPosition,
          hashes: data.hashes,
          locals: data.locals,
          mm: data.mm,
        }
      : data;
  return { workerId, dpRank, tier, domain, eventId, data: held, eligible, contradicts, sessionId, stateSource };
}

test('events come back from MessagePack, from JSON, and from one by way of the other', () => {
  fc.assert(
    fc.property(events, (list) => {
      const payload = encodeEvents(list);
      const json = encodeEventsJson(list);
      same(reader.read(payload), list);
      same(decodeEventsJson(json), list);
      same(decodeEventsJson(new TextEncoder().encode(json)), list);
      same(reader.read(msgpackOf(json)), list);
      same(decodeEventsJson(jsonOf(payload)), list);
      assert.is(jsonOf(msgpackOf(json)), json);
    }),
    RUNS,
  );
});

/** What an event is on the wire, by the specification's text alone. */
function wireOf(event: RouterEvent): Record<string, unknown> {
  const { data } = event;
  const held =
    data.kind === 'cleared'
      ? 'cleared'
      : data.kind === 'removed'
        ? { removed: { block_hashes: [...data.hashes] } }
        : {
            stored: {
              parent_hash: data.parent,
              start_position: data.startPosition,
              blocks: [...data.hashes].map((hash, i) => ({
                block_hash: hash,
                tokens_hash: data.locals[i],
                mm_extra_info: data.mm?.[i] ?? null,
              })),
            },
          };
  return {
    worker_id: event.workerId,
    storage_tier: event.tier,
    ...(event.domain === null ? {} : { residency_domain: event.domain }),
    event: { event_id: event.eventId, data: held, dp_rank: event.dpRank },
    ...(event.stateSource === null ? {} : { state_source: event.stateSource }),
    ...(event.sessionId === null ? {} : { session_id: event.sessionId }),
    ...(event.eligible ? { sce: true } : {}),
    ...(event.contradicts ? { con: true } : {}),
  };
}

/** All whole numbers as bigints, that their width does not matter. */
function widened(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(widened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value).map(([name, each]) => [name, widened(each)]);
}

// The other package's reader refuses the name __proto__.
const hasProto = (list: readonly RouterEvent[]) => fc.stringify(list).includes('__proto__');

test('the other package reads what is written', () => {
  fc.assert(
    fc.property(events, (list) => {
      fc.pre(!hasProto(list));
      const seen = decode(encodeEvents(list), { useBigInt64: true });
      assert.is(fc.stringify(widened(seen)), fc.stringify(widened(list.map(wireOf))));
    }),
    RUNS,
  );
});

test('what the other package writes is read', () => {
  fc.assert(
    fc.property(events, (list) => {
      fc.pre(!hasProto(list));
      same(reader.read(encode(list.map(wireOf), { useBigInt64: true })), list);
    }),
    RUNS,
  );
});

test('names in any order, and unknown ones among them, change nothing', () => {
  const shuffle = fc.func(fc.nat());
  const shuffled = (value: unknown, key: (name: string) => number, odd: unknown): unknown => {
    if (Array.isArray(value)) return value.map((item) => shuffled(item, key, odd));
    if (typeof value !== 'object' || value === null) return value;
    const pairs = Object.entries(value).map(([name, each]) => [name, shuffled(each, key, odd)] as const);
    const isVariant = pairs.length === 1 && /^(stored|removed)$/.test(pairs[0]![0]);
    if (!isVariant) pairs.push(['unknown', odd]);
    return Object.fromEntries(pairs.sort(([a], [b]) => key(a) - key(b)));
  };
  fc.assert(
    fc.property(routerEvent, shuffle, plain.value, (event, key, odd) => {
      fc.pre(!hasProto([event]) && !fc.stringify(odd).includes('__proto__'));
      const bare = {
        ...event,
        stateSource: null,
        data: event.data.kind === 'stored' ? { ...event.data, mm: null } : event.data,
      };
      same(reader.read(encode([shuffled(wireOf(bare), key, odd)], { useBigInt64: true })), [bare]);
    }),
    RUNS,
  );
});

test("placement events come back, and become their worker's events", () => {
  fc.assert(
    fc.property(placementEvent, (placement) => {
      const payload = encodePlacementEvent(placement);
      const back = decodePlacementEvent(payload);
      assert.equal(back, placement);
      assert.equal(decodePlacementEvent(msgpackOf(jsonOf(payload))), placement);
      const event = routerEventOf(back);
      if (placement.owner.kind === 'shared') assert.is(event, null);
      else {
        assert.equal(event, {
          ...placement.event,
          workerId: placement.owner.workerId,
          tier: placement.tier,
          domain: placement.domain,
          eligible: placement.eligible,
          contradicts: false,
          sessionId: placement.sessionId,
          stateSource: null,
        });
      }
    }),
    RUNS,
  );
});

test('questions come back', () => {
  const question = record({
    workerId: uint64,
    dpRank: uint32,
    startEventId: fc.option(uint64),
    endEventId: fc.option(uint64),
    supportsTreeDumpFailed: fc.boolean(),
    page: fc.option(text),
  });
  fc.assert(
    fc.property(question, (given) => assert.equal(decodeRecoveryQuestion(encodeRecoveryQuestion(given)), given)),
    RUNS,
  );
});

test('answers come back', () => {
  const kind = <T>(name: T) => fc.constant(name);
  const scope = fc.option(fc.constantFrom('all', 'domain:worker', 'domain:cache_owner'));
  const answer: fc.Arbitrary<RecoveryAnswer> = fc.oneof(
    record({ kind: kind('events' as const), events, lastEventId: uint64 }),
    record({ kind: kind('tree-dump' as const), events, lastEventId: uint64, resetScope: scope, next: fc.option(text) }),
    record({ kind: kind('tree-dump-failed' as const), detail: text }),
    record({
      kind: kind('too-new' as const),
      requestedStart: uint64,
      requestedEnd: fc.option(uint64),
      newestAvailable: uint64,
    }),
    record({ kind: kind('invalid-range' as const), startId: uint64, endId: uint64 }),
    record({ kind: kind('error' as const), detail: text }),
  );
  fc.assert(
    fc.property(answer, (given) => {
      const read = decodeRecoveryAnswer(encodeRecoveryAnswer(given));
      assert.equal(read.answer, given);
      assert.equal(read.rejected, []);
    }),
    RUNS,
  );
});

test('load reports come back', () => {
  const amount = fc.oneof(fc.nat(), fc.double({ min: 0, max: 1e9, noNaN: true }).map(Math.abs));
  const share = record({
    workerId: uint64,
    dpRank: uint32,
    activeRequests: fc.nat(),
    prefillTokens: amount,
    decodeBlocks: amount,
  });
  const report = record({
    router: text,
    sequence: uint64,
    goodFor: fc.nat(),
    ranks: fc.array(share, { maxLength: 20 }),
  });
  fc.assert(
    fc.property(report, (given) => assert.equal(decodeLoadReport(encodeLoadReport(given)), given)),
    RUNS,
  );
});

test('any plain value comes back from JSON as JSON.parse has it, where numbers are small', () => {
  fc.assert(
    fc.property(fc.json(), fc.boolean(), (json, isSpaced) => {
      const spaced = isSpaced ? JSON.stringify(JSON.parse(json), null, '\t') : json;
      const wrapped = `[{"worker_id":1,"event":{"event_id":1,"data":"cleared"},"state_source":${spaced}}]`;
      const { events: read } = decodeEventsJson(wrapped);
      if (read.length === 0) return; // deeper than values that are passed on may be
      const expected: unknown = JSON.parse(json);
      const plainNumbers = (value: unknown): unknown =>
        typeof value === 'bigint'
          ? Number(value)
          : Array.isArray(value)
            ? value.map(plainNumbers)
            : typeof value === 'object' && value !== null
              ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plainNumbers(each)]))
              : value;
      fc.pre(!json.includes('__proto__'));
      assert.equal(plainNumbers(read[0]!.stateSource), expected);
    }),
    RUNS,
  );
});

test.run();
