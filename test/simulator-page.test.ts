// The simulator's page in a real browser, from disk and offline: its first picture, a run with progress and its end, the answer beside the command's, two runs
// compared, and how smoothly it goes on meanwhile. Needs Debian's chromium (CI installs it); without it the test says so and is skipped.
import { loadavg } from 'node:os';
import type { Browser, Page } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { FIGURES, figureOf, figureText } from '../src/sim/report-figures.js';
import type { SimReport } from '../src/sim/types.js';
import {
  downloaded,
  ended,
  Folder,
  type Given,
  hasBrowser,
  LONG,
  launched,
  type Opened,
  open,
  printed,
  QUICK,
  reads,
  resultOf,
  textOf,
  underWay,
  until,
} from './support/simulator-page.js';

/** What a machine keeps that runs other tests at the same time; the aim for a quiet one is 2 s. */
const FIRST_PICTURE_MS = 10_000;
/** Between two frames in the middle: the aim is 1/60 s. */
const FRAME_MS = 34;

const runs = hasBrowser('simulator-page');
const browserTest = runs ? test : test.skip;
const folder = new Folder();
let browser: Browser;
test.before(async () => {
  if (runs) browser = await launched();
});
test.after(async () => {
  await browser?.close();
  folder.remove();
});

/** Opens it, works with it, and sees that nothing went wrong and nobody was asked. */
async function opened(given: Given, work: (opened: Opened) => Promise<void>): Promise<void> {
  const it = await open(browser, given);
  try {
    await work(it);
    assert.equal(it.errors, []);
    assert.equal(it.asked, [], 'nothing is asked of anyone');
  } finally {
    await it.close();
  }
}

const load = () => `load ${loadavg()[0]!.toFixed(1)}`;

/** Notes when the page has an answer, and when a chart that is painted. */
async function watchFirstPicture(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const painted = (canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
      const pixels = new Uint32Array(data.buffer);
      return pixels.some((pixel) => pixel !== pixels[0]);
    };
    const look = () => {
      const said = document.getElementById('headline')?.textContent ?? '';
      const canvas = document.querySelector<HTMLCanvasElement>('#tiers .chart-plots canvas');
      if (said !== '' && canvas !== null && canvas.width > 0 && painted(canvas))
        Object.assign(globalThis, { firstPicture: performance.now() });
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
}

browserTest('opened from disk, offline: the built-in workload runs at once, and its first picture comes soon', () =>
  opened({ before: watchFirstPicture }, async ({ page, errors }) => {
    assert.match(page.url(), /^file:/);
    const first = () => page.evaluate(() => (globalThis as { firstPicture?: number }).firstPicture ?? null);
    await until('the first picture', async () => (await first()) !== null);
    const [at, dom] = [
      await first(),
      await page.evaluate(() => performance.getEntriesByType('navigation')[0]!.toJSON().domContentLoadedEventEnd),
    ];
    await ended(page);
    const complete = await page.evaluate(() => performance.now());
    console.log(
      `simulator page: first picture after ${Math.round(at!)} ms (document ${Math.round(dom)} ms), all complete after ${Math.round(complete)} ms, ${load()}`,
    );
    assert.ok(at! < FIRST_PICTURE_MS, `${at} ms`);
    assert.match(await textOf(page, '#headline'), /^\S+ answers first: it hits [\d.]+\s% .*ceiling [\d.]+\s%/);
    assert.is(await page.locator('#policies tbody tr').count(), 3);
    const figures = await page.locator('#charts figure h3').allTextContents();
    assert.is(figures.length, 5, figures.join());
    assert.ok(await page.locator('#capacity [role=slider]').isVisible());
    assert.match(await textOf(page, '#capacity figcaption'), /knee/);
    assert.equal(errors, []);
    // What the page's policy forbids does not even get as far as the network.
    await page.evaluate(() => fetch('https://example.com/').catch(() => null));
    assert.match(errors.splice(0).join(), /Content Security Policy/);
  }),
);

browserTest('a run tells how far it is; Cancel ends it with what it has, partial', () =>
  opened({ hash: LONG }, async ({ page }) => {
    await underWay(page);
    const standing = async () =>
      Number(/([\d,]+) requests/.exec(await textOf(page, '#progress p'))![1]!.replaceAll(',', ''));
    const before = await standing();
    await until('more requests', async () => (await standing()) > before);
    assert.match(await textOf(page, '#progress p'), /^kv, [\d,]+ requests, \d+ %$/);
    assert.ok(await page.evaluate(() => document.querySelector('progress')!.position >= 0));
    assert.match(await textOf(page, '#headline'), /^So far, after [\d,]+ requests, kv hits [\d.]+ %/);
    assert.match(await textOf(page, '#run'), /Run these instead/);
    await page.click('#cancel');
    await ended(page);
    assert.match(await textOf(page, '#shown'), /^Run 1 · cancelled/);
    assert.match(await textOf(page, '#policies tbody th'), /kv.*partial/);
    await reads(page, '#said', /^Run 1 is cancelled\. kv/);
    const { bytes } = await downloaded(page, '#run-1-json');
    assert.ok(resultOf(bytes).partial);
    // Another run takes its place, and is whole.
    await page.fill('#set-requests', '100');
    await page.click('#run');
    await ended(page, 2);
    assert.match(await textOf(page, '#shown'), /100 requests/);
    assert.match(await textOf(page, '#runs tbody'), /requests 200000 → 100/);
  }),
);

browserTest("the table's figures, all of them and their differences, are the command's", () =>
  opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    const { runs: simulations } = resultOf(await printed(await textOf(page, '#command'), folder.path, '--json'));
    const keys = ['hit_share', 'gpu_share', 'dram_share', 'ttft_p50_ms', 'ttft_p90_ms', 'ttft_p99_ms'];
    keys.push('fetch_mean_bytes_per_second', 'fetch_peak_bytes_per_second', 'imbalance', 'credit_stale');
    const rows = page.locator('#policies .answers tbody tr');
    assert.is(await rows.count(), simulations.length);
    for (const [i, { policy, report }] of simulations.entries()) {
      assert.ok(((await rows.nth(i).locator('th').textContent()) ?? '').startsWith(policy));
      const shown = await valuesOf(page, '#policies', i);
      assert.equal(
        shown.map(({ value }) => value),
        keys.map((key) => figureText(figureOf(key), report)),
      );
    }
    const [kv, base] = simulations.map(({ report }) => report);
    const deltas = await valuesOf(page, '#policies', 0);
    for (const [i, key] of keys.entries()) right(deltas[i]!.delta, key, kv!, base!);

    await page.click('#policies summary');
    const all = page.locator('#policies table.all');
    await all.waitFor();
    const cells = await all.locator('td [data-how]').allTextContents();
    const wanted = FIGURES.flatMap(({ figures }) =>
      figures.flatMap((figure) => simulations.map(({ report }) => figureText(figure, report))),
    );
    assert.equal(cells.slice(0, wanted.length), wanted);
    // Every one says how it was made.
    assert.is(await page.locator('#policies td .value:not([data-how])').count(), 0);
    await page.locator('#policies .value').first().hover();
    await reads(page, '#how', /^Full prompt blocks that were not computed.*÷.*= [\d.]+.%\./);
  }),
);

browserTest('two runs side by side: what differs, and differences that are right', () =>
  opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    await page.fill('#set-store', '10GB');
    await page.keyboard.press('Control+Enter');
    await ended(page, 2);
    assert.ok(await page.locator('#comparison').isHidden());
    await page.click('#run-1-b');
    await reads(page, '#comparison h2', /Run 2 \(A\) beside run 1 \(B\)/);
    assert.match(await textOf(page, '#comparison .intro'), /From B to A: store memory 50 GB → 10 GB\./);
    const [a, b] = [
      resultOf((await downloaded(page, '#run-2-json')).bytes),
      resultOf((await downloaded(page, '#run-1-json')).bytes),
    ];
    const heads = await page.locator('#comparison tbody th').allTextContents();
    assert.equal(heads, ['A · kv', 'B · kv', 'A · round-robin', 'B · round-robin']);
    const keys = ['hit_share', 'gpu_share', 'dram_share', 'ttft_p50_ms', 'ttft_p90_ms', 'ttft_p99_ms'];
    let told = 0;
    for (const [i, { report }] of a.runs.entries()) {
      const [ofA, ofB] = [await valuesOf(page, '#comparison', 2 * i), await valuesOf(page, '#comparison', 2 * i + 1)];
      keys.forEach((key, column) => {
        assert.is(ofA[column]!.value, figureText(figureOf(key), report));
        assert.is(ofB[column]!.value, figureText(figureOf(key), b.runs[i]!.report));
        assert.is(ofB[column]!.delta, null);
        told += right(ofA[column]!.delta, key, report, b.runs[i]!.report);
      });
    }
    assert.ok(told >= 4, 'a fifth of the store makes a difference');
    assert.match(await textOf(page, '#ttft .chart-legend'), /A · kv.*B · kv/);
    // B goes again when it is pressed again, and A may be the other one.
    await page.click('#run-1-b');
    await until('no comparison', () => page.locator('#comparison').isHidden());
    await page.click('#run-1-a');
    await reads(page, '#shown', /^Run 1 /);
  }),
);

/** Cells of a row: their values, and the differences that they tell. */
function valuesOf(page: Page, section: string, row: number): Promise<{ value: string; delta: string | null }[]> {
  return page
    .locator(`${section} .answers tbody tr`)
    .nth(row)
    .locator('.value')
    .evaluateAll((cells) =>
      cells.map((cell) => ({
        value: cell.firstChild!.textContent ?? '',
        delta: cell.querySelector('.delta')?.textContent ?? null,
      })),
    );
}

/** Checks what a cell tells against both reports: points for shares, percent for the rest. @returns 1 where it tells a difference */
function right(text: string | null, key: string, now: SimReport, base: SimReport): number {
  const [a, b] = [figureOf(key).of(now), figureOf(key).of(base)];
  if (a === null || b === null || (b === 0 && a !== 0)) {
    assert.is(text, null, key);
    return 0;
  }
  const isShare = key.endsWith('_share');
  const change = b === 0 ? 0 : isShare ? 100 * (a - b) : 100 * (a / b - 1);
  if (Math.abs(change) < 0.05) {
    assert.is(text, '=', key);
    return 0;
  }
  const [, sign, digits, unit] = /^([+−×])([\d.,]+) ?(pp|%)?/.exec(text ?? '') ?? [];
  const told = Number(digits?.replaceAll(',', '')) * (sign === '−' ? -1 : 1);
  if (sign === '×') assert.ok(Math.abs(told - a / b) <= 0.01 * told, `${key}: ${text} of ${a / b}`);
  else {
    assert.is(unit, isShare ? 'pp' : '%', `${key}: ${text}`);
    assert.ok(Math.abs(told - change) <= 0.06 + Math.abs(change) / 200, `${key}: ${text} of ${change}`);
  }
  return 1;
}

browserTest('while it runs, frames go on', () =>
  opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    await page.fill('#set-requests', '2000');
    await page.evaluate(() => {
      const frames: number[] = [];
      const long: number[] = [];
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) long.push(duration);
      }).observe({ type: 'longtask' });
      let before = performance.now();
      let stopped = false;
      const frame = (now: number) => {
        frames.push(now - before);
        before = now;
        if (!stopped) requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
      Object.assign(globalThis, {
        framesSeen: () => {
          stopped = true;
          return { frames: frames.slice(1), long };
        },
      });
    });
    await page.keyboard.press('Control+Enter');
    await ended(page, 2);
    const { frames, long } = await page.evaluate(() =>
      (globalThis as unknown as { framesSeen(): { frames: number[]; long: number[] } }).framesSeen(),
    );
    const sorted = frames.sort((a, b) => a - b);
    const at = (part: number) => sorted[Math.floor(part * (sorted.length - 1))]!;
    const ms = (value: number) => value.toFixed(1);
    console.log(
      `simulator page, while it runs: ${sorted.length} frames, p50 ${ms(at(0.5))} ms, p95 ${ms(at(0.95))} ms, longest ${ms(at(1))} ms; ${long.length} long tasks${long.length > 0 ? `, longest ${Math.round(Math.max(...long))} ms` : ''}; ${load()}`,
    );
    assert.ok(sorted.length > 20, `${sorted.length} frames`);
    assert.ok(at(0.5) <= FRAME_MS, `${at(0.5)} ms between frames`);
  }),
);

test.run();
