// The simulator's page carries the WebAssembly modules in a form of its own: what its script makes of them is byte for byte what was built.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { ModuleName } from '../src/core/modules.js';

const { coreInPage } = (await import(pathToFileURL('scripts/core-in-page.mjs').href)) as {
  coreInPage: (carried: boolean) => Plugin;
};

type ModuleBytes = typeof import('../src/core/modules.js').moduleBytes;

async function carried(name: ModuleName, plugin: Plugin): Promise<Buffer> {
  const { outputFiles } = await build({
    stdin: { contents: `export { moduleBytes } from './build/js/src/core/modules.js';`, resolveDir: process.cwd() },
    bundle: true,
    minify: true,
    format: 'esm',
    charset: 'utf8',
    write: false,
    plugins: [plugin],
  });
  const script = Buffer.from(outputFiles[0]!.contents).toString('base64');
  const { moduleBytes } = (await import(`data:text/javascript;base64,${script}`)) as { moduleBytes: ModuleBytes };
  return Buffer.from(moduleBytes(name));
}

for (const [name, file] of [
  ['default', 'core'],
  ['wide', 'core-wide'],
  ['large', 'core-large'],
  ['wire', 'wire'],
  ['prefixes', 'prefixes'],
] as const)
  test(`${name} is what build/wasm/${file}.wasm holds`, async () => {
    const bytes = await carried(name, coreInPage(true));
    assert.ok(bytes.equals(readFileSync(`build/wasm/${file}.wasm`)), `${bytes.length} bytes`);
  });

test('the script beside the worker carries none of it', async () => {
  assert.is((await carried('default', coreInPage(false))).length, 0);
});

test.run();
