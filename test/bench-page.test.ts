// The benchmark's page in a real browser, from the one file that is built: it runs the suites in a worker, can be cancelled, shows a table, and offers a
// report of the same shape with the same counters as Node's. Needs Debian's chromium; without it the test says so and is skipped.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { browserOf } from '../bench/page/browser.js';
import { type Report, ReportSchema } from '../src/bench/report-schema.js';
import { countersOf, PAGE_SUITES } from './support/bench-counters.js';

const BROWSER = process.env['MOONROUTE_CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
const PAGE = 'build/bench/index.html';
const RUN_MS = 300_000;

test('the page asks for no other file', () => {
  const page = readFileSync(PAGE, 'utf8');
  assert.not.match(page, /<(?:link|img|script)[^>]*(?:href|src)=/);
  assert.not.match(page, /\/\*(?:WORKER|PAGE)\*\//);
});

for (const [agent, engine, family] of [
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    'Chromium 140.0.0.0',
    'Chromium 140',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0', 'Firefox 143.0', 'Firefox 143'],
  [
    'Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.4 Safari/605.1.15',
    'Safari 18.4',
    'Safari 18',
  ],
  ['curl/8', 'a browser', 'a browser'],
] as const)
  test(`${engine} is known by its user agent`, () => {
    assert.equal(browserOf(agent), { engine, engineFamily: family });
  });

const skipped = !existsSync(BROWSER) && !process.env['CI'];
if (skipped) console.log(`skipped: bench-page (no ${BROWSER}; apt-get install chromium)`);
const browserTest = skipped ? test.skip : test;

browserTest('it runs, shows and offers what Node counts', async () => {
  const browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
  try {
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    const url = pathToFileURL(PAGE).href;

    await page.goto(url);
    await page.click('#full');
    await page.waitForFunction("document.querySelector('#status').textContent.includes('1 of ')");
    await page.click('#cancel');
    assert.is(await page.textContent('#status'), 'Cancelled.');
    assert.ok(await page.isEnabled('#quick'));

    await page.goto(`${url}?suites=${PAGE_SUITES.join(',')}`);
    await page.click('#quick');
    await page.waitForFunction("/^(Done|The run failed)/.test(document.querySelector('#status').textContent)", null, {
      timeout: RUN_MS,
    });
    assert.match((await page.textContent('#status'))!, /^Done in \d+ s on Chromium \d+/);
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#download')]);
    const report = ReportSchema.parse(JSON.parse(readFileSync(await download.path(), 'utf8')));
    assert.is(download.suggestedFilename(), 'moonroute-bench.json');
    assert.match(report.environment.engineFamily, /^Chromium \d+$/);
    const rows = report.suites.flatMap((suite) => suite.rows).filter(({ a }) => a !== null);
    assert.is(await page.locator('tbody tr').count(), rows.length);
    assert.equal(countersOf(report), countersOf(inNode()));
    assert.equal(errors, []);
  } finally {
    await browser.close();
  }
});

function inNode(): Report {
  const args = ['build/js/src/cli/main.js', 'bench', '--quick', '--json', ...PAGE_SUITES];
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 26 });
  return ReportSchema.parse(JSON.parse(stdout));
}

test.run();
