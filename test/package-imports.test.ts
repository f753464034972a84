// What each entry loads: no package that it does not use, none that package.json does not name, and no Node module where there may be no Node.
import { build, type Metafile } from 'esbuild';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { entries, manifest } from './support/packed.js';

const ANYWHERE = ['@assemblyscript/loader', '@msgpack/msgpack'];
const CURVE = ['@noble/ciphers', '@noble/curves'];
const PLANE = ['@nats-io/jetstream', '@nats-io/transport-node', 'zeromq'];
const SERVICE = [
  ...['@hono/node-server', '@huggingface/jinja', '@huggingface/tokenizers', 'hono', 'pino', 'prom-client', 'zod'],
  ...[...ANYWHERE, ...CURVE, ...PLANE],
];

/** Packages by entry; the command is one too. */
const USED: Readonly<Record<string, readonly string[]>> = {
  moonroute: ANYWHERE,
  'moonroute/sim': ANYWHERE,
  'moonroute/live': [...ANYWHERE, ...CURVE, ...PLANE],
  'moonroute/fleet': [...ANYWHERE, 'zeromq'],
  'moonroute/server': SERVICE,
  command: [...SERVICE, 'commander'],
};
/** Run in any JavaScript engine. */
const BROWSER_SAFE = ['moonroute', 'moonroute/sim'];

const files = new Map([
  ...entries.map(({ name, file }) => [name, file] as const),
  ['command', manifest.bin['moonroute']!],
]);

interface Outside {
  readonly name: string;
  readonly from: string;
  /** Only when it is asked for: the module can be loaded without it. */
  readonly late: boolean;
}

const packageOf = (path: string): string => path.split('/', path.startsWith('@') ? 2 : 1).join('/');

async function graphOf(file: string): Promise<Metafile> {
  const { metafile } = await build({
    entryPoints: [file],
    ...{ bundle: true, splitting: true, write: false, metafile: true, format: 'esm', platform: 'node' },
    ...{ packages: 'external', outdir: 'build/reached', logLevel: 'silent' },
  });
  return metafile;
}

async function outsideOf(name: string): Promise<Outside[]> {
  const { inputs } = await graphOf(files.get(name)!);
  return Object.entries(inputs).flatMap(([from, { imports }]) =>
    imports
      .filter(({ external }) => external)
      .map(({ path, kind }) => ({
        name: path.startsWith('node:') ? path : packageOf(path),
        from,
        late: kind === 'dynamic-import',
      })),
  );
}

const outside = new Map(
  await Promise.all([...files.keys()].map(async (name) => [name, await outsideOf(name)] as const)),
);
const packagesOf = (name: string) =>
  [...new Set(outside.get(name)!.flatMap((one) => (one.name.startsWith('node:') ? [] : [one.name])))].sort();

test('the table names every entry', () => {
  assert.equal([...files.keys()].sort(), Object.keys(USED).sort());
});

for (const [name, used] of Object.entries(USED)) {
  test(`${name} loads ${used.length} packages`, () => {
    assert.equal(packagesOf(name), [...used].sort());
  });
}

for (const name of BROWSER_SAFE) {
  test(`${name} needs no module of Node`, () => {
    assert.equal(
      outside.get(name)!.filter((one) => one.name.startsWith('node:')),
      [],
    );
  });
}

test('optional packages are loaded only when they are asked for', () => {
  const optional = Object.keys(manifest.optionalDependencies);
  for (const [name, all] of outside)
    assert.equal(
      all.filter((one) => optional.includes(one.name) && !one.late),
      [],
      name,
    );
});

test('every dependency is used by some entry, and none that is used is missing', () => {
  const named = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.optionalDependencies)].sort();
  assert.equal([...new Set([...files.keys()].flatMap(packagesOf))].sort(), named);
});

test('no entry awaits while it is loaded, so that require() works where Node has it for ES modules', async () => {
  // esbuild refuses to write what awaits as CommonJS.
  await build({
    entryPoints: entries.map(({ file }) => file),
    ...{ bundle: true, write: false, format: 'cjs', platform: 'node', packages: 'external' },
    ...{ outdir: 'build/reached', logLevel: 'silent' },
  });
});

test.run();
