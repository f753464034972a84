// What one moves and opens on the simulator's page: the capacity line by mouse and by keys, a request's why from the list and from the timeline, the
// timeline's window and places. Needs Debian's chromium (CI installs it); without it the test says so and is skipped.
import type { Browser, Page } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  downloaded,
  ended,
  hasBrowser,
  launched,
  type Opened,
  open,
  QUICK,
  reads,
  resultOf,
  textOf,
  until,
} from './support/simulator-page.js';

const runs = hasBrowser('simulator-page-parts');
const browserTest = runs ? test : test.skip;
/** The store's SSD, in bytes: the line stands for memory and SSD together. */
const SSD = 5e9;
let browser: Browser;
let opened: Opened;
/** One page for all: each test leaves it with a run in front that has ended. */
let page: Page;
test.before(async () => {
  if (!runs) return;
  browser = await launched();
  opened = await open(browser, { hash: `${QUICK}&ssd=${SSD / 1e9}GB` });
  page = opened.page;
  await ended(page);
});
test.after(async () => {
  try {
    if (runs) assert.equal([opened.errors, opened.asked], [[], []]);
  } finally {
    await browser?.close();
  }
});

const SLIDER = '#capacity [role=slider]';
/** Bytes that the line stands at, and what it says there. */
const line = () =>
  page.evaluate((where) => {
    const slider = document.querySelector(where)!;
    return { bytes: Number(slider.getAttribute('aria-valuenow')), text: slider.getAttribute('aria-valuetext')! };
  }, SLIDER);
/** The store's size: in the field, in the address, and in the command. */
const store = () =>
  page.evaluate(() => ({
    field: document.querySelector<HTMLInputElement>('#set-store')!.value,
    address: new URLSearchParams(location.hash.slice(1)).get('store'),
    command: /--store (\S+)/.exec(document.getElementById('command')!.textContent!)![1],
  }));
const READING = /^at [\d.]+ [kMGT]?B: ([\d.]+) % of block references hit, [\d.]+ % missed, /;
const hitAt = (text: string): number => Number(READING.exec(text)![1]);

browserTest('the capacity line: dragged by mouse, it reads out, and is the store when let go', async () => {
  await page.locator(SLIDER).scrollIntoViewIfNeeded();
  const before = await line();
  assert.match(before.text, READING);
  assert.is(before.bytes, 50e9 + SSD, 'it begins at the store that was simulated');
  const box = (await page.locator(SLIDER).boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x - 80, y, { steps: 5 });
  await until('the line to follow', async () => (await line()).bytes < before.bytes / 2);
  const pulled = await line();
  assert.ok(hitAt(pulled.text) < hitAt(before.text), `${pulled.text} and ${before.text}`);
  assert.is((await store()).field, '50GB', 'not before it is let go');
  assert.is((await textOf(page, '#capacity .chart-reading')).toLowerCase(), `${pulled.text.toLowerCase()}.`);
  await page.mouse.up();
  await until('the store to follow', async () => (await store()).field !== '50GB');
  const now = await store();
  const bytes = Number(now.field.replace('GB', '')) * 1e9;
  assert.ok(Math.abs(bytes + SSD - pulled.bytes) < 1e6, `${now.field}, and the line at ${pulled.bytes}`);
  assert.equal([now.address, now.command], [now.field, now.field]);
  assert.match(await textOf(page, '#run'), /Run with these settings/);
  // The address is a link to it.
  await page.click('#run');
  await ended(page, 2);
  const { runs: simulations } = resultOf((await downloaded(page, '#run-2-json')).bytes);
  assert.is(simulations[0]!.config.store.dramBytes, bytes);
});

browserTest('the capacity line: moved by keys, and where a click is', async () => {
  await page.locator(SLIDER).focus();
  const before = await line();
  for (const [key, factor] of [
    ['ArrowRight', 1.05],
    ['ArrowLeft', 1 / 1.05],
    ['PageUp', 2],
    ['PageDown', 1 / 2],
  ] as const) {
    const { bytes } = await line();
    await page.keyboard.press(key);
    await until(`${key}`, async () => Math.abs((await line()).bytes / (bytes * factor) - 1) < 0.01);
  }
  await page.keyboard.press('PageUp');
  await until('the store to follow', async () => {
    const bytes = Number((await store()).address!.replace('GB', '')) * 1e9 + SSD;
    return Math.abs(bytes / before.bytes - 2) < 0.04;
  });
  assert.ok(await page.evaluate((where) => document.activeElement === document.querySelector(where), SLIDER));
  const { bytes } = await line();
  const box = (await page.locator(SLIDER).boundingBox())!;
  await page.mouse.click(box.x + box.width / 2 - 60, box.y + 20);
  await until('the click', async () => (await line()).bytes < bytes);
  await page.click('#run');
  await ended(page, 3);
});

browserTest('each simulation can be the one that is shown', async () => {
  const chosen = page.locator('#chosen button');
  assert.equal(await chosen.allTextContents(), ['kv', 'round-robin']);
  await chosen.nth(1).click();
  await until('round-robin', async () => (await chosen.nth(1).getAttribute('aria-pressed')) === 'true');
  await page.locator('#requests .row[data-index="3"]').click();
  await reads(page, '.decision .choice', /turn/);
  await page.keyboard.press('Escape');
  await chosen.nth(0).click();
  await until('kv', async () => (await chosen.nth(0).getAttribute('aria-pressed')) === 'true');
  // The chart's table holds what its picture shows.
  const details = page.locator('#load .chart-table');
  await details.locator('summary').click();
  await until('rows', async () => (await details.locator('tbody tr').count()) > 0);
  assert.match((await details.locator('table').textContent()) ?? '', /worker/i);
  await details.locator('summary').click();
});

/** Numbers of a decision's sum: each term and the price, of both columns. */
const sums = () =>
  page.evaluate(() => {
    const number = (cell: Element) => Number(cell.textContent!.replaceAll(',', '').replace('−', '-'));
    const rows = (part: string) =>
      [...document.querySelectorAll(`.decision .sum ${part} tr`)].map((row) =>
        [...row.querySelectorAll('td')].slice(0, 2).map(number),
      );
    return { terms: rows('tbody'), total: rows('tfoot')[0]! };
  });

async function openedDecision(request: string): Promise<void> {
  await reads(page, '.decision h2', new RegExp(`^Why this worker\\? Request ${request}$`));
  await page.locator('.decision .sum').waitFor();
}

async function checkDecision(): Promise<void> {
  const { terms, total } = await sums();
  assert.ok(terms.length >= 2 && total.length === 2, JSON.stringify({ terms, total }));
  for (const column of [0, 1]) {
    const sum = terms.reduce((all, row) => all + row[column]!, 0);
    // Each of them is rounded to a hundredth.
    const error = Math.abs(sum - total[column]!);
    assert.ok(error <= 0.005 * (terms.length + 1) + 1e-9, `${sum} of terms, ${total[column]} shown`);
  }
  // The price in the sentence is the sum's.
  const said = await textOf(page, '.decision .choice');
  assert.match(said, /^Worker \d+ was (cheapest|as cheap as)/);
  const price = Number(/at ([\d.,]+) blocks?/.exec(said)![1]!.replaceAll(',', ''));
  assert.is(price, total[0]);
  const heads = await page.locator('.decision .sum thead th').allTextContents();
  assert.match(heads.join('|'), /Worker \d+.*\|Worker \d+.*\|Difference/, 'the runner-up stands beside it');
  const sections = await page.locator('.decision h3').allTextContents();
  for (const title of ['Had it gone to the runner-up', 'What the worker found', 'All candidates'])
    assert.ok(sections.includes(title), `${title} among ${sections}`);
  assert.match(
    await textOf(page, '.decision .body'),
    /first token would have come after [\d.]+ m?s instead of [\d.]+ m?s/,
  );
  const candidates = page.locator('.decision .candidates tbody tr');
  assert.is(await candidates.count(), 4);
}

const focusedRow = () => page.evaluate(() => (document.activeElement as HTMLElement).dataset['index'] ?? null);

browserTest("a request's why by click: its terms add up, with runner-up and what would have been", async () => {
  const row = page.locator('#requests .row[data-index="5"]');
  await row.scrollIntoViewIfNeeded();
  await row.click();
  await openedDecision('5');
  await checkDecision();
  await page.keyboard.press('Escape');
  await until('the dialog to close', () => page.locator('.decision').isHidden());
  assert.is(await focusedRow(), '5', 'focus returns');
});

browserTest("a request's why by keyboard; the list in another order, and a request by its number", async () => {
  await page.keyboard.press('ArrowDown');
  await until('the next row', async () => (await focusedRow()) === '6');
  await page.keyboard.press('Enter');
  await openedDecision('6');
  await checkDecision();
  await page.keyboard.press('Escape');
  assert.is(await focusedRow(), '6', 'focus returns');
  await page.locator('#requests .jump input').fill('150');
  await page.keyboard.press('Enter');
  await until('the row', async () => (await focusedRow()) === '150');
  await page.keyboard.press('Enter');
  await openedDecision('150');
  await checkDecision();
  await page.locator('.decision .close').click();
  assert.is(await focusedRow(), '150');
  await page.locator('#requests select').selectOption('slowest');
  const first = () => page.locator('#requests .row[data-index="0"] .ttft').textContent();
  await until('another order', async () => /\d/.test((await first()) ?? ''));
  assert.match(await textOf(page, '#requests .status'), /^200 requests/);
  await page.locator('#requests select').selectOption('arrival');
});

const WINDOW = '#timeline .window';
const windowNow = () => textOf(page, WINDOW);
async function moved(what: string, act: () => Promise<void>): Promise<string> {
  const before = await windowNow();
  await act();
  await until(what, async () => (await windowNow()) !== before);
  return windowNow();
}

/** Waits until nothing has scrolled for a while: until then the timeline takes the wheel for the page's. */
const rested = () =>
  page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        let last = performance.now();
        addEventListener('scroll', () => (last = performance.now()), { capture: true });
        const look = () => (performance.now() - last > 400 ? resolve() : requestAnimationFrame(look));
        look();
      }),
  );

browserTest(
  'the timeline: wheel and keys zoom and pan; a bar opens its request; the store is another place',
  async () => {
    const canvas = page.locator('#timeline canvas.plot');
    await canvas.scrollIntoViewIfNeeded();
    const whole = await reads(page, WINDOW, /^0:00/);
    await rested();
    const box = (await canvas.boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + 40);
    await moved('the wheel to zoom', () => page.mouse.wheel(0, -240));
    await moved('Shift with the wheel to pan', async () => {
      await page.keyboard.down('Shift');
      await page.mouse.wheel(0, 200);
      await page.keyboard.up('Shift');
    });
    await canvas.focus();
    for (const key of ['+', 'a', 'd', '-']) await moved(key, () => page.keyboard.press(key));
    await page.keyboard.press('0');
    await until('the whole run', async () => (await windowNow()) === whole);
    // From the keyboard to a request that this worker served.
    await page.keyboard.press('Home');
    const said = () => textOf(page, '#timeline .live');
    await until('a request', async () => {
      if (/^Request \d/.test(await said())) return true;
      await page.keyboard.press('ArrowRight');
      return false;
    });
    const request = /^Request ([\d,]+)/.exec(await said())![1]!;
    await page.keyboard.press('Enter');
    await openedDecision(request);
    await page.keyboard.press('Escape');
    assert.ok(await page.evaluate(() => document.activeElement!.classList.contains('plot')), 'focus returns');
    await page.keyboard.press('Escape');

    const places = await page.locator('#timeline select option').allTextContents();
    assert.is(places.length, 5, places.join());
    await page.locator('#timeline select').selectOption('store');
    const label = () => canvas.getAttribute('aria-label');
    await until('the store', async () => /the store/i.test((await label()) ?? ''));
    // What keys moved to has scrolled the page, and this place is less high.
    await canvas.scrollIntoViewIfNeeded();
    await rested();
    const { x, y, width } = (await canvas.boundingBox())!;
    let moves = 0;
    await until('its blocks', async () => {
      await page.mouse.move(x + width * 0.6 + (moves++ % 2), y + 60);
      return /The store.*blocks/s.test(await textOf(page, '#timeline .tooltip'));
    });
    await page.locator('#timeline details summary').click();
    await until('the tables', async () => (await page.locator('#timeline table tbody tr').count()) > 0);
  },
);

browserTest('what is hovered on a chart is read out', async () => {
  for (const [chart, pattern] of [
    ['tiers', /GPU/],
    ['ttft', /kv/],
    ['fetch', /B\/s/],
  ] as const) {
    const canvas = page.locator(`#${chart} .chart-plots canvas`).first();
    await canvas.scrollIntoViewIfNeeded();
    const box = (await canvas.boundingBox())!;
    const before = await textOf(page, `#${chart} .chart-reading`);
    await page.mouse.move(box.x + box.width * 0.6, box.y + box.height * 0.4);
    await until(`a reading of ${chart}`, async () => {
      const now = await textOf(page, `#${chart} .chart-reading`);
      return now !== before && pattern.test(now) && /\d/.test(now);
    });
  }
});

test.run();
