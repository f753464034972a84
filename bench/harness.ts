// How things are measured: A and B alternate in one process, so that a slow moment of the machine hits both; what is reported is the
// median of paired ratios with the spread, not a single time. Benchmarks are benchmarks: nothing here fails.
import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';

/** Repeatable 64-bit random numbers (splitmix64) into a typed array. */
export function randomLongs(count: number, seed: bigint): BigUint64Array {
  const mask = (1n << 64n) - 1n;
  let state = seed;
  return BigUint64Array.from({ length: count }, () => {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
    return z ^ (z >> 31n);
  });
}

/** Values in ascending order and what is read off them. */
export class Sample {
  readonly #sorted: Float64Array;

  constructor(values: Iterable<number>) {
    this.#sorted = Float64Array.from(values).sort();
  }
  /** The value below which the given part (0 … 1) lies. */
  at(part: number): number {
    return this.#sorted[Math.min(this.#sorted.length - 1, Math.floor(part * this.#sorted.length))]!;
  }
  get median(): number {
    return this.at(0.5);
  }
}

/** Milliseconds of one call of `work`, measured over `calls` calls. */
export function timed(work: () => void, calls = 1): number {
  const started = performance.now();
  for (let i = 0; i < calls; i++) work();
  return (performance.now() - started) / calls;
}

/** What a pair of contenders took, in milliseconds, and how often A fits into B. */
export interface Pairing {
  readonly a: Sample;
  readonly b: Sample;
  readonly ratio: Sample;
}

/** Runs A (`callsA` calls a turn) and B (`callsB`) in turn, `turns` times, after a warm-up. */
export function pair(
  a: () => void,
  b: () => void,
  { turns = 15, callsA = 1, callsB = 1, warmA = 200, warmB = 3 } = {},
): Pairing {
  timed(a, warmA);
  timed(b, warmB);
  const times: [number, number][] = [];
  for (let turn = 0; turn < turns; turn++) times.push([timed(a, callsA), timed(b, callsB)]);
  return {
    a: new Sample(times.map(([x]) => x)),
    b: new Sample(times.map(([, y]) => y)),
    ratio: new Sample(times.map(([x, y]) => y / x)),
  };
}

/** Machine, engine and commit: what a figure means nothing without. */
export function environment(): Record<string, string> {
  let commit = 'unknown';
  try {
    commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    commit = 'not a checkout';
  }
  return {
    machine: `${cpus()[0]?.model.trim() ?? 'unknown'} × ${cpus().length}`,
    engine: `Node ${process.version} (V8 ${process.versions.v8})`,
    commit,
    date: new Date().toISOString().slice(0, 10),
  };
}

/** Milliseconds as a person reads them. */
export function shownTime(ms: number): string {
  if (ms < 0.001) return `${(ms * 1e6).toFixed(0)} ns`;
  return ms < 1 ? `${(ms * 1000).toFixed(2)} µs` : `${ms.toFixed(2)} ms`;
}
