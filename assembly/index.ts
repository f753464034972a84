// The exported ABI and nothing else. The addresses below are known to src/core only; 64-bit values cross in memory or in halves.
import * as layout from './layout';
import { cell, setCell, STOPPED, WHOLE } from './cells';
import { xxh3Blocks } from './xxh3';
import { configure as takeContract } from './contract';
import { distrust as distrustChildren, learn as learnEvents } from './edges';
import { clearResidency as clearAll } from './residency';
import { digestOf, missingPrefixes } from './records';
import { placeDigests, warmRecords } from './reconcile';
import { applyBatch, applyAgain } from './objects';
import { applyDigests as applyDecoded } from './decoded';
import { lookup as lookupHit, lookupWhy } from './evaluate';
import { walk } from './walk';
import { compact as compactPath } from './compact';
import { copyHigh, externalOf, highOf, KNOWN, linkOf } from './slots';
import { isAmbiguous } from './ambiguous';
import { census as count } from './census';
import { derive as deriveBlocks, digestBehind as deriveBehind } from './derive';
import { digestBlocks as digests } from './engine-hash';
import { sha256 as sha } from './sha256';

// What the host sizes its views by
export const INPUT = layout.INPUT;
export const INPUT_BYTES = layout.INPUT_BYTES;
export const REQUEST = layout.REQUEST;
export const REQUEST_BLOCKS = layout.REQUEST_BLOCKS;
export const EVENT_BLOCKS = layout.EVENT_BLOCKS;
export const STAGE = layout.STAGE;
export const RESULT = layout.RESULT;
export const WHY = layout.WHY;
export const CELLS = layout.CELLS;
export const COUNTERS = layout.COUNTERS;
export const EDGE_CAP = layout.EDGE_CAP;
export const DIGEST_CAP = layout.DIGEST_CAP;
export const MEMBER_CAP: u32 = layout.WIDE ? layout.MEMBER_CAP : 0; // 0 = no cap of its own
export const AMBIGUOUS_CAP = layout.AMBIGUOUS_CAP;
export const GROUP_CAP = layout.GROUP_CAP;
export const PREFIX_CAP = layout.PREFIX_CAP;
export const HASH_RULE = layout.HASH_RULE;
export const TAIL_FIRST = layout.TAIL_FIRST;
export const TAIL_REST = layout.TAIL_REST;
export const TAIL_BYTES = layout.TAIL_BYTES;
export const DIGESTS_OUT = layout.DIGESTS_OUT;
export const DIGESTS_OUT_BLOCKS = layout.DIGESTS_OUT_BLOCKS;
export const MEMORY_END = layout.MEMORY_END;
// What a debugger (and the tests' state reader) needs besides
export const SLOTS = layout.SLOTS;
export const LOCAL = layout.LOCAL;
export const EXTERNAL = layout.EXTERNAL;
export const PARENT = layout.PARENT;
export const HIGH = layout.HIGH;
export const NEXT = layout.NEXT;
export const LINK = layout.LINK;
export const FLAGS = layout.FLAGS;
export const DONE = layout.DONE;
export const EXTENT_GEN = layout.EXTENT_GEN;
export const RECORDS = layout.RECORDS;
export const MEMBER_TABLE = layout.MEMBER_TABLE;
export const MEMBER_BITS = layout.MEMBER_BITS;
export const AMBIGUOUS_TABLE = layout.AMBIGUOUS_TABLE;
export const EDGE_TABLE = layout.EDGE_TABLE;
export const CHILD_TABLE = layout.CHILD_TABLE;
export const DIGEST_TABLE = layout.DIGEST_TABLE;
export const TABLE_BITS = layout.TABLE_BITS;

@inline function whole(low: u32, high: u32): u64 { return <u64>low | (<u64>high << 32); }

/** Local hashes of `blocks` blocks of `blockBytes` bytes at INPUT, to REQUEST[firstOut …). */
export function hashBlocks(blocks: u32, blockBytes: u32, seedLow: u32, seedHigh: u32, firstOut: u32): void {
  xxh3Blocks(layout.INPUT, blocks, blockBytes, whole(seedLow, seedHigh), layout.REQUEST + (<usize>firstOut << 3));
}

/** SHA-256 of INPUT[0 … length), 32 bytes in RESULT. */
export function sha256(length: u32): void { sha(layout.INPUT, length, layout.RESULT); }
/** Engine digests of at most DIGESTS_OUT_BLOCKS blocks of tokens at INPUT behind the digest in RESULT, to DIGESTS_OUT (engine-hash.ts). */
export function digestBlocks(blocks: u32, first: u32): void { digests(layout.INPUT, blocks, first != 0, layout.RESULT, layout.DIGESTS_OUT); }

/** Takes over the contract at INPUT (contract.ts) and starts empty; 0 when it does not fit this build. */
export function configure(): u32 { return takeContract() ? 1 : 0; }
/** Learns `events` stored events at INPUT and REQUEST (edges.ts); returns the blocks learned or confirmed. */
export function learn(events: u32, salted: u32, digests: u32): u32 { return learnEvents(events, salted != 0, digests != 0); }
/** Ends the credit of the edges to the stored event's children at INPUT. */
export function distrust(digests: u32): void { distrustChildren(digests != 0); }
/** Applies the store payload at INPUT (objects.ts); returns the outcome, details in RESULT. */
export function applyMessage(length: u32): u32 { return applyBatch(length); }
/** Applies objects of the digests at INPUT, each under some prefixes (decoded.ts). */
export function applyDigests(digests: u32, first: u32, end: u32, removes: u32, media: u32): void { applyDecoded(digests, first, end, removes != 0, media); }
/** Applies `events` events at STAGE once more, as a payload has left them there (objects.ts). */
export function reapply(events: u32): void { applyAgain(events); }
/** Places staged records at STAGE as medium unknown: all, those with an edge, those without (reconcile.ts). */
export function reconcile(records: u32, which: u32): void { placeDigests(layout.STAGE, records, which); }
/** Makes the memory ready that placing the staged records, from the `first` of a list on, will write. */
export function warm(records: u32, first: u32): void { warmRecords(layout.STAGE, records, first); }
/** Forgets all objects; `whole`: what is placed next is all that the store holds. */
export function clearResidency(whole: u32): void {
  clearAll();
  setCell(WHOLE, whole);
}
/** Hit of the prompt whose local hashes are REQUEST[0 … blocks), in blocks; touches what it walked. */
export function lookup(blocks: u32, tokens: u32): u32 { return lookupHit(blocks, tokens, false); }
/** How many of REQUEST[0 … blocks) are known in a row from the root; touches nothing. */
export function reach(blocks: u32): u32 { return walk(blocks, false, false); }
/** Derives blocks `first` … `end` − 1 of a prompt as far as they may count; 0 when a longer prompt would not change the hit (derive.ts). */
export function derive(first: u32, end: u32): u32 { return deriveBlocks(first, end) ? 1 : 0; }
/** The hit of a prompt that has been derived, in hash blocks; touches what it walked. */
export function lookupDerived(blocks: u32, tokens: u32): u32 { return lookupHit(blocks, tokens, true); }
/** The digest of `blocks` hash blocks of tokens at INPUT behind a derived digest, in RESULT (derive.ts); 0 when that one is not known. */
export function digestBehind(blocks: u32, hasParent: u32, low: u32, high: u32): u32 { return deriveBehind(blocks, hasParent != 0, whole(low, high)) ? 1 : 0; }
/** Moves at most `budget` edges of the path just looked up together; returns how many. */
export function compact(budget: u32): u32 { return compactPath(budget); }

/** The same hit, touching nothing, for explain: RESULT u32 {walked blocks, why the walk stopped}, WHY per group, the path at INPUT. */
export function explain(blocks: u32, tokens: u32, derived: u32): u32 {
  const hit = lookupWhy(blocks, tokens, derived != 0);
  store<u32>(layout.RESULT, cell(STOPPED), 4);
  return hit;
}
/** After explain: what is known of path block `block` (0-based): 1 its digest (then RESULT holds its 32 bytes), 2 it is resident, 4 ambiguous. */
export function blockState(block: u32): u32 {
  const slot = load<u32>(layout.INPUT + (<usize>block << 2));
  copyHigh(layout.RESULT, highOf(slot));
  store<u64>(layout.RESULT, bswap<u64>(externalOf(slot)), 24);
  return (linkOf(slot) & KNOWN ? 1 : 0) | (digestOf(slot) ? 2 : 0) | (isAmbiguous(externalOf(slot)) ? 4 : 0);
}
/** After explain: ids of the group's prefixes not resident for that block, u16 each in RESULT; returns how many. */
export function missing(block: u32, group: u32): u32 { return missingPrefixes(load<u32>(layout.INPUT + (<usize>block << 2)), group, layout.RESULT); }
/** What is resident, group by group, in RESULT (census.ts). */
export function census(): void { count(); }
