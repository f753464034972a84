// Size budgets of the package: what is downloaded, what lies on disk, and what a page loads. Budgets of the modules' memory are in budgets.test.ts.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { dryPacked } from './support/packed.js';

const KB = 1000;

function within(what: string, bytes: number, budget: number): void {
  console.log(`  ${what}: ${(bytes / KB).toFixed(1)} of ${budget / KB} kB`);
  assert.ok(bytes <= budget, `${what}: ${bytes} bytes, budget ${budget}`);
}

const packedSize = (bytes: Uint8Array): number => gzipSync(bytes, { level: 9 }).length;

test('the tarball and what it unpacks to', () => {
  const { size, unpackedSize, files } = dryPacked();
  within('tarball', size, 1_700 * KB);
  within('unpacked', unpackedSize, 5_300 * KB);
  within('files (each counted as 1 kB)', files.length * KB, 780 * KB);
});

test('core.wasm', () => {
  within('core.wasm', readFileSync('build/wasm/core.wasm').length, 46 * KB);
});

test('what a page loads, minified and packed with gzip', () => {
  const sizes = ['moonroute', 'shared', 'sim'].map((name) => packedSize(readFileSync(`build/browser/${name}.js`)));
  const [entry, shared, sim] = sizes as [number, number, number];
  // The core's three builds, the reader and the index are half of it, the codec of plane events a twelfth.
  within('moonroute', entry + shared, 140 * KB);
  within('moonroute/sim beside it', sim, 42 * KB);
});

test('what a bundler leaves of an application that uses the router alone', async () => {
  const { outputFiles } = await build({
    stdin: {
      contents: `import { Router } from 'moonroute'; globalThis.router = Router.createSync();`,
      resolveDir: '.',
    },
    ...{ bundle: true, minify: true, write: false, format: 'esm', platform: 'browser', target: 'es2022' },
  });
  within('Router alone', packedSize(outputFiles[0]!.contents), 120 * KB);
});

test.run();
