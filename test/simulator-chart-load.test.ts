// Busy shares of workers as a grid of cells, and requests that wait.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  heatOf,
  labelledRows,
  loadOf,
  loadReading,
  loadSummary,
  loadTable,
  rowName,
  waitLine,
} from '../src/web/simulator/charts/load-data.js';
import { chartPicture } from './support/chart-picture.js';

const picture = chartPicture({
  step: 1000,
  now: 3500,
  workers: [
    { busy: [1000, 500, 0, 500], running: [2, 1, 0, 3], waiting: [0, 4, 0, 1], resident: [10, 20, 30, 40] },
    { busy: [0, 250, 250, 0], running: [0, 1, 1, 0], waiting: [0, 0, 0, 2], resident: [1, 2, 3, 4] },
    { busy: [1000, 1000, 1000, 500], running: [5, 5, 5, 5], waiting: [9, 9, 9, 9], resident: [7, 7, 7, 7] },
  ],
});
const cells = (busy: Float32Array) => [...busy].map((share) => Math.round(share * 1000) / 1000);

test('a cell is the part of its time that was computed; the last column has only begun', () => {
  const heat = heatOf(picture, 0, 3500, 100, 100);
  assert.equal([heat.rows, heat.width, heat.merged], [3, 4, 1]);
  assert.equal(cells(heat.busy), [1, 0.5, 0, 1, 0, 0.25, 0.25, 0, 1, 1, 1, 1]);
});

test('columns merge where there are more than can be seen', () => {
  const heat = heatOf(picture, 0, 3500, 2, 100);
  assert.is(heat.width, 2);
  assert.equal(cells(heat.busy), [0.75, 0.333, 0.125, 0.167, 1, 1]);
});

test('workers merge into rows that show their mean, the last row with fewer', () => {
  const heat = heatOf(picture, 0, 3500, 100, 2);
  assert.equal([heat.rows, heat.merged], [2, 2]);
  assert.equal(cells(heat.busy), [0.5, 0.375, 0.125, 0.5, 1, 1, 1, 1]);
  assert.is(rowName(heat, 0), 'workers 0–1');
  assert.is(rowName(heat, 1), 'worker 2');
});

test('only what is in view is made', () => {
  const heat = heatOf(picture, 1200, 2800, 100, 100);
  assert.equal([heat.first, heat.width], [1, 2]);
  assert.equal(cells(heat.busy), [0.5, 0, 0.25, 0.25, 1, 1]);
});

test('1,024 workers fit', () => {
  const many = chartPicture({
    step: 1000,
    now: 2000,
    workers: Array.from({ length: 1024 }, () => ({ busy: [500, 1000] })),
  });
  const heat = heatOf(many, 0, 2000, 100, 128);
  assert.equal([heat.rows, heat.merged], [128, 8]);
  assert.equal(cells(heat.busy.subarray(0, 2)), [0.5, 1]);
  assert.ok(loadTable([{ label: 'kv', picture: many }]).rows.length <= 50);
});

test('a run without workers or time has an empty grid', () => {
  assert.is(heatOf(chartPicture({ step: 1000, now: 0 }), 0, 1, 10, 10).busy.length, 0);
});

test('labels stand at round distances', () => {
  assert.equal(labelledRows(8, 10), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.equal(labelledRows(8, 3), [0, 4]);
});

test('what is said of a cell', () => {
  const heat = heatOf(picture, 0, 3500, 100, 100);
  assert.is(
    loadReading(picture, heat, 1, 0),
    'worker 0, 1 s to 2 s: busy 50.00 %; at its end 1 running, 4 waiting, 20 blocks on GPU',
  );
  assert.is(
    loadReading(picture, heat, 3, null),
    'all 3 workers, 3 s to 3.5 s: busy 66.67 % (mean); at its end 8 running, 12 waiting, 51 blocks on GPU',
  );
  const merged = heatOf(picture, 0, 3500, 100, 2);
  assert.is(
    loadReading(picture, merged, 0, 0),
    'workers 0–1, 0 ms to 1 s: busy 50.00 % (mean); at its end 2 running, 0 waiting, 11 blocks on GPU',
  );
  // Not the mean of rows, of which the last has one worker only.
  assert.match(loadReading(picture, merged, 0, null), 'busy 66.67 % (mean)');
});

test('waiting requests are those of all workers at a column’s end', () => {
  assert.equal(waitLine(picture, 0, 3500, 100), { at: [1000, 2000, 3000, 3500], waiting: [9, 13, 9, 12] });
  assert.equal(waitLine(picture, 0, 3500, 2), { at: [2000, 3500], waiting: [13, 12] });
});

test('the whole run in a sentence', () => {
  assert.equal(
    loadOf(picture).map((busy) => Math.round(busy * 1000)),
    [571, 143, 1000],
  );
  assert.is(
    loadSummary(picture),
    '3 workers: busy 57.14 % of the time; worker 2 most (100.00 %), worker 1 least (14.29 %)',
  );
  assert.is(
    loadSummary(chartPicture({ step: 1000, now: 1000, workers: [{ busy: [250] }] })),
    '1 worker: busy 25.00 % of the time',
  );
});

test.run();
