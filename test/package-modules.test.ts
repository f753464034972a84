// The WebAssembly modules that the package carries as text: byte for byte what was built, compiled once a process, beside the program or at once; and an
// engine that refuses is explained. Engines' refusals are played: no engine here has them.
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedCache } from '../src/cache/shared-cache.js';
import { compiledModule, compileModules, type ModuleName, moduleBytes } from '../src/core/modules.js';
import { MoonrouteError } from '../src/errors.js';
import { Router } from '../src/router/router.js';

const FILES: Readonly<Record<ModuleName, string>> = {
  ...{ default: 'core', wide: 'core-wide', large: 'core-large', prefixes: 'prefixes', wire: 'wire' },
};
/** Chromium's words (third_party/blink/renderer/bindings/core/v8/v8_initializer.cc), before 115. */
const TOO_LARGE =
  'WebAssembly.Compile is disallowed on the main thread, if the buffer size is larger than 4KB. Use WebAssembly.compile, or compile on a worker thread.';

const real = { Module: WebAssembly.Module, Instance: WebAssembly.Instance, compile: WebAssembly.compile };
test.after.each(() => {
  Object.assign(WebAssembly, real);
});

function thrown(error: Error): never {
  throw error;
}

/** `Constructor`, but for that it makes nothing. */
const refuses = <T extends object>(Constructor: T, error: Error): T =>
  new Proxy(Constructor, { construct: () => thrown(error) });

function endOf(work: () => unknown): MoonrouteError {
  try {
    work();
  } catch (error) {
    if (error instanceof MoonrouteError) return error;
    throw error;
  }
  return assert.unreachable('no error') as never;
}

test('made at once where the engine compiles nothing of that size on its main thread', () => {
  Object.assign(WebAssembly, { Module: refuses(real.Module, new RangeError(TOO_LARGE)) });
  for (const make of [() => SharedCache.createSync(), () => Router.createSync()]) {
    const error = endOf(make);
    assert.is(error.code, 'wasm-main-thread');
    assert.match(error.message, 'use a Worker');
    assert.is((error.cause as Error).message, TOO_LARGE);
  }
});

test('what was refused is tried again, awaited too', async () => {
  let asked = 0;
  const compile = (bytes: BufferSource) => {
    asked++;
    return asked === 1 ? Promise.reject(new WebAssembly.CompileError('disallowed by embedder')) : real.compile(bytes);
  };
  Object.assign(WebAssembly, { compile });
  const options = { limits: { edges: 300_000 } };
  const error = await SharedCache.create(options).then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.instance(error, MoonrouteError);
  assert.is((error as MoonrouteError).code, 'wasm-refused');
  await Promise.all([SharedCache.create(options), SharedCache.create(options)]);
  assert.is(asked, 2, 'two caches that are made together compile once');
});

test('what is compiled beside the program serves what is made at once, and the other way round', async () => {
  await SharedCache.create();
  const router = await Router.create({ settings: { sharedCacheType: 'mooncake-store' } });
  Object.assign(WebAssembly, {
    Module: refuses(real.Module, new Error('compiled again')),
    compile: () => thrown(new Error('compiled again')),
  });
  const names = Object.keys(FILES) as ModuleName[];
  assert.is(new Set(names.map(compiledModule)).size, names.length);
  await compileModules(names);
  Router.createSync().dispose();
  router.dispose();
});

test('memory that is not to be had', () => {
  Object.assign(WebAssembly, {
    Instance: refuses(real.Instance, new RangeError('WebAssembly.Instance(): Out of memory')),
  });
  const error = endOf(() => Router.createSync());
  assert.is(error.code, 'wasm-memory');
  assert.match(error.message, 'index.bytes');
});

for (const [name, file] of Object.entries(FILES))
  test(`${name} is build/wasm/${file}.wasm`, () => {
    assert.equal(Buffer.from(moduleBytes(name as ModuleName)), readFileSync(`build/wasm/${file}.wasm`));
  });

test.run();
