// The core's WebAssembly builds. One source makes them all (assembly/layout.ts); which one serves is decided by the wanted caps and by how many groups
// and prefixes the contract has.
import { ConfigError } from '../errors.js';
import { instantiate } from './modules.js';

/** A build of the core. */
export type BuildName = 'default' | 'wide' | 'large';

/** What the core exports; addresses are WebAssembly globals. Known to src/core only. */
export interface CoreExports extends Record<string, unknown> {
  readonly memory: WebAssembly.Memory;
  hashBlocks(blocks: number, blockBytes: number, seedLow: number, seedHigh: number, firstOut: number): void;
  configure(): number;
  learn(events: number, salted: number, digests: number): number;
  distrust(digests: number): void;
  applyMessage(length: number): number;
  applyDigests(digests: number, first: number, end: number, removes: number, media: number): void;
  reapply(events: number): void;
  reconcile(records: number, which: number): void;
  warm(records: number, first: number): void;
  clearResidency(whole: number): void;
  lookup(blocks: number, tokens: number): number;
  derive(first: number, end: number): number;
  lookupDerived(blocks: number, tokens: number): number;
  digestBehind(blocks: number, hasParent: number, parentLow: number, parentHigh: number): number;
  reach(blocks: number): number;
  compact(budget: number): number;
  explain(blocks: number, tokens: number, derived: number): number;
  blockState(block: number): number;
  missing(block: number, group: number): number;
  census(): void;
  sha256(length: number): void;
  digestBlocks(blocks: number, first: number): void;
}

/** Groups and prefixes a build has room for (assembly/layout.ts). */
const SHAPES: Record<BuildName, { edges: number; groups: number; prefixes: number }> = {
  default: { edges: 262_144, groups: 8, prefixes: 64 },
  wide: { edges: 262_144, groups: 64, prefixes: 1024 },
  large: { edges: 4_194_304, groups: 8, prefixes: 64 },
};

/** Builds that may serve a cache that is to remember `edges` edges, the preferred one first. */
export function candidateBuilds(edges: number): BuildName[] {
  if (!Number.isSafeInteger(edges) || edges < 1 || edges > SHAPES.large.edges) {
    throw new ConfigError(
      'limits-edges',
      `limits.edges is ${edges}; give a whole number from 1 to ${SHAPES.large.edges} (default ${SHAPES.default.edges}).`,
    );
  }
  return edges <= SHAPES.default.edges ? ['default', 'wide'] : ['large'];
}

/** The first of `names` with room for so many groups and prefixes, or null. */
export function fittingBuild(names: readonly BuildName[], groups: number, prefixes: number): BuildName | null {
  return names.find((name) => SHAPES[name].groups >= groups && SHAPES[name].prefixes >= prefixes) ?? null;
}

/** A fresh instance with its whole memory reserved. */
export function instantiateBuild(module: WebAssembly.Module): CoreExports {
  const exports = instantiate<CoreExports>(module);
  const needed = globalOf(exports, 'MEMORY_END');
  if (exports.memory.buffer.byteLength < needed) {
    throw new ConfigError(
      'core-memory',
      `the core needs ${needed} bytes but asconfig.json reserves ${exports.memory.buffer.byteLength}; rebuild with matching pages.`,
    );
  }
  return exports;
}

/** The value of an exported address or cap. */
export function globalOf(exports: Record<string, unknown>, name: string): number {
  return Number((exports[name] as WebAssembly.Global).value) >>> 0;
}
