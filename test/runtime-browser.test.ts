// The browser-safe entry in a real browser: the bundle alone, served over loopback, answers as Node does. Needs Debian's chromium (CI installs
// it); without it the test says so and is skipped.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { preparedCases } from './support/prepared-cases.js';

const BROWSER = process.env['MOONROUTE_CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

test('the bundle holds no Node module and no socket library', () => {
  const files = readdirSync('build/browser').filter((file) => file.endsWith('.js'));
  assert.ok(files.includes('moonroute.js'));
  for (const file of files) {
    const text = readFileSync(join('build/browser', file), 'utf8');
    assert.not.match(text, /from\s*["']node:/, file);
    assert.not.match(text, /zeromq|commander/, file);
  }
});

const skipped = !existsSync(BROWSER) && !process.env['CI'];
if (skipped) console.log(`skipped: runtime-browser (no ${BROWSER}; apt-get install chromium)`);
const browserTest = skipped ? test.skip : test;

browserTest('a page gives the same answers from the same bytes', async () => {
  const cases = JSON.stringify(preparedCases(8));
  const pages: Record<string, [string, string]> = {
    '/': ['text/html', '<!doctype html><title>moonroute</title>'],
    '/cases.json': ['application/json', cases],
    '/answers.js': ['text/javascript', readFileSync('test/runtimes/answers.js', 'utf8')],
  };
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const bundled = join('build/browser', path);
    const page =
      pages[path] ?? (existsSync(bundled) ? (['text/javascript', readFileSync(bundled, 'utf8')] as const) : undefined);
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': page?.[0] ?? 'text/plain' }).end(page?.[1]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  let browser: Browser | undefined;
  try {
    browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    // Text, not a function: the page's own modules are loaded, and nothing of this file's types is meant.
    const result = (await page.evaluate(
      `Promise.all([import('/moonroute.js'), import('/answers.js'), fetch('/cases.json').then((r) => r.json())]).then(([moonroute, { answers }, cases]) => answers(moonroute, cases))`,
    )) as { checked: number; withHit: number; wrong: string[] };
    console.log(`  browser ${browser.version()}: ${result.checked} cases, ${result.withHit} with a hit`);
    assert.equal(result.wrong, []);
    assert.ok(result.checked >= 50 && result.withHit >= 25);
  } finally {
    await browser?.close();
    server.close();
  }
});

test.run();
