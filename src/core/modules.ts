// The WebAssembly modules: the core's builds, the GPU index and the reader. They are carried as text in generated JavaScript (build output), so that
// Node, Deno, a browser and any bundler find them without a path, a fetch or an await. Each is compiled once a process: beside the program where the
// caller can wait (`compileModules`), or else at once, which takes milliseconds, for engines compile a function when it is first called.
//
// A page's main thread allows it too: Firefox and Safari always did, Chromium compiles up to 8 MiB there since version 115 (4 KiB before), and the largest
// module has 46 KiB (test/budgets.test.ts). Instances are always made at once, so in an older Chromium all this needs a Worker.
import { type ASUtil, instantiateSync } from '@assemblyscript/loader';
import { MoonrouteError } from '../errors.js';
import { patched } from './module-patch.js';
import { wasmBase64 as defaultText } from './wasm/default.js';
import { patchBase64 as largePatch } from './wasm/large.js';
import { wasmBase64 as prefixesText } from './wasm/prefixes.js';
import { patchBase64 as widePatch } from './wasm/wide.js';
import { wasmBase64 as wireText } from './wasm/wire.js';

/** The core's builds, the GPU index, the reader. */
export type ModuleName = 'default' | 'wide' | 'large' | 'prefixes' | 'wire';

const compiled = new Map<ModuleName, WebAssembly.Module>();
const pending = new Map<ModuleName, Promise<void>>();

/** The bytes of a module. */
export function moduleBytes(name: ModuleName): Uint8Array<ArrayBuffer> {
  switch (name) {
    case 'default':
      return bytesOf(defaultText);
    case 'wide':
      return patched(moduleBytes('default'), bytesOf(widePatch));
    case 'large':
      return patched(moduleBytes('default'), bytesOf(largePatch));
    case 'prefixes':
      return bytesOf(prefixesText);
    case 'wire':
      return bytesOf(wireText);
  }
}

/**
 * A module, compiled now unless it is already.
 * @throws MoonrouteError `wasm-main-thread`, `wasm-refused`
 */
export function compiledModule(name: ModuleName): WebAssembly.Module {
  const known = compiled.get(name);
  if (known !== undefined) return known;
  const module = explained(`the module ${name}`, () => new WebAssembly.Module(moduleBytes(name)));
  compiled.set(name, module);
  return module;
}

/**
 * Compiles modules beside the program; `compiledModule` has them then.
 * @throws MoonrouteError `wasm-refused`
 */
export async function compileModules(names: readonly ModuleName[]): Promise<void> {
  await Promise.all(names.filter((name) => !compiled.has(name)).map(compileSoon));
}

function compileSoon(name: ModuleName): Promise<void> {
  let work = pending.get(name);
  if (work === undefined) {
    work = explainedLater(`the module ${name}`, async () => {
      const module = await WebAssembly.compile(moduleBytes(name));
      if (!compiled.has(name)) compiled.set(name, module);
    }).finally(() => pending.delete(name));
    pending.set(name, work);
  }
  return work;
}

/**
 * The exports of a fresh instance, whose whole memory is reserved with it.
 * @throws MoonrouteError `wasm-memory`, `wasm-main-thread`
 */
export function instantiate<T extends Record<string, unknown>>(
  module: WebAssembly.Module,
  imports: Record<string, Record<string, unknown>> = {},
): T {
  return explained('an instance', () => instantiateSync<T & ASUtil>(module, imports).exports);
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

function explained<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw engineFault(what, error);
  }
}

async function explainedLater<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw engineFault(what, error);
  }
}

/** What an engine that refuses WebAssembly means, and what to do about it. */
function engineFault(what: string, cause: unknown): MoonrouteError {
  const said = (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, '');
  const fault = (code: string, todo: string) =>
    new MoonrouteError(code, `the engine did not make ${what}: ${said}. ${todo}`, { cause });
  if (said.includes('disallowed on the main thread'))
    return fault('wasm-main-thread', "Chromium before 115 limits WebAssembly on a page's main thread: use a Worker.");
  if (cause instanceof RangeError)
    return fault('wasm-memory', 'Its memory was not to be had: lower index.bytes or limits.edges, or allow more.');
  return fault(
    'wasm-refused',
    "A page's Content-Security-Policy must allow 'wasm-unsafe-eval' in script-src; engines need WebAssembly SIMD (Node without --jitless).",
  );
}
