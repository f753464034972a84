// The contract as the core needs it: groups merged into evaluation units, and the required object-key prefixes. The host encodes it
// (src/core/plan.ts) at INPUT, all fields u32, little endian:
//   groups, prefixes, table seed (u64), the plan for learned edges and the one for derived ones (plan.ts), per prefix {group, length, bytes
//   padded to 4}.
// Prefix ids are their positions; prefixes of one group stand together.
import {
  CELLS, GROUPS, GROUP_CAP, GROUP_MASKS, INPUT, INPUT_BYTES, PREFIX_BYTES, PREFIX_BYTES_MAX, PREFIX_CAP, PREFIX_GROUP, PREFIX_LENGTH,
  PREFIX_MASK, PREFIX_TABLE, WIDE,
} from './layout';
import { cell, GROUP_COUNT, LONGEST_PREFIX, PREFIX_COUNT, setCell, TABLE_SEED, WALKED } from './cells';
import { dropEverything } from './edges';
import { emptyAmbiguous } from './ambiguous';
import { DERIVED_PLAN, LEARNED_PLAN, takePlan } from './plan';

const HEADER: usize = 16;

/** Hash of a key prefix; reads whole words, so up to 7 bytes behind it, and masks them off. */
@inline function hashPrefix(at: usize, length: u32): u32 {
  let hash = <u64>length * 0x9e3779b97f4a7c15;
  let left = length;
  while (left >= 8) {
    hash = rotl((hash ^ load<u64>(at)) * 0xd6e8feb86659fd93, 29);
    at += 8;
    left -= 8;
  }
  if (left) hash = rotl((hash ^ (load<u64>(at) & (((<u64>1) << (left << 3)) - 1))) * 0xd6e8feb86659fd93, 29);
  return <u32>(hash ^ (hash >> 32)) & PREFIX_MASK;
}
@inline function prefixBytes(prefix: u32): usize { return PREFIX_BYTES + <usize>prefix * PREFIX_BYTES_MAX; }
function equalBytes(a: usize, b: usize, length: u32): bool {
  while (length >= 16) {
    if (v128.any_true(v128.xor(v128.load(a), v128.load(b)))) return false;
    a += 16;
    b += 16;
    length -= 16;
  }
  while (length) {
    if (load<u8>(a) != load<u8>(b)) return false;
    a++;
    b++;
    length--;
  }
  return true;
}
/** The id of the required prefix with those bytes, -1 = not required. */
export function findPrefix(at: usize, length: u32): i32 {
  let place = hashPrefix(at, length);
  while (true) {
    const entry = <u32>load<u16>(PREFIX_TABLE + (<usize>place << 1));
    if (!entry) return -1;
    const prefix = entry - 1;
    if (load<u32>(PREFIX_LENGTH + (<usize>prefix << 2)) == length && equalBytes(at, prefixBytes(prefix), length)) return <i32>prefix;
    place = (place + 1) & PREFIX_MASK;
  }
}

/** Takes over the contract at INPUT and forgets everything learned; false when it does not fit this build. */
export function configure(): bool {
  const groups = load<u32>(INPUT);
  const prefixes = load<u32>(INPUT, 4);
  if (groups > GROUP_CAP || prefixes > PREFIX_CAP) return false;
  store<u64>(CELLS + (TABLE_SEED << 2), load<u64>(INPUT, 8));
  dropEverything();
  emptyAmbiguous();
  setCell(WALKED, 0);
  setCell(GROUP_COUNT, groups);
  setCell(PREFIX_COUNT, 0);
  setCell(LONGEST_PREFIX, 0);
  let at = takePlan(LEARNED_PLAN, INPUT + HEADER);
  if (at) at = takePlan(DERIVED_PLAN, at);
  if (!at) return false;
  memory.fill(GROUPS, 0, <usize>GROUP_CAP << 3);
  memory.fill(GROUP_MASKS, 0, <usize>GROUP_CAP << 3);
  memory.fill(PREFIX_TABLE, 0, (<usize>PREFIX_MASK + 1) << 1);
  for (let prefix: u32 = 0; prefix < prefixes; prefix++) {
    const group = load<u32>(at);
    const length = load<u32>(at, 4);
    if (group >= groups || length > PREFIX_BYTES_MAX || at + 8 + length > INPUT + INPUT_BYTES) return false;
    store<u8>(PREFIX_GROUP + <usize>prefix, <u8>group);
    store<u32>(PREFIX_LENGTH + (<usize>prefix << 2), length);
    memory.copy(prefixBytes(prefix), at + 8, length);
    const first = load<u32>(GROUPS + (<usize>group << 3), 4) ? load<u32>(GROUPS + (<usize>group << 3)) : prefix;
    store<u32>(GROUPS + (<usize>group << 3), first);
    store<u32>(GROUPS + (<usize>group << 3), load<u32>(GROUPS + (<usize>group << 3), 4) + 1, 4);
    if (!WIDE) {
      const mask = GROUP_MASKS + (<usize>group << 3);
      store<u64>(mask, load<u64>(mask) | ((<u64>1) << prefix));
    }
    let place = hashPrefix(at + 8, length);
    while (load<u16>(PREFIX_TABLE + (<usize>place << 1))) place = (place + 1) & PREFIX_MASK;
    store<u16>(PREFIX_TABLE + (<usize>place << 1), <u16>(prefix + 1));
    at += 8 + ((<usize>length + 3) & ~3);
    setCell(PREFIX_COUNT, prefix + 1);
    if (length > cell(LONGEST_PREFIX)) setCell(LONGEST_PREFIX, length);
  }
  return true;
}
/** True while a contract is in force. */
@inline export function configured(): bool { return cell(GROUP_COUNT) != 0; }
