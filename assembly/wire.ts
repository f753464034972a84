// The reader's exported ABI and nothing else: numbers of a worker's message from its payload to flat memory, and XXH3 over them. The
// addresses are known to src/core only; positions in a payload count from its first byte, and 0 as a position means "failed".
import * as layout from './wire-layout';
import * as hashing from './layout';
import { repeats } from './distinct';
import { digestBlocks as digests } from './engine-hash';
import { hashes, hashesUsed, parent, start, tokens, tokensUsed, useUpTo } from './integers';
import { good, open, position, skip as skipValue } from './msgpack';
import { ROW_BYTES } from './rows';
import { sha256 as sha } from './sha256';
import { addShape as takeShape, freePlace, shaped } from './shapes';
import { xxh3, xxh3Blocks, xxh3Chain } from './xxh3';

export const PAYLOAD = layout.PAYLOAD;
export const PAYLOAD_BYTES = layout.PAYLOAD_BYTES;
export const GUARD = layout.GUARD;
export const ROWS = layout.ROWS;
export const EVENT_CAP = layout.EVENT_CAP;
export const TOKENS = layout.TOKENS;
export const TOKEN_CAP = layout.TOKEN_CAP;
export const LOWS = layout.LOWS;
export const DIGESTS = layout.DIGESTS;
export const HASH_CAP = layout.HASH_CAP;
export const SHAPES = layout.SHAPES;
export const SHAPE_CAP = layout.SHAPE_CAP;
export const SHAPE_BYTES = layout.SHAPE_BYTES;
export const LOCALS = layout.LOCALS;
export const SEEN = layout.SEEN;
export const RESULT = layout.RESULT;
export const HASH_RULE = hashing.HASH_RULE;
export const TAIL_FIRST = hashing.TAIL_FIRST;
export const TAIL_REST = hashing.TAIL_REST;
export const TAIL_BYTES = hashing.TAIL_BYTES;
export const PARENT_DIGEST = hashing.PARENT_DIGEST;
export const DIGESTS_OUT = hashing.DIGESTS_OUT;
export const DIGESTS_OUT_BLOCKS = hashing.DIGESTS_OUT_BLOCKS;
export const MEMORY_END = layout.MEMORY_END;

let end: usize = layout.PAYLOAD;

@inline function address(position: u32): usize { return layout.PAYLOAD + position; }
@inline function back(to: usize): u32 { return to ? <u32>(to - layout.PAYLOAD) : 0; }
@inline function whole(low: u32, high: u32): u64 { return <u64>low | (<u64>high << 32); }

/** The `length` bytes at PAYLOAD are the payload from now on. */
export function begin(length: u32): void {
  end = address(length);
  memory.fill(end, 0xc1, layout.GUARD);
  start(end);
}
/** The position behind the value at `at`; 0 when it is no whole MessagePack value. */
export function skip(at: u32): u32 {
  open(address(at), <u32>(end - address(at)));
  skipValue();
  return good() ? back(position()) : 0;
}
@inline function rowAt(row: u32): usize { return layout.ROWS + <usize>row * ROW_BYTES; }
/** Reads token ids, engine hashes, a parent (or nil) into row `row` (integers.ts). */
export function readTokens(at: u32, row: u32): u32 { return back(tokens(address(at), rowAt(row))); }
export function readHashes(at: u32, row: u32): u32 { return back(hashes(address(at), rowAt(row))); }
export function readParent(at: u32, row: u32): u32 { return back(parent(address(at), rowAt(row))); }
/** How much of TOKENS and LOWS is used; and gives back what was read behind such counts. */
export function usedTokens(): u32 { return tokensUsed; }
export function usedHashes(): u32 { return hashesUsed; }
export function release(tokens: u32, hashes: u32): void { useUpTo(tokens, hashes); }
/** Reads stored events of known shapes into rows from `row` on; returns how many (shapes.ts). */
export function readShaped(at: u32, row: u32, most: u32): u32 { return shaped(address(at), end, rowAt(row), most); }
/** Where the host writes a new shape; `addShape` takes it in. */
export function shapePlace(): u32 { return freePlace(); }
export function addShape(): void { takeShape(); }

/** Hashes SEEN[0 … length) with XXH3-64; the u64 stands in RESULT. */
export function hashBytes(length: u32, seedLow: u32, seedHigh: u32): void { store<u64>(layout.RESULT, xxh3(layout.SEEN, length, whole(seedLow, seedHigh))); }
/** SHA-256 of SEEN[0 … length), 32 bytes in RESULT. */
export function sha256(length: u32): void { sha(layout.SEEN, length, layout.RESULT); }
/** Engine digests of at most DIGESTS_OUT_BLOCKS blocks of tokens at SEEN behind that in PARENT_DIGEST, or behind the root, to DIGESTS_OUT (engine-hash.ts). */
export function digestBlocks(blocks: u32, first: u32): void {
  digests(layout.SEEN, blocks, first != 0, first ? hashing.HASH_RULE + 16 : hashing.PARENT_DIGEST, hashing.DIGESTS_OUT);
}
/** Local hashes of `blocks` blocks of `blockBytes` bytes from TOKENS[first …), to LOCALS[to …). */
export function hashBlocks(first: u32, blocks: u32, blockBytes: u32, seedLow: u32, seedHigh: u32, to: u32): void {
  xxh3Blocks(layout.TOKENS + (<usize>first << 2), blocks, blockBytes, whole(seedLow, seedHigh), layout.LOCALS + (<usize>to << 3));
}
/** The same where each block's window reaches one token into the next (Eagle). */
export function hashWindows(first: u32, blocks: u32, blockBytes: u32, seedLow: u32, seedHigh: u32, to: u32): void {
  const seed = whole(seedLow, seedHigh);
  let from = layout.TOKENS + (<usize>first << 2);
  for (let i: u32 = 0; i < blocks; i++) {
    store<u64>(layout.LOCALS + (<usize>(to + i) << 3), xxh3(from, blockBytes + 4, seed));
    from += blockBytes;
  }
}
/** Sequence hashes of LOCALS[0 … count), in their place. */
export function chainHashes(count: u32): void { xxh3Chain(layout.LOCALS, count, layout.LOCALS); }
/** 1 when LOWS[first …first + blocks) holds a hash twice, or the parent's. */
export function repeated(first: u32, blocks: u32, hasParent: u32, parentLow: u32, parentHigh: u32): u32 {
  return repeats(layout.LOWS + (<usize>first << 3), false, blocks, hasParent != 0, whole(parentLow, parentHigh), layout.SEEN) ? 1 : 0;
}
