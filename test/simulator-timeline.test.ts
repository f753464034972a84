// The timeline's pure parts: what zooming, panning and the strip above do to the view, what is asked for, where bars and rows lie, ticks, and words.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { RequestRow, RequestSpan, ResidencyRow, TimelineView } from '../src/sim/observed/types.js';
import { Asker } from '../src/web/simulator/timeline/asker.js';
import { commandOf } from '../src/web/simulator/timeline/keys.js';
import { boundsOf, columnAt, layoutOf, rowAt, rowsOf } from '../src/web/simulator/timeline/layout.js';
import {
  extentOf,
  inView,
  laneHeight,
  MAX_LANES,
  neighbour,
  partsOf,
  spanAt,
} from '../src/web/simulator/timeline/parts.js';
import { HEAT_STEPS, heatStep, paintStrip, STRIP, stripRows } from '../src/web/simulator/timeline/strip.js';
import { clockText, digitsFor, roundStep, ticksFor } from '../src/web/simulator/timeline/ticks.js';
import {
  clamped,
  gripAt,
  gripped,
  MAX_COLUMNS,
  panned,
  pinched,
  questionFor,
  revealing,
  SHORTEST,
  serves,
  timeAt,
  wheelFactor,
  xOf,
  zoomed,
} from '../src/web/simulator/timeline/window.js';
import { columnWords, limitWords, spanWords, spoken, windowWords } from '../src/web/simulator/timeline/words.js';

const END = 600_000;

// ---- the window ----

test('zooming keeps the time under the pointer where it is', () => {
  const view = { from: 100_000, to: 200_000 };
  for (const at of [100_000, 130_000, 200_000]) {
    for (const factor of [0.5, 0.9, 1.3]) {
      const next = zoomed(view, at, factor, END);
      assert.ok(Math.abs(xOf(at, next, 1000) - xOf(at, view, 1000)) < 1e-6, `${at} × ${factor}`);
      assert.ok(Math.abs(next.to - next.from - 100_000 * factor) < 1e-6);
    }
  }
});

test('the window never leaves the run, nor grows beyond it, nor below the shortest', () => {
  assert.equal(zoomed({ from: 0, to: END }, 1000, 2, END), { from: 0, to: END });
  assert.equal(panned({ from: 0, to: 100 }, -50, END), { from: 0, to: 100 });
  assert.equal(panned({ from: END - 100, to: END }, 50, END), { from: END - 100, to: END });
  const least = zoomed({ from: 10, to: 12 }, 11, 1e-9, END);
  assert.ok(Math.abs(least.to - least.from - SHORTEST) < 1e-9);
  assert.equal(clamped({ from: -5, to: -2 }, 0), { from: 0, to: SHORTEST }, 'a run without length');
});

test('two fingers keep their times', () => {
  const next = pinched([100_000, 200_000], 0.25, 0.75, END)!;
  assert.equal(next, { from: 50_000, to: 250_000 });
  assert.is(pinched([100_000, 200_000], 0.5, 0.5, END), null, 'fingers on one place');
  assert.is(pinched([100_000, 200_000], 0.6, 0.4, END), null, 'fingers that crossed');
});

test('the wheel doubles and halves alike, and lines and pages count as pixels', () => {
  assert.is(wheelFactor(240, 0), 2);
  assert.is(wheelFactor(-240, 0), 0.5);
  assert.is(wheelFactor(15, 1), 2);
});

test('what is asked for moves into view, and no further', () => {
  const view = { from: 1000, to: 2000 };
  assert.is(revealing(view, 1500, END), view);
  assert.equal(revealing(view, 1950, END), { from: 1050, to: 2050 });
  assert.equal(revealing(view, 500, END), { from: 400, to: 1400 });
});

test('the strip: edges win over the middle, and a thin window can still be moved', () => {
  const view = { from: 150_000, to: 300_000 }; // 250 … 500 of 1000 pixels
  for (const [x, grip] of [
    [245, 'from'],
    [256, 'from'],
    [400, 'middle'],
    [495, 'to'],
    [505, 'to'],
    [100, 'outside'],
    [800, 'outside'],
  ] as const)
    assert.is(gripAt(x, view, END, 1000, 10), grip, String(x));
  assert.is(gripAt(253, { from: 150_000, to: 153_600 }, END, 1000, 10), 'middle');
});

test('the strip: edges stay in order and in the run, the middle keeps its length', () => {
  const view = { from: 100_000, to: 200_000 };
  assert.equal(gripped('from', view, 150_000, 0, END), { from: 150_000, to: 200_000 });
  assert.equal(gripped('from', view, 250_000, 0, END), { from: 200_000 - SHORTEST, to: 200_000 });
  assert.equal(gripped('to', view, END + 99, 0, END), { from: 100_000, to: END });
  assert.equal(gripped('middle', view, 400_000, 20_000, END), { from: 380_000, to: 480_000 });
  assert.equal(gripped('middle', view, 0, 20_000, END), { from: 0, to: 100_000 });
});

// ---- questions ----

test('a question is two windows wide, a column a pixel, and in the run', () => {
  const view = { from: 100_000, to: 200_000 };
  assert.equal(questionFor(view, END, 1000), { from: 50_000, to: 250_000, columns: 2000 });
  assert.equal(questionFor({ from: 0, to: 100_000 }, END, 1000), { from: 0, to: 150_000, columns: 1500 });
  assert.equal(questionFor({ from: 0, to: END }, END, 1000), { from: 0, to: END, columns: 1000 });
  assert.is(questionFor(view, END, 100_000).columns, MAX_COLUMNS);
});

test('what is at hand serves small moves, but not large ones, nor another scale', () => {
  const view = { from: 100_000, to: 200_000 };
  const had = questionFor(view, END, 1000);
  assert.not(serves(null, view, END, 1000));
  assert.ok(serves(had, view, END, 1000));
  assert.ok(serves(had, panned(view, 30_000, END), END, 1000));
  assert.not(serves(had, panned(view, 45_000, END), END, 1000));
  assert.ok(serves(had, zoomed(view, 150_000, 0.9, END), END, 1000));
  assert.not(serves(had, zoomed(view, 150_000, 0.5, END), END, 1000), 'too coarse');
  const whole = { from: 0, to: END };
  assert.ok(serves(questionFor(whole, END, 1000), whole, END, 1000), 'at the ends of the run no margin is needed');
});

test('one question is in flight, and only the newest wish is kept', async () => {
  const asked: number[] = [];
  const answered: number[] = [];
  const answers: (() => void)[] = [];
  let idle = 0;
  const asker = new Asker<number, number>({
    ask: (question) => {
      asked.push(question);
      return new Promise((resolve) => answers.push(() => resolve(question)));
    },
    answered: (answer) => answered.push(answer),
    failed: (error) => assert.unreachable(String(error)),
    idle: () => idle++,
  });
  for (const question of [1, 2, 3]) asker.want(question);
  assert.equal(asked, [1]);
  const turn = () => new Promise((resolve) => setTimeout(resolve));
  answers[0]!();
  await turn();
  assert.equal(asked, [1, 3]);
  assert.equal(answered, [1]);
  asker.drop();
  answers[1]!();
  await turn();
  assert.equal(answered, [1], 'what was dropped is not heard');
  assert.not(asker.busy);
  assert.is(idle, 1, 'whoever waits for a free line is told, though the answer was dropped');
});

test('a question that fails ends nothing', async () => {
  const failed: unknown[] = [];
  const asker = new Asker<number, number>({
    ask: (question) => (question === 1 ? Promise.reject(new Error('gone')) : Promise.resolve(question)),
    answered: (answer) => failed.push(answer),
    failed: (error) => failed.push((error as Error).message),
    idle: () => undefined,
  });
  asker.want(1);
  asker.want(2);
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(failed, ['gone', 2]);
});

// ---- ticks ----

test('steps are round, from parts of a millisecond to days', () => {
  for (const [least, step] of [
    [0.07, 0.1],
    [1, 1],
    [3, 5],
    [120, 200],
    [400, 500],
    [700, 1000],
    [11_000, 15_000],
    [70_000, 120_000],
    [2_000_000, 3_600_000],
    [30_000_000, 43_200_000],
    [100_000_000, 172_800_000],
  ] as const)
    assert.is(roundStep(least), step, String(least));
});

test('times read as minutes, with as many digits as tell neighbours apart', () => {
  assert.is(clockText(754_321), '12:34.321');
  assert.is(clockText(3_754_000, 0), '1:02:34');
  assert.is(clockText(59_999.6), '1:00.000', 'rounded before it is split');
  assert.is(clockText(0, 0), '0:00');
  assert.equal([1000, 500, 20, 1, 0.1].map(digitsFor), [0, 1, 2, 3, 4]);
  const { times, step } = ticksFor(90_000, 210_000, 1000, 84);
  assert.is(step, 15_000);
  assert.equal(times, [90_000, 105_000, 120_000, 135_000, 150_000, 165_000, 180_000, 195_000, 210_000]);
});

// ---- bars ----

const row = (request: number, times: readonly number[], more: Partial<RequestRow> = {}): RequestRow => {
  const [at, begunAt, fetchedAt, firstTokenAt, endedAt] = times;
  return {
    request,
    worker: 0,
    promptTokens: 1600,
    outputTokens: 20,
    at: at!,
    begunAt: begunAt!,
    fetchedAt: fetchedAt!,
    firstTokenAt: firstTokenAt!,
    endedAt: endedAt!,
    full: 100,
    gpu: 60,
    dram: 20,
    ssd: 5,
    credited: 25,
    creditError: 0,
    cost: 1,
    runnerUpCost: 2,
    runnerUp: 1,
    ...more,
  };
};
const span = (request: number, lane: number, from: number, to: number): RequestSpan => ({
  row: row(request, [from, from, from, from, to]),
  lane,
});

test('a bar has its parts in order, without those that took no time', () => {
  assert.equal(
    partsOf(row(0, [0, 10, 30, 100, 500]), 1000).map(({ kind, from, to }) => [kind, from, to]),
    [
      ['wait', 0, 10],
      ['fetch', 10, 30],
      ['compute', 30, 100],
      ['decode', 100, 500],
    ],
  );
  assert.equal(
    partsOf(row(0, [0, 0, 0, 100, 500]), 1000).map(({ kind }) => kind),
    ['compute', 'decode'],
  );
});

test('a bar that has not ended goes on to now', () => {
  const waiting = row(0, [10, NaN, NaN, NaN, NaN]);
  assert.equal(partsOf(waiting, 70), [{ kind: 'wait', from: 10, to: 70 }]);
  assert.equal(extentOf(waiting, 70), { from: 10, to: 70 });
  const computing = row(0, [10, 20, 20, NaN, NaN]);
  assert.equal(
    partsOf(computing, 70).map(({ kind, to }) => [kind, to]),
    [
      ['wait', 20],
      ['compute', 70],
    ],
  );
});

test('a pointer finds the bar under it, the shortest where several are, else a near one', () => {
  const spans = [span(1, 0, 100, 200), span(2, 0, 600, 601), span(3, 1, 100, 900), span(4, 0, 590, 640)];
  const view = { from: 0, to: 1000 };
  const at = (x: number, lane: number) => spanAt(spans, { x, lane }, view, 1000, 1000)?.row.request ?? null;
  assert.is(at(150, 0), 1);
  assert.is(at(600.5, 0), 2);
  assert.is(at(610, 0), 4);
  assert.is(at(202, 0), 1);
  assert.is(at(300, 0), null);
  assert.is(at(300, 1), 3);
  assert.is(neighbour(spans, 0, 100, false)?.row.request, 4);
  assert.is(neighbour(spans, 0, 600, true)?.row.request, 4);
  assert.is(neighbour(spans, 1, 100, true), null);
  assert.equal(
    inView(spans, { from: 0, to: 595 }, 1000, 2).map(({ row: { request } }) => request),
    [1, 3],
  );
});

// ---- rows ----

test('lanes keep between four and twenty pixels, and rows are found where they lie', () => {
  assert.equal([1, 15, 50, 200].map(laneHeight), [20, 20, 6, 4]);
  const layout = layoutOf(12, 3);
  for (const each of rowsOf(layout)) {
    const { top, bottom } = boundsOf(layout, each);
    assert.equal(rowAt(layout, (top + bottom) / 2), each);
    assert.ok(bottom <= layout.height);
  }
  assert.is(rowsOf(layout).length, 12 + 1 + 3);
  assert.is(rowAt(layout, 5), null, 'the ruler');
  assert.is(layoutOf(5000, 0).lanes.count, MAX_LANES);
  assert.equal(rowsOf(layoutOf(0, 0)), [{ kind: 'total' }], 'a store has no lanes');
});

test('keys have their meanings, in either case; with shift the arrows pan', () => {
  for (const [keys, kind] of [
    [['+', '=', 'w', 'W', '-', 's', 'S'], 'zoom'],
    [['a', 'A', 'd', 'D'], 'pan'],
    [['0', 'f', 'F'], 'fit'],
    [['ArrowLeft', 'ArrowRight'], 'along'],
    [['ArrowUp', 'ArrowDown'], 'across'],
    [['Home', 'End'], 'edge'],
    [['Enter', ' '], 'open'],
    [['Escape'], 'drop'],
    [['Tab', 'x', 'PageDown'], undefined],
  ] as const)
    for (const key of keys) assert.is(commandOf(key, false)?.kind, kind, key);
  assert.equal(commandOf('ArrowLeft', true), commandOf('a', false));
  assert.equal(commandOf('ArrowRight', true), commandOf('d', false));
});

// ---- what was held ----

const residency = (family: number, columns: number, more: Partial<ResidencyRow> = {}): ResidencyRow => ({
  family,
  firstRequest: 7,
  requests: 3,
  held: new Float64Array(columns),
  stored: new Float64Array(columns),
  fetched: new Float64Array(columns),
  evicted: new Float64Array(columns),
  ...more,
});
const viewOf = (more: Partial<TimelineView> = {}): TimelineView => ({
  place: 3,
  from: 0,
  to: 1000,
  columns: 4,
  spans: [],
  lanes: 1,
  spansLeftOut: 0,
  total: residency(-1, 4, { held: Float64Array.of(0, 50, 100, 100), evicted: Float64Array.of(0, 0, 0, 9) }),
  families: [residency(0, 4, { held: Float64Array.of(0, 1, 80, 80), stored: Float64Array.of(0, 1, 79, 0) })],
  familiesLeftOut: 0,
  capacity: 100,
  recordedTo: 1000,
  ...more,
});

test('times fall into columns, the end into the last', () => {
  const view = viewOf();
  assert.equal(
    [0, 249, 250, 999, 1000, 1001, -1].map((time) => columnAt(view, time)),
    [0, 0, 1, 3, 3, null, null],
  );
});

test('a heat strip shows the least block and tells six steps apart', () => {
  assert.is(heatStep(0, 100), 0);
  assert.is(heatStep(1e-9, 100), 1);
  assert.is(heatStep(100, 100), HEAT_STEPS);
  assert.is(heatStep(1, 0), 0);
  const steps = new Set(Array.from({ length: 101 }, (_, i) => heatStep(i, 100)));
  assert.is(steps.size, HEAT_STEPS + 1);
});

test('the strip’s pixels: full to the capacity, empty where nothing was held, movements up and down', () => {
  const view = viewOf();
  const rows = stripRows({ ...STRIP, families: 1 });
  const pixels = new Uint8ClampedArray(4 * rows.height * 4);
  const red = [255, 0, 0] as const;
  const blue = [0, 0, 255] as const;
  paintStrip(
    view,
    rows,
    { held: blue, stored: [0, 255, 0], fetched: [9, 9, 9], evicted: red, rule: [1, 1, 1] },
    pixels,
  );
  const at = (x: number, y: number) => [...pixels.subarray((y * 4 + x) * 4, (y * 4 + x) * 4 + 4)];
  assert.is(at(0, rows.area.bottom - 1)[3], 0);
  assert.equal(at(2, 0).slice(0, 3), [...blue], 'as high as the capacity');
  assert.is(at(1, rows.area.bottom / 2 - 1)[3], 0);
  assert.ok(at(1, rows.area.bottom / 2)[3]! > 0, 'half as high');
  const middle = Math.floor((rows.flow.top + rows.flow.bottom) / 2);
  assert.equal(at(3, middle + 1).slice(0, 3), [...red]);
  assert.is(at(3, middle - 1)[3], 0, 'nothing came');
  const family = rows.families[0]!;
  assert.ok(at(1, family.top + 3)[3]! < at(2, family.top + 3)[3]!);
  assert.is(at(0, family.top + 3)[3], 0);
});

// ---- words ----

test('a bar says when, for how long and from where', () => {
  const told = spoken(spanWords(row(4211, [754_321, 754_331, 754_351, 754_421, 755_000]), END));
  assert.is(
    told,
    'Request 4,211. Arrived: 12:34.321; Waited: 10 ms; Fetched for: 20 ms; Computed its prompt for: 70 ms; Decoded for: 579 ms; ' +
      'First token after: 100 ms; Prompt: 1,600 tokens, 100 blocks; Its blocks: 60 from GPU, 25 from the store, 15 computed; Output: 20 tokens.',
  );
});

test('a column says what was held and what moved, of the store in its own words and in bytes', () => {
  const view = viewOf();
  const worker = spoken(columnWords(view, view.total, 3, { isTotal: true, blockBytes: null }));
  assert.match(
    worker,
    'GPU of worker 3. Time: 0:00.8 – 0:01.0; Held at its end: 100 blocks; Of its capacity: 100.00 % of 100',
  );
  assert.match(worker, 'Evicted for want of room: 9 blocks');
  const store = viewOf({ place: 'store' });
  const told = spoken(columnWords(store, store.families[0]!, 1, { isTotal: false, blockBytes: 5.24e6 }));
  assert.match(told, 'Family 0: 3 requests that begin like request 7.');
  assert.match(told, 'Held at its end: 1 block, 5.24 MB');
  assert.match(told, 'Put by workers: 1 block; Read by workers: 0 blocks');
});

test('what was left out is said, and nothing where nothing was', () => {
  assert.equal(limitWords(viewOf(), 1000), []);
  const spans = Array.from({ length: 2 }, (_, i) => span(i, 0, 0, 1));
  assert.equal(limitWords(viewOf({ spans, spansLeftOut: 3300, familiesLeftOut: 40, recordedTo: 754_000 }), END * 2), [
    'Shown are the longest 2 of 3,302 requests around here; zoom in for the rest.',
    '40 more families held or moved less than these.',
    'Movements of blocks were recorded to 12:34; after that the record was full.',
  ]);
  assert.is(windowWords({ from: 62_400, to: 63_900 }, END), '1:02.4 – 1:03.9 · 1.5 s of 10 min');
});

test('a place on screen and its time agree', () => {
  const view = { from: 100, to: 300 };
  for (const x of [0, 17, 250]) assert.ok(Math.abs(xOf(timeAt(x, view, 250), view, 250) - x) < 1e-9);
});

test.run();
