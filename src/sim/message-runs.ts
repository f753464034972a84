// What stands in the messages of the streams (message-queue.ts): runs of blocks, and what happened to them.
import type { BlockTree } from './blocks.js';
import { type MessageQueue, RUN_WORDS } from './message-queue.js';
import { SSD } from './store.js';

// What happened to a run of a worker's blocks; of the store's: this, and the tier and group of the objects above it.
export const STORED = 0;
export const REMOVED = 1;
const WHAT_BITS = 1;
const TIER_BITS = 1;
const MEDIA = ['cpu', 'disk'] as const;

/** The number that stands for what happened to objects. */
export function whatOf(kind: number, tier: number, group: number): number {
  return kind | ((tier === SSD ? 1 : 0) << WHAT_BITS) | (group << (WHAT_BITS + TIER_BITS));
}

export const kindOf = (what: number): number => what & 1;
export const mediumOf = (what: number): 'cpu' | 'disk' => MEDIA[(what >> WHAT_BITS) & 1]!;
export const groupOf = (what: number): number => what >> (WHAT_BITS + TIER_BITS);

/**
 * Visits a worker's oldest message: blocks `first` … `first + count − 1`, at most `most` at once. Runs that follow one another become one: of
 * stored ones in a chain, of removed ones in the order of their numbers.
 */
export function forEachWorkerRun(
  { words, begin, stop }: MessageQueue,
  tree: BlockTree,
  most: number,
  visit: (what: number, first: number, count: number) => void,
): void {
  const each = tree.blocksPerNode;
  for (let at = begin; at < stop; ) {
    const what = words[at]!;
    let first = words[at + 1]! * each + words[at + 2]!;
    let end = first + words[at + 3]!;
    let last = words[at + 1]!;
    for (at += RUN_WORDS; at < stop && words[at] === what; at += RUN_WORDS) {
      const next = words[at + 1]!;
      const from = next * each + words[at + 2]!;
      const to = from + words[at + 3]!;
      if (from === end && (what === REMOVED || next === last || tree.parentOf(next) === last)) {
        end = to;
        last = next;
      } else if (what === REMOVED && to === first) first = from;
      else break;
    }
    for (; first < end; first += most) visit(what, first, Math.min(most, end - first));
  }
}
