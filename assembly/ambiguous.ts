// The ambiguous set: low64 values under which two different digests were seen. Bounded, linear probing, never deletes one by one.
import { AMBIGUOUS_CAP, AMBIGUOUS_MASK, AMBIGUOUS_TABLE } from './layout';
import { AMBIGUOUS, AMBIGUOUS_ZERO, cell, setCell } from './cells';
import { hashKey } from './table';

@inline export function isAmbiguous(low: u64): bool {
  return cell(AMBIGUOUS) != 0 && holds(low);
}
function holds(low: u64): bool {
  if (!low) return cell(AMBIGUOUS_ZERO) != 0;
  let place = <u32>(hashKey(low) >> 32) & AMBIGUOUS_MASK;
  while (true) {
    const found = load<u64>(<usize>place << 3, AMBIGUOUS_TABLE);
    if (!found) return false;
    if (found == low) return true;
    place = (place + 1) & AMBIGUOUS_MASK;
  }
}
/** Adds a low64 that is not in the set; false when the set is full. */
export function addAmbiguous(low: u64): bool {
  const size = cell(AMBIGUOUS);
  if (size == AMBIGUOUS_CAP) return false;
  setCell(AMBIGUOUS, size + 1);
  if (!low) {
    setCell(AMBIGUOUS_ZERO, 1);
    return true;
  }
  let place = <u32>(hashKey(low) >> 32) & AMBIGUOUS_MASK;
  while (load<u64>(<usize>place << 3, AMBIGUOUS_TABLE)) place = (place + 1) & AMBIGUOUS_MASK;
  store<u64>(<usize>place << 3, low, AMBIGUOUS_TABLE);
  return true;
}
export function emptyAmbiguous(): void {
  memory.fill(AMBIGUOUS_TABLE, 0, <usize>AMBIGUOUS_CAP * 16);
  setCell(AMBIGUOUS, 0);
  setCell(AMBIGUOUS_ZERO, 0);
}
