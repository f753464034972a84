// An application that imports the packed package by its names, bundled by esbuild into one script for a page: it sees what Node sees, with nothing fetched.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { behaviourInput } from './support/behaviour-input.js';
import { seenInNode } from './support/behaviours.js';
import { browserTest, html, json, onPage, script } from './support/chromium.js';
import { PackedFolder } from './support/packed.js';

const inBrowser = browserTest('package-bundled');

inBrowser('a page bundled from the packed package sees what Node sees, and asks for nothing besides', async () => {
  const folder = new PackedFolder();
  try {
    const app = folder.install('page', { optional: false });
    for (const file of ['page-app.js', 'behaviours.js', 'answers.js'])
      cpSync(`test/runtimes/${file}`, join(app.path, file));
    const { outputFiles, warnings, metafile } = await build({
      absWorkingDir: app.path,
      entryPoints: ['page-app.js'],
      ...{ bundle: true, minify: true, write: false, metafile: true, format: 'esm', platform: 'browser' },
      logLevel: 'silent',
    });
    assert.equal([warnings, outputFiles.length], [[], 1]);
    const packed = Object.keys(metafile.inputs).filter((path) => path.includes('node_modules/moonroute/'));
    assert.ok(packed.length > 50, 'bundled from the installed package');
    const input = behaviourInput();
    const asked: string[] = [];
    const served = (path: string) => {
      asked.push(path);
      if (path === '/') return html('<script type="module" src="/app.js"></script>');
      if (path === '/app.js') return script(outputFiles[0]!.contents);
      return path === '/input.json' ? json(input) : undefined;
    };
    const seen = await onPage(served, '/', async (page) => {
      await page.waitForFunction('globalThis.seen !== undefined');
      return page.evaluate(`fetch('/input.json').then((r) => r.json()).then((input) => globalThis.seen(input))`);
    });
    assert.equal(seen, await seenInNode(input));
    assert.equal(
      asked.filter((path) => path !== '/favicon.ico'),
      ['/', '/app.js', '/input.json'],
    );
  } finally {
    folder.remove();
  }
});

test.run();
