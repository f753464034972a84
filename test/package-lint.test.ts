// The packed package as publint and "are the types wrong" see it: exports, types and conditions resolve in every way that is supported. No network.
import { readFileSync } from 'node:fs';
import { checkPackage, createPackageFromTarballData, type Problem } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { entries, manifest, PackedFolder } from './support/packed.js';

const folder = new PackedFolder();
const tarball = readFileSync(folder.tarball);
folder.remove();

test('publint has nothing to say', async () => {
  const buffer = tarball.buffer.slice(tarball.byteOffset, tarball.byteOffset + tarball.length) as ArrayBuffer;
  const { messages } = await publint({ pack: { tarball: buffer }, strict: true });
  assert.equal(
    messages.map((message) => formatMessage(message, manifest, { color: false })),
    [],
  );
});

/**
 * Expected of a package of ES modules alone, which needs Node 20. `node10` is TypeScript's resolution for Node before 12.7, which knows no `exports`.
 * From CommonJS, types that say "import() it" are true: Node 20 refuses require(), later ones allow it (package-install.test.ts).
 */
function expected(problem: Problem): boolean {
  if (problem.kind === 'CJSResolvesToESM') return true;
  return 'resolutionKind' in problem && problem.resolutionKind === 'node10';
}

test('types resolve from ES modules and bundlers, for every entry', async () => {
  // No module: it is there to be fetched or read, and has no types.
  const excludeEntrypoints = ['./core.wasm'];
  const packed = createPackageFromTarballData(new Uint8Array(tarball));
  const result = await checkPackage(packed, { excludeEntrypoints });
  if (result.types === false) return assert.unreachable('no types found');
  assert.equal(
    result.problems.filter((problem) => !expected(problem)),
    [],
  );
  for (const { name } of entries) {
    const path = `.${name.slice(manifest.name.length)}`;
    const { resolutions } = result.entrypoints[path]!;
    for (const way of ['node16-esm', 'bundler'] as const) {
      const { resolution } = resolutions[way];
      assert.ok(resolution?.isTypeScript, `${path} by ${way}`);
    }
  }
});

test.run();
