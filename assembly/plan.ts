// The two evaluation plans of a contract, one for learned edges in main event blocks and one for derived edges in hash blocks. The host makes
// them (src/core/plan.ts); a plan whose block size is 0 is absent. "Block" below is the plan's own.
//
//   0 block size in tokens   4 step: endpoints are multiples of so many blocks   8 partial hits   12 full units   16 window units
//   24 u64: groups that must be complete at the endpoint itself
//   32 full units {mask u64, span u32, tail u32}   32 + 1024 window units {mask u64, span u32, needed u32}
import { GROUP_CAP, PLANS } from './layout';

const UNIT_BYTES: usize = 16;
const FULL_AT: usize = 32;
const WINDOWS_AT: usize = FULL_AT + 64 * UNIT_BYTES;
const PLAN_BYTES: usize = WINDOWS_AT + 64 * UNIT_BYTES;

export const LEARNED_PLAN: usize = PLANS;
export const DERIVED_PLAN: usize = PLANS + PLAN_BYTES;

@inline export function blockSizeOf(plan: usize): u32 { return load<u32>(plan); }
@inline export function stepOf(plan: usize): u32 { return load<u32>(plan, 4); }
@inline export function isPartial(plan: usize): bool { return load<u32>(plan, 8) != 0; }
@inline export function fullCountOf(plan: usize): u32 { return load<u32>(plan, 12); }
@inline export function windowCountOf(plan: usize): u32 { return load<u32>(plan, 16); }
@inline export function endMaskOf(plan: usize): u64 { return load<u64>(plan, 24); }
@inline export function fullUnit(plan: usize, unit: u32): usize { return plan + FULL_AT + <usize>unit * UNIT_BYTES; }
@inline export function windowUnit(plan: usize, unit: u32): usize { return plan + WINDOWS_AT + <usize>unit * UNIT_BYTES; }
@inline export function unitMask(unit: usize): u64 { return load<u64>(unit); }
@inline export function unitSpan(unit: usize): u32 { return load<u32>(unit, 8); }
/** Of a full unit whether a partial tail may extend its reach; of a window unit how many of its spans it needs. */
@inline export function unitExtra(unit: usize): u32 { return load<u32>(unit, 12); }

/** Takes over a plan as the host encodes it: its header, then its units without gaps. Returns the address behind it; 0 when it is none. */
export function takePlan(plan: usize, at: usize): usize {
  const full = load<u32>(at, 12);
  const windows = load<u32>(at, 16);
  if (full > GROUP_CAP || windows > GROUP_CAP || (load<u32>(at) != 0 && !load<u32>(at, 4))) return 0;
  memory.copy(plan, at, FULL_AT);
  memory.copy(plan + FULL_AT, at + FULL_AT, <usize>full * UNIT_BYTES);
  at += FULL_AT + <usize>full * UNIT_BYTES;
  memory.copy(plan + WINDOWS_AT, at, <usize>windows * UNIT_BYTES);
  return at + <usize>windows * UNIT_BYTES;
}
