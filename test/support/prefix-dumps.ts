// Dumps of prefix indexes as plain values: which block stands in which tier, whatever the order and the runs that a dump chose.
import * as assert from 'uvu/assert';
import {
  type DumpedBlocks,
  indexedBlocks,
  type PrefixDepths,
  type PrefixIndexLike,
} from '../../src/core/prefix-types.js';

/** A block as a dump shows it. */
export interface DumpedBlock {
  readonly name: bigint;
  readonly eligible: boolean;
}

/** By tier and path of local hashes. Fails where a parent does not stand before its children, or a block stands twice in a tier. */
export function dumpedSet(runs: readonly DumpedBlocks[]): Map<string, DumpedBlock> {
  const paths = new Map<bigint, string>();
  const blocks = new Map<string, DumpedBlock>();
  for (const { tier, parent, hashes, locals, eligible } of runs) {
    assert.is(hashes.length, locals.length);
    assert.ok(hashes.length >= 1 && hashes.length <= 65_536, 'a run fits an event');
    let path = parent === null ? '' : paths.get(parent);
    if (path === undefined) throw new Error(`the parent ${parent} does not stand before its children`);
    for (const [i, name] of hashes.entries()) {
      path += `/${locals[i]}`;
      if (paths.has(name)) assert.is(paths.get(name), path, 'a name stands for one block');
      paths.set(name, path);
      const key = `${tier} ${path}`;
      assert.not.ok(blocks.has(key), `${key} is dumped twice`);
      blocks.set(key, { name, eligible });
    }
  }
  return blocks;
}

/** Loads what `from` holds, rank by rank, into an empty index; every run must find its place. */
export function loadDumps(from: PrefixIndexLike, into: PrefixIndexLike, ranks: Iterable<number>): void {
  for (const rank of ranks)
    for (const { tier, parent, hashes, locals, eligible } of from.dump(rank))
      assert.is(into.stored(rank, tier, indexedBlocks(parent, hashes, locals, eligible)), 'stored');
}

/** Null when two answers are the same, else the first rank and tier in which they differ. */
export function differentDepths(ours: PrefixDepths, truth: PrefixDepths): string | null {
  if (ours.deepest !== truth.deepest) return `deepest ${ours.deepest}, not ${truth.deepest}`;
  for (const tier of ['device', 'host', 'disk'] as const) {
    const [a, b] = [ours[tier], truth[tier]];
    if (a.length !== b.length) return `${tier} of ${a.length} ranks, not ${b.length}`;
    for (let rank = 0; rank < b.length; rank++)
      if (a[rank] !== b[rank]) return `${tier} of rank ${rank}: ${a[rank]}, not ${b[rank]}`;
  }
  return null;
}

/** Null when nowhere above the truth, else the first rank and tier in which it is. */
export function depthsAbove(ours: PrefixDepths, truth: PrefixDepths): string | null {
  if (ours.deepest > truth.deepest) return `deepest ${ours.deepest} above ${truth.deepest}`;
  for (const tier of ['device', 'host', 'disk'] as const)
    for (let rank = 0; rank < truth[tier].length; rank++)
      if (ours[tier][rank]! > truth[tier][rank]!)
        return `${tier} of rank ${rank}: ${ours[tier][rank]} above ${truth[tier][rank]}`;
  return null;
}
