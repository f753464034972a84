// Counters against the stream: what is under way is no drift, what lasts is (spec/mooncake-events.md 2, 4, 10).
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Drift, type DriftCause, type Reading } from '../src/live/drift.js';

interface Look {
  readonly at: number;
  readonly sequence: number;
  readonly heard?: number | readonly [number, number] | null;
  readonly keys?: number;
  readonly net?: number | readonly [number, number];
  readonly found?: DriftCause;
}

const both = <Value>(value: Value | readonly [Value, Value]): readonly [Value, Value] =>
  Array.isArray(value) ? (value as unknown as readonly [Value, Value]) : [value as Value, value as Value];

function readingOf({ sequence, heard = sequence, keys, net = 0 }: Look): Reading {
  const [before, after] = both<number | null>(heard);
  return {
    sequence: BigInt(sequence),
    keys: keys ?? null,
    heard: [before === null ? null : BigInt(before), after === null ? null : BigInt(after)],
    net: both(net),
  };
}

const CASES: Record<string, readonly Look[]> = {
  'in step': [
    { at: 0, sequence: 5 },
    { at: 2000, sequence: 9 },
    { at: 4000, sequence: 9 },
  ],
  'messages under way, heard a moment later': [
    { at: 0, sequence: 5, heard: 3 },
    { at: 2000, sequence: 9, heard: 8 },
    { at: 4000, sequence: 9 },
  ],
  'a stream that always lags a little, and never stands still': [
    { at: 0, sequence: 5, heard: 4 },
    { at: 2000, sequence: 15, heard: 14 },
    { at: 4000, sequence: 25, heard: 24 },
  ],
  'a tail that never came': [
    { at: 0, sequence: 5, heard: 3 },
    { at: 2000, sequence: 5, heard: 3, found: 'lost-tail' },
  ],
  'a tail that never came, while others were sent and did not come either': [
    { at: 0, sequence: 5, heard: 3 },
    { at: 900, sequence: 7, heard: 4 },
    { at: 1100, sequence: 9, heard: 4, found: 'lost-tail' },
  ],
  'seen twice, but not for a second': [
    { at: 0, sequence: 5, heard: 3 },
    { at: 999, sequence: 5, heard: 3 },
  ],
  'seen, gone, and seen again: the second begins anew': [
    { at: 0, sequence: 5, heard: 3 },
    { at: 500, sequence: 5 },
    { at: 1100, sequence: 8, heard: 6 },
    { at: 2200, sequence: 8, heard: 7, found: 'lost-tail' },
  ],
  'counters that went back': [
    { at: 0, sequence: 5 },
    { at: 10, sequence: 2, heard: 2, found: 'counters-went-back' },
  ],
  'more messages than were sent': [
    { at: 0, sequence: 5, heard: 7 },
    { at: 1500, sequence: 6, heard: 7, found: 'counters-behind' },
  ],
  'a message that came after the counters were read is none too many': [
    { at: 0, sequence: 5, heard: [5, 7] },
    { at: 1500, sequence: 8, heard: [8, 9] },
  ],
  'nothing heard yet: counters alone say nothing': [
    { at: 0, sequence: 5, heard: null },
    { at: 5000, sequence: 5, heard: null },
  ],
  'keys that went without a message': [
    { at: 0, sequence: 5, keys: 90 },
    { at: 1000, sequence: 5, keys: 90, found: 'key-count' },
  ],
  'keys that messages explain': [
    { at: 0, sequence: 6, keys: 103, net: 3 },
    { at: 1000, sequence: 9, keys: 98, net: -2 },
  ],
  'keys counted while messages came: their number is known only from to': [
    { at: 0, sequence: 6, heard: [5, 6], keys: 101, net: [0, 2] },
    { at: 1000, sequence: 6, heard: [5, 6], keys: 101, net: [0, 2] },
  ],
  'keys counted before their messages came': [
    { at: 0, sequence: 6, heard: 5, keys: 130 },
    { at: 1000, sequence: 7, heard: 6, keys: 160, net: 30 },
  ],
  'more keys than messages explain (a restored snapshot)': [
    { at: 0, sequence: 5, keys: 110 },
    { at: 1000, sequence: 5, keys: 110, found: 'key-count' },
  ],
};

for (const [name, looks] of Object.entries(CASES)) {
  test(name, () => {
    const drift = new Drift();
    drift.baseline({ sequence: 5n, keys: 100, heard: [5n, 5n], net: [0, 0] });
    for (const look of looks) assert.is(drift.observe(look.at, readingOf(look)), look.found ?? null, `at ${look.at}`);
  });
}

test('a reconcile is a new beginning; without one keys are not judged', () => {
  const drift = new Drift();
  assert.is(drift.observe(0, readingOf({ at: 0, sequence: 5, keys: 10 })), null);
  assert.is(drift.observe(2000, readingOf({ at: 0, sequence: 5, keys: 90 })), null);
  drift.baseline(readingOf({ at: 0, sequence: 5, keys: 90 }));
  assert.is(drift.observe(3000, readingOf({ at: 0, sequence: 5, keys: 90 })), null);
  drift.reset();
  assert.is(drift.observe(9000, readingOf({ at: 0, sequence: 1, keys: 0, heard: null })), null);
});

test.run();
