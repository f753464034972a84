// Local hashes of stored events, made where their tokens stand: block i of an event has its local hash at the same index as its engine
// hash. Those of a message are made together, since neighbouring events mostly lie back to back in memory and share a seed.
import { seedOf } from '../core/local-hash.js';
import { type Numbers, sharedNumbers } from '../core/numbers.js';
import type { NormalisedEvent, NormalisedStored } from './normaliser.js';

/** Hashes the dense stored events of a message. Those that stand right behind the one before, in every respect, are marked so. */
export function hashMessage(events: readonly NormalisedEvent[]): void {
  let first: NormalisedStored | null = null; // of a stretch that is hashed in one go
  let last: NormalisedStored | null = null; // of it, if it was the event before
  let blocks = 0;
  for (let i = 0; i < events.length; i++) {
    const stored = events[i]!;
    if (stored.kind !== 'stored' || !stored.event.dense) {
      last = null;
      continue;
    }
    const follows = last !== null && stored.event.behind && last.namespace === stored.namespace;
    if (!follows) {
      if (first !== null) hashStretch(first, blocks);
      first = stored;
      blocks = 0;
    }
    blocks += stored.event.blockCount;
    stored.event.markHashed(follows);
    last = stored;
  }
  if (first !== null) hashStretch(first, blocks);
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
