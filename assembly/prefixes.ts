// The GPU prefix index's exported ABI and nothing else: which worker ranks hold which blocks, in a module and a memory of its own, whose
// size the host chooses. Addresses are known to src/core only; ranks, blocks and 64-bit words are all that passes.
import * as layout from './prefix/layout';
import { known } from './prefix/aliases';
import { tidy as tidyUp } from './prefix/entries';
import { entriesOf, namesOf } from './prefix/dump';
import { forget, removed as takeOut, stored as putIn } from './prefix/learn';
import { begin as beginWalk, finish as finishWalk, walk as walkOn } from './prefix/walk';

export const PART_BLOCKS = layout.PART_BLOCKS;
export const RANK_CAP = layout.RANK_CAP;
export const LOCALS = layout.LOCALS;
export const NAMES = layout.NAMES;
export const ENDS = layout.ENDS;
export const CELLS = layout.CELLS;

@inline function whole(low: u32, high: u32): u64 { return <u64>low | (<u64>high << 32); }

/** Lays out the imported memory for `words` × 64 ranks. Once. */
export function configure(words: u32, seedLow: u32, seedHigh: u32, provenance: u32): void {
  layout.lay(words, whole(seedLow, seedHigh), provenance != 0);
}
export function entryCap(): u32 { return layout.CAP; }
export function aliasCap(): u32 { return layout.ALIAS_CAP; }
/** Names that ranks have of their own. */
export function aliasCount(): u32 { return known(); }
export function setCap(): u32 { return layout.SET_CAP; }

/** Blocks in LOCALS and NAMES entered a tier, behind nothing (0), the named parent (1) or those of the call before (2): 0 stored, 1 unknown parent, 2 no room. */
export function stored(rank: u32, tier: u32, blocks: u32, behind: u32, parentLow: u32, parentHigh: u32, eligible: u32): u32 {
  return putIn(rank, tier, blocks, behind, whole(parentLow, parentHigh), eligible != 0);
}
/** Blocks in NAMES left a tier; how many of them the rank had there. */
export function removed(rank: u32, tier: u32, blocks: u32): u32 { return takeOut(rank, tier, blocks); }
export function clear(rank: u32): void { forget(rank); }
/** Gives back at once what a clear left to be given back little by little. */
export function tidy(): void { tidyUp(layout.CAP); }

/** A walk: `begin`, then `walk` for each part of a prompt in LOCALS until it gives 0, then `finish`, which returns the blocks walked; depths in ENDS. */
export function begin(): void { beginWalk(); }
export function walk(blocks: u32, heats: u32): u32 { return walkOn(blocks, heats != 0) ? 1 : 0; }
export function finish(heats: u32): u32 { return finishWalk(heats != 0); }

/** Part of a dump (dump.ts): the next entry to go on with, 0 at the end; rows in LOCALS, their number in `dumped`. */
export function dumpEntries(rank: u32, from: u32): u32 { return entriesOf(rank, from); }
export function dumpNames(rank: u32, from: u32): u32 { return namesOf(rank, from); }
export { rows as dumpedRows } from './prefix/dump';
