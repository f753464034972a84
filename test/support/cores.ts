// Cores for tests: the shipped builds, and the two whose caps (64 edges and digests) a test can reach. The latter are not part of the package, so
// they are read from the build's output.
import { readFileSync } from 'node:fs';
import type { BuildName } from '../../src/core/builds.js';
import { Core } from '../../src/core/core.js';

/** A build of the core; `tiny` is shaped like the default build, `tiny-wide` like the wide one. */
export type TestBuild = BuildName | 'tiny' | 'tiny-wide';

/** A fresh instance of that build. */
export async function loadCore(build: TestBuild): Promise<Core> {
  if (build !== 'tiny' && build !== 'tiny-wide') return Core.load(build);
  return Core.fromModule(build, await WebAssembly.compile(readFileSync(`build/wasm/core-${build}.wasm`)));
}
