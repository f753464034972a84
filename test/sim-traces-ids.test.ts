// Block ids of any integers or texts as compact numbers in order of first appearance, exact past 2⁵³, bounded, and shared over files.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigError, MoonrouteError } from '../src/errors.js';
import { TraceIds } from '../src/sim/traces/ids.js';
import { CHECKED_IDS, ParentCheck } from '../src/sim/traces/parents.js';
import { Recent } from '../src/sim/traces/recent.js';
import { Random } from './support/random.js';
import { readLines } from './support/traces.js';

const row = (ids: string, at = 0): string =>
  `{"timestamp":${at},"input_length":512,"output_length":1,"hash_ids":[${ids}]}`;
const numbersOf = async (...lists: readonly string[]): Promise<number[][]> => {
  const { requests } = await readLines(lists.map((ids, i) => row(ids, i)));
  return requests.map(({ hashIds }) => [...hashIds!]);
};

test('numbers go by first appearance', async () => {
  assert.equal(await numbersOf('0, 1, 2', '2, 0, 3', '3'), [[0, 1, 2], [2, 0, 3], [3]]);
  assert.equal(await numbersOf('9, 7, 9', '-4, 7'), [
    [0, 1, 0],
    [2, 1],
  ]);
  assert.equal(await numbersOf('0, 1, 900', '2, 3, 900, 1'), [
    [0, 1, 2],
    [3, 4, 2, 1],
  ]);
  assert.equal(await numbersOf('"b", "a", 0', '"a", 0, 1'), [
    [0, 1, 2],
    [1, 2, 3],
  ]);
});

test('integers past 2^53 stay apart', async () => {
  const [a, b] = ['18446744073709551614', '18446744073709551615'];
  assert.is(Number(a), Number(b));
  assert.equal(await numbersOf(`${a}, ${b}, 5`, `5, ${b}`, `"x,]", "${a}", 77, 5`, `${a}, 77`), [
    [0, 1, 2],
    [2, 1],
    [3, 4, 5, 2],
    [0, 5],
  ]);
  assert.equal(await numbersOf('-9007199254740993, -9007199254740992'), [[0, 1]]);
});

test("integers that can't be told are no ids, and say so", async () => {
  for (const ids of ['1e300, 2', '18446744073709551616', '18446744073709551615, "]"']) {
    const { requests, report } = await readLines([row(ids)]);
    assert.is(requests[0]!.hashIds, null);
    assert.is(report.warnings[0]!.code, 'bad-hash-ids');
  }
});

test('equals a Map over ids that are compact at first, then of all sizes', () => {
  const random = new Random(5);
  const ids = new TraceIds();
  const model = new Map<number | string, number>();
  for (let step = 0; step < 60_000; step++) {
    const kind = random.int(step < 20_000 ? 1 : 5);
    const id =
      kind === 0
        ? random.int(model.size + 1)
        : kind === 1
          ? random.int(5000) - 2500
          : kind === 2
            ? random.int(300) * 0x1_0000_0000 + random.int(20)
            : kind === 3
              ? random.uint32() * (random.chance(0.5) ? 1 : -4099)
              : `t${random.int(4000)}`;
    if (!model.has(id)) model.set(id, model.size);
    assert.is(ids.numberOf(id), model.get(id), `step ${step}, id ${id}`);
  }
  assert.is(ids.count, model.size);
});

test('the files of one trace share their ids', async () => {
  const ids = new TraceIds();
  await readLines([row('7, 8')], { ids });
  const { requests, report } = await readLines([row('8, 9')], { ids });
  assert.equal([...requests[0]!.hashIds!], [1, 2]);
  assert.is(report.distinctIds, 3);
});

test('more ids than there is room for is an error of its own', async () => {
  for (const lists of ['0, 1, 2', '5, 6, 7', '"a", "b", "c"']) {
    const error = await readLines([row('0'), row(lists)], { ids: new TraceIds(2) }).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.instance(error, MoonrouteError);
    assert.is((error as MoonrouteError).code, 'trace-ids');
  }
  assert.throws(
    () => new TraceIds(0),
    (error: unknown) => error instanceof ConfigError,
  );
});

test('the check for two parents is bounded, and counts what it did not check', () => {
  const parents = new ParentCheck();
  const last = CHECKED_IDS - 1;
  assert.equal(parents.check(Uint32Array.of(0, last, CHECKED_IDS, 1)), { conflicts: 0, unchecked: 1 });
  assert.equal(parents.check(Uint32Array.of(last, CHECKED_IDS + 5, 1)), { conflicts: 2, unchecked: 1 });
});

test('what is remembered by name is the most recently written', () => {
  const recent = new Recent<number>(2);
  recent.set('a', 1);
  recent.set('b', 2);
  recent.set('a', 3);
  recent.set('c', 4);
  assert.equal([recent.get('a'), recent.get('b'), recent.get('c')], [3, undefined, 4]);
});

test.run();
