// The simulator's page for people with a keyboard, a reader, a narrow screen, a dark room or no wish for motion; and what it says when a setting is wrong or its
// worker dies. Needs Debian's chromium (CI installs it); without it the test says so and is skipped.
import type { Browser, Page } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  accessFaults,
  ended,
  type Given,
  hasBrowser,
  LONG,
  launched,
  type Opened,
  open,
  overhang,
  QUICK,
  reads,
  textOf,
  underWay,
  until,
} from './support/simulator-page.js';

const runs = hasBrowser('simulator-page-people');
const browserTest = runs ? test : test.skip;
let browser: Browser;
test.before(async () => {
  if (runs) browser = await launched();
});
test.after(async () => browser?.close());

/** Opens it, works with it, and sees that nothing went wrong. */
async function opened(given: Given, work: (opened: Opened) => Promise<void>): Promise<void> {
  const it = await open(browser, given);
  try {
    await work(it);
    assert.equal([it.errors, it.asked], [[], []]);
  } finally {
    await it.close();
  }
}

async function isSound(page: Page, what: string): Promise<void> {
  assert.equal(await accessFaults(page), [], what);
}

/** Opens a dialog, looks at it, and sees that Escape brings the focus back to where it came from. */
async function dialog(page: Page, opener: string, box: string, look: () => Promise<void>): Promise<void> {
  await page.locator(opener).focus();
  await page.keyboard.press('Enter');
  await page.locator(box).waitFor();
  await look();
  await page.keyboard.press('Escape');
  await until('the dialog to close', () => page.locator(box).isHidden());
  assert.ok(await page.evaluate((where) => document.activeElement === document.querySelector(where), opener), opener);
}

browserTest('axe finds no serious fault: finished, light and dark, wide and narrow, with each dialog', () =>
  opened({ hash: QUICK, context: { reducedMotion: 'reduce' } }, async ({ page }) => {
    await ended(page);
    await page.click('#policies summary');
    await isSound(page, 'light');
    await dialog(page, '#assumptions-open', '#assumptions', () => isSound(page, 'assumptions'));
    await dialog(page, '#keys-open', '#keys', () => isSound(page, 'keys'));
    await page.fill('#set-store', '10GB');
    await page.fill('#set-requests', '100');
    await page.keyboard.press('Control+Enter');
    await ended(page, 2);
    await page.click('#run-1-b');
    await page.locator('#comparison table').waitFor();
    await page.emulateMedia({ colorScheme: 'dark' });
    await isSound(page, 'dark, two runs');
    const row = '#requests .row[data-index="5"]';
    await page.locator(row).scrollIntoViewIfNeeded();
    await dialog(page, row, '.decision .candidates', () => isSound(page, 'decision, dark'));
    await page.setViewportSize({ width: 390, height: 844 });
    await isSound(page, 'narrow, dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('.fold').click();
    await isSound(page, 'narrow, light, with settings');
  }),
);

browserTest('axe finds no serious fault while it runs, and where something is wrong', () =>
  opened({ hash: LONG }, async ({ page }) => {
    await underWay(page);
    await isSound(page, 'running');
    await page.fill('#set-workers', '0');
    await page.click('#cancel');
    await ended(page);
    await page.setInputFiles('#picker', { name: 'empty', mimeType: '', buffer: Buffer.alloc(0) });
    await reads(page, '#trouble', /empty/);
    await isSound(page, 'troubled');
  }),
);

browserTest('by keyboard alone: skip link, Ctrl+Enter, Escape, and every stop is seen and named', () =>
  opened({ hash: QUICK }, async ({ page }) => {
    // Heard from the beginning: the browser's own dialog comes where nobody listens yet.
    let choosers = 0;
    page.on('filechooser', () => choosers++);
    await ended(page);
    const stops = new Map<string, { name: string; seen: boolean }>();
    for (let i = 0; i < 400; i++) {
      await page.keyboard.press('Tab');
      const stop = await page.evaluate(() => {
        const at = document.activeElement as HTMLElement;
        if (at === document.body) return null;
        if (at.dataset['stop'] !== undefined) return { key: at.dataset['stop']!, name: '', seen: true };
        at.dataset['stop'] = String(document.querySelectorAll('[data-stop]').length);
        const { width, height } = at.getBoundingClientRect();
        const labels = (at as HTMLInputElement).labels ?? [];
        const name = [at.getAttribute('aria-label'), at.textContent, ...[...labels].map((label) => label.textContent)];
        const by = at.getAttribute('aria-labelledby');
        if (by !== null) name.push(document.getElementById(by)!.textContent);
        const style = getComputedStyle(at);
        const ringed = style.outlineStyle !== 'none' || style.boxShadow !== 'none';
        return {
          key: at.dataset['stop']!,
          name: name.find((text) => text?.trim()) ?? at.outerHTML.slice(0, 80),
          seen: width > 0 && height > 0 && (ringed || at.id === 'picker'),
        };
      });
      if (stop === null || stops.has(stop.key)) break;
      stops.set(stop.key, stop);
    }
    const all = [...stops.values()];
    assert.ok(all.length > 40 && all.length < 300, `${all.length} stops`);
    assert.equal(
      all.filter(({ name, seen }) => !seen || name.startsWith('<')).map(({ name }) => name),
      [],
      'seen, and named',
    );
    const names = all.map(({ name }) => name);
    assert.is(names[0], 'Skip to the answer');
    for (const name of [
      'What is assumed',
      'Requests',
      'Run Ctrl ↵',
      'JSON of run 1',
      'Store size',
      'PNG of all charts',
    ])
      assert.ok(names.includes(name), `${name} among ${names.join('; ')}`);

    await page.reload();
    await ended(page);
    await page.keyboard.press('Tab');
    const focused = () => page.evaluate(() => document.activeElement!.textContent);
    assert.is(await focused(), 'Skip to the answer');
    assert.ok(await page.evaluate(() => document.activeElement!.getBoundingClientRect().top >= 0), 'seen when focused');
    await page.keyboard.press('Enter');
    assert.is(await page.evaluate(() => document.activeElement!.id), 'answer');

    await page.fill('#set-requests', '200000');
    await page.keyboard.press('Control+Enter');
    await underWay(page);
    await reads(page, '#said', /^Run 2 begins/);
    await page.keyboard.press('Escape');
    await reads(page, '#said', /Cancelling|cancelled/);
    await ended(page, 2);
    await reads(page, '#said', /^Run 2 is cancelled/);
    await page.keyboard.press('Escape');
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press('?');
    await page.locator('#keys').waitFor();
    await page.keyboard.press('Escape');
    await until('the list to close', () => page.locator('#keys').isHidden());
    await page.keyboard.press('o');
    await until('the file dialog', async () => choosers === 1);
    // Typed into a field, the same letter is a letter.
    await page.fill('#set-requests', '');
    await page.locator('#set-requests').press('o');
    assert.is(await page.inputValue('#set-requests'), 'o');
  }),
);

browserTest('light or dark as the system has it, unless one is chosen, which is kept; charts follow', () =>
  opened({ hash: QUICK, context: { colorScheme: 'dark' } }, async ({ page }) => {
    await ended(page);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const drawn = () =>
      page.evaluate(() => document.querySelector<HTMLCanvasElement>('#tiers .chart-plots canvas')!.toDataURL());
    const [dark, darkChart] = [await ground(), await drawn()];
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await ground();
    assert.is.not(light, dark);
    await until('another picture', async () => (await drawn()) !== darkChart);
    assert.is(await textOf(page, '#theme'), 'Colours: auto');
    await page.click('#theme');
    await page.click('#theme');
    assert.is(await textOf(page, '#theme'), 'Colours: dark');
    assert.is(await ground(), dark);
    await until('the picture', async () => (await drawn()) === darkChart);
    await page.reload();
    await ended(page);
    assert.is(await ground(), dark);
  }),
);

browserTest('who wants no motion gets none', () =>
  opened({ hash: LONG, context: { reducedMotion: 'reduce' } }, async ({ page }) => {
    await underWay(page);
    await page.locator('#run').hover();
    const moving = await page.evaluate(() =>
      document.getAnimations().map((each) => (each.effect as KeyframeEffect).target?.className ?? ''),
    );
    assert.equal(moving, []);
    const slow = await page.evaluate(() =>
      [...document.querySelectorAll('*')]
        .filter((each) => {
          const { transitionDuration, animationDuration } = getComputedStyle(each);
          return [transitionDuration, animationDuration].some((text) =>
            text.split(',').some((part) => Number.parseFloat(part) > 0.01),
          );
        })
        .map((each) => each.outerHTML.slice(0, 80)),
    );
    assert.equal(slow, []);
    await page.click('#cancel');
    await ended(page);
  }),
);

browserTest('nothing scrolls sideways, from 360 to 1,440 pixels', () =>
  opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    await page.click('#policies summary');
    for (const width of [1440, 1024, 768, 390, 360]) {
      await page.setViewportSize({ width, height: 800 });
      await until(`${width} pixels`, async () => (await overhang(page)) <= 0).catch(async (error: Error) => {
        throw new Error(`${error.message}: ${await overhang(page)} too wide`);
      });
    }
    await page.locator('.fold').click();
    assert.ok((await overhang(page)) <= 0, 'with settings');
    const row = page.locator('#requests .row[data-index="2"]');
    await row.scrollIntoViewIfNeeded();
    await row.click();
    await page.locator('.decision .candidates').waitFor();
    assert.ok((await overhang(page)) <= 0, 'with a decision');
    assert.ok(
      await page.locator('.decision').evaluate((box) => box.scrollWidth <= box.clientWidth),
      'nor the decision',
    );
    await page.keyboard.press('Escape');
    // Where the page has two columns that fit no more: zoomed in to 400 %.
    await page.setViewportSize({ width: 320, height: 256 });
    await until('320 pixels', async () => (await overhang(page)) <= 0);
  }),
);

browserTest('a wrong setting is said at its field, in the command’s words, and nothing runs', () =>
  opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    const field = page.locator('#set-workers');
    await field.fill('0');
    assert.is(await field.getAttribute('aria-invalid'), 'true');
    const fault = page.locator('#set-workers-fault');
    assert.match((await fault.textContent()) ?? '', /from 1 to 1024/);
    assert.ok(await fault.isVisible());
    assert.match((await field.getAttribute('aria-describedby')) ?? '', /set-workers-fault/);
    await page.locator('#set-store').focus();
    await page.keyboard.press('Control+Enter');
    await reads(page, '#said', /A setting is not valid/);
    assert.is(await page.evaluate(() => document.activeElement!.id), 'set-workers', 'focus goes to it');
    assert.is(await page.locator('#runs tbody tr').count(), 1);
    await field.fill('2');
    assert.is(await field.getAttribute('aria-invalid'), null);
    assert.ok(await fault.isHidden());
    for (const policy of ['kv', 'round-robin']) await page.uncheck(`.policies [value=${policy}]`);
    await page.locator('#set-curve').uncheck();
    await reads(page, '#set-policy-fault', /Choose a policy/);
    // What only the run finds out, such as a place in a link that no worker has.
    await page.evaluate(() => {
      location.hash = '#policy=kv&requests=50&workers=2&restart=worker:7@1s&bogus=1';
    });
    await until('a refusal', () =>
      page.evaluate(() => document.querySelector('[aria-invalid=true]')?.id === 'set-restart'),
    );
    assert.match(await textOf(page, '#set-restart-fault'), /worker/);
  }),
);

browserTest('a worker that dies is said; earlier figures stay, and it runs again', () =>
  opened({ hash: QUICK }, async ({ page }) => {
    await ended(page);
    const before = await textOf(page, '#policies');
    await page.fill('#set-requests', '200000');
    await page.click('#run');
    await underWay(page);
    await page.workers()[0]!.evaluate(() => {
      setTimeout(() => {
        throw new Error('out of memory');
      });
    });
    await reads(page, '#trouble', /worker ended: .*out of memory.*fewer requests/s);
    await ended(page, 2);
    assert.match(await textOf(page, '#shown'), /^Run 2 · failed/);
    await page.click('#run-1-a');
    await reads(page, '#shown', /^Run 1 /);
    assert.is(await textOf(page, '#policies'), before);
    assert.ok(await page.locator('#run-1-json').isDisabled(), 'what the worker kept is gone');
    assert.ok(await page.locator('#each').isHidden());
    await page.fill('#set-requests', '60');
    await page.click('#trouble >> text=Run again');
    await ended(page, 3);
    assert.ok(await page.locator('#trouble').isHidden());
    assert.match(await textOf(page, '#shown'), /60 requests/);
  }),
);

test.run();
