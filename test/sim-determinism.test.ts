// The same seed gives the same report, byte for byte, in Node, in Deno and in a browser; another seed gives another one where something is
// drawn. These engines are all V8, so that the simulator's own files use nothing that differs between engines is looked up in their text.
// The browser is Debian's chromium (CI installs it); without it that test says so and is skipped.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { type Browser, chromium } from 'playwright-core';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import * as sim from '../src/sim/index.js';

interface SimReports {
  readonly reports: readonly string[];
  readonly rows: number;
  readonly digest: string;
  readonly whole: string;
}

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
const RUNTIME = 'test/runtimes/sim-reports.js';
/** SHA-256 of the built-in workload's first 2,000 rows: it changes only where the workload is meant to. */
const WORKLOAD = '2802bc5efcd073de46f6561cc37786b5737d90e31d0a0bee8f1b8b6ba7f082d8';

const { simReports } = (await import(pathToFileURL(resolve(RUNTIME)).href)) as {
  simReports(module: typeof sim): Promise<SimReports>;
};
const inNode = await simReports(sim);

/** The first place where texts differ says more than two long texts. */
function assertSame(found: SimReports): void {
  assert.is(found.digest, inNode.digest);
  for (const [i, text] of [...inNode.reports, inNode.whole].entries()) {
    assert.equal(JSON.parse([...found.reports, found.whole][i]!), JSON.parse(text), `run ${i}`);
  }
  assert.equal(found, inNode);
}

test('the same seed gives the same bytes again', async () => {
  assertSame(await simReports(sim));
  assert.is(inNode.rows, 2000);
  assert.is(inNode.digest, WORKLOAD);
});

test('each run does what it is there for', () => {
  const reports = inNode.reports.map((text) => JSON.parse(text) as sim.SimReport);
  for (const { policy, requests, completed, router, blocks, store } of reports) {
    assert.equal([requests, completed], [300, 300]);
    assert.ok(router.lostMessages > 10, policy);
    // Only these read the store's stream.
    if (policy === 'kv' || policy === 'ttft') assert.ok(router.clears > 5, policy);
    assert.ok(blocks.gpu > 0 && blocks.dram > 0 && blocks.ssd > 0 && store.evictedBlocks > 0, JSON.stringify(blocks));
  }
});

test('another seed draws other delays and losses', () => {
  assert.is.not(inNode.reports[1], inNode.reports[0]);
  const [first, second] = inNode.reports.map((text) => JSON.parse(text) as sim.SimReport);
  assert.is.not(second!.router.lostMessages, first!.router.lostMessages);
});

test('another seed changes nothing where nothing is drawn', async () => {
  const run = async (seed: number) =>
    JSON.stringify(await sim.simulate({ seed, workers: { count: 1 } }, sim.builtInWorkload({ requests: 100 })));
  assert.is(await run(2), await run(1));
});

test('another seed draws other choices of a random policy', async () => {
  const run = async (seed: number) =>
    JSON.stringify(await sim.simulate({ seed, policy: 'random' }, sim.builtInWorkload({ requests: 100 })));
  assert.is(await run(1), await run(1));
  assert.is.not(await run(2), await run(1));
});

test('no clock, no unseeded numbers and nothing whose last bits differ between engines', () => {
  const files = readdirSync('src/sim', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  assert.ok(files.length > 20);
  const unsure =
    /Math\.(?:a?(?:sin|cos|tan)h?|atan2|exp|expm1|log\w*|pow|cbrt|hypot|random)\b|Date\.now|new Date|performance/;
  for (const file of files) {
    const code = readFileSync(join('src/sim', file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    assert.is(unsure.exec(code)?.[0], undefined, file);
  }
});

test('Deno gives the same bytes', () => {
  const printed = execFileSync(
    'node_modules/.bin/deno',
    ['run', '--no-lock', '--no-remote', '--allow-read', '--allow-env', 'test/runtimes/sim-deno.js'],
    { encoding: 'utf8', maxBuffer: 1 << 26 },
  );
  assertSame(JSON.parse(printed) as SimReports);
});

const skipped = !existsSync(BROWSER) && !process.env['CI'];
if (skipped) console.log(`skipped: sim-determinism in a browser (no ${BROWSER}; apt-get install chromium)`);
const browserTest = skipped ? test.skip : test;

browserTest('a page gives the same bytes', async () => {
  const bundle = await build({
    entryPoints: ['build/js/src/sim/index.js'],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'warning',
  });
  const script = bundle.outputFiles[0]!.text;
  assert.not.match(script, /from\s*["']node:/);
  const files: Record<string, [type: string, text: string]> = {
    '/': ['text/html', '<!doctype html><title>simulations</title>'],
    '/sim.js': ['text/javascript', script],
    '/sim-reports.js': ['text/javascript', readFileSync(RUNTIME, 'utf8')],
  };
  const server = createServer((request, response) => {
    const file = files[request.url ?? '/'];
    response.writeHead(file === undefined ? 404 : 200, { 'content-type': file?.[0] ?? 'text/plain' }).end(file?.[1]);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  let browser: Browser | undefined;
  try {
    browser = await chromium.launch({ executablePath: BROWSER, args: FLAGS });
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    // Text, not a function: the page's own modules are loaded, and nothing of this file's is meant.
    const found = await page.evaluate(
      `Promise.all([import('/sim.js'), import('/sim-reports.js')]).then(([sim, { simReports }]) => simReports(sim))`,
    );
    console.log(`  browser ${browser.version()}`);
    assertSame(found as SimReports);
  } finally {
    await browser?.close();
    server.close();
  }
});

test.run();
