// How far a prompt can be restored from blocks that are there, be it on a GPU or in the store: vLLM's coordinator, for geometries that restart at
// multiples of the alignment only. Rule: spec/vllm-store.md 5, closed form.
import type { Geometry, Group } from './geometry.js';

/** Whether the block of `group` that ends behind `tokens` tokens is there. */
export type BlockTest = (group: Group, tokens: number) => boolean;

/** Tokens that can be restored of a prompt of `tokens` tokens; the last token is always computed. */
export function restorable({ groups, alignment }: Geometry, tokens: number, isThere: BlockTest): number {
  const bound = alignedDown(tokens - 1, alignment);
  const full = groups.filter(({ kind }) => kind === 'full_attention');
  const most = full.reduce((most, group) => Math.min(most, runOf(group, most, isThere)), bound);
  const tails = groups.filter(({ kind }) => kind !== 'full_attention');
  for (let end = alignedDown(most, alignment); end > 0; end -= alignment)
    if (tails.every((group) => tailIsThere(group, end, isThere))) return end;
  return 0;
}

/** Tokens of the blocks from the start on without a hole, at most `most`. */
function runOf(group: Group, most: number, isThere: BlockTest): number {
  let end = 0;
  while (end + group.blockSize <= most && isThere(group, end + group.blockSize)) end += group.blockSize;
  return end;
}

/** The window, or the state, that a restart at `end` needs; near the start a window is cut. */
function tailIsThere(group: Group, end: number, isThere: BlockTest): boolean {
  const first = firstOfTail(group, end);
  for (let tokens = end; tokens > first; tokens -= group.blockSize) if (!isThere(group, tokens)) return false;
  return true;
}

/** Tokens before the blocks that a restart at `end` needs; 0 for full attention. */
export function firstOfTail({ kind, needed, blockSize }: Group, end: number): number {
  return kind === 'full_attention' ? 0 : Math.max(0, end - needed * blockSize);
}

/** The last multiple of `step` that is not above `tokens`; 0 for none. */
export function alignedDown(tokens: number, step: number): number {
  return tokens <= 0 ? 0 : tokens - (tokens % step);
}
