// The list of requests: which of any number of rows are on screen, where keys lead, which pages are kept, and what its columns say.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { RequestRow } from '../src/sim/observed/types.js';
import { COLUMNS, sharesOf } from '../src/web/simulator/requests/cells.js';
import {
  contentHeight,
  MAX_PAGES,
  MAX_SCROLL_HEIGHT,
  nextSearch,
  PAGE,
  Pages,
  rowAfter,
  scrollTo,
  shownRows,
} from '../src/web/simulator/requests/rows.js';

const size = (total: number) => ({ total, rowHeight: 34, viewport: 400 });

test('a short list: rows on screen and a few around', () => {
  assert.equal(shownRows(size(1000), 0), { first: 0, count: 16, offset: 0 });
  const { first, count, offset } = shownRows(size(1000), 3400);
  assert.is(first, 96);
  assert.is(count, 20);
  assert.ok(Math.abs(offset - 96 * 34) < 1e-6, 'in its own place');
  assert.equal(shownRows(size(3), 0), { first: 0, count: 3, offset: 0 });
  assert.equal(shownRows(size(0), 0), { first: 0, count: 0, offset: 0 });
});

test('a list of ten million is scrolled by proportion, and its last row is reached', () => {
  const many = size(10_000_000);
  assert.is(contentHeight(many), MAX_SCROLL_HEIGHT);
  const bottom = MAX_SCROLL_HEIGHT - many.viewport;
  const { first, count, offset } = shownRows(many, bottom);
  assert.is(first + count, many.total);
  assert.ok(Math.abs(offset + count * 34 - MAX_SCROLL_HEIGHT) < 1e-3, 'it ends where the content ends');
});

for (const total of [50, 1000, 10_000_000])
  test(`of ${total} rows any one is scrolled to, wholly, and no further than needed`, () => {
    const list = size(total);
    for (const row of [0, 7, 30, Math.floor(total / 2), total - 1]) {
      const to = scrollTo(list, row, 0) ?? 0;
      const { first, offset } = shownRows(list, to);
      const top = offset + (row - first) * 34 - to;
      assert.ok(top > -0.01 && top + 34 < list.viewport + 0.01, `row ${row} at ${top}`);
    }
    assert.is(scrollTo(list, 3, 0), null, 'what is seen stays');
  });

test('keys lead from row to row, by pages and to the ends', () => {
  const list = size(100);
  for (const [key, from, to] of [
    ['ArrowDown', 5, 6],
    ['ArrowUp', 0, 0],
    ['ArrowDown', 99, 99],
    ['PageDown', 5, 15],
    ['PageUp', 5, 0],
    ['Home', 50, 0],
    ['End', 50, 99],
    ['x', 50, null],
  ] as const)
    assert.is(rowAfter(key, from, list), to, `${key} from ${from}`);
});

test('pages: the missing one is asked for, few are kept, and those in use stay', () => {
  const pages = new Pages<number>();
  assert.is(pages.missing(95, 20), 0);
  pages.set(
    0,
    Array.from({ length: PAGE }, (_, i) => i),
  );
  assert.is(pages.missing(95, 20), 1);
  assert.is(pages.missing(5, 20), null);
  assert.is(pages.at(42), 42);
  assert.is(pages.at(PAGE + 1), undefined);
  for (let page = 1; page <= MAX_PAGES; page++) {
    pages.set(page, [page]);
    pages.missing(0, 1);
  }
  assert.is(pages.at(7), 7, 'looked at all the time');
  assert.is(pages.at(PAGE), undefined, 'the oldest has left');
  assert.is(pages.at(2 * PAGE), 2);
});

test('a request is found by its number, though some are missing', () => {
  const find = (list: readonly number[], wanted: number) => {
    let search = { wanted, low: 0, high: list.length - 1, index: Math.min(wanted, list.length - 1) };
    let steps = 0;
    while (search.low <= search.high && list[search.index] !== wanted) {
      search = nextSearch(search, search.index, list[search.index]!);
      assert.ok(++steps < 40);
    }
    return search.low <= search.high ? list[search.index] : null;
  };
  const gaps = Array.from({ length: 100 }, (_, i) => i).filter((i) => i % 7 !== 3);
  const sparse = [0, 5, 9, 20, 21, 22, 60, 61];
  for (const list of [gaps, sparse])
    for (let wanted = 0; wanted < 100; wanted++) {
      assert.is(find(list, wanted), list.includes(wanted) ? wanted : null, String(wanted));
    }
});

const row: RequestRow = {
  request: 4211,
  worker: 3,
  promptTokens: 12_034,
  outputTokens: 200,
  at: 754_321,
  begunAt: 754_331,
  fetchedAt: 754_351,
  firstTokenAt: 754_441,
  endedAt: 756_000,
  full: 752,
  gpu: 376,
  dram: 150,
  ssd: 38,
  credited: 188,
  creditError: -4,
  cost: 200,
  runnerUpCost: 243.25,
  runnerUp: 1,
};

test('columns say numbers with their units, and a dash where there is none', () => {
  const texts = (one: RequestRow) => COLUMNS.map(({ text }) => text(one));
  assert.equal(texts(row), [
    '4,211',
    '12:34.321',
    '3',
    '12,034',
    '376 · 188 · 188',
    '120 ms',
    '1.68 s',
    '4 stale',
    '43.25',
  ]);
  const young = { ...row, firstTokenAt: NaN, endedAt: NaN, creditError: NaN, runnerUpCost: NaN };
  assert.equal(texts(young).slice(5), ['–', '–', '–', '–']);
  assert.is(texts({ ...row, creditError: 3 })[7], '3 short');
});

test('the little bar adds up to the whole', () => {
  assert.equal(sharesOf(row), [50, 25, 25]);
  assert.equal(sharesOf({ ...row, full: 0, gpu: 0, dram: 0, ssd: 0 }), [0, 0, 0]);
});

test.run();
