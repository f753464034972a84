// Events of an event plane for tests, made in few words.
import type { RouterEvent, StoredData } from '../../src/wire/envelope/types.js';

/** What an event says otherwise than usual. */
export type EventWords = Partial<Omit<RouterEvent, 'data'>>;

export function planeEvent(eventId: number | bigint, data: RouterEvent['data'], words: EventWords = {}): RouterEvent {
  return {
    workerId: 1n,
    dpRank: 0,
    tier: 'device',
    domain: null,
    data,
    eligible: false,
    contradicts: false,
    sessionId: null,
    stateSource: null,
    ...words,
    eventId: BigInt(eventId),
  };
}

/** Blocks by their external hashes; a block's local hash is its external one plus 1,000. */
export function storedData(
  parent: number | null,
  hashes: readonly number[],
  words: Partial<StoredData> = {},
): StoredData {
  return {
    kind: 'stored',
    parent: parent === null ? null : BigInt(parent),
    startPosition: null,
    hashes: BigUint64Array.from(hashes, BigInt),
    locals: BigUint64Array.from(hashes, (hash) => BigInt(hash + 1000)),
    mm: null,
    ...words,
  };
}

export function removedData(hashes: readonly number[]): RouterEvent['data'] {
  return { kind: 'removed', hashes: BigUint64Array.from(hashes, BigInt) };
}
