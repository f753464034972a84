// Events for tests of the event plane's publisher: drafts with plain defaults, and blocks named by small numbers.

import type { Draft } from '../../src/live/plane/publish/draft.js';
import type { EventData, RouterEvent } from '../../src/wire/envelope/types.js';

export const WORKER = 7n;

export function longs(...numbers: readonly number[]): BigUint64Array {
  return BigUint64Array.from(numbers, BigInt);
}

/** A local hash that goes with an external one. */
export function localOf(hash: bigint): bigint {
  return (hash * 0x9e37_79b9_7f4a_7c15n) & 0xffff_ffff_ffff_ffffn;
}

type Said = Partial<Omit<Draft, 'data'>>;

function draft(data: EventData, said: Said = {}): Draft {
  const plain = {
    workerId: WORKER,
    dpRank: 0,
    tier: 'device',
    domain: null,
    eligible: false,
    contradicts: false,
  } as const;
  return { ...plain, sessionId: null, stateSource: null, ...said, data };
}

/** Blocks behind `parent`, null at a prompt's start. */
export function stored(parent: number | null, hashes: readonly number[], said: Said = {}, start: number | null = null) {
  const names = longs(...hashes);
  return draft(
    {
      kind: 'stored',
      parent: parent === null ? null : BigInt(parent),
      startPosition: start,
      hashes: names,
      locals: names.map(localOf),
      mm: null,
    },
    said,
  );
}

export function removed(hashes: readonly number[], said: Said = {}): Draft {
  return draft({ kind: 'removed', hashes: longs(...hashes) }, said);
}

export function cleared(said: Said = {}): Draft {
  return draft({ kind: 'cleared' }, said);
}

/** `count` numbers from `first` on. */
export function run(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}

/** An event in few words: `+1>2,3 e` (stored behind 1, eligible), `+1>2 c` (a contradiction), `-2,3`, `clear`. */
export function said({ data, eligible, contradicts }: Draft | RouterEvent): string {
  if (data.kind === 'cleared') return 'clear';
  const hashes = [...data.hashes].join(',');
  const flags = `${eligible ? ' e' : ''}${contradicts ? ' c' : ''}`;
  return data.kind === 'removed' ? `-${hashes}${flags}` : `+${data.parent ?? ''}>${hashes}${flags}`;
}
