// How far every rank holds a prompt. One pass over the prompt's blocks finds each by the mix of all local hashes up to it, mostly in the
// entry behind the last one. Ranks are looked at only where the set of holders changes: those that leave it have their depth written down,
// the others go on. A rank that leaves its device goes on with its host memory from there, then with its disk.
import { ACTIVE, ALIVE, ENDS, KEY, LINK_BYTES, LINKS, LOCALS, mix, PREV_AT, rootKey, SET_AT, WORDS } from './layout';
import { heatRow, splice } from './order';
import { LOWER, recordOf, tiersOf } from './sets';
import { findKey } from './table';

const HOST_ENDS: usize = 4096;
const DISK_ENDS: usize = 8192;
const HOST_ALIVE: usize = 128;
const DISK_ALIVE: usize = 256;
const START: u32 = 0x10000; // no set: the prompt's first block is still to come

// The walk between two parts
let depth: u32 = 0; // blocks walked
let key: u64 = 0;
let entry: u32 = 0; // of the last block
let holders: u32 = 0; // set of the last block
let active: u32 = 0; // pairs of words with ranks alive
let lower: bool = false; // some are alive on host or disk
let first: u32 = 0; // of a run of neighbours in the list that is to be moved
let anchor: u32 = 0; // behind this
let row: u32 = 0; // first of the entries in a row that the walk is in, up to `entry`

/** Begins a walk. */
export function begin(): void {
  for (let ends: usize = 0; ends <= DISK_ENDS; ends += HOST_ENDS) memory.fill(ENDS + ends, 0, <usize>WORDS << 8);
  depth = 0;
  key = rootKey();
  entry = 0;
  holders = START;
  active = 0;
  lower = false;
  first = 0;
  row = 1;
}

/** Walks over the next `blocks` blocks, whose local hashes stand in LOCALS; false when no rank goes on. */
export function walk(blocks: u32, heats: bool): bool {
  const keys = KEY;
  const links = LINKS;
  let now = key;
  let at = entry;
  let set = holders;
  let from = row;
  let i: u32 = 0;
  let goes = true;
  for (; i < blocks; i++) {
    now = mix(now, load<u64>(LOCALS + (<usize>i << 3)));
    let next = at + 1;
    if (load<u64>(keys + (<usize>next << 3)) != now) {
      next = findKey(now);
      if (!next) {
        goes = false;
        break;
      }
      if (heats) heatRow(from, at);
      from = next;
    }
    const link = links + <usize>next * LINK_BYTES;
    const its = <u32>load<u16>(link, SET_AT);
    if (its != set) {
      if (!narrow(its, set == START, depth + i)) {
        if (from == next) from = at + 1;
        goes = false;
        break;
      }
      set = its;
    }
    if (heats) {
      if ((load<u32>(link, PREV_AT) & 0xffffff) != at) {
        if (first) splice(first, at, anchor);
        first = next;
        anchor = at;
      }
    }
    at = next;
  }
  depth += i;
  key = now;
  entry = at;
  holders = set;
  row = from;
  return goes;
}
/** Ends the walk: whoever is still alive has all that was walked. Returns the blocks walked. */
export function finish(heats: bool): u32 {
  if (heats && first) splice(first, entry, anchor);
  if (heats) heatRow(row, entry);
  drain(depth);
  return depth;
}
/** Writes the depth down for the ranks in `bits` of a word. */
function mark(word: u32, bits: u64, ends: usize, end: u32): void {
  const base = ENDS + ends + (<usize>word << 8);
  while (bits) {
    store<u32>(base + (<usize>ctz(bits) << 2), end);
    bits &= bits - 1;
  }
}

/** From the last block's holders to those of the block at `end`; false when none is left. */
function narrow(set: u32, start: bool, end: u32): bool {
  if (!set) {
    if (start) return false;
    return drain(end);
  }
  const record = recordOf(set);
  if (start) return enter(record, tiersOf(set));
  return lower || (tiersOf(set) & LOWER) != 0 ? narrowTiers(record, end) : narrowDevice(record, end);
}
/** The prompt's first block: each rank starts in its first tier that has it. */
function enter(record: usize, tiers: u32): bool {
  const words = WORDS;
  const tier = <usize>words << 3;
  for (let pair: u32 = 0; pair < (words + 1) >> 1; pair++) {
    let any: u64 = 0;
    for (let word = pair << 1; word < (pair << 1) + 2; word++) {
      const at = ALIVE + (<usize>word << 3);
      let device: u64 = 0;
      let host: u64 = 0;
      let disk: u64 = 0;
      if (word < words) {
        const from = record + (<usize>word << 3);
        device = load<u64>(from);
        host = load<u64>(from + tier) & ~device;
        disk = load<u64>(from + tier * 2) & ~(device | host);
      }
      store<u64>(at, device);
      store<u64>(at, host, HOST_ALIVE);
      store<u64>(at, disk, DISK_ALIVE);
      any |= device | host | disk;
    }
    if (any) store<u8>(ACTIVE + active++, <u8>pair);
  }
  lower = (tiers & LOWER) != 0;
  return active != 0;
}
/** All have ended. */
function drain(end: u32): bool {
  for (let i: u32 = 0; i < active; i++) {
    const word = <u32>load<u8>(ACTIVE + i) << 1;
    for (let half: u32 = 0; half < 2; half++) {
      const at = ALIVE + (<usize>(word + half) << 3);
      const device = load<u64>(at);
      const host = device | load<u64>(at, HOST_ALIVE);
      mark(word + half, device, 0, end);
      mark(word + half, host, HOST_ENDS, end);
      mark(word + half, host | load<u64>(at, DISK_ALIVE), DISK_ENDS, end);
    }
  }
  active = 0;
  return false;
}
/** Nobody is alive on host or disk, and nobody comes to be. */
function narrowDevice(record: usize, end: u32): bool {
  for (let i: u32 = 0; i < active; i++) {
    const pair = <u32>load<u8>(ACTIVE + i);
    const at = ALIVE + (<usize>pair << 4);
    const alive = v128.load(at);
    const left = v128.and(alive, v128.load(record + (<usize>pair << 4)));
    const gone = v128.xor(alive, left);
    if (!v128.any_true(gone)) continue;
    v128.store(at, left);
    const low = i64x2.extract_lane(gone, 0);
    const high = i64x2.extract_lane(gone, 1);
    for (let ends: usize = 0; ends <= DISK_ENDS; ends += HOST_ENDS) {
      if (low) mark(pair << 1, low, ends, end);
      if (high) mark((pair << 1) + 1, high, ends, end);
    }
    if (!v128.any_true(left)) store<u8>(ACTIVE + i--, load<u8>(ACTIVE + --active));
  }
  return active != 0;
}
/** Any tier: whoever leaves one goes on in the next that has the block. */
function narrowTiers(record: usize, end: u32): bool {
  const words = WORDS;
  const tier = <usize>words << 3;
  let below: u64 = 0;
  for (let i: u32 = 0; i < active; i++) {
    const pair = <u32>load<u8>(ACTIVE + i);
    let any: u64 = 0;
    for (let word = pair << 1; word < words && word < (pair << 1) + 2; word++) {
      const at = ALIVE + (<usize>word << 3);
      const from = record + (<usize>word << 3);
      const device = load<u64>(at);
      const onDevice = device & load<u64>(from);
      const toHost = device ^ onDevice;
      const host = load<u64>(at, HOST_ALIVE) | toHost;
      const onHost = host & load<u64>(from + tier);
      const toDisk = host ^ onHost;
      const disk = load<u64>(at, DISK_ALIVE) | toDisk;
      const onDisk = disk & load<u64>(from + tier * 2);
      store<u64>(at, onDevice);
      store<u64>(at, onHost, HOST_ALIVE);
      store<u64>(at, onDisk, DISK_ALIVE);
      mark(word, toHost, 0, end);
      mark(word, toDisk, HOST_ENDS, end);
      mark(word, disk ^ onDisk, DISK_ENDS, end);
      any |= onDevice | onHost | onDisk;
      below |= onHost | onDisk;
    }
    if (!any) store<u8>(ACTIVE + i--, load<u8>(ACTIVE + --active));
  }
  lower = below != 0;
  return active != 0;
}
