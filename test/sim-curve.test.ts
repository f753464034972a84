// The one-pass capacity curve against a direct simulation at every capacity, over small random traces with repeated ids and requests longer
// than the cache. The known answers of the published traces are in sim-curve-published.test.ts.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/errors.js';
import { CapacityCurve } from '../src/sim/curve.js';
import { Random } from './support/random.js';
import { simulateLru } from './support/simulate-lru.js';

function curveOf(requests: readonly (readonly number[])[]): CapacityCurve {
  const curve = new CapacityCurve();
  for (const ids of requests) curve.add(ids);
  return curve;
}

/** Requests by hand, and the hits at capacities 0, 1, 2 … */
const rows: readonly { name: string; requests: readonly (readonly number[])[]; hits: readonly number[] }[] = [
  { name: 'nothing', requests: [], hits: [0, 0] },
  { name: 'an empty request', requests: [[], [0], []], hits: [0, 0, 0] },
  { name: 'the same block again', requests: [[0], [0]], hits: [0, 1, 1] },
  {
    name: 'a prefix survives its tail',
    requests: [
      [0, 1, 2],
      [0, 1, 2],
    ],
    hits: [0, 1, 2, 3, 3],
  },
  {
    name: 'a resident tail without its head is no hit',
    requests: [
      [0, 1],
      [2, 3],
      [4, 1],
    ],
    hits: [0, 0, 0, 0, 0],
  },
  { name: 'a cold head hides the warm rest', requests: [[0], [1], [0, 1]], hits: [0, 0, 2, 2] },
  {
    name: 'an id twice in a request',
    requests: [
      [0, 1, 0],
      [0, 1, 0],
    ],
    hits: [0, 1, 3, 3],
  },
];
for (const { name, requests, hits } of rows) {
  test(`by hand: ${name}`, () => {
    const curve = curveOf(requests);
    hits.forEach((wanted, capacity) => {
      assert.is(curve.hitsAt(capacity), wanted, `one pass at ${capacity}`);
      assert.is(simulateLru(requests, capacity), wanted, `simulated at ${capacity}`);
    });
  });
}

/** Random requests: some fresh, some that branch off an earlier one, some with repeated ids. */
function randomRequests(random: Random): number[][] {
  const distinct = random.between(1, 40);
  const longest = random.between(1, 12);
  const requests: number[][] = [];
  for (let count = random.between(1, 60); count > 0; count--) {
    const trunk = requests.length > 0 && random.chance(0.6) ? random.pick(requests) : [];
    const ids = trunk.slice(0, random.int(trunk.length + 1));
    for (let more = random.int(longest + 1); more > 0; more--) ids.push(random.int(distinct));
    requests.push(ids);
  }
  return requests;
}

test('equals the simulation at every capacity, on 600 random traces', () => {
  for (let seed = 0; seed < 600; seed++) {
    const requests = randomRequests(new Random(seed));
    const curve = curveOf(requests);
    assert.is(curve.distinct, new Set(requests.flat()).size);
    assert.is(curve.references, requests.flat().length);
    for (let capacity = 0; capacity <= curve.distinct + 2; capacity++)
      assert.is(curve.hitsAt(capacity), simulateLru(requests, capacity), `seed ${seed}, capacity ${capacity}`);
    assert.is(curve.hitsAt(Number.POSITIVE_INFINITY), simulateLru(requests, Number.POSITIVE_INFINITY), `seed ${seed}`);
  }
});

test('equals the simulation where the time line is packed and all tables grow', () => {
  const random = new Random(77);
  const requests: number[][] = [];
  for (let i = 0; i < 3000; i++) {
    const trunk = requests.length > 0 && random.chance(0.7) ? random.pick(requests) : [];
    const ids = trunk.slice(0, random.int(trunk.length + 1));
    for (let more = random.int(9); more > 0; more--) ids.push(random.int(6000));
    requests.push(ids);
  }
  const curve = curveOf(requests);
  for (const capacity of [
    1,
    10,
    31,
    32,
    33,
    100,
    500,
    1023,
    1024,
    2048,
    3000,
    4096,
    curve.distinct - 1,
    curve.distinct,
  ])
    assert.is(curve.hitsAt(capacity), simulateLru(requests, capacity), `capacity ${capacity}`);
});

test('hits can be asked for between requests', () => {
  const requests = randomRequests(new Random(4));
  const curve = new CapacityCurve();
  requests.forEach((ids, i) => {
    curve.add(Uint32Array.from(ids));
    assert.is(curve.hitsAt(5), simulateLru(requests.slice(0, i + 1), 5));
  });
});

test('points are the corners: the least capacity for each number of hits', () => {
  const curve = curveOf(randomRequests(new Random(9)));
  const corners = [];
  for (let capacity = 1; capacity <= curve.distinct; capacity++)
    if (curve.hitsAt(capacity) > curve.hitsAt(capacity - 1)) corners.push({ capacity, hits: curve.hitsAt(capacity) });
  assert.ok(corners.length > 10);
  assert.equal(curve.points(), corners);
  for (let most = 1; most < corners.length; most++) {
    const some = curve.points(most);
    assert.ok(some.length >= 1 && some.length <= most, `${some.length} points of ${most}`);
    assert.equal(some.at(-1), corners.at(-1));
    for (const point of some) assert.ok(corners.some((c) => c.capacity === point.capacity && c.hits === point.hits));
  }
  assert.equal(curveOf([[0, 1]]).points(), []);
});

test('ids, capacities and counts that make no sense are refused, and change nothing', () => {
  const curve = new CapacityCurve({ maxIds: 10 });
  curve.add([0, 9]);
  const refusals: readonly (readonly [string, () => unknown])[] = [
    ['curve-id', () => curve.add([0, 10])],
    ['curve-id', () => curve.add([-1])],
    ['curve-id', () => curve.add([0.5])],
    ['curve-id', () => curve.add([Number.NaN])],
    ['curve-capacity', () => curve.hitsAt(-1)],
    ['curve-capacity', () => curve.hitsAt(Number.NaN)],
    ['curve-points', () => curve.points(0)],
    ['curve-max-ids', () => new CapacityCurve({ maxIds: 0 })],
  ];
  for (const [code, work] of refusals)
    assert.throws(work, (error: unknown) => error instanceof ConfigError && error.code === code, code);
  assert.equal([curve.references, curve.distinct, curve.hitsAt(10)], [2, 2, 0]);
});

test.run();
