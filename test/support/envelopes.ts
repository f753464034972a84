// Router events for tests of the envelope codec and of what uses it: one to vary, and fast-check's of every kind.
import fc from 'fast-check';
import type { EventData, PlacementEvent, RouterEvent, StoredData } from '../../src/wire/envelope/types.js';

export const MAX_64 = 0xffff_ffff_ffff_ffffn;

/** A store of the given hashes, local ones one more each. */
export function storeOf(hashes: readonly bigint[], given: Partial<StoredData> = {}): StoredData {
  return {
    kind: 'stored',
    parent: null,
    startPosition: null,
    hashes: BigUint64Array.from(hashes),
    locals: BigUint64Array.from(hashes, (hash) => BigInt.asUintN(64, hash + 1n)),
    mm: null,
    ...given,
  };
}

/** An event of worker 7. */
export function eventOf(data: EventData, given: Partial<RouterEvent> = {}): RouterEvent {
  return {
    workerId: 7n,
    dpRank: 0,
    tier: 'device',
    domain: null,
    eventId: 1n,
    data,
    eligible: false,
    contradicts: false,
    sessionId: null,
    stateSource: null,
    ...given,
  };
}

/** Whole numbers of 64 bits, with each encoding's bounds among them. */
export const uint64 = fc.oneof(
  fc.bigInt({ min: 0n, max: MAX_64 }),
  fc.constantFrom(0n, 127n, 128n, 255n, 256n, 65_535n, 65_536n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n, 2n ** 53n + 1n),
  fc.constantFrom(2n ** 63n - 1n, 2n ** 63n, MAX_64 - 1n, MAX_64),
);
export const uint32 = fc.oneof(fc.integer({ min: 0, max: 0xffff_ffff }), fc.constantFrom(0, 127, 128, 0xffff_ffff));
export const text = fc.string({ unit: 'binary', maxLength: 40 });
/** Numbers as they come out of either encoding: whole ones within 2^53 as numbers, beyond as bigints. */
const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.bigInt({ min: 2n ** 53n, max: MAX_64 }),
  fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }),
);
export const plain = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    number,
    text,
    fc.boolean(),
    fc.constant(null),
    tie('list'),
    tie('map'),
  ),
  list: fc.array(tie('value'), { maxLength: 4 }),
  map: fc.dictionary(text, tie('value'), { maxKeys: 4, noNullPrototype: true }),
}));

const hashes = fc.array(uint64, { maxLength: 20 });
const info = fc.option(plain.map, { freq: 3 });

export const stored: fc.Arbitrary<StoredData> = fc
  .record({
    pairs: fc.array(fc.tuple(uint64, uint64, info), { maxLength: 20 }),
    hasMm: fc.boolean(),
    parent: fc.option(uint64),
    startPosition: fc.option(uint32),
  })
  .map(({ pairs, hasMm, parent, startPosition }) => {
    const mm = pairs.map(([, , each]) => (hasMm ? each : null));
    return {
      kind: 'stored',
      parent,
      startPosition,
      hashes: BigUint64Array.from(pairs, ([hash]) => hash),
      locals: BigUint64Array.from(pairs, ([, local]) => local),
      mm: mm.some((each) => each !== null) ? mm : null,
    };
  });

const data: fc.Arbitrary<EventData> = fc.oneof(
  { weight: 3, arbitrary: stored },
  hashes.map((list) => ({ kind: 'removed' as const, hashes: BigUint64Array.from(list) })),
  fc.constant({ kind: 'cleared' as const }),
);
const tier = fc.constantFrom('device', 'host_pinned', 'disk', 'external');
const domain = fc.constantFrom('worker', 'cache_owner');

/** Only what may be eligible is, and a cache's owner has nothing on a device. */
function fitting<T extends Pick<RouterEvent, 'tier' | 'eligible'>>(event: T, held: EventData, of: string | null): T {
  const eligible = event.eligible && held.kind === 'stored' && held.mm === null;
  const isOdd = of === 'cache_owner' && event.tier === 'device' && held.kind !== 'cleared';
  return { ...event, eligible, ...(isOdd ? { tier: 'disk' } : {}) };
}

export const routerEvent: fc.Arbitrary<RouterEvent> = fc
  .record<RouterEvent>({
    workerId: uint64,
    dpRank: uint32,
    tier,
    domain: fc.option(domain),
    eventId: uint64,
    data,
    eligible: fc.boolean(),
    contradicts: fc.boolean(),
    sessionId: fc.option(text),
    stateSource: fc.option(plain.value, { freq: 1 }),
  } as never)
  .map((event) => {
    const contradicts = event.contradicts && event.data.kind !== 'cleared';
    return {
      ...fitting({ ...event, eligible: event.eligible && !contradicts }, event.data, event.domain),
      contradicts,
    };
  });

export const placementEvent: fc.Arbitrary<PlacementEvent> = fc
  .record({
    workerId: fc.option(uint64),
    dpRank: uint32,
    tier,
    domain,
    eventId: uint64,
    data,
    eligible: fc.boolean(),
    sessionId: fc.option(text),
  })
  .map(({ workerId, dpRank, eventId, data: held, ...rest }) => {
    const owner = workerId === null ? { kind: 'shared' } : { kind: 'worker', workerId, dpRank };
    const event = { owner, event: { eventId, dpRank, data: held }, ...rest } as PlacementEvent;
    return fitting(event, held, event.domain);
  });
