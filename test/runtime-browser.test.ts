// The browser-safe entries in a real browser, as built files that a page imports by an import map: no bundler, no fetch of WebAssembly. They see what Node
// sees; and a page's main thread may make routers at once.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { behaviourInput } from './support/behaviour-input.js';
import { seenInNode } from './support/behaviours.js';
import { browserTest, html, json, onPage, type Served, script } from './support/chromium.js';

const FOLDER = 'build/browser';
const IMPORT_MAP = { imports: { moonroute: '/moonroute.js', 'moonroute/sim': '/sim.js' } };
/** Everything that a page of one's own needs. */
const ENTRY = `<script type="importmap">${JSON.stringify(IMPORT_MAP)}</script><script type="module" src="/page-app.js"></script>`;

function served(input: unknown, page: Served = html(ENTRY)): (path: string) => Served | undefined {
  return (path) => {
    if (path === '/') return page;
    if (path === '/input.json') return json(input);
    const file = [join(FOLDER, path), join('test/runtimes', path)].find((name) => existsSync(name));
    return file === undefined ? undefined : script(readFileSync(file));
  };
}

test('the built files import nothing but each other', async () => {
  const files = readdirSync(FOLDER);
  assert.equal(files.sort(), ['moonroute.js', 'shared.js', 'sim.js']);
  const { metafile } = await build({
    entryPoints: files.map((file) => join(FOLDER, file)),
    ...{ bundle: true, splitting: true, write: false, metafile: true, format: 'esm', platform: 'node' },
    ...{ packages: 'external', outdir: 'build/reached', logLevel: 'silent' },
  });
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
  assert.equal(
    imports.filter(({ external, kind }) => external || kind !== 'import-statement'),
    [],
  );
  assert.ok(imports.length > 0);
});

const inBrowser = browserTest('runtime-browser');

inBrowser('a page without a bundler sees what Node sees', async () => {
  const input = behaviourInput();
  const seen = await onPage(served(input), '/', async (page, browser) => {
    console.log(`  browser ${browser.version()}`);
    await page.waitForFunction('globalThis.seen !== undefined');
    return page.evaluate(`fetch('/input.json').then((r) => r.json()).then((input) => globalThis.seen(input))`);
  });
  assert.equal(seen, await seenInNode(input));
});

inBrowser('a page that forbids WebAssembly is told what it must allow, awaited or at once', async () => {
  const policy = { 'content-security-policy': "script-src 'self' 'unsafe-inline'" };
  const ends = await onPage(served(null, html(ENTRY, policy)), '/', (page) =>
    page.evaluate(`import('moonroute').then(async ({ Router }) => {
      const codes = [];
      try { Router.createSync() } catch (error) { codes.push([error.name, error.code, error.message]) }
      await Router.create().catch((error) => codes.push([error.name, error.code, error.message]));
      return codes;
    })`),
  );
  const [atOnce, awaited] = ends as [string, string, string][];
  for (const [name, code, message] of [atOnce!, awaited!]) {
    assert.equal([name, code], ['MoonrouteError', 'wasm-refused']);
    assert.match(message, 'wasm-unsafe-eval');
  }
});

test.run();
