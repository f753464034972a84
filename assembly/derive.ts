// Derived edges: the engine's digests of a prompt, computed from its tokens (engine-hash.ts) and kept as edges of a key space of their own, so that
// only the tail of a prompt that is not known yet is ever hashed. An edge is (parent's low64 or root, XXH3 of one hash block's tokens) → digest; the
// host seeds that XXH3 with a random number and the block's extra keys, so equal keys mean equal input to SHA-256. Rules: README.md, "Derived edges".
import { DIGESTS_OUT, DIGESTS_OUT_BLOCKS, EDGE_CAP, HASH_RULE, INPUT, PATH_DONE, PARENT_DIGEST, REQUEST, RESULT, WIDE } from './layout';
import { addCount, cell, count, DERIVED_BLOCKS, DERIVED_EDGES, DIGESTS, DROPS, EDGES, EDGE_EVICTIONS, FULL_EVENTS, LAST_WALKED, setCell, WALKED } from './cells';
import {
  copyHigh, DERIVED, doneOf, externalOf, flagsOf, highOf, insertBehind, KNOWN, localOf, moveBehind, parentOf, prevOf, ROOT, sameHigh,
} from './slots';
import { findChild, hashEdge, hashKey } from './table';
import { isAmbiguous } from './ambiguous';
import { insertEdge, removeEdge } from './edges';
import { attachDigest, confirmHigh } from './residency';
import { blockSizeOf, DERIVED_PLAN } from './plan';
import { hasGap } from './evaluate';
import { digestBlocks } from './engine-hash';
import { walk } from './walk';

const DIGEST_BYTES: usize = 32;
const ROOT_DIGEST: usize = HASH_RULE + 16;
/** Blocks derived before the first look whether they count; twice as many each time. */
const FIRST_PART: u32 = 16;

/**
 * Derives what is unknown of blocks `first` … `end` − 1, whose tokens are at INPUT; all before `first` are known, and REQUEST[0 … end) holds the keys.
 * Stops where full attention lacks an object, since nothing behind that can count. False when deriving more would not change the hit.
 */
export function derive(first: u32, end: u32): bool {
  if (!cell(DIGESTS)) return false;
  let known = walk(end, true, true); // the known part is the hot end of the LRU list now, so that what comes in pushes none of it out
  let anchor = cell(LAST_WALKED);
  setCell(WALKED, 0);
  if (known < first) return false; // other prompts have pushed it out
  for (let part = FIRST_PART; known < end; part <<= 1) {
    if (hasGap(DERIVED_PLAN, known)) return false;
    part = min(part, min(end - known, DIGESTS_OUT_BLOCKS));
    digestsBehind(anchor, INPUT + <usize>((known - first) * blockSizeOf(DERIVED_PLAN) << 2), part);
    addCount(DERIVED_BLOCKS, part);
    for (let i: u32 = 0; i < part; i++) {
      const slot = keep(anchor, load<u64>(REQUEST + (<usize>known << 3)), DIGESTS_OUT + <usize>i * DIGEST_BYTES);
      if (!slot) return false;
      anchor = slot;
      if (WIDE) store<u64>(PATH_DONE + (<usize>known << 3), doneOf(slot));
      else store<u8>(PATH_DONE + <usize>known, <u8>doneOf(slot));
      known++;
    }
  }
  return !hasGap(DERIVED_PLAN, end);
}

/** Digests of `blocks` hash blocks of tokens behind the derived edge in `parent` (0 = none), at DIGESTS_OUT. */
function digestsBehind(parent: u32, tokens: usize, blocks: u32): void {
  if (parent) copyDigest(parent);
  digestBlocks(tokens, blocks, parent == 0, parent ? PARENT_DIGEST : ROOT_DIGEST, DIGESTS_OUT);
}
/** The whole digest that the derived edge in `slot` leads to, to PARENT_DIGEST. */
@inline function copyDigest(slot: u32): void {
  copyHigh(PARENT_DIGEST, highOf(slot));
  store<u64>(PARENT_DIGEST, bswap<u64>(externalOf(slot)), 24);
}

/**
 * Keeps the edge from the one in `parent` (0 = root), which ends up right behind it in the LRU list, to the digest at `digest`. Returns its slot, 0 when it
 * can't be kept: its low64 is ambiguous, or the path alone fills the cap.
 */
function keep(parent: u32, local: u64, digest: usize): u32 {
  const low = bswap<u64>(load<u64>(digest, 24));
  if (isAmbiguous(low)) return 0;
  const hash = hashKey(low);
  const other = findChild(hash, low, DERIVED);
  if (other) {
    // Room for objects may have taken the parent and left its child (makeMemberRoom).
    if (parent && isEdge(other, externalOf(parent), local) && sameHigh(highOf(other), digest)) {
      moveBehind(parent, other, other);
      return other;
    }
    confirmHigh(other, digest); // another digest of that low64
    return 0;
  }
  if (cell(EDGES) >= EDGE_CAP) {
    const victim = prevOf(0);
    if (victim == parent) {
      count(FULL_EVENTS);
      return 0;
    }
    removeEdge(victim);
    count(EDGE_EVICTIONS);
  }
  const before = parent ? externalOf(parent) : 0;
  const kind = parent ? DERIVED : DERIVED | ROOT;
  const slot = insertEdge(before, kind, local, low, hashEdge(before, kind, local), hash, parent, KNOWN);
  insertBehind(parent, slot);
  copyHigh(highOf(slot), digest);
  setCell(DERIVED_EDGES, cell(DERIVED_EDGES) + 1);
  const drops = cell(DROPS);
  attachDigest(slot, hash);
  return cell(DROPS) == drops ? slot : 0;
}

@inline function isEdge(slot: u32, parent: u64, local: u64): bool {
  return !(flagsOf(slot) & ROOT) && parentOf(slot) == parent && localOf(slot) == local;
}

/**
 * The digest of `blocks` hash blocks of tokens at INPUT behind the derived digest with that low64, or at a chain's start: 32 bytes in RESULT. For holding a
 * worker's event against. False when no such digest is known, and nothing can be said.
 */
export function digestBehind(blocks: u32, hasParent: bool, parent: u64): bool {
  const slot = hasParent ? findChild(hashKey(parent), parent, DERIVED) : 0;
  if (hasParent && !slot) return false;
  const size = blockSizeOf(DERIVED_PLAN);
  let tokens = INPUT;
  let first = !hasParent;
  if (slot) copyDigest(slot);
  while (blocks) {
    const part = min(blocks, DIGESTS_OUT_BLOCKS);
    digestBlocks(tokens, part, first, first ? ROOT_DIGEST : PARENT_DIGEST, DIGESTS_OUT);
    memory.copy(PARENT_DIGEST, DIGESTS_OUT + <usize>(part - 1) * DIGEST_BYTES, DIGEST_BYTES);
    tokens += <usize>(part * size) << 2;
    blocks -= part;
    first = false;
  }
  memory.copy(RESULT, PARENT_DIGEST, DIGEST_BYTES);
  return true;
}
