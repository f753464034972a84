// Bytes a second from the store, and limits near enough to be drawn.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  nearLimits,
  peakOf,
  rateAt,
  rateLine,
  rateReading,
  rateTable,
  spanText,
} from '../src/web/simulator/charts/fetch-data.js';
import { chartPicture } from './support/chart-picture.js';

const bytes = [0, 4e9, 2e9, 6e9, 3e9];
const picture = (now: number) => chartPicture({ step: 2000, now, series: { fetchedBytes: bytes } });

test('a rate is bytes by the time that has passed of the column', () => {
  const line = rateLine(picture(9500), 0, 9500, 100);
  assert.equal(line.from, [0, 2000, 4000, 6000, 8000]);
  assert.is(line.end, 9500);
  assert.equal(line.rates, [0, 2e9, 1e9, 3e9, 2e9]);
});

test('a column that has just begun is left out: its rate would be chance', () => {
  const line = rateLine(picture(8500), 0, 8500, 100);
  assert.equal(line.rates, [0, 2e9, 1e9, 3e9]);
  assert.is(line.end, 8000);
  assert.is(rateLine(picture(500), 0, 500, 100).rates.length, 1, 'unless it is the first');
});

test('merged columns have the mean rate', () => {
  assert.equal(rateLine(picture(10_000), 0, 10_000, 3).rates, [1e9, 2e9, 1.5e9]);
});

test('the peak is that of what is in view', () => {
  const line = rateLine(picture(10_000), 0, 10_000, 100);
  assert.equal(peakOf(line, 0, 10_000), { at: 7000, rate: 3e9, place: 3 });
  assert.equal(peakOf(line, 0, 5000), { at: 3000, rate: 2e9, place: 1 });
  assert.is(peakOf(line, 0, 2000), null);
});

for (const [limits, peak, drawn, said] of [
  [{ total: 5e9, link: 3e9, ssd: 1e9 }, 3e9, ['whole store', 'link of one worker', 'SSD'], ''],
  [{ total: 5e10, link: 3e9, ssd: 0 }, 3e9, ['link of one worker'], 'Limits above the picture: whole store 50 GB/s.'],
  [{ total: Number.POSITIVE_INFINITY, link: 0, ssd: 0 }, 3e9, [], 'No limits are configured.'],
  [{ total: 5e9, link: 0, ssd: 1e9 }, 0, [], 'Limits above the picture: whole store 5 GB/s, SSD 1 GB/s.'],
] as const)
  test(`of limits ${JSON.stringify(limits)} at a peak of ${peak}: ${drawn.join(', ') || 'none'} drawn`, () => {
    const near = nearLimits(limits, peak);
    assert.equal(
      near.drawn.map(({ name }) => name),
      [...drawn],
    );
    assert.is(near.said, said);
  });

test('what is said of a column', () => {
  const line = rateLine(picture(10_000), 0, 10_000, 100);
  assert.is(rateAt(line, 7999), 3);
  assert.is(rateAt(line, 10_000), null);
  assert.is(rateReading('kv', line, 3), 'kv 3 GB/s (6 GB)');
  assert.is(spanText(line, 4), '8 s to 10 s');
});

test('the table names every run; where one has ended its cell is blank', () => {
  const { head, rows } = rateTable([
    { label: 'a', picture: picture(10_000) },
    { label: 'b', picture: picture(4000) },
  ]);
  assert.equal(head, ['from', 'a', 'b']);
  assert.equal(rows[1], ['2 s', '2 GB/s', '2 GB/s']);
  assert.equal(rows[4], ['8 s', '1.5 GB/s', '']);
});

test.run();
