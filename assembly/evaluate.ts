// Endpoint evaluation: the largest token count at which every group of the model can restart, from the completeness of the walked
// blocks. The rule is README.md's "Lookup"; the host has already merged equal groups into units (src/core/plan.ts).
// Blocks are numbered from 1 here: endpoint e means the boundary behind block e.
import { PATH_DONE, RESULT, WHY, WIDE, WINDOW_LOW } from './layout';
import { addCount, cell, count, EXPLAINING, GROUP_COUNT, LAST_RUNS, LOOKUPS, RUNS, setCell, WALKED_BLOCKS, WHOLE } from './cells';
import {
  blockSizeOf, DERIVED_PLAN, endMaskOf, fullCountOf, fullUnit, isPartial, LEARNED_PLAN, stepOf, unitExtra, unitMask, unitSpan, windowCountOf, windowUnit,
} from './plan';
import { walk } from './walk';

@inline function doneAt(block: u32): u64 {
  return WIDE ? load<u64>(PATH_DONE + (<usize>(block - 1) << 3)) : <u64>load<u8>(PATH_DONE + <usize>(block - 1));
}
@inline function complete(block: u32, mask: u64): bool { return (doneAt(block) & mask) == mask; }
/** True when the 64 blocks from index `from` (0-based) all hold `mask`; narrow builds only. */
@inline function complete64(from: usize, mask: v128): bool {
  const all = v128.and(
    v128.and(v128.load(PATH_DONE + from), v128.load(PATH_DONE + from, 16)),
    v128.and(v128.load(PATH_DONE + from, 32), v128.load(PATH_DONE + from, 48)),
  );
  return !v128.any_true(v128.andnot(mask, all));
}

/** While explaining: notes for each group of `mask` that lacks `block` the first block that blocked it. */
function note(mask: u64, block: u32): void {
  if (!cell(EXPLAINING)) return;
  const lacking = mask & ~doneAt(block);
  for (let group: u32 = 0; group < cell(GROUP_COUNT); group++)
    if ((lacking >> group) & 1 && !load<u32>(WHY + (<usize>group << 2))) store<u32>(WHY + (<usize>group << 2), block);
}

function isNoted(): bool {
  for (let group: u32 = 0; group < cell(GROUP_COUNT); group++) if (load<u32>(WHY + (<usize>group << 2))) return true;
  return false;
}

/** How far a full-attention unit reaches within the first `limit` blocks; at most `limit`. */
function reachOf(mask: u64, span: u32, tail: bool, limit: u32): u32 {
  let reach: u32 = 0;
  if (span == 1) {
    if (!WIDE) {
      const lanes = i8x16.splat(<i8>(<u32>mask));
      while (reach + 64 <= limit && complete64(reach, lanes)) reach += 64;
    }
    while (reach < limit && complete(reach + 1, mask)) reach++;
    if (reach < limit) note(mask, reach + 1);
    return reach;
  }
  while (reach + span <= limit && complete(reach + span, mask)) reach += span;
  if (reach + span <= limit) note(mask, reach + span);
  if (tail) {
    for (let block = min(reach + span - 1, limit); block > reach; block--) if (complete(block, mask)) return block;
  }
  return reach;
}

/**
 * Whether full attention lacks so much within the first `limit` blocks of the path that its reach is settled, whatever lies behind them. One unit's gap may
 * not be enough: how far its partial tail counts depends on the units before it, which may still reach further.
 */
export function hasGap(plan: usize, limit: u32): bool {
  let least = limit;
  let most = u32.MAX_VALUE; // were all behind the limit complete
  for (let unit: u32 = 0; unit < fullCountOf(plan); unit++) {
    const at = fullUnit(plan, unit);
    const mask = unitMask(at);
    const span = unitSpan(at);
    const tail = unitExtra(at) != 0;
    if (most <= limit || reachOf(mask, span, false, limit) + span <= limit) most = reachOf(mask, span, tail, min(most, limit));
    least = reachOf(mask, span, tail, least);
  }
  return least == most;
}

/** The largest reusable endpoint within the first `limit` blocks, in blocks. */
function evaluate(plan: usize, limit: u32): u32 {
  const step = stepOf(plan);
  const ends = endMaskOf(plan);
  const windows = windowCountOf(plan);
  let reach = limit;
  // One after the other, in store order, each asked only as far as the one before reached, as vLLM does.
  for (let unit: u32 = 0; unit < fullCountOf(plan); unit++) {
    const at = fullUnit(plan, unit);
    reach = reachOf(unitMask(at), unitSpan(at), unitExtra(at) != 0, reach);
  }
  // What a unit lacks just where the one before it ended is to blame too, where nothing else is.
  if (cell(EXPLAINING) && reach < limit && !isNoted())
    for (let unit: u32 = 0; unit < fullCountOf(plan); unit++) reachOf(unitMask(fullUnit(plan, unit)), unitSpan(fullUnit(plan, unit)), false, limit);
  let end = reach - (reach % step);
  for (let unit: u32 = 0; unit < windows; unit++) store<u32>(WINDOW_LOW + (<usize>unit << 2), end);
  while (end) {
    if (!complete(end, ends)) {
      note(ends, end);
      end -= step;
      continue;
    }
    let gap: u32 = 0;
    for (let unit: u32 = 0; unit < windows; unit++) {
      gap = windowGap(windowUnit(plan, unit), unit, end);
      if (gap) break;
    }
    if (!gap) return end;
    end = gap - 1; // no window that reaches over the gap can be whole
    end -= end % step;
  }
  return 0;
}
/** The highest missing block of the unit's window that ends at `end`, 0 = none. What is verified once is not looked at again. */
@inline function windowGap(at: usize, unit: u32, end: u32): u32 {
  const mask = unitMask(at);
  const span = unitSpan(at);
  const low = end - min(unitExtra(at), end / span) * span;
  const lowAt = WINDOW_LOW + (<usize>unit << 2);
  let verified = min(load<u32>(lowAt), end); // multiples of span in (verified, end] are complete
  if (!WIDE && span == 1) {
    const lanes = i8x16.splat(<i8>(<u32>mask));
    while (verified >= low + 64 && complete64(verified - 64, lanes)) verified -= 64;
  }
  while (verified > low && complete(verified, mask)) verified -= span;
  store<u32>(lowAt, verified);
  if (verified <= low) return 0;
  note(mask, verified);
  return verified;
}

/** Walks and evaluates REQUEST[0 … blocks) for a prompt of `tokens` tokens; returns the hit in blocks of the plan. */
function hitOf(plan: usize, blocks: u32, tokens: u32, touch: bool): u32 {
  const size = blockSizeOf(plan);
  if (!tokens || !size) return 0;
  const limit = (tokens - 1) / size;
  const walked = walk(min(blocks, isPartial(plan) ? tokens / size : limit), touch, plan == DERIVED_PLAN);
  if (touch) {
    count(LOOKUPS);
    addCount(WALKED_BLOCKS, walked);
    addCount(RUNS, cell(LAST_RUNS));
  } else store<u32>(RESULT, walked);
  const hit = evaluate(plan, walked);
  if (!isPartial(plan) || !hit || walked * size != tokens) return hit;
  // The worker first asks for the whole prompt; told "all of it", it asks again for one token less. Where more may be stored than is known, it may be
  // told so unseen: then the smaller answer counts.
  const isAll = hit * size == tokens;
  if (!isAll && cell(WHOLE)) return hit;
  forgetWhy();
  return min(hit, evaluate(plan, limit));
}
function forgetWhy(): void { memory.fill(WHY, 0, 64 * 4); }
@inline function planFor(derived: bool): usize { return derived ? DERIVED_PLAN : LEARNED_PLAN; }
export function lookup(blocks: u32, tokens: u32, derived: bool): u32 { return hitOf(planFor(derived), blocks, tokens, true); }
/** The same answer without touching anything; WHY, STOPPED and the path's slots at INPUT say how it came about. */
export function lookupWhy(blocks: u32, tokens: u32, derived: bool): u32 {
  forgetWhy();
  store<u32>(RESULT, 0);
  setCell(EXPLAINING, 1);
  const hit = hitOf(planFor(derived), blocks, tokens, false);
  setCell(EXPLAINING, 0);
  return hit;
}
