// Timeline, "why this worker?" and the list of requests in a real browser, with made-up data: zoom, pan, fit, pinch, keyboard and click; the dialog and
// where focus goes; a list of ten million rows. Needs Debian's chromium; without it the test says so and is skipped.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const BROWSER = process.env['MOONROUTE_CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
const PARTS = ['timeline', 'decision', 'requests'];
const AXE = 'node_modules/axe-core/axe.min.js';
/** The run: ten minutes, a request a second on worker 0, each ten seconds long on one of twelve lines. */
const END = 600_000;

interface Context {
  browser: Browser;
  page: Page;
  folder: string;
  errors: string[];
}
const test = suite<Context>('parts of the simulator’s page');

test.before(async (context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'moonroute-parts-'));
  context.errors = [];
  const file = join(context.folder, 'index.html');
  writeFileSync(file, await pageText());
  context.browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
  context.page = await context.browser.newPage({ viewport: { width: 1200, height: 900 }, hasTouch: true });
  context.page.on('pageerror', (error) => context.errors.push(error.message));
  await context.page.goto(pathToFileURL(file).href);
  await context.page.waitForFunction('globalThis.answers > 1');
});

test.after(async ({ browser, folder }) => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the wheel zooms at the pointer, and zooming out ends with the whole run', async ({ page }) => {
  assert.is(await windowOf(page), '0:00 – 10:00 · 10 min of 10 min');
  const { x, y } = await plot(page);
  await page.mouse.move(x + 128 + 520, y + 200);
  for (let i = 0; i < 4; i++) await page.mouse.wheel(0, -240);
  await reads(page, '· 37.5 s of 10 min');
  const [from, to] = await secondsOf(page);
  assert.ok(Math.abs(300 - (from + (to - from) / 2)) < 12, `${from} … ${to}`);
  for (let i = 0; i < 6; i++) await page.mouse.wheel(0, 240);
  await reads(page, '0:00 – 10:00');
});

test('dragging pans and opens nothing; shift with the wheel pans; a double click shows all', async ({ page }) => {
  const { x, y } = await plot(page);
  await page.mouse.move(x + 640, y + 40);
  for (let i = 0; i < 3; i++) await page.mouse.wheel(0, -240);
  await reads(page, '· 75 s of');
  const before = await secondsOf(page);
  await page.mouse.down();
  await page.mouse.move(x + 440, y + 40, { steps: 5 });
  await page.mouse.up();
  await waitFor(async () => (await secondsOf(page))[0] > before[0] + 5);
  const dragged = await secondsOf(page);
  await page.keyboard.down('Shift');
  await page.mouse.wheel(0, 300);
  await page.keyboard.up('Shift');
  await waitFor(async () => (await secondsOf(page))[0] > dragged[0] + 5);
  assert.equal(await page.evaluate('opened'), []);
  await page.mouse.dblclick(x + 640, y + 290);
  await reads(page, '0:00 – 10:00');
});

test('the strip above: edges resize the window, its middle moves it', async ({ page }) => {
  const box = (await page.locator('.overview').boundingBox())!;
  const inner = box.width - 128;
  const drag = async (from: number, to: number) => {
    await page.mouse.move(box.x + 128 + from * inner, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + 128 + to * inner, box.y + 20, { steps: 4 });
    await page.mouse.up();
  };
  await drag(0.999, 0.5);
  await reads(page, '0:00 – 5:00');
  await drag(0.001, 0.25);
  await reads(page, '2:30 – 5:00');
  await drag(0.4, 0.6);
  await reads(page, '4:30 – 7:00');
  await page.click('text=Fit');
  await reads(page, '0:00 – 10:00');
});

test('two fingers spread what is between them', async ({ page }) => {
  const { x, y } = await plot(page);
  const session = await page.context().newCDPSession(page);
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', places: number[]) =>
    session.send('Input.dispatchTouchEvent', {
      type,
      touchPoints: places.map((place, id) => ({ x: x + place, y: y + 60, id })),
    });
  await touch('touchStart', [500]);
  await touch('touchStart', [500, 700]);
  for (let i = 1; i <= 5; i++) await touch('touchMove', [500 - 20 * i, 700 + 20 * i]);
  await touch('touchEnd', []);
  await reads(page, '· 5 min of 10 min');
  await page.click('text=Fit');
  await reads(page, '0:00 – 10:00');
});

test('keys zoom, pan and fit; a cursor reads rows out, and Enter opens its request', async ({ page }) => {
  await page.focus('.plot');
  for (const [key, text] of [
    ['w', '6.67 min of'],
    ['+', '4.44 min of'],
    ['-', '6.67 min of'],
    ['0', '0:00 – 10:00'],
    ['+', '6.67 min of'],
    ['a', '0:20 – 7:00'],
    ['Shift+ArrowRight', '1:40 – 8:20'],
    ['f', '0:00 – 10:00'],
  ] as const) {
    await page.keyboard.press(key);
    await reads(page, text);
  }
  await page.keyboard.press('Home');
  assert.match(await live(page), /^Request 0\. Arrived: 0:00\.000/);
  await page.keyboard.press('ArrowRight');
  assert.match(await live(page), /^Request 12\. Arrived: 0:12\.000; Waited: 100 ms; Fetched for: 50 ms/);
  await page.keyboard.press('ArrowDown');
  assert.match(await live(page), /^Request 13\./);
  await page.keyboard.press('Enter');
  await page.waitForFunction("document.querySelector('.decision .body').childElementCount > 0");
  assert.equal(await page.evaluate('opened'), [13]);
  await page.keyboard.press('Escape');
  assert.ok(await page.evaluate("document.activeElement.classList.contains('plot')"), 'focus comes back');
  await page.keyboard.press('Escape');
  assert.is(await live(page), '');
});

test('a click on a bar opens its request, and the tooltip tells it', async ({ page }) => {
  const { x, y, width } = await plot(page);
  const at = x + 128 + ((width - 128) * 305) / 600;
  await page.mouse.move(at, y + 32 + 10);
  await page.waitForSelector('.tooltip strong:has-text("Request 300")');
  await page.mouse.click(at, y + 32 + 10);
  await page.waitForFunction("document.querySelector('.decision .body').childElementCount > 0");
  assert.equal(await page.evaluate('opened'), [13, 300]);
  assert.is(await page.textContent('.decision h2'), 'Why this worker? Request 300');
  await page.mouse.click(20, 20);
  assert.not(await page.evaluate("document.querySelector('dialog').open"), 'a click beside it closes it');
});

test('the store: no lanes, its own words, bytes', async ({ page }) => {
  await page.selectOption('.timeline select', 'store');
  await page.waitForFunction("/The store|the store/.test(document.querySelector('.plot').getAttribute('aria-label'))");
  const { x, y } = await plot(page);
  await page.mouse.move(x + 600, y + 60);
  await page.waitForSelector('.tooltip strong:has-text("The store")');
  assert.match((await page.textContent('.tooltip'))!, /500 blocks, 500 MB/);
  await page.mouse.move(20, 20);
  await page.selectOption('.timeline select', '0');
});

test('closing gives up on a decision that is under way', async ({ page }) => {
  await page.evaluate('panel.open(-1)');
  assert.match((await page.textContent('.decision .status'))!, /Simulating again up to request/);
  await page.keyboard.press('Escape');
  assert.ok(await page.evaluate('aborted'));
});

test('the list: ten million rows by keyboard and by number, few of them made', async ({ page }) => {
  await page.focus('.requests .row[tabindex="0"]');
  const row = async (index: number) => {
    await page.waitForFunction(
      `document.activeElement.dataset.index === '${index}' && !document.activeElement.textContent.includes('…')`,
    );
  };
  for (const [key, index] of [
    ['ArrowDown', 1],
    ['ArrowUp', 0],
    ['End', 9_999_999],
    ['Home', 0],
  ] as const) {
    await page.keyboard.press(key);
    await row(index);
  }
  await page.fill('.requests input', '4,211,000');
  await page.keyboard.press('Enter');
  await row(4_211_000);
  assert.is(await page.getAttribute('.requests .row[tabindex="0"]', 'aria-rowindex'), '4211002');
  assert.ok((await page.locator('.requests .content .row').count()) < 60);
  await page.keyboard.press('Enter');
  await page.waitForFunction("document.querySelector('.decision .body').childElementCount > 0");
  await page.keyboard.press('Escape');
  await row(4_211_000);
});

test('one question at a time, no fault, and nothing for axe to find, light and dark', async ({ page, errors }) => {
  assert.is(await page.evaluate('most'), 1);
  // Few rows, for axe looks at every cell.
  await page.focus('.plot');
  for (let i = 0; i < 12; i++) await page.keyboard.press('+');
  await page.click('.timeline summary');
  await page.waitForSelector('.timeline .scroller table');
  await page.evaluate(readFileSync(AXE, 'utf8'));
  const check = async (what: string, options: string) => {
    const { violations } = (await page.evaluate(`axe.run(${options})`)) as {
      violations: { id: string; help: string }[];
    };
    assert.equal(
      violations.map(({ id, help }) => `${id}: ${help}`),
      [],
      what,
    );
  };
  await check('the page', '');
  await page.evaluate('panel.open(5)');
  await page.waitForSelector('.decision .candidates');
  await check('the dialog', '');
  await page.evaluate("document.documentElement.dataset.theme = 'dark'");
  await page.evaluate("document.dispatchEvent(new Event('themechange'))");
  await check('the dialog, dark', "{ runOnly: ['color-contrast'] }");
  await page.evaluate('panel.close()');
  await check('the page, dark', "{ runOnly: ['color-contrast'] }");
  assert.equal(errors, []);
});

// ---- looking ----

async function plot(page: Page) {
  return (await page.locator('.plot').boundingBox())!;
}
async function windowOf(page: Page): Promise<string> {
  return (await page.textContent('.timeline .window'))!;
}
const live = async (page: Page): Promise<string> => (await page.textContent('.timeline .live'))!;
async function reads(page: Page, text: string): Promise<void> {
  await waitFor(
    async () => (await windowOf(page)).includes(text),
    async () => `${await windowOf(page)}: not ${text}`,
  );
}
async function secondsOf(page: Page): Promise<[number, number]> {
  const [from, to] = (await windowOf(page))
    .split(' · ')[0]!
    .split(' – ')
    .map((text) => {
      const [minutes, seconds] = text.split(':').map(Number);
      return minutes! * 60 + seconds!;
    });
  return [from!, to!];
}
async function waitFor(met: () => Promise<boolean>, why = async () => 'it never came'): Promise<void> {
  for (const end = Date.now() + 10_000; !(await met()); ) {
    if (Date.now() > end) assert.unreachable(await why());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// ---- the page ----

async function pageText(): Promise<string> {
  const folder = 'src/web/simulator';
  const imports = PARTS.map((part) => `import * as ${part} from './${part}/index.ts';`).join('\n');
  const { outputFiles } = await build({
    stdin: {
      contents: `${imports}\n(${run.toString()})({ ...timeline, ...decision, ...requests }, ${END});`,
      resolveDir: folder,
    },
    bundle: true,
    write: false,
    format: 'iife',
    target: 'es2022',
  });
  const styles = ['page', ...PARTS.map((part) => `${part}/${part}`)]
    .map((name) => readFileSync(`${folder}/${name}.css`, 'utf8'))
    .join('\n');
  const hosts = PARTS.map((part) => `<h2>${part}</h2><div id="${part}"></div>`).join('');
  const script = outputFiles[0]!.text.replaceAll('</script', '<\\/script');
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Parts</title><style>${styles}</style></head><body><main><h1>Parts</h1>${hosts}</main><script>${script}</script></body></html>`;
}

/** Runs in the page. */
// biome-ignore lint/suspicious/noExplicitAny: it is turned into text, and sees the classes only there
function run({ Timeline, DecisionPanel, RequestList }: any, end: number): void {
  const rowOf = (request: number) => ({
    ...{ request, worker: 0, promptTokens: 1600, outputTokens: 20, full: 100, gpu: 60, dram: 20, ssd: 0 },
    ...{ at: request * 1000, begunAt: request * 1000 + 100, fetchedAt: request * 1000 + 150 },
    ...{ firstTokenAt: request * 1000 + 3000, endedAt: request * 1000 + 10_000 },
    ...{ credited: 20, creditError: 0, cost: 10, runnerUpCost: 12, runnerUp: 1 },
  });
  const global = Object.assign(globalThis, { opened: [] as number[], answers: 0, most: 0, aborted: false });
  let flying = 0;
  const ask = async (place: number | string, from: number, to: number, columns: number, families: number) => {
    global.most = Math.max(global.most, ++flying);
    await new Promise((resolve) => setTimeout(resolve, 5));
    flying--;
    global.answers++;
    const column = (value: number) => new Float64Array(columns).fill(value);
    const family = (number: number) => ({
      ...{ family: number, firstRequest: number, requests: 3, held: column(500 / (number + 2)) },
      ...{ stored: column(number % 2), fetched: column(1), evicted: column(2) },
    });
    const all = Array.from({ length: end / 1000 }, (_, i) => ({ row: rowOf(i), lane: i % 12 }));
    const spans = place === 'store' ? [] : all.filter(({ row }) => row.at <= to && row.endedAt >= from);
    return {
      ...{ place, from, to, columns, spans, lanes: 12, spansLeftOut: 0, capacity: 1000, recordedTo: end },
      ...{
        total: { ...family(0), held: column(500) },
        families: Array.from({ length: families }, (_, i) => family(i)),
      },
      familiesLeftOut: 0,
    };
  };
  const onRequest = (request: number) => {
    global.opened.push(request);
    panel.open(request);
  };
  const worker = (id: number) => ({ id, dpRank: 0 });
  const terms = (queue: number) => ({ kind: 'time', queue, fetch: 5, prefill: 90, time: queue + 95, sharedTokens: 9 });
  const blocks = { device: 60, host: 0, disk: 0, shared: 20, request: 100 };
  const candidate = (rank: number) => ({
    ...{ worker: worker(rank), rank, cost: 95 + 10 * rank, terms: terms(10 * rank), notEligible: null, blocks },
    load: { activeRequests: rank, prefillTokens: 100, decodeBlocks: 5 },
    ...{ admission: 'admitted', zero: { device: null, host: null, disk: null, shared: null } },
  });
  const account = (request: number) => ({
    row: rowOf(request),
    decision: {
      ...{ worker: worker(0), rank: 0, policy: 'ttft', fallback: false, cost: 95, terms: terms(0), blocks },
      ...{ runnerUp: { worker: worker(1), rank: 1, cost: 105 }, bestReachable: 80, achieved: 80, sharedReason: null },
      candidates: [0, 1, 2].map(candidate),
      reasons: [{ code: 'object-missing', block: 80, group: 0, missing: ['a@b'], text: 'Block 80 lacks an object.' }],
    },
    costUnit: 'ms',
    counterfactual: { ...rowOf(request), worker: 1, firstTokenAt: request * 1000 + 4000 },
  });
  const panel = new DecisionPanel(document.querySelector('#decision'), {
    ask: (request: number, signal: AbortSignal) =>
      request >= 0
        ? Promise.resolve(account(request))
        : new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              global.aborted = true;
              reject(signal.reason);
            });
          }),
  });
  const timeline = new Timeline(document.querySelector('#timeline'), { ask, onRequest });
  timeline.show({ workers: 4, end, hasStore: true, label: 'ttft', blockBytes: 1e6 });
  const total = 10_000_000;
  const list = new RequestList(document.querySelector('#requests'), {
    ask: async (_: string, from: number, count: number) => ({
      rows: Array.from({ length: Math.min(count, total - from) }, (_, i) => rowOf(from + i)),
      total,
    }),
    onRequest,
  });
  list.show(total, 'ttft');
  Object.assign(globalThis, { panel });
}

if (!existsSync(BROWSER) && !process.env['CI']) {
  console.log(`skipped: simulator-timeline-browser (no ${BROWSER}; apt-get install chromium)`);
} else test.run();
