// Local hashes of stored events, made where their tokens stand: block i of an event has its local hash at the same index as its engine
// hash. Those of a message are made together, since neighbouring events mostly lie back to back in memory and share a seed.
import { seedOf } from '../core/local-hash.js';
import { type Numbers, sharedNumbers } from '../core/numbers.js';
import type { StoredEvent } from '../wire/vllm.js';
import type { NormalisedEvent, NormalisedStored } from './normaliser.js';

/** Whether token i of the event belongs to block ⌊i / blockSize⌋, and every block has all its tokens. */
export function isDense({ blockCount, blockSize, tokenCount, tokenPairs }: StoredEvent): boolean {
  return blockCount > 0 && !tokenPairs && tokenCount === blockCount * blockSize;
}

/** Hashes the dense stored events of a message. Those that stand right behind the one before, in every respect, are marked so. */
export function hashMessage(events: readonly NormalisedEvent[]): void {
  let first: NormalisedStored | null = null; // of a stretch that is hashed in one go
  let blocks = 0;
  for (let i = 0; i < events.length; i++) {
    const stored = events[i]!;
    if (stored.kind !== 'stored' || !isDense(stored.event)) continue;
    const follows = first !== null && continues(first, blocks, stored);
    if (!follows) {
      if (first !== null) hashStretch(first, blocks);
      first = stored;
      blocks = 0;
    }
    blocks += stored.event.blockCount;
    stored.event.markHashed(follows);
  }
  if (first !== null) hashStretch(first, blocks);
}

/** Whether `next` stands right behind the `blocks` blocks from `first` on and is hashed alike. */
function continues({ event: a, namespace }: NormalisedStored, blocks: number, next: NormalisedStored): boolean {
  const b = next.event;
  return (
    b.hashesAt === a.hashesAt + blocks &&
    b.tokensAt === a.tokensAt + blocks * a.blockSize &&
    (b.shape === a.shape || (b.blockSize === a.blockSize && b.loraName === a.loraName)) &&
    next.namespace === namespace
  );
}

function hashStretch({ event, namespace }: NormalisedStored, blocks: number): void {
  const seed = seedOf(event.loraName, namespace);
  event.numbers!.hashBlocks(event.tokensAt, blocks, event.blockSize, seed, event.hashesAt);
}

/** Numbers that hold the dense event's engine hashes and local hashes. */
export function hashedNumbers({ event, namespace }: NormalisedStored): Numbers {
  const numbers = event.place(sharedNumbers());
  if (!event.hashed) {
    const seed = seedOf(event.loraName, namespace);
    numbers.hashBlocks(event.tokensAt, event.blockCount, event.blockSize, seed, event.hashesAt);
  }
  return numbers;
}
