// The packed package in an empty folder, as a user installs it: its command runs, its entries load from ES modules and type-check from TypeScript, require()
// does what its Node can do, and its data files are found. With optional dependencies and without.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type App, entries, manifest, ofProject, PackedFolder } from './support/packed.js';

const folder = new PackedFolder();
const installed = new Map<boolean, App>();
const appWith = (optional: boolean): App => {
  let app = installed.get(optional);
  if (app === undefined) {
    app = folder.install(optional ? 'with-optional' : 'without-optional', { optional });
    installed.set(optional, app);
  }
  return app;
};
const plain = () => appWith(false);
test.after(() => folder.remove());

const TSC = ofProject('node_modules/typescript/bin/tsc');
/** As npm links it. */
const COMMAND = 'node_modules/.bin/moonroute';
const names = entries.map(({ name }) => name);

/** Every entry, and the first thing that somebody does with it. */
const PROGRAM = `
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Router, SharedCache } from 'moonroute';
import { LiveStreams } from 'moonroute/live';
import { Fleet } from 'moonroute/fleet';
import { checkConfig } from 'moonroute/server';
import { builtInWorkload, simulate } from 'moonroute/sim';
import schema from 'moonroute/config.schema.json' with { type: 'json' };

const atOnce = Router.createSync();
atOnce.addWorker({ id: 'a' });
const { worker } = atOnce.route({ tokens: [1, 2, 3] });
const live = LiveStreams.open(await Router.create());
await live.close?.();
const { completed } = await simulate({ policy: 'kv' }, builtInWorkload({ requests: 20 }));
const wasm = readFileSync(fileURLToPath(import.meta.resolve('moonroute/core.wasm')));
const { exports } = new WebAssembly.Instance(new WebAssembly.Module(wasm));
console.log(JSON.stringify({
  worker, completed,
  cache: SharedCache.createSync().lookup({ tokens: Uint32Array.of(1), tokenCount: 1, blockSize: 16, eligible: true }),
  lookup: typeof exports.lookup,
  schema: typeof schema.properties,
  fleet: typeof Fleet, config: typeof checkConfig({}),
  version: createRequire(import.meta.url)('moonroute/package.json').version,
}));
`;

for (const optional of [false, true]) {
  const way = optional ? 'with optional dependencies' : 'without optional dependencies';

  test(`${way}: only those are left out`, () => {
    const app = appWith(optional);
    for (const name of Object.keys(manifest.dependencies))
      assert.ok(existsSync(join(app.path, 'node_modules', name)), name);
    for (const name of Object.keys(manifest.optionalDependencies))
      assert.is(existsSync(join(app.path, 'node_modules', name)), optional, name);
  });

  test(`${way}: every entry loads and works`, () => {
    const app = appWith(optional);
    app.write('program.js', PROGRAM);
    const said = JSON.parse(app.says('node', '--no-warnings', 'program.js')) as object;
    assert.equal(said, {
      ...{ worker: { id: 'a', dpRank: 0 }, completed: 20, cache: { blocks: 0, tokens: 0 } },
      ...{ lookup: 'function', schema: 'object', fleet: 'function', config: 'object', version: manifest.version },
    });
  });

  test(`${way}: the command runs`, () => {
    const app = appWith(optional);
    assert.is(app.says(COMMAND, '--version').trim(), manifest.version);
  });
}

test('npx moonroute --help', () => {
  const said = plain().says('npx', '--no-install', 'moonroute', '--help');
  for (const command of ['serve', 'simulate', 'contract', 'doctor']) assert.match(said, command);
});

test('what needs an optional dependency says which one', () => {
  const { status, stderr } = plain().run(COMMAND, 'fleet', '--duration', '1s');
  assert.is.not(status, 0);
  assert.match(stderr, 'npm install zeromq');
});

test('moonroute simulate', () => {
  const said = plain().says(COMMAND, 'simulate', '--requests', '50', '--json');
  assert.is(said.includes('"completed":50') || /"completed":\s*50/.test(said), true, said.slice(0, 400));
});

test('moonroute contract check, on an example of the package', () => {
  const example = 'node_modules/moonroute/examples/contract.json';
  assert.match(plain().says(COMMAND, 'contract', 'check', example), /\S/);
});

test('every entry is refused by require() with the way out, or works where Node has it (from 20.19 and 22.12 on)', () => {
  const app = plain();
  const each = `(name) => { try { return [name, typeof require(name)] } catch ({ code, message }) { return [name, code, message] } }`;
  app.write('required.cjs', `process.stdout.write(JSON.stringify(${JSON.stringify(names)}.map(${each})))`);
  const ends = JSON.parse(app.says('node', '--no-warnings', 'required.cjs')) as [string, string, string?][];
  assert.is(ends.length, names.length);
  for (const [name, end, message = ''] of ends) {
    if (end === 'object') continue;
    assert.equal([name, end], [name, 'ERR_REQUIRE_ESM']);
    assert.match(message, 'dynamic import()', name);
  }
});

test('Deno finds it in node_modules too, WebAssembly and all', () => {
  const app = plain();
  const program = `import { Router } from 'moonroute';
import { builtInWorkload, simulate } from 'moonroute/sim';
Router.createSync().dispose();
console.log((await simulate({}, builtInWorkload({ requests: 20 }))).completed);`;
  app.write('deno.js', program);
  const flags = ['--no-lock', '--no-remote', '--node-modules-dir=manual', '--allow-read', '--allow-env'];
  assert.is(app.says(ofProject('node_modules/.bin/deno'), 'run', ...flags, 'deno.js').trim(), '20');
});

test('paths that are not exported stay private', () => {
  const app = plain();
  app.write('private.js', `await import('moonroute/build/js/src/core/core.js')`);
  assert.match(app.run('node', 'private.js').stderr, 'ERR_PACKAGE_PATH_NOT_EXPORTED');
});

const TYPED = `
import { ConfigError, type Decision, Router, type RouterOptions, SharedCache } from 'moonroute';
import { type Fleet } from 'moonroute/fleet';
import { type LiveOptions, LiveStreams } from 'moonroute/live';
import { type ServerConfig, startService } from 'moonroute/server';
import { builtInWorkload, simulate } from 'moonroute/sim';

const options: RouterOptions = { blockSize: 16, policy: 'kv' };
const router: Router = Router.createSync(options);
const decision: Decision = router.route({ tokens: [1, 2, 3] });
const { tokens }: { tokens: number } = SharedCache.createSync().lookup({ tokenCount: 1, blockSize: 16, eligible: true });
export const live = (given: LiveOptions): LiveStreams => LiveStreams.open(router, given);
export const report = simulate({}, builtInWorkload());
export const rest: [Fleet | null, ServerConfig | null, typeof startService] = [null, null, startService];
export { decision, tokens, ConfigError };
// @ts-expect-error the policy's name is checked
export const wrong: RouterOptions = { policy: 'best' };
`;

/** Where there is no Node: the declarations of these entries ask for none of its types. */
const TYPED_ANYWHERE = `
import { Router } from 'moonroute';
import { builtInWorkload, simulate } from 'moonroute/sim';
export const router: Router = Router.createSync();
export const report = simulate({}, builtInWorkload());
`;

for (const [what, program, module, moduleResolution, types] of [
  ['nodenext', TYPED, 'nodenext', 'nodenext', ['node']],
  ['bundler', TYPED, 'esnext', 'bundler', ['node']],
  ['bundler, without the types of Node', TYPED_ANYWHERE, 'esnext', 'bundler', []],
] as const) {
  test(`TypeScript with moduleResolution ${what}, declarations checked too`, () => {
    const app = plain();
    app.write('typed.ts', program);
    const compilerOptions = {
      ...{ module, moduleResolution, target: 'es2022', strict: true, skipLibCheck: false, noEmit: true },
      ...{ exactOptionalPropertyTypes: true, types, typeRoots: [ofProject('node_modules/@types')] },
    };
    app.write('tsconfig.json', JSON.stringify({ compilerOptions, files: ['typed.ts'] }));
    app.says(process.execPath, TSC, '-p', '.');
  });
}

test.run();
