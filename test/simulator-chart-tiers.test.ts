// Shares of prompt blocks over time: columns of buckets, gaps, and what is said of them.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  tierColumnAt,
  tierColumns,
  tierLegend,
  tierReading,
  tierSummary,
  tierTable,
  wholeRun,
} from '../src/web/simulator/charts/tiers-data.js';
import { chartPicture } from './support/chart-picture.js';

const picture = chartPicture({
  step: 1000,
  now: 5500,
  series: {
    gpu: [0, 2, 0, 1, 4, 5],
    dram: [0, 1, 0, 1, 2, 0],
    ssd: [0, 1, 0, 0, 2, 0],
    computed: [10, 4, 0, 2, 0, 5],
    reachable: [0, 6, 0, 3, 8, 6],
    arrivedBlocks: [10, 8, 0, 4, 8, 10],
  },
});

test('shares of a column add up to 1; where nothing was begun there are none', () => {
  const columns = tierColumns(picture, 0, 5500, 100);
  assert.is(columns.length, 6);
  for (const { blocks, shares, reachable } of columns) {
    if (blocks === 0) assert.ok([...shares, reachable].every(Number.isNaN));
    else assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 1) < 1e-12);
  }
  assert.equal(columns[1]!.shares, [0.25, 0.125, 0.125, 0.5]);
  assert.is(columns[1]!.reachable, 0.75);
});

test('the last column ends where the run has come', () => {
  const last = tierColumns(picture, 0, 5500, 100).at(-1)!;
  assert.equal([last.from, last.to], [5000, 5500]);
});

test('more buckets than columns are summed, not averaged', () => {
  const columns = tierColumns(picture, 0, 5500, 3);
  assert.equal(
    columns.map(({ from, to, blocks }) => [from, to, blocks]),
    [
      [0, 2000, 18],
      [2000, 4000, 4],
      [4000, 5500, 18],
    ],
  );
  assert.is(columns[1]!.shares[0], 0.25);
});

test('columns stay where they are when one zooms', () => {
  const near = tierColumns(picture, 2500, 5500, 2);
  assert.equal(near, tierColumns(picture, 0, 4000, 2));
});

test('a time is in the column that it is in', () => {
  const columns = tierColumns(picture, 0, 5500, 100);
  assert.is(tierColumnAt(columns, 1999)!.from, 1000);
  assert.is(tierColumnAt(columns, 2000)!.from, 2000);
  assert.is(tierColumnAt(columns, 5500), null);
});

test('what is said of a column has numbers and units', () => {
  const columns = tierColumns(picture, 0, 5500, 100);
  assert.is(
    tierReading(columns[1]!),
    '1 s to 2 s, of 8 prompt blocks: GPU 25.00 %, store memory 12.50 %, store SSD 12.50 %, computed 50.00 %; reachable 75.00 %',
  );
  assert.is(tierReading(columns[2]!), '2 s to 3 s: nothing was begun');
});

test('the whole run is one column', () => {
  const whole = wholeRun(picture);
  assert.is(whole.blocks, 40);
  assert.is(
    tierSummary(whole),
    '47.50 % of 40 prompt blocks were reused; the best choice of worker could have reached 57.50 %',
  );
  assert.is(tierLegend([whole, whole], 0), 'GPU 30.00 % | 30.00 %');
  assert.is(tierLegend([whole], 'reachable'), 'reachable 57.50 %');
});

test('a run that has not begun has nothing to say', () => {
  const empty = chartPicture({ step: 1000, now: 0 });
  assert.equal(tierColumns(empty, 0, 1, 10), []);
  assert.is(tierSummary(wholeRun(empty)), 'nothing has begun yet');
});

test('the table has at most fifty rows, of both runs together', () => {
  const long = chartPicture({ step: 1000, now: 400_000, series: { computed: Array.from({ length: 400 }, () => 1) } });
  assert.ok(tierTable([{ label: 'a', picture: long }]).rows.length <= 50);
  const both = tierTable([
    { label: 'a', picture: long },
    { label: 'b', picture },
  ]);
  assert.ok(both.rows.length <= 50);
  for (const row of both.rows) assert.is(row.length, both.head.length);
});

test.run();
