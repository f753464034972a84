// What `npm pack` puts in: what users need, and nothing else. Code that no entry reaches, declarations of nothing that is exported, sources, tests and maps
// stay out; what the texts link to is in.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { dryPacked, entries, manifest } from './support/packed.js';

/** Scripts of the pages. */
const PAGES = [
  ...['build/js/src/web/console/main.js', 'build/js/src/web/simulator/main.js', 'build/js/src/web/simulator/worker.js'],
  ...['build/js/bench/page/page.js', 'build/js/bench/page/worker.js'],
];
const packed = dryPacked();
const paths = packed.files.map(({ path }) => path);

/** Everything that may be in. */
const ALLOWED = [
  /^(?:LICENSE|README\.md|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|package\.json|config\.schema\.json)$/,
  /^build\/js\/src\/.+\.js$/,
  /^build\/types\/src\/.+\.d\.ts$/,
  /^build\/THIRD-PARTY\.txt$/,
  /^build\/wasm\/core\.wasm$/,
  /^build\/browser\/(?:moonroute|sim|shared)\.js$/,
  /^build\/bench\/(?:bench\.js|index\.html)$/,
  /^build\/simulator\/index\.html$/,
  /^src\/vllm\/\w+\.py$/,
  /^dashboards\/moonroute\.json$/,
  /^docs\/[\w./-]+\.(?:md|svg)$/,
  /^examples\/[\w./-]+\.(?:m?js|ts|jsonl?|html|md)$/,
  /^(?:assembly\/README|bench\/RESULTS)\.md$/,
];

test('every file is of a kind that is allowed', () => {
  assert.equal(
    paths.filter((path) => !ALLOWED.some((allowed) => allowed.test(path))),
    [],
  );
});

test('what must be there is', () => {
  const named = Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [target] : [target.types, target.default],
  );
  const must = [...named, ...Object.values(manifest.bin), 'LICENSE', 'README.md', 'build/browser/moonroute.js'];
  assert.equal(
    must.map((path) => path.replace('./', '')).filter((path) => !paths.includes(path)),
    [],
  );
  // npm makes it executable when it links it; the first line is what then runs it.
  assert.match(readFileSync(manifest.bin['moonroute']!, 'utf8'), /^#!\/usr\/bin\/env node\n/);
});

test('each JavaScript module that an entry or the command reaches is there; others have types alone', async () => {
  const { metafile } = await build({
    entryPoints: [...entries.map(({ file }) => file), manifest.bin['moonroute']!],
    ...{ bundle: true, splitting: true, write: false, metafile: true, format: 'esm', platform: 'node' },
    ...{ packages: 'external', outdir: 'build/reached', logLevel: 'silent' },
  });
  const reached = new Set(Object.keys(metafile.inputs));
  const lacking = [...reached].filter((path) => path.startsWith('build/js/') && !paths.includes(path));
  assert.equal(lacking, []);
  const extra = paths.filter((path) => path.startsWith('build/js/') && !reached.has(path));
  const code = (path: string) =>
    readFileSync(path, 'utf8')
      .replaceAll(/^\/\/.*$/gm, '')
      .trim();
  assert.equal(
    extra.filter((path) => code(path) !== ''),
    [],
  );
});

test('the licences of what is inside built files are there', async () => {
  const { metafile } = await build({
    entryPoints: ['build/js/src/index.js', 'build/js/src/sim/index.js', 'build/js/bench/bundle.js', ...PAGES],
    ...{ bundle: true, write: false, metafile: true, format: 'esm', platform: 'browser', external: ['node:*'] },
    ...{ outdir: 'build/reached', logLevel: 'silent' },
  });
  const inside = Object.keys(metafile.inputs).flatMap(
    (path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [],
  );
  const notice = readFileSync('build/THIRD-PARTY.txt', 'utf8');
  const named = [...notice.matchAll(/^(\S+) \d+\.\d+\.\d+: /gm)].map(([, name]) => name!);
  assert.equal([...new Set(inside)].sort(), named.sort());
  assert.ok(paths.includes('build/THIRD-PARTY.txt'));
});

test('no module points to a map or to a source that is not there', () => {
  const pointing = paths.filter(
    (path) => /\.(?:js|d\.ts)$/.test(path) && /# sourceMappingURL=/.test(readFileSync(path, 'utf8')),
  );
  assert.equal(pointing, []);
});

test('links of the packed texts lead to packed files', () => {
  const broken: string[] = [];
  for (const path of paths.filter((name) => name.endsWith('.md'))) {
    for (const [, link] of readFileSync(path, 'utf8').matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^[a-z]+:/.test(link!)) continue;
      const target = join(dirname(path), link!);
      const there = paths.includes(target) || paths.some((name) => name.startsWith(`${target.replace(/\/$/, '')}/`));
      if (!there) broken.push(`${path}: ${link}${existsSync(target) ? ' (not packed)' : ' (nowhere)'}`);
    }
  }
  assert.equal(broken, []);
});

test.run();
