// The console in a real browser, over a running router and simulated workers: what it shows, that it goes on by itself, and how it behaves for people
// with a keyboard, a narrow screen, a dark room or a reader. Needs Debian's chromium (CI installs it); without it the test says so and is skipped.
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { FleetOptions } from '../src/fleet/fleet.js';
import type { ConfigInput } from '../src/server/config.js';
import { endedRequest } from './support/ended-request.js';
import { post, until, zeromq } from './support/fleet-worker.js';
import { ServiceOverFleet } from './support/running-service.js';

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
const skipped = zeromq === null || (!existsSync(BROWSER) && !process.env['CI']);
if (skipped) console.log(`skipped: server-console (no ${BROWSER}, or no zeromq)`);
const browserTest = skipped ? test.skip : test;

let browser: Browser;
test.before(async () => {
  if (!skipped) browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
});
test.after(async () => browser?.close());

/** The page over a pool, with everything that went wrong in it. */
interface Opened {
  readonly pool: ServiceOverFleet;
  readonly page: Page;
  /** Errors of the console and of scripts. */
  readonly errors: string[];
  /** Everything that was loaded. */
  readonly urls: string[];
}

interface Given {
  readonly fleet?: FleetOptions;
  readonly config?: ConfigInput;
  readonly context?: BrowserContextOptions;
}

async function opened({ fleet, config, context }: Given, work: (opened: Opened) => Promise<void>): Promise<void> {
  const quick = { latency: { timeScale: 0 }, ...fleet?.worker };
  const pool = await ServiceOverFleet.start({ ...fleet, worker: quick }, config);
  const shown = await browser.newContext(context);
  try {
    const page = await shown.newPage();
    const errors: string[] = [];
    const urls: string[] = [];
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('request', (request) => urls.push(request.url()));
    await page.goto(`${pool.url}/`);
    await work({ pool, page, errors, urls });
  } finally {
    await shown.close();
    await pool.close();
  }
}

const textOf = async (page: Page, selector: string): Promise<string> => (await page.textContent(selector)) ?? '';
const rows = (page: Page, table: string) => page.locator(`table.${table} tbody tr`);

async function live(page: Page): Promise<void> {
  await until('the page to be live', async () => (await textOf(page, '#state')) === 'Live');
}

browserTest('workers, decisions with their why, hits and the store are shown, and go on by themselves', () =>
  opened({}, async ({ pool, page, errors, urls }) => {
    await live(page);
    assert.is(await rows(page, 'workers').count(), 3);
    assert.match(await textOf(page, '#workers'), /worker-0.*ready.*in force.*live/);
    assert.match(await textOf(page, '#requests'), /No request yet/);
    assert.match(await textOf(page, '#hits figcaption'), /No request has ended/);

    await pool.ask(1, 400);
    await pool.heard();
    await pool.ask(1, 400);
    await until('two decisions', async () => (await rows(page, 'requests').count()) === 2);
    const newest = (await rows(page, 'requests').first().textContent()) ?? '';
    assert.match(newest, /completions.*400 tokens.*worker-\d.*24 of 25 blocks \(GPU 24\).*(Cheapest|As cheap).*blocks/);
    const oldest = (await rows(page, 'requests').last().textContent()) ?? '';
    assert.match(oldest, /0 of 25 blocks.*No shared credit: no worker has announced the next block yet/);
    await until('the hit rate', async () => /Hit rate48/.test(await textOf(page, '#tiles')));
    assert.match(await textOf(page, '#tiles'), /Engines confirm100/);
    assert.match(await textOf(page, '#store'), /serving.*live.*3 of 3 ranks admitted/);
    assert.match(await textOf(page, '#prompts'), /given as ids2/);

    await rows(page, 'requests').first().locator('summary').click();
    const terms = (await rows(page, 'requests').first().locator('.terms').textContent()) ?? '';
    assert.match(terms, /Policykv.*Cost.*\(prefill \+ decode \+ active\).*Runner-upworker-\d/);
    // What is open stays open while others come.
    await pool.ask(2, 100);
    await until('a third decision', async () => (await rows(page, 'requests').count()) === 3);
    assert.ok(
      await rows(page, 'requests')
        .nth(1)
        .locator('details')
        .getAttribute('open')
        .then((open) => open !== null),
    );

    await pool.fleet.workers[2]!.kill();
    await until('the dead worker', async () => /worker-2 does not answer/.test(await textOf(page, '#warnings')));
    assert.match(await textOf(page, '#warnings'), /No events come from worker worker-2/);
    assert.match((await rows(page, 'workers').nth(2).textContent()) ?? '', /unhealthy.*down/);

    assert.equal(errors, []);
    assert.equal(
      urls.filter((url) => !url.startsWith(pool.url) && !url.startsWith('data:')),
      [],
      'nothing from elsewhere',
    );
  }),
);

browserTest('texts from outside are shown as texts, and never run', () =>
  opened({}, async ({ pool, page, errors }) => {
    await live(page);
    const model = '<img src=x onerror="document.title=1">';
    // Nobody serves it, and so no row shows it; an observer is told of one that was served under such a name.
    await (await post(`${pool.url}/v1/completions`, { model, prompt: [1, 2, 3] })).arrayBuffer();
    await until('the refused request', async () => /1 refused/.test(await textOf(page, '#tiles')));
    assert.is(await rows(page, 'requests').count(), 0);
    for (const observer of pool.running.service.observers) observer.ended(endedRequest({ model }));
    await until('the request', async () => (await rows(page, 'requests').count()) === 1);
    assert.is(await page.locator('table.requests img').count(), 0);
    assert.is(await page.title(), 'Moonroute');
    assert.equal(errors, []);
    const { headers } = await fetch(`${pool.url}/`);
    assert.match(headers.get('content-security-policy')!, /default-src 'none'; script-src 'self'; style-src 'self'/);
  }),
);

browserTest('the page asks for the admin key, says when it is wrong, and keeps it for the tab', () =>
  opened({ config: { auth: { clientKeys: ['client-key'], adminKeys: ['admin-key'] } } }, async ({ page }) => {
    const dialog = page.getByRole('dialog', { name: 'Admin key' });
    await dialog.waitFor();
    assert.is(await textOf(page, '#state'), 'Needs a key');
    for (const wrong of ['nonsense', 'client-key']) {
      await dialog.getByLabel('Key').fill(wrong);
      await page.keyboard.press('Enter');
      await until('the refusal', async () => /not an admin key/.test(await textOf(page, '#key-fault')));
      await until('an empty field', async () => (await dialog.getByLabel('Key').inputValue()) === '');
    }
    await dialog.getByLabel('Key').fill('admin-key');
    await page.keyboard.press('Enter');
    await live(page);
    assert.is(await rows(page, 'workers').count(), 3);
    await page.reload();
    await live(page);
    assert.not.ok(await dialog.isVisible());
  }),
);

browserTest('who gives no key is not asked again until they want to', () =>
  opened({ config: { auth: { clientKeys: ['client-key'], adminKeys: ['admin-key'] } } }, async ({ page }) => {
    const dialog = page.getByRole('dialog', { name: 'Admin key' });
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    const pressed = () => page.getByRole('button', { name: 'Pause' }).getAttribute('aria-pressed');
    await until('the pause', async () => (await pressed()) === 'true');
    await page.getByRole('button', { name: 'Pause' }).click();
    await dialog.waitFor();
  }),
);

browserTest('by keyboard alone: pause, read single bars, open a decision', () =>
  opened({}, async ({ pool, page, errors }) => {
    await live(page);
    await pool.ask(1, 200);
    await until('a decision', async () => (await rows(page, 'requests').count()) === 1);
    await page.keyboard.press('Tab');
    assert.is(await page.evaluate('document.activeElement.textContent'), 'Skip to the last decisions');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    await until('the pause', async () => (await textOf(page, '#state')) === 'Paused');
    assert.is(await page.getByRole('button', { name: 'Pause' }).getAttribute('aria-pressed'), 'true');
    await page.keyboard.press('Tab');
    assert.is(await page.evaluate('document.activeElement.getAttribute("role")'), 'img');
    assert.match((await page.locator('.chart').getAttribute('aria-label')) ?? '', /^Hit rate of the last ten minutes/);
    const readouts = new Set<string>();
    for (let i = 0; i < 4; i++) {
      await page.keyboard.press('ArrowLeft');
      readouts.add(await textOf(page, '.readout'));
    }
    assert.ok(
      readouts.size === 4 && [...readouts].some((text) => /1 request; GPU 0/.test(text)),
      [...readouts].join('|'),
    );
    await page.keyboard.press('Escape');
    assert.is(await textOf(page, '.readout'), '');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await until('the terms', async () => (await page.locator('details[open] .terms dt').count()) > 5);
    await pool.ask(2, 200);
    await new Promise((resolve) => setTimeout(resolve, 1200));
    assert.is(await rows(page, 'requests').count(), 1, 'paused is paused');
    assert.equal(errors, []);
  }),
);

browserTest('a restarted server is followed, and one that is away is said to be', () =>
  opened({}, async ({ page }) => {
    await live(page);
    await page.route('**/console/data.json*', (route) => route.abort());
    await until('the loss', async () => (await textOf(page, '#state')) === 'No answer; trying again');
    await page.unroute('**/console/data.json*');
    await live(page);
    await page.route('**/console/data.json*', (route) =>
      route.fulfill({ status: 403, json: { error: { code: 'host-not-allowed', message: 'ask by address.' } } }),
    );
    await until('the refusal', async () =>
      /Refused with status 403: ask by address/.test(await textOf(page, '#state')),
    );
    assert.not.ok(await page.getByRole('dialog').isVisible(), 'no key would help');
  }),
);

/** WCAG's contrast of two colours, as the browser resolves them. */
const CONTRAST = `(names) => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (name) => {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.color = 'var(--' + name + ')';
    const [r, g, b] = getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number);
    probe.remove();
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  return names.map(([a, b]) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); });
}`;
const TEXTS = [
  ['text', 'panel'],
  ['text', 'ground'],
  ['soft', 'panel'],
  ['soft', 'ground'],
  ['accent', 'panel'],
  ['good', 'good-ground'],
  ['warn', 'warn-ground'],
  ['bad', 'bad-ground'],
  ['bad', 'panel'],
  ['soft', 'none-ground'],
  ['text', 'warn-ground'],
] as const;
const MARKS = [
  ['device', 'panel'],
  ['shared', 'panel'],
  ['best', 'panel'],
  ['accent', 'rest'],
] as const;

browserTest('light and dark are both readable, still for who wants no motion, and fit into 360 pixels', () =>
  opened({ fleet: { worker: { dp: 2, latency: { timeScale: 0 } } } }, async ({ pool, page, errors }) => {
    await live(page);
    for (let i = 0; i < 3; i++) await pool.ask(i, 300);
    await until('three decisions', async () => (await rows(page, 'requests').count()) === 3);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    assert.is(
      await page.evaluate(
        `[...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).transitionDuration !== '0s').length`,
      ),
      0,
    );
    const grounds: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      grounds.push(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'));
      const contrast = (pairs: unknown) => page.evaluate<number[]>(`(${CONTRAST})(${JSON.stringify(pairs)})`);
      (await contrast(TEXTS)).forEach((ratio, i) => {
        assert.ok(ratio >= 4.5, `${colorScheme}: ${TEXTS[i]!.join(' on ')} is ${ratio}`);
      });
      (await contrast(MARKS)).forEach((ratio, i) => {
        assert.ok(ratio >= 3, `${colorScheme}: ${MARKS[i]!.join(' on ')} is ${ratio}`);
      });
    }
    assert.is.not(grounds[0], grounds[1]);
    assert.is(await rows(page, 'workers').count(), 6, 'a row a rank');
    for (const width of [1280, 768, 360]) {
      await page.setViewportSize({ width, height: 740 });
      await until('the chart to fit', async () => Number(await page.locator('.chart').getAttribute('width')) < width);
      assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= width, `at ${width}`);
    }
    for (const name of ['At a glance', 'Workers', 'Shared store', 'Last decisions']) {
      assert.ok((await page.locator(`[aria-label="${name}"], :has(> h2:text-is("${name}"))`).count()) > 0, name);
    }
    assert.equal(errors, []);
  }),
);

test.run();
