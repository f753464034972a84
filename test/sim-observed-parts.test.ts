// The parts of an observed simulation, each against a plain version: buckets, quantiles, families, the residency log and its views, lines of bars.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Families } from '../src/sim/observed/families.js';
import { Lanes } from '../src/sim/observed/lanes.js';
import { QUANTILE_STEPS, SortedTimes } from '../src/sim/observed/quantiles.js';
import { RequestRows } from '../src/sim/observed/request-rows.js';
import { CAME, CLEARED, EVICTED, READ, RESTORED, ResidencyLog, STORE } from '../src/sim/observed/residency-log.js';
import { residencyView } from '../src/sim/observed/residency-view.js';
import { MAX_BUCKETS, MAX_BUCKETS_OF_MANY, SeriesRecorder } from '../src/sim/observed/series.js';
import { MAX_SPANS, spansOf } from '../src/sim/observed/spans.js';
import { SeededRandom } from '../src/sim/random.js';
import { assertNear, sumOf } from './support/observed-checks.js';

test('buckets: each two become one when time outgrows them; sums stay, and what stands stands at each end', () => {
  const random = new SeededRandom(5);
  const recorder = new SeriesRecorder(1);
  const adds: [time: number, amount: number][] = [];
  const stands: [time: number, value: number][] = [[0, 0]];
  let busy = 0;
  let time = 0;
  for (let i = 0; i < 3000; i++) {
    const before = time;
    time += random.exponential() * (i < 1000 ? 0.3 : 40);
    recorder.turnTo(time);
    const amount = random.between(0, 9);
    adds.push([time, amount]);
    recorder.add('gpu', time, amount);
    if (random.chance(0.5)) {
      recorder.spreadOf(0, 'busy', before, time, 1);
      busy += time - before;
    }
    const by = random.between(-3, 3);
    stands.push([time, stands.at(-1)![1] + by]);
    recorder.changeOf(0, 'running', by);
    if (i % 200 !== 0) continue;
    const { step, buckets, gpu, workers } = recorder.series();
    assert.ok(buckets <= MAX_BUCKETS && buckets === Math.floor(time / step) + 1);
    const wanted = new Float64Array(buckets);
    for (const [at, what] of adds) wanted[Math.floor(at / step)]! += what;
    assert.equal(gpu, wanted);
    assertNear(sumOf(workers[0]!.busy), busy, 'busy');
    assert.ok(workers[0]!.busy.every((ms) => ms <= step + 1e-6));
    let at = 0;
    for (let bucket = 0; bucket < buckets; bucket++) {
      while (at + 1 < stands.length && stands[at + 1]![0] < (bucket + 1) * step) at++;
      assert.is(workers[0]!.running[bucket], stands[at]![1]);
    }
  }
});

test('many workers have fewer buckets', () => {
  const recorder = new SeriesRecorder(1024);
  recorder.turnTo(1e6);
  const { buckets, step, workers } = recorder.series();
  assert.ok(buckets <= MAX_BUCKETS_OF_MANY && buckets * step > 1e6);
  assert.is(workers.length, 1024);
  assert.ok(recorder.bytes < 8e6);
});

test('quantiles: by nearest rank of all that came, however often they are asked for', () => {
  const random = new SeededRandom(8);
  const times = new SortedTimes();
  assert.is(times.quantiles().length, 0);
  const all: number[] = [];
  for (let i = 0; i < 5000; i++) {
    const time = random.between(0, 2000) / 4;
    all.push(time);
    times.add(time);
    if (i > 20 && i % 700 !== 0) continue;
    const sorted = Float64Array.from(all).sort();
    const steps = Math.max(1, Math.min(QUANTILE_STEPS, all.length - 1));
    const wanted = Array.from(
      { length: steps + 1 },
      (_, q) => sorted[Math.min(all.length - 1, Math.round((q * (all.length - 1)) / steps))],
    );
    assert.equal([...times.quantiles()], wanted);
    assert.equal([...times.quantiles()], wanted);
  }
  assert.is(times.count, 5000);
});

test('families: prompts that begin with one node', () => {
  const families = new Families();
  // Nodes 0 … 2 are new; then 3, 4 under node 0; another beginning 5; then 6 under node 0 again; and a prompt without whole blocks.
  assert.equal(
    [
      families.read(0, 0, 0, 3),
      families.read(1, 0, 3, 5),
      families.read(2, 5, 5, 6),
      families.read(3, 0, 6, 7),
      families.read(4, undefined, 7, 7),
      families.read(5, 5, 7, 7),
    ],
    [0, 0, 1, 0, -1, 1],
  );
  assert.equal(
    Array.from({ length: 7 }, (_, node) => families.of(node)),
    [0, 0, 0, 0, 0, 1, 0],
  );
  assert.equal([...families.requests.subarray(0, 2)], [3, 2]);
  assert.equal([...families.firstRequest.subarray(0, 2)], [0, 2]);
});

test('lines of bars: the lowest that is free', () => {
  const lanes = new Lanes();
  assert.equal([lanes.take(), lanes.take(), lanes.take()], [0, 1, 2]);
  lanes.free(1);
  assert.equal([lanes.take(), lanes.take()], [1, 3]);
  lanes.free(0);
  lanes.free(2);
  assert.equal([lanes.take(), lanes.take(), lanes.count], [0, 2, 4]);
});

test('views of the residency log: as if every movement were counted anew', () => {
  const random = new SeededRandom(3);
  const log = new ResidencyLog();
  const families = new Families();
  for (let family = 0; family < 6; family++) families.read(family, family, family, family + 1);
  type Movement = { time: number; kind: number; family: number; blocks: number };
  const moved: Movement[] = [];
  const held = new Array<number>(6).fill(0);
  for (let time = 0, i = 0; i < 400; i++) {
    if (random.chance(0.6)) time += random.between(1, 10);
    const place = random.chance(0.7) ? 1 : STORE;
    const family = random.int(6);
    let kind = [CAME, RESTORED, READ, EVICTED][random.int(4)]!;
    let blocks = random.between(1, 20);
    if (place === 1 && kind === EVICTED) {
      blocks = Math.min(blocks, held[family]!);
      if (blocks === 0) kind = READ;
    }
    if (random.chance(0.01)) kind = CLEARED;
    if (place === 1) {
      if (kind === CLEARED) held.fill(0);
      else held[family]! += kind === EVICTED ? -blocks : kind === READ ? 0 : blocks;
      moved.push({ time, kind, family, blocks });
    }
    log.add(time, place, kind, kind === CLEARED ? -1 : family, kind === CLEARED ? 0 : blocks);
  }
  const end = moved.at(-1)!.time;
  for (const [from, to, columns] of [
    [0, end, 10],
    [end / 3, end / 2, 7],
    [end / 2, end * 2, 4],
    [-100, 5, 3],
  ] as const) {
    const question = { place: 1, from, to, columns, families: 3 };
    const { total, families: rows, familiesLeftOut } = residencyView(log, families, question);
    const width = (to - from) / columns;
    const columnOf = (time: number): number => Math.min(columns - 1, Math.floor((time - from) / width));
    const plain = (counts: (family: number) => boolean) => {
      const row = { held: [] as number[], stored: [] as number[], fetched: [] as number[], evicted: [] as number[] };
      for (let column = 0; column < columns; column++) {
        const mine = moved.filter(({ time }) => time <= to && (time < from || columnOf(time) <= column));
        const since = mine.slice(mine.findLastIndex(({ kind }) => kind === CLEARED) + 1);
        const here = mine.filter(({ time }) => time >= from && columnOf(time) === column);
        const sum = (some: readonly Movement[], kinds: readonly number[]): number =>
          some.reduce(
            (all, { kind, family, blocks }) => all + (counts(family) && kinds.includes(kind) ? blocks : 0),
            0,
          );
        row.held.push(sum(since, [CAME, RESTORED]) - sum(since, [EVICTED]));
        row.stored.push(sum(here, [CAME]));
        row.fetched.push(sum(here, [RESTORED, READ]));
        row.evicted.push(sum(here, [EVICTED]));
      }
      return row;
    };
    const numbers = ({ held, stored, fetched, evicted }: typeof total) => ({
      held: [...held],
      stored: [...stored],
      fetched: [...fetched],
      evicted: [...evicted],
    });
    assert.equal(
      numbers(total),
      plain(() => true),
    );
    for (const row of rows)
      assert.equal(
        numbers(row),
        plain((family) => family === row.family),
        `family ${row.family}`,
      );
    assert.is(rows.length, Math.min(3, rows.length + familiesLeftOut));
  }
});

test('the log is bounded, and says up to when it reaches', () => {
  const log = new ResidencyLog();
  for (let i = 0; i < 10; i++) log.add(5, 0, CAME, 1, 2);
  assert.equal([log.count, log.blocks[0]], [1, 20]);
  assert.is(log.recordedTo, Number.POSITIVE_INFINITY);
  log.end(7);
  log.add(8, 0, CAME, 1, 2);
  assert.equal([log.count, log.recordedTo], [1, 7]);
});

test('bars: those that touch the view; of too many the longest', () => {
  const rows = new RequestRows();
  for (let i = 0; i < MAX_SPANS + 500; i++) {
    rows.add(10, 1, 0, -1);
    rows.worker[i] = i === 3 ? 1 : 0;
    rows.at[i] = i;
    rows.begunAt[i] = i + 0.5;
    rows.endedAt[i] = i % 5 === 0 ? i + 1 : i + 2;
    rows.lane[i] = i % 3;
  }
  const few = spansOf(rows, 0, 10, 12, 9999);
  assert.equal(
    few.spans.map(({ row, lane }) => [row.request, lane]),
    [
      [12, -1],
      [9, 0],
      [10, 1],
      [8, 2],
      [11, 2],
    ],
  );
  assert.is(few.spansLeftOut, 0);
  const all = spansOf(rows, 0, 0, 1e9, 9999);
  assert.equal([all.spans.length, all.spansLeftOut], [MAX_SPANS, 499]);
  assert.ok(all.spans.filter(({ row }) => row.request % 5 === 0).length <= 1);
});

test.run();
