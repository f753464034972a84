// What Node and Deno say about machine and engine, and the bytes on their JavaScript heap. Where a permission is missing (Deno), a figure is unknown.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Environment } from './report-schema.js';

const PACKAGE = new URL('../../../../package.json', import.meta.url);

/** @param clockStep in milliseconds */
export function nodeEnvironment(clockStep: number): Environment {
  const deno = (globalThis as { Deno?: { version: { deno: string; v8: string } } }).Deno?.version;
  const [name, version, v8] =
    deno === undefined ? ['Node', process.versions.node, process.versions.v8] : ['Deno', deno.deno, deno.v8];
  const processors = tried(cpus) ?? [];
  return {
    engine: `${name} ${version} (V8 ${v8})`,
    engineFamily: `${name} ${version.split('.')[0]}`,
    machine: processors[0]?.model.trim() ?? 'unknown',
    processors: processors.length,
    package: (JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }).version,
    commit: tried(commitOfCheckout) ?? 'not a checkout',
    date: new Date().toISOString().slice(0, 10),
    clockStep,
  };
}

/** Of the checkout that this code was built in; an installed package has none. */
function commitOfCheckout(): string {
  const root = new URL('.', PACKAGE);
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  if (git('ls-files', 'package.json') === '') throw new Error('another project');
  return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '-uno') === '' ? '' : ' with changes'}`;
}

/** Bytes in use after a collection; null where no collection can be asked for. */
export function heapBytes(): number | null {
  const collect = tried(() => {
    setFlagsFromString('--expose-gc');
    return runInNewContext('gc') as () => void;
  });
  if (typeof collect !== 'function') return null;
  // The second one takes what only finalisers kept.
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

function tried<T>(ask: () => T): T | null {
  try {
    return ask();
  } catch {
    return null;
  }
}
